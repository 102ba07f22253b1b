//! Which core a thread runs on, and how it goes to another.
//!
//! A scheduler may put the two threads of a conversation on one core and leave them there, because each
//! sleeps while the other runs: then a thread that waits by spinning keeps the very thread from running
//! that it waits for. So who is about to spin where another mailbox's thread is awake steps aside first:
//! it excludes its core from its affinity, which moves it at once, and then restores what was. Rare: at
//! most once a millisecond, ever more seldom while spinning does not pay. Only where the system has such
//! calls; elsewhere nobody moves.

use std::time::{Duration, Instant};

/// Shortest and longest time between two moves of a thread.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The core that this thread runs on, at this moment.
#[cfg(target_os = "linux")]
pub fn current() -> u32 {
    // SAFETY: takes nothing, returns a number or -1.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// Elsewhere all threads seem to be on one core, and nobody moves.
#[cfg(not(target_os = "linux"))]
pub fn current() -> u32 {
    0
}

/// The cores that this thread may run on.
#[cfg(target_os = "linux")]
pub fn allowed() -> impl Iterator<Item = u32> {
    const SIZE: usize = size_of::<libc::cpu_set_t>();
    // SAFETY: a zeroed set is an empty one; thread 0 is the calling thread; the kernel writes at most SIZE
    // bytes.
    let allowed = unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, SIZE, &raw mut allowed);
        allowed
    };
    // SAFETY: cores are below the set's size.
    (0..(SIZE * 8) as u32).filter(move |core| unsafe { libc::CPU_ISSET(*core as usize, &allowed) })
}

/// Keep this thread on `core`, which is one of [`allowed`]. False: the system refuses.
#[cfg(target_os = "linux")]
pub fn pin(core: u32) -> bool {
    const SIZE: usize = size_of::<libc::cpu_set_t>();
    // SAFETY: as in `allowed`; the core is below the set's size.
    unsafe {
        let mut only: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core as usize, &mut only);
        libc::sched_setaffinity(0, SIZE, &raw const only) == 0
    }
}

/// One thread's habit of stepping aside.
pub struct StepAside {
    next: Option<Instant>,
    pause: Duration,
}

impl Default for StepAside {
    /// A thread that has not moved yet.
    fn default() -> Self {
        Self { next: None, pause: PAUSE_MIN }
    }
}

impl StepAside {
    /// Spinning has paid: where the threads are now is good.
    pub const fn paid(&mut self) {
        self.pause = PAUSE_MIN;
    }

    /// Go from `core` to one that this thread may use and `is_free` accepts. Returns whether it went.
    pub fn leave(&mut self, core: u32, is_free: impl Fn(u32) -> bool) -> bool {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.next = Some(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        move_from(core, is_free)
    }
}

#[cfg(target_os = "linux")]
fn move_from(core: u32, is_free: impl Fn(u32) -> bool) -> bool {
    const SIZE: usize = size_of::<libc::cpu_set_t>();
    // SAFETY: a zeroed set is an empty one; thread 0 is the calling thread; cores are below the set's size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, SIZE, &raw mut allowed) != 0 {
            return false;
        }
        let mut others: libc::cpu_set_t = std::mem::zeroed();
        for other in 0..(SIZE * 8) as u32 {
            if other != core && libc::CPU_ISSET(other as usize, &allowed) && is_free(other) {
                libc::CPU_SET(other as usize, &mut others);
            }
        }
        let moved = libc::CPU_COUNT(&others) > 0 && libc::sched_setaffinity(0, SIZE, &raw const others) == 0;
        if moved {
            libc::sched_setaffinity(0, SIZE, &raw const allowed);
        }
        moved
    }
}

#[cfg(not(target_os = "linux"))]
fn move_from(_: u32, _: impl Fn(u32) -> bool) -> bool {
    false
}
