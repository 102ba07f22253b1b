//! Where things lie in the memory that is shared with the host. The same numbers stand in
//! src/http/core/native/layout.ts; README.md describes the protocol.

/// Bytes before the records of either region.
pub const HEADER_BYTES: usize = 64;
/// Bytes of the inbound region for records; bytes from sockets follow.
pub const WORDS_BYTES: usize = 96 * 1024;
/// Bytes read from a socket at once.
pub const READ_BYTES_MAX: usize = 32 * 1024;
/// Least bytes of the out region.
pub const OUT_BYTES_MIN: usize = 4096;

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

/// Words of an inbound record that is a request; its fields follow, three words each: where the name begins,
/// both lengths (name low), where the value begins.
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
    /// Words of a field.
    pub const FIELD_WORDS: usize = 3;
}

/// Flag of a request's kind: its target's number stands for a new text.
pub const FLAG_NEW_TARGET: u32 = 0x100;
/// Flag of a request's kind: the whole body is there.
pub const FLAG_WHOLE: u32 = 0x200;
/// A target that has no number.
pub const NO_TARGET: u32 = u32::MAX;

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
