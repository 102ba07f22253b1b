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

#[test]
fn memory_is_found_by_its_bytes_on_the_thread_that_made_it_as_long_as_it_is_in_use() {
    let memory = Memory::new(512).expect("512 bytes");
    let (data, other) = (memory.data(), Memory::new(512).expect("512 bytes"));
    let is_found = |length| Memory::of(data.wrapping_add(256), length).is_some();
    assert!(is_found(256) && !is_found(257) && !is_found(0));
    assert!(Memory::of(other.data(), 1).is_some_and(|found| Arc::ptr_eq(&found, &other)));
    let address = data.addr();
    let elsewhere =
        std::thread::spawn(move || Memory::of(std::ptr::without_provenance_mut(address), 1).is_some());
    assert!(!elsewhere.join().expect("no panic"));
    drop(memory);
    assert!(!is_found(256));
}
