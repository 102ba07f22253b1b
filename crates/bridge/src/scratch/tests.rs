//! Tests of scratch.rs.
//!
//! Bounds of scratch memory, and what is written where.

use super::*;

fn scratch(bytes: usize) -> Option<Scratch> {
    let memory = Memory::new(bytes)?;
    let data = memory.data();
    Scratch::new(memory, data, bytes)
}

#[test]
fn a_stretch_must_lie_in_its_memory_and_have_room() {
    assert!(scratch(0).is_none());
    assert!(scratch(HEADER_BYTES * 2 - 1).is_none());
    let memory = Memory::new(512).expect("512 bytes");
    let data = memory.data();
    assert!(Scratch::new(Arc::clone(&memory), data, 513).is_none());
    assert!(Scratch::new(Arc::clone(&memory), data.wrapping_sub(1), 512).is_none());
    assert!(Scratch::new(Arc::clone(&memory), data.wrapping_add(256), 257).is_none());
    assert!(Scratch::new(memory, data.wrapping_add(256), 256).is_some());
}

#[test]
fn words_and_bytes_are_where_they_were_put() {
    let scratch = scratch(256).expect("room");
    scratch.put(0, 7);
    scratch.put(HEADER_BYTES / 4 - 1, u32::MAX);
    // SAFETY: no slice is in use, and no JavaScript runs.
    unsafe {
        assert!(scratch.put_bytes(&[1; 192]));
        assert!(!scratch.put_bytes(&[2; 193]));
        assert_eq!(scratch.data(192), Some(&[1; 192][..]));
        assert_eq!(scratch.data(193), None);
    }
    assert_eq!((scratch.words(), scratch.word(15)), ([7, 0], u32::MAX));
}

#[test]
#[should_panic(expected = "index < HEADER_BYTES / 4")]
fn a_word_beyond_the_header_is_refused() {
    scratch(256).expect("room").put(HEADER_BYTES / 4, 1);
}
