//! A port: the mailbox of one JavaScript thread and the way to wake it.
//!
//! Two things arrive: tasks that come home (a lock-free stack) and mail, rare instructions such as "start a
//! worker" (a locked queue). The wake-up is coalesced: a thread that is awake is never signalled, and one
//! that sleeps is signalled once. README.md proves that no arrival is slept through.
//!
//! Ports are never freed: `Desk`s, the owners' ends, are kept for later threads (see `Desk::is_idle`). So a
//! reference to a port is good for ever, and a task that comes home to an ended thread finds memory, not
//! rubble.

use std::collections::VecDeque;

use crate::{
    sync::{AtomicU32, AtomicUsize, Mutex, Ordering, lock, model_fence},
    task::{Chain, Stack, Task},
};

/// What wakes a sleeping thread, such as writing to an event descriptor.
pub trait Wake: Send {
    /// Wake the thread; called at most once per sleep.
    fn wake(&self);
}

/// Cores told apart; those of larger machines share a count.
const CORES: usize = 64;

/// How many threads may run at once, how many ports are awake, and on which cores. All of it hints, for
/// spinning only: wrong for a moment costs a moment. So the counts are no part of loom's models.
#[derive(Debug)]
pub struct Machine {
    cores: u32,
    awake: std::sync::atomic::AtomicU32,
    awake_on: [std::sync::atomic::AtomicU32; CORES],
}

impl Machine {
    /// `cores`: how many threads of this process can run at the same moment.
    #[must_use]
    pub fn new(cores: u32) -> Self {
        let awake_on = [const { std::sync::atomic::AtomicU32::new(0) }; CORES];
        Self { cores, awake: std::sync::atomic::AtomicU32::new(0), awake_on }
    }

    /// Whether one of the awake threads may wait by spinning without taking a core from another.
    #[must_use]
    pub fn has_room_to_spin(&self) -> bool {
        self.cores > 1 && self.awake.load(Ordering::Relaxed) <= self.cores
    }

    /// Whether two threads can run at the same time at all.
    #[must_use]
    pub const fn has_cores(&self) -> bool {
        self.cores > 1
    }

    /// Awake ports whose threads were last seen on that core.
    #[must_use]
    pub fn awake_on(&self, core: u32) -> u32 {
        self.awake_on[core as usize % CORES].load(Ordering::Relaxed)
    }

    fn count(&self, core: u32, awake: bool) {
        let on = &self.awake_on[core as usize % CORES];
        if awake {
            self.awake.fetch_add(1, Ordering::Relaxed);
            on.fetch_add(1, Ordering::Relaxed);
        } else {
            self.awake.fetch_sub(1, Ordering::Relaxed);
            on.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A rare instruction to a thread. What the numbers mean is the receiver's business.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mail {
    /// What to do.
    pub kind: u32,
    /// To what.
    pub subject: u32,
    /// And two facts about it.
    pub facts: [u32; 2],
}

const AWAKE: u32 = 0;
/// With it stands the core, see `asleep_on`.
const ASLEEP: u32 = 1 << 31;

/// The state of a port whose thread sleeps: the core that it was counted on, and is counted on again by
/// whoever wakes it. In one word, since a thread that wakes by itself may move to another core before it
/// sleeps again.
const fn asleep_on(core: u32) -> u32 {
    core | ASLEEP
}

const fn core_of(asleep: u32) -> u32 {
    asleep & !ASLEEP
}

/// The shared end of a thread's mailbox.
pub struct Port {
    number: u32,
    machine: &'static Machine,
    inbox: Stack,
    mail: Mutex<VecDeque<Mail>>,
    mail_count: AtomicUsize,
    state: AtomicU32,
    waker: Mutex<Option<Box<dyn Wake>>>,
    /// Where the thread was last seen; only it looks at this, and changes it only while it counts as awake.
    core: std::sync::atomic::AtomicU32,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Port({})", self.number)
    }
}

impl Port {
    /// The port's number in the process.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Bring `task` home and wake its thread if it sleeps. The caller held the task and no longer does.
    #[inline]
    pub(crate) fn deliver(&self, task: &'static Task) {
        // Relaxed: set by the home thread before it sent the task off.
        if task.joined.load(Ordering::Relaxed) {
            // SeqCst: releases the body, and comes before the look at `state` in rouse.
            task.arrived.store(true, Ordering::SeqCst);
            model_fence();
        } else {
            self.inbox.push(task);
        }
        self.rouse();
    }

    /// Leave an instruction. Returns false, and leaves nothing, when the thread has ended.
    pub fn send(&self, mail: Mail) -> bool {
        {
            let waker = lock(&self.waker);
            if waker.is_none() {
                return false;
            }
            let mut queue = lock(&self.mail);
            queue.push_back(mail);
            // SeqCst: ordered before the look at `state` in rouse.
            self.mail_count.store(queue.len(), Ordering::SeqCst);
        }
        model_fence();
        self.rouse();
        true
    }

    /// Wake the thread if it sleeps.
    #[inline]
    pub fn rouse(&self) {
        // SeqCst: after the sender's push, before the sleeper's second look, in the one order of all SeqCst
        // steps.
        let state = self.state.load(Ordering::SeqCst);
        if state != AWAKE
            && self.leave_sleep(state)
            && let Some(waker) = lock(&self.waker).as_ref()
        {
            waker.wake();
        }
    }

    /// From `asleep` to awake, and counted as that; false when it was awake. Writes nothing then: loom orders
    /// a write of what is there already after the sleeper's next one.
    fn leave_sleep(&self, asleep: u32) -> bool {
        let left = self.state.compare_exchange(asleep, AWAKE, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if left {
            self.machine.count(core_of(asleep), true);
        }
        left
    }

    /// Say that the thread is about to sleep, from where it is counted.
    fn enter_sleep(&self) {
        // SeqCst: before the second look, see rouse.
        self.state.store(asleep_on(self.core.load(Ordering::Relaxed)), Ordering::SeqCst);
        model_fence();
        self.count(false);
    }

    fn count(&self, awake: bool) {
        self.machine.count(self.core.load(Ordering::Relaxed), awake);
    }

    /// Whether mail has arrived.
    #[inline]
    #[must_use]
    pub fn has_mail(&self) -> bool {
        // SeqCst: may be the sleeper's second look.
        self.mail_count.load(Ordering::SeqCst) > 0
    }

    /// Whether a task or mail has arrived.
    #[inline]
    #[must_use]
    pub fn has_arrivals(&self) -> bool {
        !self.inbox.is_empty() || self.has_mail()
    }
}

/// Tasks made at a time when a thread runs out of them.
const CHUNK_TASKS: usize = if cfg!(loom) { 2 } else { 256 };
/// The first so many tasks keep their memory for the next use, each at most `KEEP_BYTES` of it.
const KEEP_TASKS: u32 = 1024;
const KEEP_BYTES: usize = 4096;

/// The owner's end of a port: only the thread that opened it uses it.
pub struct Desk {
    port: &'static Port,
    chunks: Vec<&'static [Task]>,
    arrived: Chain,
    in_flight: usize,
    /// Calls that this thread waits for, blocking, innermost last: they do not come by the inbox.
    joins: Vec<&'static Task>,
    /// The thread is in a task that may block it, and does not count as awake.
    uncounted: bool,
}

impl Desk {
    /// A closed desk with a port of its own, for threads to open one after another.
    #[must_use]
    pub fn new(number: u32, machine: &'static Machine) -> Self {
        let port: &'static Port = Box::leak(Box::new(Port {
            number,
            machine,
            inbox: Stack::new(),
            mail: Mutex::new(VecDeque::new()),
            mail_count: AtomicUsize::new(0),
            state: AtomicU32::new(AWAKE),
            waker: Mutex::new(None),
            core: std::sync::atomic::AtomicU32::new(0),
        }));
        Self {
            port,
            chunks: Vec::new(),
            arrived: Chain::empty(),
            in_flight: 0,
            joins: Vec::new(),
            uncounted: false,
        }
    }

    /// The shared end.
    #[must_use]
    pub const fn port(&self) -> &'static Port {
        self.port
    }

    /// Begin to receive: this thread is awake from here on.
    pub fn open(&mut self, waker: Box<dyn Wake>) {
        *lock(&self.port.waker) = Some(waker);
        self.port.count(true);
    }

    /// Stop receiving mail and wake-ups. Tasks still come home; `is_idle` tells when all have.
    pub fn close(&mut self) {
        self.set_blocked(false);
        *lock(&self.port.waker) = None;
        let mut mail = lock(&self.port.mail);
        mail.clear();
        self.port.mail_count.store(0, Ordering::SeqCst);
        drop(mail);
        if self.port.state.swap(AWAKE, Ordering::SeqCst) == AWAKE {
            self.port.count(false);
        }
    }

    /// After `close`: whether every task has come home, so that another thread may open this desk.
    pub fn is_idle(&mut self) -> bool {
        while let Some(task) = self.next_arrival() {
            self.put_away(task);
        }
        while let Some(&task) = self.joins.iter().find(|task| task.has_arrived()) {
            self.put_away(task);
        }
        self.in_flight == 0
    }

    /// The call of `task`, idle at home, will be waited for by this thread itself: it comes home by
    /// [`Desk::has_come`], not among the arrivals.
    pub fn join(&mut self, task: &'static Task) {
        task.joined.store(true, Ordering::Relaxed);
        self.joins.push(task);
    }

    /// Take `join` back: the task did not leave.
    pub fn unjoin(&mut self, task: &'static Task) {
        self.joins.retain(|&other| !std::ptr::eq(other, task));
        // Relaxed: nobody else holds it.
        task.joined.store(false, Ordering::Relaxed);
        task.arrived.store(false, Ordering::Relaxed);
    }

    /// The joined calls that have not ended.
    pub(crate) fn open_joins(&self) -> Vec<&'static Task> {
        self.joins.iter().filter(|task| !task.has_arrived()).copied().collect()
    }

    /// Whether a joined call has ended; this thread then holds its task until `put_away`.
    #[must_use]
    pub fn has_come(&self, task: &'static Task) -> bool {
        task.has_arrived()
    }

    /// Say that this thread sleeps until `task`, which is joined, comes home; false when it has.
    #[must_use]
    pub fn try_sleep_until(&mut self, task: &'static Task) -> bool {
        self.port.enter_sleep();
        if task.has_arrived() {
            self.wake_up();
            return false;
        }
        true
    }

    /// A task that may block its thread begins, or has ended: meanwhile it takes no core from those who spin.
    #[inline]
    pub fn set_blocked(&mut self, blocked: bool) {
        if self.uncounted != blocked {
            self.uncounted = blocked;
            self.port.count(!blocked);
        }
    }

    /// The idle task that stands for the call with this number. Numbers are given out densely by the caller,
    /// who uses one again only after its task was put away.
    pub fn task(&mut self, call: u32) -> &'static Task {
        let index = call as usize;
        while index >= self.chunks.len() * CHUNK_TASKS {
            let first = (self.chunks.len() * CHUNK_TASKS) as u32;
            let made: Box<[Task]> =
                (0..CHUNK_TASKS as u32).map(|offset| Task::new(self.port, first + offset)).collect();
            self.chunks.push(Box::leak(made));
        }
        &self.chunks[index / CHUNK_TASKS][index % CHUNK_TASKS]
    }

    /// Note that a task has left home. Returns whether it is the only one away.
    pub const fn sent(&mut self) -> bool {
        self.in_flight += 1;
        self.in_flight == 1
    }

    /// Take the next task that has come home; this thread holds it until `put_away`.
    #[inline]
    pub fn next_arrival(&mut self) -> Option<&'static Task> {
        if self.arrived.is_empty() {
            self.arrived = self.port.inbox.take_all();
        }
        self.arrived.next()
    }

    /// Put the task that `next_arrival` gave last back in front.
    pub fn put_back(&mut self, task: &'static Task) {
        self.arrived.put_back(task);
    }

    /// End a call: its task becomes idle. Returns whether no other is away.
    #[inline]
    pub fn put_away(&mut self, task: &'static Task) -> bool {
        if task.joined.load(Ordering::Relaxed) {
            self.unjoin(task);
        }
        // SAFETY: the task has come home to this thread, which has not sent it off again.
        unsafe {
            task.body(|body| {
                body.attachments = None;
                body.forked = false;
                if task.call() < KEEP_TASKS {
                    body.bytes.shrink(KEEP_BYTES);
                } else {
                    body.bytes.shrink(0);
                }
            });
        }
        self.in_flight -= 1;
        self.in_flight == 0
    }

    /// Calls that have left and not come home.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether there is something for this thread: a task or mail.
    #[inline]
    #[must_use]
    pub fn has_arrivals(&self) -> bool {
        !self.arrived.is_empty() || self.port.has_arrivals()
    }

    /// Take the oldest instruction.
    pub fn next_mail(&mut self) -> Option<Mail> {
        // Relaxed: an early look; what arrives later finds this thread awake or wakes it.
        if self.port.mail_count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut queue = lock(&self.port.mail);
        let mail = queue.pop_front();
        self.port.mail_count.store(queue.len(), Ordering::SeqCst);
        mail
    }

    /// Say where this thread, which is awake, runs. Returns how many awake ports are there, this one
    /// included.
    pub fn runs_on(&mut self, core: u32) -> u32 {
        let port = self.port;
        // One that counts nowhere, asleep or blocked, has no place to be moved from.
        let counts = !self.uncounted && port.state.load(Ordering::Relaxed) == AWAKE;
        if counts && port.core.load(Ordering::Relaxed) != core {
            port.count(false);
            port.core.store(core, Ordering::Relaxed);
            port.count(true);
        }
        port.machine.awake_on(core)
    }

    /// Say that this thread is about to sleep. Returns false, and it must not, when something has arrived.
    #[must_use]
    pub fn try_sleep(&mut self) -> bool {
        self.port.enter_sleep();
        if self.has_arrivals() {
            self.wake_up();
            return false;
        }
        true
    }

    /// Say that this thread is awake again, whatever woke it.
    #[inline]
    pub fn wake_up(&mut self) {
        // A sender that came first has counted this thread as awake already.
        let state = self.port.state.load(Ordering::Relaxed);
        if state != AWAKE {
            self.port.leave_sleep(state);
        }
    }
}
