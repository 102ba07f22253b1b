//! What the executors add to a zone, one thread at a time: forked tasks and who takes them, joins, growth and
//! shrinking, capacity. What can only go wrong between threads is in models.rs and stress.rs.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use corespun_bridge::{
    Cancellation, Executor, Grown, Growth, Help, Limits, Machine, Mail, Next, Receiver, Refusal, Status,
    Wake, Worker, Zone,
};

const LIMITS: Limits = Limits {
    tasks_max: 64,
    task_bytes_max: 16,
    queue_bytes_max: 1000,
    broadcasts_max: 3,
    tasks_per_worker_max: 1,
    waiting_per_worker_max: 16,
    call_depth_max: 8,
    tasks_per_tenant_max: usize::MAX,
    spin: Duration::ZERO,
};
const STEALS: Executor = Executor { steals: true, blocks: false, growth: None };

static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::new(2));
static RECEIVERS: Mutex<Vec<Receiver>> = Mutex::new(Vec::new());

struct Silent;

impl Wake for Silent {
    fn wake(&self) {}
}

/// A thread of one test: its receiver, and its worker if it is one.
struct Seat {
    receiver: Option<Receiver>,
    worker: Option<Worker>,
    slot: u32,
}

impl Seat {
    fn new() -> Self {
        let mut receiver = Receiver::new(0, &MACHINE);
        receiver.open(Box::new(Silent));
        Self { receiver: Some(receiver), worker: None, slot: 0 }
    }

    fn worker(zone: &Arc<Zone>) -> Self {
        let slot = zone.add_slot().unwrap();
        Self::attached(zone, slot)
    }

    fn attached(zone: &Arc<Zone>, slot: u32) -> Self {
        let mut seat = Self::new();
        seat.slot = slot;
        seat.worker = zone.attach(slot, seat.receiver().mailbox());
        assert!(seat.worker.is_some());
        seat
    }

    fn receiver(&mut self) -> &mut Receiver {
        self.receiver.as_mut().unwrap()
    }

    fn work(&mut self) -> &mut Worker {
        self.worker.as_mut().unwrap()
    }

    fn submit(&mut self, zone: &Zone, call: u32) -> Result<(), Refusal> {
        let task = self.receiver().task(call);
        zone.submit(task, 0)?;
        self.receiver().sent();
        Ok(())
    }

    /// The same for a call that so many tasks wait for.
    fn submit_at(&mut self, zone: &Zone, call: u32, depth: u32) -> Result<(), Refusal> {
        let task = self.receiver().task(call);
        // SAFETY: idle at home.
        unsafe { task.body(|body| body.depth = depth) };
        self.submit(zone, call)
    }

    /// A task that runs here calls another zone.
    fn call(&mut self, zone: &Zone, call: u32, depth: u32) {
        let task = self.receiver().task(call);
        // SAFETY: idle at home.
        unsafe { task.body(|body| body.depth = depth) };
        self.work().call(zone, task, 0, 0).unwrap();
        self.receiver().sent();
    }

    fn fork_at(&mut self, call: u32, depth: u32) {
        let task = self.receiver().task(call);
        // SAFETY: idle at home.
        unsafe { task.body(|body| body.depth = depth) };
        self.fork(call);
    }

    fn fork(&mut self, call: u32) {
        let task = self.receiver().task(call);
        self.work().fork(task, 0).unwrap();
        self.receiver().sent();
    }

    /// Take what is next: the call's number and the token.
    fn take(&mut self) -> Option<(u32, u32)> {
        match self.work().take() {
            Next::Task { task, token, .. } => Some((task.call(), token)),
            _ => None,
        }
    }

    /// Take and complete one; its number.
    fn run(&mut self) -> Option<u32> {
        let (call, token) = self.take()?;
        self.end(token);
        Some(call)
    }

    fn end(&mut self, token: u32) {
        assert!(self.work().complete(token, |body| body.status = Status::Done));
    }

    /// What has returned, with how it ended.
    fn arrivals(&mut self) -> Vec<(u32, Status)> {
        let mut arrived = Vec::new();
        while let Some(task) = self.receiver().next_arrival() {
            // SAFETY: at home.
            arrived.push((task.call(), unsafe { task.body(|body| body.status) }));
            // SAFETY: as above.
            let called = unsafe { task.body(|body| body.from_worker) };
            self.receiver().put_away(task);
            if called {
                self.work().call_returned();
            }
        }
        arrived
    }

    fn asleep(&mut self) -> bool {
        let Self { receiver, worker, .. } = self;
        worker.as_mut().unwrap().try_sleep(receiver.as_mut().unwrap())
    }

    fn awake(&mut self) {
        self.work().wake_up();
        self.receiver().wake_up();
    }

    /// The thread ends, and the owner reports it.
    fn leaves(mut self, zone: &Zone) -> usize {
        self.worker.take();
        zone.slot_ended(self.slot, Status::Died, b"ended")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.worker.take();
        RECEIVERS.lock().unwrap().extend(self.receiver.take());
    }
}

fn stealing() -> (Arc<Zone>, Seat, Seat, Seat) {
    let zone = Arc::new(Zone::with(1, LIMITS, STEALS));
    let (one, two) = (Seat::worker(&zone), Seat::worker(&zone));
    (zone, Seat::new(), one, two)
}

#[test]
fn a_worker_takes_what_it_forked_last_and_others_steal_what_it_forked_first() {
    let (zone, mut home, mut one, mut two) = stealing();
    home.submit(&zone, 0).unwrap();
    let (_, token) = one.take().unwrap();
    (1..=4).for_each(|call| one.fork(call));
    assert_eq!(two.run(), Some(1));
    let waiting: Vec<_> = zone.worker_counts().iter().map(|worker| worker.waiting).collect();
    assert_eq!(waiting, [3, 0]);
    assert_eq!([one.run(), one.run()], [Some(4), Some(3)]);
    assert_eq!((two.run(), two.run()), (Some(2), None));
    one.end(token);
    assert_eq!(zone.counts().stolen, 2);
    assert_eq!(one.arrivals().len(), 4);
    assert_eq!(zone.worker_counts().iter().map(|worker| worker.ended).sum::<u64>(), 5);
}

#[test]
fn what_comes_from_outside_gets_its_turn_among_forked_tasks() {
    let (zone, mut home, mut one, _two) = stealing();
    home.submit(&zone, 0).unwrap();
    let (_, token) = one.take().unwrap();
    (1..=4).for_each(|call| one.fork(call));
    (90..=96).for_each(|call| home.submit(&zone, call).unwrap());
    let order: Vec<_> = (0..6).map_while(|_| one.run()).collect();
    assert_eq!(order, [4, 90, 91, 92, 93, 3], "four of the queue for each forked one");
    home.submit(&zone, 97).unwrap();
    let order: Vec<_> = std::iter::from_fn(|| one.run()).collect();
    assert_eq!(order, [94, 95, 96, 97, 2, 1]);
    home.submit(&zone, 98).unwrap();
    assert_eq!(one.run(), Some(98));
    one.end(token);
}

#[test]
fn what_passes_forked_tasks_takes_no_place_of_theirs() {
    let zone = Arc::new(Zone::with(1, LIMITS, STEALS));
    let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
    home.submit(&zone, 0).unwrap();
    let (_, first) = one.take().unwrap();
    one.fork(1);
    assert_eq!((one.run(), one.arrivals().len()), (Some(1), 1), "now four of the queue may pass");
    // All of them go on running, as tasks do that wait for something else.
    (10..16).for_each(|call| home.submit(&zone, call).unwrap());
    one.fork(2);
    one.fork(3);
    let taken: Vec<_> = (0..8).map(|_| one.take().unwrap()).collect();
    let calls: Vec<_> = taken.iter().map(|&(call, _)| call).collect();
    assert_eq!(calls, [10, 11, 12, 13, 3, 14, 15, 2], "each forked one finds capacity");
    assert_eq!(one.take(), None);
    taken.into_iter().for_each(|(_, token)| one.end(token));
    one.end(first);
    assert_eq!(one.run(), None);
}

#[test]
fn a_task_that_waits_for_what_it_forked_keeps_nobody_from_running_it() {
    // One worker that takes one task, in either kind of zone, and a broadcast that comes in between.
    for executor in [Executor::default(), STEALS] {
        let zone = Arc::new(Zone::with(1, LIMITS, executor));
        let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
        home.submit(&zone, 0).unwrap();
        let (_, parent) = one.take().unwrap();
        assert_eq!(one.take(), None, "it is at capacity");
        one.fork(1);
        let (call, child) = one.take().unwrap();
        assert_eq!(call, 1);
        one.fork(2);
        zone.broadcast(0, 7, b"", 0, None, None).unwrap();
        assert!(matches!(one.work().take(), Next::Broadcast(_)), "both wait for what they forked");
        one.work().broadcast_done(None);
        assert_eq!(one.run(), Some(2));
        one.end(child);
        assert_eq!(one.arrivals(), [(2, Status::Done), (1, Status::Done)]);
        home.submit(&zone, 3).unwrap();
        assert_eq!(one.take(), None, "it is at capacity again");
        one.end(parent);
        assert_eq!(one.run(), Some(3));
    }
}

#[test]
fn a_task_that_waits_for_another_zone_keeps_no_place_up_to_a_bound() {
    for executor in [Executor::default(), STEALS] {
        let limits = Limits { waiting_per_worker_max: 2, ..LIMITS };
        let zone = Arc::new(Zone::with(1, limits, executor));
        let other = Arc::new(Zone::new(2, LIMITS));
        let (mut home, mut one, mut two) = (Seat::new(), Seat::worker(&zone), Seat::worker(&other));
        (0..5).for_each(|call| home.submit(&zone, call).unwrap());
        let mut tokens = Vec::new();
        for call in 0..3 {
            tokens.push(one.take().unwrap().1);
            one.call(&other, call, 1);
        }
        assert_eq!(one.take(), None, "one task, and two more for those that wait");
        assert_eq!(two.run(), Some(0));
        assert_eq!(one.arrivals(), [(0, Status::Done)]);
        assert_eq!(one.take(), None, "two others still wait");
        one.end(tokens[0]);
        assert_eq!(one.run(), Some(3));
        assert_eq!((two.run(), two.run()), (Some(1), Some(2)));
        one.arrivals();
        assert_eq!(one.take(), None, "nothing waits any more, and two run");
        one.end(tokens[1]);
        one.end(tokens[2]);
        assert_eq!(one.run(), Some(4));
    }
}

#[test]
fn a_task_whose_stream_waits_counts_as_one_that_waits_for_a_call() {
    for executor in [Executor::default(), STEALS] {
        let limits = Limits { waiting_per_worker_max: 2, ..LIMITS };
        let zone = Arc::new(Zone::with(1, limits, executor));
        let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
        (0..5).for_each(|call| home.submit(&zone, call).unwrap());
        let mut tokens = Vec::new();
        for waits in 1..=3 {
            tokens.push(one.take().unwrap().1);
            assert_eq!(one.take(), None);
            one.work().set_waits(waits);
        }
        assert_eq!(one.take(), None, "one task, and two more for those that wait");
        zone.broadcast(0, 7, b"", 0, None, None).unwrap();
        one.work().set_waits(2);
        assert!(!one.work().has_work(), "a broadcast waits for the one that goes on");
        one.work().set_waits(3);
        assert!(matches!(one.work().take(), Next::Broadcast(_)), "all wait");
        one.work().broadcast_done(None);
        one.end(tokens[0]);
        assert_eq!(one.run(), Some(3));
        zone.retire(0, 1);
        assert_eq!(one.take(), None, "it is replaced, and call 4 is not deeper");
        home.submit_at(&zone, 5, 1).unwrap();
        assert_eq!(one.run(), Some(5));
        // What a process has sent may be late.
        assert_eq!(one.work().waits(), 3);
        one.end(tokens[1]);
        one.end(tokens[2]);
        assert!(matches!(one.work().take(), Next::Leave));
        let mut two = Seat::worker(&zone);
        assert!(matches!(two.work().take(), Next::Broadcast(_)));
        two.work().broadcast_done(None);
        two.work().set_waits(3);
        assert_eq!(two.take().map(|(call, _)| call), Some(4));
        home.submit(&zone, 6).unwrap();
        two.work().set_waits(0);
        assert_eq!(two.take(), None);
    }
}

#[test]
fn a_full_worker_takes_what_is_deeper_than_what_it_runs_and_sleeps_for_nothing_else() {
    for executor in [Executor::default(), STEALS] {
        let limits = Limits { waiting_per_worker_max: 0, tasks_per_worker_max: 2, ..LIMITS };
        let zone = Arc::new(Zone::with(1, limits, executor));
        let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
        for (call, depth) in [(0, 0), (1, 3), (2, 0), (3, 1), (4, 2)] {
            home.submit_at(&zone, call, depth).unwrap();
        }
        let (_, (_, at_3)) = (one.take().unwrap(), one.take().unwrap());
        // Of those at depth 1 and more one runs, so one more may: the oldest, then one at depth 2.
        assert_eq!(one.run(), Some(3));
        let (call, at_2) = one.take().unwrap();
        assert_eq!(call, 4);
        assert_eq!(one.take(), None, "call 2 is not deeper than any that runs");
        assert!(one.asleep());
        assert_eq!(zone.counts().asleep, 0, "it is not free");
        home.submit_at(&zone, 5, 2).unwrap();
        one.awake();
        assert_eq!(one.take(), None, "two run that are as deep");
        one.fork_at(6, 3);
        assert_eq!(one.run(), Some(6), "deeper than one of the two");
        one.end(at_3);
        assert_eq!(one.run(), Some(5));
        one.end(at_2);
        assert_eq!(one.run(), Some(2), "it has capacity again");
        assert_eq!(home.submit_at(&zone, 7, 9), Err(Refusal::TooDeep));
    }
}

#[test]
fn a_withdrawn_forked_task_is_skipped_and_comes_home() {
    let (zone, mut home, mut one, mut two) = stealing();
    home.submit(&zone, 0).unwrap();
    one.take().unwrap();
    (1..=3).for_each(|call| one.fork(call));
    for call in [1, 3] {
        let task = one.receiver().task(call);
        assert_eq!(zone.cancel(task, 7, 0), Cancellation::Skipped);
        assert_eq!(zone.cancel(task, 7, 0), Cancellation::Skipped, "twice is once");
    }
    assert_eq!(two.run(), Some(2), "the first one stolen is passed over");
    assert_eq!(one.run(), None);
    assert_eq!(one.arrivals(), [(1, Status::Closed), (2, Status::Done), (3, Status::Closed)]);
    assert_eq!(zone.counts().waiting, 0);
}

#[test]
fn what_a_dead_worker_had_forked_is_run_by_others_in_order() {
    let (zone, mut home, mut one, mut two) = stealing();
    home.submit(&zone, 0).unwrap();
    one.take().unwrap();
    (1..=3).for_each(|call| one.fork(call));
    let task = one.receiver().task(2);
    assert_eq!(zone.cancel(task, 7, 0), Cancellation::Skipped);
    assert_eq!(one.leaves(&zone), 1, "the one that ran");
    assert_eq!([two.run(), two.run(), two.run()], [Some(1), Some(3), None]);
    assert_eq!(home.arrivals(), [(0, Status::Died)]);
}

#[test]
fn a_closing_zone_takes_what_its_tasks_fork_and_nothing_else() {
    for executor in [Executor::default(), STEALS] {
        let zone = Arc::new(Zone::with(1, LIMITS, executor));
        let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
        home.submit(&zone, 0).unwrap();
        let (_, parent) = one.take().unwrap();
        let closer = home.receiver().task(9);
        assert!(zone.close(Some(closer)));
        home.receiver().sent();
        assert_eq!(home.submit(&zone, 1), Err(Refusal::Closed));
        one.fork(1);
        assert_eq!(one.run(), Some(1));
        one.end(parent);
        assert!(matches!(one.work().take(), Next::Leave));
        one.leaves(&zone);
        assert_eq!(home.arrivals(), [(0, Status::Done), (9, Status::Done)]);
    }
}

#[test]
fn a_joined_call_is_run_by_its_caller_unless_somebody_has_it() {
    let (zone, mut home, mut one, mut two) = stealing();
    home.submit(&zone, 0).unwrap();
    let (_, parent) = one.take().unwrap();
    for (call, stolen) in [(1, false), (2, true)] {
        let task = one.receiver().task(call);
        one.receiver().join(task);
        one.fork(call);
        if !stolen {
            assert!(matches!(one.work().help(task, true, |_| true), Help::Mine));
        } else {
            let (_, token) = two.take().unwrap();
            two.fork(10);
            let Help::Task { task: other, token: others, .. } = one.work().help(task, true, |_| true) else {
                panic!("there is work");
            };
            assert_eq!(other.call(), 10, "it helps the one that helps it");
            one.end(others);
            assert!(matches!(one.work().help(task, true, |_| true), Help::Nothing));
            two.end(token);
            assert!(matches!(one.work().help(task, true, |_| true), Help::Done));
        }
        one.receiver().put_away(task);
        one.work().call_returned();
    }
    one.end(parent);
    assert_eq!(one.arrivals(), [], "joined calls do not come by the inbox");
    assert_eq!(two.arrivals(), [(10, Status::Done)]);
    assert_eq!(zone.counts().waiting, 0);
}

#[test]
fn one_who_waits_for_a_joined_call_is_woken_by_a_fork_and_not_by_a_submission() {
    let (zone, mut home, mut one, mut two) = stealing();
    home.submit(&zone, 0).unwrap();
    one.take().unwrap();
    let task = one.receiver().task(1);
    one.receiver().join(task);
    one.fork(1);
    two.take().unwrap();
    let Seat { receiver, worker, .. } = &mut one;
    assert!(worker.as_mut().unwrap().try_sleep_until(receiver.as_mut().unwrap(), task));
    home.submit(&zone, 5).unwrap();
    assert_eq!(zone.counts().wake_ups, 0);
    two.fork(2);
    assert_eq!(zone.counts().wake_ups, 1);
    one.awake();
}

fn growing(workers_min: usize, workers_max: usize) -> (Arc<Zone>, Seat) {
    let mut owner = Seat::new();
    let mailbox = owner.receiver().mailbox();
    let growth = Growth { workers_min, workers_max, patience: Duration::ZERO, owner: mailbox, mail: 7 };
    (Arc::new(Zone::with(1, LIMITS, Executor { growth: Some(growth), ..Executor::default() })), owner)
}

#[test]
fn a_zone_asks_for_workers_once_and_gets_them_until_it_is_full() {
    let (zone, mut owner) = growing(0, 3);
    let mut home = Seat::new();
    let pressed = Some(Mail { kind: 7, subject: 1, facts: [0, 0] });
    for call in 0..8 {
        home.submit(&zone, call).unwrap();
    }
    assert_eq!([owner.receiver().next_mail(), owner.receiver().next_mail()], [pressed, None]);
    assert_eq!(zone.grow(), Grown::Add(1), "the first one at once");
    let slot = zone.add_slot().unwrap();
    assert_eq!(zone.grow(), Grown::NotYet, "one is on its way");
    let mut one = Seat::attached(&zone, slot);
    one.take().unwrap();
    assert_eq!(zone.grow(), Grown::Add(1), "as many again as there are");
    let mut two = Seat::worker(&zone);
    two.take().unwrap();
    assert_eq!(zone.grow(), Grown::Add(1), "but not more than it may have");
    let three = Seat::worker(&zone);
    assert_eq!(zone.grow(), Grown::Full);
    assert_eq!(owner.receiver().next_mail(), None);
    three.leaves(&zone);
    assert_eq!(owner.receiver().next_mail(), pressed, "another worker may start, and tasks wait");
    zone.finish(Status::Closed, &[]);
    assert_eq!(zone.grow(), Grown::Calm);
}

#[test]
fn a_zone_without_workers_finishes_what_it_accepted_before_it_closes() {
    let (zone, mut owner) = growing(0, 1);
    let mut home = Seat::new();
    home.submit(&zone, 0).unwrap();
    let closer = home.receiver().task(1);
    assert!(zone.close(Some(closer)));
    home.receiver().sent();
    assert!(owner.receiver().next_mail().is_some());
    assert_eq!(zone.grow(), Grown::Add(1));
    let mut one = Seat::worker(&zone);
    assert_eq!(one.run(), Some(0));
    assert!(matches!(one.work().take(), Next::Leave));
    one.leaves(&zone);
    assert_eq!(home.arrivals(), [(0, Status::Done), (1, Status::Done)]);
}

#[test]
fn idle_workers_leave_but_for_those_that_stay_and_answer_for_broadcasts() {
    let (zone, _owner) = growing(1, 3);
    let mut seats: Vec<_> = (0..3).map(|_| Seat::worker(&zone)).collect();
    assert_eq!(zone.shrink(0.0).dismissed, [], "nobody sleeps");
    for seat in &mut seats {
        assert!(seat.asleep());
    }
    assert_eq!(zone.shrink(3.6e12).dismissed, [], "nobody has slept for an hour");
    if !cfg!(miri) {
        assert!(zone.shrink(3.6e12).next_ns.unwrap() > 3.0e12);
    }
    let shrunk = zone.shrink(0.0);
    assert_eq!((shrunk.dismissed.as_slice(), shrunk.next_ns), (&[0, 1][..], None), "the longest asleep");
    let mut home = Seat::new();
    let asked = home.receiver().task(0);
    zone.broadcast(0, 1, b"", 0, None, Some(asked)).unwrap();
    home.receiver().sent();
    let mut third = seats.pop().unwrap();
    for mut seat in seats {
        seat.awake();
        assert!(matches!(seat.work().take(), Next::Leave));
        seat.leaves(&zone);
    }
    third.awake();
    assert!(matches!(third.work().take(), Next::Broadcast(_)));
    assert_eq!(home.arrivals(), []);
    third.work().broadcast_done(None);
    assert_eq!(home.arrivals(), [(0, Status::Done)]);
    home.submit(&zone, 1).unwrap();
    assert_eq!((third.run(), zone.counts().workers), (Some(1), 1));
}

#[test]
fn waiters_for_capacity_are_admitted_in_order() {
    let limits = Limits { tasks_max: 2, ..LIMITS };
    let zone = Arc::new(Zone::new(1, limits));
    let (mut home, mut waiter, mut one) = (Seat::new(), Seat::new(), Seat::worker(&zone));
    let wait = |waiter: &mut Seat, call| {
        let task = waiter.receiver().task(call);
        let now = zone.await_capacity(task).unwrap();
        if !now {
            waiter.receiver().sent();
        }
        now
    };
    assert!(wait(&mut waiter, 0), "the queue has capacity");
    home.submit(&zone, 0).unwrap();
    home.submit(&zone, 1).unwrap();
    assert_eq!(home.submit(&zone, 2), Err(Refusal::Full));
    assert!(!wait(&mut waiter, 0) && !wait(&mut waiter, 1) && !wait(&mut waiter, 2));
    assert_eq!(waiter.arrivals(), []);
    let (_, token) = one.take().unwrap();
    assert_eq!(waiter.arrivals(), [(0, Status::Done)], "capacity for one of them");
    one.end(token);
    one.run().unwrap();
    assert_eq!(waiter.arrivals(), [(1, Status::Done), (2, Status::Done)], "nothing waits: all of them");
    home.submit(&zone, 3).unwrap();
    home.submit(&zone, 4).unwrap();
    assert!(!wait(&mut waiter, 0));
    zone.finish(Status::Closed, &[]);
    assert_eq!(waiter.arrivals(), [(0, Status::Closed)]);
    let task = waiter.receiver().task(0);
    assert_eq!(zone.await_capacity(task), Err(Refusal::Closed));
}

#[test]
fn a_thread_that_may_be_blocked_takes_no_core_from_those_who_spin() {
    let machine: &'static Machine = Box::leak(Box::new(Machine::new(2)));
    let mut receivers: Vec<_> = (0..3).map(|number| Receiver::new(number, machine)).collect();
    for receiver in &mut receivers {
        receiver.open(Box::new(Silent));
    }
    assert!(!machine.may_spin());
    receivers[0].set_blocked(true);
    receivers[0].set_blocked(true);
    assert!(machine.may_spin());
    receivers[0].set_blocked(false);
    assert!(!machine.may_spin());
    receivers[0].set_blocked(true);
    receivers[0].close();
    assert!(machine.may_spin());
    RECEIVERS.lock().unwrap().extend(receivers);
}

#[test]
fn a_thread_counts_on_one_core_while_awake_and_on_none_else() {
    let machine: &'static Machine = Box::leak(Box::new(Machine::new(2)));
    let counts = || [3, 5, 7].map(|core| machine.awake_on(core));
    let mut receiver = Receiver::new(0, machine);
    receiver.open(Box::new(Silent));
    receiver.runs_on(3);
    assert_eq!(counts(), [1, 0, 0]);
    // A callback of I/O runs while the thread is still declared asleep.
    assert!(receiver.try_sleep());
    receiver.runs_on(5);
    assert_eq!(counts(), [0, 0, 0]);
    receiver.mailbox().rouse();
    assert_eq!(counts(), [1, 0, 0]);
    receiver.wake_up();
    receiver.runs_on(5);
    assert_eq!(counts(), [0, 1, 0]);
    receiver.set_blocked(true);
    receiver.runs_on(7);
    assert_eq!(counts(), [0, 0, 0]);
    receiver.set_blocked(false);
    assert_eq!(counts(), [0, 1, 0]);
    assert!(receiver.try_sleep());
    receiver.wake_up();
    receiver.wake_up();
    assert_eq!(counts(), [0, 1, 0]);
    receiver.close();
    assert_eq!(counts(), [0, 0, 0]);
    RECEIVERS.lock().unwrap().push(receiver);
}

#[test]
fn calls_of_a_thread_that_ends_run_nowhere_and_what_runs_is_cancelled() {
    for condemned in [true, false] {
        let (zone, mut home, mut one, mut two) = stealing();
        home.submit(&zone, 0).unwrap();
        one.take().unwrap();
        for call in 1..=3 {
            let task = one.receiver().task(call);
            one.receiver().join(task);
            one.fork(call);
        }
        let (call, token) = two.take().unwrap();
        assert_eq!(call, 1, "stolen");
        let task = one.receiver().task(1);
        assert!(matches!(one.work().help(task, false, |_| false), Help::Nothing));
        assert_eq!(zone.counts().waiting, 2, "functions not known here: both in the queue");
        let task = one.receiver().task(4);
        one.receiver().join(task);
        one.fork(4);
        one.fork(5);
        if condemned {
            let task = home.receiver().task(0);
            assert!(matches!(zone.cancel(task, 7, 0), Cancellation::Running { .. }));
            assert_eq!(zone.overdue(-1.0).condemned, [one.slot]);
        }
        one.receiver().close();
        assert_eq!(one.work().is_condemned(), condemned);
        one.receiver().cancel_forked();
        one.worker.take();
        let mailbox = one.receiver().mailbox();
        assert_eq!(zone.cancel_calls_of(mailbox, 7, 9, condemned), Some(condemned));
        zone.slot_ended(one.slot, Status::Died, b"ended");
        assert_eq!(
            two.receiver().next_mail().map(|mail| (mail.kind, mail.subject, mail.facts[1])),
            Some((7, token, 9))
        );
        let overdue = zone.overdue(3.6e12);
        assert_eq!(overdue.condemned, if condemned { vec![two.slot] } else { vec![] });
        assert_eq!(overdue.next_ns.is_some(), !condemned);
        two.end(token);
        assert_eq!((two.run(), zone.counts().waiting), (None, 0));
        assert_eq!(home.arrivals(), [(0, Status::Died)]);
        assert!(one.receiver().is_idle(), "all have returned");
    }
}

#[test]
fn calls_of_a_thread_that_ends_leave_those_of_others() {
    let zone = Arc::new(Zone::new(1, LIMITS));
    let (mut home, mut ends, mut worker) = (Seat::new(), Seat::new(), Seat::worker(&zone));
    ends.submit(&zone, 0).unwrap();
    let (_, token) = worker.take().unwrap();
    for call in 1..=3 {
        ends.submit_at(&zone, call, call % 2).unwrap();
        home.submit_at(&zone, call, call % 2).unwrap();
    }
    ends.receiver().close();
    let mailbox = ends.receiver().mailbox();
    assert_eq!(zone.cancel_calls_of(mailbox, 7, 9, true), Some(false), "it was not blocked on that call");
    assert_eq!(zone.cancel_calls_of(home.receiver().mailbox(), 7, 9, false), None, "none of these runs");
    let mail = worker.receiver().next_mail().map(|mail| (mail.kind, mail.subject, mail.facts[1]));
    assert_eq!((mail, zone.overdue(3.6e12).next_ns.is_some()), (Some((7, token, 9)), true));
    assert_eq!(home.arrivals().len(), 3, "the calls of a thread are its own");
    assert!(!ends.receiver().is_idle(), "one runs");
    worker.end(token);
    assert!(ends.receiver().is_idle());
    assert_eq!((worker.take(), zone.counts().waiting), (None, 0));
}

#[test]
fn a_worker_at_capacity_has_no_work_when_the_deeper_task_was_cancelled() {
    let zone = Arc::new(Zone::new(1, LIMITS));
    let (mut home, mut worker) = (Seat::new(), Seat::worker(&zone));
    home.submit(&zone, 0).unwrap();
    let (_, token) = worker.take().unwrap();
    home.submit_at(&zone, 1, 3).unwrap();
    assert!(worker.work().has_work(), "it is deeper than what runs");
    assert_eq!(zone.cancel(home.receiver().task(1), 7, 0), Cancellation::Cancelled);
    assert_eq!((worker.work().has_work(), worker.take()), (false, None));
    worker.end(token);
}

#[test]
fn a_worker_that_sleeps_beside_its_task_is_not_looked_at_again_and_again() {
    let mut owner = Seat::new();
    let mailbox = owner.receiver().mailbox();
    let growth = Growth { workers_min: 0, workers_max: 3, patience: Duration::ZERO, owner: mailbox, mail: 7 };
    let limits = Limits { tasks_per_worker_max: 2, ..LIMITS };
    let executor = Executor { growth: Some(growth), ..Executor::default() };
    let zone = Arc::new(Zone::with(1, limits, executor));
    let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
    home.submit(&zone, 0).unwrap();
    let (_, token) = one.take().unwrap();
    assert!(one.asleep());
    std::thread::sleep(Duration::from_millis(5));
    let shrunk = zone.shrink(2e6);
    assert_eq!((shrunk.dismissed.as_slice(), shrunk.next_ns), (&[][..], Some(2e6)));
    one.awake();
    one.end(token);
    assert!(one.asleep());
    assert_eq!(zone.shrink(0.0).dismissed, [one.slot]);
    one.awake();
}

#[test]
fn who_asks_whether_a_zone_is_ready_waits_for_its_first_workers_and_no_others() {
    let zone = Arc::new(Zone::new(1, LIMITS));
    let mut home = Seat::new();
    let [first, second] = [zone.add_slot().unwrap(), zone.add_slot().unwrap()];
    let ready = |home: &mut Seat, call| {
        let task = home.receiver().task(call);
        let now = zone.await_capacity(task);
        if now == Ok(false) {
            home.receiver().sent();
        }
        now
    };
    assert_eq!([ready(&mut home, 0), ready(&mut home, 1)], [Ok(false), Ok(false)]);
    let mut one = Seat::attached(&zone, first);
    home.submit(&zone, 9).unwrap();
    one.run().unwrap();
    assert_eq!(home.arrivals(), [(9, Status::Done)], "one of two");
    let two = Seat::attached(&zone, second);
    assert_eq!(home.arrivals(), [(0, Status::Done), (1, Status::Done)]);
    two.leaves(&zone);
    assert_eq!(ready(&mut home, 0), Ok(true));
    zone.add_slot().unwrap();
    assert_eq!(ready(&mut home, 0), Ok(true), "a replacement is not waited for");

    let broken = Zone::new(2, LIMITS);
    broken.add_slot().unwrap();
    let task = home.receiver().task(0);
    assert_eq!(broken.await_capacity(task), Ok(false));
    home.receiver().sent();
    broken.finish(Status::Died, b"why");
    assert_eq!(home.arrivals(), [(0, Status::Died)]);
}

#[test]
fn memory_that_moves_counts_among_the_bytes_that_wait_and_are_kept() {
    let zone = Arc::new(Zone::new(1, LIMITS));
    let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
    let task = home.receiver().task(0);
    assert_eq!(zone.submit_moving(task, 1, 1000), Err(Refusal::BytesFull));
    assert_eq!(zone.submit_moving(task, 1, usize::MAX), Err(Refusal::BytesFull));
    zone.submit_moving(task, 1, 999).unwrap();
    home.receiver().sent();
    let other = home.receiver().task(1);
    assert_eq!((zone.counts().waiting_bytes, zone.submit(other, 1)), (1000, Err(Refusal::BytesFull)));
    one.run().unwrap();
    assert_eq!(zone.counts().waiting_bytes, 0);
    zone.broadcast(0, 1, b"1", 899, None, None).unwrap();
    assert_eq!(zone.broadcast(0, 1, b"", 101, None, None).err(), Some(Refusal::BytesFull));
    zone.broadcast(0, 1, b"", 100, None, None).unwrap();
    zone.submit_moving(other, 0, 1000).unwrap();
    home.receiver().sent();
    assert_eq!(home.arrivals(), [(0, Status::Done)]);
}

#[test]
fn a_worker_that_goes_is_counted_once_at_every_moment() {
    let rounds = if cfg!(miri) { 10 } else { 3000 };
    let zone = Arc::new(Zone::new(1, LIMITS));
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut home = Seat::new();
            for _ in 0..rounds {
                let mut one = Seat::worker(&zone);
                home.submit(&zone, 0).unwrap();
                one.run().unwrap();
                home.arrivals();
                one.leaves(&zone);
            }
        });
        let mut last = 0;
        while !worker.is_finished() {
            let ended = zone.counts().ended;
            assert!(ended == last || ended > last && ended <= rounds, "{ended} after {last}");
            last = ended;
            // The locks are not fair: who asks again at once keeps the worker from ever getting them.
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        worker.join().unwrap();
        assert_eq!(zone.counts().ended, rounds);
    });
}
