//! Watching keys: a bounded queue of changes per watcher, and a count of those that did not fit.
//!
//! Changes of a key are queued under the lock of its shard, so they arrive in order. A full queue takes
//! nothing until its reader has emptied it; the changes missed meanwhile are one gap after the rest. The
//! reader is notified once per emptying.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};

pub use crate::layout::Change;
use crate::{
    key::{Key, KeyRef},
    notify::{Call, Fact},
};

/// A change of a key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    pub change: Change,
    /// The key; empty for `Clear`.
    pub key: Box<[u8]>,
    /// The version that was written or removed.
    pub version: u64,
}

/// The watched keys, as a byte for the width of the characters (0: one byte, 1: two) and the characters.
#[derive(Clone, Debug)]
pub enum Pattern {
    Key(Key),
    /// All keys that begin with these characters.
    Prefix(Box<[u8]>),
}

/// Whether a key begins with these characters.
fn begins(key: &[u8], prefix: &[u8]) -> bool {
    let mut characters = units(key);
    units(prefix).all(|unit| characters.next() == Some(unit))
}

/// The characters of a key, whatever their width.
fn units(key: &[u8]) -> impl Iterator<Item = u16> {
    let (wide, text) = key.split_first().map_or((0, &[][..]), |(&wide, text)| (wide, text));
    let step = if wide == 0 { 1 } else { 2 };
    text.chunks(step).map(|unit| u16::from(unit[0]) | unit.get(1).map_or(0, |&high| u16::from(high) << 8))
}

struct Queue {
    events: VecDeque<Event>,
    missed: u64,
    notified: bool,
}

/// One reader's queue.
pub struct Watcher {
    pattern: Pattern,
    events_max: usize,
    call: Call,
    queue: Mutex<Queue>,
}

impl Watcher {
    /// Takes the queued changes and the number of changes missed after them. The next change notifies again.
    pub fn take(&self) -> (VecDeque<Event>, u64) {
        let mut queue = self.queue.lock();
        queue.notified = false;
        (std::mem::take(&mut queue.events), std::mem::take(&mut queue.missed))
    }

    /// Queues a change; returns whether the reader must be notified.
    fn put(&self, event: Event) -> bool {
        let mut queue = self.queue.lock();
        if queue.missed > 0 || queue.events.len() >= self.events_max {
            queue.missed += 1;
        } else {
            queue.events.push_back(event);
        }
        !std::mem::replace(&mut queue.notified, true)
    }
}

/// The watchers of one store. Those of one key are found by it: many may wait, each for its own.
#[derive(Default)]
pub(crate) struct Watchers {
    count: AtomicUsize,
    all: RwLock<All>,
}

#[derive(Default)]
struct All {
    keys: HashTable<(Key, Vec<Arc<Watcher>>)>,
    prefixes: Vec<Arc<Watcher>>,
}

/// Readers to notify once the shard's lock is released.
pub(crate) type ToNotify = Vec<Arc<Watcher>>;

impl Watchers {
    pub(crate) fn add(&self, pattern: Pattern, events_max: usize, call: Call) -> Arc<Watcher> {
        let queue = Mutex::new(Queue { events: VecDeque::new(), missed: 0, notified: false });
        let watcher = Arc::new(Watcher { pattern, events_max, call, queue });
        let mut all = self.all.write();
        all.put(Arc::clone(&watcher));
        // Relaxed: a write that began before the watcher existed need not be reported.
        self.count.fetch_add(1, Ordering::Relaxed);
        watcher
    }

    pub(crate) fn remove(&self, watcher: &Arc<Watcher>) {
        let mut all = self.all.write();
        let removed = match &watcher.pattern {
            Pattern::Key(key) => all.remove(key, watcher),
            Pattern::Prefix(_) => {
                let before = all.prefixes.len();
                all.prefixes.retain(|other| !Arc::ptr_eq(other, watcher));
                before > all.prefixes.len()
            }
        };
        self.count.fetch_sub(usize::from(removed), Ordering::Relaxed);
    }

    /// Removes those of threads for which `keep` is false.
    pub(crate) fn retain_owners(&self, keep: impl Fn(u32) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut all = self.all.write();
        let mut count = 0;
        let mut retain = |watchers: &mut Vec<Arc<Watcher>>| {
            watchers.retain(|watcher| keep(watcher.call.thread));
            count += watchers.len();
            !watchers.is_empty()
        };
        retain(&mut all.prefixes);
        all.keys.retain(|(_, watchers)| retain(watchers));
        self.count.store(count, Ordering::Relaxed);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Queues a change for all watchers of its key.
    #[inline]
    pub(crate) fn put(&self, change: Change, key: KeyRef<'_>, version: u64, to_notify: &mut ToNotify) {
        if !self.is_empty() {
            self.put_each(change, key, version, to_notify);
        }
    }

    fn put_each(&self, change: Change, key: KeyRef<'_>, version: u64, to_notify: &mut ToNotify) {
        let all = self.all.read();
        let mut put = |watcher: &Arc<Watcher>| {
            if watcher.put(Event { change, key: key.bytes().into(), version }) {
                to_notify.push(Arc::clone(watcher));
            }
        };
        if change == Change::Clear {
            all.each().for_each(put);
            return;
        }
        if let Some((_, watchers)) = all.keys.find(key.hash(), |(other, _)| **other == *key.bytes()) {
            watchers.iter().for_each(&mut put);
        }
        for watcher in &all.prefixes {
            if matches!(&watcher.pattern, Pattern::Prefix(prefix) if begins(key.bytes(), prefix)) {
                put(watcher);
            }
        }
    }

    /// Notifies all watchers of the end and removes them.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.all.write());
        for watcher in all.each() {
            watcher.call.notify(Fact::Closed);
        }
    }
}

impl All {
    fn each(&self) -> impl Iterator<Item = &Arc<Watcher>> {
        self.keys.iter().flat_map(|(_, watchers)| watchers).chain(&self.prefixes)
    }

    fn put(&mut self, watcher: Arc<Watcher>) {
        let Pattern::Key(key) = &watcher.pattern else { return self.prefixes.push(watcher) };
        let hash = key.as_ref().hash();
        match self.keys.find_mut(hash, |(other, _)| other == key) {
            Some((_, watchers)) => watchers.push(watcher),
            None => {
                let entry = (key.clone(), vec![watcher]);
                self.keys.insert_unique(hash, entry, |(key, _)| key.as_ref().hash());
            }
        }
    }

    /// Whether the watcher of a key was there.
    fn remove(&mut self, key: &Key, watcher: &Arc<Watcher>) -> bool {
        let Ok(mut found) = self.keys.find_entry(key.as_ref().hash(), |(other, _)| other == key) else {
            return false;
        };
        let watchers = &mut found.get_mut().1;
        let Some(at) = watchers.iter().position(|other| Arc::ptr_eq(other, watcher)) else { return false };
        watchers.swap_remove(at);
        if watchers.is_empty() {
            found.remove();
        }
        true
    }
}

/// Notifies the readers.
pub(crate) fn notify(to_notify: ToNotify) {
    for watcher in to_notify {
        watcher.call.notify(Fact::Look);
    }
}
