//! Forked tasks: who takes them, how deep a task must be that begins on a full worker, and joins.
//! A task that waits for a call or a stream counts among what waits.

use std::sync::Arc;

use corespun_bridge::{Cancellation, Executor, Help, Limits, Next, Refusal, Status, Zone};

use super::seats::{LIMITS, STEALS, Seat, stealing};

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
fn a_broadcast_waits_neither_for_a_task_in_a_call_nor_for_one_beside_it_whose_stream_waits() {
    for executor in [Executor::default(), STEALS] {
        let zone = Arc::new(Zone::with(1, LIMITS, executor));
        let other = Arc::new(Zone::new(2, LIMITS));
        let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
        (0..2).for_each(|call| home.submit(&zone, call).unwrap());
        one.take().unwrap();
        one.work().set_waits(1);
        one.take().unwrap();
        one.call(&other, 0, 1);
        zone.broadcast(0, 7, b"", 0, None, None).unwrap();
        // What the other zone runs calls this one: behind the broadcast.
        home.submit_at(&zone, 2, 2).unwrap();
        assert!(one.work().has_work());
        assert!(matches!(one.work().take(), Next::Broadcast(_)), "both wait");
        one.work().broadcast_done(None);
        assert_eq!(one.run(), Some(2));
    }
}

#[test]
fn a_worker_whose_tasks_all_wait_in_vain_begins_one_more() {
    for executor in [Executor::default(), STEALS] {
        let limits = Limits { waiting_per_worker_max: 0, ..LIMITS };
        let zone = Arc::new(Zone::with(1, limits, executor));
        let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
        (0..4).for_each(|call| home.submit_at(&zone, call, 3 - call).unwrap());
        let (_, first) = one.take().unwrap();
        assert!(!one.work().may_stall());
        one.work().set_waits(1);
        assert!(one.work().may_stall());
        assert_eq!(one.take(), None, "none is deeper");
        one.work().set_waits(0);
        let task = one.receiver().task(10);
        (0..3).for_each(|_| one.work().wait_for(task));
        assert!(!one.work().may_stall(), "one task may have many calls");
        (0..3).for_each(|_| one.work().unwait(task));
        one.work().set_waits(1);
        one.work().begin_any();
        assert!(one.work().has_work());
        let (call, second) = one.take().unwrap();
        assert_eq!(call, 1);
        assert_eq!(one.take(), None, "one more only");
        assert!(!one.work().may_stall(), "it goes on");
        one.end(second);
        assert_eq!(one.take(), None);
        // It sleeps until there is one, without looking again and again.
        one.work().begin_any();
        assert_eq!(one.run(), Some(2));
        one.work().begin_any();
        assert_eq!(one.run(), Some(3));
        one.work().begin_any();
        assert!(one.asleep());
        assert_eq!(zone.counts().asleep, 1, "a submitter wakes it");
        one.awake();
        // A worker that is replaced too.
        zone.retire(0, 1);
        (4..6).for_each(|call| home.submit(&zone, call).unwrap());
        one.work().begin_any();
        assert_eq!(one.run(), Some(4));
        // What has moved since ends it.
        one.work().begin_any();
        one.work().set_waits(0);
        assert_eq!(one.take(), None);
        one.end(first);
        assert!(matches!(one.work().take(), Next::Leave));
    }
}

#[test]
fn tasks_that_wait_in_vain_are_bounded() {
    for (may_wait, most) in [(0, 65), (100, 101)] {
        let limits = Limits { waiting_per_worker_max: may_wait, tasks_max: 120, ..LIMITS };
        let zone = Arc::new(Zone::with(1, limits, Executor::default()));
        let (mut home, mut one) = (Seat::new(), Seat::worker(&zone));
        (0..120).for_each(|call| home.submit(&zone, call).unwrap());
        let mut running = 1;
        one.take().unwrap();
        one.work().set_waits(1);
        while one.work().may_stall() {
            one.work().begin_any();
            one.take().unwrap();
            running += 1;
            one.work().set_waits(running);
        }
        assert_eq!(running, most);
        assert_eq!(one.take(), None);
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
