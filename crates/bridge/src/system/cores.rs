//! Which core a thread runs on, and how it goes to another.
//!
//! A scheduler may put the two threads of a conversation on one core and leave them there, because each
//! sleeps while the other runs: then a thread that waits by spinning keeps the very thread from running
//! that it waits for. So who is about to spin where another mailbox's thread is awake steps aside first:
//! it excludes its core from its affinity, which moves it at once, and then restores what was. Rare: at
//! most once a millisecond, ever more seldom while spinning does not pay. Only where the system has such
//! calls; elsewhere nobody moves.

use std::time::{Duration, Instant};

use super::platform;

/// Shortest and longest time between two moves of a thread.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// This thread's core, the cores that it may use, and staying on one of them.
pub use super::platform::{allowed_cores as allowed, current_core as current, pin};

/// One thread's habit of stepping aside.
pub struct StepAside {
    next: Option<Instant>,
    pause: Duration,
}

impl Default for StepAside {
    /// A thread that has not moved yet.
    fn default() -> Self {
        Self { next: None, pause: PAUSE_MIN }
    }
}

impl StepAside {
    /// Spinning has paid: where the threads are now is good.
    pub const fn paid(&mut self) {
        self.pause = PAUSE_MIN;
    }

    /// Go from `core` to one that this thread may use and `is_free` accepts. Returns whether it went.
    pub fn leave(&mut self, core: u32, is_free: impl Fn(u32) -> bool) -> bool {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.next = Some(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        platform::move_from(core, is_free)
    }
}
