//! What the tasks of each function did and took, for the metrics of the process.
//!
//! Each worker has its own counts, changed under the lock of its running tasks, and the zone those of workers
//! that have ended. Nothing is counted and no memory taken before [`start`]. CPU time is read from the
//! system only after tasks that are long beside the reading: shorter ones have used what they took.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{clock, durations::Durations, usual::Usual};

/// Whether tasks are counted by function; once they are, they stay so.
static COUNTING: AtomicBool = AtomicBool::new(false);

/// Functions that are counted one by one, for each worker; the others count as function 0.
const FUNCTIONS_MAX: usize = 256;
/// Sixteen buckets for each power of two: a duration is right to a thirtieth.
type Buckets = Durations<4>;
/// Tasks of so many ticks have their CPU time read; some 40 µs.
const LONG_TICKS: u64 = 100_000;

/// Count from now on.
pub fn start() {
    COUNTING.store(true, Ordering::Relaxed);
}

#[inline]
pub fn is_counting() -> bool {
    // Relaxed: a task that begins about when this changes is counted or not. Loom explores the protocol.
    !cfg!(any(loom, miri)) && COUNTING.load(Ordering::Relaxed)
}

/// What a task took.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// From its acceptance to its begin.
    pub waited: u64,
    /// From that to its end.
    pub ran: u64,
}

impl Ticks {
    /// Both together.
    pub const fn total(self) -> u64 {
        self.waited + self.ran
    }
}

/// A task that took far longer than others of its function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// What 99 of 100 take at most, in ticks.
    pub usual: f64,
    pub cpu_ns: f64,
}

/// How a task left its zone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Left {
    /// Its function has returned.
    Done = 0,
    /// Its function has failed.
    Failed = 1,
    /// Its worker has died.
    Died = 2,
    /// It was cancelled, or its zone closed, before a worker took it.
    Withdrawn = 3,
}

/// The tasks of one function.
#[derive(Clone, Debug)]
pub struct Function {
    /// By [`Left`].
    pub left: [u64; 4],
    cpu_ns: f64,
    /// Of the short ones.
    cpu_ticks: u64,
    wait: Buckets,
    run: Buckets,
    /// From acceptance to end, of the tasks of one worker.
    usual: Usual,
}

impl Function {
    fn new() -> Self {
        Self {
            left: [0; 4],
            cpu_ns: 0.0,
            cpu_ticks: 0,
            wait: Buckets::new(),
            run: Buckets::new(),
            usual: Usual::default(),
        }
    }
}

/// The functions of one worker, or of several.
pub(crate) struct Functions {
    /// Their numbers, in the order of `kept`.
    numbers: Vec<u32>,
    kept: Vec<Function>,
    /// Where the last one was found.
    last: usize,
    /// The CPU time of the worker's thread when it was read last, and the short tasks since.
    read_ns: f64,
    unread_ticks: u64,
}

impl Functions {
    pub(crate) const fn new() -> Self {
        Self { numbers: Vec::new(), kept: Vec::new(), last: 0, read_ns: 0.0, unread_ticks: 0 }
    }

    pub(crate) fn of(&mut self, number: u32) -> &mut Function {
        if self.numbers.get(self.last) != Some(&number) {
            let known = self.numbers.iter().position(|&other| other == number);
            self.last = match known {
                Some(index) => index,
                None if self.kept.len() >= FUNCTIONS_MAX && number != 0 => return self.of(0),
                None => self.first(number),
            };
        }
        &mut self.kept[self.last]
    }

    #[inline(never)]
    fn first(&mut self, number: u32) -> usize {
        self.numbers.push(number);
        self.kept.push(Function::new());
        self.kept.len() - 1
    }

    /// A task begins that has waited so long.
    #[cold]
    #[inline(never)]
    pub(crate) fn begun(&mut self, number: u32, ticks: u64) {
        self.of(number).wait.record(ticks);
    }

    /// A task has ended that ran so long, in the calling thread, whose CPU time `clock` reads. Returns what
    /// is usual if it was slow.
    #[cold]
    #[inline(never)]
    pub(crate) fn ended(
        &mut self,
        number: u32,
        times: Ticks,
        left: Left,
        clock: fn() -> f64,
    ) -> Option<Slow> {
        let ticks = times.ran;
        let mut cpu_ns = 0.0;
        if ticks < LONG_TICKS {
            self.unread_ticks += ticks;
            self.of(number).cpu_ticks += ticks;
        } else {
            let now_ns = clock();
            let tick_ns = clock::tick_ns();
            let short_ns = self.unread_ticks as f64 * tick_ns;
            cpu_ns = (now_ns - self.read_ns - short_ns).clamp(0.0, ticks as f64 * tick_ns);
            // Whole: their sum is the same in any order of the workers.
            cpu_ns = cpu_ns as u64 as f64;
            (self.read_ns, self.unread_ticks) = (now_ns, 0);
            self.of(number).cpu_ns += cpu_ns;
        }
        let function = self.of(number);
        function.left[left as usize] += 1;
        function.run.record(ticks);
        function.usual.passed(times.total() as f64).map(|usual| Slow { usual, cpu_ns })
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn add(&mut self, other: &Self) {
        for (&number, from) in other.numbers.iter().zip(&other.kept) {
            let into = self.of(number);
            into.left.iter_mut().zip(from.left).for_each(|(into, from)| *into += from);
            into.cpu_ns += from.cpu_ns;
            into.cpu_ticks += from.cpu_ticks;
            into.wait.add(&from.wait);
            into.run.add(&from.run);
        }
    }
}

/// What the workers of a zone have counted, added up as numbers: a row for each function.
pub(crate) struct Rows<'a> {
    bounds_ns: &'a [f64],
    /// The functions, in the order of `rows`.
    numbers: Vec<u32>,
    /// Each its number, how its tasks left by [`Left`], how many run, their CPU time; then of waiting and of
    /// running times what [`Durations::put`] writes.
    rows: Vec<f64>,
    /// CPU time of short tasks, by function: a sum of ticks is the same in any order of the workers.
    cpu_ticks: Vec<u64>,
    tick_ns: f64,
}

/// Where a row has them.
const RUNNING: usize = 5;
const CPU: usize = 6;
const TIMES: usize = 7;

impl<'a> Rows<'a> {
    pub(crate) fn new(bounds_ns: &'a [f64]) -> Self {
        let tick_ns = clock::steady_tick_ns();
        Self { bounds_ns, numbers: Vec::new(), rows: Vec::new(), cpu_ticks: Vec::new(), tick_ns }
    }

    const fn width(&self) -> usize {
        TIMES + 2 * self.times()
    }

    /// A sum, and a bucket more than there are bounds.
    const fn times(&self) -> usize {
        2 + self.bounds_ns.len()
    }

    fn row(&mut self, number: u32) -> usize {
        let width = self.width();
        match self.numbers.iter().position(|&other| other == number) {
            Some(index) => index,
            None if self.numbers.len() >= FUNCTIONS_MAX && number != 0 => self.row(0),
            None => {
                self.numbers.push(number);
                self.cpu_ticks.push(0);
                self.rows.push(f64::from(number));
                self.rows.resize(self.numbers.len() * width, 0.0);
                self.numbers.len() - 1
            }
        }
    }

    /// A task of that function runs.
    pub(crate) fn add_running(&mut self, number: u32) {
        let start = self.row(number) * self.width();
        self.rows[start + RUNNING] += 1.0;
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn add(&mut self, functions: &Functions) {
        let (width, times, tick_ns, bounds_ns) = (self.width(), self.times(), self.tick_ns, self.bounds_ns);
        for (&number, function) in functions.numbers.iter().zip(&functions.kept) {
            let index = self.row(number);
            self.cpu_ticks[index] += function.cpu_ticks;
            let row = &mut self.rows[index * width..][..width];
            row[1..RUNNING].iter_mut().zip(function.left).for_each(|(into, from)| *into += from as f64);
            row[CPU] += function.cpu_ns;
            let (wait, run) = row[TIMES..].split_at_mut(times);
            function.wait.put(tick_ns, bounds_ns, wait);
            function.run.put(tick_ns, bounds_ns, run);
        }
    }

    /// The rows. Times are in ns.
    #[cold]
    #[inline(never)]
    pub(crate) fn finish(mut self) -> Vec<f64> {
        let (width, times) = (self.width(), self.times());
        for (row, &cpu_ticks) in self.rows.chunks_exact_mut(width).zip(&self.cpu_ticks) {
            row[CPU] += cpu_ticks as f64 * self.tick_ns;
            row[TIMES] *= self.tick_ns;
            row[TIMES + times] *= self.tick_ns;
        }
        self.rows
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
