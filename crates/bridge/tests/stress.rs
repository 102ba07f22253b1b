//! The whole protocol under real threads: submitters that cancel and vanish, workers that die at any point,
//! an owner that replaces them, broadcasts, and a close in the middle of it all; tasks that fork tasks,
//! cancel them and join them, in zones that steal and in zones that do not.
//!
//! The oracle is bookkeeping: every accepted task returns exactly once, with the bytes that belong to it,
//! and the zone's counts agree. Each run prints its seed; CORESPUN_SEED repeats its choices (not the
//! machine's). Under Miri the same test runs small, for undefined behaviour and data races.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::HashMap,
    sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, SystemTime},
};

use corespun_bridge::{
    Cancellation, Counts, Executor, Failure, Help, Limits, Machine, Next, Order, Priority, Receiver, Refusal,
    Status, Submission, Task, Wake, Worker, Zone,
};

/// Nothing takes so long unless a wake-up was lost.
const WAIT_MAX: Duration = Duration::from_secs(60);
const SUBMITTERS: u64 = if cfg!(miri) { 2 } else { 4 };
const WORKERS: u64 = if cfg!(miri) { 2 } else { 4 };
const CALLS: u32 = if cfg!(miri) { 24 } else { 20_000 };
const BROADCASTS: usize = if cfg!(miri) { 2 } else { 40 };
/// One in `DEATH_ODDS` steps of a worker is its last.
const DEATH_ODDS: u64 = if cfg!(miri) { 30 } else { 400 };
/// One in `VANISH_ODDS` steps of a submitter ends its thread with its tasks still out.
const VANISH_ODDS: u64 = if cfg!(miri) { 40 } else { 40_000 };
const LIMITS: Limits = Limits {
    tasks_max: 64,
    task_bytes_max: 100,
    queue_bytes_max: 2_000,
    broadcasts_max: 100,
    tasks_per_worker_max: 2,
    waiting_per_worker_max: 16,
    call_depth_max: 8,
    tasks_per_tenant_max: usize::MAX,
    worker_tasks_max: usize::MAX,
    spin: Duration::ZERO,
};

/// Receivers of ended threads, for later ones: as the registry of the binding keeps them.
static RECEIVERS: Mutex<Vec<Receiver>> = Mutex::new(Vec::new());
/// What returned to threads that had vanished.
static STRAYS: Mutex<Tally> = Mutex::new(Tally::new());
static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::new(2));

/// A generator of choices (xorshift64*).
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }
}

fn seed() -> u64 {
    let given = std::env::var("CORESPUN_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| {
        if cfg!(miri) {
            return 1;
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64 % 1_000_000_007)
    });
    println!("CORESPUN_SEED={seed}");
    seed
}

#[derive(Clone, Default)]
struct Bell(Arc<(Mutex<bool>, Condvar)>);

impl Bell {
    /// Wait until rung; false after `limit`.
    fn wait(&self, limit: Duration) -> bool {
        let rung = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut rung, _) = self.0.1.wait_timeout_while(rung, limit, |rung| !*rung).unwrap();
        std::mem::take(&mut rung)
    }
}

impl Wake for Bell {
    fn wake(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_one();
    }
}

/// How the tasks of one thread ended.
#[derive(Debug)]
struct Tally {
    accepted: u64,
    cancelled: u64,
    done: u64,
    died: u64,
    closed: u64,
    refused: u64,
}

impl Tally {
    const fn new() -> Self {
        Self { accepted: 0, cancelled: 0, done: 0, died: 0, closed: 0, refused: 0 }
    }

    fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.cancelled += other.cancelled;
        self.done += other.done;
        self.died += other.died;
        self.closed += other.closed;
        self.refused += other.refused;
    }

    fn count(&mut self, status: Status) {
        match status {
            Status::Done => self.done += 1,
            Status::Died => self.died += 1,
            Status::Closed => self.closed += 1,
            other => panic!("nothing here ends as {other:?}"),
        }
    }
}

/// A thread's receiver, waker and calls in flight.
struct Seat {
    receiver: Receiver,
    bell: Bell,
    flying: HashMap<u32, Vec<u8>>,
    free: Vec<u32>,
    calls: u32,
    tally: Tally,
}

impl Seat {
    fn take() -> Self {
        let bell = Bell::default();
        let mut receivers = RECEIVERS.lock().unwrap();
        count_strays(&mut receivers);
        // Not is_idle, which would put away, uncounted, what has come since.
        let mut receiver = match receivers.iter().position(|receiver| receiver.in_flight() == 0) {
            Some(index) => receivers.swap_remove(index),
            None => Receiver::new(receivers.len() as u32, &MACHINE),
        };
        drop(receivers);
        receiver.open(Box::new(bell.clone()));
        Self { receiver, bell, flying: HashMap::new(), free: Vec::new(), calls: 0, tally: Tally::new() }
    }

    /// End the thread's part. What has not returned yet is counted when it has, in `collect`.
    fn give_back(mut self) -> Tally {
        self.receiver.close();
        RECEIVERS.lock().unwrap().push(self.receiver);
        self.tally
    }

    fn number(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.calls += 1;
            self.calls - 1
        })
    }

    /// A call that is free, with random bytes in its task.
    fn filled(&mut self, dice: &mut Dice) -> (&'static Task, Vec<u8>) {
        let call = self.number();
        let bytes: Vec<u8> = (0..dice.below(100)).map(|_| dice.below(256) as u8).collect();
        let task = self.receiver.task(call);
        // SAFETY: the number is free, so its task is idle at home.
        unsafe { task.body(|body| (body.function, _) = (call, body.bytes.set(&bytes))) };
        (task, bytes)
    }

    fn submit(&mut self, zone: &Zone, dice: &mut Dice) -> Result<(), Refusal> {
        let (task, bytes) = self.filled(dice);
        let outcome = zone.submit(Submission { order: order(dice), ..Submission::new(task, bytes.len()) });
        self.note(task, bytes, outcome)
    }

    /// The same from a worker's task.
    fn fork(&mut self, worker: &mut Worker, dice: &mut Dice) {
        let (task, bytes) = self.filled(dice);
        let zone = Arc::clone(worker.zone());
        let submission = Submission { order: order(dice), ..Submission::new(task, bytes.len()) };
        let outcome = worker.submit(&zone, submission);
        let _ = self.note(task, bytes, outcome);
    }

    fn note(
        &mut self,
        task: &'static Task,
        bytes: Vec<u8>,
        outcome: Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let call = task.call();
        match outcome {
            Ok(()) => {
                self.receiver.sent();
                self.tally.accepted += 1;
                assert!(self.flying.insert(call, bytes).is_none());
            }
            Err(_) => {
                self.free.push(call);
                self.tally.refused += 1;
            }
        }
        outcome
    }

    /// Cancel some call; whether it was cancelled.
    fn cancel(&mut self, zone: &Zone, dice: &mut Dice) -> bool {
        let Some(&call) = self.flying.keys().nth(dice.below(8) as usize) else { return false };
        let task = self.receiver.task(call);
        let cancelled = zone.cancel(task, 1, 0) == Cancellation::Cancelled;
        if cancelled {
            self.receiver.put_away(task);
            self.tally.cancelled += 1;
            self.flying.remove(&call);
            self.free.push(call);
        }
        cancelled
    }

    /// Settle what has returned.
    fn settle(&mut self) -> usize {
        let mut settled = 0;
        while let Some(task) = self.receiver.next_arrival() {
            self.home(task);
            settled += 1;
        }
        while self.receiver.next_mail().is_some() {}
        settled
    }

    fn home(&mut self, task: &'static Task) {
        {
            let sent = self.flying.remove(&task.call()).expect("a task returns once");
            // SAFETY: it is at home.
            let (status, bytes) = unsafe { task.body(|body| (body.status, body.bytes.as_slice().to_vec())) };
            self.tally.count(status);
            match status {
                Status::Done => assert_eq!(bytes, answer_to(&sent)),
                Status::Died => assert_eq!(bytes, b"died"),
                _ => assert!(bytes.is_empty()),
            }
            self.receiver.put_away(task);
            self.free.push(task.call());
        }
    }

    /// Sleep until something has come; nothing coming means that it was slept through.
    fn rest(&mut self) {
        if self.receiver.try_sleep() {
            assert!(self.bell.wait(WAIT_MAX), "slept through {} arrivals", self.flying.len());
            self.receiver.wake_up();
        }
    }
}

/// Every other call has an order: some are for one worker, which may have died.
fn order(dice: &mut Dice) -> Option<(Order, u32)> {
    dice.one_in(2).then(|| {
        let priority = [Priority::High, Priority::Normal, Priority::Low][dice.below(3) as usize];
        let worker = if dice.one_in(2) { 0 } else { 1 + dice.below(WORKERS) as u16 };
        let (moves, exclusive) = (dice.one_in(2), dice.one_in(4));
        let tenant = dice.below(3) << 8;
        let order = Order { tenant, worker, moves, exclusive, priority, ..Order::default() };
        (order, 1 + dice.below(3) as u32)
    })
}

fn answer_to(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// Submit, cancel, settle; at some point, perhaps, vanish.
fn submitter(zone: &Zone, mut dice: Dice) -> Tally {
    let mut seat = Seat::take();
    for _ in 0..CALLS {
        match seat.submit(zone, &mut dice) {
            Err(Refusal::Closed) => break,
            // Full of others' tasks, perhaps: only one's own can be waited for.
            Err(_) if seat.flying.is_empty() => thread::yield_now(),
            Err(_) => seat.rest(),
            Ok(()) if dice.one_in(8) => _ = seat.cancel(zone, &mut dice),
            Ok(()) => {}
        }
        seat.settle();
        if dice.one_in(VANISH_ODDS) {
            return seat.give_back();
        }
    }
    while !seat.flying.is_empty() {
        seat.rest();
        seat.settle();
    }
    seat.give_back()
}

/// A worker's thread: returns when it dies or is let go.
fn work(mut worker: Worker, mut seat: Seat, mut dice: Dice) -> Tally {
    let mut held = Vec::new();
    while !dice.one_in(DEATH_ODDS) {
        for _ in 0..seat.settle() {
            worker.call_returned();
        }
        match worker.take() {
            Next::Task { task, token, .. } => {
                assert!(std::ptr::eq(worker.running(token).expect("it runs"), task));
                held.push(token);
                // A task forks less than one other, so that they come to an end.
                if dice.one_in(4) {
                    for _ in 0..dice.below(4) {
                        seat.fork(&mut worker, &mut dice);
                    }
                } else if worker.zone().executor().steals && dice.one_in(4) {
                    join(&mut worker, &mut seat, &mut dice, 0);
                }
                if dice.one_in(100) {
                    // More than this worker gets done before others look for work.
                    (0..10).for_each(|_| seat.fork(&mut worker, &mut dice));
                    thread::sleep(Duration::from_micros(100));
                }
                if dice.one_in(20) {
                    let zone = Arc::clone(worker.zone());
                    if seat.cancel(&zone, &mut dice) {
                        worker.call_returned();
                    }
                }
                if dice.one_in(2) {
                    complete_one(&mut worker, &mut held, &mut dice);
                }
            }
            Next::Broadcast(broadcast) => {
                assert_eq!(&*broadcast.bytes, b"all");
                let failure =
                    dice.one_in(4).then(|| Failure { status: Status::Failed, bytes: (*b"no").into() });
                worker.broadcast_done(failure);
            }
            Next::Leave => break,
            Next::Nothing => {
                if !held.is_empty() && dice.one_in(2) {
                    complete_one(&mut worker, &mut held, &mut dice);
                } else {
                    look_and_sleep(&mut worker, &mut seat, &mut dice, held.is_empty());
                }
            }
        }
    }
    let open = seat.receiver.in_flight();
    seat.receiver.close();
    worker.leave();
    assert_eq!(open, seat.flying.len(), "what is out is known");
    seat.give_back()
}

/// Fork a call, and run it, or wait for it and help meanwhile.
fn join(worker: &mut Worker, seat: &mut Seat, dice: &mut Dice, depth: u32) {
    let (task, bytes) = seat.filled(dice);
    seat.receiver.join(task);
    let zone = Arc::clone(worker.zone());
    let outcome = worker.submit(&zone, Submission::new(task, bytes.len()));
    if seat.note(task, bytes, outcome).is_err() {
        return seat.receiver.unjoin(task);
    }
    // Some functions are not known to some workers.
    let odd = dice.below(2) as u32;
    loop {
        match worker.help(task, depth < 4, |function| function % 4 < 3 || odd == 0) {
            Help::Mine => {
                seat.receiver.put_away(task);
                seat.tally.cancelled += 1;
                seat.flying.remove(&task.call());
                seat.free.push(task.call());
                break;
            }
            Help::Done => {
                seat.home(task);
                break;
            }
            Help::Task { token, .. } => {
                if depth < 4 && dice.one_in(2) {
                    join(worker, seat, dice, depth + 1);
                }
                complete_one(worker, &mut vec![token], dice);
            }
            Help::Nothing => {
                if worker.try_sleep_until(&mut seat.receiver, task) {
                    assert!(seat.bell.wait(WAIT_MAX), "slept through the end of a joined call");
                    worker.wake_up();
                    seat.receiver.wake_up();
                }
            }
        }
    }
    worker.call_returned();
}

/// As the loop of a Node worker does: look for a while, then sleep; with tasks of its own in progress not for
/// long.
fn look_and_sleep(worker: &mut Worker, seat: &mut Seat, dice: &mut Dice, idle: bool) {
    if dice.one_in(2) {
        worker.begin_search();
        let found = (0..dice.below(50)).any(|_| worker.has_work() || seat.receiver.has_arrivals());
        worker.end_search();
        if found {
            return worker.pass_on();
        }
    }
    if worker.try_sleep(&mut seat.receiver) {
        seat.bell.wait(if idle { WAIT_MAX } else { Duration::from_micros(50) });
        worker.wake_up();
        seat.receiver.wake_up();
    }
}

fn complete_one(worker: &mut Worker, held: &mut Vec<u32>, dice: &mut Dice) {
    let token = held.swap_remove(dice.below(held.len() as u64) as usize);
    let done = worker.complete(token, |body| {
        let answer = answer_to(body.bytes.as_slice());
        body.status = Status::Done;
        body.bytes.set(&answer);
    });
    assert!(done && !worker.complete(token, |_| unreachable!("completed twice")));
}

/// Start the zone's workers and replace those that die, until the zone needs none. Returns how many there
/// were, and what became of the calls that they made.
fn owner(zone: &Arc<Zone>, mut dice: Dice) -> (u64, Tally) {
    thread::scope(|scope| {
        let (exits, exited) = mpsc::channel();
        let mut started = 0;
        let mut start = |slot: u32| {
            started += 1;
            let (exits, dice) = (exits.clone(), Dice::new(dice.below(u64::MAX)));
            scope.spawn(move || {
                let seat = Seat::take();
                let worker = zone.attach(slot, seat.receiver.mailbox());
                let tally = match worker {
                    Some(worker) => work(worker, seat, dice),
                    None => seat.give_back(),
                };
                exits.send((slot, tally)).unwrap();
            });
        };
        let (mut alive, mut total) = (0, Tally::new());
        for slot in (0..WORKERS).filter_map(|_| zone.add_slot()) {
            alive += 1;
            start(slot);
        }
        while alive > 0 {
            let (slot, tally) = exited.recv().unwrap();
            total.add(&tally);
            zone.slot_ended(slot, Status::Died, b"died");
            match zone.add_slot() {
                Some(slot) => start(slot),
                None => alive -= 1,
            }
        }
        (started, total)
    })
}

/// Make one broadcast after the other, each when the last has been answered. Returns how many were settled.
fn broadcaster(zone: &Zone) -> usize {
    let mut seat = Seat::take();
    let mut settled = 0;
    while settled < BROADCASTS {
        let task = seat.receiver.task(0);
        match zone.broadcast(0, 7, b"all", 0, None, Some(task)) {
            Err(Refusal::Closed) => break,
            outcome => assert!(outcome.is_ok()),
        }
        seat.receiver.sent();
        let came = loop {
            match seat.receiver.next_arrival() {
                Some(task) => break task,
                None => seat.rest(),
            }
        };
        assert!(std::ptr::eq(came, task));
        // SAFETY: it is at home.
        let status = unsafe { task.body(|body| body.status) };
        assert!(matches!(status, Status::Done | Status::Failed | Status::Closed), "{status:?}");
        seat.receiver.put_away(task);
        assert!(seat.receiver.next_arrival().is_none(), "settled once");
        settled += 1;
    }
    seat.give_back();
    settled
}

/// Close the zone and wait until it is.
fn close(zone: &Zone) {
    let mut seat = Seat::take();
    let task = seat.receiver.task(0);
    if zone.close(Some(task)) {
        seat.receiver.sent();
        let came = loop {
            match seat.receiver.next_arrival() {
                Some(task) => break task,
                None => seat.rest(),
            }
        };
        seat.receiver.put_away(came);
    }
    assert!(!zone.close(None), "closed before");
    seat.give_back();
}

/// Count what has returned to threads that had vanished.
fn count_strays(receivers: &mut [Receiver]) {
    let mut strays = STRAYS.lock().unwrap();
    for receiver in receivers {
        while let Some(task) = receiver.next_arrival() {
            // SAFETY: it is at home, and the home is in our hands.
            strays.count(unsafe { task.body(|body| body.status) });
            receiver.put_away(task);
        }
    }
}

/// At the end of a zone every receiver is idle; add what returned to no thread in particular.
fn collect(total: &mut Tally) {
    let mut receivers = RECEIVERS.lock().unwrap();
    count_strays(&mut receivers);
    for receiver in receivers.iter_mut() {
        assert!(receiver.is_idle(), "{} misses {} tasks", receiver.mailbox().number(), receiver.in_flight());
    }
    total.add(&std::mem::replace(&mut *STRAYS.lock().unwrap(), Tally::new()));
}

/// How a zone ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// Closed when all submitters are done.
    Late,
    /// Closed when the first of them is.
    Early,
    /// Failed when the first of them is.
    Failing,
}

/// One zone, from its start to its end.
fn run(seed: u64, end: End, steals: bool) {
    let executor = Executor { steals, ..Executor::default() };
    let zone = Arc::new(Zone::with(1, LIMITS, executor));
    let mut total = Tally::new();
    let (started, theirs) = thread::scope(|scope| {
        let owner = scope.spawn(|| owner(&zone, Dice::new(seed)));
        let broadcaster = scope.spawn(|| broadcaster(&zone));
        let zone = &zone;
        let mut submitters: Vec<_> = (1..=SUBMITTERS)
            .map(|index| scope.spawn(move || submitter(zone, Dice::new(seed + index))))
            .collect();
        if end != End::Late {
            total.add(&submitters.remove(0).join().unwrap());
        }
        match end {
            End::Early => close(zone),
            End::Failing => zone.finish(Status::Closed, &[]),
            End::Late => assert_eq!(broadcaster.join().unwrap(), BROADCASTS),
        }
        for submitter in submitters {
            total.add(&submitter.join().unwrap());
        }
        if end == End::Late {
            close(zone);
        }
        owner.join().unwrap()
    });
    total.add(&theirs);
    collect(&mut total);
    println!("{end:?}, steals {steals}: {started} workers, {total:?}, {} stolen", zone.counts().stolen);
    let Tally { accepted, cancelled, done, died, closed, .. } = total;
    assert_eq!(accepted, cancelled + done + died + closed, "every task returns once");
    let counts = zone.counts();
    assert_eq!((counts.ended, counts.died), (done, died), "the counts agree");
    let Counts { waiting, waiting_bytes, running, workers, asleep, .. } = counts;
    assert_eq!([waiting, waiting_bytes, running, workers, asleep], [0; 5], "nothing is left");
}

/// One test, since the receivers are one pool.
#[test]
fn every_task_settles_exactly_once_whatever_dies() {
    std::panic::set_hook(Box::new(|info| {
        // A panic elsewhere would leave the others waiting for ever.
        eprintln!("{info}");
        std::process::exit(101);
    }));
    let seed = seed();
    for (index, end) in (0..).zip([End::Late, End::Early, End::Failing]) {
        run(seed + 100 * index, end, false);
        run(seed + 100 * index + 50, end, true);
    }
}
