//! This thread's [`ThreadState`] and the functions that JavaScript calls on it: conversions.
//!
//! A function of `store` or `sync` that needs it has it as a parameter; hot ones reach it by `hot`.

use std::{cell::Cell, ptr, sync::Arc};

use corespun_bridge::{
    Bridge, Mailbox, Misuse, Scratch,
    buffers::Attached,
    thread_cache::{self, ThreadCache},
};
use corespun_store::{ByMail, Bytes, ThreadState};
use napi_sys as sys;

use crate::{
    buffers, exports,
    js::{Call, Env, Function, Outcome, Parameter, Thrown, Value, wrong},
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    scratch_open, scratch_attach, scratch_large, scratch_hold, scratch_release, scratch_moves,
};

thread_local! {
    static HERE: Cell<(*mut ThreadState, sys::napi_env)> =
        const { Cell::new((ptr::null_mut(), ptr::null_mut())) };
}

/// As `HERE`, cached for hot calls.
static STATES: ThreadCache<sys::napi_env__, ThreadState> = ThreadCache::new();

impl Parameter for &mut ThreadState {
    #[inline]
    fn take(_: &mut Call) -> Outcome<Self> {
        // SAFETY: made by `scratch_open` and freed by `thread_ended`, both on this thread; the reference ends
        // with the call, in which no JavaScript runs.
        unsafe { HERE.get().0.as_mut() }.ok_or_else(|| wrong("called before scratchOpen"))
    }
}

/// Run `body` with the state; throw its error.
#[inline]
pub fn hot(
    env: sys::napi_env,
    _: sys::napi_callback_info,
    body: impl FnOnce(&mut ThreadState) -> Result<(), Misuse>,
) -> Value {
    let cached = STATES.get(env);
    let state = if cached.is_null() { HERE.get().0 } else { cached };
    // SAFETY: inside a call from JavaScript; nothing that `body` calls runs JavaScript. A cached state is
    // valid: `open` adds it and `thread_ended` removes it before freeing it.
    let outcome = match unsafe { state.as_mut() } {
        Some(state) => body(state).map_err(Thrown::from),
        None => Err(wrong("called before scratchOpen")),
    };
    // SAFETY: JavaScript waits for this call, which is over.
    unsafe { buffers::release_retired() };
    match outcome {
        Ok(()) => ptr::null_mut(),
        Err(thrown) => Env(env).throw(&thrown),
    }
}

/// Register this thread's scratch buffers; called once, after `open`, by the copy whose bridge receives what
/// stores and locks notify.
fn scratch_open(env: Env, bridge: &mut Bridge, out: Scratch, inbound: Scratch) -> Outcome<()> {
    let mailbox = bridge.mailbox();
    if !HERE.get().0.is_null() {
        let why = "another copy of corespun uses stores or locks in this thread; one can".into();
        return Err(Thrown("NATIVE_SECOND_COPY", why));
    }
    let state = ThreadState::new(out, inbound, mailbox.number(), Arc::new(ByMail(mailbox)));
    let state = Box::into_raw(Box::new(state));
    HERE.set((state, env.0));
    // Another copy's environment does not report its end here, so its state is not cached.
    if thread_cache::is_first(env.0) {
        STATES.put(env.0, state);
    }
    Ok(())
}

/// Set the buffers that the next value to be written refers to.
fn scratch_attach(state: &mut ThreadState, ids: Vec<u32>) {
    state.attach(Arc::new(Attached::new(ids)));
}

/// The value that did not fit.
fn scratch_large(state: &mut ThreadState) -> Outcome<Bytes> {
    state.take_large().ok_or_else(|| wrong("nothing large"))
}

/// Keep the memory of the value read last; reads that follow are nested in it.
fn scratch_hold(state: &mut ThreadState) {
    state.hold();
}

/// End the last scratchHold.
fn scratch_release(state: &mut ThreadState) {
    state.release();
}

/// 1 if the value read last refers to moved memory, which can be read only once.
fn scratch_moves(state: &mut ThreadState) -> bool {
    let attached = state.read_soon().and_then(|keeps| keeps.downcast_ref::<Attached>());
    attached.is_some_and(Attached::moves)
}

/// Free the state of `mailbox`'s thread, which ends.
pub fn thread_ended(mailbox: &'static Mailbox) {
    let (state, env) = HERE.get();
    // SAFETY: as in `take`; the reference ends with the statement.
    if unsafe { state.as_ref() }.is_some_and(|state| state.thread() == mailbox.number()) {
        STATES.remove(env);
        HERE.set((ptr::null_mut(), ptr::null_mut()));
        // SAFETY: made by Box::into_raw in `scratch_open`; no call is in progress.
        drop(unsafe { Box::from_raw(state) });
    }
}
