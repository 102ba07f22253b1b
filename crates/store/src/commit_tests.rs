//! Commits of several keys: against plain maps, by several threads, and at every limit.
//!
//! What is refused must have changed nothing, in any of its stores.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{collections::BTreeMap, sync::Arc, thread};

use crate::{
    tests::{Log, OPEN, Random, value},
    *,
};

const STEPS: u64 = if cfg!(miri) { 40 } else { 5000 };
const TRANSFERS: u64 = if cfg!(miri) { 12 } else { 5000 };

thread_local! {
    static NOW_MS: std::cell::Cell<u64> = const { std::cell::Cell::new(1) };
}

fn now() -> u64 {
    NOW_MS.get()
}

fn store(limits: Limits) -> Arc<Store> {
    Arc::new(Store::new(limits, now))
}

fn step(store: &Arc<Store>, key: &[u8], expected: Expected, action: Action) -> Step {
    Step { store: Arc::clone(store), key: KeyRef::new(key).to_key(), expected, action }
}

fn set(bytes: &[u8]) -> Action {
    Action::Set { bytes: Bytes::new(bytes), ttl: Ttl::Default, keeps: None }
}

fn get(store: &Store, key: &[u8]) -> Option<(u64, Vec<u8>)> {
    store.read(key, |entry, _, _, _| (entry.version, entry.bytes.to_vec()))
}

fn version(store: &Store, key: &[u8]) -> Expected {
    Expected::Version(get(store, key).map_or(0, |(version, _)| version))
}

fn refused(step: usize, refusal: Refusal) -> Result<(), Refused> {
    Err(Refused { step, refusal })
}

/// Random commits of up to four keys in two stores, some with versions that never were.
#[test]
fn commits_agree_with_plain_maps() {
    for limits in [OPEN, Limits { entries_max: 30, evicts: false, ..OPEN }] {
        let stores = [store(limits), store(OPEN)];
        let mut models = [BTreeMap::new(), BTreeMap::new()];
        let mut random = Random(7);
        for number in 0..STEPS {
            let mut steps = Vec::new();
            let mut next = models.clone();
            let mut conflicts = false;
            let mut keys: Vec<u64> = (0..1 + random.next(4)).map(|_| random.next(40)).collect();
            keys.sort_unstable();
            keys.dedup();
            if random.next(2) == 0 {
                keys.reverse();
            }
            for key in keys {
                let which = (key % 2) as usize;
                let (store, name) = (&stores[which], key.to_le_bytes());
                let mut expected = if random.next(2) == 0 { Expected::Any } else { version(store, &name) };
                if random.next(12) == 0 {
                    expected = Expected::Version(u64::MAX);
                    conflicts = true;
                }
                let action = match random.next(4) {
                    0 => Action::Check,
                    1 => {
                        next[which].remove(&key);
                        Action::Remove
                    }
                    _ => {
                        next[which].insert(key, number);
                        set(&number.to_le_bytes())
                    }
                };
                steps.push(step(store, &name, expected, action));
            }
            let outcome = commit(steps);
            if conflicts {
                assert!(matches!(outcome, Err(Refused { refusal: Refusal::Conflict, .. })), "{outcome:?}");
            } else if next[0].len() as u64 > limits.entries_max && next[0].len() > models[0].len() {
                assert!(matches!(outcome, Err(Refused { refusal: Refusal::Full, .. })), "{outcome:?}");
            } else {
                assert_eq!(outcome, Ok(()));
                models = next;
            }
            for (store, model) in stores.iter().zip(&models) {
                assert_eq!(store.len(), model.len() as u64, "step {number}");
                for (key, number) in model {
                    let found = get(store, &key.to_le_bytes()).map(|(_, bytes)| bytes);
                    assert_eq!(found, Some(number.to_le_bytes().to_vec()));
                }
            }
        }
    }
}

/// Moves one from an account to another, in different stores, as often as it takes.
fn transfer(stores: &[Arc<Store>; 2], random: &mut Random) {
    let [from, to] = [random.next(4), random.next(4)].map(|number| number.to_le_bytes());
    let pair = if random.next(2) == 0 { [0, 1] } else { [1, 0] };
    loop {
        let read = |which: usize, key: &[u8]| get(&stores[which], key).unwrap();
        let [(from_version, from_bytes), (to_version, to_bytes)] = [read(pair[0], &from), read(pair[1], &to)];
        let number = |bytes: Vec<u8>| i64::from_le_bytes(bytes.try_into().unwrap());
        let steps = vec![
            step(
                &stores[pair[0]],
                &from,
                Expected::Version(from_version),
                set(&(number(from_bytes) - 1).to_le_bytes()),
            ),
            step(
                &stores[pair[1]],
                &to,
                Expected::Version(to_version),
                set(&(number(to_bytes) + 1).to_le_bytes()),
            ),
        ];
        match commit(steps) {
            Ok(()) => return,
            Err(refused) => assert_eq!(refused.refusal, Refusal::Conflict),
        }
    }
}

#[test]
fn threads_that_transfer_between_stores_neither_lose_nor_lock() {
    let stores = [store(OPEN), store(OPEN)];
    for store in &stores {
        for number in 0..4_u64 {
            store.set(&number.to_le_bytes(), value(&0_i64.to_le_bytes()), Expected::Any).unwrap();
        }
    }
    let threads: Vec<_> = (1..=3)
        .map(|seed| {
            let stores = stores.clone();
            thread::spawn(move || {
                let mut random = Random(seed);
                for _ in 0..TRANSFERS {
                    transfer(&stores, &mut random);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let sum: i64 = stores
        .iter()
        .flat_map(|store| (0..4_u64).map(|number| get(store, &number.to_le_bytes()).unwrap().1))
        .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()))
        .sum();
    assert_eq!(sum, 0);
}

/// Two keys are always written together; a reader whose first word is unchanged has both of one commit.
#[test]
fn what_is_read_under_an_unchanged_word_is_of_one_commit() {
    let used = store(OPEN);
    let write = |number: u64| {
        let bytes = number.to_le_bytes();
        commit(vec![
            step(&used, b"a", Expected::Any, set(&bytes)),
            step(&used, b"b", Expected::Any, set(&bytes)),
        ])
        .unwrap();
    };
    write(0);
    thread::scope(|scope| {
        scope.spawn(|| (1..=TRANSFERS).for_each(write));
        for _ in 0..TRANSFERS {
            let read = |key: &[u8]| {
                used.read(key, |entry, index, word, _| (entry.bytes.to_vec(), index, word)).unwrap()
            };
            let ((first, index, word), (second, ..)) = (read(b"a"), read(b"b"));
            if used.words().load(index) == word {
                assert_eq!(first, second);
            }
        }
    });
}

#[test]
fn a_refused_commit_has_changed_nothing_in_any_store() {
    let small = store(Limits { entries_max: 2, evicts: false, ..OPEN });
    let (other, closed) = (store(OPEN), store(OPEN));
    closed.close();
    small.set(b"old", value(b"1"), Expected::Any).unwrap();
    let both = |step: Step| commit(vec![self::step(&other, b"k", Expected::Any, set(b"x")), step]);
    let huge = vec![0; 1 << 21];
    assert_eq!(both(step(&closed, b"k", Expected::Any, set(b"x"))), refused(1, Refusal::Closed));
    assert_eq!(both(step(&small, b"old", Expected::Any, set(&huge))), refused(1, Refusal::TooLarge));
    assert_eq!(both(step(&small, b"old", Expected::Version(9), set(&huge))), refused(1, Refusal::Conflict));
    let full = vec![
        step(&other, b"k", Expected::Any, set(b"x")),
        step(&small, b"a", Expected::Any, set(b"x")),
        step(&small, b"b", Expected::Any, set(b"x")),
    ];
    assert_eq!(commit(full), refused(1, Refusal::Full));
    assert_eq!((get(&other, b"k"), small.len()), (None, 1));
    // What one step removes is room for another.
    let exchange = vec![
        step(&small, b"a", Expected::Any, set(b"x")),
        step(&small, b"b", Expected::Any, set(b"x")),
        step(&small, b"old", Expected::Any, Action::Remove),
    ];
    assert_eq!(commit(exchange), Ok(()));
    assert_eq!((small.len(), get(&small, b"old")), (2, None));
    assert_eq!(small.set(b"c", value(b"x"), Expected::Any), Err(Refusal::Full));
}

#[test]
fn an_entry_that_has_expired_is_another_version_and_makes_room() {
    let used = store(Limits { entries_max: 2, evicts: false, ..OPEN });
    let short = |ttl| Action::Set { bytes: Bytes::new(b"x"), ttl, keeps: None };
    commit(vec![
        step(&used, b"a", Expected::Version(0), short(Ttl::Ms(10))),
        step(&used, b"b", Expected::Version(0), short(Ttl::Ms(10))),
    ])
    .unwrap();
    let before = version(&used, b"a");
    commit(vec![step(&used, b"b", Expected::Any, short(Ttl::Keep))]).unwrap();
    NOW_MS.set(20);
    assert_eq!(commit(vec![step(&used, b"a", before, Action::Check)]), refused(0, Refusal::Conflict));
    commit(vec![
        step(&used, b"c", Expected::Version(0), set(b"x")),
        step(&used, b"d", Expected::Version(0), set(b"x")),
    ])
    .unwrap();
    assert_eq!((used.len(), get(&used, b"b")), (2, None));
}

#[test]
fn what_a_commit_evicts_and_removes_is_watched() {
    let used = store(Limits { entries_max: 2, ..OPEN });
    let log = Arc::new(Log::default());
    let watcher = used.watch(Pattern::Prefix([].into()), 100, log.call(1, 1)).unwrap();
    let keys: Vec<[u8; 2]> = (0..5).map(|number| [0, b'a' + number]).collect();
    commit(keys.iter().map(|key| step(&used, key, Expected::Any, set(b"x"))).collect()).unwrap();
    commit(vec![
        step(&used, &keys[0], Expected::Any, Action::Remove),
        step(&used, &keys[4], Expected::Any, Action::Remove),
    ])
    .unwrap();
    let (events, missed) = watcher.take();
    let count = |change| events.iter().filter(|event| event.change == change).count();
    assert_eq!((count(Change::Set), missed), (5, 0));
    assert_eq!(count(Change::Evict) as u64 + count(Change::Delete) as u64 + used.len(), 5);
    assert!(used.len() <= 2);
}

#[test]
fn watchers_of_a_key_are_found_by_it_and_leave_alone() {
    let (used, log) = (store(OPEN), Arc::new(Log::default()));
    let watch = |thread, key: &[u8]| {
        used.watch(Pattern::Key(KeyRef::new(key).to_key()), 10, log.call(thread, 1)).unwrap()
    };
    let (first, second, other, dead) = (watch(1, b"a"), watch(1, b"a"), watch(1, b"b"), watch(2, b"b"));
    used.unwatch(&first);
    used.unwatch(&first);
    used.thread_ended(2);
    for key in [b"a", b"b"] {
        used.set(key, value(b"x"), Expected::Any).unwrap();
    }
    used.clear();
    let seen = [&first, &second, &other, &dead].map(|watcher| watcher.take().0.len());
    assert_eq!(seen, [0, 2, 2, 0]);
    used.unwatch(&second);
    used.unwatch(&other);
    used.set(b"a", value(b"x"), Expected::Any).unwrap();
    assert!(second.take().0.is_empty());
}
