//! How a waiting thread is told: a ticket and a fact, through its mailbox or out of its blocking wait.
//!
//! A ticket is a number that the waiter chose and that no other wait of its thread has. Telling never runs
//! foreign code and never waits; whoever tells may hold a lock of this crate.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

pub use crate::layout::Fact;

/// A way to tell one thread.
pub trait Notify: Send + Sync {
    /// Tell the wait with that ticket.
    fn notify(&self, ticket: u32, fact: Fact);
}

/// One wait of one thread.
#[derive(Clone)]
pub struct Call {
    /// The thread.
    pub thread: u32,
    /// Which of its waits.
    pub ticket: u32,
    /// How to tell it.
    pub notify: Arc<dyn Notify>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Call({}, {})", self.thread, self.ticket)
    }
}

impl Call {
    /// Whether this is that wait.
    #[must_use]
    pub const fn is(&self, thread: u32, ticket: u32) -> bool {
        self.thread == thread && self.ticket == ticket
    }

    /// Tell it.
    pub fn notify(&self, fact: Fact) {
        self.notify.notify(self.ticket, fact);
    }
}

/// Where a thread blocks, one wait at a time, in slices: whoever must not block without bound waits again.
#[derive(Default)]
pub struct Parker {
    told: Mutex<Vec<(u32, Fact)>>,
    changed: Condvar,
    /// How often somebody told something: what a thread looks at before it sleeps.
    count: AtomicU32,
}

/// Looks at the count before a thread sleeps: some microseconds, less than a wake-up costs.
const SPINS: u32 = if cfg!(miri) { 4 } else { 2000 };

impl Parker {
    /// Wait for word about `ticket`, at most `slice`; with `spins`, look for it a little while first.
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
        let mut told = self.told.lock();
        if let Some(fact) = take(&mut told, ticket) {
            return Some(fact);
        }
        self.changed.wait_for(&mut told, slice);
        take(&mut told, ticket)
    }

    /// Forget what was told about `ticket`; what it was, if anything was.
    pub fn forget(&self, ticket: u32) -> Option<Fact> {
        take(&mut self.told.lock(), ticket)
    }
}

fn take(told: &mut Vec<(u32, Fact)>, ticket: u32) -> Option<Fact> {
    let index = told.iter().position(|&(other, _)| other == ticket)?;
    Some(told.swap_remove(index).1)
}

impl Notify for Parker {
    fn notify(&self, ticket: u32, fact: Fact) {
        self.told.lock().push((ticket, fact));
        self.count.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }
}
