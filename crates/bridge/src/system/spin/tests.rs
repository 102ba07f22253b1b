//! Tests of spin.rs.
//!
//! When a thread spins, with luck as a parameter.

use super::*;

/// Let a spin meet this sequence of luck (true: an arrival in time) and compare which attempts spun.
fn check(luck: &[bool], spun: &[bool]) {
    let mut spin = Spin::new(Duration::from_micros(50));
    for (index, (&lucky, &expected)) in luck.iter().zip(spun).enumerate() {
        let mut looks = 0;
        let found = spin.attempt(
            || {
                looks += 1;
                lucky && looks == 3
            },
            || true,
        );
        assert_eq!(looks > 0, expected, "attempt {index} spun");
        assert_eq!(found, lucky && expected, "attempt {index} found");
    }
}

#[test]
fn goes_on_while_it_pays() {
    check(&[true; 5], &[true; 5]);
}

#[test]
fn skips_ever_more_attempts_while_it_does_not() {
    check(&[false; 11], &[true, true, true, false, false, true, false, false, false, false, true]);
}

#[test]
fn one_success_forgives_all_failures() {
    check(
        &[false, false, false, true, true, true, false, false, false],
        &[true, true, true, false, false, true, true, true, true],
    );
}

#[test]
fn a_limit_of_zero_never_spins() {
    let mut spin = Spin::new(Duration::ZERO);
    assert!(!spin.wait(|| true));
}
