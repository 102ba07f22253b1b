//! What a thread does with the zones that it has opened, by its handles: wait, broadcast, cancel, close.
//!
//! Each is one operation of the zone with this thread's part around it; README.md describes the effects on
//! calls in flight.

use std::{sync::Arc, time::Duration};

use super::Bridge;
use crate::{
    Cancellation, Misuse, Refusal, Task, Worker, Zone,
    chains::{self, Wait},
    layout::{cancelled, given, mail},
    registry::{self, Entry, Opened},
    task::State,
};

/// Longest time that one call blocks: a thread can end only after the call.
const SLICE_MAX: Duration = Duration::from_millis(10);

impl Bridge {
    pub fn zone(&self, handle: u32) -> Result<&Arc<Zone>, Misuse> {
        self.zones.get(handle).map(|opened| &opened.zone).ok_or(Misuse("no such zone"))
    }

    /// A handle for a zone; -1 without one.
    pub fn open_zone(&mut self, entry: Option<Arc<Entry>>) -> i32 {
        let Some(entry) = entry else { return -1 };
        let number = entry.zone.number();
        // A worker's zone, also where another copy of the package runs it.
        let own = self.worker.as_ref().map(|worker| worker.zone().number());
        let own = own.or_else(|| self.elsewhere(|worker| worker.zone().number()));
        Opened::new(entry, own != Some(number)).map_or(-1, |opened| self.zones.put(opened).cast_signed())
    }

    /// Close the zone when no thread has a handle on it any more.
    pub fn weaken_zone(&self, handle: u32) -> Result<(), Misuse> {
        self.zones.get(handle).map(Opened::weaken).ok_or(Misuse("no such zone"))
    }

    pub fn drop_zone(&mut self, handle: u32) {
        self.zones.take(handle);
    }

    /// Pass `task` to `zone` by `pass`, which returns whether the task was sent. Until the task returns, a
    /// worker may run one more task, since what the task waits for may have to run on this worker, also
    /// through another zone.
    ///
    /// The worker may belong to another copy of the package: then it is notified as well, and woken once the
    /// task was sent.
    fn wait_for(
        &mut self,
        zone: &Zone,
        task: &'static Task,
        pass: impl FnOnce(&Zone) -> Result<bool, Refusal>,
    ) -> Result<bool, Refusal> {
        let note = |worker: &mut Worker| worker.wait_for(task);
        let here = self.worker.as_mut().map(note).is_some();
        let elsewhere = !here && self.elsewhere(note).is_some();
        let waits = pass(zone);
        if waits == Ok(true) {
            self.sent();
        } else if let Some(worker) = self.worker.as_mut().filter(|_| here) {
            worker.unwait(task);
        }
        if elsewhere {
            // This also wakes the worker, which can now find the task.
            self.elsewhere(|worker| {
                if waits != Ok(true) {
                    worker.unwait(task);
                }
            });
        }
        waits
    }

    /// One of this worker's tasks begins to wait for the other end of a stream, or no longer does. Meanwhile
    /// the worker may run one task more: that may be what reads the stream, or feeds it.
    pub fn stream_waits(&mut self, begins: bool) {
        let note = |worker: &mut Worker| {
            let waits = worker.waits();
            worker.set_waits(if begins { waits + 1 } else { waits.saturating_sub(1) });
        };
        if self.worker.as_mut().map(note).is_none() {
            self.elsewhere(note);
        }
    }

    /// None of these waits has ended for long. Returns whether the worker may begin a task more for it,
    /// because all that it runs waits.
    pub fn streams_stalled(&mut self) -> bool {
        let note = |worker: &mut Worker| {
            let stalls = worker.may_stall();
            if stalls {
                worker.begin_any();
            }
            stalls
        };
        self.worker.as_mut().map(note).or_else(|| self.elsewhere(note)).unwrap_or(false)
    }

    /// How many of this worker's tasks wait so.
    pub fn waits(&self) -> usize {
        self.worker.as_ref().map_or(0, Worker::waits)
    }

    /// Note that `task`, a call of `chain`, is about to wait in that zone. `waits` are this bridge's.
    /// [`Refusal::Deadlock`]: it would wait for a broadcast that waits for it.
    #[cold]
    pub(super) fn begin_wait(
        waits: &mut Vec<(u32, Wait)>,
        chain: u32,
        zone: &Zone,
        task: &'static Task,
    ) -> Result<(), Refusal> {
        // It is idle, and may have run before.
        task.set_state(State::Accepted);
        let wait = chains::wait(chain, zone.number(), Some(task), is_held_up).ok_or(Refusal::Deadlock)?;
        waits.push((task.call(), wait));
        Ok(())
    }

    /// A call has returned, or its caller no longer waits for it.
    #[cold]
    pub(super) fn end_wait(&mut self, call: u32) {
        self.waits.retain(|(other, _)| *other != call);
    }

    /// The chain of the calling task. Notes that `task` waits in `zone`, as `begin_wait` does.
    fn begin_own_wait(&mut self, zone: &Zone, task: &'static Task) -> Result<u32, Refusal> {
        let (chain, _) = chains::split(self.out.word(given::DEPTH));
        // Idle, so that `cancel` finds it in no queue, whatever it was before.
        task.set_state(State::Accepted);
        if chain != chains::NONE {
            Self::begin_wait(&mut self.waits, chain, zone, task)?;
        }
        Ok(chain)
    }

    /// Wait until the first workers have started and the queue has capacity. Returns 1: they have and it has;
    /// 0: `call` ends then; below 0 a refusal.
    pub fn await_capacity(&mut self, handle: u32, call: u32) -> Result<i32, Misuse> {
        let (zone, task) = (Arc::clone(self.zone(handle)?), self.task(call)?);
        let waits = self
            .begin_own_wait(&zone, task)
            .and_then(|_| self.wait_for(&zone, task, |zone| zone.await_capacity(task).map(|now| !now)));
        if waits != Ok(true) {
            self.end_wait(call);
        }
        Ok(waits.map_or_else(Refusal::number, |waits| i32::from(!waits)))
    }

    /// Stop waiting. Returns whether `call` is over; otherwise it is being returned.
    pub fn stop_awaiting_capacity(&mut self, handle: u32, call: u32) -> Result<bool, Misuse> {
        let (zone, task) = (Arc::clone(self.zone(handle)?), self.task(call)?);
        let left = zone.stop_awaiting_capacity(task);
        if left {
            self.put_away(task);
        }
        Ok(left)
    }

    /// Call a function in every worker; `call` ends when all have run it. Returns 0 or a refusal.
    pub fn broadcast(&mut self, handle: u32, function: u32, bytes: &[u8], call: u32) -> Result<i32, Misuse> {
        let (moved, kept) = self.take_attachments();
        let (zone, task) = (Arc::clone(self.zone(handle)?), self.task(call)?);
        let made = self.begin_own_wait(&zone, task).and_then(|chain| {
            self.wait_for(&zone, task, |zone| {
                let chain = chain_with(chain, zone);
                zone.broadcast(chain, function, bytes, moved, kept, Some(task)).map(|_| true)
            })
        });
        if made.is_err() {
            self.end_wait(call);
        }
        Ok(made.map_or_else(Refusal::number, |_| 0))
    }

    /// As `broadcast`, for a caller that blocks. Returns a number for `broadcast_wait`, or a refusal below 0.
    pub fn broadcast_sync(&mut self, handle: u32, function: u32, bytes: &[u8]) -> Result<i32, Misuse> {
        let (moved, kept) = self.take_attachments();
        let zone = Arc::clone(self.zone(handle)?);
        let (chain, _) = chains::split(self.out.word(given::DEPTH));
        let mut wait = None;
        if chain != chains::NONE {
            wait = chains::wait(chain, zone.number(), None, is_held_up);
            if wait.is_none() {
                return Ok(Refusal::Deadlock.number());
            }
        }
        let made = zone.broadcast(chain_with(chain, &zone), function, bytes, moved, kept, None);
        Ok(made
            .map_or_else(Refusal::number, |broadcast| self.broadcasts.put((broadcast, wait)).cast_signed()))
    }

    fn take_attachments(&mut self) -> (usize, Option<Box<dyn std::any::Any + Send + Sync>>) {
        self.attachments.take().map_or((0, None), |attachments| (attachments.moved, Some(attachments.kept)))
    }

    /// Wait for a broadcast for `slice`, 10 ms at most; zero: for the last time. Returns `None`: not yet;
    /// else whether all have run it, or the bytes of the first error.
    #[expect(clippy::type_complexity, reason = "a pending, successful or failed broadcast")]
    pub fn broadcast_wait(
        &mut self,
        number: u32,
        slice: Duration,
    ) -> Result<Option<Result<(), Box<[u8]>>>, Misuse> {
        let (broadcast, _) = self.broadcasts.get(number).ok_or(Misuse("no such broadcast"))?;
        let mut outcome = broadcast.outcome();
        if outcome.is_none() {
            std::thread::sleep(slice.min(SLICE_MAX));
            outcome = broadcast.outcome();
        }
        if outcome.is_some() || slice.is_zero() {
            self.broadcasts.take(number);
        }
        Ok(outcome.map(|failure| failure.map_or(Ok(()), |failure| Err(failure.bytes))))
    }

    /// Cancel a call in flight. Returns a number of `layout::cancelled`; a running task's worker receives
    /// mail with `note`, and the zone's owner, who replaces the worker if it goes on.
    pub fn cancel(&mut self, handle: u32, call: u32, note: u32) -> Result<i32, Misuse> {
        let (zone, task) = (Arc::clone(self.zone(handle)?), self.task(call)?);
        self.end_wait(call);
        Ok(match zone.cancel(task, mail::ABORT, note) {
            Cancellation::Cancelled => {
                self.put_away(task);
                cancelled::OVER
            }
            Cancellation::Running { .. } => {
                registry::task_cancelled(zone.number(), false);
                cancelled::RUNNING
            }
            Cancellation::Ended => cancelled::ENDED,
            Cancellation::Skipped => cancelled::SKIPPED,
        })
    }

    /// Refuse new calls and dismiss the workers when all accepted ones have ended; `call` ends then. False if
    /// the last worker has left already.
    pub fn close_zone(&mut self, handle: u32, call: u32) -> Result<bool, Misuse> {
        let (zone, task) = (Arc::clone(self.zone(handle)?), self.task(call)?);
        let waits = zone.close(Some(task));
        if waits {
            self.sent();
        }
        Ok(waits)
    }

    /// `call` ends when new workers have replaced those of the moment. Returns 0 or a refusal.
    pub fn reload_zone(&mut self, handle: u32, call: u32) -> Result<i32, Misuse> {
        let (zone, task) = (Arc::clone(self.zone(handle)?), self.task(call)?);
        let outcome = zone.reload(task);
        if outcome.is_ok() {
            self.sent();
        }
        Ok(outcome.map_or_else(Refusal::number, |()| 0))
    }
}

/// The chain of what a broadcast of `zone` calls, whose caller has `chain`.
fn chain_with(chain: u32, zone: &Zone) -> u32 {
    chains::with(chain, zone.number(), |zone| registry::zone(zone).is_none())
}

fn is_held_up(zone: u32) -> bool {
    registry::zone(zone).is_some_and(|entry| entry.zone.has_broadcast_to_run())
}
