//! When a thread polls, sleeps and wakes: the prepare and check steps of its event loop.
//!
//! The prepare step passes everything that has arrived to JavaScript in one call. If nothing has arrived and
//! polling has been paying, the thread polls for some microseconds; then it declares itself asleep and the
//! loop waits.

use std::time::Duration;

use super::Bridge;
use crate::{Rounds, Spin, Steps, Worker, cores, priority, registry, ticker::Background};

/// A brief poll: about the time of one turn of the event loop, or of a caller until its next call.
const BRIEF: Duration = Duration::from_micros(4);

/// The prepare step's next action.
#[derive(Debug, Eq, PartialEq)]
enum Next {
    /// Pass what has arrived to JavaScript.
    Call,
    /// Check again.
    Again,
    /// Let the loop have a turn without waiting.
    ComeBack,
    Wait,
}

impl Bridge {
    /// Work before the loop waits. `drain` calls JavaScript; false: the environment can no longer run it.
    ///
    /// # Safety
    ///
    /// On the thread of `bridge`, to which no reference is alive; `drain` and what it calls create others.
    pub unsafe fn before_wait(bridge: *mut Self, mut drain: impl FnMut() -> bool) {
        let mut rounds = Rounds::default();
        loop {
            // SAFETY: the reference ends with this statement, before JavaScript is called.
            let next = unsafe { (*bridge).next_before_wait(&mut rounds) };
            let come_back = match next {
                Next::Call => {
                    rounds.add();
                    // SAFETY: as above.
                    unsafe { (*bridge).steps = Steps::default() };
                    if drain() {
                        continue;
                    }
                    false
                }
                Next::Again => {
                    if rounds.add() {
                        continue;
                    }
                    true
                }
                Next::ComeBack => true,
                Next::Wait => false,
            };
            // SAFETY: as above.
            let bridge = unsafe { &mut *bridge };
            if come_back != bridge.idling {
                bridge.idling = come_back;
                bridge.event_loop.do_not_wait(come_back);
            }
            return;
        }
    }

    /// Do one step before the loop waits; returns what to do next.
    #[inline]
    fn next_before_wait(&mut self, rounds: &mut Rounds) -> Next {
        self.receiver.set_blocked(false);
        if self.has_work() {
            // JavaScript handles the arrivals first, which may take long, so another worker may be woken.
            if let Some(worker) = self.worker.as_ref().filter(|_| self.receiver.has_arrivals()) {
                worker.pass_on();
            }
            return if rounds.are_over() { Next::ComeBack } else { Next::Call };
        }
        if self.look() {
            return Next::Again;
        }
        self.active = false;
        if self.try_sleep() { Next::Wait } else { Next::Again }
    }

    /// Whether there is anything for JavaScript to do.
    #[inline]
    fn has_work(&self) -> bool {
        self.receiver.has_arrivals() || (!self.leaving && self.worker.as_ref().is_some_and(Worker::has_work))
    }

    /// Move to a free core, if there is one and another awake mailbox's thread runs on this one.
    fn seek_own_core(&mut self) {
        let core = cores::current();
        if self.receiver.runs_on(core) > 1
            && self.step_aside.leave(core, |core| registry::machine().awake_on(core) == 0)
        {
            self.receiver.runs_on(cores::current());
        }
    }

    /// Whether this thread polls before it sleeps, at least briefly.
    #[inline]
    pub(super) fn looks(&self) -> bool {
        !self.spin.is_off() && registry::machine().has_cores()
    }

    /// Poll for work, for long only if that has been paying and a core is free. Returns whether there is any.
    #[inline]
    pub(super) fn look(&mut self) -> bool {
        if !self.active || !self.looks() {
            return false;
        }
        // Polling on the core that the sender needs keeps the sender from running.
        self.seek_own_core();
        if let Some(worker) = self.worker.as_mut().filter(|_| !self.leaving) {
            worker.begin_search();
        }
        let (receiver, worker, leaving) = (&self.receiver, self.worker.as_ref(), self.leaving);
        let has_come = || receiver.has_arrivals() || (!leaving && worker.is_some_and(Worker::has_work));
        // Briefly even if it has not been paying or other threads occupy the cores: a caller that has just
        // received a result calls again within this time, and would otherwise wake one more worker.
        let mut found =
            (registry::machine().may_spin() && self.spin.wait(has_come)) || Spin::once(BRIEF, has_come);
        if let Some(worker) = self.worker.as_mut() {
            worker.end_search();
            // Work that arrived just before the end of the search has woken no worker.
            found |= !leaving && worker.has_work();
        }
        if found {
            self.step_aside.paid();
        }
        // One poll per burst: after one that finds nothing the thread sleeps.
        self.active = found;
        found
    }

    /// Poll briefly for a result while JavaScript's microtasks still run; false if this thread does not poll.
    /// Threads that share one core do not: a turn of the loop lets the others run instead.
    #[inline]
    pub(super) fn poll_briefly(&mut self) -> bool {
        if !self.looks() {
            return false;
        }
        if !self.receiver.has_arrivals() {
            self.seek_own_core();
            let receiver = &self.receiver;
            Spin::once(BRIEF, || receiver.has_arrivals());
        }
        true
    }

    /// Declare the thread asleep; false if something has arrived.
    fn try_sleep(&mut self) -> bool {
        let leaving = self.leaving;
        self.asleep = match self.worker.as_mut().filter(|_| !leaving) {
            Some(worker) => worker.try_sleep(&mut self.receiver),
            None => self.receiver.try_sleep(),
        };
        if self.asleep
            && let Some(background) = self.background.as_mut()
        {
            background.set_awake(false);
        }
        self.asleep
    }

    /// Raise the thread's `nice` value by `steps`, so that other threads run first.
    pub fn renice(&mut self, steps: i32) {
        self.background.get_or_insert_with(Background::begin);
        priority::renice(steps);
    }

    /// Mark the thread as awake, whatever woke it. Callbacks of I/O run before the loop's check step, so code
    /// that takes work also calls this: a worker that runs a task must not be listed as asleep.
    #[inline]
    pub fn wake_up(&mut self) {
        if self.asleep {
            self.asleep = false;
            if let Some(worker) = self.worker.as_mut() {
                worker.wake_up();
            }
            self.receiver.wake_up();
            if let Some(background) = self.background.as_mut() {
                background.set_awake(true);
            }
            // The scheduler often puts a woken worker on the core of the thread that woke it and still runs.
            if self.worker.is_some() && !self.spin.is_off() && registry::machine().may_spin() {
                self.seek_own_core();
            }
        }
    }
}
