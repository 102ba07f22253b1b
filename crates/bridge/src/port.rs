//! A port: the mailbox of one JavaScript thread and the way to wake it. And the tasks that come home to it.
//!
//! Two things arrive: tasks that come home (a lock-free stack) and mail, rare instructions such as "start a
//! worker" (a locked queue). The wake-up is coalesced: a thread that is awake is never signalled, and one
//! that sleeps is signalled once. README.md proves that no arrival is slept through.
//!
//! A task, a call that travels from a thread to a zone and comes back with its result, belongs to the port
//! that submits it (its home) and is used again for later calls of that thread; only *who may touch it*
//! changes. At any moment exactly one party holds a task, in the order below, and only the holder touches its
//! body:
//!
//! home (idle) → a zone's injector or queue → a worker (running) → home's inbox → home (idle)
//!
//! Every arrow is a synchronising step: a stack push and take, or the zone's lock. A port holds tasks and a
//! task names its port, so the two stand in one file.
//!
//! Neither is ever freed: `Desk`s, the owners' ends, are kept for later threads (see `Desk::is_idle`). So a
//! reference to either is good for ever, and a task that comes home to an ended thread finds memory, not
//! rubble.

use std::collections::VecDeque;

use crate::{
    bytes::Bytes,
    machine::Machine,
    sync::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Cell, Mutex, Ordering, lock, model_fence,
    },
    task::{Body, Stage, Status},
};

/// What wakes a sleeping thread, such as writing to an event descriptor.
pub trait Wake: Send {
    /// Wake the thread; called at most once per sleep.
    fn wake(&self);
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
                (body.depth, body.from_worker) = (0, false);
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

/// Its neighbours in a zone's queue, the lane it is in and when it came. Guarded by that zone's lock.
pub(crate) struct Place {
    pub(crate) previous: Option<&'static Task>,
    pub(crate) next: Option<&'static Task>,
    pub(crate) depth: u32,
    pub(crate) order: u64,
}

/// One call and its result; see the module's text for who may touch what.
pub struct Task {
    /// The next task of whichever stack it is on: an injector or an inbox.
    link: AtomicPtr<Task>,
    pub(crate) home: &'static Port,
    call: u32,
    body: Cell<Body>,
    place: Cell<Place>,
    /// Changed by who holds the task, but from `Local`: there the deque's taker and the caller who withdraws
    /// it race, and one of the two wins.
    stage: AtomicU64,
    /// Its caller waits for this one, blocking: it comes home by `arrived` instead of the inbox.
    joined: AtomicBool,
    arrived: AtomicBool,
}

// SAFETY: `body` is touched by the one holder only and handed on by synchronising steps (module text);
// `place` only under the lock of the zone that the task is in.
unsafe impl Sync for Task {}
// SAFETY: as above; nothing in a task is bound to a thread (attachments are `Send`).
unsafe impl Send for Task {}

impl Task {
    fn new(home: &'static Port, call: u32) -> Self {
        Self {
            link: AtomicPtr::new(std::ptr::null_mut()),
            home,
            call,
            body: Cell::new(Body {
                function: 0,
                status: Status::Done,
                bytes: Bytes::new(),
                attachments: None,
                submitted: 0,
                counted: 0,
                depth: 0,
                from_worker: false,
            }),
            place: Cell::new(Place { previous: None, next: None, depth: 0, order: 0 }),
            stage: AtomicU64::new(0),
            joined: AtomicBool::new(false),
            arrived: AtomicBool::new(false),
        }
    }

    /// How far it has come. Exact for who holds the zone's lock, but where it is `Local`.
    pub(crate) fn stage(&self) -> Stage {
        // Acquire: pairs with the Release of the taker, whose slot is looked up next.
        Stage::unpack(self.stage.load(Ordering::Acquire))
    }

    /// The holder's word where the task is now.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage.pack(), Ordering::Release);
    }

    /// From a deque to somewhere else; false when another has moved it first.
    pub(crate) fn leave_deque(&self, to: Stage) -> bool {
        let (from, to) = (Stage::Local.pack(), to.pack());
        self.stage.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether its caller waits for it, blocking.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        // Relaxed: set before it left home.
        self.joined.load(Ordering::Relaxed)
    }

    /// Whether it has come home to its caller, who waits for it.
    pub(crate) fn has_arrived(&self) -> bool {
        // SeqCst: may be the sleeper's second look; acquires the body.
        self.arrived.load(Ordering::SeqCst)
    }

    /// The caller's number of this call.
    #[must_use]
    pub const fn call(&self) -> u32 {
        self.call
    }

    /// Touch the body.
    ///
    /// # Safety
    ///
    /// The caller holds the task: it is idle at home and this is the home thread, or this worker runs it, or
    /// this thread has just taken it out of a queue or an inbox.
    #[inline(always)]
    pub unsafe fn body<R>(&'static self, touch: impl FnOnce(&mut Body) -> R) -> R {
        // SAFETY: the caller is the only holder, so the reference is unique for the closure's time.
        self.body.with_mut(|body| touch(unsafe { &mut *body }))
    }

    /// Touch the place.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the zone that the task is in.
    #[inline(always)]
    pub(crate) unsafe fn place<R>(&'static self, touch: impl FnOnce(&mut Place) -> R) -> R {
        // SAFETY: the zone's lock makes the reference unique for the closure's time.
        self.place.with_mut(|place| touch(unsafe { &mut *place }))
    }
}

/// A stack of tasks that any thread pushes on and one thread takes whole. Lock-free; no ABA, since nothing is
/// ever popped singly.
pub(crate) struct Stack(AtomicPtr<Task>);

impl Stack {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Put `task`, which the caller holds, on top. Sequentially consistent: callers look at a sleep flag
    /// next.
    #[inline]
    pub(crate) fn push(&self, task: &'static Task) {
        use Ordering::{Relaxed, SeqCst};
        let pointer = std::ptr::from_ref(task).cast_mut();
        let mut head = self.0.load(Relaxed);
        loop {
            // Relaxed: published by the exchange below.
            task.link.store(head, Relaxed);
            // SeqCst: releases the body to the taker and orders the push before the look at the sleep flag.
            match self.0.compare_exchange_weak(head, pointer, SeqCst, Relaxed) {
                Ok(_) => return model_fence(),
                Err(now) => head = now,
            }
        }
    }

    /// Whether nothing is on it. Sequentially consistent: the sleeper's second look.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::SeqCst).is_null()
    }

    /// Take all, oldest first. The caller becomes the holder of every task in the chain.
    pub(crate) fn take_all(&self) -> Chain {
        use Ordering::{Relaxed, SeqCst};
        // SeqCst: acquires what push released; and `Zone::finish` takes after it has raised its flag, while a
        // submitter pushes before it looks at that flag.
        let mut newest = self.0.swap(std::ptr::null_mut(), SeqCst);
        let mut oldest: *mut Task = std::ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: tasks are never freed, and the swap made this thread the holder of the whole chain.
            let task: &'static Task = unsafe { &*newest };
            let next = task.link.load(Relaxed);
            task.link.store(oldest, Relaxed);
            oldest = newest;
            newest = next;
        }
        Chain(oldest)
    }
}

/// Tasks taken together, oldest first.
pub(crate) struct Chain(*mut Task);

// SAFETY: a chain is the holder of its tasks, and tasks are `Send`.
unsafe impl Send for Chain {}

impl Chain {
    pub(crate) const fn empty() -> Self {
        Self(std::ptr::null_mut())
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_null()
    }

    /// Put a task that came from this chain, and is held, back in front.
    pub(crate) fn put_back(&mut self, task: &'static Task) {
        task.link.store(self.0, Ordering::Relaxed);
        self.0 = std::ptr::from_ref(task).cast_mut();
    }
}

impl Iterator for Chain {
    type Item = &'static Task;

    fn next(&mut self) -> Option<&'static Task> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: tasks are never freed and this chain holds them.
        let task: &'static Task = unsafe { &*self.0 };
        self.0 = task.link.load(Ordering::Relaxed);
        Some(task)
    }
}
