//! One stream of HTTP/2: the request's body as it is pulled, and the response as far as flow control
//! admits it.

use std::{collections::VecDeque, rc::Rc, task::Poll};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, server::SendResponse};
use http::HeaderMap;

use super::{context, fields::lines_of, limiting::Budget, stream::Stream};
use crate::{connection::Request, files::FilePart, head::Head, limits::Limits, shared_bodies::SharedBody};

/// Bytes of a body that become one frame at most, and that are read from a file at once.
const PIECE_BYTES_MAX: usize = 16 * 1024;

/// A part of the body that waits for the window of its client.
pub enum Piece {
    Bytes(Bytes),
    /// The body, and how many bytes of it are sent.
    Shared(Rc<SharedBody>, usize),
    File(FilePart, usize),
}

impl Piece {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Shared(body, from) => body.bytes().len() - from,
            Self::File(part, from) => part.bytes - from,
        }
    }

    /// Take at most `most` bytes; `None`: the file is shorter than its part.
    fn take(&mut self, most: usize) -> Option<Bytes> {
        let bytes = most.min(PIECE_BYTES_MAX).min(self.len());
        match self {
            Self::Bytes(rest) => Some(rest.split_to(bytes)),
            Self::Shared(body, from) => {
                *from += bytes;
                Some(Bytes::copy_from_slice(&body.bytes()[*from - bytes..*from]))
            }
            Self::File(part, from) => {
                let mut piece = Bytes::new();
                let take = |read: &[u8]| {
                    piece = Bytes::copy_from_slice(read);
                    Ok(read.len())
                };
                *from += part.read(*from, bytes, take).ok().filter(|read| *read > 0)?;
                Some(piece)
            }
        }
    }
}

/// What a pull of a body finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Pulled {
    /// This many bytes.
    Bytes(usize),
    End,
    Wait,
    /// The client has reset the stream, or the connection has ended.
    Lost,
    /// The status of a refusal: the body is too long, or too slow.
    Failed(u16),
}

/// How the response goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// All that could be sent is.
    Waits,
    /// Something was sent, and more may follow.
    Sent,
    /// The response is complete.
    Over,
    /// The stream was reset by its client, or by this server when the body cannot be completed.
    Lost,
}

pub struct Exchange {
    pub stamp: u32,
    pub is_head: bool,
    /// The client waits for `100 Continue`.
    pub expects: bool,
    /// It asks for a WebSocket: any success would be that, so only `into_stream` has one.
    pub connects: bool,
    pub respond: SendResponse<Bytes>,
    send: Option<SendStream<Bytes>>,
    pub(super) receive: Option<RecvStream>,
    /// Bytes of the body that are not pulled.
    pub(super) ready: Bytes,
    /// The first bytes of `ready` for which the client has been given room already.
    pub(super) credited: usize,
    received: u64,
    /// Lines of the trailers of the request.
    pub trailers: Vec<u8>,
    pub(super) queue: VecDeque<Piece>,
    queued: usize,
    /// Bytes that are missing of the length that was announced.
    left: Option<u64>,
    /// The head has ended the stream: there is no body.
    is_ended: bool,
    /// The host has ended the response.
    ends: bool,
    end_trailers: Option<HeaderMap>,
    /// The host waits for the body, and how long.
    pub wants_body: bool,
    pub body_time: Budget,
    /// The status of a refused body.
    pub body_failed: u16,
    /// How long nothing can be sent.
    room_time: Budget,
    /// Bytes that were sent since that was charged.
    sent: u64,
    /// The host waits for `DRAINED`.
    pub is_full: bool,
    /// A file was shorter than announced.
    pub is_short: bool,
}

impl Exchange {
    pub fn new(respond: SendResponse<Bytes>, receive: Option<RecvStream>, body_ms: u64) -> Self {
        Self {
            stamp: 0,
            is_head: false,
            expects: false,
            connects: false,
            respond,
            send: None,
            receive,
            ready: Bytes::new(),
            credited: 0,
            received: 0,
            trailers: Vec::new(),
            queue: VecDeque::new(),
            queued: 0,
            left: None,
            is_ended: false,
            ends: false,
            end_trailers: None,
            wants_body: false,
            body_time: Budget::new(body_ms),
            body_failed: 0,
            room_time: Budget::new(body_ms),
            sent: 0,
            is_full: false,
            is_short: false,
        }
    }

    /// Whether the host may still respond.
    pub const fn is_open(&self) -> bool {
        !self.ends
    }

    pub const fn has_begun(&self) -> bool {
        self.send.is_some() || self.ends
    }

    /// Bytes of the response that wait.
    pub const fn queued(&self) -> usize {
        self.queued
    }

    pub const fn has_work(&self) -> bool {
        self.queued > 0 || self.ends
    }

    /// Copy the next bytes of the body.
    pub fn pull(&mut self, into: &mut [u8], limits: &Limits) -> Pulled {
        if self.body_failed != 0 {
            return Pulled::Failed(self.body_failed);
        }
        loop {
            if !self.ready.is_empty() {
                let bytes = self.ready.len().min(into.len());
                into[..bytes].copy_from_slice(&self.ready.split_to(bytes));
                let credited = self.credited.min(bytes);
                self.credited -= credited;
                if let Some(receive) = &mut self.receive {
                    // The client may send as much again. It cannot fail: these bytes are counted.
                    let _ = receive.flow_control().release_capacity(bytes - credited);
                }
                return Pulled::Bytes(bytes);
            }
            let Some(receive) = &mut self.receive else { return Pulled::End };
            match receive.poll_data(&mut context()) {
                Poll::Pending => return Pulled::Wait,
                Poll::Ready(Some(Ok(bytes))) => {
                    self.received += bytes.len() as u64;
                    if self.received > limits.body_bytes_max {
                        self.body_failed = 413;
                        return Pulled::Failed(413);
                    }
                    self.ready = bytes;
                }
                Poll::Ready(Some(Err(_))) => return Pulled::Lost,
                Poll::Ready(None) => match receive.poll_trailers(&mut context()) {
                    Poll::Pending => return Pulled::Wait,
                    Poll::Ready(Err(_)) => return Pulled::Lost,
                    Poll::Ready(Ok(trailers)) => {
                        self.trailers = trailers.as_ref().map_or_else(Vec::new, lines_of);
                        self.receive = None;
                        return Pulled::End;
                    }
                },
            }
        }
    }

    /// Bytes that were pulled and for which the client has no room yet.
    #[cfg(test)]
    pub fn unreleased(&mut self) -> usize {
        self.receive.as_mut().map_or(0, |receive| receive.flow_control().used_capacity())
    }

    /// The client sends the body when it is asked for.
    pub fn ask(&mut self) {
        if std::mem::take(&mut self.expects) && !self.has_begun() {
            self.inform(100, HeaderMap::new());
        }
    }

    pub fn inform(&mut self, status: u16, fields: HeaderMap) -> bool {
        let mut head = http::Response::new(());
        *head.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
        *head.headers_mut() = fields;
        self.respond.send_informational(head).is_ok()
    }

    /// Take back what was pulled.
    pub fn give_back(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.credited += bytes.len();
            self.ready = [bytes, &self.ready].concat().into();
        }
    }

    /// Its client makes no room.
    pub const fn awaits_room(&mut self, now_ms: u64) {
        if self.queued > 0 {
            self.room_time.begin(now_ms);
        }
    }

    /// Its client has made room.
    pub fn found_room(&mut self, now_ms: u64) {
        self.room_time.charge(now_ms, std::mem::take(&mut self.sent));
        if self.queued == 0 {
            self.room_time.fill();
        }
    }

    /// When its client is given up, in ms.
    pub fn deadline(&self) -> Option<u64> {
        let body = if self.wants_body { self.body_time.end() } else { None };
        body.into_iter().chain(self.room_time.end()).min()
    }

    /// Whether a pull would find something now.
    pub fn has_body_news(&mut self, limits: &Limits) -> bool {
        self.ready.is_empty() && self.pull(&mut [], limits) != Pulled::Wait || !self.ready.is_empty()
    }

    /// Whether its client has reset the stream.
    pub fn is_reset(&mut self) -> bool {
        let poll = match &mut self.send {
            Some(send) => send.poll_reset(&mut context()),
            None => self.respond.poll_reset(&mut context()),
        };
        poll.is_ready()
    }

    pub fn reset(&mut self, reason: Reason) {
        match &mut self.send {
            Some(send) => send.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
    }

    /// Send the head. `length` is that of the body; false: the stream has ended.
    pub fn start(&mut self, head: http::Response<()>, length: Option<u64>) -> bool {
        let is_bodiless = self.is_head || matches!(head.status().as_u16(), 204 | 304);
        self.left = if is_bodiless { Some(0) } else { length };
        self.is_ended = self.left == Some(0);
        match self.respond.send_response(head, self.is_ended) {
            Ok(send) => {
                self.send = Some(send);
                true
            }
            Err(_) => false,
        }
    }

    /// The stream of a WebSocket whose response has begun.
    pub fn into_stream(self, carrier: u32) -> Option<Stream> {
        Some(Stream::new(self.send?, self.receive?, carrier))
    }

    /// Add a part of the body; bytes beyond the length that was announced are dropped.
    pub fn push(&mut self, bytes: &[u8]) {
        let here =
            self.left.map_or(bytes.len(), |left| bytes.len().min(left.try_into().unwrap_or(usize::MAX)));
        if here > 0 {
            self.push_piece(Piece::Bytes(Bytes::copy_from_slice(&bytes[..here])));
        }
    }

    pub fn push_piece(&mut self, piece: Piece) {
        let bytes = piece.len();
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes as u64);
        }
        if bytes > 0 {
            self.queued += bytes;
            self.queue.push_back(piece);
        }
    }

    /// The host has ended the response. False: it is shorter than announced.
    pub fn end(&mut self, trailers: Option<HeaderMap>) -> bool {
        if self.left.is_some_and(|left| left > 0) {
            return false;
        }
        self.ends = true;
        self.end_trailers = trailers;
        true
    }

    /// Hand to `h2` what the windows and its buffer have room for.
    pub fn advance(&mut self) -> Advanced {
        let Some(send) = &mut self.send else { return Advanced::Waits };
        if self.is_ended {
            return if self.ends { Advanced::Over } else { Advanced::Waits };
        }
        let mut found = Advanced::Waits;
        while let Some(piece) = self.queue.front_mut() {
            send.reserve_capacity(self.queued.min(4 * PIECE_BYTES_MAX));
            let room = match send.capacity() {
                0 => match send.poll_capacity(&mut context()) {
                    Poll::Pending => return found,
                    Poll::Ready(Some(Ok(room))) => room,
                    Poll::Ready(_) => return Advanced::Lost,
                },
                room => room,
            };
            let Some(bytes) = piece.take(room) else {
                self.is_short = true;
                send.send_reset(Reason::INTERNAL_ERROR);
                return Advanced::Lost;
            };
            self.queued -= bytes.len();
            self.sent += bytes.len() as u64;
            if piece.len() == 0 {
                self.queue.pop_front();
            }
            let is_last = self.ends && self.queue.is_empty() && self.end_trailers.is_none();
            if send.send_data(bytes, is_last).is_err() {
                return Advanced::Lost;
            }
            if is_last {
                return Advanced::Over;
            }
            found = Advanced::Sent;
        }
        if !self.ends {
            return found;
        }
        let ended = match self.end_trailers.take() {
            Some(trailers) => send.send_trailers(trailers),
            None => send.send_data(Bytes::new(), true),
        };
        if ended.is_ok() { Advanced::Over } else { Advanced::Lost }
    }
}

/// The request; its body is copied behind its head if it has arrived whole.
pub fn whole_or_begun(head: Head, exchange: &mut Exchange, rest: &mut [u8], limits: &Limits) -> Request {
    let mut body_bytes = 0;
    // Behind a request for a WebSocket are frames.
    let is_whole = exchange.connects
        || loop {
            match exchange.pull(&mut rest[body_bytes..], limits) {
                Pulled::End => break true,
                Pulled::Bytes(bytes) if bytes > 0 => body_bytes += bytes,
                _ => break false,
            }
        };
    if !is_whole {
        exchange.give_back(&rest[..body_bytes]);
    }
    let body_bytes = if is_whole { body_bytes } else { 0 };
    Request { head, body_bytes, is_whole, consumed: head.bytes + body_bytes, closes: false }
}
