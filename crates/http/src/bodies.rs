//! Large whole bodies that wait to be sent: each is in memory once, however many connections send it.
//!
//! A host sends the same page to many clients, as the same bytes or as bytes that are equal. What a client
//! does not take at once is kept as a body that never changes and that every connection sends from; it is
//! freed with the last of them. Equal bodies are found by comparing with the few that were kept last.

use std::{
    cell::Cell,
    rc::{Rc, Weak},
};

/// Bodies that a new one is compared with at most.
const RECENT_MAX: usize = 8;

/// Bytes that several connections send.
#[derive(Debug)]
pub struct Body {
    bytes: Box<[u8]>,
    /// Bytes of all that are kept, this one's among them.
    held: Rc<Cell<u64>>,
}

impl Body {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.held.set(self.held.get() - self.bytes.len() as u64);
    }
}

/// Those of one server.
#[derive(Debug, Default)]
pub struct Bodies {
    recent: Vec<Weak<Body>>,
    held: Rc<Cell<u64>>,
}

impl Bodies {
    /// Bytes that are kept.
    pub fn held_bytes(&self) -> u64 {
        self.held.get()
    }

    /// Whether `bytes` may wait: others do not take more than `most` bytes together with it, or it is there.
    /// One alone always may.
    pub fn fits(&self, bytes: &[u8], most: u64) -> bool {
        let held = self.held_bytes();
        held == 0 || held + bytes.len() as u64 <= most || self.find(bytes).is_some()
    }

    fn find(&self, bytes: &[u8]) -> Option<Rc<Body>> {
        let kept = self.recent.iter().filter_map(Weak::upgrade);
        kept.into_iter().find(|body| body.bytes.len() == bytes.len() && *body.bytes == *bytes)
    }

    /// Keep `bytes`, or what equals them.
    pub fn share(&mut self, bytes: &[u8]) -> Rc<Body> {
        if let Some(body) = self.find(bytes) {
            return body;
        }
        self.recent.retain(|body| body.strong_count() > 0);
        if self.recent.len() == RECENT_MAX {
            self.recent.remove(0);
        }
        self.held.set(self.held.get() + bytes.len() as u64);
        let body = Rc::new(Body { bytes: bytes.into(), held: Rc::clone(&self.held) });
        self.recent.push(Rc::downgrade(&body));
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bodies_are_kept_once_and_as_long_as_somebody_sends_them() {
        let mut bodies = Bodies::default();
        let first = bodies.share(b"same");
        let second = bodies.share(&Vec::from(*b"same"));
        let other = bodies.share(b"else");
        assert!(Rc::ptr_eq(&first, &second) && !Rc::ptr_eq(&first, &other));
        assert_eq!(bodies.held_bytes(), 8);
        assert!(bodies.fits(b"same", 8) && bodies.fits(b"12", 10) && !bodies.fits(b"123", 10));
        drop((first, other));
        assert_eq!(bodies.held_bytes(), 4);
        drop(second);
        assert_eq!(bodies.held_bytes(), 0);
        assert!(bodies.fits(b"more than there may be", 1), "one alone");
        // More of them than are compared: those that were not kept last are kept twice.
        let kept: Vec<_> = (0..20_u8).map(|byte| bodies.share(&[byte])).collect();
        assert_eq!((bodies.held_bytes(), bodies.recent.len()), (20, RECENT_MAX));
        assert!(Rc::ptr_eq(&bodies.share(&[19]), &kept[19]) && !Rc::ptr_eq(&bodies.share(&[0]), &kept[0]));
    }
}
