//! Tests of slow.rs.
//!
//! Rows of this test alone: the others of this crate add none.

use super::*;
use crate::layout::slow::TOTAL;

#[test]
fn the_last_ones_are_kept_and_what_is_known_later_is_added() {
    let text: Text = "zone".encode_utf16().collect();
    let before = last();
    let mut numbers_of = [-1.0; NUMBERS];
    for count in 0..KEPT_MAX + 10 {
        numbers_of[TOTAL] = count as f64;
        add(7, numbers_of, text.clone());
    }
    let youngest = last();
    assert_eq!(youngest, before + KEPT_MAX as u32 + 10);
    assert_eq!(numbers(before).len(), KEPT_MAX * NUMBERS);
    assert_eq!(super::text(before + 1), None);
    assert_eq!(super::text(youngest), Some(text));
    returned(youngest);
    set_gc(youngest, 2.5);
    // Of one that was dropped nothing is set.
    returned(before + 1);
    let row = numbers(youngest - 1);
    assert_eq!((row.len(), row[NUMBER], row[THREAD], row[GC]), (NUMBERS, f64::from(youngest), 7.0, 2.5));
    assert!(row[HOP] >= 0.0 && row[ENDED] > 1.7e12);
    assert_eq!(numbers(youngest), []);
}
