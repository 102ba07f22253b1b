//! The binding: the native core's functions for JavaScript. Contains conversions only.
//!
//! `napi_register_module_v1` puts the functions on the exports. Those that belong to a thread carry a pointer
//! to the cell in which `open` puts that thread's state; the others work on the process-wide tables. It uses
//! napi's C interface directly, so that a call costs no more than its crossing.

mod buffers;
mod call_sites;
mod calls;
mod http;
mod instances;
mod js;
mod memory;
mod store;
mod sync;
mod tables;
mod thread;
mod thread_state;
mod uv;
mod zones;

use std::{
    ffi::{CString, c_void},
    ptr,
    sync::Once,
};

use corespun_bridge::{Scratch, cores, registry, signals, thread_cache};
use napi_sys as sys;

use crate::{
    js::{Arguments, Env, Given, Outcome, Value},
    thread::Thread,
};

type Function = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> Value;

/// Every exported function by its JavaScript name.
const FUNCTIONS: &[(&str, Function)] = &[
    ("open", open),
    ("version", version),
    ("otherInstance", other_instance),
    ("instance", instance),
    ("submit", calls::submit::<false>),
    ("submitFunction", calls::submit_function),
    ("submitLarge", calls::submit_large),
    ("step", calls::step::<false>),
    ("complete", calls::complete::<false>),
    ("completeLarge", calls::complete_large),
    ("taskBytes", calls::task_bytes),
    ("broadcastDone", calls::broadcast_done),
    ("joinFork", calls::join_fork),
    ("help", calls::help),
    ("functionReady", calls::function_ready),
    ("drain", calls::drain::<false>),
    ("linger", calls::linger::<false>),
    ("drained", calls::drained),
    ("largeResult", calls::large_result),
    ("mail", calls::mail),
    ("zoneMake", zones::zone_make),
    ("zoneOver", zones::zone_over),
    ("zoneGrow", zones::zone_grow),
    ("zoneShrink", zones::zone_shrink),
    ("zoneReady", zones::zone_ready),
    ("zoneReadyCancel", zones::zone_ready_cancel),
    ("zoneWorkers", zones::zone_workers),
    ("zoneOpen", zones::zone_open),
    ("zoneNumber", zones::zone_number),
    ("zoneSettings", zones::zone_settings),
    ("zoneId", zones::zone_id),
    ("zoneIds", zones::zone_ids),
    ("zoneDrop", zones::zone_drop),
    ("zoneCounts", zones::zone_counts),
    ("zoneClose", zones::zone_close),
    ("zoneRefuse", zones::zone_refuse),
    ("zoneForget", zones::zone_forget),
    ("zoneEnd", zones::zone_end),
    ("zoneError", zones::zone_error),
    ("zoneFail", zones::zone_fail),
    ("zoneFailure", zones::zone_failure),
    ("cancel", zones::cancel),
    ("zoneTell", zones::zone_tell),
    ("zoneOverdue", zones::zone_overdue),
    ("broadcast", zones::broadcast),
    ("broadcastSync", zones::broadcast_sync),
    ("broadcastWait", zones::broadcast_wait),
    ("renice", zones::renice),
    ("attach", zones::attach),
    ("workerGone", zones::worker_gone),
    ("workerAdd", zones::worker_add),
    ("kick", zones::kick),
    ("attachBuffers", zones::attach_buffers),
    ("signalListen", signal_listen),
    ("intern", tables::intern),
    ("interned", tables::interned),
    ("functionKnown", call_sites::function_known),
    ("functionRemember", call_sites::function_remember),
    ("functionOrigin", call_sites::function_origin),
    ("bufferShare", tables::buffer_share),
    ("bufferMove", tables::buffer_move),
    ("bufferLend", tables::buffer_lend),
    ("bufferLeave", tables::buffer_leave),
    ("bufferTake", tables::buffer_take),
    ("bufferRelease", tables::buffer_release),
    ("bufferCount", tables::buffer_count),
    ("frameToken", tables::frame_token),
    ("signalMake", zones::signal_make),
    ("signalFire", tables::signal_fire),
    ("signalReason", tables::signal_reason),
    ("signalForget", tables::signal_forget),
    ("memoryMake", thread_state::memory),
    ("scratchOpen", thread_state::open),
    ("scratchAttach", thread_state::attach),
    ("scratchLarge", thread_state::large),
    ("scratchHold", thread_state::hold),
    ("scratchRelease", thread_state::release),
    ("scratchMoves", thread_state::moves),
    ("storeGet", store::get),
    ("storeView", store::view),
    ("storeSet", store::set),
    ("storeSetLarge", store::set_large),
    ("storeRemove", store::remove),
    ("storeHas", store::has),
    ("storeMake", store::make),
    ("storeNumber", store::number),
    ("storeId", store::id),
    ("storeSettings", store::settings),
    ("storeCount", store::count),
    ("storeNames", store::names),
    ("storeOpen", store::open),
    ("storeDrop", store::drop_handle),
    ("storeClose", store::close),
    ("storeClear", store::clear),
    ("storeStats", store::stats),
    ("storeWords", store::words),
    ("storeParts", store::parts),
    ("storeKeys", store::keys),
    ("storeWatch", store::watch),
    ("storeWatchTake", store::watch_take),
    ("storeUnwatch", store::unwatch),
    ("storeBegin", store::begin),
    ("storeEnd", store::end),
    ("storeAdvance", store::advance),
    ("syncMake", sync::make),
    ("syncNumber", sync::number),
    ("syncNames", sync::names),
    ("syncOpen", sync::open),
    ("syncDrop", sync::drop_handle),
    ("syncForget", sync::forget),
    ("syncCount", sync::count),
    ("syncAmount", sync::amount),
    ("syncWait", sync::wait),
    ("syncUnwait", sync::unwait),
    ("semaphoreTry", sync::semaphore_try),
    ("semaphoreRelease", sync::semaphore_release),
    ("semaphoreAcquire", sync::semaphore_acquire),
    ("semaphoreCancel", sync::semaphore_cancel),
    ("semaphoreCounts", sync::semaphore_counts),
    ("channelPut", sync::channel_put),
    ("channelPutLarge", sync::channel_put_large),
    ("channelTake", sync::channel_take),
    ("channelFetch", sync::channel_fetch),
    ("channelCancel", sync::channel_cancel),
    ("channelClose", sync::channel_close),
    ("channelLength", sync::channel_length),
    ("counterDo", sync::counter_do),
    ("httpOpen", http::open),
    ("httpAddress", http::address),
    ("httpFlush", http::flush),
    ("httpPut", http::put),
    ("httpLarge", http::large),
    ("httpPull", http::pull),
    ("httpRemote", http::remote),
    ("httpStats", http::stats),
    ("httpStop", http::stop),
    ("httpMember", http::member),
    ("httpStalledMs", http::stalled_ms),
    ("httpSendAway", http::send_away),
    ("httpClose", http::close),
];

/// Node calls this once for each environment that loads the library.
///
/// # Safety
///
/// Called by Node with the environment and exports of the loading thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(env: sys::napi_env, exports: Value) -> Value {
    static SYMBOLS: Once = Once::new();
    // SAFETY: looks napi's functions up in the running program, before any of them is called. Dropping the
    // returned library would close the program's own handle.
    SYMBOLS.call_once(|| std::mem::forget(unsafe { sys::setup() }));
    // SAFETY: the environment and exports of the call in progress.
    unsafe { export(env, exports, true) };
    exports
}

/// The hot functions of a thread's further mailboxes.
const FURTHER: &[(&str, Function)] = &[
    ("submit", calls::submit::<true>),
    ("step", calls::step::<true>),
    ("complete", calls::complete::<true>),
    ("drain", calls::drain::<true>),
    ("linger", calls::linger::<true>),
];

/// Put every function on `exports`: the library's own exports, or those for another copy of the package.
///
/// # Safety
///
/// Inside a call from JavaScript.
unsafe fn export(env: sys::napi_env, exports: Value, is_own: bool) {
    // One cell per mailbox, in which `open` puts the thread. Freed after the environment's last call.
    let cell: *mut *mut Thread = Box::into_raw(Box::new(ptr::null_mut()));
    // SAFETY: valid environment; the hook frees the cell. Hooks run in reverse order, so after `close`.
    unsafe { sys::napi_add_env_cleanup_hook(env, Some(free_cell), cell.cast()) };
    let instead: &[_] = if is_own && thread::claim_first(cell) { &[] } else { FURTHER };
    for &(name, function) in FUNCTIONS {
        let function =
            instead.iter().find(|(other, _)| *other == name).map_or(function, |&(_, function)| function);
        let Ok(text) = CString::new(name) else { continue };
        let mut value = ptr::null_mut();
        // SAFETY: the text outlives both calls; the cell exists as long as the environment.
        unsafe {
            let length = name.len() as isize;
            sys::napi_create_function(
                env,
                text.as_ptr(),
                length,
                Some(function),
                cell.cast(),
                &raw mut value,
            );
            sys::napi_set_named_property(env, exports, text.as_ptr(), value);
        }
    }
}

unsafe extern "C" fn free_cell(data: *mut c_void) {
    thread::forget_cell(data.cast());
    // SAFETY: made by Box::into_raw in export and freed only here.
    drop(unsafe { Box::from_raw(data.cast::<*mut Thread>()) });
}

/// instance(): the same functions with a further mailbox, for another copy of the package in this thread.
unsafe extern "C" fn instance(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    let mut exports = ptr::null_mut();
    // SAFETY: napi calls this with its environment.
    unsafe {
        sys::napi_create_object(env, &raw mut exports);
        export(env, exports, false);
    }
    exports
}

/// open(drain, out, inbound, main): open this thread's mailbox. Returns its number, 0 if it is open already.
unsafe extern "C" fn open(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    let env = Env(env);
    // SAFETY: napi calls this with its environment and info.
    let arguments = unsafe { Arguments::<4>::read(env, info) };
    let cell = arguments.data.cast::<*mut Thread>();
    let outcome: Outcome<i32> = (|| {
        // SAFETY: the cell exists as long as the environment; only this thread uses it.
        if !unsafe { *cell }.is_null() {
            return Ok(0);
        }
        let (out, inbound) = (Scratch::of(env, arguments[1])?, Scratch::of(env, arguments[2])?);
        // SAFETY: the thread's environment.
        unsafe {
            *cell = Thread::open(env, arguments[0], out, inbound, env.bool(arguments[3])?, cell);
            Ok((**cell).receiver.mailbox().number() as i32)
        }
    })();
    match outcome {
        Ok(number) => env.int(number),
        Err(thrown) => env.throw(&thrown),
    }
}

/// version(): this library's version.
unsafe extern "C" fn version(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    let text: Vec<u16> = env!("CARGO_PKG_VERSION").encode_utf16().collect();
    Env(env).text(&text)
}

/// otherInstance(): "version path" of another copy of this library in the process, or `undefined`.
unsafe extern "C" fn other_instance(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    let env = Env(env);
    match instances::other() {
        Some(other) => {
            let text: Vec<u16> = format!("{} {}", other.version, other.path).encode_utf16().collect();
            env.text(&text)
        }
        None => env.undefined(),
    }
}

/// signalListen(number): send this thread mail when the signal fires. Returns the reason if it has fired.
unsafe extern "C" fn signal_listen(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    let env = Env(env);
    // SAFETY: napi calls this with its environment and info, on the thread of the function's data.
    let outcome = unsafe {
        let arguments = Arguments::<1>::read(env, info);
        thread::thread(arguments.data).and_then(|thread| {
            match signals::listen(env.u32(arguments[0])?, thread.receiver.mailbox()) {
                Some(reason) => env.copy(&reason),
                None => Ok(env.undefined()),
            }
        })
    };
    match outcome {
        Ok(value) => value,
        Err(thrown) => env.throw(&thrown),
    }
}
