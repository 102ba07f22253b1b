//! Memory of the host that the reactor reads and writes: registered once, by address.
//!
//! The host promises that it stays where it is for as long as the reactor lives, and that nobody touches it
//! while the reactor runs. Every access is checked against the length, so a wrong number in it reads a wrong
//! byte of it and nothing else.

/// One stretch of the host's memory.
#[derive(Debug)]
pub struct Region {
    data: *mut u8,
    len: usize,
}

impl Region {
    /// Register `len` bytes at `data`.
    ///
    /// # Safety
    ///
    /// They are valid and initialised for the region's life, and nobody else uses them while a method of the
    /// region's owner runs.
    pub const unsafe fn new(data: *mut u8, len: usize) -> Self {
        Self { data, len }
    }

    /// Its size.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it.
    #[inline]
    pub fn all(&self) -> &[u8] {
        // SAFETY: promised to `new`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// All of it, to write to.
    #[inline]
    pub fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: promised to `new`; the region is borrowed as a whole.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }

    /// The word with that index.
    #[inline]
    pub fn word(&self, index: usize) -> u32 {
        match self.all().get(index * 4..index * 4 + 4) {
            Some(bytes) => u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            None => 0,
        }
    }

    /// Words from that index on; zeroes where there are none.
    #[inline]
    pub fn words<const N: usize>(&self, index: usize) -> [u32; N] {
        let mut words = [0; N];
        if let Some(bytes) = self.all().get(index * 4..(index + N) * 4) {
            for (word, place) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *word = u32::from_ne_bytes(*place);
            }
        }
        words
    }

    /// Write the word with that index.
    #[inline]
    pub fn put(&mut self, index: usize, word: u32) {
        if let Some(bytes) = self.all_mut().get_mut(index * 4..index * 4 + 4) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
    }

    /// Write words from that index on.
    #[inline]
    pub fn put_all<const N: usize>(&mut self, index: usize, words: [u32; N]) {
        if let Some(bytes) = self.all_mut().get_mut(index * 4..(index + N) * 4) {
            for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                *place = word.to_ne_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_not_touched() {
        let mut memory = vec![0_u8; 16];
        // SAFETY: the memory outlives the region and is used by nobody else meanwhile.
        let mut region = unsafe { Region::new(memory.as_mut_ptr(), memory.len()) };
        region.put_all(1, [7, 8, 9]);
        region.put_all(2, [1, 1, 1]);
        region.put(4, 1);
        assert_eq!(region.words::<4>(0), [0, 7, 8, 9]);
        assert_eq!((region.word(3), region.word(4), region.words::<2>(3)), (9, 0, [0, 0]));
        region.all_mut()[4] = 5;
        assert_eq!((region.word(1), region.len(), region.is_empty()), (5, 16, false));
    }
}
