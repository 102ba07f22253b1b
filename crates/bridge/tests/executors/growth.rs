//! The number of workers and the capacity: growth, shrinking, what waits for either, and counts of what has
//! ended.

use std::sync::Arc;
use std::time::Duration;

use corespun_bridge::{Executor, Grown, Growth, Limits, Mail, Next, Refusal, Status, Submission, Zone};

use super::seats::{LIMITS, Seat};

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
    let moving = |moved| Submission { moved, ..Submission::new(task, 1) };
    assert_eq!(zone.submit(moving(1000)), Err(Refusal::BytesFull));
    assert_eq!(zone.submit(moving(usize::MAX)), Err(Refusal::BytesFull));
    zone.submit(moving(999)).unwrap();
    home.receiver().sent();
    let other = home.receiver().task(1);
    let refused = zone.submit(Submission::new(other, 1));
    assert_eq!((zone.counts().waiting_bytes, refused), (1000, Err(Refusal::BytesFull)));
    one.run().unwrap();
    assert_eq!(zone.counts().waiting_bytes, 0);
    zone.broadcast(0, 1, b"1", 899, None, None).unwrap();
    assert_eq!(zone.broadcast(0, 1, b"", 101, None, None).err(), Some(Refusal::BytesFull));
    zone.broadcast(0, 1, b"", 100, None, None).unwrap();
    zone.submit(Submission { moved: 1000, ..Submission::new(other, 0) }).unwrap();
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

#[test]
fn a_worker_leaves_after_its_last_task_and_begins_only_what_that_calls() {
    let limits = Limits { worker_tasks_max: 2, tasks_per_worker_max: 4, ..LIMITS };
    let zone = Arc::new(Zone::new(1, limits));
    let mut home = Seat::new();
    let mut one = Seat::worker(&zone);
    for call in 0..4 {
        home.submit(&zone, call).unwrap();
    }
    let (_, first) = one.take().unwrap();
    let (_, second) = one.take().unwrap();
    assert_eq!(one.take(), None, "it has begun as many as it may");
    home.submit_at(&zone, 4, 1).unwrap();
    let (call, deeper) = one.take().unwrap();
    assert_eq!(call, 4, "a task may wait for it");
    for token in [deeper, first, second] {
        assert!(!matches!(one.work().take(), Next::Leave | Next::Task { .. }));
        one.end(token);
    }
    assert!(matches!(one.work().take(), Next::Leave));
    one.leaves(&zone);
    let mut two = Seat::worker(&zone);
    assert_eq!([two.run(), two.run()], [Some(2), Some(3)], "another one goes on");
    assert!(matches!(two.work().take(), Next::Leave));
}
