//! The numbers that describe a zone to JavaScript: the plan it is made by, its counts, its workers.
//!
//! Each encoding has a fixed order, which `layout` or the function's own text lists.

use std::time::Duration;

use crate::{
    Counts, Limits, Overdue, Shrunk, Times, WorkerCounts,
    layout::{COUNTS, plan},
    registry::Plan,
};

/// The limits and the plan in the numbers that [`plan`] lists; `None` if there are fewer or more.
pub fn decode_plan(numbers: &[f64]) -> Option<(Limits, Plan)> {
    let numbers: &[f64; plan::NUMBERS] = numbers.try_into().ok()?;
    let micros = |index: usize| Duration::from_micros(numbers[index] as u64);
    let limits = Limits {
        tasks_max: numbers[plan::TASKS_MAX] as usize,
        task_bytes_max: numbers[plan::TASK_BYTES_MAX] as usize,
        queue_bytes_max: numbers[plan::QUEUE_BYTES_MAX] as usize,
        broadcasts_max: numbers[plan::BROADCASTS_MAX] as usize,
        tasks_per_worker_max: numbers[plan::TASKS_PER_WORKER_MAX] as usize,
        spin: micros(plan::SPIN_US),
        waiting_per_worker_max: numbers[plan::WAITING_PER_WORKER_MAX] as usize,
        call_depth_max: numbers[plan::CALL_DEPTH_MAX] as u32,
        tasks_per_tenant_max: numbers[plan::TASKS_PER_TENANT_MAX] as usize,
        worker_tasks_max: numbers[plan::WORKER_TASKS_MAX] as usize,
    };
    let plan = Plan {
        steals: numbers[plan::STEALS] > 0.0,
        blocks: numbers[plan::BLOCKS] > 0.0,
        workers: numbers[plan::WORKERS] as u32,
        workers_max: numbers[plan::WORKERS_MAX] as u32,
        patience: micros(plan::PATIENCE_US),
    };
    Some((limits, plan))
}

impl Times {
    const fn encode(self) -> [f64; 7] {
        [self.count, self.mean, self.p50, self.p90, self.p99, self.p999, self.max]
    }
}

impl Counts {
    /// Waiting, waiting bytes, running, ended, died, wake-ups, workers, asleep, failed, stolen, errors; then
    /// of waiting and of running times, in ns: count, mean, p50, p90, p99, p999, max.
    pub fn encode(&self) -> [f64; COUNTS] {
        let counts = [
            self.waiting,
            self.waiting_bytes,
            self.running,
            self.ended,
            self.died,
            self.wake_ups,
            self.workers,
            self.asleep,
            self.failed,
            self.stolen,
            self.errors,
        ];
        let counts = counts.map(|count| count as f64).into_iter();
        let mut numbers = counts.chain(self.wait.encode()).chain(self.run.encode());
        std::array::from_fn(|_| numbers.next().unwrap_or_default())
    }
}

impl WorkerCounts {
    /// Slot, waiting, running, ended, failed, stolen, wake-ups, utilisation; then the times as in
    /// [`Counts::encode`].
    pub fn encode(&self) -> impl Iterator<Item = f64> + use<> {
        let counts = [
            f64::from(self.slot),
            self.waiting as f64,
            self.running as f64,
            self.ended as f64,
            self.failed as f64,
            self.stolen as f64,
            self.wake_ups as f64,
            self.utilisation,
        ];
        counts.into_iter().chain(self.wait.encode()).chain(self.run.encode())
    }
}

impl Shrunk {
    /// Milliseconds until the next check (0: none), then the slots of the dismissed workers.
    pub fn encode(self) -> Vec<u32> {
        encode_slots(self.next_ns, &self.dismissed)
    }
}

impl Overdue {
    /// Milliseconds until the next check (0: none), then the slots of the condemned workers.
    pub fn encode(self) -> Vec<u32> {
        encode_slots(self.next_ns, &self.condemned)
    }
}

fn encode_slots(next_ns: Option<f64>, slots: &[u32]) -> Vec<u32> {
    let next_ms = next_ns.map_or(0, |ns| (ns / 1e6).ceil() as u32);
    std::iter::once(next_ms).chain(slots.iter().copied()).collect()
}

#[cfg(test)]
mod tests;
