//! The functions of a zone: make, find, broadcast, cancel, close, and those that only its owner calls.
//!
//! Each performs one operation of the core's zone; crates/bridge/README.md describes the effects on calls in
//! flight.

use std::time::Duration;

use corespun_bridge::{
    Cancellation, Grown, Limits, Mail, Refusal, Task, Times, Worker, WorkerCounts, Zone,
    layout::{COUNTS, cancelled, mail, plan},
};
use napi_sys as sys;

use crate::{
    buffers::Attached,
    calls,
    js::{Arguments, Env, Outcome, Value, wrong},
    registry::{self, Plan},
    signals,
    thread::{Thread, thread},
};

/// Run `body` with the thread and arguments of a call and turn its error into an exception.
macro_rules! call {
    ($name:ident, $count:literal, |$env:ident, $thread:ident, $given:ident| $body:block, $doc:literal) => {
        #[doc = $doc]
        pub unsafe extern "C" fn $name(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
            let $env = Env(env);
            // SAFETY: napi calls this with its environment and info, on the thread of the function's data.
            let $given = unsafe { Arguments::<$count>::read($env, info) };
            // SAFETY: as above; the reference ends with this call, in which no JavaScript runs.
            let here = unsafe { thread($given.data) };
            let outcome: Outcome<Value> = here.and_then(|$thread: &mut Thread| $body);
            // SAFETY: JavaScript waits for this call, which is over.
            unsafe { crate::buffers::release_retired() };
            match outcome {
                Ok(value) => value,
                Err(thrown) => $env.throw(&thrown),
            }
        }
    };
}

fn opened(thread: &Thread, handle: u32) -> Outcome<&std::sync::Arc<corespun_bridge::Zone>> {
    thread.zones.get(handle as usize).and_then(Option::as_ref).ok_or_else(|| wrong("no such zone"))
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

fn open_zone(thread: &mut Thread, zone: std::sync::Arc<corespun_bridge::Zone>) -> i32 {
    let handle = thread.zones.iter().position(Option::is_none).unwrap_or(thread.zones.len());
    if handle == thread.zones.len() {
        thread.zones.push(None);
    }
    thread.zones[handle] = Some(zone);
    handle as i32
}

call!(
    zone_make,
    4,
    |env, thread, arguments| {
        let (data, length) = env.bytes(arguments[2])?;
        let count = env.u32(arguments[3])?;
        if length != plan::NUMBERS * 8 || count as usize != plan::NUMBERS {
            return Err(wrong("the plan of a zone has other numbers"));
        }
        let number = |index: usize| {
            // SAFETY: within the array's memory, whose length was checked; read before JavaScript runs again.
            f64::from_le_bytes(unsafe { data.add(index * 8).cast::<[u8; 8]>().read_unaligned() })
        };
        let limits = Limits {
            tasks_max: number(plan::TASKS_MAX) as usize,
            task_bytes_max: number(plan::TASK_BYTES_MAX) as usize,
            queue_bytes_max: number(plan::QUEUE_BYTES_MAX) as usize,
            broadcasts_max: number(plan::BROADCASTS_MAX) as usize,
            tasks_per_worker_max: number(plan::TASKS_PER_WORKER_MAX) as usize,
            spin: Duration::from_micros(number(plan::SPIN_US) as u64),
            waiting_per_worker_max: number(plan::WAITING_PER_WORKER_MAX) as usize,
            call_depth_max: number(plan::CALL_DEPTH_MAX) as u32,
        };
        let plan = Plan {
            steals: number(plan::STEALS) > 0.0,
            blocks: number(plan::BLOCKS) > 0.0,
            workers: number(plan::WORKERS) as u32,
            workers_max: number(plan::WORKERS_MAX) as u32,
            patience: Duration::from_micros(number(plan::PATIENCE_US) as u64),
        };
        let made = registry::make_zone(env.string(arguments[0])?, env.string(arguments[1])?, limits, plan);
        Ok(env.int(made.map_or(-1, |entry| open_zone(thread, std::sync::Arc::clone(&entry.zone)))))
    },
    "zoneMake(id, settings, plan, count): make a zone; the plan is `count` float64, in the order of \
    `layout::plan`. Returns this thread's handle, -1 if the name is taken."
);

call!(
    zone_over,
    1,
    |env, _thread, arguments| {
        let entry = registry::zone(env.u32(arguments[0])?);
        Ok(env.int(i32::from(entry.is_none_or(|entry| entry.zone.is_over()))))
    },
    "zoneOver(number): 1 if the zone has ended or its number is not in use."
);

call!(
    zone_grow,
    1,
    |env, _thread, arguments| {
        let Some(entry) = registry::zone(env.u32(arguments[0])?) else { return Ok(env.int(0)) };
        Ok(env.int(match entry.zone.grow() {
            Grown::Calm | Grown::Full => 0,
            Grown::NotYet => 1,
            Grown::Add(count) => {
                (0..count).for_each(|_| _ = registry::start_worker(&entry));
                2
            }
        }))
    },
    "zoneGrow(number): called by the owner on mail that requests more workers. Returns 0: done; 1: call \
    again soon; 2: workers were requested, call again."
);

call!(
    zone_shrink,
    2,
    |env, _thread, arguments| {
        let idle_ns = env.f64(arguments[1])? * 1e6;
        let Some(entry) = registry::zone(env.u32(arguments[0])?) else { return env.copy(&[]) };
        let shrunk = entry.zone.shrink(idle_ns);
        let next_ms = shrunk.next_ns.map_or(0, |ns| (ns / 1e6).ceil() as u32);
        let words: Vec<u8> =
            std::iter::once(next_ms).chain(shrunk.dismissed).flat_map(u32::to_le_bytes).collect();
        env.copy(&words)
    },
    "zoneShrink(number, idleMs): dismiss workers that have slept for `idleMs`. Returns uint32: ms until the \
    next check (0: none), then the slots of the dismissed workers; empty if there is no such zone."
);

call!(
    zone_ready,
    2,
    |env, thread, arguments| {
        let (handle, call) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        let task = thread.receiver.task(call);
        let zone = std::sync::Arc::clone(opened(thread, handle)?);
        let waits = |zone: &Zone| zone.await_capacity(task).map(|now| !now);
        Ok(env.int(match wait_for(thread, &zone, task, waits) {
            Ok(false) => 1,
            Ok(true) => 0,
            Err(why) => calls::refusal(why),
        }))
    },
    "zoneReady(handle, call): wait until the first workers have started and the queue has capacity. Returns \
    1: they have and it has; 0: `call` ends then; below 0 a refusal."
);

call!(
    zone_ready_cancel,
    2,
    |env, thread, arguments| {
        let (handle, call) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        let task = thread.receiver.task(call);
        let left = opened(thread, handle)?.stop_awaiting_capacity(task);
        if left {
            thread.put_away(task);
        }
        Ok(env.int(i32::from(left)))
    },
    "zoneReadyCancel(handle, call): stop waiting. Returns 1: `call` is over; 0: it is being returned."
);

/// The numbers that describe a distribution.
const fn time_numbers(times: Times) -> [f64; 7] {
    [times.count, times.mean, times.p50, times.p90, times.p99, times.p999, times.max]
}

call!(
    zone_workers,
    1,
    |env, thread, arguments| {
        let workers = opened(thread, env.u32(arguments[0])?)?.worker_counts();
        let row = |worker: &WorkerCounts| {
            let counts = [
                f64::from(worker.slot),
                worker.waiting as f64,
                worker.running as f64,
                worker.ended as f64,
                worker.failed as f64,
                worker.stolen as f64,
                worker.wake_ups as f64,
                worker.utilisation,
            ];
            counts.into_iter().chain([worker.wait, worker.run].into_iter().flat_map(time_numbers))
        };
        let rows: Vec<u8> = workers.iter().flat_map(row).flat_map(f64::to_le_bytes).collect();
        env.copy(&rows)
    },
    "zoneWorkers(handle): 22 float64 for each worker: slot, waiting, running, ended, failed, stolen, \
    wakeUps, utilisation; then its times as zoneCounts writes them."
);

call!(
    zone_open,
    1,
    |env, thread, arguments| {
        let found = registry::find_zone(&env.string(arguments[0])?);
        Ok(env.int(found.map_or(-1, |entry| open_zone(thread, std::sync::Arc::clone(&entry.zone)))))
    },
    "zoneOpen(id): a handle for a zone made by any thread, -1 if no zone has that name."
);

call!(
    zone_number,
    1,
    |env, thread, arguments| {
        let number = opened(thread, env.u32(arguments[0])?)?.number();
        Ok(env.int(number as i32))
    },
    "zoneNumber(handle): its number in the process."
);

call!(
    zone_settings,
    1,
    |env, _thread, arguments| {
        let entry = registry::zone(env.u32(arguments[0])?);
        Ok(entry.map_or(env.undefined(), |entry| env.text(&entry.settings)))
    },
    "zoneSettings(number): its settings as zoneMake received them, undefined if there is no such zone."
);

call!(
    zone_id,
    1,
    |env, _thread, arguments| {
        let entry = registry::zone(env.u32(arguments[0])?);
        Ok(entry.map_or(env.undefined(), |entry| env.text(&entry.id)))
    },
    "zoneId(number): its name, undefined if there is no such zone."
);

call!(
    zone_ids,
    0,
    |env, _thread, arguments| {
        let _ = &arguments;
        let ids = registry::zone_ids();
        let joined = ids.join(&0_u16);
        Ok(env.text(&joined))
    },
    "zoneIds(): the names of all zones, separated by a zero character."
);

call!(
    zone_drop,
    1,
    |env, thread, arguments| {
        let handle = env.u32(arguments[0])? as usize;
        if let Some(slot) = thread.zones.get_mut(handle) {
            *slot = None;
        }
        Ok(env.undefined())
    },
    "zoneDrop(handle): close the handle."
);

call!(
    zone_counts,
    2,
    |env, thread, arguments| {
        let counts = opened(thread, env.u32(arguments[0])?)?.counts();
        let (data, length) = env.bytes(arguments[1])?;
        let fields = [
            counts.waiting,
            counts.waiting_bytes,
            counts.running,
            counts.ended,
            counts.died,
            counts.wake_ups,
            counts.workers,
            counts.asleep,
            counts.failed,
            counts.stolen,
            counts.errors,
        ];
        let times = [counts.wait, counts.run].map(time_numbers);
        let fields = fields.into_iter().map(|count| count as f64).chain(times.into_iter().flatten());
        if length < COUNTS * 8 {
            return Err(wrong("the counts need more bytes"));
        }
        for (index, field) in fields.enumerate() {
            // SAFETY: within the array's memory, whose length was checked.
            unsafe { data.add(index * 8).cast::<[u8; 8]>().write_unaligned(field.to_le_bytes()) };
        }
        Ok(env.undefined())
    },
    "zoneCounts(handle, counts): write 25 float64: waiting, waitingBytes, running, ended, died, wakeUps, \
    workers, asleep, failed, stolen, errors; then of waiting and of running times, in ns: count, mean, p50, \
    p90, p99, p999, max."
);

call!(
    cancel,
    3,
    |env, thread, arguments| {
        let (handle, call, note) = (env.u32(arguments[0])?, env.u32(arguments[1])?, env.u32(arguments[2])?);
        let task = thread.receiver.task(call);
        let zone = std::sync::Arc::clone(opened(thread, handle)?);
        Ok(env.int(match zone.cancel(task, mail::ABORT, note) {
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
        }))
    },
    "cancel(handle, call, note): cancel a call in flight. Returns 0: it had not started and is over; 1: it \
    runs, and mail was sent to its worker, with `note`, and to the owner, who replaces the worker if it goes \
    on; 2: it has ended and its result is being returned; 3: it had not started, never will, and ends soon."
);

call!(
    zone_tell,
    2,
    |env, thread, arguments| {
        let (handle, note) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        opened(thread, handle)?.cancel_running(mail::ABORT, note);
        Ok(env.undefined())
    },
    "zoneTell(handle, note): send the workers of all running tasks the mail of a cancellation, with `note`."
);

call!(
    zone_overdue,
    2,
    |env, _thread, arguments| {
        let grace_ns = env.f64(arguments[1])? * 1e6;
        let Some(entry) = registry::zone(env.u32(arguments[0])?) else { return env.copy(&[]) };
        let overdue = entry.zone.overdue(grace_ns);
        let next_ms = overdue.next_ns.map_or(0, |ns| (ns / 1e6).ceil() as u32);
        let words: Vec<u8> =
            std::iter::once(next_ms).chain(overdue.condemned).flat_map(u32::to_le_bytes).collect();
        env.copy(&words)
    },
    "zoneOverdue(number, graceMs): find workers that still run a task `graceMs` after its cancellation; they \
    take no further task. Returns uint32: ms until the next check (0: none), then their slots; empty if \
    there is no such zone."
);

call!(
    broadcast,
    4,
    |env, thread, arguments| {
        let (handle, function) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        let (data, length) = env.bytes(arguments[2])?;
        // SAFETY: read before JavaScript runs again.
        let bytes = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, length) } };
        let call = env.u32(arguments[3])?;
        let (moved, attachments) = take_attachments(thread);
        let task = thread.receiver.task(call);
        let zone = std::sync::Arc::clone(opened(thread, handle)?);
        let made = |zone: &Zone| zone.broadcast(function, bytes, moved, attachments, Some(task));
        let waits = |zone: &Zone| made(zone).map(|_| true);
        let made = wait_for(thread, &zone, task, waits);
        Ok(env.int(made.map_or_else(calls::refusal, |_| 0)))
    },
    "broadcast(handle, fn, bytes, call): call a function in every worker; `call` ends when all have run it. \
    Returns 0 or a refusal."
);

call!(
    broadcast_sync,
    3,
    |env, thread, arguments| {
        let (handle, function) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        let (data, length) = env.bytes(arguments[2])?;
        // SAFETY: as above.
        let bytes = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, length) } };
        let (moved, attachments) = take_attachments(thread);
        Ok(env.int(match opened(thread, handle)?.broadcast(function, bytes, moved, attachments, None) {
            Ok(broadcast) => {
                let free =
                    thread.broadcasts.iter().position(Option::is_none).unwrap_or(thread.broadcasts.len());
                if free == thread.broadcasts.len() {
                    thread.broadcasts.push(None);
                }
                thread.broadcasts[free] = Some(broadcast);
                free as i32
            }
            Err(why) => calls::refusal(why),
        }))
    },
    "broadcastSync(handle, fn, bytes): as broadcast, for a caller that blocks. Returns a number for \
    broadcastWait, or a refusal below 0."
);

call!(
    broadcast_wait,
    2,
    |env, thread, arguments| {
        let (number, slice_us) = (env.u32(arguments[0])? as usize, env.u32(arguments[1])?);
        let broadcast =
            thread.broadcasts.get(number).cloned().flatten().ok_or_else(|| wrong("no such broadcast"))?;
        let mut outcome = broadcast.outcome();
        if outcome.is_none() {
            // Bounded: a thread can end only after the call.
            std::thread::sleep(Duration::from_micros(u64::from(slice_us.min(10_000))));
            outcome = broadcast.outcome();
        }
        let Some(outcome) = outcome else { return Ok(env.int(-1)) };
        thread.broadcasts[number] = None;
        let Some(failure) = outcome else { return Ok(env.int(0)) };
        env.copy(&failure.bytes)
    },
    "broadcastWait(number, sliceUs): wait for `sliceUs`, 10 ms at most. Returns -1: not yet; 0: all have run \
    it; else the bytes of the first error."
);

call!(
    zone_close,
    2,
    |env, thread, arguments| {
        let (handle, call) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        let task = thread.receiver.task(call);
        let zone = std::sync::Arc::clone(opened(thread, handle)?);
        let waits = zone.close(Some(task));
        if waits {
            thread.sent();
        }
        Ok(env.int(i32::from(waits)))
    },
    "zoneClose(handle, call): refuse new calls and dismiss the workers when all accepted ones have ended; \
    `call` ends then. Returns 0 if the last worker has left already."
);

call!(
    zone_refuse,
    1,
    |env, thread, arguments| {
        opened(thread, env.u32(arguments[0])?)?.refuse_waiting(corespun_bridge::Status::Closed, &[]);
        Ok(env.undefined())
    },
    "zoneRefuse(handle): end every call that has not started."
);

call!(
    zone_forget,
    1,
    |env, _thread, arguments| {
        registry::forget_zone(env.u32(arguments[0])?);
        Ok(env.undefined())
    },
    "zoneForget(number): called by the owner when the zone is closed and empty: frees its name."
);

call!(
    attach,
    2,
    |env, thread, arguments| {
        let entry = registry::zone(env.u32(arguments[0])?);
        let slot = env.u32(arguments[1])?;
        let mailbox = thread.receiver.mailbox();
        let worker = entry.and_then(|entry| entry.zone.attach(slot, mailbox));
        let found = worker.is_some();
        if let Some(worker) = worker {
            thread.become_worker(worker);
        }
        Ok(env.int(i32::from(found)))
    },
    "attach(number, slot): become that worker. Returns 0 if there is no such zone or slot."
);

call!(
    worker_gone,
    4,
    |env, _thread, arguments| {
        let (number, slot) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        let status = calls::status(env.u32(arguments[2])?);
        let (data, length) = env.bytes(arguments[3])?;
        // SAFETY: read before JavaScript runs again.
        let bytes = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, length) } };
        let lost = registry::zone(number).map_or(0, |entry| entry.zone.slot_ended(slot, status, bytes));
        Ok(env.int(lost as i32))
    },
    "workerGone(number, slot, status, reason): called by the owner when a worker has ended: its running \
    tasks return with that status and reason. Returns their number."
);

call!(
    renice,
    1,
    |env, thread, arguments| {
        thread.renice(env.u32(arguments[0])?.min(i32::MAX as u32) as i32);
        Ok(env.int(0))
    },
    "renice(steps): raise this thread's nice value by `steps` and request long time slices."
);

call!(
    worker_add,
    1,
    |env, _thread, arguments| {
        let added =
            registry::zone(env.u32(arguments[0])?).is_some_and(|entry| registry::start_worker(&entry));
        Ok(env.int(i32::from(added)))
    },
    "workerAdd(number): request one more worker from the owner. Returns 0 if the zone is closing."
);

call!(
    zone_end,
    1,
    |env, thread, arguments| {
        let first = opened(thread, env.u32(arguments[0])?)?.is_first_to_report();
        Ok(env.int(i32::from(first)))
    },
    "zoneEnd(handle): called by each closer when the zone has ended. Returns 1 for the first call."
);

call!(
    zone_fail,
    2,
    |env, _thread, arguments| {
        let (data, length) = env.bytes(arguments[1])?;
        // SAFETY: read before JavaScript runs again.
        let bytes = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, length) } };
        if let Some(entry) = registry::zone(env.u32(arguments[0])?) {
            entry.zone.finish(corespun_bridge::Status::Died, bytes);
        }
        Ok(env.undefined())
    },
    "zoneFail(number, reason): called when its workers cannot be started: all waiting calls end as died, \
    with that reason."
);

call!(
    zone_error,
    1,
    |env, _thread, arguments| {
        if let Some(entry) = registry::zone(env.u32(arguments[0])?) {
            entry.zone.count_error();
        }
        Ok(env.undefined())
    },
    "zoneError(number): count an error of a worker that no caller of a task receives."
);

call!(
    zone_failure,
    1,
    |env, thread, arguments| {
        match opened(thread, env.u32(arguments[0])?)?.failure() {
            Some(bytes) => env.copy(&bytes),
            None => Ok(env.undefined()),
        }
    },
    "zoneFailure(handle): the reason that zoneFail received, undefined if the zone has not failed."
);

call!(
    kick,
    2,
    |env, _thread, arguments| {
        if let Some(entry) = registry::zone(env.u32(arguments[0])?) {
            let kind = env.u32(arguments[1])?;
            entry.owner.send(Mail { kind, subject: entry.zone.number(), facts: [0, 0] });
        }
        Ok(env.undefined())
    },
    "kick(number, kind): send the zone's owner mail of that kind."
);

call!(
    attach_buffers,
    1,
    |env, thread, arguments| {
        let (data, length) = env.bytes(arguments[0])?;
        let mut ids = Vec::with_capacity(length / 4);
        for index in 0..length / 4 {
            // SAFETY: within the array's memory.
            ids.push(u32::from_le_bytes(unsafe { data.add(index * 4).cast::<[u8; 4]>().read_unaligned() }));
        }
        thread.attachments = Some(Attached::new(ids));
        Ok(env.undefined())
    },
    "attachBuffers(ids): attach buffers (uint32 each) to the next bytes that are sent, which take over one \
    reference of each."
);

call!(
    signal_make,
    0,
    |env, thread, arguments| {
        let _ = &arguments;
        Ok(env.number(f64::from(signals::make(thread.receiver.mailbox()))))
    },
    "signalMake(): make an abort signal of this thread; returns its number."
);
