//! Hints, trailers, and responses after which the connection closes, on sockets: what the host finds, and
//! what its clients receive.

use super::*;

impl Host {
    /// Write a record with header lines and a body; its number of bytes is that of the body.
    pub(super) fn put_lines(&mut self, kind: u32, (slot, stamp): (u32, u32), lines: &[u8], body: &[u8]) {
        let at = self.reactor.batches.out.word(out::END) as usize;
        let (low, high) =
            if kind & 0xff == reply::START { (u32::MAX, u32::MAX) } else { (body.len() as u32, 0) };
        let words: [u32; head::WORDS] = [kind, slot, stamp, 200, lines.len() as u32, low, high, 0];
        self.reactor.batches.out.put_all(at / 4, words);
        let lines_at = at + head::WORDS * 4;
        let end = lines_at + lines.len() + body.len();
        self.reactor.batches.out.all_mut()[lines_at..end].copy_from_slice(&[lines, body].concat());
        self.reactor.batches.out.put(out::END, end.next_multiple_of(4) as u32);
    }

    /// Requests that were sent and are open.
    pub(super) fn opened(
        &mut self,
        client: &mut TcpStream,
        requests: &[u8],
        count: usize,
    ) -> Vec<(u32, u32)> {
        self.responds = false;
        client.write_all(requests).expect("space in the socket");
        self.until("the requests", |host| host.open.len() == count);
        std::mem::take(&mut self.open)
    }

    /// Take the records. Returns what is found for the last.
    fn found(&mut self) -> u32 {
        self.reactor.put_responses(None);
        self.reactor.batches.out.word(out::FOUND)
    }
}

const LAST: u32 = layout::FLAG_LAST;

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_hint_is_sent_at_once_and_not_after_its_response_has_begun() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut client = host.connect();
    let open = host.opened(&mut client, GET, 1);
    host.put_lines(reply::HINT, open[0], b"link: a\r\n", b"");
    assert_eq!(host.found(), 1);
    host.reactor.flush_responses();
    assert_eq!(host.read_until(&mut client, "\r\n\r\n"), "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n");
    host.put_lines(reply::START, open[0], b"", b"");
    host.put_lines(reply::HINT, open[0], b"link: b\r\n", b"");
    assert_eq!(host.found(), 0);
    host.put_lines(reply::END, open[0], b"", b"");
    host.reactor.flush_responses();
    assert!(host.read_until(&mut client, "0\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    host.put_lines(reply::HINT, open[0], b"link: c\r\n", b"");
    assert_eq!(host.found(), 0, "its exchange has ended");
    host.put_lines(reply::HINT, (77, 1), b"link: c\r\n", b"");
    assert_eq!(host.found(), 0, "no such connection");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn the_connection_closes_after_a_last_response_of_any_kind() {
    let large = vec![b'x'; 300_000];
    for kind in ["whole", "streamed", "large"] {
        let mut host = Host::new(anywhere(), false, limits());
        let mut client = host.connect();
        let open = host.opened(&mut client, &GET.repeat(2), 2);
        match kind {
            "whole" => host.put_lines(reply::RESPOND | LAST, open[0], b"x: y\r\n", b"all"),
            "streamed" => {
                host.put_lines(reply::START | LAST, open[0], b"", b"");
                host.put_lines(reply::WRITE, open[0], b"", b"all");
                host.put_lines(reply::END, open[0], b"", b"");
            }
            _ => {
                host.put_lines(reply::RESPOND | LAST, open[0], b"", b"");
                let at = host.reactor.batches.out.word(out::END) as usize - head::WORDS * 4;
                host.reactor.batches.out.put(at / 4 + head::ELSEWHERE, 1);
                host.reactor.put_responses(Some(&large));
            }
        }
        host.reactor.flush_responses();
        let text = host.read_until(&mut client, "");
        assert!(text.contains("\r\nconnection: close\r\n"), "{kind}: {}", &text[..100]);
        let bytes = text.len();
        assert!(text.ends_with("<closed>") && (kind != "large" || bytes > large.len()), "{kind}: {bytes}");
        host.until("the event", |host| host.seen.last() == Some(&format!("event {}", event::CLOSED)));
        host.put_lines(reply::RESPOND, open[1], b"", b"dropped");
        host.reactor.flush_responses();
        drop(client);
        host.until("closed", |host| host.reactor.stats().connections == 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn trailers_are_read_and_written() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut client = host.connect();
    let chunked = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let whole = format!("{chunked}1\r\na\r\n0\r\nX: \u{e4}\r\n\r\n");
    // A byte of Latin-1 on the wire.
    let whole: Vec<u8> = whole.chars().map(|char| char as u8).collect();
    let first = host.opened(&mut client, &whole, 1)[0];
    assert_eq!(host.reactor.connections.trailers(first.0, first.1), "X: \u{e4}\r\n");
    host.put_lines(reply::START, first, b"", b"");
    host.put_lines(reply::WRITE, first, b"", b"abc");
    host.put_lines(reply::TRAILERS, first, b"y: z\r\n", b"");
    host.reactor.flush_responses();
    assert!(host.read_until(&mut client, "3\r\nabc\r\n0\r\ny: z\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
    assert_eq!(host.reactor.connections.trailers(first.0, first.1), "");

    let second = host.opened(&mut client, chunked.as_bytes(), 1)[0];
    assert_eq!(host.reactor.pull(second.0, second.1), layout::pull::WAIT);
    client.write_all(b"0\r\nX: 1\r\n\r\n").unwrap();
    host.until("the event", |host| host.seen.last() == Some(&format!("event {}", event::BODY)));
    assert_eq!(host.reactor.pull(second.0, second.1), layout::pull::END);
    assert_eq!(host.reactor.connections.trailers(second.0, second.1), "X: 1\r\n");
    // A body that is shorter than its length cuts the connection, with trailers as without.
    let at = host.reactor.batches.out.word(out::END) as usize;
    host.put_lines(reply::START, second, b"", b"");
    host.reactor.batches.out.put(at / 4 + head::BYTES, 9);
    host.reactor.batches.out.put(at / 4 + head::BYTES_HIGH, 0);
    host.put_lines(reply::TRAILERS, second, b"y: z\r\n", b"");
    host.reactor.flush_responses();
    let text = host.read_until(&mut client, "");
    assert!(text.ends_with("<reset>") || text.ends_with("<closed>"), "{text}");
}
