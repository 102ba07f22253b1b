//! macOS: a thread's priority is its quality of service.
//!
//! The system alone chooses the core of a thread, so everything about cores does nothing here.

/// Threads cannot be pinned.
pub const HAS_TICKER: bool = false;

/// There is no public call for it on Apple's processors: all threads seem to be on one core, and none
/// moves.
#[inline]
pub fn current_core() -> u32 {
    0
}

/// None can be chosen.
pub fn allowed_cores() -> impl Iterator<Item = u32> {
    std::iter::empty()
}

/// The system refuses.
pub fn pin(_: u32) -> bool {
    false
}

/// The system moves threads itself.
pub fn move_from(_: u32, _: impl Fn(u32) -> bool) -> bool {
    false
}

/// Steps of `nice` from which a thread has the lowest quality of service, which keeps it to the small
/// cores.
const BACKGROUND_STEPS: i32 = 15;

/// Lower this thread's priority: `nice` belongs to the process here, and quality of service to the thread.
pub fn renice(steps: i32) {
    use libc::qos_class_t::{QOS_CLASS_BACKGROUND, QOS_CLASS_UTILITY};
    let class = if steps >= BACKGROUND_STEPS { QOS_CLASS_BACKGROUND } else { QOS_CLASS_UTILITY };
    if steps > 0 {
        // SAFETY: takes numbers and concerns the calling thread. One that has left the classes, by a
        // policy of its own, stays as it is.
        unsafe { libc::pthread_set_qos_class_self_np(class, 0) };
    }
}

/// Slices are the system's.
pub fn short_slices() {}

pub fn thread_cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time; the clock of the calling thread always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The standard library's clock reads the counter itself here.
#[allow(dead_code, reason = "no counter is read on other processors, and in models")]
pub fn can_trust_counter() -> bool {
    false
}
