//! Memory that several threads refer to by a number: SharedArrayBuffers, and ArrayBuffers on the move.
//!
//! A reference to a backing store belongs to V8, which alone copies and drops it: here it is only stored, as
//! the words it consists of. A reference that is no longer needed is kept aside until a thread that has an
//! isolate releases it.

use std::{
    collections::HashMap,
    ffi::c_void,
    ptr,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::registry::{self, lock};

/// A `std::shared_ptr<v8::BackingStore>`: pointer and control block. The third word makes the C ABI return it
/// through memory, as the C++ ABI does.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackingStore {
    /// The backing store; null once the reference was moved away.
    pub pointer: *mut c_void,
    /// Its count of references.
    pub control: *mut c_void,
    /// Never used.
    pub unused: *mut c_void,
}

// SAFETY: backing stores and their reference counts are thread-safe, and only V8 uses the pointers.
unsafe impl Send for BackingStore {}

struct Held {
    store: BackingStore,
    shared: bool,
    references: u32,
    /// Bytes that move with it; 0 for shared memory, which also stays with its sender.
    moved: usize,
}

/// References by number.
#[derive(Default)]
pub struct Buffers {
    held: HashMap<u32, Held>,
    /// Numbers of shared memory by the address of its backing store.
    shared: HashMap<usize, u32>,
    /// References for V8 to release, and whether their memory is shared.
    retired: Vec<(BackingStore, bool)>,
}

static BUFFERS: LazyLock<Mutex<Buffers>> = LazyLock::new(Mutex::default);

/// Whether the process's buffers have retired references; written under their lock.
static RETIRED: AtomicBool = AtomicBool::new(false);

/// The buffers of the process, locked.
pub fn buffers() -> MutexGuard<'static, Buffers> {
    lock(&BUFFERS)
}

/// Whether [`Buffers::take_retired`] has something to take.
#[inline]
pub fn has_retired() -> bool {
    // Relaxed: a hint; the next call releases what this one misses.
    RETIRED.load(Ordering::Relaxed)
}

impl Buffers {
    /// Add a reference to shared memory; its number.
    pub fn share(&mut self, store: BackingStore) -> u32 {
        if let Some(&id) = self.shared.get(&store.pointer.addr()) {
            self.put_aside(store, true);
            if let Some(held) = self.held.get_mut(&id) {
                held.references += 1;
            }
            return id;
        }
        let id = self.insert(Held { store, shared: true, references: 1, moved: 0 });
        self.shared.insert(store.pointer.addr(), id);
        id
    }

    /// Keep memory of `moved` bytes that moves to another thread, with one reference; its number.
    pub fn keep(&mut self, store: BackingStore, moved: usize) -> u32 {
        self.insert(Held { store, shared: false, references: 1, moved })
    }

    fn insert(&mut self, held: Held) -> u32 {
        let id = registry::next_id();
        self.held.insert(id, held);
        id
    }

    /// The reference with that number and whether its memory is shared, for `make` to make a buffer of.
    /// Memory that moves has only one: its number is empty afterwards. `None` without a reference.
    pub fn take<R>(&mut self, id: u32, make: impl FnOnce(&mut BackingStore, bool) -> R) -> Option<R> {
        let held = self.held.get_mut(&id).filter(|held| !held.store.pointer.is_null())?;
        let made = make(&mut held.store, held.shared);
        if !held.shared {
            held.store.pointer = ptr::null_mut();
        }
        Some(made)
    }

    /// Drop one reference.
    pub fn release(&mut self, id: u32) {
        let Some(held) = self.held.get_mut(&id) else { return };
        held.references -= 1;
        if held.references == 0 {
            let Some(held) = self.held.remove(&id) else { return };
            if held.shared {
                self.shared.remove(&held.store.pointer.addr());
            }
            if !held.store.pointer.is_null() {
                self.put_aside(held.store, held.shared);
            }
        }
    }

    /// Keep a reference that is no longer needed until a thread with an isolate releases it.
    pub fn put_aside(&mut self, store: BackingStore, shared: bool) {
        self.retired.push((store, shared));
        RETIRED.store(true, Ordering::Relaxed);
    }

    /// The references to release, and whether their memory is shared.
    pub fn take_retired(&mut self) -> Vec<(BackingStore, bool)> {
        RETIRED.store(false, Ordering::Relaxed);
        std::mem::take(&mut self.retired)
    }

    /// The number of shared and moved buffers that have not been taken or released; for leak checks.
    pub fn count(&self) -> usize {
        self.held.len()
    }
}

/// The references that belong to some bytes; dropped with the last clone.
#[derive(Clone)]
pub struct Attached(Arc<References>);

struct References {
    ids: Vec<u32>,
    moved: usize,
}

impl Attached {
    /// Take over one reference of each of `ids`.
    pub fn new(ids: Vec<u32>) -> Self {
        let moved = {
            let buffers = buffers();
            ids.iter().filter_map(|id| buffers.held.get(id)).map(|held| held.moved).sum()
        };
        Self(Arc::new(References { ids, moved }))
    }

    /// Bytes of memory that move with the references.
    pub fn moved(&self) -> usize {
        self.0.moved
    }

    /// Whether any of the references is to moved memory.
    pub fn moves(&self) -> bool {
        let buffers = buffers();
        self.0.ids.iter().any(|id| buffers.held.get(id).is_some_and(|held| !held.shared))
    }
}

impl Drop for References {
    fn drop(&mut self) {
        let mut buffers = buffers();
        for &id in &self.ids {
            buffers.release(id);
        }
    }
}

#[cfg(test)]
mod tests;
