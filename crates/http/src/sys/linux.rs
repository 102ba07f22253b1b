//! Linux: the calls per request without the C library, files that are opened by what names them.
//!
//! The two calls per request go to the kernel directly: those of the C library are cancellation points,
//! which cost two atomic operations each in a process with several threads.

use std::{
    ffi::{CStr, CString},
    io, mem,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    ptr,
};

use super::{READING, check, check_size, offset_of, owned, set};

/// Several sockets on one port each receive a share of its connections.
pub const BALANCES_PORTS: bool = true;
/// A closed connection is an error, not a signal.
pub const SEND_FLAGS: libc::c_int = libc::MSG_NOSIGNAL;
/// Clocks that are advanced by the timer interrupt, which makes them cheaper.
pub const COARSE_CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC_COARSE;
pub const WALL_CLOCK: libc::clockid_t = libc::CLOCK_REALTIME_COARSE;

/// A non-blocking stream socket.
pub fn socket(family: libc::c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is involved.
    owned(unsafe { libc::socket(family, kind, 0) })
}

/// Have a listener's connections sent to without pacing, which accepted sockets inherit. BBR, where it is the
/// default, spreads packets over time by a timer; on a loopback device those have 64 KiB, and the timer
/// costs more than they do. No system refuses reno.
pub fn send_unpaced(listener: RawFd) {
    let name = b"reno";
    let size = name.len() as libc::socklen_t;
    // SAFETY: pointer and size are those of the name.
    check(unsafe {
        libc::setsockopt(listener, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), size)
    })
    .ok();
}

/// Have a listener drop what begins a handshake, not what ends one. The client sends it again after a second,
/// as if it had been lost, and reaches whichever listener has the port then.
pub fn drop_handshakes(listener: RawFd) {
    /// Where a TCP header has its flags, and which of them begins a handshake.
    const FLAGS_AT: u32 = 13;
    const SYN: u32 = 2;
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, FLAGS_AT),
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 1, SYN),
        step(libc::BPF_RET | libc::BPF_K, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // A kernel without filters resets a few clients more.
    set(listener, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program).ok();
}

/// Accept a connection as a non-blocking socket.
pub fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the address pointers are null.
    owned(unsafe { libc::accept4(listener, ptr::null_mut(), ptr::null_mut(), flags) })
}

#[inline]
pub fn receive(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length are those of the buffer.
    check_size(unsafe {
        let none = ptr::null_mut::<libc::c_void>();
        let (to, len) = (buffer.as_mut_ptr(), buffer.len());
        libc::syscall(libc::SYS_recvfrom, fd.as_raw_fd(), to, len, 0, none, none) as isize
    })
}

/// Send as much as the kernel accepts. A closed connection is an error, not a signal.
#[inline]
pub fn send(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length are those of the bytes.
    check_size(unsafe {
        let none = ptr::null_mut::<libc::c_void>();
        let (from, len, flags) = (bytes.as_ptr(), bytes.len(), SEND_FLAGS);
        libc::syscall(libc::SYS_sendto, fd.as_raw_fd(), from, len, flags, none, 0) as isize
    })
}

/// Bytes that were sent and that the peer's kernel has not acknowledged; 0 if that is unknown.
pub fn unacked_bytes(fd: &OwnedFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, a local.
    let failed = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) } != 0;
    if failed { 0 } else { u64::try_from(bytes).unwrap_or(0) }
}

/// Send bytes that a file follows: the kernel puts both into the same segments.
pub fn send_before_file(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = SEND_FLAGS | libc::MSG_MORE;
    // SAFETY: pointer and length are those of the bytes.
    check_size(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Send bytes of a file from `offset` on, without copying them; 0 at its end. `EINVAL` and `ENOSYS`: its file
/// system cannot. Node ignores `SIGPIPE`, as Rust's runtime does.
pub fn send_file(fd: &OwnedFd, file: &OwnedFd, offset: u64, bytes: usize) -> io::Result<usize> {
    let mut from = offset_of(offset)?;
    // SAFETY: the offset is a local, which the kernel updates.
    check_size(unsafe { libc::sendfile(fd.as_raw_fd(), file.as_raw_fd(), &raw mut from, bytes) })
}

/// A descriptor that names a folder, wherever its path leads.
pub fn open_folder(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a C string.
    owned(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) })
}

/// Open a file in a folder for reading. `ELOOP`: there is a symbolic link on the way; `ENOSYS` before Linux
/// 5.6.
pub fn open_beneath(folder: &OwnedFd, path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: all zeros is a valid value.
    let mut how: libc::open_how = unsafe { mem::zeroed() };
    how.flags = READING as u64;
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    let size = mem::size_of::<libc::open_how>();
    // SAFETY: a C string, and a local with its size.
    owned(unsafe {
        libc::syscall(libc::SYS_openat2, folder.as_raw_fd(), path.as_ptr(), &raw const how, size)
            as libc::c_int
    })
}

/// A descriptor that names what a path in a folder leads to, links included, and opens nothing.
pub fn open_name(folder: &OwnedFd, path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a C string.
    owned(unsafe { libc::openat(folder.as_raw_fd(), path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) })
}

/// Open for reading what a descriptor names.
pub fn open_named(fd: &OwnedFd) -> io::Result<OwnedFd> {
    let path = own_path(fd);
    // SAFETY: a C string.
    owned(unsafe { libc::open(path.as_ptr(), READING) })
}

/// The path of what a descriptor names, without links.
pub fn path_of(fd: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut path = vec![0_u8; libc::PATH_MAX as usize];
    let name = own_path(fd);
    // SAFETY: a C string, and a buffer with its size.
    let bytes = check_size(unsafe { libc::readlink(name.as_ptr(), path.as_mut_ptr().cast(), path.len()) })?;
    if bytes == path.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    path.truncate(bytes);
    Ok(path)
}

fn own_path(fd: &OwnedFd) -> CString {
    CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};

    use super::*;
    use crate::sys::{address_of, listen_at};

    /// The congestion control of a connection to a listener.
    fn control(listener: SocketAddr) -> String {
        let listener = listen_at(listener, 1, false).expect("a free port");
        let mut address = address_of(&listener, false).expect("an address");
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let _client = TcpStream::connect(address).expect("a listener");
        let socket = accept(listener.as_raw_fd()).expect("a connection");
        let (mut name, mut size) = ([0_u8; 16], 16);
        let (fd, to) = (socket.as_raw_fd(), name.as_mut_ptr().cast());
        // SAFETY: a buffer and its size.
        let result =
            unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, to, &raw mut size) };
        assert_eq!(result, 0);
        String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
    }

    #[test]
    #[cfg_attr(miri, ignore = "sockets")]
    fn only_clients_of_this_machine_are_sent_to_without_pacing() {
        assert_eq!(control((Ipv4Addr::LOCALHOST, 0).into()), "reno");
        if std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            assert_eq!(control((Ipv6Addr::LOCALHOST, 0).into()), "reno");
        }
        let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("Linux");
        assert_eq!(control((Ipv4Addr::UNSPECIFIED, 0).into()), default.trim());
    }

    #[test]
    #[cfg_attr(miri, ignore = "sockets")]
    fn a_client_that_connects_while_its_listener_closes_reaches_the_next_one() {
        let first = listen_at((Ipv4Addr::LOCALHOST, 0).into(), 8, true).expect("a free port");
        let address = address_of(&first, false).expect("an address");
        let _before = TcpStream::connect(address).expect("a listener");
        drop_handshakes(first.as_raw_fd());
        let next = std::thread::scope(|scope| {
            let client = scope.spawn(|| TcpStream::connect(address));
            // So its first packet has been dropped: if it comes later, it just reaches the next one.
            while !client.is_finished() && !has_sent(address) {
                std::thread::yield_now();
            }
            assert!(accept(first.as_raw_fd()).is_ok(), "who was in the queue is accepted");
            assert!(accept(first.as_raw_fd()).is_err(), "nobody else is");
            let next = listen_at(address, 8, true).expect("a shared port");
            drop(first);
            client.join().expect("no panic").expect("a connection");
            next
        });
        assert!(accept(next.as_raw_fd()).is_ok());
    }

    /// Whether a socket of this machine has sent what begins a handshake with this address.
    fn has_sent(address: SocketAddr) -> bool {
        let remote = format!(":{:04X} 02 ", address.port());
        std::fs::read_to_string("/proc/net/tcp").expect("Linux").contains(&remote)
    }
}
