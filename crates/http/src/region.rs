//! Memory of the host that the reactor reads and writes, registered once by address.
//!
//! The host guarantees that the memory outlives the reactor and that nothing else accesses it while the
//! reactor runs. Every access is bounds-checked: a wrong offset reads a wrong byte of the region, never one
//! outside.

/// A range of the host's memory.
pub struct Region {
    data: *mut u8,
    len: usize,
}

impl Region {
    /// Register `len` bytes at `data`.
    ///
    /// # Safety
    ///
    /// The bytes stay valid and initialized for the lifetime of the region, and nothing else accesses them
    /// while a method of its user runs.
    pub const unsafe fn new(data: *mut u8, len: usize) -> Self {
        Self { data, len }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn all(&self) -> &[u8] {
        // SAFETY: guaranteed by the caller of `new`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// Its bytes, mutable.
    #[inline]
    pub fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: guaranteed by the caller of `new`; the region is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }

    /// The word at an index; 0 outside the region.
    #[inline]
    pub fn word(&self, index: usize) -> u32 {
        match self.all().get(index * 4..index * 4 + 4) {
            Some(bytes) => u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            None => 0,
        }
    }

    /// The words from an index on; zeros if any of them is outside the region.
    #[inline]
    pub fn words<const N: usize>(&self, index: usize) -> [u32; N] {
        let mut words = [0; N];
        if let Some(bytes) = self.all().get(index * 4..(index + N) * 4) {
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *word = u32::from_ne_bytes(*bytes);
            }
        }
        words
    }

    /// Write the word at an index; outside the region nothing is written.
    #[inline]
    pub fn put(&mut self, index: usize, word: u32) {
        if let Some(bytes) = self.all_mut().get_mut(index * 4..index * 4 + 4) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
    }

    /// Write words from an index on; nothing is written if any of them is outside the region.
    #[inline]
    pub fn put_all<const N: usize>(&mut self, index: usize, words: [u32; N]) {
        if let Some(bytes) = self.all_mut().get_mut(index * 4..(index + N) * 4) {
            for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                *bytes = word.to_ne_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests;
