//! Heads of responses as they are sent, and dates compared with known days: leap days, the ends of centuries,
//! a second before the epoch.

use super::*;

fn written(head: ResponseHead<'_>) -> String {
    let mut heads = Heads::default();
    heads.set_time(784_111_777);
    let mut out = Vec::new();
    heads.write(&head, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn dates_are_imf_fixdates() {
    for (second, expected) in [
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
        (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
        (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
    ] {
        let mut text = Vec::new();
        write_date(second, &mut text);
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}

#[test]
fn common_heads_equal_the_others() {
    let head = ResponseHead {
        status: 200,
        kind: 2,
        headers: b"a: b\r\n",
        framing: ResponseFraming::Length(1234),
        persistence: Persistence::Default,
    };
    let date = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let start = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{date}");
    assert_eq!(written(head), format!("{start}content-length: 1234\r\na: b\r\n\r\n"));
    let head = ResponseHead { persistence: Persistence::Close, ..head };
    assert_eq!(written(head), format!("{start}content-length: 1234\r\nconnection: close\r\na: b\r\n\r\n"));
    let head = ResponseHead {
        persistence: Persistence::KeepAlive,
        framing: ResponseFraming::Chunked,
        kind: 0,
        ..head
    };
    assert_eq!(
        written(head),
        format!(
            "HTTP/1.1 200 OK\r\n{date}transfer-encoding: chunked\r\nconnection: keep-alive\r\na: b\r\n\r\n"
        )
    );
    let head = ResponseHead {
        status: 299,
        framing: ResponseFraming::None,
        persistence: Persistence::Default,
        headers: b"",
        ..head
    };
    assert_eq!(written(head), format!("HTTP/1.1 299 \r\n{date}\r\n"));
}

#[test]
fn numbers_are_written_in_full() {
    for number in [0, 9, 10, 12_345, u64::MAX] {
        let mut out = Vec::new();
        push_number(number, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
    }
}
