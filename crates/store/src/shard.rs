//! One part of a store's map, under one lock: entries, their deadlines, and eviction.
//!
//! Bounded parts evict by quick_cache's policy, an approximation of LRU (CLOCK-Pro with the small and ghost
//! queues of S3-FIFO); unbounded ones are a plain hash map. Deadlines are in a heap of at most twice the
//! number of entries.

use std::{cmp::Reverse, collections::BinaryHeap};

use hashbrown::HashTable;
use quick_cache::{Lifecycle, Weighter, unsync::Cache};

use crate::{
    bytes::Bytes,
    key::{Brought, Key, KeyRef},
    terms::Keeps,
};

/// Bytes of an entry beyond its key and value: roughly what the map needs.
pub const ENTRY_BYTES: u64 = 96;
/// Share of a bounded map in quick_cache's main queue; larger entries are not admitted.
const HOT_PART: f64 = 0.97;
/// Deadlines looked at for one write.
const EXPIRE_PER_WRITE: usize = 8;

/// The entry of a key.
#[derive(Clone)]
pub struct Entry {
    pub bytes: Bytes,
    /// Increases with each write to this key.
    pub version: u64,
    /// Expiration by the store's clock; 0: never.
    pub expires_ms: u64,
    /// Memory that the value refers to and that must outlive it.
    pub keeps: Option<Keeps>,
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
pub struct Capacity {
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

    /// A shard that evicts entries in order to stay within `capacity`.
    pub fn bounded(capacity: Capacity) -> Self {
        let counts_bytes = capacity.bytes != u64::MAX;
        let weight_total = if counts_bytes { capacity.bytes } else { capacity.entries };
        let weight_max = ((weight_total as f64 * HOT_PART) as u64).max(1);
        // Not more than what is admitted: of a single entry it is the whole, and two still do not fit.
        let floor =
            if counts_bytes { capacity.bytes.div_ceil(capacity.entries).clamp(1, weight_max) } else { 1 };
        let weights = Weights { floor, counts_bytes };
        let likely =
            capacity.entries.min(weight_total / if counts_bytes { 512 } else { 1 }).clamp(1, 1 << 20);
        let cache = Box::new(Cache::with(likely as usize, weight_total, weights, Brought, Evictions));
        Self::over(Entries::Bounded { cache, weight_max, weights })
    }

    fn over(entries: Entries) -> Self {
        Self { entries, version: 0, bytes: 0, deadlines: BinaryHeap::new() }
    }

    /// Number of entries, including expired ones that have not been removed.
    pub fn len(&self) -> usize {
        match &self.entries {
            Entries::Plain(table) => table.len(),
            Entries::Bounded { cache, .. } => cache.len(),
        }
    }

    /// The entry of a key; counts as a use.
    #[inline]
    pub fn get(&self, key: KeyRef<'_>) -> Option<&Entry> {
        match &self.entries {
            Entries::Plain(table) => find(table, key),
            Entries::Bounded { cache, .. } => cache.get(&key),
        }
    }

    /// The entry of a key; does not count as a use.
    #[inline(always)]
    pub fn peek(&self, key: KeyRef<'_>) -> Option<&Entry> {
        match &self.entries {
            Entries::Plain(table) => find(table, key),
            Entries::Bounded { cache, .. } => cache.peek(&key),
        }
    }

    /// Whether an entry is too large for this shard even when it is empty.
    pub fn is_too_large(&self, key: &[u8], entry: &Entry) -> bool {
        match &self.entries {
            Entries::Plain(_) => false,
            Entries::Bounded { weights, weight_max, .. } => weights.of(key, entry) > *weight_max,
        }
    }

    /// Overwrites the value of a key in place if `may` allows it, its memory can take the new value and its
    /// weight stays the same; returns the new version. The deadline stays. `Err`: the refusal of `may`.
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

    /// Inserts an entry. The replaced entry and evicted ones are moved to `out`.
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
                // The replaced entry comes out with the evicted ones: it has this key and an older version.
                let mut removed = cache.insert_with_lifecycle(key.to_key(), entry);
                self.bytes -= removed.iter().map(|(key, entry)| bytes_of(key, entry)).sum::<u64>();
                let old =
                    removed.iter().position(|(other, entry)| is(other, key) && entry.version != version);
                let replaced = old.map(|index| removed.swap_remove(index).1);
                out.append(&mut removed);
                replaced
            }
        };
        self.tidy_deadlines();
        replaced
    }

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

    /// Removes entries that have expired by `now_ms`: a few, or all.
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

    /// Removes all entries and returns them.
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

    /// Drops deadlines of rewritten or removed entries once they outnumber the others.
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

/// Overwrites an entry; returns the previous length of its value.
#[inline]
fn rewritten(entry: &mut Entry, bytes: &[u8], version: u64) -> Option<usize> {
    let len = entry.bytes.len();
    entry.bytes.rewrite(bytes).then(|| {
        entry.version = version;
        len
    })
}
