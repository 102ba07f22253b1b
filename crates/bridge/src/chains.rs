//! Refuses a call that would wait for a broadcast which waits for that call.
//!
//! The chain of a call is the set of zones whose broadcasts wait for it, directly or through other zones. A
//! broadcast has its worker to itself, so a call of its chain that leads back to its zone would wait for
//! ever. Calls pass the number of their chain from task to task. There are few different chains, so each is
//! stored once, under a number that fits beside a depth. A call with a chain to a zone is an edge from each
//! zone of the chain to that zone until its task begins; the task then waits for calls of the same chain. The
//! call that would close a cycle is refused. Calls without a chain are not recorded.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{
    layout::DEPTH_MASK,
    task::{State, Task},
};

/// Depths are smaller: `Limits::call_depth_max` is a million at most.
const CHAIN_SHIFT: u32 = DEPTH_MASK.count_ones();
/// In a word: the depth is not known.
const UNKNOWN: u32 = DEPTH_MASK;
/// Numbers up to this; the next one would make an unknown depth `DEPTH_UNKNOWN`.
const CHAINS_MAX: usize = 0xffe;
/// The chain of a call that no broadcast waits for.
pub const NONE: u32 = 0;

static CHAINS: Mutex<Chains> = Mutex::new(Chains::new());

/// A call's depth and chain in one word. JavaScript passes one more for what the task calls.
pub const fn word(chain: u32, depth: u32) -> u32 {
    chain << CHAIN_SHIFT | depth
}

/// The word of a broadcast: what it calls has an unknown depth.
pub const fn broadcast_word(chain: u32) -> u32 {
    word(chain, UNKNOWN - 1)
}

/// The chain and the depth of a word; `None`: the depth is unknown.
pub const fn split(word: u32) -> (u32, Option<u32>) {
    let (chain, depth) = (word >> CHAIN_SHIFT, word & UNKNOWN);
    match (chain as usize > CHAINS_MAX, depth == UNKNOWN) {
        (true, _) => (NONE, None),
        (false, true) => (chain, None),
        (false, false) => (chain, Some(depth)),
    }
}

/// `chain` with that zone. If all numbers are in use, one whose zone `has_ended` is used again; if there is
/// none, the calls of this broadcast are not followed.
pub fn with(chain: u32, zone: u32, has_ended: impl Fn(u32) -> bool) -> u32 {
    lock().with(chain, zone, has_ended)
}

/// Record that a call of `chain` waits in `zone` until the result is dropped or `task`, if present, has
/// begun. Returns `None` and records nothing if the call would wait for a broadcast that waits for it. A zone
/// `is_held_up` while it has a broadcast that not all its workers have run.
pub fn wait(
    chain: u32,
    zone: u32,
    task: Option<&'static Task>,
    is_held_up: impl Fn(u32) -> bool,
) -> Option<Wait> {
    let number = lock().begin(chain, zone, task, is_held_up)?;
    Some(Wait { number, chain })
}

/// A call that waits, or a broadcast that its caller blocks on.
pub struct Wait {
    number: u64,
    pub chain: u32,
}

impl Drop for Wait {
    fn drop(&mut self) {
        lock().end(self.number);
    }
}

fn lock() -> MutexGuard<'static, Chains> {
    CHAINS.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Chains {
    /// The zones of each chain, by number less one.
    sets: Vec<Box<[u32]>>,
    waits: Vec<Waiting>,
    waits_made: u64,
}

struct Waiting {
    number: u64,
    chain: u32,
    zone: u32,
    task: Option<&'static Task>,
}

impl Waiting {
    fn has_begun(&self) -> bool {
        self.task.is_some_and(|task| matches!(task.state(), State::Running { .. }))
    }
}

impl Chains {
    const fn new() -> Self {
        Self { sets: Vec::new(), waits: Vec::new(), waits_made: 0 }
    }

    fn with(&mut self, chain: u32, zone: u32, has_ended: impl Fn(u32) -> bool) -> u32 {
        let mut zones = self.zones(chain).to_vec();
        zones.push(zone);
        zones.sort_unstable();
        zones.dedup();
        if let Some(known) = self.sets.iter().position(|other| **other == *zones) {
            return known as u32 + 1;
        }
        let zones = zones.into_boxed_slice();
        if self.sets.len() < CHAINS_MAX {
            self.sets.push(zones);
            return self.sets.len() as u32;
        }
        let waits = |index: usize| self.waits.iter().any(|wait| wait.chain as usize == index + 1);
        let mut sets = self.sets.iter().enumerate();
        let free = sets.position(|(index, other)| other.iter().copied().any(&has_ended) && !waits(index));
        free.map_or(NONE, |free| {
            self.sets[free] = zones;
            free as u32 + 1
        })
    }

    fn begin(
        &mut self,
        chain: u32,
        zone: u32,
        task: Option<&'static Task>,
        is_held_up: impl Fn(u32) -> bool,
    ) -> Option<u64> {
        if self.leads_back(chain, zone, is_held_up) {
            return None;
        }
        self.waits_made += 1;
        self.waits.push(Waiting { number: self.waits_made, chain, zone, task });
        Some(self.waits_made)
    }

    fn end(&mut self, number: u64) {
        self.waits.retain(|wait| wait.number != number);
    }

    /// Whether what a call to `zone` would wait for leads to a zone of `chain`: that zone itself, or one that
    /// its broadcasts wait for, and so on, through zones that are held up. In any other a call can begin.
    fn leads_back(&self, chain: u32, zone: u32, is_held_up: impl Fn(u32) -> bool) -> bool {
        let mut zones = vec![zone];
        let mut seen = 0;
        while let Some(&zone) = zones.get(seen) {
            seen += 1;
            if !is_held_up(zone) {
                continue;
            }
            if self.zones(chain).contains(&zone) {
                return true;
            }
            for wait in &self.waits {
                let is_edge = !zones.contains(&wait.zone) && self.zones(wait.chain).contains(&zone);
                if is_edge && !wait.has_begun() {
                    zones.push(wait.zone);
                }
            }
        }
        false
    }

    fn zones(&self, chain: u32) -> &[u32] {
        (chain as usize).checked_sub(1).and_then(|index| self.sets.get(index)).map_or(&[], |zones| zones)
    }
}

#[cfg(test)]
mod tests;
