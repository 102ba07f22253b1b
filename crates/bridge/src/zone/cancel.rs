//! Cancelling a call: what its caller gets back, and what its worker is asked to end.
//!
//! A task that has not started returns to its caller; the worker of one that runs receives mail.

use super::{Cancelled, Running, Slot, State, Task, Zone, clock, lock};
use crate::mailbox::Mail;

/// What became of a cancelled call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cancellation {
    /// It had not started and is the caller's again.
    Cancelled,
    /// It had not started and never will, but lies where only its worker can take it out: it returns soon.
    Skipped,
    /// It runs there; its worker was notified.
    Running {
        /// The worker's slot.
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
        self.cancel_with(task, kind, note, false)
    }

    /// The same; one that runs is overdue `at_once`.
    pub(super) fn cancel_with(
        &self,
        task: &'static Task,
        kind: u32,
        note: u32,
        at_once: bool,
    ) -> Cancellation {
        let mut inner = lock(&self.inner);
        self.absorb(&mut inner);
        if task.leave_deque(State::Cancelled) {
            return Cancellation::Skipped;
        }
        match task.state() {
            State::Queued => {
                inner.queue.remove(task);
                drop(inner);
                self.stopped_waiting(task);
                Cancellation::Cancelled
            }
            State::Running { slot, serial } => {
                let slot = inner.slots.get(slot as usize).cloned().flatten();
                drop(inner);
                let Some(slot) = slot else { return Cancellation::Ended };
                slot.cancel(task, serial, Mail { kind, subject: 0, facts: [serial, note] }, at_once)
            }
            State::Cancelled => Cancellation::Skipped,
            State::Accepted | State::Local => Cancellation::Ended,
        }
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
    pub(super) fn cancel(&self, task: &'static Task, serial: u32, mail: Mail, overdue: bool) -> Cancellation {
        let token = {
            let mut held = lock(&self.held);
            let running = &mut held.running;
            let is_it = |it: &Option<Running>| it.is_some_and(|it| std::ptr::eq(it.task, task));
            let Some(token) = running.iter().position(is_it) else { return Cancellation::Ended };
            if let Some(running) = &mut running[token] {
                let since = if overdue { Cancelled::Overdue } else { Cancelled::At(clock::ticks()) };
                running.cancelled = Some(running.cancelled.filter(|_| !overdue).unwrap_or(since));
            }
            token
        };
        // Locked until the mail has left: a mailbox whose worker ends may soon be another thread's.
        let mailbox = lock(&self.mailbox);
        let Some(mailbox) = *mailbox else { return Cancellation::Ended };
        mailbox.send(Mail { subject: token as u32, ..mail });
        Cancellation::Running { slot: self.number, serial }
    }

    /// Send its worker mail about every task that runs there.
    pub(super) fn cancel_running(&self, kind: u32, note: u32) {
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
