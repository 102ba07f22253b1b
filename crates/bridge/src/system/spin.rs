//! Bounded adaptive spinning: when to wait for the next arrival awake, and for how long.
//!
//! A wake-up of a sleeping thread costs tens of microseconds where a core has to leave its idle state, and
//! spinning for as long as that is at most twice as dear as the best choice made with foresight (Karlin,
//! Manasse, McGeoch, Owicki: Competitive randomized algorithms for non-uniform problems, 1990). So a thread
//! spins for at most `limit`, keeps doing so while that pays, and tries ever more seldom while it does not.

use std::time::{Duration, Instant};

/// Failures in a row after which attempts are skipped.
const MISSES_FREE: u32 = 2;
/// Attempts skipped at most between two tries: 2 to the power of this.
const SKIP_POWER_MAX: u32 = 6;
/// Looks between two readings of the clock, which costs more than a look.
const LOOKS_PER_READING: u32 = 16;

/// One thread's habit of spinning.
pub struct Spin {
    limit: Duration,
    misses: u32,
    skip: u32,
}

impl Spin {
    /// `limit`: longest spin; zero never spins.
    pub const fn new(limit: Duration) -> Self {
        Self { limit, misses: 0, skip: 0 }
    }

    /// Change the longest spin; zero turns spinning off.
    pub const fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Whether the next attempt will not look at all.
    pub const fn is_off(&self) -> bool {
        self.limit.is_zero()
    }

    /// Look for an arrival until `found` returns true, at most for the limit. Returns whether it did.
    pub fn wait(&mut self, found: impl FnMut() -> bool) -> bool {
        let limit = self.limit;
        // Read only after the first looks: most arrivals that come in time come at once.
        let mut start = None;
        self.attempt(found, move || start.get_or_insert_with(Instant::now).elapsed() >= limit)
    }

    /// Look for an arrival until `found` returns true, at most for `limit` and whatever was before: for
    /// callers with a habit of their own.
    pub fn once(limit: Duration, found: impl FnMut() -> bool) -> bool {
        Self::new(limit).wait(found)
    }

    /// `wait` with the clock as a parameter.
    fn attempt(&mut self, mut found: impl FnMut() -> bool, mut over: impl FnMut() -> bool) -> bool {
        if self.limit.is_zero() {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        loop {
            for _ in 0..LOOKS_PER_READING {
                if found() {
                    self.misses = 0;
                    return true;
                }
                std::hint::spin_loop();
            }
            if over() {
                break;
            }
        }
        self.misses = self.misses.saturating_add(1);
        if self.misses > MISSES_FREE {
            self.skip = 1 << (self.misses - MISSES_FREE).min(SKIP_POWER_MAX);
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
