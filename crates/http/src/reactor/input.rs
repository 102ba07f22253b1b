//! From sockets to batches: reading, and what is done with each request. A connection is read once per poll,
//! so that none starves another, and is lifted out of its slot while it is worked on.

use std::rc::Rc;

use super::{
    Reactor,
    connections::{Verdict, refusals::Refused, slots::Session},
    settings::HostEvent,
};
use crate::{
    connection::{Next, OutBody, Request, Rest},
    head::Method,
    http2::is_preface,
    layout::event,
    selector::Readiness,
};

/// Bytes of gathered messages, after inflation, with which a connection has had its share of a turn: a
/// kilobyte may inflate to a megabyte.
const GATHERED_SHARE_BYTES: usize = 64 * 1024;

impl Reactor {
    /// Handle an event of a connection.
    #[inline]
    pub(super) fn take_readiness(&mut self, slot: u32, generation: u32, news: &Readiness) {
        let Some(session) = self.connections.slots.of_event(slot, generation) else { return };
        // A lingering connection is read to its end: closing it with unread bytes would send a reset.
        if news.is_error || news.is_write_closed && !session.is_lingering {
            // Reset, or closed on both sides: a response could not be sent.
            self.connections.close(slot);
            return;
        }
        if news.is_read_closed {
            session.is_half_closed = true;
        }
        if news.is_writable && !session.is_writable {
            session.is_writable = session.socket.flush();
            self.connections.mark(slot);
        }
        if news.is_readable || news.is_read_closed {
            if let Some(session) = self.connections.slots.get_mut(slot) {
                session.is_readable = true;
            }
            self.go_on_with(slot);
        }
    }

    /// Read from a connection, or parse what it has kept.
    pub(super) fn go_on_with(&mut self, slot: u32) {
        let Some(mut session) = self.connections.slots.lift(slot) else { return };
        session.is_queued = false;
        let verdict = self.work(slot, &mut session);
        self.connections.put_or_close(slot, session, verdict);
    }

    fn work(&mut self, slot: u32, session: &mut Session) -> Verdict {
        if session.is_lingering {
            return self.connections.discard_input(slot, session, self.batches.body.all_mut());
        }
        if session.is_writable && session.machine.unsent() > 0 {
            // A part of a file that had its share of an earlier turn.
            self.connections.mark_session(slot, session);
        }
        if session.is_half_closed && !may_be_whole(session) {
            self.connections.notify_gone(slot, session);
        }
        if !session.machine.wants_input(&self.connections.limits) {
            if session.machine.http2().is_some() {
                return self.work_http2(slot, session);
            }
            if session.wants_body && (session.is_readable || session.is_at_end) {
                session.wants_body = false;
                session.deadline = 0;
                self.connections.charge_body(session, 0);
                let stamp = session.machine.stamps().last().unwrap_or_default();
                self.connections.host_events.push_back(HostEvent { kind: event::BODY, slot, stamp });
            } else if session.is_half_closed {
                self.connections.set_deadline(session);
            }
            return Verdict::Keep;
        }
        let (at, _) = self.batches.batch.free_range();
        let kept = session.machine.kept.len();
        self.batches.inbound.all_mut()[at..at + kept].copy_from_slice(&session.machine.kept);
        let mut total = kept;
        // The kept bytes may contain whole requests, which come first.
        if session.is_readable && kept < self.connections.limits.header_bytes_max {
            match self.connections.receive(slot, session, self.batches.space(at + kept)) {
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
            session.machine.kept.extend_from_slice(&self.batches.inbound.all()[at + used..at + total]);
        } else if session.machine.kept.capacity() > 0 {
            session.machine.kept = Vec::new();
        }
        let verdict = self.connections.after_input(slot, session, used > 0 || kept == 0, left);
        // An end that arrives with its request causes no further event: the host is notified of it in the
        // next turn, after it had a chance to respond.
        if session.is_half_closed && !may_be_whole(session) && session.machine.has_unnotified() {
            self.connections.queue(slot, session);
        }
        verdict
    }

    /// Take requests from `total` bytes at `at`. Returns the bytes used.
    #[inline]
    fn parse(&mut self, slot: u32, session: &mut Session, at: usize, total: usize) -> (usize, Rest) {
        let mut used = 0;
        let (before, gathered) = (self.batches.batch.requests(), self.batches.gathered_bytes);
        while used < total {
            if self.batches.batch.is_full() || self.batches.batch.requests() - before >= session.share {
                return (used, Rest::Unread);
            }
            let data = &mut self.batches.inbound.all_mut()[at + used..at + total];
            match session.machine.next(data, &self.connections.limits, &mut self.batches.parser) {
                Ok(Next::Wait) => return (used, Rest::Unread),
                Ok(Next::Partial) => break,
                Ok(Next::Skipped(bytes)) => used += bytes,
                Ok(Next::Frames(bytes, received)) => {
                    self.take_received(slot, session, at + used, received);
                    used += bytes;
                    if used < total && self.batches.gathered_bytes - gathered >= GATHERED_SHARE_BYTES {
                        return (used, Rest::Unread);
                    }
                }
                Ok(Next::Request(request)) => {
                    self.take_request(slot, session, at + used, &request);
                    used += request.consumed;
                }
                Ok(Next::Trailed(request)) => {
                    self.take_request(slot, session, at + used, &request);
                    session.machine.bind_trailers(self.batches.stamp);
                    used += request.consumed;
                }
                Err(_) if session.machine.is_first() && begins_http2(session, data) => {
                    self.connections.become_http2(slot, session, data);
                    return (total, Rest::Partial);
                }
                Err(refusal) => {
                    let is_proxy = session.machine.is_before_proxy();
                    let refused = Refused::request(&refusal, "HTTP/1.1");
                    let header =
                        Refused { what: "connection", reason: "proxy-header", protocol: "PROXY", ..refused };
                    self.connections.refuse_session(session, if is_proxy { header } else { refused });
                    session.machine.refuse(
                        refusal,
                        &self.batches.inbound.all()[at + used..at + total],
                        &self.connections.heads,
                    );
                    self.connections.mark_session(slot, session);
                    break;
                }
            }
        }
        (used, Rest::Partial)
    }

    #[inline]
    fn take_request(&mut self, slot: u32, session: &mut Session, at: usize, request: &Request) {
        self.connections.stats.requests += 1;
        if let Some(index) = self.batches.constant_of(request, at) {
            return self.respond_constant(slot, session, request, index);
        }
        let stamp = self.batches.next_stamp();
        session.machine.admit(request, stamp);
        session.body_budget_ms = self.connections.limits.body_ms;
        (session.wants_body, session.wait_began) = (false, 0);
        self.batches.put_request(request, at, (session.first_flag(), slot, stamp));
    }

    fn respond_constant(&mut self, slot: u32, session: &mut Session, request: &Request, index: usize) {
        self.connections.stats.constants += 1;
        self.connections.lend_buffer(session);
        if session.machine.is_next(request) {
            let is_head = request.head.method == Method::Head;
            let sink = session.machine.front_sink();
            if let Some(body) = self.batches.constants.write(index, is_head, &self.connections.heads, sink) {
                session.machine.push_body(OutBody::Shared(body), 0);
            }
        } else {
            let stamp = self.batches.next_stamp();
            session.machine.admit(request, stamp);
            let (response, body, shared) = self.batches.constants.parts(index);
            match shared {
                None => drop(session.machine.respond(stamp, &response, body, &self.connections.heads)),
                Some(shared) => {
                    let length = shared.bytes().len() as u64;
                    if let Some((index, has_body)) =
                        session.machine.respond_head(stamp, &response, length, &self.connections.heads)
                    {
                        if has_body {
                            session.machine.attach_body(index, OutBody::Shared(Rc::clone(shared)));
                        }
                        session.machine.ended(index);
                    }
                }
            }
        }
        self.connections.mark_session(slot, session);
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
