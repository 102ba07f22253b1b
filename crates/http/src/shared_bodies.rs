//! Large whole bodies that wait to be sent: each is in memory once, however many connections send it.
//!
//! A host sends the same page to many clients, as the same or as equal bytes. The bytes that a client does
//! not take at once are stored as an immutable body from which all connections send; it is freed with the
//! last of them. Equal bodies are found by comparison with the few that were stored last.

use std::{
    cell::Cell,
    rc::{Rc, Weak},
};

/// Bodies that a new one is compared with.
const RECENT_MAX: usize = 8;

#[derive(Debug)]
pub struct SharedBody {
    bytes: Box<[u8]>,
    /// Bytes of all stored bodies.
    held: Rc<Cell<u64>>,
}

impl SharedBody {
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for SharedBody {
    fn drop(&mut self) {
        self.held.set(self.held.get() - self.bytes.len() as u64);
    }
}

/// The bodies of one server.
#[derive(Debug, Default)]
pub struct SharedBodies {
    recent: Vec<Weak<SharedBody>>,
    held: Rc<Cell<u64>>,
}

impl SharedBodies {
    /// Bytes of all stored bodies.
    pub fn held_bytes(&self) -> u64 {
        self.held.get()
    }

    /// Whether `bytes` may be stored: all bodies take at most `most` bytes together with it, it is the only
    /// one, or an equal one is stored.
    pub fn fits(&self, bytes: &[u8], most: u64) -> bool {
        let held = self.held_bytes();
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
        self.held.set(self.held.get() + bytes.len() as u64);
        let body = Rc::new(SharedBody { bytes: bytes.into(), held: Rc::clone(&self.held) });
        self.recent.push(Rc::downgrade(&body));
        body
    }
}

#[cfg(test)]
mod tests;
