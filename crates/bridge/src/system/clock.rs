//! A clock that is read for every task: the processor's own counter where the kernel trusts it.
//!
//! Reading the kernel's clock costs 55 ns on virtual machines, the counter 8. Readings are in ticks; the
//! nanoseconds of a tick are computed from both clocks when they are asked for. Times are for statistics
//! and for deciding when to grow: a wrong reading does no harm, and differences are never below zero.

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod counter {
    use std::sync::LazyLock;

    static TRUSTED: LazyLock<bool> = LazyLock::new(super::super::platform::can_trust_counter);

    #[inline]
    pub fn read() -> Option<u64> {
        // SAFETY: every x86-64 processor has the instruction; it reads a register and touches no memory.
        TRUSTED.then(|| unsafe { core::arch::x86_64::_rdtsc() })
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
mod counter {
    pub fn read() -> Option<u64> {
        None
    }
}

#[cfg(not(any(miri, loom)))]
mod anchor {
    use std::{
        sync::LazyLock,
        time::{Duration, Instant},
    };

    /// The first reading of both clocks.
    pub static FIRST: LazyLock<(Instant, u64)> = LazyLock::new(both);

    /// A reading of both at one moment: of several, the one that the least has interrupted.
    pub fn both() -> (Instant, u64) {
        let read = || super::counter::read().unwrap_or(0);
        let readings = (0..5).map(|_| {
            let (before, now, after) = (read(), Instant::now(), read());
            (after.saturating_sub(before), (now, before))
        });
        readings.min_by_key(|&(took, _)| took).expect("there are five").1
    }

    /// Nanoseconds of a tick, between the first reading and this one.
    pub fn tick_ns(read: fn() -> (Instant, u64)) -> f64 {
        let (instant, first) = *FIRST;
        if super::counter::read().is_none() {
            return 1.0;
        }
        // The first answers would be rough: wait for a millisecond once, when a process has just begun.
        while instant.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        let (now, last) = read();
        let passed = last.saturating_sub(first);
        if passed == 0 { 1.0 } else { (now - instant).as_nanos() as f64 / passed as f64 }
    }
}

/// The CPU time that this thread has used, in nanoseconds.
pub fn thread_cpu_ns() -> f64 {
    super::platform::thread_cpu_ns()
}

/// The time of this moment, in ticks.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(any(miri, loom))]
    return counter::read().unwrap_or(0);
    #[cfg(not(any(miri, loom)))]
    counter::read().unwrap_or_else(|| anchor::FIRST.0.elapsed().as_nanos() as u64)
}

/// Nanoseconds of a tick, as both clocks have it since the first reading.
pub fn tick_ns() -> f64 {
    #[cfg(any(miri, loom))]
    return 1.0;
    #[cfg(not(any(miri, loom)))]
    anchor::tick_ns(|| (std::time::Instant::now(), ticks()))
}

/// The same as it was when it was first asked for this way, for totals: one that moves by some billionths
/// with each measurement is less than before half of the time, which Prometheus takes for a restart.
pub fn steady_tick_ns() -> f64 {
    #[cfg(any(miri, loom))]
    return 1.0;
    #[cfg(not(any(miri, loom)))]
    {
        static STEADY: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
        *STEADY.get_or_init(|| anchor::tick_ns(anchor::both))
    }
}

/// Nanoseconds since an earlier reading.
pub fn ns_since(earlier: u64) -> f64 {
    ticks().saturating_sub(earlier) as f64 * tick_ns()
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests;
