//! Linux: affinity, priorities and slices of single threads, and the kernel's opinion of the processor's
//! counter.

/// Its scheduler compares threads at wake-ups and ticks, which the ticker adds.
pub const HAS_TICKER: bool = true;

const SET_BYTES: usize = size_of::<libc::cpu_set_t>();
const CORES_MAX: u32 = (SET_BYTES * 8) as u32;

#[inline]
pub fn current_core() -> u32 {
    // SAFETY: takes nothing, returns a number or -1.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The affinity of this thread; `None` if the system refuses.
fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: a zeroed set is an empty one; thread 0 is the calling thread; the kernel writes at most
    // SET_BYTES.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, SET_BYTES, &raw mut allowed) == 0).then_some(allowed)
    }
}

fn set_affinity(cores: &libc::cpu_set_t) -> bool {
    // SAFETY: the kernel reads SET_BYTES of a set; thread 0 is the calling thread.
    unsafe { libc::sched_setaffinity(0, SET_BYTES, &raw const *cores) == 0 }
}

/// The cores of `set` among those that `accept` accepts.
fn chosen(set: &libc::cpu_set_t, accept: impl Fn(u32) -> bool) -> libc::cpu_set_t {
    // SAFETY: a zeroed set is an empty one; cores are below the set's size.
    unsafe {
        let mut chosen: libc::cpu_set_t = std::mem::zeroed();
        for core in 0..CORES_MAX {
            if libc::CPU_ISSET(core as usize, set) && accept(core) {
                libc::CPU_SET(core as usize, &mut chosen);
            }
        }
        chosen
    }
}

pub fn allowed_cores() -> impl Iterator<Item = u32> {
    let allowed = affinity();
    // SAFETY: cores are below the set's size.
    (0..CORES_MAX)
        .filter(move |&core| allowed.is_some_and(|set| unsafe { libc::CPU_ISSET(core as usize, &set) }))
}

/// Keep this thread on `core`, which is one of [`allowed_cores`]. False: the system refuses.
pub fn pin(core: u32) -> bool {
    affinity().is_some_and(|allowed| set_affinity(&chosen(&allowed, |other| other == core)))
}

/// Move this thread at once from `core` to one that it may use and `is_free` accepts, and leave its
/// affinity as it was. Returns whether it moved.
pub fn move_from(core: u32, is_free: impl Fn(u32) -> bool) -> bool {
    let Some(allowed) = affinity() else { return false };
    let others = chosen(&allowed, |other| other != core && is_free(other));
    // SAFETY: reads the set.
    let moved = unsafe { libc::CPU_COUNT(&others) } > 0 && set_affinity(&others);
    moved && {
        set_affinity(&allowed);
        true
    }
}

/// Several times the slice that Linux has by default (at most some 3 ms), in ns. Longer ones, up to the 100
/// ms that it accepts, do not spare the others more, and two workers on one core would take turns less
/// often.
const SLICE_NS: u64 = 10_000_000;
/// The shortest slice that Linux has, in ns: a thread with it preempts all others when it wakes up.
const SHORT_SLICE_NS: u64 = 100_000;

/// `struct sched_attr` in its first version, linux/sched/types.h.
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

/// Lower this thread's priority by `steps` of `nice`, and ask for long slices.
pub fn renice(steps: i32) {
    const NICEST: i32 = 19;
    let nice = nice().saturating_add(steps).min(NICEST);
    if !set_priority(nice, SLICE_NS) {
        // SAFETY: takes numbers. Where a sandbox forbids both calls the thread stays as it is.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    }
}

/// Let this thread preempt others when it wakes up. Older kernels, and sandboxes, leave it as it is.
pub fn short_slices() {
    set_priority(nice(), SHORT_SLICE_NS);
}

fn nice() -> i32 {
    // SAFETY: takes numbers; 0 is the calling thread. -1 is a priority too, so there is no error to see.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

fn set_priority(nice: i32, slice_ns: u64) -> bool {
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

pub fn thread_cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time; the clock of the calling thread always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Whether all cores count alike: the kernel checks at boot and while it runs, and publishes the clock it
/// uses.
#[allow(dead_code, reason = "no counter is read on other processors, and in models")]
pub fn can_trust_counter() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(path).is_ok_and(|name| name.trim() == "tsc")
}
