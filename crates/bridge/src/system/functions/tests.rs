//! Tests of functions.rs.
//!
//! Sums, buckets and CPU times against what was put in.

use super::*;

/// What a row has with one bound.
const NUMBERS: usize = 7 + 2 * 3;

const fn ran(ran: u64) -> Ticks {
    Ticks { waited: 0, ran }
}

fn check_all(all: &[&Functions], bound_ns: f64) -> Vec<Vec<f64>> {
    let bounds = [bound_ns];
    let mut rows = Rows::new(&bounds);
    all.iter().for_each(|functions| rows.add(functions));
    rows.finish().chunks(NUMBERS).map(<[f64]>::to_vec).collect()
}

fn check(functions: &Functions, bound_ns: f64) -> Vec<Vec<f64>> {
    check_all(&[functions], bound_ns)
}

#[test]
fn two_workers_add_up_and_buckets_hold_what_took_at_most_their_bound() {
    let (mut one, mut two) = (Functions::new(), Functions::new());
    for task in 1..=1000_u64 {
        one.begun(7, task * 10);
        one.ended(7, ran(1000), Left::Done, || 0.0);
        two.begun(8, 50);
        two.ended(8, ran(2000), if task.is_multiple_of(4) { Left::Failed } else { Left::Done }, || 0.0);
    }
    two.of(8).left[Left::Died as usize] += 2;
    let bound_ns = 5000.0 * clock::tick_ns();
    let apart = check_all(&[&one, &two], bound_ns);
    one.add(&two);
    // A worker that has ended counts as it did.
    assert_eq!(check(&one, bound_ns), apart);
    let rows = check(&one, bound_ns);
    assert_eq!(rows.iter().map(|row| row[0] as u32).collect::<Vec<_>>(), [7, 8]);
    assert_eq!(rows[0][1..6], [1000.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(rows[1][1..6], [750.0, 250.0, 2.0, 0.0, 0.0]);
    let (at_most, more) = (rows[0][8], rows[0][9]);
    assert!((at_most + more - 1000.0).abs() < 0.5 && (at_most - 500.0).abs() < 35.0, "{at_most} of 1000");
    assert_eq!(rows[1][11..], [1000.0, 0.0]);
    // The clock is measured once for all of them.
    assert!((0..100).all(|_| check(&one, bound_ns) == rows));
}

#[test]
fn of_a_long_task_only_the_cpu_time_counts_that_no_other_has() {
    let mut functions = Functions::new();
    let tick_ns = clock::tick_ns();
    functions.ended(1, ran(LONG_TICKS * 1000), Left::Done, || 5000.0);
    functions.ended(2, ran(1000), Left::Done, || unreachable!("a short one"));
    functions.ended(1, ran(LONG_TICKS * 1000), Left::Done, || 25_000.0);
    let rows = check(&functions, 1e9);
    let short = 1000.0 * tick_ns;
    assert!((rows[0][6] - (25_000.0 - short)).abs() < short * 0.1, "{:?}", rows[0]);
    assert!((rows[1][6] - short).abs() < short * 0.1, "{:?}", rows[1]);
}

#[test]
fn functions_beyond_the_most_count_together() {
    let mut functions = Functions::new();
    for number in 1..=FUNCTIONS_MAX as u32 + 10 {
        functions.begun(number, 100);
        functions.ended(number, ran(100), Left::Done, || 0.0);
    }
    let rows = check(&functions, 1e9);
    assert_eq!(rows.len(), FUNCTIONS_MAX + 1);
    assert_eq!(rows[FUNCTIONS_MAX][..2], [0.0, 10.0]);
}

#[test]
fn a_task_that_has_waited_long_is_slow_and_one_of_another_function_is_not() {
    let mut functions = Functions::new();
    for _ in 0..1000 {
        assert_eq!(functions.ended(1, ran(1_000), Left::Done, || 0.0), None);
        assert_eq!(functions.ended(2, ran(9_000), Left::Done, || 0.0), None);
    }
    let slow =
        functions.ended(1, Ticks { waited: 8_000, ran: 1_000 }, Left::Done, || 0.0).expect("it is slow");
    assert!((900.0..=1_000.0).contains(&slow.usual), "{slow:?}");
    assert_eq!(functions.ended(2, ran(9_000), Left::Failed, || 0.0), None);
}
