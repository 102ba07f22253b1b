//! What a zone promises, one thread at a time: order, limits, broadcasts and their replay, ends.
//!
//! The queue is compared with a `VecDeque` under random scripts; broadcasts by tables of who ran what. What
//! can only go wrong between threads is in models.rs and stress.rs.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use corespun_bridge::{
    Broadcast, Cancellation, Failure, Limits, Machine, Mail, Next, Order, Overdue, Priority, Receiver,
    Refusal, Status, Submission, Task, Wake, Worker, Zone,
};

const LIMITS: Limits = Limits {
    tasks_max: 8,
    task_bytes_max: 16,
    queue_bytes_max: 40,
    broadcasts_max: 3,
    tasks_per_worker_max: 2,
    waiting_per_worker_max: 16,
    call_depth_max: 8,
    tasks_per_tenant_max: usize::MAX,
    worker_tasks_max: usize::MAX,
    spin: Duration::ZERO,
};
const STEPS: u64 = if cfg!(miri) { 300 } else { 100_000 };

static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::new(2));
/// Mailboxes are never freed: they stay reachable, here as in the binding.
static RECEIVERS: Mutex<Vec<Receiver>> = Mutex::new(Vec::new());

struct Silent;

impl Wake for Silent {
    fn wake(&self) {}
}

/// A receiver for one test.
struct Seat(Option<Receiver>);

impl Seat {
    fn new() -> Self {
        let mut receiver = Receiver::new(0, &MACHINE);
        receiver.open(Box::new(Silent));
        Self(Some(receiver))
    }

    fn receiver(&mut self) -> &mut Receiver {
        self.0.as_mut().unwrap()
    }

    /// Submit call `call` with `length` bytes.
    fn submit(&mut self, zone: &Zone, call: u32, length: usize) -> Result<(), Refusal> {
        let task = self.receiver().task(call);
        // SAFETY: the scripts use a number again only when its task is at home.
        unsafe { task.body(|body| body.bytes.set(&vec![call as u8; length])) };
        let outcome = zone.submit(Submission::new(task, length));
        if outcome.is_ok() {
            self.receiver().sent();
        }
        outcome
    }

    /// Submit call `call` for the worker of that slot alone.
    fn submit_to(&mut self, zone: &Zone, call: u32, slot: u32, moves: bool) -> Result<(), Refusal> {
        self.submit_as(zone, call, Order { worker: slot as u16 + 1, moves, ..Order::default() })
    }

    /// Submit call `call` in that order.
    fn submit_as(&mut self, zone: &Zone, call: u32, order: Order) -> Result<(), Refusal> {
        let task = self.receiver().task(call);
        // SAFETY: as in submit.
        unsafe { task.body(|body| body.bytes.set(&[call as u8])) };
        let outcome = zone.submit(Submission { order: Some((order, 1)), ..Submission::new(task, 1) });
        if outcome.is_ok() {
            self.receiver().sent();
        }
        outcome
    }

    /// The calls that have returned, with their statuses and bytes.
    fn arrivals(&mut self) -> Vec<(u32, Status, Vec<u8>)> {
        let mut arrived = Vec::new();
        while let Some(task) = self.receiver().next_arrival() {
            // SAFETY: at home.
            let (status, bytes) = unsafe { task.body(|body| (body.status, body.bytes.as_slice().to_vec())) };
            arrived.push((task.call(), status, bytes));
            self.receiver().put_away(task);
        }
        arrived
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut receiver = self.0.take().unwrap();
        receiver.close();
        RECEIVERS.lock().unwrap().push(receiver);
    }
}

fn zone() -> Arc<Zone> {
    Arc::new(Zone::new(1, LIMITS))
}

fn worker(zone: &Arc<Zone>, seat: &mut Seat) -> (u32, Worker) {
    let slot = zone.add_slot().unwrap();
    (slot, zone.attach(slot, seat.receiver().mailbox()).unwrap())
}

fn take(worker: &mut Worker) -> Option<(&'static Task, u32)> {
    match worker.take() {
        Next::Task { task, token, .. } => Some((task, token)),
        _ => None,
    }
}

/// Random submissions, takes, cancellations and completions, compared with a `VecDeque` at each step.
fn check_script(seed: u64) {
    let (zone, mut home, mut receiver) = (zone(), Seat::new(), Seat::new());
    let (_, mut worker) = worker(&zone, &mut receiver);
    let mut model: VecDeque<(u32, usize)> = VecDeque::new();
    let mut running: Vec<(u32, u32)> = Vec::new();
    let mut free: Vec<u32> = (0..16).collect();
    let mut state = seed;
    let mut dice = move |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for step in 0..STEPS {
        match dice(4) {
            0 => {
                let (call, length) = (*free.last().unwrap(), dice(18) as usize);
                let bytes: usize = model.iter().map(|&(_, length)| length).sum();
                let expected = match () {
                    () if length > LIMITS.task_bytes_max => Err(Refusal::TooLarge),
                    () if model.len() == LIMITS.tasks_max => Err(Refusal::Full),
                    () if length > 0 && bytes + length > LIMITS.queue_bytes_max => Err(Refusal::BytesFull),
                    () => Ok(()),
                };
                assert_eq!(home.submit(&zone, call, length), expected);
                if expected.is_ok() {
                    free.pop();
                    model.push_back((call, length));
                }
            }
            1 => {
                let taken = take(&mut worker);
                let expected = if running.len() < 2 { model.pop_front() } else { None };
                assert_eq!(
                    taken.map(|(task, _)| task.call()),
                    expected.map(|(call, _)| call),
                    "oldest first"
                );
                running.extend(taken.map(|(task, token)| (task.call(), token)));
            }
            2 if !model.is_empty() => {
                let (call, _) = model.remove(dice(model.len() as u64) as usize).unwrap();
                let task = home.receiver().task(call);
                assert_eq!(zone.cancel(task, 1, 0), Cancellation::Cancelled);
                home.receiver().put_away(task);
                free.push(call);
            }
            3 if !running.is_empty() => {
                let (call, token) = running.swap_remove(dice(running.len() as u64) as usize);
                assert!(matches!(
                    zone.cancel(home.receiver().task(call), 1, 9),
                    Cancellation::Running { .. }
                ));
                let mails =
                    receiver.receiver().next_mail().map(|mail| (mail.kind, mail.subject, mail.facts[1]));
                assert_eq!(mails, Some((1, token, 9)));
                assert!(worker.complete(token, |body| body.bytes.clear()));
                assert_eq!(zone.cancel(home.receiver().task(call), 1, 0), Cancellation::Ended);
                assert_eq!(home.arrivals(), [(call, Status::Done, vec![])]);
                free.push(call);
            }
            _ => {}
        }
        // Counting adds up histograms, which a debug build does slowly.
        if step % 64 != 0 {
            continue;
        }
        let counts = zone.counts();
        let bytes: usize = model.iter().map(|&(_, length)| length).sum();
        let expected = (model.len() as u64, bytes as u64, running.len() as u64);
        assert_eq!((counts.waiting, counts.waiting_bytes, counts.running), expected);
    }
    check_notified(&zone, &mut receiver, &running);
    check_end(&zone, &mut home, &mut worker, model, running);
}

/// The workers of all running tasks can be notified at once.
fn check_notified(zone: &Zone, receiver: &mut Seat, running: &[(u32, u32)]) {
    zone.cancel_running(1, 7);
    let mut mails: Vec<_> = std::iter::from_fn(|| receiver.receiver().next_mail()).collect();
    mails.sort_by_key(|mail| mail.subject);
    let mut tokens: Vec<_> = running.iter().map(|&(_, token)| token).collect();
    tokens.sort_unstable();
    assert!(mails.iter().map(|mail| (mail.kind, mail.subject)).eq(tokens.iter().map(|&token| (1, token))));
    assert!(mails.iter().all(|mail| mail.facts[1] == 7));
}

/// End the script's zone: what waited returns, what runs can still be ended.
fn check_end(
    zone: &Zone,
    home: &mut Seat,
    worker: &mut Worker,
    model: VecDeque<(u32, usize)>,
    running: Vec<(u32, u32)>,
) {
    zone.finish(Status::Closed, &[]);
    let mut closed: Vec<u32> = home.arrivals().into_iter().map(|(call, ..)| call).collect();
    closed.sort_unstable();
    let mut left: Vec<u32> = model.into_iter().map(|(call, _)| call).collect();
    left.sort_unstable();
    assert_eq!(closed, left, "what waited returned");
    for (_, token) in running {
        assert!(worker.complete(token, |_| {}));
    }
    assert!(home.arrivals().iter().all(|(_, status, _)| *status == Status::Done));
    assert!(home.receiver().is_idle());
}

#[test]
fn the_queue_is_first_in_first_out_whatever_is_withdrawn() {
    for seed in 1..4 {
        check_script(seed);
    }
}

/// Run the broadcast that is next; it must be `function`.
fn run_next(worker: &mut Worker, function: u32, failure: Option<&[u8]>) {
    let Next::Broadcast(broadcast) = worker.take() else { panic!("{function} is next") };
    assert_eq!(broadcast.function, function);
    assert!(matches!(worker.take(), Next::Nothing), "nothing begins before it is done");
    worker.broadcast_done(failure.map(|bytes| Failure { status: Status::Failed, bytes: bytes.into() }));
}

fn outcome(broadcast: &Broadcast) -> Option<Option<Vec<u8>>> {
    broadcast.outcome().map(|failure| failure.map(|failure| failure.bytes.to_vec()))
}

#[test]
fn broadcasts_go_before_tasks_and_wait_for_running_ones() {
    let (zone, mut home, mut receiver) = (zone(), Seat::new(), Seat::new());
    let (_, mut worker) = worker(&zone, &mut receiver);
    home.submit(&zone, 0, 1).unwrap();
    home.submit(&zone, 1, 1).unwrap();
    let (_, token) = take(&mut worker).unwrap();
    let made = zone.broadcast(0, 7, b"x", 0, None, None).unwrap();
    assert!(matches!(worker.take(), Next::Nothing) && !worker.has_work(), "a task runs");
    assert!(worker.complete(token, |_| {}));
    assert_eq!(outcome(&made), None);
    run_next(&mut worker, 7, None);
    assert_eq!(outcome(&made), Some(None));
    assert_eq!(take(&mut worker).unwrap().0.call(), 1);
    drop(worker);
    assert_eq!(zone.slot_ended(0, Status::Died, &[]), 1);
    assert_eq!(home.arrivals().len(), 2);
}

#[test]
fn the_first_failure_is_the_outcome_and_all_have_run_it() {
    let (zone, mut home, mut one, mut two) = (zone(), Seat::new(), Seat::new(), Seat::new());
    let (_, mut first) = worker(&zone, &mut one);
    let (_, mut second) = worker(&zone, &mut two);
    let task = home.receiver().task(0);
    let made = zone.broadcast(0, 7, b"x", 0, None, Some(task)).unwrap();
    home.receiver().sent();
    run_next(&mut second, 7, Some(b"first"));
    assert!(outcome(&made).is_none() && home.arrivals().is_empty(), "one has not run it");
    run_next(&mut first, 7, Some(b"second"));
    assert_eq!(outcome(&made), Some(Some(b"first".to_vec())));
    assert_eq!(home.arrivals(), [(0, Status::Failed, b"first".to_vec())]);
}

#[test]
fn a_replacement_replays_and_answers_for_the_dead_one_alone() {
    let (zone, mut one, mut two) = (zone(), Seat::new(), Seat::new());
    let (slot, mut first) = worker(&zone, &mut one);
    let answered = zone.broadcast(0, 1, &[], 0, None, None).unwrap();
    run_next(&mut first, 1, Some(b"no"));
    let owed = zone.broadcast(0, 2, &[], 0, None, None).unwrap();
    drop(first);
    assert_eq!(zone.slot_ended(slot, Status::Died, &[]), 0);
    let between = zone.broadcast(0, 3, &[], 0, None, None).unwrap();
    assert_eq!((outcome(&owed), outcome(&between)), (None, None), "the replacement answers");
    let (_, mut second) = worker(&zone, &mut two);
    run_next(&mut second, 1, Some(b"again"));
    assert_eq!(outcome(&answered), Some(Some(b"no".to_vec())), "answered once");
    run_next(&mut second, 2, None);
    assert_eq!((outcome(&owed), outcome(&between)), (Some(None), None));
    run_next(&mut second, 3, None);
    assert_eq!(outcome(&between), Some(None));
}

#[test]
fn one_who_joins_later_replays_without_an_answer() {
    let (zone, mut one, mut two) = (zone(), Seat::new(), Seat::new());
    let nobody = zone.broadcast(0, 1, &[], 0, None, None).unwrap();
    assert_eq!(outcome(&nobody), Some(None), "settled at once without workers");
    let (_, mut first) = worker(&zone, &mut one);
    let made = zone.broadcast(0, 2, &[], 0, None, None).unwrap();
    let (_, mut second) = worker(&zone, &mut two);
    run_next(&mut second, 1, None);
    run_next(&mut second, 2, Some(b"not a member"));
    assert_eq!(outcome(&made), None);
    run_next(&mut first, 1, None);
    run_next(&mut first, 2, None);
    assert_eq!(outcome(&made), Some(None));
    zone.broadcast(0, 3, &[], 0, None, None).unwrap();
    assert_eq!(zone.broadcast(0, 4, &[], 0, None, None).err(), Some(Refusal::BroadcastsFull));
    assert_eq!(zone.broadcast(0, 4, &[0; 17], 0, None, None).err(), Some(Refusal::TooLarge));
}

#[test]
fn a_broadcast_in_a_zone_that_ends_is_settled() {
    let (zone, mut home, mut one) = (zone(), Seat::new(), Seat::new());
    let (slot, first) = worker(&zone, &mut one);
    let task = home.receiver().task(0);
    zone.broadcast(0, 1, &[], 0, None, Some(task)).unwrap();
    home.receiver().sent();
    assert!(zone.close(None));
    assert_eq!(zone.broadcast(0, 2, &[], 0, None, None).err(), Some(Refusal::Closed));
    drop(first);
    zone.slot_ended(slot, Status::Died, &[]);
    assert_eq!(zone.add_slot(), None, "nothing waits");
    assert_eq!(home.arrivals().iter().map(|(call, ..)| *call).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_slot_with_a_living_worker_is_not_gone() {
    let (zone, mut home, mut one) = (zone(), Seat::new(), Seat::new());
    let (slot, mut first) = worker(&zone, &mut one);
    home.submit(&zone, 0, 3).unwrap();
    let (_, token) = take(&mut first).unwrap();
    assert_eq!(zone.slot_ended(slot, Status::Died, &[]), 0);
    assert!(first.complete(token, |_| {}), "it still has its task");
    assert!(!first.complete(token, |_| unreachable!("completed twice")));
    first.leave();
    assert_eq!(zone.slot_ended(slot, Status::Died, &[]), 0);
    assert_eq!(zone.counts().workers, 0);
    assert!(zone.attach(slot, home.receiver().mailbox()).is_none());
    assert_eq!(home.arrivals(), [(0, Status::Done, vec![0; 3])]);
}

#[test]
fn a_zone_that_is_dropped_sends_everything_home() {
    let (zone, mut home, mut one) = (zone(), Seat::new(), Seat::new());
    let (_, mut first) = worker(&zone, &mut one);
    home.submit(&zone, 0, 1).unwrap();
    home.submit(&zone, 1, 1).unwrap();
    let _ = take(&mut first).unwrap();
    let task = home.receiver().task(2);
    assert!(zone.close(Some(task)));
    home.receiver().sent();
    drop(first);
    drop(zone);
    let mut came: Vec<_> = home.arrivals().into_iter().map(|(call, status, _)| (call, status)).collect();
    came.sort_unstable_by_key(|&(call, _)| call);
    assert_eq!(came, [(0, Status::Orphaned), (1, Status::Orphaned), (2, Status::Done)]);
}

#[test]
fn an_idle_worker_is_woken_before_one_that_runs_something() {
    let (zone, mut home, mut one, mut two) = (zone(), Seat::new(), Seat::new(), Seat::new());
    let (_, mut busy) = worker(&zone, &mut one);
    let (_, mut idle) = worker(&zone, &mut two);
    home.submit(&zone, 0, 0).unwrap();
    let (_, token) = take(&mut busy).unwrap();
    assert!(idle.try_sleep(two.receiver()));
    assert!(busy.try_sleep(one.receiver()), "listed last, but it runs a task");
    assert_eq!(zone.counts().asleep, 2);
    home.submit(&zone, 1, 0).unwrap();
    assert_eq!((zone.counts().asleep, zone.counts().wake_ups), (1, 1));
    two.receiver().wake_up();
    idle.wake_up();
    assert_eq!(zone.counts().asleep, 1, "the busy one is still listed");
    assert!(take(&mut idle).is_some() && busy.complete(token, |_| {}));
}

#[test]
fn a_closed_port_takes_no_mail_and_its_tasks_still_come_home() {
    let (zone, mut home, mut one) = (zone(), Seat::new(), Seat::new());
    let mail = Mail { kind: 1, subject: 2, facts: [3, 4] };
    home.submit(&zone, 0, 0).unwrap();
    assert!(home.receiver().mailbox().send(mail));
    home.receiver().close();
    assert!(!home.receiver().mailbox().send(mail) && home.receiver().next_mail().is_none());
    assert!(!home.receiver().is_idle(), "its task is out");
    let (_, mut first) = worker(&zone, &mut one);
    let (_, token) = take(&mut first).unwrap();
    assert!(first.complete(token, |_| {}));
    assert!(home.receiver().is_idle(), "and now at home");
    home.receiver().open(Box::new(Silent));
    assert!(home.receiver().mailbox().send(mail));
    assert_eq!(home.receiver().next_mail(), Some(mail));
}

#[test]
fn a_condemned_worker_begins_nothing_more_and_its_tasks_still_come_home() {
    let (zone, mut home, mut receiver) = (zone(), Seat::new(), Seat::new());
    let (slot, mut worker) = worker(&zone, &mut receiver);
    for call in 0..2 {
        home.submit(&zone, call, 0).unwrap();
    }
    let Next::Task { task, token, .. } = worker.take() else { panic!("a task waits") };
    let none = Overdue { condemned: vec![], next_ns: None };
    assert_eq!(zone.overdue(0.0), none, "its caller waits");
    assert!(matches!(zone.cancel(task, 7, 0), Cancellation::Running { .. }));
    assert!(zone.overdue(3.6e12).next_ns.unwrap() > 0.0, "it has an hour");
    assert_eq!(zone.overdue(-1.0).condemned, [slot]);
    assert_eq!(zone.overdue(-1.0), none, "reported once");
    assert_eq!(zone.counts().running, 1);
    assert!(take(&mut worker).is_none());
    assert!(worker.complete(token, |body| body.status = Status::Done));
    assert!(take(&mut worker).is_none() && !worker.has_work(), "not even when it is free");
    assert_eq!(zone.overdue(-1.0), none);
    assert_eq!(home.arrivals(), [(0, Status::Done, vec![])]);
    worker.leave();
    zone.slot_ended(slot, Status::Died, &[]);
    let mut next = Seat::new();
    let slot = zone.add_slot().unwrap();
    let mut worker = zone.attach(slot, next.receiver().mailbox()).unwrap();
    let (task, token) = take(&mut worker).unwrap();
    assert_eq!(task.call(), 1, "what waits is for others");
    assert!(worker.complete(token, |_| ()));
    assert_eq!(home.arrivals().len(), 1);
}

/// A retired worker ends what it runs and begins nothing else, and what waits is for its replacement, which
/// answers for it.
#[test]
fn a_retired_worker_finishes_and_is_replaced() {
    let (zone, mut home, mut seat, mut other) = (zone(), Seat::new(), Seat::new(), Seat::new());
    let (slot, mut old) = worker(&zone, &mut seat);
    home.submit(&zone, 0, 1).unwrap();
    home.submit(&zone, 1, 1).unwrap();
    let (_, token) = take(&mut old).unwrap();
    zone.retire(slot, 9);
    assert_eq!(seat.receiver().next_mail().map(|mail| mail.kind), Some(9));
    let broadcast = zone.broadcast(0, 7, &[], 0, None, None).unwrap();
    assert!(matches!(old.take(), Next::Nothing), "a task is waiting, and not for this worker");
    assert!(old.complete(token, |body| body.bytes.clear()));
    assert!(old.has_work());
    assert!(matches!(old.take(), Next::Leave));
    old.leave();
    assert_eq!(zone.slot_ended(slot, Status::Died, &[]), 0);
    assert!(broadcast.outcome().is_none(), "its replacement has to run it");
    let (same, mut fresh) = worker(&zone, &mut other);
    assert_eq!(same, slot);
    assert!(matches!(fresh.take(), Next::Broadcast(_)));
    fresh.broadcast_done(None);
    assert!(broadcast.outcome().is_some());
    assert_eq!(take(&mut fresh).map(|(task, _)| task.call()), Some(1));
    assert_eq!(home.arrivals().len(), 1);
}

/// A worker that is retired before its thread has attached leaves at once; idle ones do when they look.
#[test]
fn an_idle_worker_that_is_retired_leaves() {
    let (zone, mut seat) = (zone(), Seat::new());
    let slot = zone.add_slot().unwrap();
    zone.retire(slot, 9);
    zone.retire(slot + 1, 9);
    let mut early = zone.attach(slot, seat.receiver().mailbox()).unwrap();
    assert!(matches!(early.take(), Next::Leave));
    early.leave();
    zone.slot_ended(slot, Status::Died, &[]);
    let (slot, mut idle) = worker(&zone, &mut seat);
    assert!(idle.try_sleep(seat.receiver()));
    zone.retire(slot, 9);
    idle.wake_up();
    assert!(!idle.try_sleep(seat.receiver()));
    assert!(matches!(idle.take(), Next::Leave));
}

/// Callers of `reload` return when the owner has replaced the workers, oldest first, or with the zone; then
/// none is accepted.
#[test]
fn callers_that_wait_for_new_workers_return_once() {
    let (zone, mut home) = (zone(), Seat::new());
    for call in 0..3 {
        let task = home.receiver().task(call);
        zone.reload(task).unwrap();
        home.receiver().sent();
    }
    zone.reloaded(1, Status::Done, &[]);
    assert_eq!(home.arrivals(), [(0, Status::Done, vec![])]);
    zone.reloaded(1, Status::Failed, &[5]);
    assert_eq!(home.arrivals(), [(1, Status::Failed, vec![5])]);
    zone.finish(Status::Closed, &[]);
    assert_eq!(home.arrivals(), [(2, Status::Closed, vec![])]);
    zone.reloaded(4, Status::Done, &[]);
    let late = home.receiver().task(3);
    assert_eq!(zone.reload(late), Err(Refusal::Closed));
}

/// What only one worker may take counts like the rest, waits for that worker's replacement when it dies, and
/// no other worker takes it or is kept awake by it.
#[test]
fn what_only_one_worker_may_take_waits_for_its_replacement() {
    let (zone, mut home) = (zone(), Seat::new());
    let (mut one, mut two, mut three) = (Seat::new(), Seat::new(), Seat::new());
    let (first, mut dying) = worker(&zone, &mut one);
    let (second, mut other) = worker(&zone, &mut two);
    for call in 0..LIMITS.tasks_max as u32 - 1 {
        home.submit_to(&zone, call, first, false).unwrap();
    }
    home.submit(&zone, 7, 1).unwrap();
    assert_eq!(home.submit(&zone, 8, 1), Err(Refusal::Full));
    assert_eq!(home.submit_to(&zone, 8, second, false), Err(Refusal::Full));
    assert_eq!(zone.counts().waiting, 8);
    assert_eq!(zone.worker_counts().iter().map(|counts| counts.waiting).collect::<Vec<_>>(), [7, 0]);
    let (task, token) = take(&mut other).unwrap();
    assert_eq!(task.call(), 7);
    assert!(other.complete(token, |_| ()));
    assert!(!other.has_work() && take(&mut other).is_none());
    assert!(other.try_sleep(two.receiver()), "the rest is not for this one");
    other.wake_up();
    two.receiver().wake_up();
    assert!(dying.has_work() && !dying.try_sleep(one.receiver()));
    assert!(take(&mut dying).is_some());
    assert_eq!(zone.cancel(home.receiver().task(6), 1, 0), Cancellation::Cancelled);
    let cancelled = home.receiver().task(6);
    home.receiver().put_away(cancelled);
    dying.leave();
    assert_eq!(zone.slot_ended(first, Status::Died, &[]), 1);
    assert_eq!(zone.counts().waiting, 5);
    let (same, mut fresh) = worker(&zone, &mut three);
    assert_eq!(same, first);
    let mut ran = Vec::new();
    while let Some((task, token)) = take(&mut fresh) {
        ran.push(task.call());
        assert!(fresh.complete(token, |_| ()));
    }
    assert_eq!(ran, [1, 2, 3, 4, 5]);
    assert_eq!(zone.counts().waiting, 0);
    assert!(fresh.try_sleep(three.receiver()));
    home.submit_to(&zone, 0, first, false).unwrap_or_else(|refusal| panic!("{refusal:?}"));
}

/// A worker that has left a closing zone runs nothing more: what is for it alone is refused, unless any other
/// may run it instead.
#[test]
fn a_closing_zone_refuses_what_only_a_worker_may_take_that_has_left() {
    let (zone, mut home) = (zone(), Seat::new());
    let (mut one, mut two) = (Seat::new(), Seat::new());
    let (first, mut leaving) = worker(&zone, &mut one);
    let (_, mut busy) = worker(&zone, &mut two);
    home.submit(&zone, 0, 1).unwrap();
    let (_, token) = take(&mut busy).unwrap();
    assert!(zone.close(None));
    assert!(matches!(leaving.take(), Next::Leave));
    leaving.leave();
    zone.slot_ended(first, Status::Died, &[]);
    assert_eq!(zone.add_slot(), None);
    let task = two.receiver().task(0);
    let bound = |moves| {
        let order = Order { worker: first as u16 + 1, moves, ..Order::default() };
        Submission { order: Some((order, 1)), ..Submission::new(task, 0) }
    };
    assert_eq!(busy.submit(&zone, bound(false)), Err(Refusal::Closed));
    assert_eq!(busy.submit(&zone, bound(true)), Ok(()));
    two.receiver().sent();
    let (_, moved) = take(&mut busy).unwrap();
    assert!(busy.complete(moved, |_| ()) && busy.complete(token, |_| ()));
    assert!(matches!(busy.take(), Next::Leave));
}

const EXCLUSIVE: Order =
    Order { tenant: 0, shares: false, worker: 0, moves: true, exclusive: true, priority: Priority::Normal };

/// At its turn an exclusive task waits until its worker runs nothing, which begins nothing meanwhile; then it
/// runs alone, and afterwards the worker goes on.
#[test]
fn an_exclusive_task_runs_alone_at_its_turn() {
    let (zone, mut home, mut seat) = (zone(), Seat::new(), Seat::new());
    let (_, mut own) = worker(&zone, &mut seat);
    home.submit(&zone, 0, 1).unwrap();
    home.submit_as(&zone, 1, EXCLUSIVE).unwrap();
    home.submit_as(&zone, 2, EXCLUSIVE).unwrap();
    home.submit(&zone, 3, 1).unwrap();
    home.submit(&zone, 4, 1).unwrap();
    let mut ran = Vec::new();
    for _ in 0..3 {
        let (task, token) = take(&mut own).unwrap();
        ran.push(task.call());
        assert!(take(&mut own).is_none() && !own.has_work());
        assert!(own.try_sleep(seat.receiver()), "what waits is not for it now");
        own.wake_up();
        seat.receiver().wake_up();
        assert_eq!(zone.counts().waiting, 5 - ran.len() as u64);
        assert!(own.complete(token, |_| ()));
        assert!(own.has_work());
    }
    assert!(take(&mut own).is_some() && take(&mut own).is_some());
    assert_eq!(ran, [0, 1, 2]);
    assert_eq!((zone.counts().waiting, zone.counts().running), (0, 2));
}

/// What an exclusive task calls may lead back to its worker: that begins what is deeper, while a call waits.
#[test]
fn an_exclusive_task_that_waits_for_a_call_lets_deeper_ones_begin() {
    let (zone, mut home, mut seat) = (zone(), Seat::new(), Seat::new());
    let (_, mut own) = worker(&zone, &mut seat);
    home.submit_as(&zone, 0, EXCLUSIVE).unwrap();
    home.submit(&zone, 1, 1).unwrap();
    let (_, token) = take(&mut own).unwrap();
    let inner = seat.receiver().task(0);
    // SAFETY: its number is free.
    unsafe { inner.body(|body| body.depth = 1) };
    own.submit(&zone, Submission::new(inner, 0)).unwrap();
    seat.receiver().sent();
    assert!(own.has_work());
    let (deeper, second) = take(&mut own).unwrap();
    assert!(std::ptr::eq(deeper, inner));
    assert!(take(&mut own).is_none(), "the other one waits");
    assert!(own.complete(second, |_| ()) && own.complete(token, |_| ()));
    own.call_returned();
    assert_eq!(take(&mut own).map(|(task, _)| task.call()), Some(1));
}

/// It runs on whichever worker is idle first: one that sleeps at its turn, or one that is about to sleep.
#[test]
fn an_idle_worker_takes_over_an_exclusive_task() {
    let (zone, mut home) = (zone(), Seat::new());
    let (mut one, mut two) = (Seat::new(), Seat::new());
    let (_, mut busy) = worker(&zone, &mut one);
    let (_, mut idle) = worker(&zone, &mut two);
    for call in 0..3 {
        home.submit(&zone, call, 1).unwrap();
    }
    let (_, first) = take(&mut busy).unwrap();
    let [(_, second), (_, third)] = [take(&mut idle).unwrap(), take(&mut idle).unwrap()];
    home.submit_as(&zone, 3, EXCLUSIVE).unwrap();
    assert!(take(&mut busy).is_none(), "it drains");
    home.submit(&zone, 4, 1).unwrap();
    assert!(take(&mut busy).is_none());
    assert!(idle.complete(second, |_| ()) && idle.complete(third, |_| ()));
    // Nothing else waits but what is older there.
    assert_eq!(take(&mut idle).map(|(task, _)| task.call()), Some(3));
    assert!(take(&mut idle).is_none());
    assert_eq!(take(&mut busy).map(|(task, _)| task.call()), Some(4), "it no longer drains");
    assert_eq!(zone.counts().running, 3);
    assert!(busy.complete(first, |_| ()));
}

/// The same where nothing else waits.
#[test]
fn an_exclusive_task_wakes_an_idle_worker_and_is_found_before_sleep() {
    let (zone, mut home) = (zone(), Seat::new());
    let (mut one, mut two) = (Seat::new(), Seat::new());
    let (_, mut busy) = worker(&zone, &mut one);
    let (_, mut idle) = worker(&zone, &mut two);
    home.submit(&zone, 0, 1).unwrap();
    assert!(take(&mut busy).is_some());
    home.submit_as(&zone, 1, EXCLUSIVE).unwrap();
    assert!(take(&mut busy).is_none());
    assert!(!idle.has_work() && !idle.try_sleep(two.receiver()), "it takes the task over");
    let (task, token) = take(&mut idle).unwrap();
    assert_eq!(task.call(), 1);
    assert!(idle.complete(token, |_| ()));
    assert!(idle.try_sleep(two.receiver()));
    // So the other one is not woken for what this one finds.
    busy.begin_search();
    home.submit_as(&zone, 2, EXCLUSIVE).unwrap();
    assert!(take(&mut busy).is_none());
    busy.found();
    idle.wake_up();
    two.receiver().wake_up();
    assert_eq!(take(&mut idle).map(|(task, _)| task.call()), Some(2));
    home.submit(&zone, 3, 1).unwrap();
    assert!(take(&mut busy).is_some());
}

/// A task that is cancelled before it runs alone lets its worker go on; one whose worker dies waits for
/// another worker. One whose worker runs what waits in vain for streams lets others begin.
#[test]
fn a_worker_that_drained_in_vain_goes_on() {
    let (zone, mut home) = (zone(), Seat::new());
    let (mut one, mut two) = (Seat::new(), Seat::new());
    let (slot, mut own) = worker(&zone, &mut one);
    home.submit(&zone, 0, 1).unwrap();
    home.submit_as(&zone, 1, EXCLUSIVE).unwrap();
    home.submit(&zone, 2, 1).unwrap();
    assert!(take(&mut own).is_some() && take(&mut own).is_none());
    let exclusive = home.receiver().task(1);
    assert_eq!(zone.cancel(exclusive, 1, 0), Cancellation::Cancelled);
    home.receiver().put_away(exclusive);
    assert_eq!(take(&mut own).map(|(task, token)| (task.call(), token)), Some((2, 1)));
    assert!(own.complete(1, |_| ()));
    home.submit_as(&zone, 3, Order { priority: Priority::High, tenant: 1 << 8, ..EXCLUSIVE }).unwrap();
    home.submit_to(&zone, 4, slot, false).unwrap();
    assert!(take(&mut own).is_none());
    assert_eq!(zone.waiting_ordered(), [1.0, 0.0, 1.0, 256.0, 0.0, 1.0]);
    home.submit_as(&zone, 2, EXCLUSIVE).unwrap();
    own.set_waits(1);
    own.begin_any();
    assert_eq!(take(&mut own).map(|(task, _)| task.call()), Some(4), "streams wait for it, perhaps");
    own.begin_any();
    assert!(take(&mut own).is_none() && !own.has_work());
    own.leave();
    assert_eq!(zone.slot_ended(slot, Status::Died, &[]), 2);
    assert_eq!(zone.counts().waiting, 2);
    let mut ran = Vec::new();
    let (_, mut fresh) = worker(&zone, &mut two);
    while let Some((task, token)) = take(&mut fresh) {
        ran.push(task.call());
        assert!(fresh.complete(token, |_| ()));
    }
    assert_eq!(ran, [3, 2]);
    let counts = zone.counts();
    assert_eq!((counts.waiting, counts.waiting_bytes, counts.running), (0, 0, 0));
    for call in 5..8 {
        home.submit_as(&zone, call, EXCLUSIVE).unwrap();
    }
    zone.finish(Status::Closed, &[]);
    assert_eq!(zone.counts().waiting, 0);
}

/// A worker at capacity takes what is deeper from its own line too, and sleeps while nothing there is.
#[test]
fn a_full_worker_takes_deeper_tasks_that_are_for_it_alone() {
    let (zone, mut home, mut seat) = (zone(), Seat::new(), Seat::new());
    let (slot, mut full) = worker(&zone, &mut seat);
    for call in 0..3 {
        home.submit_to(&zone, call, slot, false).unwrap();
    }
    while take(&mut full).is_some() {}
    assert_eq!(full.running_count(), LIMITS.tasks_per_worker_max);
    assert!(!full.has_work() && full.try_sleep(seat.receiver()));
    let task = home.receiver().task(3);
    // SAFETY: its number is free.
    unsafe { task.body(|body| body.depth = 1) };
    home.submit_to(&zone, 3, slot, false).unwrap();
    full.wake_up();
    seat.receiver().wake_up();
    assert!(full.has_work());
    assert_eq!(take(&mut full).map(|(task, _)| task.call()), Some(3));
    assert!(!full.has_work());
}

/// Whatever is submitted, taken and cancelled: of each tenant as many wait as may, and a further one is
/// refused.
#[test]
fn each_tenant_has_its_part_of_the_queue() {
    const TENANTS: u64 = 3;
    let limits = Limits { tasks_max: 7, tasks_per_tenant_max: 3, ..LIMITS };
    let zone = Arc::new(Zone::new(1, limits));
    let (mut home, mut seat) = (Seat::new(), Seat::new());
    let (slot, mut worker) = worker(&zone, &mut seat);
    let mut waiting: Vec<(u32, u64)> = Vec::new();
    let mut free: Vec<u32> = (0..32).collect();
    let mut state = 11_u64;
    let mut dice = move |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for _ in 0..STEPS / 10 {
        match dice(5) {
            0 if !waiting.is_empty() => {
                let (call, _) = waiting.swap_remove(dice(waiting.len() as u64) as usize);
                let task = home.receiver().task(call);
                assert_eq!(zone.cancel(task, 0, 0), Cancellation::Cancelled);
                home.receiver().put_away(task);
                free.push(call);
            }
            1 => {
                let taken = take(&mut worker);
                assert_eq!(taken.is_some(), !waiting.is_empty());
                if let Some((task, token)) = taken {
                    waiting.retain(|(call, _)| *call != task.call());
                    assert!(worker.complete(token, |_| ()));
                }
                free.extend(home.arrivals().into_iter().map(|(call, ..)| call));
            }
            _ => {
                let tenant = dice(TENANTS + 1) << 40;
                let priority = [Priority::High, Priority::Normal, Priority::Low][dice(3) as usize];
                let worker = if dice(2) == 0 { 0 } else { slot as u16 + 1 };
                let order = Order { tenant, priority, worker, ..Order::default() };
                let its = waiting.iter().filter(|(_, other)| *other == tenant).count();
                let expected = match its {
                    _ if waiting.len() == limits.tasks_max => Err(Refusal::Full),
                    3 if tenant != 0 => Err(Refusal::TenantFull),
                    _ => Ok(()),
                };
                let call = free.pop().unwrap();
                assert_eq!(home.submit_as(&zone, call, order), expected);
                if expected.is_ok() { waiting.push((call, tenant)) } else { free.push(call) }
            }
        }
        assert_eq!(zone.counts().waiting as usize, waiting.len());
    }
    zone.finish(Status::Closed, &[]);
    assert_eq!(home.arrivals().len(), waiting.len());
}
