//! The functions of locks, semaphores, channels and counters: conversions.
//!
//! Only `syncWait` blocks, and for 10 ms at most: a thread can be ended only between native calls.

use std::{sync::Arc, time::Duration};

use corespun_store::{
    ThreadState,
    named::{SYNC_OBJECTS, Text},
};
use napi_sys as sys;

use crate::{function, js::Value, thread_state};

/// Longest time that one call blocks: a thread can end only after the call.
const SLICE_MAX: Duration = Duration::from_millis(10);

function! {
    /// syncMake(kind, name, amount, named): the number of a new object; 0 if the name is taken.
    make(kind: u32, name: Text, amount: f64, named: bool) |env| {
        SYNC_OBJECTS.make(kind, named.then_some(name), amount).unwrap_or(0)
    }
}

function! {
    /// syncNumber(kind, name): the number of the object with that name; 0 if there is no such object.
    number(kind: u32, name: Text) |env| SYNC_OBJECTS.number(kind, name).unwrap_or(0)
}

function! {
    /// syncNames(kind, most): the first names of that kind, in order, at most `most`.
    names(kind: u32, most: u32) |env| {
        env.texts(SYNC_OBJECTS.names(kind, most as usize).iter().map(|name| &name[..]))
    }
}

function! {
    /// syncOpen(number): this thread's handle; -1 if there is no such object.
    open(number: u32) |env, state| state.open_object(number).map_or(-1, |handle| handle as i32)
}

function! {
    /// syncDrop(handle): close this thread's handle.
    drop_handle(handle: u32) |env, state| state.drop_object(handle)
}

function! {
    /// syncForget(number): refuse to open it from now on; open handles stay valid.
    forget(number: u32) |env| SYNC_OBJECTS.forget(number)
}

function! {
    /// syncCount(): the number of objects that can be opened; for leak checks.
    count() |env| SYNC_OBJECTS.count() as u32
}

function! {
    /// syncAmount(handle): a semaphore's permits, or a channel's capacity in messages.
    amount(handle: u32) |env, state| state.object(handle)?.amount()
}

/// semaphoreTry(): status.
pub unsafe extern "C" fn semaphore_try(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, ThreadState::semaphore_try)
}

/// semaphoreRelease(): release permits; writes nothing.
pub unsafe extern "C" fn semaphore_release(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, ThreadState::semaphore_release)
}

function! {
    /// semaphoreAcquire(handle, ticket, amount, blocks): as semaphoreTry, but joins the queue.
    semaphore_acquire(handle: u32, ticket: u32, amount: u32, blocks: bool) |env, state| {
        state.semaphore_acquire(handle, ticket, amount, blocks)? as u32
    }
}

function! {
    /// semaphoreCancel(handle, ticket): leave the queue; 0: the permits have arrived already.
    semaphore_cancel(handle: u32, ticket: u32) |env, state| {
        u32::from(state.semaphore(handle)?.cancel(state.thread(), ticket))
    }
}

function! {
    /// semaphoreCounts(handle, waiting): the number of free permits, or of waiting calls.
    semaphore_counts(handle: u32, waiting: bool) |env, state| {
        let (free, waits) = state.semaphore(handle)?.counts();
        if waiting { waits as u32 } else { free }
    }
}

function! {
    /// syncWait(ticket, sliceMs, spins): block until a fact arrives, 10 ms at most; the fact, or 0.
    wait(ticket: u32, slice_ms: f64, spins: bool) |env, state| {
        let parker = Arc::clone(state.parker());
        let slice = Duration::from_secs_f64(slice_ms.max(0.0) / 1000.0).min(SLICE_MAX);
        parker.wait(ticket, slice, spins).map_or(0, |fact| fact as u32)
    }
}

function! {
    /// syncUnwait(ticket): drop the fact that has arrived, if any, and return it, or 0.
    unwait(ticket: u32) |env, state| state.parker().forget(ticket).map_or(0, |fact| fact as u32)
}

/// channelPut(): status.
pub unsafe extern "C" fn channel_put(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, |state| state.channel_put(None))
}

function! {
    /// channelPutLarge(bytes): as channelPut, with the bytes as an argument, not in the scratch buffer.
    channel_put_large(bytes: &[u8]) |env, state| state.channel_put(Some(bytes))?
}

/// channelTake(): status, length; then the message.
pub unsafe extern "C" fn channel_take(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, ThreadState::channel_take)
}

/// channelFetch(): status, length; then the message that is reserved for this taker.
pub unsafe extern "C" fn channel_fetch(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, ThreadState::channel_fetch)
}

function! {
    /// channelCancel(handle, ticket): withdraw a message that waits for capacity; 0: it is queued already.
    channel_cancel(handle: u32, ticket: u32) |env, state| {
        u32::from(state.channel(handle)?.cancel_put(state.thread(), ticket))
    }
}

function! {
    /// channelClose(handle): refuse further messages.
    channel_close(handle: u32) |env, state| state.channel(handle)?.close()
}

function! {
    /// channelLength(handle): the number of messages in the queue; -1 if it is closed and empty.
    channel_length(handle: u32) |env, state| {
        let channel = state.channel(handle)?;
        if channel.is_closed() && channel.is_empty() { -1.0 } else { channel.len() as f64 }
    }
}

/// counterDo(): status, and the counter's previous value.
pub unsafe extern "C" fn counter_do(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, ThreadState::count)
}
