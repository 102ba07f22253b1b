//! What the `h2` crate reads from and writes to: bytes in memory, which the reactor moves from and to the
//! socket.

use std::{
    cell::RefCell,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::blocks::Blocks;

/// What a connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEAD_BYTES: u32 = 9;
/// Frames of a connection that are read in a turn.
const PER_TURN: u32 = 128;

/// Whether a connection whose first bytes are these is one of HTTP/2; at least one byte.
pub fn is_preface(bytes: &[u8]) -> bool {
    let there = bytes.len().min(PREFACE.len());
    bytes[..there] == PREFACE[..there]
}

/// The bytes of a connection that are on their way.
#[derive(Default)]
pub struct Flow {
    /// Received; those before `read` are used.
    pub input: Vec<u8>,
    pub read: usize,
    pub frames: Frames,
    /// The client sends nothing more.
    pub is_at_end: bool,
    /// To be sent.
    pub output: Vec<u8>,
    /// How many more bytes may be written before some are sent.
    pub room: usize,
    /// Something was to be written when there was no room.
    pub is_blocked: bool,
}

/// Bytes sent to a client that pay for a frame of it which carries nothing, and for a WINDOW_UPDATE or an
/// empty part of a body, of which many are sent in good faith.
pub const CONTROL_COST: u64 = 64;
const SMALL_COST: u64 = 8;
/// Types of frames (RFC 9113, 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// What a frame costs its sender beside its turn.
const fn cost(kind: u8, length: usize) -> u64 {
    match kind {
        PRIORITY | SETTINGS | PING => CONTROL_COST,
        DATA if length == 0 => SMALL_COST,
        WINDOW_UPDATE => SMALL_COST,
        kind if kind > CONTINUATION => CONTROL_COST,
        _ => 0,
    }
}

/// How many frames may be read in a turn, which `drive` ends: a flood of small ones costs more than its
/// bytes, and other connections wait meanwhile. A frame has a head of 9 bytes, which begins with the length
/// of what follows and its type (RFC 9113, 4.1).
pub struct Frames {
    /// How many may begin before the next turn.
    left: u32,
    /// Bytes of the preface, or of the frame, that follow what was read.
    rest: usize,
    /// Bytes of a head that were read, and the length that they have shown.
    head: (u32, usize),
    /// The type, the flags and the stream of the frame.
    kind: u8,
    flags: u8,
    stream: u32,
    /// What those that were read have cost.
    pub costs: u64,
    pub blocks: Blocks,
}

impl Default for Frames {
    fn default() -> Self {
        let blocks = Blocks::default();
        Self { left: u32::MAX, rest: 0, head: (0, 0), kind: DATA, flags: 0, stream: 0, costs: 0, blocks }
    }
}

impl Frames {
    /// Those that a client sends.
    pub fn of_client() -> Self {
        Self { left: PER_TURN, rest: PREFACE.len(), ..Self::default() }
    }

    pub const fn begin_turn(&mut self) {
        self.left = PER_TURN;
    }

    /// How many of the next bytes may be read.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if self.rest > 0 {
                let step = self.rest.min(bytes.len() - at);
                self.rest -= step;
                if self.has_block() {
                    self.blocks.take(&bytes[at..at + step]);
                    self.end_block();
                }
                at += step;
                continue;
            }
            let (read, length) = self.head;
            if read == 0 {
                if self.left == 0 {
                    break;
                }
                self.left -= 1;
            }
            match read {
                3 => {
                    self.costs += cost(bytes[at], length);
                    self.kind = bytes[at];
                }
                4 => self.flags = bytes[at],
                5 => self.stream = u32::from(bytes[at] & 0x7f),
                6.. => self.stream = self.stream << 8 | u32::from(bytes[at]),
                _ => {}
            }
            let length = if read < 3 { length << 8 | usize::from(bytes[at]) } else { length };
            at += 1;
            self.head = (read + 1, length);
            if self.head.0 == HEAD_BYTES {
                (self.rest, self.head) = (length, (0, 0));
                if self.has_block() {
                    self.blocks.begin(self.kind == HEADERS, self.flags, self.stream, length);
                    self.end_block();
                }
            }
        }
        at
    }

    const fn has_block(&self) -> bool {
        matches!(self.kind, HEADERS | CONTINUATION)
    }

    fn end_block(&mut self) {
        if self.rest == 0 {
            self.blocks.end();
        }
    }
}

pub struct Pipe(pub Rc<RefCell<Flow>>);

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut flow = self.0.borrow_mut();
        let Flow { input, read, frames, is_at_end, .. } = &mut *flow;
        let there = &input[*read..];
        if there.is_empty() {
            return if *is_at_end { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        let bytes = frames.pass(&there[..there.len().min(buffer.remaining())]);
        if bytes == 0 {
            return Poll::Pending; // the connection has had its share of this turn
        }
        buffer.put_slice(&there[..bytes]);
        flow.read += bytes;
        if flow.read == flow.input.len() {
            flow.input.clear();
            flow.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut flow = self.0.borrow_mut();
        if flow.output.len() >= flow.room {
            flow.is_blocked = true;
            return Poll::Pending;
        }
        let before = flow.output.len();
        for slice in slices {
            flow.output.extend_from_slice(slice);
        }
        Poll::Ready(Ok(flow.output.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `poll_read` does: bytes by bytes, in parts of `step`, as long as any pass.
    fn passed(frames: &mut Frames, bytes: &[u8], step: usize) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let most = step.min(bytes.len() - at);
            match frames.pass(&bytes[at..at + most]) {
                0 => break,
                more => at += more,
            }
        }
        at
    }

    #[test]
    fn a_turn_ends_before_a_frame_however_the_bytes_are_divided() {
        let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let large = [&[1_u8, 0, 2, 0, 0, 0, 0, 0, 1][..], &vec![9; 65_538]].concat();
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let sent = [PREFACE, &settings, &large, &ping.repeat(300), &settings.repeat(200)].concat();
        let shares = [
            PREFACE.len() + settings.len() + large.len() + 126 * ping.len(),
            128 * ping.len(),
            46 * ping.len() + 82 * settings.len(),
            118 * settings.len(),
        ];
        for step in [1, 2, 3, 7, 9, 10, 16, 17, 1000, usize::MAX] {
            let mut frames = Frames::of_client();
            let mut at = 0;
            for share in shares {
                assert_eq!(passed(&mut frames, &sent[at..], step), share, "by {step}");
                at += share;
                frames.begin_turn();
            }
            assert_eq!(at, sent.len());
            assert_eq!(frames.costs, 501 * CONTROL_COST, "all but the large one, by {step}");
        }
    }
}
