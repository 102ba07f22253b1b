//! The numbers of functions by their call sites: where in which script each was written.
//!
//! A site is shared by all function objects that its code makes. crates/node gets it from the engine.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Later scripts have no call sites, so that every site is an exact double.
const SCRIPTS: i32 = 1 << 21;
/// Where only line and column are known, columns of longer lines are not distinguished.
const COLUMNS: i32 = 4096;
/// Sites remembered; a thread has more only if it makes code endlessly.
const KNOWN_MAX: usize = 50_000;

/// Where a function was written: the number of its script, from 1, and its position there.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CallSite {
    script: i32,
    position: i32,
}

impl CallSite {
    /// `None` when there is no call site with these numbers.
    #[inline]
    pub fn at(script: i32, position: i32) -> Option<Self> {
        ((1..SCRIPTS).contains(&script) && position >= 0).then_some(Self { script, position })
    }

    /// The same by line and column, from 0.
    pub fn at_line(script: i32, line: i32, column: i32) -> Option<Self> {
        if line < 0 || !(0..COLUMNS).contains(&column) {
            return None;
        }
        Self::at(script, line.checked_mul(COLUMNS)?.checked_add(column)?)
    }
}

/// The function numbers that one thread remembers. Scripts are numbered per isolate, so each thread has
/// its own.
#[derive(Debug, Default)]
pub struct CallSites(HashMap<CallSite, u32, BuildHasherDefault<SiteHasher>>);

impl CallSites {
    /// The number that was remembered for it, 0 when none was.
    #[inline]
    pub fn get(&self, site: CallSite) -> u32 {
        self.0.get(&site).copied().unwrap_or(0)
    }

    /// Remember the number of every function of this site. All others are forgotten when they are too many.
    pub fn remember(&mut self, site: CallSite, number: u32) {
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        self.0.insert(site, number);
    }
}

/// Mixes the two integers of a site, which come from the engine, so no attacker can choose them.
#[derive(Debug, Default)]
struct SiteHasher(u64);

impl Hasher for SiteHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_i32(i32::from(byte));
        }
    }

    fn write_i32(&mut self, value: i32) {
        self.0 =
            (self.0.rotate_left(29) ^ u64::from(value.cast_unsigned())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests;
