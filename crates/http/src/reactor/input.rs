//! From sockets to batches: reading, and what is done with each request. A connection is read once per poll,
//! so that none starves another, and is lifted out of its slot while it is worked on.

use std::{io, rc::Rc};

use super::{
    Reactor,
    refusals::Refused,
    slots::{HostEvent, Session},
};
use crate::{
    connection::{Next, OutBody, Request, Rest},
    head::{Method, Span},
    http2::is_preface,
    layout::{READ_BYTES_MAX, event},
    selector::Readiness,
    targets::hash,
};

/// Requests of one connection in a batch. They get no response before the batch is handed over, so the size
/// of their responses can only be estimated from earlier ones: see [`Session::share`].
pub(super) const SHARE_MAX: u32 = 16;

/// Bytes of gathered messages, after inflation, with which a connection has had its share of a turn: a
/// kilobyte may inflate to a megabyte.
const GATHERED_SHARE_BYTES: usize = 64 * 1024;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    Close,
}

impl Reactor {
    /// Handle an event of a connection.
    #[inline]
    pub(super) fn take_readiness(&mut self, slot: u32, generation: u32, news: &Readiness) {
        let Some(session) = self.slots.of_event(slot, generation) else { return };
        // A lingering connection is read to its end: closing it with unread bytes would send a reset.
        if news.is_error || news.is_write_closed && !session.is_lingering {
            // Reset, or closed on both sides: a response could not be sent.
            self.close(slot);
            return;
        }
        if news.is_read_closed {
            session.is_half_closed = true;
        }
        if news.is_writable && !session.is_writable {
            session.is_writable = session.socket.flush();
            self.mark(slot);
        }
        if news.is_readable || news.is_read_closed {
            if let Some(session) = self.slots.get_mut(slot) {
                session.is_readable = true;
            }
            self.go_on_with(slot);
        }
    }

    /// Read from a connection, or parse what it has kept.
    pub(super) fn go_on_with(&mut self, slot: u32) {
        let Some(mut session) = self.slots.lift(slot) else { return };
        session.is_queued = false;
        let verdict = self.work(slot, &mut session);
        self.put_or_close(slot, session, verdict);
    }

    pub(super) fn put_or_close(&mut self, slot: u32, session: Box<Session>, verdict: Verdict) {
        match verdict {
            Verdict::Keep => self.slots.put_back(slot, session),
            Verdict::Close => self.close_lifted(slot, session),
        }
    }

    fn work(&mut self, slot: u32, session: &mut Session) -> Verdict {
        if session.is_lingering {
            return self.discard_input(slot, session);
        }
        if session.is_writable && session.machine.unsent() > 0 {
            self.mark_session(slot, session); // a part of a file that had its share of an earlier turn
        }
        if session.is_half_closed && !may_be_whole(session) {
            self.notify_gone(slot, session);
        }
        if !session.machine.wants_input(&self.limits) {
            if session.machine.http2().is_some() {
                return self.work_http2(slot, session);
            }
            if session.wants_body && (session.is_readable || session.is_at_end) {
                session.wants_body = false;
                session.deadline = 0;
                self.charge_body(session, 0);
                let stamp = session.machine.stamps().last().unwrap_or_default();
                self.host_events.push_back(HostEvent { kind: event::BODY, slot, stamp });
            } else if session.is_half_closed {
                self.set_deadline(session);
            }
            return Verdict::Keep;
        }
        let (at, end) = self.batch.free_range();
        let kept = session.machine.kept.len();
        self.inbound.all_mut()[at..at + kept].copy_from_slice(&session.machine.kept);
        let mut total = kept;
        // The kept bytes may contain whole requests, which come first.
        if session.is_readable && kept < self.limits.header_bytes_max {
            match self.receive(slot, session, at + kept, end) {
                Ok(bytes) => total += bytes,
                Err(_) => return Verdict::Close,
            }
        }
        let (used, left) = self.parse(slot, session, at, total);
        session.machine.kept.clear();
        if used < total {
            session.machine.note_unused();
        }
        if used < total && !session.machine.is_over() {
            session.machine.kept.extend_from_slice(&self.inbound.all()[at + used..at + total]);
        } else if session.machine.kept.capacity() > 0 {
            session.machine.kept = Vec::new();
        }
        let verdict = self.after_input(slot, session, used > 0 || kept == 0, left);
        // An end that arrives with its request causes no further event: the host is notified of it in the
        // next turn, after it had a chance to respond.
        if session.is_half_closed && !may_be_whole(session) && session.machine.has_unnotified() {
            self.queue(slot, session);
        }
        verdict
    }

    /// After reading: handle the end of the input, continue with more of it, set the deadline.
    fn after_input(&mut self, slot: u32, session: &mut Session, has_progressed: bool, left: Rest) -> Verdict {
        if session.machine.is_over() {
            // An unwanted body was too long or malformed: nothing else would close this connection. Refusals
            // have marked it already.
            self.mark_session(slot, session);
            return Verdict::Keep;
        }
        if session.is_at_end {
            return self.at_end(slot, session, left);
        }
        if self.is_stopping && !self.awaits_first(session) {
            session.machine.close_soon();
            if session.machine.is_over() && session.machine.unsent() == 0 && !session.is_dirty {
                return self.finish(slot, session);
            }
        }
        let goes_on = session.is_readable || has_progressed && !session.machine.kept.is_empty();
        if goes_on && session.machine.wants_input(&self.limits) {
            self.queue(slot, session);
        }
        if session.machine.is_in_head() {
            if has_progressed || session.head_began == 0 {
                session.head_began = self.now_ms;
            }
        } else {
            session.head_began = 0;
        }
        self.set_deadline(session);
        Verdict::Keep
    }

    /// The client sends nothing more. Whole requests get a response; a part of a request is dropped.
    fn at_end(&mut self, slot: u32, session: &mut Session, left: Rest) -> Verdict {
        let is_last = session.machine.end_input(left);
        if is_last && !session.is_dirty && session.machine.exchanges() == 0 && session.machine.unsent() == 0 {
            return Verdict::Close;
        }
        // The batch was full or its share used up. A connection that waits for responses to be sent continues
        // when they have been.
        if left == Rest::Unread && session.machine.wants_input(&self.limits) {
            self.queue(slot, session);
        }
        self.set_deadline(session);
        Verdict::Keep
    }

    pub(super) fn receive(
        &mut self,
        slot: u32,
        session: &mut Session,
        from: usize,
        end: usize,
    ) -> io::Result<usize> {
        let end = end.min(from + READ_BYTES_MAX);
        let buffer = &mut self.inbound.all_mut()[from..end];
        let buffer_bytes = buffer.len();
        let received = session.socket.receive(buffer);
        let mut has_more = false;
        if !session.socket.is_plain() {
            if session.socket.stream().is_some() {
                return self.after_stream(session, received);
            }
            let Some(more) = self.after_records(slot, session)? else { return Ok(0) };
            has_more = more;
        }
        match received {
            Ok(0) => {
                session.is_readable = false;
                session.is_half_closed = true;
                session.is_at_end = true;
                Ok(0)
            }
            Ok(bytes) => {
                // Less than the buffer's size: nothing remains, except possibly the end.
                session.is_readable = bytes == buffer_bytes || session.is_half_closed || has_more;
                self.stats.bytes_in += bytes as u64;
                Ok(bytes)
            }
            Err(error) if is_soon(&error) => {
                session.is_readable = error.kind() == io::ErrorKind::Interrupted;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Take requests from `total` bytes at `at`. Returns the bytes used.
    #[inline]
    fn parse(&mut self, slot: u32, session: &mut Session, at: usize, total: usize) -> (usize, Rest) {
        let mut used = 0;
        let (before, gathered) = (self.batch.requests(), self.gathered_bytes);
        while used < total {
            if self.batch.is_full() || self.batch.requests() - before >= session.share {
                return (used, Rest::Unread);
            }
            let data = &mut self.inbound.all_mut()[at + used..at + total];
            match session.machine.next(data, &self.limits, &mut self.parser) {
                Ok(Next::Wait) => return (used, Rest::Unread),
                Ok(Next::Partial) => break,
                Ok(Next::Skipped(bytes)) => used += bytes,
                Ok(Next::Frames(bytes, received)) => {
                    self.take_received(slot, session, at + used, received);
                    used += bytes;
                    if used < total && self.gathered_bytes - gathered >= GATHERED_SHARE_BYTES {
                        return (used, Rest::Unread);
                    }
                }
                Ok(Next::Request(request)) => {
                    self.take_request(slot, session, at + used, &request);
                    used += request.consumed;
                }
                Ok(Next::Trailed(request)) => {
                    self.take_request(slot, session, at + used, &request);
                    session.machine.bind_trailers(self.stamp);
                    used += request.consumed;
                }
                Err(_) if session.machine.is_first() && begins_http2(session, data) => {
                    self.become_http2(slot, session, at + used, at + total);
                    return (total, Rest::Partial);
                }
                Err(refusal) => {
                    let is_proxy = session.machine.is_before_proxy();
                    let refused = Refused::request(&refusal, "HTTP/1.1");
                    let header =
                        Refused { what: "connection", reason: "proxy-header", protocol: "PROXY", ..refused };
                    self.refuse_session(session, if is_proxy { header } else { refused });
                    session.machine.refuse(refusal, &self.inbound.all()[at + used..at + total], &self.heads);
                    self.mark_session(slot, session);
                    break;
                }
            }
        }
        (used, Rest::Partial)
    }

    #[inline]
    fn take_request(&mut self, slot: u32, session: &mut Session, at: usize, request: &Request) {
        self.stats.requests += 1;
        let span = |span: Span| at + span.at as usize..at + (span.at + span.len) as usize;
        let bytes = self.inbound.all();
        let target = &bytes[span(request.head.target)];
        if !self.constants.is_empty() {
            let name = &bytes[span(request.head.method_name)];
            if let Some(index) = self.constants.find(request.head.method, name, target) {
                return self.respond_constant(slot, session, request, index);
            }
        }
        let number = self.targets.number(target, hash(target));
        let stamp = self.next_stamp();
        session.machine.admit(request, stamp);
        session.body_budget_ms = self.limits.body_ms;
        (session.wants_body, session.wait_began) = (false, 0);
        let id = (session.first_flag(), slot, stamp);
        self.batch.put_request(&mut self.inbound, request, &self.parser.fields, at, id, number);
        self.batch.use_data(at + request.consumed);
    }

    pub(super) fn next_stamp(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1);
        self.stamp
    }

    fn respond_constant(&mut self, slot: u32, session: &mut Session, request: &Request, index: usize) {
        self.stats.constants += 1;
        self.lend_buffer(session);
        if session.machine.is_next(request) {
            let is_head = request.head.method == Method::Head;
            let sink = session.machine.front_sink();
            if let Some(body) = self.constants.write(index, is_head, &self.heads, sink) {
                session.machine.push_body(OutBody::Shared(body), 0);
            }
        } else {
            let stamp = self.next_stamp();
            session.machine.admit(request, stamp);
            let (response, body, shared) = self.constants.parts(index);
            match shared {
                None => drop(session.machine.respond(stamp, &response, body, &self.heads)),
                Some(shared) => {
                    let length = shared.bytes().len() as u64;
                    if let Some((index, has_body)) =
                        session.machine.respond_head(stamp, &response, length, &self.heads)
                    {
                        if has_body {
                            session.machine.attach_body(index, OutBody::Shared(Rc::clone(shared)));
                        }
                        session.machine.ended(index);
                    }
                }
            }
        }
        self.mark_session(slot, session);
    }

    /// All responses were sent: read until the client closes, limited only by time.
    fn discard_input(&mut self, slot: u32, session: &mut Session) -> Verdict {
        match session.socket.receive_raw(self.body.all_mut()) {
            Ok(0) => Verdict::Close,
            Ok(bytes) => {
                self.stats.bytes_in += bytes as u64;
                session.discarded_bytes += bytes as u64;
                self.queue(slot, session);
                Verdict::Keep
            }
            Err(error) if is_soon(&error) => Verdict::Keep,
            Err(_) => Verdict::Close,
        }
    }

    /// Notify the host once that the client may not read the responses of the open exchanges.
    pub(super) fn notify_gone(&mut self, slot: u32, session: &mut Session) {
        for stamp in session.machine.take_unnotified() {
            self.host_events.push_back(HostEvent { kind: event::DISCONNECTED, slot, stamp });
        }
    }

    /// Continue with this connection without an event from the kernel.
    pub(super) fn queue(&mut self, slot: u32, session: &mut Session) {
        if !session.is_queued {
            session.is_queued = true;
            self.runnable.push_back(slot);
        }
    }
}

/// Over TLS the client has agreed on it, otherwise it is known by its first bytes.
fn begins_http2(session: &Session, data: &[u8]) -> bool {
    if session.socket.is_secure() { session.socket.is_http2() } else { is_preface(data) }
}

/// While a body is unread, the client's end may be that of its request, unless too few bytes have arrived.
fn may_be_whole(session: &Session) -> bool {
    session.machine.is_in_body()
        && session.machine.body_left().is_none_or(|left| session.socket.unread_bytes() >= left)
}

pub(super) fn is_soon(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
