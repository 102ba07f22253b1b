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

use parking_lot::{Mutex, RwLock};

pub use crate::layout::Change;
use crate::notify::{Call, Fact};

/// A change of a key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// The kind.
    pub change: Change,
    /// The key; empty for `Clear`.
    pub key: Box<[u8]>,
    /// The version that was written or removed.
    pub version: u64,
}

/// The watched keys, as a byte for the width of the characters (0: one byte, 1: two) and the characters.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// One key.
    Key(Box<[u8]>),
    /// All keys that begin with these characters.
    Prefix(Box<[u8]>),
}

impl Pattern {
    fn matches(&self, key: &[u8]) -> bool {
        match self {
            Self::Key(requested) => **requested == *key,
            Self::Prefix(prefix) => {
                let mut characters = units(key);
                units(prefix).all(|unit| characters.next() == Some(unit))
            }
        }
    }
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

impl std::fmt::Debug for Watcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Watcher({:?}, {:?})", self.pattern, self.call)
    }
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

/// The watchers of one store.
#[derive(Default)]
pub(crate) struct Watchers {
    count: AtomicUsize,
    all: RwLock<Vec<Arc<Watcher>>>,
}

/// Readers to notify once the shard's lock is released.
pub(crate) type ToNotify = Vec<Arc<Watcher>>;

impl Watchers {
    pub(crate) fn add(&self, pattern: Pattern, events_max: usize, call: Call) -> Arc<Watcher> {
        let queue = Mutex::new(Queue { events: VecDeque::new(), missed: 0, notified: false });
        let watcher = Arc::new(Watcher { pattern, events_max, call, queue });
        let mut all = self.all.write();
        all.push(Arc::clone(&watcher));
        // Relaxed: a write that began before the watcher existed need not be reported.
        self.count.store(all.len(), Ordering::Relaxed);
        watcher
    }

    /// Removes those for which `keep` is false.
    pub(crate) fn retain(&self, keep: impl Fn(&Arc<Watcher>) -> bool) {
        let mut all = self.all.write();
        all.retain(keep);
        self.count.store(all.len(), Ordering::Relaxed);
    }

    pub(crate) fn retain_owners(&self, keep: impl Fn(u32) -> bool) {
        self.retain(|watcher| keep(watcher.call.thread));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Queues a change for all watchers of its key.
    #[inline]
    pub(crate) fn put(&self, change: Change, key: &[u8], version: u64, to_notify: &mut ToNotify) {
        if self.is_empty() {
            return;
        }
        for watcher in &*self.all.read() {
            if change == Change::Clear || watcher.pattern.matches(key) {
                let event = Event { change, key: key.into(), version };
                if watcher.put(event) {
                    to_notify.push(Arc::clone(watcher));
                }
            }
        }
    }

    /// Notifies all watchers of the end and removes them.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.all.write());
        for watcher in all {
            watcher.call.notify(Fact::Closed);
        }
    }
}

/// Notifies the readers.
pub(crate) fn notify(to_notify: ToNotify) {
    for watcher in to_notify {
        watcher.call.notify(Fact::Look);
    }
}
