//! A clock that is read for every task: the processor's own counter where the kernel trusts it.
//!
//! Reading the kernel's clock costs 55 ns on virtual machines, the counter 8. Readings are in ticks; the
//! nanoseconds of a tick are computed from both clocks when they are asked for. Times are for statistics
//! and for deciding when to grow: a wrong reading does no harm, and differences are never below zero.

use std::sync::atomic::{AtomicU64, Ordering};

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
    use std::{sync::LazyLock, time::Instant};

    /// The first reading of both clocks.
    pub static FIRST: LazyLock<(Instant, u64)> =
        LazyLock::new(|| (Instant::now(), super::counter::read().unwrap_or(0)));
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
    #[cfg(not(any(miri, loom)))]
    {
        let (instant, first) = *anchor::FIRST;
        if counter::read().is_some() {
            // The first answers would be rough: wait for a millisecond once, when a process has just begun.
            while instant.elapsed() < std::time::Duration::from_millis(1) {
                std::hint::spin_loop();
            }
            let passed = ticks().saturating_sub(first);
            return if passed == 0 { 1.0 } else { instant.elapsed().as_nanos() as f64 / passed as f64 };
        }
    }
    1.0
}

/// The same as it was when it was first asked for this way, for totals: one that moves by some billionths
/// with each measurement is less than before half of the time, which Prometheus takes for a restart.
pub fn steady_tick_ns() -> f64 {
    static STEADY: AtomicU64 = AtomicU64::new(0);
    let now = tick_ns();
    // Relaxed: nothing else is read by it.
    match STEADY.compare_exchange(0, now.to_bits(), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => now,
        Err(first) => f64::from_bits(first),
    }
}

/// Nanoseconds since an earlier reading.
pub fn ns_since(earlier: u64) -> f64 {
    ticks().saturating_sub(earlier) as f64 * tick_ns()
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests;
