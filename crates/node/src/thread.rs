//! One thread's end of the core: its receiver, its scratch memory, its handles in the event loop.
//!
//! The loop's prepare step does the work: it passes everything that has arrived to JavaScript in one call. If
//! nothing has arrived and polling has been paying, the thread polls for some microseconds; then it declares
//! itself asleep and the loop waits. napi and libuv reach a `Thread` by raw pointer, on its own thread only,
//! and JavaScript that it calls may call back into it. Therefore no reference to it is alive during a call
//! into JavaScript.

use std::{any::Any, cell::Cell, ffi::c_void, ptr, sync::Arc, time::Duration};

use corespun_bridge::ticker::Background;
use corespun_bridge::{
    Broadcast, Handles, Receiver, Rounds, Scratch, Spin, Steps, Worker, Zone, cores, priority, registry,
    signals,
    thread_cache::{self, ThreadCache},
};
use corespun_store::named::{STORES, SYNC_OBJECTS};
use napi_sys as sys;

use crate::{
    js::{Call, Env, Outcome, Parameter, Value, wrong},
    thread_state, uv,
};

/// A brief poll: about the time of one turn of the event loop, or of a caller until its next call.
const BRIEF: Duration = Duration::from_micros(4);
/// Calls between two checks of the core that this thread runs on.
const SENDS_PER_LOOK: u32 = 64;

thread_local! {
    /// The mailbox through which this thread is a worker of a zone. Further copies of the package in the
    /// thread have mailboxes of their own.
    static WORKER: Cell<*mut Thread> = const { Cell::new(ptr::null_mut()) };
    /// The cell of the functions that find their thread here, not in their data: those of the library itself,
    /// as this thread loaded it first. Mailboxes of further copies of the package have other cells, whichever
    /// opens first.
    static FIRST: Cell<*mut *mut Thread> = const { Cell::new(ptr::null_mut()) };
}

/// The thread in FIRST's cell, cached for hot calls.
static THREADS: ThreadCache<sys::napi_env__, Thread> = ThreadCache::new();

/// Make `cell` this thread's first; false if the thread has a first cell already.
pub fn claim_first(cell: *mut *mut Thread) -> bool {
    let is_first = FIRST.get().is_null();
    if is_first {
        FIRST.set(cell);
    }
    is_first
}

/// Remove `cell`, which is about to be freed.
pub fn forget_cell(cell: *mut *mut Thread) {
    if FIRST.get() == cell {
        FIRST.set(ptr::null_mut());
    }
}

/// The thread that the first functions were made for, null before `open`.
#[inline]
pub fn first(env: sys::napi_env) -> *mut Thread {
    let here = THREADS.get(env);
    // SAFETY: the first cell exists as long as the functions that read it.
    if here.is_null() { unsafe { FIRST.get().as_ref() }.map_or(here, |&first| first) } else { here }
}

/// The thread that the function was made for.
impl Parameter for &mut Thread {
    #[inline]
    fn take(call: &mut Call) -> Outcome<Self> {
        // SAFETY: the data of each function is the cell made for its environment; cell and thread exist as
        // long as it does. The reference ends with the call, in which no JavaScript runs.
        unsafe { (*call.data.cast::<*mut Thread>()).as_mut() }.ok_or_else(|| wrong("called before open"))
    }
}

/// The core's state of a JavaScript thread.
pub struct Thread {
    cell: *mut *mut Thread,
    env: sys::napi_env,
    drain: sys::napi_ref,
    context: sys::napi_async_context,
    handles: uv::Handles,
    /// The owner's end of its mailbox.
    pub receiver: Receiver,
    /// The scratch buffer that JavaScript writes and the core reads.
    pub out: Scratch,
    /// The scratch buffer that the core writes and JavaScript reads.
    pub inbound: Scratch,
    /// The zones that this thread has opened, by its own numbers.
    pub zones: Handles<Arc<Zone>>,
    /// Present in a worker of a zone.
    pub worker: Option<Worker>,
    /// Broadcasts that this thread blocks on.
    pub broadcasts: Handles<Arc<Broadcast>>,
    /// Results that did not fit into the scratch, until JavaScript fetches them.
    pub large: Vec<(u32, Vec<u8>)>,
    /// The broadcast that this worker is running.
    pub current: Option<Arc<Broadcast>>,
    /// Attachments of the last drain's results, until JavaScript has read those.
    pub read_soon: Vec<Box<dyn Any + Send>>,
    /// Attachments of the next bytes that are sent.
    pub attachments: Option<crate::buffers::Attached>,
    /// Functions, by number, that this thread can call without its loop.
    pub ready: Vec<bool>,
    spin: Spin,
    step_aside: cores::StepAside,
    /// Calls sent, modulo 2^32.
    sends: u32,
    steps: Steps,
    /// This mailbox may be a further one of a worker's thread: it is neither the worker's own nor the main
    /// thread's.
    may_be_further: bool,
    /// The thread has worked since it last slept; only then does it poll before it sleeps again.
    active: bool,
    asleep: bool,
    /// Present when the thread runs at a lower priority.
    background: Option<Background>,
    idling: bool,
    leaving: bool,
}

impl Thread {
    /// Open a mailbox for the thread of `env`.
    ///
    /// # Safety
    ///
    /// `env` is this thread's; `drain` is a function of it; the scratch buffers exist as long as the
    /// environment. Calls find the thread in `cell`, which `close` sets to null.
    pub unsafe fn open(
        env: Env,
        drain: Value,
        out: Scratch,
        inbound: Scratch,
        main: bool,
        cell: *mut *mut Self,
    ) -> *mut Self {
        let (mut uv_loop, mut reference, mut context) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let (mut name, label) = (ptr::null_mut(), c"corespun");
        // SAFETY: valid environment, values and out pointers.
        unsafe {
            sys::napi_get_uv_event_loop(env.0, &raw mut uv_loop);
            sys::napi_create_reference(env.0, drain, 1, &raw mut reference);
            sys::napi_create_string_utf8(env.0, label.as_ptr(), 5, &raw mut name);
            sys::napi_async_init(env.0, ptr::null_mut(), name, &raw mut context);
        }
        let memory = Box::into_raw(Box::<Self>::new_uninit());
        let thread = memory.cast::<Self>();
        // SAFETY: the loop is this thread's; `thread` exists until `close` has closed the handles.
        let handles = unsafe { uv::Handles::open(uv_loop.cast(), thread.cast(), before_wait, after_wait) };
        let mut receiver = registry::take_receiver();
        receiver.open(Box::new(uv::Waker::new(handles.wake)));
        registry::mailbox_opened(receiver.mailbox(), main);
        thread_cache::mailbox_opened(env.0, receiver.mailbox());
        // SAFETY: `memory` is fresh and of the right type; nothing reads it before this write.
        unsafe {
            thread.write(Self {
                cell,
                env: env.0,
                drain: reference,
                context,
                handles,
                receiver,
                out,
                inbound,
                zones: Handles::default(),
                worker: None,
                broadcasts: Handles::default(),
                large: Vec::new(),
                current: None,
                read_soon: Vec::new(),
                attachments: None,
                ready: Vec::new(),
                spin: Spin::new(Duration::ZERO),
                step_aside: cores::StepAside::default(),
                sends: 0,
                steps: Steps::default(),
                may_be_further: !main,
                active: false,
                asleep: false,
                background: None,
                idling: false,
                leaving: false,
            });
            if FIRST.get() == cell {
                THREADS.put(env.0, thread);
            }
            sys::napi_add_env_cleanup_hook(env.0, Some(close), thread.cast());
        }
        thread
    }

    /// Set the longest poll before sleep; zero turns polling off.
    pub const fn set_spin(&mut self, limit: Duration) {
        self.spin.set_limit(limit);
    }

    /// Note that a call was sent: the loop stays alive until it returns.
    #[inline]
    pub fn sent(&mut self) {
        self.active = true;
        // A thread that sends without pause never polls, and may have been moved to another core.
        self.sends = self.sends.wrapping_add(1);
        if self.sends.is_multiple_of(SENDS_PER_LOOK) {
            self.receiver.runs_on(cores::current());
        }
        if self.receiver.sent() && self.worker.is_none() {
            self.handles.keep_alive(true);
        }
    }

    /// Free the task of a call that has ended.
    #[inline]
    pub fn put_away(&mut self, task: &'static corespun_bridge::Task) {
        self.active = true;
        // SAFETY: its owner, this thread, holds the task.
        let take_called = || unsafe { task.body(|body| std::mem::take(&mut body.from_worker)) };
        if let Some(worker) = self.worker.as_mut() {
            if take_called() {
                worker.call_returned();
            }
        } else if self.may_be_further && take_called() {
            self.elsewhere(|worker| worker.call_returned());
        }
        if self.receiver.put_away(task) && self.worker.is_none() {
            self.handles.keep_alive(false);
        }
    }

    /// Run `body` with the worker that this thread is through the mailbox of another copy of the package;
    /// `None` without such a worker. Wakes that mailbox, whose prepare step may be over for this turn of the
    /// loop.
    pub fn elsewhere<R>(&self, body: impl FnOnce(&mut Worker) -> R) -> Option<R> {
        if !self.may_be_further {
            return None;
        }
        let other = WORKER.get();
        if other.is_null() || ptr::eq(other, self) {
            return None;
        }
        // SAFETY: it belongs to this thread and is open, as `close` clears WORKER; it is not `self`, and no
        // reference to a mailbox's thread is alive during a call into JavaScript or libuv, one of which is
        // the caller.
        let other = unsafe { &mut *other };
        let done = other.worker.as_mut().map(body);
        other.receiver.mailbox().rouse();
        done
    }

    /// The depth of a call from code of this thread that belongs to no task: see `Worker::depth_of_stray`.
    pub fn depth_of_stray(&self) -> u32 {
        let worker = self.worker.as_ref().map(Worker::depth_of_stray);
        worker.or_else(|| self.elsewhere(|worker| worker.depth_of_stray())).unwrap_or(0)
    }

    /// Whether this worker's tasks may block their thread.
    pub fn may_block(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.zone().executor().blocks)
    }

    /// Become a worker: the loop stays alive until the zone dismisses it.
    pub fn become_worker(&mut self, worker: Worker) {
        self.spin.set_limit(worker.zone().limits().spin);
        self.worker = Some(worker);
        self.may_be_further = false;
        // SAFETY: the cell exists as long as the environment and contains this thread since `open`.
        WORKER.set(unsafe { *self.cell });
        self.handles.keep_alive(true);
    }

    /// The zone has dismissed this worker: its loop may end.
    pub fn retire(&mut self) {
        self.leaving = true;
        self.handles.keep_alive(false);
    }

    /// Whether nothing runs on this worker.
    pub fn is_free(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.running_count() == 0) && self.current.is_none()
    }

    /// Note that a task was taken.
    #[inline]
    pub const fn note_activity(&mut self) {
        self.active = true;
    }

    /// Whether there is anything for JavaScript to do.
    #[inline]
    fn has_work(&self) -> bool {
        self.receiver.has_arrivals() || (!self.leaving && self.worker.as_ref().is_some_and(Worker::has_work))
    }

    /// Move to a free core, if there is one and another awake mailbox's thread runs on this one.
    fn seek_own_core(&mut self) {
        let core = cores::current();
        if self.receiver.runs_on(core) > 1
            && self.step_aside.leave(core, |core| registry::machine().awake_on(core) == 0)
        {
            self.receiver.runs_on(cores::current());
        }
    }

    /// Count a worker's step; true when it has had its turn and timers and I/O are due.
    pub fn had_turn(&mut self) -> bool {
        self.steps.add()
    }

    /// Whether this thread polls before it sleeps, at least briefly.
    pub fn looks(&self) -> bool {
        !self.spin.is_off() && registry::machine().has_cores()
    }

    /// Poll for work, for long only if that has been paying and a core is free. Returns whether there is any.
    pub fn look(&mut self) -> bool {
        if !self.active || !self.looks() {
            return false;
        }
        // Polling on the core that the sender needs keeps the sender from running.
        self.seek_own_core();
        if let Some(worker) = self.worker.as_mut().filter(|_| !self.leaving) {
            worker.begin_search();
        }
        let (receiver, worker, leaving) = (&self.receiver, self.worker.as_ref(), self.leaving);
        let has_come = || receiver.has_arrivals() || (!leaving && worker.is_some_and(Worker::has_work));
        // Briefly even if it has not been paying or other threads occupy the cores: a caller that has just
        // received a result calls again within this time, and would otherwise wake one more worker.
        let mut found =
            (registry::machine().may_spin() && self.spin.wait(has_come)) || Spin::once(BRIEF, has_come);
        if let Some(worker) = self.worker.as_mut() {
            worker.end_search();
            // Work that arrived just before the end of the search has woken no worker.
            found |= !leaving && worker.has_work();
        }
        if found {
            self.step_aside.paid();
        }
        // One poll per burst: after one that finds nothing the thread sleeps.
        self.active = found;
        found
    }

    /// Poll briefly for a result while JavaScript's microtasks still run; false if this thread does not poll.
    /// Threads that share one core do not: a turn of the loop lets the others run instead.
    pub fn linger(&mut self) -> bool {
        if !self.looks() {
            return false;
        }
        if !self.receiver.has_arrivals() {
            self.seek_own_core();
            let receiver = &self.receiver;
            Spin::once(BRIEF, || receiver.has_arrivals());
        }
        true
    }

    /// Declare the thread asleep; false if something has arrived.
    fn try_sleep(&mut self) -> bool {
        let leaving = self.leaving;
        self.asleep = match self.worker.as_mut().filter(|_| !leaving) {
            Some(worker) => worker.try_sleep(&mut self.receiver),
            None => self.receiver.try_sleep(),
        };
        if self.asleep
            && let Some(background) = self.background.as_mut()
        {
            background.set_awake(false);
        }
        self.asleep
    }

    /// Raise the thread's `nice` value by `steps`, so that other threads run first.
    pub fn renice(&mut self, steps: i32) {
        self.background.get_or_insert_with(Background::begin);
        priority::renice(steps);
    }

    /// Mark the thread as awake, whatever woke it. Callbacks of I/O run before the loop's check step, so code
    /// that takes work also calls this: a worker that runs a task must not be listed as asleep.
    #[inline]
    pub fn wake_up(&mut self) {
        if self.asleep {
            self.asleep = false;
            if let Some(worker) = self.worker.as_mut() {
                worker.wake_up();
            }
            self.receiver.wake_up();
            if let Some(background) = self.background.as_mut() {
                background.set_awake(true);
            }
            // The scheduler often puts a woken worker on the core of the thread that woke it and still runs.
            if self.worker.is_some() && !self.spin.is_off() && registry::machine().may_spin() {
                self.seek_own_core();
            }
        }
    }

    /// Do one step before the loop waits; returns what to do next.
    fn before_wait(&mut self, rounds: &mut Rounds) -> Step {
        self.receiver.set_blocked(false);
        if self.has_work() {
            // JavaScript handles the arrivals first, which may take long, so another worker may be woken.
            if let Some(worker) = self.worker.as_ref().filter(|_| self.receiver.has_arrivals()) {
                worker.pass_on();
            }
            return if rounds.are_over() { Step::ComeBack } else { Step::Call };
        }
        if self.look() {
            return Step::Again;
        }
        self.active = false;
        if self.try_sleep() { Step::Wait } else { Step::Again }
    }
}

/// The prepare step's next action.
enum Step {
    /// Pass what has arrived to JavaScript.
    Call,
    /// Check again.
    Again,
    /// Let the loop have a turn without waiting.
    ComeBack,
    /// Let the loop wait.
    Wait,
}

unsafe extern "C" fn before_wait(handle: *mut c_void) {
    // SAFETY: libuv calls this on the thread itself while its handles are open.
    let thread = unsafe { uv::data_of(handle) }.cast::<Thread>();
    let mut rounds = Rounds::default();
    loop {
        // SAFETY: the reference ends with this statement, before JavaScript is called.
        let step = unsafe { (*thread).before_wait(&mut rounds) };
        let come_back = match step {
            Step::Call => {
                rounds.add();
                // SAFETY: no reference to the thread is alive.
                if unsafe { call_drain(thread) } {
                    continue;
                }
                false
            }
            Step::Again => {
                if rounds.add() {
                    continue;
                }
                true
            }
            Step::ComeBack => true,
            Step::Wait => false,
        };
        // SAFETY: as above.
        let thread = unsafe { &mut *thread };
        if come_back != thread.idling {
            thread.idling = come_back;
            thread.handles.do_not_wait(come_back);
        }
        return;
    }
}

unsafe extern "C" fn after_wait(handle: *mut c_void) {
    // SAFETY: as in before_wait; the reference ends with the statement.
    unsafe { (*uv::data_of(handle).cast::<Thread>()).wake_up() };
}

/// Call JavaScript's drain function. Returns false when the environment can no longer run JavaScript.
///
/// # Safety
///
/// `thread` is this thread's and no reference to it is alive.
unsafe fn call_drain(thread: *mut Thread) -> bool {
    // SAFETY: as above.
    unsafe { (*thread).steps = Steps::default() };
    // SAFETY: the fields are copied out; none changes while the thread exists.
    let (env, drain, context) = unsafe { ((*thread).env, (*thread).drain, (*thread).context) };
    // SAFETY: valid environment, reference and context.
    unsafe { crate::js::call_back(env, drain, context) }
}

/// The environment ends: pass on what waits, close the handles, return the receiver.
unsafe extern "C" fn close(data: *mut c_void) {
    // SAFETY: made by `open`; Node calls each hook once, and no callback comes after the handles are closed.
    let mut thread = unsafe { Box::from_raw(data.cast::<Thread>()) };
    // SAFETY: the cell is freed by a later hook; a call after this one finds no thread.
    unsafe { thread.cell.write(ptr::null_mut()) };
    if THREADS.get(thread.env) == data.cast() {
        THREADS.remove(thread.env);
    }
    thread_cache::mailbox_closed(thread.receiver.mailbox());
    if WORKER.get() == data.cast() {
        WORKER.set(ptr::null_mut());
    }
    thread.wake_up();
    thread.receiver.close();
    // A worker that its zone has released leaves what it called and did not wait for.
    let abandons = !thread.leaving && thread.receiver.in_flight() > 0;
    if abandons {
        thread.receiver.cancel_forked();
    }
    let is_condemned = thread.worker.take().is_some_and(|worker| {
        let is_condemned = worker.is_condemned();
        worker.leave();
        is_condemned
    });
    if abandons {
        // What a condemned worker was blocked on has had its time.
        registry::caller_ended(thread.receiver.mailbox(), is_condemned);
    }
    thread.handles.close();
    registry::mailbox_closed(thread.receiver.mailbox());
    signals::mailbox_closed(thread.receiver.mailbox());
    thread_state::thread_ended(thread.receiver.mailbox());
    STORES.thread_ended(thread.receiver.mailbox().number());
    SYNC_OBJECTS.thread_ended(thread.receiver.mailbox().number());
    let Thread { receiver, .. } = *thread;
    registry::return_receiver(receiver);
}
