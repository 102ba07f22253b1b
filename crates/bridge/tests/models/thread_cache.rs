//! The thread cache, whose places change hands.
//!
//! Nobody finds what is not its own.

use std::{ptr, sync::Arc};

use corespun_bridge::thread_cache::ThreadCache;
use loom::thread;

use super::seats::explore;

/// Two environments with one place come and go in threads of their own.
///
/// Guards against: `put` that takes a place which is not free. Loom orders stores to one word by when they
/// run, so its Relaxed is no weaker here.
#[test]
fn a_place_changes_hands_whole() {
    fn come_and_go(cache: &ThreadCache<u8, usize>, env: usize, thing: usize) {
        let env = ptr::without_provenance_mut(env);
        let thing = ptr::without_provenance_mut(thing);
        cache.put(env, thing);
        let found = cache.get(env);
        assert!(found.is_null() || ptr::eq(found, thing), "{found:?} instead of {thing:?}");
        cache.remove(env);
        assert!(cache.get(env).is_null());
    }
    explore(|| {
        let cache = Arc::new(ThreadCache::new());
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || come_and_go(&other, 1 << 4, 8));
        // With two places, addresses 1 and 3 have the same one.
        come_and_go(&cache, 3 << 4, 16);
        come_and_go(&cache, 3 << 4, 24);
        thread.join().unwrap();
    });
}
