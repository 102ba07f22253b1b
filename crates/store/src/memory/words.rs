//! Version words: how a thread detects without a lock or a call that a key has not been written.
//!
//! Keys share words by their hash, and all keys of a word lie in one shard. A writer changes its entry and
//! then adds one to the word, both under the lock of that shard; a reader takes word and value under it.
//! While the word of a value is unchanged, no write to the key has ended since. A word repeats only after
//! 2^32 writes.
//!
//! JavaScript compares the word by a plain load, without a lock. A thread that has learned of a write sees
//! it, because what it learned by orders its load. Of two threads that each write a key and then read the
//! other's, at least one sees the other's write, because a write ends with a fence.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(any(miri, not(any(loom, target_arch = "x86", target_arch = "x86_64"))))]
use std::sync::atomic::fence;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

/// Words of one store, a power of two. Few under loom, which follows every access.
pub const WORDS: usize = if cfg!(loom) {
    2
} else if cfg!(miri) {
    16
} else {
    4096
};

/// The version words of a store.
pub struct Words(Box<[AtomicU32]>);

impl Default for Words {
    fn default() -> Self {
        Self((0..WORDS).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Words {
    /// Index of the word of keys with that hash.
    #[inline]
    pub const fn index(hash: u64) -> usize {
        // Not the bits that a shard's map uses.
        (hash >> 32) as usize & (WORDS - 1)
    }

    /// The word as it is now.
    #[inline]
    pub fn load(&self, index: usize) -> u32 {
        // Acquire: pairs with the Release in touch; a reader that sees the count sees the entry it counts.
        self.0[index].load(Ordering::Acquire)
    }

    /// An entry of this word has changed. The caller holds the exclusive lock of its shard.
    #[inline]
    pub fn touch(&self, index: usize) {
        self.count(index);
        end_write();
    }

    #[inline]
    fn count(&self, index: usize) {
        let word = &self.0[index];
        // Relaxed: the exclusive lock orders earlier changes. Release: after the change of the entry.
        word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Every entry has changed. The caller holds the locks of all shards.
    pub fn touch_all(&self) {
        for index in 0..WORDS {
            self.count(index);
        }
        end_write();
    }

    /// The word as JavaScript sees it, which reads plainly.
    #[cfg(loom)]
    pub fn glance(&self, index: usize) -> u32 {
        // Relaxed: the order, if any, comes from what the reader did before.
        self.0[index].load(Ordering::Relaxed)
    }

    /// Where the words lie, for readers that are not Rust: `WORDS` aligned 32-bit words, to be read
    /// atomically.
    pub fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}

/// Orders this thread's later reads after its write, once the shard's lock is released.
///
/// The fences of two writes have an order. The thread whose fence is second sees in later reads, also plain
/// ones, what the other counted before its own fence: two threads cannot both miss the other's write. On x86
/// every locked instruction is such a fence, and releasing the shard's lock, which follows, is one:
/// `parking_lot` exchanges the lock's word to learn of sleepers. No later read moves before it, neither in
/// the processor nor in a compiler, since these reads are in other code. A test checks it on real threads.
#[inline]
fn end_write() {
    // SeqCst: the order of the fences, see above.
    #[cfg(any(loom, miri, not(any(target_arch = "x86", target_arch = "x86_64"))))]
    fence(Ordering::SeqCst);
}
