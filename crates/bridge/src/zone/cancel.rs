//! Cancelling a call: what its caller gets back, and what its worker is asked to end.
//!
//! A task that has not started returns to its caller; the worker of one that runs receives mail.

use super::{Cancelled, Running, Slot, State, Status, Task, Zone, clock, lock, settle};
use crate::mailbox::{Mail, Mailbox};

/// What became of a cancelled call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cancellation {
    /// It had not started and is the caller's again.
    Cancelled,
    /// It had not started and never will, but lies where only its worker can take it out: it returns soon.
    Skipped,
    /// It runs there; its worker was notified.
    Running {
        slot: u32,
        /// The task's number among all that the zone has started.
        serial: u32,
    },
    /// It has ended and is being returned.
    Ended,
}

impl Zone {
    /// Cancel `task`, which the caller has submitted here and which has not returned.
    /// A running one's worker gets mail of `kind` with the task's token, its serial number and `note`; from
    /// then on [`Zone::overdue`] counts the time it takes to end.
    pub fn cancel(&self, task: &'static Task, kind: u32, note: u32) -> Cancellation {
        let mut inner = lock(&self.inner);
        self.absorb(&mut inner);
        if task.leave_deque(State::Cancelled) {
            return Cancellation::Skipped;
        }
        match task.state() {
            State::Queued => {
                self.withdraw(&mut inner, task);
                drop(inner);
                self.withdrawn(task);
                Cancellation::Cancelled
            }
            State::Running { slot, serial } => {
                let slot = inner.slots.get(slot as usize).cloned().flatten();
                drop(inner);
                let Some(slot) = slot else { return Cancellation::Ended };
                slot.cancel(task, serial, Mail { kind, subject: 0, facts: [serial, note] })
            }
            State::Cancelled => Cancellation::Skipped,
            State::Accepted | State::Local => Cancellation::Ended,
        }
    }

    /// The thread of `caller` ends, and nobody waits for its calls any more. What has not begun returns, and
    /// the workers of what runs get mail as by [`Zone::cancel`]; with `joins_at_once` those calls that the
    /// thread was blocked on are overdue from now. Returns whether some run, and whether one is overdue.
    ///
    /// The thread's worker has left and `Receiver::cancel_forked` was called: no deque has a task of it.
    pub fn cancel_calls_of(
        &self,
        caller: &'static Mailbox,
        kind: u32,
        note: u32,
        joins_at_once: bool,
    ) -> Option<bool> {
        let (queued, admitted, slots) = {
            let mut inner = lock(&self.inner);
            self.absorb(&mut inner);
            let queued = inner.queue.tasks_of(caller);
            for &task in &queued {
                self.withdraw(&mut inner, task);
            }
            let is_its = |task: &&'static Task| std::ptr::eq(task.caller, caller);
            let (admitted, waiting) = inner.capacity_waiters.drain(..).partition::<Vec<_>, _>(is_its);
            inner.capacity_waiters.extend(waiting);
            (queued, admitted, inner.slots.iter().flatten().cloned().collect::<Vec<_>>())
        };
        for &task in &queued {
            self.withdrawn(task);
        }
        for task in queued.into_iter().chain(admitted) {
            // SAFETY: taken out under the lock, just once.
            unsafe { settle(task, Status::Closed, &[]) };
        }
        // After the queue: what is begun meanwhile is another thread's.
        let found = slots.iter().filter_map(|slot| slot.cancel_calls_of(caller, kind, note, joins_at_once));
        found.reduce(|one, other| one || other)
    }

    /// Send the workers of all running tasks the mail that a cancellation of each would send.
    pub fn cancel_running(&self, kind: u32, note: u32) {
        // A worker locks its running tasks before the zone, so the zone's lock is given back first.
        let slots = lock(&self.inner).slots.iter().flatten().cloned().collect::<Vec<_>>();
        for slot in slots {
            slot.cancel_running(kind, note);
        }
    }
}

impl Slot {
    /// Send its worker mail about a task that runs there: the subject becomes its token. Its caller has given
    /// up.
    fn cancel(&self, task: &'static Task, serial: u32, mail: Mail) -> Cancellation {
        let token = {
            let mut held = lock(&self.held);
            let running = &mut held.running;
            let is_it = |it: &Option<Running>| it.is_some_and(|it| std::ptr::eq(it.task, task));
            let Some(token) = running.iter().position(is_it) else { return Cancellation::Ended };
            if let Some(running) = &mut running[token] {
                running.cancelled.get_or_insert(Cancelled::At(clock::ticks()));
            }
            token
        };
        // Locked until the mail has left: a mailbox whose worker ends may soon be another thread's.
        let mailbox = lock(&self.mailbox);
        let Some(mailbox) = *mailbox else { return Cancellation::Ended };
        mailbox.send(Mail { subject: token as u32, ..mail });
        Cancellation::Running { slot: self.number, serial }
    }

    fn cancel_calls_of(&self, caller: &'static Mailbox, kind: u32, note: u32, at_once: bool) -> Option<bool> {
        let mut is_overdue = None;
        let mut mails = Vec::new();
        for (token, running) in lock(&self.held).running.iter_mut().enumerate() {
            let Some(running) = running.as_mut().filter(|it| std::ptr::eq(it.task.caller, caller)) else {
                continue;
            };
            let overdue = at_once && running.task.is_joined();
            if overdue {
                running.cancelled = Some(Cancelled::Overdue);
            } else {
                running.cancelled.get_or_insert(Cancelled::At(clock::ticks()));
            }
            is_overdue = Some(is_overdue.unwrap_or(false) || overdue);
            mails.push(Mail { kind, subject: token as u32, facts: [running.serial, note] });
        }
        // As in cancel.
        let mailbox = lock(&self.mailbox);
        let mailbox = (*mailbox)?;
        for mail in mails {
            mailbox.send(mail);
        }
        is_overdue
    }

    /// Send its worker mail about every task that runs there.
    fn cancel_running(&self, kind: u32, note: u32) {
        let running = lock(&self.held).running.clone();
        let mailbox = lock(&self.mailbox);
        let Some(mailbox) = *mailbox else { return };
        for (token, running) in running.iter().enumerate() {
            if let Some(Running { serial, .. }) = running {
                mailbox.send(Mail { kind, subject: token as u32, facts: [*serial, note] });
            }
        }
    }
}
