//! The limits of a server, which bound everything that clients send or occupy. The host passes all of them,
//! or what they follow from.

/// Upper bound of `headers_max`: the fields are on the stack while a head is parsed.
pub const HEADERS_MAX: usize = 512;

/// The options that src/http/message/core-interface.ts documents; times are in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a head: request line and fields.
    pub header_bytes_max: usize,
    /// Fields of a head, and of a body's trailers.
    pub headers_max: usize,
    pub target_bytes_max: usize,
    pub body_bytes_max: u64,
    /// A connection between two requests.
    pub idle_ms: u64,
    /// A head, from its first byte.
    pub headers_ms: u64,
    /// A body or a response that makes no progress.
    pub body_ms: u64,
    /// Reading from a client that still sends after the last response.
    pub linger_ms: u64,
    pub connections_max: usize,
    /// Requests of one connection.
    pub requests_per_connection_max: u32,
    /// Open exchanges of one connection.
    pub pipeline_max: usize,
    /// Open streams of one connection of HTTP/2.
    pub streams_max: u32,
    /// Streams of one connection of HTTP/2 that may be reset in two seconds before their responses begin.
    pub resets_max: u32,
    /// Bytes of responses that wait to be sent on one connection.
    pub out_bytes_max: usize,
    /// Bytes of large whole bodies that wait to be sent on all connections of all threads together.
    pub out_bytes_total_max: u64,
    /// Files that stay open for the next request.
    pub open_files_max: usize,
    /// A handshake of TLS, from the connection's beginning.
    pub handshake_ms: u64,
    /// Whether requests are for `https`.
    pub is_secure: bool,
}

/// Why the server itself refuses a request; the connection closes after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    /// The body of the response.
    pub why: &'static str,
}

impl Refusal {
    pub const fn bad(why: &'static str) -> Self {
        Self { status: 400, why }
    }

    pub const fn of(status: u16, why: &'static str) -> Self {
        Self { status, why }
    }
}

#[cfg(test)]
mod tests;
