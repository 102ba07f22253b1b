//! A zone: a queue of tasks and the workers that take from it.
//!
//! Submitting is lock-free: a push on the injector, and a wake-up if a worker sleeps and none is looking.
//! Taking is under the zone's lock, first in first out; broadcasts go before tasks. A task is with exactly
//! one holder at any time (see port.rs), so it runs at most once and comes home exactly once, whatever dies.
//! In a zone that steals, tasks forked by tasks lie in their workers' deques instead (worker.rs, forks.rs); a
//! zone that grows asks its owner for workers (workers.rs). README.md states the protocol and the races it
//! excludes. Deliberately absent: JavaScript, timers.

mod capacity;
mod forks;
mod queue;
mod shutdown;
mod worker;
mod workers;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use crate::{
    broadcast::Broadcast,
    clock, deque,
    measure::{Measures, Times},
    port::{Mail, Port, Stack, Task},
    sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering, lock, model_fence},
    task::{Stage, Status},
};

pub use forks::Help;
use queue::Queue;
pub use worker::{Next, Worker};
pub use workers::{Grown, Overdue, Shrunk, Slot, WorkerCounts};

/// What a zone accepts at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tasks accepted and not started.
    pub tasks_max: usize,
    /// Bytes of one task's arguments.
    pub task_bytes_max: usize,
    /// Bytes of all tasks that are accepted and not started, with the memory that moves with them; and,
    /// counted apart, of all broadcasts kept for replay.
    pub queue_bytes_max: usize,
    /// Broadcasts kept for replay.
    pub broadcasts_max: usize,
    /// Tasks that one worker has begun and not finished, but for those that may wait for calls.
    pub tasks_per_worker_max: usize,
    /// Tasks that one worker has begun beyond that because others of its tasks wait for calls.
    pub waiting_per_worker_max: usize,
    /// Greatest depth of a task: how many tasks wait for it, each for the next.
    pub call_depth_max: u32,
    /// Longest time that a worker or a caller of this zone looks for the next arrival before it sleeps.
    pub spin: Duration,
}

/// How work meets the workers of a zone. The default is a fixed number of them and one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Executor {
    /// Each worker has a deque for what its tasks fork, and idle ones steal from it.
    pub steals: bool,
    /// Tasks may block their threads, which then take no core from others.
    pub blocks: bool,
    /// The number of workers changes.
    pub growth: Option<Growth>,
}

/// When a zone gets more workers, and who starts them.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Workers that stay, however idle.
    pub workers_min: usize,
    /// Most workers.
    pub workers_max: usize,
    /// How long the oldest task waits before one more worker is worth its start.
    pub patience: Duration,
    /// Gets `mail`, once, when tasks wait and no worker is free.
    pub owner: &'static Port,
    /// The kind of that mail; its subject is the zone.
    pub mail: u32,
}

/// Why a zone did not accept a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// `tasks_max` are waiting.
    Full,
    /// `queue_bytes_max` would be exceeded.
    BytesFull,
    /// The call alone has more than `task_bytes_max`.
    TooLarge,
    /// The zone is closing.
    Closed,
    /// `broadcasts_max` are kept.
    BroadcastsFull,
    /// The call is deeper than `call_depth_max`.
    TooDeep,
}

/// What became of a call whose caller no longer wants it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Withdrawal {
    /// It had not started and is the caller's again.
    Withdrawn,
    /// It had not started and never will, but lies where only its worker can take it out: it comes home soon.
    Skipped,
    /// It runs there; its worker was told.
    Told {
        /// The worker's slot.
        slot: u32,
        /// The task's number among all that the zone has started.
        serial: u32,
    },
    /// It has ended and is on its way home.
    Ended,
}

/// Counts since the zone was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Tasks accepted and not started.
    pub waiting: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Tasks taken by workers and not ended.
    pub running: u64,
    /// Tasks ended by workers, well or not.
    pub ended: u64,
    /// Tasks lost with their workers.
    pub died: u64,
    /// Wake-ups of workers.
    pub wake_ups: u64,
    /// Workers now.
    pub workers: u64,
    /// Workers asleep now.
    pub asleep: u64,
    /// Of the ended ones, those whose function failed.
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

/// A worker that sleeps, has no place left, and can be woken for tasks that are deeper than those it runs.
#[derive(Clone, Copy)]
struct FullSleeper {
    slot: u32,
    port: &'static Port,
    /// The least depth of a task that it may begin.
    floor: u32,
}

/// A worker that sleeps and can be woken for work.
#[derive(Clone, Copy)]
struct Sleeper {
    slot: u32,
    port: &'static Port,
    /// It waits for a joined call and takes forked tasks alone.
    helps_only: bool,
    /// When it went to sleep, in ticks.
    since: u64,
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

impl Sleeper {
    /// It is woken.
    fn count(&self, slots: &[Option<Arc<Slot>>]) {
        if let Some(slot) = slots.get(self.slot as usize).and_then(Option::as_ref) {
            slot.wake_ups.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Inner {
    queue: Queue,
    sleepers: Vec<Sleeper>,
    full_sleepers: Vec<FullSleeper>,
    slots: Vec<Option<Arc<Slot>>>,
    broadcasts: Vec<Arc<Broadcast>>,
    /// What they count for among the bytes kept.
    broadcast_bytes: usize,
    /// For each member that has died and is not replaced: the first broadcast that it has not answered.
    owed: Vec<u32>,
    closers: Vec<&'static Task>,
    /// Who waits for room, oldest first; while the first workers start there is none.
    room: VecDeque<&'static Task>,
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
    /// Written under the lock, looked at without: false while the queue has tasks only for as long as their
    /// coming is news.
    may_have_queued: AtomicBool,
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    sleeping: AtomicU32,
    /// Those that sleep and have no place left.
    full_sleeping: AtomicU32,
    /// No less than the depth of any task in the queue or the injector, and more only for as long as nobody
    /// has looked: for who takes deeper ones only.
    deepest: AtomicU32,
    searching: AtomicU32,
    broadcast_count: AtomicU32,
    closing: AtomicBool,
    finished: AtomicBool,
    /// Somebody has heard of its end and told of it.
    told: AtomicBool,
    /// Somebody waits for room.
    room_wanted: AtomicBool,
    /// The owner knows that more workers are wanted.
    pressed: AtomicBool,
    serial: AtomicU32,
    wake_ups: AtomicU64,
    died: AtomicU64,
    errors: AtomicU64,
    /// What workers that are gone have counted.
    past: Mutex<Past>,
    inner: Mutex<Inner>,
}

struct Past {
    ended: u64,
    failed: u64,
    stolen: u64,
    measures: Measures,
}

/// Note in a task that the caller holds that it was counted in. Returns its depth.
#[inline]
fn counted_in(task: &'static Task, counted: usize, from_worker: bool) -> u32 {
    let now = clock::ticks();
    // SAFETY: the caller of submit or fork holds the task.
    unsafe {
        task.body(|body| {
            (body.submitted, body.counted, body.from_worker) = (now, counted, from_worker);
            body.depth
        })
    }
}

impl Zone {
    /// A fixed zone, without workers yet.
    #[must_use]
    pub fn new(number: u32, limits: Limits) -> Self {
        Self::with(number, limits, Executor::default())
    }

    /// A zone with that executor, without workers yet.
    #[must_use]
    pub fn with(number: u32, limits: Limits, executor: Executor) -> Self {
        Self {
            number,
            limits,
            executor,
            injector: Stack::new(),
            may_have_queued: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            sleeping: AtomicU32::new(0),
            full_sleeping: AtomicU32::new(0),
            deepest: AtomicU32::new(0),
            searching: AtomicU32::new(0),
            broadcast_count: AtomicU32::new(0),
            closing: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            told: AtomicBool::new(false),
            room_wanted: AtomicBool::new(false),
            pressed: AtomicBool::new(false),
            serial: AtomicU32::new(0),
            wake_ups: AtomicU64::new(0),
            died: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            past: Mutex::new(Past { ended: 0, failed: 0, stolen: 0, measures: Measures::new() }),
            inner: Mutex::new(Inner {
                queue: Queue::default(),
                sleepers: Vec::new(),
                full_sleepers: Vec::new(),
                slots: Vec::new(),
                broadcasts: Vec::new(),
                broadcast_bytes: 0,
                owed: Vec::new(),
                closers: Vec::new(),
                room: VecDeque::new(),
                start: Start::Empty,
                failure: None,
            }),
        }
    }

    /// The zone's number in the process.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// What the zone accepts.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How work meets its workers.
    #[must_use]
    pub const fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Whether the zone refuses new calls.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Whether the zone has ended: nothing waits, and nothing will be accepted.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.finished.load(Ordering::SeqCst)
    }

    /// True for the first who asks; for who tells of the zone's end.
    #[must_use]
    pub fn is_first_to_tell(&self) -> bool {
        !self.told.swap(true, Ordering::SeqCst)
    }

    /// Accept the idle `task`, whose body the caller has filled with `bytes` bytes of arguments. On success
    /// the caller no longer holds it.
    ///
    /// # Errors
    ///
    /// As [`Zone::submit_moving`].
    #[inline]
    pub fn submit(&self, task: &'static Task, bytes: usize) -> Result<(), Refusal> {
        self.submit_moving(task, bytes, 0)
    }

    /// The same; `moved` bytes of memory that are not copied move with the arguments.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: nothing was queued and the caller still holds the task.
    #[inline]
    pub fn submit_moving(&self, task: &'static Task, bytes: usize, moved: usize) -> Result<(), Refusal> {
        if self.is_closing() {
            return Err(Refusal::Closed);
        }
        self.accept(task, bytes, moved, false)
    }

    /// Accept a task, if there is room for it.
    #[inline]
    fn accept(
        &self,
        task: &'static Task,
        bytes: usize,
        moved: usize,
        from_worker: bool,
    ) -> Result<(), Refusal> {
        let counted = self.admit(task, bytes, moved)?;
        self.inject(task, counted, from_worker);
        Ok(())
    }

    /// Count a task in, if there is room for it. Returns what it counts for among the bytes.
    #[inline]
    fn admit(&self, task: &'static Task, bytes: usize, moved: usize) -> Result<usize, Refusal> {
        if bytes > self.limits.task_bytes_max {
            return Err(Refusal::TooLarge);
        }
        // SAFETY: the caller of submit or fork holds the task.
        if unsafe { task.body(|body| body.depth) } > self.limits.call_depth_max {
            return Err(Refusal::TooDeep);
        }
        let bytes = bytes.saturating_add(moved);
        // Alone too large: nor can the sum below overflow.
        if bytes > self.limits.queue_bytes_max {
            return Err(Refusal::BytesFull);
        }
        // Relaxed: a count; the push that follows publishes the task.
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.limits.tasks_max {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.give_room();
            return Err(Refusal::Full);
        }
        if bytes > 0
            && self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.limits.queue_bytes_max
        {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.give_room();
            return Err(Refusal::BytesFull);
        }
        Ok(bytes)
    }

    /// Put a task that was counted in on the injector.
    #[inline]
    fn inject(&self, task: &'static Task, counted: usize, from_worker: bool) {
        task.set_stage(Stage::Accepted);
        let depth = counted_in(task, counted, from_worker);
        self.injector.push(task);
        self.note_depth(depth);
        // SeqCst: after the push, see finish.
        if self.finished.load(Ordering::SeqCst) {
            return self.refuse_waiting(Status::Closed, &[]);
        }
        self.wake_one(false, depth);
    }

    /// A task of that depth is in the injector or the queue.
    #[inline]
    fn note_depth(&self, depth: u32) {
        // SeqCst: after the push. Who lowers the hint takes in what was pushed before.
        if depth > 0 && self.deepest.load(Ordering::SeqCst) < depth {
            self.deepest.fetch_max(depth, Ordering::SeqCst);
        }
    }

    /// Look how deep the deepest task of the queue is. The lock is held.
    fn count_deepest(&self, inner: &mut Inner) -> u32 {
        // SeqCst: before the injector is taken, as `note_depth` comes after the push.
        self.deepest.store(0, Ordering::SeqCst);
        self.absorb(inner);
        self.note_depth(inner.queue.deepest());
        self.deepest.load(Ordering::SeqCst)
    }

    /// Wake a sleeping worker unless one is looking for work already. One that waits for a joined call is
    /// woken only for what was `forked`, and if there is no other; one that has no place left only for a task
    /// of a `depth` that it may begin, and if there is no other either.
    #[inline]
    fn wake_one(&self, forked: bool, depth: u32) {
        if self.searching.load(Ordering::SeqCst) > 0 {
            return;
        }
        if self.sleeping.load(Ordering::SeqCst) == 0 {
            return self.wake_full(depth);
        }
        let sleeper = {
            let mut inner = lock(&self.inner);
            let last = inner.sleepers.len().checked_sub(1).filter(|_| forked);
            let chosen = inner.sleepers.iter().rposition(|sleeper| !sleeper.helps_only).or(last);
            let sleeper = chosen.map(|index| inner.sleepers.remove(index));
            if let Some(sleeper) = &sleeper {
                sleeper.count(&inner.slots);
            }
            self.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
            sleeper
        };
        match sleeper {
            Some(Sleeper { port, .. }) => {
                self.wake_ups.fetch_add(1, Ordering::Relaxed);
                port.rouse();
            }
            None => self.wake_full(depth),
        }
    }

    /// The same for whatever waits.
    fn wake_another(&self, forked: bool) {
        self.wake_one(forked, self.deepest.load(Ordering::SeqCst));
    }

    /// Wake a sleeping worker that has no place left but for a task of that depth; if there is none, more
    /// workers are wanted.
    #[inline]
    fn wake_full(&self, depth: u32) {
        if depth > 0 && self.full_sleeping.load(Ordering::SeqCst) > 0 {
            let mut inner = lock(&self.inner);
            let chosen = inner.full_sleepers.iter().position(|sleeper| sleeper.floor <= depth);
            if let Some(sleeper) = chosen.map(|index| inner.full_sleepers.remove(index)) {
                self.full_sleeping.store(inner.full_sleepers.len() as u32, Ordering::SeqCst);
                drop(inner);
                return sleeper.port.rouse();
            }
        }
        self.press();
    }

    /// Tasks wait and nobody is free: tell the owner of a zone that grows, once.
    #[inline]
    fn press(&self) {
        let Some(growth) = self.executor.growth.as_ref() else { return };
        // SeqCst: after the push; pairs with the owner's last look in `grow`.
        if !self.pressed.load(Ordering::SeqCst) && !self.pressed.swap(true, Ordering::SeqCst) {
            growth.owner.send(Mail { kind: growth.mail, subject: self.number, facts: [0, 0] });
        }
    }

    /// Wake every sleeping worker. The lock is held.
    fn wake_all(&self, inner: &mut Inner) {
        let Inner { sleepers, full_sleepers, slots, .. } = inner;
        for sleeper in full_sleepers.drain(..) {
            sleeper.port.rouse();
        }
        self.full_sleeping.store(0, Ordering::SeqCst);
        for sleeper in sleepers.drain(..) {
            self.wake_ups.fetch_add(1, Ordering::Relaxed);
            sleeper.count(slots);
            sleeper.port.rouse();
        }
        self.sleeping.store(0, Ordering::SeqCst);
    }

    /// Move what was submitted into the queue. The lock is held.
    fn absorb(&self, inner: &mut Inner) {
        for task in self.injector.take_all() {
            self.enqueue(inner, task);
        }
    }

    /// Put a task on the queue. The lock is held.
    #[inline(always)]
    fn enqueue(&self, inner: &mut Inner, task: &'static Task) {
        // SAFETY: it is in the zone and nobody has taken it; who would needs the lock.
        let depth = unsafe { task.body(|body| body.depth) };
        inner.queue.push(task, depth);
        self.note_depth(depth);
        self.may_have_queued.store(true, Ordering::Relaxed);
    }

    /// Whether there is somebody to wake.
    fn has_sleepers(&self) -> bool {
        self.sleeping.load(Ordering::SeqCst) > 0 || self.full_sleeping.load(Ordering::SeqCst) > 0
    }

    /// A hint that tasks wait which were not forked here, for who has other work.
    fn may_have_queued(&self) -> bool {
        self.may_have_queued.load(Ordering::Relaxed) || !self.injector.is_empty()
    }

    /// Whether a task waits that this thread must see: every push before the caller's last SeqCst step.
    fn has_waiting(&self, inner: &Inner) -> bool {
        !inner.queue.is_empty() || !self.injector.is_empty() || self.has_forked(inner)
    }

    /// Whether a deque has a task.
    fn has_forked(&self, inner: &Inner) -> bool {
        self.executor.steals && inner.slots.iter().flatten().any(|slot| slot.has_forked())
    }

    /// One task fewer is waiting. This thread holds `task` and no lock of the zone.
    #[inline]
    fn stopped_waiting(&self, task: &'static Task) {
        // SAFETY: this thread holds the task: it has just taken it out of the queue or a deque.
        let bytes = unsafe { task.body(|body| body.counted) };
        if bytes > 0 {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        // SeqCst: before the look at who waits for room.
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.give_room();
    }

    /// The caller of `task`, which it submitted here and has not seen come home, no longer wants the result.
    /// A running one's worker gets mail of `kind` with the task's token, its serial number and `note`; from
    /// then on [`Zone::overdue`] counts the time it takes to end.
    pub fn withdraw(&self, task: &'static Task, kind: u32, note: u32) -> Withdrawal {
        self.give_up(task, kind, note, false)
    }

    /// The same; one that runs is overdue `at_once`.
    fn give_up(&self, task: &'static Task, kind: u32, note: u32, at_once: bool) -> Withdrawal {
        let mut inner = lock(&self.inner);
        self.absorb(&mut inner);
        if task.leave_deque(Stage::Withdrawn) {
            return Withdrawal::Skipped;
        }
        match task.stage() {
            Stage::Queued => {
                inner.queue.remove(task);
                drop(inner);
                self.stopped_waiting(task);
                Withdrawal::Withdrawn
            }
            Stage::Running { slot, serial } => {
                let slot = inner.slots.get(slot as usize).cloned().flatten();
                drop(inner);
                let Some(slot) = slot else { return Withdrawal::Ended };
                slot.tell(task, serial, Mail { kind, subject: 0, facts: [serial, note] }, at_once)
            }
            Stage::Withdrawn => Withdrawal::Skipped,
            Stage::Accepted | Stage::Local => Withdrawal::Ended,
        }
    }

    /// Send the workers of all running tasks the mail that a withdrawal of each would send.
    pub fn tell_all(&self, kind: u32, note: u32) {
        // A worker locks its running tasks before the zone, so the zone's lock is given back first.
        let slots = lock(&self.inner).slots.iter().flatten().cloned().collect::<Vec<_>>();
        for slot in slots {
            slot.tell_all(kind, note);
        }
    }

    /// A worker had an error that no caller of a task receives.
    pub fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a worker is there or to come.
    #[must_use]
    pub fn has_slots(&self) -> bool {
        lock(&self.inner).slots.iter().flatten().next().is_some()
    }

    /// The counts of this moment.
    #[must_use]
    pub fn counts(&self) -> Counts {
        // Held to the end: a worker that goes is counted among those here or in the past, not in both.
        let past = lock(&self.past);
        // A worker locks its running tasks before the zone, so the zone's lock is given back first.
        let (slots, asleep) = {
            let inner = lock(&self.inner);
            (inner.slots.iter().flatten().cloned().collect::<Vec<_>>(), inner.sleepers.len() as u64)
        };
        let mut counts = Counts {
            waiting: self.waiting.load(Ordering::Relaxed) as u64,
            waiting_bytes: self.waiting_bytes.load(Ordering::Relaxed) as u64,
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
    /// Nobody can take from it or end it any more: what it still has comes home.
    fn drop(&mut self) {
        self.orphan();
    }
}

/// Send `task` home.
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
    task.home.deliver(task);
}
