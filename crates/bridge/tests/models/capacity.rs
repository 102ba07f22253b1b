//! Zones that grow, and callers that wait for capacity.
//!
//! Neither pressure nor a waiting caller is forgotten.

use std::{sync::Arc, time::Duration};

use corespun_bridge::{Executor, Grown, Growth, Limits, Next, Worker, Zone};
use loom::thread;

use super::seats::{LIMITS, Seat, complete, explore, machine, staffed};

/// The owner of a zone that grows finds it calm while a task is submitted: it gets mail again.
///
/// Guards against: `grow` without its look at the injector after the flag is lowered.
#[test]
fn pressure_is_not_lost() {
    explore(|| {
        let machine = machine();
        let owner = Seat::new(2, machine);
        let growth = Growth {
            workers_min: 0,
            workers_max: 1,
            patience: Duration::ZERO,
            owner: owner.receiver.mailbox(),
            mail: 7,
        };
        let executor = Executor { growth: Some(growth), ..Executor::default() };
        let (zone, _) = staffed(Zone::with(1, LIMITS, executor), 0, machine);
        let ours = Arc::clone(&zone);
        let thread = thread::spawn(move || {
            let mut owner = owner;
            // A first mail, of a task that was cancelled since.
            let mut grown = ours.grow();
            while grown == Grown::NotYet {
                thread::yield_now();
                grown = ours.grow();
            }
            (grown, owner.receiver.next_mail().is_some(), owner)
        });
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (grown, notified, mut owner) = thread.join().unwrap();
        let later = owner.receiver.next_mail().is_some();
        assert!(grown == Grown::Add(1) || notified || later, "{grown:?}: nobody starts a worker");
    });
}

/// One waits for capacity while the last waiting task is taken: it is admitted.
///
/// Guards against: `await_capacity` without its second look; `model_fence` dropped from it.
#[test]
fn capacity_is_not_waited_for_in_vain() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = staffed(Zone::new(1, Limits { tasks_max: 1, ..LIMITS }), 1, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (_seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || {
            let Next::Task { token, .. } = worker.take() else { unreachable!("a task waits") };
            complete(&mut worker, token);
        });
        let task = home.receiver.task(1);
        let now = zone.await_capacity(task).expect("it is open");
        if !now {
            home.receiver.sent();
        }
        thread.join().unwrap();
        let mut came: Vec<_> = std::iter::from_fn(|| home.poll()).map(|(call, _)| call).collect();
        came.sort_unstable();
        assert_eq!(came, if now { vec![0] } else { vec![0, 1] });
    });
}

/// One asks whether the zone is ready while its first worker attaches: it is notified.
///
/// Guards against: `attach` without `offer_capacity`.
#[test]
fn who_waits_for_the_first_worker_hears_of_it() {
    explore(|| {
        let machine = machine();
        let zone = Arc::new(Zone::new(1, LIMITS));
        let slot = zone.add_slot().expect("it is open");
        let (mut home, seat) = (Seat::new(1, machine), Seat::new(2, machine));
        let theirs = Arc::clone(&zone);
        let mailbox = seat.receiver.mailbox();
        let thread = thread::spawn(move || theirs.attach(slot, mailbox));
        let now = zone.await_capacity(home.receiver.task(0)).expect("it is open");
        if !now {
            home.receiver.sent();
        }
        let worker = thread.join().unwrap();
        assert_eq!(home.poll().is_some(), !now);
        assert!(worker.is_some());
    });
}

/// A submission that is refused has counted itself for a moment: who waits for capacity gets what it returns.
///
/// Seen to fail: `admit` without `offer_capacity` where tasks are too many; where bytes are.
#[test]
fn a_refused_submission_keeps_no_capacity() {
    for limits in [Limits { tasks_max: 1, ..LIMITS }, Limits { queue_bytes_max: 1, ..LIMITS }] {
        explore(move || {
            let machine = machine();
            let (zone, mut staff) = staffed(Zone::new(1, limits), 1, machine);
            let (mut home, mut other) = (Seat::new(1, machine), Seat::new(2, machine));
            assert!(home.submit(&zone, 0));
            assert_eq!(zone.await_capacity(home.receiver.task(1)), Ok(false));
            home.receiver.sent();
            let (_seat, mut worker) = staff.remove(0);
            let theirs = Arc::clone(&zone);
            let submitting = thread::spawn(move || other.submit(&theirs, 0));
            finish_next(&mut worker);
            if submitting.join().unwrap() {
                finish_next(&mut worker);
            }
            let mut came: Vec<_> = std::iter::from_fn(|| home.poll()).map(|(call, _)| call).collect();
            came.sort_unstable();
            assert_eq!(came, [0, 1]);
        });
    }
}

/// One who waits for capacity stops while a task is taken, which frees capacity for one: the next in line
/// gets it.
///
/// Guards against: `stop_awaiting_capacity` without `offer_capacity`, or without taking its task out.
#[test]
fn a_waiter_that_stops_keeps_no_capacity() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = staffed(Zone::new(1, Limits { tasks_max: 2, ..LIMITS }), 1, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0) && home.submit(&zone, 1));
        for call in [2, 3] {
            assert_eq!(zone.await_capacity(home.receiver.task(call)), Ok(false));
            home.receiver.sent();
        }
        let (seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || {
            let Next::Task { .. } = worker.take() else { unreachable!("a task waits") };
            (seat, worker)
        });
        let impatient = home.receiver.task(2);
        let left = zone.stop_awaiting_capacity(impatient);
        if left {
            home.receiver.put_away(impatient);
        }
        let _staff = thread.join().unwrap();
        let mut came: Vec<_> = std::iter::from_fn(|| home.poll()).map(|(call, _)| call).collect();
        came.sort_unstable();
        assert_eq!(came, if left { vec![3] } else { vec![2, 3] });
    });
}

fn finish_next(worker: &mut Worker) {
    let Next::Task { token, .. } = worker.take() else { unreachable!("a task waits") };
    complete(worker, token);
}
