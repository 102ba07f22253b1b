//! Words of a depth and a chain, chains under numbers that are used again, and random programs of broadcasts
//! and calls, whose oracle asks of each call whether everything it would wait for can end.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::{CHAINS_MAX, Chains, NONE, broadcast_word, split, word};
use crate::{
    layout::DEPTH_UNKNOWN,
    receiver::Receiver,
    registry,
    task::{State, Task},
};

#[test]
fn a_word_has_both_numbers_and_javascript_adds_one() {
    for chain in [NONE, 1, CHAINS_MAX as u32] {
        assert_eq!(split(word(chain, 0)), (chain, Some(0)));
        assert_eq!(split(word(chain, 1_000_000) + 1), (chain, Some(1_000_001)));
        assert_eq!(split(broadcast_word(chain) + 1), (chain, None));
        assert_ne!(broadcast_word(chain) + 1, DEPTH_UNKNOWN);
    }
    assert_eq!(split(DEPTH_UNKNOWN), (NONE, None));
}

#[test]
fn chains_are_sets_of_zones_under_numbers_that_are_used_again() {
    let chains = &mut Chains::new();
    let none = |_| false;
    let one = chains.with(NONE, 7, none);
    let both = chains.with(one, 9, none);
    let nine = chains.with(NONE, 9, none);
    assert_eq!((chains.with(nine, 7, none), chains.with(both, 9, none)), (both, both));
    assert_eq!((chains.zones(both), chains.zones(one), chains.zones(NONE)), (&[7, 9][..], &[7][..], &[][..]));
    let last = (1000..).map(|zone| chains.with(NONE, zone, none)).take_while(|&chain| chain != NONE).last();
    assert_eq!(last, Some(CHAINS_MAX as u32));
    let again = chains.with(NONE, 999, |zone| zone == 1000);
    assert!(again != NONE && chains.zones(again) == [999]);
    assert_eq!(chains.with(NONE, 998, |zone| zone == 1000), NONE);
    // A chain of a call that waits keeps its number.
    let number = chains.begin(again, 1, None, none).unwrap();
    assert_eq!(chains.with(NONE, 998, |zone| zone == 999), NONE);
    chains.end(number);
    assert_eq!(chains.with(NONE, 998, |zone| zone == 999), again);
}

#[test]
fn a_call_that_would_close_a_circle_is_refused_until_one_of_it_ends_or_begins() {
    let chains = &mut Chains::new();
    let of = [1, 2, 3].map(|zone| chains.with(NONE, zone, |_| false));
    let task = Receiver::new(0, registry::machine()).task(0);
    let all = |_| true;
    let first = chains.begin(of[0], 2, Some(task), all).unwrap();
    let second = chains.begin(of[1], 3, None, all).unwrap();
    for (chain, zone) in [(0, 1), (1, 1), (2, 1), (2, 2)] {
        assert_eq!(
            chains.begin(of[chain], zone, None, all),
            None,
            "a broadcast of zone {} at {zone}",
            chain + 1
        );
    }
    // A zone that is not held up runs what it is called.
    let free = chains.begin(of[2], 1, None, |zone| zone != 2).unwrap();
    chains.end(free);
    task.set_state(State::Running { slot: 0, serial: 0 });
    let begun = chains.begin(of[2], 1, None, all).unwrap();
    chains.end(begun);
    task.set_state(State::Queued);
    assert_eq!(chains.begin(of[2], 1, None, all), None);
    chains.end(second);
    assert!(chains.begin(of[2], 1, None, all).is_some());
    chains.end(first);
    assert_eq!(chains.waits.len(), 1);
}

const ZONES: usize = 4;

/// The function of a broadcast, or of a call.
struct Agent {
    zone: usize,
    is_broadcast: bool,
    /// The chain of what it calls.
    chain: u32,
    task: &'static Task,
    begun: bool,
    ended: bool,
    /// What it waits for, and the number of the wait.
    awaits: Option<(usize, Option<u64>)>,
}

/// Zones of one worker each. Agents are in the order in which they were made.
struct World {
    chains: Chains,
    receiver: Receiver,
    agents: Vec<Agent>,
    seed: u64,
}

impl World {
    fn below(&mut self, limit: usize) -> usize {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn make(&mut self, zone: usize, is_broadcast: bool, of: u32) -> usize {
        let task = self.receiver.task(self.agents.len() as u32);
        task.set_state(State::Queued);
        let chain = if is_broadcast { self.chains.with(of, zone as u32, |_| false) } else { of };
        self.agents.push(Agent { zone, is_broadcast, chain, task, begun: false, ended: false, awaits: None });
        self.agents.len() - 1
    }

    /// Broadcasts of a zone that were made and have not ended.
    fn broadcasts(&self, zone: usize) -> impl Iterator<Item = usize> {
        let is_one = move |agent: &Agent| agent.zone == zone && agent.is_broadcast && !agent.ended;
        self.agents.iter().enumerate().filter(move |(_, agent)| is_one(agent)).map(|(index, _)| index)
    }

    /// What must end before `index` can begin: the broadcasts of its zone, of which a broadcast follows those
    /// before it alone.
    fn behind(&self, index: usize) -> Vec<usize> {
        let follows = |&other: &usize| other < index || !self.agents[index].is_broadcast;
        self.broadcasts(self.agents[index].zone).filter(follows).collect()
    }

    /// The oracle: whether each agent can end, as what they wait for can.
    fn can_end(&self) -> Vec<bool> {
        let mut can: Vec<bool> = self.agents.iter().map(|agent| agent.ended).collect();
        loop {
            let more: Vec<usize> = (0..can.len())
                .filter(|&index| {
                    let agent = &self.agents[index];
                    let awaits = agent.awaits.is_none_or(|(other, _)| can[other]);
                    let begins = agent.begun || self.behind(index).into_iter().all(|other| can[other]);
                    !can[index] && awaits && begins
                })
                .collect();
            if more.is_empty() {
                return can;
            }
            more.into_iter().for_each(|index| can[index] = true);
        }
    }

    fn begins(&mut self, index: usize) -> bool {
        let Agent { zone, is_broadcast, begun, .. } = self.agents[index];
        let works =
            |other: &Agent| other.zone == zone && other.begun && !other.ended && other.awaits.is_none();
        // A broadcast lets the running tasks end, unless they wait.
        let held = is_broadcast && self.agents.iter().any(works);
        if begun || held || !self.behind(index).is_empty() {
            return false;
        }
        let agent = &mut self.agents[index];
        agent.begun = true;
        // A broadcast is not in its caller's state.
        if !agent.is_broadcast {
            agent.task.set_state(State::Running { slot: 0, serial: index as u32 });
        }
        true
    }

    /// A running agent calls a zone, or makes a broadcast there, and waits. Returns whether it was refused.
    fn calls(&mut self, index: usize, zone: usize, is_broadcast: bool) -> bool {
        let chain = self.agents[index].chain;
        let other = self.make(zone, is_broadcast, chain);
        self.agents[index].awaits = Some((other, None));
        let expected = self.can_end()[index];
        let held: Vec<bool> =
            (0..ZONES).map(|zone| self.broadcasts(zone).any(|index| index != other)).collect();
        let is_held_up = |zone| held[zone as usize];
        let noted = (chain != NONE)
            .then(|| self.chains.begin(chain, zone as u32, Some(self.agents[other].task), is_held_up));
        assert_eq!(noted.is_none_or(|number| number.is_some()), expected, "seed {:#x}", self.seed);
        self.agents[index].awaits = expected.then_some((other, noted.flatten()));
        if !expected {
            self.agents.pop();
        }
        !expected
    }

    /// One step of an agent that can do one. Returns whether it was a refusal; `None`: it can do nothing.
    fn step(&mut self, index: usize) -> Option<bool> {
        if self.agents[index].ended || !self.agents[index].begun {
            return self.begins(index).then_some(false);
        }
        if let Some((other, number)) = self.agents[index].awaits {
            if !self.agents[other].ended {
                return None;
            }
            number.into_iter().for_each(|number| self.chains.end(number));
            self.agents[index].awaits = None;
            return Some(false);
        }
        if self.below(3) > 0 && self.agents.len() < 40 {
            let (zone, is_broadcast) = (self.below(ZONES), self.below(4) == 0);
            return Some(self.calls(index, zone, is_broadcast));
        }
        self.agents[index].ended = true;
        // Its caller's thread has read this at once; in between the core may refuse a call that could wait.
        for agent in &mut self.agents {
            if let Some((other, Some(number))) = agent.awaits
                && other == index
            {
                self.chains.end(number);
                agent.awaits = Some((other, None));
            }
        }
        Some(false)
    }
}

#[test]
fn a_call_is_refused_exactly_where_it_would_wait_for_ever() {
    let (mut refused, mut accepted) = (0, 0);
    for seed in 1..=400 {
        let receiver = Receiver::new(0, registry::machine());
        let mut world = World { chains: Chains::new(), receiver, agents: Vec::new(), seed: seed << 8 | 1 };
        (0..64).for_each(|_| _ = world.below(2));
        for _ in 0..4 {
            let (zone, is_broadcast) = (world.below(ZONES), world.below(4) > 0);
            world.make(zone, is_broadcast, NONE);
        }
        loop {
            let first = world.below(world.agents.len());
            let turns = (0..world.agents.len()).map(|turn| (first + turn) % world.agents.len());
            let mut moved = None;
            for index in turns.collect::<Vec<_>>() {
                moved = world.step(index);
                if moved.is_some() {
                    break;
                }
            }
            let Some(was_refused) = moved else { break };
            refused += usize::from(was_refused);
        }
        assert!(world.agents.iter().all(|agent| agent.ended), "seed {seed}: something waits for ever");
        assert!(world.chains.waits.is_empty());
        accepted += world.agents.len();
    }
    assert!(refused > 300 && accepted > 3000, "{refused} of {accepted} calls are refused");
}
