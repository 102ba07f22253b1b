//! Broadcasts, and the ends of a zone: closed, failed, orphaned.
//!
//! However a zone ends, everything returns to its caller: waiting tasks, broadcasts that nobody answers,
//! the callers that wait for capacity or for the end itself. What runs ends as it will, or with its worker.

use std::{any::Any, sync::Arc};

use super::{Broadcast, Refusal, State, Status, Task, Zone, lock, settle};
use crate::{deque::Stolen, mailbox::Mailbox, sync::Ordering};

impl Zone {
    /// Make a call to every worker, those to come included; `moved` bytes of memory move with the arguments.
    /// `chain` is that of what it calls.
    /// `task`, if given, returns when all members of this moment have run it.
    /// Refused: nothing was made and the caller still holds the task.
    pub fn broadcast(
        &self,
        chain: u32,
        function: u32,
        bytes: &[u8],
        moved: usize,
        attachments: Option<Box<dyn Any + Send + Sync>>,
        task: Option<&'static Task>,
    ) -> Result<Arc<Broadcast>, Refusal> {
        if bytes.len() > self.limits.task_bytes_max {
            return Err(Refusal::TooLarge);
        }
        let (broadcast, woken) = {
            let mut inner = lock(&self.inner);
            if self.is_closing() {
                return Err(Refusal::Closed);
            }
            if inner.broadcasts.len() >= self.limits.broadcasts_max {
                return Err(Refusal::BroadcastsFull);
            }
            let kept = inner.broadcast_bytes.saturating_add(bytes.len()).saturating_add(moved);
            if kept > self.limits.queue_bytes_max {
                return Err(Refusal::BytesFull);
            }
            inner.broadcast_bytes = kept;
            let members = inner.slots.iter().flatten().count() + inner.owed.len();
            let broadcast =
                Arc::new(Broadcast::new(function, chain, bytes.into(), attachments, members, task));
            inner.broadcasts.push(Arc::clone(&broadcast));
            self.broadcast_count.store(inner.broadcasts.len() as u32, Ordering::SeqCst);
            (broadcast, self.take_sleepers(&mut inner))
        };
        woken.into_iter().for_each(Mailbox::rouse);
        broadcast.settle_if_unanswered();
        Ok(broadcast)
    }

    /// Whether this zone has a broadcast that not all its workers have run.
    pub fn has_broadcast_to_run(&self) -> bool {
        let inner = lock(&self.inner);
        let made = inner.broadcasts.len() as u32;
        !inner.owed.is_empty()
            || inner.slots.iter().flatten().any(|slot| slot.applied.load(Ordering::SeqCst) < made)
    }

    /// Refuse new calls; workers finish what is accepted and then leave. `task`, if given, returns
    /// when the last one has left. Returns false, and keeps no task, when that has already happened.
    pub fn close(&self, task: Option<&'static Task>) -> bool {
        let (empty, none_waits, owed, woken) = {
            let mut inner = lock(&self.inner);
            if self.finished.load(Ordering::SeqCst) {
                return false;
            }
            self.closing.store(true, Ordering::SeqCst);
            inner.closers.extend(task);
            let woken = self.take_sleepers(&mut inner);
            // Nobody replaces the dead any more: their going is their answer.
            let owed: Vec<_> = std::mem::take(&mut inner.owed)
                .into_iter()
                .flat_map(|from| inner.broadcasts.get(from as usize..).unwrap_or_default().to_vec())
                .collect();
            (inner.slots.iter().flatten().next().is_none(), !self.has_accepted(&inner), owed, woken)
        };
        woken.into_iter().for_each(Mailbox::rouse);
        for broadcast in owed {
            broadcast.answer(None);
        }
        if empty && (self.executor.growth.is_none() || none_waits) {
            self.finish(Status::Closed, &[]);
        } else if empty {
            // What was accepted gets a worker, and the last one to leave ends the zone.
            self.press();
        }
        true
    }

    /// End everything that is not running: waiting tasks return with `status` and `bytes`, those
    /// submitted from now on as closed.
    pub fn finish(&self, status: Status, bytes: &[u8]) {
        let (closers, reloaders, woken) = {
            let mut inner = lock(&self.inner);
            self.closing.store(true, Ordering::SeqCst);
            self.finished.store(true, Ordering::SeqCst);
            if status == Status::Died {
                inner.failure = Some(bytes.into());
            }
            let woken = self.take_sleepers(&mut inner);
            (std::mem::take(&mut inner.closers), std::mem::take(&mut inner.reloaders), woken)
        };
        // Sleeping workers must wake up to leave.
        woken.into_iter().for_each(Mailbox::rouse);
        self.admit_waiters(Some((status, bytes)));
        self.refuse_waiting(status, bytes);
        let broadcasts = {
            let mut inner = lock(&self.inner);
            self.broadcast_count.store(0, Ordering::SeqCst);
            inner.broadcast_bytes = 0;
            std::mem::take(&mut inner.broadcasts)
        };
        for broadcast in broadcasts {
            broadcast.abandon(status, bytes);
        }
        for task in closers {
            // SAFETY: its submitter handed it to `close`, and it was taken out of the list just once.
            unsafe { settle(task, Status::Done, &[]) };
        }
        for task in reloaders {
            // SAFETY: as above, to `reload`.
            unsafe { settle(task, status, bytes) };
        }
    }

    /// Why the zone has failed, if it has.
    pub fn failure(&self) -> Option<Box<[u8]>> {
        lock(&self.inner).failure.clone()
    }

    /// Return every waiting task with `status` and `bytes`.
    pub fn refuse_waiting(&self, status: Status, bytes: &[u8]) {
        loop {
            let task = {
                let mut inner = lock(&self.inner);
                self.absorb(&mut inner);
                self.withdraw_any(&mut inner)
            };
            let Some(task) = task.or_else(|| self.take_forked()) else { return };
            self.withdrawn(task);
            // SAFETY: taking it made this thread the holder.
            unsafe { settle(task, status, bytes) };
        }
    }

    /// Take a task out of any deque, cancelled or not.
    fn take_forked(&self) -> Option<&'static Task> {
        let slots: Vec<_> = lock(&self.inner).slots.iter().flatten().cloned().collect();
        for others in slots.iter().filter_map(|slot| slot.others.as_ref()) {
            loop {
                match others.steal() {
                    Stolen::Task(task) => {
                        // A cancelled one stays so: either way this thread has it.
                        let _ = task.leave_deque(State::Accepted);
                        return Some(task);
                    }
                    Stolen::Empty => break,
                    Stolen::Retry => {}
                }
            }
        }
        None
    }

    /// The thread that keeps the workers has ended, and they with it: everything returns to its caller.
    pub fn orphan(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.finish(Status::Orphaned, &[]);
        let slots = lock(&self.inner).slots.len() as u32;
        for slot in 0..slots {
            self.slot_ended(slot, Status::Orphaned, &[]);
        }
    }
}
