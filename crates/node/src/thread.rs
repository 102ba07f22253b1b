//! A JavaScript thread's [`Bridge`]: how calls find it, and the callbacks of its event loop.
//!
//! napi and libuv reach a bridge by raw pointer, on its own thread only, and JavaScript that it calls may
//! call back into it. Therefore no reference to it is alive during a call into JavaScript.

use std::{cell::Cell, ffi::c_void, ptr};

use corespun_bridge::{
    Bridge, Scratch,
    thread_cache::{self, ThreadCache},
};
use corespun_store::named::{STORES, SYNC_OBJECTS};
use napi_sys as sys;

use crate::{
    js::{self, Call, Callee, Env, Outcome, Parameter, wrong},
    thread_state, uv,
};

/// Where the functions of one mailbox find their bridge: null before `open` and after `close`.
pub type BridgeCell = *mut *mut Bridge;

thread_local! {
    /// The cell of the functions that find their bridge here, not in their data: those of the library itself,
    /// as this thread loaded it first. Further copies of the package have other cells, whichever opens first.
    static FIRST: Cell<BridgeCell> = const { Cell::new(ptr::null_mut()) };
}

/// The bridge in FIRST's cell, cached for hot calls.
static BRIDGES: ThreadCache<sys::napi_env__, Bridge> = ThreadCache::new();

/// In a process that is a worker, from `link_join` on.
#[cfg(unix)]
pub static CHILD: std::sync::OnceLock<&'static corespun_bridge::link::Child> = std::sync::OnceLock::new();

/// The thread of that bridge is about to wait, or ends a task. Where it is the worker of this process, the
/// parent is notified of how many of its tasks wait for their streams.
#[cfg(unix)]
pub fn report_waits(bridge: &Bridge) {
    if let Some(child) = CHILD.get() {
        child.waits(bridge.mailbox(), bridge.waits());
    }
}

/// The worker of that bridge may begin a task more, see `Bridge::streams_stalled`: in a process the parent
/// has to send it.
#[cfg(unix)]
pub fn report_stall(bridge: &Bridge) {
    if let Some(child) = CHILD.get() {
        child.stalled(bridge.mailbox(), bridge.waits());
    }
}

/// Make `cell` this thread's first; false if the thread has a first cell already.
pub fn claim_first(cell: BridgeCell) -> bool {
    let is_first = FIRST.get().is_null();
    if is_first {
        FIRST.set(cell);
    }
    is_first
}

/// Remove `cell`, which is about to be freed.
pub fn forget_cell(cell: BridgeCell) {
    if FIRST.get() == cell {
        FIRST.set(ptr::null_mut());
    }
}

/// The bridge that the first functions were made for, null before `open`.
#[inline]
pub fn first(env: sys::napi_env) -> *mut Bridge {
    let here = BRIDGES.get(env);
    // SAFETY: the first cell exists as long as the functions that read it.
    if here.is_null() { unsafe { FIRST.get().as_ref() }.map_or(here, |&first| first) } else { here }
}

/// The bridge that the function was made for.
impl Parameter for &mut Bridge {
    #[inline]
    fn take(call: &mut Call) -> Outcome<Self> {
        // SAFETY: the data of each function is the cell made for its environment; cell and bridge exist as
        // long as it does. The reference ends with the call, in which no JavaScript runs.
        unsafe { (*call.data.cast::<*mut Bridge>()).as_mut() }.ok_or_else(|| wrong("called before open"))
    }
}

/// What the callbacks of the event loop need.
struct Thread {
    bridge: *mut Bridge,
    cell: BridgeCell,
    env: sys::napi_env,
    drain: sys::napi_ref,
    context: sys::napi_async_context,
}

/// Open a bridge for the thread of `env`. Calls find it in `cell`, which `close` sets to null.
///
/// # Safety
///
/// `env` is this thread's, `cell` its environment's.
pub unsafe fn open(
    env: Env,
    drain: Callee,
    out: Scratch,
    inbound: Scratch,
    main: bool,
    cell: BridgeCell,
) -> *mut Bridge {
    let mut uv_loop = ptr::null_mut();
    let thread = Box::into_raw(Box::<Thread>::new_uninit()).cast::<Thread>();
    // SAFETY: the environment and loop are this thread's; `thread` exists until `close` has closed the
    // handles, and is written before the loop turns.
    unsafe {
        sys::napi_get_uv_event_loop(env.0, &raw mut uv_loop);
        let handles = uv::Handles::open(uv_loop.cast(), thread.cast(), before_wait, after_wait);
        let waker = Box::new(uv::Waker::new(handles.wake));
        let bridge = Bridge::open(Box::new(handles), waker, out, inbound, main);
        let (drain, context) = js::callback(env, drain, c"corespun");
        thread.write(Thread { bridge, cell, env: env.0, drain, context });
        *cell = bridge;
        thread_cache::mailbox_opened(env.0, (*bridge).mailbox());
        if FIRST.get() == cell {
            BRIDGES.put(env.0, bridge);
        }
        sys::napi_add_env_cleanup_hook(env.0, Some(close), thread.cast());
        bridge
    }
}

unsafe extern "C" fn before_wait(handle: *mut c_void) {
    // SAFETY: libuv calls this on the thread itself while its handles are open; no field of a Thread changes.
    unsafe {
        let Thread { bridge, env, drain, context, .. } = *uv::data_of(handle).cast::<Thread>();
        Bridge::before_wait(bridge, || js::call_back(env, drain, context));
        #[cfg(unix)]
        report_waits(&*bridge);
    }
}

unsafe extern "C" fn after_wait(handle: *mut c_void) {
    // SAFETY: as in before_wait; the reference ends with the statement.
    unsafe { (*(*uv::data_of(handle).cast::<Thread>()).bridge).wake_up() };
}

/// The environment ends.
unsafe extern "C" fn close(data: *mut c_void) {
    // SAFETY: made by `open`; Node calls each hook once, and no callback comes after the handles are closed.
    // The cell is freed by a later hook; a call after this one finds no bridge.
    unsafe {
        let Thread { bridge, cell, env, .. } = *Box::from_raw(data.cast::<Thread>());
        cell.write(ptr::null_mut());
        if BRIDGES.get(env) == bridge {
            BRIDGES.remove(env);
        }
        thread_cache::mailbox_closed((*bridge).mailbox());
        Bridge::close(bridge, |mailbox| {
            thread_state::thread_ended(mailbox);
            STORES.thread_ended(mailbox.number());
            SYNC_OBJECTS.thread_ended(mailbox.number());
        });
    }
}
