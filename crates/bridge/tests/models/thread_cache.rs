//! The thread cache, whose entries change hands.
//!
//! Nobody finds what is not its own.

use std::{ptr, sync::Arc};

use corespun_bridge::thread_cache::ThreadCache;
use loom::thread;

use super::seats::explore;

/// Two environments with one entry come and go in threads of their own.
///
/// Guards against: `put` that takes an entry which is not free. Loom orders stores to one word by when they
/// run, so its Relaxed is not weaker here.
#[test]
fn a_place_changes_hands_whole() {
    fn come_and_go(cache: &ThreadCache<u8, usize>, env: usize, value: usize) {
        let env = ptr::without_provenance_mut(env);
        let value = ptr::without_provenance_mut(value);
        cache.put(env, value);
        let found = cache.get(env);
        assert!(found.is_null() || ptr::eq(found, value), "{found:?} instead of {value:?}");
        cache.remove(env);
        assert!(cache.get(env).is_null());
    }
    explore(|| {
        let cache = Arc::new(ThreadCache::new());
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || come_and_go(&other, 1 << 4, 8));
        // With two entries, addresses 1 and 3 have the same one.
        come_and_go(&cache, 3 << 4, 16);
        come_and_go(&cache, 3 << 4, 24);
        thread.join().unwrap();
    });
}
