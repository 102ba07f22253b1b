//! The terms of a store: its bounds, what is written and when it ends, what is expected, refused and counted.
//!
//! Data only; what it means is done in `store`.

use std::{any::Any, sync::Arc};

/// What a value refers to: kept as long as the entry and whoever reads it.
pub type Keeps = Arc<dyn Any + Send + Sync>;
/// Milliseconds since any fixed moment, above 0.
pub type Clock = fn() -> u64;

/// Shards of a store that is large enough for them. Few under Miri, where what visits all of them (a count, a
/// sweep for room) takes seconds for 64: enough that keys lie in several and one of them is no special case.
const SHARDS_MAX: u64 = if cfg!(miri) { 4 } else { 64 };
/// Least room of a shard, so that a small store keeps the best of all its entries and not of each shard's.
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
    /// Ttl of an entry that was given none; 0: it does not end.
    pub ttl_ms: u64,
    /// Whether a full store drops what is cold; else it refuses.
    pub evicts: bool,
}

impl Limits {
    /// Whether anything is bounded.
    pub(crate) const fn is_bounded(&self) -> bool {
        self.entries_max != u64::MAX || self.bytes_max != u64::MAX
    }

    /// How many shards, a power of two.
    pub(crate) fn shards(&self) -> u64 {
        if !self.is_bounded() || !self.evicts {
            return SHARDS_MAX;
        }
        let by_bytes = self.bytes_max / SHARD_BYTES.max(self.value_bytes_max.saturating_mul(2));
        let shards = (self.entries_max / SHARD_ENTRIES).min(by_bytes).clamp(1, SHARDS_MAX);
        1 << shards.ilog2()
    }
}

/// When an entry ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ttl {
    /// After the store's `ttl_ms`.
    Default,
    /// When what it replaces would have; as `Default` for a new key.
    Keep,
    /// After so many milliseconds.
    Ms(u64),
}

/// A value to be written.
pub struct NewValue<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// When it ends.
    pub life: Ttl,
    /// What it refers to.
    pub keeps: Option<Keeps>,
}

/// What must be there for a write to happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expected {
    /// Anything.
    Any,
    /// This version; 0: nothing.
    Version(u64),
}

/// Why nothing was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// Something else was there than expected.
    Conflict,
    /// The store is closed.
    Closed,
    /// The value is longer than a value, or an entry larger than the store, may be.
    TooLarge,
    /// The store is full and does not evict.
    Full,
}

/// What a store has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Entries now.
    pub entries: u64,
    /// Bytes now, as accounted.
    pub bytes: u64,
    /// Reads that found something.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Entries dropped for room.
    pub evictions: u64,
    /// Entries whose time was over.
    pub expirations: u64,
}
