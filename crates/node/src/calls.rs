//! The functions that JavaScript calls for every task, and their kin with arguments.
//!
//! The hot ones have neither parameters nor results: small integers lie in the first words of the scratch
//! buffers that `open` registered, since a store into a typed array costs a tenth of an argument through
//! napi. The environment of the call identifies the bridge. None creates a JavaScript object.

use std::ptr;

use corespun_bridge::{Bridge, Misuse, layout};
use napi_sys as sys;

use crate::{
    buffers, call_sites, exports, hot_exports,
    js::{AnyFunction, Call, Env, Function, Thrown, Value, wrong},
    thread,
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    submit_function, submit_large, complete_large, task_bytes, task_streams, stream_waits, streams_stalled,
    streams_over, broadcast_done, function_ready, drained, large_result, mail,
};

pub const HOT: &[(&str, Function)] = hot_exports![hot::<false>;
    submit: Bridge::submit,
    step: Bridge::step,
    complete: Bridge::complete,
    drain: Bridge::drain,
    linger: Bridge::linger,
];

/// The same for a thread's further bridges.
pub const FURTHER: &[(&str, Function)] = hot_exports![hot::<true>;
    submit: Bridge::submit,
    step: Bridge::step,
    complete: Bridge::complete,
    drain: Bridge::drain,
    linger: Bridge::linger,
];

/// The same for any bridge.
pub const SELDOM: &[(&str, Function)] = hot_exports![hot::<true>;
    submit_ordered: Bridge::submit_ordered,
    join_fork: Bridge::join_fork,
    help: Bridge::help,
];

/// Run `body` with this thread's bridge; throw its error. `FURTHER`: for the functions of further bridges.
#[inline]
fn hot<const FURTHER: bool>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
    body: impl FnOnce(&mut Bridge) -> Result<(), Misuse>,
) -> Value {
    let here = if FURTHER {
        // SAFETY: Node calls this with its environment and info; the data is the cell of that environment.
        unsafe { *Call::read(env, info).data.cast::<*mut Bridge>() }
    } else {
        thread::first(env)
    };
    // SAFETY: set by `open` and reset before the bridge is freed; Node calls only on this thread, and no
    // reference to the bridge outlives a call.
    let outcome = match unsafe { here.as_mut() } {
        Some(bridge) => body(bridge).map_err(Thrown::from),
        None => Err(wrong("called before open")),
    };
    // SAFETY: JavaScript waits for this call, which is over.
    unsafe { buffers::release_retired() };
    match outcome {
        Ok(()) => ptr::null_mut(),
        Err(thrown) => Env(env).throw(&thrown),
    }
}

/// As submit, for a function object that is new to this thread and has a known call site: one crossing
/// instead of two.
fn submit_function(env: Env, bridge: &mut Bridge, value: AnyFunction) -> Result<(), Misuse> {
    // SAFETY: inside a call from JavaScript, with a value of it.
    bridge.submit_known(unsafe { call_sites::known(env, value) })
}

/// As submit, or submitOrdered if an order is given, with the bytes as an argument. Returns the outcome.
fn submit_large(
    bridge: &mut Bridge,
    zone: u32,
    function_number: u32,
    bytes: &[u8],
    call: u32,
) -> Result<i32, Misuse> {
    bridge.send_large(zone, function_number, call, bytes)
}

/// As complete, with the bytes as an argument.
fn complete_large(bridge: &mut Bridge, token: u32, status: u32, bytes: &[u8]) -> Result<(), Misuse> {
    bridge.complete_with(token, status, bytes)
}

/// Mark that function as loaded: this thread can call it without its event loop.
fn function_ready(bridge: &mut Bridge, number: u32) {
    bridge.function_ready(number);
}

/// A copy of the arguments of a running task, or of the broadcast (0xffffffff).
fn task_bytes(bridge: &mut Bridge, token: u32) -> Result<Vec<u8>, Misuse> {
    bridge.task_bytes(token)
}

/// The result of a running task contains streams: its caller opens channels `to` and `from`. Returns 0 when
/// the caller's thread has ended.
fn task_streams(bridge: &mut Bridge, token: u32, to: u32, from: u32) -> Result<bool, Misuse> {
    bridge.notify_caller(token, layout::mail::STREAMED, [to, from])
}

/// One of this worker's tasks begins to wait for the other end of a stream, or (`begins` 0) no longer does.
fn stream_waits(bridge: &mut Bridge, begins: u32) {
    bridge.stream_waits(begins != 0);
}

/// None of these waits has ended for long: if nothing else runs here, a task more may begin.
fn streams_stalled(bridge: &mut Bridge) {
    let _stalls = bridge.streams_stalled();
    #[cfg(unix)]
    if _stalls {
        thread::report_stall(bridge);
    }
}

/// A task whose streams may have waited is about to end. The parent of a process is notified before.
#[cfg_attr(not(unix), allow(clippy::needless_pass_by_ref_mut, reason = "no worker is a process"))]
fn streams_over(bridge: &mut Bridge) {
    #[cfg(unix)]
    thread::report_waits(bridge);
    #[cfg(not(unix))]
    let _ = bridge;
}

/// End the broadcast that `step` returned.
fn broadcast_done(bridge: &mut Bridge, status: u32, bytes: &[u8]) -> Result<(), Misuse> {
    bridge.broadcast_done(status, bytes)
}

/// Drop the attachments of the last drain's results, which have been read.
fn drained(bridge: &mut Bridge) {
    bridge.drained();
}

/// The bytes of a drained result that did not fit.
fn large_result(bridge: &mut Bridge, call: u32) -> Result<Vec<u8>, Misuse> {
    bridge.large_result(call)
}

/// Write the oldest piece of mail into the inbound scratch buffer. Returns 1, or 0 without mail.
fn mail(bridge: &mut Bridge) -> bool {
    bridge.mail()
}
