//! Memory that JavaScript and the core share: one writes, the other reads, never both at a time.
//!
//! The core owns it. A [`Scratch`] is a stretch of it that belongs to one thread: a header of words, then
//! bytes. JavaScript of that thread uses it between calls, the core during a call; a `Scratch` stays on its
//! thread, so no word is read while JavaScript writes it.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    cell::RefCell,
    ptr::NonNull,
    sync::{Arc, Weak},
};

use crate::layout::HEADER_BYTES;

/// Any kind of number lies well at its start, and cache lines are its own.
const ALIGN: usize = 128;

/// Zeroes at an address that stays.
pub struct Memory {
    data: NonNull<u8>,
    layout: Layout,
}

// SAFETY: only its address is used here; the code that reads or writes at it has its own proof.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

thread_local! {
    /// The memory that this thread has made, as long as it is in use.
    static MADE: RefCell<Vec<Weak<Memory>>> = const { RefCell::new(Vec::new()) };
}

impl Memory {
    /// `bytes` zeroes; `None` for no bytes, or when there is no memory.
    pub fn new(bytes: usize) -> Option<Arc<Self>> {
        let layout = Layout::from_size_align(bytes, ALIGN).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: not of size zero.
        let data = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let memory = Arc::new(Self { data, layout });
        MADE.with_borrow_mut(|made| {
            made.retain(|other| other.strong_count() > 0);
            made.push(Arc::downgrade(&memory));
        });
        Some(memory)
    }

    /// The memory that this thread has made and that contains those bytes.
    pub fn of(data: *mut u8, length: usize) -> Option<Arc<Self>> {
        MADE.with_borrow(|made| {
            made.iter().filter_map(Weak::upgrade).find(|memory| memory.contains(data, length))
        })
    }

    /// Its first byte.
    pub const fn data(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// Whether `length` bytes at `data`, at least one, lie in it.
    pub fn contains(&self, data: *mut u8, length: usize) -> bool {
        let start = self.data().addr();
        let offset = data.addr().checked_sub(start);
        length > 0 && offset.is_some_and(|at| at + length <= self.layout.size())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with that layout.
        unsafe { dealloc(self.data(), self.layout) };
    }
}

/// A scratch as the calls of a thread use it.
pub struct Scratch {
    data: *mut u8,
    len: usize,
    _memory: Arc<Memory>,
}

impl Scratch {
    /// The `len` bytes at `data`; `None` when they do not lie in `memory` or have no room for data.
    pub fn new(memory: Arc<Memory>, data: *mut u8, len: usize) -> Option<Self> {
        let fits = len >= HEADER_BYTES * 2 && memory.contains(data, len);
        fits.then_some(Self { data, len, _memory: memory })
    }

    #[inline]
    pub fn words<const N: usize>(&self) -> [u32; N] {
        const { assert!(N * 4 <= HEADER_BYTES) };
        // SAFETY: within the header, which `new` has checked; any alignment is read.
        unsafe { self.data.cast::<[u32; N]>().read_unaligned() }
    }

    /// The word with that index, in the header.
    #[inline]
    pub fn word(&self, index: usize) -> u32 {
        assert!(index < HEADER_BYTES / 4);
        // SAFETY: as in words.
        unsafe { self.data.cast::<u32>().add(index).read_unaligned() }
    }

    /// Write the word with that index, in the header.
    #[inline]
    pub fn put(&self, index: usize, word: u32) {
        assert!(index < HEADER_BYTES / 4);
        // SAFETY: as in words; `write` promises that no slice of the header is in use.
        unsafe { self.data.cast::<u32>().add(index).write_unaligned(word) };
    }

    /// `length` bytes after the header; `None` when there are fewer.
    ///
    /// # Safety
    ///
    /// The thread's JavaScript does not run, and nothing writes after the header, while the slice is in use.
    #[inline]
    pub unsafe fn data<'a>(&self, length: usize) -> Option<&'a [u8]> {
        // SAFETY: within the memory; the caller's promise.
        (length <= self.len - HEADER_BYTES)
            .then(|| unsafe { std::slice::from_raw_parts(self.data.add(HEADER_BYTES), length) })
    }

    /// Write bytes after the header; false, and nothing has changed, when they do not fit.
    ///
    /// # Safety
    ///
    /// No slice of it is in use.
    #[inline]
    pub unsafe fn put_bytes(&self, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.len - HEADER_BYTES;
        if fits {
            // SAFETY: within the memory; `bytes` lies elsewhere, by the caller's promise.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.data.add(HEADER_BYTES), bytes.len());
            }
        }
        fits
    }

    /// All of it, to write to.
    ///
    /// # Safety
    ///
    /// The thread's JavaScript does not run, and no other method is called, while the slice is in use.
    pub unsafe fn write<'a>(&self) -> &'a mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
