//! A worker's slot in its zone: the tasks that it holds, and its counts.
//!
//! It exists from the decision to start a worker until the worker's thread has ended.

use super::{Counts, Functions, Measures, Task, clock, deque, lock};
use crate::{
    mailbox::Mailbox,
    measure::Times,
    sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering},
};

/// A worker's entry in its zone, from the decision to start it until it has ended.
pub struct Slot {
    pub(super) number: u32,
    /// Broadcasts made before this worker was a member: it replays them and does not answer. A replacement is
    /// a member since its predecessor's last answer.
    pub(super) joined: u32,
    /// Broadcasts run so far.
    pub(super) applied: AtomicU32,
    pub(super) searching: AtomicBool,
    /// Tasks of the queue that only its worker may take, and the greatest depth of one; written under the
    /// zone's lock.
    pub(super) bound: AtomicUsize,
    pub(super) bound_deepest: AtomicU32,
    /// Tasks in `held`, and `CONDEMNED` more for a worker that must begin nothing; changed under its lock,
    /// read without it.
    pub(super) busy: AtomicUsize,
    pub(super) ended: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) stolen: AtomicU64,
    /// Times its worker was woken to take something.
    pub(super) wake_ups: AtomicU64,
    /// It is to leave when it has nothing to do.
    pub(super) dismissed: AtomicBool,
    /// [`RETIRED`], [`ALONE`], both or 0: with either it begins nothing but what its tasks wait for.
    pub(super) mode: AtomicU32,
    /// When it was attached, since when it has tasks, and how long it had some before; ticks.
    pub(super) since: AtomicU64,
    pub(super) busy_since: AtomicU64,
    pub(super) busy_ticks: AtomicU64,
    pub(super) mailbox: Mutex<Option<&'static Mailbox>>,
    pub(super) held: Mutex<Held>,
    /// Both ends of its deque; its own until the worker takes it.
    pub(super) own: Mutex<Option<deque::Own>>,
    pub(super) others: Option<deque::Others>,
}

/// What is changed for every task of a worker.
pub(super) struct Held {
    pub(super) running: Vec<Option<Running>>,
    pub(super) measures: Measures,
    /// Empty unless tasks are counted by function.
    pub(super) functions: Functions,
}

/// The worker leaves when its tasks have ended; another one replaces it.
pub(super) const RETIRED: u32 = 1;
/// The worker runs an exclusive task, or begins one when its tasks have ended (alone.rs). Changed under the
/// zone's lock.
pub(super) const ALONE: u32 = 2;

/// More tasks than any worker may have: one that is busy by so much takes no more.
pub(super) const CONDEMNED: usize = 1 << 31;

/// A task that a worker holds.
#[derive(Clone, Copy)]
pub(super) struct Running {
    pub(super) task: &'static Task,
    pub(super) serial: u32,
    pub(super) function: u32,
    /// When it was taken, in ticks.
    pub(super) since: u64,
    /// Its caller has given up.
    pub(super) cancelled: Option<Cancelled>,
    /// It was taken past forked tasks, and counts apart.
    pub(super) passes: bool,
    /// How many tasks wait for it, each for the next.
    pub(super) depth: u32,
}

/// When a running task was cancelled.
#[derive(Clone, Copy)]
pub(super) enum Cancelled {
    /// In ticks.
    At(u64),
    /// Long enough.
    Overdue,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerCounts {
    pub slot: u32,
    /// Tasks in its deque, and those that only it may take; the others of the zone's queue are nobody's yet.
    pub waiting: u64,
    /// Tasks taken and not ended.
    pub running: u64,
    /// Tasks ended, well or not.
    pub ended: u64,
    /// Of those, the ones whose function failed.
    pub failed: u64,
    /// Tasks taken from others' deques.
    pub stolen: u64,
    pub wake_ups: u64,
    /// The share of its time in which it had a task, 0 to 1.
    pub utilisation: f64,
    /// From acceptance to start, of the tasks that it took.
    pub wait: Times,
    /// From start to end.
    pub run: Times,
}

impl Slot {
    pub(super) fn new(number: u32, joined: u32, steals: bool) -> Self {
        let (own, others) = if steals {
            let (own, others) = deque::make();
            (Some(own), Some(others))
        } else {
            (None, None)
        };
        Self {
            number,
            joined,
            applied: AtomicU32::new(0),
            searching: AtomicBool::new(false),
            bound: AtomicUsize::new(0),
            bound_deepest: AtomicU32::new(0),
            busy: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            stolen: AtomicU64::new(0),
            wake_ups: AtomicU64::new(0),
            dismissed: AtomicBool::new(false),
            mode: AtomicU32::new(0),
            since: AtomicU64::new(0),
            busy_since: AtomicU64::new(0),
            busy_ticks: AtomicU64::new(0),
            mailbox: Mutex::new(None),
            held: Mutex::new(Held {
                running: Vec::new(),
                measures: Measures::new(),
                functions: Functions::new(),
            }),
            own: Mutex::new(own),
            others,
        }
    }

    /// Whether its worker begins only what its tasks wait for.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: mail follows, after which its worker looks again.
        self.mode.load(Ordering::Relaxed) != 0
    }

    /// Whether another worker replaces this one.
    pub(super) fn is_retired(&self) -> bool {
        // Relaxed: as above.
        self.mode.load(Ordering::Relaxed) & RETIRED != 0
    }

    /// Whether its worker is kept for an exclusive task.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        // Relaxed: set by its own thread; where another one changes it its mailbox is roused afterwards.
        self.mode.load(Ordering::Relaxed) & ALONE != 0
    }

    /// Whether its worker leaves when it runs nothing.
    pub(super) fn is_leaving(&self) -> bool {
        // Relaxed: its mailbox is roused afterwards.
        self.dismissed.load(Ordering::Relaxed) || self.is_retired()
    }

    /// Whether tasks wait that only its worker may take.
    #[inline]
    pub(super) fn has_bound(&self) -> bool {
        // SeqCst: may be the worker's look after it registered as asleep, under the zone's lock.
        self.bound.load(Ordering::SeqCst) > 0
    }

    pub(super) fn has_forked(&self) -> bool {
        self.others.as_ref().is_some_and(|others| !others.is_empty())
    }

    /// How many forked tasks wait here, about.
    pub(super) fn forked_count(&self) -> usize {
        self.others.as_ref().map_or(0, deque::Others::len)
    }

    fn running_count(&self) -> usize {
        self.busy.load(Ordering::Relaxed) % CONDEMNED
    }

    pub(super) fn count_into(&self, counts: &mut Counts, measures: &mut Measures) {
        counts.running += self.running_count() as u64;
        // In this order: a worker counts a task as ended before it counts it as failed.
        counts.failed += self.failed.load(Ordering::Relaxed);
        counts.ended += self.ended.load(Ordering::Relaxed);
        counts.stolen += self.stolen.load(Ordering::Relaxed);
        measures.add(&lock(&self.held).measures);
    }

    pub(super) fn counts(&self) -> WorkerCounts {
        let running = self.running_count() as u64;
        let now = clock::ticks();
        let begun = self.busy_since.load(Ordering::Relaxed);
        let still = if running > 0 { now.saturating_sub(begun) } else { 0 };
        let busy = self.busy_ticks.load(Ordering::Relaxed) + still;
        let lifetime = now.saturating_sub(self.since.load(Ordering::Relaxed)).max(1);
        // Quantiles take longer than a copy, and the worker needs the lock for every task.
        let mut measures = Measures::new();
        measures.add(&lock(&self.held).measures);
        let (wait, run) = measures.times();
        WorkerCounts {
            slot: self.number,
            waiting: (self.forked_count() + self.bound.load(Ordering::Relaxed)) as u64,
            running,
            ended: self.ended.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            stolen: self.stolen.load(Ordering::Relaxed),
            wake_ups: self.wake_ups.load(Ordering::Relaxed),
            utilisation: (busy as f64 / lifetime as f64).min(1.0),
            wait,
            run,
        }
    }
}
