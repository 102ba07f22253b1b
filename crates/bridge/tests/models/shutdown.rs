//! Ends: of calls that are given up, of workers, zones and broadcasts.
//!
//! Whatever ends first, each call and each broadcast is settled once.

use std::sync::Arc;

use corespun_bridge::{Cancellation, Next, Status};
use loom::thread;

use super::seats::{Seat, complete, explore, machine, zone_of};

/// The caller cancels while a worker takes the task: exactly one of them has it.
///
/// Seen to fail: `cancel` that lets go of the zone's lock before it takes the task out of the queue.
#[test]
fn a_withdrawn_task_has_one_holder() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || match worker.take() {
            Next::Task { token, .. } => {
                complete(&mut worker, token);
                seat.receiver.next_mail();
                true
            }
            _ => false,
        });
        let task = home.receiver.task(0);
        let became = zone.cancel(task, 7, 0);
        if became == Cancellation::Cancelled {
            home.receiver.put_away(task);
        }
        let ran = thread.join().unwrap();
        assert_eq!(ran, became != Cancellation::Cancelled, "{became:?}");
        assert_eq!(home.poll(), ran.then_some((0, Status::Done)));
        assert!(home.receiver.is_idle());
    });
}

/// A worker dies with a task while its caller cancels and the owner clears up: it returns once, and mail
/// about it never reaches the next thread that opens the dead one's mailbox.
///
/// Seen to fail: `cancel` that sends its mail after it has let go of `slot.mailbox`; `slot_ended` that does
/// not look whether the worker runs (the code before this model, both).
#[test]
fn a_dead_workers_task_comes_home_once() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut seat, mut worker) = staff.remove(0);
        let Next::Task { .. } = worker.take() else { unreachable!("a task waits") };
        let owner = Arc::clone(&zone);
        let thread = thread::spawn(move || {
            assert_eq!(owner.slot_ended(0, Status::Died, b"why"), 0, "the worker runs");
            seat.receiver.close();
            worker.leave();
            assert_eq!(owner.slot_ended(0, Status::Died, b"why"), 1);
            assert_eq!(owner.slot_ended(0, Status::Died, b"why"), 0, "ended already");
            seat.receiver.open(Box::new(seat.bell.clone()));
            assert_eq!(seat.receiver.next_mail(), None, "mail for the last thread");
        });
        assert_ne!(zone.cancel(home.receiver.task(0), 7, 0), Cancellation::Cancelled);
        thread.join().unwrap();
        assert_eq!(home.poll(), Some((0, Status::Died)));
        assert!(home.receiver.is_idle());
    });
}

/// A zone closes while a task is submitted and its worker sleeps: the worker leaves, every accepted task and
/// the closer's return, a refused one stays.
///
/// Seen to fail: `close` without `wake_all`; `submit` without its look at `finished`.
#[test]
fn a_closing_zone_settles_everything() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let mut home = Seat::new(1, machine);
        let (mut seat, mut worker) = staff.remove(0);
        let theirs = Arc::clone(&zone);
        let thread = thread::spawn(move || {
            let mut done = seat.work(&mut worker, usize::MAX);
            worker.leave();
            theirs.slot_ended(0, Status::Died, &[]);
            // As the owner does: a task that came at the last moment gets one more worker.
            while let Some(slot) = theirs.add_slot() {
                let mut worker = theirs.attach(slot, seat.receiver.mailbox()).expect("the slot is there");
                done += seat.work(&mut worker, usize::MAX);
                worker.leave();
                theirs.slot_ended(slot, Status::Died, &[]);
            }
            done
        });
        let ours = Arc::clone(&zone);
        let closer = thread::spawn(move || {
            let mut seat = Seat::new(2, machine);
            let task = seat.receiver.task(0);
            assert!(ours.close(Some(task)));
            seat.receiver.sent();
            seat
        });
        let accepted = home.submit(&zone, 0);
        let done = thread.join().unwrap();
        let mut closer = closer.join().unwrap();
        assert_eq!(closer.poll(), Some((0, Status::Done)));
        let status = if done == 1 { Status::Done } else { Status::Closed };
        assert_eq!(home.poll(), accepted.then_some((0, status)));
        assert!(home.receiver.is_idle() && closer.receiver.is_idle());
    });
}

/// A zone closes while a task is submitted for its one worker alone, which sleeps: the worker runs it if it
/// was accepted, or its replacement does, and the zone ends.
///
/// Guards against: `seen_empty` without its look at `has_bound`; `slot_ended` that counts `waiting` alone.
#[test]
fn a_closing_zone_runs_what_only_one_worker_may_take() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let mut home = Seat::new(1, machine);
        let (mut seat, mut worker) = staff.remove(0);
        let ours = Arc::clone(&zone);
        let thread = thread::spawn(move || {
            seat.work(&mut worker, usize::MAX);
            worker.leave();
            ours.slot_ended(0, Status::Died, &[]);
            if let Some(slot) = ours.add_slot() {
                let mut worker = ours.attach(slot, seat.receiver.mailbox()).expect("it was added");
                seat.work(&mut worker, usize::MAX);
                worker.leave();
                ours.slot_ended(slot, Status::Died, &[]);
            }
        });
        let theirs = Arc::clone(&zone);
        let closing = thread::spawn(move || theirs.close(None));
        let accepted = home.submit_to(&zone, 0, 0, false);
        closing.join().unwrap();
        thread.join().unwrap();
        assert_eq!(home.poll(), accepted.then_some((0, Status::Done)));
        assert!(zone.is_over());
    });
}

/// A zone ends while a task is submitted, and nobody is there to take it: it returns, once.
///
/// Seen to fail: `submit` without its look at `finished`; `Stack::take_all` with `Acquire` (the code before
/// this model).
#[test]
fn a_finished_zone_keeps_nothing() {
    explore(|| {
        let machine = machine();
        let (zone, _) = zone_of(0, machine);
        let mut home = Seat::new(1, machine);
        let ours = Arc::clone(&zone);
        let thread = thread::spawn(move || ours.finish(Status::Died, b"why"));
        let accepted = home.submit(&zone, 0);
        thread.join().unwrap();
        let came = home.poll().map(|(call, _)| call);
        assert_eq!(came, accepted.then_some(0));
        assert!(home.receiver.is_idle());
    });
}

/// A failing zone lets its sleeping worker go.
///
/// Seen to fail: `finish` without `wake_all` (the code before this model).
#[test]
fn a_failing_zone_wakes_its_sleepers() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let (mut seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || assert_eq!(seat.work(&mut worker, usize::MAX), 0));
        zone.finish(Status::Died, b"why");
        thread.join().unwrap();
    });
}

/// A worker answers a broadcast while the zone ends: it is settled once.
///
/// Seen to fail: `abandon` that leaves `missing` and the task, so that the answer settles it again.
#[test]
fn a_broadcast_is_settled_once() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let mut home = Seat::new(1, machine);
        let (mut seat, mut worker) = staff.remove(0);
        let task = home.receiver.task(0);
        assert!(zone.broadcast(0, 1, &[], 0, None, Some(task)).is_ok());
        home.receiver.sent();
        let thread = thread::spawn(move || seat.work(&mut worker, usize::MAX));
        zone.finish(Status::Closed, &[]);
        let (call, status) = home.arrival();
        assert!(call == 0 && matches!(status, Status::Done | Status::Closed), "{status:?}");
        thread.join().unwrap();
        assert_eq!(home.poll(), None);
        assert!(home.receiver.is_idle());
    });
}
