//! References as numbers: each stored reference is taken once, released once or put aside once.
//! The pointers are never followed, so any addresses serve.

use super::*;

fn store(address: usize) -> BackingStore {
    BackingStore {
        pointer: ptr::without_provenance_mut(address),
        control: ptr::null_mut(),
        unused: ptr::null_mut(),
    }
}

#[test]
fn shared_memory_has_one_number_and_keeps_one_reference() {
    let mut buffers = Buffers::default();
    let id = buffers.share(store(8));
    assert_eq!(buffers.share(store(8)), id);
    assert_eq!(buffers.take_retired(), [(store(8), true)], "the second reference");
    let other = buffers.share(store(16));
    assert_eq!((buffers.count(), other == id), (2, false));
    for _ in 0..2 {
        assert_eq!(buffers.take(id, |reference, shared| (*reference, shared)), Some((store(8), true)));
    }
    buffers.release(id);
    assert_eq!((buffers.take_retired().len(), buffers.count()), (0, 2), "one of two references is left");
    buffers.release(id);
    assert_eq!((buffers.take_retired(), buffers.count()), (vec![(store(8), true)], 1));
    assert!(buffers.take(id, |_, _| ()).is_none());
    assert_ne!(buffers.share(store(8)), id, "the address may be another memory's now");
}

#[test]
fn moved_memory_arrives_once() {
    let mut buffers = Buffers::default();
    let id = buffers.keep(store(8), 100);
    assert_ne!(buffers.keep(store(8), 100), id, "memory that moves is not looked up by its address");
    assert_eq!(buffers.take(id, |reference, shared| (*reference, shared)), Some((store(8), false)));
    assert!(buffers.take(id, |_, _| unreachable!()).is_none());
    buffers.release(id);
    assert_eq!((buffers.take_retired().len(), buffers.count()), (0, 1), "V8 has the reference");
    buffers.release(id);
    buffers.release(u32::MAX);
}

#[test]
fn memory_that_nobody_took_is_put_aside() {
    let mut buffers = Buffers::default();
    let id = buffers.keep(store(8), 100);
    buffers.release(id);
    assert!(has_retired());
    assert_eq!((buffers.take_retired(), buffers.count()), (vec![(store(8), false)], 0));
}

#[test]
fn attached_references_end_with_their_last_clone() {
    let shared = buffers().share(store(1000));
    let moved = buffers().keep(store(2000), 100);
    let has = |id: u32| buffers().held.contains_key(&id);
    let both = Attached::new(vec![shared, moved, u32::MAX]);
    assert_eq!((both.moved(), both.moves()), (100, true));
    let clone = both.clone();
    drop(both);
    assert!(has(shared) && has(moved));
    drop(clone);
    assert!(!has(shared) && !has(moved));
    assert!(!Attached::new(vec![]).moves());
}
