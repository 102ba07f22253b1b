//! Threads as the cores see them, and what becomes of the calls of one that ends.
//! Here too: workers that sleep beside a task that they run.

use std::sync::Arc;
use std::time::Duration;

use corespun_bridge::{Cancellation, Executor, Growth, Help, Limits, Machine, Receiver, Status, Zone};

use super::seats::{LIMITS, RECEIVERS, Seat, Silent, stealing};

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
