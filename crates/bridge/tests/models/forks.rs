//! Forks and joins, in zones whose workers steal.
//!
//! A forked task has one holder, and nobody sleeps while one waits.

use corespun_bridge::{Cancellation, Next, Status};
use loom::thread;

use super::seats::{Seat, Two, complete, explore, machine, one_of_two_runs};

/// A task forks another and stays busy while the other worker goes to sleep: the other runs it.
///
/// Guards against: `register` without `has_forked`; `fork` without `wake_one`; `model_fence` dropped from the
/// deque's `push`.
#[test]
fn no_fork_is_slept_through() {
    explore(|| {
        let machine = machine();
        let Two { zone, mut home, one: (mut one_seat, mut one), two: (mut two_seat, mut two), token } =
            one_of_two_runs(machine);
        let thread = thread::spawn(move || assert_eq!(two_seat.work(&mut two, 1), 1));
        one_seat.fork(&mut one, 1, false);
        // The first task ends after the second: whoever sleeps here sleeps for ever.
        thread.join().unwrap();
        complete(&mut one, token);
        assert_eq!(one_seat.poll(), Some((1, Status::Done)));
    });
}

/// A forked task is taken by its worker, stolen by another and given up by its caller: exactly one has it.
///
/// Guards against: `leave_deque` with a load and a store instead of an exchange.
#[test]
fn a_forked_task_has_one_holder() {
    explore(|| {
        let machine = machine();
        let Two { zone, mut home, one: (mut one_seat, mut one), two: (_two_seat, mut two), token } =
            one_of_two_runs(machine);
        one_seat.fork(&mut one, 1, false);
        let thief = thread::spawn(move || match two.take() {
            Next::Task { token, .. } => {
                complete(&mut two, token);
                true
            }
            _ => false,
        });
        let task = one_seat.receiver.task(1);
        let became = zone.cancel(task, 7, 0);
        let ours = match one.take() {
            Next::Task { token, .. } => {
                complete(&mut one, token);
                true
            }
            _ => false,
        };
        let stolen = thief.join().unwrap();
        assert!(!(ours && stolen), "run twice");
        let skipped = became == Cancellation::Skipped;
        assert!(!(skipped && (ours || stolen)), "given up and run");
        // A thief may look too early and the worker too late; then it is still there.
        if !skipped && !ours && !stolen {
            let Next::Task { token, .. } = one.take() else { unreachable!("it waits") };
            complete(&mut one, token);
        } else if skipped {
            let _ = one.take();
        }
        let status = if skipped { Status::Closed } else { Status::Done };
        assert_eq!(one_seat.poll(), Some((1, status)));
        assert_eq!((one_seat.poll(), zone.counts().waiting), (None, 0));
        complete(&mut one, token);
    });
}

/// A task joins a call that another worker may steal: it is run once, and its end is not slept through.
///
/// Guards against: a `try_sleep_until` of the receiver without its second look; `deliver` without `rouse` for
/// joined calls.
#[test]
fn a_joined_call_ends_here_or_there() {
    explore(|| {
        let machine = machine();
        let Two { zone, mut home, one: (mut one_seat, mut one), two: (_two_seat, mut two), token } =
            one_of_two_runs(machine);
        one_seat.fork(&mut one, 1, true);
        let thief = thread::spawn(move || match two.take() {
            Next::Task { token, .. } => {
                complete(&mut two, token);
                true
            }
            _ => false,
        });
        let mine = one_seat.join(&mut one, 1);
        assert_ne!(thief.join().unwrap(), mine);
        complete(&mut one, token);
        assert!(one_seat.receiver.in_flight() == 0 && zone.counts().waiting == 0);
    });
}

/// One waits for a joined call while the worker that has it forks another: the waiter wakes up and helps.
///
/// Guards against: `Worker::try_sleep_until` without its second look, and without registering.
#[test]
fn one_who_waits_for_a_join_helps_with_what_is_forked_meanwhile() {
    explore(|| {
        let machine = machine();
        let Two { zone, mut home, one: (mut one_seat, mut one), two: (mut two_seat, mut two), token } =
            one_of_two_runs(machine);
        one_seat.fork(&mut one, 1, true);
        let Next::Task { token: stolen, .. } = two.take() else { unreachable!("a task is there") };
        let thief = thread::spawn(move || {
            two_seat.fork(&mut two, 2, false);
            // It ends only when the other has helped.
            assert_eq!(two_seat.arrival(), (2, Status::Done));
            two.call_returned();
            complete(&mut two, stolen);
        });
        assert!(!one_seat.join(&mut one, 1));
        thief.join().unwrap();
        complete(&mut one, token);
    });
}

/// A worker with a forked task dies while another goes to sleep: the other runs it.
///
/// Guards against: `Worker::drop` without `return_deque`.
#[test]
fn what_a_dying_worker_had_forked_is_not_slept_through() {
    explore(|| {
        let machine = machine();
        let Two { zone, mut home, one: (mut one_seat, mut one), two: (mut two_seat, mut two), token: _ } =
            one_of_two_runs(machine);
        one_seat.fork(&mut one, 1, false);
        let thread = thread::spawn(move || assert_eq!(two_seat.work(&mut two, 1), 1));
        one_seat.receiver.close();
        one.leave();
        thread.join().unwrap();
        assert_eq!(zone.slot_ended(0, Status::Died, b"why"), 1);
        assert_eq!(home.poll(), Some((0, Status::Died)));
        assert!(one_seat.receiver.is_idle());
    });
}

/// A thread ends in the middle of a join while another worker may steal the call: it has one holder, runs at
/// most once, and what runs is known as given up.
///
/// Guards against: `leave_deque` with a load and a store instead of an exchange.
#[test]
fn a_call_of_an_ending_thread_is_cancelled_or_run() {
    explore(|| {
        let machine = machine();
        let Two { zone, mut home, one: (mut one_seat, mut one), two: (_two_seat, mut two), token: _ } =
            one_of_two_runs(machine);
        one_seat.fork(&mut one, 1, true);
        let thief = thread::spawn(move || {
            let Next::Task { token, .. } = two.take() else { return false };
            complete(&mut two, token);
            true
        });
        one_seat.receiver.close();
        one_seat.receiver.cancel_forked();
        one.leave();
        let cancelled = zone.cancel_calls_of(one_seat.receiver.mailbox(), 7, 0, false);
        let ran = thief.join().unwrap();
        assert!(ran || cancelled.is_none(), "what did not run was reported as running");
        assert_eq!(zone.slot_ended(0, Status::Died, b"why"), 1);
        assert_eq!((home.poll(), zone.counts().waiting), (Some((0, Status::Died)), 0));
        assert!(one_seat.receiver.is_idle());
    });
}
