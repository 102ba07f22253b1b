//! How long tasks waited and ran, in ticks of the clock.
//!
//! Each worker has its own pair, changed under the lock of its running tasks, which is taken for every task
//! anyway; a reader adds them up. Two significant digits: 1 % of any value between 16 ns and hours.

use crate::{clock, durations::Durations};

/// What became of a distribution: count, then nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    pub count: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// The times of one worker's tasks.
pub(crate) struct Measures {
    wait: Durations<7>,
    run: Durations<7>,
}

impl Measures {
    /// Empty; memory comes with the first task.
    pub(crate) const fn new() -> Self {
        Self { wait: Durations::new(), run: Durations::new() }
    }

    #[inline]
    pub(crate) fn waited(&mut self, ticks: u64) {
        record(&mut self.wait, ticks);
    }

    #[inline]
    pub(crate) fn ran(&mut self, ticks: u64) {
        record(&mut self.run, ticks);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.wait.add(&other.wait);
        self.run.add(&other.run);
    }

    pub(crate) fn times(&self) -> (Times, Times) {
        (times(&self.wait), times(&self.run))
    }
}

#[inline]
fn record(durations: &mut Durations<7>, ticks: u64) {
    // Loom and Miri look at the protocol, and the buckets are kilobytes.
    if !cfg!(any(loom, miri)) {
        durations.record(ticks);
    }
}

fn times(durations: &Durations<7>) -> Times {
    let (count, sum, max) = durations.totals();
    if count == 0 {
        return Times::default();
    }
    let tick_ns = clock::tick_ns();
    let at = |share| durations.quantile(share, count) * tick_ns;
    Times {
        count: count as f64,
        mean: sum as f64 / count as f64 * tick_ns,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: max as f64 * tick_ns,
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
