//! How a thread gives way to the others of the machine.
//!
//! A thread that computes at a high `nice` still keeps one that wakes up waiting: the scheduler lets whoever
//! runs finish a slice, some milliseconds, before it looks at weights (Linux's EEVDF, `RUN_TO_PARITY`). Since
//! Linux 6.12 a thread may ask for slices of its own length, so one that gives way asks for the shortest;
//! older kernels do not look at that field. Nowhere else than on Linux is a priority that of a thread.

/// The shortest slice that Linux gives, in ns.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 100_000;

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

/// Let this thread give way to others by so many steps of `nice`, in short slices.
#[cfg(target_os = "linux")]
pub fn give_way(steps: i32) {
    const KEEP_POLICY: u64 = 8;
    const NICEST: i32 = 19;
    // SAFETY: takes numbers; 0 is the calling thread. -1 is a priority too, so there is no error to see.
    let now = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let nice = now.saturating_add(steps).min(NICEST);
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: 0,
        flags: KEEP_POLICY,
        nice,
        priority: 0,
        runtime: SLICE_NS,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of a structure that lives until the call returns.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if set != 0 {
        // SAFETY: as above. Where a sandbox forbids that call, and this one too, the thread stays as it is.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    }
}

/// Elsewhere nothing happens.
#[cfg(not(target_os = "linux"))]
pub fn give_way(_: i32) {}
