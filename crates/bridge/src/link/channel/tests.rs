//! Messages through a pair of sockets: whatever their lengths, the bytes that were sent arrive in order;
//! bytes that are not messages are refused.

use std::{io::Write, os::unix::net::UnixStream, time::Duration};

use super::{Channel, HEAD_BYTES, Head, KINDS, Kind};
use crate::link::platform::{Awaited, wait_for};

const WAIT: Option<Duration> = Some(Duration::from_secs(60));

fn pair() -> [Channel; 2] {
    let (one, other) = UnixStream::pair().expect("two descriptors");
    [one, other].map(|stream| Channel::new(stream).expect("a socket"))
}

/// Send messages of those lengths, whenever the socket takes something, and compare what arrives.
fn check(lengths: &[usize]) {
    let [mut sender, mut receiver] = pair();
    let sent: Vec<(Head, Vec<u8>)> = lengths
        .iter()
        .enumerate()
        .map(|(index, &length)| {
            let kind = KINDS[index % KINDS.len()];
            let head = Head { depth: 7, serial: u32::MAX, ..Head::new(kind, index as u32, length as u32) };
            (head, (0..length).map(|at| (at ^ index) as u8).collect())
        })
        .collect();
    for (head, bytes) in &sent {
        sender.send(*head, bytes).expect("an open socket");
    }
    let mut received = Vec::new();
    while received.len() < sent.len() {
        let mut both =
            [Awaited::new(sender.descriptor(), sender.is_full()), Awaited::new(receiver.descriptor(), false)];
        wait_for(&mut both, WAIT);
        assert!(both.iter().any(|each| each.is_ready), "nothing came");
        sender.flush().expect("an open socket");
        assert!(receiver.receive().expect("an open socket"));
        while let Some((head, range)) = receiver.next().expect("messages") {
            received.push((head, receiver.bytes(range).to_vec()));
        }
    }
    assert!(received == sent);
    assert!(!sender.is_full());
}

#[test]
fn messages_arrive_whole_and_in_order_whatever_their_lengths() {
    check(&[0]);
    check(&[0, 1, 2, 0, 40, 41, 1000]);
    check(&[1 << 16, 0, (1 << 16) - HEAD_BYTES, (1 << 16) - HEAD_BYTES + 1, 3]);
    check(&[5, 9_000_000, 5, 300_000, 0]);
    check(&(0..2000).map(|index| index * 7 % 613).collect::<Vec<_>>());
}

#[test]
fn what_is_no_message_is_refused_and_memory_grows_with_what_has_come() {
    let beyond = KINDS.len() as u32 + 1;
    let too_long = [Kind::Done as u32, 0, 0, 0, 0, (1 << 30) + 1];
    for words in [[0, 0, 0, 0, 0, 0], [beyond, 0, 0, 0, 0, 0], too_long] {
        let (mut raw, stream) = UnixStream::pair().expect("two descriptors");
        let mut channel = Channel::new(stream).expect("a socket");
        raw.write_all(&words.map(u32::to_le_bytes).concat()).expect("an open socket");
        assert!(channel.receive().expect("an open socket"));
        assert!(channel.next().is_err(), "{words:?}");
    }
    let (mut raw, stream) = UnixStream::pair().expect("two descriptors");
    let mut channel = Channel::new(stream).expect("a socket");
    raw.write_all(&[Kind::Done as u32, 0, 0, 0, 0, 1 << 30].map(u32::to_le_bytes).concat()).expect("open");
    assert!(channel.receive().expect("an open socket"));
    assert!(channel.next().expect("a head").is_none());
    assert!(channel.arrived.memory.len() < 1 << 20);
    drop(raw);
    assert!(!channel.receive().expect("an end"));
}
