//! The functions of locks, semaphores, channels and counters: conversions.
//!
//! Only `syncWait` blocks, and for 10 ms at most: a thread can be ended only between native calls.

use std::time::Duration;

use corespun_bridge::Misuse;
use corespun_store::{
    ThreadState,
    named::{SYNC_OBJECTS, Text},
};

use crate::{exports, hot_exports, js::Function, thread_state};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    sync_make, sync_number, sync_names, sync_open, sync_drop, sync_forget, sync_count, sync_amount,
    sync_wait, sync_unwait, semaphore_acquire, semaphore_cancel, semaphore_counts, channel_put_large,
    channel_cancel, channel_close, channel_length,
};

/// These read and write the words of the scratch buffers.
pub const HOT: &[(&str, Function)] = hot_exports![thread_state::hot;
    semaphore_try: ThreadState::semaphore_try,
    semaphore_release: ThreadState::semaphore_release,
    channel_put: |state| state.channel_put(None),
    channel_take: ThreadState::channel_take,
    channel_fetch: ThreadState::channel_fetch,
    counter_do: ThreadState::count,
];

/// Longest time that one call blocks: a thread can end only after the call.
const SLICE_MS_MAX: f64 = 10.0;

/// The number of a new object; 0 if the name is taken.
fn sync_make(kind: u32, name: Text, amount: f64, named: bool) -> u32 {
    SYNC_OBJECTS.make(kind, named.then_some(name), amount).unwrap_or(0)
}

/// The number of the object with that name; 0 if there is no such object.
fn sync_number(kind: u32, name: Text) -> u32 {
    SYNC_OBJECTS.number(kind, name).unwrap_or(0)
}

/// The first names of that kind, in order, at most `most`.
fn sync_names(kind: u32, most: u32) -> Vec<Text> {
    SYNC_OBJECTS.names(kind, most as usize)
}

/// This thread's handle; -1 if there is no such object.
fn sync_open(state: &mut ThreadState, number: u32) -> i32 {
    state.open_object(number).map_or(-1, u32::cast_signed)
}

/// Close this thread's handle.
fn sync_drop(state: &mut ThreadState, handle: u32) {
    state.drop_object(handle);
}

/// Refuse to open it from now on; open handles stay valid.
fn sync_forget(number: u32) {
    SYNC_OBJECTS.forget(number);
}

/// The number of objects that can be opened; for leak checks.
fn sync_count() -> u32 {
    SYNC_OBJECTS.count() as u32
}

/// A semaphore's permits, or a channel's capacity in messages.
fn sync_amount(state: &mut ThreadState, handle: u32) -> Result<f64, Misuse> {
    state.object(handle).map(|object| object.amount())
}

/// As semaphoreTry, but joins the queue.
fn semaphore_acquire(
    state: &mut ThreadState,
    handle: u32,
    ticket: u32,
    amount: u32,
    blocks: bool,
) -> Result<u32, Misuse> {
    Ok(state.semaphore_acquire(handle, ticket, amount, blocks)? as u32)
}

/// Leave the queue; 0: the permits have arrived already.
fn semaphore_cancel(state: &mut ThreadState, handle: u32, ticket: u32) -> Result<bool, Misuse> {
    Ok(state.semaphore(handle)?.cancel(state.thread(), ticket))
}

/// The number of free permits, or of waiting calls.
fn semaphore_counts(state: &mut ThreadState, handle: u32, waiting: bool) -> Result<u32, Misuse> {
    let (free, waits) = state.semaphore(handle)?.counts();
    Ok(if waiting { waits as u32 } else { free })
}

/// Block until a fact arrives, 10 ms at most; the fact, or 0.
fn sync_wait(state: &mut ThreadState, ticket: u32, slice_ms: f64, spins: bool) -> u32 {
    // NaN becomes 0.
    let slice_ms = if slice_ms > 0.0 { slice_ms.min(SLICE_MS_MAX) } else { 0.0 };
    let slice = Duration::from_secs_f64(slice_ms / 1000.0);
    state.parker().wait(ticket, slice, spins).map_or(0, |fact| fact as u32)
}

/// Drop the fact that has arrived, if any, and return it, or 0.
fn sync_unwait(state: &mut ThreadState, ticket: u32) -> u32 {
    state.parker().forget(ticket).map_or(0, |fact| fact as u32)
}

/// As channelPut, with the bytes as an argument, not in the scratch buffer.
fn channel_put_large(state: &mut ThreadState, bytes: &[u8]) -> Result<(), Misuse> {
    state.channel_put(Some(bytes))
}

/// Withdraw a message that waits for capacity; 0: it is queued already.
fn channel_cancel(state: &mut ThreadState, handle: u32, ticket: u32) -> Result<bool, Misuse> {
    Ok(state.channel(handle)?.cancel_put(state.thread(), ticket))
}

/// Refuse further messages.
fn channel_close(state: &mut ThreadState, handle: u32) -> Result<(), Misuse> {
    state.channel(handle).map(|channel| channel.close())
}

/// The number of messages in the queue; -1 if it is closed and empty.
fn channel_length(state: &mut ThreadState, handle: u32) -> Result<f64, Misuse> {
    let channel = state.channel(handle)?;
    Ok(if channel.is_closed() && channel.is_empty() { -1.0 } else { channel.len() as f64 })
}
