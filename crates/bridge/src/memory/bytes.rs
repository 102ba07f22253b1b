//! The bytes of a task: arguments on the way out, the result on the way back.
//!
//! Short ones live inside the task, longer ones in a vector that the task keeps for its next use, so a
//! steady load allocates nothing. What a task may keep is bounded: `shrink` is called when it returns to
//! its caller.

/// Bytes that fit into the task itself: a few small arguments.
const INLINE_BYTES: usize = 72;

/// A byte string that is short most of the time.
pub struct Bytes {
    len: usize,
    inline: [u8; INLINE_BYTES],
    heap: Vec<u8>,
}

impl Bytes {
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

    /// Free memory above `keep_bytes`.
    pub fn shrink(&mut self, keep_bytes: usize) {
        self.len = 0;
        if self.heap.capacity() > keep_bytes {
            self.heap = Vec::new();
        }
    }

    pub fn as_slice(&self) -> &[u8] {
        if self.len <= INLINE_BYTES { &self.inline[..self.len] } else { &self.heap }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

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
mod tests;
