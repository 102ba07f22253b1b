//! Version words: how a thread sees, without a lock or a call, that nobody wrote a key.
//!
//! Keys share words by their hash, and all keys of a word lie in one shard. A writer changes its entry and
//! then adds one to the word, both under the lock of that shard; a reader takes word and value under it. So
//! as long as the word that came with a value stands, no write to the key has ended since. A word returns to
//! an old value only after 2^32 writes.
//!
//! The reader that looks whether the word still stands is JavaScript and reads it plainly, without a lock.
//! One who learned of a write sees it: what it learned by orders its look. And of two threads that each write
//! a key and then look at the other's, one at least sees the other's write, because a write ends with a
//! fence.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(any(miri, not(any(loom, target_arch = "x86", target_arch = "x86_64"))))]
use std::sync::atomic::fence;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

/// Words of one store; a power of two. Few where every access is followed step by step.
pub const WORDS: usize = if cfg!(loom) {
    2
} else if cfg!(miri) {
    16
} else {
    4096
};

/// The version words of a store.
#[derive(Debug)]
pub struct Words(Box<[AtomicU32]>);

impl Default for Words {
    fn default() -> Self {
        Self((0..WORDS).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Words {
    /// Which word stands for keys with that hash.
    #[inline]
    #[must_use]
    pub const fn index(hash: u64) -> usize {
        // Not of the bits by which a shard's map finds its place.
        (hash >> 32) as usize & (WORDS - 1)
    }

    /// The word as it is now.
    #[inline]
    #[must_use]
    pub fn load(&self, index: usize) -> u32 {
        // Acquire: pairs with the Release in touch; a reader that sees the count sees the entry it counts.
        self.0[index].load(Ordering::Acquire)
    }

    /// An entry of this word has changed. The caller holds the lock of its shard, alone.
    #[inline]
    pub fn touch(&self, index: usize) {
        self.count(index);
        end_write();
    }

    #[inline]
    fn count(&self, index: usize) {
        let word = &self.0[index];
        // Relaxed: who holds the shard's lock alone sees what all before it wrote. Release: after the change
        // of the entry.
        word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Every entry has changed. The caller holds the locks of all shards.
    pub fn touch_all(&self) {
        for index in 0..WORDS {
            self.count(index);
        }
        end_write();
    }

    /// The word as a reader that is not Rust sees it, who reads plainly.
    #[cfg(loom)]
    #[must_use]
    pub fn glance(&self, index: usize) -> u32 {
        // Relaxed: what orders it, if anything, is what the reader did before.
        self.0[index].load(Ordering::Relaxed)
    }

    /// Where the words lie, for readers that are not Rust: `WORDS` aligned 32-bit words, to be read
    /// atomically.
    #[must_use]
    pub fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}

/// What this thread looks at once its shard's lock is released, it looks at after its write.
///
/// The fences of any two writes have an order, and whoever's comes second sees in its later looks, even plain
/// ones, what the other counted before its own: two threads cannot both miss the other's write. On x86 every
/// locked instruction is such a fence, and releasing the shard's lock, which follows, is one: `parking_lot`
/// exchanges the lock's word to learn of those who sleep. No later look moves to before it in the processor,
/// nor in a compiler, which sees none (they are in other code). A test looks for it on real threads.
#[inline]
fn end_write() {
    // SeqCst: the order of the fences, see above.
    #[cfg(any(loom, miri, not(any(target_arch = "x86", target_arch = "x86_64"))))]
    fence(Ordering::SeqCst);
}
