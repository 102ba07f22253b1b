//! Keys: bytes together with their hash, which is computed once for all tables of the process.
//!
//! A caller that uses a key repeatedly keeps its [`Key`]; one with bytes only makes a [`KeyRef`]. Shards,
//! version words and maps take their bits from the same hash.

use std::{
    cmp::Ordering,
    hash::{BuildHasher, Hash, Hasher},
    ops::Deref,
    sync::LazyLock,
};

use hashbrown::DefaultHashBuilder;
use quick_cache::Equivalent;

/// Seeded once per process, so that clients cannot choose keys that collide.
static HASHES: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// A borrowed key with its hash.
#[derive(Clone, Copy, Debug)]
pub struct KeyRef<'a> {
    bytes: &'a [u8],
    hash: u64,
}

/// An owned key with its hash.
#[derive(Clone, Debug)]
pub struct Key {
    hash: u64,
    bytes: Box<[u8]>,
}

impl<'a> KeyRef<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, hash: HASHES.hash_one(bytes) }
    }

    #[inline]
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub const fn hash(self) -> u64 {
        self.hash
    }

    pub fn to_key(self) -> Key {
        Key { hash: self.hash, bytes: self.bytes.into() }
    }
}

impl Key {
    #[inline]
    pub const fn as_ref(&self) -> KeyRef<'_> {
        KeyRef { bytes: &self.bytes, hash: self.hash }
    }
}

impl<'a> From<&'a [u8]> for KeyRef<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::new(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for KeyRef<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::new(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for KeyRef<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Hash for KeyRef<'_> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.bytes == other.bytes
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    #[inline]
    fn equivalent(&self, key: &Key) -> bool {
        self.hash == key.hash && *self.bytes == *key.bytes
    }
}

/// Passes on the hash of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Brought;

#[derive(Debug, Default)]
pub(crate) struct BroughtHasher(u64);

impl BuildHasher for Brought {
    type Hasher = BroughtHasher;

    #[inline]
    fn build_hasher(&self) -> BroughtHasher {
        BroughtHasher(0)
    }
}

impl Hasher for BroughtHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Keys write one u64; anything else still gets a hash.
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(5) ^ u64::from(byte));
    }
}
