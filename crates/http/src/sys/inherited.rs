//! Sockets that another process has opened and keeps: a service manager, or a program that starts this one.
//! They are duplicated, so the process can serve on them again.

use std::{
    ffi::OsString,
    io,
    mem::{self, MaybeUninit, offset_of},
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::ffi::OsStringExt,
    },
};

use super::{check, owned, set};

/// A descriptor of our own for the same socket.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved; the new descriptor has no other owner.
    owned(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) })
}

/// Make an inherited socket ready for a selector. `EINVAL`: it does not listen.
pub fn prepare_listener(socket: &OwnedFd) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    let (mut listens, mut size) = (0_i32, mem::size_of::<i32>() as libc::socklen_t);
    // SAFETY: `size` is that of the integer.
    check(unsafe {
        let value = (&raw mut listens).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN, value, &raw mut size)
    })?;
    if listens == 0 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: no memory is involved. The flag is one of the socket, in every process that has it.
    check(unsafe {
        let flags = check(libc::fcntl(fd, libc::F_GETFL))?;
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
    })?;
    // Accepted sockets inherit it; a Unix socket has no such option.
    set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32).ok();
    Ok(())
}

/// The path of a Unix socket; `None` for other sockets.
pub fn bound_path(socket: &OwnedFd) -> Option<OsString> {
    let mut address = MaybeUninit::<libc::sockaddr_un>::zeroed();
    let mut size = mem::size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: `size` is that of the address, which is all zeros where the kernel writes nothing.
    let address = unsafe {
        check(libc::getsockname(socket.as_raw_fd(), address.as_mut_ptr().cast(), &raw mut size)).ok()?;
        address.assume_init()
    };
    if i32::from(address.sun_family) != libc::AF_UNIX {
        return None;
    }
    let length = (size as usize).saturating_sub(offset_of!(libc::sockaddr_un, sun_path));
    let bytes = address.sun_path.iter().take(length).map(|&byte| byte as u8);
    Some(OsString::from_vec(bytes.take_while(|&byte| byte != 0).collect()))
}
