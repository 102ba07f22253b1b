//! The time that 99 of 100 tasks of a kind take at most, followed from one task to the next.
//!
//! An estimate of two numbers, whatever their distribution: a longer task raises it by a share, a shorter one
//! lowers it by a 99th of that, so it rests where one of 100 is longer (stochastic approximation of a
//! quantile, H. Robbins and S. Monro, 1951). It follows what changes for good after a dozen tasks.
//! src/metrics/usual.ts is the same for requests.

/// Tasks before any of them is found slow.
const SEEN_MIN: u32 = 32;
/// Tasks in which it comes near, by larger steps.
const NEAR_MAX: u32 = 128;
/// What a longer task raises it by, and a shorter one leaves of it: `e^(0.99 s)` and `e^(-0.01 s)` for steps
/// `s` of 1 and of 0.2.
const NEAR: (f64, f64) = (2.691, 0.990_05);
const LATER: (f64, f64) = (1.219, 0.998);
/// A task is slow that takes so many times the usual.
pub(crate) const FACTOR: f64 = 3.0;

/// The estimate, in any unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usual {
    most: f64,
    seen: u32,
}

impl Usual {
    /// A task has taken so long. Returns the usual if it was slow.
    #[inline]
    pub(crate) fn passed(&mut self, time: f64) -> Option<f64> {
        let most = self.most;
        let (raise, lower) = if self.seen < NEAR_MAX { NEAR } else { LATER };
        let is_known = self.seen >= SEEN_MIN;
        self.seen = self.seen.saturating_add(1);
        if time <= most {
            self.most = most * lower;
            return None;
        }
        // The first one is the estimate.
        self.most = if most == 0.0 { time } else { time.min(most * raise) };
        (is_known && time > most * FACTOR).then_some(most)
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
