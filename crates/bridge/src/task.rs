//! A task: a call that travels from a thread to a zone and returns with its result.
//!
//! It belongs to the mailbox that submits it, and that thread uses it again for later calls; only *who may
//! touch it* changes. At any moment exactly one party holds a task, in the order below, and only the holder
//! touches its body:
//!
//! caller (idle) → a zone's injector or queue → a worker (running) → the caller's inbox → caller (idle)
//!
//! Every arrow is a synchronising step: a stack push and take, or the zone's lock. Tasks are never freed, so
//! a task that returns to a thread that has ended finds memory, not rubble.
//!
//! A task holds its caller's mailbox and a mailbox holds tasks, so both types are here; what a mailbox does
//! is in mailbox.rs.

use std::{any::Any, collections::VecDeque};

pub use crate::layout::Status;
use crate::{
    bytes::Bytes,
    machine::Machine,
    sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Cell, Mutex, Ordering, model_fence},
};

/// How urgent a task is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(u8)]
pub enum Priority {
    /// Before all others.
    High = 0,
    /// The default.
    #[default]
    Normal = 1,
    /// When nothing else waits, or it has waited long enough.
    Low = 2,
}

/// The order of a call. The default is that of all others, and the queue's short way.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Order {
    /// The tenant that it belongs to, by hash; 0: none.
    pub tenant: u64,
    /// The queue keeps it in the line that tenants share: its own tenant has no line of its own.
    pub shares: bool,
    /// The worker that is to run it, by slot and one more; 0: any.
    pub worker: u16,
    /// Any other may run it instead if that one has left a closing zone.
    pub moves: bool,
    /// Its worker runs nothing else meanwhile.
    pub exclusive: bool,
    /// Before which others.
    pub priority: Priority,
}

impl Order {
    /// Whether it is that of tasks without options.
    pub(crate) const fn is_plain(self) -> bool {
        self.tenant == 0 && self.worker == 0 && !self.exclusive && matches!(self.priority, Priority::Normal)
    }

    /// The slot of the worker that is to run it.
    pub(crate) fn slot(self) -> Option<usize> {
        usize::from(self.worker).checked_sub(1)
    }
}

/// What a task carries.
pub struct Body {
    pub function: u32,
    pub status: Status,
    /// Arguments, then the result.
    pub bytes: Bytes,
    /// What must stay alive as long as the bytes do, such as memory that they refer to by number.
    pub attachments: Option<Box<dyn Any + Send>>,
    /// When it was submitted, in ticks of the clock.
    pub(crate) submitted: u64,
    /// How long it has waited for a worker, in ticks.
    pub(crate) waited: u64,
    /// Its number among those that were slow; 0 for others. See `slow`.
    pub(crate) slow: u32,
    /// What it counts for among the bytes that wait: its arguments and the memory that moves with them.
    pub(crate) counted: usize,
    /// Known number of tasks that wait for this one, each for the next; 0 for a call from a thread that is
    /// not a worker. Set on submission.
    pub depth: u32,
    /// Which broadcasts wait for it, see `chains`. Set with the depth.
    pub chain: u32,
    /// A task of a worker called it: that worker may begin one more task until it returns.
    pub from_worker: bool,
    /// Its order in the zone's queue; the default everywhere else.
    pub(crate) order: Order,
}

/// How far a task has come in its zone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// Submitted, or between two states: in the injector, or with the thread that has just taken it.
    Accepted,
    /// In the zone's queue, linked.
    Queued,
    /// In the deque of the worker that forked it.
    Local,
    /// In that deque, and cancelled: the worker that takes it out returns it to its caller.
    Cancelled,
    /// Taken by the worker in that slot, under that serial number.
    Running { slot: u32, serial: u32 },
}

impl State {
    /// Slots have 24 bits; a process cannot have as many threads.
    pub(crate) const fn pack(self) -> u64 {
        match self {
            Self::Accepted => 0,
            Self::Queued => 1,
            Self::Local => 2,
            Self::Cancelled => 3,
            Self::Running { slot, serial } => 4 | (slot as u64 & 0xff_ffff) << 8 | (serial as u64) << 32,
        }
    }

    pub(crate) const fn unpack(word: u64) -> Self {
        match word & 0xff {
            0 => Self::Accepted,
            1 => Self::Queued,
            2 => Self::Local,
            3 => Self::Cancelled,
            _ => Self::Running { slot: (word >> 8 & 0xff_ffff) as u32, serial: (word >> 32) as u32 },
        }
    }
}

/// Its neighbours in a zone's queue, the lane it is in and when it came. Guarded by that zone's lock.
pub(crate) struct Links {
    pub(crate) previous: Option<&'static Task>,
    pub(crate) next: Option<&'static Task>,
    pub(crate) depth: u32,
    pub(crate) order: u64,
}

/// One call and its result.
pub struct Task {
    /// The next task of whichever stack it is on: an injector or an inbox.
    link: AtomicPtr<Task>,
    pub(crate) caller: &'static Mailbox,
    call: u32,
    body: Cell<Body>,
    links: Cell<Links>,
    /// Changed by the holder of the task. From `Local`, the taker of the deque and the caller that cancels it
    /// race, and one of the two wins.
    state: AtomicU64,
    /// Its caller waits for this one, blocking: it returns by `arrived` instead of the inbox.
    pub(crate) joined: AtomicBool,
    pub(crate) arrived: AtomicBool,
}

// SAFETY: `body` is touched by the one holder only and handed on by synchronising steps (module text);
// `links` only under the lock of the zone that the task is in.
unsafe impl Sync for Task {}
// SAFETY: as above; nothing in a task is bound to a thread (attachments are `Send`).
unsafe impl Send for Task {}

impl Task {
    pub(crate) fn new(caller: &'static Mailbox, call: u32) -> Self {
        Self {
            link: AtomicPtr::new(std::ptr::null_mut()),
            caller,
            call,
            body: Cell::new(Body {
                function: 0,
                status: Status::Done,
                bytes: Bytes::new(),
                attachments: None,
                submitted: 0,
                waited: 0,
                slow: 0,
                counted: 0,
                depth: 0,
                chain: 0,
                from_worker: false,
                order: Order::default(),
            }),
            links: Cell::new(Links { previous: None, next: None, depth: 0, order: 0 }),
            state: AtomicU64::new(0),
            joined: AtomicBool::new(false),
            arrived: AtomicBool::new(false),
        }
    }

    /// Its state. Exact for the holder of the zone's lock, except for `Local`.
    pub(crate) fn state(&self) -> State {
        // Acquire: pairs with the Release of the taker, whose slot is looked up next.
        State::unpack(self.state.load(Ordering::Acquire))
    }

    /// The holder's word where the task is now.
    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state.pack(), Ordering::Release);
    }

    /// From a deque to somewhere else; false when another has moved it first.
    pub(crate) fn leave_deque(&self, to: State) -> bool {
        let (from, to) = (State::Local.pack(), to.pack());
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether its caller waits for it, blocking.
    pub fn is_joined(&self) -> bool {
        // Relaxed: set before it was sent.
        self.joined.load(Ordering::Relaxed)
    }

    /// Whether it has returned to its waiting caller.
    pub(crate) fn has_arrived(&self) -> bool {
        // SeqCst: may be the sleeper's second look; acquires the body.
        self.arrived.load(Ordering::SeqCst)
    }

    /// The caller's number of this call.
    pub const fn call(&self) -> u32 {
        self.call
    }

    /// Touch the body.
    ///
    /// # Safety
    ///
    /// The caller holds the task: it is idle and this is its caller's thread, or this worker runs it, or
    /// this thread has just taken it out of a queue or an inbox.
    #[inline(always)]
    pub unsafe fn body<R>(&'static self, touch: impl FnOnce(&mut Body) -> R) -> R {
        // SAFETY: the caller is the only holder, so the reference is unique for the closure's time.
        self.body.with_mut(|body| touch(unsafe { &mut *body }))
    }

    /// Touch the links.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the zone that the task is in.
    #[inline(always)]
    pub(crate) unsafe fn links<R>(&'static self, touch: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: the zone's lock makes the reference unique for the closure's time.
        self.links.with_mut(|links| touch(unsafe { &mut *links }))
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

/// The shared end of a thread's mailbox.
pub struct Mailbox {
    pub(crate) number: u32,
    pub(crate) machine: &'static Machine,
    pub(crate) inbox: Stack,
    pub(crate) mail: Mutex<VecDeque<Mail>>,
    pub(crate) mail_count: AtomicUsize,
    pub(crate) state: AtomicU32,
    pub(crate) waker: Mutex<Option<Box<dyn Wake>>>,
    /// Where the thread was last seen; only it looks at this, and changes it only while it counts as awake.
    pub(crate) core: std::sync::atomic::AtomicU32,
}
