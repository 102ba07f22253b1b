//! A fair semaphore: permits are granted in the order of the requests.
//!
//! A lock has one permit. Of a read-write lock readers take one permit and writers all of them. A request
//! queues behind those that already wait, so neither readers nor writers starve. When a thread ends, its
//! permits are released, and the next holder learns that they were abandoned. A thread is woken behind the
//! lock, which it takes again when it releases.

use std::collections::VecDeque;

pub use crate::layout::Acquire;
use crate::{
    lock::Mutex,
    notify::{Call, Fact, Woken},
};

#[derive(Clone, Copy, Debug)]
struct Held {
    thread: u32,
    ticket: u32,
    amount: u32,
}

struct State {
    free: u32,
    abandoned: bool,
    held: Vec<Held>,
    queue: VecDeque<(Call, u32)>,
}

/// A lock, a read-write lock or a semaphore.
pub struct Semaphore {
    permits: u32,
    state: Mutex<State>,
}

impl Semaphore {
    /// A semaphore of `permits`, all of them free.
    pub fn new(permits: u32) -> Self {
        let state = State { free: permits, abandoned: false, held: Vec::new(), queue: VecDeque::new() };
        Self { permits, state: Mutex::new(state) }
    }

    /// How many permits there are.
    pub const fn permits(&self) -> u32 {
        self.permits
    }

    /// Takes `amount` permits now, or none.
    #[inline]
    pub fn try_acquire(&self, thread: u32, ticket: u32, amount: u32) -> Acquire {
        let mut state = self.state.lock();
        if state.queue.is_empty() && state.free >= amount {
            return state.grant(Held { thread, ticket, amount });
        }
        Acquire::Busy
    }

    /// Takes `amount` permits, now or later. With `blocks` the thread does nothing else meanwhile, so a
    /// request that would wait for the thread itself is refused.
    pub fn acquire(&self, call: Call, amount: u32, blocks: bool) -> Acquire {
        let mut state = self.state.lock();
        if state.queue.is_empty() && state.free >= amount {
            return state.grant(Held { thread: call.thread, ticket: call.ticket, amount });
        }
        if blocks && state.would_wait_for_itself(call.thread, amount, self.permits) {
            return Acquire::Own;
        }
        state.queue.push_back((call, amount));
        Acquire::Queued
    }

    /// Releases the permits of that ticket; false if it held none.
    #[inline]
    pub fn release(&self, thread: u32, ticket: u32) -> bool {
        let mut woken = Woken::default();
        let mut state = self.state.lock();
        // Usually the last permits taken are the first released.
        let Some(index) = state.held.iter().rposition(|held| held.thread == thread && held.ticket == ticket)
        else {
            return false;
        };
        state.free += state.held.swap_remove(index).amount;
        if !state.queue.is_empty() {
            state.admit(&mut woken);
        }
        true
    }

    /// Cancels a waiting request; false if it does not wait, because it may have been granted.
    pub fn cancel(&self, thread: u32, ticket: u32) -> bool {
        let mut woken = Woken::default();
        let mut state = self.state.lock();
        let before = state.queue.len();
        state.queue.retain(|(call, _)| !call.is(thread, ticket));
        let found = state.queue.len() != before;
        // Smaller requests behind it can perhaps be granted.
        state.admit(&mut woken);
        found
    }

    pub fn thread_ended(&self, thread: u32) {
        let mut woken = Woken::default();
        let mut state = self.state.lock();
        state.queue.retain(|(call, _)| call.thread != thread);
        let held = std::mem::take(&mut state.held);
        for held in held {
            if held.thread == thread {
                state.free += held.amount;
                state.abandoned = true;
            } else {
                state.held.push(held);
            }
        }
        state.admit(&mut woken);
    }

    /// Free permits and waiting calls.
    pub fn counts(&self) -> (u32, usize) {
        let state = self.state.lock();
        (state.free, state.queue.len())
    }
}

impl State {
    #[inline]
    fn grant(&mut self, held: Held) -> Acquire {
        self.free -= held.amount;
        self.held.push(held);
        if std::mem::take(&mut self.abandoned) { Acquire::Abandoned } else { Acquire::Granted }
    }

    /// Grants requests in order as long as there are enough permits.
    fn admit(&mut self, woken: &mut Woken) {
        while let Some((_, amount)) = self.queue.front() {
            if *amount > self.free {
                return;
            }
            let Some((call, amount)) = self.queue.pop_front() else { return };
            let outcome = self.grant(Held { thread: call.thread, ticket: call.ticket, amount });
            woken.leave(call, if outcome == Acquire::Abandoned { Fact::Abandoned } else { Fact::Granted });
        }
    }

    /// Whether releasing what other threads hold would suffice; if not, the rest is the caller's own. An
    /// earlier request of the same thread counts as held: once granted, it ends only when the blocked thread
    /// runs.
    fn would_wait_for_itself(&self, thread: u32, amount: u32, permits: u32) -> bool {
        let of = |held: &Held| if held.thread == thread { u64::from(held.amount) } else { 0 };
        let mut own: u64 = self.held.iter().map(of).sum();
        let lacks = |requested: u32, own: u64| u64::from(requested) + own > u64::from(permits);
        for (call, requested) in &self.queue {
            if lacks(*requested, own) {
                return true;
            }
            if call.thread == thread {
                own += u64::from(*requested);
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
        fn leave(&self, ticket: u32, fact: Fact) {
            self.0.lock().unwrap().push((ticket, fact));
        }

        fn wake(&self) {}
    }

    /// What is done to a semaphore: thread, ticket, amount.
    enum Do {
        Try(u32, u32, u32, Acquire),
        Acquire(u32, u32, u32, Acquire),
        Block(u32, u32, u32, Acquire),
        Leave(u32, u32, bool),
        Cancel(u32, u32, bool),
        Ended(u32),
    }

    /// Runs the steps and compares the notifications.
    fn check(permits: u32, steps: &[Do], notified: &[(u32, Fact)]) {
        let semaphore = Semaphore::new(permits);
        let log = Arc::new(Log::default());
        let call = |thread, ticket| Call { thread, ticket, notify: log.clone() };
        for (index, step) in steps.iter().enumerate() {
            match *step {
                Do::Try(thread, ticket, n, requested) => {
                    assert_eq!(semaphore.try_acquire(thread, ticket, n), requested, "{index}")
                }
                Do::Acquire(thread, ticket, n, requested) => {
                    assert_eq!(semaphore.acquire(call(thread, ticket), n, false), requested, "{index}");
                }
                Do::Block(thread, ticket, n, requested) => {
                    assert_eq!(semaphore.acquire(call(thread, ticket), n, true), requested, "{index}");
                }
                Do::Leave(thread, ticket, requested) => {
                    assert_eq!(semaphore.release(thread, ticket), requested, "{index}")
                }
                Do::Cancel(thread, ticket, requested) => {
                    assert_eq!(semaphore.cancel(thread, ticket), requested, "{index}")
                }
                Do::Ended(thread) => semaphore.thread_ended(thread),
            }
        }
        assert_eq!(*log.0.lock().unwrap(), notified);
    }

    #[test]
    fn a_lock_is_passed_on_in_order() {
        use Do::*;
        let steps = [
            Acquire(1, 1, 1, super::Acquire::Granted),
            Acquire(2, 2, 1, super::Acquire::Queued),
            Acquire(3, 3, 1, super::Acquire::Queued),
            Leave(1, 1, true),
            Try(1, 4, 1, super::Acquire::Busy),
            Leave(2, 2, true),
            Leave(3, 3, true),
            Leave(3, 3, false),
        ];
        check(1, &steps, &[(2, Fact::Granted), (3, Fact::Granted)]);
    }

    #[test]
    fn a_holder_that_dies_releases_and_the_next_is_notified() {
        use Do::*;
        let steps =
            [Acquire(1, 1, 1, super::Acquire::Granted), Acquire(2, 2, 1, super::Acquire::Queued), Ended(1)];
        check(1, &steps, &[(2, Fact::Abandoned)]);
        let steps = [
            Acquire(1, 1, 1, super::Acquire::Granted),
            Ended(1),
            Try(2, 2, 1, super::Acquire::Abandoned),
            Leave(2, 2, true),
            Try(2, 3, 1, super::Acquire::Granted),
        ];
        check(1, &steps, &[]);
    }

    #[test]
    fn a_writer_waits_for_readers_and_later_readers_for_it() {
        use Do::*;
        let steps = [
            Acquire(1, 1, 1, super::Acquire::Granted),
            Acquire(2, 2, 9, super::Acquire::Queued),
            Acquire(3, 3, 1, super::Acquire::Queued),
            Try(3, 4, 1, super::Acquire::Busy),
            Leave(1, 1, true),
            Leave(2, 2, true),
        ];
        check(9, &steps, &[(2, Fact::Granted), (3, Fact::Granted)]);
    }

    #[test]
    fn whoever_gives_up_lets_smaller_requests_pass() {
        use Do::*;
        let steps = [
            Acquire(1, 1, 1, super::Acquire::Granted),
            Acquire(2, 2, 9, super::Acquire::Queued),
            Acquire(3, 3, 1, super::Acquire::Queued),
            Cancel(2, 2, true),
            Cancel(3, 3, false),
        ];
        check(9, &steps, &[(3, Fact::Granted)]);
    }

    #[test]
    fn blocking_for_what_the_thread_itself_holds_is_refused() {
        use Do::*;
        check(1, &[Acquire(1, 1, 1, super::Acquire::Granted), Block(1, 2, 1, super::Acquire::Own)], &[]);
        check(2, &[Acquire(1, 1, 1, super::Acquire::Granted), Block(1, 2, 2, super::Acquire::Own)], &[]);
        // A reader behind a writer that waits for that same reader's thread.
        let steps = [
            Acquire(1, 1, 1, super::Acquire::Granted),
            Acquire(2, 2, 9, super::Acquire::Queued),
            Block(1, 3, 1, super::Acquire::Own),
        ];
        check(9, &steps, &[]);
        // Behind a request of the same thread, which receives mail and so never runs.
        for behind in [1, 9] {
            let steps = [
                Acquire(1, 1, 1, super::Acquire::Granted),
                Acquire(2, 2, 9, super::Acquire::Queued),
                Block(2, 3, behind, super::Acquire::Own),
            ];
            check(9, &steps, &[]);
        }
        let steps = [
            Acquire(1, 1, 4, super::Acquire::Granted),
            Acquire(2, 2, 2, super::Acquire::Queued),
            Acquire(3, 3, 3, super::Acquire::Queued),
            Block(2, 4, 1, super::Acquire::Own),
        ];
        check(4, &steps, &[]);
        // There is room beside it: worth waiting for, and so is a line of others alone.
        let steps = [
            Acquire(1, 1, 4, super::Acquire::Granted),
            Acquire(2, 2, 2, super::Acquire::Queued),
            Acquire(3, 3, 2, super::Acquire::Queued),
            Block(2, 4, 2, super::Acquire::Queued),
            Leave(1, 1, true),
            Leave(3, 3, true),
        ];
        check(4, &steps, &[(2, Fact::Granted), (3, Fact::Granted), (4, Fact::Granted)]);
        // Another thread's permit is worth waiting for.
        let steps = [
            Acquire(1, 1, 1, super::Acquire::Granted),
            Acquire(2, 2, 1, super::Acquire::Granted),
            Block(1, 3, 1, super::Acquire::Queued),
            Leave(2, 2, true),
        ];
        check(2, &steps, &[(3, Fact::Granted)]);
    }
}
