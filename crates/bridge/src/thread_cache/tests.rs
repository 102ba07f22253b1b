//! Tests of thread_cache.rs.
//!
//! Values that threads find, and those they must not find.

use super::*;

fn env(number: usize) -> *mut u8 {
    ptr::without_provenance_mut(number << 4)
}

#[test]
fn each_finds_its_own_or_nothing() {
    let here = ThreadCache::<u8, usize>::new();
    let mut values: Vec<_> = (0..4 * ENTRIES).collect();
    let values: Vec<*mut usize> = values.iter_mut().map(ptr::from_mut).collect();
    for (number, &value) in values.iter().enumerate() {
        here.put(env(number + 1), value);
    }
    let found = |number: usize| here.get(env(number + 1));
    let kept: Vec<_> = (0..values.len()).filter(|&number| !found(number).is_null()).collect();
    assert!(kept.len() > ENTRIES / 2 && kept.len() <= ENTRIES, "{} of {}", kept.len(), values.len());
    assert!(kept.iter().all(|&number| found(number) == values[number]));
    kept.iter().for_each(|&number| here.remove(env(number + 1)));
    assert!((0..values.len()).all(|number| found(number).is_null()));
    here.put(env(1), values[0]);
    assert_eq!(found(0), values[0]);
}

#[test]
fn threads_that_come_and_go_never_find_what_is_not_theirs() {
    static HERE: ThreadCache<u8, usize> = ThreadCache::new();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            scope.spawn(move || {
                for round in 0..if cfg!(miri) { 50 } else { 50_000 } {
                    let env = env(1 + thread + 4 * (round % 100));
                    let mut own = round;
                    HERE.put(env, &raw mut own);
                    let found = HERE.get(env);
                    assert!(found.is_null() || found == &raw mut own);
                    HERE.remove(env);
                    assert!(HERE.get(env).is_null());
                }
            });
        }
    });
}
