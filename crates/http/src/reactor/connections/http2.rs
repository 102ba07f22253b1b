//! Connections of HTTP/2, between their machine and the output. Their streams are driven once per turn in
//! which bytes arrived or the host has responded; what they write is sent as that of HTTP/1.1 is.

use super::{Connections, Verdict, refusals::Refused, slots::Session};
use crate::{
    http2::{Http2, News, Pulled},
    layout::{event, pull},
    reactor::settings::HostEvent,
    sys,
};

/// How long a client that an error has cut off may go on sending, ms: it reads GOAWAY meanwhile.
const LINGER_MS: u64 = 2_000;

impl Connections {
    /// A connection that has begun with the preface of HTTP/2; `bytes` are what has arrived.
    #[cold]
    pub(crate) fn become_http2(&mut self, slot: u32, session: &mut Session, bytes: &[u8]) {
        let mut http2 = Box::new(Http2::new(&self.limits, self.now_ms));
        http2.set_time(sys::wall_second());
        http2.feed(bytes, session.is_at_end);
        if self.is_stopping {
            http2.leave(self.now_ms);
        }
        session.machine.become_http2(http2);
        self.queue(slot, session);
    }

    /// Whether more is read: what it causes could be written. Otherwise `drive` or the client's reading lets
    /// it go on.
    pub(crate) fn may_feed(&self, session: &Session) -> bool {
        let waits = session.machine.http2().is_some_and(Http2::has_input);
        !waits && session.machine.unsent() <= self.limits.out_bytes_max
    }

    /// What was written to this connection's streams is sent at the end of the turn.
    pub(crate) fn mark_http2(&mut self, slot: u32, session: &mut Session) {
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

    /// As `pull`, for an exchange of HTTP/2.
    pub(crate) fn pull_http2(
        &mut self,
        slot: u32,
        stamp: u32,
        session: &mut Session,
        body: &mut [u8],
    ) -> i32 {
        let now = self.now_ms;
        let Some(exchange) = session.machine.http2_mut().and_then(|http2| http2.exchange(stamp)) else {
            return pull::DISCONNECTED;
        };
        exchange.ask();
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

pub(crate) fn event_of(slot: u32, stamp: u32, news: News) -> HostEvent {
    let kind = match news {
        News::Body => event::BODY,
        News::Lost => event::CLOSED,
        News::Drained => event::DRAINED,
    };
    HostEvent { kind, slot, stamp }
}
