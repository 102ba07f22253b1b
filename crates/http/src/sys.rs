//! The system calls of the reactor: non-blocking, stateless, with errors as `io::Error`.
//!
//! Here are those that all supported systems have; each system has a file for the others, with the same
//! functions, and it is chosen here only. docs/design/platforms.md lists them. What the reactor waits with is
//! in selector.rs.

#[cfg(target_os = "linux")]
#[path = "sys/linux.rs"]
mod chosen;
#[cfg(target_os = "macos")]
#[path = "sys/macos.rs"]
mod chosen;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("crates/http/src/sys.rs has no file for this system");
mod inherited;
#[cfg(any(test, target_os = "macos"))]
pub mod stepwise;

use std::{
    ffi::CStr,
    io,
    mem::{self, MaybeUninit},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

pub use chosen::{
    BALANCES_PORTS, accept, drop_handshakes, open_beneath, open_folder, open_name, open_named, path_of,
    receive, send, send_before_file, send_file, send_unpaced, unacked_bytes,
};
pub use inherited::{bound_path, duplicate, prepare_listener};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn owned(result: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor without another owner.
    check(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether a selector's descriptor has events, without taking any.
pub fn is_readable(selector: RawFd) -> bool {
    let mut asked = libc::pollfd { fd: selector, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, a local; the timeout is 0.
    unsafe { libc::poll(&raw mut asked, 1, 0) > 0 }
}

/// Whether bytes have arrived that were not read.
pub fn has_bytes(fd: &OwnedFd) -> bool {
    let mut byte = 0_u8;
    // SAFETY: one byte of a local.
    unsafe { libc::recv(fd.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT) > 0 }
}

/// Bytes that have arrived and were not read.
pub fn unread_bytes(fd: &OwnedFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, a local.
    let failed = unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut bytes) } != 0;
    if failed { 0 } else { u64::try_from(bytes).unwrap_or(0) }
}

/// Send two byte ranges in one call.
pub fn send_both(fd: &OwnedFd, first: &[u8], second: &[u8]) -> io::Result<usize> {
    let part =
        |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut parts = [part(first), part(second)];
    // SAFETY: a zeroed message header is valid; the parts outlive the call and are only read.
    check_size(unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = 2;
        libc::sendmsg(fd.as_raw_fd(), &raw const message, chosen::SEND_FLAGS)
    })
}

pub fn read_at(file: &OwnedFd, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let from = offset_of(offset)?;
    let (to, len) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: pointer and length are those of the buffer.
    check_size(unsafe { libc::pread(file.as_raw_fd(), to, len, from) })
}

/// A position in a file, as the kernel takes it: 64 bits on all supported systems.
fn offset_of(offset: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))
}

/// What a file is. Two that are equal have the same content: a write changes `changed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    pub is_file: bool,
    pub is_folder: bool,
    pub bytes: u64,
    /// Seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    changed: (i64, i64),
    inode: (libc::dev_t, libc::ino_t),
    links: libc::nlink_t,
}

impl FileStat {
    /// The result of a call that fills a `stat` and returns 0, or an error.
    fn of(call: impl FnOnce(*mut libc::stat) -> libc::c_int) -> io::Result<Self> {
        let mut raw = MaybeUninit::<libc::stat>::zeroed();
        check(call(raw.as_mut_ptr()))?;
        // SAFETY: zeroed, which is valid, and filled by the call.
        let raw = unsafe { raw.assume_init() };
        let kind = raw.st_mode & libc::S_IFMT;
        Ok(Self {
            is_file: kind == libc::S_IFREG,
            is_folder: kind == libc::S_IFDIR,
            bytes: u64::try_from(raw.st_size).unwrap_or(0),
            modified: (raw.st_mtime, raw.st_mtime_nsec),
            changed: (raw.st_ctime, raw.st_ctime_nsec),
            inode: (raw.st_dev, raw.st_ino),
            links: raw.st_nlink,
        })
    }

    /// What `path` leads to.
    pub fn at(path: &CStr) -> io::Result<Self> {
        // SAFETY: a C string, and memory for the result.
        Self::of(|to| unsafe { libc::stat(path.as_ptr(), to) })
    }

    pub fn of_open(fd: &OwnedFd) -> io::Result<Self> {
        // SAFETY: memory for the result.
        Self::of(|to| unsafe { libc::fstat(fd.as_raw_fd(), to) })
    }

    /// Whether a name leads to it; one that was opened may have been deleted since.
    pub const fn has_name(&self) -> bool {
        self.links > 0
    }
}

/// The flags with which files are read: opening does not wait for a pipe's writer.
const READING: libc::c_int = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;

/// Announce that nothing more will be sent.
pub fn shut_writing(fd: &OwnedFd) {
    // SAFETY: no memory is involved.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) };
}

/// Make closing send a reset.
pub fn reset_on_close(fd: &OwnedFd) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger).ok();
}

fn set<T>(fd: RawFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let size = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and size are those of the value.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), size) }).map(drop)
}

/// Milliseconds of the monotonic clock, with a resolution of a few milliseconds at least.
#[inline]
pub fn now_ms() -> u64 {
    let time = clock(chosen::COARSE_CLOCK);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Nanoseconds of the monotonic clock.
#[inline]
pub fn now_ns() -> u64 {
    let time = clock(libc::CLOCK_MONOTONIC);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Seconds since 1970.
#[inline]
pub fn wall_second() -> i64 {
    clock(chosen::WALL_CLOCK).tv_sec
}

fn clock(which: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a local. These clocks exist on every supported system.
    unsafe { libc::clock_gettime(which, &raw mut time) };
    time
}

pub fn listen_at(address: SocketAddr, backlog: i32, reuse: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket = chosen::socket(family)?;
    let fd = socket.as_raw_fd();
    set(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, &1_i32)?;
    if reuse {
        set(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, &1_i32)?;
    }
    // Accepted sockets inherit it, which saves one call each.
    set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32)?;
    if address.ip().to_canonical().is_loopback() {
        send_unpaced(fd);
    }
    let (storage, size) = raw_address(address);
    // SAFETY: pointer and size are those of the address.
    check(unsafe { libc::bind(fd, (&raw const storage).cast(), size) })?;
    // SAFETY: no memory is involved.
    check(unsafe { libc::listen(fd, backlog) })?;
    Ok(socket)
}

fn raw_address(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zeros is a valid address storage, which is larger than either kind of address.
    unsafe {
        let mut storage: libc::sockaddr_storage = mem::zeroed();
        let size = match address {
            SocketAddr::V4(v4) => {
                let raw = (&raw mut storage).cast::<libc::sockaddr_in>();
                (*raw).sin_family = libc::AF_INET as libc::sa_family_t;
                (*raw).sin_port = v4.port().to_be();
                (*raw).sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                mem::size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                let raw = (&raw mut storage).cast::<libc::sockaddr_in6>();
                (*raw).sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (*raw).sin6_port = v6.port().to_be();
                (*raw).sin6_addr.s6_addr = v6.ip().octets();
                (*raw).sin6_scope_id = v6.scope_id();
                mem::size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, size as libc::socklen_t)
    }
}

/// The address of a socket, or with `peer` that of the other end; `None` for Unix sockets.
pub fn address_of(fd: &OwnedFd, peer: bool) -> Option<SocketAddr> {
    let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut size = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: `size` is that of the storage, which is read as the family that the kernel has written.
    unsafe {
        let raw = storage.as_mut_ptr().cast();
        let call = if peer { libc::getpeername } else { libc::getsockname };
        check(call(fd.as_raw_fd(), raw, &raw mut size)).ok()?;
        match libc::c_int::from((*storage.as_ptr()).ss_family) {
            libc::AF_INET => {
                let address = storage.as_ptr().cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from((*address).sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be((*address).sin_port)))
            }
            libc::AF_INET6 => {
                let address = storage.as_ptr().cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from((*address).sin6_addr.s6_addr);
                Some(SocketAddr::new(IpAddr::V6(ip), u16::from_be((*address).sin6_port)))
            }
            _ => None,
        }
    }
}

/// A listening Unix socket.
pub fn listen_on(path: &[u8], backlog: i32) -> io::Result<OwnedFd> {
    let (socket, address) = socket_for(path)?;
    let size = mem::size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: pointer and size are those of the address.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) })?;
    // SAFETY: no memory is involved.
    check(unsafe { libc::listen(socket.as_raw_fd(), backlog) })?;
    Ok(socket)
}

/// Connect to a Unix socket without waiting. When its queue is full: `EAGAIN`, on macOS `ECONNREFUSED`.
pub fn connect_to(path: &[u8]) -> io::Result<OwnedFd> {
    let (socket, address) = socket_for(path)?;
    let size = mem::size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: pointer and size are those of the address.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) })?;
    Ok(socket)
}

/// A Unix socket, and `path` as an address.
fn socket_for(path: &[u8]) -> io::Result<(OwnedFd, libc::sockaddr_un)> {
    let socket = chosen::socket(libc::AF_UNIX)?;
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.is_empty() || path.len() >= address.sun_path.len() || path.contains(&0) {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    Ok((socket, address))
}

/// A descriptor to close when the process has reached its limit.
pub fn spare() -> Option<OwnedFd> {
    // SAFETY: a constant path.
    owned(unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) }).ok()
}
