//! Channels as a link to another process uses them: crate bridge has the link, this one the channels.
//!
//! The link's thread is a taker like any other, which is notified by mail; its ticket is the link's number.

use std::sync::Arc;

use corespun_bridge::{
    Mailbox,
    link::{Conduit, Conduits, Leaving},
};

use crate::{
    ByMail, Call, Message, Put, Take,
    layout::kind,
    named::{SyncObject, SyncObjects},
};

impl Conduits for SyncObjects {
    fn find(&self, number: u32) -> Option<Arc<dyn Conduit>> {
        Some(self.get(number)?)
    }

    fn make(&self, messages_max: u32) -> u32 {
        Self::make(self, kind::CHANNEL, None, f64::from(messages_max)).expect("a name is not taken")
    }

    fn forget(&self, number: u32) {
        Self::forget(self, number);
    }
}

/// What is not a channel is one that has ended.
impl Conduit for SyncObject {
    fn take(&self, ticket: u32, mailbox: &'static Mailbox) -> Leaving {
        let Self::Channel(channel) = self else { return Leaving::Ended };
        // One that was set aside, or else the wait is left.
        if let Some(message) = channel.fetch(mailbox.number(), ticket) {
            return Leaving::Message(message.bytes);
        }
        let call = Call { thread: mailbox.number(), ticket, notify: Arc::new(ByMail(mailbox)) };
        match channel.take(Some(call)) {
            Take::Message(message) => Leaving::Message(message.bytes),
            Take::Closed => Leaving::Ended,
            Take::Queued | Take::Empty => Leaving::Nothing,
        }
    }

    fn put(&self, bytes: &[u8]) -> bool {
        let Self::Channel(channel) = self else { return true };
        !matches!(channel.put(Message { bytes: bytes.into(), keeps: None }, None), Put::Full)
    }

    fn close(&self, ticket: u32, mailbox: &'static Mailbox) {
        if let Self::Channel(channel) = self {
            // The wait is left, so closing does not notify it.
            drop(channel.fetch(mailbox.number(), ticket));
            channel.close();
        }
    }
}

#[cfg(test)]
mod tests;
