//! The bytes of a task: arguments on the way out, the result on the way back.
//!
//! Short ones live inside the task, longer ones in a vector that the task keeps for its next use, so a
//! steady load allocates nothing. What a task may keep is bounded: `shrink` is called when it comes home.

/// Bytes that fit into the task itself: a few small arguments.
const INLINE_BYTES: usize = 40;

/// A byte string that is short most of the time.
#[derive(Debug)]
pub struct Bytes {
    len: usize,
    inline: [u8; INLINE_BYTES],
    heap: Vec<u8>,
}

impl Bytes {
    /// No bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self { len: 0, inline: [0; INLINE_BYTES], heap: Vec::new() }
    }

    /// Replace the content by a copy of `source`.
    pub fn set(&mut self, source: &[u8]) {
        self.len = source.len();
        if source.len() <= INLINE_BYTES {
            self.inline[..source.len()].copy_from_slice(source);
        } else {
            self.heap.clear();
            self.heap.extend_from_slice(source);
        }
    }

    /// Forget the content, keep the memory.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// Take the content out, leaving none.
    pub fn take(&mut self) -> Vec<u8> {
        let taken =
            if self.len <= INLINE_BYTES { self.as_slice().to_vec() } else { std::mem::take(&mut self.heap) };
        self.len = 0;
        taken
    }

    /// Give back memory above `keep_bytes`.
    pub fn shrink(&mut self, keep_bytes: usize) {
        self.len = 0;
        if self.heap.capacity() > keep_bytes {
            self.heap = Vec::new();
        }
    }

    /// The content.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        if self.len <= INLINE_BYTES { &self.inline[..self.len] } else { &self.heap }
    }

    /// Number of bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Set every length in turn and compare with the slice that went in.
    fn check(lengths: &[usize]) {
        let mut bytes = Bytes::new();
        for &length in lengths {
            let source: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            bytes.set(&source);
            assert_eq!(bytes.as_slice(), source.as_slice());
            assert_eq!((bytes.len(), bytes.is_empty()), (length, length == 0));
        }
    }

    #[test]
    fn keep_what_was_set_across_the_inline_limit() {
        check(&[0, 1, INLINE_BYTES, INLINE_BYTES + 1, 5_000, 3, INLINE_BYTES + 1, 0]);
    }

    #[test]
    fn shrink_gives_back_what_is_above_the_limit() {
        let mut bytes = Bytes::new();
        bytes.set(&[7; 10_000]);
        bytes.shrink(4_096);
        assert_eq!((bytes.heap.capacity(), bytes.len()), (0, 0));
        bytes.set(&[7; 1_000]);
        bytes.shrink(4_096);
        assert!(bytes.heap.capacity() >= 1_000);
    }
}
