//! Files of stores: groups against a plain map, failures of the table, and real files.
//!
//! The table of these tests is a map whose next commits can be made to fail; real files are in `real`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::BTreeMap,
    io::Cursor,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use super::{
    journal::{Group, Journal, Record},
    pages,
    problem::Problem,
    table::Table,
    writer,
};
use crate::{
    Action, Bytes, Call, Expected, Fact, KeyRef, NewValue, Parker, Refusal, Step, Store, Ttl, commit,
    layout::{Flush, Stage},
    tests::{OPEN, value},
};

type Pair = (Vec<u8>, Vec<u8>);
type Entries = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

const CLOCK_MS: u64 = 1000;
const WALL_MS: u64 = 1_000_000;
const STEPS: u64 = if cfg!(miri) { 60 } else { 5000 };

/// A table in memory.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    entries: Entries,
    commits: u64,
    is_full: bool,
    /// Checked after each commit.
    invariant: Option<fn(&Entries)>,
}

impl Table for Fake {
    fn commit(&mut self, group: &Group) -> Result<(), Problem> {
        let mut inner = self.0.lock().unwrap();
        if inner.is_full {
            return Err(Problem::DiskFull);
        }
        inner.commits += 1;
        if group.cleared {
            inner.entries.clear();
        }
        for (key, change) in &group.changes {
            match change {
                Some(Record { bytes, expires_ms }) => {
                    inner.entries.insert(key.to_vec(), (bytes.to_vec(), *expires_ms));
                }
                None => drop(inner.entries.remove(&**key)),
            }
        }
        if let Some(invariant) = inner.invariant {
            invariant(&inner.entries);
        }
        Ok(())
    }
}

fn with_store(bytes_max: u64, body: impl FnOnce(&Store, &Journal, &Fake)) -> (Result<(), Problem>, Fake) {
    with_shared_store(bytes_max, |store, journal, table| body(store, journal, table))
}

/// A store whose journal a thread writes into a fake table, until `body` returns.
fn with_shared_store(
    bytes_max: u64,
    body: impl FnOnce(&Arc<Store>, &Journal, &Fake),
) -> (Result<(), Problem>, Fake) {
    let journal = Arc::new(Journal::new("fake".into(), bytes_max, || CLOCK_MS, || WALL_MS));
    let store = Arc::new(Store::with_journal(OPEN, || CLOCK_MS, Some(Arc::clone(&journal))));
    let table = Fake::default();
    journal.opened();
    let outcome = thread::scope(|scope| {
        let (mut written, journal) = (table.clone(), &journal);
        let thread = scope.spawn(move || {
            let outcome = writer::write(journal, &mut written);
            journal.ended(outcome.clone().err());
            outcome
        });
        body(&store, journal, &table);
        store.close();
        thread.join().unwrap()
    });
    (outcome, table)
}

/// Flushes and waits; `None` if nothing was missing.
fn flush(journal: &Journal) -> Option<Fact> {
    let parker = Arc::new(Parker::default());
    let call = Call { thread: 1, ticket: 1, notify: Arc::clone(&parker) as _ };
    if journal.flush(call) != Flush::Waits {
        return None;
    }
    loop {
        if let Some(fact) = parker.wait(1, Duration::from_secs(1), false) {
            return Some(fact);
        }
    }
}

#[test]
fn after_each_flush_the_table_has_what_the_store_has() {
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let (outcome, _) = with_store(u64::MAX, |store, journal, table| {
        let mut model = Entries::new();
        for step in 0..STEPS {
            let key = format!("\0{}", random(20)).into_bytes();
            let bytes = vec![step as u8; random(if step % 100 == 0 { 70_000 } else { 50 }) as usize];
            match random(40) {
                0 => {
                    store.clear();
                    model.clear();
                }
                1..=10 => {
                    assert_eq!(store.remove(&key, Expected::Any), Ok(model.remove(&key).is_some()));
                }
                11..=14 => {
                    table.0.lock().unwrap().is_full = random(2) == 0;
                }
                15..=18 => {
                    let (fact, is_full) = (flush(journal), table.0.lock().unwrap().is_full);
                    assert!(fact != Some(Fact::Failed) || is_full);
                    if fact != Some(Fact::Failed) {
                        assert_eq!(table.0.lock().unwrap().entries, model, "step {step}");
                    }
                }
                kind => {
                    let ttl = if kind > 35 { Ttl::Ms(60) } else { Ttl::Default };
                    store.set(&key, NewValue { ttl, ..value(&bytes) }, Expected::Any).unwrap();
                    model.insert(key, (bytes, if kind > 35 { WALL_MS + 60 } else { 0 }));
                }
            }
        }
        table.0.lock().unwrap().is_full = false;
        flush(journal);
        assert_eq!(table.0.lock().unwrap().entries, model);
    });
    assert_eq!(outcome, Ok(()));
}

fn number(entries: &Entries, key: &[u8]) -> u64 {
    entries.get(key).map_or(0, |(bytes, _)| u64::from_le_bytes(bytes[..].try_into().unwrap()))
}

#[test]
fn a_group_is_a_cut_in_the_order_of_all_changes() {
    let (outcome, table) = with_store(u64::MAX, |store, _, table| {
        table.0.lock().unwrap().invariant = Some(|entries| {
            let (first, second) = (number(entries, b"\0a"), number(entries, b"\0b"));
            assert!(first == second || first == second + 1, "{first} {second}");
        });
        for step in 1..=STEPS {
            for key in [b"\0a", b"\0b"] {
                store.set(key, value(&step.to_le_bytes()), Expected::Any).unwrap();
            }
        }
    });
    assert_eq!(outcome, Ok(()));
    assert_eq!(number(&table.0.lock().unwrap().entries, b"\0b"), STEPS, "close writes the rest");
}

#[test]
fn a_group_has_all_of_a_commit_or_nothing() {
    let (outcome, table) = with_shared_store(u64::MAX, |store, _, table| {
        table.0.lock().unwrap().invariant = Some(|entries| {
            assert_eq!(number(entries, b"\0a"), number(entries, b"\0b"));
            assert_eq!(entries.contains_key(&b"\0a"[..]), entries.contains_key(&b"\0b"[..]));
        });
        for number in 1..=STEPS {
            let action = || match number % 5 {
                0 => Action::Remove,
                _ => Action::Set { bytes: Bytes::new(&number.to_le_bytes()), ttl: Ttl::Default, keeps: None },
            };
            let step = |key: &[u8]| Step {
                store: Arc::clone(store),
                key: KeyRef::new(key).to_key(),
                expected: Expected::Any,
                action: action(),
            };
            commit(vec![step(b"\0a"), step(b"\0b")]).unwrap();
            if number % 100 == 0 {
                // What has failed is written with what follows.
                let mut inner = table.0.lock().unwrap();
                inner.is_full = !inner.is_full;
            }
        }
        table.0.lock().unwrap().is_full = false;
    });
    assert_eq!(outcome, Ok(()));
    assert_eq!(
        number(&table.0.lock().unwrap().entries, b"\0b"),
        if STEPS.is_multiple_of(5) { 0 } else { STEPS }
    );
}

#[test]
fn a_commit_is_refused_while_too_many_changes_wait() {
    let (outcome, _) = with_shared_store(500, |store, journal, table| {
        table.0.lock().unwrap().is_full = true;
        let step = |key: &[u8], action| Step {
            store: Arc::clone(store),
            key: KeyRef::new(key).to_key(),
            expected: Expected::Any,
            action,
        };
        let set = || Action::Set { bytes: Bytes::new(&[1; 600]), ttl: Ttl::Ms(60), keeps: None };
        commit(vec![step(b"\0a", set()), step(b"\0b", set())]).unwrap();
        let refused = commit(vec![step(b"\0b", Action::Remove), step(b"\0c", set())]).unwrap_err();
        assert_eq!((refused.step, refused.refusal), (1, Refusal::Behind));
        assert!(store.has(b"\0b"));
        commit(vec![step(b"\0b", Action::Remove), step(b"\0d", Action::Remove)]).unwrap();
        table.0.lock().unwrap().is_full = false;
        flush(journal);
        let entries = table.0.lock().unwrap().entries.clone();
        assert_eq!(
            entries.iter().map(|(key, (_, at))| (&key[..], *at)).collect::<Vec<_>>(),
            [(&b"\0a"[..], WALL_MS + 60)]
        );
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_full_table_fails_the_flush_and_loses_nothing() {
    let (outcome, table) = with_store(u64::MAX, |store, journal, table| {
        store.set(b"\0a", value(b"1"), Expected::Any).unwrap();
        assert_eq!(flush(journal).unwrap_or(Fact::Durable), Fact::Durable);
        table.0.lock().unwrap().is_full = true;
        store.set(b"\0a", value(b"2"), Expected::Any).unwrap();
        store.set(b"\0b", value(b"3"), Expected::Any).unwrap();
        assert_eq!(flush(journal), Some(Fact::Failed));
        assert_eq!(journal.problem(), Some(Problem::DiskFull));
        store.set(b"\0a", value(b"4"), Expected::Any).unwrap();
        assert_eq!(flush(journal), Some(Fact::Failed));
        table.0.lock().unwrap().is_full = false;
        assert_eq!(flush(journal).unwrap_or(Fact::Durable), Fact::Durable);
        let entries = table.0.lock().unwrap().entries.clone();
        assert_eq!(entries[&b"\0a"[..]].0, b"4");
        assert_eq!(entries[&b"\0b"[..]].0, b"3");
        assert_eq!(journal.problem(), None);
        assert_eq!(flush(journal), None, "nothing is missing");
        table.0.lock().unwrap().is_full = true;
        store.remove(b"\0b", Expected::Any).unwrap();
    });
    assert_eq!(outcome, Err(Problem::DiskFull), "the last changes were not written");
    assert!(table.0.lock().unwrap().entries.contains_key(&b"\0b"[..]));
}

#[test]
fn writes_are_refused_while_too_many_wait_and_deletions_are_not() {
    let (outcome, _) = with_store(1000, |store, journal, table| {
        table.0.lock().unwrap().is_full = true;
        let mut count = 0_u32;
        while store.set(&count.to_le_bytes(), value(b"x"), Expected::Any).is_ok() {
            count += 1;
        }
        assert!((2..=20).contains(&count), "{count} writes");
        assert_eq!(store.set(b"\0b", value(b"x"), Expected::Any), Err(Refusal::Behind));
        assert_eq!(store.remove(&0_u32.to_le_bytes(), Expected::Any), Ok(true));
        table.0.lock().unwrap().is_full = false;
        flush(journal);
        assert!(store.set(b"\0b", value(b"x"), Expected::Any).is_ok());
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_flush_of_a_thread_that_ends_or_of_an_ended_file_is_not_notified() {
    let journal = Journal::new("fake".into(), u64::MAX, || CLOCK_MS, || WALL_MS);
    journal.remove(KeyRef::new(b"\0a"));
    let parker = Arc::new(Parker::default());
    let call = |ticket| Call { thread: 3, ticket, notify: Arc::clone(&parker) as _ };
    assert_eq!(journal.flush(call(1)), Flush::Waits);
    journal.thread_ended(3);
    assert_eq!(journal.flush(Call { thread: 4, ..call(2) }), Flush::Waits);
    journal.ended(Some(Problem::InUse));
    assert_eq!(parker.forget(1), None);
    assert_eq!(parker.forget(2), Some(Fact::Failed));
    assert_eq!(journal.flush(call(3)), Flush::Ended);
    assert_eq!(journal.stage(Duration::from_secs(100)), Stage::Ended);
}

/// A file of 512-byte pages: two that begin the trees, a leaf with two entries, and a free page.
fn small_file() -> Vec<u8> {
    let mut file = vec![0_u8; 5 * 512];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    for (number, commit) in [(0_usize, 7_u64), (1, 8)] {
        let at = number * 512;
        put(at, &(number as u64).to_le_bytes());
        put(at + 10, &8_u16.to_le_bytes());
        put(at + 16, &0xbeef_c0de_u32.to_le_bytes());
        put(at + 20, &1_u32.to_le_bytes());
        // Each tree: size of pages or nothing, flags, depth, pages of three kinds, entries, its first page.
        for (tree, first, flags, entries) in [(0, 4_u64, 8_u16, 1_u64), (1, 2, 0, 2)] {
            let at = at + 40 + tree * 48;
            put(at, &if tree == 0 { 512_u32 } else { 0 }.to_le_bytes());
            put(at + 4, &flags.to_le_bytes());
            put(at + 6, &1_u16.to_le_bytes());
            put(at + 16, &1_u64.to_le_bytes());
            put(at + 32, &entries.to_le_bytes());
            put(at + 40, &first.to_le_bytes());
        }
        put(at + 16 + 120, &4_u64.to_le_bytes());
        put(at + 16 + 128, &commit.to_le_bytes());
    }
    let free = [1_u64, 3].map(u64::to_le_bytes).concat();
    let leaves: [(u64, Vec<Pair>); 2] = [
        (2, vec![(b"a".to_vec(), b"one".to_vec()), (b"b".to_vec(), b"two".to_vec())]),
        (4, vec![(5_u64.to_le_bytes().to_vec(), free)]),
    ];
    for (number, entries) in leaves {
        let page = number as usize * 512;
        let (mut pointer, mut upper) = (16_u16, 512_u16);
        for (key, value) in &entries {
            upper -= (8 + key.len() + value.len()).next_multiple_of(2) as u16;
            put(page + usize::from(pointer), &upper.to_le_bytes());
            let node = page + usize::from(upper);
            put(node, &(value.len() as u32).to_le_bytes());
            put(node + 6, &(key.len() as u16).to_le_bytes());
            put(node + 8, &[&key[..], value].concat());
            pointer += 2;
        }
        put(page, &number.to_le_bytes());
        put(page + 10, &2_u16.to_le_bytes());
        put(page + 12, &pointer.to_le_bytes());
        put(page + 14, &upper.to_le_bytes());
    }
    file
}

#[test]
fn pages_are_read_and_each_byte_of_their_structure_matters_or_changes_nothing() {
    let read = |bytes: &[u8]| {
        let mut found = Vec::new();
        pages::read(&mut Cursor::new(bytes), &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(())
        })
        .map(|()| found)
    };
    let file = small_file();
    let entries = vec![(b"a".to_vec(), b"one".to_vec()), (b"b".to_vec(), b"two".to_vec())];
    assert_eq!(read(&file), Ok(entries.clone()));
    assert_eq!(read(&[]), Ok(Vec::new()));
    // Those of the entries themselves: their checksums are for the table.
    let values = 2 * 512 + 480..3 * 512;
    let mut refused = 0;
    for at in (0..file.len()).step_by(if cfg!(miri) { 61 } else { 1 }) {
        for mask in [1, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= mask;
            match read(&damaged) {
                Ok(found) => assert!(found == entries || values.contains(&at), "byte {at}, {mask:#x}"),
                Err(_) => refused += 1,
            }
        }
        assert!(read(&file[..at]).is_err() || at == 0, "cut at {at}");
    }
    assert!(refused > 2, "{refused} refused");
}

// Miri cannot call C.
#[cfg(not(miri))]
mod real;
