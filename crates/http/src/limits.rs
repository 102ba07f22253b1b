//! What a client may ask of this server. Everything has a bound; the host decides which, and passes it
//! complete: there are no defaults behind these but in tests.

/// Fields of a head that are parsed at most, whatever the setting says: they lie on the stack meanwhile.
pub const HEADERS_MAX: usize = 512;

/// See src/http/core/core.ts, where each is explained; times are milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of request line and fields together.
    pub header_bytes_max: usize,
    /// Fields of a head, and of a body's trailers.
    pub headers_max: usize,
    /// Bytes of the target.
    pub target_bytes_max: usize,
    /// Bytes of a body.
    pub body_bytes_max: u64,
    /// A connection without a request.
    pub idle_ms: u64,
    /// A head, from its first byte.
    pub headers_ms: u64,
    /// A body, or an answer, that stands still.
    pub body_ms: u64,
    /// How long a client that still sends is listened to behind the last answer.
    pub linger_ms: u64,
    /// Connections open at once.
    pub connections_max: usize,
    /// Requests of one connection.
    pub requests_per_connection_max: u32,
    /// Requests of one connection that are not answered yet.
    pub pipeline_max: usize,
    /// Bytes of answers that wait to be sent on one connection.
    pub out_bytes_max: usize,
    /// Bytes of large whole bodies that wait to be sent on all connections together.
    pub out_bytes_total_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes_max: 16 * 1024,
            headers_max: 100,
            target_bytes_max: 8 * 1024,
            body_bytes_max: 1024 * 1024,
            idle_ms: 60_000,
            headers_ms: 15_000,
            body_ms: 30_000,
            linger_ms: 30_000,
            connections_max: 10_000,
            requests_per_connection_max: u32::MAX,
            pipeline_max: 32,
            out_bytes_max: 256 * 1024,
            out_bytes_total_max: 256 * 1024 * 1024,
        }
    }
}

/// Why a request is not carried out: the status of its answer, after which the connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// 400 and above.
    pub status: u16,
    /// What was wrong, for people and tests.
    pub why: &'static str,
}

impl Refusal {
    /// Malformed.
    pub const fn bad(why: &'static str) -> Self {
        Self { status: 400, why }
    }

    /// With another status.
    pub const fn of(status: u16, why: &'static str) -> Self {
        Self { status, why }
    }
}
