//! The layout of the memory that is shared with the host, and numbers for methods and types; README.md
//! describes the protocol.
//!
//! The one source of src/http/message/layout.ts, which crates/node/build.rs prints.

corespun_layout::numbers! {
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
    /// Number of records.
    pub const COUNT: usize = 0;
}

/// Words of the out region's header.
pub mod out {
    /// Offset of the next record in bytes; written by the host.
    pub const END: usize = 0;
    /// 1 while a batch is handled: its responses are taken when it ends.
    pub const IN_BATCH: usize = 1;
    /// Result of the last call.
    pub const FOUND: usize = 2;
}

/// Words of an inbound record that is a request; its fields follow.
pub mod request {
    /// [`super::event`] and flags.
    pub const KIND: usize = 0;
    /// The connection.
    pub const SLOT: usize = 1;
    /// The exchange.
    pub const STAMP: usize = 2;
    /// The method's number.
    pub const METHOD: usize = 3;
    /// Number of a cached target, or [`super::NO_TARGET`].
    pub const TARGET: usize = 4;
    /// Offset of the method's name.
    pub const METHOD_AT: usize = 5;
    /// Its length.
    pub const METHOD_BYTES: usize = 6;
    /// Offset of the target.
    pub const TARGET_AT: usize = 7;
    /// Its length.
    pub const TARGET_BYTES: usize = 8;
    /// Number of fields that follow.
    pub const FIELDS: usize = 9;
    /// Bytes of the body, low word; all ones when unknown.
    pub const LENGTH_LOW: usize = 10;
    /// High word.
    pub const LENGTH_HIGH: usize = 11;
    /// Offset of the body, if it is whole.
    pub const BODY_AT: usize = 12;
    /// Its length.
    pub const BODY_BYTES: usize = 13;
    pub const HEAD_BYTES: usize = 14;
    /// Words before the fields.
    pub const WORDS: usize = 15;
}

/// Words of a field: offset of its name, both lengths (that of the name in the low half), offset of its
/// value.
pub const FIELD_WORDS: usize = 3;

/// Flags of a request's kind, and of a message's.
pub mod flag {
    /// The number has just been assigned to its target.
    pub const NEW_TARGET: u32 = 0x100;
    /// The whole body has arrived.
    pub const WHOLE: u32 = 0x200;
    /// It asks for a WebSocket by the CONNECT of HTTP/2, and has no key.
    pub const CONNECT: u32 = 0x400;
    /// The host has had no request of this connection before.
    pub const FIRST: u32 = 0x800;
    /// A message is text, and valid UTF-8.
    pub const TEXT: u32 = 0x100;
    /// The bytes of a message are not in the region; the host takes them.
    pub const ELSEWHERE: u32 = 0x200;
}

/// A target without a number.
pub const NO_TARGET: i32 = -1;
/// Number of targets that are cached.
pub const TARGETS: usize = 256;

/// Kinds of inbound records. All but requests and messages are [`EVENT_WORDS`] long: kind, slot, stamp.
pub mod event {
    pub const REQUEST: u32 = 1;
    /// The body can be pulled again.
    pub const BODY: u32 = 2;
    /// The client has disconnected, or sends nothing more: a response may still arrive.
    pub const DISCONNECTED: u32 = 3;
    /// Most of the written bytes have been sent.
    pub const DRAINED: u32 = 4;
    /// The last connection has closed after a stop.
    pub const STOPPED: u32 = 5;
    /// The connection has closed before the end of the response; the last event of this exchange.
    pub const CLOSED: u32 = 6;
    /// A file became shorter while it was sent; its connection is closed.
    pub const FILE_SHORT: u32 = 7;
    /// A message of a WebSocket; [`super::message`] has its words.
    pub const MESSAGE: u32 = 8;
    /// A close frame of its client, with the same words; its reason is elsewhere.
    pub const CLOSING: u32 = 9;
    /// The WebSocket has ended, its last event; the upper half of the kind is the code.
    pub const SOCKET_CLOSED: u32 = 10;
    /// A handshake waits for the host's choice of a certificate.
    pub const ASKS: u32 = 11;
    /// The server has refused something; the host may take the reasons.
    pub const REFUSED: u32 = 12;
}

/// Words of an inbound record that is neither a request nor a message.
pub const EVENT_WORDS: usize = 3;

/// Words of a message of a WebSocket behind kind, slot and stamp.
pub mod message {
    /// Offset of its bytes; if they are elsewhere, its number in the batch.
    pub const AT: usize = 3;
    /// Their number.
    pub const BYTES: usize = 4;
    /// The code of a close frame.
    pub const CODE: usize = 5;
    /// Words of a record.
    pub const WORDS: usize = 6;
}

/// Words of a record in the out region; header lines and body follow, then padding to a word.
pub mod head {
    /// [`super::reply`], the content type's number in the second byte, and [`super::FLAG_LAST`].
    pub const KIND: usize = 0;
    /// The connection.
    pub const SLOT: usize = 1;
    /// The exchange.
    pub const STAMP: usize = 2;
    pub const STATUS: usize = 3;
    /// Bytes of header lines.
    pub const LINES: usize = 4;
    /// Bytes of the body or piece; for a start, the length's low word.
    pub const BYTES: usize = 5;
    /// For a start, the length's high word; both all ones: unknown.
    pub const BYTES_HIGH: usize = 6;
    /// 1: the body does not follow but is passed to the call: bytes, or a part of a file.
    pub const ELSEWHERE: usize = 7;
    /// Words of a record.
    pub const WORDS: usize = 8;
}

/// Kinds of records in the out region.
pub mod reply {
    /// A whole response.
    pub const RESPOND: u32 = 1;
    /// The head of a response whose body follows.
    pub const START: u32 = 2;
    /// A piece of its body.
    pub const WRITE: u32 = 3;
    pub const END: u32 = 4;
    /// The host does not respond, or not completely.
    pub const ABORT: u32 = 5;
    /// The exchange becomes a WebSocket: header lines, then the words of [`super::terms`].
    pub const UPGRADE: u32 = 6;
    /// A message; the second byte of the kind has the bits of [`super::send`].
    pub const SEND: u32 = 7;
    /// A close frame: the status is its code, the body its reason.
    pub const CLOSE: u32 = 8;
    /// A ping with the body as its payload.
    pub const PING: u32 = 9;
    /// Close without a close frame.
    pub const TERMINATE: u32 = 10;
    /// Enter a room; its number is the high word of the length.
    pub const JOIN: u32 = 11;
    pub const LEAVE: u32 = 12;
    /// A message to a room, except for this WebSocket.
    pub const PUBLISH: u32 = 13;
    /// Nothing: how many bytes wait is found.
    pub const ASK: u32 = 14;
    /// An informational response with these header lines, status 103; 1 is found if it will be sent.
    pub const HINT: u32 = 15;
    /// The end of a body with these header lines as its trailers.
    pub const TRAILERS: u32 = 16;
    /// A connection without frames is not read (status 1), or read again (0).
    pub const PAUSE: u32 = 17;
}
/// Flag of the kind of a response or of its start: the connection closes after it.
pub const FLAG_LAST: u32 = 0x1_0000;

/// Bits of a message that is sent.
pub mod send {
    pub const TEXT: u32 = 1;
    /// It may be compressed.
    pub const COMPRESS: u32 = 2;
}

/// Words that a WebSocket begins with.
pub mod terms {
    pub const MESSAGE_BYTES_MAX: usize = 0;
    pub const QUEUED_BYTES_MAX: usize = 1;
    pub const PING_MS: usize = 2;
    pub const PONG_MS: usize = 3;
    pub const CLOSE_MS: usize = 4;
    pub const DEFLATES: usize = 5;
    pub const IS_RAW: usize = 6;
    pub const WORDS: usize = 7;
}

/// Results of a pull without bytes; smaller numbers are refusals: minus the status.
pub mod pull {
    /// The end of the body.
    pub const END: i32 = 0;
    /// Nothing yet; an event follows.
    pub const WAIT: i32 = -1;
    /// The client has disconnected.
    pub const DISCONNECTED: i32 = -2;
}

/// Methods by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Method {
    /// Any other token.
    Other = 0,
    Get = 1,
    Head = 2,
    Post = 3,
    Put = 4,
    Delete = 5,
    Patch = 6,
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

/// Connections that wait in the kernel to be accepted, as in node:http; `somaxconn` bounds it, too.
pub const BACKLOG: i32 = 511;
/// Then a connection is closed, so that a client that never disconnects meets new servers.
pub const REQUESTS_PER_CONNECTION_MAX: u32 = 1_000_000;

/// Numbers that a server is opened with, as doubles; from the third on those of `Limits`.
pub mod opening {
    pub const PORT: usize = 0;
    /// 1: other servers may listen on the same port.
    pub const IS_SHARED: usize = 1;
    pub const HEADER_BYTES_MAX: usize = 2;
    pub const HEADERS_MAX: usize = 3;
    pub const TARGET_BYTES_MAX: usize = 4;
    pub const BODY_BYTES_MAX: usize = 5;
    pub const IDLE_MS: usize = 6;
    /// `Limits::headers_ms`, also of a handshake of TLS.
    pub const HEADERS_MS: usize = 7;
    /// `Limits::body_ms`, also of lingering.
    pub const BODY_MS: usize = 8;
    pub const CONNECTIONS_MAX: usize = 9;
    pub const OUT_BYTES_MAX: usize = 10;
    pub const OUT_BYTES_TOTAL_MAX: usize = 11;
    /// 1: each connection begins with a header of the PROXY protocol.
    pub const IS_PROXIED: usize = 12;
    /// One more than the descriptor of an inherited socket; 0: the server opens its own.
    pub const INHERITED: usize = 13;
    /// `Limits::streams_max`, up to 64 also of a pipeline.
    pub const STREAMS_MAX: usize = 14;
    pub const RESETS_MAX: usize = 15;
    pub const NUMBERS: usize = 16;
}

/// What is found of a file, as doubles.
pub mod found {
    /// Its number, for the response.
    pub const FILE: usize = 0;
    /// Its length.
    pub const BYTES: usize = 1;
    /// Whole seconds of its last modification, since 1970.
    pub const SECONDS: usize = 2;
    /// The nanoseconds beyond them.
    pub const NANOSECONDS: usize = 3;
    /// 1: it is the index of the folder that the path leads to.
    pub const IS_INDEX: usize = 4;
    pub const NUMBERS: usize = 5;
}

/// Counts of a server, as doubles; see `Stats`.
pub mod counts {
    pub const CONNECTIONS: usize = 0;
    pub const CONNECTIONS_TOTAL: usize = 1;
    pub const REQUESTS: usize = 2;
    pub const CONSTANTS: usize = 3;
    pub const REFUSED: usize = 4;
    pub const ABORTED: usize = 5;
    pub const BYTES_IN: usize = 6;
    pub const BYTES_OUT: usize = 7;
    pub const CUT: usize = 8;
    pub const HELD_BYTES: usize = 9;
    pub const OPEN_FILES: usize = 10;
    pub const NUMBERS: usize = 11;
}
}
