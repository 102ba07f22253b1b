//! Callers that wait until a zone has capacity: first come, first served; one that stops waiting leaves
//! nothing.
//!
//! Capacity is freed by each task that is taken or taken back, and by the last of the first workers. Whoever
//! frees it checks for waiters, and a caller that begins to wait checks for capacity, so one of the two sees
//! the other (README.md). An admitted caller has reserved nothing: others may be quicker.

use super::{Ordering, Refusal, Start, Status, Task, Zone, lock, model_fence, settle};

impl Zone {
    /// Wait until the first workers have started and the queue has capacity: true when that is so and
    /// the caller still holds `task`; else it returns when it is, or when the zone ends.
    /// Refused: the caller still holds the task.
    pub fn await_capacity(&self, task: &'static Task) -> Result<bool, Refusal> {
        {
            let mut inner = lock(&self.inner);
            if self.is_closing() {
                return Err(Refusal::Closed);
            }
            inner.capacity_waiters.push_back(task);
            self.capacity_wanted.store(true, Ordering::SeqCst);
            model_fence();
            // SeqCst: the look comes after the note, the taker's look at the note after its count.
            if self.has_capacity() && inner.capacity_waiters.len() == 1 && inner.start != Start::Begun {
                inner.capacity_waiters.clear();
                self.capacity_wanted.store(false, Ordering::SeqCst);
                return Ok(true);
            }
        }
        self.offer_capacity();
        Ok(false)
    }

    /// The caller of `task` no longer waits for capacity. Returns whether the caller holds it again;
    /// if not, it was admitted and is being returned. Either way the next one takes its turn.
    pub fn stop_awaiting_capacity(&self, task: &'static Task) -> bool {
        let left = {
            let mut inner = lock(&self.inner);
            let index = inner.capacity_waiters.iter().position(|waiting| std::ptr::eq(*waiting, task));
            index.is_some_and(|index| inner.capacity_waiters.remove(index).is_some())
        };
        // A caller that was admitted and stops leaves its capacity to those behind it.
        self.offer_capacity();
        left
    }

    /// Admit as many waiters as there is capacity for, in order; all when no task waits.
    #[inline]
    pub(super) fn offer_capacity(&self) {
        model_fence();
        if self.capacity_wanted.load(Ordering::SeqCst) {
            self.admit_waiters(None);
        }
    }

    /// Admit the waiters that may submit; with an `end` of the zone, return all with that.
    pub(super) fn admit_waiters(&self, end: Option<(Status, &[u8])>) {
        let freed: Vec<_> = {
            let mut inner = lock(&self.inner);
            let waiting = self.waiting.load(Ordering::SeqCst);
            let free = match self.waiting_max.load(Ordering::SeqCst).saturating_sub(waiting) {
                _ if end.is_some() => usize::MAX,
                // Who attaches the last of them comes back.
                _ if inner.start == Start::Begun => 0,
                _ if waiting == 0 && self.bound.load(Ordering::SeqCst) == 0 => usize::MAX,
                _ if !self.has_capacity() => 0,
                free => free,
            };
            let count = inner.capacity_waiters.len().min(free);
            let freed = inner.capacity_waiters.drain(..count).collect();
            self.capacity_wanted.store(!inner.capacity_waiters.is_empty(), Ordering::SeqCst);
            freed
        };
        let (status, bytes) = end.unwrap_or((Status::Done, &[]));
        for task in freed {
            // SAFETY: its submitter handed it to `await_capacity`, and it was taken out just once.
            unsafe { settle(task, status, bytes) };
        }
    }

    /// Whether a task of no bytes would be accepted.
    fn has_capacity(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) < self.waiting_max.load(Ordering::SeqCst)
            && self.waiting_bytes.load(Ordering::Relaxed) < self.limits.queue_bytes_max
    }
}
