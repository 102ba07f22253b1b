//! The tasks of one line: first come, first served.
//!
//! They are kept in lanes, one for each depth (how many tasks wait for this one, each for the next), so that
//! a worker at capacity finds the oldest task that is deeper than those it runs. Without regard to depth the
//! order is that in which tasks came.

use super::super::Task;

/// Empty lanes that are kept, since the next task is likely to have the depth of one before.
const LANES_KEPT: usize = 4;

/// The tasks of one line, by depth.
#[derive(Default)]
pub(super) struct Flow {
    /// Tasks of depth 0, which nobody waits for who holds a links.
    pub(super) outer: Lane,
    /// Those of the other depths, in no order.
    deeper: Vec<Lane>,
    /// Tasks in `deeper`: mostly none, and the line is its outer lane.
    deeper_count: usize,
}

/// Tasks of one depth in order, linked with each other: any one can be taken out in one step.
#[derive(Default)]
pub(super) struct Lane {
    depth: u32,
    pub(super) first: Option<&'static Task>,
    last: Option<&'static Task>,
}

impl Lane {
    #[inline]
    pub(super) fn push(&mut self, task: &'static Task, order: u64) {
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
    pub(super) fn pop(&mut self) -> Option<&'static Task> {
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

impl Flow {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.outer.first.is_none() && self.deeper_count == 0
    }

    /// Whether it has a task at least so deep.
    pub(super) fn has(&self, least: u32) -> bool {
        if least == 0 { !self.is_empty() } else { self.deeper_count > 0 && self.deepest() >= least }
    }

    /// The oldest of those at least so deep, which stays.
    pub(super) fn first_from(&self, least: u32) -> Option<&'static Task> {
        let outer = self.outer.first.filter(|_| least == 0);
        let deeper = self.deeper.iter().filter(|lane| lane.depth >= least).filter_map(|lane| lane.first);
        outer.into_iter().chain(deeper).min_by_key(|task| order_of(task))
    }

    /// All of them, in no order.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &'static Task> {
        let firsts = std::iter::once(self.outer.first).chain(self.deeper.iter().map(|lane| lane.first));
        // SAFETY: as in push.
        let next = |task: &&'static Task| unsafe { task.links(|links| links.next) };
        firsts.flat_map(move |first| std::iter::successors(first, next))
    }

    pub(super) fn deepest(&self) -> u32 {
        self.deeper.iter().filter(|lane| lane.first.is_some()).map(|lane| lane.depth).max().unwrap_or(0)
    }

    /// Append a task of that depth, the youngest.
    pub(super) fn push(&mut self, task: &'static Task, depth: u32, order: u64) {
        if depth == 0 {
            return self.outer.push(task, order);
        }
        self.deeper_count += 1;
        self.lane(depth).push(task, order);
    }

    /// Take the oldest of those at least so deep.
    pub(super) fn pop_from(&mut self, least: u32) -> Option<&'static Task> {
        let task = self.first_from(least)?;
        self.remove(task);
        Some(task)
    }

    /// Take out `task`, which is in it.
    pub(super) fn remove(&mut self, task: &'static Task) {
        let depth = depth_of(task);
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

/// When a task of the queue came.
pub(super) fn order_of(task: &'static Task) -> u64 {
    // SAFETY: it is in the queue, which is reached only through the zone's lock.
    unsafe { task.links(|links| links.order) }
}

pub(super) fn depth_of(task: &'static Task) -> u32 {
    // SAFETY: as above.
    unsafe { task.links(|links| links.depth) }
}
