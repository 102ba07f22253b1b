//! Exclusive tasks: the worker of one runs nothing beside it, so whoever ends that worker ends no other task.
//!
//! ```text
//! in a line of the queue ── its turn, to a worker that runs nothing ────────────────► runs alone
//!        │   ▲                                                                           ▲
//!        │   └─ the worker has ended                                                     │
//!        └─ its turn, to a worker that runs tasks ─► waits for that worker ── they have ended
//!                                                        └─► for an idle one instead
//! ```
//!
//! It waits among the others as any task of its order, so neither kind starves the other: the worker that
//! finds it next takes it out of its line, is *alone*, and begins nothing more but what its tasks wait for.
//! That ends, since it begins only ever deeper tasks; the exclusive one is never taken for its depth, and
//! JavaScript refuses calls that a task of the zone may wait for. An exclusive task that waits for a worker
//! is counted as one that only this worker may take (`bound`), so nobody else looks for it in vain; an idle
//! worker takes it over before it sleeps. All of it is cold: a zone without such tasks pays for a flag where
//! retired workers are looked for already.

use super::{ALONE, Inner, Order, Slot, Task, Zone, lock, worker::Worker};
use crate::sync::Ordering;

impl Worker {
    /// Take the next task of a queue that is more than a list. The lock is held.
    #[cold]
    pub(super) fn take_special(&self, inner: &mut Inner, least: u32) -> Option<&'static Task> {
        let (zone, slot) = (&*self.zone, &*self.slot);
        let number = slot.number as usize;
        let is_free = least == 0 && self.running_count() == 0 && slot.forked_count() == 0;
        if is_free {
            let own = inner.queue.alone_of(number);
            let oldest = own.or_else(|| inner.queue.movable().next().map(|(_, task)| task));
            if let Some(task) = oldest {
                zone.release(inner, task);
                slot.mode.fetch_or(ALONE, Ordering::SeqCst);
                return Some(task);
            }
        }
        let mut skipped = Vec::new();
        let found = loop {
            let Some((task, order)) = inner.queue.pop_for(number, least) else { break None };
            if !order.exclusive || is_free {
                break Some((task, order));
            }
            if !slot.is_alone() {
                self.put_aside(inner, task, order);
                break None;
            }
            // What runs here waits in vain for streams, and more may begin beside it.
            skipped.push((task, order));
        };
        if !skipped.is_empty() {
            for (task, order) in skipped {
                inner.queue.push_ordered(task, 0, order, 0);
            }
            zone.note_bound(inner, number);
        }
        let Some((task, order)) = found else {
            if slot.is_alone() && least == 0 {
                // Or it would look again at once.
                self.floor.set(None);
            }
            return None;
        };
        if order.exclusive {
            slot.mode.fetch_or(ALONE, Ordering::SeqCst);
        }
        zone.unbind(inner, order);
        Some(task)
    }

    /// An exclusive task whose turn it is waits until this worker runs nothing, or an idle one. The lock is
    /// held.
    fn put_aside(&self, inner: &mut Inner, task: &'static Task, order: Order) {
        let (zone, slot) = (&*self.zone, &*self.slot);
        let number = slot.number as usize;
        inner.queue.put_alone(number, task, order);
        if order.slot().is_none() {
            zone.count_for_one();
        }
        slot.mode.fetch_or(ALONE, Ordering::SeqCst);
        zone.note_bound(inner, number);
        if order.slot().is_some() {
            return;
        }
        let is_idle = |slot: u32| {
            let slot = inner.slots.get(slot as usize).and_then(Option::as_ref);
            slot.is_some_and(|slot| slot.busy.load(Ordering::Relaxed) == 0)
        };
        let idle = inner.sleepers.iter().rposition(|it| !it.helps_only && is_idle(it.slot));
        let Some(index) = idle else { return zone.press() };
        let sleeper = inner.sleepers.remove(index);
        sleeper.count(&inner.slots);
        zone.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
        zone.wake_ups.fetch_add(1, Ordering::Relaxed);
        zone.hand_over(inner, task, number, sleeper.slot as usize);
        sleeper.mailbox.rouse();
    }

    /// Before an idle worker sleeps: it takes over an exclusive task that waits for another one. The lock is
    /// held.
    pub(super) fn take_over(&self, inner: &mut Inner) {
        let number = self.slot.number as usize;
        if !inner.queue.is_special() || self.slot.is_leaving() || inner.queue.alone_of(number).is_some() {
            return;
        }
        let oldest = inner.queue.movable().next();
        let Some((from, task)) = oldest else { return };
        self.zone.hand_over(inner, task, from, number);
    }
}

impl Zone {
    /// Let an exclusive task wait for the worker of slot `to`, no longer for that of `from`. The lock is
    /// held.
    fn hand_over(&self, inner: &mut Inner, task: &'static Task, from: usize, to: usize) {
        inner.queue.move_alone(task, to);
        self.open(inner, from);
        if let Some(slot) = inner.slots.get(to).and_then(Option::as_ref) {
            slot.mode.fetch_or(ALONE, Ordering::SeqCst);
        }
        self.note_bound(inner, to);
    }

    /// Take out `task`, if it is an exclusive one that waits for a worker, which then goes on. It counts as
    /// one that any worker may take until `stopped_waiting` follows. The lock is held.
    pub(super) fn release(&self, inner: &mut Inner, task: &'static Task) -> bool {
        let Some((slot, order)) = inner.queue.take_alone(task) else { return false };
        inner.tenants.left(order.tenant);
        self.count_for_any();
        self.open(inner, slot);
        true
    }

    /// No exclusive task waits for the worker of that slot any more. The lock is held.
    fn open(&self, inner: &Inner, number: usize) {
        self.note_bound(inner, number);
        let Some(slot) = inner.slots.get(number).and_then(Option::as_ref) else { return };
        slot.mode.fetch_and(!ALONE, Ordering::SeqCst);
        if let Some(mailbox) = *lock(&slot.mailbox) {
            mailbox.rouse();
        }
    }

    /// What is to run alone in the worker of `slot` waits in its line again. The lock is held.
    pub(super) fn requeue(&self, inner: &mut Inner, slot: &Slot) {
        let number = slot.number as usize;
        let Some(task) = inner.queue.alone_of(number) else { return };
        let Some((_, order)) = inner.queue.take_alone(task) else { return };
        if order.slot().is_none() {
            self.count_for_any();
        }
        inner.queue.push_ordered(task, 0, order, 0);
        self.may_have_queued.store(true, Ordering::Relaxed);
        self.open(inner, number);
    }

    /// The last task of a worker that was alone has ended.
    #[cold]
    pub(super) fn ended_alone(&self, slot: &Slot) {
        let inner = lock(&self.inner);
        if inner.queue.alone_of(slot.number as usize).is_none() {
            slot.mode.fetch_and(!ALONE, Ordering::SeqCst);
        }
    }
}
