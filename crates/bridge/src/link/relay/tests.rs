//! Two relays over a pair of sockets: what is put into a channel of one side is taken, in order and whole,
//! from that of the other, until either side ends the link.

use std::{
    collections::{HashMap, VecDeque},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex},
};

use super::{Channel, Conduit, Conduits, Kind, Leaving, Relay};
use crate::{
    Mailbox,
    registry::{self, lock},
};

#[derive(Default)]
struct Queue {
    messages: VecDeque<Box<[u8]>>,
    is_closed: bool,
}

/// A queue without waits, of at most `MOST` messages.
#[derive(Default)]
struct Pipe(Mutex<Queue>);

const MOST: usize = 4;

impl Conduit for Pipe {
    fn take(&self, _: u32, _: &'static Mailbox) -> Leaving {
        let mut queue = lock(&self.0);
        match queue.messages.pop_front() {
            Some(message) => Leaving::Message(message),
            None if queue.is_closed => Leaving::Ended,
            None => Leaving::Nothing,
        }
    }

    fn put(&self, bytes: &[u8]) -> bool {
        let mut queue = lock(&self.0);
        let fits = queue.is_closed || queue.messages.len() < MOST;
        if fits && !queue.is_closed {
            queue.messages.push_back(bytes.into());
        }
        fits
    }

    fn close(&self, _: u32, _: &'static Mailbox) {
        lock(&self.0).is_closed = true;
    }
}

#[derive(Default)]
pub(in crate::link) struct Pipes(Mutex<HashMap<u32, Arc<Pipe>>>);

impl Conduits for Pipes {
    fn find(&self, number: u32) -> Option<Arc<dyn Conduit>> {
        lock(&self.0).get(&number).map(|pipe| Arc::clone(pipe) as _)
    }

    fn make(&self, _: u32) -> u32 {
        let number = registry::next_id();
        lock(&self.0).insert(number, Arc::default());
        number
    }

    fn forget(&self, number: u32) {
        lock(&self.0).remove(&number);
    }
}

/// One process: its channels, its relay and its end of the socket.
struct Side {
    pipes: &'static Pipes,
    relay: Relay,
    socket: Channel,
}

impl Side {
    fn new(stream: UnixStream) -> Self {
        let pipes: &'static Pipes = Box::leak(Box::default());
        let relay = Relay::new(pipes, registry::take_receiver().mailbox());
        Self { pipes, relay, socket: Channel::new(stream).expect("a socket") }
    }

    fn pipe(&self, number: u32) -> Arc<Pipe> {
        Arc::clone(&lock(&self.pipes.0)[&number])
    }

    /// Handle what has arrived; false when a channel had no capacity.
    fn receive(&mut self) -> bool {
        assert!(self.socket.receive().expect("an open socket"));
        while let Some((head, range)) = self.socket.next().expect("messages") {
            match head.kind {
                Kind::Pass if !self.relay.arrived(head.subject, self.socket.bytes(range)) => return false,
                Kind::Shut => self.relay.shut(head.subject),
                _ => {}
            }
        }
        true
    }
}

const LINK: u32 = 7;

/// Two sides with a link, and of each the channels that leave and arrive.
fn linked() -> [(Side, [Arc<Pipe>; 2]); 2] {
    let (one, other) = UnixStream::pair().expect("two descriptors");
    [one, other].map(|stream| {
        let mut side = Side::new(stream);
        let numbers = side.relay.make(1);
        let pipes = numbers.map(|number| side.pipe(number));
        side.relay.open(LINK, numbers, &mut side.socket).expect("an open socket");
        (side, pipes)
    })
}

fn message(byte: u8) -> Box<[u8]> {
    vec![byte; usize::from(byte)].into()
}

fn taken(pipe: &Pipe) -> Vec<Box<[u8]>> {
    std::iter::from_fn(|| match pipe.take(0, registry::take_receiver().mailbox()) {
        Leaving::Message(bytes) => Some(bytes),
        _ => None,
    })
    .collect()
}

#[test]
fn messages_cross_in_order_both_ways() {
    let [(mut one, [down, up]), (mut other, [back, received])] = linked();
    for round in 0..3 {
        down.put(&message(round));
        down.put(&message(round + 100));
        back.put(&message(round + 50));
        one.relay.pass(LINK, &mut one.socket).expect("an open socket");
        other.relay.pass(LINK, &mut other.socket).expect("an open socket");
        assert!(one.receive() && other.receive());
        assert_eq!(taken(&received), [message(round), message(round + 100)]);
        assert_eq!(taken(&up), [message(round + 50)]);
    }
}

#[test]
fn a_channel_that_is_closed_ends_the_link_behind_its_messages() {
    let [(mut one, [down, up]), (mut other, [back, received])] = linked();
    down.put(&message(1));
    down.close(LINK, registry::take_receiver().mailbox());
    one.relay.pass(LINK, &mut one.socket).expect("an open socket");
    assert!(other.receive());
    assert_eq!(taken(&received), [message(1)]);
    for pipe in [&down, &up, &back, &received] {
        assert!(lock(&pipe.0).is_closed);
    }
    for side in [&one, &other] {
        assert!(lock(&side.pipes.0).is_empty(), "the numbers are forgotten");
    }
    // What is still on its way arrives nowhere, and a link that is shut passes nothing.
    assert!(one.relay.arrived(LINK, &message(2)));
    other.relay.pass(LINK, &mut other.socket).expect("an open socket");
    assert_eq!(taken(&up), []);
}

#[test]
fn a_link_whose_channels_are_gone_is_shut_at_once() {
    let [(mut one, [down, _]), (mut other, [back, _])] = linked();
    other.relay.open(LINK, [0, 0], &mut other.socket).expect("an open socket");
    assert!(one.receive());
    assert!(lock(&down.0).is_closed);
    assert!(!lock(&back.0).is_closed, "it has another link of that number");
    other.relay.end();
    assert!(lock(&back.0).is_closed);
}

#[test]
fn more_than_a_channel_has_capacity_for_breaks_the_protocol() {
    let [(mut one, [down, _]), (mut other, _)] = linked();
    for round in 0..=MOST {
        down.put(&message(round as u8));
        one.relay.pass(LINK, &mut one.socket).expect("an open socket");
    }
    assert!(!other.receive());
}
