//! The bytes of a value, in memory that the next value of the same key can reuse.
//!
//! Short values are copied under the lock of their shard and do not share memory. Readers of long values keep
//! the memory beyond the lock. New memory is allocated while they do, when the new value does not fit, and
//! when it would waste half of it.

use std::{ops::Deref, sync::Arc};

/// Values up to this size are copied under the lock of their shard, longer ones before or after it. Copying
/// as much takes one or two microseconds: as long as a waiter spins before it sleeps, and longer than
/// allocating.
pub const LOCKED_COPY_MAX: usize = 32 * 1024;

/// A copy of a long value shares the memory.
#[derive(Clone, Debug)]
pub struct Bytes {
    memory: Memory,
    len: usize,
}

#[derive(Clone, Debug)]
enum Memory {
    Own(Box<[u8]>),
    Shared(Arc<[u8]>),
}

impl Bytes {
    pub fn new(bytes: &[u8]) -> Self {
        let memory = if bytes.len() <= LOCKED_COPY_MAX {
            Memory::Own(bytes.into())
        } else {
            Memory::Shared(bytes.into())
        };
        Self { memory, len: bytes.len() }
    }

    /// Becomes a copy of `bytes` in place; false and unchanged if that is impossible.
    #[inline]
    pub fn rewrite(&mut self, bytes: &[u8]) -> bool {
        let memory = match &mut self.memory {
            Memory::Own(memory) => &mut **memory,
            Memory::Shared(memory) => match Arc::get_mut(memory) {
                Some(memory) => memory,
                None => return false,
            },
        };
        if bytes.len() > memory.len() || bytes.len() < memory.len() / 2 || bytes.len() > LOCKED_COPY_MAX {
            return false;
        }
        memory[..bytes.len()].copy_from_slice(bytes);
        self.len = bytes.len();
        true
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::from(Box::default())
    }
}

impl From<Box<[u8]>> for Bytes {
    fn from(bytes: Box<[u8]>) -> Self {
        Self { len: bytes.len(), memory: Memory::Own(bytes) }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Own(memory) => &memory[..self.len],
            Memory::Shared(memory) => &memory[..self.len],
        }
    }
}
