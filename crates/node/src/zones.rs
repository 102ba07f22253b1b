//! The functions of a zone: make, find, broadcast, cancel, close, and those that only its owner calls.
//!
//! Each performs one operation of the core's zone; crates/bridge/README.md describes the effects on calls in
//! flight. A zone's `number` is the process's, its `handle` this thread's.

use std::{sync::Arc, time::Duration};

use corespun_bridge::{
    Cancellation, Grown, Mail, Refusal, Status, Task, Worker, Zone, decode_plan,
    layout::{cancelled, mail},
    registry::{self, Entry, Text},
    signals,
};

use crate::{
    buffers::Attached,
    calls::{self, refusal},
    exports,
    js::{Env, Function, Outcome, Reply, Value, put_numbers, wrong},
    thread::Thread,
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    zone_make, zone_over, zone_grow, zone_shrink, zone_ready, zone_ready_cancel, zone_workers, zone_open,
    zone_number, zone_settings, zone_id, zone_ids, zone_drop, zone_counts, cancel, zone_tell, zone_overdue,
    broadcast, broadcast_sync, broadcast_wait, zone_close, zone_refuse, zone_forget, attach, worker_gone,
    renice, worker_add, zone_end, zone_fail, zone_error, zone_failure, kick, attach_buffers, signal_make,
    signal_listen,
};

impl Thread {
    fn zone(&self, handle: u32) -> Outcome<&Arc<Zone>> {
        self.zones.get(handle).ok_or_else(|| wrong("no such zone"))
    }

    fn open_zone(&mut self, entry: Option<Arc<Entry>>) -> i32 {
        entry.map_or(-1, |entry| self.zones.put(Arc::clone(&entry.zone)).cast_signed())
    }
}

/// Pass `task` to `zone` by `pass`, which returns whether the task was sent. Until the task returns, a worker
/// may run one more task, since what the task waits for may have to run on this worker, also through another
/// zone.
///
/// The worker may belong to another copy of the package: then it is notified as well, and woken once the task
/// was sent.
fn wait_for(
    thread: &mut Thread,
    zone: &std::sync::Arc<Zone>,
    task: &'static Task,
    pass: impl FnOnce(&Zone) -> Result<bool, Refusal>,
) -> Result<bool, Refusal> {
    let note = |worker: &mut Worker| worker.wait_for(task);
    let here = thread.worker.as_mut().map(note).is_some();
    let elsewhere = !here && thread.elsewhere(note).is_some();
    let waits = pass(zone);
    if waits == Ok(true) {
        thread.sent();
    } else if let Some(worker) = thread.worker.as_mut().filter(|_| here) {
        worker.unwait(task);
    }
    if elsewhere {
        // This also wakes the worker, which can now find the task.
        thread.elsewhere(|worker| {
            if waits != Ok(true) {
                worker.unwait(task);
            }
        });
    }
    waits
}

/// Take the attachments of the next bytes, and the bytes of memory that move with them.
fn take_attachments(thread: &mut Thread) -> (usize, Option<Box<dyn std::any::Any + Send + Sync>>) {
    let attached = thread.attachments.take();
    (attached.as_ref().map_or(0, Attached::moved), attached.map(|attached| Box::new(attached) as _))
}

/// Make a zone by the numbers of `layout::plan`. Returns this thread's handle, -1 if the name is taken.
fn zone_make(thread: &mut Thread, id: Text, settings: Text, plan: Vec<f64>) -> Outcome<i32> {
    let (limits, plan) = decode_plan(&plan).ok_or_else(|| wrong("the plan of a zone has other numbers"))?;
    Ok(thread.open_zone(registry::make_zone(id, settings, limits, plan)))
}

/// 1 if the zone has ended or its number is not in use.
fn zone_over(number: u32) -> bool {
    registry::zone(number).is_none_or(|entry| entry.zone.is_over())
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
fn zone_ready(thread: &mut Thread, handle: u32, call: u32) -> Outcome<i32> {
    let task = thread.receiver.task(call);
    let zone = Arc::clone(thread.zone(handle)?);
    let waits = wait_for(thread, &zone, task, |zone| zone.await_capacity(task).map(|now| !now));
    Ok(waits.map_or_else(refusal, |waits| i32::from(!waits)))
}

/// Stop waiting. Returns 1: `call` is over; 0: it is being returned.
fn zone_ready_cancel(thread: &mut Thread, handle: u32, call: u32) -> Outcome<bool> {
    let task = thread.receiver.task(call);
    let left = thread.zone(handle)?.stop_awaiting_capacity(task);
    if left {
        thread.put_away(task);
    }
    Ok(left)
}

/// 22 float64 for each worker: slot, waiting, running, ended, failed, stolen, wakeUps, utilisation; then its
/// times as zoneCounts writes them.
fn zone_workers(thread: &mut Thread, handle: u32) -> Outcome<Vec<f64>> {
    Ok(thread.zone(handle)?.worker_counts().iter().flat_map(|worker| worker.encode()).collect())
}

/// A handle for a zone made by any thread, -1 if no zone has that name.
fn zone_open(thread: &mut Thread, id: Text) -> i32 {
    thread.open_zone(registry::find_zone(&id))
}

/// Its number in the process.
fn zone_number(thread: &mut Thread, handle: u32) -> Outcome<u32> {
    thread.zone(handle).map(|zone| zone.number())
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
fn zone_drop(thread: &mut Thread, handle: u32) {
    thread.zones.take(handle);
}

/// Write the zone's `layout::COUNTS` numbers: those of `Counts::encode`.
fn zone_counts(thread: &mut Thread, handle: u32, counts: &mut [u8]) -> Outcome<()> {
    put_numbers(counts, &thread.zone(handle)?.counts().encode())
}

/// Cancel a call in flight. Returns 0: it had not started and is over; 1: it runs, and mail was sent to its
/// worker, with `note`, and to the owner, who replaces the worker if it goes on; 2: it has ended and its
/// result is being returned; 3: it had not started, never will, and ends soon.
fn cancel(thread: &mut Thread, handle: u32, call: u32, note: u32) -> Outcome<i32> {
    let task = thread.receiver.task(call);
    let zone = Arc::clone(thread.zone(handle)?);
    Ok(match zone.cancel(task, mail::ABORT, note) {
        Cancellation::Cancelled => {
            thread.put_away(task);
            cancelled::OVER
        }
        Cancellation::Running { .. } => {
            registry::task_cancelled(zone.number(), false);
            cancelled::RUNNING
        }
        Cancellation::Ended => cancelled::ENDED,
        Cancellation::Skipped => cancelled::SKIPPED,
    })
}

/// Send the workers of all running tasks the mail of a cancellation, with `note`.
fn zone_tell(thread: &mut Thread, handle: u32, note: u32) -> Outcome<()> {
    thread.zone(handle).map(|zone| zone.cancel_running(mail::ABORT, note))
}

/// Find workers that still run a task `grace_ms` after its cancellation; they take no further task. Returns
/// uint32: ms until the next check (0: none), then their slots; empty if there is no such zone.
fn zone_overdue(number: u32, grace_ms: f64) -> Vec<u32> {
    registry::zone(number).map_or_else(Vec::new, |entry| entry.zone.overdue(grace_ms * 1e6).encode())
}

/// Call a function in every worker; `call` ends when all have run it. Returns 0 or a refusal.
fn broadcast(
    thread: &mut Thread,
    handle: u32,
    function_number: u32,
    bytes: &[u8],
    call: u32,
) -> Outcome<i32> {
    let (moved, attachments) = take_attachments(thread);
    let task = thread.receiver.task(call);
    let zone = Arc::clone(thread.zone(handle)?);
    let made = wait_for(thread, &zone, task, |zone| {
        zone.broadcast(function_number, bytes, moved, attachments, Some(task)).map(|_| true)
    });
    Ok(made.map_or_else(refusal, |_| 0))
}

/// As broadcast, for a caller that blocks. Returns a number for broadcastWait, or a refusal below 0.
fn broadcast_sync(thread: &mut Thread, handle: u32, function_number: u32, bytes: &[u8]) -> Outcome<i32> {
    let (moved, attachments) = take_attachments(thread);
    let made = thread.zone(handle)?.broadcast(function_number, bytes, moved, attachments, None);
    Ok(made.map_or_else(refusal, |broadcast| thread.broadcasts.put(broadcast).cast_signed()))
}

/// Wait for `slice_us`, 10 ms at most. Returns -1: not yet; 0: all have run it; else the bytes of the first
/// error.
fn broadcast_wait(env: Env, thread: &mut Thread, number: u32, slice_us: u32) -> Outcome<Value> {
    let broadcast = thread.broadcasts.get(number).ok_or_else(|| wrong("no such broadcast"))?;
    let mut outcome = broadcast.outcome();
    if outcome.is_none() {
        // Bounded: a thread can end only after the call.
        std::thread::sleep(Duration::from_micros(u64::from(slice_us.min(10_000))));
        outcome = broadcast.outcome();
    }
    let Some(outcome) = outcome else { return (-1).value(env) };
    thread.broadcasts.take(number);
    outcome.map_or_else(|| 0.value(env), |failure| failure.bytes.value(env))
}

/// Refuse new calls and dismiss the workers when all accepted ones have ended; `call` ends then. Returns 0 if
/// the last worker has left already.
fn zone_close(thread: &mut Thread, handle: u32, call: u32) -> Outcome<bool> {
    let task = thread.receiver.task(call);
    let waits = thread.zone(handle)?.close(Some(task));
    if waits {
        thread.sent();
    }
    Ok(waits)
}

/// End every call that has not started.
fn zone_refuse(thread: &mut Thread, handle: u32) -> Outcome<()> {
    thread.zone(handle).map(|zone| zone.refuse_waiting(Status::Closed, &[]))
}

/// Called by the owner when the zone is closed and empty: frees its name.
fn zone_forget(number: u32) {
    registry::forget_zone(number);
}

/// Become that worker. Returns 0 if there is no such zone or slot.
fn attach(thread: &mut Thread, number: u32, slot: u32) -> bool {
    let mailbox = thread.receiver.mailbox();
    let worker = registry::zone(number).and_then(|entry| entry.zone.attach(slot, mailbox));
    worker.map(|worker| thread.become_worker(worker)).is_some()
}

/// Called by the owner when a worker has ended: its running tasks return with that status and reason. Returns
/// their number.
fn worker_gone(number: u32, slot: u32, status: u32, reason: &[u8]) -> u32 {
    registry::zone(number)
        .map_or(0, |entry| entry.zone.slot_ended(slot, calls::status(status), reason) as u32)
}

/// Raise this thread's nice value by `steps` and request long time slices.
fn renice(thread: &mut Thread, steps: u32) {
    thread.renice(i32::try_from(steps).unwrap_or(i32::MAX));
}

/// Request one more worker from the owner. Returns 0 if the zone is closing.
fn worker_add(number: u32) -> bool {
    registry::zone(number).is_some_and(|entry| registry::start_worker(&entry))
}

/// Called by each closer when the zone has ended. Returns 1 for the first call.
fn zone_end(thread: &mut Thread, handle: u32) -> Outcome<bool> {
    thread.zone(handle).map(|zone| zone.is_first_to_report())
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
fn zone_failure(thread: &mut Thread, handle: u32) -> Outcome<Option<Box<[u8]>>> {
    thread.zone(handle).map(|zone| zone.failure())
}

/// Send the zone's owner mail of that kind.
fn kick(number: u32, kind: u32) {
    if let Some(entry) = registry::zone(number) {
        entry.owner.send(Mail { kind, subject: number, facts: [0, 0] });
    }
}

/// Attach buffers to the next bytes that are sent, which take over one reference of each.
fn attach_buffers(thread: &mut Thread, ids: Vec<u32>) {
    thread.attachments = Some(Attached::new(ids));
}

/// Make an abort signal of this thread; returns its number.
fn signal_make(thread: &mut Thread) -> u32 {
    signals::make(thread.receiver.mailbox())
}

/// Send this thread mail when the signal fires. Returns the reason if it has fired.
fn signal_listen(thread: &mut Thread, number: u32) -> Option<Arc<[u8]>> {
    signals::listen(number, thread.receiver.mailbox())
}
