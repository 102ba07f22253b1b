//! Where things lie in the memory that is shared with the host, and numbers for methods and types; README.md
//! describes the protocol.
//!
//! The one source of src/http/core/native/layout.ts: src/contract.test.ts reads this file and compares, so it
//! contains constants, modules of constants and enums with numbers, and nothing else.

/// Bytes before the records of either region.
pub const HEADER_BYTES: usize = 64;
/// Bytes of the inbound region for records; bytes from sockets follow.
pub const WORDS_BYTES: usize = 96 * 1024;
/// Bytes read from a socket at once.
pub const READ_BYTES_MAX: usize = 32 * 1024;
/// Offsets within a head have sixteen bits.
pub const HEADER_BYTES_MAX: usize = 0xffff;

/// Words of the inbound region's header.
pub mod inbound {
    /// Records.
    pub const COUNT: usize = 0;
}

/// Words of the out region's header.
pub mod out {
    /// Where the next record begins, in bytes; written by the host.
    pub const END: usize = 0;
    /// 1 while a batch is being handled: answers are taken when it ends.
    pub const IN_BATCH: usize = 1;
    /// What the last call found.
    pub const FOUND: usize = 2;
}

/// Words of an inbound record that is a request; its fields follow.
pub mod request {
    /// [`super::event`] and flags.
    pub const KIND: usize = 0;
    /// The connection.
    pub const SLOT: usize = 1;
    /// The flight.
    pub const STAMP: usize = 2;
    /// The method's number.
    pub const METHOD: usize = 3;
    /// Number of a known target, or [`super::NO_TARGET`].
    pub const TARGET: usize = 4;
    /// Where the method's name begins.
    pub const METHOD_AT: usize = 5;
    /// And its length.
    pub const METHOD_BYTES: usize = 6;
    /// Where the target begins.
    pub const TARGET_AT: usize = 7;
    /// And its length.
    pub const TARGET_BYTES: usize = 8;
    /// How many fields follow.
    pub const FIELDS: usize = 9;
    /// Bytes of the body, low word; all ones when unknown.
    pub const LENGTH_LOW: usize = 10;
    /// High word.
    pub const LENGTH_HIGH: usize = 11;
    /// Where the body begins, if it is whole.
    pub const BODY_AT: usize = 12;
    /// And its bytes.
    pub const BODY_BYTES: usize = 13;
    /// Bytes of the head.
    pub const HEAD_BYTES: usize = 14;
    /// Words before the fields.
    pub const WORDS: usize = 15;
}

/// Words of a field: where its name begins, both lengths (the name's low), where its value begins.
pub const FIELD_WORDS: usize = 3;

/// Flag of a request's kind: its target's number stands for a new text.
pub const FLAG_NEW_TARGET: u32 = 0x100;
/// Flag of a request's kind: the whole body is there.
pub const FLAG_WHOLE: u32 = 0x200;
/// A target that has no number.
pub const NO_TARGET: u32 = 0xffff_ffff;
/// Targets that are remembered, and have numbers below this.
pub const TARGETS: usize = 256;

/// Kinds of inbound records. All but requests are [`EVENT_WORDS`] long: kind, slot, stamp.
pub mod event {
    /// A request.
    pub const REQUEST: u32 = 1;
    /// The body can be pulled again.
    pub const BODY: u32 = 2;
    /// The client has gone, or at least sends nothing more: an answer may still arrive.
    pub const GONE: u32 = 3;
    /// What was written has left, or most of it.
    pub const DRAINED: u32 = 4;
    /// The last connection has gone after a stop.
    pub const STOPPED: u32 = 5;
    /// The connection is closed and this request was not answered whole: nothing more is told of it.
    pub const CLOSED: u32 = 6;
}

/// Words of an inbound record that is not a request.
pub const EVENT_WORDS: usize = 3;

/// Words of a record in the out region; lines and body follow, then padding to a word.
pub mod answer {
    /// [`super::reply`], the content type's number in the second byte.
    pub const KIND: usize = 0;
    /// The connection.
    pub const SLOT: usize = 1;
    /// The flight.
    pub const STAMP: usize = 2;
    /// The status.
    pub const STATUS: usize = 3;
    /// Bytes of ready-made lines.
    pub const LINES: usize = 4;
    /// Bytes of the body or piece; for a start, the length's low word.
    pub const BYTES: usize = 5;
    /// For a start, the length's high word; both all ones: unknown.
    pub const BYTES_HIGH: usize = 6;
    /// 1: the body is not here but was passed to the call.
    pub const ELSEWHERE: usize = 7;
    /// Words of a record.
    pub const WORDS: usize = 8;
}

/// Kinds of records in the out region.
pub mod reply {
    /// A whole answer.
    pub const RESPOND: u32 = 1;
    /// The head of one whose body follows.
    pub const START: u32 = 2;
    /// A piece of its body.
    pub const WRITE: u32 = 3;
    /// Its end.
    pub const END: u32 = 4;
    /// Cut the connection.
    pub const ABORT: u32 = 5;
}

/// What a pull found, if not bytes: the end.
pub const PULL_END: i32 = 0;
/// Nothing yet; an event will tell.
pub const PULL_WAIT: i32 = -1;
/// The client has gone. Smaller numbers are refusals: minus the status.
pub const PULL_GONE: i32 = -2;

/// Methods by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Method {
    /// Any other token.
    Other = 0,
    /// GET
    Get = 1,
    /// HEAD
    Head = 2,
    /// POST
    Post = 3,
    /// PUT
    Put = 4,
    /// DELETE
    Delete = 5,
    /// PATCH
    Patch = 6,
    /// OPTIONS
    Options = 7,
}

/// Content types by number.
pub const TYPES: [&str; 5] = [
    "",
    "text/plain;charset=UTF-8",
    "application/json",
    "text/html;charset=UTF-8",
    "application/octet-stream",
];

/// Numbers that a server is opened with, as doubles; those behind the first three are of `Limits`.
pub mod opening {
    /// The port.
    pub const PORT: usize = 0;
    /// Connections that wait to be accepted.
    pub const BACKLOG: usize = 1;
    /// 1: other servers may listen on the same port.
    pub const IS_SHARED: usize = 2;
    /// `Limits::header_bytes_max`.
    pub const HEADER_BYTES_MAX: usize = 3;
    /// `Limits::headers_max`.
    pub const HEADERS_MAX: usize = 4;
    /// `Limits::target_bytes_max`.
    pub const TARGET_BYTES_MAX: usize = 5;
    /// `Limits::body_bytes_max`.
    pub const BODY_BYTES_MAX: usize = 6;
    /// `Limits::idle_ms`.
    pub const IDLE_MS: usize = 7;
    /// `Limits::headers_ms`.
    pub const HEADERS_MS: usize = 8;
    /// `Limits::body_ms`.
    pub const BODY_MS: usize = 9;
    /// `Limits::connections_max`.
    pub const CONNECTIONS_MAX: usize = 10;
    /// `Limits::requests_per_connection_max`.
    pub const REQUESTS_PER_CONNECTION_MAX: usize = 11;
    /// `Limits::pipeline_max`.
    pub const PIPELINE_MAX: usize = 12;
    /// `Limits::out_bytes_max`.
    pub const OUT_BYTES_MAX: usize = 13;
    /// `Limits::linger_ms`.
    pub const LINGER_MS: usize = 14;
    /// `Limits::out_bytes_total_max`.
    pub const OUT_BYTES_TOTAL_MAX: usize = 15;
    /// How many there are.
    pub const NUMBERS: usize = 16;
}

/// Counts of a server, as doubles; see `Stats`.
pub mod counts {
    /// `Stats::connections`.
    pub const CONNECTIONS: usize = 0;
    /// `Stats::connections_total`.
    pub const CONNECTIONS_TOTAL: usize = 1;
    /// `Stats::requests`.
    pub const REQUESTS: usize = 2;
    /// `Stats::constants`.
    pub const CONSTANTS: usize = 3;
    /// `Stats::refused`.
    pub const REFUSED: usize = 4;
    /// `Stats::aborted`.
    pub const ABORTED: usize = 5;
    /// `Stats::bytes_in`.
    pub const BYTES_IN: usize = 6;
    /// `Stats::bytes_out`.
    pub const BYTES_OUT: usize = 7;
    /// `Stats::cut`.
    pub const CUT: usize = 8;
    /// `Stats::held_bytes`.
    pub const HELD_BYTES: usize = 9;
    /// How many there are.
    pub const NUMBERS: usize = 10;
}
