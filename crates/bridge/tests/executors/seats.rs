//! Threads without a loop of their own, for tests that take one step after the other: a receiver, and a
//! worker where there is one.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use corespun_bridge::{
    Executor, Limits, Machine, Next, Receiver, Refusal, Status, Submission, Wake, Worker, Zone,
};

pub const LIMITS: Limits = Limits {
    tasks_max: 64,
    task_bytes_max: 16,
    queue_bytes_max: 1000,
    broadcasts_max: 3,
    tasks_per_worker_max: 1,
    waiting_per_worker_max: 16,
    call_depth_max: 8,
    tasks_per_tenant_max: usize::MAX,
    worker_tasks_max: usize::MAX,
    spin: Duration::ZERO,
};
pub const STEALS: Executor = Executor { steals: true, blocks: false, growth: None };

pub static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::new(2));
pub static RECEIVERS: Mutex<Vec<Receiver>> = Mutex::new(Vec::new());

pub struct Silent;

impl Wake for Silent {
    fn wake(&self) {}
}

/// A thread of one test: its receiver, and its worker if it is one.
pub struct Seat {
    pub receiver: Option<Receiver>,
    pub worker: Option<Worker>,
    pub slot: u32,
}

impl Seat {
    pub fn new() -> Self {
        let mut receiver = Receiver::new(0, &MACHINE);
        receiver.open(Box::new(Silent));
        Self { receiver: Some(receiver), worker: None, slot: 0 }
    }

    pub fn worker(zone: &Arc<Zone>) -> Self {
        let slot = zone.add_slot().unwrap();
        Self::attached(zone, slot)
    }

    pub fn attached(zone: &Arc<Zone>, slot: u32) -> Self {
        let mut seat = Self::new();
        seat.slot = slot;
        seat.worker = zone.attach(slot, seat.receiver().mailbox());
        assert!(seat.worker.is_some());
        seat
    }

    pub fn receiver(&mut self) -> &mut Receiver {
        self.receiver.as_mut().unwrap()
    }

    pub fn work(&mut self) -> &mut Worker {
        self.worker.as_mut().unwrap()
    }

    pub fn submit(&mut self, zone: &Zone, call: u32) -> Result<(), Refusal> {
        let task = self.receiver().task(call);
        zone.submit(Submission::new(task, 0))?;
        self.receiver().sent();
        Ok(())
    }

    /// The same for a call that `depth` tasks wait for.
    pub fn submit_at(&mut self, zone: &Zone, call: u32, depth: u32) -> Result<(), Refusal> {
        let task = self.receiver().task(call);
        // SAFETY: idle at home.
        unsafe { task.body(|body| body.depth = depth) };
        self.submit(zone, call)
    }

    /// A task that runs here calls another zone.
    pub fn call(&mut self, zone: &Zone, call: u32, depth: u32) {
        let task = self.receiver().task(call);
        // SAFETY: idle at home.
        unsafe { task.body(|body| body.depth = depth) };
        self.work().submit(zone, Submission::new(task, 0)).unwrap();
        self.receiver().sent();
    }

    pub fn fork_at(&mut self, call: u32, depth: u32) {
        let task = self.receiver().task(call);
        // SAFETY: idle at home.
        unsafe { task.body(|body| body.depth = depth) };
        self.fork(call);
    }

    pub fn fork(&mut self, call: u32) {
        let task = self.receiver().task(call);
        let zone = Arc::clone(self.work().zone());
        self.work().submit(&zone, Submission::new(task, 0)).unwrap();
        self.receiver().sent();
    }

    /// Take what is next: the call's number and the token.
    pub fn take(&mut self) -> Option<(u32, u32)> {
        match self.work().take() {
            Next::Task { task, token, .. } => Some((task.call(), token)),
            _ => None,
        }
    }

    /// Take and complete one; its number.
    pub fn run(&mut self) -> Option<u32> {
        let (call, token) = self.take()?;
        self.end(token);
        Some(call)
    }

    pub fn end(&mut self, token: u32) {
        assert!(self.work().complete(token, |body| body.status = Status::Done));
    }

    /// What has returned, with how it ended.
    pub fn arrivals(&mut self) -> Vec<(u32, Status)> {
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

    pub fn asleep(&mut self) -> bool {
        let Self { receiver, worker, .. } = self;
        worker.as_mut().unwrap().try_sleep(receiver.as_mut().unwrap())
    }

    pub fn awake(&mut self) {
        self.work().wake_up();
        self.receiver().wake_up();
    }

    /// The thread ends, and the owner reports it.
    pub fn leaves(mut self, zone: &Zone) -> usize {
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

pub fn stealing() -> (Arc<Zone>, Seat, Seat, Seat) {
    let zone = Arc::new(Zone::with(1, LIMITS, STEALS));
    let (one, two) = (Seat::worker(&zone), Seat::worker(&zone));
    (zone, Seat::new(), one, two)
}
