//! How long tasks waited and ran: histograms of high dynamic range, in ticks of the clock.
//!
//! Each worker has its own pair, changed under the lock of its running tasks, which is taken for every task
//! anyway; a reader adds them up. Two significant digits: 1 % of any value between 16 ns and hours.

use hdrhistogram::Histogram;

use crate::clock;

/// The least and the most ticks that are distinguished.
const TICKS_MIN: u64 = 64;
const TICKS_MAX: u64 = 1 << 46;
const DIGITS: u8 = 2;

/// What became of a distribution: count, then nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Tasks measured.
    pub count: f64,
    /// Their mean.
    pub mean: f64,
    /// Half were quicker.
    pub p50: f64,
    /// Nine of ten were.
    pub p90: f64,
    /// All but one in a hundred.
    pub p99: f64,
    /// All but one in a thousand.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// The times of one worker's tasks.
pub(crate) struct Measures {
    wait: Option<Histogram<u32>>,
    run: Option<Histogram<u32>>,
}

impl Measures {
    /// Empty; memory comes with the first task.
    pub(crate) const fn new() -> Self {
        Self { wait: None, run: None }
    }

    /// A task waited so long.
    #[inline]
    pub(crate) fn waited(&mut self, ticks: u64) {
        record(&mut self.wait, ticks);
    }

    /// A task ran so long.
    #[inline]
    pub(crate) fn ran(&mut self, ticks: u64) {
        record(&mut self.run, ticks);
    }

    /// Add another's.
    pub(crate) fn add(&mut self, other: &Self) {
        merge(&mut self.wait, other.wait.as_ref());
        merge(&mut self.run, other.run.as_ref());
    }

    /// Waiting and running times.
    pub(crate) fn times(&self) -> (Times, Times) {
        (times(self.wait.as_ref()), times(self.run.as_ref()))
    }
}

fn fresh() -> Option<Histogram<u32>> {
    Histogram::new_with_bounds(TICKS_MIN, TICKS_MAX, DIGITS).ok()
}

#[inline]
fn record(histogram: &mut Option<Histogram<u32>>, ticks: u64) {
    // Loom and Miri look at the protocol, and a histogram is kilobytes.
    if cfg!(any(loom, miri)) {
        return;
    }
    if histogram.is_none() {
        *histogram = fresh();
    }
    if let Some(histogram) = histogram {
        histogram.saturating_record(ticks);
    }
}

fn merge(into: &mut Option<Histogram<u32>>, from: Option<&Histogram<u32>>) {
    let Some(from) = from else { return };
    if into.is_none() {
        *into = fresh();
    }
    if let Some(into) = into {
        // Same bounds, so nothing is out of range.
        let _ = into.add(from);
    }
}

fn times(histogram: Option<&Histogram<u32>>) -> Times {
    let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else {
        return Times::default();
    };
    let tick_ns = clock::tick_ns();
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 * tick_ns;
    Times {
        count: histogram.len() as f64,
        mean: histogram.mean() * tick_ns,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: histogram.max() as f64 * tick_ns,
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
