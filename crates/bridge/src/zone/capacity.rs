//! Callers that wait until a zone has capacity: first come, first served; one that stops waiting leaves
//! nothing.
//!
//! Room comes with each task that is taken or taken back, and with the last of the first workers. Whoever
//! makes it looks whether somebody waits, and whoever begins to wait looks whether there is some, so one of
//! the two sees the other (README.md). Being let in promises nothing: others may be quicker.

use super::{Ordering, Refusal, Start, Status, Task, Zone, lock, model_fence, settle};

impl Zone {
    /// Wait until the first workers have started and there is room: true when that is so and the caller still
    /// holds `task`; else it returns when it is, or when the zone ends.
    ///
    /// # Errors
    ///
    /// [`Refusal::Closed`]; the caller still holds the task.
    pub fn await_capacity(&self, task: &'static Task) -> Result<bool, Refusal> {
        {
            let mut inner = lock(&self.inner);
            if self.is_closing() {
                return Err(Refusal::Closed);
            }
            inner.room.push_back(task);
            self.capacity_wanted.store(true, Ordering::SeqCst);
            model_fence();
            // SeqCst: the look comes after the note, the taker's look at the note after its count.
            if self.has_capacity() && inner.room.len() == 1 && inner.start != Start::Begun {
                inner.room.clear();
                self.capacity_wanted.store(false, Ordering::SeqCst);
                return Ok(true);
            }
        }
        self.offer_capacity();
        Ok(false)
    }

    /// The caller of `task`, which waits for room, no longer does. Returns whether the caller holds it again;
    /// if not, it was let in and is being returned. Either way the next one takes its turn.
    #[must_use]
    pub fn stop_awaiting_capacity(&self, task: &'static Task) -> bool {
        let left = {
            let mut inner = lock(&self.inner);
            let index = inner.room.iter().position(|waiting| std::ptr::eq(*waiting, task));
            index.is_some_and(|index| inner.room.remove(index).is_some())
        };
        // Who was let in and will not come has left its room to those behind it.
        self.offer_capacity();
        left
    }

    /// Let as many in as there is room for, in order; all when nothing waits.
    #[inline]
    pub(super) fn offer_capacity(&self) {
        model_fence();
        if self.capacity_wanted.load(Ordering::SeqCst) {
            self.admit_waiters(None);
        }
    }

    /// Let in who may; with an `end` of the zone, return all with that.
    pub(super) fn admit_waiters(&self, end: Option<(Status, &[u8])>) {
        let freed: Vec<_> = {
            let mut inner = lock(&self.inner);
            let waiting = self.waiting.load(Ordering::SeqCst);
            let free = match self.limits.tasks_max.saturating_sub(waiting) {
                _ if end.is_some() => usize::MAX,
                // Who attaches the last of them comes back.
                _ if inner.start == Start::Begun => 0,
                _ if waiting == 0 => usize::MAX,
                _ if !self.has_capacity() => 0,
                free => free,
            };
            let count = inner.room.len().min(free);
            let freed = inner.room.drain(..count).collect();
            self.capacity_wanted.store(!inner.room.is_empty(), Ordering::SeqCst);
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
        self.waiting.load(Ordering::SeqCst) < self.limits.tasks_max
            && self.waiting_bytes.load(Ordering::Relaxed) < self.limits.queue_bytes_max
    }
}
