//! Tasks that tasks fork: deques, stealing, and joins that help instead of blocking.
//!
//! A worker pushes what its tasks fork on its own deque and takes from the young end, so that related work
//! stays together; a worker with nothing to do steals from the old end of another, where the large pieces are
//! (Frigo, Leiserson, Randall: The implementation of the Cilk-5 multithreaded language, 1998; Rayon's `join`
//! is the model of `help`). What is stolen has not started. Stealing is bounded: one task at a time, by
//! workers that were woken one after another.

use super::{
    CONDEMNED, Refusal, Sleeper, State, Status, Submission, Task, Zone, clock, counted_in, lock, model_fence,
    settle, worker::Worker,
};
use crate::{
    deque::{Own, Stolen},
    receiver::Receiver,
    sync::Ordering,
};

/// Attempts at one victim that others were quicker at.
const RETRIES_MAX: u32 = 4;

/// So many tasks, or as many as may wait, are begun where all that runs waits in vain.
const STALLED_MAX: usize = 64;

/// What one who waits for a joined call does next.
pub enum Help {
    /// Run the call itself: nobody has started it, and its task is idle here.
    Mine,
    /// It has ended; its task has returned, to be read and put away.
    Done,
    /// Run this task meanwhile, then `complete` the token.
    Task {
        task: &'static Task,
        /// Its number among the worker's running tasks.
        token: u32,
        /// Its number among all that the zone has started.
        serial: u32,
    },
    /// Wait.
    Nothing,
}

impl Worker {
    /// Accept a task from one that runs here, for whichever zone. This worker may begin one more task until
    /// it returns: what is waited for may have to run here, also through another zone.
    ///
    /// Without an order, a task of this zone and of this worker's own mailbox is forked: it goes on the deque
    /// and can be joined. A closing zone still accepts what its own tasks need.
    /// Refused: nothing was queued and the caller still holds the task.
    pub fn submit(&mut self, zone: &Zone, submission: Submission) -> Result<(), Refusal> {
        let is_own = std::ptr::eq(zone, &*self.zone);
        let ends = if is_own { zone.finished.load(Ordering::SeqCst) } else { zone.is_closing() };
        if ends {
            return Err(Refusal::Closed);
        }
        let forks =
            is_own && submission.order.is_none() && std::ptr::eq(submission.task.caller, self.mailbox);
        match &self.own {
            Some(own) if forks => zone.fork(own, submission)?,
            _ => zone.accept(submission, true)?,
        }
        self.calls += 1;
        Ok(())
    }

    /// A task that runs here is about to wait for `task`, idle here, which this thread hands to a zone for
    /// another purpose than to be run: like a call it allows one more task until it returns.
    pub fn wait_for(&mut self, task: &'static Task) {
        self.calls += 1;
        // SAFETY: it is idle, and this thread is its caller.
        unsafe { task.body(|body| body.from_worker = true) };
    }

    /// Take `wait_for` back: the task did not leave.
    pub fn unwait(&mut self, task: &'static Task) {
        self.call_returned();
        // SAFETY: as above.
        unsafe { task.body(|body| body.from_worker = false) };
    }

    /// A task that a task of this worker called has returned.
    pub const fn call_returned(&mut self) {
        self.calls = self.calls.saturating_sub(1);
    }

    /// The depth of a call from code of this worker that belongs to none of its tasks, or it is unknown to
    /// which: deeper than all of them.
    pub fn depth_of_stray(&self) -> u32 {
        self.depths().into_iter().max().map_or(0, |deepest| deepest.saturating_add(1))
    }

    /// So many of the tasks that run here wait for the other end of a stream. Like a call, each allows one
    /// more task.
    pub fn set_waits(&mut self, waits: usize) {
        self.waits = waits;
        self.floor.set(None);
    }

    /// Whether all that run here wait for streams, and one more would not be too many. Calls do not count:
    /// one task may have many, and what they wait for is deeper.
    pub fn may_stall(&self) -> bool {
        let more = self.zone.limits.waiting_per_worker_max.max(STALLED_MAX);
        self.running_count() <= self.waits.min(self.zone.limits.tasks_per_worker_max + more - 1)
    }

    /// Nothing of these streams has come for long: one more task may begin, whatever its depth. Those that
    /// run here may wait for it in an order that depths do not show.
    pub fn begin_any(&self) {
        self.floor.set(Some(0));
    }

    /// How many do.
    pub const fn waits(&self) -> usize {
        self.waits
    }

    /// What tasks that run here wait for: calls, and the other ends of streams. A task may have several, so
    /// that these are never fewer than the tasks that wait: a broadcast which waited for one of those might
    /// hold up what that one waits for. What a process has sent may be late.
    pub(super) fn awaited(&self) -> usize {
        self.calls + self.waits.min(self.running_count())
    }

    /// A worker that is retired or alone is full, so it begins only tasks that are deeper than those it runs.
    pub(super) fn capacity(&self) -> usize {
        let limits = &self.zone.limits;
        let waiting = self.awaited().min(limits.waiting_per_worker_max);
        let most = limits.tasks_per_worker_max + waiting + self.passed;
        if self.slot.is_closed() { 0 } else { most }
    }

    pub(super) fn may_begin_any(&self) -> bool {
        self.floor.get() == Some(0) && !self.is_condemned()
    }

    /// What to do for a thread that waits for `task`, which it has joined and forked. With `steals`, others'
    /// forked tasks too. Tasks whose functions are not `known` here, so that running them would need the
    /// thread's loop, go to the zone's queue instead.
    pub fn help(&mut self, task: &'static Task, steals: bool, known: impl Fn(u32) -> bool) -> Help {
        if task.has_arrived() {
            return Help::Done;
        }
        if self.is_condemned() {
            return Help::Nothing;
        }
        if let Some(own) = &self.own {
            while let Some(popped) = own.pop() {
                if std::ptr::eq(popped, task) {
                    // Only its caller, which is here, could have cancelled it.
                    let ours = task.leave_deque(State::Accepted);
                    debug_assert!(ours);
                    self.zone.stopped_waiting(task);
                    return Help::Mine;
                }
                if let Some(next) = self.begin_forked(popped, &known) {
                    return next;
                }
            }
        }
        // Nothing of others beside an exclusive task.
        let steals = steals && !self.slot.is_alone();
        if steals && let Some(next) = self.steal().and_then(|task| self.begin_forked(task, &known)) {
            return next;
        }
        if self.take_back(task) {
            return Help::Mine;
        }
        if task.has_arrived() { Help::Done } else { Help::Nothing }
    }

    /// Take a joined task out of the zone's queue, if a worker that does not have its function has put it
    /// there.
    fn take_back(&self, task: &'static Task) -> bool {
        if !matches!(task.state(), State::Accepted | State::Queued) {
            return false;
        }
        {
            let mut inner = lock(&self.zone.inner);
            self.zone.absorb(&mut inner);
            if task.state() != State::Queued {
                return false;
            }
            self.zone.withdraw(&mut inner, task);
        }
        self.zone.stopped_waiting(task);
        true
    }

    fn begin_forked(&self, task: &'static Task, known: &impl Fn(u32) -> bool) -> Option<Help> {
        // SAFETY: this thread has just taken it out of a deque.
        if !known(unsafe { task.body(|body| body.function) }) {
            self.zone.hand_on(task);
            return None;
        }
        let slot = &*self.slot;
        let mut held = lock(&slot.held);
        if self.is_condemned() {
            drop(held);
            if let Some(own) = &self.own {
                own.push(task);
            }
            self.zone.wake_another(true);
            return Some(Help::Nothing);
        }
        let serial = self.zone.next_serial();
        if !task.leave_deque(State::Running { slot: slot.number, serial }) {
            drop(held);
            self.zone.skip(task);
            return None;
        }
        let token = self.hold(&mut held, task, serial, false);
        drop(held);
        self.may_be_spent();
        self.zone.stopped_waiting(task);
        Some(Help::Task { task, token, serial })
    }

    /// The youngest forked task of this worker.
    pub(super) fn pop_own(&self) -> Option<&'static Task> {
        self.own.as_ref()?.pop()
    }

    /// The oldest forked task of another worker. Victims are looked at in turn, from another one each time.
    pub(super) fn steal(&self) -> Option<&'static Task> {
        // Relaxed: a hint.
        if self.zone.waiting.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let inner = lock(&self.zone.inner);
        let count = inner.slots.len();
        self.victim.set(self.victim.get().wrapping_add(1));
        for index in 0..count {
            let Some(slot) = &inner.slots[(self.victim.get() as usize + index) % count] else { continue };
            if slot.number == self.slot.number {
                continue;
            }
            let Some(others) = &slot.others else { continue };
            for _ in 0..RETRIES_MAX {
                match others.steal() {
                    Stolen::Task(task) => {
                        self.slot.stolen.fetch_add(1, Ordering::Relaxed);
                        return Some(task);
                    }
                    Stolen::Empty => break,
                    Stolen::Retry => std::hint::spin_loop(),
                }
            }
        }
        None
    }

    /// Declare this thread, which waits for `task`, asleep until that returns or somebody forks. Returns
    /// false, and it must not sleep, when there is something to do. After sleep: `wake_up` of both.
    pub fn try_sleep_until(&mut self, receiver: &mut Receiver, task: &'static Task) -> bool {
        // The mailbox first, as in try_sleep.
        if !receiver.try_sleep_until(task) {
            return false;
        }
        let zone = &*self.zone;
        let found = {
            let mut inner = lock(&zone.inner);
            let sleeper = Sleeper {
                slot: self.slot.number,
                mailbox: self.mailbox,
                helps_only: true,
                since: clock::ticks(),
            };
            inner.sleepers.insert(0, sleeper);
            zone.sleeping.store(inner.sleepers.len() as u32, Ordering::SeqCst);
            model_fence();
            // SeqCst: the second look, as in register.
            let found = zone.has_forked(&inner);
            if found {
                zone.unregister(&mut inner, &self.slot);
            }
            found
        };
        if found {
            receiver.wake_up();
        }
        !found
    }

    /// Whether this worker is to begin nothing more: it is being replaced.
    pub fn is_condemned(&self) -> bool {
        self.running_count() >= CONDEMNED
    }

    /// What the deque still has goes to the zone's queue, oldest first: this thread ends.
    pub(super) fn return_deque(&mut self) {
        let Some(own) = self.own.take() else { return };
        let mut skipped = Vec::new();
        {
            // All under the lock: who cancels one of them finds it in one or the other.
            let mut inner = lock(&self.zone.inner);
            let mut kept = Vec::new();
            while let Some(task) = own.pop() {
                if task.leave_deque(State::Accepted) { kept.push(task) } else { skipped.push(task) }
            }
            for task in kept.into_iter().rev() {
                self.zone.enqueue(&mut inner, task);
            }
        }
        for task in skipped {
            self.zone.skip(task);
        }
        if self.zone.finished.load(Ordering::SeqCst) {
            self.zone.refuse_waiting(Status::Closed, &[]);
        }
    }
}

impl Zone {
    /// Accept a task on the deque of the worker that runs here.
    fn fork(&self, own: &Own, submission: Submission) -> Result<(), Refusal> {
        let Submission { task, .. } = submission;
        let counted = self.admit(submission)?;
        let depth = counted_in(task, counted, true);
        task.set_state(State::Local);
        own.push(task);
        // SeqCst: after the push, see finish.
        if self.finished.load(Ordering::SeqCst) {
            self.refuse_waiting(Status::Closed, &[]);
        } else {
            self.wake_one(true, depth);
        }
        Ok(())
    }

    /// The number of the next task to start.
    pub(super) fn next_serial(&self) -> u32 {
        // Relaxed: only its being different counts.
        self.serial.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Put a task that was taken out of a deque on the queue, unless it was cancelled.
    pub(super) fn hand_on(&self, task: &'static Task) {
        {
            // Both under the lock: who cancels it finds it in one or the other.
            let mut inner = lock(&self.inner);
            self.absorb(&mut inner);
            if !task.leave_deque(State::Accepted) {
                drop(inner);
                return self.skip(task);
            }
            self.enqueue(&mut inner, task);
        }
        // SeqCst: after the push, see finish.
        if self.finished.load(Ordering::SeqCst) {
            return self.refuse_waiting(Status::Closed, &[]);
        }
        self.wake_another(false);
    }

    /// Return a task that was cancelled while it lay in a deque. This thread has taken it out.
    pub(super) fn skip(&self, task: &'static Task) {
        self.withdrawn(task);
        // SAFETY: taking it out made this thread the holder.
        unsafe { settle(task, Status::Closed, &[]) };
    }
}
