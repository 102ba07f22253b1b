//! Tests of bytes.rs.
//!
//! Contents across the inline limit, and memory that is returned.

use super::*;

/// Set every length in turn and compare with the slice that went in.
fn check(lengths: &[usize]) {
    let mut bytes = Bytes::new();
    for &length in lengths {
        let source: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        bytes.set(&source);
        assert_eq!(bytes.as_slice(), source.as_slice());
        assert_eq!((bytes.len(), bytes.is_empty()), (length, length == 0));
    }
}

#[test]
fn keep_what_was_set_across_the_inline_limit() {
    check(&[0, 1, INLINE_BYTES, INLINE_BYTES + 1, 5_000, 3, INLINE_BYTES + 1, 0]);
}

#[test]
fn shrink_gives_back_what_is_above_the_limit() {
    let mut bytes = Bytes::new();
    bytes.set(&[7; 10_000]);
    bytes.shrink(4_096);
    assert_eq!((bytes.heap.capacity(), bytes.len()), (0, 0));
    bytes.set(&[7; 1_000]);
    bytes.shrink(4_096);
    assert!(bytes.heap.capacity() >= 1_000);
}
