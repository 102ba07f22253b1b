//! Words of a depth and a chain, and chains under numbers that are used again.
//! The table is the process's own: these tests alone fill it.

use super::{CHAINS_MAX, NONE, broadcast_word, contains, split, with, word};
use crate::layout::DEPTH_UNKNOWN;

#[test]
fn a_word_has_both_numbers_and_javascript_adds_one() {
    for chain in [NONE, 1, CHAINS_MAX as u32] {
        assert_eq!(split(word(chain, 0)), (chain, Some(0)));
        assert_eq!(split(word(chain, 1_000_000) + 1), (chain, Some(1_000_001)));
        assert_eq!(split(broadcast_word(chain) + 1), (chain, None));
        assert_ne!(broadcast_word(chain) + 1, DEPTH_UNKNOWN);
    }
    assert_eq!(split(DEPTH_UNKNOWN), (NONE, None));
}

#[test]
fn chains_are_sets_of_zones_under_numbers_that_are_used_again() {
    let none = |_| false;
    let one = with(NONE, 7, none);
    let both = with(one, 9, none);
    assert_eq!((with(with(NONE, 9, none), 7, none), with(both, 9, none)), (both, both));
    assert_eq!([7, 9, 8].map(|zone| contains(both, zone)), [true, true, false]);
    assert!(!contains(NONE, 7) && !contains(one, 9));
    let last = (1000..).map(|zone| with(NONE, zone, none)).take_while(|&chain| chain != NONE).last();
    assert_eq!(last, Some(CHAINS_MAX as u32));
    let again = with(NONE, 999, |zone| zone == 1000);
    assert!(again != NONE && contains(again, 999) && !contains(again, 1000));
    assert_eq!(with(NONE, 998, |zone| zone == 1000), NONE);
}
