//! Connections of HTTP/2: their requests become exchanges of the host like all others, by slot and stamp.
//!
//! A connection becomes one by its first bytes. Its streams are polled once per turn in which bytes arrived
//! or the host has responded; what they write goes through the same output as that of HTTP/1.1.

use super::{
    Reactor,
    input::Verdict,
    refusals::Refused,
    responses::{Elsewhere, FULL, FULL_WHY, Record, SHARED_BYTES_MIN},
    slots::{HostEvent, Session},
};
use crate::{
    connection::Response,
    http2::{Accepted, Http2, News, Piece, Pulled, map_of},
    layout::{self, event, pull, reply},
    sys,
    targets::hash,
};

/// Requests of one connection in a batch, so that others have their turn.
const SHARE: u32 = 64;
/// How long a client that an error has cut off may go on sending, ms: it reads GOAWAY meanwhile.
const LINGER_MS: u64 = 2_000;

impl Reactor {
    /// A connection that has begun with the preface of HTTP/2; `from..to` are its bytes in the inbound
    /// region.
    #[cold]
    pub(super) fn become_http2(&mut self, slot: u32, session: &mut Session, from: usize, to: usize) {
        let mut http2 = Box::new(Http2::new(&self.limits, self.now_ms));
        http2.set_time(sys::wall_second());
        http2.feed(&self.inbound.all()[from..to], session.is_at_end);
        if self.is_stopping {
            http2.leave(self.now_ms);
        }
        session.machine.become_http2(http2);
        self.queue(slot, session);
    }

    /// Read, and take the requests that are complete.
    pub(super) fn work_http2(&mut self, slot: u32, session: &mut Session) -> Verdict {
        let (at, end) = self.batch.free_range();
        if session.is_readable && self.may_feed(session) {
            match self.receive(slot, session, at, end) {
                Ok(bytes) => {
                    let Some(http2) = session.machine.http2_mut() else { return Verdict::Keep };
                    http2.feed(&self.inbound.all()[at..at + bytes], session.is_at_end);
                }
                Err(_) => return Verdict::Close,
            }
        }
        let Some(http2) = session.machine.http2_mut() else { return Verdict::Keep };
        http2.set_time(self.heads.second());
        http2.news(self.now_ms, &self.limits, |stamp, news| {
            self.host_events.push_back(event_of(slot, stamp, news))
        });
        let before = self.batch.requests();
        while !self.batch.is_full() && self.batch.requests() - before < SHARE {
            let (at, end) = self.batch.free_range();
            let Some(http2) = session.machine.http2_mut() else { break };
            let bytes = &mut self.inbound.all_mut()[at..end];
            match http2.accept(bytes, &mut self.parser.fields, &self.limits, self.now_ms) {
                Accepted::Nothing => break,
                Accepted::Refused(refusal) => {
                    self.refuse_session(session, Refused::request(&refusal, "HTTP/2"));
                }
                Accepted::Request(request) => {
                    http2.active_ms = self.now_ms;
                    self.stats.requests += 1;
                    let stamp = self.next_stamp();
                    http2.admit(stamp);
                    let bytes = self.inbound.all();
                    let span = |span: crate::head::Span| {
                        &bytes[at + span.at as usize..at + (span.at + span.len) as usize]
                    };
                    let (name, target) = (span(request.head.method_name), span(request.head.target));
                    let connects = request.head.upgrades;
                    if !connects && let Some(index) = self.constants.find(request.head.method, name, target) {
                        self.stats.constants += 1;
                        let (response, body, shared) = self.constants.parts(index);
                        http2.respond(stamp, &response, shared.map_or(body, |body| body.bytes()));
                        continue;
                    }
                    let number = self.targets.number(target, hash(target));
                    let fields = &self.parser.fields;
                    let flags = session.first_flag() | if connects { layout::flag::CONNECT } else { 0 };
                    let id = (flags, slot, stamp);
                    self.batch.put_request(&mut self.inbound, &request, fields, at, id, number);
                    self.batch.use_data(at + request.consumed);
                }
            }
        }
        if let Some(http2) = session.machine.http2_mut() {
            http2.reset_malformed(|stamp, news| self.host_events.push_back(event_of(slot, stamp, news)));
        }
        self.wake_streams(session);
        let is_cut_short = self.batch.requests() - before >= SHARE || self.batch.is_full();
        if is_cut_short || session.is_readable && self.may_feed(session) {
            self.queue(slot, session);
        }
        self.mark_http2(slot, session);
        Verdict::Keep
    }

    /// Whether more is read: what it causes could be written. Otherwise `drive` or the client's reading lets
    /// it go on.
    fn may_feed(&self, session: &Session) -> bool {
        let waits = session.machine.http2().is_some_and(Http2::has_input);
        !waits && session.machine.unsent() <= self.limits.out_bytes_max
    }

    /// What was written to this connection's streams is sent at the end of the turn.
    pub(super) fn mark_http2(&mut self, slot: u32, session: &mut Session) {
        if !session.is_driven {
            session.is_driven = true;
            self.driven.push(slot);
        }
    }

    /// Turn what was written to streams into bytes to send.
    #[cold]
    pub(super) fn drive(&mut self) {
        let mut lost = Vec::new();
        for slot in std::mem::take(&mut self.driven) {
            let Some(mut session) = self.slots.lift(slot) else { continue };
            session.is_driven = false;
            self.lend_buffer(&mut session);
            self.drive_session(slot, &mut session, &mut lost);
            self.mark_session(slot, &mut session);
            self.slots.put_back(slot, session);
        }
    }

    fn drive_session(&mut self, slot: u32, session: &mut Session, lost: &mut Vec<u32>) {
        let room = self.limits.out_bytes_max.saturating_sub(session.machine.unsent());
        let Some((http2, out)) = session.machine.http2_and_out() else { return };
        let (had_open, had_input) = (http2.open_count() > 0, http2.has_input());
        http2.drive(out, room, self.now_ms, lost);
        if had_open {
            http2.active_ms = self.now_ms;
        }
        let (is_over, is_blocked) = (http2.is_over(), http2.is_blocked());
        let why = http2.take_why();
        for _ in 0..std::mem::take(&mut http2.short_files) {
            self.stats.aborted += 1;
            self.host_events.push_back(HostEvent { kind: event::FILE_SHORT, slot: 0, stamp: 0 });
        }
        if let Some((reason, detail)) = why {
            let (what, protocol, detail) = ("goaway", "HTTP/2", &*detail);
            self.refuse_session(session, Refused { what, reason, status: 0, protocol, detail });
        }
        self.wake_streams(session);
        session.is_full |= is_blocked;
        for stamp in lost.drain(..) {
            self.stats.aborted += 1;
            self.host_events.push_back(event_of(slot, stamp, News::Lost));
        }
        if had_input && !is_blocked {
            // What was read now may be requests.
            self.queue(slot, session);
        }
        if is_over {
            self.http2_lost(slot, session);
        } else if let Some(http2) = session.machine.http2_mut() {
            http2.news(self.now_ms, &self.limits, |stamp, news| {
                self.host_events.push_back(event_of(slot, stamp, news))
            });
            if http2.take_resumes() {
                self.queue(slot, session);
            }
        }
    }

    /// The connection ends after what waits to be sent: the host is notified of its open exchanges.
    pub(super) fn http2_lost(&mut self, slot: u32, session: &mut Session) {
        let Some(http2) = session.machine.end_http2() else { return };
        session.linger_most_ms = LINGER_MS;
        for stamp in http2.stamps() {
            self.stats.aborted += 1;
            self.host_events.push_back(event_of(slot, stamp, News::Lost));
        }
        // They read what has arrived, and then find that it is over.
        for socket in http2.sockets() {
            self.wake_stream(socket);
        }
    }

    /// A deadline of this connection has passed.
    pub(super) fn http2_due(&mut self, slot: u32, session: &mut Session) -> Verdict {
        let (now, limits) = (self.now_ms, self.limits);
        let Some(http2) = session.machine.http2_mut() else { return Verdict::Close };
        let is_over = http2
            .time_out(now, &limits, |stamp, news| self.host_events.push_back(event_of(slot, stamp, news)));
        if is_over {
            return Verdict::Close;
        }
        self.mark_http2(slot, session);
        self.set_deadline(session);
        Verdict::Keep
    }

    /// Take a record for an exchange of HTTP/2. False: its slot has HTTP/1.1.
    pub(super) fn take_http2(&mut self, record: &Record, elsewhere: &mut Option<Elsewhere<'_>>) -> bool {
        if self.slots.get(record.slot).is_none_or(|session| session.machine.http2().is_none()) {
            return false;
        }
        let Some(mut session) = self.slots.lift(record.slot) else { return false };
        if !self.write_http2(record, &mut session, elsewhere) {
            self.stats.aborted += 1;
            self.host_events.push_back(event_of(record.slot, record.stamp, News::Lost));
        }
        self.mark_http2(record.slot, &mut session);
        self.slots.put_back(record.slot, session);
        true
    }

    /// False: the exchange has ended before its response.
    fn write_http2(
        &mut self,
        record: &Record,
        session: &mut Session,
        elsewhere: &mut Option<Elsewhere<'_>>,
    ) -> bool {
        let Some(http2) = session.machine.http2_mut().filter(|http2| http2.has(record.stamp)) else {
            self.out.put(layout::out::FOUND, 0);
            return true;
        };
        let (stamp, bytes) = (record.stamp, self.out.all());
        let (lines, rest) = bytes[record.lines_at..].split_at(record.lines);
        let response = Response { status: record.status, kind: record.content, headers: lines };
        if record.kind & layout::FLAG_LAST != 0 {
            http2.leave(self.now_ms);
        }
        if record.is_elsewhere
            && let Some(Elsewhere::File(part)) = elsewhere
        {
            let Some(part) = part.take() else { return true };
            let Some(exchange) = http2.start(stamp, &response, Some(part.bytes as u64)) else { return true };
            exchange.push_piece(Piece::File(part, 0));
            return exchange.end(None);
        }
        let body = match elsewhere {
            Some(Elsewhere::Bytes(body)) if record.is_elsewhere => *body,
            _ => &rest[..record.body],
        };
        match record.kind & 0xff {
            reply::RESPOND if body.len() > SHARED_BYTES_MIN => {
                if !self.bodies.fits(body, self.limits.out_bytes_total_max) {
                    self.stats.refused += 1;
                    http2.respond(stamp, &FULL, FULL_WHY);
                    return true;
                }
                let length = body.len() as u64;
                let Some(exchange) = http2.start(stamp, &response, Some(length)) else { return true };
                exchange.push_piece(Piece::Shared(self.bodies.share(body), 0));
                return exchange.end(None);
            }
            reply::RESPOND => drop(http2.respond(stamp, &response, body)),
            reply::START => {
                http2.start(stamp, &response, record.length);
                return http2.has(stamp); // not after one that became a refusal
            }
            reply::WRITE => {
                let Some(exchange) = http2.exchange(stamp).filter(|exchange| exchange.has_begun()) else {
                    return true;
                };
                exchange.push(body);
                let waiting = exchange.queued();
                exchange.is_full |= waiting > self.limits.out_bytes_max;
                self.out.put(layout::out::FOUND, waiting as u32);
            }
            reply::END => return http2.end(stamp, None),
            reply::TRAILERS => return http2.end(stamp, Some(map_of(lines))),
            reply::HINT => {
                let is_sent = http2.hint(stamp, lines);
                self.out.put(layout::out::FOUND, u32::from(is_sent));
            }
            reply::UPGRADE => self.upgrade_http2(record, session),
            reply::ABORT => {
                http2.abort(stamp);
                return false;
            }
            _ => {}
        }
        true
    }

    /// As `pull`, for an exchange of HTTP/2.
    pub(super) fn pull_http2(&mut self, slot: u32, stamp: u32, session: &mut Session) -> i32 {
        let now = self.now_ms;
        let Some(exchange) = session.machine.http2_mut().and_then(|http2| http2.exchange(stamp)) else {
            return pull::DISCONNECTED;
        };
        exchange.ask();
        let body = self.body.all_mut();
        let found = match exchange.pull(body, &self.limits) {
            Pulled::Bytes(bytes) => {
                exchange.body_time.charge(now, bytes as u64);
                bytes as i32
            }
            Pulled::End => pull::END,
            Pulled::Lost => pull::DISCONNECTED,
            Pulled::Failed(status) => {
                self.stats.refused += 1;
                -i32::from(status)
            }
            Pulled::Wait => {
                exchange.wants_body = true;
                exchange.body_time.begin(now);
                pull::WAIT
            }
        };
        self.mark_http2(slot, session);
        self.set_deadline(session);
        found
    }
}

fn event_of(slot: u32, stamp: u32, news: News) -> HostEvent {
    let kind = match news {
        News::Body => event::BODY,
        News::Lost => event::CLOSED,
        News::Drained => event::DRAINED,
    };
    HostEvent { kind, slot, stamp }
}
