//! The way of a task into a zone: counted in, pushed on the injector, moved to the queue.
//!
//! Submitting is lock-free; a submitter pushes, then looks at who sleeps (wake.rs).

use super::{Inner, Order, Refusal, State, Status, Task, Zone, clock, lock};
use crate::{
    functions::{self, Left},
    sync::Ordering,
};

/// Note in a task that the caller holds that it was counted in. Returns its depth.
#[inline]
pub(super) fn counted_in(task: &'static Task, counted: usize, from_worker: bool) -> u32 {
    let now = clock::ticks();
    // SAFETY: the caller of submit holds the task.
    unsafe {
        task.body(|body| {
            (body.submitted, body.counted, body.from_worker, body.slow) = (now, counted, from_worker, 0);
            body.depth
        })
    }
}

/// What is submitted.
#[derive(Clone, Copy)]
pub struct Submission {
    /// Idle, its body filled by the caller, who no longer holds it once it is accepted.
    pub task: &'static Task,
    /// Bytes of its arguments.
    pub bytes: usize,
    /// Bytes of memory that is not copied and moves with the arguments.
    pub moved: usize,
    /// Its order, and how many tasks are a turn of its tenant, 1 or more.
    pub order: Option<(Order, u32)>,
}

impl Submission {
    /// Without an order or memory that moves.
    pub const fn new(task: &'static Task, bytes: usize) -> Self {
        Self { task, bytes, moved: 0, order: None }
    }
}

impl Zone {
    /// Accept a task from code that is no task of a worker.
    /// Refused: nothing was queued and the caller still holds the task.
    #[inline]
    pub fn submit(&self, submission: Submission) -> Result<(), Refusal> {
        if self.is_closing() {
            return Err(Refusal::Closed);
        }
        self.accept(submission, false)
    }

    /// Accept a task, if the queue has capacity for it.
    #[inline]
    pub(super) fn accept(&self, submission: Submission, from_worker: bool) -> Result<(), Refusal> {
        let counted = self.admit(submission)?;
        match submission.order {
            None => self.inject(submission.task, counted, from_worker),
            Some(order) => self.put_in_order(submission.task, counted, order, from_worker)?,
        }
        Ok(())
    }

    /// Count a task in, if the queue has capacity for it. Returns what it counts for among the bytes.
    #[inline]
    pub(super) fn admit(&self, submission: Submission) -> Result<usize, Refusal> {
        let Submission { task, bytes, moved, .. } = submission;
        if bytes > self.limits.task_bytes_max {
            return Err(Refusal::TooLarge);
        }
        // SAFETY: the caller of submit holds the task.
        if unsafe { task.body(|body| body.depth) } > self.limits.call_depth_max {
            return Err(Refusal::TooDeep);
        }
        let bytes = bytes.saturating_add(moved);
        // Alone too large: nor can the sum below overflow.
        if bytes > self.limits.queue_bytes_max {
            return Err(Refusal::BytesFull);
        }
        // Relaxed: a count; the push that follows publishes the task.
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.waiting_max.load(Ordering::Relaxed) {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.offer_capacity();
            return Err(Refusal::Full);
        }
        if bytes > 0
            && self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.limits.queue_bytes_max
        {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.offer_capacity();
            return Err(Refusal::BytesFull);
        }
        Ok(bytes)
    }

    /// Put a task that was counted in on the injector.
    #[inline]
    pub(super) fn inject(&self, task: &'static Task, counted: usize, from_worker: bool) {
        task.set_state(State::Accepted);
        let depth = counted_in(task, counted, from_worker);
        self.injector.push(task);
        self.note_depth(depth);
        // SeqCst: after the push, see finish.
        if self.finished.load(Ordering::SeqCst) {
            return self.refuse_waiting(Status::Closed, &[]);
        }
        self.wake_one(false, depth);
    }

    /// A task of that depth is in the injector or the queue.
    #[inline]
    pub(super) fn note_depth(&self, depth: u32) {
        // SeqCst: after the push. Who lowers the hint takes in what was pushed before.
        if depth > 0 && self.deepest.load(Ordering::SeqCst) < depth {
            self.deepest.fetch_max(depth, Ordering::SeqCst);
        }
    }

    /// Look how deep the deepest task of the queue is. The lock is held.
    pub(super) fn count_deepest(&self, inner: &mut Inner) -> u32 {
        // SeqCst: before the injector is taken, as `note_depth` comes after the push.
        self.deepest.store(0, Ordering::SeqCst);
        self.absorb(inner);
        self.note_depth(inner.queue.deepest());
        self.deepest.load(Ordering::SeqCst)
    }

    /// Move what was submitted into the queue. The lock is held.
    pub(super) fn absorb(&self, inner: &mut Inner) {
        for task in self.injector.take_all() {
            self.enqueue(inner, task);
        }
    }

    /// Put a task on the queue. The lock is held.
    #[inline(always)]
    pub(super) fn enqueue(&self, inner: &mut Inner, task: &'static Task) {
        // SAFETY: it is in the zone and nobody has taken it; who would needs the lock.
        let depth = unsafe { task.body(|body| body.depth) };
        inner.queue.push(task, depth);
        self.note_depth(depth);
        self.may_have_queued.store(true, Ordering::Relaxed);
    }

    /// A hint that tasks wait which were not forked here, for who has other work.
    pub(super) fn may_have_queued(&self) -> bool {
        self.may_have_queued.load(Ordering::Relaxed) || !self.injector.is_empty()
    }

    /// Whether a task waits that this thread must see: every push before the caller's last SeqCst step.
    pub(super) fn has_waiting(&self, inner: &Inner) -> bool {
        !inner.queue.is_empty() || !self.injector.is_empty() || self.has_forked(inner)
    }

    pub(super) fn has_forked(&self, inner: &Inner) -> bool {
        self.executor.steals && inner.slots.iter().flatten().any(|slot| slot.has_forked())
    }

    /// An accepted task will not run: it was cancelled, or the zone ends. As `stopped_waiting`.
    #[inline(never)]
    pub(super) fn withdrawn(&self, task: &'static Task) {
        if functions::is_counting() {
            // SAFETY: this thread holds the task.
            let function = unsafe { task.body(|body| body.function) };
            lock(&self.past).functions.of(function).left[Left::Withdrawn as usize] += 1;
        }
        self.stopped_waiting(task);
    }

    /// One task fewer is waiting. This thread holds `task` and no lock of the zone.
    #[inline]
    pub(super) fn stopped_waiting(&self, task: &'static Task) {
        // SAFETY: this thread holds the task: it has just taken it out of the queue or a deque.
        let bytes = unsafe { task.body(|body| body.counted) };
        if bytes > 0 {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        // SeqCst: before the look at the callers that wait for capacity.
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.offer_capacity();
    }
}
