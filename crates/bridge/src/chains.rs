//! Which zones' broadcasts wait for a call, through whichever other zones: its chain.
//!
//! A broadcast has its worker to itself, so a call that it waits for and that leads back to its zone would
//! wait for ever. Calls carry the number of their chain from task to task. Few chains differ, so each is kept
//! once, under a number that fits beside a depth.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Depths are smaller: `Limits::call_depth_max` is a million at most.
const CHAIN_SHIFT: u32 = 20;
/// In a word: the depth is not known.
const UNKNOWN: u32 = (1 << CHAIN_SHIFT) - 1;
/// Numbers up to this; the next one would make an unknown depth `DEPTH_UNKNOWN`.
const CHAINS_MAX: usize = 0xffe;
/// The chain of a call that no broadcast waits for.
pub const NONE: u32 = 0;

/// The zones of each chain, by number less one.
static CHAINS: Mutex<Vec<Box<[u32]>>> = Mutex::new(Vec::new());

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

/// `chain` with that zone. When all numbers are in use, one whose zone `has_ended` is used again; with none
/// such the calls of this broadcast are not followed.
pub fn with(chain: u32, zone: u32, has_ended: impl Fn(u32) -> bool) -> u32 {
    let mut chains = lock();
    let mut zones = zones_of(&chains, chain).to_vec();
    zones.push(zone);
    zones.sort_unstable();
    zones.dedup();
    if let Some(known) = chains.iter().position(|other| **other == *zones) {
        return known as u32 + 1;
    }
    let zones = zones.into_boxed_slice();
    if chains.len() < CHAINS_MAX {
        chains.push(zones);
        return chains.len() as u32;
    }
    let free = chains.iter().position(|other| other.iter().copied().any(&has_ended));
    free.map_or(NONE, |free| {
        chains[free] = zones;
        free as u32 + 1
    })
}

/// Whether a broadcast of `zone` waits for the calls of `chain`.
pub fn contains(chain: u32, zone: u32) -> bool {
    chain != NONE && zones_of(&lock(), chain).contains(&zone)
}

fn lock() -> MutexGuard<'static, Vec<Box<[u32]>>> {
    CHAINS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn zones_of(chains: &[Box<[u32]>], chain: u32) -> &[u32] {
    (chain as usize).checked_sub(1).and_then(|index| chains.get(index)).map_or(&[], |zones| zones)
}

#[cfg(all(test, not(loom)))]
mod tests;
