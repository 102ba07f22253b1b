//! Notifying a waiting thread: a ticket and a fact, through its mailbox or its blocking wait.
//!
//! A ticket is a number that no other wait of the same thread uses. A notification never runs foreign code
//! and never waits. Under a lock the fact alone is left, so that who cancels its wait under that lock learns
//! whether there is one, and the thread is woken behind the lock ([`Woken`]): on a machine without a free
//! core the woken thread often gets the core of the other one at once, and would wait for the lock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use corespun_bridge::{Mail, Mailbox, layout::mail};
use parking_lot::{Condvar, Mutex};

pub use crate::layout::Fact;

/// Notifies one thread.
pub trait Notify: Send + Sync {
    /// Leaves a fact about the wait with that ticket. [`Notify::wake`] follows.
    fn leave(&self, ticket: u32, fact: Fact);

    /// Wakes the thread if it sleeps, whether or not there is a fact.
    fn wake(&self);
}

/// By mail, which wakes the thread's event loop.
pub struct ByMail(pub &'static Mailbox);

impl Notify for ByMail {
    fn leave(&self, ticket: u32, fact: Fact) {
        self.0.leave(Mail { kind: mail::SHARED, subject: ticket, facts: [fact as u32, 0] });
    }

    fn wake(&self) {
        self.0.rouse();
    }
}

/// One wait of one thread.
#[derive(Clone)]
pub struct Call {
    pub thread: u32,
    pub ticket: u32,
    pub notify: Arc<dyn Notify>,
}

impl Call {
    /// Whether it is that wait.
    pub const fn is(&self, thread: u32, ticket: u32) -> bool {
        self.thread == thread && self.ticket == ticket
    }

    /// Sends a fact.
    pub fn notify(&self, fact: Fact) {
        self.notify.leave(self.ticket, fact);
        self.notify.wake();
    }
}

/// The threads whose facts were left under a lock. They are woken when this is dropped: it is declared before
/// the lock's guard, and so dropped behind it.
#[derive(Default)]
pub(crate) struct Woken(Vec<Arc<dyn Notify>>);

impl Woken {
    /// Leaves a fact for a wait that is over.
    pub(crate) fn leave(&mut self, call: Call, fact: Fact) {
        call.notify.leave(call.ticket, fact);
        self.0.push(call.notify);
    }
}

impl Drop for Woken {
    fn drop(&mut self) {
        self.0.iter().for_each(|thread| thread.wake());
    }
}

/// Where a thread blocks, one wait at a time and in slices, because no native call may block without bound.
#[derive(Default)]
pub struct Parker {
    facts: Mutex<Vec<(u32, Fact)>>,
    changed: Condvar,
    /// Number of notifications, which a thread polls before it sleeps.
    count: AtomicU32,
}

/// Polls before a thread sleeps: some microseconds, less than a wake-up costs.
const SPINS: u32 = if cfg!(miri) { 4 } else { 2000 };

impl Parker {
    /// Waits at most `slice` for a fact about `ticket`; with `spins`, polls first.
    pub fn wait(&self, ticket: u32, slice: Duration, spins: bool) -> Option<Fact> {
        // Relaxed: a hint; what counts is read under the lock.
        let before = self.count.load(Ordering::Relaxed);
        if let Some(fact) = self.forget(ticket) {
            return Some(fact);
        }
        for _ in 0..if spins { SPINS } else { 0 } {
            if self.count.load(Ordering::Relaxed) != before {
                break;
            }
            std::hint::spin_loop();
        }
        let mut facts = self.facts.lock();
        if let Some(fact) = take(&mut facts, ticket) {
            return Some(fact);
        }
        self.changed.wait_for(&mut facts, slice);
        take(&mut facts, ticket)
    }

    /// Drops the fact about `ticket` and returns it.
    pub fn forget(&self, ticket: u32) -> Option<Fact> {
        take(&mut self.facts.lock(), ticket)
    }
}

fn take(facts: &mut Vec<(u32, Fact)>, ticket: u32) -> Option<Fact> {
    let index = facts.iter().position(|&(other, _)| other == ticket)?;
    Some(facts.swap_remove(index).1)
}

impl Notify for Parker {
    fn leave(&self, ticket: u32, fact: Fact) {
        self.facts.lock().push((ticket, fact));
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn wake(&self) {
        self.changed.notify_one();
    }
}
