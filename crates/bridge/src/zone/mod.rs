//! A zone: a queue of tasks and the workers that take from it.
//!
//! Submitting is lock-free: a push on the injector, and a wake-up if a worker sleeps and none is looking.
//! Taking is under the zone's lock, first in first out; broadcasts go before tasks. A task is with exactly
//! one holder at any time (see mailbox.rs), so it runs at most once and returns exactly once, whatever
//! dies. In a zone that steals, tasks forked by tasks lie in their workers' deques instead (worker.rs,
//! forks.rs); a zone that grows asks its owner for workers (workers.rs). README.md states the protocol and
//! the races it excludes. Deliberately absent: JavaScript, timers.

mod alone;
mod cancel;
mod capacity;
mod forks;
mod limits;
mod ordered;
mod queue;
mod reload;
mod shutdown;
mod sleep;
mod slot;
mod submit;
mod tenants;
mod wake;
mod worker;
mod workers;

use std::{collections::VecDeque, sync::Arc};

use crate::{
    broadcast::Broadcast,
    clock, deque,
    functions::{Functions, Rows},
    measure::{Measures, Times},
    sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering, lock, model_fence},
    task::{Stack, State, Status, Task},
};

pub use crate::task::{Order, Priority};
pub use cancel::Cancellation;
pub use forks::Help;
pub use limits::{Executor, Growth, Limits, Refusal};
use queue::Queue;
use slot::{ALONE, CONDEMNED, Cancelled, Held, RETIRED, Running};
pub use slot::{Slot, WorkerCounts};
pub use submit::Submission;
use submit::counted_in;
use tenants::Tenants;
use wake::{FullSleeper, Sleeper};
pub use worker::{Next, Worker};
pub use workers::{Grown, Overdue, Shrunk};

/// Counts since the zone was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Tasks accepted and not started.
    pub waiting: u64,
    pub waiting_bytes: u64,
    /// Tasks taken by workers and not ended.
    pub running: u64,
    /// Tasks ended by workers, well or not.
    pub ended: u64,
    /// Tasks lost with their workers.
    pub died: u64,
    pub wake_ups: u64,
    pub workers: u64,
    pub asleep: u64,
    /// Ended tasks whose function failed.
    pub failed: u64,
    /// Tasks taken from another worker's deque.
    pub stolen: u64,
    /// Errors of workers that no caller of a task received.
    pub errors: u64,
    /// From acceptance to start, in ns.
    pub wait: Times,
    /// From start to end, in ns.
    pub run: Times,
}

/// How far the first workers of a zone have come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Start {
    /// None was asked for.
    Empty,
    /// Not all that were asked for are there.
    Begun,
    /// They all were, at one moment.
    Done,
}

struct Inner {
    queue: Queue,
    tenants: Tenants,
    sleepers: Vec<Sleeper>,
    full_sleepers: Vec<FullSleeper>,
    slots: Vec<Option<Arc<Slot>>>,
    broadcasts: Vec<Arc<Broadcast>>,
    /// What they count for among the bytes kept.
    broadcast_bytes: usize,
    /// For each member that has died and is not replaced: the first broadcast that it has not answered.
    owed: Vec<u32>,
    closers: Vec<&'static Task>,
    /// Callers that wait until all workers of the moment are replaced, oldest first.
    reloaders: VecDeque<&'static Task>,
    /// Callers that wait for capacity, oldest first; while the first workers start all of them wait.
    capacity_waiters: VecDeque<&'static Task>,
    start: Start,
    /// Why the zone has failed, if it has.
    failure: Option<Box<[u8]>>,
}

/// A group of workers and the tasks that wait for them.
pub struct Zone {
    number: u32,
    limits: Limits,
    executor: Executor,
    injector: Stack,
    /// Whether the queue may have tasks. Written under the lock, read without it. It may be false while the
    /// queue has tasks, but only until the thread that added them has announced them.
    may_have_queued: AtomicBool,
    /// Tasks accepted and not started, but for those that only one worker may take.
    waiting: AtomicUsize,
    /// Tasks that only one worker may take, accepted and not started; changed under the lock.
    bound: AtomicUsize,
    /// How many of the others may wait: `tasks_max` less `bound`.
    waiting_max: AtomicUsize,
    waiting_bytes: AtomicUsize,
    sleeping: AtomicU32,
    /// Sleeping workers that run as many tasks as they may.
    full_sleeping: AtomicU32,
    /// No less than the depth of any task in the queue or the injector, and more only for as long as nobody
    /// has looked: for who takes deeper ones only.
    deepest: AtomicU32,
    searching: AtomicU32,
    broadcast_count: AtomicU32,
    closing: AtomicBool,
    finished: AtomicBool,
    reported: AtomicBool,
    capacity_wanted: AtomicBool,
    /// The owner has mail that asks for more workers.
    pressed: AtomicBool,
    serial: AtomicU32,
    wake_ups: AtomicU64,
    died: AtomicU64,
    errors: AtomicU64,
    /// Calls that were not accepted, by the numbers of their refusals.
    refused: [AtomicU64; REFUSALS],
    /// The counts of workers that have ended.
    past: Mutex<Past>,
    inner: Mutex<Inner>,
}

/// How many there are of [`Refusal`].
const REFUSALS: usize = 8;

struct Past {
    ended: u64,
    failed: u64,
    stolen: u64,
    measures: Measures,
    functions: Functions,
}

impl Zone {
    /// A fixed zone, without workers yet.
    pub fn new(number: u32, limits: Limits) -> Self {
        Self::with(number, limits, Executor::default())
    }

    /// A zone with that executor, without workers yet.
    pub fn with(number: u32, limits: Limits, executor: Executor) -> Self {
        Self {
            number,
            limits,
            executor,
            injector: Stack::new(),
            may_have_queued: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            bound: AtomicUsize::new(0),
            waiting_max: AtomicUsize::new(limits.tasks_max),
            waiting_bytes: AtomicUsize::new(0),
            sleeping: AtomicU32::new(0),
            full_sleeping: AtomicU32::new(0),
            deepest: AtomicU32::new(0),
            searching: AtomicU32::new(0),
            broadcast_count: AtomicU32::new(0),
            closing: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            reported: AtomicBool::new(false),
            capacity_wanted: AtomicBool::new(false),
            pressed: AtomicBool::new(false),
            serial: AtomicU32::new(0),
            wake_ups: AtomicU64::new(0),
            died: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            refused: std::array::from_fn(|_| AtomicU64::new(0)),
            past: Mutex::new(Past {
                ended: 0,
                failed: 0,
                stolen: 0,
                measures: Measures::new(),
                functions: Functions::new(),
            }),
            inner: Mutex::new(Inner {
                queue: Queue::default(),
                tenants: Tenants::new(limits.tasks_per_tenant_max),
                sleepers: Vec::new(),
                full_sleepers: Vec::new(),
                slots: Vec::new(),
                broadcasts: Vec::new(),
                broadcast_bytes: 0,
                owed: Vec::new(),
                closers: Vec::new(),
                reloaders: VecDeque::new(),
                capacity_waiters: VecDeque::new(),
                start: Start::Empty,
                failure: None,
            }),
        }
    }

    pub const fn number(&self) -> u32 {
        self.number
    }

    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    pub const fn executor(&self) -> &Executor {
        &self.executor
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Whether the zone has ended: nothing waits, and nothing will be accepted.
    pub fn is_over(&self) -> bool {
        self.finished.load(Ordering::SeqCst)
    }

    /// Whether the zone ends with its last worker: it closes, and nothing waits for another one.
    pub fn is_ending(&self) -> bool {
        self.is_closing() && !self.has_accepted(&lock(&self.inner))
    }

    /// True for the first caller, which reports the zone's end.
    pub fn is_first_to_report(&self) -> bool {
        !self.reported.swap(true, Ordering::SeqCst)
    }

    /// A worker had an error that no caller of a task receives.
    pub fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// A call was not accepted.
    #[cold]
    #[inline(never)]
    pub fn count_refusal(&self, why: Refusal) {
        self.refused[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Of `counts` what needs no times: waiting tasks and their bytes, workers, those asleep, errors.
    /// Then calls that were not accepted, in the order of [`Refusal`], and the functions that were counted,
    /// as [`Rows`] has them.
    pub fn function_counts(&self, bounds_ns: &[f64]) -> Vec<f64> {
        let mut rows = Rows::new(bounds_ns);
        let (workers, asleep) = {
            // As in `counts`.
            let past = lock(&self.past);
            let (slots, asleep) = self.slots_and_asleep();
            rows.add(&past.functions);
            for slot in &slots {
                let held = lock(&slot.held);
                rows.add(&held.functions);
                for running in held.running.iter().flatten() {
                    rows.add_running(running.function);
                }
            }
            (slots.len(), asleep)
        };
        let (waiting, waiting_bytes) = self.waiting_now();
        let errors = self.errors.load(Ordering::Relaxed);
        let mut numbers = [waiting, waiting_bytes, workers as u64, asleep, errors].map(|n| n as f64).to_vec();
        numbers.extend(self.refused.iter().map(|count| count.load(Ordering::Relaxed) as f64));
        numbers.extend(rows.finish());
        numbers
    }

    /// A worker locks its running tasks before the zone, so the zone's lock is given back first.
    fn slots_and_asleep(&self) -> (Vec<Arc<Slot>>, u64) {
        let inner = lock(&self.inner);
        (inner.slots.iter().flatten().cloned().collect(), inner.sleepers.len() as u64)
    }

    /// How many tasks wait, and the bytes of their arguments.
    fn waiting_now(&self) -> (u64, u64) {
        let waiting = self.waiting.load(Ordering::Relaxed) + self.bound.load(Ordering::Relaxed);
        (waiting as u64, self.waiting_bytes.load(Ordering::Relaxed) as u64)
    }

    /// Whether a worker is there or to come.
    pub fn has_slots(&self) -> bool {
        lock(&self.inner).slots.iter().flatten().next().is_some()
    }

    pub fn counts(&self) -> Counts {
        // Held to the end: a worker that goes is counted among those here or in the past, not in both.
        let past = lock(&self.past);
        let (slots, asleep) = self.slots_and_asleep();
        let (waiting, waiting_bytes) = self.waiting_now();
        let mut counts = Counts {
            waiting,
            waiting_bytes,
            died: self.died.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            wake_ups: self.wake_ups.load(Ordering::Relaxed),
            workers: slots.len() as u64,
            asleep,
            ..Counts::default()
        };
        let mut measures = Measures::new();
        (counts.ended, counts.failed, counts.stolen) = (past.ended, past.failed, past.stolen);
        measures.add(&past.measures);
        for slot in &slots {
            slot.count_into(&mut counts, &mut measures);
        }
        (counts.wait, counts.run) = measures.times();
        counts
    }
}

impl Drop for Zone {
    /// Nobody can take from it or end it any more: what it still holds returns to its callers.
    fn drop(&mut self) {
        self.orphan();
    }
}

/// Return `task` to its caller.
///
/// # Safety
///
/// The caller holds it.
unsafe fn settle(task: &'static Task, status: Status, bytes: &[u8]) {
    // SAFETY: passed on to the caller.
    unsafe {
        task.body(|body| {
            body.status = status;
            body.attachments = None;
            body.bytes.set(bytes);
        });
    }
    task.caller.deliver(task);
}
