//! Tests of handles.rs.
//!
//! Numbers that are used again.

use super::*;

#[test]
fn a_number_belongs_to_one_thing_until_it_is_dropped_once() {
    let mut handles = Handles::default();
    assert_eq!(['a', 'b', 'c'].map(|value| handles.put(value)), [0, 1, 2]);
    assert_eq!((handles.take(1), handles.take(1), handles.take(9)), (Some('b'), None, None));
    assert_eq!((handles.get(0), handles.get(1), handles.get(2)), (Some(&'a'), None, Some(&'c')));
    assert_eq!((handles.put('d'), handles.put('e')), (1, 3));
    assert_eq!(handles.get(1), Some(&'d'));
}
