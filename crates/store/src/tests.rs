//! Stores against plain oracles, one thread and several.
//!
//! Small enough for Miri, which interprets some 50,000 to 150,000 basic blocks a second, and a write is
//! thousands of them: where it runs less of a test, the test states what that still shows.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::*;

pub(crate) const OPEN: Limits = Limits {
    entries_max: u64::MAX,
    bytes_max: u64::MAX,
    value_bytes_max: 1 << 20,
    ttl_ms: 0,
    evicts: true,
    is_seeded: false,
};
/// Under Miri still several writes, ends and removals of most of 40 keys.
const STEPS: u64 = if cfg!(miri) { 120 } else { 20_000 };
/// Writes to a bounded store; under Miri still more than any of them has room for.
const WRITES: u64 = if cfg!(miri) { 80 } else { 20_000 };

thread_local! {
    static NOW_MS: std::cell::Cell<u64> = const { std::cell::Cell::new(1) };
}

fn now() -> u64 {
    NOW_MS.get()
}

pub(crate) fn value(bytes: &[u8]) -> NewValue<'_> {
    NewValue { bytes, ttl: Ttl::Default, keeps: None }
}

fn living(bytes: &[u8], ttl: Ttl) -> NewValue<'_> {
    NewValue { ttl, ..value(bytes) }
}

fn get(store: &Store, key: &[u8]) -> Option<Vec<u8>> {
    store.read(key, |entry, _, _, _| entry.bytes.to_vec())
}

/// A small generator, so that a failing seed can be named.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<(u32, Fact)>>);

impl Notify for Log {
    fn leave(&self, ticket: u32, fact: Fact) {
        self.0.lock().unwrap().push((ticket, fact));
    }

    fn wake(&self) {}
}

impl Log {
    pub(crate) fn call(self: &Arc<Self>, thread: u32, ticket: u32) -> Call {
        Call { thread, ticket, notify: Arc::clone(self) as _ }
    }

    fn notified(&self) -> Vec<(u32, Fact)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Random steps on a store and on a map of values and deadlines.
fn check_against_map(limits: Limits, seed: u64) {
    NOW_MS.set(1);
    let store = Store::new(limits, now);
    let mut model: HashMap<Vec<u8>, (Vec<u8>, u64)> = HashMap::new();
    let mut random = Random(seed);
    for step in 0..STEPS {
        let key = format!("\0key {}", random.next(40)).into_bytes();
        let bytes = vec![step as u8; random.next(300) as usize];
        model.retain(|_, (_, until)| *until == 0 || *until > now());
        match random.next(9) {
            0..=2 => {
                let ttl_ms = random.next(3) * 7;
                let ttl = if ttl_ms == 0 { Ttl::Default } else { Ttl::Ms(ttl_ms) };
                store.set(&key, living(&bytes, ttl), Expected::Any).unwrap();
                let until = if ttl_ms == 0 { 0 } else { now() + ttl_ms };
                model.insert(key, (bytes, until));
            }
            3 => {
                let version = store.read(&key, |entry, _, _, _| entry.version).unwrap_or(0);
                let until = model.get(&key).map_or(0, |(_, until)| *until);
                assert!(store.set(&key, living(&bytes, Ttl::Keep), Expected::Version(version)).is_ok());
                assert_eq!(
                    store.set(&key, value(&bytes), Expected::Version(version)),
                    Err(Refusal::Conflict),
                    "seed {seed} step {step}"
                );
                model.insert(key, (bytes, until));
            }
            4 => assert_eq!(store.remove(&key, Expected::Any), Ok(model.remove(&key).is_some())),
            5 => NOW_MS.set(now() + random.next(5)),
            6 if random.next(50) == 0 => {
                store.clear();
                model.clear();
            }
            _ => {
                assert_eq!(
                    get(&store, &key),
                    model.get(&key).map(|(bytes, _)| bytes.clone()),
                    "seed {seed} step {step}"
                );
                assert_eq!(store.has(&key), model.contains_key(&key));
            }
        }
    }
    model.retain(|_, (_, until)| *until == 0 || *until > now());
    let bytes: usize = model.iter().map(|(key, (bytes, _))| key.len() + bytes.len() + 96).sum();
    let stats = store.stats();
    assert_eq!((stats.entries, stats.bytes), (model.len() as u64, bytes as u64), "seed {seed}");
    let mut keys = Vec::new();
    (0..store.parts()).for_each(|part| store.keys(part, |key| keys.push(key.to_vec())));
    keys.sort();
    assert_eq!(
        keys,
        model.into_keys().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    );
}

#[test]
fn a_store_is_a_map_with_deadlines() {
    for seed in 1..if cfg!(miri) { 2 } else { 12 } {
        check_against_map(OPEN, seed);
        // Room for all 40 keys, whichever shard they fall into: evicts nothing.
        check_against_map(Limits { entries_max: 64, ..OPEN }, seed + 100);
        check_against_map(Limits { entries_max: 64, bytes_max: 64 * 600, evicts: false, ..OPEN }, seed + 200);
    }
}

/// Fill a bounded store at random: it never holds more than its limits, and its accounting is that of its
/// entries.
fn check_bounds(limits: Limits) {
    let store = Store::new(limits, now);
    let mut random = Random(77);
    let mut refused = 0;
    for step in 0..WRITES {
        let key = random.next(500).to_le_bytes();
        match store.set(&key, value(&vec![1; random.next(400) as usize]), Expected::Any) {
            Ok(_) => {}
            Err(Refusal::Full | Refusal::TooLarge) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
        if random.next(9) == 0 {
            store.remove(&key, Expected::Any).unwrap();
        }
        // Looking at all shards is what takes an interpreter long.
        if cfg!(miri) && step % 16 != 0 {
            continue;
        }
        let stats = store.stats();
        assert!(
            stats.entries <= limits.entries_max && stats.bytes <= limits.bytes_max,
            "{limits:?} {stats:?} {step}"
        );
    }
    assert!(
        limits.evicts == (store.stats().evictions > 0) && limits.evicts != (refused > 0),
        "{limits:?} {refused}"
    );
    let mut bytes = 0;
    for part in 0..store.parts() {
        let mut keys = Vec::new();
        store.keys(part, |key| keys.push(key.to_vec()));
        bytes += keys.iter().map(|key| key.len() + get(&store, key).unwrap().len() + 96).sum::<usize>();
    }
    assert_eq!(store.stats().bytes, bytes as u64);
}

#[test]
fn a_bounded_store_stays_within_its_bounds() {
    for evicts in [true, false] {
        check_bounds(Limits { entries_max: 1, evicts, ..OPEN });
        check_bounds(Limits { entries_max: 50, evicts, ..OPEN });
        check_bounds(Limits { bytes_max: 5_000, evicts, ..OPEN });
        check_bounds(Limits { entries_max: 20, bytes_max: 4_000, evicts, ..OPEN });
        check_bounds(Limits { entries_max: 1, bytes_max: 4_000, evicts, ..OPEN });
        check_bounds(Limits { entries_max: 2, bytes_max: 1_000, evicts, ..OPEN });
    }
}

#[test]
fn what_is_hot_is_kept() {
    // Under Miri a smaller store, in the same proportions; the scan is still four times what it holds.
    let (hot_keys, rounds) = if cfg!(miri) { (4, 80) } else { (20_u64, 10_000_u64) };
    let store = Store::new(Limits { entries_max: 5 * hot_keys, ..OPEN }, now);
    for round in 0..rounds {
        for hot in 0..hot_keys {
            if get(&store, &hot.to_le_bytes()).is_none() {
                store.set(&hot.to_le_bytes(), value(b"hot"), Expected::Any).unwrap();
            }
        }
        store.set(&(1_000 + round).to_le_bytes(), value(b"once"), Expected::Any).unwrap();
    }
    let stats = store.stats();
    assert!(stats.hits > 50 * stats.misses, "a scan of keys used once has driven out hot ones: {stats:?}");
}

#[test]
fn a_full_store_takes_again_what_has_ended_elsewhere() {
    NOW_MS.set(1);
    let store = Store::new(Limits { entries_max: 10, evicts: false, ..OPEN }, now);
    for key in 0..10_u8 {
        store.set(&[key], living(b"x", Ttl::Ms(5)), Expected::Any).unwrap();
    }
    assert_eq!(store.set(b"more", value(b"x"), Expected::Any), Err(Refusal::Full));
    NOW_MS.set(6);
    assert!(store.set(b"more", value(b"x"), Expected::Any).is_ok());
    assert_eq!((store.stats().entries, store.stats().expirations), (1, 10));
}

#[test]
fn values_too_large_are_refused_and_change_nothing() {
    let store = Store::new(Limits { value_bytes_max: 10, bytes_max: 300, ..OPEN }, now);
    store.set(b"k", value(b"old"), Expected::Any).unwrap();
    assert_eq!(store.set(b"k", value(&[0; 11]), Expected::Any), Err(Refusal::TooLarge));
    assert_eq!(store.set(&[7; 250], value(b"x"), Expected::Any), Err(Refusal::TooLarge));
    assert_eq!(get(&store, b"k").as_deref(), Some(&b"old"[..]));
}

#[test]
fn a_closed_store_refuses_and_is_empty() {
    let (store, log) = (Store::new(OPEN, now), Arc::new(Log::default()));
    store.set(b"k", value(b"v"), Expected::Any).unwrap();
    store.watch(Pattern::Key(KeyRef::new(b"k").to_key()), 5, log.call(1, 1)).unwrap();
    assert_eq!(store.compute_begin(b"c", log.call(1, 2)), Begin::Lead);
    assert_eq!(store.compute_begin(b"c", log.call(2, 3)), Begin::Wait);
    store.close();
    assert_eq!(log.notified(), [(1, Fact::Look), (1, Fact::Closed), (3, Fact::Look)]);
    assert_eq!(store.set(b"k", value(b"v"), Expected::Any), Err(Refusal::Closed));
    assert_eq!(store.remove(b"k", Expected::Any), Err(Refusal::Closed));
    assert_eq!((get(&store, b"k"), store.is_empty()), (None, true));
    assert!(store.watch(Pattern::Key(KeyRef::new(b"k").to_key()), 5, log.call(1, 1)).is_none());
}

#[test]
fn changes_arrive_in_order_and_a_gap_stands_for_those_that_did_not_fit() {
    NOW_MS.set(1);
    let (store, log) = (Store::new(OPEN, now), Arc::new(Log::default()));
    let watcher = store.watch(Pattern::Prefix(b"\0a"[..].into()), 4, log.call(1, 9)).unwrap();
    store.set(b"\0ab", living(b"1", Ttl::Ms(3)), Expected::Any).unwrap();
    store.set(b"\0b", value(b"1"), Expected::Any).unwrap();
    // The same characters, two bytes each.
    store.set(b"\x01a\0\x34\x12", value(b"1"), Expected::Any).unwrap();
    store.remove(b"\x01a\0\x34\x12", Expected::Any).unwrap();
    assert_eq!(log.notified(), [(9, Fact::Look)], "notified once per emptying");
    NOW_MS.set(10);
    assert_eq!(store.len(), 1);
    let (events, missed) = watcher.take();
    let seen: Vec<_> = events.iter().map(|event| (event.change, &*event.key)).collect();
    let wide = &b"\x01a\0\x34\x12"[..];
    assert_eq!(
        (seen, missed),
        (
            vec![
                (Change::Set, &b"\0ab"[..]),
                (Change::Set, wide),
                (Change::Delete, wide),
                (Change::Expire, b"\0ab")
            ],
            0
        )
    );
    for _ in 0..7 {
        store.set(b"\0a", value(b"1"), Expected::Any).unwrap();
    }
    let (events, missed) = watcher.take();
    assert_eq!((events.len(), missed), (4, 3));
    store.unwatch(&watcher);
    store.clear();
    assert_eq!(watcher.take().0.len(), 0);
}

#[test]
fn one_computes_and_whoever_fails_or_dies_is_followed() {
    let (store, log) = (Store::new(OPEN, now), Arc::new(Log::default()));
    let begin = |thread, ticket| store.compute_begin(b"k", log.call(thread, ticket));
    assert_eq!([begin(1, 1), begin(2, 2), begin(3, 3), begin(4, 4), begin(5, 5)][1..], [Begin::Wait; 4]);
    store.compute_end(b"k", 1, 1, false);
    assert_eq!(log.notified(), [(2, Fact::Lead)], "the leader failed");
    store.thread_ended(3);
    store.thread_ended(2);
    assert_eq!(log.notified(), [(4, Fact::Lead)], "a waiter died, then the leader");
    store.compute_end(b"k", 5, 5, false);
    store.compute_end(b"k", 4, 4, true);
    assert_eq!(log.notified(), [], "the last waiter had been cancelled");
    assert_eq!(begin(6, 6), Begin::Lead);
    assert_eq!(begin(7, 7), Begin::Wait);
    store.compute_end(b"k", 6, 6, true);
    assert_eq!(log.notified(), [(7, Fact::Look)]);
    assert_eq!(begin(8, 8), Begin::Lead);
    store.compute_end(b"k", 8, 8, false);
    assert_eq!(begin(9, 9), Begin::Lead, "nobody was there to follow");
}

#[test]
fn threads_that_add_lose_nothing() {
    let store = Arc::new(Store::new(OPEN, || 1));
    let rounds = if cfg!(miri) { 20 } else { 3_000_u64 };
    let adders: Vec<_> = (0..3)
        .map(|_| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                for _ in 0..rounds {
                    loop {
                        let read = |entry: &Entry, _, _, _| {
                            (entry.version, u64::from_le_bytes(entry.bytes[..].try_into().unwrap()))
                        };
                        let (version, sum) = store.read(b"sum", read).unwrap_or((0, 0));
                        let next = (sum + 1).to_le_bytes();
                        if store.set(b"sum", value(&next), Expected::Version(version)).is_ok() {
                            break;
                        }
                    }
                }
            })
        })
        .collect();
    adders.into_iter().for_each(|adder| adder.join().unwrap());
    assert_eq!(get(&store, b"sum").unwrap(), (3 * rounds).to_le_bytes());
}

/// One operation as a thread saw it: between which ticks of a common clock, and what came of it.
#[derive(Clone, Debug)]
struct Seen {
    from: u64,
    to: u64,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Get(Option<u64>),
    Set(u64),
    /// Expected, written, whether it was.
    Swap(Option<u64>, u64, bool),
}

/// Whether an order of the operations exists that one thread could have seen (Wing and Gong's search).
fn is_linearizable(seen: &[Seen]) -> bool {
    let mut failed: BTreeMap<(u64, Option<u64>), ()> = BTreeMap::new();
    search(seen, 0, None, &mut failed)
}

fn search(seen: &[Seen], done: u64, now: Option<u64>, failed: &mut BTreeMap<(u64, Option<u64>), ()>) -> bool {
    if done.count_ones() as usize == seen.len() {
        return true;
    }
    if failed.contains_key(&(done, now)) {
        return false;
    }
    let open = || (0..seen.len()).filter(|index| done & 1 << index == 0);
    let first_end = open().map(|index| seen[index].to).min().unwrap_or(u64::MAX);
    for index in open().filter(|&index| seen[index].from <= first_end) {
        let next = match seen[index].what {
            What::Get(found) if found == now => Some(now),
            What::Set(written) => Some(Some(written)),
            What::Swap(expected, written, true) if expected == now => Some(Some(written)),
            What::Swap(expected, _, false) if expected != now => Some(now),
            _ => None,
        };
        if next.is_some_and(|next| search(seen, done | 1 << index, next, failed)) {
            return true;
        }
    }
    failed.insert((done, now), ());
    false
}

#[test]
fn what_threads_see_of_a_key_is_linearizable() {
    for round in 0..if cfg!(miri) { 3 } else { 400_u64 } {
        let store = Arc::new(Store::new(OPEN, || 1));
        let clock = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (1..4_u64)
            .map(|number| {
                let (store, clock) = (Arc::clone(&store), Arc::clone(&clock));
                thread::spawn(move || {
                    let mut random = Random(round * 31 + number);
                    let number_of = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
                    (0..7_u64)
                        .map(|step| {
                            let mine = number * 100 + step;
                            let from = clock.fetch_add(1, Ordering::SeqCst);
                            let what = match random.next(3) {
                                0 => What::Get(store.read(b"k", |entry, _, _, _| number_of(&entry.bytes))),
                                1 => {
                                    store.set(b"k", value(&mine.to_le_bytes()), Expected::Any).unwrap();
                                    What::Set(mine)
                                }
                                _ => {
                                    let read =
                                        |entry: &Entry, _, _, _| (entry.version, number_of(&entry.bytes));
                                    let old = store.read(b"k", read);
                                    let expected = Expected::Version(old.map_or(0, |(version, _)| version));
                                    let done = store.set(b"k", value(&mine.to_le_bytes()), expected).is_ok();
                                    What::Swap(old.map(|(_, number)| number), mine, done)
                                }
                            };
                            Seen { from, to: clock.fetch_add(1, Ordering::SeqCst), what }
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let seen: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert!(is_linearizable(&seen), "round {round}: {seen:#?}");
    }
}

/// Whatever the lengths of what is written one over the other, and whoever still holds a long one.
#[test]
fn values_written_over_others_are_whole() {
    let store = Store::new(OPEN, || 1);
    let lengths =
        [0, 1, 40, 100, 60, LOCKED_COPY_MAX, LOCKED_COPY_MAX + 1, LOCKED_COPY_MAX - 1, 3, 40_000, 30_000];
    let mut held: Vec<(Bytes, u8)> = Vec::new();
    for (number, &length) in lengths.iter().chain(lengths.iter().rev()).enumerate() {
        let text = vec![number as u8; length];
        store.set(b"key", value(&text), Expected::Any).unwrap();
        let (bytes, whole) =
            store.read(b"key", |entry, _, _, _| (entry.bytes.clone(), entry.bytes[..] == text)).unwrap();
        assert!(whole);
        held.push((bytes, number as u8));
        assert!(held.iter().all(|(bytes, number)| bytes.iter().all(|byte| byte == number)));
        assert_eq!(store.stats().bytes, 3 + length as u64 + shard::ENTRY_BYTES);
    }
}

#[test]
fn a_channel_hands_each_message_to_one_taker_in_order() {
    let (channel, log) = (Channel::new(2), Arc::new(Log::default()));
    let message = |byte: u8| Message { bytes: [byte].into(), keeps: None };
    let byte = |take| match take {
        Take::Message(message) => message.bytes[0],
        _ => panic!("there is no message"),
    };
    assert!(matches!(channel.take(Some(log.call(1, 1))), Take::Queued));
    assert_eq!(channel.put(message(1), None), Put::Done);
    assert_eq!(log.notified(), [(1, Fact::Granted)]);
    assert_eq!([channel.put(message(2), None), channel.put(message(3), None)], [Put::Done; 2]);
    assert_eq!(channel.put(message(4), None), Put::Full);
    assert_eq!(channel.put(message(4), Some(log.call(2, 2))), Put::Queued);
    channel.thread_ended(1);
    assert_eq!(byte(channel.take(None)), 1, "the dead taker's message is the first again");
    assert_eq!(log.notified(), [], "and displaced none: the queue is as full as before");
    assert_eq!(byte(channel.take(None)), 2);
    assert_eq!(log.notified(), [(2, Fact::Granted)]);
    assert_eq!([byte(channel.take(None)), byte(channel.take(None))], [3, 4]);
    assert!(matches!(channel.take(None), Take::Empty));
    assert_eq!(channel.put(message(5), None), Put::Done);
    channel.close();
    assert_eq!(channel.put(message(6), None), Put::Closed);
    assert_eq!(byte(channel.take(None)), 5);
    assert!(matches!(channel.take(Some(log.call(1, 3))), Take::Closed));
}

/// A thread that goes on in the moment in which it is woken.
struct Eager<Step>(Step);

impl<Step: Fn() + Send + Sync> Notify for Eager<Step> {
    fn leave(&self, _: u32, _: Fact) {}

    fn wake(&self) {
        (self.0)();
    }
}

fn eager(step: impl Fn() + Send + Sync + 'static) -> Call {
    Call { thread: 1, ticket: 1, notify: Arc::new(Eager(step)) }
}

#[test]
fn a_taker_that_is_woken_finds_its_message_and_no_lock() {
    let channel = Arc::new(Channel::new(1));
    let (sender, fetched) = (Arc::clone(&channel), Arc::new(Mutex::new(None)));
    let found = Arc::clone(&fetched);
    let call = eager(move || *found.lock().unwrap() = channel.fetch(1, 1).map(|message| message.bytes[0]));
    assert!(matches!(sender.take(Some(call)), Take::Queued));
    assert_eq!(sender.put(Message { bytes: [7].into(), keeps: None }, None), Put::Done);
    assert_eq!(*fetched.lock().unwrap(), Some(7));
}

#[test]
fn a_holder_that_is_woken_has_the_permit_and_finds_no_lock() {
    let lock = Arc::new(Semaphore::new(1));
    assert_eq!(lock.try_acquire(2, 1, 1), Acquire::Granted);
    let woken = Arc::clone(&lock);
    assert_eq!(lock.acquire(eager(move || assert!(woken.release(1, 1))), 1, false), Acquire::Queued);
    assert!(lock.release(2, 1));
    assert_eq!(lock.counts(), (1, 0));
}

#[test]
fn messages_given_back_by_dead_takers_do_not_free_capacity_for_more() {
    let (channel, log) = (Channel::new(1), Arc::new(Log::default()));
    let message = |byte: u8| Message { bytes: [byte].into(), keeps: None };
    for ticket in 1..3 {
        assert!(matches!(channel.take(Some(log.call(1, ticket))), Take::Queued));
    }
    assert_eq!([1, 2, 3].map(|byte| channel.put(message(byte), None)), [Put::Done; 3]);
    channel.thread_ended(1);
    assert_eq!(channel.len(), 3, "nothing is lost");
    assert_eq!(channel.put(message(4), Some(log.call(2, 4))), Put::Queued);
    log.notified();
    for (taken, left) in [(1, 2), (2, 1), (3, 1), (4, 0)] {
        let Take::Message(message) = channel.take(None) else { panic!("{taken} is there") };
        assert_eq!((message.bytes[0], channel.len()), (taken, left));
        assert_eq!(log.notified(), if taken == 3 { vec![(4, Fact::Granted)] } else { vec![] });
    }
}

#[test]
fn a_thread_that_blocks_is_notified() {
    let parker = Arc::new(Parker::default());
    assert_eq!(parker.wait(1, std::time::Duration::ZERO, false), None);
    let notified = {
        let parker = Arc::clone(&parker);
        thread::spawn(move || {
            parker.leave(2, Fact::Granted);
            parker.wake();
        })
    };
    let fact = std::iter::repeat_with(|| parker.wait(2, std::time::Duration::from_millis(10), true))
        .find_map(|fact| fact);
    notified.join().unwrap();
    assert_eq!((fact, parker.forget(2)), (Some(Fact::Granted), None));
}
