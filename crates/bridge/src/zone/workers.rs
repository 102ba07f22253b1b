//! The workers of a zone as the zone sees them: slots, and what the owner does with them.
//!
//! A slot is there from the decision to start a worker until its thread has ended. Which worker that is, and
//! when it starts, is the owner's business; that no task is lost with it, and that every broadcast is
//! answered for it, is decided here under the zone's lock.

use std::sync::Arc;

use super::{
    CONDEMNED, Cancelled, Inner, Past, Running, Sleeper, Slot, Start, Status, WorkerCounts, Zone, clock,
    deque, lock, settle,
};
use crate::{
    functions::{self, Left},
    mailbox::Mailbox,
    sync::Ordering,
};

/// Tenants of a queue that are listed.
const TENANTS_LISTED: usize = 32;

/// The running tasks whose callers have given up, as the owner sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct Overdue {
    /// The slots of workers that have run a cancelled task too long, and begin nothing more.
    pub condemned: Vec<u32>,
    /// When the next one is, in ns; `None` when no such task runs.
    pub next_ns: Option<f64>,
}

/// What the owner is to do about a zone that asks for more workers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Grown {
    /// Nothing: no task waits. It gets mail when one does.
    Calm,
    /// Ask again soon.
    NotYet,
    /// Nothing: there are as many as there may be. It gets mail when one has ended and tasks wait.
    Full,
    /// Add this number of workers, then ask again.
    Add(usize),
}

/// What became of the idle workers of a zone that shrinks.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrunk {
    /// The slots of those that were asked to leave.
    pub dismissed: Vec<u32>,
    /// When the next one may be due, in ns; `None` when there are only those that stay.
    pub next_ns: Option<f64>,
}

impl Past {
    /// Keep the counts of a worker that has ended.
    fn remember(&mut self, slot: &Slot) {
        self.ended += slot.ended.load(Ordering::Relaxed);
        self.failed += slot.failed.load(Ordering::Relaxed);
        self.stolen += slot.stolen.load(Ordering::Relaxed);
        let held = lock(&slot.held);
        self.measures.add(&held.measures);
        self.functions.add(&held.functions);
    }
}

impl Zone {
    /// The workers that still run a task `grace_ns` after it was cancelled, each reported once. They begin
    /// nothing more, since they will be ended: whatever one could take in between would end with it.
    pub fn overdue(&self, grace_ns: f64) -> Overdue {
        let slots: Vec<_> = lock(&self.inner).slots.iter().flatten().cloned().collect();
        let mut overdue = Overdue { condemned: Vec::new(), next_ns: None };
        for slot in slots {
            // The lock under which the worker takes its next task.
            let held = lock(&slot.held);
            if slot.busy.load(Ordering::Relaxed) >= CONDEMNED {
                continue;
            }
            let left_ns = |since: Cancelled| match since {
                Cancelled::At(ticks) => grace_ns - clock::ns_since(ticks),
                Cancelled::Overdue => 0.0,
            };
            let cancelled = held.running.iter().flatten().filter_map(|running| running.cancelled);
            let Some(left) = cancelled.map(left_ns).min_by(f64::total_cmp) else { continue };
            if left <= 0.0 {
                slot.busy.fetch_add(CONDEMNED, Ordering::Relaxed);
                overdue.condemned.push(slot.number);
            } else {
                overdue.next_ns = Some(overdue.next_ns.map_or(left, |next| next.min(left)));
            }
        }
        overdue
    }

    /// Add a slot for one more worker; `None` when the zone needs none, because it is closing and nothing
    /// waits.
    pub fn add_slot(&self) -> Option<u32> {
        let mut inner = lock(&self.inner);
        let needless = self.is_closing() && !self.has_accepted(&inner);
        if needless || self.finished.load(Ordering::SeqCst) {
            let empty = inner.slots.iter().flatten().next().is_none();
            drop(inner);
            if empty {
                self.finish(Status::Closed, &[]);
            }
            return None;
        }
        if inner.start == Start::Empty {
            inner.start = Start::Begun;
        }
        let joined = inner.owed.pop().unwrap_or(inner.broadcasts.len() as u32);
        let is_free = |number: &usize| inner.slots[*number].is_none();
        let mut all = 0..inner.slots.len();
        // The one that tasks wait for, which nobody else takes.
        let waited_for =
            all.clone().find(|number| is_free(number) && inner.queue.bound_to(*number).is_some());
        let free = waited_for.or_else(|| all.find(is_free));
        let number = free.unwrap_or(inner.slots.len()) as u32;
        let slot = Arc::new(Slot::new(number, joined, self.executor.steals));
        match free {
            Some(index) => inner.slots[index] = Some(slot),
            None => inner.slots.push(Some(slot)),
        }
        self.note_bound(&inner, number as usize);
        Some(number)
    }

    /// Seat the thread of `mailbox` in a slot. Returns its end of the deque too; `None` when there is no such
    /// slot.
    pub(super) fn seat(
        &self,
        slot: u32,
        mailbox: &'static Mailbox,
    ) -> Option<(Arc<Slot>, Option<deque::Own>)> {
        let mut inner = lock(&self.inner);
        let slot = inner.slots.get(slot as usize).cloned().flatten()?;
        // Under the zone's lock: slot_ended looks at it there.
        *lock(&slot.mailbox) = Some(mailbox);
        let is_last = inner.start == Start::Begun
            && inner.slots.iter().flatten().all(|slot| lock(&slot.mailbox).is_some());
        if is_last {
            inner.start = Start::Done;
        }
        drop(inner);
        if is_last {
            self.offer_capacity();
        }
        slot.since.store(clock::ticks(), Ordering::Relaxed);
        let own = lock(&slot.own).take();
        Some((slot, own))
    }

    /// The worker of `slot` has ended: its running tasks return with `status` and `bytes`. Returns how
    /// many did. Nothing happens as long as the slot has a [`super::Worker`].
    pub fn slot_ended(&self, slot: u32, status: Status, bytes: &[u8]) -> usize {
        // Until its counts are there too: who counts meanwhile would have it twice, or not at all.
        let mut past = lock(&self.past);
        let (slot, unanswered) = {
            let mut inner = lock(&self.inner);
            let Some(entry) = inner.slots.get_mut(slot as usize) else { return 0 };
            // A worker that still runs holds its tasks and will end them.
            let Some(slot) = entry.take_if(|slot| lock(&slot.mailbox).is_none()) else { return 0 };
            self.unregister(&mut inner, &slot);
            self.requeue(&mut inner, &slot);
            let from = slot.joined.max(slot.applied.load(Ordering::SeqCst));
            let mut unanswered = Vec::new();
            if slot.dismissed.load(Ordering::SeqCst) {
                // Nobody replaces it, so leaving counts as its answer to these broadcasts.
                unanswered.extend_from_slice(inner.broadcasts.get(from as usize..).unwrap_or_default());
            } else {
                // Its replacement answers; in a closing zone, without replacements, `finish` does.
                inner.owed.push(from);
            }
            (slot, unanswered)
        };
        past.remember(&slot);
        let lost: Vec<_> = lock(&slot.held).running.drain(..).flatten().collect();
        self.died.fetch_add(lost.len() as u64, Ordering::Relaxed);
        if functions::is_counting() {
            for running in &lost {
                past.functions.of(running.function).left[Left::Died as usize] += 1;
            }
        }
        drop(past);
        for broadcast in unanswered {
            broadcast.answer(None);
        }
        for &Running { task, .. } in &lost {
            // SAFETY: its worker has left (checked above), and taking it out of `running` passed it on.
            unsafe { settle(task, status, bytes) };
        }
        let none_is_left = {
            let inner = lock(&self.inner);
            inner.slots.iter().flatten().next().is_none() && !self.has_accepted(&inner)
        };
        // What still waits then is for the replacement that the owner asks for next.
        if none_is_left && self.is_closing() {
            self.finish(Status::Closed, &[]);
        } else {
            // Another worker may start, if tasks wait.
            self.pressed.store(false, Ordering::SeqCst);
            if self.waiting.load(Ordering::SeqCst) > 0 {
                self.wake_another(self.executor.steals);
            }
        }
        lost.len()
    }

    /// The owner's question after the mail of [`super::Growth`]: what to do now.
    pub fn grow(&self) -> Grown {
        let Some(growth) = self.executor.growth else { return Grown::Calm };
        let mut inner = lock(&self.inner);
        self.absorb(&mut inner);
        let Some(oldest) = inner.queue.first().filter(|_| !self.finished.load(Ordering::SeqCst)) else {
            self.pressed.store(false, Ordering::SeqCst);
            crate::sync::model_fence();
            // SeqCst: the flag goes down before the look, a submitter pushes before it looks at the flag.
            return if self.injector.is_empty() { Grown::Calm } else { Grown::NotYet };
        };
        let workers = inner.slots.iter().flatten().count();
        if workers >= growth.workers_max {
            return Grown::Full;
        }
        let starting = inner.slots.iter().flatten().any(|slot| lock(&slot.mailbox).is_none());
        if starting {
            return Grown::NotYet;
        }
        // SAFETY: it is in the queue, so nobody else touches it while the zone's lock is held.
        let submitted = unsafe { oldest.body(|body| body.submitted) };
        let patience = growth.patience.as_nanos() as f64;
        if workers > 0 && (!inner.sleepers.is_empty() || clock::ns_since(submitted) < patience) {
            drop(inner);
            self.wake_another(false);
            return Grown::NotYet;
        }
        let waiting = self.waiting.load(Ordering::Relaxed).max(1);
        Grown::Add(waiting.min(workers.max(1)).min(growth.workers_max - workers))
    }

    /// Dismiss workers that have slept for `idle_ns`, but for those that stay.
    pub fn shrink(&self, idle_ns: f64) -> Shrunk {
        let none = Shrunk { dismissed: Vec::new(), next_ns: None };
        let Some(growth) = self.executor.growth else { return none };
        let mut inner = lock(&self.inner);
        let dismissed = |slot: &Arc<Slot>| slot.dismissed.load(Ordering::SeqCst);
        let workers = inner.slots.iter().flatten().filter(|slot| !dismissed(slot)).count();
        let mut surplus = workers.saturating_sub(growth.workers_min);
        let (mut shrunk, mut woken) = (none, Vec::new());
        let is_idle = |inner: &Inner, sleeper: &Sleeper| {
            let slot = inner.slots.get(sleeper.slot as usize).and_then(Option::as_ref);
            !sleeper.helps_only && slot.is_some_and(|slot| slot.busy.load(Ordering::Relaxed) == 0)
        };
        while surplus > 0 {
            let idle = inner
                .sleepers
                .iter()
                .position(|sleeper| clock::ns_since(sleeper.since) >= idle_ns && is_idle(&inner, sleeper));
            let Some(sleeper) = idle.map(|index| inner.sleepers.remove(index)) else { break };
            if let Some(slot) = inner.slots.get(sleeper.slot as usize).and_then(Option::as_ref) {
                slot.dismissed.store(true, Ordering::SeqCst);
            }
            woken.push(sleeper.mailbox);
            shrunk.dismissed.push(sleeper.slot);
            surplus -= 1;
        }
        self.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
        // Of those alone who could be let go then: the others may sleep for ever.
        let idle = inner.sleepers.iter().filter(|sleeper| is_idle(&inner, sleeper));
        let longest = idle.map(|sleeper| clock::ns_since(sleeper.since)).fold(0.0, f64::max);
        shrunk.next_ns = (surplus > 0).then_some((idle_ns - longest).max(1e6));
        drop(inner);
        woken.into_iter().for_each(Mailbox::rouse);
        shrunk
    }

    pub fn worker_counts(&self) -> Vec<WorkerCounts> {
        let slots: Vec<_> = lock(&self.inner).slots.iter().flatten().cloned().collect();
        slots.iter().map(|slot| slot.counts()).collect()
    }

    /// What waits in order: tasks of the high and of the low priority, tenants that have some; then of the
    /// tenants with the most the two halves of its hash, the lower one first, and its tasks.
    pub fn waiting_ordered(&self) -> Vec<f64> {
        let ([high, _, low], by_tenant) = lock(&self.inner).queue.count_ordered();
        let mut numbers = vec![high as f64, low as f64, by_tenant.len() as f64];
        let mut tenants: Vec<_> = by_tenant.into_iter().collect();
        tenants.sort_unstable_by_key(|&(hash, waiting)| (std::cmp::Reverse(waiting), hash));
        for (hash, waiting) in tenants.into_iter().take(TENANTS_LISTED) {
            numbers.extend([f64::from(hash as u32), f64::from((hash >> 32) as u32), waiting as f64]);
        }
        numbers
    }

    /// What runs. For each worker: its slot, the number of its mailbox (0: it has not started), how many
    /// tasks; and of each task its function, its age in ns, the number of its caller's mailbox, and 1 if it
    /// was cancelled.
    pub fn running_tasks(&self) -> Vec<f64> {
        let slots: Vec<_> = lock(&self.inner).slots.iter().flatten().cloned().collect();
        let mut numbers = Vec::new();
        for slot in slots {
            let mailbox = lock(&slot.mailbox).map_or(0, |mailbox| mailbox.number);
            let running: Vec<_> = lock(&slot.held).running.iter().flatten().copied().collect();
            numbers.extend([f64::from(slot.number), f64::from(mailbox), running.len() as f64]);
            for Running { task, function, since, cancelled, .. } in running {
                let caller = f64::from(task.caller.number);
                let cancelled = f64::from(u8::from(cancelled.is_some()));
                numbers.extend([f64::from(function), clock::ns_since(since), caller, cancelled]);
            }
        }
        numbers
    }

    /// Forget a worker's sleep and search. The lock is held.
    pub(super) fn unregister(&self, inner: &mut Inner, slot: &Slot) {
        inner.sleepers.retain(|sleeper| sleeper.slot != slot.number);
        self.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
        inner.full_sleepers.retain(|sleeper| sleeper.slot != slot.number);
        self.full_sleeping.store(inner.full_sleepers.len() as u32, Ordering::SeqCst);
        if slot.searching.swap(false, Ordering::SeqCst) {
            self.searching.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
