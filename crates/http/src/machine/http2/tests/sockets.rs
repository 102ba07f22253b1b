//! Streams that are WebSockets (RFC 8441): read and written like sockets, reset by either side, and refused
//! where the request or the response is something else.

use std::task::Poll;

use bytes::Bytes;
use h2::client;

use super::{OK, Pair, Seen, context, get, now};
use crate::limits::Limits;

fn socket(protocol: &'static str) -> http::Request<()> {
    let request = http::Request::connect("http://a.example/live");
    request.extension(h2::ext::Protocol::from_static(protocol)).body(()).unwrap()
}

/// How many bytes of a response have arrived.
fn received(body: &mut h2::RecvStream) -> usize {
    let mut total = 0;
    while let Poll::Ready(Some(Ok(bytes))) = body.poll_data(&mut context()) {
        body.flow_control().release_capacity(bytes.len()).unwrap();
        total += bytes.len();
    }
    total
}

#[test]
fn a_stream_of_a_websocket_is_read_and_written_like_a_socket() {
    let mut builder = client::Builder::new();
    let mut pair = Pair::with(Limits::default(), builder.initial_window_size(1000));
    pair.turn();
    assert!(pair.send.is_extended_connect_protocol_enabled());
    let (mut response, mut client) = pair.send.send_request(socket("WebSocket"), false).unwrap();
    client.send_data(Bytes::from_static(b"early"), false).unwrap();
    let seen = pair.turn();
    let Seen { method, target, fields, body, is_whole, stamp } = &seen[0];
    assert_eq!((&**method, &**target, &**body, is_whole), ("GET", "/live", "", &true));
    let owned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected =
        [owned("host", "a.example"), owned("upgrade", "websocket"), owned("connection", "Upgrade")];
    assert_eq!(fields[..], expected);
    let mut stream = pair.server.upgrade(*stamp, b"x-one: 1\r\nupgrade: websocket\r\n", 7).unwrap();
    assert!(pair.server.upgrade(*stamp, b"", 7).is_none(), "once");
    pair.server.add_socket(3, stream.bell());
    assert_eq!((stream.carrier, pair.server.sockets().collect::<Vec<_>>()), (7, vec![3]));
    let kind = |result: std::io::Result<usize>| result.map_err(|error| error.kind());
    let mut buffer = [0; 8];
    assert_eq!(kind(stream.receive(&mut buffer)), Ok(5));
    assert_eq!((&buffer[..5], stream.has_more), (&b"early"[..], false));
    assert_eq!(kind(stream.receive(&mut buffer)), Err(std::io::ErrorKind::WouldBlock));
    assert_eq!(pair.server.rung().count(), 0);
    client.send_data(Bytes::from_static(b"more than eight"), true).unwrap();
    pair.turn();
    assert_eq!(pair.server.rung().collect::<Vec<_>>(), [3]);
    assert_eq!((kind(stream.receive(&mut buffer)), stream.has_more), (Ok(8), true));
    assert_eq!((kind(stream.receive(&mut buffer)), stream.has_more), (Ok(7), true));
    assert_eq!(kind(stream.receive(&mut buffer)), Ok(0));
    // What is written is bounded by the window of the client.
    assert_eq!(kind(stream.send_both(&[1; 600], &[2; 600])), Ok(1000));
    assert_eq!(kind(stream.send(&[2; 200])), Err(std::io::ErrorKind::WouldBlock));
    pair.turn();
    let (parts, mut body) = now(&mut response).unwrap().unwrap().into_parts();
    assert_eq!((parts.status.as_u16(), parts.headers.len()), (200, 2), "{:?}", parts.headers);
    pair.server.rung().count();
    assert_eq!(received(&mut body), 1000);
    pair.turn();
    assert_eq!(pair.server.rung().collect::<Vec<_>>(), [3], "there is room");
    assert_eq!(kind(stream.send(&[2; 200])), Ok(200));
    stream.close();
    assert_eq!(kind(stream.send(b"late")), Err(std::io::ErrorKind::NotConnected));
    pair.turn();
    assert_eq!(received(&mut body), 200);
    assert!(matches!(body.poll_data(&mut context()), Poll::Ready(None)));
    pair.server.remove_socket(3, 1);
    assert_eq!(pair.server.sockets().count(), 0);
}

#[test]
fn either_side_resets_a_websocket_and_that_is_no_reset_before_a_response() {
    let mut pair = Pair::new(Limits { streams_max: 1000, ..Limits::default() });
    pair.turn();
    for turn in 0..=2 * pair.limits.resets_max {
        assert!(!pair.server.is_over());
        assert!(pair.send.poll_ready(&mut context()).is_ready());
        let (response, mut client) = pair.send.send_request(socket("websocket"), false).unwrap();
        let stamp = pair.turn()[0].stamp;
        let mut stream = pair.server.upgrade(stamp, b"", 0).unwrap();
        pair.server.add_socket(turn, stream.bell());
        client.send_reset(h2::Reason::CANCEL);
        pair.turn();
        let error = stream.receive(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        let error = stream.send(b"late").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        pair.server.remove_socket(turn, 1);
        drop(response);
    }
    pair.turn();
    assert!(!pair.server.is_over());
    let mut pair = Pair::new(Limits::default());
    pair.turn();
    let (mut response, _client) = pair.send.send_request(socket("websocket"), false).unwrap();
    let stamp = pair.turn()[0].stamp;
    let mut stream = pair.server.upgrade(stamp, b"", 0).unwrap();
    stream.reset();
    pair.turn();
    let error = now(&mut response).unwrap().err().map(|error| error.reason());
    assert_eq!(error, Some(Some(h2::Reason::CANCEL)));
}

#[test]
fn what_is_not_a_websocket_is_no_success() {
    let mut pair = Pair::new(Limits::default());
    pair.turn();
    let (mut response, _client) = pair.send.send_request(socket("websocket"), false).unwrap();
    let stamp = pair.turn()[0].stamp;
    pair.server.respond(stamp, &OK, b"a page");
    let (status, _, body) = pair.response(&mut response);
    assert_eq!((status, &body[..]), (501, &b"no WebSocket here\n"[..]));
    assert!(pair.server.upgrade(stamp, b"", 0).is_none());
    let (mut response, _client) = pair.send.send_request(socket("connect-udp"), false).unwrap();
    assert_eq!(pair.response(&mut response).0, 501);
    let (mut response, _client) = pair.send.send_request(socket("websocket"), true).unwrap();
    assert_eq!(pair.response(&mut response).0, 400);
    let mut response = pair.send(get("/"), None);
    let stamp = pair.turn()[0].stamp;
    assert!(pair.server.upgrade(stamp, b"", 0).is_none(), "it has not asked");
    pair.server.respond(stamp, &OK, b"text");
    assert_eq!(pair.response(&mut response).0, 200);
}
