//! A store: shards of a map, version words, watchers and computations.
//!
//! Every operation on a key is atomic under the lock of its shard, so a store is linearizable key by key.
//! Nothing is notified or freed while a lock is held. What concerns all shards is in `whole`.
//!
//! Over 400 lines: the paths of one write share the shard's lock and the lists of what it has removed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::{Mutex, RwLock};

use crate::{
    bytes::{Bytes, LOCKED_COPY_MAX},
    compute::{Begin, Computations},
    file::Journal,
    key::{Key, KeyRef},
    notify::Call,
    shard::{self, Capacity, Entry, Shard},
    tally::Tallies,
    terms::{Clock, Expected, Limits, NewValue, Refusal, Ttl},
    watch::{self, Change, Pattern, ToNotify, Watcher, Watchers},
    words::Words,
};

mod commit;
mod whole;

pub use commit::{Action, Refused, Step, commit};

/// One shard, on cache lines of its own.
#[repr(align(128))]
struct Part {
    shard: RwLock<Shard>,
}

/// A map of keys to frames.
pub struct Store {
    limits: Limits,
    clock: Clock,
    parts: Box<[Part]>,
    tallies: Tallies,
    words: Words,
    watchers: Watchers,
    computations: Computations,
    closed: AtomicBool,
    evictions: AtomicU64,
    expirations: AtomicU64,
    /// The journal of a store with a file.
    journal: Option<Arc<Journal>>,
    /// Whether a write must count or record the entry, which overwriting in place does not.
    counts_writes: bool,
    /// Usage of a store that does not evict.
    held: Mutex<Holding>,
}

/// Entries and accounted bytes, checked and changed together, so that a refused write never counts for
/// another.
#[derive(Clone, Copy, Default)]
struct Holding {
    entries: u64,
    bytes: u64,
}

impl Store {
    /// An empty store.
    pub fn new(limits: Limits, clock: Clock) -> Self {
        Self::with_journal(limits, clock, None)
    }

    /// An empty store that records its changes in `journal`.
    pub fn with_journal(limits: Limits, clock: Clock, journal: Option<Arc<Journal>>) -> Self {
        let shards = limits.shards();
        let even = Capacity { entries: limits.entries_max / shards, bytes: limits.bytes_max / shards };
        let make = |_| Part {
            shard: RwLock::new(if limits.is_bounded() && limits.evicts {
                let share = |whole: u64, part: u64| if whole == u64::MAX { whole } else { part.max(1) };
                Shard::bounded(Capacity {
                    entries: share(limits.entries_max, even.entries),
                    bytes: share(limits.bytes_max, even.bytes),
                })
            } else {
                Shard::plain()
            }),
        };
        Self {
            limits,
            clock,
            parts: (0..shards).map(make).collect(),
            tallies: Tallies::default(),
            words: Words::default(),
            watchers: Watchers::default(),
            computations: Computations::default(),
            closed: AtomicBool::new(false),
            evictions: AtomicU64::new(0),
            expirations: AtomicU64::new(0),
            counts_writes: (limits.is_bounded() && !limits.evicts) || journal.is_some(),
            journal,
            held: Mutex::default(),
        }
    }

    /// Its version words.
    pub const fn words(&self) -> &Words {
        &self.words
    }

    #[inline]
    pub fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release in close.
        self.closed.load(Ordering::Acquire)
    }

    /// Passes the entry of `key` to `read`, under the shard's lock, with the key's word and the milliseconds
    /// until it expires (0: it does not expire).
    #[inline]
    pub fn read<'k, R>(
        &self,
        key: impl Into<KeyRef<'k>>,
        read: impl FnOnce(&Entry, usize, u32, u64) -> R,
    ) -> Option<R> {
        self.read_again(key, 0, read)
    }

    /// As `read`, after `before` reads of a view, which count as hits.
    #[inline]
    pub fn read_again<'k, R>(
        &self,
        key: impl Into<KeyRef<'k>>,
        before: u32,
        read: impl FnOnce(&Entry, usize, u32, u64) -> R,
    ) -> Option<R> {
        let key = key.into();
        let (part, index) = self.locate(key);
        let shard = part.shard.read();
        let found = shard.get(key).and_then(|entry| self.left_ms(entry).map(|left_ms| (entry, left_ms)));
        let tally = self.tallies.of_thread();
        // Relaxed: counts.
        match found {
            Some((entry, left_ms)) => {
                tally.hits.fetch_add(1 + u64::from(before), Ordering::Relaxed);
                Some(read(entry, index, self.words.load(index), left_ms))
            }
            None => {
                tally.misses.fetch_add(1, Ordering::Relaxed);
                if before > 0 {
                    tally.hits.fetch_add(u64::from(before), Ordering::Relaxed);
                }
                None
            }
        }
    }

    /// The version word of an absent key and its index; `None` if the key is not absent.
    pub fn word_of_absent<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<(usize, u32)> {
        let key = key.into();
        let (part, index) = self.locate(key);
        let shard = part.shard.read();
        self.current(&shard, key).is_none().then(|| (index, self.words.load(index)))
    }

    /// Whether there is an entry. Counts neither as hit nor as miss.
    pub fn has<'k>(&self, key: impl Into<KeyRef<'k>>) -> bool {
        let key = key.into();
        self.locate(key).0.shard.read().peek(key).is_some_and(|entry| self.left_ms(entry).is_some())
    }

    /// Writes and returns the version of the new entry.
    /// Refused: nothing has changed.
    #[inline(always)]
    pub fn set<'k>(
        &self,
        key: impl Into<KeyRef<'k>>,
        value: NewValue<'_>,
        expected: Expected,
    ) -> Result<u64, Refusal> {
        let key = key.into();
        if value.bytes.len() as u64 > self.limits.value_bytes_max {
            return Err(Refusal::TooLarge);
        }
        let mut to_notify = ToNotify::new();
        if value.bytes.len() <= LOCKED_COPY_MAX
            && let Some(outcome) = self.put_over(key, &value, expected, &mut to_notify)
        {
            if !to_notify.is_empty() {
                watch::notify(to_notify);
            }
            return outcome;
        }
        let (mut out, mut bytes) = (Vec::new(), Bytes::new(value.bytes));
        let mut put = || self.put(key, &value, &mut bytes, expected, &mut out, &mut to_notify);
        let outcome = match put() {
            // Entries of other shards may have expired and still count.
            Err(Refusal::Full) if self.sweep_all() => put(),
            outcome => outcome,
        };
        drop(out);
        watch::notify(to_notify);
        outcome
    }

    /// The common write: it overwrites a value, expires nothing and is not refused. `None`: not the common
    /// case.
    #[inline(always)]
    fn put_over(
        &self,
        key: KeyRef<'_>,
        value: &NewValue<'_>,
        expected: Expected,
        to_notify: &mut ToNotify,
    ) -> Option<Result<u64, Refusal>> {
        if value.keeps.is_some() || self.counts_writes {
            return None;
        }
        match value.ttl {
            Ttl::Keep => {}
            Ttl::Default if self.limits.ttl_ms == 0 => {}
            _ => return None,
        }
        let (part, index) = self.locate(key);
        let mut shard = part.shard.write();
        if self.is_closed() {
            return Some(Err(Refusal::Closed));
        }
        if shard.has_deadlines() {
            return None;
        }
        let may = |old: &Entry| {
            if matches(expected, Some(old)) { Ok(old.keeps.is_none()) } else { Err(Refusal::Conflict) }
        };
        let version = match shard.rewrite(key, value.bytes, may) {
            Ok(version) => version?,
            Err(refusal) => return Some(Err(refusal)),
        };
        self.words.touch(index);
        self.watchers.put(Change::Set, key, version, to_notify);
        Some(Ok(version))
    }

    /// Takes `bytes` unless it refuses, so that the previous memory is freed without a lock.
    fn put(
        &self,
        key: KeyRef<'_>,
        value: &NewValue<'_>,
        bytes: &mut Bytes,
        expected: Expected,
        out: &mut Vec<(Key, Entry)>,
        to_notify: &mut ToNotify,
    ) -> Result<u64, Refusal> {
        let (part, index) = self.locate(key);
        let mut shard = part.shard.write();
        if self.is_closed() {
            return Err(Refusal::Closed);
        }
        let old = self.current(&shard, key);
        if !matches(expected, old) {
            return Err(Refusal::Conflict);
        }
        if self.journal.as_ref().is_some_and(|journal| journal.is_behind()) {
            return Err(Refusal::Behind);
        }
        let expires_ms = self.deadline(value.ttl, old);
        let version = shard.version + 1;
        let entry = Entry { bytes: std::mem::take(bytes), version, expires_ms, keeps: value.keeps.clone() };
        if shard.is_too_large(key.bytes(), &entry) {
            *bytes = entry.bytes;
            return Err(Refusal::TooLarge);
        }
        let expired_before = out.len();
        self.expire_some(&mut shard, false, out, expired_before, to_notify);
        if let Err(refusal) = self.hold(&shard, key, &entry) {
            *bytes = entry.bytes;
            return Err(refusal);
        }
        if let Some(journal) = &self.journal {
            journal.set(key, &entry);
        }
        shard.version = version;
        let expired = out.len();
        let replaced = shard.insert(key, entry, out);
        self.words.touch(index);
        self.watchers.put(Change::Set, key, version, to_notify);
        for (key, entry) in &out[expired..] {
            self.removed(Change::Evict, key, entry, to_notify);
        }
        drop(shard);
        drop(replaced);
        Ok(version)
    }

    /// Removes an entry; returns whether it existed.
    pub fn remove<'k>(&self, key: impl Into<KeyRef<'k>>, expected: Expected) -> Result<bool, Refusal> {
        let key = key.into();
        let (part, _) = self.locate(key);
        let mut to_notify = ToNotify::new();
        let mut shard = part.shard.write();
        if self.is_closed() {
            return Err(Refusal::Closed);
        }
        let old = self.current(&shard, key);
        let found = old.is_some();
        if !matches(expected, old) {
            return Err(Refusal::Conflict);
        }
        let removed = shard.remove(key);
        if let Some((key, entry)) = &removed {
            self.release(key, entry);
            let change = if found { Change::Delete } else { Change::Expire };
            self.removed(change, key, entry, &mut to_notify);
        }
        drop(shard);
        drop(removed);
        watch::notify(to_notify);
        Ok(found)
    }

    /// Watches keys with a queue of at most `events_max` changes.
    pub fn watch(&self, pattern: Pattern, events_max: usize, call: Call) -> Option<Arc<Watcher>> {
        let parts = match &pattern {
            Pattern::Key(key) => {
                let at = self.part_of(Words::index(key.as_ref().hash()));
                at..at + 1
            }
            Pattern::Prefix(_) => 0..self.parts.len(),
        };
        let watcher = self.watchers.add(pattern, events_max, call);
        // A write that has seen no watcher ends before its shard's lock is released here, so later views see
        // its word. Later writes see the watcher.
        for part in &self.parts[parts] {
            drop(part.shard.read());
        }
        // Closed in between: no notification would ever come.
        if self.is_closed() {
            self.unwatch(&watcher);
            return None;
        }
        Some(watcher)
    }

    /// End a watch.
    pub fn unwatch(&self, watcher: &Arc<Watcher>) {
        self.watchers.remove(watcher);
    }

    /// Asks which call computes the value of a key.
    pub fn compute_begin<'k>(&self, key: impl Into<KeyRef<'k>>, call: Call) -> Begin {
        self.computations.begin(key.into(), call)
    }

    /// A call to compute ends; see [`Begin`].
    pub fn compute_end<'k>(&self, key: impl Into<KeyRef<'k>>, thread: u32, ticket: u32, succeeded: bool) {
        self.computations.end(key.into(), thread, ticket, succeeded);
    }

    /// The changes that its file does not contain yet, if it has a file.
    pub const fn journal(&self) -> Option<&Arc<Journal>> {
        self.journal.as_ref()
    }

    /// A thread has ended: its watchers and waits end, its computations pass to waiters.
    pub fn thread_ended(&self, thread: u32) {
        if let Some(journal) = &self.journal {
            journal.thread_ended(thread);
        }
        self.watchers.retain_owners(|other| other != thread);
        self.computations.thread_ended(thread);
    }

    #[inline]
    fn locate(&self, key: KeyRef<'_>) -> (&Part, usize) {
        let index = Words::index(key.hash());
        (&self.parts[self.part_of(index)], index)
    }

    /// The part of the keys with that word.
    #[inline]
    const fn part_of(&self, index: usize) -> usize {
        index & (self.parts.len() - 1)
    }

    /// Milliseconds until an entry expires, 0 if it does not expire; `None` if it has expired.
    #[inline]
    fn left_ms(&self, entry: &Entry) -> Option<u64> {
        if entry.expires_ms == 0 {
            return Some(0);
        }
        entry.expires_ms.checked_sub((self.clock)()).filter(|&left_ms| left_ms > 0)
    }

    fn current<'a>(&self, shard: &'a Shard, key: KeyRef<'_>) -> Option<&'a Entry> {
        shard.peek(key).filter(|entry| self.left_ms(entry).is_some())
    }

    fn deadline(&self, ttl: Ttl, old: Option<&Entry>) -> u64 {
        let ttl_ms = match (ttl, old) {
            (Ttl::Ms(ttl_ms), _) => ttl_ms,
            (Ttl::Keep, Some(old)) => return old.expires_ms,
            _ => self.limits.ttl_ms,
        };
        if ttl_ms == 0 { 0 } else { (self.clock)().saturating_add(ttl_ms) }
    }

    /// Removes expired entries; those after the first `from` of `out` are new.
    fn expire_some(
        &self,
        shard: &mut Shard,
        all: bool,
        out: &mut Vec<(Key, Entry)>,
        from: usize,
        to_notify: &mut ToNotify,
    ) {
        if !shard.has_deadlines() {
            return;
        }
        shard.expire((self.clock)(), all, out);
        for (key, entry) in &out[from..] {
            self.release(key, entry);
            self.removed(Change::Expire, key, entry, to_notify);
        }
    }

    /// An entry was removed without being replaced.
    fn removed(&self, change: Change, key: &Key, entry: &Entry, to_notify: &mut ToNotify) {
        if let Some(journal) = &self.journal {
            journal.remove(key.as_ref());
        }
        self.report(change, key, entry, to_notify);
    }

    /// As `removed`; the journal has it.
    fn report(&self, change: Change, key: &Key, entry: &Entry, to_notify: &mut ToNotify) {
        match change {
            Change::Evict => self.evictions.fetch_add(1, Ordering::Relaxed),
            Change::Expire => self.expirations.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        self.words.touch(self.locate(key.as_ref()).1);
        self.watchers.put(change, key.as_ref(), entry.version, to_notify);
    }

    /// Without eviction: counts an entry, or refuses it.
    fn hold(&self, shard: &Shard, key: KeyRef<'_>, entry: &Entry) -> Result<(), Refusal> {
        if self.limits.evicts || !self.limits.is_bounded() {
            return Ok(());
        }
        let (bytes, old) = (shard::bytes_of(key.bytes(), entry), shard.peek(key));
        let (old_bytes, added) = old.map_or((0, 1), |old| (shard::bytes_of(key.bytes(), old), 0));
        let mut held = self.held.lock();
        let now = Holding { entries: held.entries + added, bytes: held.bytes - old_bytes + bytes };
        if now.entries > self.limits.entries_max || now.bytes > self.limits.bytes_max {
            return Err(Refusal::Full);
        }
        *held = now;
        Ok(())
    }

    /// Reverts `hold`.
    fn release(&self, key: &[u8], entry: &Entry) {
        if !self.limits.evicts && self.limits.is_bounded() {
            let mut held = self.held.lock();
            held.entries -= 1;
            held.bytes -= shard::bytes_of(key, entry);
        }
    }
}

fn matches(expected: Expected, old: Option<&Entry>) -> bool {
    match expected {
        Expected::Any => true,
        Expected::Version(version) => old.map_or(0, |entry| entry.version) == version,
    }
}
