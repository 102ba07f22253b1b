//! The deque of one worker: it pushes and pops at the young end, others steal at the old one.
//!
//! crossbeam's Chase-Lev deque (Chase and Lev: Dynamic circular work-stealing deque, 2005; Lê and others:
//! Correct and efficient work-stealing for weak memory models, 2013). Under loom and Miri, which cannot
//! follow its memory reclamation, a locked queue replaces it: there the protocol around the deque is
//! explored, not the deque.

use crate::task::Task;

/// The result of an attempt to steal.
pub(crate) enum Stolen {
    /// The oldest task.
    Task(&'static Task),
    Empty,
    /// Another thread was quicker.
    Retry,
}

#[cfg(not(any(loom, miri)))]
mod real {
    use super::{Stolen, Task};
    use crossbeam_deque::{Steal, Stealer, Worker};

    /// The worker's end; only its thread uses it.
    pub(crate) struct Own(Worker<&'static Task>);
    /// The end of all others. Tasks stay as long as either end is there.
    pub(crate) struct Others(Stealer<&'static Task>);

    pub(crate) fn make() -> (Own, Others) {
        let own = Worker::new_lifo();
        let others = Others(own.stealer());
        (Own(own), others)
    }

    impl Own {
        /// Add the youngest. Sequentially consistent: the caller looks at who sleeps next.
        #[inline]
        pub(crate) fn push(&self, task: &'static Task) {
            self.0.push(task);
            // Pairs with the fence in `is_empty`: either the pusher sees the sleeper or the sleeper the task.
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        }

        #[inline]
        pub(crate) fn pop(&self) -> Option<&'static Task> {
            self.0.pop()
        }
    }

    impl Others {
        pub(crate) fn steal(&self) -> Stolen {
            match self.0.steal() {
                Steal::Success(task) => Stolen::Task(task),
                Steal::Empty => Stolen::Empty,
                Steal::Retry => Stolen::Retry,
            }
        }

        /// Whether the deque is empty: the second check of a worker that is about to sleep.
        pub(crate) fn is_empty(&self) -> bool {
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            self.0.is_empty()
        }

        /// Approximate number of tasks, for statistics.
        pub(crate) fn len(&self) -> usize {
            self.0.len()
        }
    }
}

#[cfg(any(loom, miri))]
mod locked {
    use super::{Stolen, Task};
    use crate::sync::{Mutex, lock, model_fence};
    use std::{collections::VecDeque, sync::Arc};

    pub(crate) struct Own(Arc<Mutex<VecDeque<&'static Task>>>);
    pub(crate) struct Others(Arc<Mutex<VecDeque<&'static Task>>>);

    pub(crate) fn make() -> (Own, Others) {
        let tasks = Arc::new(Mutex::new(VecDeque::new()));
        (Own(Arc::clone(&tasks)), Others(tasks))
    }

    impl Own {
        pub(crate) fn push(&self, task: &'static Task) {
            lock(&self.0).push_back(task);
            model_fence();
        }

        pub(crate) fn pop(&self) -> Option<&'static Task> {
            lock(&self.0).pop_back()
        }
    }

    impl Others {
        pub(crate) fn steal(&self) -> Stolen {
            lock(&self.0).pop_front().map_or(Stolen::Empty, Stolen::Task)
        }

        pub(crate) fn is_empty(&self) -> bool {
            model_fence();
            lock(&self.0).is_empty()
        }

        pub(crate) fn len(&self) -> usize {
            lock(&self.0).len()
        }
    }
}

#[cfg(any(loom, miri))]
pub(crate) use locked::{Others, Own, make};
#[cfg(not(any(loom, miri)))]
pub(crate) use real::{Others, Own, make};
