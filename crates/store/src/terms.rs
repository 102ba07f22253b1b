//! The terms of a store: limits, new values, expected versions, refusals and statistics.
//!
//! Data only; `store` implements them.

use std::{any::Any, sync::Arc};

use crate::layout::counts;

/// Memory that a value refers to: kept as long as the entry and its readers.
pub type Keeps = Arc<dyn Any + Send + Sync>;
/// Milliseconds since any fixed moment, above 0.
pub type Clock = fn() -> u64;

/// Shards of a store that is large enough. Few under Miri, where visiting 64 takes seconds: enough that keys
/// lie in several and none is a special case.
const SHARDS_MAX: u64 = if cfg!(miri) { 4 } else { 64 };
/// Least capacity of a shard, so that a small store evicts by the use of all its entries.
const SHARD_ENTRIES: u64 = 1024;
const SHARD_BYTES: u64 = 1 << 20;

/// The bounds of a store.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most entries; `u64::MAX` for any number.
    pub entries_max: u64,
    /// Most bytes as accounted: keys, values and 96 for each entry; `u64::MAX` for any number.
    pub bytes_max: u64,
    /// Longest value, in bytes.
    pub value_bytes_max: u64,
    /// TTL of an entry written without one; 0: it does not expire.
    pub ttl_ms: u64,
    /// Whether a full store evicts; otherwise it refuses.
    pub evicts: bool,
    /// Of a seeded run: its clock, and one shard, so that what is evicted and what expires first follows from
    /// its use alone, and from no hash of this process.
    pub is_seeded: bool,
}

impl Limits {
    /// Whether anything is bounded.
    pub(crate) const fn is_bounded(&self) -> bool {
        self.entries_max != u64::MAX || self.bytes_max != u64::MAX
    }

    /// How many shards, a power of two.
    pub(crate) fn shards(&self) -> u64 {
        if self.is_seeded {
            return 1;
        }
        if !self.is_bounded() || !self.evicts {
            return SHARDS_MAX;
        }
        let by_bytes = self.bytes_max / SHARD_BYTES.max(self.value_bytes_max.saturating_mul(2));
        let shards = (self.entries_max / SHARD_ENTRIES).min(by_bytes).clamp(1, SHARDS_MAX);
        1 << shards.ilog2()
    }
}

/// When an entry expires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ttl {
    /// After the store's `ttl_ms`.
    Default,
    /// When the entry it replaces would expire; as `Default` for a new key.
    Keep,
    /// After that many milliseconds.
    Ms(u64),
}

/// A value to be written.
pub struct NewValue<'a> {
    pub bytes: &'a [u8],
    pub ttl: Ttl,
    /// What it refers to.
    pub keeps: Option<Keeps>,
}

/// What a write expects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expected {
    Any,
    /// This version; 0: an absent key.
    Version(u64),
}

/// Why a write was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// Another version was there than expected.
    Conflict,
    Closed,
    /// The value exceeds the limit of values, or the entry that of the store.
    TooLarge,
    /// The store is full and does not evict.
    Full,
    /// Too many changes wait for the store's file.
    Behind,
}

/// Statistics of a store.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    pub entries: u64,
    /// Bytes now, as accounted.
    pub bytes: u64,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    pub expirations: u64,
    /// Groups of changes that the file has received.
    pub syncs: u64,
}

impl Stats {
    /// The numbers that [`counts`] lists.
    pub fn encode(&self) -> [f64; counts::NUMBERS] {
        let mut numbers = [0.0; counts::NUMBERS];
        numbers[counts::ENTRIES] = self.entries as f64;
        numbers[counts::BYTES] = self.bytes as f64;
        numbers[counts::HITS] = self.hits as f64;
        numbers[counts::MISSES] = self.misses as f64;
        numbers[counts::EVICTIONS] = self.evictions as f64;
        numbers[counts::EXPIRATIONS] = self.expirations as f64;
        numbers[counts::SYNCS] = self.syncs as f64;
        numbers
    }
}
