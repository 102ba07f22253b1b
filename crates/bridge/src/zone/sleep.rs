//! How a worker searches, sleeps, wakes up and leaves.
//!
//! Each step registers first and looks second, as submitters push first and look second: README.md.

use super::{FullSleeper, Inner, Sleeper, clock, lock, model_fence, worker::Worker};
use crate::{receiver::Receiver, sync::Ordering};

impl Worker {
    /// Whether `take` would return something. May be true in vain, never false in vain once the worker is
    /// registered as searching or asleep.
    #[inline]
    pub fn has_work(&self) -> bool {
        let zone = &*self.zone;
        let busy = self.running_count();
        if self.broadcasting {
            return false;
        }
        if self.slot.applied.load(Ordering::Relaxed) < zone.broadcast_count.load(Ordering::SeqCst) {
            return busy <= self.awaited();
        }
        if busy == 0 && self.slot.is_leaving() {
            return true;
        }
        // As `take` looks: the hint of the deepest outlives a task that was cancelled while it waited.
        let waits = zone.waiting.load(Ordering::Relaxed) > 0 || self.slot.has_bound();
        match self.least_depth() {
            None => false,
            Some(0) => waits || (busy == 0 && zone.is_closing()),
            Some(least) => waits && self.may_have_deeper(least),
        }
    }

    /// Whether nothing waits that this worker may take.
    pub(super) fn seen_empty(&self) -> bool {
        let mut inner = lock(&self.zone.inner);
        self.zone.absorb(&mut inner);
        !self.zone.has_waiting(&inner) && !self.slot.has_bound()
    }

    fn can_take(&self) -> bool {
        !self.broadcasting
            && self.slot.applied.load(Ordering::Relaxed) >= self.zone.broadcast_count.load(Ordering::SeqCst)
            && (self.running_count() < self.capacity() || self.may_begin_any())
    }

    /// Begin to look for work without sleeping: submitters need not wake anybody meanwhile. One who could not
    /// take a task does not count, or those who could would sleep through it.
    pub fn begin_search(&mut self) {
        if self.can_take() && !self.slot.searching.swap(true, Ordering::SeqCst) {
            self.zone.searching.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Stop looking. Before it sleeps the worker must look once more, which `try_sleep` does.
    pub fn end_search(&self) {
        if self.slot.searching.load(Ordering::Relaxed) && self.slot.searching.swap(false, Ordering::SeqCst) {
            self.zone.searching.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Stop looking, with or without something to do. What was submitted meanwhile has woken nobody: if any
    /// of it waits, somebody is woken now.
    #[inline]
    pub fn found(&self) {
        if !self.slot.searching.load(Ordering::Relaxed) {
            return;
        }
        self.end_search();
        model_fence();
        // SeqCst: after the count of those who search is lowered. Who saw it up has counted its task
        // before.
        if self.zone.waiting.load(Ordering::SeqCst) > 0 {
            self.zone.wake_another(self.own.is_some());
        }
    }

    /// This worker has something else to do before it takes a task: if one waits, another worker may be
    /// woken.
    pub fn pass_on(&self) {
        // Relaxed: a hint; what comes later finds the sleeper itself.
        if self.zone.waiting.load(Ordering::Relaxed) > 0 {
            self.zone.wake_another(self.own.is_some());
        }
    }

    /// Declare this worker and its thread, whose receiver this is, asleep. Returns false, and the thread must
    /// not sleep, when there is something to do.
    pub fn try_sleep(&mut self, receiver: &mut Receiver) -> bool {
        self.end_search();
        // The mailbox first: who finds the worker among the sleepers must find its mailbox asleep, or
        // wakes nobody.
        if !receiver.try_sleep() {
            return false;
        }
        if self.register() {
            return true;
        }
        receiver.wake_up();
        false
    }

    /// Register as asleep, if it could take a task, and look once more. Returns false when there is work.
    fn register(&mut self) -> bool {
        let zone = &*self.zone;
        let busy = self.running_count();
        // Before the lock of the zone, which comes after that of what runs here.
        let least = self.least_depth();
        let mut inner = lock(&zone.inner);
        if !self.can_take() {
            let sleeps = self.register_full(&mut inner, least);
            // It may have searched when a task came, so that nobody was woken.
            let others = inner.full_sleepers.iter().any(|sleeper| sleeper.slot != self.slot.number);
            let pass_on = sleeps && (others || !inner.sleepers.is_empty()) && zone.has_waiting(&inner);
            drop(inner);
            if pass_on {
                zone.wake_another(self.own.is_some());
            }
            return sleeps;
        }
        // Woken from the end: those who run nothing first, since others may be held up by what they run.
        let index = if busy == 0 { inner.sleepers.len() } else { 0 };
        let slot = self.slot.number;
        inner
            .sleepers
            .insert(index, Sleeper { slot, mailbox: self.mailbox, helps_only: false, since: clock::ticks() });
        zone.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
        model_fence();
        // SeqCst: the second look comes after the registration, the submitter's look after its push.
        if busy == 0 {
            self.take_over(&mut inner);
        }
        let found = zone.has_waiting(&inner) || self.slot.has_bound() || (zone.is_closing() && busy == 0);
        if found {
            zone.unregister(&mut inner, &self.slot);
        }
        !found
    }

    /// Register one that could take no task, or only one of that depth, and look once more. Returns false
    /// when there is something to do here. The lock is held.
    fn register_full(&self, inner: &mut Inner, least: Option<u32>) -> bool {
        let zone = &*self.zone;
        if self.broadcasting {
            return true;
        }
        if self.slot.applied.load(Ordering::Relaxed) < zone.broadcast_count.load(Ordering::SeqCst) {
            // The broadcast waits for what runs here; else it is to be run.
            return self.running_count() > self.awaited();
        }
        let Some(floor) = least else { return true };
        inner.full_sleepers.push(FullSleeper { slot: self.slot.number, mailbox: self.mailbox, floor });
        zone.full_sleeping.store(inner.full_sleepers.len() as u32, Ordering::SeqCst);
        model_fence();
        // SeqCst: the second look comes after the registration, the submitter's look after its push.
        zone.count_deepest(inner);
        let found = self.may_have_deeper(floor);
        if found {
            zone.unregister(inner, &self.slot);
        }
        !found
    }

    /// Unregister after sleep, whatever ended it.
    pub fn wake_up(&mut self) {
        let zone = &*self.zone;
        let mut inner = lock(&zone.inner);
        zone.unregister(&mut inner, &self.slot);
    }

    /// The thread is ending. Its running tasks stay with the slot until `slot_ended`; whatever waits is
    /// passed on to another worker. Dropping is the same.
    pub fn leave(self) {
        drop(self);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.return_deque();
        let waiting = {
            let mut inner = lock(&self.zone.inner);
            self.zone.unregister(&mut inner, &self.slot);
            // With it, under the same lock: from here on slot_ended may assign the slot's number to another.
            *lock(&self.slot.mailbox) = None;
            model_fence();
            // SeqCst: after the unregistration, as in register.
            self.zone.has_waiting(&inner)
        };
        // It may have been woken for what waits, or have searched when it came.
        if waiting {
            self.zone.wake_another(self.zone.executor.steals);
        }
    }
}
