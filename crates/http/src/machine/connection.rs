//! One connection without its socket: bytes to requests, responses to bytes, in the order of the requests.
//!
//! An **exchange** is a request whose response has not ended. Responses may come in any order; those ahead of
//! their turn are held. At most one request body is unfinished, that of the last exchange: nothing behind it
//! is read before the host has taken it or it has been discarded.
//!
//! What the next bytes are, `Reading`:
//!
//! ```text
//!  Proxy ──▶ Head ──▶ Head               a request without a body, or with a whole one
//!              │ ───▶ Body ──▶ Head      its last byte was read
//!              │        └────▶ Discard   its response is complete before: a small rest is skipped
//!              │                  └──▶ Head, or Nothing beyond DISCARD_BYTES_MAX
//!              │ ───▶ Upgrade ──▶ Frames (granted), Head (not granted)
//!              │ ───▶ Http2              by its first bytes, or as TLS has agreed
//!              ▼
//!           Nothing                      the last request, a refusal, the end of the input
//! ```
//!
//! An exchange, `Phase`: Waiting ──▶ Streaming (its head is written) ──▶ Done; a whole response is Done at
//! once. An exchange that is Done leaves the list when those ahead of it have.

mod exchange;
mod output;
mod reading;
mod responding;
mod trailers;
mod upgrading;

use std::{collections::VecDeque, net::IpAddr};

use crate::{
    body::Body,
    chunked::Decoded,
    head::{Framing, Head, Method, Parsed, Parser, is_for_head},
    http2::Http2,
    limits::{Limits, Refusal},
    proxy,
    response::{Heads, Persistence, ResponseFraming, ResponseHead},
    websocket::{Fault, Received, WebSocket},
};
use exchange::{Exchange, Phase};
pub use output::{Body as OutBody, More};
use output::{Tail, sink_of};

/// Bytes of an unwanted body that are read all the same, so that the connection can be kept.
pub const DISCARD_BYTES_MAX: u64 = 256 * 1024;

/// What the next bytes are.
enum Reading {
    /// The header of the PROXY protocol.
    Proxy,
    Head,
    /// The body of the last exchange.
    Body(Body),
    /// An unwanted body, and how many more bytes of it are accepted.
    Discard(Body, u64),
    /// Those behind a request that asks for a WebSocket: frames, or a request if it is not granted.
    Upgrade,
    Frames(Box<WebSocket>),
    /// HTTP/2, which reads by itself.
    Http2(Box<Http2>),
    /// Nothing more is read.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its offsets are into the data.
    pub head: Head,
    /// Bytes of the decoded body, which lies in the data from `head.bytes` on; 0 unless it is whole.
    pub body_bytes: usize,
    /// The whole body has arrived, or the request has no body.
    pub is_whole: bool,
    /// Bytes of the data that belong to this request.
    pub consumed: usize,
    /// The connection closes after the response.
    pub closes: bool,
}

/// The result of [`Connection::next`].
#[derive(Debug)]
pub enum Next {
    /// Nothing is read now: responses or a body must be sent first, or the connection closes.
    Wait,
    /// The head is not complete.
    Partial,
    /// This many bytes belong to an unwanted body, or came before the first head.
    Skipped(usize),
    /// A request, to be passed to `admit`.
    Request(Request),
    /// The same with trailers; `bind_trailers` follows.
    Trailed(Request),
    /// Bytes of a WebSocket that were used, and what was received in them.
    Frames(usize, Result<Received, Fault>),
}

/// What remains of the bytes that were read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing, or a part of a request.
    Partial,
    /// Bytes that were not parsed: responses or a body come first, or it is another connection's turn.
    Unread,
}

/// A response, or its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// 200 to 599.
    pub status: u16,
    /// Index into [`crate::layout::TYPES`].
    pub kind: u8,
    /// Complete header lines.
    pub headers: &'a [u8],
}

pub struct Connection {
    /// Bytes that were read and not used.
    pub kept: Vec<u8>,
    /// Decoded bytes of the unfinished body that the host has not taken.
    pub ready: Vec<u8>,
    /// Bytes to send, from `sent` on.
    pub out: Vec<u8>,
    pub sent: usize,
    /// Sent behind `out`.
    tails: VecDeque<Tail>,
    /// Trailer lines of requests by their stamps; the last may not have its stamp yet.
    trailers: Vec<(u32, Vec<u8>)>,
    reading: Reading,
    /// The client that a proxy has stated.
    client: Option<IpAddr>,
    exchanges: VecDeque<Exchange>,
    served: u32,
    /// Nothing is read after the open exchanges.
    closing: bool,
    /// The request that is read next is the last.
    closes_after_next: bool,
    /// The client was still sending when reading stopped.
    is_cut: bool,
    /// Some exchange holds a response ahead of its turn.
    has_held: bool,
    /// The largest body of a whole response since `take_largest`.
    largest: Option<u64>,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            ready: Vec::new(),
            out: Vec::new(),
            sent: 0,
            tails: VecDeque::new(),
            trailers: Vec::new(),
            reading: Reading::Head,
            client: None,
            exchanges: VecDeque::new(),
            served: 0,
            closing: false,
            closes_after_next: false,
            is_cut: false,
            has_held: false,
            largest: None,
        }
    }
}

impl Connection {
    /// A connection that begins with a header of the PROXY protocol.
    pub fn behind_proxy() -> Self {
        Self { reading: Reading::Proxy, ..Self::default() }
    }

    /// A proxy has stated the client before the connection's first byte.
    pub const fn set_client(&mut self, client: Option<IpAddr>) {
        self.client = client;
    }

    /// The client that a proxy has stated.
    pub const fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// Whether the next bytes are those of a head, or what comes before the first one.
    const fn is_before_head(&self) -> bool {
        matches!(self.reading, Reading::Head | Reading::Proxy)
    }

    #[inline]
    pub fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// Stamps of the open exchanges, oldest first.
    pub fn stamps(&self) -> impl Iterator<Item = u32> {
        self.exchanges.iter().filter(|exchange| exchange.is_open()).map(|exchange| exchange.stamp)
    }

    /// No exchange is open and nothing more is read: the unsent bytes are the last.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.closing && self.exchanges.is_empty()
    }

    /// Bytes of responses that wait to be sent or are held.
    #[inline]
    fn response_bytes(&self) -> usize {
        if !self.has_held {
            return self.unsent();
        }
        self.unsent() + self.exchanges.iter().map(Exchange::held_bytes).sum::<usize>()
    }

    /// The largest body of the whole responses since the last call.
    #[inline]
    pub fn take_largest(&mut self) -> Option<u64> {
        self.largest.take()
    }

    /// Whether [`next`](Self::next) would parse bytes that arrive now.
    #[inline]
    pub fn wants_input(&self, limits: &Limits) -> bool {
        match self.reading {
            Reading::Head => {
                !self.closing
                    && self.exchanges.len() < limits.pipeline_max
                    && self.response_bytes() <= limits.out_bytes_max
            }
            Reading::Discard(..) => true,
            Reading::Proxy => !self.closing,
            Reading::Frames(ref frames) => {
                !self.closing
                    && frames.end.is_none()
                    && !frames.is_paused
                    && self.unsent() <= limits.out_bytes_max
            }
            Reading::Body(_) | Reading::Upgrade | Reading::Http2(_) | Reading::Nothing => false,
        }
    }

    /// Open an exchange for a request.
    #[inline]
    pub fn admit(&mut self, request: &Request, stamp: u32) {
        self.exchanges.push_back(Exchange {
            stamp,
            is_head: request.head.method == Method::Head,
            is_http10: request.head.is_http10,
            closes: request.closes,
            expects: request.head.expects && !request.is_whole,
            asked: false,
            has_body: !request.is_whole,
            is_notified: false,
            phase: Phase::Waiting,
            held: Vec::new(),
            held_body: None,
        });
    }

    /// Whether a whole response may be appended to `out` without opening an exchange.
    #[inline]
    pub fn is_next(&self, request: &Request) -> bool {
        self.exchanges.is_empty()
            && request.is_whole
            && !request.closes
            && !request.head.is_http10
            && !request.head.upgrades
    }

    /// Stamps of the open exchanges that no earlier call returned.
    pub fn take_unnotified(&mut self) -> Vec<u32> {
        let open = self.exchanges.iter_mut().filter(|exchange| exchange.is_open() && !exchange.is_notified);
        open.map(|exchange| {
            exchange.is_notified = true;
            exchange.stamp
        })
        .collect()
    }

    pub fn has_unnotified(&self) -> bool {
        self.exchanges.iter().any(|exchange| exchange.is_open() && !exchange.is_notified)
    }

    /// Drop an exchange and those behind it, and close after those before it. Returns the dropped stamps;
    /// `None` if a part of its response may have been sent already.
    pub fn abort(&mut self, stamp: u32) -> Option<Vec<u32>> {
        let index = self.position(stamp)?;
        if index == 0 && self.exchanges[0].phase != Phase::Waiting {
            return None;
        }
        let dropped = self.exchanges.drain(index..).filter(Exchange::is_open);
        let stamps = dropped.map(|exchange| exchange.stamp).collect();
        self.ready = Vec::new();
        self.stop_reading();
        Some(stamps)
    }

    /// Respond with a refusal behind the open exchanges, and read nothing more. `input` is the refused
    /// request: a response to HEAD has no content (RFC 9110, 9.3.2).
    pub fn refuse(&mut self, refusal: Refusal, input: &[u8], heads: &Heads) {
        self.stop_reading();
        let mut bytes = Vec::new();
        let head = ResponseHead {
            status: refusal.status,
            kind: 1,
            headers: b"",
            framing: ResponseFraming::Length(refusal.why.len() as u64 + 1),
            persistence: Persistence::Close,
        };
        heads.write(&head, &mut bytes);
        if !is_for_head(input) {
            bytes.extend_from_slice(refusal.why.as_bytes());
            bytes.push(b'\n');
        }
        if self.exchanges.is_empty() {
            self.front_sink().extend_from_slice(&bytes);
            return;
        }
        // Only the last response carries `connection: close`.
        if let Some(last) = self.exchanges.back_mut() {
            last.closes = false;
        }
        self.exchanges.push_back(Exchange {
            stamp: 0,
            is_head: false,
            is_http10: false,
            closes: true,
            expects: false,
            asked: false,
            has_body: false,
            is_notified: true,
            phase: Phase::Done,
            held: bytes,
            held_body: None,
        });
    }

    /// Whether that exchange is open, which is not one of HTTP/2.
    pub fn is_in_flight(&self, stamp: u32) -> bool {
        self.position(stamp).is_some()
    }

    pub fn is_open(&self, stamp: u32) -> bool {
        self.http2().map_or_else(|| self.is_in_flight(stamp), |http2| http2.has(stamp))
    }

    /// Bytes of that exchange's response that wait.
    pub fn waiting_bytes(&self, stamp: u32) -> usize {
        match self.position(stamp) {
            None => 0,
            Some(0) => self.unsent(),
            Some(index) => self.exchanges[index].held_bytes(),
        }
    }

    /// The host pulls that exchange's body: send `100 Continue` if the client expects it, in its turn.
    pub fn ask(&mut self, stamp: u32) {
        if let Some(index) = self.position(stamp) {
            self.exchanges[index].asked = true;
            self.continue_front();
        }
    }

    fn continue_front(&mut self) {
        if let Some(front) = self.exchanges.front_mut()
            && front.asked
            && front.expects
            && front.phase == Phase::Waiting
        {
            front.expects = false;
            sink_of(&mut self.out, &mut self.tails).extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// Whether the unfinished body is that exchange's.
    pub fn has_body(&self, stamp: u32) -> bool {
        self.is_in_body() && self.awaits_body(stamp)
    }

    /// Index of an open exchange.
    #[inline]
    fn position(&self, stamp: u32) -> Option<usize> {
        match self.exchanges.front() {
            Some(front) if front.stamp == stamp && front.is_open() => Some(0),
            _ => self.exchanges.iter().position(|exchange| exchange.stamp == stamp && exchange.is_open()),
        }
    }

    /// Index of an exchange whose response has not begun.
    #[inline]
    fn waiting(&self, stamp: u32) -> Option<usize> {
        self.position(stamp).filter(|&index| self.exchanges[index].phase == Phase::Waiting)
    }
}

#[cfg(test)]
pub(crate) mod tests;
