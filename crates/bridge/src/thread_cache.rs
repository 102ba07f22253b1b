//! What a thread has here, found by the environment of a call.
//!
//! The storage of a thread costs a library that is loaded late a call of its own, 10 to 15 ns of a call that
//! takes 150; a look into these places costs two. They are a cache: what does not find its place free is
//! found in the storage of its thread alone. That is where a thread's first port is noted too, for those who
//! need no more of the thread.

use std::{cell::Cell, ptr};

use crate::{
    port::Port,
    sync::{AtomicPtr, Ordering},
};

const PLACES_LOG: u32 = if cfg!(loom) { 1 } else { 6 };
const PLACES: usize = 1 << PLACES_LOG;

/// Things of threads, by their environments, of which only the addresses count.
#[derive(Debug)]
pub struct ThreadCache<K, T>([Place<K, T>; PLACES]);

/// Only its own thread writes an environment here, and what comes with it, and removes both. So the one who
/// finds its own environment reads what itself has written.
#[derive(Debug)]
struct Place<K, T> {
    env: AtomicPtr<K>,
    thing: AtomicPtr<T>,
}

impl<K, T> ThreadCache<K, T> {
    /// No things.
    #[cfg(not(loom))]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a constant, for statics")]
    pub const fn new() -> Self {
        Self(
            [const { Place { env: AtomicPtr::new(ptr::null_mut()), thing: AtomicPtr::new(ptr::null_mut()) } };
                PLACES],
        )
    }

    /// The same for loom, whose atomics are no constants.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        let none = |_| Place { env: AtomicPtr::new(ptr::null_mut()), thing: AtomicPtr::new(ptr::null_mut()) };
        Self(std::array::from_fn(none))
    }

    #[inline]
    fn place(&self, env: *mut K) -> &Place<K, T> {
        // Fibonacci hashing; addresses differ above their lowest bits.
        let hash = (env.addr() as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(hash >> (u64::BITS - PLACES_LOG)) as usize]
    }

    /// The thing of an environment, null when it is not here. On the environment's thread.
    #[inline]
    #[must_use]
    pub fn get(&self, env: *mut K) -> *mut T {
        let place = self.place(env);
        // Relaxed: only this thread writes its environment, and what comes with it.
        if place.env.load(Ordering::Relaxed) == env {
            place.thing.load(Ordering::Relaxed)
        } else {
            ptr::null_mut()
        }
    }

    /// Keep the thing of an environment here, if there is room. On the environment's thread, which removes it
    /// before the environment ends: its address may be another one's then.
    pub fn put(&self, env: *mut K, thing: *mut T) {
        let place = self.place(env);
        // Acquire: after what the place's last owner did to it.
        let was_free = place.env.compare_exchange(ptr::null_mut(), env, Ordering::Acquire, Ordering::Relaxed);
        if was_free.is_ok() {
            place.thing.store(thing, Ordering::Relaxed);
        }
    }

    /// The thing of an environment goes. On the environment's thread.
    pub fn remove(&self, env: *mut K) {
        let place = self.place(env);
        if place.env.load(Ordering::Relaxed) == env {
            place.thing.store(ptr::null_mut(), Ordering::Relaxed);
            // Release: before what the place's next owner does to it.
            place.env.store(ptr::null_mut(), Ordering::Release);
        }
    }
}

thread_local! {
    /// The first port of this thread and its environment: one never changes threads, and a thread has one.
    static FIRST: Cell<Option<(*const (), &'static Port)>> = const { Cell::new(None) };
}

/// A port of this thread is open.
pub fn port_opened<K>(env: *mut K, port: &'static Port) {
    if FIRST.get().is_none() {
        FIRST.set(Some((env.cast_const().cast(), port)));
    }
}

/// This thread's first port, if it is open.
#[must_use]
pub fn port() -> Option<&'static Port> {
    FIRST.get().map(|(_, port)| port)
}

/// Whether this is the environment of this thread's first port, which that port does not outlive.
#[must_use]
pub fn is_first<K>(env: *mut K) -> bool {
    FIRST.get().is_some_and(|(first, _)| ptr::eq(first, env.cast()))
}

/// A port of this thread is closed.
pub fn port_closed(port: &'static Port) {
    if FIRST.get().is_some_and(|(_, first)| ptr::eq(first, port)) {
        FIRST.set(None);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn env(number: usize) -> *mut u8 {
        ptr::without_provenance_mut(number << 4)
    }

    #[test]
    fn each_finds_its_own_or_nothing() {
        let here = ThreadCache::<u8, usize>::new();
        let mut things: Vec<_> = (0..4 * PLACES).collect();
        let things: Vec<*mut usize> = things.iter_mut().map(ptr::from_mut).collect();
        for (number, &thing) in things.iter().enumerate() {
            here.put(env(number + 1), thing);
        }
        let found = |number: usize| here.get(env(number + 1));
        let kept: Vec<_> = (0..things.len()).filter(|&number| !found(number).is_null()).collect();
        assert!(kept.len() > PLACES / 2 && kept.len() <= PLACES, "{} of {}", kept.len(), things.len());
        assert!(kept.iter().all(|&number| found(number) == things[number]));
        kept.iter().for_each(|&number| here.remove(env(number + 1)));
        assert!((0..things.len()).all(|number| found(number).is_null()));
        here.put(env(1), things[0]);
        assert_eq!(found(0), things[0]);
    }

    #[test]
    fn threads_that_come_and_go_never_find_what_is_not_theirs() {
        static HERE: ThreadCache<u8, usize> = ThreadCache::new();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                scope.spawn(move || {
                    for round in 0..if cfg!(miri) { 50 } else { 50_000 } {
                        let env = env(1 + thread + 4 * (round % 100));
                        let mut own = round;
                        HERE.put(env, &raw mut own);
                        let found = HERE.get(env);
                        assert!(found.is_null() || found == &raw mut own);
                        HERE.remove(env);
                        assert!(HERE.get(env).is_null());
                    }
                });
            }
        });
    }
}
