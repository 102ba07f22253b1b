//! What every model needs: threads with their receivers, zones with workers, and the exploration itself.
//!
//! A seat does what crates/node/src/thread.rs does, step by step.

use std::{sync::Arc, time::Duration};

use corespun_bridge::{
    Executor, Help, Limits, Machine, Next, Order, Receiver, Status, Submission, Wake, Worker, Zone,
};
use loom::{sync::Notify, thread};

/// Preemptions per execution: more find nothing new here and take minutes.
const PREEMPTIONS_MAX: usize = 3;

pub fn explore(model: impl Fn() + Sync + Send + 'static) {
    explore_within(PREEMPTIONS_MAX, model);
}

/// The same with another bound, for models whose threads are many.
pub fn explore_within(preemptions_max: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions_max);
    builder.check(model);
}

#[derive(Clone)]
pub struct Bell(pub Arc<Notify>);

impl Wake for Bell {
    fn wake(&self) {
        self.0.notify();
    }
}

/// A thread: its receiver and what wakes it.
pub struct Seat {
    pub receiver: Receiver,
    pub bell: Bell,
}

impl Seat {
    pub fn new(number: u32, machine: &'static Machine) -> Self {
        let bell = Bell(Arc::new(Notify::new()));
        let mut receiver = Receiver::new(number, machine);
        receiver.open(Box::new(bell.clone()));
        Self { receiver, bell }
    }

    /// Submit call number `call`; whether the zone took it.
    pub fn submit(&mut self, zone: &Zone, call: u32) -> bool {
        self.submit_at(zone, call, 0)
    }

    /// The same for one that `depth` tasks wait for.
    pub fn submit_at(&mut self, zone: &Zone, call: u32, depth: u32) -> bool {
        let task = self.receiver.task(call);
        // SAFETY: each model uses a call number once, so the task is idle at home, which is this thread.
        unsafe {
            task.body(|body| {
                body.depth = depth;
                body.bytes.set(&[call as u8]);
            });
        }
        let accepted = zone.submit(Submission::new(task, 1)).is_ok();
        if accepted {
            self.receiver.sent();
        }
        accepted
    }

    /// Submit call number `call` for the worker of that slot alone; whether the zone took it.
    pub fn submit_to(&mut self, zone: &Zone, call: u32, slot: u16, moves: bool) -> bool {
        let task = self.receiver.task(call);
        // SAFETY: as in submit_at.
        unsafe { task.body(|body| body.bytes.set(&[call as u8])) };
        let order = Order { worker: slot + 1, moves, ..Order::default() };
        let accepted =
            zone.submit(Submission { order: Some((order, 1)), ..Submission::new(task, 1) }).is_ok();
        if accepted {
            self.receiver.sent();
        }
        accepted
    }

    /// Wait, asleep, for one arrival: its call and status.
    pub fn arrival(&mut self) -> (u32, Status) {
        loop {
            if let Some(arrived) = self.poll() {
                return arrived;
            }
            if self.receiver.try_sleep() {
                self.bell.0.wait();
                self.receiver.wake_up();
            }
        }
    }

    pub fn poll(&mut self) -> Option<(u32, Status)> {
        let task = self.receiver.next_arrival()?;
        // SAFETY: it has returned to this thread.
        let status = unsafe { task.body(|body| body.status) };
        self.receiver.put_away(task);
        Some((task.call(), status))
    }

    /// Work as a loop does until `tasks_max` tasks are done or the zone lets go.
    pub fn work(&mut self, worker: &mut Worker, tasks_max: usize) -> usize {
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

    pub fn rest(&mut self, worker: &mut Worker) {
        if worker.try_sleep(&mut self.receiver) {
            self.bell.0.wait();
            worker.wake_up();
            self.receiver.wake_up();
        } else {
            thread::yield_now(); // a submitter is between its count and its push
        }
    }
}

impl Seat {
    /// Fork call number `call` from a task of `worker`.
    pub fn fork(&mut self, worker: &mut Worker, call: u32, joined: bool) {
        let task = self.receiver.task(call);
        if joined {
            self.receiver.join(task);
        }
        // SAFETY: as in submit.
        unsafe { task.body(|body| body.bytes.set(&[call as u8])) };
        let zone = Arc::clone(worker.zone());
        worker.submit(&zone, Submission::new(task, 1)).expect("there is room");
        self.receiver.sent();
    }

    /// Wait for a joined call as crates/node does; whether it was run here.
    pub fn join(&mut self, worker: &mut Worker, call: u32) -> bool {
        let task = self.receiver.task(call);
        let mine = loop {
            match worker.help(task, true, |_| true) {
                Help::Mine => break true,
                Help::Done => break false,
                Help::Task { token, .. } => complete(worker, token),
                Help::Nothing => {
                    if worker.try_sleep_until(&mut self.receiver, task) {
                        self.bell.0.wait();
                        worker.wake_up();
                        self.receiver.wake_up();
                    }
                }
            }
        };
        self.receiver.put_away(task);
        worker.call_returned();
        mine
    }
}

pub fn complete(worker: &mut Worker, token: u32) {
    assert!(worker.complete(token, |body| body.status = Status::Done));
}

pub fn machine() -> &'static Machine {
    Box::leak(Box::new(Machine::new(2)))
}

pub const LIMITS: Limits = Limits {
    tasks_max: 8,
    task_bytes_max: 64,
    queue_bytes_max: 64,
    broadcasts_max: 4,
    tasks_per_worker_max: 1,
    waiting_per_worker_max: 16,
    call_depth_max: 8,
    tasks_per_tenant_max: usize::MAX,
    worker_tasks_max: usize::MAX,
    spin: Duration::ZERO,
};

/// A zone and its workers, attached, each with a seat.
pub fn zone_of(workers: u32, machine: &'static Machine) -> (Arc<Zone>, Vec<(Seat, Worker)>) {
    staffed(Zone::new(1, LIMITS), workers, machine)
}

/// The same where workers steal.
pub fn stealing(workers: u32, machine: &'static Machine) -> (Arc<Zone>, Vec<(Seat, Worker)>) {
    let executor = Executor { steals: true, ..Executor::default() };
    staffed(Zone::with(1, LIMITS, executor), workers, machine)
}

/// A zone of two workers that steal, of which the first runs a task.
pub struct Two {
    pub zone: Arc<Zone>,
    /// The task's home.
    pub home: Seat,
    pub one: (Seat, Worker),
    pub two: (Seat, Worker),
    /// The task, for `one` to complete.
    pub token: u32,
}

pub fn one_of_two_runs(machine: &'static Machine) -> Two {
    let (zone, mut staff) = stealing(2, machine);
    let mut home = Seat::new(1, machine);
    assert!(home.submit(&zone, 0));
    let (mut one, two) = (staff.remove(0), staff.remove(0));
    let Next::Task { token, .. } = one.1.take() else { unreachable!("a task waits") };
    Two { zone, home, one, two, token }
}

pub fn staffed(zone: Zone, workers: u32, machine: &'static Machine) -> (Arc<Zone>, Vec<(Seat, Worker)>) {
    let zone = Arc::new(zone);
    let staff = (0..workers)
        .map(|number| {
            let seat = Seat::new(10 + number, machine);
            let slot = zone.add_slot().expect("the zone is open");
            let worker = zone.attach(slot, seat.receiver.mailbox()).expect("the slot is there");
            (seat, worker)
        })
        .collect();
    (zone, staff)
}
