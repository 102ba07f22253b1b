//! Memory that a thread's JavaScript and the core share: one writes, the other reads, never both at a time.
//!
//! A header of words, then bytes. The core touches it only during calls from JavaScript, which waits for
//! them.

use std::sync::Arc;

use skein_bridge::layout::HEADER_BYTES;

use crate::{
    js::{Env, Outcome, Value},
    memory::Memory,
};

/// A stretch of the core's memory, registered once.
#[derive(Clone)]
pub struct Scratch {
    data: *mut u8,
    len: usize,
    _memory: Arc<Memory>,
}

impl Scratch {
    /// What a Uint8Array over memory of the core shows.
    pub fn of(env: Env, view: Value) -> Outcome<Self> {
        let (memory, (data, len)) = Memory::of(env, view)?;
        Ok(Self { data, len, _memory: memory })
    }

    /// Its size in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The first words.
    ///
    /// # Safety
    ///
    /// The thread's JavaScript does not run during the call.
    #[inline]
    pub unsafe fn words<const N: usize>(&self) -> [u32; N] {
        // SAFETY: `open` has refused anything shorter than the header; any alignment is read.
        unsafe { self.data.cast::<[u32; N]>().read_unaligned() }
    }

    /// The word with that index, which lies in the header.
    ///
    /// # Safety
    ///
    /// The thread's JavaScript does not run during the call.
    #[inline]
    pub unsafe fn word(&self, index: usize) -> u32 {
        debug_assert!(index * 4 < HEADER_BYTES);
        // SAFETY: within the header, see words; any alignment is read.
        unsafe { self.data.cast::<u32>().add(index).read_unaligned() }
    }

    /// Write the word with that index, which lies in the header.
    #[inline]
    pub fn put(&self, index: usize, word: u32) {
        debug_assert!(index * 4 < HEADER_BYTES);
        // SAFETY: within the header, see words; JavaScript waits for the call that writes.
        unsafe { self.data.cast::<u32>().add(index).write_unaligned(word) };
    }

    /// `length` bytes after the header; `None` when there are fewer.
    ///
    /// # Safety
    ///
    /// The thread's JavaScript does not run while the slice is in use.
    #[inline]
    pub unsafe fn data<'a>(&self, length: usize) -> Option<&'a [u8]> {
        // SAFETY: within the registered memory, which is never written but by this thread.
        (length <= self.len - HEADER_BYTES)
            .then(|| unsafe { std::slice::from_raw_parts(self.data.add(HEADER_BYTES), length) })
    }

    /// All of it, to write to.
    ///
    /// # Safety
    ///
    /// As for `read`, and no other slice of it is in use.
    pub unsafe fn write<'a>(&self) -> &'a mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}
