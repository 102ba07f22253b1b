//! What a child asks of its system: to end with its parent, and to have a bound of memory. What all systems
//! of Unix have alike is here.

#[cfg(target_os = "linux")]
#[path = "platform/linux.rs"]
mod chosen;
#[cfg(not(target_os = "linux"))]
#[path = "platform/other.rs"]
mod chosen;

pub use chosen::{end_with_parent, limit_memory};

use std::{io, os::fd::RawFd, time::Duration};

/// What a descriptor is waited for, and whether it has come.
#[derive(Clone, Copy)]
pub struct Awaited {
    pub descriptor: RawFd,
    pub to_write: bool,
    pub is_ready: bool,
}

impl Awaited {
    /// Readable, closed, or writable if `to_write`.
    pub const fn new(descriptor: RawFd, to_write: bool) -> Self {
        Self { descriptor, to_write, is_ready: false }
    }
}

/// Wait until one of the descriptors is readable or closed, or writable where that is asked for.
pub fn wait_for<const COUNT: usize>(all: &mut [Awaited; COUNT], limit: Option<Duration>) {
    let mut polled = all.map(|each| libc::pollfd {
        fd: each.descriptor,
        events: libc::POLLIN | if each.to_write { libc::POLLOUT } else { 0 },
        revents: 0,
    });
    let ms = limit.map_or(-1, |limit| i32::try_from(limit.as_millis()).unwrap_or(i32::MAX));
    // SAFETY: the system reads and writes COUNT entries, which outlive the call.
    unsafe { libc::poll(polled.as_mut_ptr(), COUNT as libc::nfds_t, ms) };
    for (each, polled) in all.iter_mut().zip(polled) {
        each.is_ready = polled.revents != 0;
    }
}

/// Close `descriptor` in programs that this process starts; an error if it is not open.
pub fn keep_to_oneself(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: takes numbers.
    match unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// End a child and wait for its end, unless its starter did that before it ended.
pub fn end_child(pid: i32) {
    // SAFETY: take numbers and a null pointer. A child that nobody has waited for keeps its number.
    unsafe {
        if libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) == 0 {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
}

/// End this process, whatever its threads do.
pub fn end_now() -> ! {
    // SAFETY: takes a number.
    unsafe { libc::_exit(0) }
}
