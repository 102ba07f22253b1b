//! A gate: so many permits, given in the order they were asked for.
//!
//! A lock is a gate of one permit; a read-write lock one whose readers take a single permit and whose writers
//! take all of them; a semaphore is the gate itself. Whoever asks while others wait stands behind them, so no
//! writer starves behind readers, nor the other way round. A thread that ends gives back what it held, and
//! whoever gets a permit next is told.

use std::collections::VecDeque;

use parking_lot::Mutex;

pub use crate::layout::Enter;
use crate::notify::{Call, Fact};

#[derive(Clone, Copy, Debug)]
struct Held {
    owner: u32,
    ticket: u32,
    amount: u32,
}

#[derive(Debug)]
struct State {
    free: u32,
    abandoned: bool,
    held: Vec<Held>,
    queue: VecDeque<(Call, u32)>,
}

/// A lock, a read-write lock or a semaphore.
#[derive(Debug)]
pub struct Gate {
    permits: u32,
    state: Mutex<State>,
}

impl Gate {
    /// With so many permits.
    #[must_use]
    pub fn new(permits: u32) -> Self {
        let state = State { free: permits, abandoned: false, held: Vec::new(), queue: VecDeque::new() };
        Self { permits, state: Mutex::new(state) }
    }

    /// How many permits there are.
    #[must_use]
    pub const fn permits(&self) -> u32 {
        self.permits
    }

    /// Take `amount` permits now, or not at all.
    #[inline]
    pub fn try_enter(&self, owner: u32, ticket: u32, amount: u32) -> Enter {
        let mut state = self.state.lock();
        if state.queue.is_empty() && state.free >= amount {
            return state.grant(Held { owner, ticket, amount });
        }
        Enter::Busy
    }

    /// Take `amount` permits, now or when it is this call's turn. `blocks`: the thread will do nothing else
    /// until then, so waiting for itself is refused.
    pub fn enter(&self, call: Call, amount: u32, blocks: bool) -> Enter {
        let mut state = self.state.lock();
        if state.queue.is_empty() && state.free >= amount {
            return state.grant(Held { owner: call.owner, ticket: call.ticket, amount });
        }
        if blocks && state.would_wait_for_itself(call.owner, amount, self.permits) {
            return Enter::Own;
        }
        state.queue.push_back((call, amount));
        Enter::Queued
    }

    /// Give permits back; false when nothing was held under that ticket.
    #[inline]
    pub fn leave(&self, owner: u32, ticket: u32) -> bool {
        let mut state = self.state.lock();
        // The last one taken is the first given back, nearly always.
        let Some(index) = state.held.iter().rposition(|held| held.owner == owner && held.ticket == ticket)
        else {
            return false;
        };
        state.free += state.held.swap_remove(index).amount;
        if !state.queue.is_empty() {
            state.admit();
        }
        true
    }

    /// Stop waiting; false when the call no longer waits: it may hold permits now.
    pub fn cancel(&self, owner: u32, ticket: u32) -> bool {
        let mut state = self.state.lock();
        let before = state.queue.len();
        state.queue.retain(|(call, _)| !call.is(owner, ticket));
        let found = state.queue.len() != before;
        // It may have stood before smaller requests that can be met.
        state.admit();
        found
    }

    /// A thread has ended.
    pub fn owner_gone(&self, owner: u32) {
        let mut state = self.state.lock();
        state.queue.retain(|(call, _)| call.owner != owner);
        let held = std::mem::take(&mut state.held);
        for held in held {
            if held.owner == owner {
                state.free += held.amount;
                state.abandoned = true;
            } else {
                state.held.push(held);
            }
        }
        state.admit();
    }

    /// Permits free, and calls that wait.
    #[must_use]
    pub fn counts(&self) -> (u32, usize) {
        let state = self.state.lock();
        (state.free, state.queue.len())
    }
}

impl State {
    #[inline]
    fn grant(&mut self, held: Held) -> Enter {
        self.free -= held.amount;
        self.held.push(held);
        if std::mem::take(&mut self.abandoned) { Enter::Abandoned } else { Enter::Granted }
    }

    /// Grant to those in front as long as there is enough.
    fn admit(&mut self) {
        while let Some((_, amount)) = self.queue.front() {
            if *amount > self.free {
                return;
            }
            let Some((call, amount)) = self.queue.pop_front() else { return };
            let outcome = self.grant(Held { owner: call.owner, ticket: call.ticket, amount });
            call.tell(if outcome == Enter::Abandoned { Fact::Abandoned } else { Fact::Granted });
        }
    }

    /// Whether what other threads hold would suffice, were it given back: if not, the rest is the caller's
    /// own. A request of the same thread that stands in front counts as held from there on: it is granted
    /// when its turn comes, but what it waits for to run, and so to end, is the thread that blocks.
    fn would_wait_for_itself(&self, owner: u32, amount: u32, permits: u32) -> bool {
        let of = |held: &Held| if held.owner == owner { u64::from(held.amount) } else { 0 };
        let mut own: u64 = self.held.iter().map(of).sum();
        let lacks = |wanted: u32, own: u64| u64::from(wanted) + own > u64::from(permits);
        for (call, wanted) in &self.queue {
            if lacks(*wanted, own) {
                return true;
            }
            if call.owner == owner {
                own += u64::from(*wanted);
            }
        }
        lacks(amount, own)
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::notify::Notify;

    #[derive(Default)]
    struct Log(Mutex<Vec<(u32, Fact)>>);

    impl Notify for Log {
        fn notify(&self, ticket: u32, fact: Fact) {
            self.0.lock().unwrap().push((ticket, fact));
        }
    }

    /// What is done to a gate: owner, ticket, amount.
    enum Do {
        Try(u32, u32, u32, Enter),
        Enter(u32, u32, u32, Enter),
        Block(u32, u32, u32, Enter),
        Leave(u32, u32, bool),
        Cancel(u32, u32, bool),
        Gone(u32),
    }

    /// Run the steps and compare who was told what.
    fn check(permits: u32, steps: &[Do], told: &[(u32, Fact)]) {
        let gate = Gate::new(permits);
        let log = Arc::new(Log::default());
        let call = |owner, ticket| Call { owner, ticket, notify: log.clone() };
        for (index, step) in steps.iter().enumerate() {
            match *step {
                Do::Try(owner, ticket, n, wanted) => {
                    assert_eq!(gate.try_enter(owner, ticket, n), wanted, "{index}")
                }
                Do::Enter(owner, ticket, n, wanted) => {
                    assert_eq!(gate.enter(call(owner, ticket), n, false), wanted, "{index}");
                }
                Do::Block(owner, ticket, n, wanted) => {
                    assert_eq!(gate.enter(call(owner, ticket), n, true), wanted, "{index}");
                }
                Do::Leave(owner, ticket, wanted) => assert_eq!(gate.leave(owner, ticket), wanted, "{index}"),
                Do::Cancel(owner, ticket, wanted) => {
                    assert_eq!(gate.cancel(owner, ticket), wanted, "{index}")
                }
                Do::Gone(owner) => gate.owner_gone(owner),
            }
        }
        assert_eq!(*log.0.lock().unwrap(), told);
    }

    #[test]
    fn a_lock_is_passed_on_in_order() {
        use Do::*;
        let steps = [
            Enter(1, 1, 1, super::Enter::Granted),
            Enter(2, 2, 1, super::Enter::Queued),
            Enter(3, 3, 1, super::Enter::Queued),
            Leave(1, 1, true),
            Try(1, 4, 1, super::Enter::Busy),
            Leave(2, 2, true),
            Leave(3, 3, true),
            Leave(3, 3, false),
        ];
        check(1, &steps, &[(2, Fact::Granted), (3, Fact::Granted)]);
    }

    #[test]
    fn a_holder_that_dies_releases_and_the_next_is_told() {
        use Do::*;
        let steps = [Enter(1, 1, 1, super::Enter::Granted), Enter(2, 2, 1, super::Enter::Queued), Gone(1)];
        check(1, &steps, &[(2, Fact::Abandoned)]);
        let steps = [
            Enter(1, 1, 1, super::Enter::Granted),
            Gone(1),
            Try(2, 2, 1, super::Enter::Abandoned),
            Leave(2, 2, true),
            Try(2, 3, 1, super::Enter::Granted),
        ];
        check(1, &steps, &[]);
    }

    #[test]
    fn a_writer_waits_for_readers_and_later_readers_for_it() {
        use Do::*;
        let steps = [
            Enter(1, 1, 1, super::Enter::Granted),
            Enter(2, 2, 9, super::Enter::Queued),
            Enter(3, 3, 1, super::Enter::Queued),
            Try(3, 4, 1, super::Enter::Busy),
            Leave(1, 1, true),
            Leave(2, 2, true),
        ];
        check(9, &steps, &[(2, Fact::Granted), (3, Fact::Granted)]);
    }

    #[test]
    fn whoever_gives_up_lets_smaller_requests_pass() {
        use Do::*;
        let steps = [
            Enter(1, 1, 1, super::Enter::Granted),
            Enter(2, 2, 9, super::Enter::Queued),
            Enter(3, 3, 1, super::Enter::Queued),
            Cancel(2, 2, true),
            Cancel(3, 3, false),
        ];
        check(9, &steps, &[(3, Fact::Granted)]);
    }

    #[test]
    fn blocking_for_what_the_thread_itself_holds_is_refused() {
        use Do::*;
        check(1, &[Enter(1, 1, 1, super::Enter::Granted), Block(1, 2, 1, super::Enter::Own)], &[]);
        check(2, &[Enter(1, 1, 1, super::Enter::Granted), Block(1, 2, 2, super::Enter::Own)], &[]);
        // A reader behind a writer that waits for that same reader's thread.
        let steps = [
            Enter(1, 1, 1, super::Enter::Granted),
            Enter(2, 2, 9, super::Enter::Queued),
            Block(1, 3, 1, super::Enter::Own),
        ];
        check(9, &steps, &[]);
        // Behind a request of the same thread, which is told by mail and so never runs.
        for behind in [1, 9] {
            let steps = [
                Enter(1, 1, 1, super::Enter::Granted),
                Enter(2, 2, 9, super::Enter::Queued),
                Block(2, 3, behind, super::Enter::Own),
            ];
            check(9, &steps, &[]);
        }
        let steps = [
            Enter(1, 1, 4, super::Enter::Granted),
            Enter(2, 2, 2, super::Enter::Queued),
            Enter(3, 3, 3, super::Enter::Queued),
            Block(2, 4, 1, super::Enter::Own),
        ];
        check(4, &steps, &[]);
        // There is room beside it: worth waiting for, and so is a line of others alone.
        let steps = [
            Enter(1, 1, 4, super::Enter::Granted),
            Enter(2, 2, 2, super::Enter::Queued),
            Enter(3, 3, 2, super::Enter::Queued),
            Block(2, 4, 2, super::Enter::Queued),
            Leave(1, 1, true),
            Leave(3, 3, true),
        ];
        check(4, &steps, &[(2, Fact::Granted), (3, Fact::Granted), (4, Fact::Granted)]);
        // Another thread's permit is worth waiting for.
        let steps = [
            Enter(1, 1, 1, super::Enter::Granted),
            Enter(2, 2, 1, super::Enter::Granted),
            Block(1, 3, 1, super::Enter::Queued),
            Leave(2, 2, true),
        ];
        check(2, &steps, &[(3, Fact::Granted)]);
    }
}
