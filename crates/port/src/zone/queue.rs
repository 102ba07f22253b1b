//! The accepted tasks of a zone, in order.
//!
//! It lives under the zone's lock, which guards the links of its tasks too.

use super::{Stage, Task};

/// The accepted tasks of a zone in order, linked through their places: any one can be taken out in one step.
#[derive(Default)]
pub(crate) struct Queue {
    first: Option<&'static Task>,
    last: Option<&'static Task>,
}

impl Queue {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The oldest, which stays.
    pub(crate) const fn first(&self) -> Option<&'static Task> {
        self.first
    }

    /// Append. The zone's lock is held, since the queue lives under it.
    pub(crate) fn push(&mut self, task: &'static Task) {
        let last = self.last.replace(task);
        // SAFETY: the queue is reached only through the zone's lock (`&mut self` proves it is held).
        unsafe {
            task.place(|place| {
                place.previous = last;
                place.next = None;
            });
            task.set_stage(Stage::Queued);
            match last {
                Some(last) => last.place(|place| place.next = Some(task)),
                None => self.first = Some(task),
            }
        }
    }

    /// Take the oldest.
    pub(crate) fn pop(&mut self) -> Option<&'static Task> {
        let task = self.first?;
        self.remove(task);
        Some(task)
    }

    /// Take out `task`, which is in this queue.
    pub(crate) fn remove(&mut self, task: &'static Task) {
        // SAFETY: as in push.
        unsafe {
            debug_assert_eq!(task.stage(), Stage::Queued);
            task.set_stage(Stage::Accepted);
            let (previous, next) = task.place(|place| (place.previous.take(), place.next.take()));
            match previous {
                Some(previous) => previous.place(|place| place.next = next),
                None => self.first = next,
            }
            match next {
                Some(next) => next.place(|place| place.previous = previous),
                None => self.last = previous,
            }
        }
    }
}
