//! What concerns all shards: clearing, closing, counting, keys, and the removal of expired entries.
//!
//! `clear` and `close` hold all locks. `keys`, `len` and `stats` read one shard after the other.

use std::sync::atomic::Ordering;

use super::{Holding, Part, Store};
use crate::{
    file::Journal,
    key::KeyRef,
    terms::Stats,
    watch::{self, Change, ToNotify},
};

impl Store {
    /// Removes all entries atomically.
    pub fn clear(&self) {
        self.empty(Journal::clear);
    }

    /// Removes all entries of the map; `record` is called with the journal while no entry can change.
    fn empty(&self, record: impl FnOnce(&Journal)) {
        let mut to_notify = ToNotify::new();
        let mut locked: Vec<_> = self.parts.iter().map(|part| part.shard.write()).collect();
        let removed: Vec<_> = locked.iter_mut().map(|shard| shard.clear()).collect();
        *self.held.lock() = Holding::default();
        if let Some(journal) = &self.journal {
            record(journal);
        }
        self.words.touch_all();
        self.watchers.put(Change::Clear, KeyRef::new(&[]), 0, &mut to_notify);
        drop(locked);
        drop(removed);
        watch::notify(to_notify);
    }

    /// Empties it forever: writes are refused, watchers and computations end. A file keeps its entries, and
    /// receives what it lacks.
    pub fn close(&self) {
        // Release: a reader that sees it closed sees earlier changes; writers check under their shard's lock,
        // which is taken after this.
        self.closed.store(true, Ordering::Release);
        self.empty(Journal::close);
        self.watchers.close();
        self.computations.close();
    }

    pub fn len(&self) -> u64 {
        self.stats().entries
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Statistics. Removes expired entries first.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for part in &self.parts {
            self.sweep(part);
            let shard = part.shard.read();
            stats.entries += shard.len() as u64;
            stats.bytes += shard.bytes;
        }
        (stats.hits, stats.misses) = self.tallies.sums();
        stats.evictions = self.evictions.load(Ordering::Relaxed);
        stats.expirations = self.expirations.load(Ordering::Relaxed);
        stats.syncs = self.journal.as_ref().map_or(0, |journal| journal.syncs());
        stats
    }

    /// Number of parts for `keys`.
    pub const fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Visits the keys of one part, atomically.
    pub fn keys(&self, part: usize, mut visit: impl FnMut(&[u8])) {
        let Some(part) = self.parts.get(part) else { return };
        self.sweep(part);
        part.shard.read().each(|key, entry| {
            if self.left_ms(entry).is_some() {
                visit(key);
            }
        });
    }

    /// Whether an entry has expired.
    pub(super) fn sweep_all(&self) -> bool {
        let before = self.expirations.load(Ordering::Relaxed);
        self.parts.iter().for_each(|part| self.sweep(part));
        self.expirations.load(Ordering::Relaxed) != before
    }

    fn sweep(&self, part: &Part) {
        if !part.shard.read().has_deadlines() {
            return;
        }
        let (mut out, mut to_notify) = (Vec::new(), ToNotify::new());
        self.expire_some(&mut part.shard.write(), true, &mut out, 0, &mut to_notify);
        drop(out);
        watch::notify(to_notify);
    }
}
