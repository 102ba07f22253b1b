//! WebSockets on sockets: the upgrade, messages in batches, rooms, and how one ends. Frames themselves are
//! tested in machine/websocket/tests.rs.

use super::*;
use crate::{
    layout::{send, terms},
    websocket::Deflate,
};

type Id = (u32, u32);

const HANDSHAKE: &[u8] = b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const TEXT: u32 = reply::SEND | send::TEXT << 8;
const TO_ROOM: u32 = reply::PUBLISH | send::TEXT << 8;
const NOBODY: Id = (u32::MAX, 0);

/// A text frame of a client, masked with zeros.
fn frame(text: &str) -> Vec<u8> {
    [&[0x81, 0x80 | text.len() as u8, 0, 0, 0, 0], text.as_bytes()].concat()
}

impl Host {
    /// Write a record of a frame. The upper word of its length is the number of a room.
    fn put_frame(&mut self, kind: u32, (slot, stamp): Id, (status, room): (u32, u32), body: &[u8]) {
        let at = self.reactor.batches.out.word(out::END) as usize;
        let words: [u32; head::WORDS] = [kind, slot, stamp, status, 0, body.len() as u32, room, 0];
        self.reactor.batches.out.put_all(at / 4, words);
        let body_at = at + head::WORDS * 4;
        self.reactor.batches.out.all_mut()[body_at..body_at + body.len()].copy_from_slice(body);
        self.reactor.batches.out.put(out::END, (body_at + body.len()).next_multiple_of(4) as u32);
    }

    fn put_upgrade(&mut self, id: Id, queued_bytes_max: u32, deflates: bool) {
        self.put_terms(id, queued_bytes_max, &[(terms::DEFLATES, deflates.into())]);
    }

    fn put_terms(&mut self, id: Id, queued_bytes_max: u32, more: &[(usize, u32)]) {
        let mut words = [0_u32; terms::WORDS];
        for (term, value) in more {
            words[*term] = *value;
        }
        words[terms::MESSAGE_BYTES_MAX] = 1 << 20;
        words[terms::QUEUED_BYTES_MAX] = queued_bytes_max;
        for term in [terms::PING_MS, terms::PONG_MS, terms::CLOSE_MS] {
            words[term] = 60_000;
        }
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.put_lines(reply::UPGRADE, id, b"upgrade: websocket\r\nconnection: Upgrade\r\n", &body);
        self.reactor.flush_responses();
    }

    /// A client whose connection is a WebSocket.
    fn upgraded(&mut self, queued_bytes_max: u32) -> (TcpStream, Id) {
        self.upgraded_by(queued_bytes_max, false)
    }

    fn upgraded_by(&mut self, queued_bytes_max: u32, deflates: bool) -> (TcpStream, Id) {
        let mut client = self.connect();
        let id = self.opened(&mut client, HANDSHAKE, 1)[0];
        self.put_upgrade(id, queued_bytes_max, deflates);
        assert!(self.read_until(&mut client, "\r\n\r\n").starts_with("HTTP/1.1 101 "));
        self.seen.clear();
        (client, id)
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn messages_arrive_in_order_and_are_returned() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, id) = host.upgraded(1 << 20);
    client.write_all(&[frame("one"), frame("two")].concat()).unwrap();
    host.until("the messages", |host| host.seen.len() == 2);
    assert_eq!(host.seen, ["message one", "message two"]);
    host.put_frame(TEXT, id, (0, 0), b"three");
    host.reactor.flush_responses();
    assert!(host.read_until(&mut client, "three").ends_with("\u{5}three"));
    host.put_frame(reply::PING, id, (0, 0), b"there?");
    host.reactor.flush_responses();
    host.read_until(&mut client, "there?");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn bytes_without_frames_pass_as_they_are() {
    let mut host = Host::new(anywhere(), false, limits());
    let raw = |host: &mut Host, early: &[u8]| {
        let mut client = host.connect();
        let id = host.opened(&mut client, &[HANDSHAKE, early].concat(), 1)[0];
        host.put_terms(id, 1 << 20, &[(terms::IS_RAW, 1)]);
        assert!(host.read_until(&mut client, "\r\n\r\n").starts_with("HTTP/1.1 101 "));
        (client, id)
    };
    let (mut client, id) = raw(&mut host, b"early");
    host.until("what came with the request", |host| {
        host.seen.last().is_some_and(|last| last == "message early")
    });
    host.seen.clear();
    host.put_frame(reply::PING, id, (0, 0), b"no frame");
    host.put_frame(reply::PAUSE, id, (1, 0), b"");
    host.put_frame(reply::SEND, id, (0, 0), b"bytes");
    host.reactor.flush_responses();
    assert_eq!(host.read_until(&mut client, "bytes"), "bytes");
    // While the host reads no more, others are served.
    client.write_all(b"later").unwrap();
    host.responds = true;
    let mut beside = host.connect();
    beside.write_all(GET).unwrap();
    host.read_until(&mut beside, "/a");
    assert_eq!(host.seen, ["/a"]);
    host.put_frame(reply::PAUSE, id, (0, 0), b"");
    host.reactor.flush_responses();
    host.until("the bytes", |host| host.seen.len() == 2);
    assert_eq!(host.seen[1], "message later");
    host.put_frame(reply::SEND, id, (0, 0), b"last");
    host.put_frame(reply::CLOSE, id, (1000, 0), b"no frame");
    host.reactor.flush_responses();
    assert_eq!(host.read_until(&mut client, ""), "last<closed>");
    host.until("its end", |host| host.seen.len() == 3);
    assert_eq!(host.seen[2], "event 10");
    // The end of a client is one, also while the server stops, which sends nothing.
    let (mut client, _) = raw(&mut host, b"");
    host.seen.clear();
    host.reactor.stop(60_000);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(host.read_until(&mut client, ""), "<closed>");
    host.until("its end", |host| host.seen.iter().any(|seen| seen == "event 10"));
}

/// A request for a WebSocket as literal fields of HTTP/2, on stream 1.
fn asks_on_a_stream() -> Vec<u8> {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/ws"),
        (":authority", "a"),
    ];
    let mut block = Vec::new();
    for (name, value) in fields {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        block.extend_from_slice(&[&[0, name.len() as u8], name, &[value.len() as u8], value].concat());
    }
    [&[0, 0, block.len() as u8, 1, 4, 0, 0, 0, 1], &block[..]].concat()
}

/// A frame of HTTP/2 with bytes of that stream.
fn data(bytes: &[u8]) -> Vec<u8> {
    [&[0, 0, bytes.len() as u8, 0, 0, 0, 0, 0, 1], bytes].concat()
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_stream_of_http2_has_a_slot_of_its_own() {
    let mut host = Host::new(anywhere(), false, Limits { connections_max: 2, ..limits() });
    let mut client = host.connect();
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", &asks_on_a_stream()[..]].concat();
    let (slot, stamp) = host.opened(&mut client, &begin, 1)[0];
    host.put_upgrade((slot, stamp), 1 << 20, false);
    let own = host.reactor.batches.out.word(out::FOUND) - 1;
    assert_ne!(own, slot);
    assert_eq!(host.reactor.stats().connections, 2, "it counts as one");
    host.seen.clear();
    client.write_all(&data(&[frame("one"), frame("two")].concat())).unwrap();
    host.until("the messages", |host| host.seen.len() == 2);
    assert_eq!(host.seen, ["message one", "message two"]);
    host.put_frame(reply::JOIN, (own, stamp), (0, 7), b"");
    host.put_frame(TEXT, (own, stamp), (0, 0), b"three");
    host.put_frame(TO_ROOM, NOBODY, (0, 7), b"to all");
    host.reactor.flush_responses();
    assert!(host.read_until(&mut client, "to all").contains("\u{5}three"));
    // The server stops: it closes the socket, then the connection.
    host.reactor.stop(60_000);
    host.read_until(&mut client, "\u{2}\u{3}\u{fffd}");
    client.write_all(&data(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9])).unwrap();
    host.until("its end", |host| host.seen.len() == 4);
    assert_eq!(host.seen[2..], ["closing 1001", "event 10"]);
    drop(client);
    host.until("the end", |host| host.seen.last().is_some_and(|last| last == "event 5"));
    assert_eq!(host.reactor.stats().connections, 0);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_batch_of_messages_is_not_split_by_the_time_that_calls_take() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, _) = host.upgraded(1 << 20);
    for round in 1..3 {
        host.batches.clear();
        host.reactor.batches.call_ns_each = 1 << 40; // as if the thread had no core
        client.write_all(&frame("message").repeat(40)).unwrap();
        host.until("the messages", |host| host.seen.len() == 40 * round);
        assert!(host.batches.iter().filter(|batch| **batch < 16).count() <= 2, "{:?}", host.batches);
    }
    // A request is not held back for others.
    host.responds = true;
    let mut plain = host.connect();
    for _ in 0..2 {
        host.batches.clear();
        host.reactor.batches.call_ns_each = 1 << 40;
        plain.write_all(&GET.repeat(2)).unwrap();
        host.read_until(&mut plain, "/a");
    }
    host.until("the rest", |host| host.open.is_empty());
    assert!(host.batches.iter().all(|batch| *batch == 1), "{:?}", host.batches);
}

/// A compressed frame of a client that inflates to `bytes` times `x`.
fn bomb(bytes: usize) -> Vec<u8> {
    let payload = Deflate::default().deflate(&vec![b'x'; bytes]).expect("it is worth it");
    let length = (payload.len() as u16).to_be_bytes();
    [&[0xc1, 0x80 | 126, length[0], length[1], 0, 0, 0, 0], &payload[..]].concat()
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn messages_that_inflate_leave_others_their_turn() {
    const BOMBS: usize = 32;
    const LARGE: usize = "message ".len() + (1 << 20);
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, _) = host.upgraded_by(1 << 20, true);
    let (mut beside, _) = host.upgraded(1 << 20);
    host.batches.clear();
    client.write_all(&[bomb(1 << 20).repeat(BOMBS), frame("last")].concat()).unwrap();
    beside.write_all(&frame("beside").repeat(2)).unwrap();
    host.until("the messages", |host| host.seen.len() == BOMBS + 3);
    // The connection whose turn comes first has one message in it.
    let at = host.seen.iter().position(|seen| seen == "message beside").expect("it was received");
    assert!(at <= 2 && host.seen[at + 1] == "message beside", "after {at} others");
    let large = host.seen.iter().filter(|seen| seen.len() == LARGE).count();
    assert_eq!((large, &*host.seen[BOMBS + 2]), (BOMBS, "message last"));
    assert!(host.batches.iter().all(|batch| *batch <= 3), "{:?}", host.batches);
    // What inflates to little is still combined.
    host.batches.clear();
    client.write_all(&bomb(1000).repeat(16)).unwrap();
    host.until("the messages", |host| host.seen.len() == BOMBS + 3 + 16);
    assert!(host.batches.iter().any(|batch| *batch > 4), "{:?}", host.batches);
    // Nor is what waits for its turn lost when its client ends.
    host.seen.clear();
    client.write_all(&bomb(1 << 20).repeat(8)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    host.until("the end", |host| host.seen.len() == 9);
    assert!(host.seen[..8].iter().all(|seen| seen.len() == LARGE));
    assert_eq!(host.seen[8], format!("event {}", event::SOCKET_CLOSED));
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_message_to_a_room_reaches_its_members_but_its_sender() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut first, first_id) = host.upgraded(1 << 20);
    let (mut second, second_id) = host.upgraded(1 << 20);
    let (mut third, third_id) = host.upgraded(1 << 20);
    for id in [first_id, second_id, third_id] {
        host.put_frame(reply::JOIN, id, (0, 7), b"");
    }
    host.put_frame(reply::LEAVE, third_id, (0, 7), b"");
    host.put_frame(TO_ROOM, first_id, (0, 7), b"to others");
    host.put_frame(TO_ROOM, NOBODY, (0, 7), b"to all");
    host.put_frame(TO_ROOM, NOBODY, (0, 8), b"to an empty room");
    for id in [first_id, third_id] {
        host.put_frame(TEXT, id, (0, 0), b"last");
    }
    host.reactor.flush_responses();
    assert_eq!(host.read_until(&mut first, "last"), "\u{fffd}\u{6}to all\u{fffd}\u{4}last");
    assert_eq!(host.read_until(&mut second, "to all"), "\u{fffd}\u{9}to others\u{fffd}\u{6}to all");
    assert_eq!(host.read_until(&mut third, "last"), "\u{fffd}\u{4}last");
    drop(second);
    host.until("its end", |host| host.seen.contains(&"event 10".to_owned()));
    assert_eq!(
        host.reactor.connections.rooms.get(&7).map(std::collections::BTreeSet::len),
        Some(1),
        "who has disconnected has left"
    );
    drop(first);
    host.until("no room", |host| host.reactor.connections.rooms.is_empty());
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_frame_to_a_room_is_stored_once_if_it_is_long() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut members = [host.upgraded(1 << 20), host.upgraded(1 << 20)];
    let long = "x".repeat(20_000);
    for (_, id) in &members {
        host.put_frame(reply::JOIN, *id, (0, 1), b"");
    }
    host.put_frame(TO_ROOM, NOBODY, (0, 1), format!("{long}end").as_bytes());
    host.reactor.flush_responses();
    for (client, _) in &mut members {
        assert_eq!(host.read_until(client, "end").matches('x').count(), 20_000);
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_that_does_not_read_is_reset_when_too_much_waits() {
    let mut host = Host::new(anywhere(), false, limits());
    let (_client, id) = host.upgraded(50_000);
    host.put_frame(reply::JOIN, id, (0, 1), b"");
    let piece = [b'x'; 30_000];
    for _ in 0..1000 {
        host.put_frame(TO_ROOM, NOBODY, (0, 1), &piece);
        host.reactor.put_responses(None);
        if host.reactor.stats().connections == 0 {
            break;
        }
    }
    assert_eq!(host.reactor.stats().connections, 0);
    host.until("the event", |host| host.seen == ["event 10"]);
    assert!(host.reactor.connections.rooms.is_empty());
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn either_side_closes() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, _) = host.upgraded(1 << 20);
    client.write_all(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]).unwrap();
    assert!(host.read_until(&mut client, "").ends_with("<closed>"));
    host.until("its end", |host| host.seen == ["closing 1000", "event 10"]);
    let (mut client, id) = host.upgraded(1 << 20);
    host.put_frame(reply::CLOSE, id, (1001, 0), b"bye");
    host.reactor.flush_responses();
    host.read_until(&mut client, "bye");
    let (mut client, id) = host.upgraded(1 << 20);
    host.put_frame(reply::TERMINATE, id, (0, 0), b"");
    host.reactor.flush_responses();
    assert_eq!(host.read_until(&mut client, ""), "<reset>");
    host.until("its end", |host| host.seen == ["event 10"]);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn an_upgrade_behind_other_responses_is_refused() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut client = host.connect();
    let open = host.opened(&mut client, &[GET, HANDSHAKE].concat(), 2);
    host.put_upgrade(open[1], 1 << 20, false);
    host.until("its end", |host| host.seen.last().is_some_and(|last| last == "event 10"));
    host.open.push(open[0]);
    host.respond("first");
    host.reactor.flush_responses();
    let text = host.read_until(&mut client, "now\n");
    assert!(text.contains("first") && text.contains("HTTP/1.1 503 "), "{text}");
}
