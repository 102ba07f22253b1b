//! Real files: what survives, what is refused, and damage.
//!
//! Each test has a file of its own in the folder for temporary files.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{fs, path::PathBuf, process, sync::atomic::AtomicU32, sync::atomic::Ordering};

use super::{
    super::{
        lmdb::Lmdb,
        lock::open_locked,
        table::{ABOUT, FRAME, FileTable, NAME},
    },
    *,
};
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
    let mut short = vec![0; 20];
    short[16..].copy_from_slice(&0xbeef_c0de_u32.to_le_bytes());
    for (bytes, is_cut) in [(vec![7; 10_000], false), (vec![7; 10], false), (short, true)] {
        fs::write(&path.0, &bytes).unwrap();
        let problem = open(&path, OPEN, || WALL_MS).err();
        assert!(matches!(problem, Some(Problem::Foreign(_))) != is_cut, "{problem:?}");
        assert!(matches!(problem, Some(Problem::Corrupt(_))) == is_cut, "{problem:?}");
        assert_eq!(fs::read(&path.0).unwrap(), bytes);
    }
    let newer = [&[0; 4], NAME, &9_u32.to_le_bytes(), &[0; 16]].concat();
    for (key, value, problem) in [
        (&b"theirs"[..], &b"value"[..], Problem::Foreign("a database of another program".into())),
        (&ABOUT, b"value", Problem::Foreign("a database of another program".into())),
        (&ABOUT, &newer, Problem::Version(9)),
    ] {
        fs::write(&path.0, []).unwrap();
        let mut other = Lmdb::open(&path.0, 0).unwrap();
        other.commit(|transaction| transaction.put(key, value)).unwrap();
        drop(other);
        assert_eq!(open(&path, OPEN, || WALL_MS).err(), Some(problem));
    }
    let held = open_locked(&path.0).unwrap();
    assert_eq!(open(&path, OPEN, || WALL_MS).err(), Some(Problem::InUse));
    drop(held);
    assert!(matches!(open_locked(&std::env::temp_dir()).err(), Some(Problem::Foreign(_))));
    assert_eq!(open_locked(&path.0.join("in")).err(), Some(Problem::Missing));
}

#[cfg(unix)]
#[test]
fn a_file_that_was_deleted_or_replaced_keeps_nothing_and_its_path_is_free() {
    for is_replaced in [false, true] {
        let path = Path::new();
        let first = open(&path, OPEN, || WALL_MS).unwrap();
        fs::remove_file(&path.0).unwrap();
        if is_replaced {
            fs::write(&path.0, []).unwrap();
        }
        first.0.set(b"\0a", value(&frame("one")), Expected::Any).unwrap();
        assert_eq!(flush(&first.1), Some(Fact::Failed));
        assert_eq!(first.1.problem(), Some(Problem::Removed));
        let second = open(&path, OPEN, || WALL_MS).unwrap();
        assert_eq!(open(&path, OPEN, || WALL_MS).err(), Some(Problem::InUse));
        first.0.close();
        while first.1.stage(Duration::from_millis(10)) != Stage::Ended {}
        assert_eq!(first.1.problem(), Some(Problem::Removed));
        assert_eq!(open(&path, OPEN, || WALL_MS).err(), Some(Problem::InUse));
        close(second);
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
fn keys_of_all_lengths_are_kept_overwritten_and_deleted() {
    let path = Path::new();
    let key = |length: usize, last: u8| [vec![b'k'; length - 1], vec![last]].concat();
    let lengths = [1, 2, 509, 510, 511, 512, 5000, 65_535];
    let first = open(&path, OPEN, || WALL_MS).unwrap();
    for length in lengths {
        for last in *b"abc" {
            first.0.set(&key(length, last), value(&frame("old")), Expected::Any).unwrap();
        }
    }
    close(first);
    let second = open(&path, OPEN, || WALL_MS).unwrap();
    for length in lengths {
        assert_eq!(get(&second.0, &key(length, b'a')).unwrap().0, frame("old"), "{length}");
        second.0.set(&key(length, b'a'), value(&frame("new")), Expected::Any).unwrap();
        second.0.remove(&key(length, b'b'), Expected::Any).unwrap();
    }
    close(second);
    let third = open(&path, OPEN, || WALL_MS).unwrap();
    for length in lengths {
        let [a, b, c] = [b'a', b'b', b'c'].map(|last| get(&third.0, &key(length, last)));
        assert_eq!((a.unwrap().0, b, c.unwrap().0), (frame("new"), None, frame("old")), "{length}");
    }
    close(third);
}

/// What a file contains.
type Found = BTreeMap<Vec<u8>, Vec<u8>>;

fn read_file(path: &Path) -> Result<(FileTable, Found), Problem> {
    let mut found = Found::new();
    let table = FileTable::open(&path.0, |key, _, frame| {
        assert_eq!(found.insert(key.into(), frame.into()), None, "each key is there once");
        Ok(())
    })?;
    Ok((table, found))
}

/// Random changes of a real table; the model has them as well.
struct Changes {
    seed: u64,
    model: Found,
}

impl Changes {
    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    fn next(&mut self) -> Group {
        let mut group = Group::default();
        group.cleared = self.random(60) == 0;
        if group.cleared {
            self.model.clear();
        }
        for _ in 0..1 + self.random(80) {
            let length = if self.random(20) == 0 { 700 } else { 4 + self.random(30) as usize };
            let key = [format!("{:04}", self.random(2000)).into_bytes(), vec![b'k'; length]].concat();
            let change = (self.random(3) > 0).then(|| {
                let length = if self.random(25) == 0 { 40_000 } else { 300 };
                let text = vec![b'a' + self.random(26) as u8; self.random(length) as usize];
                Record { bytes: [&FRAME[..], &text].concat().into_boxed_slice().into(), expires_ms: 0 }
            });
            match &change {
                Some(record) => drop(self.model.insert(key.clone(), record.bytes.to_vec())),
                None => drop(self.model.remove(&key)),
            }
            group.changes.insert(KeyRef::new(&key).to_key(), change);
        }
        group
    }
}

#[test]
fn a_real_file_has_what_a_map_has_after_any_commits() {
    let path = Path::new();
    let mut changes = Changes { seed: 1, model: Found::new() };
    let (mut table, _) = read_file(&path).unwrap();
    for step in 0..300 {
        table.commit(&changes.next()).unwrap();
        if step % 40 == 20 {
            table.end();
        } else if step % 20 == 0 {
            drop(table);
            let found;
            (table, found) = read_file(&path).unwrap();
            assert!(found == changes.model, "step {step}");
        }
    }
}

#[test]
fn a_file_outgrows_its_map_and_its_pages_are_used_again() {
    let path = Path::new();
    let (mut table, _) = read_file(&path).unwrap();
    let big = |count: u32| {
        let mut group = Group::default();
        group.cleared = true;
        for number in 0..count {
            let bytes = [&FRAME[..], &vec![7; 1_000_000]].concat().into_boxed_slice().into();
            group
                .changes
                .insert(KeyRef::new(&number.to_le_bytes()).to_key(), Some(Record { bytes, expires_ms: 0 }));
        }
        group
    };
    for _ in 0..5 {
        table.commit(&big(40)).unwrap();
    }
    drop(table);
    assert!(fs::metadata(&path.0).unwrap().len() < 130_000_000, "three times the entries at most");
    assert_eq!(read_file(&path).unwrap().1.len(), 40);
}

#[test]
fn damage_is_an_error_or_without_effect_and_never_ends_the_process() {
    let path = Path::new();
    let mut changes = Changes { seed: 3, model: Found::new() };
    let (mut table, _) = read_file(&path).unwrap();
    let mut before = Found::new();
    for _ in 0..40 {
        before = changes.model.clone();
        table.commit(&changes.next()).unwrap();
    }
    drop(table);
    let sound = fs::read(&path.0).unwrap();
    let (mut refused, mut accepted) = (0, 0);
    for step in 0..500_u64 {
        let mut bytes = sound.clone();
        // Every other one is where the structure is: a header, or the pages of the trees' beginnings.
        let page = changes.random(bytes.len() as u64 / 4096) * 4096;
        let at = match step % 4 {
            0 => changes.random(bytes.len() as u64),
            1 => page + changes.random(64),
            2 => changes.random(2) * 4096 + changes.random(160),
            _ => page + 4095 - changes.random(64),
        } as usize;
        match changes.random(8) {
            0 => bytes.truncate(at),
            1 => bytes[at..].iter_mut().take(100).for_each(|byte| *byte = 0),
            2 => bytes[at] = 0xff,
            _ => bytes[at] ^= 1 << changes.random(8),
        }
        fs::write(&path.0, &bytes).unwrap();
        match read_file(&path) {
            Err(problem) => {
                let is_damage =
                    matches!(problem, Problem::Corrupt(_) | Problem::Foreign(_) | Problem::Version(_));
                assert!(is_damage || bytes.is_empty(), "step {step}: {problem:?}");
                refused += 1;
            }
            Ok((mut table, mut found)) => {
                // A damaged number of the last commit makes the one before it the last.
                assert!(found == changes.model || found == before || bytes.is_empty(), "step {step} at {at}");
                let mut more = Changes { seed: step, model: std::mem::take(&mut found) };
                for _ in 0..2 {
                    table.commit(&more.next()).unwrap();
                }
                drop(table);
                assert!(read_file(&path).unwrap().1 == more.model, "step {step} at {at}");
                accepted += 1;
            }
        }
    }
    assert!(refused > 100 && accepted > 20, "{refused} refused, {accepted} accepted");
}
