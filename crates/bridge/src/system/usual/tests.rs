//! Tests of usual.rs.
//!
//! The estimate against the sorted times.

use super::*;

/// Numbers from 0 to 1 that look random.
fn random(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    })
}

/// The mean of the estimate over the second half is within a factor of the 99th percentile.
fn check(first: f64, time: fn(f64) -> f64) {
    let times: Vec<_> = random(7).take(20_000).map(time).collect();
    let mut usual = Usual::default();
    usual.passed(first);
    let estimates: Vec<_> = times.iter().map(|&time| (usual.passed(time), usual.most).1).collect();
    let mean = estimates[10_000..].iter().sum::<f64>() / 10_000.0;
    let mut sorted = times;
    sorted.sort_by(f64::total_cmp);
    let exact = sorted[19_800];
    assert!((0.7..1.5).contains(&(mean / exact)), "{mean} for {exact}");
}

#[test]
fn it_comes_near_the_99th_percentile_whatever_the_first_was() {
    for first in [1e-3, 1.0, 100.0] {
        check(first, |share| 1.0 + share);
        check(first, |share| -(1.0 - share).ln());
        check(first, |share| if share < 0.97 { 1.0 + share } else { 20.0 + share });
        check(first, |share| (1.0 - share).powf(-0.5));
    }
}

#[test]
fn what_is_always_equal_is_never_slow_and_one_that_takes_thrice_as_long_is() {
    let mut usual = Usual::default();
    assert_eq!((0..1000).find_map(|_| usual.passed(10.0)), None);
    let found = usual.passed(40.0).expect("it is slow");
    assert!((9.0..=10.0).contains(&found), "{found}");
    assert_eq!(usual.passed(25.0), None);
}

#[test]
fn the_first_ones_are_not_slow_and_a_change_for_good_is_soon_usual() {
    let mut usual = Usual::default();
    assert!((0..SEEN_MIN).all(|count| usual.passed(f64::from(1 + count * count)).is_none()));
    let mut usual = Usual::default();
    (0..1000).for_each(|_| _ = usual.passed(1.0));
    let slow = (0..1000).filter(|_| usual.passed(100.0).is_some()).count();
    assert!((1..=25).contains(&slow), "{slow} of 1000");
}
