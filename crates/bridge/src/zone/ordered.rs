//! Tasks with an order: a priority, a tenant, a worker that is to run them.
//!
//! They go into the queue at once, under the zone's lock, past the injector: so whoever takes next sees them,
//! and what has come before them through the injector is put before them. A task that only one worker may
//! take is counted apart from the others (`bound`), since that count shows every worker that there is
//! something to do. It is counted with the others again when it leaves the queue, so that who takes it need
//! not look.

use super::{Inner, Order, Refusal, Task, Zone, counted_in, lock};
use crate::{mailbox::Mailbox, sync::Ordering};

impl Zone {
    /// Put a task that was counted in on the queue, in that order.
    pub(super) fn put_in_order(
        &self,
        task: &'static Task,
        counted: usize,
        (mut order, weight): (Order, u32),
        from_worker: bool,
    ) -> Result<(), Refusal> {
        let depth = counted_in(task, counted, from_worker);
        // Never taken for its depth: nothing that runs beside it may wait for it.
        let depth = if order.exclusive { 0 } else { depth };
        let mut inner = lock(&self.inner);
        let has_left = order
            .slot()
            .is_some_and(|slot| self.is_closing() && inner.slots.get(slot).is_none_or(Option::is_none));
        // Where workers come and go the one of that number may never be there.
        if order.moves && has_left || self.executor.growth.is_some() {
            order.worker = 0;
        }
        // After `finish` nobody looks here any more.
        if self.finished.load(Ordering::SeqCst) || (has_left && order.worker > 0) {
            drop(inner);
            self.stopped_waiting(task);
            return Err(Refusal::Closed);
        }
        if !inner.tenants.admit(order.tenant) {
            drop(inner);
            self.stopped_waiting(task);
            return Err(Refusal::TenantFull);
        }
        self.absorb(&mut inner);
        inner.queue.push_ordered(task, depth, order, weight);
        if let Some(slot) = order.slot() {
            self.count_for_one();
            self.note_bound(&inner, slot);
            let sleeper = self.take_sleeper(&mut inner, slot as u32, depth);
            drop(inner);
            if let Some(mailbox) = sleeper {
                mailbox.rouse();
            }
            return Ok(());
        }
        self.note_depth(depth);
        self.may_have_queued.store(true, Ordering::Relaxed);
        drop(inner);
        self.wake_one(false, depth);
        Ok(())
    }

    /// Take the worker of that slot off the lists of sleepers, if it may begin a task of that depth.
    fn take_sleeper(&self, inner: &mut Inner, slot: u32, depth: u32) -> Option<&'static Mailbox> {
        let is_it = |sleeper: &super::Sleeper| sleeper.slot == slot && !sleeper.helps_only;
        if let Some(index) = inner.sleepers.iter().position(is_it) {
            let sleeper = inner.sleepers.remove(index);
            sleeper.count(&inner.slots);
            self.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
            self.wake_ups.fetch_add(1, Ordering::Relaxed);
            return Some(sleeper.mailbox);
        }
        let may = |sleeper: &super::FullSleeper| sleeper.slot == slot && sleeper.floor <= depth;
        let index = inner.full_sleepers.iter().position(may)?;
        let sleeper = inner.full_sleepers.remove(index);
        self.full_sleeping.store(inner.full_sleepers.len() as u32, Ordering::SeqCst);
        Some(sleeper.mailbox)
    }

    /// Note in a slot what waits for its worker alone. The lock is held.
    pub(super) fn note_bound(&self, inner: &Inner, slot: usize) {
        let (count, deepest) = inner.queue.bound_to(slot).unwrap_or_default();
        let count = count + usize::from(inner.queue.alone_of(slot).is_some());
        if let Some(slot) = inner.slots.get(slot).and_then(Option::as_ref) {
            slot.bound_deepest.store(deepest, Ordering::SeqCst);
            slot.bound.store(count, Ordering::SeqCst);
        }
    }

    /// Whether a task is accepted and not started. The lock is held.
    pub(super) fn has_accepted(&self, _: &Inner) -> bool {
        self.waiting.load(Ordering::SeqCst) + self.bound.load(Ordering::SeqCst) > 0
    }

    /// Take any task out of the queue. The lock is held.
    pub(super) fn withdraw_any(&self, inner: &mut Inner) -> Option<&'static Task> {
        let alone = inner.queue.alone().next();
        if let Some((_, task)) = alone {
            self.release(inner, task);
            return Some(task);
        }
        let (task, order) = inner.queue.pop_any()?;
        self.unbind(inner, order);
        Some(task)
    }

    /// Take `task` out of the queue, which it is in. The lock is held.
    pub(super) fn withdraw(&self, inner: &mut Inner, task: &'static Task) {
        if self.release(inner, task) {
            return;
        }
        let order = inner.queue.remove(task);
        self.unbind(inner, order);
    }

    /// A task of that order has left the queue: it counts as one of those that any worker may take until
    /// `stopped_waiting` follows.
    pub(super) fn unbind(&self, inner: &mut Inner, order: Order) {
        inner.tenants.left(order.tenant);
        let Some(slot) = order.slot() else { return };
        self.count_for_any();
        self.note_bound(inner, slot);
    }

    /// A task that only one worker might take counts as one for any.
    pub(super) fn count_for_any(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.waiting_max.fetch_add(1, Ordering::SeqCst);
        self.bound.fetch_sub(1, Ordering::SeqCst);
    }

    /// A task that any worker might take counts as one for a single worker.
    pub(super) fn count_for_one(&self) {
        self.bound.fetch_add(1, Ordering::SeqCst);
        self.waiting_max.fetch_sub(1, Ordering::SeqCst);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
