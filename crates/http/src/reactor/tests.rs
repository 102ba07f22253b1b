//! The reactor on real sockets, with a host written in Rust that reads the records of a batch and writes
//! responses as src/http does.

mod edges;
mod files;
mod http2;
mod members;
mod rare;
mod sockets;
mod stopping;
mod turns;

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use super::*;
use crate::{
    constants::Constant,
    layout::{HEADER_BYTES, event, head, inbound, message, out, reply, request},
    limits::Limits,
    listen::Endpoint,
    sys,
};

struct Host {
    reactor: Reactor,
    // Behind the reactor, which refers to it.
    memory: Vec<*mut [u64]>,
    seen: Vec<String>,
    /// Requests in each batch.
    batches: Vec<u32>,
    /// Slot and stamp of requests without a response.
    open: Vec<(u32, u32)>,
    responds: bool,
}

impl Drop for Host {
    fn drop(&mut self) {
        for memory in self.memory.drain(..) {
            // SAFETY: made by Box::into_raw in `new`; the reactor is not used after this.
            drop(unsafe { Box::from_raw(memory) });
        }
    }
}

/// Bytes of a constant that is stored with its head.
const LARGE_BYTES: usize = 20_000;
/// Bytes of a constant that is shared.
const HUGE_BYTES: usize = 16 * 1024 * 1024;

fn limits() -> Limits {
    Limits { pipeline_max: 8, ..Limits::default() }
}

fn anywhere() -> Endpoint {
    Endpoint::Address(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

impl Host {
    fn new(endpoint: Endpoint, is_shared: bool, limits: Limits) -> Self {
        Self::try_new(endpoint, is_shared, limits).expect("a free endpoint")
    }

    fn try_new(endpoint: Endpoint, is_shared: bool, limits: Limits) -> io::Result<Self> {
        let mut memory = Vec::new();
        let mut region = |bytes: usize| {
            let boxed: *mut [u64] = Box::into_raw(vec![0_u64; bytes / 8].into_boxed_slice());
            memory.push(boxed);
            // SAFETY: freed by the host, whose methods alone use it, one at a time.
            unsafe { Region::new(boxed.cast(), bytes) }
        };
        let regions = (region(512 * 1024), region(64 * 1024), region(32 * 1024));
        let constant = |path: &str, body: &[u8]| Constant {
            method: b"GET".to_vec(),
            path: path.as_bytes().to_vec(),
            status: 200,
            headers: Vec::new(),
            body: body.to_vec(),
        };
        let constants = vec![
            constant("/constant", b"same"),
            constant("/large", &[b'x'; LARGE_BYTES]),
            constant("/huge", &vec![b'x'; HUGE_BYTES]),
        ];
        let settings = Settings { endpoint, is_shared, is_proxied: false, limits, constants };
        let reactor = Reactor::open(settings, regions.0, regions.1, regions.2)?;
        Ok(Self { reactor, memory, seen: Vec::new(), batches: Vec::new(), open: Vec::new(), responds: true })
    }

    fn address(&self) -> SocketAddr {
        match self.reactor.arrivals.endpoint() {
            Some(Endpoint::Address(address)) => *address,
            other => panic!("no address: {other:?}"),
        }
    }

    fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(self.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        client
    }

    fn turn(&mut self) {
        self.reactor.begin();
        while self.reactor.advance() == Step::Call {
            self.handle();
            self.reactor.called(true);
        }
    }

    fn handle(&mut self) {
        self.batches.extend(
            (self.reactor.batches.batch.requests() > 0).then(|| self.reactor.batches.batch.requests()),
        );
        let mut at = HEADER_BYTES / 4;
        for _ in 0..self.reactor.batches.inbound.word(inbound::COUNT) {
            let word = |index: usize| self.reactor.batches.inbound.word(at + index);
            let (kind, slot, stamp) = (word(0) & 0xff, word(1), word(2));
            if kind == event::MESSAGE || kind == event::CLOSING {
                let seen = if kind == event::CLOSING {
                    format!("closing {}", word(message::CODE))
                } else {
                    let start = word(message::AT) as usize;
                    let bytes = if word(0) & layout::flag::ELSEWHERE == 0 {
                        &self.reactor.batches.inbound.all()[start..start + word(message::BYTES) as usize]
                    } else {
                        &self.reactor.batches.gathered[start]
                    };
                    format!("message {}", String::from_utf8_lossy(bytes))
                };
                self.seen.push(seen);
                at += message::WORDS;
                continue;
            }
            if kind != event::REQUEST {
                self.seen.push(format!("event {kind}"));
                at += layout::EVENT_WORDS;
                continue;
            }
            let (start, length) = (word(request::TARGET_AT) as usize, word(request::TARGET_BYTES) as usize);
            let target = String::from_utf8_lossy(&self.reactor.batches.inbound.all()[start..start + length])
                .into_owned();
            at += request::WORDS + word(request::FIELDS) as usize * layout::FIELD_WORDS;
            self.open.push((slot, stamp));
            if self.responds {
                self.respond(&target);
            }
            self.seen.push(target);
        }
    }

    /// Respond to the oldest open request.
    fn respond(&mut self, body: &str) {
        let (slot, stamp) = self.open.remove(0);
        let at = self.reactor.batches.out.word(out::END) as usize;
        let words: [u32; head::WORDS] = [reply::RESPOND, slot, stamp, 200, 0, body.len() as u32, 0, 0];
        self.reactor.batches.out.put_all(at / 4, words);
        let body_at = at + head::WORDS * 4;
        self.reactor.batches.out.all_mut()[body_at..body_at + body.len()].copy_from_slice(body.as_bytes());
        self.reactor.batches.out.put(out::END, (body_at + body.len()).next_multiple_of(4) as u32);
    }

    /// Take turns until the client has received text that ends with `end`, or is disconnected. Returns that
    /// text.
    fn read_until(&mut self, client: &mut TcpStream, end: &str) -> String {
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        let began = Instant::now();
        while end.is_empty() || !text.ends_with(end) {
            assert!(began.elapsed() < Duration::from_secs(10), "so far: {text:?}");
            self.turn();
            self.reactor.tick();
            match client.read(&mut piece) {
                Ok(0) => return text + "<closed>",
                Ok(bytes) => text.push_str(&String::from_utf8_lossy(&piece[..bytes])),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return text + "<reset>",
                Err(_) => {}
            }
        }
        text
    }

    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(began.elapsed() < Duration::from_secs(10), "{what}: {:?}", self.seen);
            self.turn();
            self.reactor.tick();
        }
    }
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_persistent_connection_serves_several_requests() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut client = host.connect();
    for _ in 0..3 {
        client.write_all(GET).unwrap();
        assert!(host.read_until(&mut client, "/a").starts_with("HTTP/1.1 200 OK\r\ndate: "));
    }
    client.write_all(b"GET /constant?x HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    host.read_until(&mut client, "same");
    let stats = host.reactor.stats();
    assert_eq!((stats.connections, stats.requests, stats.constants), (1, 4, 1));
    assert_eq!(host.seen, ["/a", "/a", "/a"]);
    drop(client);
    host.until("closed", |host| host.reactor.stats().connections == 0);
    assert_eq!(host.reactor.stats().aborted, 0);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_pipeline_is_answered_in_order_and_read_up_to_the_limit() {
    let mut host = Host::new(anywhere(), false, limits());
    host.responds = false;
    let mut client = host.connect();
    let many: String = (0..20).map(|n| format!("GET /{n}. HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.write_all(many.as_bytes()).unwrap();
    host.until("the requests", |host| host.open.len() == 8);
    for _ in 0..5 {
        host.turn();
    }
    assert_eq!(host.open.len(), 8);
    host.responds = true;
    for n in 0..8 {
        host.respond(&format!("/{n}."));
    }
    host.reactor.flush_responses();
    let text = host.read_until(&mut client, "/19.");
    let found: Vec<_> =
        text.split("\r\n\r\n").skip(1).map(|part| part.split("HTTP").next().unwrap()).collect();
    assert_eq!(found, (0..20).map(|n| format!("/{n}.")).collect::<Vec<_>>());
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_malformed_request_is_refused_without_a_reset() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut client = host.connect();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    client.write_all(&[b'x'; 10_000]).unwrap();
    let text = host.read_until(&mut client, "");
    assert!(
        text.starts_with("HTTP/1.1 400 Bad Request\r\n") && text.ends_with("no host\n<closed>"),
        "{text}"
    );
    assert_eq!(host.reactor.stats().refused, 1);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn time_limits_close_connections() {
    let mut host =
        Host::new(anywhere(), false, Limits { idle_ms: 30, headers_ms: 30, body_ms: 30, ..limits() });
    assert_eq!(host.reactor.connections.tick_ms(), 5);
    let mut idle = host.connect();
    assert_eq!(host.read_until(&mut idle, ""), "<closed>");
    let mut slow = host.connect();
    slow.write_all(b"GET / HT").unwrap();
    assert!(host.read_until(&mut slow, "").starts_with("HTTP/1.1 408 Request Timeout"));
    // A body that the host pulls and that does not arrive.
    host.responds = false;
    let mut upload = host.connect();
    upload.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc").unwrap();
    host.until("the request", |host| host.open.len() == 1);
    let (slot, stamp) = host.open[0];
    assert_eq!(host.reactor.pull(slot, stamp), 3);
    assert_eq!(host.reactor.pull(slot, stamp), layout::pull::WAIT);
    host.seen.clear();
    host.until("the event", |host| host.seen == [format!("event {}", event::BODY)]);
    assert_eq!(host.reactor.pull(slot, stamp), -408);
    host.respond("late");
    host.reactor.flush_responses();
    let text = host.read_until(&mut upload, "");
    assert!(text.contains("connection: close") && text.ends_with("late<closed>"), "{text}");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_that_half_closes_receives_its_response() {
    let mut host = Host::new(anywhere(), false, limits());
    host.responds = false;
    let mut half = host.connect();
    half.write_all(GET).unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    host.until("the event", |host| host.seen.contains(&format!("event {}", event::DISCONNECTED)));
    host.respond("after all");
    host.reactor.flush_responses();
    assert!(host.read_until(&mut half, "").ends_with("after all<closed>"));
    host.seen.clear();
    let mut closed = host.connect();
    closed.write_all(GET).unwrap();
    host.until("the requests", |host| host.open.len() == 1);
    drop(closed);
    host.until("the event", |host| host.seen.contains(&format!("event {}", event::DISCONNECTED)));
    host.respond("nobody");
    host.reactor.flush_responses();
    host.until("closed", |host| host.reactor.stats().connections == 0);
}

/// How often the host received that event.
fn count(host: &Host, kind: u32) -> usize {
    host.seen.iter().filter(|seen| **seen == format!("event {kind}")).count()
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn an_end_that_arrives_with_its_request_is_reported_once() {
    let body = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let requests = [
        (GET, limits()),
        // Nothing is read behind these, so only the epoll event reports the end.
        (GET, Limits { pipeline_max: 1, ..limits() }),
        (b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", limits()),
        (b"GET /a HTTP/1.0\r\n\r\n", limits()),
        (body.as_bytes(), limits()),
    ];
    for (request, limits) in requests {
        let text = String::from_utf8_lossy(request);
        let mut host = Host::new(anywhere(), false, limits);
        host.responds = false;
        // Accepted when everything has arrived.
        let mut client = host.connect();
        client.write_all(request).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        host.until("the event", |host| count(host, event::DISCONNECTED) == 1);
        for _ in 0..5 {
            host.turn();
        }
        host.respond("late");
        host.reactor.flush_responses();
        assert!(host.read_until(&mut client, "").ends_with("late<closed>"), "{text}");
        host.until("closed", |host| host.reactor.stats().connections == 0);
        assert_eq!((count(&host, event::DISCONNECTED), host.reactor.stats().aborted), (1, 0), "{text}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_that_closes_while_nothing_is_read_is_reported_and_closed() {
    let mut host = Host::new(anywhere(), false, Limits { pipeline_max: 1, ..limits() });
    host.responds = false;
    let mut client = host.connect();
    client.write_all(GET).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    host.until("the event", |host| count(host, event::DISCONNECTED) == 1);
    drop(client);
    // The kernel reports with a reset that the client has closed.
    host.respond("nobody");
    host.reactor.flush_responses();
    host.until("closed", |host| host.reactor.stats().connections == 0);
    let reset = host.connect();
    (&reset).write_all(GET).unwrap();
    host.until("the requests", |host| host.open.len() == 1);
    sys::reset_on_close(&reset.into());
    host.until("closed", |host| host.reactor.stats().connections == 0);
    assert_eq!((count(&host, event::CLOSED), host.reactor.stats().aborted), (1, 1));
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn an_abort_keeps_the_responses_before_it() {
    let mut host = Host::new(anywhere(), false, limits());
    host.responds = false;
    let mut client = host.connect();
    client.write_all(&GET.repeat(3)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    host.until("the event", |host| count(host, event::DISCONNECTED) == 3);
    let (slot, stamp) = host.open.remove(1);
    let words: [u32; head::WORDS] = [reply::ABORT, slot, stamp, 0, 0, 0, 0, 0];
    host.reactor.batches.out.put_all(HEADER_BYTES / 4, words);
    host.reactor.batches.out.put(out::END, (HEADER_BYTES + head::WORDS * 4) as u32);
    host.reactor.flush_responses();
    host.until("the event", |host| count(host, event::CLOSED) == 2);
    host.respond("first");
    host.reactor.flush_responses();
    let text = host.read_until(&mut client, "");
    assert!(text.ends_with("first<closed>") && text.matches("HTTP/1.1").count() == 1, "{text}");
    assert_eq!(host.reactor.stats().aborted, 2);
    // Alone, its connection is closed without a response.
    let mut client = host.connect();
    client.write_all(GET).unwrap();
    host.open.clear();
    host.until("the requests", |host| host.open.len() == 1);
    let (slot, stamp) = host.open.remove(0);
    host.reactor.batches.out.put_all(HEADER_BYTES / 4, [reply::ABORT, slot, stamp, 0, 0, 0, 0, 0]);
    host.reactor.batches.out.put(out::END, (HEADER_BYTES + head::WORDS * 4) as u32);
    host.reactor.flush_responses();
    assert_eq!(host.read_until(&mut client, ""), "<closed>");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn an_unwanted_body_is_read_up_to_a_limit_and_then_its_connection_closes() {
    let pieces = [
        // Endless chunks; endless extensions, which have a limit of their own; and a malformed chunk.
        b"1000\r\n".iter().copied().chain([b'x'; 4096]).chain(*b"\r\n").collect::<Vec<u8>>(),
        b"1;a\r\nx\r\n".repeat(1000),
        b"no size\r\n".to_vec(),
    ];
    for piece in pieces {
        let text = String::from_utf8_lossy(&piece[..9]).into_owned();
        let mut host = Host::new(anywhere(), false, limits());
        let mut client = host.connect();
        let head = b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
        client.write_all(head).unwrap();
        host.read_until(&mut client, "/a");
        client.set_nonblocking(true).unwrap();
        let (began, mut at, mut found) = (Instant::now(), 0, [0; 16]);
        let closed = loop {
            assert!(began.elapsed() < Duration::from_secs(10), "{text}: {:?}", host.reactor.stats());
            if let Ok(sent) = client.write(&piece[at..]) {
                at = (at + sent) % piece.len();
            }
            host.turn();
            match client.read(&mut found) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => break other,
            }
        };
        // The connection ends without a reset.
        assert!(matches!(closed, Ok(0)), "{text}: {closed:?}");
        let read = host.reactor.stats().bytes_in;
        assert!(read <= 512 * 1024, "{text}: {read} bytes");
        drop(client);
        host.until("closed", |host| host.reactor.stats().connections == 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_that_reads_nothing_is_disconnected_after_its_budget() {
    let mut host = Host::new(anywhere(), false, Limits { body_ms: 200, ..limits() });
    host.responds = false;
    let mut client = host.connect();
    client.write_all(GET).unwrap();
    host.until("the requests", |host| host.open.len() == 1);
    let (slot, stamp) = host.open.remove(0);
    let large = vec![b'x'; 32 * 1024 * 1024];
    let words: [u32; head::WORDS] = [reply::RESPOND, slot, stamp, 200, 0, 0, 0, 1];
    host.reactor.batches.out.put_all(HEADER_BYTES / 4, words);
    host.reactor.batches.out.put(out::END, (HEADER_BYTES + head::WORDS * 4) as u32);
    host.reactor.put_responses(Some(&large));
    host.reactor.flush_responses();
    let mut piece = vec![0; 256 * 1024];
    let mut total = 0;
    while total < 8 * 1024 * 1024 {
        host.turn();
        host.reactor.tick();
        assert_eq!(host.reactor.stats().connections, 1, "{total} bytes read");
        total += client.read(&mut piece).unwrap_or(0);
    }
    // From here on it reads nothing.
    host.until("cut", |host| host.reactor.stats().connections == 0);
}
