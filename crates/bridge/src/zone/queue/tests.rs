//! The queue beside lists that are searched from the start, under random scripts; and what it promises about
//! who waits for how long.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::{HashMap, VecDeque},
    sync::{LazyLock, Mutex},
};

use super::{
    Order, Priority, Queue,
    line::{PASSED_MAX, SHARED_LINES, TENANTS_MAX},
};
use crate::{Machine, Receiver, task::Task};

static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::new(2));
/// Mailboxes are never freed: they stay reachable.
static RECEIVERS: Mutex<Vec<Receiver>> = Mutex::new(Vec::new());

const STEPS: u64 = if cfg!(miri) { 400 } else { 30_000 };
const SLOTS: u64 = 3;

/// A task of the model.
#[derive(Clone, Copy, Debug)]
struct Entry {
    call: u32,
    depth: u32,
    order: Order,
    weight: u32,
}

/// What one worker, or any, may take: the rules of line.rs on plain lists.
#[derive(Default)]
struct ModelLine {
    waiting: Vec<Entry>,
    /// Of each priority: how many higher ones it has let pass, and how many of those were high.
    passed: [[u32; 2]; 3],
    skipped: u32,
    /// Of each priority the tenants in the order of their turns, with what is left of each turn.
    rings: [VecDeque<(u64, u32)>; 3],
}

impl ModelLine {
    fn has(&self, class: usize, least: u32) -> bool {
        self.of(class, None, least).is_some()
    }

    fn of(&self, class: usize, tenant: Option<u64>, least: u32) -> Option<usize> {
        self.waiting.iter().position(|entry| {
            entry.order.priority as usize == class
                && entry.depth >= least
                && tenant.is_none_or(|tenant| tenant == entry.order.tenant)
        })
    }

    fn weight(&self, class: usize, tenant: u64) -> u32 {
        let its = |entry: &&Entry| entry.order.priority as usize == class && entry.order.tenant == tenant;
        self.waiting.iter().rfind(its).map_or(1, |entry| entry.weight)
    }

    fn push(&mut self, entry: Entry) {
        let class = entry.order.priority as usize;
        let is_normal = class == Priority::Normal as usize;
        self.waiting.push(entry);
        let ring = &mut self.rings[class];
        if is_normal && entry.order.tenant == 0 {
            return;
        }
        if is_normal && ring.is_empty() {
            ring.push_back((0, 1));
        }
        if !ring.iter().any(|(tenant, _)| *tenant == entry.order.tenant) {
            ring.push_back((entry.order.tenant, entry.weight));
        }
    }

    fn choose(&self, least: u32) -> Option<(usize, usize)> {
        let urgent = (0..3).find(|class| self.has(*class, least))?;
        // How many the lower ones must have let pass to go before that.
        let due = |class: &usize| match (urgent, *class) {
            (0, lower) => self.passed[lower][1] >= PASSED_MAX,
            (1, 2) => self.passed[2][0] >= PASSED_MAX,
            _ => false,
        };
        let class = [2, 1].into_iter().filter(|class| self.has(*class, least)).find(due).unwrap_or(urgent);
        Some((class, if self.skipped >= PASSED_MAX { 0 } else { urgent + 1 }))
    }

    fn take(&mut self, class: usize, least: u32) -> u32 {
        self.skipped = 0;
        for lower in class + 1..3 {
            if self.has(lower, 0) {
                self.passed[lower][0] += 1;
                self.passed[lower][1] += u32::from(class == 0);
            }
        }
        self.passed[class] = [0, 0];
        let ring = self.rings[class].clone();
        let Some(at) = ring.iter().position(|(tenant, _)| self.of(class, Some(*tenant), least).is_some())
        else {
            let index = self.of(class, None, least).unwrap();
            return self.waiting.remove(index).call;
        };
        let tenant = ring[at].0;
        if at > 0 && least == 0 {
            self.begin_turn(class, tenant);
        }
        let index = self.of(class, Some(tenant), least).unwrap();
        let call = self.waiting.remove(index).call;
        if self.rings[class][0].0 == tenant {
            self.rings[class][0].1 = self.rings[class][0].1.saturating_sub(1);
            if self.rings[class][0].1 == 0 {
                let next = self.rings[class].get(1).map_or(tenant, |next| next.0);
                self.begin_turn(class, next);
            }
        }
        self.forget(class, tenant);
        call
    }

    /// The weight that counts is that of the tenant's youngest task, also of one that was taken since.
    fn begin_turn(&mut self, class: usize, tenant: u64) {
        while self.rings[class][0].0 != tenant {
            self.rings[class].rotate_left(1);
        }
        self.rings[class][0].1 = self.weight(class, tenant);
    }

    fn forget(&mut self, class: usize, tenant: u64) {
        let is_normal = class == Priority::Normal as usize;
        if (is_normal && tenant == 0) || self.of(class, Some(tenant), 0).is_some() {
            return;
        }
        let Some(at) = self.rings[class].iter().position(|(other, _)| *other == tenant) else { return };
        self.rings[class].remove(at);
        if self.rings[class].len() <= usize::from(is_normal) {
            self.rings[class].clear();
        } else if at == 0 {
            let next = self.rings[class][0].0;
            self.begin_turn(class, next);
        }
    }

    fn remove(&mut self, call: u32) {
        let index = self.waiting.iter().position(|entry| entry.call == call).unwrap();
        let entry = self.waiting.remove(index);
        let class = entry.order.priority as usize;
        self.forget(class, entry.order.tenant);
        if !self.has(class, 0) {
            self.passed[class] = [0, 0];
        }
        if self.waiting.is_empty() {
            self.skipped = 0;
        }
    }
}

/// Line 0 is that of all workers, the others are those of one each.
#[derive(Default)]
struct Model {
    lines: [ModelLine; SLOTS as usize + 1],
}

impl Model {
    fn pop_for(&mut self, slot: usize, least: u32) -> Option<u32> {
        let [shared, own] = [0, slot + 1].map(|line| self.lines[line].choose(least));
        let takes_own = match (shared, own) {
            (None, None) => return None,
            (shared, own) if shared.is_none() || own.is_none() => own.is_some(),
            (Some((_, rank)), Some((_, own_rank))) => {
                let takes_own = own_rank < rank || (own_rank == rank && self.lines[slot + 1].skipped > 0);
                self.lines[if takes_own { 0 } else { slot + 1 }].skipped += 1;
                takes_own
            }
            _ => unreachable!("covered above"),
        };
        let (line, chosen) = if takes_own { (slot + 1, own) } else { (0, shared) };
        Some(self.lines[line].take(chosen.unwrap().0, least))
    }

    fn count(&self) -> usize {
        self.lines.iter().map(|line| line.waiting.len()).sum()
    }

    fn count_ordered(&self) -> ([usize; 3], HashMap<u64, usize>) {
        let (mut by_priority, mut by_tenant) = ([0; 3], HashMap::new());
        for Entry { order, .. } in self.lines.iter().flat_map(|line| &line.waiting) {
            if order.priority != Priority::Normal || order.tenant != 0 {
                by_priority[order.priority as usize] += 1;
            }
            if order.tenant != 0 {
                *by_tenant.entry(order.tenant).or_default() += 1;
            }
        }
        (by_priority, by_tenant)
    }
}

struct Script {
    receiver: Option<Receiver>,
    queue: Queue,
    model: Model,
    free: Vec<u32>,
    made: u32,
    dice: u64,
}

impl Script {
    fn new(seed: u64) -> Self {
        Self {
            receiver: Some(Receiver::new(0, &MACHINE)),
            queue: Queue::default(),
            model: Model::default(),
            free: Vec::new(),
            made: 0,
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.dice ^= self.dice >> 12;
        self.dice ^= self.dice << 25;
        self.dice ^= self.dice >> 27;
        (self.dice.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn task(&mut self, call: u32) -> &'static Task {
        self.receiver.as_mut().unwrap().task(call)
    }

    fn push(&mut self, depth: u32, order: Order, weight: u32) -> u32 {
        let call = self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        });
        let task = self.task(call);
        // SAFETY: the numbers in `free` are those of tasks that are in no queue.
        unsafe { task.body(|body| body.depth = depth) };
        if order == Order::default() {
            self.queue.push(task, depth);
        } else {
            self.queue.push_ordered(task, depth, order, weight);
        }
        let line = order.slot().map_or(0, |slot| slot + 1);
        // As the queue keeps them apart from the lines that tenants share.
        let tenant = if order.tenant == 0 { 0 } else { order.tenant.max(SHARED_LINES + 1) };
        self.model.lines[line].push(Entry { call, depth, order: Order { tenant, ..order }, weight });
        call
    }

    fn pop(&mut self, slot: usize, least: u32) -> Option<u32> {
        let popped = match least {
            _ if self.queue.is_special() => self.queue.pop_for(slot, least).map(|(task, _)| task),
            0 => self.queue.pop_plain(),
            _ => None,
        };
        let call = popped.map(Task::call);
        // SAFETY: just taken out.
        popped.inspect(|task| assert_eq!(unsafe { task.body(|body| body.order) }, Order::default()));
        assert_eq!(call, self.model.pop_for(slot, least), "slot {slot}, least {least}");
        self.free.extend(call);
        call
    }

    fn random_push(&mut self) {
        let depth = [0, 0, 0, 1, 2][self.below(5) as usize];
        let is_plain = self.below(3) == 0;
        let order = Order {
            tenant: if is_plain { 0 } else { self.below(4) * 1000 },
            worker: if is_plain || self.below(2) == 0 { 0 } else { 1 + self.below(SLOTS) as u16 },
            moves: self.below(2) == 0,
            priority: [Priority::High, Priority::Normal, Priority::Low]
                [if is_plain { 1 } else { self.below(3) as usize }],
            ..Order::default()
        };
        // The weight of a tenant does not change here: which one counts is another test's.
        let weight = 1 + (order.tenant / 1000) as u32;
        self.push(depth, order, if order.tenant == 0 { 1 } else { weight });
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        RECEIVERS.lock().unwrap().extend(self.receiver.take());
    }
}

/// Any mixture of what is submitted, taken by whom, and cancelled.
#[test]
fn the_order_is_that_of_lists_that_are_searched_from_the_start() {
    let mut script = Script::new(7);
    for step in 0..STEPS {
        // Phases: it grows, shrinks, and has often nothing.
        let growing = step / 64 % 3;
        match script.below(8 + growing) {
            0 => {
                let waiting: Vec<_> = script.model.lines.iter().flat_map(|line| &line.waiting).collect();
                let calls: Vec<_> = waiting.iter().map(|entry| entry.call).collect();
                if !calls.is_empty() {
                    let call = calls[script.below(calls.len() as u64) as usize];
                    script.model.lines.iter_mut().for_each(|line| {
                        if line.waiting.iter().any(|entry| entry.call == call) {
                            line.remove(call);
                        }
                    });
                    let task = script.task(call);
                    script.queue.remove(task);
                    script.free.push(call);
                }
            }
            1..=4 => {
                let slot = script.below(SLOTS) as usize;
                let least = [0, 0, 0, 1, 2][script.below(5) as usize];
                script.pop(slot, least);
            }
            _ => script.random_push(),
        }
        let empty = script.model.count() == 0;
        assert_eq!(script.queue.has_any(), !empty);
        assert_eq!(script.queue.is_empty(), script.model.lines[0].waiting.is_empty());
        for slot in 0..SLOTS as usize {
            let line = &script.model.lines[slot + 1].waiting;
            let deepest = line.iter().map(|entry| entry.depth).max();
            assert_eq!(script.queue.bound_to(slot), deepest.map(|deepest| (line.len(), deepest)));
        }
        let deepest = script.model.lines[0].waiting.iter().map(|entry| entry.depth).max();
        assert_eq!(script.queue.deepest(), deepest.unwrap_or(0));
        assert_eq!(script.queue.count_ordered(), script.model.count_ordered());
        if empty {
            assert_eq!(script.queue.tenants(), 0);
        }
    }
    while let Some((task, _)) = script.queue.pop_any() {
        assert!(script.model.lines.iter().flat_map(|line| &line.waiting).any(|it| it.call == task.call()));
        script.free.push(task.call());
    }
    assert_eq!(script.free.len() as u32, script.made);
    assert_eq!(script.queue.tenants(), 0);
}

fn priority(priority: Priority) -> Order {
    Order { priority, ..Order::default() }
}

fn tenant(tenant: u64) -> Order {
    Order { tenant: tenant << 8, ..Order::default() }
}

#[test]
fn a_high_task_is_next_however_many_others_wait() {
    let mut script = Script::new(1);
    for _ in 0..1000 {
        script.push(0, priority(Priority::Low), 1);
        script.push(0, Order::default(), 1);
    }
    for _ in 0..100 {
        let urgent = script.push(0, priority(Priority::High), 1);
        assert_eq!(script.pop(0, 0), Some(urgent));
        for _ in 0..3 {
            script.pop(0, 0);
        }
    }
}

/// Behind high ones alone a task waits for `PASSED_MAX` of them, and one more where two are due at once;
/// behind normal and high ones for twice as many.
#[test]
fn nothing_starves_under_a_stream_of_higher_priorities() {
    let mut script = Script::new(2);
    let low = script.push(0, priority(Priority::Low), 1);
    let normal = script.push(0, Order::default(), 1);
    let mut begun = Vec::new();
    for _ in 0..PASSED_MAX + 2 {
        script.push(0, priority(Priority::High), 1);
        begun.extend(script.pop(0, 0));
    }
    assert!(begun.contains(&low) && begun.contains(&normal), "{begun:?}");
    let low = script.push(0, priority(Priority::Low), 1);
    for task in 0..=2 * PASSED_MAX {
        let others = if task < PASSED_MAX { Priority::Normal } else { Priority::High };
        script.push(0, priority(others), 1);
        if script.pop(0, 0) == Some(low) {
            return;
        }
    }
    panic!("the low one waits still");
}

/// The queue is a list again after each, and forgets nothing for that.
#[test]
fn nothing_starves_where_the_others_come_one_by_one() {
    let mut script = Script::new(3);
    let normal = script.push(0, Order::default(), 1);
    let mut begun = Vec::new();
    for _ in 0..=PASSED_MAX {
        let urgent = script.push(0, priority(Priority::High), 1);
        let first = script.pop(0, 0).unwrap();
        begun.push(first);
        if first != urgent {
            break;
        }
    }
    assert_eq!(begun.last(), Some(&normal));
}

#[test]
fn a_tenant_waits_for_one_turn_of_each_other_one() {
    let mut script = Script::new(4);
    for _ in 0..1000 {
        script.push(0, tenant(1), 1);
        script.push(0, tenant(2), 3);
        script.push(0, Order::default(), 1);
    }
    for _ in 0..50 {
        let its = script.push(0, tenant(3), 1);
        let waited = std::iter::from_fn(|| script.pop(0, 0)).position(|call| call == its);
        assert!(waited.is_some_and(|tasks| tasks <= 5), "{waited:?}");
    }
}

#[test]
fn tenants_share_by_weight() {
    let mut script = Script::new(5);
    let mut of = std::collections::HashMap::new();
    for _ in 0..700 {
        for (key, weight) in [(1, 1), (2, 2), (3, 4)] {
            of.insert(script.push(0, tenant(key), weight), key);
        }
    }
    let mut counts = [0; 4];
    for _ in 0..700 {
        counts[of[&script.pop(0, 0).unwrap()] as usize] += 1;
    }
    assert_eq!(counts, [0, 100, 200, 400]);
}

#[test]
fn a_worker_takes_its_own_and_the_others_in_turn() {
    let mut script = Script::new(6);
    let own = Order { worker: 1, ..Order::default() };
    for _ in 0..100 {
        script.push(0, own, 1);
        script.push(0, Order::default(), 1);
    }
    for _ in 0..50 {
        script.pop(0, 0);
    }
    assert_eq!(script.queue.bound_to(0), Some((75, 0)));
    // Another worker takes none of them.
    while script.pop(1, 0).is_some() {}
    assert_eq!(script.queue.bound_to(0), Some((75, 0)));
    assert!(script.queue.is_empty());
}

/// More tenants than there are lines share some, and each task still runs.
#[test]
fn the_table_of_tenants_is_bounded() {
    let mut script = Script::new(8);
    let count = TENANTS_MAX as u64 * 2;
    let mut calls = Vec::new();
    for key in 1..=count {
        calls.push(script.push(0, tenant(key), 1));
        script.model = Model::default();
    }
    assert!(script.queue.tenants() <= TENANTS_MAX + SHARED_LINES as usize + 1);
    // Of each kind some are cancelled.
    let mut taken = 0;
    for call in calls.into_iter().step_by(100) {
        let task = script.task(call);
        script.queue.remove(task);
        script.free.push(call);
        taken += 1;
    }
    while let Some((task, _)) = script.queue.pop_for(0, 0) {
        taken += 1;
        script.free.push(task.call());
    }
    assert_eq!(taken, count);
    assert_eq!(script.queue.tenants(), 0);
}
