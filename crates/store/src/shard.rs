//! One part of a store's map, under one lock: entries, their deadlines, and what is dropped for room.
//!
//! Bounded parts keep what is hot by quick_cache's policy (CLOCK-Pro with the small and ghost queues of
//! S3-FIFO); unbounded ones are a plain hash map. Deadlines lie in a heap that is never larger than twice the
//! entries.

use std::{cmp::Reverse, collections::BinaryHeap};

use hashbrown::HashTable;
use quick_cache::{Lifecycle, Weighter, unsync::Cache};

use crate::{
    bytes::Bytes,
    key::{Brought, Key, KeyRef},
    terms::Keeps,
};

/// Bytes that an entry counts beyond its key and value: what the map itself needs, roughly.
pub const ENTRY_BYTES: u64 = 96;
/// Part of a bounded map that quick_cache gives to its hot queue; nothing larger is admitted.
const HOT_PART: f64 = 0.97;
/// Deadlines looked at for one write.
const EXPIRE_PER_WRITE: usize = 8;

/// What a key stands for.
#[derive(Clone)]
pub struct Entry {
    /// The value.
    pub bytes: Bytes,
    /// Larger with each write to this key.
    pub version: u64,
    /// When it ends, by the store's clock; 0: never.
    pub expires_ms: u64,
    /// What the value refers to and must outlive it.
    pub keeps: Option<Keeps>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Entry({} bytes, version {})", self.bytes.len(), self.version)
    }
}

/// Bytes that an entry is accounted with.
pub fn bytes_of(key: &[u8], entry: &Entry) -> u64 {
    (key.len() + entry.bytes.len()) as u64 + ENTRY_BYTES
}

/// The weight of an entry: its bytes, but at least as many as make `entries_max` of them reach `bytes_max`.
#[derive(Clone, Copy, Debug)]
struct Weights {
    floor: u64,
    counts_bytes: bool,
}

impl Weights {
    fn of(self, key: &[u8], entry: &Entry) -> u64 {
        if self.counts_bytes { bytes_of(key, entry).max(self.floor) } else { 1 }
    }
}

impl Weighter<Key, Entry> for Weights {
    fn weight(&self, key: &Key, entry: &Entry) -> u64 {
        self.of(key, entry)
    }
}

#[derive(Clone, Copy, Debug)]
struct Evictions;

impl Lifecycle<Key, Entry> for Evictions {
    type RequestState = Vec<(Key, Entry)>;

    fn begin_request(&self) -> Self::RequestState {
        Vec::new()
    }

    fn on_evict(&self, state: &mut Self::RequestState, key: Key, entry: Entry) {
        state.push((key, entry));
    }
}

type Bounded = Cache<Key, Entry, Weights, Brought, Evictions>;

enum Entries {
    Plain(HashTable<(Key, Entry)>),
    Bounded { cache: Box<Bounded>, weight_max: u64, weights: Weights },
}

/// A part of a store, under a lock of its own.
pub struct Shard {
    entries: Entries,
    /// The version given last.
    pub version: u64,
    /// Bytes of all entries, as accounted.
    pub bytes: u64,
    deadlines: BinaryHeap<Reverse<(u64, u64, Key)>>,
}

/// How much a shard may hold.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Entries, `u64::MAX` for any number.
    pub entries: u64,
    /// Bytes as accounted, `u64::MAX` for any number.
    pub bytes: u64,
}

impl Shard {
    /// Without bounds.
    pub fn plain() -> Self {
        Self::over(Entries::Plain(HashTable::new()))
    }

    /// That drops what is cold to stay within `room`.
    pub fn bounded(room: Room) -> Self {
        let counts_bytes = room.bytes != u64::MAX;
        let capacity = if counts_bytes { room.bytes } else { room.entries };
        let weight_max = ((capacity as f64 * HOT_PART) as u64).max(1);
        // Not more than what is admitted: of a single entry it is the whole, and two still do not fit.
        let floor = if counts_bytes { room.bytes.div_ceil(room.entries).clamp(1, weight_max) } else { 1 };
        let weights = Weights { floor, counts_bytes };
        let likely = room.entries.min(capacity / if counts_bytes { 512 } else { 1 }).clamp(1, 1 << 20);
        let cache = Box::new(Cache::with(likely as usize, capacity, weights, Brought, Evictions));
        Self::over(Entries::Bounded { cache, weight_max, weights })
    }

    fn over(entries: Entries) -> Self {
        Self { entries, version: 0, bytes: 0, deadlines: BinaryHeap::new() }
    }

    /// Number of entries, those that have ended and lie here still included.
    pub fn len(&self) -> usize {
        match &self.entries {
            Entries::Plain(table) => table.len(),
            Entries::Bounded { cache, .. } => cache.len(),
        }
    }

    /// The entry of a key; a use of it.
    #[inline]
    pub fn get(&self, key: KeyRef<'_>) -> Option<&Entry> {
        match &self.entries {
            Entries::Plain(table) => find(table, key),
            Entries::Bounded { cache, .. } => cache.get(&key),
        }
    }

    /// The entry of a key; not a use of it.
    #[inline(always)]
    pub fn peek(&self, key: KeyRef<'_>) -> Option<&Entry> {
        match &self.entries {
            Entries::Plain(table) => find(table, key),
            Entries::Bounded { cache, .. } => cache.peek(&key),
        }
    }

    /// Whether an entry is too large for this shard, whatever else is dropped.
    pub fn is_too_large(&self, key: &[u8], entry: &Entry) -> bool {
        match &self.entries {
            Entries::Plain(_) => false,
            Entries::Bounded { weights, weight_max, .. } => weights.of(key, entry) > *weight_max,
        }
    }

    /// Write over the value of a key where it lies, if `may` says so, its memory can take the new one and
    /// what it weighs stays the same; its new version. The life of the entry stays. `Err`: what `may` refused
    /// with.
    #[inline]
    pub fn rewrite<E>(
        &mut self,
        key: KeyRef<'_>,
        bytes: &[u8],
        may: impl FnOnce(&Entry) -> Result<bool, E>,
    ) -> Result<Option<u64>, E> {
        let version = self.version + 1;
        let len = match &mut self.entries {
            Entries::Plain(table) => {
                let found = table.find_mut(key.hash(), |(other, _)| is(other, key));
                let Some((_, entry)) = found else { return Ok(None) };
                if !may(entry)? {
                    return Ok(None);
                }
                rewritten(entry, bytes, version)
            }
            Entries::Bounded { cache, weights, .. } => {
                let Some(mut entry) = cache.get_mut(&key) else { return Ok(None) };
                if !may(&entry)? || (weights.counts_bytes && entry.bytes.len() != bytes.len()) {
                    return Ok(None);
                }
                rewritten(&mut entry, bytes, version)
            }
        };
        let Some(len) = len else { return Ok(None) };
        self.bytes = self.bytes - len as u64 + bytes.len() as u64;
        self.version = version;
        Ok(Some(version))
    }

    /// Put an entry. What it replaced, and what had to go to make room, `out` of the map now.
    pub fn insert(&mut self, key: KeyRef<'_>, entry: Entry, out: &mut Vec<(Key, Entry)>) -> Option<Entry> {
        let version = entry.version;
        self.bytes += bytes_of(key.bytes(), &entry);
        if entry.expires_ms != 0 {
            self.deadlines.push(Reverse((entry.expires_ms, version, key.to_key())));
        }
        let replaced = match &mut self.entries {
            Entries::Plain(table) => match table.find_mut(key.hash(), |(other, _)| is(other, key)) {
                Some((_, found)) => {
                    self.bytes -= bytes_of(key.bytes(), found);
                    Some(std::mem::replace(found, entry))
                }
                None => {
                    table.insert_unique(key.hash(), (key.to_key(), entry), |(key, _)| key.as_ref().hash());
                    None
                }
            },
            Entries::Bounded { cache, .. } => {
                // What is replaced comes out like what is dropped; it is the one with this key and an older
                // version.
                let mut gone = cache.insert_with_lifecycle(key.to_key(), entry);
                self.bytes -= gone.iter().map(|(key, entry)| bytes_of(key, entry)).sum::<u64>();
                let old = gone.iter().position(|(other, entry)| is(other, key) && entry.version != version);
                let replaced = old.map(|index| gone.swap_remove(index).1);
                out.append(&mut gone);
                replaced
            }
        };
        self.tidy_deadlines();
        replaced
    }

    /// Take an entry out.
    pub fn remove(&mut self, key: KeyRef<'_>) -> Option<(Key, Entry)> {
        let (key, entry) = match &mut self.entries {
            Entries::Plain(table) => {
                table.find_entry(key.hash(), |(other, _)| is(other, key)).ok().map(|found| found.remove().0)
            }
            Entries::Bounded { cache, .. } => cache.remove(&key),
        }?;
        self.bytes -= bytes_of(&key, &entry);
        Some((key, entry))
    }

    /// Take out entries that have ended by `now_ms`: a few, or all.
    pub fn expire(&mut self, now_ms: u64, all: bool, out: &mut Vec<(Key, Entry)>) {
        let mut left = if all { usize::MAX } else { EXPIRE_PER_WRITE };
        while left > 0 && self.deadlines.peek().is_some_and(|Reverse((at, _, _))| *at <= now_ms) {
            left -= 1;
            let Some(Reverse((_, version, key))) = self.deadlines.pop() else { break };
            if self.peek(key.as_ref()).is_some_and(|entry| entry.version == version) {
                out.extend(self.remove(key.as_ref()));
            }
        }
    }

    /// Whether any entry of this shard has a deadline.
    #[inline]
    pub fn has_deadlines(&self) -> bool {
        !self.deadlines.is_empty()
    }

    /// Forget all entries; they are returned.
    pub fn clear(&mut self) -> Vec<(Key, Entry)> {
        self.bytes = 0;
        self.deadlines.clear();
        match &mut self.entries {
            Entries::Plain(table) => std::mem::take(table).into_iter().collect(),
            Entries::Bounded { cache, .. } => cache.drain().collect(),
        }
    }

    /// All entries.
    pub fn each(&self, mut visit: impl FnMut(&Key, &Entry)) {
        match &self.entries {
            Entries::Plain(table) => table.iter().for_each(|(key, entry)| visit(key, entry)),
            Entries::Bounded { cache, .. } => cache.iter().for_each(|(key, entry)| visit(key, entry)),
        }
    }

    /// Deadlines of entries that were written again or removed are dropped once they outnumber the others.
    fn tidy_deadlines(&mut self) {
        if self.deadlines.len() <= 2 * self.len() + 64 {
            return;
        }
        let old = std::mem::take(&mut self.deadlines);
        let current = old.into_iter().filter(|Reverse((_, version, key))| {
            self.peek(key.as_ref()).is_some_and(|entry| entry.version == *version)
        });
        self.deadlines = current.collect();
    }
}

#[inline]
fn is(other: &Key, key: KeyRef<'_>) -> bool {
    **other == *key.bytes()
}

#[inline]
fn find<'a>(table: &'a HashTable<(Key, Entry)>, key: KeyRef<'_>) -> Option<&'a Entry> {
    table.find(key.hash(), |(other, _)| is(other, key)).map(|(_, entry)| entry)
}

/// Write over an entry; how long its value was before.
#[inline]
fn rewritten(entry: &mut Entry, bytes: &[u8], version: u64) -> Option<usize> {
    let len = entry.bytes.len();
    entry.bytes.rewrite(bytes).then(|| {
        entry.version = version;
        len
    })
}
