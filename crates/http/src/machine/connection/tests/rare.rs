//! What few responses have: hints before them, trailers behind them, and that they are the last. Requests
//! with trailers are in the transcript of tests.rs, too.

use super::*;

const CHUNKS: &str = "POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked~~3~abc~0~";
const TEXT: Response<'_> = Response { status: 200, kind: 1, headers: b"" };

fn trailers(connection: &Connection, stamp: u32) -> String {
    String::from_utf8_lossy(connection.trailers(stamp)).replace("\r\n", "~")
}

#[test]
fn trailers_belong_to_their_request_until_it_has_its_response() {
    let input = format!("{CHUNKS}A: 1~~{GET}{CHUNKS}~{CHUNKS}B: 2~C:3~~");
    let (mut connection, unused) = read(&input, &limits());
    let all = |connection: &Connection| [1, 2, 3, 4, 5].map(|stamp| trailers(connection, stamp));
    assert_eq!((unused, all(&connection)), (0, ["A: 1~", "", "", "B: 2~C:3~", ""].map(String::from)));
    assert!(respond_with(&mut connection, 1, "a"));
    assert_eq!(trailers(&connection, 4), "B: 2~C:3~");
    assert!(connection.keep_trailers(2, b"D: 4".to_vec()), "drops those of the first");
    assert_eq!(all(&connection), ["", "D: 4", "", "B: 2~C:3~", ""].map(String::from));
}

#[test]
fn trailers_of_a_body_that_comes_later_are_read_at_its_end() {
    let (mut connection, _) = read(&CHUNKS[..CHUNKS.len() - 1], &limits());
    assert_eq!(trailers(&connection, 1), "");
    let mut rest = b"\r\nA: 1\r\n\r\n".to_vec();
    let decoded = connection.decode(&mut rest, &limits()).unwrap();
    assert!(decoded.is_end);
    assert_eq!(trailers(&connection, 1), "A: 1~");
}

#[test]
fn the_last_request_of_a_connection_may_have_trailers() {
    let (mut connection, unused) =
        read(&format!("{}A: 1~~{GET}", CHUNKS.replace("Host", "Connection: close~Host")), &limits());
    assert_eq!((trailers(&connection, 1), unused), ("A: 1~".into(), (GET.replace('~', "\r\n")).len()));
    assert!(respond_with(&mut connection, 1, "a"));
    assert!(connection.is_over());
}

#[test]
fn hints_come_before_their_response_in_its_turn() {
    let (mut connection, _) = read(&GET.repeat(2), &limits());
    assert!(connection.hint(2, b"link: b\r\n"));
    assert!(connection.hint(1, b"link: a\r\n") && connection.hint(1, b"link: c\r\n"));
    let hint = |link: &str| format!("HTTP/1.1 103 Early Hints~link: {link}~~");
    assert_eq!(sent(&mut connection), hint("a") + &hint("c"));
    assert!(respond_with(&mut connection, 1, "1"));
    assert_eq!(sent(&mut connection), format!("HTTP/1.1 200 OK~content-length: 1~~1{}", hint("b")));
    assert!(!connection.hint(1, b""), "it has its response");
    assert!(connection.start(2, &TEXT, None, &heads()).is_some());
    assert!(!connection.hint(2, b""), "its response has begun");
}

#[test]
fn clients_of_http10_get_no_hints() {
    let (mut connection, _) = read("GET / HTTP/1.0~~", &limits());
    assert!(!connection.hint(1, b"link: a\r\n"));
    assert_eq!(sent(&mut connection), "");
}

#[test]
fn the_connection_closes_after_a_last_response() {
    let (mut connection, _) = read(&GET.repeat(3), &limits());
    assert_eq!(connection.close_after(2), [3]);
    assert!(respond_with(&mut connection, 1, "a"));
    assert!(!connection.is_over() && !respond_with(&mut connection, 3, "c"));
    assert!(respond_with(&mut connection, 2, "b"));
    assert!(connection.is_over() && connection.is_cut());
    assert_eq!(
        sent(&mut connection),
        "HTTP/1.1 200 OK~content-length: 1~~aHTTP/1.1 200 OK~content-length: 1~connection: close~~b"
    );
    assert!(connection.close_after(2).is_empty(), "it has its response");
}

#[test]
fn a_last_response_may_come_before_the_end_of_its_request() {
    let (mut connection, _) = read("POST / HTTP/1.1~Host: a~Content-Length: 9~~abc", &limits());
    assert!(connection.close_after(1).is_empty());
    assert!(connection.has_body(1), "it can still be read");
    assert!(respond_with(&mut connection, 1, "a"));
    assert!(connection.is_over() && connection.is_cut());
}

#[test]
fn trailers_end_a_chunked_body_and_no_other() {
    let end = |connection: &mut Connection, stamp: u32| {
        connection.write(stamp, b"abc");
        let found = connection.end_with_trailers(stamp, b"x: y\r\n");
        (found, sent(connection))
    };
    let (mut connection, _) = read(&format!("{GET}{GET}HEAD / HTTP/1.1~Host: a~~"), &limits());
    assert!(connection.start(1, &TEXT, None, &heads()).is_some());
    sent(&mut connection);
    assert_eq!(end(&mut connection, 1), (Some(true), "3~abc~0~x: y~~".into()));
    assert!(connection.start(2, &TEXT, Some(4), &heads()).is_some());
    sent(&mut connection);
    assert_eq!(end(&mut connection, 2), (None, "abc".into()), "shorter than its length");
    connection.write(2, b"d");
    assert_eq!(
        (connection.end_with_trailers(2, b"x: y\r\n"), sent(&mut connection)),
        (Some(true), "d".into())
    );
    assert!(connection.start(3, &TEXT, None, &heads()).is_some());
    sent(&mut connection);
    assert_eq!(end(&mut connection, 3), (Some(true), String::new()), "of HEAD");
    assert_eq!(end(&mut connection, 3), (Some(false), String::new()), "it has ended");
}
