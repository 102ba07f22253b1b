//! Who sleeps, and who is woken for what.
//!
//! A submitter wakes one worker at most; each worker that takes a task and leaves others wakes the next.

use std::sync::Arc;

use super::{Inner, Slot, Zone, lock};
use crate::{
    mailbox::{Mail, Mailbox},
    sync::Ordering,
};

/// A worker that sleeps at capacity and can be woken for tasks that are deeper than those it runs.
#[derive(Clone, Copy)]
pub(super) struct FullSleeper {
    pub(super) slot: u32,
    pub(super) mailbox: &'static Mailbox,
    /// The least depth of a task that it may begin.
    pub(super) floor: u32,
}

/// A worker that sleeps and can be woken for work.
#[derive(Clone, Copy)]
pub(super) struct Sleeper {
    pub(super) slot: u32,
    pub(super) mailbox: &'static Mailbox,
    /// It waits for a joined call and takes forked tasks alone.
    pub(super) helps_only: bool,
    /// When it went to sleep, in ticks.
    pub(super) since: u64,
}

impl Sleeper {
    /// It is woken.
    pub(super) fn count(&self, slots: &[Option<Arc<Slot>>]) {
        if let Some(slot) = slots.get(self.slot as usize).and_then(Option::as_ref) {
            slot.wake_ups.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Zone {
    /// Wake a sleeping worker unless one is looking for work already. One that waits for a joined call is
    /// woken only for what was `forked`, and if there is no other; one at capacity only for a task
    /// of a `depth` that it may begin, and if there is no other either.
    #[inline]
    pub(super) fn wake_one(&self, forked: bool, depth: u32) {
        if self.searching.load(Ordering::SeqCst) > 0 {
            return;
        }
        if self.sleeping.load(Ordering::SeqCst) == 0 {
            return self.wake_full(depth);
        }
        let sleeper = {
            let mut inner = lock(&self.inner);
            let last = inner.sleepers.len().checked_sub(1).filter(|_| forked);
            let chosen = inner.sleepers.iter().rposition(|sleeper| !sleeper.helps_only).or(last);
            let sleeper = chosen.map(|index| inner.sleepers.remove(index));
            if let Some(sleeper) = &sleeper {
                sleeper.count(&inner.slots);
            }
            self.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
            sleeper
        };
        match sleeper {
            Some(Sleeper { mailbox, .. }) => {
                self.wake_ups.fetch_add(1, Ordering::Relaxed);
                mailbox.rouse();
            }
            None => self.wake_full(depth),
        }
    }

    /// The same for whatever waits.
    pub(super) fn wake_another(&self, forked: bool) {
        self.wake_one(forked, self.deepest.load(Ordering::SeqCst));
    }

    /// Wake a worker that sleeps at capacity, for a task of that depth; without one, ask for more
    /// workers.
    #[inline]
    pub(super) fn wake_full(&self, depth: u32) {
        if depth > 0 && self.full_sleeping.load(Ordering::SeqCst) > 0 {
            let mut inner = lock(&self.inner);
            let chosen = inner.full_sleepers.iter().position(|sleeper| sleeper.floor <= depth);
            if let Some(sleeper) = chosen.map(|index| inner.full_sleepers.remove(index)) {
                self.full_sleeping.store(inner.full_sleepers.len() as u32, Ordering::SeqCst);
                drop(inner);
                return sleeper.mailbox.rouse();
            }
        }
        self.press();
    }

    /// Tasks wait and nobody is free: notify the owner of a zone that grows, once.
    #[inline]
    pub(super) fn press(&self) {
        let Some(growth) = self.executor.growth.as_ref() else { return };
        // SeqCst: after the push; pairs with the owner's last look in `grow`.
        if !self.pressed.load(Ordering::SeqCst) && !self.pressed.swap(true, Ordering::SeqCst) {
            growth.owner.send(Mail { kind: growth.mail, subject: self.number, facts: [0, 0] });
        }
    }

    /// Take every sleeping worker off the lists; the lock, which each of them takes next, is held. Their
    /// mailboxes are to be roused behind it.
    pub(super) fn take_sleepers(&self, inner: &mut Inner) -> Vec<&'static Mailbox> {
        let Inner { sleepers, full_sleepers, slots, .. } = inner;
        self.wake_ups.fetch_add(sleepers.len() as u64, Ordering::Relaxed);
        sleepers.iter().for_each(|sleeper| sleeper.count(slots));
        let full = full_sleepers.drain(..).map(|sleeper| sleeper.mailbox);
        let woken = full.chain(sleepers.drain(..).map(|sleeper| sleeper.mailbox)).collect();
        self.full_sleeping.store(0, Ordering::SeqCst);
        self.sleeping.store(0, Ordering::SeqCst);
        woken
    }

    pub(super) fn has_sleepers(&self) -> bool {
        self.sleeping.load(Ordering::SeqCst) > 0 || self.full_sleeping.load(Ordering::SeqCst) > 0
    }
}
