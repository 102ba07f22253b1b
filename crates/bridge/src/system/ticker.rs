//! A ticker on each core, for threads that serve beside low-priority threads.
//!
//! Linux compares the threads of a core when one of them wakes up and at its own ticks, 4 ms apart at 250
//! Hz. A thread that has just run is often not entitled to the core at the moment it wakes up again, if
//! the one that computes there has nearly its weight; it is some 50 µs later, but nobody looks before the
//! next tick, so one request of fifty waits for milliseconds. A thread of its own on each core that wakes
//! up every [`PERIOD`] and does nothing makes the kernel look. The p99 of a light route beside a saturated
//! zone with `nice` 3 fell from 2.4 ms to 0.45, which is what `nice` 19 has, and the zone lost 2 %
//! (docs/design/service.md).
//!
//! The ticker runs while the process has something to serve ([`Foreground`]) and a low-priority thread is
//! awake ([`Background`]); its threads exist while there is one of each. A process without a server pays
//! one uncontended lock whenever a low-priority thread falls asleep or wakes up; other threads pay
//! nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::platform;

/// Half of it cost the zone twice as much and spared the others little.
const PERIOD: std::time::Duration = std::time::Duration::from_micros(250);

/// The process's.
static TICKER: Ticker = Ticker { state: Mutex::new(State::new()), wake_up: Condvar::new() };

struct Ticker {
    state: Mutex<State>,
    /// Something in the state has changed that its threads wait for.
    wake_up: Condvar,
}

struct State {
    serving: usize,
    /// Low-priority threads, and how many of them are awake.
    giving_way: usize,
    awake: usize,
    /// Present while its threads exist.
    threads: Option<Arc<Shared>>,
}

/// What the threads of a ticker look at.
struct Shared {
    /// Copies of the state, for looks without the lock. A late look is a tick too many or too few.
    is_needed: AtomicBool,
    is_over: AtomicBool,
}

impl State {
    const fn new() -> Self {
        Self { serving: 0, giving_way: 0, awake: 0, threads: None }
    }
}

impl Ticker {
    /// Change the state, and start, continue, pause or end the ticker accordingly.
    fn update(&'static self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        if state.serving == 0 || state.giving_way == 0 {
            if let Some(shared) = state.threads.take() {
                shared.is_over.store(true, Ordering::Relaxed);
                self.wake_up.notify_all();
            }
            return;
        }
        let is_needed = state.awake > 0;
        let shared = state.threads.get_or_insert_with(|| {
            let shared =
                Arc::new(Shared { is_needed: AtomicBool::new(false), is_over: AtomicBool::new(false) });
            start(&shared);
            shared
        });
        if shared.is_needed.swap(is_needed, Ordering::Relaxed) != is_needed && is_needed {
            self.wake_up.notify_all();
        }
    }

    /// Wait until the ticker is needed again. False: it is over.
    fn pause(&self, shared: &Shared) -> bool {
        let idle = |_: &mut State| {
            // Both are written with the lock held, so none of these changes is missed.
            !shared.is_needed.load(Ordering::Relaxed) && !shared.is_over.load(Ordering::Relaxed)
        };
        let _state = self.wake_up.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        !shared.is_over.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that serves requests: while it exists, low-priority threads are interrupted often.
pub struct Foreground(());

impl Foreground {
    /// From now on, until it is dropped.
    pub fn begin() -> Self {
        TICKER.update(|state| state.serving += 1);
        Self(())
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        TICKER.update(|state| state.serving -= 1);
    }
}

/// A low-priority thread; awake at first.
pub struct Background {
    is_awake: bool,
}

impl Background {
    /// Before the thread's priority changes: the threads of the ticker inherit the one it has.
    pub fn begin() -> Self {
        TICKER.update(|state| {
            state.giving_way += 1;
            state.awake += 1;
        });
        Self { is_awake: true }
    }

    /// The thread runs, or waits for work.
    pub fn set_awake(&mut self, is_awake: bool) {
        if self.is_awake != is_awake {
            self.is_awake = is_awake;
            TICKER.update(|state| if is_awake { state.awake += 1 } else { state.awake -= 1 });
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.set_awake(false);
        TICKER.update(|state| state.giving_way -= 1);
    }
}

/// A thread for each core that the process may use. One that cannot be started or pinned is missing: the
/// others of that core wait for the kernel's ticks then.
fn start(shared: &Arc<Shared>) {
    const STACK_BYTES: usize = 64 * 1024;
    if !platform::HAS_TICKER {
        return;
    }
    for core in crate::cores::allowed() {
        let shared = Arc::clone(shared);
        let ticks = move || {
            if !crate::cores::pin(core) {
                return;
            }
            crate::priority::short_slices();
            while TICKER.pause(&shared) {
                while shared.is_needed.load(Ordering::Relaxed) && !shared.is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(PERIOD);
                    #[cfg(test)]
                    tests::TICKS.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let named = std::thread::Builder::new().name("corespun-tick".into()).stack_size(STACK_BYTES);
        drop(named.spawn(ticks));
    }
}

#[cfg(test)]
mod tests;
