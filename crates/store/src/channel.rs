//! A bounded queue of messages between any number of threads.
//!
//! A message belongs to one taker: it is set aside under the ticket of a waiting taker, which fetches it. If
//! that thread ends first, the message returns to the front. A message that waits for capacity belongs to its
//! sender and is dropped when the sender's thread ends. After `close`, queued messages can still be taken.
//! A thread is woken behind the lock, under which a taker fetches its message.

use std::collections::VecDeque;

use crate::{
    lock::Mutex,
    notify::{Call, Fact, Woken},
    terms::Keeps,
};

pub struct Message {
    pub bytes: Box<[u8]>,
    /// What it refers to.
    pub keeps: Option<Keeps>,
}

/// The result of a put.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Put {
    /// The message is queued, or set aside for a taker.
    Done,
    /// No capacity; nothing was kept.
    Full,
    /// No capacity; the sender receives a fact.
    Queued,
    Closed,
}

/// The result of a take.
pub enum Take {
    Message(Message),
    /// No message; the call does not wait.
    Empty,
    /// No message; the taker receives a fact and fetches.
    Queued,
    /// Closed and empty.
    Closed,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    putters: VecDeque<(Call, Message)>,
    takers: VecDeque<Call>,
    set_aside: Vec<(Call, Message)>,
    closed: bool,
}

/// A bounded queue of frames.
pub struct Channel {
    messages_max: usize,
    state: Mutex<State>,
}

impl Channel {
    /// A channel for at most `messages_max` messages.
    pub fn new(messages_max: usize) -> Self {
        Self { messages_max, state: Mutex::default() }
    }

    pub const fn messages_max(&self) -> usize {
        self.messages_max
    }

    /// Adds a message. Without capacity it waits as `call`, if there is one.
    pub fn put(&self, message: Message, call: Option<Call>) -> Put {
        let mut woken = Woken::default();
        let mut state = self.state.lock();
        if state.closed {
            return Put::Closed;
        }
        if let Some(taker) = state.takers.pop_front() {
            state.set_aside.push((taker.clone(), message));
            woken.leave(taker, Fact::Granted);
            return Put::Done;
        }
        if state.messages.len() < self.messages_max {
            state.messages.push_back(message);
            return Put::Done;
        }
        match call {
            Some(call) => {
                state.putters.push_back((call, message));
                Put::Queued
            }
            None => Put::Full,
        }
    }

    /// Takes the oldest message. An empty channel makes `call` wait, if there is one.
    pub fn take(&self, call: Option<Call>) -> Take {
        let mut woken = Woken::default();
        let mut state = self.state.lock();
        if let Some(message) = state.messages.pop_front() {
            state.admit(self.messages_max, &mut woken);
            return Take::Message(message);
        }
        match call {
            _ if state.closed => Take::Closed,
            Some(call) => {
                state.takers.push_back(call);
                Take::Queued
            }
            None => Take::Empty,
        }
    }

    /// The message that was set aside for a taker.
    pub fn fetch(&self, thread: u32, ticket: u32) -> Option<Message> {
        let mut state = self.state.lock();
        state.takers.retain(|call| !call.is(thread, ticket));
        let index = state.set_aside.iter().position(|(call, _)| call.is(thread, ticket))?;
        Some(state.set_aside.swap_remove(index).1)
    }

    /// Cancels a waiting put; false if the message is queued already.
    pub fn cancel_put(&self, thread: u32, ticket: u32) -> bool {
        let mut state = self.state.lock();
        let before = state.putters.len();
        state.putters.retain(|(call, _)| !call.is(thread, ticket));
        state.putters.len() != before
    }

    /// Refuses further messages and notifies all waits. Idempotent.
    pub fn close(&self) {
        let mut woken = Woken::default();
        let mut state = self.state.lock();
        state.closed = true;
        let (putters, takers) = (std::mem::take(&mut state.putters), std::mem::take(&mut state.takers));
        for call in putters.into_iter().map(|(call, _)| call).chain(takers) {
            woken.leave(call, Fact::Closed);
        }
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    pub fn len(&self) -> usize {
        self.state.lock().messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn thread_ended(&self, thread: u32) {
        let mut woken = Woken::default();
        let mut state = self.state.lock();
        state.putters.retain(|(call, _)| call.thread != thread);
        state.takers.retain(|call| call.thread != thread);
        let set_aside = std::mem::take(&mut state.set_aside);
        let (lost, kept): (Vec<_>, Vec<_>) =
            set_aside.into_iter().partition(|(call, _)| call.thread == thread);
        state.set_aside = kept;
        for (_, message) in lost.into_iter().rev() {
            state.messages.push_front(message);
        }
        while !state.messages.is_empty() {
            let Some(taker) = state.takers.pop_front() else { return };
            let Some(message) = state.messages.pop_front() else { return };
            state.set_aside.push((taker.clone(), message));
            woken.leave(taker, Fact::Granted);
        }
    }
}

impl State {
    /// A message was taken. Messages that returned from takers which ended can exceed the capacity.
    fn admit(&mut self, messages_max: usize, woken: &mut Woken) {
        while self.messages.len() < messages_max
            && let Some((call, message)) = self.putters.pop_front()
        {
            self.messages.push_back(message);
            woken.leave(call, Fact::Granted);
        }
    }
}
