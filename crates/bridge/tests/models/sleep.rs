//! Going to sleep while something arrives.
//!
//! No submission, result, mail or wake-up is slept through.

use corespun_bridge::{Limits, Mail, Next, Status, Zone};
use loom::thread;

use super::seats::{LIMITS, Seat, complete, explore, explore_within, machine, staffed, zone_of};

/// A worker goes to sleep while a task is submitted: it runs it.
///
/// Seen to fail: `register` without its second look; `Worker::try_sleep` with the zone first and the mailbox
/// second (the order before this model); `model_fence` dropped from `Stack::push`; `wake_one` that lets a
/// single sleeper lie.
#[test]
fn no_submission_is_slept_through() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let mut home = Seat::new(1, machine);
        let (mut seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || assert_eq!(seat.work(&mut worker, 1), 1));
        assert!(home.submit(&zone, 0));
        thread.join().unwrap();
        assert_eq!(home.poll(), Some((0, Status::Done)));
    });
}

/// A worker goes to sleep while a task is submitted that only it may take: it runs it.
///
/// Guards against: `register` without its look at `has_bound`; `accept_ordered` without `take_sleeper`.
#[test]
fn no_task_of_one_worker_is_slept_through() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let mut home = Seat::new(1, machine);
        let (mut seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || assert_eq!(seat.work(&mut worker, 1), 1));
        assert!(home.submit_to(&zone, 0, 0, false));
        thread.join().unwrap();
        assert_eq!(home.poll(), Some((0, Status::Done)));
    });
}

/// A thread goes to sleep while its task returns: it sees it.
///
/// Seen to fail: `Receiver::try_sleep` that looks for mail alone; `model_fence` dropped from
/// `Stack::push`, which is then relaxed enough to lose the wake-up; `Stack::push` with `Relaxed`,
/// which hands over a body still being written.
#[test]
fn no_result_is_slept_through() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || seat.work(&mut worker, 1));
        assert_eq!(home.arrival(), (0, Status::Done));
        assert_eq!(thread.join().unwrap(), 1);
        assert!(home.receiver.is_idle());
    });
}

/// A thread goes to sleep while mail is sent: it sees it.
///
/// Seen to fail: `model_fence` dropped from `Mailbox::send`; from `Receiver::try_sleep`.
#[test]
fn no_mail_is_slept_through() {
    explore(|| {
        let mut home = Seat::new(1, machine());
        let mailbox = home.receiver.mailbox();
        let mail = Mail { kind: 1, subject: 2, facts: [3, 4] };
        let thread = thread::spawn(move || assert!(mailbox.send(mail)));
        let got = loop {
            if let Some(mail) = home.receiver.next_mail() {
                break mail;
            }
            if home.receiver.try_sleep() {
                home.bell.0.wait();
                home.receiver.wake_up();
            }
        };
        assert_eq!(got, mail);
        thread.join().unwrap();
    });
}

/// A worker looks for work, finds none and goes to sleep while a task is submitted that woke nobody.
///
/// Seen to fail: `register` without its second look; `model_fence` dropped from it.
#[test]
fn no_submission_falls_between_search_and_sleep() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(1, machine);
        let mut home = Seat::new(1, machine);
        let (mut seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || {
            worker.begin_search();
            let _ = worker.has_work();
            worker.end_search();
            assert_eq!(seat.work(&mut worker, 1), 1);
        });
        assert!(home.submit(&zone, 0));
        thread.join().unwrap();
        assert_eq!(home.poll(), Some((0, Status::Done)));
    });
}

/// A worker that runs as many tasks as it may looks for arrivals while another sleeps: the sleeper is woken.
///
/// Seen to fail: `begin_search` without `can_take` and `register` without `pass_on`, together (the code
/// before this model); one of the two suffices here, and a broadcast that comes during a search needs the
/// second.
#[test]
fn a_full_worker_that_searches_keeps_nobody_asleep() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(2, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut full_seat, mut full) = staff.remove(0);
        let Next::Task { token, .. } = full.take() else { unreachable!("a task waits") };
        let (mut seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || assert_eq!(seat.work(&mut worker, 1), 1));
        let searcher = thread::spawn(move || {
            full.begin_search();
            full.end_search();
            assert!(full.try_sleep(&mut full_seat.receiver));
            (full_seat, full)
        });
        assert!(home.submit(&zone, 1));
        // The full worker's task ends only after the other's: whoever sleeps here sleeps for ever.
        thread.join().unwrap();
        let (_seat, mut full) = searcher.join().unwrap();
        complete(&mut full, token);
    });
}

/// A worker searches before its result is delivered, and takes one of two tasks that come then: the other one
/// wakes the sleeper.
///
/// Seen to fail: `found` without its look at what waits.
#[test]
fn a_search_that_ends_keeps_nobody_asleep() {
    explore_within(2, || {
        let machine = machine();
        let (zone, mut staff) = zone_of(2, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (_seat, mut first) = staff.remove(0);
        let Next::Task { token, .. } = first.take() else { unreachable!("a task waits") };
        let (mut seat, mut other) = staff.remove(0);
        assert!(other.try_sleep(&mut seat.receiver));
        let sleeper = thread::spawn(move || {
            seat.bell.0.wait();
            other.wake_up();
            seat.receiver.wake_up();
            assert_eq!(seat.work(&mut other, 1), 1);
            (seat, other)
        });
        let searcher = thread::spawn(move || {
            assert!(first.complete_and_search(token, |body| body.status = Status::Done));
            let next = first.take();
            first.found();
            let Next::Task { token, .. } = next else { return None };
            Some((first, token))
        });
        assert!(home.submit(&zone, 1));
        assert!(home.submit(&zone, 2));
        // What the searcher has taken ends only after the other's: whoever sleeps here sleeps for ever.
        let (mut seat, mut other) = sleeper.join().unwrap();
        match searcher.join().unwrap() {
            Some((mut first, token)) => complete(&mut first, token),
            None => assert_eq!(seat.work(&mut other, 1), 1),
        }
    });
}

/// A worker that is listed as asleep, and may have been chosen, ends: another one takes the task.
///
/// Seen to fail: `Worker::drop` without `wake_one`.
#[test]
fn a_chosen_worker_that_ends_passes_the_wake_up_on() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = zone_of(2, machine);
        let mut home = Seat::new(1, machine);
        let (mut seat, mut worker) = staff.remove(0);
        let (mut dying_seat, mut dying) = staff.remove(0);
        // Listed last, so the first to be chosen.
        let staying = thread::spawn(move || assert_eq!(seat.work(&mut worker, 1), 1));
        let leaving = thread::spawn(move || {
            let _ = dying.try_sleep(&mut dying_seat.receiver);
            dying.leave();
            dying_seat.receiver.close();
        });
        assert!(home.submit(&zone, 0));
        staying.join().unwrap();
        leaving.join().unwrap();
        assert_eq!(home.poll(), Some((0, Status::Done)));
    });
}

/// A worker at capacity goes to sleep while a task is submitted that is deeper than the one it
/// runs: it runs it.
#[test]
fn no_deeper_task_is_slept_through() {
    explore(|| {
        let machine = machine();
        let limits = Limits { waiting_per_worker_max: 0, ..LIMITS };
        let (zone, mut staff) = staffed(Zone::new(1, limits), 1, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut seat, mut worker) = staff.remove(0);
        let Next::Task { token, .. } = worker.take() else { unreachable!("a task waits") };
        let thread = thread::spawn(move || {
            assert_eq!(seat.work(&mut worker, 1), 1);
            complete(&mut worker, token);
        });
        assert!(home.submit_at(&zone, 1, 1));
        thread.join().unwrap();
        assert_eq!(home.poll(), Some((1, Status::Done)));
        assert_eq!(home.poll(), Some((0, Status::Done)));
    });
}
