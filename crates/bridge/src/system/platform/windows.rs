//! Windows: priorities and affinities of single threads, within the processor group that a thread has
//! begun in.

use std::ffi::c_void;

/// A thread that wakes up preempts those of lower priority at once, so nothing needs to be reminded.
pub const HAS_TICKER: bool = false;

type Handle = *mut c_void;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetCurrentProcessorNumber() -> u32;
    fn GetCurrentProcess() -> Handle;
    fn GetCurrentThread() -> Handle;
    fn GetProcessAffinityMask(process: Handle, allowed: *mut usize, existing: *mut usize) -> i32;
    fn SetThreadAffinityMask(thread: Handle, cores: usize) -> usize;
    fn SetThreadPriority(thread: Handle, priority: i32) -> i32;
    fn GetThreadTimes(
        thread: Handle,
        begun: *mut u64,
        ended: *mut u64,
        kernel: *mut u64,
        user: *mut u64,
    ) -> i32;
}

#[inline]
pub fn current_core() -> u32 {
    // SAFETY: takes nothing, returns a number.
    unsafe { GetCurrentProcessorNumber() }
}

/// A bit for each core that the process may use; 0 if it spans several groups.
fn affinity() -> usize {
    let (mut allowed, mut existing) = (0, 0);
    // SAFETY: writes two locals; the handle of the own process is a constant.
    let known =
        unsafe { GetProcessAffinityMask(GetCurrentProcess(), &raw mut allowed, &raw mut existing) } != 0;
    if known { allowed } else { 0 }
}

fn set_affinity(cores: usize) -> Option<usize> {
    // SAFETY: takes numbers; the handle of the own thread is a constant. 0 is a refusal.
    Some(unsafe { SetThreadAffinityMask(GetCurrentThread(), cores) }).filter(|&before| before != 0)
}

pub fn allowed_cores() -> impl Iterator<Item = u32> {
    let allowed = affinity();
    (0..usize::BITS).filter(move |core| allowed >> core & 1 == 1)
}

/// Keep this thread on `core`, which is one of [`allowed_cores`]. False: the system refuses.
pub fn pin(core: u32) -> bool {
    core < usize::BITS && set_affinity(1 << core).is_some()
}

/// Move this thread at once from `core` to one that it may use and `is_free` accepts, and leave its
/// affinity as it was. Returns whether it moved.
pub fn move_from(core: u32, is_free: impl Fn(u32) -> bool) -> bool {
    let others = allowed_cores().filter(|&other| other != core && is_free(other));
    let cores = others.fold(0_usize, |cores, other| cores | 1 << other);
    let before = if cores == 0 { None } else { set_affinity(cores) };
    before.is_some_and(|before| set_affinity(before).is_some())
}

/// Steps of `nice` from which a thread has the lowest priority that is not idle.
const LOWEST_STEPS: i32 = 10;

/// Lower this thread's priority. A class of the process bounds it on both sides.
pub fn renice(steps: i32) {
    const BELOW_NORMAL: i32 = -1;
    const LOWEST: i32 = -2;
    if steps > 0 {
        let priority = if steps >= LOWEST_STEPS { LOWEST } else { BELOW_NORMAL };
        // SAFETY: takes numbers; the handle of the own thread is a constant. Refused, the thread stays as
        // it is.
        unsafe { SetThreadPriority(GetCurrentThread(), priority) };
    }
}

/// Slices are the system's.
pub fn short_slices() {}

/// The CPU time that this thread has used, in nanoseconds; it grows by a tick, 15.6 ms as a rule.
pub fn thread_cpu_ns() -> f64 {
    const UNIT_NS: f64 = 100.0;
    let (mut begun, mut ended, mut kernel, mut user) = (0_u64, 0_u64, 0_u64, 0_u64);
    // SAFETY: writes four locals; the handle of the own thread is a constant.
    unsafe {
        let (begun, ended) = (&raw mut begun, &raw mut ended);
        GetThreadTimes(GetCurrentThread(), begun, ended, &raw mut kernel, &raw mut user);
    }
    (kernel + user) as f64 * UNIT_NS
}

/// `QueryPerformanceCounter`, which the standard library's clock calls, reads the counter where it is
/// right.
#[allow(dead_code, reason = "no counter is read on other processors, and in models")]
pub fn can_trust_counter() -> bool {
    false
}
