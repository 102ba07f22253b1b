//! How a reactor is opened, what it returns to the host after each step, and what it counts, with their
//! encodings as numbers.

use std::{
    ffi::OsString,
    io,
    net::IpAddr,
    os::{fd::RawFd, unix::ffi::OsStringExt},
    path::PathBuf,
};

use crate::{
    constants::Constant,
    layout::{HEADER_BYTES_MAX, REQUESTS_PER_CONNECTION_MAX, counts, opening},
    limits::Limits,
    listen::Endpoint,
};

/// Requests of a pipeline that are read ahead: more would only wait in memory.
const PIPELINE_MAX: u32 = 64;
/// Files that stay open, within the 1024 descriptors that many systems allow a process.
const OPEN_FILES_MAX: usize = 256;

/// How a reactor is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    pub endpoint: Endpoint,
    /// Whether other threads of the process may listen on the same endpoint.
    pub is_shared: bool,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub is_proxied: bool,
    pub limits: Limits,
    /// Responses without a call to the host.
    pub constants: Vec<Constant>,
}

impl Settings {
    /// Settings as the host passes them: `numbers` are the doubles of [`opening`], `path` is empty unless the
    /// server listens on a Unix socket. A double becomes the nearest value of its integer type.
    /// `EINVAL`: `host` is not an IP address.
    pub fn decode(numbers: &[u8], host: &str, path: &[u8], constants: Vec<Constant>) -> io::Result<Self> {
        let numbers = numbers.as_chunks::<8>().0;
        let number = |index: usize| numbers.get(index).map_or(0, |bytes| f64::from_ne_bytes(*bytes) as u64);
        let size = |index| usize::try_from(number(index)).unwrap_or(usize::MAX);
        let streams_max = u32::try_from(number(opening::STREAMS_MAX)).unwrap_or(u32::MAX).max(1);
        let (headers_ms, body_ms) = (number(opening::HEADERS_MS), number(opening::BODY_MS));
        let limits = Limits {
            header_bytes_max: size(opening::HEADER_BYTES_MAX).min(HEADER_BYTES_MAX),
            headers_max: size(opening::HEADERS_MAX),
            target_bytes_max: size(opening::TARGET_BYTES_MAX),
            body_bytes_max: number(opening::BODY_BYTES_MAX),
            idle_ms: number(opening::IDLE_MS),
            headers_ms,
            body_ms,
            // A client that still sends, or that has not shown who it is, is the client of these times.
            linger_ms: body_ms,
            handshake_ms: headers_ms,
            connections_max: size(opening::CONNECTIONS_MAX),
            requests_per_connection_max: REQUESTS_PER_CONNECTION_MAX,
            pipeline_max: streams_max.min(PIPELINE_MAX) as usize,
            streams_max,
            resets_max: u32::try_from(number(opening::RESETS_MAX)).unwrap_or(u32::MAX).max(1),
            out_bytes_max: size(opening::OUT_BYTES_MAX),
            out_bytes_total_max: number(opening::OUT_BYTES_TOTAL_MAX),
            open_files_max: OPEN_FILES_MAX,
            is_secure: false,
        };
        // One more than the descriptor.
        let inherited = number(opening::INHERITED);
        let endpoint = if inherited > 0 {
            Endpoint::Inherited(RawFd::try_from(inherited - 1).unwrap_or(-1))
        } else if path.is_empty() {
            let address: IpAddr = host.parse().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
            Endpoint::Address((address, number(opening::PORT) as u16).into())
        } else {
            Endpoint::Path(PathBuf::from(OsString::from_vec(path.to_vec())))
        };
        Ok(Self {
            endpoint,
            is_shared: number(opening::IS_SHARED) != 0,
            is_proxied: number(opening::IS_PROXIED) != 0,
            limits,
            constants,
        })
    }
}

/// The name of an error of [`Reactor::open`](super::Reactor::open), as Node writes it in `error.code`.
pub fn error_name(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EADDRINUSE) => "EADDRINUSE",
        Some(libc::EACCES) => "EACCES",
        Some(libc::EADDRNOTAVAIL) => "EADDRNOTAVAIL",
        Some(libc::EBADF) => "EBADF",
        Some(libc::EINVAL) => "EINVAL",
        Some(libc::ENOTSOCK) => "ENOTSOCK",
        Some(libc::EMFILE) => "EMFILE",
        Some(libc::ENFILE) => "ENFILE",
        Some(libc::ENOENT) => "ENOENT",
        Some(libc::ENOTDIR) => "ENOTDIR",
        Some(libc::EROFS) => "EROFS",
        Some(libc::ENAMETOOLONG) => "ENAMETOOLONG",
        Some(libc::EAFNOSUPPORT) => "EAFNOSUPPORT",
        _ => "EIO",
    }
}

/// What the host does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Handle the records of the inbound region, then call [`super::Reactor::called`].
    Call,
    /// Wait until the descriptor is readable.
    Done,
}

#[derive(Clone, Copy, Debug)]
pub struct HostEvent {
    /// One of [`layout::event`](crate::layout::event).
    pub kind: u32,
    pub slot: u32,
    pub stamp: u32,
}

/// Totals since the start, except for `connections`, `held_bytes` and `open_files`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub connections: u64,
    pub connections_total: u64,
    /// Requests whose head was accepted.
    pub requests: u64,
    /// Requests that a constant has responded to.
    pub constants: u64,
    pub refused: u64,
    /// Requests whose client disconnected before the end of the response.
    pub aborted: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Connections that `stop` closed before all responses were sent.
    pub cut: u64,
    /// Bytes of the large whole bodies that wait to be sent; each body counts once.
    pub held_bytes: u64,
    /// Files that are open for the next request.
    pub open_files: u64,
}

impl Stats {
    /// The counts as the host reads them: doubles at the indices of [`counts`].
    pub fn encode(&self) -> [f64; counts::NUMBERS] {
        let mut numbers = [0.0; counts::NUMBERS];
        for (index, count) in [
            (counts::CONNECTIONS, self.connections),
            (counts::CONNECTIONS_TOTAL, self.connections_total),
            (counts::REQUESTS, self.requests),
            (counts::CONSTANTS, self.constants),
            (counts::REFUSED, self.refused),
            (counts::ABORTED, self.aborted),
            (counts::BYTES_IN, self.bytes_in),
            (counts::BYTES_OUT, self.bytes_out),
            (counts::CUT, self.cut),
            (counts::HELD_BYTES, self.held_bytes),
            (counts::OPEN_FILES, self.open_files),
        ] {
            numbers[index] = count as f64;
        }
        numbers
    }
}

#[cfg(test)]
mod tests;
