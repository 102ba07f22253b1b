//! Links of streams between two processes: channels of one, each of which continues as one of the other.
//!
//! A link has a channel for each way here and there. What is put into the one that leaves is sent, and what
//! arrives is put into the other one. The child numbers the links. Mail of kind `SHARED`, whose ticket is the
//! link's number, reports that something can leave. Whoever closes a channel ends the link: what was put into
//! it before still leaves, then the link is shut on both sides and the numbers of its channels are forgotten.
//! Nothing here waits: a channel has capacity for what the ends of a stream may have in transit.

use std::{collections::HashMap, io, sync::Arc};

use super::channel::{Channel, Head, Kind};
use crate::Mailbox;

/// The number of a channel: of the one whose messages leave, and of the one for those that arrive.
pub type Numbers = [u32; 2];

/// What a channel has for this side.
#[derive(Debug, Eq, PartialEq)]
pub enum Leaving {
    Message(Box<[u8]>),
    /// None now; mail follows.
    Nothing,
    /// None any more.
    Ended,
}

/// A channel of this process.
pub trait Conduit: Send + Sync {
    /// Take a message. An empty channel: mail with that ticket follows to `mailbox`.
    fn take(&self, ticket: u32, mailbox: &'static Mailbox) -> Leaving;
    /// Add a message, unless it is closed. False: there is no capacity.
    fn put(&self, bytes: &[u8]) -> bool;
    /// Close it, without mail to `mailbox`, which waits with that ticket.
    fn close(&self, ticket: u32, mailbox: &'static Mailbox);
}

/// The channels of this process. They belong to crate store, which is above this one.
pub trait Conduits: Sync {
    /// The channel with that number, unless nobody may open it any more.
    fn find(&self, number: u32) -> Option<Arc<dyn Conduit>>;
    /// The number of a new channel.
    fn make(&self, messages_max: u32) -> u32;
    /// Nobody opens that channel from now on.
    fn forget(&self, number: u32);
}

/// One side's end of all links between two processes.
pub struct Relay {
    conduits: &'static dyn Conduits,
    mailbox: &'static Mailbox,
    ways: HashMap<u32, Way>,
}

struct Way {
    numbers: Numbers,
    leaving: Arc<dyn Conduit>,
    arriving: Arc<dyn Conduit>,
}

impl Relay {
    /// Without links. `mailbox` receives the mail.
    pub fn new(conduits: &'static dyn Conduits, mailbox: &'static Mailbox) -> Self {
        Self { conduits, mailbox, ways: HashMap::new() }
    }

    /// Two new channels for `open`.
    pub fn make(&self, messages_max: u32) -> Numbers {
        [self.conduits.make(messages_max), self.conduits.make(messages_max)]
    }

    /// Begin a link; `to` receives what leaves by it. One whose channels were disposed of is shut.
    pub fn open(&mut self, link: u32, numbers: Numbers, to: &mut Channel) -> io::Result<()> {
        let [leaving, arriving] = numbers.map(|number| self.conduits.find(number));
        let (Some(leaving), Some(arriving)) = (leaving, arriving) else {
            return to.send(Head::new(Kind::Shut, link, 0), &[]);
        };
        self.shut(link);
        self.ways.insert(link, Way { numbers, leaving, arriving });
        self.pass(link, to)
    }

    /// Send what can leave by a link.
    pub fn pass(&mut self, link: u32, to: &mut Channel) -> io::Result<()> {
        while let Some(way) = self.ways.get(&link) {
            match way.leaving.take(link, self.mailbox) {
                Leaving::Message(bytes) => to.send(Head::new(Kind::Pass, link, 0), &bytes)?,
                Leaving::Nothing => break,
                Leaving::Ended => {
                    self.shut(link);
                    to.send(Head::new(Kind::Shut, link, 0), &[])?;
                }
            }
        }
        Ok(())
    }

    /// A message has arrived by a link; one that is shut here drops it. False: more than the ends of a stream
    /// send.
    pub fn arrived(&self, link: u32, bytes: &[u8]) -> bool {
        self.ways.get(&link).is_none_or(|way| way.arriving.put(bytes))
    }

    /// The other side has shut a link, or nobody is there any more.
    pub fn shut(&mut self, link: u32) {
        if let Some(way) = self.ways.remove(&link) {
            way.leaving.close(link, self.mailbox);
            way.arriving.close(link, self.mailbox);
            way.numbers.into_iter().for_each(|number| self.conduits.forget(number));
        }
    }

    /// The other process has ended.
    pub fn end(&mut self) {
        let links: Vec<u32> = self.ways.keys().copied().collect();
        links.into_iter().for_each(|link| self.shut(link));
    }
}

#[cfg(test)]
pub(super) mod tests;
