//! The frames of a WebSocket (RFC 6455), from the client's side of the connection, and those that are sent.
//!
//! `websocket-sans-io` decodes frames in place and unmasks them; this file decides which of them are allowed,
//! joins fragments and checks what a message is. It refuses, and never repairs. What has arrived of a frame
//! is taken at once, so nothing but an incomplete message is stored, and that is bounded by its limit.

mod deflate;

use websocket_sans_io::{
    FrameInfo, Opcode, WebsocketFrameDecoder, WebsocketFrameEncoder, WebsocketFrameEvent,
};

pub use deflate::Deflate;

/// Most bytes of a control frame's payload (5.5).
const CONTROL_BYTES_MAX: u64 = 125;
/// Most fragments of a message: each costs a client two bytes, and an empty one adds nothing to the message.
const FRAGMENTS_MAX: u32 = 16 * 1024;
/// The first reserved bit: the message is compressed (RFC 7692, 6).
const COMPRESSED: u8 = 4;

/// Codes of close frames (7.4.1) that the server itself sends or reports.
pub mod code {
    pub const GOING_AWAY: u16 = 1001;
    pub const PROTOCOL: u16 = 1002;
    /// Reported, never sent: the close frame has no code.
    pub const NONE: u16 = 1005;
    /// Reported, never sent: the connection ended without a close frame.
    pub const ABNORMAL: u16 = 1006;
    pub const INVALID: u16 = 1007;
    pub const POLICY: u16 = 1008;
    pub const TOO_LARGE: u16 = 1009;
    pub const TRY_LATER: u16 = 1013;
}

/// Why a connection is failed: the close frame that reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: u16,
    pub why: &'static str,
}

const fn protocol(why: &'static str) -> Fault {
    Fault { code: code::PROTOCOL, why }
}

const TOO_LARGE: Fault = Fault { code: code::TOO_LARGE, why: "message too large" };

/// What the host has set for one connection; times in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Bytes of a message, after decompression.
    pub message_bytes_max: usize,
    /// Bytes that may wait to be sent; beyond them the connection is closed.
    pub queued_bytes_max: usize,
    /// After this time without a byte, a ping is sent.
    pub ping_ms: u64,
    /// After this time without a byte since the ping, the connection is closed.
    pub pong_ms: u64,
    /// The client has this long to respond to a close frame.
    pub close_ms: u64,
    /// Whether `permessage-deflate` was agreed on, both sides without context takeover.
    pub deflates: bool,
    /// The host reads and writes the bytes of the connection itself: there are no frames, pings or closes.
    pub is_raw: bool,
}

/// What a client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing that is complete.
    Nothing,
    /// A message. Its bytes are in the data.
    Here {
        is_text: bool,
        at: usize,
        bytes: usize,
    },
    /// A message, which [`WebSocket::take_message`] returns.
    Gathered {
        is_text: bool,
        is_compressed: bool,
    },
    /// A pong with the payload is due, [`WebSocket::control`].
    Ping,
    Pong,
    /// Its code, or [`code::NONE`]; the reason follows two bytes of [`WebSocket::control`].
    Close(u16),
}

/// How a WebSocket ends once the host has handled the messages before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub code: u16,
    pub reason: Vec<u8>,
    /// The client may still be sending.
    pub is_fault: bool,
}

/// One connection after its handshake.
#[derive(Debug, Default)]
pub struct WebSocket {
    pub terms: Terms,
    /// The number by which the host finds it.
    pub stamp: u32,
    /// Rooms, by their numbers.
    pub rooms: Vec<u32>,
    /// When its last bytes arrived.
    pub received_ms: u64,
    /// When it was pinged since; 0: it was not.
    pub pinged_ms: u64,
    /// When the close frame was sent; 0: it was not.
    pub closed_ms: u64,
    /// Set when nothing more is read.
    pub end: Option<End>,
    /// The host reads no more for now.
    pub is_paused: bool,
    decoder: WebsocketFrameDecoder,
    frame: FrameInfo,
    control: Vec<u8>,
    /// The open message: what has arrived of it.
    message: Vec<u8>,
    /// Whether it is text; `None`: no message is open.
    is_text: Option<bool>,
    is_compressed: bool,
    fragments: u32,
}

impl WebSocket {
    pub fn new(terms: Terms, stamp: u32, now_ms: u64) -> Self {
        Self { terms, stamp, received_ms: now_ms, ..Self::default() }
    }

    /// Take bytes of the client, which are unmasked in place. Returns how many were used; all, unless
    /// something was received.
    /// Nothing more is read after a fault.
    pub fn receive(&mut self, data: &mut [u8]) -> (usize, Result<Received, Fault>) {
        if self.terms.is_raw {
            return (data.len(), Ok(Received::Here { is_text: false, at: 0, bytes: data.len() }));
        }
        let mut used = 0;
        let mut whole = None;
        loop {
            let Ok(found) = self.decoder.add_data(&mut data[used..]);
            let from = used;
            used += found.consumed_bytes;
            match found.event {
                None => return (used, Ok(Received::Nothing)),
                Some(WebsocketFrameEvent::Start { frame_info, .. }) => {
                    if let Err(fault) = self.begin(frame_info) {
                        return (used, Err(fault));
                    }
                }
                Some(WebsocketFrameEvent::PayloadChunk { .. }) => {
                    let piece = &data[from..used];
                    if self.frame.opcode.is_control() {
                        self.control.extend_from_slice(piece);
                    } else if self.is_alone() && piece.len() as u64 == self.frame.payload_length {
                        whole = Some(from);
                    } else {
                        self.message.extend_from_slice(piece);
                    }
                }
                Some(WebsocketFrameEvent::End { .. }) => {
                    if self.frame.opcode.is_control() {
                        return (used, self.received_control());
                    }
                    if self.frame.fin {
                        return (used, self.received_message(data, whole, used));
                    }
                }
            }
        }
    }

    /// Whether the frame is a message of its own that needs no further treatment.
    const fn is_alone(&self) -> bool {
        self.frame.fin && self.fragments == 1 && !self.is_compressed
    }

    fn begin(&mut self, frame: FrameInfo) -> Result<(), Fault> {
        self.frame = frame;
        if frame.mask.is_none() {
            return Err(protocol("frame without a mask"));
        }
        let is_first = matches!(frame.opcode, Opcode::Text | Opcode::Binary);
        let is_marked = frame.reserved == COMPRESSED && self.terms.deflates && is_first;
        if frame.reserved != 0 && !is_marked {
            return Err(protocol("reserved bit"));
        }
        match frame.opcode {
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {
                self.begin_data(frame, is_first, is_marked)
            }
            Opcode::ConnectionClose | Opcode::Ping | Opcode::Pong => {
                self.control.clear();
                match (frame.fin, frame.payload_length) {
                    (true, ..=CONTROL_BYTES_MAX) => Ok(()),
                    (true, _) => Err(protocol("control frame too long")),
                    (false, _) => Err(protocol("control frame in fragments")),
                }
            }
            _ => Err(protocol("reserved opcode")),
        }
    }

    fn begin_data(&mut self, frame: FrameInfo, is_first: bool, is_marked: bool) -> Result<(), Fault> {
        if is_first {
            if self.is_text.is_some() {
                return Err(protocol("message within a message"));
            }
            self.is_text = Some(frame.opcode == Opcode::Text);
            self.is_compressed = is_marked;
            self.fragments = 0;
        } else if self.is_text.is_none() {
            return Err(protocol("continuation of nothing"));
        }
        self.fragments += 1;
        if self.fragments > FRAGMENTS_MAX {
            return Err(Fault { code: code::POLICY, why: "too many fragments" });
        }
        // Deflate may lengthen what it cannot compress, by five bytes for each block.
        let most = self.terms.message_bytes_max as u64;
        let most = if self.is_compressed { most + most / 1024 + 64 } else { most };
        if frame.payload_length > most.saturating_sub(self.message.len() as u64) {
            return Err(TOO_LARGE);
        }
        Ok(())
    }

    fn received_message(
        &mut self,
        data: &[u8],
        whole: Option<usize>,
        used: usize,
    ) -> Result<Received, Fault> {
        let is_text = self.is_text.take().unwrap_or_default();
        if let Some(at) = whole {
            if is_text {
                check_text(&data[at..used])?;
            }
            return Ok(Received::Here { is_text, at, bytes: used - at });
        }
        if is_text && !self.is_compressed {
            check_text(&self.message)?;
        }
        Ok(Received::Gathered { is_text, is_compressed: self.is_compressed })
    }

    /// The message that was gathered, as the client has written it.
    pub fn take_message(&mut self, deflate: &mut Deflate, received: (bool, bool)) -> Result<Vec<u8>, Fault> {
        let message = std::mem::take(&mut self.message);
        let (is_text, is_compressed) = received;
        if !is_compressed {
            return Ok(message);
        }
        let whole = deflate.inflate(&message, self.terms.message_bytes_max)?;
        if is_text {
            check_text(&whole)?;
        }
        Ok(whole)
    }

    fn received_control(&self) -> Result<Received, Fault> {
        match self.frame.opcode {
            Opcode::Ping => Ok(Received::Ping),
            Opcode::Pong => Ok(Received::Pong),
            _ => match self.control.split_first_chunk::<2>() {
                None if self.control.is_empty() => Ok(Received::Close(code::NONE)),
                None => Err(protocol("half a close code")),
                Some((code, reason)) => {
                    let code = u16::from_be_bytes(*code);
                    check_text(reason)?;
                    if may_be_sent(code) { Ok(Received::Close(code)) } else { Err(protocol("close code")) }
                }
            },
        }
    }

    /// The payload of the last control frame.
    pub fn control(&self) -> &[u8] {
        &self.control
    }

    /// When something has to be done although nothing arrives.
    pub const fn deadline(&self) -> u64 {
        if self.closed_ms != 0 {
            self.closed_ms + self.terms.close_ms
        } else if self.pinged_ms != 0 {
            self.pinged_ms + self.terms.pong_ms
        } else {
            self.received_ms + self.terms.ping_ms
        }
    }
}

fn check_text(bytes: &[u8]) -> Result<(), Fault> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(Fault { code: code::INVALID, why: "text is not UTF-8" }),
    }
}

/// Whether a close frame may have this code (7.4): those of the standard's register, of libraries and of
/// programs, without those that only report.
pub const fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Kinds of frames that the server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

/// Append a frame.
pub fn write_frame(out: &mut Vec<u8>, kind: Kind, is_compressed: bool, payload: &[u8]) {
    write_head(out, kind, is_compressed, payload.len());
    out.extend_from_slice(payload);
}

/// Append what precedes the payload of a frame.
pub fn write_head(out: &mut Vec<u8>, kind: Kind, is_compressed: bool, payload_bytes: usize) {
    let opcode = match kind {
        Kind::Text => Opcode::Text,
        Kind::Binary => Opcode::Binary,
        Kind::Close => Opcode::ConnectionClose,
        Kind::Ping => Opcode::Ping,
        Kind::Pong => Opcode::Pong,
    };
    let reserved = if is_compressed { COMPRESSED } else { 0 };
    let info = FrameInfo { opcode, payload_length: payload_bytes as u64, mask: None, fin: true, reserved };
    out.extend_from_slice(&WebsocketFrameEncoder::new().start_frame(&info));
}

/// Append a close frame; a reason that is too long is cut between characters.
pub fn write_close(out: &mut Vec<u8>, code: u16, reason: &[u8]) {
    if code == code::NONE {
        return write_frame(out, Kind::Close, false, b"");
    }
    let most = CONTROL_BYTES_MAX as usize - 2;
    let mut bytes = reason.len().min(most);
    while bytes < reason.len() && bytes > 0 && reason[bytes] & 0xc0 == 0x80 {
        bytes -= 1;
    }
    let mut payload = code.to_be_bytes().to_vec();
    payload.extend_from_slice(&reason[..bytes]);
    write_frame(out, Kind::Close, false, &payload);
}

#[cfg(test)]
pub(crate) mod tests;
