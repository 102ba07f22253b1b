//! Workers that are replaced by new ones while the zone goes on.
//!
//! The owner has the new thread ready before it retires the old worker, so the slot is free for as long as a
//! thread takes to attach. Which workers are replaced, and when, is the owner's business; here callers wait
//! for it, and a retired worker finishes what it has begun.

use super::{RETIRED, Refusal, Status, Task, Zone, lock, settle};
use crate::{mailbox::Mail, sync::Ordering};

impl Zone {
    /// `task` returns when the owner has replaced the workers of this moment, or when the zone ends.
    /// Refused: the caller still holds the task.
    pub fn reload(&self, task: &'static Task) -> Result<(), Refusal> {
        let mut inner = lock(&self.inner);
        // Under the lock, under which `finish` takes those that wait.
        if self.is_closing() {
            return Err(Refusal::Closed);
        }
        inner.reloaders.push_back(task);
        Ok(())
    }

    /// The `count` oldest callers of `reload` have what they wait for, or the reason why not.
    pub fn reloaded(&self, count: usize, status: Status, bytes: &[u8]) {
        let ended: Vec<_> = {
            let mut inner = lock(&self.inner);
            let count = count.min(inner.reloaders.len());
            inner.reloaders.drain(..count).collect()
        };
        for task in ended {
            // SAFETY: its submitter handed it to `reload`, and it was taken out of the list just once.
            unsafe { settle(task, status, bytes) };
        }
    }

    /// Let the worker of `slot` leave when its tasks have ended; it begins only what they wait for. Its
    /// replacement answers for it, as for one that died. `mail` is sent to its thread, so that it looks.
    pub fn retire(&self, slot: u32, mail: u32) {
        let Some(slot) = lock(&self.inner).slots.get(slot as usize).cloned().flatten() else { return };
        // Before the mail, after which its worker looks. One that is not seated yet looks when it is.
        slot.mode.fetch_or(RETIRED, Ordering::SeqCst);
        if let Some(mailbox) = *lock(&slot.mailbox) {
            mailbox.send(Mail { kind: mail, subject: self.number, facts: [0, 0] });
        }
    }
}
