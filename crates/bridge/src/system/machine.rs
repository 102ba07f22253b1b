//! How busy the cores are, for threads that decide whether to spin.
//!
//! All of it hints: wrong for a moment costs a moment. Mailboxes count themselves here when they fall
//! asleep and wake up, and no decision that must be right hangs on it.

use std::sync::atomic::{AtomicU32, Ordering};

/// Cores with a count of their own; those of larger machines share.
const CORES: usize = 64;

/// How many threads may run at once, how many mailboxes are awake, and on which cores. All of it hints, for
/// spinning only: wrong for a moment costs a moment. So loom's models leave the counts out.
pub struct Machine {
    cores: u32,
    awake: AtomicU32,
    awake_on: [AtomicU32; CORES],
}

impl Machine {
    /// `cores`: how many threads of this process can run at the same moment.
    pub fn new(cores: u32) -> Self {
        let awake_on = [const { AtomicU32::new(0) }; CORES];
        Self { cores, awake: AtomicU32::new(0), awake_on }
    }

    /// How many threads of this process can run at the same moment.
    pub const fn cores(&self) -> u32 {
        self.cores
    }

    /// Whether one of the awake threads may wait by spinning without taking a core from another.
    pub fn may_spin(&self) -> bool {
        self.cores > 1 && self.awake.load(Ordering::Relaxed) <= self.cores
    }

    /// Whether two threads can run at the same time at all.
    pub const fn has_cores(&self) -> bool {
        self.cores > 1
    }

    /// Awake mailboxes whose threads were last seen on that core.
    pub fn awake_on(&self, core: u32) -> u32 {
        self.awake_on[core as usize % CORES].load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, core: u32, awake: bool) {
        let on = &self.awake_on[core as usize % CORES];
        if awake {
            self.awake.fetch_add(1, Ordering::Relaxed);
            on.fetch_add(1, Ordering::Relaxed);
        } else {
            self.awake.fetch_sub(1, Ordering::Relaxed);
            on.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
