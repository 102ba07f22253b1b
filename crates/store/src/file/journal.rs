//! The changes of a store that its file does not contain yet, and who waits for them.
//!
//! Every change enters under the lock of its shard and takes the next number. A group is all changes that are
//! waiting, the last one of each key: taking it is a cut in the order of all changes, so after a crash the
//! file has the store as it was at one moment. A change is durable when a commit of its group has ended;
//! after a failure the group returns below what has come since.
//!
//! No lock is taken while the journal's own is held, and notifying never waits, so shards may call this.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{
    platform::{Identity, has_name},
    problem::Problem,
};
pub use crate::layout::{Flush, Stage};
use crate::{
    bytes::Bytes,
    key::{Brought, Key, KeyRef},
    notify::{Call, Fact},
    shard::{ENTRY_BYTES, Entry},
    terms::Clock,
};

/// How long the writer waits after a failure, unless somebody flushes.
const RETRY: Duration = Duration::from_secs(1);

/// What the file is to contain of a key.
pub struct Record {
    pub bytes: Bytes,
    /// Expiration in milliseconds of the wall clock; 0: never.
    pub expires_ms: u64,
}

/// Changes that are committed together, one for each key.
#[derive(Default)]
pub struct Group {
    /// The file is emptied before the changes.
    pub cleared: bool,
    /// `None`: the key is deleted.
    pub changes: HashMap<Key, Option<Record>, Brought>,
    bytes: u64,
}

impl Group {
    fn is_empty(&self) -> bool {
        !self.cleared && self.changes.is_empty()
    }

    fn put(&mut self, key: Key, change: Option<Record>) {
        self.bytes += size(&key, change.as_ref());
        match self.changes.entry(key) {
            std::collections::hash_map::Entry::Occupied(mut slot) => {
                let bytes = size(slot.key(), slot.get().as_ref());
                self.bytes -= bytes;
                slot.insert(change);
            }
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(change);
            }
        }
    }
}

/// Bytes that a change is accounted with.
fn size(key: &[u8], change: Option<&Record>) -> u64 {
    (key.len() + change.map_or(0, |record| record.bytes.len())) as u64 + ENTRY_BYTES
}

/// The changes of one store on their way into its file.
pub struct Journal {
    path: PathBuf,
    /// The identity of the file, once it is open.
    identity: OnceLock<Identity>,
    bytes_max: u64,
    clock: Clock,
    wall: Clock,
    state: Mutex<State>,
    /// The writer waits here.
    work: Condvar,
    /// Threads that open or close the store wait here.
    progress: Condvar,
}

struct State {
    stage: Stage,
    group: Group,
    /// Bytes of the group that is being committed.
    committing_bytes: u64,
    /// Number of the last change.
    written: u64,
    /// All changes up to this one are in the file.
    durable: u64,
    /// Groups that the file has received.
    syncs: u64,
    /// Who waits for which change.
    waits: Vec<(u64, Call)>,
    /// Why the last commit failed.
    problem: Option<Problem>,
    retry_at: Option<Instant>,
    /// The writer waits for changes.
    idle: bool,
}

impl Journal {
    /// A journal of the file at `path`, which is not opened yet.
    pub fn new(path: PathBuf, bytes_max: u64, clock: Clock, wall: Clock) -> Self {
        let state = State {
            stage: Stage::Opening,
            group: Group::default(),
            committing_bytes: 0,
            written: 0,
            durable: 0,
            syncs: 0,
            waits: Vec::new(),
            problem: None,
            retry_at: None,
            idle: false,
        };
        let (work, progress) = (Condvar::new(), Condvar::new());
        Self {
            path,
            identity: OnceLock::new(),
            bytes_max,
            clock,
            wall,
            state: Mutex::new(state),
            work,
            progress,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many groups of changes the file has received.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// The file at the path is open.
    pub(super) fn identified(&self, identity: Identity) {
        self.identity.get_or_init(|| identity);
    }

    /// Whether the file that is open was deleted or replaced.
    pub(super) fn has_lost_file(&self) -> bool {
        self.identity.get().is_some_and(|&identity| !has_name(identity, &self.path))
    }

    /// Milliseconds from now until a moment of the wall clock; `None` if it has passed.
    pub(super) fn left_ms(&self, expires_ms: u64) -> Option<u64> {
        expires_ms.checked_sub((self.wall)()).filter(|&left_ms| left_ms > 0)
    }

    /// Whether no entry may be added, since the changes that wait have reached the limit.
    pub fn is_behind(&self) -> bool {
        self.changes().is_behind()
    }

    /// What the file is to contain of an entry.
    pub fn record(&self, entry: &Entry) -> Record {
        let expires_ms = match entry.expires_ms {
            0 => 0,
            expires_ms => (self.wall)() + expires_ms.saturating_sub((self.clock)()),
        };
        Record { bytes: entry.bytes.clone(), expires_ms }
    }

    /// An entry was written. The caller holds the lock of its shard.
    pub fn set(&self, key: KeyRef<'_>, entry: &Entry) {
        let record = self.record(entry);
        self.changes().set(key.to_key(), record);
    }

    /// An entry was removed: deleted, expired or evicted. The caller holds the lock of its shard.
    pub fn remove(&self, key: KeyRef<'_>) {
        self.changes().remove(key.to_key());
    }

    /// Changes that no group separates. The caller holds the locks of their shards.
    pub fn changes(&self) -> Changes<'_> {
        Changes { journal: self, state: self.state.lock() }
    }

    /// All entries were removed. The caller holds the locks of all shards.
    pub fn clear(&self) {
        let mut state = self.state.lock();
        if state.stage == Stage::Open {
            state.group = Group { cleared: true, ..Group::default() };
            self.changed(&mut state);
        }
    }

    fn changed(&self, state: &mut State) {
        state.written += 1;
        if state.idle && state.problem.is_none() {
            self.wake(state);
        }
    }

    fn wake(&self, state: &mut State) {
        state.idle = false;
        self.work.notify_one();
    }

    /// Asks for a fact when all changes up to now are in the file.
    pub fn flush(&self, call: Call) -> Flush {
        let mut state = self.state.lock();
        if state.durable == state.written {
            return Flush::Done;
        }
        if state.stage == Stage::Ended {
            return Flush::Ended;
        }
        let written = state.written;
        state.waits.push((written, call));
        state.retry_at = None;
        if state.idle {
            self.wake(&mut state);
        }
        Flush::Waits
    }

    /// A thread has ended: its waits are dropped.
    pub fn thread_ended(&self, thread: u32) {
        self.state.lock().waits.retain(|(_, call)| call.thread != thread);
    }

    /// The store is closed: later changes are not recorded. The caller holds the locks of all shards.
    pub fn close(&self) {
        let mut state = self.state.lock();
        if state.stage != Stage::Ended {
            state.stage = Stage::Closing;
            self.wake(&mut state);
        }
    }

    /// The stage after at most `slice`, sooner if the file is neither being opened nor being closed.
    pub fn stage(&self, slice: Duration) -> Stage {
        let mut state = self.state.lock();
        if matches!(state.stage, Stage::Opening | Stage::Closing) {
            self.progress.wait_for(&mut state, slice);
        }
        state.stage
    }

    /// Why the last commit failed, or the opening of the file.
    pub fn problem(&self) -> Option<Problem> {
        self.state.lock().problem.clone()
    }

    /// All entries are loaded.
    pub(super) fn opened(&self) {
        let mut state = self.state.lock();
        if state.stage == Stage::Opening {
            state.stage = Stage::Open;
        }
        self.progress.notify_all();
    }

    /// The file is closed, or could not be opened.
    pub(super) fn ended(&self, problem: Option<Problem>) {
        let mut state = self.state.lock();
        state.stage = Stage::Ended;
        if problem.is_some() {
            state.problem = problem;
        }
        let waits = std::mem::take(&mut state.waits);
        self.progress.notify_all();
        drop(state);
        notify(waits, Fact::Failed);
    }

    /// The next group with the number of its last change; `None` when the store is closed and nothing waits.
    pub(super) fn next(&self) -> Option<(Group, u64)> {
        let mut state = self.state.lock();
        while state.stage != Stage::Closing {
            let waits = state.retry_at.is_some_and(|at| Instant::now() < at);
            if !waits && !state.group.is_empty() {
                break;
            }
            state.idle = true;
            match state.retry_at {
                Some(at) if waits => drop(self.work.wait_until(&mut state, at)),
                _ => self.work.wait(&mut state),
            }
        }
        state.idle = false;
        if state.group.is_empty() {
            return None;
        }
        let group = std::mem::take(&mut state.group);
        state.committing_bytes = group.bytes;
        Some((group, state.written))
    }

    /// A commit has ended; false if it was the last one.
    pub(super) fn committed(&self, group: Group, up_to: u64, outcome: Result<(), Problem>) -> bool {
        let mut state = self.state.lock();
        state.committing_bytes = 0;
        let waits = std::mem::take(&mut state.waits);
        let (waits, later) = waits.into_iter().partition(|&(number, _)| number <= up_to);
        state.waits = later;
        let fact = match outcome {
            Ok(()) => {
                state.durable = up_to;
                state.syncs += 1;
                (state.problem, state.retry_at) = (None, None);
                Fact::Durable
            }
            Err(problem) => {
                restore(&mut state.group, group);
                state.problem = Some(problem);
                // Who asks for a flush meanwhile waits for the next try, which is at once then.
                state.retry_at = state.waits.is_empty().then(|| Instant::now() + RETRY);
                Fact::Failed
            }
        };
        let goes_on = state.stage != Stage::Closing || (fact == Fact::Durable && !state.group.is_empty());
        drop(state);
        notify(waits, fact);
        goes_on
    }
}

/// Changes that come into one group, while the journal is locked.
pub struct Changes<'a> {
    journal: &'a Journal,
    state: MutexGuard<'a, State>,
}

impl Changes<'_> {
    /// As [`Journal::is_behind`].
    pub fn is_behind(&self) -> bool {
        let Journal { bytes_max, .. } = self.journal;
        let State { stage, group, committing_bytes, .. } = &*self.state;
        *stage == Stage::Open && group.bytes + committing_bytes >= *bytes_max
    }

    /// An entry was written.
    pub fn set(&mut self, key: Key, record: Record) {
        // What is written while the file is being opened comes from it.
        if self.state.stage == Stage::Open {
            self.state.group.put(key, Some(record));
            self.journal.changed(&mut self.state);
        }
    }

    /// An entry was removed.
    pub fn remove(&mut self, key: Key) {
        if matches!(self.state.stage, Stage::Open | Stage::Opening) {
            self.state.group.put(key, None);
            self.journal.changed(&mut self.state);
        }
    }
}

/// Put a group back below the changes that have come since.
fn restore(newer: &mut Group, older: Group) {
    if newer.cleared {
        return;
    }
    let newer_changes = std::mem::replace(newer, older).changes;
    for (key, change) in newer_changes {
        newer.put(key, change);
    }
}

fn notify(waits: Vec<(u64, Call)>, fact: Fact) {
    for (_, call) in waits {
        call.notify(fact);
    }
}
