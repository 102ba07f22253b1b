//! Several keys at once, in one store or in several: all of their steps take effect at one moment, or none.
//!
//! A commit is one call. It locks the shards of its keys in one order, by store and by shard, in which
//! `clear` and `close` lock theirs; it compares versions, and only when nothing can refuse any more it
//! changes the first entry. Behind the shards it locks, by store, the journals of files and the counts of
//! bounded stores: a group of a file has all of a commit or nothing.
//!
//! Who reads several keys one after the other has them as of one moment if their words are unchanged behind
//! the last read: a commit changes the words of its keys before it releases the first lock.

use std::{ops::Range, ptr, sync::Arc};

use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use super::{Holding, Store, matches};
use crate::{
    bytes::Bytes,
    file::{Changes, Record},
    key::Key,
    shard::{self, Entry, Shard},
    terms::{Expected, Keeps, Refusal, Ttl},
    watch::{self, Change, ToNotify},
    words::Words,
};

/// What a step does to its key.
pub enum Action {
    /// Nothing: only the version is compared.
    Check,
    /// It writes.
    Set {
        bytes: Bytes,
        ttl: Ttl,
        /// What the value refers to.
        keeps: Option<Keeps>,
    },
    Remove,
}

/// A step of a commit, which has one for each of its keys.
pub struct Step {
    pub store: Arc<Store>,
    pub key: Key,
    pub expected: Expected,
    pub action: Action,
}

/// Why a commit has changed nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Refused {
    pub step: usize,
    pub refusal: Refusal,
}

/// Takes all steps at one moment.
/// Refused: nothing has changed.
pub fn commit(mut steps: Vec<Step>) -> Result<(), Refused> {
    let mut entries: Vec<Option<Entry>> = steps.iter_mut().map(|step| step.action.entry()).collect();
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_unstable_by_key(|&index| steps[index].at());
    let mut after = After::default();
    let mut run = |after: &mut After| Locked::new(&steps, &order).run(&mut entries, after);
    let outcome = match run(&mut after) {
        // Entries of other shards may have expired and still count.
        Err(Refused { step, refusal: Refusal::Full }) if steps[step].store.sweep_all() => run(&mut after),
        outcome => outcome,
    };
    watch::notify(after.to_notify);
    outcome
}

impl Action {
    /// The entry of a step that writes, without version and deadline.
    fn entry(&mut self) -> Option<Entry> {
        let Self::Set { bytes, keeps, .. } = self else { return None };
        Some(Entry { bytes: std::mem::take(bytes), version: 0, expires_ms: 0, keeps: keeps.take() })
    }
}

impl Step {
    /// Where its lock is in the order of all locks.
    fn at(&self) -> (*const Store, usize) {
        (Arc::as_ptr(&self.store), self.store.part_of(Words::index(self.key.as_ref().hash())))
    }

    const fn writes(&self) -> bool {
        !matches!(self.action, Action::Check)
    }

    const fn refused(index: usize, refusal: Refusal) -> Refused {
        Refused { step: index, refusal }
    }
}

/// What is freed, and who is notified, once no lock is held.
#[derive(Default)]
struct After {
    removed: Vec<(Key, Entry)>,
    replaced: Vec<Entry>,
    to_notify: ToNotify,
}

/// A shard, locked for the steps that concern it.
enum Hold<'a> {
    Shared(RwLockReadGuard<'a, Shard>),
    Exclusive(RwLockWriteGuard<'a, Shard>),
}

impl Hold<'_> {
    fn shard(&self) -> &Shard {
        match self {
            Self::Shared(shard) => shard,
            Self::Exclusive(shard) => shard,
        }
    }

    fn exclusive(&mut self) -> Option<&mut Shard> {
        match self {
            Self::Exclusive(shard) => Some(shard),
            Self::Shared(_) => None,
        }
    }
}

/// A shard and its steps, as a range of the order.
struct Part<'a> {
    hold: Hold<'a>,
    store: &'a Store,
    range: Range<usize>,
}

/// What a store that is written has beside its shards: what its file lacks, and what it holds.
struct Beside<'a> {
    store: &'a Store,
    changes: Option<Changes<'a>>,
    held: Option<MutexGuard<'a, Holding>>,
    holding: Holding,
}

/// The shards of a commit, locked.
struct Locked<'a> {
    steps: &'a [Step],
    order: &'a [usize],
    parts: Vec<Part<'a>>,
}

impl<'a> Locked<'a> {
    fn new(steps: &'a [Step], order: &'a [usize]) -> Self {
        let mut parts = Vec::new();
        let mut from = 0;
        while from < order.len() {
            let first = &steps[order[from]];
            let (store, at) = (&*first.store, first.at());
            let same = order[from..].iter().take_while(|&&index| steps[index].at() == at).count();
            let range = from..from + same;
            from = range.end;
            let lock = &store.parts[at.1].shard;
            let hold = if order[range.clone()].iter().any(|&index| steps[index].writes()) {
                Hold::Exclusive(lock.write())
            } else {
                Hold::Shared(lock.read())
            };
            parts.push(Part { hold, store, range });
        }
        Self { steps, order, parts }
    }

    fn run(mut self, entries: &mut [Option<Entry>], after: &mut After) -> Result<(), Refused> {
        self.compare(entries)?;
        self.measure(entries)?;
        self.expire(after);
        let mut records = self.records(entries);
        let mut beside = self.beside(entries)?;
        for Beside { held, holding, .. } in &mut beside {
            if let Some(held) = held {
                **held = *holding;
            }
        }
        let mut beside = beside.iter_mut().peekable();
        for Part { hold, store, range } in &mut self.parts {
            let Some(shard) = hold.exclusive() else { continue };
            while beside.next_if(|beside| !ptr::eq(beside.store, *store)).is_some() {}
            let Some(Beside { changes, .. }) = beside.peek_mut() else { continue };
            for &index in &self.order[range.clone()] {
                let key = &self.steps[index].key;
                match (entries[index].take(), self.steps[index].writes()) {
                    (Some(entry), _) => {
                        store.take_in(shard, key, (entry, records[index].take()), changes.as_mut(), after);
                    }
                    (None, true) => store.take_out(shard, key, changes.as_mut(), after),
                    (None, false) => {}
                }
            }
        }
        Ok(())
    }

    /// Whether each key has the version that its step expects. Decides the deadlines of what is written.
    fn compare(&self, entries: &mut [Option<Entry>]) -> Result<(), Refused> {
        for (store, shard, index) in self.each() {
            let step = &self.steps[index];
            if store.is_closed() {
                return Err(Step::refused(index, Refusal::Closed));
            }
            let old = store.current(shard, step.key.as_ref());
            if !matches(step.expected, old) {
                return Err(Step::refused(index, Refusal::Conflict));
            }
            if let (Some(entry), Action::Set { ttl, .. }) = (&mut entries[index], &step.action) {
                entry.expires_ms = store.deadline(*ttl, old);
            }
        }
        Ok(())
    }

    /// Whether each value is within the limits of values.
    fn measure(&self, entries: &[Option<Entry>]) -> Result<(), Refused> {
        for (store, shard, index) in self.each() {
            if let Some(entry) = &entries[index]
                && (entry.bytes.len() as u64 > store.limits.value_bytes_max
                    || shard.is_too_large(&self.steps[index].key, entry))
            {
                return Err(Step::refused(index, Refusal::TooLarge));
            }
        }
        Ok(())
    }

    fn each(&self) -> impl Iterator<Item = (&'a Store, &Shard, usize)> {
        self.parts.iter().flat_map(|Part { hold, store, range }| {
            self.order[range.clone()].iter().map(|&index| (*store, hold.shard(), index))
        })
    }

    /// Removes entries that have expired, as each write does.
    fn expire(&mut self, after: &mut After) {
        for Part { hold, store, .. } in &mut self.parts {
            if let Some(shard) = hold.exclusive() {
                let from = after.removed.len();
                store.expire_some(shard, false, &mut after.removed, from, &mut after.to_notify);
            }
        }
    }

    /// What the files will contain. Copied before the journals are locked.
    fn records(&self, entries: &[Option<Entry>]) -> Vec<Option<Record>> {
        let record = |(entry, step): (&Option<Entry>, &Step)| {
            entry.as_ref().and_then(|entry| Some(step.store.journal.as_ref()?.record(entry)))
        };
        entries.iter().zip(self.steps).map(record).collect()
    }

    /// Locks the journals and the counts of the stores that are written, and refuses what is beyond a limit.
    fn beside(&self, entries: &[Option<Entry>]) -> Result<Vec<Beside<'a>>, Refused> {
        let mut all: Vec<Beside<'a>> = Vec::new();
        for (store, shard, index) in self.each().filter(|&(_, _, index)| self.steps[index].writes()) {
            if all.last().is_none_or(|last| !ptr::eq(last.store, store)) {
                let changes = store.journal.as_ref().map(|journal| journal.changes());
                let held = (store.limits.is_bounded() && !store.limits.evicts).then(|| store.held.lock());
                let holding = held.as_deref().copied().unwrap_or_default();
                all.push(Beside { store, changes, held, holding });
            }
            let Some(last) = all.last_mut() else { continue };
            let entry = entries[index].as_ref();
            if entry.is_some() && last.changes.as_ref().is_some_and(Changes::is_behind) {
                return Err(Step::refused(index, Refusal::Behind));
            }
            if last.held.is_some() {
                last.holding.exchange(&self.steps[index].key, shard, entry);
            }
        }
        match all.iter().find(|beside| beside.is_full()) {
            Some(full) => {
                let of = |step: &Step| ptr::eq(&*step.store, full.store);
                Err(Step::refused(self.steps.iter().position(of).unwrap_or_default(), Refusal::Full))
            }
            None => Ok(all),
        }
    }
}

impl Beside<'_> {
    /// Whether the store would hold more than it may, and more than now.
    fn is_full(&self) -> bool {
        let (limits, Some(held)) = (&self.store.limits, &self.held) else { return false };
        (self.holding.entries > limits.entries_max && self.holding.entries > held.entries)
            || (self.holding.bytes > limits.bytes_max && self.holding.bytes > held.bytes)
    }
}

impl Holding {
    /// The entry of a key is replaced, or removed.
    fn exchange(&mut self, key: &Key, shard: &Shard, entry: Option<&Entry>) {
        if let Some(old) = shard.peek(key.as_ref()) {
            self.entries -= 1;
            self.bytes -= shard::bytes_of(key, old);
        }
        if let Some(entry) = entry {
            self.entries += 1;
            self.bytes += shard::bytes_of(key, entry);
        }
    }
}

impl Store {
    /// A step writes. The caller has compared and counted.
    fn take_in(
        &self,
        shard: &mut Shard,
        key: &Key,
        (mut entry, record): (Entry, Option<Record>),
        mut changes: Option<&mut Changes<'_>>,
        after: &mut After,
    ) {
        let version = shard.version + 1;
        shard.version = version;
        entry.version = version;
        if let (Some(changes), Some(record)) = (&mut changes, record) {
            changes.set(key.clone(), record);
        }
        let from = after.removed.len();
        after.replaced.extend(shard.insert(key.as_ref(), entry, &mut after.removed));
        self.words.touch(self.locate(key.as_ref()).1);
        self.watchers.put(Change::Set, key.as_ref(), version, &mut after.to_notify);
        for (key, entry) in &after.removed[from..] {
            if let Some(changes) = &mut changes {
                changes.remove(key.clone());
            }
            self.report(Change::Evict, key, entry, &mut after.to_notify);
        }
    }

    /// A step removes.
    fn take_out(&self, shard: &mut Shard, key: &Key, changes: Option<&mut Changes<'_>>, after: &mut After) {
        let Some((key, entry)) = shard.remove(key.as_ref()) else { return };
        if let Some(changes) = changes {
            changes.remove(key.clone());
        }
        self.report(Change::Delete, &key, &entry, &mut after.to_notify);
        after.removed.push((key, entry));
    }
}
