//! Workers that are processes: the sockets of a child in its parent, and the parent's in the child.
//!
//! The parent's end is a native thread; the child's is read by the event loop of its main thread, without
//! JavaScript, and what arrives is submitted to the child's own zone.

use std::{
    ffi::{c_int, c_void},
    io, ptr,
};

use corespun_bridge::{
    Bridge,
    link::{self, Child, Conduits, Link},
};
use corespun_store::named::SYNC_OBJECTS;
use napi_sys as sys;

use crate::{
    exports,
    js::{Env, Function, Outcome, Thrown, wrong},
    thread::{self, CHILD},
    uv::{self, Watch},
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    link_open, link_start, link_drop, link_reaped, link_begin, link_join, link_channels,
};

fn conduits() -> &'static dyn Conduits {
    &*SYNC_OBJECTS
}

fn refused(error: &io::Error) -> Thrown {
    Thrown("NATIVE_LINK", format!("the sockets of a process: {error}"))
}

/// Make the sockets of a process. Returns uint32: the link's number, and the process's two descriptors.
fn link_open() -> Outcome<Vec<u32>> {
    let opened = Link::open().map_err(|error| refused(&error))?;
    let [tasks, texts] = opened.descriptors().map(i32::cast_unsigned);
    Ok(vec![link::keep(opened), tasks, texts])
}

/// The process has been started: its tasks travel from now on. This thread gets mail when it has ended.
fn link_start(bridge: &mut Bridge, number: u32, pid: u32) -> Outcome<()> {
    let opened = link::take(number).ok_or_else(|| wrong("no such link"))?;
    let started = link::start(opened, (number, pid.cast_signed()), bridge.mailbox(), conduits());
    bridge.process_started(number, started.map_err(|error| refused(&error))?);
    Ok(())
}

/// The system has reported the end of the process, and its number may have another process now.
fn link_reaped(bridge: &mut Bridge, number: u32) {
    bridge.process_reaped(number);
}

/// The process was not started.
fn link_drop(number: u32) {
    drop(link::take(number));
}

/// In a process that is a worker, before anything is numbered: its texts have the numbers of its parent, with
/// which it ends, and it has so much memory; 0: any. False if the system has no such bound.
fn link_begin(descriptor: u32, parent: u32, memory_bytes: u64) -> Outcome<bool> {
    // SAFETY: src/zone/worker/process.ts is the only caller and passes the descriptor it was started with.
    unsafe { link::tables::of_parent(descriptor.cast_signed()) }.map_err(|error| refused(&error))?;
    link::end_with_parent(parent);
    Ok(memory_bytes == 0 || link::limit_memory(memory_bytes))
}

/// Become the worker of that slot in the parent's zone of that number; here the zone with `handle` has a slot
/// for this thread alone. Returns its number, for `attach`.
fn link_join(
    env: Env,
    bridge: &mut Bridge,
    handle: u32,
    descriptor: u32,
    number: u32,
    slot: u32,
) -> Outcome<u32> {
    let zone = bridge.zone(handle)?.clone();
    let own = zone.add_slot().ok_or_else(|| wrong("the zone is closed"))?;
    let mut uv_loop = ptr::null_mut();
    // SAFETY: a valid environment and out pointer.
    unsafe { sys::napi_get_uv_event_loop(env.0, &raw mut uv_loop) };
    let descriptor = descriptor.cast_signed();
    // SAFETY: as in link_begin.
    let child = unsafe { Child::join(descriptor, zone, bridge.mailbox(), conduits(), (number, slot)) };
    let child = child.map_err(|error| refused(&error))?;
    _ = CHILD.set(child);
    let main = Box::into_raw(Box::new(Main { child, env: env.0 }));
    // SAFETY: the loop is this thread's; `main` is never freed, as the descriptor is never closed: both end
    // with the process.
    let watch = unsafe { Watch::open(uv_loop.cast(), main.cast(), descriptor, on_ready) };
    let watch = watch.ok_or_else(|| wrong("the event loop refuses the descriptor"))?;
    // SAFETY: inside a call; the hook is called once, with what it is given here.
    unsafe {
        let watch = Box::into_raw(Box::new(watch)).cast();
        sys::napi_add_env_cleanup_hook(env.0, Some(close), watch);
    }
    Ok(own)
}

/// In the main thread of a process that is a worker: two channels of its own, by their numbers, continue as
/// two of its parent. What is put into `leaving` is taken from `to` there, and what is put into `from` there
/// is taken from `arriving`.
fn link_channels(leaving: u32, arriving: u32, to: u32, from: u32) -> Outcome<()> {
    let child = CHILD.get().ok_or_else(|| wrong("not a process of a zone"))?;
    child.open([leaving, arriving], [from, to]);
    Ok(())
}

struct Main {
    child: &'static Child,
    env: sys::napi_env,
}

unsafe extern "C" fn on_ready(handle: *mut c_void, _: c_int, _: c_int) {
    // SAFETY: the data with which the handle was opened; never freed. Bridges outlive the environment's
    // handles, and the reference ends before JavaScript can run.
    unsafe {
        let main = &*uv::data_of(handle).cast::<Main>();
        // Awake before anything is submitted: nobody has to wake this thread.
        if let Some(bridge) = thread::first(main.env).as_mut() {
            bridge.wake_up();
        }
        main.child.receive();
    }
}

unsafe extern "C" fn close(data: *mut c_void) {
    // SAFETY: made in link_join; called once.
    unsafe { Box::from_raw(data.cast::<Watch>()) }.close();
}
