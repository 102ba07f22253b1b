//! Durations in ticks of the clock, counted in buckets: `2^BITS` of the same width for each power of two.
//!
//! As in a histogram of high dynamic range, so the error is a share of the value, and two can be added. Made
//! here, since recording is a part of every task: `hdrhistogram` also checks bounds that are constants here,
//! and keeps totals that only a reader needs.

/// The powers of two of the least and the most ticks that are distinguished.
const POWER_MIN: u32 = 6;
const POWER_MAX: u32 = 46;

/// How many durations there are of each length. Memory comes with the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations<const BITS: u32> {
    sum: u64,
    max: u64,
    buckets: Vec<u64>,
}

impl<const BITS: u32> Durations<BITS> {
    const PER_POWER: usize = 1 << BITS;
    const BUCKETS: usize = (POWER_MAX - POWER_MIN) as usize * Self::PER_POWER;

    pub(crate) const fn new() -> Self {
        Self { sum: 0, max: 0, buckets: Vec::new() }
    }

    #[inline]
    pub(crate) fn record(&mut self, ticks: u64) {
        if self.buckets.is_empty() {
            self.grow();
        }
        self.sum += ticks;
        self.max = self.max.max(ticks);
        self.buckets[Self::bucket_of(ticks)] += 1;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.buckets = vec![0; Self::BUCKETS];
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
            return;
        }
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(into, from)| *into += from);
    }

    /// How many there are, their sum and the longest of them, in ticks.
    #[cold]
    #[inline(never)]
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        (self.buckets.iter().sum(), self.sum, self.max)
    }

    /// The duration that this share of all `count` does not exceed, in ticks.
    #[cold]
    #[inline(never)]
    pub(crate) fn quantile(&self, share: f64, count: u64) -> f64 {
        let mut left = (share * count as f64).ceil().max(1.0);
        for (bucket, &count) in self.buckets.iter().enumerate() {
            left -= count as f64;
            if left <= 0.0 {
                return Self::middle_of(bucket).min(self.max as f64);
            }
        }
        self.max as f64
    }

    /// Add the sum in ticks to the first of `numbers`, and to those behind it how many took at most the first
    /// of `bounds_ns`, more than that and at most the second, …, more than the last.
    #[cold]
    #[inline(never)]
    pub(crate) fn put(&self, tick_ns: f64, bounds_ns: &[f64], numbers: &mut [f64]) {
        numbers[0] += self.sum as f64;
        let mut bound = 0;
        // Those behind the longest are empty, and most of the others.
        let used = self.buckets.iter().take(Self::bucket_of(self.max) + 1);
        for (bucket, &count) in used.enumerate().filter(|(_, count)| **count > 0) {
            let ns = Self::middle_of(bucket) * tick_ns;
            while bounds_ns.get(bound).is_some_and(|&most| ns > most) {
                bound += 1;
            }
            numbers[1 + bound] += count as f64;
        }
    }

    #[inline]
    fn bucket_of(ticks: u64) -> usize {
        let ticks = ticks.clamp(1 << POWER_MIN, (1 << POWER_MAX) - 1);
        let power = ticks.ilog2();
        // The bits behind the first one; fewer than BITS of the shortest.
        let within = if power >= BITS { ticks >> (power - BITS) } else { ticks << (BITS - power) };
        (power - POWER_MIN) as usize * Self::PER_POWER + within as usize % Self::PER_POWER
    }

    fn middle_of(bucket: usize) -> f64 {
        let power = POWER_MIN + (bucket / Self::PER_POWER) as u32;
        let within = (bucket % Self::PER_POWER) as f64 + 0.5;
        (1_u64 << power) as f64 * (1.0 + within / Self::PER_POWER as f64)
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
