//! Tests of clock.rs.
//!
//! A tick compared with the kernel's clock.

use super::*;

#[test]
fn ticks_are_worth_what_the_kernel_says() {
    // The thread may lose its core between any two readings, so one of many attempts has to agree.
    let agree = || {
        let (instant, first) = (std::time::Instant::now(), ticks());
        while instant.elapsed() < std::time::Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let (ours, theirs) = (ns_since(first), instant.elapsed().as_nanos() as f64);
        (ours / theirs - 1.0).abs() < 0.05
    };
    assert!((0..500).any(|_| agree()), "a tick is {} ns", tick_ns());
}
