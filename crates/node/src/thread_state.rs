//! This thread's [`ThreadState`] and the functions that JavaScript calls on it: conversions.
//!
//! `store` and `sync` reach it through `here` and `hot`, and define their functions by `function!`.

use std::{cell::Cell, ptr, sync::Arc};

use corespun_bridge::{Mail, Mailbox, Scratch, layout::mail};
use corespun_store::{Fact, Misuse, Notify, ThreadState};
use napi_sys as sys;

use crate::{
    buffers::{self, Attached},
    js::{Env, Outcome, Thrown, Value, wrong},
    memory,
    thread_cache::{self, ThreadCache},
};

struct Waiter(&'static Mailbox);

impl Notify for Waiter {
    fn notify(&self, ticket: u32, fact: Fact) {
        self.0.send(Mail { kind: mail::SHARED, subject: ticket, facts: [fact as u32, 0] });
    }
}

thread_local! {
    static HERE: Cell<(*mut ThreadState, sys::napi_env)> =
        const { Cell::new((ptr::null_mut(), ptr::null_mut())) };
}

/// As `HERE`, cached for hot calls.
static STATES: ThreadCache<sys::napi_env__, ThreadState> = ThreadCache::new();

impl From<Misuse> for Thrown {
    fn from(misuse: Misuse) -> Self {
        wrong(misuse.0)
    }
}

/// This thread's state.
///
/// # Safety
///
/// Called by napi on the thread itself; the reference ends with the call.
#[inline]
pub unsafe fn here<'a>() -> Outcome<&'a mut ThreadState> {
    // SAFETY: made by `open` and freed by `thread_ended`, both on this thread; see above.
    unsafe { HERE.get().0.as_mut() }.ok_or_else(|| wrong("called before scratchOpen"))
}

/// Run `body` with the state; throw its error.
#[inline]
pub fn hot(env: sys::napi_env, body: impl FnOnce(&mut ThreadState) -> Result<(), Misuse>) -> Value {
    // SAFETY: inside a call from JavaScript; nothing that `body` calls runs JavaScript. A cached state is
    // valid: `open` adds it and `thread_ended` removes it before freeing it.
    let state = match unsafe { STATES.get(env).as_mut() } {
        Some(state) => Ok(state),
        // SAFETY: as above.
        None => unsafe { here() },
    };
    let outcome = state.and_then(|state| Ok(body(state)?));
    // SAFETY: JavaScript waits for this call, which is over.
    unsafe { buffers::release_retired() };
    match outcome {
        Ok(()) => ptr::null_mut(),
        Err(thrown) => Env(env).throw(&thrown),
    }
}

/// Define a function with converted arguments and result, with or without the thread's state.
#[macro_export]
macro_rules! function {
    ($(#[$text:meta])* $name:ident($($given:ident: $kind:ty),*) |$env:ident, $state:ident| $body:expr) => {
        $crate::function! {
            $(#[$text])*
            $name($($given: $kind),*) |$env| {
                // SAFETY: inside a call; the reference ends with it.
                let $state = unsafe { $crate::thread_state::here()? };
                $body
            }
        }
    };
    ($(#[$text:meta])* $name:ident($($given:ident: $kind:ty),*) |$env:ident| $body:expr) => {
        $(#[$text])*
        pub unsafe extern "C" fn $name(
            env: napi_sys::napi_env,
            info: napi_sys::napi_callback_info,
        ) -> $crate::js::Value {
            const COUNT: usize = <[&str]>::len(&[$(stringify!($given)),*]);
            let $env = $crate::js::Env(env);
            let run = || -> $crate::js::Outcome<$crate::js::Value> {
                // SAFETY: napi calls this with its environment and info.
                let [$($given),*] = unsafe { $crate::js::Arguments::<COUNT>::read($env, info) }.values;
                $(let $given = <$kind as $crate::js::Given>::of($env, $given)?;)*
                $crate::js::Reply::value($body, $env)
            };
            let outcome = run();
            // SAFETY: JavaScript waits for this call, which is over.
            unsafe { $crate::buffers::release_retired() };
            outcome.unwrap_or_else(|thrown| $env.throw(&thrown))
        }
    };
}

function! {
    /// memoryMake(bytes): an ArrayBuffer of zeroes over memory of the core.
    memory(bytes: u32) |env| memory::buffer(env, bytes as usize)?
}

function! {
    /// scratchOpen(out, inbound): register this thread's scratch buffers; called once, after `open`.
    open(out: Scratch, inbound: Scratch) |env| {
        let mailbox = thread_cache::mailbox().ok_or_else(|| wrong("scratchOpen before open"))?;
        if !HERE.get().0.is_null() {
            let why = "another copy of corespun uses stores or locks in this thread; one can".into();
            return Err(Thrown("NATIVE_SECOND_COPY", why));
        }
        let state = ThreadState::new(out, inbound, mailbox.number(), Arc::new(Waiter(mailbox)));
        let state = Box::into_raw(Box::new(state));
        HERE.set((state, env.0));
        // Another copy's environment does not report its end here, so its state is not cached.
        if thread_cache::is_first(env.0) {
            STATES.put(env.0, state);
        }
    }
}

function! {
    /// scratchAttach(ids): set the buffers that the next value to be written refers to.
    attach(ids: Vec<u32>) |env, state| state.attach(Arc::new(Attached::new(ids)))
}

function! {
    /// scratchLarge(): the value that did not fit.
    large() |env, state| env.copy(&state.take_large().ok_or_else(|| wrong("nothing large"))?)?
}

function! {
    /// scratchHold(): keep the memory of the value read last; reads that follow are nested in it.
    hold() |env, state| state.hold()
}

function! {
    /// scratchRelease(): end the last scratchHold.
    release() |env, state| state.release()
}

function! {
    /// scratchMoves(): 1 if the value read last refers to moved memory, which can be read only once.
    moves() |env, state| {
        let attached = state.read_soon().and_then(|keeps| keeps.downcast_ref::<Attached>());
        u32::from(attached.is_some_and(Attached::moves))
    }
}

/// Free the state of `mailbox`'s thread, which ends.
pub fn thread_ended(mailbox: &'static Mailbox) {
    let (state, env) = HERE.get();
    // SAFETY: as in here; the reference ends with the statement.
    if unsafe { state.as_ref() }.is_some_and(|state| state.thread() == mailbox.number()) {
        STATES.remove(env);
        HERE.set((ptr::null_mut(), ptr::null_mut()));
        // SAFETY: made by Box::into_raw in `open`; no call is in progress.
        drop(unsafe { Box::from_raw(state) });
    }
}
