//! Tests of turns.rs.
//!
//! When a turn ends, with the clock as a parameter.

use super::*;

/// Which of the first `counts` end the turn when every reading of the clock shows `shown`, and how many
/// readings there were.
fn ends(
    counts: u32,
    shown: Duration,
    over: fn(u32, &mut dyn FnMut() -> Duration) -> bool,
) -> (Vec<u32>, u32) {
    let mut readings = 0;
    let mut clock = || {
        readings += 1;
        shown
    };
    let ended = (1..=counts).filter(|&count| over(count, &mut clock)).collect();
    (ended, readings)
}

#[test]
fn a_prepare_step_ends_after_256_rounds_however_short() {
    let (ended, readings) = ends(257, TURN_MAX, |count, clock| are_over(count, clock));
    assert_eq!(ended, [256, 257]);
    assert_eq!(readings, 32, "every eighth round reads the clock");
}

#[test]
fn a_prepare_step_that_is_late_ends_at_the_next_reading() {
    let late = TURN_MAX + Duration::from_nanos(1);
    assert_eq!(ends(20, late, |count, clock| are_over(count, clock)).0, [1, 9, 17]);
}

#[test]
fn vain_looks_end_too() {
    let mut rounds = Rounds::default();
    assert_eq!((1..).find(|_| !rounds.add()), Some(1024));
}

#[test]
fn a_worker_that_is_late_gives_the_loop_a_turn_at_the_next_reading() {
    let late = STEPS_MAX + Duration::from_nanos(1);
    assert_eq!(ends(17, late, |count, clock| had_turn(count, clock)), (vec![8, 16], 2));
    assert_eq!(ends(1000, STEPS_MAX, |count, clock| had_turn(count, clock)).0, []);
}
