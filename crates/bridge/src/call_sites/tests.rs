//! Tests of call_sites.rs.
//!
//! Which positions are call sites, and how many are remembered.

use super::*;

#[test]
fn sites_differ_by_script_and_position() {
    let site = |script, position| CallSite::at(script, position).unwrap();
    let mut sites = CallSites::default();
    sites.remember(site(1, 2), 7);
    sites.remember(site(2, 1), 8);
    let found = [site(1, 2), site(2, 1), site(1, 1)].map(|site| sites.get(site));
    assert_eq!(found, [7, 8, 0]);
    sites.remember(site(1, 2), 9);
    assert_eq!(sites.get(site(1, 2)), 9);
}

#[test]
fn what_has_no_script_or_position_has_no_site() {
    for (script, position) in [(0, 1), (-1, 1), (SCRIPTS, 1), (1, -1)] {
        assert_eq!(CallSite::at(script, position), None, "{script}, {position}");
    }
    for (line, column) in [(-1, 0), (0, -1), (0, COLUMNS), (i32::MAX / COLUMNS + 1, 0)] {
        assert_eq!(CallSite::at_line(1, line, column), None, "{line}, {column}");
    }
    assert_eq!(CallSite::at_line(1, 2, 3), CallSite::at(1, 2 * COLUMNS + 3));
}

#[test]
fn a_thread_that_makes_code_endlessly_remembers_a_bounded_number_of_sites() {
    let mut sites = CallSites::default();
    for position in 0..=KNOWN_MAX as i32 {
        sites.remember(CallSite::at(1, position).unwrap(), 1);
    }
    assert_eq!(sites.0.len(), 1);
    assert_eq!(sites.get(CallSite::at(1, KNOWN_MAX as i32).unwrap()), 1);
}
