//! Two real threads, one of which looks at a version word as JavaScript does: plainly, without a lock.
//!
//! The order that locked instructions guarantee, and loom's models assume, is checked here.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
};

use crate::{
    tests::{Log, OPEN, value},
    *,
};

const ROUNDS: u64 = if cfg!(miri) { 20 } else { 20_000 };

/// Where two threads meet, again and again.
#[derive(Default)]
struct Meeting([AtomicU64; 2]);

impl Meeting {
    /// Wait for the other thread to come to `at`, a number larger each time.
    fn come(&self, own: usize, at: u64) {
        self.0[own].store(at, Ordering::SeqCst);
        for spins in 1_u64.. {
            if self.0[1 - own].load(Ordering::SeqCst) >= at {
                return;
            }
            if spins.is_multiple_of(100) { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

fn word_of(store: &Store, key: &[u8]) -> usize {
    store.read(key, |_, index, _, _| index).expect("the key was written")
}

/// The word as plainly as JavaScript looks.
fn glance(store: &Store, word: usize) -> u32 {
    // SAFETY: WORDS words lie there as long as the store.
    unsafe { &*store.words().address().cast::<AtomicU32>().add(word) }.load(Ordering::Relaxed)
}

/// Two threads write a key each and then look at the word of the other's: the fence that releasing the
/// shard's lock is must keep both from missing the other's write.
#[test]
fn two_threads_that_write_and_look_never_both_miss_the_other() {
    let store = Store::new(OPEN, || 1);
    let keys: Vec<[u8; 2]> = (0..64).map(|number| [0, number]).collect();
    for key in &keys {
        store.set(key, value(b"before"), Expected::Any).unwrap();
    }
    let other = keys.iter().find(|key| word_of(&store, &key[..]) != word_of(&store, &keys[0])).unwrap();
    let pair = [&keys[0], other];
    let (meeting, missed) = (Meeting::default(), [const { AtomicU64::new(0) }; 2]);
    let run = |own: usize| {
        let word = word_of(&store, pair[1 - own]);
        let mut both_missed = 0;
        for round in 1..=ROUNDS {
            let before = store.words().load(word);
            meeting.come(own, 2 * round - 1);
            store.set(pair[own], value(b"after"), Expected::Any).unwrap();
            let has_missed = glance(&store, word) == before;
            missed[own].store(u64::from(has_missed), Ordering::SeqCst);
            meeting.come(own, 2 * round);
            both_missed += missed[0].load(Ordering::SeqCst) & missed[1].load(Ordering::SeqCst);
        }
        both_missed
    };
    let found = thread::scope(|scope| {
        let first = scope.spawn(|| run(0));
        run(1) + first.join().unwrap()
    });
    assert_eq!(found, 0);
}

/// A thread writes while another begins to watch and then looks at the word: what it misses there comes as a
/// change.
#[test]
fn what_a_look_misses_after_watching_comes_as_a_change() {
    let (store, log, meeting) = (Store::new(OPEN, || 1), Arc::new(Log::default()), Meeting::default());
    let key = b"\0key";
    store.set(key, value(b"before"), Expected::Any).unwrap();
    let word = word_of(&store, key);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                meeting.come(0, 2 * round - 1);
                store.set(key, value(b"after"), Expected::Any).unwrap();
                meeting.come(0, 2 * round);
            }
        });
        for round in 1..=ROUNDS {
            let before = store.words().load(word);
            meeting.come(1, 2 * round - 1);
            let watcher =
                store.watch(Pattern::Key(KeyRef::new(&key[..]).to_key()), 1, log.call(1, 1)).unwrap();
            let has_missed = glance(&store, word) == before;
            meeting.come(1, 2 * round);
            assert!(!has_missed || watcher.take().0.len() == 1, "round {round}");
            store.unwatch(&watcher);
        }
    });
}
