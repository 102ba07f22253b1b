//! The owning thread's end of a mailbox: its tasks, its arrivals, its sleep.
//!
//! Receivers outlive their threads: a later thread opens one again when all its tasks have returned.

use std::collections::VecDeque;

use crate::{
    machine::Machine,
    mailbox::{AWAKE, Mail, Mailbox, Wake},
    sync::{AtomicU32, AtomicUsize, Mutex, Ordering, lock},
    task::{Chain, Stack, State, Task},
};

/// Tasks made at a time when a thread runs out of them.
const CHUNK_TASKS: usize = if cfg!(loom) { 2 } else { 256 };
/// The first `KEEP_TASKS` tasks keep their memory for the next use, each at most `KEEP_BYTES` of it.
const KEEP_TASKS: u32 = 1024;
const KEEP_BYTES: usize = 4096;

/// The owner's end of a mailbox: only the thread that opened it uses it.
pub struct Receiver {
    mailbox: &'static Mailbox,
    chunks: Vec<&'static [Task]>,
    arrived: Chain,
    in_flight: usize,
    /// Calls that this thread waits for, blocking, innermost last: they do not come by the inbox.
    joins: Vec<&'static Task>,
    /// The thread is in a task that may block it, and does not count as awake.
    uncounted: bool,
}

impl Receiver {
    /// A closed receiver with a mailbox of its own, for threads to open one after another.
    pub fn new(number: u32, machine: &'static Machine) -> Self {
        let mailbox: &'static Mailbox = Box::leak(Box::new(Mailbox {
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
            mailbox,
            chunks: Vec::new(),
            arrived: Chain::empty(),
            in_flight: 0,
            joins: Vec::new(),
            uncounted: false,
        }
    }

    /// The shared end.
    pub const fn mailbox(&self) -> &'static Mailbox {
        self.mailbox
    }

    /// Begin to receive: this thread is awake from here on.
    pub fn open(&mut self, waker: Box<dyn Wake>) {
        *lock(&self.mailbox.waker) = Some(waker);
        self.mailbox.count(true);
    }

    /// Stop receiving mail and wake-ups. Tasks still return; `is_idle` is true when all have.
    pub fn close(&mut self) {
        self.set_blocked(false);
        *lock(&self.mailbox.waker) = None;
        let mut mail = lock(&self.mailbox.mail);
        mail.clear();
        self.mailbox.mail_count.store(0, Ordering::SeqCst);
        drop(mail);
        if self.mailbox.state.swap(AWAKE, Ordering::SeqCst) == AWAKE {
            self.mailbox.count(false);
        }
    }

    /// After `close`: whether every task has returned, so that another thread may open this receiver.
    pub fn is_idle(&mut self) -> bool {
        while let Some(task) = self.next_arrival() {
            self.put_away(task);
        }
        while let Some(&task) = self.joins.iter().find(|task| task.has_arrived()) {
            self.put_away(task);
        }
        self.in_flight == 0
    }

    /// The call of `task`, idle here, will be waited for by this thread itself: it returns by
    /// [`Receiver::has_come`], not among the arrivals.
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

    /// Cancel the forked tasks of this thread, which ends: those still in a deque return to it instead of
    /// being run by the worker that takes them out.
    pub fn cancel_forked(&self) {
        for task in self.chunks.iter().copied().flatten() {
            task.leave_deque(State::Cancelled);
        }
    }

    /// Whether a joined call has ended; this thread then holds its task until `put_away`.
    pub fn has_come(&self, task: &'static Task) -> bool {
        task.has_arrived()
    }

    /// Mark this thread as asleep until the joined `task` returns; false when it has.
    pub fn try_sleep_until(&mut self, task: &'static Task) -> bool {
        self.mailbox.enter_sleep();
        if task.has_arrived() {
            self.wake_up();
            return false;
        }
        true
    }

    /// Record that a task that may block its thread begins or has ended. Meanwhile the thread does not count
    /// among those that use a core, so others may spin.
    #[inline]
    pub fn set_blocked(&mut self, blocked: bool) {
        if self.uncounted != blocked {
            self.uncounted = blocked;
            self.mailbox.count(!blocked);
        }
    }

    /// Whether the number of a call is one of the dense numbers that `task` makes next, or below.
    #[inline]
    pub fn may_have(&self, call: u32) -> bool {
        call as usize <= self.chunks.len() * CHUNK_TASKS
    }

    /// The idle task of the call with this number. The caller assigns numbers densely, and uses one again
    /// only after its task was put away.
    pub fn task(&mut self, call: u32) -> &'static Task {
        let index = call as usize;
        while index >= self.chunks.len() * CHUNK_TASKS {
            let first = (self.chunks.len() * CHUNK_TASKS) as u32;
            let made: Box<[Task]> =
                (0..CHUNK_TASKS as u32).map(|offset| Task::new(self.mailbox, first + offset)).collect();
            self.chunks.push(Box::leak(made));
        }
        &self.chunks[index / CHUNK_TASKS][index % CHUNK_TASKS]
    }

    /// Note that a task was sent. Returns whether it is the only one away.
    pub const fn sent(&mut self) -> bool {
        self.in_flight += 1;
        self.in_flight == 1
    }

    /// Take the next task that has returned; this thread holds it until `put_away`.
    #[inline]
    pub fn next_arrival(&mut self) -> Option<&'static Task> {
        if self.arrived.is_empty() {
            self.arrived = self.mailbox.inbox.take_all();
        }
        self.arrived.next()
    }

    /// Put the last task of `next_arrival` back in front.
    pub fn put_back(&mut self, task: &'static Task) {
        self.arrived.put_back(task);
    }

    /// End a call: its task becomes idle. Returns whether all other tasks are idle too.
    #[inline]
    pub fn put_away(&mut self, task: &'static Task) -> bool {
        if task.joined.load(Ordering::Relaxed) {
            self.unjoin(task);
        }
        // SAFETY: the task has returned to this thread, which has not sent it again.
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

    /// Calls that were sent and have not returned.
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether there is something for this thread: a task or mail.
    #[inline]
    pub fn has_arrivals(&self) -> bool {
        !self.arrived.is_empty() || self.mailbox.has_arrivals()
    }

    /// Take the oldest instruction.
    pub fn next_mail(&mut self) -> Option<Mail> {
        // Relaxed: an early look; what arrives later finds this thread awake or wakes it.
        if self.mailbox.mail_count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut queue = lock(&self.mailbox.mail);
        let mail = queue.pop_front();
        self.mailbox.mail_count.store(queue.len(), Ordering::SeqCst);
        mail
    }

    /// Record the core on which this awake thread runs. Returns the number of awake mailboxes there, this one
    /// included.
    pub fn runs_on(&mut self, core: u32) -> u32 {
        let mailbox = self.mailbox;
        // One that counts nowhere, asleep or blocked, has no links to be moved from.
        let counts = !self.uncounted && mailbox.state.load(Ordering::Relaxed) == AWAKE;
        if counts && mailbox.core.load(Ordering::Relaxed) != core {
            mailbox.count(false);
            mailbox.core.store(core, Ordering::Relaxed);
            mailbox.count(true);
        }
        mailbox.machine.awake_on(core)
    }

    /// Mark this thread as asleep. Returns false, and it must not, when something has arrived.
    pub fn try_sleep(&mut self) -> bool {
        self.mailbox.enter_sleep();
        if self.has_arrivals() {
            self.wake_up();
            return false;
        }
        true
    }

    /// Mark this thread as awake again, whatever woke it.
    #[inline]
    pub fn wake_up(&mut self) {
        // A sender that came first has counted this thread as awake already.
        let state = self.mailbox.state.load(Ordering::Relaxed);
        if state != AWAKE {
            self.mailbox.leave_sleep(state);
        }
    }
}
