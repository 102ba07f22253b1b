//! The accepted tasks of a zone, in order.
//!
//! It is guarded by the zone's lock, which guards the links of its tasks too. What any worker may take is
//! in one line, what only one worker may take in a line of that worker, which it takes from in turn; a line
//! has priorities and tenants (line.rs). Mostly there is nothing but tasks of the normal priority, without a
//! tenant, for any worker, that nobody waits for: then the queue is a list, first in, first out, and nothing
//! else is looked at.

mod flow;
mod line;

use super::{State, Task};
use crate::{
    mailbox::Mailbox,
    task::{Order, Priority},
};
use flow::order_of;
use line::{CLASSES, Choice, Line, key_of};
use std::collections::HashMap;

/// The tasks of a zone that wait.
#[derive(Default)]
pub(crate) struct Queue {
    /// What any worker may take.
    shared: Line,
    /// What only the worker of that slot may take. Without tasks there is no line.
    bound: Vec<Option<Box<Bound>>>,
    /// Exclusive tasks that were taken from their lines, and wait until the worker of that slot runs nothing:
    /// at most one of each slot, oldest first.
    alone: Vec<(usize, &'static Task)>,
    /// Tasks anywhere but at depth 0 of `shared.plain`: mostly none.
    special: usize,
    /// Tasks that came so far.
    pushed: u64,
    /// When `special` became 0: which task was the first.
    head: Option<u64>,
}

/// What only one worker may take.
#[derive(Default)]
struct Bound {
    line: Line,
    /// Its tasks.
    count: usize,
}

impl Queue {
    /// Whether it has any task, be it for one worker.
    #[inline]
    pub(crate) const fn has_any(&self) -> bool {
        self.special > 0 || self.shared.plain.outer.first.is_some()
    }

    /// Whether no task waits that any worker may take.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.shared.is_empty()
    }

    /// Whether a task that came later may have to go before those here.
    #[inline]
    pub(crate) const fn is_open(&self) -> bool {
        self.special > 0 || self.shared.plain.outer.first.is_none()
    }

    /// The oldest that any worker may take, which stays.
    pub(crate) fn first(&self) -> Option<&'static Task> {
        self.movable().map(|(_, task)| task).chain(self.shared.oldest()).min_by_key(|task| order_of(task))
    }

    /// The exclusive tasks that wait for their workers, by slot.
    pub(crate) fn alone(&self) -> impl Iterator<Item = (usize, &'static Task)> {
        self.alone.iter().copied()
    }

    /// Those that any other worker may run instead.
    pub(crate) fn movable(&self) -> impl Iterator<Item = (usize, &'static Task)> {
        // SAFETY: they are in the queue, so nobody else touches them while the zone's lock is held.
        self.alone().filter(|(_, task)| unsafe { task.body(|body| body.order.worker == 0) })
    }

    /// The one that waits for the worker of that slot.
    pub(crate) fn alone_of(&self, slot: usize) -> Option<&'static Task> {
        self.alone().find(|(of, _)| *of == slot).map(|(_, task)| task)
    }

    /// Let an exclusive task, which has just left its line with that order, wait for the worker of a slot.
    pub(crate) fn put_alone(&mut self, slot: usize, task: &'static Task, order: Order) {
        task.set_state(State::Queued);
        // SAFETY: as above.
        unsafe { task.body(|body| body.order = order) };
        self.begin_special();
        self.alone.push((slot, task));
    }

    /// It waits for the worker of another slot instead.
    pub(crate) fn move_alone(&mut self, task: &'static Task, slot: usize) {
        if let Some(entry) = self.alone.iter_mut().find(|(_, it)| std::ptr::eq(*it, task)) {
            entry.0 = slot;
        }
    }

    /// Take out an exclusive task that waits for a worker. Returns the slot of that, and the order that it
    /// had; `None` for any other task.
    pub(crate) fn take_alone(&mut self, task: &'static Task) -> Option<(usize, Order)> {
        let index = self.alone.iter().position(|(_, it)| std::ptr::eq(*it, task))?;
        let (slot, _) = self.alone.remove(index);
        task.set_state(State::Accepted);
        self.end_special();
        // SAFETY: as above.
        Some((slot, unsafe { task.body(|body| std::mem::take(&mut body.order)) }))
    }

    /// All that `caller` has submitted.
    pub(crate) fn tasks_of(&self, caller: &'static Mailbox) -> Vec<&'static Task> {
        let lines = std::iter::once(&self.shared).chain(self.bound.iter().flatten().map(|own| &own.line));
        let alone = self.alone().map(|(_, task)| task);
        lines.flat_map(Line::tasks).chain(alone).filter(|task| std::ptr::eq(task.caller, caller)).collect()
    }

    /// The greatest depth of a task that any worker may take.
    pub(crate) fn deepest(&self) -> u32 {
        self.shared.deepest()
    }

    /// How many tasks wait for the worker of that slot, and the greatest depth of one.
    pub(crate) fn bound_to(&self, slot: usize) -> Option<(usize, u32)> {
        let own = self.bound.get(slot)?.as_ref()?;
        Some((own.count, own.line.deepest()))
    }

    /// Append a task of that depth. The zone's lock is held.
    #[inline]
    pub(crate) fn push(&mut self, task: &'static Task, depth: u32) {
        task.set_state(State::Queued);
        let order = self.pushed;
        self.pushed += 1;
        if depth == 0 {
            return self.shared.plain.outer.push(task, order);
        }
        self.begin_special();
        self.shared.push(task, depth, order, Order::default(), 1);
    }

    /// The same for a task with an order: `weight` tasks are a turn of its tenant. The zone's lock is held.
    pub(crate) fn push_ordered(&mut self, task: &'static Task, depth: u32, order: Order, weight: u32) {
        task.set_state(State::Queued);
        let number = self.pushed;
        self.pushed += 1;
        let line = match order.slot() {
            None => &mut self.shared,
            Some(slot) => {
                if self.bound.len() <= slot {
                    self.bound.resize_with(slot + 1, || None);
                }
                let own = self.bound[slot].get_or_insert_default();
                own.count += 1;
                &mut own.line
            }
        };
        let shares = line.push(task, depth, number, order, weight);
        if !order.is_plain() {
            // SAFETY: it has just entered the queue, so nobody else touches it while the zone's lock is held.
            unsafe { task.body(|body| body.order = Order { shares, ..order }) };
        }
        if depth > 0 || !order.is_plain() {
            self.begin_special();
        }
    }

    fn begin_special(&mut self) {
        if self.special == 0 && self.shared.plain.outer.first.map(order_of) != self.head {
            self.shared.plain_was_served();
        }
        self.special += 1;
    }

    fn end_special(&mut self) {
        self.special -= 1;
        if self.special == 0 {
            self.head = self.shared.plain.outer.first.map(order_of);
        }
    }

    /// Whether it is more than a list: [`Queue::pop_for`] finds what is next.
    #[inline]
    pub(crate) const fn is_special(&self) -> bool {
        self.special > 0
    }

    /// Take the next task of a queue that is a list.
    #[inline]
    pub(crate) fn pop_plain(&mut self) -> Option<&'static Task> {
        debug_assert!(!self.is_special());
        let task = self.shared.plain.outer.pop()?;
        task.set_state(State::Accepted);
        Some(task)
    }

    /// Take the next task, at least so deep, for the worker of that slot. Returns the order that it had.
    pub(crate) fn pop_for(&mut self, slot: usize, least: u32) -> Option<(&'static Task, Order)> {
        let shared = self.shared.choose(least);
        let own = self.bound.get_mut(slot).and_then(Option::as_mut).map(|own| &mut own.line);
        let chosen = own.and_then(|own| own.choose(least).map(|choice| (own, choice)));
        let task = match (shared, chosen) {
            (None, None) => None,
            (Some(shared), None) => self.shared.take(shared, least),
            (None, Some((own, choice))) => own.take(choice, least),
            (Some(shared), Some((own, choice))) => {
                let (rank, own_rank) = (self.shared.rank(shared), own.rank(choice));
                // At the same rank they take turns.
                let takes_own = own_rank < rank || (own_rank == rank && own.skipped > 0);
                let (taken, left) = if takes_own { (own, &mut self.shared) } else { (&mut self.shared, own) };
                left.skipped += 1;
                taken.take(if takes_own { choice } else { shared }, least)
            }
        }?;
        Some((task, self.left(task)))
    }

    /// Take any task.
    pub(crate) fn pop_any(&mut self) -> Option<(&'static Task, Order)> {
        let lines =
            std::iter::once(&mut self.shared).chain(self.bound.iter_mut().flatten().map(|own| &mut own.line));
        let task = lines.into_iter().find_map(|line| {
            let choice: Choice = line.choose(0)?;
            line.take(choice, 0)
        })?;
        Some((task, self.left(task)))
    }

    /// Take out `task`, which is in this queue. Returns the order that it had.
    pub(crate) fn remove(&mut self, task: &'static Task) -> Order {
        debug_assert_eq!(task.state(), State::Queued);
        let was_head = self.special == 0 && self.head == Some(order_of(task));
        // SAFETY: it is in the queue, so nobody else touches it while the zone's lock is held.
        let order = unsafe { task.body(|body| body.order) };
        let own = order.slot().and_then(|slot| self.bound.get_mut(slot)).and_then(Option::as_mut);
        let key = key_of(order.tenant, order.shares);
        own.map_or(&mut self.shared, |own| &mut own.line).remove(task, order.priority, key);
        if was_head {
            // Those behind it have waited as long.
            self.head = self.shared.plain.outer.first.map(order_of);
        }
        self.left(task)
    }

    /// A task was taken out. Returns the order that it had, and resets it.
    fn left(&mut self, task: &'static Task) -> Order {
        task.set_state(State::Accepted);
        // SAFETY: it has just left the queue, so nobody else touches it while the zone's lock is held.
        let order = unsafe { task.body(|body| std::mem::take(&mut body.order)) };
        if flow::depth_of(task) > 0 || !order.is_plain() {
            self.end_special();
        }
        if let Some(slot) = order.slot()
            && let Some(own) = &mut self.bound[slot]
        {
            own.count -= 1;
            if own.count == 0 {
                self.bound[slot] = None;
            }
        }
        order
    }

    /// How many tasks wait of each priority, without those of the normal one that have no tenant; and of each
    /// tenant, by its hash: those that share a line have its key together.
    pub(crate) fn count_ordered(&self) -> ([usize; CLASSES], HashMap<u64, usize>) {
        let (mut by_priority, mut by_tenant) = ([0; CLASSES], HashMap::new());
        let lines = std::iter::once(&self.shared).chain(self.bound.iter().flatten().map(|own| &own.line));
        lines.for_each(|line| line.count_into(&mut by_priority, &mut by_tenant));
        for (_, task) in self.alone() {
            // SAFETY: it is in the queue, so nobody else touches it while the zone's lock is held.
            let order = unsafe { task.body(|body| body.order) };
            by_priority[order.priority as usize] += 1;
            if order.tenant != 0 {
                *by_tenant.entry(key_of(order.tenant, order.shares)).or_default() += 1;
            }
        }
        (by_priority, by_tenant)
    }

    /// Tenants that are kept.
    #[cfg(all(test, not(loom)))]
    fn tenants(&self) -> usize {
        self.shared.tenants() + self.bound.iter().flatten().map(|own| own.line.tenants()).sum::<usize>()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
