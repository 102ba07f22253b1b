//! The functions that JavaScript calls for every task: submit, step, drain, complete.
//!
//! They have neither parameters nor results: small integers lie in the first words of the scratch buffers
//! that `open` registered, since a store into a typed array costs a tenth of an argument through napi. The
//! environment of the call identifies the thread. None creates a JavaScript object. The layout is
//! `corespun_bridge::layout`.

use std::ptr;

use corespun_bridge::{
    Failure, Help, Mail, Next, Refusal, Status, Task, Worker,
    layout::{
        DEPTH_UNKNOWN, FOUND, HEADER_BYTES, NO_TOKEN, OUTCOME, RECORD_BYTES, Step, UNKNOWN_FUNCTION, ended,
        flag, given, helped, refused, work,
    },
    registry,
};
use napi_sys as sys;

use crate::{
    call_sites, exports,
    js::{Call, Env, Function, Outcome, Value, wrong},
    thread::{self, Thread},
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    submit_large, complete_large, task_bytes, broadcast_done, function_ready, drained, large_result, mail,
};

/// These read and write the words of the scratch buffers.
pub const HOT: &[(&str, Function)] = &[
    ("submit", submit::<false>),
    ("submit_function", submit_function),
    ("step", step::<false>),
    ("complete", complete::<false>),
    ("join_fork", join_fork),
    ("help", help),
    ("drain", drain::<false>),
    ("linger", linger::<false>),
];

/// The same for a thread's further mailboxes.
pub const FURTHER: &[(&str, Function)] = &[
    ("submit", submit::<true>),
    ("step", step::<true>),
    ("complete", complete::<true>),
    ("drain", drain::<true>),
    ("linger", linger::<true>),
];

/// Words of the out scratch buffer that each of these calls reads, in the order of the calls' patterns and of
/// the words that `put_work` writes.
const GIVEN: usize = 4;
const _: () = {
    assert!(matches!([given::ZONE, given::FN, given::LENGTH, given::CALL], [0, 1, 2, 3]));
    assert!(matches!([ended::TOKEN, ended::STATUS, ended::LENGTH], [0, 1, 2]));
    assert!(matches!([helped::CALL, helped::STEALS], [0, 1]));
    assert!(matches!([work::FN, work::LENGTH, work::TOKEN, work::SERIAL, work::LARGE], [0, 1, 2, 3, 4]));
    assert!(work::DEPTH == work::JOINED + 1);
};

/// Longest sleep of one `help`: a thread can end only after the call.
const HELP_SLEEP: std::time::Duration = std::time::Duration::from_millis(5);
/// Longest poll for work before that sleep.
const HELP_SPIN: std::time::Duration = std::time::Duration::from_micros(50);

/// The number that JavaScript receives for a refusal.
pub fn refusal(refusal: Refusal) -> i32 {
    match refusal {
        Refusal::Full => refused::FULL,
        Refusal::BytesFull => refused::BYTES_FULL,
        Refusal::TooLarge => refused::TOO_LARGE,
        Refusal::Closed => refused::CLOSED,
        Refusal::BroadcastsFull => refused::BROADCASTS_FULL,
        Refusal::TooDeep => refused::TOO_DEEP,
    }
}

/// The status for a number from JavaScript.
pub fn status(number: u32) -> Status {
    [Status::Done, Status::Failed, Status::Died, Status::Closed]
        .into_iter()
        .find(|status| *status as u32 == number)
        .unwrap_or(Status::Orphaned)
}

#[inline]
fn put_words<const COUNT: usize>(memory: &mut [u8], words: [u32; COUNT]) {
    for (slot, word) in memory[..COUNT * 4].chunks_exact_mut(4).zip(words) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
}

/// Run `body` with this thread and the words in its out scratch buffer; throw its error. `FURTHER`: for the
/// functions of a thread's further mailboxes.
#[inline]
fn hot<const FURTHER: bool>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
    body: impl FnOnce(&mut Thread, [u32; GIVEN]) -> Outcome<()>,
) -> Value {
    let here = if FURTHER {
        // SAFETY: napi calls this with its environment and info; the data is the cell of that environment,
        // which exists.
        unsafe { *Call::read(env, info).data.cast::<*mut Thread>() }
    } else {
        thread::first(env)
    };
    // SAFETY: set by open and reset before the thread is freed; napi calls only on this thread, and no
    // reference to the thread outlives a call.
    let Some(thread) = (unsafe { here.as_mut() }) else {
        return Env(env).throw(&wrong("called before open"));
    };
    let given = thread.out.words();
    let outcome = body(thread, given);
    // SAFETY: JavaScript waits for this call, which is over.
    unsafe { crate::buffers::release_retired() };
    match outcome {
        Ok(()) => ptr::null_mut(),
        Err(thrown) => Env(env).throw(&thrown),
    }
}

/// submit(): zone, function, length, call. Send `length` bytes of the out scratch buffer as call number
/// `call`. The outcome word becomes 0, or a refusal below 0.
pub unsafe extern "C" fn submit<const FURTHER: bool>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> Value {
    hot::<FURTHER>(env, info, |thread, [zone, function, length, call]| {
        // SAFETY: JavaScript waits for this call.
        let bytes =
            unsafe { thread.out.data(length as usize) }.ok_or_else(|| wrong("length beyond the scratch"))?;
        let outcome = send(thread, zone, function, call, bytes)?;
        thread.out.put(OUTCOME, outcome as u32);
        Ok(())
    })
}

/// submitFunction(fn): zone, (unused), length, call. As submit, for a function object that is new to this
/// thread and has a known call site: one crossing instead of two.
pub unsafe extern "C" fn submit_function(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    // SAFETY: napi calls this with its environment and info; the value is one of this call.
    let known = unsafe { call_sites::known(Env(env), Call::read(env, info).next()) };
    hot::<true>(env, info, |thread, [zone, _, length, call]| {
        let Some(function) = known.filter(|&number| number > 0) else {
            thread.out.put(OUTCOME, UNKNOWN_FUNCTION);
            return Ok(());
        };
        // SAFETY: JavaScript waits for this call.
        let bytes =
            unsafe { thread.out.data(length as usize) }.ok_or_else(|| wrong("length beyond the scratch"))?;
        let outcome = send(thread, zone, function, call, bytes)?;
        thread.out.put(OUTCOME, outcome as u32);
        Ok(())
    })
}

/// As submit, with the bytes as an argument. Returns the outcome.
fn submit_large(
    thread: &mut Thread,
    zone: u32,
    function_number: u32,
    bytes: &[u8],
    call: u32,
) -> Outcome<i32> {
    send(thread, zone, function_number, call, bytes)
}

fn send(thread: &mut Thread, zone: u32, function: u32, call: u32, bytes: &[u8]) -> Outcome<i32> {
    // A thread marked as asleep stays marked: when another copy's prepare step or a callback of I/O calls
    // this, the thread's own prepare step may be over for this turn of the loop, and only sleeping threads
    // are woken.
    let attachments = thread.attachments.take();
    let moved = attachments.as_ref().map_or(0, crate::buffers::Attached::moved);
    let zone = thread.zones.get(zone).ok_or_else(|| wrong("no such zone"))?;
    let task = thread.receiver.task(call);
    let depth = match thread.out.word(given::DEPTH) {
        DEPTH_UNKNOWN => thread.depth_of_stray().min(zone.limits().call_depth_max),
        depth => depth,
    };
    // SAFETY: JavaScript passes free call numbers only, so its owner, this thread, holds the idle task.
    unsafe {
        task.body(|body| {
            body.function = function;
            body.depth = depth;
            body.attachments = attachments.map(|attached| Box::new(attached) as _);
            body.bytes.set(bytes);
        });
    }
    let spin = zone.limits().spin;
    let is_own = |worker: &Worker| std::sync::Arc::ptr_eq(worker.zone(), zone);
    let outcome = match thread.worker.as_mut() {
        Some(worker) if is_own(worker) => worker.fork_moving(task, bytes.len(), moved),
        Some(worker) => worker.call(zone, task, bytes.len(), moved),
        None => thread
            .elsewhere(|worker| match is_own(worker) {
                true => worker.fork_aside(task, bytes.len(), moved),
                false => worker.call(zone, task, bytes.len(), moved),
            })
            .unwrap_or_else(|| zone.submit_moving(task, bytes.len(), moved)),
    };
    match outcome {
        Ok(()) => {
            thread.set_spin(spin);
            thread.sent();
            Ok(0)
        }
        Err(why) => {
            // SAFETY: refused, so this thread still holds it.
            unsafe { task.body(|body| (body.attachments, _) = (None, body.bytes.shrink(0))) };
            Ok(refusal(why))
        }
    }
}

/// step(): token, status, length. End the running task `token` (unless it is 0xffffffff) with `length` bytes
/// of the out scratch buffer, then take the next step: the found word becomes its kind.
pub unsafe extern "C" fn step<const FURTHER: bool>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> Value {
    hot::<FURTHER>(env, info, |thread, [token, status, length, _]| {
        let had_turn = thread.had_turn();
        if token != NO_TOKEN {
            let searches = !had_turn && thread.looks();
            end(thread, token, status, length as usize, searches)?;
        }
        let kind = next(thread, had_turn)?;
        thread.inbound.put(FOUND, kind as u32);
        Ok(())
    })
}

/// complete(): token, status, length. End a running task without taking another.
pub unsafe extern "C" fn complete<const FURTHER: bool>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> Value {
    hot::<FURTHER>(env, info, |thread, [token, status, length, _]| {
        end(thread, token, status, length as usize, false)
    })
}

/// As complete, with the bytes as an argument.
fn complete_large(thread: &mut Thread, token: u32, status: u32, bytes: &[u8]) -> Outcome<()> {
    finish(thread, token, status, bytes, false)
}

/// `searches`: the worker takes a task next, see `Worker::complete_and_search`.
fn end(thread: &mut Thread, token: u32, status: u32, length: usize, searches: bool) -> Outcome<()> {
    // SAFETY: JavaScript waits for this call.
    let bytes = unsafe { thread.out.data(length) }.ok_or_else(|| wrong("length beyond the scratch"))?;
    finish(thread, token, status, bytes, searches)
}

fn finish(thread: &mut Thread, token: u32, number: u32, bytes: &[u8], searches: bool) -> Outcome<()> {
    let attachments = thread.attachments.take();
    let worker = thread.worker.as_mut().ok_or_else(|| wrong("not a worker"))?;
    let fill = |body: &mut corespun_bridge::Body| {
        body.status = status(number);
        body.attachments = attachments.map(|attached| Box::new(attached) as _);
        body.bytes.set(bytes);
    };
    if searches {
        worker.complete_and_search(token, fill)
    } else {
        worker.complete(token, fill)
    };
    Ok(())
}

fn next(thread: &mut Thread, had_turn: bool) -> Outcome<Step> {
    thread.wake_up();
    thread.receiver.set_blocked(false);
    let worker = thread.worker.as_mut().ok_or_else(|| wrong("not a worker"))?;
    if had_turn && worker.has_work() {
        return Ok(Step::HadTurn);
    }
    let mut taken = worker.take();
    // Nothing else to do: poll for some microseconds before going back through the loop.
    if matches!(taken, Next::Nothing)
        && !had_turn
        && thread.receiver.in_flight() == 0
        && thread.is_free()
        && thread.look()
    {
        taken = thread.worker.as_mut().ok_or_else(|| wrong("not a worker"))?.take();
    }
    if let Some(worker) = &thread.worker {
        worker.found();
    }
    // SAFETY: JavaScript waits for this call and keeps no view that it reads across one.
    let memory = unsafe { thread.inbound.write() };
    Ok(match taken {
        Next::Nothing => Step::Nothing,
        Next::Leave => {
            thread.retire();
            Step::Leave
        }
        Next::Task { task, token, serial } => {
            thread.note_activity();
            if thread.may_block() {
                thread.receiver.set_blocked(true);
            }
            put_task(memory, task, token, serial);
            Step::Task
        }
        Next::Broadcast(broadcast) => {
            thread.note_activity();
            put_work(memory, broadcast.function, &broadcast.bytes, NO_TOKEN, 0);
            thread.current = Some(broadcast);
            Step::Broadcast
        }
    })
}

#[inline(always)]
fn put_task(memory: &mut [u8], task: &'static Task, token: u32, serial: u32) {
    // SAFETY: this worker holds the task.
    let depth = unsafe {
        task.body(|body| {
            put_work(memory, body.function, body.bytes.as_slice(), token, serial);
            body.depth
        })
    };
    put_words(&mut memory[work::JOINED * 4..], [u32::from(task.is_joined()), depth]);
}

#[inline]
fn put_work(memory: &mut [u8], function: u32, bytes: &[u8], token: u32, serial: u32) {
    let fits = bytes.len() <= memory.len() - HEADER_BYTES;
    put_words(memory, [function, bytes.len() as u32, token, serial, u32::from(!fits)]);
    if fits {
        memory[HEADER_BYTES..HEADER_BYTES + bytes.len()].copy_from_slice(bytes);
    }
}

/// joinFork(): zone, function, length, call. As submit, on a worker of that zone, which waits for the call
/// with `help`.
pub unsafe extern "C" fn join_fork(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    hot::<true>(env, info, |thread, [zone, function, length, call]| {
        // SAFETY: JavaScript waits for this call.
        let bytes =
            unsafe { thread.out.data(length as usize) }.ok_or_else(|| wrong("length beyond the scratch"))?;
        let task = thread.receiver.task(call);
        thread.receiver.join(task);
        let outcome = send(thread, zone, function, call, bytes)?;
        if outcome != 0 {
            thread.receiver.unjoin(task);
        }
        thread.out.put(OUTCOME, outcome as u32);
        Ok(())
    })
}

/// help(): call, steals. Find work until that joined call returns: the found word becomes `MINE`, `JOINED`,
/// `TASK` (run it, then complete it) or `NOTHING` (call again).
pub unsafe extern "C" fn help(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    hot::<true>(env, info, |thread, [call, steals, ..]| {
        let kind = help_with(thread, call, steals != 0)?;
        thread.inbound.put(FOUND, kind as u32);
        Ok(())
    })
}

fn help_with(thread: &mut Thread, call: u32, steals: bool) -> Outcome<Step> {
    // After an `await` of I/O the thread is marked as asleep: it would go to sleep twice and wake up once.
    thread.wake_up();
    let task = thread.receiver.task(call);
    let mut help = ask(thread, task, steals)?;
    if matches!(help, Help::Nothing) {
        let begun = std::time::Instant::now();
        let may_spin = registry::machine().may_spin();
        while may_spin && matches!(help, Help::Nothing) && begun.elapsed() < HELP_SPIN {
            (0..64).for_each(|_| std::hint::spin_loop());
            help = ask(thread, task, steals)?;
        }
    }
    if matches!(help, Help::Nothing) {
        let Thread { worker, receiver, .. } = thread;
        let worker = worker.as_mut().ok_or_else(|| wrong("not a worker"))?;
        if worker.try_sleep_until(receiver, task) {
            // A wake-up of the mailbox unparks this thread; see uv::Waker.
            std::thread::park_timeout(HELP_SLEEP);
            worker.wake_up();
            receiver.wake_up();
        }
        help = ask(thread, task, steals)?;
    }
    // SAFETY: JavaScript waits for this call and keeps no view that it reads across one.
    let memory = unsafe { thread.inbound.write() };
    Ok(match help {
        Help::Nothing => Step::Nothing,
        Help::Mine => {
            thread.put_away(task);
            Step::Mine
        }
        Help::Done => {
            // SAFETY: the task has returned to its owner, this thread.
            let (status, bytes) = unsafe { task.body(|body| (body.status as u32, body.bytes.take())) };
            put_work(memory, status, &bytes, 0, 0);
            if memory[work::LARGE * 4] != 0 {
                thread.large.push((call, bytes));
            }
            put_away(thread, task);
            Step::Joined
        }
        Help::Task { task, token, serial } => {
            put_task(memory, task, token, serial);
            Step::Task
        }
    })
}

fn ask(thread: &mut Thread, task: &'static Task, steals: bool) -> Outcome<Help> {
    let Thread { worker, ready, .. } = thread;
    let worker = worker.as_mut().ok_or_else(|| wrong("not a worker"))?;
    Ok(worker.help(task, steals, |function| ready.get(function as usize).copied().unwrap_or(false)))
}

/// Functions from this number on are never marked as ready.
const READY_MAX: usize = 1 << 20;

/// Mark that function as loaded: this thread can call it without its event loop.
fn function_ready(thread: &mut Thread, number: u32) {
    let number = number as usize;
    if number < READY_MAX {
        if thread.ready.len() <= number {
            thread.ready.resize(number + 1, false);
        }
        thread.ready[number] = true;
    }
}

/// A copy of the arguments of a running task, or of the broadcast (0xffffffff).
fn task_bytes(thread: &mut Thread, token: u32) -> Outcome<Vec<u8>> {
    if token == NO_TOKEN {
        return Ok(thread.current.as_ref().map_or_else(Vec::new, |broadcast| broadcast.bytes.to_vec()));
    }
    let running = thread.worker.as_ref().and_then(|worker| worker.running(token));
    let task = running.ok_or_else(|| wrong("no such task"))?;
    // SAFETY: this worker holds the task while it runs.
    Ok(unsafe { task.body(|body| body.bytes.as_slice().to_vec()) })
}

/// End the broadcast that `step` returned.
fn broadcast_done(thread: &mut Thread, status: u32, bytes: &[u8]) -> Outcome<()> {
    thread.current = None;
    let failure = (status != 0).then(|| Failure { status: self::status(status), bytes: bytes.into() });
    thread.worker.as_mut().ok_or_else(|| wrong("not a worker"))?.broadcast_done(failure);
    Ok(())
}

/// drain(): write as many results as fit into the inbound scratch buffer, flags into its first word, and the
/// number of results into the found word.
pub unsafe extern "C" fn drain<const FURTHER: bool>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> Value {
    hot::<FURTHER>(env, info, |thread, _| {
        let count = drain_into(thread);
        thread.inbound.put(FOUND, count);
        Ok(())
    })
}

/// linger(): as drain, after a brief poll for results that arrive at once.
pub unsafe extern "C" fn linger<const FURTHER: bool>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> Value {
    hot::<FURTHER>(env, info, |thread, _| {
        let count = if thread.linger() {
            drain_into(thread)
        } else {
            thread.inbound.put(0, 0);
            0
        };
        thread.inbound.put(FOUND, count);
        Ok(())
    })
}

fn drain_into(thread: &mut Thread) -> u32 {
    // SAFETY: as in next.
    let memory = unsafe { thread.inbound.write() };
    let (mut count, mut at) = (0, HEADER_BYTES);
    while at + RECORD_BYTES <= memory.len() {
        let Some(task) = thread.receiver.next_arrival() else { break };
        // SAFETY: the task has returned to its owner, this thread.
        let (number, bytes) = unsafe { task.body(|body| (body.status as u32, body.bytes.as_slice().len())) };
        let fits = bytes <= memory.len() - HEADER_BYTES - RECORD_BYTES;
        if fits && at + RECORD_BYTES + bytes > memory.len() {
            thread.receiver.put_back(task);
            break;
        }
        put_words(&mut memory[at..], [task.call(), number, bytes as u32, u32::from(!fits)]);
        at += RECORD_BYTES;
        if fits {
            // SAFETY: as above.
            unsafe { task.body(|body| memory[at..at + bytes].copy_from_slice(body.bytes.as_slice())) };
            at += bytes.next_multiple_of(8);
        } else {
            // SAFETY: as above.
            let large = unsafe { task.body(|body| body.bytes.take()) };
            thread.large.push((task.call(), large));
        }
        put_away(thread, task);
        count += 1;
    }
    let mail = if thread.receiver.mailbox().has_mail() { flag::MAIL } else { 0 };
    let attachments = if thread.read_soon.is_empty() { 0 } else { flag::ATTACHMENTS };
    put_words(memory, [mail | attachments]);
    count
}

/// Free the task of a result that has been copied out. JavaScript reads the result next, so its attachments
/// are kept until `drained`.
fn put_away(thread: &mut Thread, task: &'static Task) {
    // SAFETY: its owner, this thread, holds the task.
    if let Some(attachments) = unsafe { task.body(|body| body.attachments.take()) } {
        thread.read_soon.push(attachments);
    }
    thread.put_away(task);
}

/// Drop the attachments of the last drain's results, which have been read.
fn drained(thread: &mut Thread) {
    thread.read_soon.clear();
}

/// The bytes of a drained result that did not fit.
fn large_result(thread: &mut Thread, call: u32) -> Outcome<Vec<u8>> {
    let index = thread.large.iter().position(|(other, _)| *other == call);
    Ok(thread.large.swap_remove(index.ok_or_else(|| wrong("no such result"))?).1)
}

/// Write the oldest piece of mail into the inbound scratch buffer. Returns 1, or 0 without mail.
fn mail(thread: &mut Thread) -> bool {
    let mail = thread.receiver.next_mail();
    if let Some(Mail { kind, subject, facts: [first, second] }) = mail {
        // SAFETY: JavaScript waits for this call and keeps no view that it reads across one.
        put_words(unsafe { thread.inbound.write() }, [kind, subject, first, second]);
    }
    mail.is_some()
}
