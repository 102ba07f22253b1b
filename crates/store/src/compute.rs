//! Computing a missing value: one call per key in the process computes, the others wait.
//!
//! When the leader succeeds, all waiters look again. When it fails, is cancelled or its thread ends, the
//! first waiter leads. This module does not see values: a leader looks once more before it computes.

use std::collections::VecDeque;

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::{
    key::{Key, KeyRef},
    notify::{Call, Fact, Woken},
};

/// What a call for a missing value must do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Begin {
    /// Compute it, then call `end`.
    Lead,
    /// Wait for a fact.
    Wait,
}

struct Computing {
    leader: Call,
    waiters: VecDeque<Call>,
}

/// The computations of one store.
#[derive(Default)]
pub(crate) struct Computations(Mutex<HashMap<Key, Computing>>);

impl Computations {
    pub(crate) fn begin(&self, key: KeyRef<'_>, call: Call) -> Begin {
        let mut all = self.0.lock();
        if let Some(computing) = all.get_mut(&key) {
            computing.waiters.push_back(call);
            return Begin::Wait;
        }
        all.insert(key.to_key(), Computing { leader: call, waiters: VecDeque::new() });
        Begin::Lead
    }

    /// A call ends: the leader, or a waiter that is cancelled.
    pub(crate) fn end(&self, key: KeyRef<'_>, thread: u32, ticket: u32, succeeded: bool) {
        let mut woken = Woken::default();
        let mut all = self.0.lock();
        let Some(computing) = all.get_mut(&key) else { return };
        if !computing.leader.is(thread, ticket) {
            return computing.waiters.retain(|waiter| !waiter.is(thread, ticket));
        }
        if succeeded {
            if let Some(ended) = all.remove(&key) {
                ended.waiters.into_iter().for_each(|waiter| woken.leave(waiter, Fact::Look));
            }
        } else if !computing.pass_on(&mut woken) {
            all.remove(&key);
        }
    }

    pub(crate) fn thread_ended(&self, thread: u32) {
        let mut woken = Woken::default();
        self.0.lock().retain(|_, computing| {
            computing.waiters.retain(|waiter| waiter.thread != thread);
            computing.leader.thread != thread || computing.pass_on(&mut woken)
        });
    }

    /// The store is closed; all waiters look again.
    pub(crate) fn close(&self) {
        let mut woken = Woken::default();
        for (_, computing) in self.0.lock().drain() {
            computing.waiters.into_iter().for_each(|waiter| woken.leave(waiter, Fact::Look));
        }
    }
}

impl Computing {
    /// Makes the first waiter the leader; false without waiters.
    fn pass_on(&mut self, woken: &mut Woken) -> bool {
        let Some(next) = self.waiters.pop_front() else { return false };
        woken.leave(next.clone(), Fact::Lead);
        self.leader = next;
        true
    }
}
