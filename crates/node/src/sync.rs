//! Locks, semaphores, channels and counters as JavaScript sees them: conversions.
//!
//! Only `syncWait` blocks, and for 10 ms at most: a thread can be ended only between native calls.

use std::{sync::Arc, time::Duration};

use corespun_store::{
    Stage,
    named::{THINGS, Text},
};
use napi_sys as sys;

use crate::{function, js::Value, stage};

/// Longest time that one call blocks: a thread that is being ended waits for it.
const SLICE_MAX: Duration = Duration::from_millis(10);

function! {
    /// syncMake(kind, name, amount, named): the number of the thing with that name, made if there is none.
    make(kind: u32, name: Text, amount: f64, named: bool) |env| {
        THINGS.make(kind, named.then_some(name), amount)
    }
}

function! {
    /// syncOpen(number): this thread's handle; -1 when there is no such thing.
    open(number: u32) |env, stage| stage.open_thing(number).map_or(-1, |handle| handle as i32)
}

function! {
    /// syncDrop(handle): this thread no longer uses it.
    drop_handle(handle: u32) |env, stage| stage.drop_thing(handle)
}

function! {
    /// syncForget(number): nobody else may open it any more; threads that have it keep it.
    forget(number: u32) |env| THINGS.forget(number)
}

function! {
    /// syncCount(): things that can be opened; for leak checks.
    count() |env| THINGS.count() as u32
}

function! {
    /// syncAmount(handle): its permits, or the most messages it holds.
    amount(handle: u32) |env, stage| stage.thing(handle)?.amount()
}

/// gateTry(): status.
pub unsafe extern "C" fn gate_try(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    stage::hot(env, Stage::try_enter)
}

/// gateLeave(): nothing.
pub unsafe extern "C" fn gate_leave(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    stage::hot(env, Stage::leave)
}

function! {
    /// gateEnter(handle, ticket, amount, blocks): as gateTry, but waits in line.
    gate_enter(handle: u32, ticket: u32, amount: u32, blocks: bool) |env, stage| {
        stage.enter(handle, ticket, amount, blocks)? as u32
    }
}

function! {
    /// gateCancel(handle, ticket): leave the line; 0: the permits have come already.
    gate_cancel(handle: u32, ticket: u32) |env, stage| {
        u32::from(stage.gate(handle)?.cancel(stage.owner(), ticket))
    }
}

function! {
    /// gateCounts(handle, waiting): permits free, or calls that wait.
    gate_counts(handle: u32, waiting: bool) |env, stage| {
        let (free, waits) = stage.gate(handle)?.counts();
        if waiting { waits as u32 } else { free }
    }
}

function! {
    /// syncWait(ticket, sliceMs, spins): block for a fact, 10 ms at most; the fact, or 0.
    wait(ticket: u32, slice_ms: f64, spins: bool) |env, stage| {
        let parker = Arc::clone(stage.parker());
        let slice = Duration::from_secs_f64(slice_ms.max(0.0) / 1000.0).min(SLICE_MAX);
        parker.wait(ticket, slice, spins).map_or(0, |fact| fact as u32)
    }
}

function! {
    /// syncUnwait(ticket): drop the fact that has arrived, if any, and return it, or 0.
    unwait(ticket: u32) |env, stage| stage.parker().forget(ticket).map_or(0, |fact| fact as u32)
}

/// channelPut(): status.
pub unsafe extern "C" fn channel_put(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    stage::hot(env, |stage| stage.channel_put(None))
}

function! {
    /// channelPutLarge(bytes): channelPut with bytes of their own memory.
    channel_put_large(bytes: &[u8]) |env, stage| stage.channel_put(Some(bytes))?
}

/// channelTake(): status, length; then the message.
pub unsafe extern "C" fn channel_take(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    stage::hot(env, Stage::channel_take)
}

/// channelFetch(): status, length; then the message set aside for a taker.
pub unsafe extern "C" fn channel_fetch(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    stage::hot(env, Stage::channel_fetch)
}

function! {
    /// channelCancel(handle, ticket): take a message back that waits for room; 0: it is in the queue already.
    channel_cancel(handle: u32, ticket: u32) |env, stage| {
        u32::from(stage.channel(handle)?.cancel_put(stage.owner(), ticket))
    }
}

function! {
    /// channelClose(handle): no more messages.
    channel_close(handle: u32) |env, stage| stage.channel(handle)?.close()
}

function! {
    /// channelLength(handle): messages in the queue; -1 when it is closed and empty.
    channel_length(handle: u32) |env, stage| {
        let channel = stage.channel(handle)?;
        if channel.is_closed() && channel.is_empty() { -1.0 } else { channel.len() as f64 }
    }
}

/// counterDo(): status, and what the counter was.
pub unsafe extern "C" fn counter_do(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    stage::hot(env, Stage::count)
}
