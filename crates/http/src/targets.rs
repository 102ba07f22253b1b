//! Numbers for recent request targets, so that the host makes one string per target and not one per request.
//!
//! A direct-mapped cache of short targets: a new target replaces the one with the same hash. The cache has a
//! fixed size; a client that never repeats a target costs one copy per request.

use crate::layout::TARGETS;

/// Longest target that is cached.
const BYTES_MAX: usize = 63;

#[derive(Clone, Copy)]
struct Entry {
    len: u8,
    bytes: [u8; BYTES_MAX],
}

pub struct Targets {
    entries: Box<[Entry]>,
}

impl Default for Targets {
    fn default() -> Self {
        Self { entries: vec![Entry { len: 0, bytes: [0; BYTES_MAX] }; TARGETS].into_boxed_slice() }
    }
}

/// A hash for fixed-size tables, where collisions chosen by a client cost no more than a miss.
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = bytes.len() as u64;
    for word in words {
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
    }
    let last = rest.iter().fold(0_u64, |last, &byte| last << 8 | u64::from(byte));
    sum = (sum.rotate_left(5) ^ last).wrapping_mul(MULTIPLIER);
    sum ^ sum >> 32
}

impl Targets {
    /// The number of `target`, and whether it has just been assigned to it. `None`: the target is too long.
    #[inline]
    pub fn number(&mut self, target: &[u8], hash: u64) -> Option<(u32, bool)> {
        if target.len() > BYTES_MAX {
            return None;
        }
        let index = (hash as usize) % TARGETS;
        let entry = &mut self.entries[index];
        if usize::from(entry.len) == target.len() && entry.bytes[..target.len()] == *target {
            return Some((index as u32, false));
        }
        entry.len = target.len() as u8;
        entry.bytes[..target.len()].copy_from_slice(target);
        Some((index as u32, true))
    }
}
