//! Connections of HTTP/2: their requests become exchanges of the host like all others, by slot and stamp.
//!
//! A connection becomes one by its first bytes. Its streams are polled once per turn in which bytes arrived
//! or the host has responded; what they write goes through the same output as that of HTTP/1.1.

use super::{
    Reactor,
    batches::Record,
    connections::{Verdict, http2::event_of, refusals::Refused, slots::Session},
    responses::{Elsewhere, FULL, FULL_WHY, SHARED_BYTES_MIN},
};
use crate::{
    connection::Response,
    http2::{Accepted, News, Piece, map_of},
    layout::{self, reply},
};

/// Requests of one connection in a batch, so that others have their turn.
const SHARE: u32 = 64;

impl Reactor {
    /// Read, and take the requests that are complete.
    pub(super) fn work_http2(&mut self, slot: u32, session: &mut Session) -> Verdict {
        let (at, _) = self.batches.batch.free_range();
        if session.is_readable && self.connections.may_feed(session) {
            match self.connections.receive(slot, session, self.batches.space(at)) {
                Ok(bytes) => {
                    let Some(http2) = session.machine.http2_mut() else { return Verdict::Keep };
                    http2.feed(&self.batches.inbound.all()[at..at + bytes], session.is_at_end);
                }
                Err(_) => return Verdict::Close,
            }
        }
        let Some(http2) = session.machine.http2_mut() else { return Verdict::Keep };
        http2.set_time(self.connections.heads.second());
        http2.news(self.connections.now_ms, &self.connections.limits, |stamp, news| {
            self.connections.host_events.push_back(event_of(slot, stamp, news))
        });
        let before = self.batches.batch.requests();
        while !self.batches.batch.is_full() && self.batches.batch.requests() - before < SHARE {
            let (at, end) = self.batches.batch.free_range();
            let Some(http2) = session.machine.http2_mut() else { break };
            let bytes = &mut self.batches.inbound.all_mut()[at..end];
            match http2.accept(
                bytes,
                &mut self.batches.parser.fields,
                &self.connections.limits,
                self.connections.now_ms,
            ) {
                Accepted::Nothing => break,
                Accepted::Refused(refusal) => {
                    self.connections.refuse_session(session, Refused::request(&refusal, "HTTP/2"));
                }
                Accepted::Request(request) => {
                    http2.active_ms = self.connections.now_ms;
                    self.connections.stats.requests += 1;
                    let stamp = self.batches.next_stamp();
                    http2.admit(stamp);
                    let connects = request.head.upgrades;
                    if !connects && let Some(index) = self.batches.constant_of(&request, at) {
                        self.connections.stats.constants += 1;
                        let (response, body, shared) = self.batches.constants.parts(index);
                        http2.respond(stamp, &response, shared.map_or(body, |body| body.bytes()));
                        continue;
                    }
                    let flags = session.first_flag() | if connects { layout::flag::CONNECT } else { 0 };
                    self.batches.put_request(&request, at, (flags, slot, stamp));
                }
            }
        }
        if let Some(http2) = session.machine.http2_mut() {
            http2.reset_malformed(|stamp, news| {
                self.connections.host_events.push_back(event_of(slot, stamp, news))
            });
        }
        self.connections.wake_streams(session);
        let is_cut_short = self.batches.batch.requests() - before >= SHARE || self.batches.batch.is_full();
        if is_cut_short || session.is_readable && self.connections.may_feed(session) {
            self.connections.queue(slot, session);
        }
        self.connections.mark_http2(slot, session);
        Verdict::Keep
    }

    /// Take a record for an exchange of HTTP/2. False: its slot has HTTP/1.1.
    pub(super) fn take_http2(&mut self, record: &Record, elsewhere: &mut Option<Elsewhere<'_>>) -> bool {
        if self.connections.slots.get(record.slot).is_none_or(|session| session.machine.http2().is_none()) {
            return false;
        }
        let Some(mut session) = self.connections.slots.lift(record.slot) else { return false };
        if !self.write_http2(record, &mut session, elsewhere) {
            self.connections.stats.aborted += 1;
            self.connections.host_events.push_back(event_of(record.slot, record.stamp, News::Lost));
        }
        self.connections.mark_http2(record.slot, &mut session);
        self.connections.slots.put_back(record.slot, session);
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
            self.batches.out.put(layout::out::FOUND, 0);
            return true;
        };
        let (stamp, bytes) = (record.stamp, self.batches.out.all());
        let (lines, rest) = bytes[record.lines_at..].split_at(record.lines);
        let response = Response { status: record.status, kind: record.content, headers: lines };
        if record.kind & layout::FLAG_LAST != 0 {
            http2.leave(self.connections.now_ms);
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
                if !self.batches.bodies.fits(body, self.connections.limits.out_bytes_total_max) {
                    self.connections.stats.refused += 1;
                    http2.respond(stamp, &FULL, FULL_WHY);
                    return true;
                }
                let length = body.len() as u64;
                let Some(exchange) = http2.start(stamp, &response, Some(length)) else { return true };
                exchange.push_piece(Piece::Shared(self.batches.bodies.share(body), 0));
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
                exchange.is_full |= waiting > self.connections.limits.out_bytes_max;
                self.batches.out.put(layout::out::FOUND, waiting as u32);
            }
            reply::END => return http2.end(stamp, None),
            reply::TRAILERS => return http2.end(stamp, Some(map_of(lines))),
            reply::HINT => {
                let is_sent = http2.hint(stamp, lines);
                self.batches.out.put(layout::out::FOUND, u32::from(is_sent));
            }
            reply::UPGRADE => {
                let (lines, frames) = self.batches.granted(record, self.connections.now_ms);
                let id = (record.slot, record.stamp);
                if let Some(slot) = self.connections.upgrade_http2(id, session, lines, frames) {
                    self.batches.out.put(layout::out::FOUND, slot + 1);
                }
            }
            reply::ABORT => {
                http2.abort(stamp);
                return false;
            }
            _ => {}
        }
        true
    }
}
