//! The bytes a connection sends: its own buffer, then shared bodies and parts of files, each followed by
//! further bytes. All but large bodies go through the buffer alone.

use std::{collections::VecDeque, rc::Rc};

use super::Connection;
use crate::{files::FilePart, shared_bodies::SharedBody};

/// A body that is not copied: other connections may send it too.
pub enum Body {
    Shared(Rc<SharedBody>),
    File(FilePart),
}

impl Body {
    pub fn len(&self) -> usize {
        match self {
            Self::Shared(body) => body.bytes().len(),
            Self::File(part) => part.bytes,
        }
    }
}

/// A body of which `sent` bytes are sent, and the bytes that follow it.
pub struct Tail {
    pub body: Body,
    pub sent: usize,
    pub after: Vec<u8>,
}

/// What is sent next, after the rest of the buffer.
pub enum More<'a> {
    Nothing,
    Bytes(&'a [u8]),
    /// The part of a file without its first bytes.
    File(&'a FilePart, usize),
}

impl Connection {
    #[inline]
    pub fn unsent(&self) -> usize {
        let front = self.out.len() - self.sent;
        if self.tails.is_empty() { front } else { front + self.tail_bytes() }
    }

    #[cold]
    fn tail_bytes(&self) -> usize {
        self.tails.iter().map(|tail| tail.body.len() - tail.sent + tail.after.len()).sum()
    }

    /// The bytes that are sent next: the rest of the buffer, then the first body that is not copied.
    #[inline]
    pub fn next_bytes(&self) -> (&[u8], More<'_>) {
        let first = &self.out[self.sent..];
        let more = self.tails.front().map_or(More::Nothing, |tail| match &tail.body {
            Body::Shared(body) => More::Bytes(&body.bytes()[tail.sent..]),
            Body::File(part) => More::File(part, tail.sent),
        });
        (first, more)
    }

    /// Whether a body that is not copied waits.
    pub fn has_tail(&self) -> bool {
        !self.tails.is_empty()
    }

    /// The kernel has taken this many of [`next_bytes`](Self::next_bytes).
    #[inline]
    pub fn advance_sent(&mut self, bytes: usize) {
        let first = bytes.min(self.out.len() - self.sent);
        self.sent += first;
        if !self.tails.is_empty() {
            self.advance_tail(bytes - first);
        }
    }

    #[cold]
    fn advance_tail(&mut self, bytes: usize) {
        if self.sent < self.out.len() {
            return;
        }
        let Some(tail) = self.tails.front_mut() else { return };
        tail.sent += bytes;
        if tail.sent >= tail.body.len() {
            self.out = std::mem::take(&mut tail.after);
            self.sent = 0;
            self.tails.pop_front();
        }
    }

    /// Send `body`, except for its first `sent` bytes, behind all that waits.
    pub fn push_body(&mut self, body: Body, sent: usize) {
        self.tails.push_back(Tail { body, sent, after: Vec::new() });
    }

    /// Attach the body of a response whose head has been written.
    pub fn attach_body(&mut self, index: usize, body: Body) {
        if index == 0 {
            self.push_body(body, 0);
        } else {
            self.exchanges[index].held_body = Some(body);
        }
    }

    /// Where bytes of the first exchange's response go.
    #[inline]
    pub fn front_sink(&mut self) -> &mut Vec<u8> {
        sink_of(&mut self.out, &mut self.tails)
    }

    /// Where bytes of that exchange's response go.
    #[inline]
    pub fn sink(&mut self, index: usize) -> &mut Vec<u8> {
        if index == 0 { self.front_sink() } else { &mut self.exchanges[index].held }
    }
}

/// The bytes behind all that waits.
#[inline]
pub fn sink_of<'a>(out: &'a mut Vec<u8>, tails: &'a mut VecDeque<Tail>) -> &'a mut Vec<u8> {
    match tails.back_mut() {
        None => out,
        Some(tail) => &mut tail.after,
    }
}
