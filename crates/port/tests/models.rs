//! Loom models of the protocol in README.md: every interleaving, and every stale value the orderings allow,
//! of a few threads that do what crates/node/src/thread.rs does. A wake-up that is lost shows as a deadlock,
//! a body with two holders as a concurrent access.
//!
//! Each model names the mutations of the source that it was seen to fail for; a model that cannot fail says
//! nothing. Run: `RUSTFLAGS="--cfg loom" cargo test --release -p skein-port --test models`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{sync::Arc, time::Duration};

use loom::{sync::Notify, thread};
use skein_port::{
    Desk, Executor, Grown, Growth, Help, Limits, Machine, Mail, Next, Status, Wake, Withdrawal, Worker, Zone,
};

/// Preemptions per execution: more find nothing new here and take minutes.
const PREEMPTIONS_MAX: usize = 3;

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS_MAX);
    builder.check(model);
}

#[derive(Clone)]
struct Bell(Arc<Notify>);

impl Wake for Bell {
    fn wake(&self) {
        self.0.notify();
    }
}

/// A thread: its desk and what wakes it.
struct Seat {
    desk: Desk,
    bell: Bell,
}

impl Seat {
    fn new(number: u32, machine: &'static Machine) -> Self {
        let bell = Bell(Arc::new(Notify::new()));
        let mut desk = Desk::new(number, machine);
        desk.open(Box::new(bell.clone()));
        Self { desk, bell }
    }

    /// Submit call number `call`; whether the zone took it.
    fn submit(&mut self, zone: &Zone, call: u32) -> bool {
        let task = self.desk.task(call);
        // SAFETY: each model uses a call number once, so the task is idle at home, which is this thread.
        unsafe { task.body(|body| body.bytes.set(&[call as u8])) };
        let accepted = zone.submit(task, 1).is_ok();
        if accepted {
            self.desk.sent();
        }
        accepted
    }

    /// Wait, asleep, for one arrival: its call and status.
    fn arrival(&mut self) -> (u32, Status) {
        loop {
            if let Some(arrived) = self.poll() {
                return arrived;
            }
            if self.desk.try_sleep() {
                self.bell.0.wait();
                self.desk.wake_up();
            }
        }
    }

    fn poll(&mut self) -> Option<(u32, Status)> {
        let task = self.desk.next_arrival()?;
        // SAFETY: it has come home to this thread.
        let status = unsafe { task.body(|body| body.status) };
        self.desk.put_away(task);
        Some((task.call(), status))
    }

    /// Work as a loop does until `tasks_max` tasks are done or the zone lets go.
    fn work(&mut self, worker: &mut Worker, tasks_max: usize) -> usize {
        let mut done = 0;
        while done < tasks_max {
            match worker.take() {
                Next::Task { token, .. } => {
                    complete(worker, token);
                    done += 1;
                }
                Next::Broadcast(_) => worker.broadcast_done(None),
                Next::Leave => break,
                Next::Nothing => self.rest(worker),
            }
        }
        done
    }

    fn rest(&mut self, worker: &mut Worker) {
        if worker.try_sleep(&mut self.desk) {
            self.bell.0.wait();
            worker.wake_up();
            self.desk.wake_up();
        } else {
            thread::yield_now(); // a submitter is between its count and its push
        }
    }
}

impl Seat {
    /// Fork call number `call` from a task of `worker`.
    fn fork(&mut self, worker: &mut Worker, call: u32, joined: bool) {
        let task = self.desk.task(call);
        if joined {
            self.desk.join(task);
        }
        // SAFETY: as in submit.
        unsafe { task.body(|body| body.bytes.set(&[call as u8])) };
        worker.fork(task, 1).expect("there is room");
        self.desk.sent();
    }

    /// Wait for a joined call as crates/node does; whether it was run here.
    fn join(&mut self, worker: &mut Worker, call: u32) -> bool {
        let task = self.desk.task(call);
        let mine = loop {
            match worker.help(task, true, |_| true) {
                Help::Mine => break true,
                Help::Done => break false,
                Help::Task { token, .. } => complete(worker, token),
                Help::Nothing => {
                    if worker.try_sleep_until(&mut self.desk, task) {
                        self.bell.0.wait();
                        worker.wake_up();
                        self.desk.wake_up();
                    }
                }
            }
        };
        self.desk.put_away(task);
        worker.child_home();
        mine
    }
}

fn complete(worker: &mut Worker, token: u32) {
    assert!(worker.complete(token, |body| body.status = Status::Done));
}

fn machine() -> &'static Machine {
    Box::leak(Box::new(Machine::new(2)))
}

const LIMITS: Limits = Limits {
    tasks_max: 8,
    task_bytes_max: 64,
    queue_bytes_max: 64,
    broadcasts_max: 4,
    tasks_per_worker_max: 1,
    spin: Duration::ZERO,
};

/// A zone and its workers, attached, each with a seat.
fn zone_of(workers: u32, machine: &'static Machine) -> (Arc<Zone>, Vec<(Seat, Worker)>) {
    staffed(Zone::new(1, LIMITS), workers, machine)
}

/// The same where workers steal.
fn stealing(workers: u32, machine: &'static Machine) -> (Arc<Zone>, Vec<(Seat, Worker)>) {
    let executor = Executor { steals: true, ..Executor::default() };
    staffed(Zone::with(1, LIMITS, executor), workers, machine)
}

fn staffed(zone: Zone, workers: u32, machine: &'static Machine) -> (Arc<Zone>, Vec<(Seat, Worker)>) {
    let zone = Arc::new(zone);
    let staff = (0..workers)
        .map(|number| {
            let seat = Seat::new(10 + number, machine);
            let slot = zone.add_slot().expect("the zone is open");
            let worker = zone.attach(slot, seat.desk.port()).expect("the slot is there");
            (seat, worker)
        })
        .collect();
    (zone, staff)
}

/// A worker goes to sleep while a task is submitted: it runs it.
///
/// Seen to fail: `register` without its second look; `Worker::try_sleep` with the zone first and the port
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

/// A thread goes to sleep while its task comes home: it sees it.
///
/// Seen to fail: `Desk::try_sleep` that looks for mail alone; `model_fence` dropped from `Stack::push`, which
/// is then relaxed enough to lose the wake-up; `Stack::push` with `Relaxed`, which hands over a body still
/// being written.
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
        assert!(home.desk.is_idle());
    });
}

/// A thread goes to sleep while mail is sent: it sees it.
///
/// Seen to fail: `model_fence` dropped from `Port::send`; from `Desk::try_sleep`.
#[test]
fn no_mail_is_slept_through() {
    explore(|| {
        let mut home = Seat::new(1, machine());
        let port = home.desk.port();
        let mail = Mail { kind: 1, subject: 2, facts: [3, 4] };
        let thread = thread::spawn(move || assert!(port.send(mail)));
        let got = loop {
            if let Some(mail) = home.desk.next_mail() {
                break mail;
            }
            if home.desk.try_sleep() {
                home.bell.0.wait();
                home.desk.wake_up();
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
            assert!(full.try_sleep(&mut full_seat.desk));
            (full_seat, full)
        });
        assert!(home.submit(&zone, 1));
        // The full worker's task ends only after the other's: whoever sleeps here sleeps for ever.
        thread.join().unwrap();
        let (_seat, mut full) = searcher.join().unwrap();
        complete(&mut full, token);
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
            let _ = dying.try_sleep(&mut dying_seat.desk);
            dying.leave();
            dying_seat.desk.close();
        });
        assert!(home.submit(&zone, 0));
        staying.join().unwrap();
        leaving.join().unwrap();
        assert_eq!(home.poll(), Some((0, Status::Done)));
    });
}

/// The caller gives up while a worker takes the task: exactly one of them has it.
///
/// Seen to fail: `withdraw` that lets go of the zone's lock before it takes the task out of the queue.
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
                seat.desk.next_mail();
                true
            }
            _ => false,
        });
        let task = home.desk.task(0);
        let became = zone.withdraw(task, 7, 0);
        if became == Withdrawal::Withdrawn {
            home.desk.put_away(task);
        }
        let ran = thread.join().unwrap();
        assert_eq!(ran, became != Withdrawal::Withdrawn, "{became:?}");
        assert_eq!(home.poll(), ran.then_some((0, Status::Done)));
        assert!(home.desk.is_idle());
    });
}

/// A worker dies with a task while its caller gives up and the owner clears up: it comes home once, and mail
/// about it never reaches the next thread that opens the dead one's port.
///
/// Seen to fail: `withdraw` that sends its mail after it has let go of `slot.port`; `slot_gone` that does not
/// look whether the worker lives (the code before this model, both).
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
            assert_eq!(owner.slot_gone(0, Status::Died, b"why"), 0, "the worker lives");
            seat.desk.close();
            worker.leave();
            assert_eq!(owner.slot_gone(0, Status::Died, b"why"), 1);
            assert_eq!(owner.slot_gone(0, Status::Died, b"why"), 0, "gone already");
            seat.desk.open(Box::new(seat.bell.clone()));
            assert_eq!(seat.desk.next_mail(), None, "mail for the last thread");
        });
        assert_ne!(zone.withdraw(home.desk.task(0), 7, 0), Withdrawal::Withdrawn);
        thread.join().unwrap();
        assert_eq!(home.poll(), Some((0, Status::Died)));
        assert!(home.desk.is_idle());
    });
}

/// A zone closes while a task is submitted and its worker sleeps: the worker leaves, every accepted task and
/// the closer's come home, a refused one stays.
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
            theirs.slot_gone(0, Status::Died, &[]);
            // As the owner does: a task that came at the last moment gets one more worker.
            while let Some(slot) = theirs.add_slot() {
                let mut worker = theirs.attach(slot, seat.desk.port()).expect("the slot is there");
                done += seat.work(&mut worker, usize::MAX);
                worker.leave();
                theirs.slot_gone(slot, Status::Died, &[]);
            }
            done
        });
        let ours = Arc::clone(&zone);
        let closer = thread::spawn(move || {
            let mut seat = Seat::new(2, machine);
            let task = seat.desk.task(0);
            assert!(ours.close(Some(task)));
            seat.desk.sent();
            seat
        });
        let accepted = home.submit(&zone, 0);
        let done = thread.join().unwrap();
        let mut closer = closer.join().unwrap();
        assert_eq!(closer.poll(), Some((0, Status::Done)));
        let status = if done == 1 { Status::Done } else { Status::Closed };
        assert_eq!(home.poll(), accepted.then_some((0, status)));
        assert!(home.desk.is_idle() && closer.desk.is_idle());
    });
}

/// A zone ends while a task is submitted, and nobody is there to take it: it comes home, once.
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
        assert!(home.desk.is_idle());
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
        let task = home.desk.task(0);
        assert!(zone.broadcast(1, &[], None, Some(task)).is_ok());
        home.desk.sent();
        let thread = thread::spawn(move || seat.work(&mut worker, usize::MAX));
        zone.finish(Status::Closed, &[]);
        let (call, status) = home.arrival();
        assert!(call == 0 && matches!(status, Status::Done | Status::Closed), "{status:?}");
        thread.join().unwrap();
        assert_eq!(home.poll(), None);
        assert!(home.desk.is_idle());
    });
}

/// A task forks another and stays busy while the other worker goes to sleep: the other runs it.
///
/// Guards against: `register` without `has_forked`; `fork` without `wake_one`; `model_fence` dropped from the
/// deque's `push`.
#[test]
fn no_fork_is_slept_through() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = stealing(2, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut one_seat, mut one) = staff.remove(0);
        let (mut two_seat, mut two) = staff.remove(0);
        let Next::Task { token, .. } = one.take() else { unreachable!("a task waits") };
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
        let (zone, mut staff) = stealing(2, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut one_seat, mut one) = staff.remove(0);
        let (_two_seat, mut two) = staff.remove(0);
        let Next::Task { token, .. } = one.take() else { unreachable!("a task waits") };
        one_seat.fork(&mut one, 1, false);
        let thief = thread::spawn(move || match two.take() {
            Next::Task { token, .. } => {
                complete(&mut two, token);
                true
            }
            _ => false,
        });
        let task = one_seat.desk.task(1);
        let became = zone.withdraw(task, 7, 0);
        let ours = match one.take() {
            Next::Task { token, .. } => {
                complete(&mut one, token);
                true
            }
            _ => false,
        };
        let stolen = thief.join().unwrap();
        assert!(!(ours && stolen), "run twice");
        let skipped = became == Withdrawal::Skipped;
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
/// Guards against: a `try_sleep_until` of the desk without its second look; `deliver` without `rouse` for
/// joined calls.
#[test]
fn a_joined_call_ends_here_or_there() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = stealing(2, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut one_seat, mut one) = staff.remove(0);
        let (_two_seat, mut two) = staff.remove(0);
        let Next::Task { token, .. } = one.take() else { unreachable!("a task waits") };
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
        assert!(one_seat.desk.in_flight() == 0 && zone.counts().waiting == 0);
    });
}

/// One waits for a joined call while the worker that has it forks another: the waiter hears of it and helps.
///
/// Guards against: `Worker::try_sleep_until` without its second look, and without registering.
#[test]
fn one_who_waits_for_a_join_helps_with_what_is_forked_meanwhile() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = stealing(2, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut one_seat, mut one) = staff.remove(0);
        let (mut two_seat, mut two) = staff.remove(0);
        let Next::Task { token, .. } = one.take() else { unreachable!("a task waits") };
        one_seat.fork(&mut one, 1, true);
        let Next::Task { token: stolen, .. } = two.take() else { unreachable!("a task is there") };
        let thief = thread::spawn(move || {
            two_seat.fork(&mut two, 2, false);
            // It ends only when the other has helped.
            assert_eq!(two_seat.arrival(), (2, Status::Done));
            two.child_home();
            complete(&mut two, stolen);
        });
        assert!(!one_seat.join(&mut one, 1));
        thief.join().unwrap();
        complete(&mut one, token);
    });
}

/// A worker with a forked task dies while another goes to sleep: the other runs it.
///
/// Guards against: `Worker::drop` without `give_deque_back`.
#[test]
fn what_a_dying_worker_had_forked_is_not_slept_through() {
    explore(|| {
        let machine = machine();
        let (zone, mut staff) = stealing(2, machine);
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (mut one_seat, mut one) = staff.remove(0);
        let (mut two_seat, mut two) = staff.remove(0);
        let Next::Task { .. } = one.take() else { unreachable!("a task waits") };
        one_seat.fork(&mut one, 1, false);
        let thread = thread::spawn(move || assert_eq!(two_seat.work(&mut two, 1), 1));
        one_seat.desk.close();
        one.leave();
        thread.join().unwrap();
        assert_eq!(zone.slot_gone(0, Status::Died, b"why"), 1);
        assert_eq!(home.poll(), Some((0, Status::Died)));
        assert!(one_seat.desk.is_idle());
    });
}

/// The owner of a zone that grows finds it calm while a task is submitted: it hears of it again.
///
/// Guards against: `grow` without its look at the injector after the flag has gone down.
#[test]
fn pressure_is_not_lost() {
    explore(|| {
        let machine = machine();
        let owner = Seat::new(2, machine);
        let growth = Growth {
            workers_min: 0,
            workers_max: 1,
            patience: Duration::ZERO,
            owner: owner.desk.port(),
            mail: 7,
        };
        let executor = Executor { growth: Some(growth), ..Executor::default() };
        let (zone, _) = staffed(Zone::with(1, LIMITS, executor), 0, machine);
        let ours = Arc::clone(&zone);
        let thread = thread::spawn(move || {
            let mut owner = owner;
            // A first mail, of a task that was withdrawn since.
            let mut grown = ours.grow();
            while grown == Grown::NotYet {
                thread::yield_now();
                grown = ours.grow();
            }
            (grown, owner.desk.next_mail().is_some(), owner)
        });
        let mut home = Seat::new(1, machine);
        assert!(home.submit(&zone, 0));
        let (grown, heard, mut owner) = thread.join().unwrap();
        let later = owner.desk.next_mail().is_some();
        assert!(grown == Grown::Add(1) || heard || later, "{grown:?}: nobody starts a worker");
    });
}

/// One waits for room while the last waiting task is taken: it is let in.
///
/// Guards against: `await_room` without its second look; `model_fence` dropped from it.
#[test]
fn room_is_not_waited_for_in_vain() {
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
        let task = home.desk.task(1);
        let now = zone.await_room(task).expect("it is open");
        if !now {
            home.desk.sent();
        }
        thread.join().unwrap();
        let mut came: Vec<_> = std::iter::from_fn(|| home.poll()).map(|(call, _)| call).collect();
        came.sort_unstable();
        assert_eq!(came, if now { vec![0] } else { vec![0, 1] });
    });
}
