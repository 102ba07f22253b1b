//! This thread's [`Stage`], and what JavaScript calls on it: conversions.
//!
//! `store` and `sync` reach it through `here` and `hot`, and define their functions by `function!`.

use std::{cell::Cell, ptr, sync::Arc};

use corespun_bridge::{Mail, Port, Scratch, layout::mail};
use corespun_store::{Fact, Misuse, Notify, Stage};
use napi_sys as sys;

use crate::{
    buffers::{self, Attached},
    js::{Env, Outcome, Thrown, Value, wrong},
    memory,
    thread_cache::{self, ThreadCache},
};

struct Mailbox(&'static Port);

impl Notify for Mailbox {
    fn notify(&self, ticket: u32, fact: Fact) {
        self.0.send(Mail { kind: mail::SHARED, subject: ticket, facts: [fact as u32, 0] });
    }
}

thread_local! {
    static HERE: Cell<(*mut Stage, sys::napi_env)> = const { Cell::new((ptr::null_mut(), ptr::null_mut())) };
}

/// The same for hot calls.
static STAGES: ThreadCache<sys::napi_env__, Stage> = ThreadCache::new();

impl From<Misuse> for Thrown {
    fn from(misuse: Misuse) -> Self {
        wrong(misuse.0)
    }
}

/// This thread's stage.
///
/// # Safety
///
/// Called by napi on the thread itself; the reference ends with the call.
#[inline]
pub unsafe fn here<'a>() -> Outcome<&'a mut Stage> {
    // SAFETY: made by open, freed by gone, both on this thread; see above.
    unsafe { HERE.get().0.as_mut() }.ok_or_else(|| wrong("called before stageOpen"))
}

/// Run `body` with the stage; throw what it fails with.
#[inline]
pub fn hot(env: sys::napi_env, body: impl FnOnce(&mut Stage) -> Result<(), Misuse>) -> Value {
    // SAFETY: inside a call from JavaScript; nothing that `body` calls runs JavaScript. What is here lives:
    // gone removes what open has put.
    let stage = match unsafe { STAGES.get(env).as_mut() } {
        Some(stage) => Ok(stage),
        // SAFETY: as above.
        None => unsafe { here() },
    };
    let outcome = stage.and_then(|stage| Ok(body(stage)?));
    // SAFETY: JavaScript waits for this call, which is over.
    unsafe { buffers::give_back() };
    match outcome {
        Ok(()) => ptr::null_mut(),
        Err(thrown) => Env(env).throw(&thrown),
    }
}

/// A function with its arguments, converted, and what it returns; with the thread's stage or without.
#[macro_export]
macro_rules! function {
    ($(#[$text:meta])* $name:ident($($given:ident: $kind:ty),*) |$env:ident, $stage:ident| $body:expr) => {
        $crate::function! {
            $(#[$text])*
            $name($($given: $kind),*) |$env| {
                // SAFETY: inside a call; the reference ends with it.
                let $stage = unsafe { $crate::stage::here()? };
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
            unsafe { $crate::buffers::give_back() };
            outcome.unwrap_or_else(|thrown| $env.throw(&thrown))
        }
    };
}

function! {
    /// memoryMake(bytes): an ArrayBuffer of zeroes over memory of the core.
    memory(bytes: u32) |env| memory::buffer(env, bytes as usize)?
}

function! {
    /// stageOpen(out, inbound): register this thread's scratch memory, after `open`, once.
    open(out: Scratch, inbound: Scratch) |env| {
        let port = thread_cache::port().ok_or_else(|| wrong("stageOpen before open"))?;
        if !HERE.get().0.is_null() {
            let why = "another copy of corespun uses stores or locks in this thread; one can".into();
            return Err(Thrown("NATIVE_SECOND_COPY", why));
        }
        let stage = Stage::new(out, inbound, port.number(), Arc::new(Mailbox(port)));
        let stage = Box::into_raw(Box::new(stage));
        HERE.set((stage, env.0));
        // Of another copy's environment nobody knows here when it ends.
        if thread_cache::is_first(env.0) {
            STAGES.put(env.0, stage);
        }
    }
}

function! {
    /// stageAttach(ids): the buffers that the next value to be written refers to.
    attach(ids: Vec<u32>) |env, stage| stage.attach(Arc::new(Attached::new(ids)))
}

function! {
    /// stageLarge(): the value that did not fit.
    large() |env, stage| env.copy(&stage.take_large().ok_or_else(|| wrong("nothing large"))?)?
}

function! {
    /// stageHold(): what is read from here on is read within the value read last, which keeps its memory.
    hold() |env, stage| stage.hold()
}

function! {
    /// stageRelease(): the end of what stageHold began.
    release() |env, stage| stage.release()
}

function! {
    /// stageMoves(): 1 when the value read last refers to memory that was moved, which can be read once.
    moves() |env, stage| {
        let attached = stage.read_soon().and_then(|keeps| keeps.downcast_ref::<Attached>());
        u32::from(attached.is_some_and(Attached::moves))
    }
}

/// The thread of `port` ends: what its stage holds is let go.
pub fn gone(port: &'static Port) {
    let (stage, env) = HERE.get();
    // SAFETY: as in here; the reference ends with the statement.
    if unsafe { stage.as_ref() }.is_some_and(|stage| stage.owner() == port.number()) {
        STAGES.remove(env);
        HERE.set((ptr::null_mut(), ptr::null_mut()));
        // SAFETY: made by Box::into_raw in open; no call is in progress.
        drop(unsafe { Box::from_raw(stage) });
    }
}
