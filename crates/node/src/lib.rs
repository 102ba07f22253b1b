//! The binding: the native core's functions for JavaScript, and what the core needs of Node.
//!
//! Most files convert arguments and results for another crate. The others have state of their own: `thread`
//! (a thread's bridge and the callbacks of its event loop), `http` (the servers of a thread), `buffers` and
//! `memory` (what several threads refer to), and `engine` (napi, libuv, V8). `cargo test` cannot link a
//! crate that uses napi, so this one has no tests in Rust: src/contract.test.ts calls every function with
//! arguments that it must refuse, and the suite calls each with valid ones.
//!
//! `napi_register_module_v1` puts the functions on the exports. Those that belong to a thread carry a
//! pointer to the cell in which `open` puts that thread's state; the others work on the process-wide
//! tables. It uses napi's C interface directly, so that a call costs no more than its crossing.

mod buffers;
mod call_sites;
mod calls;
mod engine;
#[cfg(has_http)]
mod http;
#[cfg(unix)]
mod link;
mod memory;
mod sheets;
mod slow;
mod store;
mod sync;
mod tables;
mod thread;
mod thread_state;
mod zones;

use engine::{instances, js, platform, uv, v8};

use std::{ffi::c_void, ptr, sync::Once};

use corespun_bridge::{Bridge, Scratch};
use napi_sys as sys;

use crate::{
    js::{Call, Callee, Env, Function, Outcome, Parameter, Value},
    thread::BridgeCell,
};

const OWN: &[(&str, Function)] = exports! { open, version, other_instance };

/// Every exported function by its name, which is in camel case for JavaScript.
const FUNCTIONS: [&[(&str, Function)]; 17] = [
    OWN,
    calls::FUNCTIONS,
    calls::HOT,
    calls::SELDOM,
    zones::FUNCTIONS,
    tables::FUNCTIONS,
    call_sites::FUNCTIONS,
    memory::FUNCTIONS,
    sheets::FUNCTIONS,
    slow::FUNCTIONS,
    thread_state::FUNCTIONS,
    store::FUNCTIONS,
    store::HOT,
    sync::FUNCTIONS,
    sync::HOT,
    #[cfg(has_http)]
    http::FUNCTIONS,
    #[cfg(not(has_http))]
    &[],
    #[cfg(unix)]
    link::FUNCTIONS,
    #[cfg(not(unix))]
    &[],
];

/// Node calls this whenever a thread loads the library: once for each evaluation of the package in it.
///
/// # Safety
///
/// Called by Node with the environment and exports of the loading thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(env: sys::napi_env, exports: Value) -> Value {
    static SYMBOLS: Once = Once::new();
    SYMBOLS.call_once(|| {
        // SAFETY: looks napi's functions up in the running program, before any of them is called. Dropping
        // the returned library would close the program's own handle.
        std::mem::forget(unsafe { sys::setup() });
        platform::stay_loaded();
    });
    // SAFETY: the environment and exports of the call in progress.
    unsafe { export(env, exports) };
    exports
}

/// Put every function on `exports`. The functions of a thread's further exports have bridges of their own.
///
/// # Safety
///
/// Inside a call from JavaScript.
unsafe fn export(env: sys::napi_env, exports: Value) {
    // One cell per mailbox, in which `open` puts the thread. Freed after the environment's last call.
    let cell: BridgeCell = Box::into_raw(Box::new(ptr::null_mut()));
    // SAFETY: valid environment; the hook frees the cell. Hooks run in reverse order, so after `close`.
    unsafe { sys::napi_add_env_cleanup_hook(env, Some(free_cell), cell.cast()) };
    let instead: &[_] = if thread::claim_first(cell) { &[] } else { calls::FURTHER };
    for &(name, function) in FUNCTIONS.into_iter().flatten() {
        let further = instead.iter().find(|(other, _)| *other == name);
        let function = further.map_or(function, |&(_, function)| function);
        let (text, mut value) = (camel_case(name), ptr::null_mut());
        // SAFETY: the text outlives both calls; the cell exists as long as the environment.
        unsafe {
            let (name, length) = (text.as_ptr().cast(), text.len() as isize - 1);
            sys::napi_create_function(env, name, length, Some(function), cell.cast(), &raw mut value);
            sys::napi_set_named_property(env, exports, name, value);
        }
    }
}

/// `zone_make` as `zoneMake`, with a closing zero.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        text.push_str(&word[..1].to_uppercase());
        text.push_str(&word[1..]);
    }
    text + "\0"
}

unsafe extern "C" fn free_cell(data: *mut c_void) {
    thread::forget_cell(data.cast());
    // SAFETY: made by Box::into_raw in export and freed only here.
    drop(unsafe { Box::from_raw(data.cast::<*mut Bridge>()) });
}

/// The cell of the function.
struct Cell(BridgeCell);

impl Parameter for Cell {
    fn take(call: &mut Call) -> Outcome<Self> {
        Ok(Self(call.data.cast()))
    }
}

/// Open this thread's mailbox. Returns its number, 0 if it is open already.
fn open(env: Env, cell: Cell, drain: Callee, out: Scratch, inbound: Scratch, main: bool) -> u32 {
    // SAFETY: the cell exists as long as the environment; only this thread uses it.
    unsafe {
        if (*cell.0).is_null() {
            (*thread::open(env, drain, out, inbound, main, cell.0)).mailbox().number()
        } else {
            0
        }
    }
}

/// This library's version.
const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// "version path" of another copy of this library in the process, or `undefined`.
fn other_instance() -> Option<String> {
    instances::other().map(|other| format!("{} {}", other.version, other.path))
}
