//! The state of the calling thread, found by the environment of a call.
//!
//! In a library that is loaded late, reading thread-local storage is a call of its own: 10 to 15 ns of a call
//! that takes 150. A look into these entries costs 2 ns. They are a cache: a value whose entry is in use is
//! found only in the storage of its thread, which also contains the thread's first mailbox.

use std::{cell::Cell, ptr};

use crate::{
    mailbox::Mailbox,
    sync::{AtomicPtr, Ordering},
};

const ENTRIES_LOG: u32 = if cfg!(loom) { 1 } else { 6 };
const ENTRIES: usize = 1 << ENTRIES_LOG;

/// Values of threads by the addresses of their environments.
pub struct ThreadCache<K, T>([Entry<K, T>; ENTRIES]);

/// Only the thread of an environment writes and removes it and its value, so a thread that finds its own
/// environment reads what it has written itself.
struct Entry<K, T> {
    env: AtomicPtr<K>,
    value: AtomicPtr<T>,
}

impl<K, T> ThreadCache<K, T> {
    #[cfg(not(loom))]
    #[expect(clippy::new_without_default, reason = "a constant, for statics")]
    pub const fn new() -> Self {
        Self(
            [const { Entry { env: AtomicPtr::new(ptr::null_mut()), value: AtomicPtr::new(ptr::null_mut()) } };
                ENTRIES],
        )
    }

    /// The same for loom, whose atomics cannot be constants.
    #[cfg(loom)]
    pub fn new() -> Self {
        let none = |_| Entry { env: AtomicPtr::new(ptr::null_mut()), value: AtomicPtr::new(ptr::null_mut()) };
        Self(std::array::from_fn(none))
    }

    #[inline]
    fn entry(&self, env: *mut K) -> &Entry<K, T> {
        // Fibonacci hashing; addresses differ above their lowest bits.
        let hash = (env.addr() as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(hash >> (u64::BITS - ENTRIES_LOG)) as usize]
    }

    /// The value of an environment; null if it is not cached. Called on the environment's thread.
    #[inline]
    pub fn get(&self, env: *mut K) -> *mut T {
        let entry = self.entry(env);
        // Relaxed: only this thread writes its environment and its value.
        if entry.env.load(Ordering::Relaxed) == env {
            entry.value.load(Ordering::Relaxed)
        } else {
            ptr::null_mut()
        }
    }

    /// Cache the value of an environment if its entry is free. Called on the environment's thread, which
    /// removes it before the environment ends: another environment may then have the same address.
    pub fn put(&self, env: *mut K, value: *mut T) {
        let entry = self.entry(env);
        // Acquire: pairs with the Release of the thread that has freed the entry.
        let was_free = entry.env.compare_exchange(ptr::null_mut(), env, Ordering::Acquire, Ordering::Relaxed);
        if was_free.is_ok() {
            entry.value.store(value, Ordering::Relaxed);
        }
    }

    /// Remove the value of an environment. Called on the environment's thread.
    pub fn remove(&self, env: *mut K) {
        let entry = self.entry(env);
        if entry.env.load(Ordering::Relaxed) == env {
            entry.value.store(ptr::null_mut(), Ordering::Relaxed);
            // Release: pairs with the Acquire of the thread that takes the entry next.
            entry.env.store(ptr::null_mut(), Ordering::Release);
        }
    }
}

thread_local! {
    /// The environment and the first mailbox of this thread. An environment never changes threads.
    static FIRST: Cell<Option<(*const (), &'static Mailbox)>> = const { Cell::new(None) };
}

/// Record that a mailbox of this thread has opened.
pub fn mailbox_opened<K>(env: *mut K, mailbox: &'static Mailbox) {
    if FIRST.get().is_none() {
        FIRST.set(Some((env.cast_const().cast(), mailbox)));
    }
}

/// Whether this is the environment of this thread's first mailbox, which that mailbox does not outlive.
pub fn is_first<K>(env: *mut K) -> bool {
    FIRST.get().is_some_and(|(first, _)| ptr::eq(first, env.cast()))
}

/// Record that a mailbox of this thread has closed.
pub fn mailbox_closed(mailbox: &'static Mailbox) {
    if FIRST.get().is_some_and(|(_, first)| ptr::eq(first, mailbox)) {
        FIRST.set(None);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
