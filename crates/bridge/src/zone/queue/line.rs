//! Who is next: three priorities, and in each of them tenants that take turns.
//!
//! A task of a higher priority goes first, but one of each lower priority that waits goes before the next
//! high one after [`PASSED_MAX`] of them, and a low one before the next normal one after as many of either.
//! So twice as many begin at most until one of a priority that waits does, and a single urgent task is always
//! next. Within a priority the tenants take turns, as many tasks as their weight at a time (weighted round
//! robin: Nagle, On packet switches with infinite storage, RFC 970, 1985; a tenant that comes is the last of
//! the round), and a tenant's tasks are first come, first served. A tenant is kept for as long as it has a
//! task here.

use std::{array, collections::HashMap};

use super::{
    super::Task,
    Order, Priority,
    flow::{Flow, order_of},
};

/// Tasks of higher priorities that may begin one after the other while one of a lower priority waits.
pub(super) const PASSED_MAX: u32 = 16;
/// Tenants of one priority that have a line of their own at the same time.
pub(super) const TENANTS_MAX: usize = 4096;
/// Lines that further tenants share. Their keys are these numbers, from 1; that of no tenant is 0.
pub(super) const SHARED_LINES: u64 = 16;
/// Tables of tenants that have room for more than this shrink when they are almost empty.
const ROOM_KEPT: usize = 64;

const HIGH: usize = Priority::High as usize;
const NORMAL: usize = Priority::Normal as usize;
const LOW: usize = Priority::Low as usize;
pub(super) const CLASSES: usize = 3;

/// What may be taken by the same workers.
pub(super) struct Line {
    /// Tasks of the normal priority without a tenant: mostly all there are.
    pub(super) plain: Flow,
    /// All others, by priority.
    classes: [Class; CLASSES],
    /// Tasks in `classes`.
    ordered: usize,
    /// How often in a row a worker preferred what only it may take, or the other way round.
    pub(super) skipped: u32,
}

/// The tenants of one priority, in a ring.
#[derive(Default)]
struct Class {
    tenants: HashMap<u64, Tenant>,
    /// The key of the tenant whose turn it is, if there are tenants.
    turn: u64,
    /// How many of higher priorities have begun since one of these did or could.
    passed: u32,
    /// Of those, the high ones.
    passed_by_high: u32,
}

struct Tenant {
    flow: Flow,
    /// Tasks in `flow`.
    count: usize,
    /// Tasks of a turn.
    weight: u32,
    /// Tasks left of this turn.
    left: u32,
    previous: u64,
    next: u64,
}

/// What a line would hand out: of that priority, as if it were of the other one.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    class: usize,
    rank: usize,
}

/// The key of the line for that tenant's tasks, which it `shares` with others or not.
pub(super) fn key_of(tenant: u64, shares: bool) -> u64 {
    match tenant {
        0 => 0,
        _ if shares => 1 + tenant % SHARED_LINES,
        _ => tenant.max(SHARED_LINES + 1),
    }
}

impl Default for Line {
    fn default() -> Self {
        let classes = array::from_fn(|_| Class::default());
        Self { plain: Flow::default(), classes, ordered: 0, skipped: 0 }
    }
}

impl Line {
    pub(super) const fn is_empty(&self) -> bool {
        self.ordered == 0 && self.plain.is_empty()
    }

    pub(super) fn deepest(&self) -> u32 {
        self.flows().map(Flow::deepest).max().unwrap_or(0)
    }

    /// All tasks, in no order.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &'static Task> {
        self.flows().flat_map(Flow::tasks)
    }

    /// The oldest, which stays.
    pub(super) fn oldest(&self) -> Option<&'static Task> {
        self.flows().filter_map(|flow| flow.first_from(0)).min_by_key(|task| order_of(task))
    }

    fn flows(&self) -> impl Iterator<Item = &Flow> {
        let rings = self.classes.iter().filter(|_| self.ordered > 0).flat_map(Class::flows);
        std::iter::once(&self.plain).chain(rings)
    }

    /// Tasks without priority and tenant were taken meanwhile, which nobody has noted.
    pub(super) const fn plain_was_served(&mut self) {
        self.classes[NORMAL].served();
        self.skipped = 0;
    }

    /// Append a task; returns whether its tenant shares a line with others.
    pub(super) fn push(
        &mut self,
        task: &'static Task,
        depth: u32,
        number: u64,
        Order { priority, tenant, .. }: Order,
        weight: u32,
    ) -> bool {
        if priority == Priority::Normal && tenant == 0 {
            self.plain.push(task, depth, number);
            return false;
        }
        self.ordered += 1;
        let class = &mut self.classes[priority as usize];
        let shares = class.has_no_line_for(tenant);
        if priority == Priority::Normal && class.tenants.is_empty() {
            // Those without a tenant take their turns too.
            class.join(0, 1);
        }
        let own = class.join(key_of(tenant, shares), weight);
        own.count += 1;
        own.flow.push(task, depth, number);
        shares
    }

    /// What is next of those at least so deep.
    pub(super) fn choose(&self, least: u32) -> Option<Choice> {
        let [high, normal, low] = array::from_fn(|class| self.has(class, least));
        let [_, of_normal, of_low] = &self.classes;
        let class = if high {
            match (normal, low) {
                (_, true) if of_low.passed_by_high >= PASSED_MAX => LOW,
                (true, _) if of_normal.passed_by_high >= PASSED_MAX => NORMAL,
                _ => HIGH,
            }
        } else if normal && !(low && of_low.passed >= PASSED_MAX) {
            NORMAL
        } else {
            LOW
        };
        let rank = [high, normal, low].iter().position(|has| *has)?;
        Some(Choice { class, rank })
    }

    /// How urgent that is beside what another line would hand out: 0 most.
    pub(super) const fn rank(&self, Choice { rank, .. }: Choice) -> usize {
        if self.skipped >= PASSED_MAX { 0 } else { rank + 1 }
    }

    fn has(&self, class: usize, least: u32) -> bool {
        let in_plain = class == NORMAL && self.plain.has(least);
        in_plain || (self.ordered > 0 && self.classes[class].has(least))
    }

    /// Take what `choose` has returned for tasks at least so deep.
    pub(super) fn take(&mut self, Choice { class, .. }: Choice, least: u32) -> Option<&'static Task> {
        for lower in class + 1..CLASSES {
            if self.has(lower, 0) {
                self.classes[lower].passed += 1;
                self.classes[lower].passed_by_high += u32::from(class == HIGH);
            }
        }
        self.classes[class].served();
        self.skipped = 0;
        let plain = (class == NORMAL).then_some(&mut self.plain);
        let (task, is_plain) = self.classes[class].take(plain, least)?;
        self.ordered -= usize::from(!is_plain);
        Some(task)
    }

    /// Take out a task of that priority, which is in the line with that key.
    pub(super) fn remove(&mut self, task: &'static Task, priority: Priority, key: u64) {
        let class = priority as usize;
        if class == NORMAL && key == 0 {
            self.plain.remove(task);
        } else {
            self.ordered -= 1;
            self.classes[class].remove(task, key, class == NORMAL);
        }
        if !self.has(class, 0) {
            self.classes[class].served();
        }
        if self.is_empty() {
            self.skipped = 0;
        }
    }

    /// Count the tasks that wait by priority and tenant, but for those of `plain`.
    pub(super) fn count_into(&self, by_priority: &mut [usize; CLASSES], by_tenant: &mut HashMap<u64, usize>) {
        for (class, all) in self.classes.iter().zip(by_priority) {
            for (&key, tenant) in class.tenants.iter().filter(|(_, tenant)| tenant.count > 0) {
                *all += tenant.count;
                if key != 0 {
                    *by_tenant.entry(key).or_default() += tenant.count;
                }
            }
        }
    }

    /// Tenants that are kept.
    #[cfg(all(test, not(loom)))]
    pub(super) fn tenants(&self) -> usize {
        self.classes.iter().map(|class| class.tenants.len()).sum()
    }
}

impl Class {
    const fn served(&mut self) {
        (self.passed, self.passed_by_high) = (0, 0);
    }

    /// Whether that tenant's tasks go into a line that others use too.
    fn has_no_line_for(&self, tenant: u64) -> bool {
        tenant != 0 && self.tenants.len() >= TENANTS_MAX && !self.tenants.contains_key(&key_of(tenant, false))
    }

    fn ring(&self) -> impl Iterator<Item = (u64, &Tenant)> {
        let begin = self.tenants.get_key_value(&self.turn);
        std::iter::successors(begin, move |(_, tenant)| {
            self.tenants.get_key_value(&tenant.next).filter(|(key, _)| **key != self.turn)
        })
        .map(|(key, tenant)| (*key, tenant))
    }

    fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.ring().map(|(_, tenant)| &tenant.flow)
    }

    fn has(&self, least: u32) -> bool {
        self.flows().any(|flow| flow.has(least))
    }

    /// The tasks of that tenant, which is the last of the round if it is new. Weight 0: the one it has.
    fn join(&mut self, key: u64, weight: u32) -> &mut Tenant {
        if !self.tenants.contains_key(&key) {
            let next = if self.tenants.is_empty() { key } else { self.turn };
            let previous = self.tenants.get(&next).map_or(key, |tenant| tenant.previous);
            let flow = Flow::default();
            let weight = weight.max(1);
            self.tenants.insert(key, Tenant { flow, count: 0, weight, left: weight, previous, next });
            self.tenant(previous).next = key;
            self.tenant(next).previous = key;
            self.turn = next;
        }
        let tenant = self.tenant(key);
        if weight > 0 {
            tenant.weight = weight;
        }
        tenant
    }

    fn tenant(&mut self, key: u64) -> &mut Tenant {
        self.tenants.get_mut(&key).expect("the ring names tenants that are there")
    }

    /// Take the next task at least so deep; `plain` are those without a tenant that take turns with the
    /// tenants. Returns whether it was one of those.
    fn take(&mut self, mut plain: Option<&mut Flow>, least: u32) -> Option<(&'static Task, bool)> {
        let has = |(key, tenant): &(u64, &Tenant)| match &plain {
            Some(plain) if *key == 0 => plain.has(least),
            _ => tenant.flow.has(least),
        };
        let found = self.ring().find(has).map(|(key, _)| key);
        let Some(key) = found else { return Some((plain?.pop_from(least)?, true)) };
        // Only those without a tenant are in the ring without a task.
        if key != self.turn && least == 0 {
            self.begin_turn(key);
        }
        let tenant = self.tenant(key);
        let taken = match &mut plain {
            Some(plain) if key == 0 => (plain.pop_from(least)?, true),
            _ => (tenant.flow.pop_from(least)?, false),
        };
        tenant.count -= usize::from(!taken.1);
        // Who is taken for its depth has no turn.
        if key == self.turn {
            let tenant = self.tenant(key);
            tenant.left = tenant.left.saturating_sub(1);
            if tenant.left == 0 {
                let next = tenant.next;
                self.begin_turn(next);
            }
        }
        if !taken.1 {
            self.leave_if_empty(key, plain.is_some());
        }
        Some(taken)
    }

    fn begin_turn(&mut self, key: u64) {
        self.turn = key;
        let tenant = self.tenant(key);
        tenant.left = tenant.weight;
    }

    fn remove(&mut self, task: &'static Task, key: u64, has_plain: bool) {
        let tenant = self.tenant(key);
        tenant.flow.remove(task);
        tenant.count -= 1;
        self.leave_if_empty(key, has_plain);
    }

    /// Forget a tenant that has no task. With `has_plain` the tenant 0 stays for as long as there are others.
    fn leave_if_empty(&mut self, key: u64, has_plain: bool) {
        let Tenant { flow, previous, next, .. } = self.tenant(key);
        if !flow.is_empty() {
            return;
        }
        let (previous, next) = (*previous, *next);
        self.tenants.remove(&key);
        if self.tenants.len() <= usize::from(has_plain) {
            self.tenants = HashMap::new();
            return;
        }
        self.tenant(previous).next = next;
        self.tenant(next).previous = previous;
        if self.turn == key {
            self.begin_turn(next);
        }
        let room = self.tenants.capacity();
        if room > ROOM_KEPT && self.tenants.len() < room / 8 {
            self.tenants.shrink_to(room / 4);
        }
    }
}
