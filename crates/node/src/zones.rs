//! The functions of a zone: make, find, broadcast, cancel, close, and those that only its owner calls.
//!
//! Each performs one operation of the core's zone; crates/bridge/README.md describes the effects on calls in
//! flight. A zone's `number` is the process's, its `handle` this thread's.

use std::{sync::Arc, time::Duration};

use corespun_bridge::{
    Attachments, Bridge, Grown, Mail, Misuse, Status,
    buffers::Attached,
    clock, decode_plan,
    layout::mail,
    registry::{self, Text},
    signals,
};

use crate::{
    exports,
    js::{Env, Function, NumberOrBytes, Outcome, Reply, put_numbers, wrong},
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    zone_make, zone_over, zone_grow, zone_shrink, zone_ready, zone_ready_cancel, zone_workers, zone_open,
    zone_number, zone_settings, zone_id, zone_ids, zone_drop, zone_counts, cancel, zone_tell, zone_overdue,
    broadcast, broadcast_sync, broadcast_wait, zone_close, zone_reload, zone_reloaded, zone_retire,
    zone_refuse, zone_forget,
    zone_weaken, zone_unused, zone_closing, attach, detach, worker_gone, renice, thread_cpu_ns, tick_ns,
    cores, worker_add, zone_end, zone_fail, zone_error, zone_failure, zone_running, kick, attach_buffers,
    signal_make, signal_listen, zone_ending,
};

/// Make a zone by the numbers of `layout::plan`. Returns this thread's handle, -1 if the name is taken.
fn zone_make(bridge: &mut Bridge, id: Text, settings: Text, plan: Vec<f64>) -> Outcome<i32> {
    let (limits, plan) = decode_plan(&plan).ok_or_else(|| wrong("the plan of a zone has other numbers"))?;
    Ok(bridge.open_zone(registry::make_zone(id, settings, limits, plan)))
}

/// Let the zone close when no thread has a handle on it any more, but its own workers.
fn zone_weaken(bridge: &mut Bridge, handle: u32) -> Result<(), Misuse> {
    bridge.weaken_zone(handle)
}

/// Called by the owner on that mail: 1 if no thread has opened it meanwhile; then it has begun to close.
fn zone_unused(number: u32) -> bool {
    registry::close_unused(number)
}

/// 1 if the zone has ended or its number is not in use.
fn zone_over(number: u32) -> bool {
    registry::zone(number).is_none_or(|entry| entry.zone.is_over())
}

/// Called by the owner: 1 if the zone ends with its last worker.
fn zone_ending(number: u32) -> bool {
    registry::zone(number).is_none_or(|entry| entry.zone.is_ending())
}

/// Called by the owner on mail that requests more workers. Returns 0: done; 1: call again soon; 2: workers
/// were requested, call again.
fn zone_grow(number: u32) -> i32 {
    let Some(entry) = registry::zone(number) else { return 0 };
    match entry.zone.grow() {
        Grown::Calm | Grown::Full => 0,
        Grown::NotYet => 1,
        Grown::Add(count) => {
            (0..count).for_each(|_| _ = registry::start_worker(&entry));
            2
        }
    }
}

/// Dismiss workers that have slept for `idle_ms`. Returns uint32: ms until the next check (0: none), then the
/// slots of the dismissed workers; empty if there is no such zone.
fn zone_shrink(number: u32, idle_ms: f64) -> Vec<u32> {
    registry::zone(number).map_or_else(Vec::new, |entry| entry.zone.shrink(idle_ms * 1e6).encode())
}

/// Wait until the first workers have started and the queue has capacity. Returns 1: they have and it has; 0:
/// `call` ends then; below 0 a refusal.
fn zone_ready(bridge: &mut Bridge, handle: u32, call: u32) -> Result<i32, Misuse> {
    bridge.await_capacity(handle, call)
}

/// Stop waiting. Returns 1: `call` is over; 0: it is being returned.
fn zone_ready_cancel(bridge: &mut Bridge, handle: u32, call: u32) -> Result<bool, Misuse> {
    bridge.stop_awaiting_capacity(handle, call)
}

/// 22 float64 for each worker: slot, waiting, running, ended, failed, stolen, wakeUps, utilisation; then its
/// times as zoneCounts writes them.
fn zone_workers(bridge: &mut Bridge, handle: u32) -> Result<Vec<f64>, Misuse> {
    Ok(bridge.zone(handle)?.worker_counts().iter().flat_map(|worker| worker.encode()).collect())
}

/// A handle for a zone made by any thread, -1 if no zone has that name.
fn zone_open(bridge: &mut Bridge, id: Text) -> i32 {
    bridge.open_zone(registry::find_zone(&id))
}

/// Its number in the process.
fn zone_number(bridge: &mut Bridge, handle: u32) -> Result<u32, Misuse> {
    bridge.zone(handle).map(|zone| zone.number())
}

/// Its settings as zoneMake received them; `undefined` if there is no such zone.
fn zone_settings(number: u32) -> Option<Text> {
    registry::zone(number).map(|entry| entry.settings.clone())
}

/// Its name; `undefined` if there is no such zone.
fn zone_id(number: u32) -> Option<Text> {
    registry::zone(number).map(|entry| entry.id.clone())
}

/// The names of all zones, separated by a zero character.
fn zone_ids() -> Text {
    registry::zone_ids().join(&0).into()
}

/// Close the handle.
fn zone_drop(bridge: &mut Bridge, handle: u32) {
    bridge.drop_zone(handle);
}

/// Write the zone's `layout::COUNTS` numbers: those of `Counts::encode`.
fn zone_counts(bridge: &mut Bridge, handle: u32, counts: &mut [u8]) -> Outcome<()> {
    put_numbers(counts, &bridge.zone(handle)?.counts().encode())
}

/// Cancel a call in flight. Returns 0: it had not started and is over; 1: it runs, and mail was sent to its
/// worker, with `note`, and to the owner, who replaces the worker if it goes on; 2: it has ended and its
/// result is being returned; 3: it had not started, never will, and ends soon.
fn cancel(bridge: &mut Bridge, handle: u32, call: u32, note: u32) -> Result<i32, Misuse> {
    bridge.cancel(handle, call, note)
}

/// Send the workers of all running tasks the mail of a cancellation, with `note`.
fn zone_tell(number: u32, note: u32) {
    if let Some(entry) = registry::zone(number) {
        entry.zone.cancel_running(mail::ABORT, note);
    }
}

/// Find workers that still run a task `grace_ms` after its cancellation; they take no further task. Returns
/// uint32: ms until the next check (0: none), then their slots; empty if there is no such zone.
fn zone_overdue(number: u32, grace_ms: f64) -> Vec<u32> {
    registry::zone(number).map_or_else(Vec::new, |entry| entry.zone.overdue(grace_ms * 1e6).encode())
}

/// Call a function in every worker; `call` ends when all have run it. Returns 0 or a refusal.
fn broadcast(
    bridge: &mut Bridge,
    handle: u32,
    function_number: u32,
    bytes: &[u8],
    call: u32,
) -> Result<i32, Misuse> {
    bridge.broadcast(handle, function_number, bytes, call)
}

/// As broadcast, for a caller that blocks. Returns a number for broadcastWait, or a refusal below 0.
fn broadcast_sync(
    bridge: &mut Bridge,
    handle: u32,
    function_number: u32,
    bytes: &[u8],
) -> Result<i32, Misuse> {
    bridge.broadcast_sync(handle, function_number, bytes)
}

/// Wait for `slice_us`, 10 ms at most; 0: for the last time. Returns -1: not yet; 0: all have run it; else
/// the bytes of the first error.
fn broadcast_wait(env: Env, bridge: &mut Bridge, number: u32, slice_us: u32) -> Outcome<NumberOrBytes> {
    match bridge.broadcast_wait(number, Duration::from_micros(slice_us.into()))? {
        None => (-1).value(env),
        Some(Ok(())) => 0.value(env),
        Some(Err(bytes)) => bytes.value(env),
    }
}

/// Refuse new calls and dismiss the workers when all accepted ones have ended; `call` ends then. Returns 0 if
/// the last worker has left already.
fn zone_close(bridge: &mut Bridge, handle: u32, call: u32) -> Result<bool, Misuse> {
    bridge.close_zone(handle, call)
}

/// Wait until new workers have replaced those of the moment; `call` ends then. Returns 0 or a refusal.
fn zone_reload(bridge: &mut Bridge, handle: u32, call: u32) -> Result<i32, Misuse> {
    bridge.reload_zone(handle, call)
}

/// Called by the owner: the `count` oldest calls of zoneReload end with that status and error.
fn zone_reloaded(number: u32, count: u32, status: u32, error: &[u8]) {
    if let Some(entry) = registry::zone(number) {
        entry.zone.reloaded(count as usize, Status::of_number(status), error);
    }
}

/// Called by the owner: the worker leaves when its tasks have ended, and is replaced.
fn zone_retire(number: u32, slot: u32) {
    if let Some(entry) = registry::zone(number) {
        entry.zone.retire(slot, mail::RETIRE);
    }
}

/// End every call that has not started.
fn zone_refuse(number: u32) {
    if let Some(entry) = registry::zone(number) {
        entry.zone.refuse_waiting(Status::Closed, &[]);
    }
}

/// Called by the owner when the zone is closed and empty: frees its name.
fn zone_forget(number: u32) {
    registry::forget_zone(number);
}

/// Become that worker. Returns 0 if there is no such zone or slot.
fn attach(bridge: &mut Bridge, number: u32, slot: u32) -> bool {
    bridge.attach(number, slot)
}

/// This thread stops being a worker; its zone has let it leave.
fn detach(bridge: &mut Bridge) {
    bridge.detach();
}

/// 1 if the zone begins nothing new: it closes, or has ended.
fn zone_closing(number: u32) -> bool {
    registry::zone(number).is_none_or(|entry| entry.zone.is_closing())
}

/// Called by the owner when a worker has ended: its running tasks return with that status and reason. Returns
/// their number.
fn worker_gone(number: u32, slot: u32, status: u32, reason: &[u8]) -> u32 {
    registry::zone(number)
        .map_or(0, |entry| entry.zone.slot_ended(slot, Status::of_number(status), reason) as u32)
}

/// Raise this thread's nice value by `steps` and request long time slices.
fn renice(bridge: &mut Bridge, steps: u32) {
    bridge.renice(i32::try_from(steps).unwrap_or(i32::MAX));
}

/// The CPU time that this thread has used, in nanoseconds.
fn thread_cpu_ns() -> f64 {
    clock::thread_cpu_ns()
}

/// How many threads of this process may run at once: by its cores, their mask, and the quota of its control
/// group.
fn cores() -> u32 {
    registry::machine().cores()
}

/// Nanoseconds of a tick of the core's clock.
fn tick_ns() -> f64 {
    clock::tick_ns()
}

/// Request one more worker from the owner. Returns 0 if the zone is closing.
fn worker_add(number: u32) -> bool {
    registry::zone(number).is_some_and(|entry| registry::start_worker(&entry))
}

/// Called by each closer when the zone has ended. Returns 1 for the first call.
fn zone_end(bridge: &mut Bridge, handle: u32) -> Result<bool, Misuse> {
    bridge.zone(handle).map(|zone| zone.is_first_to_report())
}

/// Called when its workers cannot be started: all waiting calls end as died, with that reason.
fn zone_fail(number: u32, reason: &[u8]) {
    if let Some(entry) = registry::zone(number) {
        entry.zone.finish(Status::Died, reason);
    }
}

/// Count an error of a worker that no caller of a task receives.
fn zone_error(number: u32) {
    if let Some(entry) = registry::zone(number) {
        entry.zone.count_error();
    }
}

/// The reason that zoneFail received, `undefined` if the zone has not failed.
fn zone_failure(bridge: &mut Bridge, handle: u32) -> Result<Option<Box<[u8]>>, Misuse> {
    bridge.zone(handle).map(|zone| zone.failure())
}

/// Float64: the number of the main thread's mailbox, then what `Zone::running_tasks` has; empty if there is
/// no such zone.
fn zone_running(id: Text) -> Vec<f64> {
    registry::find_zone(&id).map_or_else(Vec::new, |entry| {
        let main = f64::from(registry::main_number());
        std::iter::once(main).chain(entry.zone.running_tasks()).collect()
    })
}

/// Send the zone's owner mail of that kind.
fn kick(number: u32, kind: u32) {
    if let Some(entry) = registry::zone(number) {
        entry.owner.send(Mail { kind, subject: number, facts: [0, 0] });
    }
}

/// Attach buffers to the next bytes that are sent, which take over one reference of each.
fn attach_buffers(bridge: &mut Bridge, ids: Vec<u32>) {
    let attached = Attached::new(ids);
    bridge.attach_buffers(Attachments { moved: attached.moved(), kept: Box::new(attached) });
}

/// Make an abort signal of this thread; returns its number.
fn signal_make(bridge: &mut Bridge) -> u32 {
    signals::make(bridge.mailbox())
}

/// Send this thread mail when the signal fires. Returns the reason if it has fired.
fn signal_listen(bridge: &mut Bridge, number: u32) -> Option<Arc<[u8]>> {
    signals::listen(number, bridge.mailbox())
}
