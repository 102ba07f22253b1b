//! The mailbox of one JavaScript thread, and the way to wake that thread.
//!
//! Two kinds of arrivals: tasks that return to the thread that submitted them (a lock-free stack), and
//! mail, rare instructions such as "start a worker" (a locked queue). Wake-ups are coalesced: a thread
//! that is awake is never signalled, one that sleeps is signalled once. README.md proves that no arrival
//! is slept through.
//!
//! Mailboxes are never freed: a [`crate::Receiver`] is kept for a later thread, so a reference stays valid.

pub use crate::task::{Mail, Mailbox, Wake};
use crate::{
    sync::{Ordering, lock, model_fence},
    task::Task,
};

pub(crate) const AWAKE: u32 = 0;
/// Combined with the core, see `asleep_on`.
const ASLEEP: u32 = 1 << 31;

/// The state of a mailbox whose thread sleeps: the core that it was counted on, on which the waking thread
/// counts it again. One word, since a thread that wakes by itself may move to another core before it sleeps
/// again.
const fn asleep_on(core: u32) -> u32 {
    core | ASLEEP
}

const fn core_of(asleep: u32) -> u32 {
    asleep & !ASLEEP
}

impl Mailbox {
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Return `task` to this thread and wake it if it sleeps. The caller held the task and no longer does.
    #[inline]
    pub(crate) fn deliver(&self, task: &'static Task) {
        // Relaxed: set by the caller before it sent the task.
        if task.joined.load(Ordering::Relaxed) {
            // SeqCst: releases the body, and comes before the look at `state` in rouse.
            task.arrived.store(true, Ordering::SeqCst);
            model_fence();
        } else {
            self.inbox.push(task);
        }
        self.rouse();
    }

    /// Leave an instruction, and wake the thread if it sleeps. Returns false, and leaves nothing, when the
    /// thread has ended.
    pub fn send(&self, mail: Mail) -> bool {
        let is_left = self.leave(mail);
        if is_left {
            self.rouse();
        }
        is_left
    }

    /// As `send`, but `rouse` is to follow.
    pub fn leave(&self, mail: Mail) -> bool {
        {
            let waker = lock(&self.waker);
            if waker.is_none() {
                return false;
            }
            let mut queue = lock(&self.mail);
            queue.push_back(mail);
            // SeqCst: ordered before the look at `state` in rouse.
            self.mail_count.store(queue.len(), Ordering::SeqCst);
        }
        model_fence();
        true
    }

    /// Wake the thread if it sleeps.
    #[inline]
    pub fn rouse(&self) {
        // SeqCst: after the sender's push, before the sleeper's second look, in the one order of all SeqCst
        // steps.
        let state = self.state.load(Ordering::SeqCst);
        if state != AWAKE
            && self.leave_sleep(state)
            && let Some(waker) = lock(&self.waker).as_ref()
        {
            waker.wake();
        }
    }

    /// Change from `asleep` to awake, and count it as awake; returns false if it was awake. Then it writes
    /// nothing: loom orders a write of an equal value after the sleeper's next one.
    pub(crate) fn leave_sleep(&self, asleep: u32) -> bool {
        let left = self.state.compare_exchange(asleep, AWAKE, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if left {
            self.machine.count(core_of(asleep), true);
        }
        left
    }

    /// Mark the thread as asleep, on the core where it is counted.
    pub(crate) fn enter_sleep(&self) {
        // SeqCst: before the second look, see rouse.
        self.state.store(asleep_on(self.core.load(Ordering::Relaxed)), Ordering::SeqCst);
        model_fence();
        self.count(false);
    }

    pub(crate) fn count(&self, awake: bool) {
        self.machine.count(self.core.load(Ordering::Relaxed), awake);
    }

    #[inline]
    pub fn has_mail(&self) -> bool {
        // SeqCst: may be the sleeper's second look.
        self.mail_count.load(Ordering::SeqCst) > 0
    }

    #[inline]
    pub fn has_arrivals(&self) -> bool {
        !self.inbox.is_empty() || self.has_mail()
    }
}
