//! Counts of hits and misses.
//!
//! Each thread counts in a cell of its own, as long as there are enough; the statistics are their sums.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Hits and misses on cache lines of their own: readers of one key then contend only for the line of its
/// lock.
#[derive(Default)]
#[repr(align(128))]
pub struct Tally {
    pub hits: AtomicU64,
    pub misses: AtomicU64,
}

/// Beyond this number threads share tallies.
const TALLIES: usize = 8;

/// The tallies of a store.
#[derive(Default)]
pub struct Tallies(Box<[Tally; TALLIES]>);

impl Tallies {
    #[inline]
    pub fn of_thread(&self) -> &Tally {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static INDEX: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        if INDEX.get() == usize::MAX {
            // Relaxed: threads only get different indices, as long as there are any.
            INDEX.set(NEXT.fetch_add(1, Ordering::Relaxed) % TALLIES);
        }
        &self.0[INDEX.get()]
    }

    /// Hits and misses of all threads.
    pub fn sums(&self) -> (u64, u64) {
        // Relaxed: counts.
        self.0.iter().fold((0, 0), |(hits, misses), tally| {
            (hits + tally.hits.load(Ordering::Relaxed), misses + tally.misses.load(Ordering::Relaxed))
        })
    }
}
