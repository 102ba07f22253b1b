//! The worker's end of a zone: what it takes, in which order, and when it sleeps.
//!
//! Broadcasts first, then tasks: in a zone that steals its own forked ones, youngest first, and for each of
//! them a few from the queue, so that what comes from outside is not held up by work that makes more work;
//! then the queue; then what others have forked. One lock is held while a task changes hands, that of its own
//! slot. Over 400 lines: one type, from taking a task to its end.

use std::{cell::Cell, sync::Arc};

use super::{CONDEMNED, Held, Inner, RETIRED, Running, Slot, State, Zone, clock, deque, lock};
use crate::{
    broadcast::{Broadcast, Failure},
    functions::{self, Left},
    mailbox::Mailbox,
    sync::Ordering,
    task::{Body, Status, Task},
};
#[cfg(not(loom))]
use crate::{
    layout::slow::{CPU, KIND, NUMBERS, QUEUE, SLOT, TOTAL, USUAL, WHAT},
    registry, slow,
};

/// Tasks of the queue that a worker takes at most for each one that it takes from its deque. A task
/// that forks a hundred others is one of those who share the workers, not a hundred: to take turns with who
/// else waits keeps short tasks short beside long ones, where one long line for all would not (processor
/// sharing, L. Kleinrock, Queueing Systems II, 1976). Bounded, so that forked ones go on beside any load.
const QUEUED_PER_FORKED: u32 = 4;

/// Most tasks that a worker runs at a time of those that it took so, so that tasks which fork and wait do not
/// begin without end.
const PASSED_MAX: usize = 64;

/// What a worker does next.
pub enum Next {
    /// Nothing is there for it.
    Nothing,
    /// Run this broadcast, then call `broadcast_done`.
    Broadcast(Arc<Broadcast>),
    /// Run this task, then `complete` the token.
    Task {
        task: &'static Task,
        /// Its number among the worker's running tasks.
        token: u32,
        /// Its number among all that the zone has started.
        serial: u32,
    },
    /// Leave: the zone is closing and nothing is left to do.
    Leave,
}

/// The worker's end of its slot: only its thread uses it.
pub struct Worker {
    pub(super) zone: Arc<Zone>,
    pub(super) slot: Arc<Slot>,
    pub(super) mailbox: &'static Mailbox,
    /// A broadcast was given out and is not done: nothing else begins.
    pub(super) broadcasting: bool,
    /// Its end of its deque, in a zone that steals.
    pub(super) own: Option<deque::Own>,
    /// Calls of tasks that run here, to whichever zone, that have not returned: for each, one task more
    /// may be begun here, up to the zone's `waiting_per_worker_max`.
    pub(super) calls: usize,
    /// Tasks that run here and wait for the other end of a stream: they count as calls do.
    pub(super) waits: usize,
    /// The least depth of a task that may be begun here at capacity, if it was looked up since
    /// that could last change; 0 where all that runs here waits in vain, until a task begins or ends.
    pub(super) floor: Cell<Option<u32>>,
    /// Tasks of the queue that it may take before its next forked one.
    queued_left: Cell<u32>,
    /// Running tasks of the queue that were taken so, past forked ones. They take none of the capacity for
    /// forked tasks.
    pub(super) passed: usize,
    /// Tasks that it begins before another worker replaces it.
    tasks_left: Cell<usize>,
    /// Whom to steal from first.
    pub(super) victim: Cell<u32>,
    /// Reads the CPU time of the thread that runs its tasks.
    cpu_clock: fn() -> f64,
}

impl Zone {
    /// Take up the worker's end of a slot in the thread of `mailbox`; `None` when there is no such slot.
    pub fn attach(self: &Arc<Self>, slot: u32, mailbox: &'static Mailbox) -> Option<Worker> {
        let (slot, own) = self.seat(slot, mailbox)?;
        let worker = Worker::new(Arc::clone(self), slot, mailbox, own);
        worker.may_be_spent();
        Some(worker)
    }
}

impl Worker {
    fn new(zone: Arc<Zone>, slot: Arc<Slot>, mailbox: &'static Mailbox, own: Option<deque::Own>) -> Self {
        let (victim, floor, queued_left) = (Cell::new(slot.number), Cell::new(None), Cell::new(0));
        let tasks_left = Cell::new(zone.limits.worker_tasks_max);
        Self {
            zone,
            slot,
            mailbox,
            broadcasting: false,
            own,
            calls: 0,
            waits: 0,
            floor,
            queued_left,
            passed: 0,
            tasks_left,
            victim,
            cpu_clock: clock::thread_cpu_ns,
        }
    }

    /// Its tasks run in another process, and no CPU time of theirs is known here.
    pub fn of_process(mut self) -> Self {
        self.cpu_clock = || 0.0;
        self
    }

    pub const fn zone(&self) -> &Arc<Zone> {
        &self.zone
    }

    /// The least depth of a task that may be begun here now: 0 below capacity; `None` when nothing
    /// may begin. At capacity a task may still begin if fewer than `tasks_per_worker_max` of those
    /// that run here are at least as deep. So whatever waits here, what it waits for, which is deeper, can
    /// begin.
    #[inline]
    pub(super) fn least_depth(&self) -> Option<u32> {
        match self.running_count() {
            busy if busy < self.capacity() => Some(0),
            CONDEMNED.. => None,
            // What it runs waits for no call: nothing needs to begin beside it.
            1.. if self.slot.is_alone() && self.awaited() == 0 && !self.may_begin_any() => None,
            _ => Some(self.floor()),
        }
    }

    fn floor(&self) -> u32 {
        if let Some(floor) = self.floor.get() {
            return floor;
        }
        let mut depths = self.depths();
        // Tasks of one pipeline may be equally deep: those whose streams wait keep none from beginning.
        let counted = self.zone.limits.tasks_per_worker_max + self.waits;
        let from_below = depths.len().saturating_sub(counted);
        let floor = match depths.len() {
            0 => 0,
            _ => depths.select_nth_unstable(from_below).1.saturating_add(1),
        };
        self.floor.set(Some(floor));
        floor
    }

    pub(super) fn depths(&self) -> Vec<u32> {
        lock(&self.slot.held).running.iter().flatten().map(|running| running.depth).collect()
    }

    pub(super) fn may_have_deeper(&self, least: u32) -> bool {
        self.zone.deepest.load(Ordering::SeqCst) >= least
            || self.slot.bound_deepest.load(Ordering::SeqCst) >= least
            || (self.own.is_some() && self.slot.forked_count() > 0)
    }

    /// What to do next. Broadcasts come first and wait for the running tasks to end, but not for those that
    /// may wait for what they forked.
    pub fn take(&mut self) -> Next {
        let zone = &*self.zone;
        let busy = self.running_count();
        let applied = self.slot.applied.load(Ordering::Relaxed);
        if self.broadcasting {
            return Next::Nothing;
        }
        if busy == 0 && self.slot.is_leaving() {
            return Next::Leave;
        }
        if applied < zone.broadcast_count.load(Ordering::SeqCst) {
            return if busy > self.awaited() { Next::Nothing } else { self.next_broadcast(applied) };
        }
        let Some(least) = self.least_depth() else { return Next::Nothing };
        if least > 0 && !self.may_have_deeper(least) {
            return Next::Nothing;
        }
        // Relaxed: a hint; the count goes up before a push, and a sleeper's second look is at the stack
        // itself.
        if zone.waiting.load(Ordering::Relaxed) == 0 && !self.slot.has_bound() {
            let leave = busy == 0 && zone.is_closing() && self.seen_empty();
            return if leave { Next::Leave } else { Next::Nothing };
        }
        self.begin(busy, least)
    }

    fn begin(&mut self, busy: usize, least: u32) -> Next {
        let mut aside = Vec::new();
        // Held until the task is in it: cancel and slot_ended look for it here.
        let mut held = lock(&self.slot.held);
        if self.running_count() != busy {
            return Next::Nothing;
        }
        let passing = if least == 0 { self.pass() } else { None };
        let passes = passing.is_some();
        let found = passing.or_else(|| match least {
            0 => self.find(&mut aside),
            _ => self.find_deeper(least, &mut aside),
        });
        let next = found.map(|(task, serial)| (task, self.hold(&mut held, task, serial, passes), serial));
        drop(held);
        if found.is_some() {
            self.may_be_spent();
        }
        self.passed += usize::from(passes);
        for task in aside {
            match least {
                0 => self.zone.skip(task),
                _ => self.zone.hand_on(task),
            }
        }
        let Some((task, token, serial)) = next else { return Next::Nothing };
        let zone = &*self.zone;
        zone.stopped_waiting(task);
        // Hints: what is pushed later finds a sleeper by itself.
        if zone.waiting.load(Ordering::Relaxed) > 0 && zone.has_sleepers() {
            self.end_search();
            self.zone.wake_another(self.own.is_some());
        }
        Next::Task { task, token, serial }
    }

    fn pass(&self) -> Option<(&'static Task, u32)> {
        let left = self.queued_left.get();
        let has_forked = self.own.is_some() && self.slot.forked_count() > 0;
        if left == 0 || !has_forked || self.passed >= PASSED_MAX || !self.zone.may_have_queued() {
            return None;
        }
        let found = self.queued()?;
        self.queued_left.set(left - 1);
        Some(found)
    }

    /// Take a task from where this worker looks next, and mark it as running here. Those whose callers no
    /// cancelled are put aside.
    fn find(&self, skipped: &mut Vec<&'static Task>) -> Option<(&'static Task, u32)> {
        if self.own.is_none() {
            return self.queued();
        }
        if let Some(found) = self.forked(skipped, false) {
            self.queued_left.set(QUEUED_PER_FORKED);
            return Some(found);
        }
        // Not by the hint: nothing may be left lying where nobody else comes.
        self.queued().or_else(|| self.forked(skipped, true))
    }

    fn queued(&self) -> Option<(&'static Task, u32)> {
        let zone = &*self.zone;
        let mut inner = lock(&zone.inner);
        if inner.queue.is_open() {
            zone.absorb(&mut inner);
        }
        self.leave_queue(&mut inner, 0)
    }

    /// A task that is at least so deep, from this worker's deque or the queue. What it forked and is not so
    /// deep is put aside: that is for others now.
    fn find_deeper(&self, least: u32, shallow: &mut Vec<&'static Task>) -> Option<(&'static Task, u32)> {
        while let Some(task) = self.pop_own() {
            let serial = self.zone.next_serial();
            // SAFETY: this thread has just taken it out of its deque.
            let is_deep = unsafe { task.body(|body| body.depth) } >= least;
            if is_deep && task.leave_deque(State::Running { slot: self.slot.number, serial }) {
                return Some((task, serial));
            }
            shallow.push(task);
        }
        let mut inner = lock(&self.zone.inner);
        self.zone.count_deepest(&mut inner);
        self.leave_queue(&mut inner, least)
    }

    #[inline(always)]
    fn leave_queue(&self, inner: &mut Inner, least: u32) -> Option<(&'static Task, u32)> {
        let zone = &*self.zone;
        let task = match least {
            _ if inner.queue.is_special() => self.take_special(inner, least),
            0 => inner.queue.pop_plain(),
            _ => None,
        };
        zone.may_have_queued.store(inner.queue.has_any(), Ordering::Relaxed);
        let task = task?;
        let serial = zone.next_serial();
        // Under the zone's lock, where cancel reads it.
        task.set_state(State::Running { slot: self.slot.number, serial });
        Some((task, serial))
    }

    fn forked(&self, skipped: &mut Vec<&'static Task>, steals: bool) -> Option<(&'static Task, u32)> {
        loop {
            let own = self.pop_own();
            let task = if own.is_none() && steals { self.steal() } else { own }?;
            let serial = self.zone.next_serial();
            if task.leave_deque(State::Running { slot: self.slot.number, serial }) {
                return Some((task, serial));
            }
            skipped.push(task);
        }
    }

    /// Note a task as running here, apart if it `passes` forked ones. Its state is set
    /// already.
    pub(super) fn hold(&self, held: &mut Held, task: &'static Task, serial: u32, passes: bool) -> u32 {
        let now = clock::ticks();
        // SAFETY: this worker has just taken it.
        let (waited, depth, function) = unsafe {
            task.body(|body| {
                body.waited = now.saturating_sub(body.submitted);
                (body.waited, body.depth, body.function)
            })
        };
        held.measures.waited(waited);
        if functions::is_counting() {
            held.functions.begun(function, waited);
        }
        let running = Some(Running { task, serial, function, since: now, cancelled: None, passes, depth });
        self.floor.set(None);
        let token = held.running.iter().position(Option::is_none).unwrap_or(held.running.len());
        match held.running.get_mut(token) {
            Some(free) => *free = running,
            None => held.running.push(running),
        }
        // Changed under the lock only, which is held.
        let busy = self.slot.busy.load(Ordering::Relaxed);
        self.slot.busy.store(busy + 1, Ordering::Relaxed);
        if busy == 0 {
            self.slot.busy_since.store(now, Ordering::Relaxed);
        }
        let left = self.tasks_left.get().saturating_sub(1);
        self.tasks_left.set(left);
        if left == 0 {
            // As by `retire`: it begins only what its tasks wait for, and leaves when they have ended.
            self.slot.mode.fetch_or(RETIRED, Ordering::SeqCst);
        }
        token as u32
    }

    /// The owner prepares a replacement while this worker begins the last tenth of its tasks.
    #[inline]
    pub(super) fn may_be_spent(&self) {
        let most = self.zone.limits.worker_tasks_max;
        #[cfg(not(loom))]
        if most != usize::MAX && self.tasks_left.get() == most.div_ceil(10) {
            registry::worker_spent(self.zone.number(), self.slot.number);
        }
        #[cfg(loom)]
        let _ = most;
    }

    fn next_broadcast(&mut self, applied: u32) -> Next {
        let broadcast = lock(&self.zone.inner).broadcasts.get(applied as usize).cloned();
        self.broadcasting = broadcast.is_some();
        broadcast.map_or(Next::Nothing, Next::Broadcast)
    }

    /// The broadcast that `take` returned has run.
    pub fn broadcast_done(&mut self, failure: Option<Failure>) {
        self.broadcasting = false;
        let applied = self.slot.applied.load(Ordering::Relaxed);
        let broadcast = {
            let inner = lock(&self.zone.inner);
            // SeqCst under the lock: slot_ended reads it there, so each answers or is answered for once.
            self.slot.applied.store(applied + 1, Ordering::SeqCst);
            inner.broadcasts.get(applied as usize).cloned()
        };
        if let Some(broadcast) = broadcast.filter(|_| applied >= self.slot.joined) {
            broadcast.answer(failure);
        }
    }

    /// The running task with this token has ended: `fill` writes its result, then it returns to its
    /// caller. Returns false when there is no such task.
    #[inline]
    pub fn complete(&mut self, token: u32, fill: impl FnOnce(&mut Body)) -> bool {
        self.end_task(token, false, fill)
    }

    /// The same for a worker that takes next: where nothing waits it counts as searching before the result
    /// is delivered, so that a caller who calls again at once wakes nobody else. [`Worker::found`] must
    /// follow what it takes, whatever that is.
    #[inline]
    pub fn complete_and_search(&mut self, token: u32, fill: impl FnOnce(&mut Body)) -> bool {
        self.end_task(token, true, fill)
    }

    #[inline]
    fn end_task(&mut self, token: u32, searches: bool, fill: impl FnOnce(&mut Body)) -> bool {
        let mut held = lock(&self.slot.held);
        let Some(Running { task, function, since, passes, .. }) =
            held.running.get_mut(token as usize).and_then(Option::take)
        else {
            return false;
        };
        let now = clock::ticks();
        let ran = now.saturating_sub(since);
        held.measures.ran(ran);
        // Changed under the lock only, which is held.
        let busy = self.slot.busy.load(Ordering::Relaxed);
        self.slot.busy.store(busy - 1, Ordering::Relaxed);
        // SAFETY: this worker held it as running; taking it out of `running` makes this the only code to end
        // it.
        let fill = || unsafe {
            task.body(|body| {
                fill(body);
                (body.status, body.waited)
            })
        };
        // Counts are under the lock as well, which is taken once.
        let (status, slow) = if functions::is_counting() {
            let (status, waited) = fill();
            let left = if status == Status::Done { Left::Done } else { Left::Failed };
            let times = functions::Ticks { waited, ran };
            let slow = held.functions.ended(function, times, left, self.cpu_clock);
            drop(held);
            (status, slow.map(|slow| (times, slow)))
        } else {
            drop(held);
            (fill().0, None)
        };
        self.passed -= usize::from(passes);
        self.floor.set(None);
        if busy == 1 {
            let begun = self.slot.busy_since.load(Ordering::Relaxed);
            let before = self.slot.busy_ticks.load(Ordering::Relaxed);
            self.slot.busy_ticks.store(before + now.saturating_sub(begun), Ordering::Relaxed);
            if self.slot.is_alone() {
                self.zone.ended_alone(&self.slot);
            }
        }
        // Relaxed: counts.
        self.slot.ended.fetch_add(1, Ordering::Relaxed);
        if status != Status::Done {
            self.slot.failed.fetch_add(1, Ordering::Relaxed);
        }
        if let Some((times, slow)) = slow {
            self.report(task, function, times, slow);
        }
        // Relaxed: a hint. Of what waits this worker takes one, and others may be needed for the rest.
        if searches && self.zone.waiting.load(Ordering::Relaxed) == 0 {
            self.begin_search();
        }
        task.caller.deliver(task);
        true
    }

    /// Keep what a slow task has waited for. This worker holds it.
    #[cold]
    #[inline(never)]
    fn report(&self, task: &'static Task, function: u32, times: functions::Ticks, slow: functions::Slow) {
        #[cfg(not(loom))]
        if let Some(entry) = registry::zone(self.zone.number()) {
            let tick_ms = clock::tick_ns() / 1e6;
            let total_ms = times.total() as f64 * tick_ms;
            if total_ms < slow::LEAST_MS {
                return;
            }
            // Of tasks that take turns in a thread no one has its CPU time to itself.
            let is_measured = slow.cpu_ns > 0.0 && self.zone.limits.tasks_per_worker_max == 1;
            let mut numbers = [-1.0; NUMBERS];
            numbers[KIND] = 0.0;
            numbers[TOTAL] = total_ms;
            numbers[USUAL] = slow.usual * tick_ms;
            numbers[QUEUE] = times.waited as f64 * tick_ms;
            numbers[CPU] = if is_measured { slow.cpu_ns / 1e6 } else { -1.0 };
            numbers[WHAT] = f64::from(function);
            numbers[SLOT] = f64::from(self.slot.number);
            let number = slow::add(self.mailbox.number(), numbers, entry.id.clone());
            // SAFETY: this worker holds it until it is delivered.
            unsafe { task.body(|body| body.slow = number) };
        }
        #[cfg(loom)]
        let _ = (task, function, times, slow);
    }

    /// The running task with this token, held by this worker.
    pub fn running(&self, token: u32) -> Option<&'static Task> {
        lock(&self.slot.held).running.get(token as usize).copied().flatten().map(|running| running.task)
    }

    /// Tasks begun and not ended.
    pub fn running_count(&self) -> usize {
        // Relaxed: only this thread changes it.
        self.slot.busy.load(Ordering::Relaxed)
    }
}
