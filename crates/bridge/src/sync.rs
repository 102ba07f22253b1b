//! The primitives of this crate: the standard library's, or loom's when a model is explored.
//!
//! Everything else in the crate names them through here, so the code that loom explores is the code that
//! ships. `Cell` has loom's shape (`with_mut`): a closure marks how long a raw pointer is in use.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell as Cell,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread::ThreadId,
};

#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread::ThreadId,
};

/// The thread that runs.
#[cfg_attr(not(unix), allow(dead_code, reason = "workers are processes on Unix alone"))]
pub(crate) fn this_thread() -> ThreadId {
    #[cfg(loom)]
    return loom::thread::current().id();
    #[cfg(not(loom))]
    std::thread::current().id()
}

/// What loom lacks and the program has: loom treats SeqCst loads and stores as acquire and release only,
/// so each step where "I write mine, then look at yours" must hold in both directions repeats it as a
/// fence for the model. Dropping one of these in a model is what weakening the SeqCst beside it would be
/// in the program.
#[inline(always)]
pub(crate) fn model_fence() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(not(loom))]
mod cell {
    /// `std::cell::UnsafeCell` with loom's interface.
    pub(crate) struct Cell<T>(std::cell::UnsafeCell<T>);

    impl<T> Cell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}
#[cfg(not(loom))]
pub(crate) use cell::Cell;

/// Lock `mutex`. No code in this crate runs foreign code under a lock, so a poisoned one can only follow a
/// failed assertion of ours; going on with the data is then better than taking the process down.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
