//! Files of stores: groups against a plain map, failures of the table, and real files.
//!
//! The table of most tests is a map whose next commits can be made to fail; Miri runs those too.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use super::{
    journal::{Group, Journal, Record},
    table::{Problem, Table},
    writer,
};
use crate::{
    Call, Expected, Fact, KeyRef, NewValue, Parker, Refusal, Store, Ttl,
    layout::{Flush, Stage},
    tests::{OPEN, value},
};

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

/// A store whose journal a thread writes into a fake table, until `body` returns.
fn with_store(bytes_max: u64, body: impl FnOnce(&Store, &Journal, &Fake)) -> (Result<(), Problem>, Fake) {
    let journal = Arc::new(Journal::new("fake".into(), bytes_max, || CLOCK_MS, || WALL_MS));
    let store = Store::with_journal(OPEN, || CLOCK_MS, Some(Arc::clone(&journal)));
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

#[cfg(not(miri))]
mod real {
    use std::{fs, path::PathBuf, process, sync::atomic::AtomicU32, sync::atomic::Ordering};

    use super::*;
    use crate::Limits;

    /// A path that is removed at the end.
    struct Path(PathBuf);

    impl Path {
        fn new() -> Self {
            static LAST: AtomicU32 = AtomicU32::new(0);
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            Self(std::env::temp_dir().join(format!("corespun-store-{}-{number}", process::id())))
        }
    }

    impl Drop for Path {
        fn drop(&mut self) {
            fs::remove_file(&self.0).ok();
        }
    }

    fn open(path: &Path, limits: Limits, wall: fn() -> u64) -> Result<(Arc<Store>, Arc<Journal>), Problem> {
        let journal = Arc::new(Journal::new(path.0.clone(), u64::MAX, || CLOCK_MS, wall));
        let store = Arc::new(Store::with_journal(limits, || CLOCK_MS, Some(Arc::clone(&journal))));
        writer::start(Arc::clone(&store), Arc::clone(&journal));
        while journal.stage(Duration::from_millis(10)) == Stage::Opening {}
        match journal.stage(Duration::ZERO) {
            Stage::Open => Ok((store, journal)),
            _ => Err(journal.problem().unwrap()),
        }
    }

    fn close((store, journal): (Arc<Store>, Arc<Journal>)) {
        store.close();
        while journal.stage(Duration::from_millis(10)) != Stage::Ended {}
        assert_eq!(journal.problem(), None);
    }

    fn frame(text: &str) -> Vec<u8> {
        [&[1, 1], text.as_bytes()].concat()
    }

    fn get(store: &Store, key: &[u8]) -> Option<(Vec<u8>, u64)> {
        store.read(key, |entry, _, _, left_ms| (entry.bytes.to_vec(), left_ms))
    }

    #[test]
    fn entries_survive_and_expire_by_the_time_of_day() {
        let path = Path::new();
        let first = open(&path, OPEN, || WALL_MS).unwrap();
        first.0.set(b"\0a", value(&frame("one")), Expected::Any).unwrap();
        for (key, ttl_ms) in [(b"\0b", 50), (b"\0c", 150)] {
            let new = NewValue { ttl: Ttl::Ms(ttl_ms), ..value(b"\x01\x01x") };
            first.0.set(key, new, Expected::Any).unwrap();
        }
        assert_eq!(flush(&first.1).unwrap_or(Fact::Durable), Fact::Durable);
        assert_eq!(open(&path, OPEN, || WALL_MS).err(), Some(Problem::InUse));
        close(first);
        let second = open(&path, Limits { ttl_ms: 5, ..OPEN }, || WALL_MS + 100).unwrap();
        assert_eq!(get(&second.0, b"\0a"), Some((frame("one"), 0)), "the default is for new entries");
        assert_eq!(get(&second.0, b"\0b"), None);
        assert_eq!(get(&second.0, b"\0c").unwrap().1, 50);
        second.0.clear();
        second.0.set(b"\0d", value(&frame("four")), Expected::Any).unwrap();
        close(second);
        let third = open(&path, OPEN, || WALL_MS + 100).unwrap();
        assert_eq!(third.0.len(), 1);
        assert_eq!(get(&third.0, b"\0d").unwrap().0, frame("four"));
        close(third);
    }

    #[test]
    fn limits_apply_to_what_a_file_contains() {
        let path = Path::new();
        let all = open(&path, OPEN, || WALL_MS).unwrap();
        for number in 0..100_u32 {
            all.0.set(&number.to_le_bytes(), value(&frame("some text")), Expected::Any).unwrap();
        }
        close(all);
        let few = Limits { entries_max: 10, evicts: false, ..OPEN };
        assert_eq!(open(&path, few, || WALL_MS).err(), Some(Problem::TooMany));
        let short = Limits { value_bytes_max: 5, ..OPEN };
        assert!(matches!(open(&path, short, || WALL_MS).err(), Some(Problem::TooLarge(_))));
        close(open(&path, Limits { evicts: true, ..few }, || WALL_MS).unwrap());
        let left = open(&path, OPEN, || WALL_MS).unwrap();
        assert!((1..=10).contains(&left.0.len()), "what was evicted has left the file: {}", left.0.len());
        close(left);
    }

    #[test]
    fn files_of_others_are_refused_and_stay_as_they_are() {
        let path = Path::new();
        fs::write(&path.0, vec![7; 10_000]).unwrap();
        assert!(matches!(open(&path, OPEN, || WALL_MS).err(), Some(Problem::Foreign(_))));
        assert_eq!(fs::read(&path.0).unwrap(), vec![7; 10_000]);
        fs::remove_file(&path.0).unwrap();
        let mut other = redb::Database::create(&path.0).unwrap();
        for (table, problem) in [
            ("theirs", Problem::Foreign("a database of another program".into())),
            ("corespun.store", Problem::Version(9)),
        ] {
            let transaction = other.begin_write().unwrap();
            let definition = redb::TableDefinition::<&str, u64>::new(table);
            transaction.open_table(definition).unwrap().insert("version", 9).unwrap();
            transaction.commit().unwrap();
            assert_eq!(open(&path, OPEN, || WALL_MS).err(), Some(Problem::InUse));
            drop(other);
            assert_eq!(open(&path, OPEN, || WALL_MS).err(), Some(problem));
            other = redb::Database::create(&path.0).unwrap();
        }
    }

    #[test]
    fn a_frame_that_names_numbers_of_a_process_is_not_loaded() {
        let path = Path::new();
        let forged = open(&path, OPEN, || WALL_MS).unwrap();
        forged.0.set(b"\0a", value(&[1, 0, 1, 0, 0, 0, 5]), Expected::Any).unwrap();
        close(forged);
        assert!(matches!(open(&path, OPEN, || WALL_MS).err(), Some(Problem::Corrupt(_))));
    }

    #[test]
    fn damage_is_found_when_the_file_is_opened() {
        let path = Path::new();
        let store = open(&path, OPEN, || WALL_MS).unwrap();
        for number in 0..300_u32 {
            store.0.set(&number.to_le_bytes(), value(&frame(&"needle".repeat(20))), Expected::Any).unwrap();
        }
        close(store);
        let mut bytes = fs::read(&path.0).unwrap();
        let positions: Vec<_> = (0..bytes.len() - 6).filter(|&at| &bytes[at..at + 6] == b"needle").collect();
        positions.iter().for_each(|&at| bytes[at] = b'N');
        fs::write(&path.0, bytes).unwrap();
        assert!(matches!(open(&path, OPEN, || WALL_MS).err(), Some(Problem::Corrupt(_))));
    }
}
