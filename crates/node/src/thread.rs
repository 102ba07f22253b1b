//! One thread's end of the core: its desk, its scratch memory, its handles in the event loop.
//!
//! The loop's prepare step is where things happen: whatever has arrived is given to JavaScript in one call;
//! if nothing has and it pays, the thread looks for some microseconds more; then it declares itself asleep
//! and the loop waits. A `Thread` is reached by raw pointer from napi and libuv, on its own thread only, and
//! JavaScript that it calls may call back into it: so no reference to it lives across a call into JavaScript.

use std::{any::Any, cell::Cell, ffi::c_void, ptr, sync::Arc, time::Duration};

use corespun_bridge::ticker::Background;
use corespun_bridge::{Broadcast, Desk, Rounds, Scratch, Spin, Steps, Worker, Zone, priority};
use corespun_store::named::{STORES, SYNC_OBJECTS};
use napi_sys as sys;

use crate::{
    cores,
    js::{Env, Outcome, Value, wrong},
    registry, signals,
    thread_cache::{self, ThreadCache},
    thread_state,
    uv::{self, Handles},
};

/// A brief look: about what a whole turn of the event loop costs, and a caller's next call takes to come.
const BRIEF: Duration = Duration::from_micros(4);
/// Calls between two looks at which core they leave from.
const SENDS_PER_LOOK: u32 = 64;

thread_local! {
    /// The mailbox through which this thread is a worker of a zone. Further copies of the package in the
    /// thread have mailboxes of their own.
    static WORKER: Cell<*mut Thread> = const { Cell::new(ptr::null_mut()) };
    /// The cell of the functions that look for their thread here, not in their data: those of the library
    /// itself, as this thread loaded it first. Further mailboxes, of further copies of the package, have
    /// others, whichever opens first.
    static FIRST: Cell<*mut *mut Thread> = const { Cell::new(ptr::null_mut()) };
}

/// What FIRST holds, for hot calls.
static THREADS: ThreadCache<sys::napi_env__, Thread> = ThreadCache::new();

/// The library's own functions are being made: whether they are this thread's first.
pub fn claim_first(cell: *mut *mut Thread) -> bool {
    let is_first = FIRST.get().is_null();
    if is_first {
        FIRST.set(cell);
    }
    is_first
}

/// A cell is about to be freed.
pub fn cell_gone(cell: *mut *mut Thread) {
    if FIRST.get() == cell {
        FIRST.set(ptr::null_mut());
    }
}

/// The thread that the first functions were made for, null before `open`.
#[inline]
pub fn first(env: sys::napi_env) -> *mut Thread {
    let here = THREADS.get(env);
    // SAFETY: the first cell lives as long as the functions that look there.
    if here.is_null() { unsafe { FIRST.get().as_ref() }.map_or(here, |&first| first) } else { here }
}

/// The thread that a function was made for.
///
/// # Safety
///
/// `data` is the data of a function made by `lib.rs` after `open`; no other reference to the thread is alive.
#[inline]
pub unsafe fn thread<'a>(data: *mut c_void) -> Outcome<&'a mut Thread> {
    // SAFETY: `data` points to the cell made for this environment; what it holds lives as long as that.
    unsafe { (*data.cast::<*mut Thread>()).as_mut() }.ok_or_else(|| wrong("called before open"))
}

/// What a thread of JavaScript has in the core.
pub struct Thread {
    cell: *mut *mut Thread,
    env: sys::napi_env,
    drain: sys::napi_ref,
    context: sys::napi_async_context,
    handles: Handles,
    /// The thread's desk.
    pub desk: Desk,
    /// What JavaScript writes and the core reads.
    pub out: Scratch,
    /// What the core writes and JavaScript reads.
    pub inbound: Scratch,
    /// The zones that this thread has opened, by its own numbers.
    pub zones: Vec<Option<Arc<Zone>>>,
    /// Present in a worker of a zone.
    pub worker: Option<Worker>,
    /// Broadcasts that this thread waits for, blocking.
    pub broadcasts: Vec<Option<Arc<Broadcast>>>,
    /// Results that did not fit into the scratch, until JavaScript fetches them.
    pub large: Vec<(u32, Vec<u8>)>,
    /// The broadcast that this worker is running.
    pub current: Option<Arc<Broadcast>>,
    /// What the results of the last drain refer to, until they have been read.
    pub read_soon: Vec<Box<dyn Any + Send>>,
    /// What the next bytes to leave refer to.
    pub attachments: Option<crate::buffers::Attached>,
    /// Functions, by number, that this thread can call without its loop.
    pub ready: Vec<bool>,
    spin: Spin,
    step_aside: cores::StepAside,
    /// Calls that have left, modulo 2 to the power of 32.
    sends: u32,
    steps: Steps,
    /// This mailbox may be a further one of a worker's thread: it is not the worker's, nor of the main
    /// thread.
    may_be_further: bool,
    /// Something was done since the thread last slept: only then does it look before it sleeps again.
    active: bool,
    asleep: bool,
    /// Present when the thread gives way to others.
    background: Option<Background>,
    idling: bool,
    leaving: bool,
}

impl Thread {
    /// Open a mailbox for the thread of `env`.
    ///
    /// # Safety
    ///
    /// `env` is this thread's; `drain` is a function of it; the scratches live as long as the environment.
    /// `cell` is where calls find the thread: it is emptied when the thread is gone.
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
        // SAFETY: the loop is this thread's; `thread` lives until the handles are closed, in `close`.
        let handles = unsafe { Handles::open(uv_loop.cast(), thread.cast(), before_wait, after_wait) };
        let mut desk = registry::take_desk();
        desk.open(Box::new(uv::Waker::new(handles.wake)));
        registry::mailbox_opened(desk.mailbox(), main);
        thread_cache::mailbox_opened(env.0, desk.mailbox());
        // SAFETY: `memory` is fresh and of the right type; nothing reads it before this write.
        unsafe {
            thread.write(Self {
                cell,
                env: env.0,
                drain: reference,
                context,
                handles,
                desk,
                out,
                inbound,
                zones: Vec::new(),
                worker: None,
                broadcasts: Vec::new(),
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

    /// Longest look for an arrival before sleep; zero turns it off.
    pub const fn set_spin(&mut self, limit: Duration) {
        self.spin.set_limit(limit);
    }

    /// A call has left: the loop must live until it comes back.
    #[inline]
    pub fn sent(&mut self) {
        self.active = true;
        // A thread that sends without pause never looks, and may have been moved meanwhile.
        self.sends = self.sends.wrapping_add(1);
        if self.sends.is_multiple_of(SENDS_PER_LOOK) {
            self.desk.runs_on(cores::current());
        }
        if self.desk.sent() && self.worker.is_none() {
            self.handles.keep_alive(true);
        }
    }

    /// A call has ended.
    #[inline]
    pub fn put_away(&mut self, task: &'static corespun_bridge::Task) {
        self.active = true;
        // SAFETY: the task is at home, which is this thread.
        let take_called = || unsafe { task.body(|body| std::mem::take(&mut body.from_worker)) };
        if let Some(worker) = self.worker.as_mut() {
            if take_called() {
                worker.call_returned();
            }
        } else if self.may_be_further && take_called() {
            self.elsewhere(|worker| worker.call_returned());
        }
        if self.desk.put_away(task) && self.worker.is_none() {
            self.handles.keep_alive(false);
        }
    }

    /// The worker that this thread is through another mailbox, that of another copy of the package, does
    /// `body`; `None` when there is none. What the worker can do by then it is woken for: its own prepare
    /// step may be over for this turn of the loop.
    pub fn elsewhere<R>(&self, body: impl FnOnce(&mut Worker) -> R) -> Option<R> {
        if !self.may_be_further {
            return None;
        }
        let other = WORKER.get();
        if other.is_null() || ptr::eq(other, self) {
            return None;
        }
        // SAFETY: this thread's and open, as `close` empties WORKER; it is not `self`, and no reference to a
        // mailbox's thread lives across a call into JavaScript or libuv, one of which has called here.
        let other = unsafe { &mut *other };
        let done = other.worker.as_mut().map(body);
        other.desk.mailbox().rouse();
        done
    }

    /// The depth of a call from code of this thread that belongs to no task: see `Worker::depth_of_stray`.
    pub fn depth_of_stray(&self) -> u32 {
        let worker = self.worker.as_ref().map(Worker::depth_of_stray);
        worker.or_else(|| self.elsewhere(|worker| worker.depth_of_stray())).unwrap_or(0)
    }

    /// Whether tasks that run here may block their thread.
    pub fn may_block(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.zone().executor().blocks)
    }

    /// Become a worker: the loop lives until the zone lets it go.
    pub fn become_worker(&mut self, worker: Worker) {
        self.spin.set_limit(worker.zone().limits().spin);
        self.worker = Some(worker);
        self.may_be_further = false;
        // SAFETY: the cell lives as long as the environment, and holds this thread since `open`.
        WORKER.set(unsafe { *self.cell });
        self.handles.keep_alive(true);
    }

    /// The zone has let this worker go: its loop may end.
    pub fn retire(&mut self) {
        self.leaving = true;
        self.handles.keep_alive(false);
    }

    /// Whether nothing runs on this worker.
    pub fn is_free(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.running_count() == 0) && self.current.is_none()
    }

    /// A task was taken.
    #[inline]
    pub const fn note_activity(&mut self) {
        self.active = true;
    }

    /// Whether JavaScript has something to do.
    #[inline]
    fn has_work(&self) -> bool {
        self.desk.has_arrivals() || (!self.leaving && self.worker.as_ref().is_some_and(Worker::has_work))
    }

    /// Leave a core that another awake mailbox's thread runs on, if another is free.
    fn seek_own_core(&mut self) {
        let core = cores::current();
        if self.desk.runs_on(core) > 1
            && self.step_aside.leave(core, |core| registry::machine().awake_on(core) == 0)
        {
            self.desk.runs_on(cores::current());
        }
    }

    /// A worker takes another step: whether it has had its turn, and timers and I/O should have theirs.
    pub fn had_turn(&mut self) -> bool {
        self.steps.add()
    }

    /// Whether this thread looks before it sleeps, at least briefly.
    pub fn looks(&self) -> bool {
        !self.spin.is_off() && registry::machine().has_cores()
    }

    /// Look for work without sleeping, if that has been paying and a core is free.
    pub fn look(&mut self) -> bool {
        if !self.active || !self.looks() {
            return false;
        }
        // Who spins on the core that the other thread waits for keeps it from running.
        self.seek_own_core();
        if let Some(worker) = self.worker.as_mut().filter(|_| !self.leaving) {
            worker.begin_search();
        }
        let (desk, worker, leaving) = (&self.desk, self.worker.as_ref(), self.leaving);
        let has_come = || desk.has_arrivals() || (!leaving && worker.is_some_and(Worker::has_work));
        // Briefly even where it has not been paying, or other threads have the cores: who has just got a
        // result calls again within this time, and would wake another worker instead, which would then be one
        // more.
        let mut found =
            (registry::machine().may_spin() && self.spin.wait(has_come)) || Spin::once(BRIEF, has_come);
        if let Some(worker) = self.worker.as_mut() {
            worker.end_search();
            // What came just before the end has woken nobody.
            found |= !leaving && worker.has_work();
        }
        if found {
            self.step_aside.paid();
        }
        // One look per burst: after a vain one the thread sleeps.
        self.active = found;
        found
    }

    /// Look briefly for a result, while JavaScript's microtasks still run: false when it was not looked for.
    /// Not where all threads take turns on one core: going round the loop lets the others work meanwhile.
    pub fn linger(&mut self) -> bool {
        if !self.looks() {
            return false;
        }
        if !self.desk.has_arrivals() {
            self.seek_own_core();
            let desk = &self.desk;
            Spin::once(BRIEF, || desk.has_arrivals());
        }
        true
    }

    /// Declare the thread asleep; false when something has come.
    fn try_sleep(&mut self) -> bool {
        let leaving = self.leaving;
        self.asleep = match self.worker.as_mut().filter(|_| !leaving) {
            Some(worker) => worker.try_sleep(&mut self.desk),
            None => self.desk.try_sleep(),
        };
        if self.asleep
            && let Some(background) = self.background.as_mut()
        {
            background.set_awake(false);
        }
        self.asleep
    }

    /// Let the thread give way to others by so many steps of `nice`.
    pub fn renice(&mut self, steps: i32) {
        self.background.get_or_insert_with(Background::begin);
        priority::renice(steps);
    }

    /// Awake again, whatever woke it. Callbacks of I/O run before the loop's check step says so, so whoever
    /// takes work says it too: a worker that runs something must not be listed as asleep.
    #[inline]
    pub fn wake_up(&mut self) {
        if self.asleep {
            self.asleep = false;
            if let Some(worker) = self.worker.as_mut() {
                worker.wake_up();
            }
            self.desk.wake_up();
            if let Some(background) = self.background.as_mut() {
                background.set_awake(true);
            }
            // A worker that was woken by a thread that goes on is often put on that thread's core.
            if self.worker.is_some() && !self.spin.is_off() && registry::machine().may_spin() {
                self.seek_own_core();
            }
        }
    }

    /// One step before the loop waits; tells what to do next.
    fn before_wait(&mut self, rounds: &mut Rounds) -> Step {
        self.desk.set_blocked(false);
        if self.has_work() {
            // What has come home is given to JavaScript first, and that may take its time.
            if let Some(worker) = self.worker.as_ref().filter(|_| self.desk.has_arrivals()) {
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

/// What the prepare step does next.
enum Step {
    /// Give what has arrived to JavaScript.
    Call,
    /// Look again.
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
    // SAFETY: the fields are copied out; none changes during the thread's life.
    let (env, drain, context) = unsafe { ((*thread).env, (*thread).drain, (*thread).context) };
    // SAFETY: valid environment, reference and context.
    unsafe { crate::js::call_back(env, drain, context) }
}

/// The environment ends: pass on what waits, close the handles, put the desk away.
unsafe extern "C" fn close(data: *mut c_void) {
    // SAFETY: made by `open`; Node calls each hook once, and no callback comes after the handles are closed.
    let mut thread = unsafe { Box::from_raw(data.cast::<Thread>()) };
    // SAFETY: hooks run before instance data is freed; a call that comes after this one finds no thread.
    unsafe { thread.cell.write(ptr::null_mut()) };
    if THREADS.get(thread.env) == data.cast() {
        THREADS.remove(thread.env);
    }
    thread_cache::mailbox_closed(thread.desk.mailbox());
    if WORKER.get() == data.cast() {
        WORKER.set(ptr::null_mut());
    }
    thread.wake_up();
    thread.desk.close();
    if let Some(mut worker) = thread.worker.take() {
        let running = worker.cancel_joins(&mut thread.desk, corespun_bridge::layout::mail::ABORT, 0);
        if let Some(at_once) = running {
            registry::task_cancelled(worker.zone().number(), at_once);
        }
        worker.leave();
    }
    thread.handles.close();
    registry::mailbox_closed(thread.desk.mailbox());
    signals::mailbox_closed(thread.desk.mailbox());
    thread_state::gone(thread.desk.mailbox());
    STORES.thread_ended(thread.desk.mailbox().number());
    SYNC_OBJECTS.thread_ended(thread.desk.mailbox().number());
    let Thread { desk, .. } = *thread;
    registry::return_desk(desk);
}
