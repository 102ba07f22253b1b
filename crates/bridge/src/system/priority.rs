//! Lowering the priority of a thread against the others of the machine.
//!
//! Weight alone keeps a thread that wakes up waiting: Linux's EEVDF lets the running thread finish a slice,
//! some milliseconds, before it compares (`RUN_TO_PARITY`). Since Linux 6.12 a thread sets the length of
//! its own slices, and one that wakes up preempts at once a thread whose slices are longer than its own and
//! whose deadline, the end of its slice, is later (`PREEMPT_SHORT`). So a low-priority thread asks for
//! long slices: they move its deadlines away and leave its share as it is. Older kernels ignore the field.
//! Outside Linux a priority belongs to a process, not to a thread.

/// Several times the slice that Linux has by default (at most some 3 ms), in ns. Longer ones, up to the 100
/// ms that it accepts, do not spare the others more, and two workers on one core would take turns less
/// often.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 10_000_000;

/// `struct sched_attr` in its first version, linux/sched/types.h.
#[cfg(target_os = "linux")]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The slice, for threads that share by weight.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest slice that Linux has, in ns: a thread with it preempts all others when it wakes up.
#[cfg(target_os = "linux")]
const SHORT_SLICE_NS: u64 = 100_000;

/// Lower this thread's priority by so many steps of `nice`, and ask for long slices.
#[cfg(target_os = "linux")]
pub fn renice(steps: i32) {
    const NICEST: i32 = 19;
    let nice = current().saturating_add(steps).min(NICEST);
    if !set(nice, SLICE_NS) {
        // SAFETY: takes numbers. Where a sandbox forbids both calls the thread stays as it is.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    }
}

/// Elsewhere nothing happens.
#[cfg(not(target_os = "linux"))]
pub fn renice(_: i32) {}

/// Let this thread preempt others when it wakes up; it must need the core for microseconds only.
#[cfg(target_os = "linux")]
pub fn short_slices() {
    // Older kernels, and sandboxes, leave the thread as it is.
    set(current(), SHORT_SLICE_NS);
}

#[cfg(target_os = "linux")]
fn current() -> i32 {
    // SAFETY: takes numbers; 0 is the calling thread. -1 is a priority too, so there is no error to see.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

#[cfg(target_os = "linux")]
fn set(nice: i32, slice_ns: u64) -> bool {
    const KEEP_POLICY: u64 = 8;
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: 0,
        flags: KEEP_POLICY,
        nice,
        priority: 0,
        runtime: slice_ns,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of a structure that is valid until the call returns.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}
