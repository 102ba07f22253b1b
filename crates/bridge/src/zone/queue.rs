//! The accepted tasks of a zone, in order.
//!
//! It is guarded by the zone's lock, which guards the links of its tasks too. Tasks are kept in lanes, one
//! for each depth (how many tasks wait for this one, each for the next), so that a worker at capacity
//! finds the oldest task that is deeper than those it runs. Without regard to depth the order is that in
//! which tasks came.

use super::{State, Task};
use crate::mailbox::Mailbox;

/// Empty lanes that are kept, since the next task is likely to have the depth of one before.
const LANES_KEPT: usize = 4;

/// The tasks of a zone that wait, by depth.
#[derive(Default)]
pub(crate) struct Queue {
    /// Tasks of depth 0, which nobody waits for who holds a links.
    outer: Lane,
    /// Those of the other depths, in no order.
    deeper: Vec<Lane>,
    /// Tasks in `deeper`: mostly none, and the queue is its outer lane.
    deeper_count: usize,
    /// Tasks that came so far.
    pushed: u64,
}

/// Tasks of one depth in order, linked with each other: any one can be taken out in one step.
#[derive(Default)]
struct Lane {
    depth: u32,
    first: Option<&'static Task>,
    last: Option<&'static Task>,
}

impl Lane {
    #[inline]
    fn push(&mut self, task: &'static Task, order: u64) {
        let last = self.last.replace(task);
        // SAFETY: the queue is reached only through the zone's lock (`&mut self` proves it is held).
        unsafe {
            task.links(|links| {
                links.previous = last;
                links.next = None;
                links.depth = self.depth;
                links.order = order;
            });
            match last {
                Some(last) => last.links(|links| links.next = Some(task)),
                None => self.first = Some(task),
            }
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<&'static Task> {
        let task = self.first?;
        // SAFETY: as in push.
        unsafe {
            self.first = task.links(|links| links.next.take());
            match self.first {
                Some(next) => next.links(|links| links.previous = None),
                None => self.last = None,
            }
        }
        Some(task)
    }

    fn remove(&mut self, task: &'static Task) {
        // SAFETY: as in push.
        unsafe {
            let (previous, next) = task.links(|links| (links.previous.take(), links.next.take()));
            match previous {
                Some(previous) => previous.links(|links| links.next = next),
                None => self.first = next,
            }
            match next {
                Some(next) => next.links(|links| links.previous = previous),
                None => self.last = previous,
            }
        }
    }
}

impl Queue {
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.outer.first.is_none() && self.deeper_count == 0
    }

    /// The oldest, which stays.
    pub(crate) fn first(&self) -> Option<&'static Task> {
        self.first_from(0)
    }

    /// The oldest of those at least so deep, which stays.
    fn first_from(&self, least: u32) -> Option<&'static Task> {
        let outer = self.outer.first.filter(|_| least == 0);
        let deeper = self.deeper.iter().filter(|lane| lane.depth >= least).filter_map(|lane| lane.first);
        // SAFETY: as in push.
        outer.into_iter().chain(deeper).min_by_key(|task| unsafe { task.links(|links| links.order) })
    }

    /// All that `caller` has submitted.
    pub(crate) fn tasks_of(&self, caller: &'static Mailbox) -> Vec<&'static Task> {
        let firsts = std::iter::once(self.outer.first).chain(self.deeper.iter().map(|lane| lane.first));
        // SAFETY: as in push.
        let next = |task: &&'static Task| unsafe { task.links(|links| links.next) };
        let all = firsts.flat_map(|first| std::iter::successors(first, next));
        all.filter(|task| std::ptr::eq(task.caller, caller)).collect()
    }

    /// The greatest depth of a task.
    pub(crate) fn deepest(&self) -> u32 {
        self.deeper.iter().filter(|lane| lane.first.is_some()).map(|lane| lane.depth).max().unwrap_or(0)
    }

    /// Append a task of that depth. The zone's lock is held.
    #[inline]
    pub(crate) fn push(&mut self, task: &'static Task, depth: u32) {
        task.set_state(State::Queued);
        let order = self.pushed;
        self.pushed += 1;
        if depth == 0 {
            return self.outer.push(task, order);
        }
        self.deeper_count += 1;
        self.lane(depth).push(task, order);
    }

    /// Take the oldest of those at least so deep.
    #[inline]
    pub(crate) fn pop_from(&mut self, least: u32) -> Option<&'static Task> {
        if least == 0 && self.deeper_count == 0 {
            let task = self.outer.pop()?;
            task.set_state(State::Accepted);
            return Some(task);
        }
        self.pop_deeper(least)
    }

    #[cold]
    fn pop_deeper(&mut self, least: u32) -> Option<&'static Task> {
        let task = self.first_from(least)?;
        self.remove(task);
        Some(task)
    }

    /// Take out `task`, which is in this queue.
    pub(crate) fn remove(&mut self, task: &'static Task) {
        debug_assert_eq!(task.state(), State::Queued);
        task.set_state(State::Accepted);
        // SAFETY: as in push.
        let depth = unsafe { task.links(|links| links.depth) };
        if depth == 0 {
            return self.outer.remove(task);
        }
        self.deeper_count -= 1;
        self.lane(depth).remove(task);
        if self.deeper.len() > LANES_KEPT {
            self.deeper.retain(|lane| lane.first.is_some());
        }
    }

    #[cold]
    fn lane(&mut self, depth: u32) -> &mut Lane {
        let found = self.deeper.iter().position(|lane| lane.depth == depth);
        let index = found.unwrap_or_else(|| {
            self.deeper.push(Lane { depth, ..Lane::default() });
            self.deeper.len() - 1
        });
        &mut self.deeper[index]
    }
}
