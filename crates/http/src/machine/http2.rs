//! HTTP/2 (RFC 9113) without its socket: bytes to requests, responses to bytes.
//!
//! Over 400 lines: each step of a turn, from bytes to requests and back, is a method of one connection.
//!
//! The protocol is that of the `h2` crate, which is written for futures; here it is polled whenever bytes
//! have arrived or the host has responded, and what it wakes is ignored. Its memory is bounded by the window
//! of the connection for bodies that are received, by `out_bytes_max` for each response that is written in
//! parts, and by the number of streams and what waits for them (limiting.rs); resets, small frames and long
//! lists of fields have its own limits.

mod blocks;
mod draining;
mod exchange;
mod fields;
mod limiting;
mod pipe;
mod stream;

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::Future as _,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use h2::{
    Reason,
    server::{Builder, Connection, Handshake},
};
use http::{HeaderMap, HeaderValue};

use crate::{
    connection::{Request, Response},
    head::{Field, Method},
    limits::{Limits, Refusal},
    response::write_date,
};
use blocks::Fault;
use draining::Draining;
use exchange::whole_or_begun;
pub use exchange::{Advanced, Exchange, Piece, Pulled};
pub use fields::map_of;
use fields::{refuse, response_of, write_head};
use limiting::{CALM, Held, Resets};
pub use pipe::is_preface;
use pipe::{Flow, Frames, Pipe};
pub use stream::Stream;
use stream::{Bell, NO_SOCKET, NO_SOCKET_WHY};

/// Bytes of a request's body that a client may send before they are pulled, of a stream and of a connection.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const WINDOW_BYTES: u32 = 1024 * 1024;
/// Bytes of one response that `h2` stores beyond what it has written.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
const PSEUDO_WHY: &str = "pseudo-header fields in trailers";

enum Engine {
    Begins(Box<Handshake<Pipe, Bytes>>),
    Serves(Box<Connection<Pipe, Bytes>>),
    Over,
}

/// What `accept` finds.
pub enum Accepted {
    Nothing,
    /// A request whose head is in the bytes that were passed; `admit` follows.
    Request(Request),
    /// A request was refused; status 0: its stream was reset.
    Refused(Refusal),
}

/// What the host is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Body,
    Lost,
    Drained,
}

/// A connection of HTTP/2.
pub struct Http2 {
    engine: Engine,
    flow: Rc<RefCell<Flow>>,
    /// By stamp, ascending.
    exchanges: VecDeque<Exchange>,
    /// Slots of the WebSockets whose streams are those of this connection.
    sockets: Vec<(u32, Arc<Bell>)>,
    /// Responses that were cut off since a file had become shorter, and were not reported.
    pub short_files: u32,
    /// The accepted request that is not admitted.
    next: Option<Exchange>,
    date: (i64, HeaderValue),
    /// When the last request or response was seen.
    pub active_ms: u64,
    has_served: bool,
    is_cut: bool,
    /// When the connection began to leave; 0: it has not.
    left_ms: u64,
    /// When it was given up; 0: it was not.
    given_up_ms: u64,
    /// Why this server ends the connection, for the host.
    why: Option<(&'static str, String)>,
    /// The stream that was accepted last.
    accepted: u32,
    resets: Resets,
    /// Bytes' worth of frames without requests or bodies that it may still send, and when
    /// that was counted last.
    calm: (u64, u64),
    held: Held,
    draining: Draining,
}

/// What is polled here is polled again anyway.
fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl Http2 {
    pub fn new(limits: &Limits, now_ms: u64) -> Self {
        let (room, frames) = (limits.out_bytes_max.max(1), Frames::of_client());
        let flow = Rc::new(RefCell::new(Flow { room, frames, ..Flow::default() }));
        let engine = Builder::new()
            .max_concurrent_streams(limits.streams_max)
            .max_header_list_size(limits.header_bytes_max.try_into().unwrap_or(u32::MAX))
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            // Those that were reset before they are accepted: `Resets` decides.
            .max_pending_accept_reset_streams(limits.resets_max as usize)
            // Any handler may call `upgrade()`, so nothing is known that would speak against it.
            .enable_connect_protocol()
            .handshake(Pipe(Rc::clone(&flow)));
        Self {
            engine: Engine::Begins(Box::new(engine)),
            flow,
            exchanges: VecDeque::new(),
            sockets: Vec::new(),
            short_files: 0,
            next: None,
            date: (i64::MIN, HeaderValue::from_static("")),
            active_ms: now_ms,
            has_served: false,
            is_cut: false,
            left_ms: 0,
            given_up_ms: 0,
            why: None,
            accepted: 0,
            resets: Resets::new(limits.resets_max, now_ms),
            calm: (CALM, now_ms),
            held: Held::default(),
            draining: Draining::new(limits.linger_ms),
        }
    }

    /// Take bytes from the client.
    pub fn feed(&mut self, bytes: &[u8], is_at_end: bool) {
        let mut flow = self.flow.borrow_mut();
        flow.input.extend_from_slice(bytes);
        flow.is_at_end |= is_at_end;
    }

    /// Set the date of responses, in seconds since 1970.
    pub fn set_time(&mut self, second: i64) {
        if self.date.0 != second {
            let mut bytes = Vec::with_capacity(32);
            write_date(second, &mut bytes);
            let value = HeaderValue::from_maybe_shared(Bytes::from(bytes));
            self.date = (second, value.unwrap_or_else(|_| HeaderValue::from_static("")));
        }
    }

    /// The next request. Its head, and its body if that has arrived, are written into `bytes`.
    pub fn accept(
        &mut self,
        bytes: &mut [u8],
        fields: &mut Vec<Field>,
        limits: &Limits,
        now_ms: u64,
    ) -> Accepted {
        self.begin();
        if self.held.is_much {
            return Accepted::Nothing;
        }
        let Engine::Serves(connection) = &mut self.engine else { return Accepted::Nothing };
        let (request, mut respond) = match connection.poll_accept(&mut context()) {
            Poll::Pending => return Accepted::Nothing,
            Poll::Ready(Some(Ok(accepted))) => accepted,
            Poll::Ready(ended) => {
                self.close(ended.and_then(Result::err));
                return Accepted::Nothing;
            }
        };
        self.has_served = true;
        if self.given_up_ms > 0 {
            respond.send_reset(Reason::REFUSED_STREAM);
            self.count_reset(now_ms);
            return Accepted::Refused(Refusal::of(0, "the connection is given up"));
        }
        match self.take_fault(u32::from(respond.stream_id())) {
            None => {}
            Some(Fault::Pseudo) => {
                respond.send_reset(Reason::PROTOCOL_ERROR);
                return Accepted::Refused(Refusal::of(0, PSEUDO_WHY));
            }
            Some(Fault::Fragment) => {
                let refusal = Refusal::bad("target");
                refuse(respond, &refusal, request.method() == http::Method::HEAD, &self.date.1);
                self.draining.add(request.into_body());
                return Accepted::Refused(refusal);
            }
        }
        let (parts, receive) = request.into_parts();
        let is_whole = receive.is_end_stream();
        let head = match write_head(&parts, is_whole, limits, bytes, fields) {
            Ok(head) => head,
            Err(refusal) => {
                refuse(respond, &refusal, parts.method == http::Method::HEAD, &self.date.1);
                self.draining.add(receive);
                return Accepted::Refused(refusal);
            }
        };
        let mut exchange = Exchange::new(respond, (!is_whole).then_some(receive), limits.body_ms);
        exchange.is_head = head.method == Method::Head;
        exchange.connects = head.upgrades;
        exchange.expects = head.expects;
        let request = whole_or_begun(head, &mut exchange, &mut bytes[head.bytes..], limits);
        self.next = Some(exchange);
        Accepted::Request(request)
    }

    /// What is wrong with the request of a stream that is accepted now; faults of those before it are
    /// dropped.
    fn take_fault(&mut self, stream: u32) -> Option<Fault> {
        self.accepted = stream;
        let mut flow = self.flow.borrow_mut();
        let faults = &mut flow.frames.blocks.faults;
        if faults.is_empty() {
            return None;
        }
        let found = faults.iter().find(|(other, _)| *other == stream).map(|(_, fault)| *fault);
        faults.retain(|(other, fault)| *other > stream || *other < stream && *fault == Fault::Pseudo);
        found
    }

    /// Reset the streams whose trailers are malformed.
    pub fn reset_malformed(&mut self, mut report: impl FnMut(u32, News)) {
        let mut flow = self.flow.borrow_mut();
        let (faults, accepted) = (&mut flow.frames.blocks.faults, self.accepted);
        if faults.is_empty() {
            return;
        }
        let exchanges = &mut self.exchanges;
        faults.retain(|(stream, _)| {
            if *stream > accepted {
                return true; // its request comes first
            }
            let found = exchanges.iter().position(|one| u32::from(one.respond.stream_id()) == *stream);
            if let Some(mut exchange) = found.and_then(|index| exchanges.remove(index)) {
                exchange.reset(Reason::PROTOCOL_ERROR);
                if exchange.is_open() {
                    report(exchange.stamp, News::Lost);
                }
            }
            false
        });
    }

    /// Why this server ends the connection, once.
    pub fn take_why(&mut self) -> Option<(&'static str, String)> {
        self.why.take()
    }

    fn begin(&mut self) {
        let Engine::Begins(handshake) = &mut self.engine else { return };
        match Pin::new(&mut **handshake).poll(&mut context()) {
            Poll::Pending => {}
            Poll::Ready(Ok(mut connection)) => {
                if self.left_ms > 0 {
                    connection.graceful_shutdown();
                }
                self.engine = Engine::Serves(Box::new(connection));
            }
            Poll::Ready(Err(error)) => self.close(Some(error)),
        }
    }

    /// The request that was accepted is open.
    pub fn admit(&mut self, stamp: u32) {
        if let Some(mut exchange) = self.next.take() {
            exchange.stamp = stamp;
            self.exchanges.push_back(exchange);
        }
    }

    /// Hand on what was written, and what arrived before; `is_blocked` until the output has been sent.
    pub fn drive(&mut self, into: &mut Vec<u8>, room: usize, now_ms: u64, lost: &mut Vec<u32>) {
        self.begin();
        self.count_frames(now_ms);
        self.flow.borrow_mut().room = room;
        loop {
            let mut has_sent = false;
            self.exchanges.retain_mut(|exchange| {
                if !exchange.has_work() {
                    return true;
                }
                match exchange.advance() {
                    Advanced::Waits => {
                        exchange.awaits_room(now_ms);
                        true
                    }
                    Advanced::Sent => {
                        exchange.found_room(now_ms);
                        has_sent = true;
                        true
                    }
                    Advanced::Over => {
                        has_sent = true;
                        self.draining.add_rest(exchange);
                        false
                    }
                    Advanced::Lost => {
                        self.short_files += u32::from(exchange.is_short);
                        if exchange.is_open() {
                            lost.push(exchange.stamp);
                        }
                        false
                    }
                }
            });
            self.flow.borrow_mut().is_blocked = false;
            self.end_given_up(now_ms);
            if let Engine::Serves(connection) = &mut self.engine
                && let Poll::Ready(ended) = connection.poll_closed(&mut context())
            {
                self.close(ended.err());
            }
            if !(self.draining.read(now_ms) || has_sent) || self.is_blocked() {
                break;
            }
        }
        let mut flow = self.flow.borrow_mut();
        let sent = flow.output.len();
        into.append(&mut flow.output);
        flow.frames.begin_turn();
        drop(flow);
        self.earn(sent);
    }

    /// Whether bytes of the client wait until some are written, or for the next turn.
    pub fn has_input(&self) -> bool {
        !self.flow.borrow().input.is_empty()
    }

    /// Whether more is to be written than there was room for.
    pub fn is_blocked(&self) -> bool {
        self.flow.borrow().is_blocked
    }

    /// What has changed for requests of earlier batches.
    pub fn news(&mut self, now_ms: u64, limits: &Limits, mut report: impl FnMut(u32, News)) {
        self.reset_malformed(&mut report);
        let mut resets = 0;
        self.exchanges.retain_mut(|exchange| {
            if exchange.is_open() && exchange.is_reset() {
                report(exchange.stamp, News::Lost);
                resets += u32::from(!exchange.has_begun());
                return false;
            }
            if exchange.wants_body && exchange.has_body_news(limits) {
                exchange.wants_body = false;
                report(exchange.stamp, News::Body);
            }
            if exchange.is_full && exchange.queued() <= limits.out_bytes_max / 2 {
                exchange.is_full = false;
                report(exchange.stamp, News::Drained);
            }
            true
        });
        self.held.measure(&self.exchanges);
        for _ in 0..resets {
            self.count_reset(now_ms);
        }
    }

    fn position(&self, stamp: u32) -> Option<usize> {
        let first = self.exchanges.front()?.stamp;
        let found = self
            .exchanges
            .binary_search_by_key(&stamp.wrapping_sub(first), |exchange| exchange.stamp.wrapping_sub(first));
        found.ok().filter(|index| self.exchanges[*index].is_open())
    }

    pub fn exchange(&mut self, stamp: u32) -> Option<&mut Exchange> {
        let index = self.position(stamp)?;
        self.exchanges.get_mut(index)
    }

    pub fn has(&self, stamp: u32) -> bool {
        self.position(stamp).is_some()
    }

    pub fn trailers(&self, stamp: u32) -> &[u8] {
        self.position(stamp).map_or(&[], |index| &self.exchanges[index].trailers)
    }

    pub fn stamps(&self) -> impl Iterator<Item = u32> {
        self.exchanges.iter().filter(|exchange| exchange.is_open()).map(|exchange| exchange.stamp)
    }

    pub fn open_count(&self) -> usize {
        self.exchanges.len()
    }

    pub fn respond(&mut self, stamp: u32, response: &Response<'_>, body: &[u8]) -> bool {
        let length = body.len() as u64;
        let Some(exchange) = self.start(stamp, response, Some(length)) else { return false };
        exchange.push(body);
        exchange.end(None);
        true
    }

    pub fn start(
        &mut self,
        stamp: u32,
        response: &Response<'_>,
        length: Option<u64>,
    ) -> Option<&mut Exchange> {
        let index = self.position(stamp).filter(|index| !self.exchanges[*index].has_begun())?;
        let head = response_of(response, length, &self.date.1);
        if self.exchanges[index].connects && head.status().is_success() {
            self.respond(stamp, &NO_SOCKET, NO_SOCKET_WHY);
            return None;
        }
        let exchange = &mut self.exchanges[index];
        if !exchange.start(head, length) {
            return None; // `news` reports it
        }
        self.resets.earn();
        Some(exchange)
    }

    /// End a response. False: it is shorter than announced, and the stream was reset.
    pub fn end(&mut self, stamp: u32, trailers: Option<HeaderMap>) -> bool {
        let Some(index) = self.position(stamp) else { return true };
        if self.exchanges[index].end(trailers) {
            return true;
        }
        self.abort(stamp);
        false
    }

    /// Send an informational response, 103 (RFC 8297). False: the response has begun.
    pub fn hint(&mut self, stamp: u32, lines: &[u8]) -> bool {
        let Some(exchange) = self.exchange(stamp).filter(|exchange| !exchange.has_begun()) else {
            return false;
        };
        exchange.inform(103, map_of(lines))
    }

    /// The request is not responded to.
    pub fn abort(&mut self, stamp: u32) {
        if let Some(index) = self.position(stamp) {
            self.exchanges[index].reset(Reason::INTERNAL_ERROR);
            self.exchanges.remove(index);
        }
    }
}

#[cfg(test)]
mod tests;
