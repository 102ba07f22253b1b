//! The bytes of a value, in memory that the next value of the same key may take over.
//!
//! Readers of long values hold the memory beyond the lock; then, and when the new value does not fit or would
//! waste half of it, memory is allocated.

use std::{ops::Deref, sync::Arc};

/// Values up to this size are copied under the lock of their shard, longer ones before or after it. A copy of
/// as much takes a microsecond or two: as long as whoever waits for the lock looks before it sleeps, and
/// longer than memory for another value costs.
pub const LOCKED_COPY_MAX: usize = 32 * 1024;

/// See the module's text. A copy shares the memory.
#[derive(Clone, Debug)]
pub struct Bytes {
    memory: Arc<[u8]>,
    len: usize,
}

impl Bytes {
    /// A copy of `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self { memory: bytes.into(), len: bytes.len() }
    }

    /// Become a copy of `bytes` where they lie; false, and nothing has changed, when that cannot be.
    #[inline]
    pub fn rewrite(&mut self, bytes: &[u8]) -> bool {
        let room = self.memory.len();
        if bytes.len() > room || bytes.len() < room / 2 || bytes.len() > LOCKED_COPY_MAX {
            return false;
        }
        let Some(memory) = Arc::get_mut(&mut self.memory) else { return false };
        memory[..bytes.len()].copy_from_slice(bytes);
        self.len = bytes.len();
        true
    }
}

impl From<Box<[u8]>> for Bytes {
    fn from(bytes: Box<[u8]>) -> Self {
        Self { len: bytes.len(), memory: bytes.into() }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}
