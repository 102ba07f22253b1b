//! The functions of a zone's life: make, find, broadcast, cancel, close, and what its owner does.
//!
//! Each does one thing to a zone of the core; what it means for calls in flight stands in
//! crates/bridge/README.md.

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
            unsafe { crate::buffers::give_back() };
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

/// Hand `task` to `zone` by `hand`, which says whether it has left. For a worker it is one more place until
/// it is home: what it waits for may have to happen here, by way of another zone too.
///
/// The worker may be another copy's: then it is told as well, and woken once the task has left.
fn wait_for(
    thread: &mut Thread,
    zone: &std::sync::Arc<Zone>,
    task: &'static Task,
    hand: impl FnOnce(&Zone) -> Result<bool, Refusal>,
) -> Result<bool, Refusal> {
    let note = |worker: &mut Worker| worker.wait_for(task);
    let here = thread.worker.as_mut().map(note).is_some();
    let elsewhere = !here && thread.elsewhere(note).is_some();
    let waits = hand(zone);
    if waits == Ok(true) {
        thread.sent();
    } else if let Some(worker) = thread.worker.as_mut().filter(|_| here) {
        worker.unwait(task);
    }
    if elsewhere {
        // Also to wake it, now that the task is where it is found.
        thread.elsewhere(|worker| {
            if waits != Ok(true) {
                worker.unwait(task);
            }
        });
    }
    waits
}

/// What the next bytes refer to, and how much memory moves with them.
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
    "zoneMake(id, settings, plan, count): make a zone; the plan is eleven float64: steals, blocks, workers, \
    workersMax, patienceUs, tasksMax, taskBytesMax, queueBytesMax, broadcastsMax, tasksPerWorkerMax, spinUs. \
    Returns this thread's handle, -1 when the name is taken."
);

call!(
    zone_over,
    1,
    |env, _thread, arguments| {
        let entry = registry::zone(env.u32(arguments[0])?);
        Ok(env.int(i32::from(entry.is_none_or(|entry| entry.zone.is_over()))))
    },
    "zoneOver(number): 1 when the zone has ended, or is not known any more."
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
    "zoneGrow(number): the owner's answer to mail that more workers are wanted. Returns 0: nothing is to be \
    done; 1: ask again soon; 2: workers were asked for, ask again."
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
    "zoneShrink(number, idleMs): let go workers that have slept for so long. Returns uint32: ms until the \
    next look, 0 for none, then the slots of those that leave; empty when the zone is gone."
);

call!(
    zone_ready,
    2,
    |env, thread, arguments| {
        let (handle, call) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        let task = thread.desk.task(call);
        let zone = std::sync::Arc::clone(opened(thread, handle)?);
        let waits = |zone: &Zone| zone.await_capacity(task).map(|now| !now);
        Ok(env.int(match wait_for(thread, &zone, task, waits) {
            Ok(false) => 1,
            Ok(true) => 0,
            Err(why) => calls::refusal(why),
        }))
    },
    "zoneReady(handle, call): wait until the first workers have started and the queue has room. Returns 1: \
    that is so; 0: `call` ends when it is; below 0 why not."
);

call!(
    zone_ready_cancel,
    2,
    |env, thread, arguments| {
        let (handle, call) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        let task = thread.desk.task(call);
        let left = opened(thread, handle)?.stop_awaiting_capacity(task);
        if left {
            thread.put_away(task);
        }
        Ok(env.int(i32::from(left)))
    },
    "zoneReadyCancel(handle, call): give up what zoneReady waits for. Returns 1: `call` is over; 0: it is on \
    its way home."
);

/// What is told of a distribution.
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
    "zoneOpen(id): a handle for a zone made by any thread, -1 when there is none."
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
    "zoneSettings(number): what its maker wrote, undefined when it is gone."
);

call!(
    zone_id,
    1,
    |env, _thread, arguments| {
        let entry = registry::zone(env.u32(arguments[0])?);
        Ok(entry.map_or(env.undefined(), |entry| env.text(&entry.id)))
    },
    "zoneId(number): its name, undefined when it is gone."
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
    "zoneDrop(handle): forget the handle."
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
        let task = thread.desk.task(call);
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
    "cancel(handle, call, note): give up a call in flight. Returns 0: it had not started and is over; 1: \
    its worker was told `note`, and the owner, who replaces it if it goes on; 2: it has ended and its result \
    is on the way; 3: it had not started, never will, and ends soon."
);

call!(
    zone_tell,
    2,
    |env, thread, arguments| {
        let (handle, note) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        opened(thread, handle)?.cancel_running(mail::ABORT, note);
        Ok(env.undefined())
    },
    "zoneTell(handle, note): tell the workers of all running tasks what a cancellation would."
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
    "zoneOverdue(number, graceMs): which workers still run a task that was given up so long ago; they begin \
    nothing more. Returns uint32: ms until the next look, 0 for none, then their slots; empty when the zone \
    is gone."
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
        let task = thread.desk.task(call);
        let zone = std::sync::Arc::clone(opened(thread, handle)?);
        let made = |zone: &Zone| zone.broadcast(function, bytes, moved, attachments, Some(task));
        let waits = |zone: &Zone| made(zone).map(|_| true);
        let made = wait_for(thread, &zone, task, waits);
        Ok(env.int(made.map_or_else(calls::refusal, |_| 0)))
    },
    "broadcast(handle, fn, bytes, call): call every worker; `call` ends when all have run it. Returns \
    0 or why not."
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
    "broadcastSync(handle, fn, bytes): the same for a caller that blocks. Returns a number for \
    broadcastWait, or why not, below 0."
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
            // Bounded: Node waits for this call when it ends the thread.
            std::thread::sleep(Duration::from_micros(u64::from(slice_us.min(10_000))));
            outcome = broadcast.outcome();
        }
        let Some(outcome) = outcome else { return Ok(env.int(-1)) };
        thread.broadcasts[number] = None;
        let Some(failure) = outcome else { return Ok(env.int(0)) };
        env.copy(&failure.bytes)
    },
    "broadcastWait(number, sliceUs): wait at most that long, 10 ms at most. Returns -1: not yet; 0: all have \
    run it; the bytes of the first error."
);

call!(
    zone_close,
    2,
    |env, thread, arguments| {
        let (handle, call) = (env.u32(arguments[0])?, env.u32(arguments[1])?);
        let task = thread.desk.task(call);
        let zone = std::sync::Arc::clone(opened(thread, handle)?);
        let waits = zone.close(Some(task));
        if waits {
            thread.sent();
        }
        Ok(env.int(i32::from(waits)))
    },
    "zoneClose(handle, call): refuse new calls and let the workers go when all is done; `call` ends then. \
    Returns 0 when that has happened before."
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
    "zoneForget(number): the owner's word that the zone is closed and empty: its name is free."
);

call!(
    attach,
    2,
    |env, thread, arguments| {
        let entry = registry::zone(env.u32(arguments[0])?);
        let slot = env.u32(arguments[1])?;
        let mailbox = thread.desk.mailbox();
        let worker = entry.and_then(|entry| entry.zone.attach(slot, mailbox));
        let found = worker.is_some();
        if let Some(worker) = worker {
            thread.become_worker(worker);
        }
        Ok(env.int(i32::from(found)))
    },
    "attach(number, slot): become that worker. Returns 0 when the zone or the slot is gone."
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
    "workerGone(number, slot, status, reason): the owner's word that a worker has ended: its running tasks \
    come home. Returns how many."
);

call!(
    renice,
    1,
    |env, thread, arguments| {
        thread.renice(env.u32(arguments[0])?.min(i32::MAX as u32) as i32);
        Ok(env.int(0))
    },
    "renice(steps): this thread gives way to others by so many steps of nice, in long slices."
);

call!(
    worker_add,
    1,
    |env, _thread, arguments| {
        let added =
            registry::zone(env.u32(arguments[0])?).is_some_and(|entry| registry::start_worker(&entry));
        Ok(env.int(i32::from(added)))
    },
    "workerAdd(number): ask the owner for one more worker. Returns 0 when the zone is closing."
);

call!(
    zone_end,
    1,
    |env, thread, arguments| {
        let first = opened(thread, env.u32(arguments[0])?)?.is_first_to_report();
        Ok(env.int(i32::from(first)))
    },
    "zoneEnd(handle): asked by those who have closed the zone, when it has ended. Returns 1 for the first."
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
    "zoneFail(number, reason): its workers cannot be started: everything that waits ends as died, for that \
    reason."
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
    "zoneFailure(handle): what zoneFail was told, undefined when the zone has not failed."
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
    "attachBuffers(ids): the next bytes that leave refer to these buffers (uint32 each) and take over one \
    reference of each."
);

call!(
    signal_make,
    0,
    |env, thread, arguments| {
        let _ = &arguments;
        Ok(env.number(f64::from(signals::make(thread.desk.mailbox()))))
    },
    "signalMake(): the number of a new abort signal of this thread."
);
