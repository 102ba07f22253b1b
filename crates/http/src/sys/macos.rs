//! macOS: flags that Linux takes with a call are set after it, files are opened one folder at a time.
//!
//! Nothing here is newer than macOS 10.15, the oldest that a supported Node runs on.

use std::{
    ffi::CStr,
    io, mem,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    ptr,
};

pub use super::stepwise::open_beneath;
use super::{READING, check, check_size, offset_of, owned, set};

/// Of several sockets on one port, one receives all connections.
pub const BALANCES_PORTS: bool = false;
/// Not a flag of a call here: see [`prepare`].
pub const SEND_FLAGS: libc::c_int = 0;
pub const COARSE_CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
pub const WALL_CLOCK: libc::clockid_t = libc::CLOCK_REALTIME;

/// Make a socket non-blocking, closed in child processes, and its closed connection an error, not a signal.
fn prepare(socket: OwnedFd) -> io::Result<OwnedFd> {
    let fd = socket.as_raw_fd();
    // SAFETY: no memory is involved.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: no memory is involved.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) })?;
    set(fd, libc::SOL_SOCKET, libc::SO_NOSIGPIPE, &1_i32)?;
    Ok(socket)
}

pub fn socket(family: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved.
    prepare(owned(unsafe { libc::socket(family, libc::SOCK_STREAM, 0) })?)
}

/// Nothing is paced here.
pub const fn send_unpaced(_: RawFd) {}

/// Listeners have no filters here.
pub const fn drop_handshakes(_: RawFd) {}

/// Accept a connection as a non-blocking socket. `ECONNABORTED`: its client has disconnected already.
pub fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the address pointers are null.
    let socket = owned(unsafe { libc::accept(listener, ptr::null_mut(), ptr::null_mut()) })?;
    // Options of a connection that is closed already fail with EINVAL.
    prepare(socket).map_err(|_| io::Error::from_raw_os_error(libc::ECONNABORTED))
}

#[inline]
pub fn receive(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length are those of the buffer.
    check_size(unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// Send as much as the kernel accepts. A closed connection is an error, not a signal.
#[inline]
pub fn send(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length are those of the bytes.
    check_size(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), SEND_FLAGS) })
}

/// Bytes that were sent and that the peer's kernel has not acknowledged; 0 if that is unknown.
pub fn unacked_bytes(fd: &OwnedFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    let mut size = mem::size_of_val(&bytes) as libc::socklen_t;
    let (to, name) = ((&raw mut bytes).cast(), libc::SO_NWRITE);
    // SAFETY: the kernel writes one integer, a local, whose size it receives.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, name, to, &raw mut size) };
    if result == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// Send bytes that a file follows. The kernel cannot be asked to wait for it.
pub fn send_before_file(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    send(fd, bytes)
}

/// Send bytes of a file from `offset` on, without copying them; 0 at its end. `EINVAL` and `ENOSYS`: its file
/// system cannot.
pub fn send_file(fd: &OwnedFd, file: &OwnedFd, offset: u64, bytes: usize) -> io::Result<usize> {
    // 0 would mean all of it.
    let mut sent = offset_of(bytes.max(1) as u64)?;
    let (from, none) = (offset_of(offset)?, ptr::null_mut());
    // SAFETY: the length is a local, which the kernel replaces by what it has sent, also when it fails.
    let result = unsafe { libc::sendfile(file.as_raw_fd(), fd.as_raw_fd(), from, &raw mut sent, none, 0) };
    match check(result) {
        Ok(_) => Ok(sent as usize),
        Err(error) => match error.raw_os_error() {
            // The kernel took a part.
            Some(libc::EAGAIN | libc::EINTR) if sent > 0 => Ok(sent as usize),
            Some(libc::ENOTSUP | libc::EOPNOTSUPP) => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
            _ => Err(error),
        },
    }
}

/// A descriptor of a folder, wherever its path leads. It has to be readable.
pub fn open_folder(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a C string.
    owned(unsafe { libc::open(path.as_ptr(), super::stepwise::FOLDER) })
}

/// A descriptor of what a path in a folder leads to, links included. It is open for reading: on macOS a
/// descriptor that only names a file cannot be opened.
pub fn open_name(folder: &OwnedFd, path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a C string.
    owned(unsafe { libc::openat(folder.as_raw_fd(), path.as_ptr(), READING) })
}

/// The same file, open for reading.
pub fn open_named(fd: &OwnedFd) -> io::Result<OwnedFd> {
    fd.try_clone()
}

/// The path of an open file, without links.
pub fn path_of(fd: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut path = vec![0_u8; libc::PATH_MAX as usize];
    // SAFETY: a buffer of the size that the call requires.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETPATH, path.as_mut_ptr()) }).map_err(|error| {
        let is_long = error.raw_os_error() == Some(libc::ENOSPC);
        if is_long { io::Error::from_raw_os_error(libc::ENAMETOOLONG) } else { error }
    })?;
    let end = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
    path.truncate(end);
    Ok(path)
}
