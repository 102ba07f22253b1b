//! Tests of durations.rs.
//!
//! The buckets against the durations that were put in.

use super::*;

fn check<const BITS: u32>() {
    let error = 1.0 / f64::from(1 << BITS);
    for power in POWER_MIN..POWER_MAX {
        for ticks in [1_u64 << power, (1 << power) + 7, (1 << power) * 3 / 2, (2 << power) - 1] {
            let middle = Durations::<BITS>::middle_of(Durations::<BITS>::bucket_of(ticks));
            assert!((middle / ticks as f64 - 1.0).abs() <= error, "{middle} for {ticks}");
        }
    }
    assert_eq!(Durations::<BITS>::bucket_of(0), 0);
    assert_eq!(Durations::<BITS>::bucket_of(u64::MAX), Durations::<BITS>::BUCKETS - 1);
}

#[test]
fn a_duration_is_near_the_middle_of_its_bucket() {
    check::<4>();
    check::<7>();
}

#[test]
fn what_was_added_is_as_if_it_had_been_recorded() {
    let (mut one, mut two) = (Durations::<7>::new(), Durations::<7>::new());
    (1..=1000).for_each(|ticks| one.record(ticks * 100));
    two.add(&Durations::new());
    assert_eq!(two.totals(), (0, 0, 0));
    two.add(&one);
    two.add(&one);
    assert_eq!(two.totals(), (2000, 2 * 100 * 500_500, 100_000));
    for (share, ticks) in [(0.5, 50_000.0), (0.99, 99_000.0), (1.0, 100_000.0)] {
        assert!((two.quantile(share, 2000) / ticks - 1.0).abs() < 0.01, "{share}");
    }
}
