//! The lock of what threads wait for: that of `parking_lot`, or loom's when a model is explored.
//!
//! Semaphores and channels name it through here, so the code that loom explores is the code that ships.

#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;

/// Loom's, with the interface of `parking_lot`.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("a model ends with the first panic")
    }
}
