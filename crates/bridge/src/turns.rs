//! How long a thread works before its event loop has a turn, in which timers and I/O are served.
//!
//! The clock costs as much as an empty task, so it is read every few steps only.

use std::time::{Duration, Instant};

/// Calls into JavaScript, and vain looks, from one prepare step.
const ROUNDS_MAX: u32 = 256;
const LOOKS_MAX: u32 = ROUNDS_MAX * 4;
/// Calls between two readings of the clock.
const ROUNDS_PER_READING: u32 = 8;
/// And the longest time for them.
const TURN_MAX: Duration = Duration::from_micros(500);
/// Steps of a worker between two readings of the clock.
const STEPS_PER_READING: u32 = 8;
/// Longest time for them from the first reading on.
const STEPS_MAX: Duration = Duration::from_micros(250);

/// Time since the first reading.
fn elapsed(since: &mut Option<Instant>) -> Duration {
    since.get_or_insert_with(Instant::now).elapsed()
}

/// What one prepare step has done.
#[derive(Debug, Default)]
pub struct Rounds {
    count: u32,
    since: Option<Instant>,
}

impl Rounds {
    /// One round more. Returns whether a thread that only looks may go on.
    pub const fn add(&mut self) -> bool {
        self.count += 1;
        self.count < LOOKS_MAX
    }

    /// Whether the loop should have a turn before the next call.
    pub fn are_over(&mut self) -> bool {
        let Self { count, since } = self;
        are_over(*count, || elapsed(since))
    }
}

/// [`Rounds::are_over`] with the clock as a parameter.
fn are_over(count: u32, elapsed: impl FnOnce() -> Duration) -> bool {
    count >= ROUNDS_MAX || (count % ROUNDS_PER_READING == 1 && elapsed() > TURN_MAX)
}

/// Steps of a worker since its loop last had a turn.
#[derive(Debug, Default)]
pub struct Steps {
    count: u32,
    since: Option<Instant>,
}

impl Steps {
    /// One step more. Returns whether the loop should have a turn before the worker takes another task.
    #[inline]
    pub fn add(&mut self) -> bool {
        self.count = self.count.wrapping_add(1);
        let Self { count, since } = self;
        had_turn(*count, || elapsed(since))
    }
}

/// [`Steps::add`] with the clock as a parameter.
#[inline]
fn had_turn(count: u32, elapsed: impl FnOnce() -> Duration) -> bool {
    count.is_multiple_of(STEPS_PER_READING) && elapsed() > STEPS_MAX
}

#[cfg(all(test, not(loom)))]
mod tests;
