//! A connection of HTTP/2 against the client of the same crate, over memory: both are polled in turns, until
//! neither has anything left to do.

mod limits;
mod sockets;

use std::{cell::RefCell, future::Future, pin::Pin, rc::Rc, task::Poll};

use bytes::Bytes;
use h2::client::{self, ResponseFuture, SendRequest};

use super::{
    Accepted, Http2, News, context,
    exchange::Pulled,
    is_preface,
    pipe::{Flow, Pipe},
};
use crate::{connection::Response, head::Field, limits::Limits};

const OK: Response<'_> =
    Response { status: 200, kind: 1, headers: b"x-one: 1\r\nConnection: keep-alive\r\n" };

fn now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    match Pin::new(future).poll(&mut context()) {
        Poll::Ready(found) => Some(found),
        Poll::Pending => None,
    }
}

/// A request as the host sees it.
#[derive(Debug)]
struct Seen {
    stamp: u32,
    method: String,
    target: String,
    fields: Vec<(String, String)>,
    body: String,
    is_whole: bool,
}

struct Pair {
    server: Http2,
    flow: Rc<RefCell<Flow>>,
    client: client::Connection<Pipe, Bytes>,
    send: SendRequest<Bytes>,
    limits: Limits,
    stamp: u32,
    now_ms: u64,
    lost: Vec<u32>,
    news: Vec<(u32, News)>,
    refused: usize,
}

impl Pair {
    fn new(limits: Limits) -> Self {
        Self::with(limits, &client::Builder::new())
    }

    fn with(limits: Limits, builder: &client::Builder) -> Self {
        let flow = Rc::new(RefCell::new(Flow { room: usize::MAX, ..Flow::default() }));
        let mut handshake = Box::pin(builder.handshake::<_, Bytes>(Pipe(Rc::clone(&flow))));
        let (send, client) = now(&mut handshake).unwrap().unwrap();
        let server = Http2::new(&limits, 1);
        let (lost, news) = (Vec::new(), Vec::new());
        Self { server, flow, client, send, limits, stamp: 0, now_ms: 1, lost, news, refused: 0 }
    }

    fn send(&mut self, request: http::Request<()>, body: Option<&[u8]>) -> ResponseFuture {
        let ready = self.send.poll_ready(&mut context());
        assert!(matches!(ready, Poll::Ready(Ok(()))), "a stream is free");
        let (response, mut stream) = self.send.send_request(request, body.is_none()).unwrap();
        if let Some(body) = body {
            stream.send_data(Bytes::copy_from_slice(body), true).unwrap();
        }
        response
    }

    /// Move bytes until neither side has any. Returns the requests.
    fn turn(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for _ in 0..64 {
            let _ = Pin::new(&mut self.client).poll(&mut context());
            let sent = std::mem::take(&mut self.flow.borrow_mut().output);
            self.server.feed(&sent, false);
            let (limits, now_ms) = (self.limits, self.now_ms);
            self.server.news(now_ms, &limits, |stamp, news| self.news.push((stamp, news)));
            let requests = self.accept_all();
            let mut out = Vec::new();
            self.server.drive(&mut out, usize::MAX, self.now_ms, &mut self.lost);
            if sent.is_empty() && out.is_empty() && requests.is_empty() {
                break;
            }
            self.flow.borrow_mut().input.extend_from_slice(&out);
            seen.extend(requests);
        }
        seen
    }

    fn accept_all(&mut self) -> Vec<Seen> {
        let (mut seen, mut bytes, mut fields) = (Vec::new(), vec![0; 96 * 1024], Vec::<Field>::new());
        loop {
            let request = match self.server.accept(&mut bytes, &mut fields, &self.limits, self.now_ms) {
                Accepted::Nothing => return seen,
                Accepted::Refused(_) => {
                    self.refused += 1;
                    continue;
                }
                Accepted::Request(request) => request,
            };
            self.stamp += 1;
            self.server.admit(self.stamp);
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let pair = |field: &Field| (text(field.name.of(&bytes)), text(field.value.of(&bytes)));
            seen.push(Seen {
                stamp: self.stamp,
                method: text(request.head.method_name.of(&bytes)),
                target: text(request.head.target.of(&bytes)),
                fields: fields.iter().map(pair).collect(),
                body: text(&bytes[request.head.bytes..][..request.body_bytes]),
                is_whole: request.is_whole,
            });
        }
    }

    /// The response to a request that was sent: status, fields and body.
    fn response(&mut self, future: &mut ResponseFuture) -> (u16, http::HeaderMap, Vec<u8>) {
        self.turn();
        let (parts, mut stream) = now(future).expect("a response").unwrap().into_parts();
        let mut body = Vec::new();
        loop {
            match stream.poll_data(&mut context()) {
                Poll::Ready(Some(bytes)) => {
                    let bytes = bytes.unwrap();
                    stream.flow_control().release_capacity(bytes.len()).unwrap();
                    body.extend_from_slice(&bytes);
                }
                Poll::Ready(None) => return (parts.status.as_u16(), parts.headers, body),
                Poll::Pending => drop(self.turn()),
            }
        }
    }
}

fn get(path: &str) -> http::Request<()> {
    http::Request::get(format!("http://a.example{path}")).body(()).unwrap()
}

fn post(path: &str) -> http::Request<()> {
    http::Request::post(format!("http://a.example{path}")).body(()).unwrap()
}

#[test]
fn a_preface_is_recognized_from_its_first_byte_on() {
    assert!(is_preface(b"P") && is_preface(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0"));
    assert!(!is_preface(b"POST / HTTP/1.1\r\n") && !is_preface(b"PRI * HTTP/1.1\r\n"));
}

#[test]
fn a_request_becomes_a_head_and_a_response_fields() {
    let mut pair = Pair::new(Limits::default());
    let request = http::Request::get("http://a.example/path?query=1")
        .header("cookie", "a=1")
        .header("accept", "text/html")
        .header("cookie", "b=2");
    let mut response = pair.send(request.body(()).unwrap(), None);
    let seen = pair.turn();
    assert_eq!(seen.len(), 1);
    let Seen { method, target, fields, is_whole, stamp, .. } = &seen[0];
    assert_eq!((&**method, &**target, is_whole), ("GET", "/path?query=1", &true));
    let owned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [owned("host", "a.example"), owned("cookie", "a=1; b=2"), owned("accept", "text/html")];
    assert_eq!(fields[..], expected);
    pair.server.set_time(0);
    assert!(pair.server.respond(*stamp, &OK, b"hello"));
    assert!(!pair.server.has(*stamp), "one response only");
    let (status, headers, body) = pair.response(&mut response);
    assert_eq!((status, &body[..]), (200, &b"hello"[..]));
    assert_eq!(headers["content-length"], "5");
    assert_eq!(headers["x-one"], "1");
    assert_eq!(headers["date"], "Thu, 01 Jan 1970 00:00:00 GMT");
    assert!(!headers.contains_key("connection"));
}

#[test]
fn a_body_that_has_arrived_is_part_of_the_request() {
    let mut pair = Pair::new(Limits::default());
    let _response = pair.send(post("/"), Some(b"some text"));
    let seen = pair.turn();
    assert_eq!((&*seen[0].body, seen[0].is_whole), ("some text", true));
}

#[test]
fn a_body_is_pulled_and_its_window_refilled() {
    let mut pair = Pair::new(Limits::default());
    let body = vec![b'x'; 900_000];
    let _response = pair.send(post("/"), Some(&body));
    let seen = pair.turn();
    assert!(!seen[0].is_whole && seen[0].body.is_empty());
    let (mut taken, mut region) = (0, vec![0; 10_000]);
    let limits = pair.limits;
    loop {
        let exchange = pair.server.exchange(seen[0].stamp).unwrap();
        match exchange.pull(&mut region, &limits) {
            Pulled::Bytes(bytes) => taken += bytes,
            Pulled::End => break,
            Pulled::Wait => {
                exchange.wants_body = true;
                pair.turn();
                assert_eq!(pair.news.pop(), Some((seen[0].stamp, News::Body)));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(taken, body.len());
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let mut pair = Pair::new(Limits { body_bytes_max: 5000, ..Limits::default() });
    let _response = pair.send(post("/"), Some(&[b'x'; 5001]));
    let mut response = pair.send(
        http::Request::post("http://a.example/").header("content-length", "5001").body(()).unwrap(),
        Some(&[b'x'; 5001]),
    );
    let seen = pair.turn();
    assert_eq!((seen.len(), pair.refused), (1, 1), "one by its length, the other by its bytes");
    let limits = pair.limits;
    let exchange = pair.server.exchange(seen[0].stamp).unwrap();
    let mut region = vec![0; 10_000];
    assert_eq!(exchange.pull(&mut region, &limits), Pulled::Failed(413));
    assert_eq!(exchange.pull(&mut region, &limits), Pulled::Failed(413));
    let (status, _, body) = pair.response(&mut response);
    assert_eq!((status, &body[..]), (413, &b"body too long\n"[..]));
}

#[test]
fn trailers_go_both_ways_and_hints_before_the_response() {
    let mut pair = Pair::new(Limits::default());
    pair.send.poll_ready(&mut context()).is_ready();
    let (mut response, mut stream) = pair.send.send_request(post("/"), false).unwrap();
    stream.send_data(Bytes::from_static(b"body"), false).unwrap();
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-sum", http::HeaderValue::from_static("4"));
    stream.send_trailers(trailers).unwrap();
    let seen = pair.turn();
    assert_eq!((&*seen[0].body, seen[0].is_whole), ("body", true));
    let stamp = seen[0].stamp;
    assert_eq!(pair.server.trailers(stamp), b"x-sum: 4\r\n");
    assert!(pair.server.hint(stamp, b"link: </a.css>\r\n"));
    pair.server.start(stamp, &OK, None).unwrap();
    assert!(!pair.server.hint(stamp, b"link: </a.css>\r\n"), "too late");
    pair.server.exchange(stamp).unwrap().push(b"result");
    assert!(pair.server.end(stamp, Some(super::map_of(b"x-end: yes\r\n"))));
    pair.turn();
    let (_, mut stream) = now(&mut response).unwrap().unwrap().into_parts();
    let data = stream.poll_data(&mut context());
    assert!(matches!(data, Poll::Ready(Some(Ok(bytes))) if bytes == "result"));
    assert!(matches!(stream.poll_data(&mut context()), Poll::Ready(None)));
    let Poll::Ready(Ok(Some(end))) = stream.poll_trailers(&mut context()) else { panic!("no trailers") };
    assert_eq!(end["x-end"], "yes");
}

#[test]
fn a_response_that_is_too_short_resets_its_stream() {
    let mut pair = Pair::new(Limits::default());
    let mut response = pair.send(get("/"), None);
    let stamp = pair.turn()[0].stamp;
    pair.server.start(stamp, &OK, Some(10)).unwrap();
    pair.server.exchange(stamp).unwrap().push(b"short");
    pair.turn();
    assert!(!pair.server.end(stamp, None));
    pair.turn();
    let (_, mut stream) = now(&mut response).unwrap().unwrap().into_parts();
    assert!(matches!(stream.poll_data(&mut context()), Poll::Ready(Some(Ok(_)))));
    assert!(matches!(stream.poll_data(&mut context()), Poll::Ready(Some(Err(_)))));
}

#[test]
fn a_stream_that_is_reset_is_reported_once_and_many_end_the_connection() {
    let mut pair = Pair::new(Limits { streams_max: 1000, ..Limits::default() });
    let response = pair.send(get("/"), None);
    let stamp = pair.turn()[0].stamp;
    drop(response);
    pair.turn();
    assert_eq!(std::mem::take(&mut pair.news), [(stamp, News::Lost)]);
    assert!(!pair.server.has(stamp));
    for _ in 0..pair.limits.resets_max {
        assert!(!pair.server.is_over());
        let response = pair.send(get("/"), None);
        pair.turn();
        drop(response);
        pair.turn();
    }
    assert!(pair.server.is_over(), "a connection that only resets is closed");
    assert!(pair.server.is_cut(), "its client may be sending");
}

#[test]
fn heads_are_refused_by_the_rules_of_http() {
    let limits = Limits { header_bytes_max: 500, headers_max: 5, target_bytes_max: 100, ..Limits::default() };
    let with = |name: &str, value: &str| {
        http::Request::get("http://a.example/").header(name, value).body(()).unwrap()
    };
    let many = (0..6)
        .fold(http::Request::get("http://a.example/"), |request, at| request.header(format!("x-{at}"), "1"));
    let cases = [
        (with("host", "b.example"), 400),
        (with("expect", "200-maybe"), 417),
        (with("x-one", " 1"), 400),
        (with("x-one", "1\t"), 400),
        (get(&format!("/{}", "x".repeat(100))), 414),
        (many.body(()).unwrap(), 431),
        (http::Request::connect("a.example:443").body(()).unwrap(), 501),
        (http::Request::trace("http://a.example/").body(()).unwrap(), 501),
    ];
    for (request, status) in cases {
        let mut pair = Pair::new(limits);
        let mut response = pair.send(request, None);
        assert_eq!(pair.response(&mut response).0, status);
        assert_eq!(pair.refused, 1);
    }
}

#[test]
fn a_connection_that_leaves_finishes_what_is_open() {
    let mut pair = Pair::new(Limits::default());
    let mut response = pair.send(get("/"), None);
    let stamp = pair.turn()[0].stamp;
    pair.server.leave(1);
    pair.turn();
    assert!(!pair.server.is_over());
    pair.server.respond(stamp, &OK, b"last");
    assert_eq!(pair.response(&mut response).2, b"last");
    pair.turn();
    assert!(pair.server.is_over() && !pair.server.is_cut());
}

#[test]
fn output_without_room_waits() {
    let mut pair = Pair::new(Limits::default());
    let _response = pair.send(get("/"), None);
    let stamp = pair.turn()[0].stamp;
    pair.server.start(stamp, &OK, None).unwrap();
    pair.server.exchange(stamp).unwrap().push(&[b'x'; 60_000]);
    let mut out = Vec::new();
    pair.server.drive(&mut out, 1, 1, &mut pair.lost);
    assert!(pair.server.is_blocked() && out.len() < 60_000);
    let before = out.len();
    pair.server.drive(&mut out, 0, 1, &mut pair.lost);
    assert_eq!(out.len(), before);
    pair.server.drive(&mut out, usize::MAX, 1, &mut pair.lost);
    assert!(!pair.server.is_blocked() && out.len() > 60_000);
}

#[test]
fn a_field_of_requests_alone_does_not_hold_a_response() {
    let mut pair = Pair::new(Limits::default());
    let mut response = pair.send(get("/"), None);
    let stamp = pair.turn()[0].stamp;
    assert!(pair.server.respond(stamp, &Response { status: 200, kind: 1, headers: b"te: gzip\r\n" }, b"x"));
    let (status, headers, body) = pair.response(&mut response);
    assert_eq!((status, headers.contains_key("te"), &body[..]), (200, false, &b"x"[..]));
}

#[test]
fn the_room_of_a_body_that_came_in_part_with_its_head_is_given_once() {
    let mut pair = Pair::new(Limits::default());
    assert!(matches!(pair.send.poll_ready(&mut context()), Poll::Ready(Ok(()))));
    let (_response, mut stream) = pair.send.send_request(post("/"), false).unwrap();
    stream.send_data(Bytes::from(vec![b'x'; 100]), false).unwrap();
    let (stamp, limits) = (pair.turn()[0].stamp, pair.limits);
    stream.send_data(Bytes::from(vec![b'x'; 150]), false).unwrap();
    pair.turn();
    let exchange = pair.server.exchange(stamp).unwrap();
    let mut region = [0; 1000];
    assert_eq!(exchange.pull(&mut region, &limits), Pulled::Bytes(100));
    assert_eq!(exchange.pull(&mut region, &limits), Pulled::Bytes(150));
    assert_eq!(exchange.unreleased(), 0);
}
