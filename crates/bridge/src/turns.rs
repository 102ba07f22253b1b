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
mod tests {
    use super::*;

    /// Which of the first `counts` end the turn when every reading of the clock shows `shown`, and how many
    /// readings there were.
    fn ends(
        counts: u32,
        shown: Duration,
        over: fn(u32, &mut dyn FnMut() -> Duration) -> bool,
    ) -> (Vec<u32>, u32) {
        let mut readings = 0;
        let mut clock = || {
            readings += 1;
            shown
        };
        let ended = (1..=counts).filter(|&count| over(count, &mut clock)).collect();
        (ended, readings)
    }

    #[test]
    fn a_prepare_step_ends_after_256_rounds_however_short() {
        let (ended, readings) = ends(257, TURN_MAX, |count, clock| are_over(count, clock));
        assert_eq!(ended, [256, 257]);
        assert_eq!(readings, 32, "every eighth round reads the clock");
    }

    #[test]
    fn a_prepare_step_that_is_late_ends_at_the_next_reading() {
        let late = TURN_MAX + Duration::from_nanos(1);
        assert_eq!(ends(20, late, |count, clock| are_over(count, clock)).0, [1, 9, 17]);
    }

    #[test]
    fn vain_looks_end_too() {
        let mut rounds = Rounds::default();
        assert_eq!((1..).find(|_| !rounds.add()), Some(1024));
    }

    #[test]
    fn a_worker_that_is_late_gives_the_loop_a_turn_at_the_next_reading() {
        let late = STEPS_MAX + Duration::from_nanos(1);
        assert_eq!(ends(17, late, |count, clock| had_turn(count, clock)), (vec![8, 16], 2));
        assert_eq!(ends(1000, STEPS_MAX, |count, clock| had_turn(count, clock)).0, []);
    }
}
