//! A zone: a queue of tasks and the workers that take from it.
//!
//! Submitting is lock-free: a push on the injector, and a wake-up if a worker sleeps and none is looking.
//! Taking is under the zone's lock, first in first out; broadcasts go before tasks. A task is with exactly
//! one holder at any time (see task.rs), so it runs at most once and comes home exactly once, whatever dies.
//! README.md states the protocol and the races it excludes. Deliberately absent: JavaScript, timers,
//! stealing.

use std::{any::Any, sync::Arc, time::Duration};

use crate::{
    broadcast::{Broadcast, Failure},
    port::{Desk, Mail, Port},
    sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering, lock, model_fence},
    task::{Body, Queue, Stack, Stage, Status, Task},
};

/// What a zone accepts at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tasks accepted and not started.
    pub tasks_max: usize,
    /// Bytes of one task's arguments.
    pub task_bytes_max: usize,
    /// Bytes of all tasks that are accepted and not started.
    pub queue_bytes_max: usize,
    /// Broadcasts kept for replay.
    pub broadcasts_max: usize,
    /// Tasks that one worker has begun and not finished.
    pub tasks_per_worker_max: usize,
    /// Longest time that a worker or a caller of this zone looks for the next arrival before it sleeps.
    pub spin: Duration,
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
}

/// What became of a call whose caller no longer wants it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Withdrawal {
    /// It had not started and is the caller's again.
    Withdrawn,
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
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
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
}

struct Inner {
    queue: Queue,
    sleepers: Vec<(u32, &'static Port)>,
    slots: Vec<Option<Arc<Slot>>>,
    broadcasts: Vec<Arc<Broadcast>>,
    /// For each member that has died and is not replaced: the first broadcast that it has not answered.
    owed: Vec<u32>,
    serial: u32,
    closers: Vec<&'static Task>,
    /// Why the zone has failed, if it has.
    failure: Option<Box<[u8]>>,
}

/// A worker's place in its zone, from the decision to start it until it is gone.
pub struct Slot {
    number: u32,
    /// Broadcasts made before this worker was a member: it replays them and does not answer. A replacement is
    /// a member since its predecessor's last answer.
    joined: u32,
    /// Broadcasts run so far.
    applied: AtomicU32,
    searching: AtomicBool,
    /// Tasks in `running`, and `CONDEMNED` more for a worker that must begin nothing; changed under its lock,
    /// read without it.
    busy: AtomicUsize,
    ended: AtomicU64,
    port: Mutex<Option<&'static Port>>,
    running: Mutex<Vec<Option<Running>>>,
}

/// More tasks than any worker may have: one that is busy by so much takes no more.
const CONDEMNED: usize = 1 << 31;

/// A task that a worker holds.
#[derive(Clone, Copy)]
struct Running {
    task: &'static Task,
    serial: u32,
}

/// See the module's text.
pub struct Zone {
    number: u32,
    limits: Limits,
    injector: Stack,
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    sleeping: AtomicU32,
    searching: AtomicU32,
    broadcast_count: AtomicU32,
    closing: AtomicBool,
    finished: AtomicBool,
    wake_ups: AtomicU64,
    ended_before: AtomicU64,
    died: AtomicU64,
    inner: Mutex<Inner>,
}

impl Zone {
    /// A zone without workers.
    #[must_use]
    pub fn new(number: u32, limits: Limits) -> Self {
        Self {
            number,
            limits,
            injector: Stack::new(),
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            sleeping: AtomicU32::new(0),
            searching: AtomicU32::new(0),
            broadcast_count: AtomicU32::new(0),
            closing: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            wake_ups: AtomicU64::new(0),
            ended_before: AtomicU64::new(0),
            died: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                queue: Queue::default(),
                sleepers: Vec::new(),
                slots: Vec::new(),
                broadcasts: Vec::new(),
                owed: Vec::new(),
                serial: 0,
                closers: Vec::new(),
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

    /// Whether the zone refuses new calls.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Accept the idle `task`, whose body the caller has filled with `bytes` bytes of arguments. On success
    /// the caller no longer holds it.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: nothing was queued and the caller still holds the task.
    #[inline]
    pub fn submit(&self, task: &'static Task, bytes: usize) -> Result<(), Refusal> {
        if self.is_closing() {
            return Err(Refusal::Closed);
        }
        if bytes > self.limits.task_bytes_max {
            return Err(Refusal::TooLarge);
        }
        // Relaxed: a count; the push below publishes the task.
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.limits.tasks_max {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Refusal::Full);
        }
        if bytes > 0
            && self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.limits.queue_bytes_max
        {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Refusal::BytesFull);
        }
        // SAFETY: the caller holds the task and no zone has it, so nobody else can look at its place.
        unsafe { task.place(|place| place.stage = Stage::Accepted) };
        self.injector.push(task);
        // SeqCst: after the push, see finish.
        if self.finished.load(Ordering::SeqCst) {
            self.refuse_waiting(Status::Closed, &[]);
            return Ok(());
        }
        self.wake_one();
        Ok(())
    }

    /// Wake a sleeping worker unless one is looking for work already.
    #[inline]
    fn wake_one(&self) {
        // SeqCst: after the push; pairs with the sleeper's registration and the searcher's last look.
        if self.searching.load(Ordering::SeqCst) > 0 || self.sleeping.load(Ordering::SeqCst) == 0 {
            return;
        }
        let sleeper = {
            let mut inner = lock(&self.inner);
            let sleeper = inner.sleepers.pop();
            self.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
            sleeper
        };
        if let Some((_, port)) = sleeper {
            self.wake_ups.fetch_add(1, Ordering::Relaxed);
            port.rouse();
        }
    }

    /// Wake every sleeping worker. The lock is held.
    fn wake_all(&self, inner: &mut Inner) {
        for (_, port) in inner.sleepers.drain(..) {
            self.wake_ups.fetch_add(1, Ordering::Relaxed);
            port.rouse();
        }
        self.sleeping.store(0, Ordering::SeqCst);
    }

    /// Move what was submitted into the queue. The lock is held.
    fn absorb(&self, inner: &mut Inner) {
        for task in self.injector.take_all() {
            inner.queue.push(task);
        }
    }

    /// Whether a task waits that this thread must see: every push before the caller's last SeqCst step.
    fn has_waiting(&self, inner: &Inner) -> bool {
        !inner.queue.is_empty() || !self.injector.is_empty()
    }

    /// One task fewer is waiting. This thread holds `task`.
    fn stopped_waiting(&self, task: &'static Task) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: this thread holds the task: it has just taken it out of the queue.
        let bytes = unsafe { task.body(|body| body.bytes.len()) };
        if bytes > 0 {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The caller of `task`, which it submitted here and has not seen come home, no longer wants the result.
    /// A running one's worker gets mail of `kind` with the task's token and serial number.
    pub fn withdraw(&self, task: &'static Task, kind: u32) -> Withdrawal {
        let mut inner = lock(&self.inner);
        self.absorb(&mut inner);
        // SAFETY: the zone's lock is held.
        match unsafe { task.place(|place| place.stage) } {
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
                let is_it = |it: &Option<Running>| it.is_some_and(|it| std::ptr::eq(it.task, task));
                let Some(token) = lock(&slot.running).iter().position(is_it) else {
                    return Withdrawal::Ended;
                };
                // Locked until the mail has left: a port whose worker ends may soon be another thread's.
                let port = lock(&slot.port);
                let Some(port) = *port else { return Withdrawal::Ended };
                port.send(Mail { kind, subject: token as u32, facts: [serial, slot.number] });
                Withdrawal::Told { slot: slot.number, serial }
            }
            Stage::Accepted => Withdrawal::Ended,
        }
    }

    /// If the task started under `serial` still runs in `slot`, let its worker begin nothing more, since it
    /// will be ended: whatever the worker could take in between would end with it. Returns whether it does.
    pub fn condemn(&self, slot: u32, serial: u32) -> bool {
        let Some(found) = lock(&self.inner).slots.get(slot as usize).cloned().flatten() else { return false };
        // The lock under which the worker takes its next task.
        let running = lock(&found.running);
        let runs = running.iter().flatten().any(|running| running.serial == serial);
        if runs && found.busy.load(Ordering::Relaxed) < CONDEMNED {
            found.busy.fetch_add(CONDEMNED, Ordering::Relaxed);
        }
        runs
    }

    /// Make a call to every worker, those to come included. `task`, if given, comes home when all members of
    /// this moment have run it.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: nothing was made and the caller still holds the task.
    pub fn broadcast(
        &self,
        function: u32,
        bytes: &[u8],
        attachments: Option<Box<dyn Any + Send + Sync>>,
        task: Option<&'static Task>,
    ) -> Result<Arc<Broadcast>, Refusal> {
        if bytes.len() > self.limits.task_bytes_max {
            return Err(Refusal::TooLarge);
        }
        let broadcast = {
            let mut inner = lock(&self.inner);
            if self.is_closing() {
                return Err(Refusal::Closed);
            }
            if inner.broadcasts.len() >= self.limits.broadcasts_max {
                return Err(Refusal::BroadcastsFull);
            }
            let members = inner.slots.iter().flatten().count() + inner.owed.len();
            let broadcast = Arc::new(Broadcast::new(function, bytes.into(), attachments, members, task));
            inner.broadcasts.push(Arc::clone(&broadcast));
            self.broadcast_count.store(inner.broadcasts.len() as u32, Ordering::SeqCst);
            self.wake_all(&mut inner);
            broadcast
        };
        broadcast.settle_if_unanswered();
        Ok(broadcast)
    }

    /// Make room for one more worker; `None` when the zone needs none, because it is closing and nothing
    /// waits.
    pub fn add_slot(&self) -> Option<u32> {
        let mut inner = lock(&self.inner);
        let needless = self.is_closing() && self.waiting.load(Ordering::SeqCst) == 0;
        if needless || self.finished.load(Ordering::SeqCst) {
            let empty = inner.slots.iter().flatten().next().is_none();
            drop(inner);
            if empty {
                self.finish(Status::Closed, &[]);
            }
            return None;
        }
        let joined = inner.owed.pop().unwrap_or(inner.broadcasts.len() as u32);
        let free = inner.slots.iter().position(Option::is_none);
        let number = free.unwrap_or(inner.slots.len()) as u32;
        let slot = Arc::new(Slot {
            number,
            joined,
            applied: AtomicU32::new(0),
            searching: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
            port: Mutex::new(None),
            running: Mutex::new(Vec::new()),
        });
        match free {
            Some(index) => inner.slots[index] = Some(slot),
            None => inner.slots.push(Some(slot)),
        }
        Some(number)
    }

    /// Take up the worker's end of a slot in the thread of `port`; `None` when there is no such slot.
    #[must_use]
    pub fn attach(self: &Arc<Self>, slot: u32, port: &'static Port) -> Option<Worker> {
        let inner = lock(&self.inner);
        let slot = inner.slots.get(slot as usize).cloned().flatten()?;
        // Under the zone's lock: slot_gone looks at it there.
        *lock(&slot.port) = Some(port);
        drop(inner);
        Some(Worker { zone: Arc::clone(self), slot, port, broadcasting: false })
    }

    /// The worker of `slot` has ended: its running tasks come home with `status` and `bytes`. Returns how
    /// many did. Nothing happens as long as the slot has a [`Worker`].
    pub fn slot_gone(&self, slot: u32, status: Status, bytes: &[u8]) -> usize {
        let slot = {
            let mut inner = lock(&self.inner);
            let Some(place) = inner.slots.get_mut(slot as usize) else { return 0 };
            // A worker that still lives holds its tasks and will end them.
            let Some(slot) = place.take_if(|slot| lock(&slot.port).is_none()) else { return 0 };
            self.unregister(&mut inner, &slot);
            // Its replacement answers; in a closing zone, where there is none, `finish` does.
            inner.owed.push(slot.joined.max(slot.applied.load(Ordering::SeqCst)));
            slot
        };
        self.ended_before.fetch_add(slot.ended.load(Ordering::Relaxed), Ordering::Relaxed);
        let lost: Vec<_> = lock(&slot.running).drain(..).flatten().collect();
        self.died.fetch_add(lost.len() as u64, Ordering::Relaxed);
        for &Running { task, .. } in &lost {
            // SAFETY: its worker has left (checked above), and taking it out of `running` passed it on.
            unsafe { settle(task, status, bytes) };
        }
        let last = lock(&self.inner).slots.iter().flatten().next().is_none();
        // What still waits then is for the replacement that the owner asks for next.
        if last && self.is_closing() && self.waiting.load(Ordering::SeqCst) == 0 {
            self.finish(Status::Closed, &[]);
        } else {
            self.wake_one();
        }
        lost.len()
    }

    /// Forget a worker's sleep and search. The lock is held.
    fn unregister(&self, inner: &mut Inner, slot: &Slot) {
        inner.sleepers.retain(|&(number, _)| number != slot.number);
        self.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
        if slot.searching.swap(false, Ordering::SeqCst) {
            self.searching.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Refuse new calls; workers finish what is accepted and then are told to leave. `task`, if given, comes
    /// home when the last one has left. Returns false, and keeps no task, when that has already happened.
    #[must_use]
    pub fn close(&self, task: Option<&'static Task>) -> bool {
        let (empty, owed) = {
            let mut inner = lock(&self.inner);
            if self.finished.load(Ordering::SeqCst) {
                return false;
            }
            self.closing.store(true, Ordering::SeqCst);
            inner.closers.extend(task);
            self.wake_all(&mut inner);
            // Nobody replaces the dead any more: their going is their answer.
            let owed: Vec<_> = std::mem::take(&mut inner.owed)
                .into_iter()
                .flat_map(|from| inner.broadcasts.get(from as usize..).unwrap_or_default().to_vec())
                .collect();
            (inner.slots.iter().flatten().next().is_none(), owed)
        };
        for broadcast in owed {
            broadcast.answer(None);
        }
        if empty {
            self.finish(Status::Closed, &[]);
        }
        true
    }

    /// End everything that is not running: waiting tasks come home with `status` and `bytes`, those
    /// submitted from now on as closed.
    pub fn finish(&self, status: Status, bytes: &[u8]) {
        let closers = {
            let mut inner = lock(&self.inner);
            self.closing.store(true, Ordering::SeqCst);
            self.finished.store(true, Ordering::SeqCst);
            if status == Status::Died {
                inner.failure = Some(bytes.into());
            }
            // Those who sleep must hear that they may leave.
            self.wake_all(&mut inner);
            std::mem::take(&mut inner.closers)
        };
        self.refuse_waiting(status, bytes);
        let broadcasts = {
            let mut inner = lock(&self.inner);
            self.broadcast_count.store(0, Ordering::SeqCst);
            std::mem::take(&mut inner.broadcasts)
        };
        for broadcast in broadcasts {
            broadcast.abandon(status, bytes);
        }
        for task in closers {
            // SAFETY: its submitter handed it to `close`, and it was taken out of the list just once.
            unsafe { settle(task, Status::Done, &[]) };
        }
    }

    /// Why the zone has failed, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<Box<[u8]>> {
        lock(&self.inner).failure.clone()
    }

    /// Send every waiting task home with `status` and `bytes`.
    pub fn refuse_waiting(&self, status: Status, bytes: &[u8]) {
        loop {
            let task = {
                let mut inner = lock(&self.inner);
                self.absorb(&mut inner);
                inner.queue.pop()
            };
            let Some(task) = task else { return };
            self.stopped_waiting(task);
            // SAFETY: popping made this thread the holder.
            unsafe { settle(task, status, bytes) };
        }
    }

    /// The thread that keeps the workers has ended, and they with it: everything comes home.
    pub fn orphan(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.finish(Status::Orphaned, &[]);
        let slots = lock(&self.inner).slots.len() as u32;
        for slot in 0..slots {
            self.slot_gone(slot, Status::Orphaned, &[]);
        }
    }

    /// Whether a worker is there or to come.
    #[must_use]
    pub fn has_slots(&self) -> bool {
        lock(&self.inner).slots.iter().flatten().next().is_some()
    }

    /// The counts of this moment.
    #[must_use]
    pub fn counts(&self) -> Counts {
        // A worker locks its running tasks before the zone, so the zone's lock is given back first.
        let (slots, asleep) = {
            let inner = lock(&self.inner);
            (inner.slots.iter().flatten().cloned().collect::<Vec<_>>(), inner.sleepers.len() as u64)
        };
        let ended: u64 = slots.iter().map(|slot| slot.ended.load(Ordering::Relaxed)).sum();
        Counts {
            waiting: self.waiting.load(Ordering::Relaxed) as u64,
            waiting_bytes: self.waiting_bytes.load(Ordering::Relaxed) as u64,
            running: slots.iter().map(|slot| (slot.busy.load(Ordering::Relaxed) % CONDEMNED) as u64).sum(),
            ended: ended + self.ended_before.load(Ordering::Relaxed),
            died: self.died.load(Ordering::Relaxed),
            wake_ups: self.wake_ups.load(Ordering::Relaxed),
            workers: slots.len() as u64,
            asleep,
        }
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

/// What a worker does next.
pub enum Next {
    /// Nothing is there for it.
    Nothing,
    /// Run this broadcast, then say so with `broadcast_done`.
    Broadcast(Arc<Broadcast>),
    /// Run this task, then `complete` the token.
    Task {
        /// The task, held by this worker.
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
    zone: Arc<Zone>,
    slot: Arc<Slot>,
    port: &'static Port,
    /// A broadcast was given out and is not done: nothing else begins.
    broadcasting: bool,
}

impl Worker {
    /// The zone.
    #[must_use]
    pub const fn zone(&self) -> &Arc<Zone> {
        &self.zone
    }

    /// What to do next. Broadcasts come first and wait for the running tasks to end.
    pub fn take(&mut self) -> Next {
        let zone = &*self.zone;
        let busy = self.running_count();
        let applied = self.slot.applied.load(Ordering::Relaxed);
        if self.broadcasting {
            return Next::Nothing;
        }
        if applied < zone.broadcast_count.load(Ordering::SeqCst) {
            return if busy > 0 { Next::Nothing } else { self.next_broadcast(applied) };
        }
        if busy >= zone.limits.tasks_per_worker_max {
            return Next::Nothing;
        }
        // Relaxed: a hint; the count goes up before a push, and a sleeper's second look is at the stack
        // itself.
        if zone.waiting.load(Ordering::Relaxed) == 0 {
            let leave = busy == 0 && zone.is_closing();
            return if leave && lock_and_see(zone).is_empty() { Next::Leave } else { Next::Nothing };
        }
        // Held until the task is in it: withdraw and slot_gone look for it here.
        let mut running = lock(&self.slot.running);
        if self.running_count() != busy {
            return Next::Nothing;
        }
        let token = running.iter().position(Option::is_none).unwrap_or(running.len());
        let (task, serial, more) = {
            let mut inner = lock(&zone.inner);
            if inner.queue.is_empty() {
                zone.absorb(&mut inner);
            }
            let Some(task) = inner.queue.pop() else { return Next::Nothing };
            inner.serial = inner.serial.wrapping_add(1);
            let serial = inner.serial;
            // SAFETY: the zone's lock is held.
            unsafe { task.place(|place| place.stage = Stage::Running { slot: self.slot.number, serial }) };
            (
                task,
                serial,
                !inner.sleepers.is_empty() && (!inner.queue.is_empty() || !zone.injector.is_empty()),
            )
        };
        match running.get_mut(token) {
            Some(free) => *free = Some(Running { task, serial }),
            None => running.push(Some(Running { task, serial })),
        }
        self.slot.busy.store(busy + 1, Ordering::Relaxed);
        drop(running);
        zone.stopped_waiting(task);
        if more {
            self.end_search();
            self.zone.wake_one();
        }
        Next::Task { task, token: token as u32, serial }
    }

    fn next_broadcast(&mut self, applied: u32) -> Next {
        let broadcast = lock(&self.zone.inner).broadcasts.get(applied as usize).cloned();
        self.broadcasting = broadcast.is_some();
        broadcast.map_or(Next::Nothing, Next::Broadcast)
    }

    /// The broadcast that `take` gave has run.
    pub fn broadcast_done(&mut self, failure: Option<Failure>) {
        self.broadcasting = false;
        let applied = self.slot.applied.load(Ordering::Relaxed);
        let broadcast = {
            let inner = lock(&self.zone.inner);
            // SeqCst under the lock: slot_gone reads it there, so each answers or is answered for once.
            self.slot.applied.store(applied + 1, Ordering::SeqCst);
            inner.broadcasts.get(applied as usize).cloned()
        };
        if let Some(broadcast) = broadcast.filter(|_| applied >= self.slot.joined) {
            broadcast.answer(failure);
        }
    }

    /// The running task with this token has ended: `fill` writes its result, then it goes home. Returns false
    /// when there is no such task.
    #[inline]
    pub fn complete(&mut self, token: u32, fill: impl FnOnce(&mut Body)) -> bool {
        let Some(Running { task, .. }) =
            lock(&self.slot.running).get_mut(token as usize).and_then(Option::take)
        else {
            return false;
        };
        self.slot.busy.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: this worker held it as running; taking it out of `running` makes this the only place to end
        // it.
        unsafe { task.body(fill) };
        // Relaxed: a count.
        self.slot.ended.fetch_add(1, Ordering::Relaxed);
        task.home.deliver(task);
        true
    }

    /// The running task with this token, held by this worker.
    #[must_use]
    pub fn running(&self, token: u32) -> Option<&'static Task> {
        lock(&self.slot.running).get(token as usize).copied().flatten().map(|running| running.task)
    }

    /// Tasks begun and not ended.
    #[must_use]
    pub fn running_count(&self) -> usize {
        // Relaxed: only this thread changes it.
        self.slot.busy.load(Ordering::Relaxed)
    }

    /// Whether `take` would give something. May say yes in vain, never no in vain once the worker is
    /// registered as searching or asleep.
    #[inline]
    #[must_use]
    pub fn has_work(&self) -> bool {
        let zone = &*self.zone;
        let busy = self.running_count();
        if self.broadcasting {
            return false;
        }
        if self.slot.applied.load(Ordering::Relaxed) < zone.broadcast_count.load(Ordering::SeqCst) {
            return busy == 0;
        }
        busy < zone.limits.tasks_per_worker_max
            && (zone.waiting.load(Ordering::Relaxed) > 0 || (busy == 0 && zone.is_closing()))
    }

    /// Whether this worker may begin a task now.
    fn can_take(&self) -> bool {
        !self.broadcasting
            && self.slot.applied.load(Ordering::Relaxed) >= self.zone.broadcast_count.load(Ordering::SeqCst)
            && self.running_count() < self.zone.limits.tasks_per_worker_max
    }

    /// Begin to look for work without sleeping: submitters need not wake anybody meanwhile. One who could not
    /// take a task does not count, or those who could would sleep through it.
    pub fn begin_search(&mut self) {
        if self.can_take() && !self.slot.searching.swap(true, Ordering::SeqCst) {
            self.zone.searching.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Stop looking. Before it sleeps the worker must look once more, which `try_sleep` does.
    pub fn end_search(&mut self) {
        if self.slot.searching.load(Ordering::Relaxed) && self.slot.searching.swap(false, Ordering::SeqCst) {
            self.zone.searching.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// This worker has something else to do before it takes a task: if one waits, another worker may be
    /// woken.
    pub fn pass_on(&self) {
        // Relaxed: a hint; what comes later finds the sleeper itself.
        if self.zone.waiting.load(Ordering::Relaxed) > 0 {
            self.zone.wake_one();
        }
    }

    /// Declare this worker and its thread, whose desk this is, asleep. Returns false, and the thread must not
    /// sleep, when there is something to do.
    #[must_use]
    pub fn try_sleep(&mut self, desk: &mut Desk) -> bool {
        self.end_search();
        // The port first: who finds the worker among the sleepers must find its port asleep, or wakes nobody.
        if !desk.try_sleep() {
            return false;
        }
        if self.register() {
            return true;
        }
        desk.wake_up();
        false
    }

    /// Register as asleep, if it could take a task, and look once more. Returns false when there is work.
    fn register(&mut self) -> bool {
        let zone = &*self.zone;
        let busy = self.running_count();
        let mut inner = lock(&zone.inner);
        if !self.can_take() {
            // It may have searched when a task came, so that nobody was woken.
            let pass_on = !inner.sleepers.is_empty() && zone.has_waiting(&inner);
            drop(inner);
            if pass_on {
                zone.wake_one();
            }
            return self.broadcasting || busy > 0;
        }
        // Woken from the end: those who run nothing first, since others may be held up by what they run.
        let place = if busy == 0 { inner.sleepers.len() } else { 0 };
        inner.sleepers.insert(place, (self.slot.number, self.port));
        zone.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
        model_fence();
        // SeqCst: the second look comes after the registration, the submitter's look after its push.
        let found = zone.has_waiting(&inner) || (zone.is_closing() && busy == 0);
        if found {
            zone.unregister(&mut inner, &self.slot);
        }
        !found
    }

    /// Unregister after sleep, whatever ended it.
    pub fn wake_up(&mut self) {
        let zone = &*self.zone;
        let mut inner = lock(&zone.inner);
        zone.unregister(&mut inner, &self.slot);
    }

    /// The thread is ending. Its running tasks stay with the slot until `slot_gone`; whatever waits is passed
    /// on to another worker. Dropping is the same.
    pub fn leave(self) {
        drop(self);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let waiting = {
            let mut inner = lock(&self.zone.inner);
            self.zone.unregister(&mut inner, &self.slot);
            // With it, under the same lock: from here on slot_gone may give the slot's number to another.
            *lock(&self.slot.port) = None;
            model_fence();
            // SeqCst: after the unregistration, as in register.
            self.zone.has_waiting(&inner)
        };
        // It may have been woken for what waits, or have searched when it came.
        if waiting {
            self.zone.wake_one();
        }
    }
}

/// The zone's queue with all that was submitted in it.
fn lock_and_see(zone: &Zone) -> impl std::ops::Deref<Target = Queue> + '_ {
    let mut inner = lock(&zone.inner);
    zone.absorb(&mut inner);
    Seen(inner)
}

struct Seen<'a>(crate::sync::MutexGuard<'a, Inner>);

impl std::ops::Deref for Seen<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.0.queue
    }
}
