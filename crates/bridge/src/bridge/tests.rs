//! Calls of a bridge, by the words that JavaScript writes and reads, with an event loop that only counts.
//!
//! A scratch is plain memory here, so these run under Miri. The bridges of a test share one thread: the main
//! one calls, another is the worker.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{cell::RefCell, rc::Rc, sync::Mutex, sync::MutexGuard};

use super::*;
use crate::{
    Limits, Memory, Status,
    layout::{
        FOUND, HEADER_BYTES, NO_TOKEN, OUTCOME, RECORD_BYTES, Step, UNKNOWN_FUNCTION, cancelled, flag, given,
        mail, refused, work,
    },
    registry::{Entry, Plan, lock},
};

const BYTES: usize = 512;
const DONE: u32 = Status::Done as u32;

const LIMITS: Limits = Limits {
    tasks_max: 4,
    task_bytes_max: 2000,
    queue_bytes_max: 3000,
    broadcasts_max: 2,
    tasks_per_worker_max: 1,
    waiting_per_worker_max: 16,
    call_depth_max: 8,
    tasks_per_tenant_max: usize::MAX,
    worker_tasks_max: usize::MAX,
    spin: Duration::ZERO,
};
const PLAN: Plan =
    Plan { steals: false, blocks: false, workers: 1, workers_max: 1, patience: Duration::ZERO };

/// The tables of the process are shared, and the end of a bridge ends the zones that it owns. So a test is
/// alone until the last of its bridges has ended, in whatever order its variables are dropped.
static ALONE: Mutex<()> = Mutex::new(());

type Alone = Rc<MutexGuard<'static, ()>>;

/// What an event loop was asked for.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<(&'static str, bool)>>>);

impl EventLoop for Log {
    fn keep_alive(&self, alive: bool) {
        self.0.borrow_mut().push(("alive", alive));
    }

    fn do_not_wait(&self, active: bool) {
        self.0.borrow_mut().push(("idle", active));
    }
}

struct Silent;

impl Wake for Silent {
    fn wake(&self) {}
}

/// A bridge as JavaScript uses it: words and bytes are written, a call is made, words and bytes are read.
struct Host {
    bridge: *mut Bridge,
    memory: [Arc<Memory>; 2],
    log: Log,
    alone: Alone,
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: opened by `host`, and not used again.
        unsafe { Bridge::close(self.bridge, |_| ()) };
    }
}

fn host(alone: &Alone, main: bool) -> Host {
    let memory = [0; 2].map(|_| Memory::new(BYTES).unwrap());
    let [out, inbound] =
        memory.each_ref().map(|memory| Scratch::new(Arc::clone(memory), memory.data(), BYTES).unwrap());
    let log = Log::default();
    let bridge = Bridge::open(Box::new(log.clone()), Box::new(Silent), out, inbound, main);
    Host { bridge, memory, log, alone: Rc::clone(alone) }
}

impl Host {
    fn call<R>(&self, body: impl FnOnce(&mut Bridge) -> R) -> R {
        // SAFETY: open, and no other reference is alive: no test nests calls of one host.
        body(unsafe { &mut *self.bridge })
    }

    /// Write the words from 0 on and the bytes after the header, then make the call.
    fn hot(
        &self,
        words: [u32; 4],
        bytes: &[u8],
        body: fn(&mut Bridge) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        let out = self.memory[0].data();
        // SAFETY: within the memory, which nothing else uses now.
        unsafe {
            out.cast::<[u32; 4]>().write(words);
            out.add(HEADER_BYTES)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len().min(BYTES - HEADER_BYTES));
        }
        self.call(body)
    }

    fn word(&self, memory: usize, index: usize) -> u32 {
        // SAFETY: as in hot.
        unsafe { self.memory[memory].data().cast::<u32>().add(index).read() }
    }

    /// Words and bytes of the inbound scratch after `at`.
    fn inbound<const N: usize>(&self, at: usize, length: usize) -> ([u32; N], Vec<u8>) {
        let data = self.memory[1].data();
        // SAFETY: as in hot.
        unsafe {
            let bytes = std::slice::from_raw_parts(data.add(at.max(HEADER_BYTES - N * 4) + N * 4), length);
            (data.add(at).cast::<[u32; N]>().read(), bytes.to_vec())
        }
    }

    /// Submit `bytes` as that call of function 7; the outcome.
    fn submit(&self, zone: u32, call: u32, bytes: &[u8]) -> i32 {
        self.hot([zone, 7, bytes.len() as u32, call], bytes, Bridge::submit).unwrap();
        self.word(0, OUTCOME).cast_signed()
    }

    /// End the task `token` with `bytes` and take the next step; its kind.
    fn step(&self, token: u32, status: u32, bytes: &[u8]) -> u32 {
        self.hot([token, status, bytes.len() as u32, 0], bytes, Bridge::step).unwrap();
        self.word(1, FOUND)
    }

    /// What was drained: call, status and bytes, of which `None` are large.
    fn drain(&self) -> Vec<(u32, u32, Option<Vec<u8>>)> {
        self.call(Bridge::drain).unwrap();
        let mut at = HEADER_BYTES;
        (0..self.word(1, FOUND))
            .map(|_| {
                let ([call, status, length, large], _) = self.inbound::<4>(at, 0);
                let length = if large == 0 { length as usize } else { 0 };
                let (_, bytes) = self.inbound::<4>(at, length);
                at += RECORD_BYTES + length.next_multiple_of(8);
                (call, status, (large == 0).then_some(bytes))
            })
            .collect()
    }
}

/// A caller, a worker and their zone, with the caller's handle.
struct Scene {
    caller: Host,
    worker: Host,
    entry: Arc<Entry>,
    zone: u32,
}

fn scene() -> Scene {
    let alone = Rc::new(lock(&ALONE));
    let (caller, worker) = (host(&alone, true), host(&alone, false));
    let id: Box<[u16]> = "zone of a test".encode_utf16().collect();
    let entry = registry::make_zone(id, Box::default(), LIMITS, PLAN).unwrap();
    let zone = caller.call(|bridge| bridge.open_zone(Some(Arc::clone(&entry)))).cast_unsigned();
    assert!(caller.call(Bridge::mail), "the owner starts the worker");
    assert_eq!(caller.inbound::<3>(0, 0).0, [mail::SPAWN, entry.zone.number(), 0]);
    assert!(worker.call(|bridge| bridge.attach(entry.zone.number(), 0)));
    Scene { caller, worker, entry, zone }
}

#[test]
fn a_call_reaches_the_worker_and_its_result_the_caller() {
    let Scene { caller, worker, zone, .. } = &scene();
    assert_eq!(caller.submit(*zone, 0, b"arguments"), 0);
    assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Task as u32);
    let length = worker.word(1, work::LENGTH) as usize;
    assert_eq!((worker.word(1, work::FN), worker.word(1, work::LARGE)), (7, 0));
    assert_eq!(worker.inbound::<1>(HEADER_BYTES - 4, length).1, b"arguments");
    let token = worker.word(1, work::TOKEN);
    assert_eq!(worker.call(|bridge| bridge.task_bytes(token)), Ok(b"arguments".to_vec()));
    assert_eq!(worker.step(token, Status::Failed as u32, b"result"), Step::Nothing as u32);
    assert_eq!(caller.drain(), [(0, Status::Failed as u32, Some(b"result".to_vec()))]);
    assert_eq!(*caller.log.0.borrow(), [("alive", true), ("alive", false)], "while the call is in flight");
    assert_eq!(*worker.log.0.borrow(), [("alive", true)], "until the zone dismisses it");
}

#[test]
fn tasks_of_the_main_thread_do_not_keep_its_loop_alive_and_its_own_calls_do() {
    let Scene { caller, worker, zone, .. } = &scene();
    let id: Box<[u16]> = "the main thread".encode_utf16().collect();
    let own = registry::make_zone(id, Box::default(), LIMITS, PLAN).unwrap();
    let there = worker.call(|bridge| bridge.open_zone(Some(Arc::clone(&own)))).cast_unsigned();
    assert!(caller.call(Bridge::mail), "the owner is the main thread");
    assert!(caller.call(|bridge| bridge.attach(own.zone.number(), 0)));
    assert_eq!(worker.submit(there, 0, &[]), 0);
    assert_eq!(caller.step(NO_TOKEN, 0, &[]), Step::Task as u32);
    let token = caller.word(1, work::TOKEN);
    assert_eq!(*caller.log.0.borrow(), [], "neither the slot nor the task");
    assert_eq!(caller.submit(*zone, 0, &[]), 0);
    assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Task as u32);
    assert_eq!(worker.step(worker.word(1, work::TOKEN), DONE, &[]), Step::Nothing as u32);
    assert_eq!(caller.drain().len(), 1);
    assert_eq!(*caller.log.0.borrow(), [("alive", true), ("alive", false)], "while its call is in flight");
    assert_eq!(caller.step(token, DONE, &[]), Step::Nothing as u32);
    assert_eq!(worker.drain(), [(0, DONE, Some(Vec::new()))]);
    _ = own.zone.close(None);
    assert_eq!(caller.step(NO_TOKEN, 0, &[]), Step::Leave as u32);
    assert_eq!(caller.log.0.borrow().len(), 2, "it may have calls in flight when its zone dismisses it");
}

#[test]
fn a_number_that_nothing_has_is_an_error_and_changes_nothing() {
    let Scene { caller, worker, zone, .. } = &scene();
    let refuses = |words: [u32; 4], call: fn(&mut Bridge) -> Result<(), Misuse>, why| {
        assert_eq!(caller.hot(words, &[], call), Err(Misuse(why)), "{words:x?}");
    };
    for submits in [Bridge::submit, Bridge::join_fork] {
        refuses([9, 7, 0, 0], submits, "no such zone");
        refuses([*zone, 7, 0, u32::MAX], submits, "no such call");
        refuses([*zone, 7, BYTES as u32, 0], submits, "length beyond the scratch");
        refuses([*zone, 7, u32::MAX, 0], submits, "length beyond the scratch");
    }
    refuses([u32::MAX, 0, 0, 0], Bridge::help, "no such call");
    for ends in [Bridge::step, Bridge::complete] {
        refuses([0, 0, 0, 0], ends, "not a worker");
        refuses([0, 0, u32::MAX, 0], ends, "length beyond the scratch");
    }
    caller.call(|bridge| {
        assert_eq!(bridge.send_large(9, 7, 0, &[]), Err(Misuse("no such zone")));
        assert_eq!(bridge.await_capacity(9, 0), Err(Misuse("no such zone")));
        assert_eq!(bridge.cancel(*zone, u32::MAX, 0), Err(Misuse("no such call")));
        assert_eq!(bridge.broadcast_wait(3, Duration::ZERO), Err(Misuse("no such broadcast")));
        assert_eq!(bridge.large_result(0), Err(Misuse("no such result")));
        assert_eq!(bridge.broadcast_done(0, &[]), Err(Misuse("not a worker")));
        assert_eq!(bridge.task_bytes(0), Err(Misuse("no such task")));
        assert!(!bridge.attach(u32::MAX, 0) && !bridge.mail());
        bridge.drop_zone(9);
        bridge.function_ready(u32::MAX);
    });
    // A token that no task has is ignored.
    assert_eq!(worker.step(5, DONE, &[]), Step::Nothing as u32);
    assert_eq!(caller.submit(*zone, 0, &[]), 0, "no misuse has taken the call's number");
}

#[test]
fn what_does_not_fit_the_scratch_is_fetched() {
    let Scene { caller, worker, zone, .. } = &scene();
    let long = vec![3; 2000];
    caller.call(|bridge| assert_eq!(bridge.send_large(*zone, 7, 0, &long), Ok(0)));
    assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Task as u32);
    assert_eq!(worker.word(1, work::LARGE), 1);
    let token = worker.word(1, work::TOKEN);
    worker.call(|bridge| {
        assert_eq!(bridge.task_bytes(token).as_ref(), Ok(&long));
        assert_eq!(bridge.complete_with(token, DONE, &long), Ok(()));
    });
    assert_eq!(caller.drain(), [(0, DONE, None)]);
    assert_eq!(caller.call(|bridge| bridge.large_result(0)), Ok(long));
}

#[test]
fn a_drain_takes_as_many_results_as_fit_and_leaves_the_rest() {
    let Scene { caller, worker, zone, .. } = &scene();
    for call in 0..3 {
        assert_eq!(caller.submit(*zone, call, &[]), 0);
        assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Task as u32);
        let token = worker.word(1, work::TOKEN);
        worker.hot([token, DONE, 200, 0], &[call as u8; 200], Bridge::complete).unwrap();
    }
    let arrived = |call: u32| (call, DONE, Some(vec![call as u8; 200]));
    assert_eq!(caller.drain(), [arrived(0), arrived(1)]);
    caller.call(Bridge::linger).unwrap();
    assert_eq!(caller.drain(), [arrived(2)], "a caller without a spin limit does not linger");
}

#[test]
fn refusals_are_numbers_and_the_call_is_free_again() {
    let Scene { caller, entry, zone, .. } = &scene();
    caller.call(|bridge| assert_eq!(bridge.send_large(*zone, 7, 0, &[0; 2001]), Ok(refused::TOO_LARGE)));
    let kept = Arc::new(());
    caller.call(|bridge| {
        bridge.attach_buffers(Attachments { moved: 4000, kept: Box::new(Arc::clone(&kept)) });
    });
    assert_eq!(caller.submit(*zone, 0, &[]), refused::BYTES_FULL);
    assert_eq!(Arc::strong_count(&kept), 1, "a refused call keeps no memory");
    for call in 0..4 {
        assert_eq!(caller.submit(*zone, call, &[]), 0);
    }
    assert_eq!(caller.submit(*zone, 4, &[]), refused::FULL);
    assert!(entry.zone.close(None), "its worker has not left");
    assert_eq!(caller.submit(*zone, 4, &[]), refused::CLOSED);
}

#[test]
fn a_function_without_a_number_is_not_sent() {
    let Scene { caller, entry, zone, .. } = &scene();
    for (known, outcome) in [(None, UNKNOWN_FUNCTION), (Some(0), UNKNOWN_FUNCTION), (Some(8), 0)] {
        caller.hot([*zone, 0, 0, 0], &[], |_| Ok(())).unwrap();
        caller.call(|bridge| bridge.submit_known(known)).unwrap();
        assert_eq!(caller.word(0, OUTCOME), outcome);
    }
    assert_eq!(entry.zone.counts().waiting, 1);
}

#[test]
fn the_memory_of_a_result_is_kept_until_it_was_read() {
    let Scene { caller, worker, zone, .. } = &scene();
    let kept = Arc::new(());
    caller.submit(*zone, 0, &[]);
    worker.step(NO_TOKEN, 0, &[]);
    worker.call(|bridge| bridge.attach_buffers(Attachments { moved: 0, kept: Box::new(Arc::clone(&kept)) }));
    worker.step(worker.word(1, work::TOKEN), DONE, &[]);
    assert_eq!(caller.drain().len(), 1);
    assert_eq!((caller.word(1, 0), Arc::strong_count(&kept)), (flag::ATTACHMENTS, 2));
    caller.call(Bridge::drained);
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn a_cancelled_call_is_over_or_its_worker_gets_mail() {
    let Scene { caller, worker, zone, .. } = &scene();
    let cancel = |call| caller.call(|bridge| bridge.cancel(*zone, call, 5)).unwrap();
    caller.submit(*zone, 0, &[]);
    assert_eq!(cancel(0), cancelled::OVER);
    caller.submit(*zone, 0, &[]);
    worker.step(NO_TOKEN, 0, &[]);
    let token = worker.word(1, work::TOKEN);
    assert_eq!(cancel(0), cancelled::RUNNING);
    assert!(worker.call(Bridge::mail));
    assert_eq!(worker.inbound::<1>(0, 0).0, [mail::ABORT]);
    worker.step(token, DONE, &[]);
    assert_eq!(cancel(0), cancelled::ENDED);
    assert_eq!(caller.drain().len(), 1);
}

#[test]
fn a_running_task_notifies_its_caller_before_it_returns() {
    let Scene { caller, worker, zone, .. } = &scene();
    for call in 0..3 {
        caller.submit(*zone, call, &[]);
    }
    let notify = |token| worker.call(|bridge| bridge.notify_caller(token, mail::STREAMED, [7, 8]));
    assert!(notify(0).is_err());
    for call in 0..3 {
        worker.step(NO_TOKEN, 0, &[]);
        let token = worker.word(1, work::TOKEN);
        assert!(notify(token).unwrap());
        worker.step(token, DONE, &[]);
        // The flag of the drain that has the task is set: its mail has arrived.
        caller.call(Bridge::drain).unwrap();
        assert_eq!(caller.word(1, 0) & flag::MAIL, flag::MAIL);
        assert!(caller.call(Bridge::mail));
        assert_eq!(caller.inbound::<4>(0, 0).0, [mail::STREAMED, call, 7, 8]);
    }
}

#[test]
fn a_broadcast_is_a_step_of_the_worker_and_reports_its_failure() {
    let Scene { caller, worker, zone, .. } = &scene();
    let made = caller.call(|bridge| bridge.broadcast_sync(*zone, 9, b"all")).unwrap();
    let wait =
        |number: i32, slice| caller.call(|bridge| bridge.broadcast_wait(number.cast_unsigned(), slice));
    let waits = || wait(made, Duration::from_micros(1)).unwrap();
    assert_eq!(waits(), None);
    assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Broadcast as u32);
    assert_eq!(worker.call(|bridge| bridge.task_bytes(NO_TOKEN)), Ok(b"all".to_vec()));
    worker.call(|bridge| bridge.broadcast_done(Status::Failed as u32, b"why")).unwrap();
    assert_eq!(waits(), Some(Err(b"why".as_slice().into())));
    assert_eq!(caller.call(|bridge| bridge.broadcast(*zone, 9, b"all", 0)), Ok(0));
    assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Broadcast as u32);
    worker.call(|bridge| bridge.broadcast_done(DONE, &[])).unwrap();
    assert_eq!(caller.drain(), [(0, DONE, Some(vec![]))]);
    caller.call(|bridge| {
        assert_eq!(bridge.broadcast_sync(*zone, 9, &[]), Ok(refused::BROADCASTS_FULL));
    });
}

#[test]
fn a_caller_that_blocks_on_a_broadcast_stops() {
    let Scene { caller, zone, .. } = &scene();
    let made = caller.call(|bridge| bridge.broadcast_sync(*zone, 9, &[])).unwrap().cast_unsigned();
    let wait = |slice| caller.call(|bridge| bridge.broadcast_wait(made, slice));
    assert_eq!(wait(Duration::from_micros(1)), Ok(None));
    assert_eq!(wait(Duration::ZERO), Ok(None));
    assert_eq!(wait(Duration::ZERO), Err(Misuse("no such broadcast")));
}

#[test]
fn a_weak_zone_is_not_opened_once_it_closes() {
    let Scene { caller, entry, zone, .. } = scene();
    let open = || caller.call(|bridge| bridge.open_zone(Some(Arc::clone(&entry))));
    assert_eq!(caller.call(|bridge| bridge.weaken_zone(zone)), Ok(()));
    let other = open().cast_unsigned();
    caller.call(|bridge| bridge.drop_zone(zone));
    assert!(!registry::close_unused(entry.zone.number()), "one handle is left");
    caller.call(|bridge| bridge.drop_zone(other));
    // As a look-up that came before.
    assert!(registry::close_unused(entry.zone.number()));
    assert_eq!(open(), -1);
}

/// Two zones of one worker, in each of which a broadcast runs; the handles that each has of the other.
fn broadcasting<'a>(scene: &'a Scene, name: &str) -> (Host, &'a Host, [u32; 2]) {
    let Scene { caller, worker, entry, zone } = scene;
    let other = host(&caller.alone, false);
    let id: Box<[u16]> = name.encode_utf16().collect();
    let second = registry::make_zone(id, Box::default(), LIMITS, PLAN).unwrap();
    assert!(other.call(|bridge| bridge.attach(second.zone.number(), 0)));
    let handle = caller.call(|bridge| bridge.open_zone(Some(Arc::clone(&second)))).cast_unsigned();
    for (call, handle, worker) in [(0, *zone, worker), (1, handle, &other)] {
        assert_eq!(caller.call(|bridge| bridge.broadcast(handle, 9, &[], call)), Ok(0));
        assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Broadcast as u32);
        // As JavaScript does for what the broadcast calls.
        let word = worker.word(1, work::DEPTH) + 1;
        // SAFETY: as in hot.
        unsafe { worker.memory[0].data().cast::<u32>().add(given::DEPTH).write(word) };
    }
    let open = |host: &Host, entry| host.call(|bridge| bridge.open_zone(Some(entry))).cast_unsigned();
    let handles = [open(worker, second), open(&other, Arc::clone(entry))];
    (other, worker, handles)
}

/// One way of a broadcast's function to wait for the zone of that handle; the outcome.
type Way = (&'static str, fn(&Host, u32) -> i32);

const WAYS: [Way; 4] = [
    ("calls", |host, zone| host.submit(zone, 0, &[])),
    ("broadcasts", |host, zone| host.call(|bridge| bridge.broadcast(zone, 9, &[], 0)).unwrap()),
    ("blocks", |host, zone| host.call(|bridge| bridge.broadcast_sync(zone, 9, &[])).unwrap()),
    ("awaits capacity", |host, zone| {
        (1..=4).for_each(|call| _ = host.submit(zone, call, &[]));
        host.call(|bridge| bridge.await_capacity(zone, 0)).unwrap()
    }),
];

/// How a broadcast's function no longer waits; its thread, if that goes on.
type End = (&'static str, fn(Host, &Scene, u32) -> Option<Host>);

const ENDS: [End; 4] = [
    ("its call is cancelled", |host, _, zone| {
        host.call(|bridge| bridge.cancel(zone, 0, 0)).unwrap();
        Some(host)
    }),
    ("it ends and has not awaited the call", |host, _, _| {
        host.call(|bridge| bridge.broadcast_done(DONE, &[])).unwrap();
        Some(host)
    }),
    ("its thread ends", |host, _, _| {
        drop(host);
        None
    }),
    ("its call has begun", |host, scene, _| {
        scene.worker.call(|bridge| bridge.broadcast_done(DONE, &[])).unwrap();
        assert_eq!(scene.worker.step(NO_TOKEN, 0, &[]), Step::Task as u32);
        Some(host)
    }),
];

#[test]
fn broadcasts_of_two_zones_cannot_wait_for_each_other() {
    for (first, waits) in WAYS {
        for (second, waits_too) in WAYS {
            let scene = scene();
            let (other, worker, [there, back]) = broadcasting(&scene, first);
            assert!(waits(worker, there) >= 0, "{first}");
            assert_eq!(waits_too(&other, back), refused::DEADLOCK, "{first}, {second}");
        }
    }
}

#[test]
fn a_broadcast_that_no_longer_waits_is_in_nobodys_way() {
    for (name, ends) in ENDS {
        let scene = scene();
        let (other, worker, [there, back]) = broadcasting(&scene, name);
        assert_eq!(other.submit(back, 0, &[]), 0);
        assert_eq!(worker.submit(there, 0, &[]), refused::DEADLOCK, "{name}");
        let _other = ends(other, &scene, back);
        assert_eq!(worker.submit(there, 1, &[]), 0, "{name}");
    }
}

#[test]
fn a_caller_waits_for_capacity_and_stops() {
    let Scene { caller, worker, zone, .. } = &scene();
    let awaits = |call| caller.call(|bridge| bridge.await_capacity(*zone, call)).unwrap();
    let stops = |call| caller.call(|bridge| bridge.stop_awaiting_capacity(*zone, call)).unwrap();
    assert_eq!(awaits(0), 1);
    (0..4).for_each(|call| assert_eq!(caller.submit(*zone, call, &[]), 0));
    assert_eq!((awaits(4), stops(4)), (0, true));
    assert_eq!(awaits(4), 0);
    assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Task as u32);
    assert_eq!(caller.drain(), [(4, DONE, Some(vec![]))]);
    assert!(!stops(4));
}

#[test]
fn a_closed_zone_dismisses_its_worker() {
    let Scene { caller, worker, zone, entry } = scene();
    assert_eq!(caller.call(|bridge| bridge.close_zone(zone, 0)), Ok(true));
    assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Leave as u32);
    assert_eq!(*worker.log.0.borrow(), [("alive", true), ("alive", false)]);
    drop(worker);
    let _ = entry.zone.slot_ended(0, Status::Died, &[]);
    assert_eq!(caller.drain(), [(0, DONE, Some(vec![]))]);
    assert_eq!(caller.call(|bridge| bridge.close_zone(zone, 0)), Ok(false));
}

#[test]
fn a_worker_runs_the_call_that_it_joins_itself() {
    let Scene { caller, worker, zone, entry, .. } = &scene();
    caller.submit(*zone, 0, &[]);
    worker.step(NO_TOKEN, 0, &[]);
    let own = worker.call(|bridge| bridge.open_zone(Some(Arc::clone(entry)))).cast_unsigned();
    worker.hot([own, 8, 0, 0], &[], Bridge::join_fork).unwrap();
    assert_eq!(worker.word(0, OUTCOME), 0);
    worker.hot([0, 0, 0, 0], &[], Bridge::help).unwrap();
    assert_eq!(worker.word(1, FOUND), Step::Mine as u32);
}

/// The prepare step, with a drain that the test defines; how often it was called.
fn before_wait(host: &Host, mut drain: impl FnMut() -> bool) -> usize {
    let mut drains = 0;
    // SAFETY: open, on this thread; no reference is alive.
    unsafe {
        Bridge::before_wait(host.bridge, || {
            drains += 1;
            drain()
        });
    }
    drains
}

#[test]
fn the_loop_waits_when_nothing_has_arrived_and_what_arrives_is_drained_first() {
    let Scene { caller, worker, zone, .. } = &scene();
    assert_eq!(before_wait(worker, || unreachable!()), 0);
    caller.submit(*zone, 0, &[]);
    worker.call(Bridge::wake_up);
    let drains = before_wait(worker, || {
        assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Task as u32);
        worker.step(worker.word(1, work::TOKEN), DONE, &[]);
        true
    });
    assert_eq!(drains, 1);
    assert_eq!(before_wait(caller, || caller.drain().len() == 1), 1);
}

#[test]
fn a_loop_has_its_turn_though_work_remains() {
    let Scene { caller, worker, zone, .. } = &scene();
    caller.submit(*zone, 0, &[]);
    // A drain that takes nothing leaves the work: after some rounds timers and I/O are due.
    assert!(before_wait(worker, || true) > 1);
    assert_eq!(worker.log.0.borrow().last(), Some(&("idle", true)));
    // An environment that no longer runs JavaScript is not called again, and its loop may wait.
    assert_eq!(before_wait(worker, || false), 1);
    assert_eq!(worker.log.0.borrow().last(), Some(&("idle", false)));
}

#[test]
fn a_further_bridge_of_a_workers_thread_calls_through_that_worker() {
    let Scene { worker, entry, .. } = &scene();
    let further = host(&worker.alone, false);
    let handle = further.call(|bridge| bridge.open_zone(Some(Arc::clone(entry)))).cast_unsigned();
    further.hot([handle, 7, 0, 0], &[], Bridge::submit).unwrap();
    assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Task as u32);
    // Its caller is a worker's thread, which may begin one more task while it waits.
    further.hot([handle, 7, 0, 1], &[], Bridge::submit).unwrap();
    assert_eq!(worker.call(|bridge| bridge.worker.as_ref().unwrap().running_count()), 1);
    assert_eq!(worker.step(NO_TOKEN, 0, &[]), Step::Task as u32);
}
