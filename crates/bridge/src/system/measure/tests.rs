//! Tests of measure.rs.
//!
//! Quantiles within their precision.

use super::*;

#[test]
fn quantiles_are_right_to_one_in_a_hundred() {
    let (mut one, mut two) = (Measures::new(), Measures::new());
    for ticks in 1..=50_000_u64 {
        one.ran(ticks * 100);
        two.ran((50_000 + ticks) * 100);
    }
    one.add(&two);
    let (waits, runs) = one.times();
    assert_eq!(waits, Times::default());
    assert!((runs.count - 100_000.0).abs() < 0.5);
    let ticks = clock::tick_ns();
    for (found, ticks_right) in [(runs.p50, 5e6), (runs.p99, 9.9e6), (runs.max, 1e7), (runs.mean, 5e6)] {
        assert!((found / (ticks_right * ticks) - 1.0).abs() < 0.02, "{found} for {ticks_right} ticks");
    }
}
