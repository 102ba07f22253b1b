//! One task: a call that travels from a thread to a zone and comes back with its result.
//!
//! A task belongs to the port that submits it (its home) and is used again for later calls of that thread; it
//! is never freed, so a reference to it is good for ever and only *who may touch it* changes. At any moment
//! exactly one party holds a task, in the order below, and only the holder touches its body:
//!
//! home (idle) → a zone's injector or queue → a worker (running) → home's inbox → home (idle)
//!
//! Every arrow is a synchronising step: a stack push and take, or the zone's lock.

use std::any::Any;

use crate::{
    bytes::Bytes,
    port::Port,
    sync::{AtomicBool, AtomicPtr, AtomicU64, Cell, Ordering, model_fence},
};

/// How a call ended. The numbers are the ones JavaScript sees.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Status {
    /// The bytes are the value.
    Done = 0,
    /// The bytes are the error that the function threw.
    Failed = 1,
    /// The worker that ran it died; the bytes are the reason.
    Died = 2,
    /// The zone closed before it ran.
    Closed = 3,
    /// The thread that owned the zone's workers ended.
    Orphaned = 4,
}

/// What a task carries.
#[derive(Debug)]
pub struct Body {
    /// Number of the function to call.
    pub function: u32,
    /// How it ended.
    pub status: Status,
    /// Arguments, then the result.
    pub bytes: Bytes,
    /// What must stay alive as long as the bytes do, such as memory that they refer to by number.
    pub attachments: Option<Box<dyn Any + Send>>,
    /// When it was submitted, in ticks of the clock.
    pub(crate) submitted: u64,
    /// What it counts for among the bytes that wait: its arguments and the memory that moves with them.
    pub(crate) counted: usize,
    /// A worker of the zone forked it: it gave that worker one more place until it is home.
    pub forked: bool,
}

/// Its neighbours in a zone's queue. Guarded by that zone's lock.
pub(crate) struct Place {
    pub(crate) previous: Option<&'static Task>,
    pub(crate) next: Option<&'static Task>,
}

/// How far a task has come in its zone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    /// Submitted, or between two places: in the injector, or with who has just taken it.
    Accepted,
    /// In the zone's queue, linked.
    Queued,
    /// In the deque of the worker that forked it.
    Local,
    /// There too, but its caller no longer wants it: who takes it out sends it home.
    Withdrawn,
    /// Taken by the worker in that slot, under that serial number.
    Running { slot: u32, serial: u32 },
}

impl Stage {
    /// Slots have 24 bits; a process cannot have as many threads.
    const fn pack(self) -> u64 {
        match self {
            Self::Accepted => 0,
            Self::Queued => 1,
            Self::Local => 2,
            Self::Withdrawn => 3,
            Self::Running { slot, serial } => 4 | (slot as u64 & 0xff_ffff) << 8 | (serial as u64) << 32,
        }
    }

    const fn unpack(word: u64) -> Self {
        match word & 0xff {
            0 => Self::Accepted,
            1 => Self::Queued,
            2 => Self::Local,
            3 => Self::Withdrawn,
            _ => Self::Running { slot: (word >> 8 & 0xff_ffff) as u32, serial: (word >> 32) as u32 },
        }
    }
}

/// One call and its result; see the module's text for who may touch what.
pub struct Task {
    /// The next task of whichever stack it is on: an injector or an inbox.
    pub(crate) link: AtomicPtr<Task>,
    pub(crate) home: &'static Port,
    call: u32,
    body: Cell<Body>,
    place: Cell<Place>,
    /// Changed by who holds the task, but from `Local`: there the deque's taker and the caller who withdraws
    /// it race, and one of the two wins.
    stage: AtomicU64,
    /// Its caller waits for this one, blocking: it comes home by `arrived` instead of the inbox.
    pub(crate) joined: AtomicBool,
    pub(crate) arrived: AtomicBool,
}

// SAFETY: `body` is touched by the one holder only and handed on by synchronising steps (module text);
// `place` only under the lock of the zone that the task is in.
unsafe impl Sync for Task {}
// SAFETY: as above; nothing in a task is bound to a thread (attachments are `Send`).
unsafe impl Send for Task {}

impl Task {
    pub(crate) fn new(home: &'static Port, call: u32) -> Self {
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
                forked: false,
            }),
            place: Cell::new(Place { previous: None, next: None }),
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
        use crate::sync::Ordering::{Relaxed, SeqCst};
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
        self.0.load(crate::sync::Ordering::SeqCst).is_null()
    }

    /// Take all, oldest first. The caller becomes the holder of every task in the chain.
    pub(crate) fn take_all(&self) -> Chain {
        use crate::sync::Ordering::{Relaxed, SeqCst};
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
        task.link.store(self.0, crate::sync::Ordering::Relaxed);
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
        self.0 = task.link.load(crate::sync::Ordering::Relaxed);
        Some(task)
    }
}

/// The accepted tasks of a zone in order, linked through their places: any one can be taken out in one step.
#[derive(Default)]
pub(crate) struct Queue {
    first: Option<&'static Task>,
    last: Option<&'static Task>,
}

impl Queue {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The oldest, which stays.
    pub(crate) const fn first(&self) -> Option<&'static Task> {
        self.first
    }

    /// Append. The zone's lock is held, since the queue lives under it.
    pub(crate) fn push(&mut self, task: &'static Task) {
        let last = self.last.replace(task);
        // SAFETY: the queue is reached only through the zone's lock (`&mut self` proves it is held).
        unsafe {
            task.place(|place| {
                place.previous = last;
                place.next = None;
            });
            task.set_stage(Stage::Queued);
            match last {
                Some(last) => last.place(|place| place.next = Some(task)),
                None => self.first = Some(task),
            }
        }
    }

    /// Take the oldest.
    pub(crate) fn pop(&mut self) -> Option<&'static Task> {
        let task = self.first?;
        self.remove(task);
        Some(task)
    }

    /// Take out `task`, which is in this queue.
    pub(crate) fn remove(&mut self, task: &'static Task) {
        // SAFETY: as in push.
        unsafe {
            debug_assert_eq!(task.stage(), Stage::Queued);
            task.set_stage(Stage::Accepted);
            let (previous, next) = task.place(|place| (place.previous.take(), place.next.take()));
            match previous {
                Some(previous) => previous.place(|place| place.next = next),
                None => self.first = next,
            }
            match next {
                Some(next) => next.place(|place| place.previous = previous),
                None => self.last = previous,
            }
        }
    }
}
