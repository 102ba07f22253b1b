//! Linux: the kernel ends a child with the thread that started it, and bounds the memory that it may write
//! to.

/// Let the kernel end this process when the thread that started it ends; at once if `parent` has ended.
pub fn end_with_parent(parent: u32) {
    // SAFETY: take numbers.
    let now = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid()
    };
    // It may have ended before the call above.
    if u32::try_from(now) != Ok(parent) {
        super::end_now();
    }
}

/// Bound the memory that this process alone may write to, heap, stacks and anonymous mappings, used or not,
/// to `bytes` more than now: V8 has mapped up to half a gigabyte for code. Address space that is only
/// reserved does not count. False: refused.
pub fn limit_memory(bytes: u64) -> bool {
    let Some(most) = written_bytes().map(|now| now.saturating_add(bytes)) else { return false };
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the kernel reads the structure during the call.
    unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) == 0 }
}

/// What that memory is now, as the kernel counts it.
fn written_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}
