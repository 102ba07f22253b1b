//! Large whole bodies that wait to be sent: each is in memory once, however many connections send it.
//!
//! A host sends the same page to many clients, as the same or as equal bytes. The bytes that a client does
//! not take at once are stored as an immutable body from which all connections send; it is freed with the
//! last of them. Equal bodies are found by comparison with the few that were stored last. Each thread stores
//! its own; the threads of a server share the count that bounds them.

use std::{
    cell::Cell,
    rc::{Rc, Weak},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Bodies that a new one is compared with.
const RECENT_MAX: usize = 8;

/// Bytes of all stored bodies.
#[derive(Debug, Default)]
struct Held {
    of_thread: Cell<u64>,
    /// Relaxed: a number that orders nothing.
    of_server: Arc<AtomicU64>,
}

pub struct SharedBody {
    bytes: Box<[u8]>,
    held: Rc<Held>,
}

impl SharedBody {
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for SharedBody {
    fn drop(&mut self) {
        let bytes = self.bytes.len() as u64;
        self.held.of_thread.set(self.held.of_thread.get() - bytes);
        self.held.of_server.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The bodies of one thread of a server.
#[derive(Debug, Default)]
pub struct SharedBodies {
    recent: Vec<Weak<SharedBody>>,
    held: Rc<Held>,
}

impl SharedBodies {
    /// `of_server`: the bytes of all threads of the server.
    pub fn new(of_server: Arc<AtomicU64>) -> Self {
        Self { recent: Vec::new(), held: Rc::new(Held { of_thread: Cell::new(0), of_server }) }
    }

    pub fn held_bytes(&self) -> u64 {
        self.held.of_thread.get()
    }

    /// Whether `bytes` may be stored: all bodies of the server take at most `most` bytes together with it, it
    /// is the only one, or this thread stores an equal one. Threads that ask at the same time may each store
    /// one body more.
    pub fn fits(&self, bytes: &[u8], most: u64) -> bool {
        let held = self.held.of_server.load(Ordering::Relaxed);
        held == 0 || held + bytes.len() as u64 <= most || self.find(bytes).is_some()
    }

    fn find(&self, bytes: &[u8]) -> Option<Rc<SharedBody>> {
        let stored = self.recent.iter().filter_map(Weak::upgrade);
        stored.into_iter().find(|body| body.bytes.len() == bytes.len() && *body.bytes == *bytes)
    }

    /// Store `bytes`, or return the body that equals them.
    pub fn share(&mut self, bytes: &[u8]) -> Rc<SharedBody> {
        if let Some(body) = self.find(bytes) {
            return body;
        }
        self.recent.retain(|body| body.strong_count() > 0);
        if self.recent.len() == RECENT_MAX {
            self.recent.remove(0);
        }
        let length = bytes.len() as u64;
        self.held.of_thread.set(self.held.of_thread.get() + length);
        self.held.of_server.fetch_add(length, Ordering::Relaxed);
        let body = Rc::new(SharedBody { bytes: bytes.into(), held: Rc::clone(&self.held) });
        self.recent.push(Rc::downgrade(&body));
        body
    }
}

#[cfg(test)]
mod tests;
