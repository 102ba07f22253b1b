//! How long a client is waited for: deadlines, and the budgets of those that send or read slowly. Also the
//! end of all waiting, when the server stops.

use super::{BUFFER_BYTES_MAX, Connections, Verdict, refusals::Refused, slots::Session};
use crate::{
    layout::event,
    limits::{Limits, Refusal},
    reactor::settings::HostEvent,
};

/// How often a lingering connection is checked, ms, and the bytes that must arrive between two checks.
pub(super) const LINGER_CHECK_MS: u64 = 2_000;
const LINGER_CHECK_BYTES: u64 = 1_000;
/// Time for a partial head when the server stops, ms; and for the first bytes of a connection, from its
/// beginning: the client of one that has just begun has sent them, or is about to.
const STOP_HEAD_MS: u64 = 1_000;
/// Checks per `body_ms` of what the kernel holds for a client that reads.
const READER_CHECKS: u64 = 4;
const NO_DEADLINE: u64 = 0;

impl Connections {
    /// Finish the open exchanges, and close the remaining connections after `grace_ms`.
    pub(crate) fn stop(&mut self, grace_ms: u64) {
        self.is_stopping = true;
        self.stop_began = self.now_ms;
        self.stop_at = self.now_ms.saturating_add(grace_ms);
        // Requests that have arrived by now are read in the next turn.
        for slot in self.slots.all() {
            if let Some(mut session) = self.slots.lift(slot) {
                session.is_readable = true;
                session.machine.close_after_next();
                self.leave_politely(slot, &mut session);
                self.queue(slot, &mut session);
                self.slots.put_back(slot, session);
            }
        }
        self.flush();
        self.notify_stopped();
    }

    /// Close the connections whose time is over.
    pub(crate) fn check_deadlines(&mut self) {
        let (now, cut) = (self.now_ms, self.now_ms >= self.stop_at);
        for slot in self.slots.expired(now, cut) {
            if cut {
                let machine = self.slots.get(slot).map(|session| &session.machine);
                self.stats.cut += machine.map_or(0, |one| u64::from(one.exchanges() > 0 || one.unsent() > 0));
                self.close(slot);
            } else {
                self.time_out(slot);
            }
        }
        self.flush();
        self.notify_stopped();
    }

    /// Milliseconds between ticks: an eighth of the shortest time limit, within bounds.
    pub fn tick_ms(&self) -> u64 {
        let Limits { idle_ms, headers_ms, body_ms, linger_ms, handshake_ms, .. } = self.limits;
        let least = idle_ms.min(headers_ms).min(body_ms).min(linger_ms).min(handshake_ms);
        (least / 8).clamp(5, 250)
    }

    #[inline]
    pub(crate) fn set_deadline(&self, session: &mut Session) {
        // A response may have been sent before the body arrived: then the host no longer waits for it.
        session.wants_body &= session.machine.is_in_body();
        if session.is_lingering {
            return;
        }
        session.deadline = if session.machine.unsent() > 0 && session.out_wait_began != 0 {
            session.out_wait_began + session.out_budget_ms.min(self.check_ms())
        } else if session.wants_body {
            session.wait_began + session.body_budget_ms
        } else if session.machine.exchanges() > 0 || session.machine.unsent() > 0 {
            // A client that sends nothing more has probably disconnected: a response is awaited for a limited
            // time.
            if session.is_half_closed { self.now_ms + self.limits.body_ms } else { NO_DEADLINE }
        } else if session.head_began != 0 {
            let until = session.head_began + self.limits.headers_ms;
            if self.is_stopping { until.min(self.stop_began + STOP_HEAD_MS) } else { until }
        } else if session.machine.is_discarding() {
            self.now_ms + self.limits.body_ms
        } else if self.is_stopping && session.machine.is_unused() {
            session.accepted_ms + STOP_HEAD_MS
        } else if let Some(frames) = session.machine.frames() {
            frames.deadline()
        } else if session.is_beginning {
            session.accepted_ms + self.limits.handshake_ms
        } else if let Some(http2) = session.machine.http2() {
            http2.deadline(&self.limits)
        } else {
            self.now_ms + self.limits.idle_ms
        };
    }

    /// The time waited is charged to the body's budget, received bytes refill it: 500 bytes a second keep it
    /// full.
    pub(crate) fn charge_body(&self, session: &mut Session, bytes: u64) {
        let waited = if session.wait_began == 0 { 0 } else { self.now_ms - session.wait_began };
        session.wait_began = 0;
        let left = session.body_budget_ms.saturating_sub(waited) + bytes * 2;
        session.body_budget_ms = left.min(self.limits.body_ms);
    }

    /// The kernel accepted only a part.
    pub(crate) fn wait_for_reader(&self, session: &mut Session, sent: u64) {
        session.is_writable = false;
        if session.out_wait_began == 0 {
            session.out_budget_ms = self.limits.body_ms;
            session.out_wait_began = self.now_ms;
            session.out_unacked = None;
        }
        self.charge_reader(session, sent);
        // Drop the bytes that were sent.
        if session.machine.sent >= BUFFER_BYTES_MAX {
            session.machine.out.drain(..session.machine.sent);
            session.machine.sent = 0;
        }
    }

    /// The time waited is charged to the client's budget, bytes it reads refill it: 500 bytes a second keep
    /// it full.
    fn charge_reader(&self, session: &mut Session, taken: u64) {
        let waited = self.now_ms - session.out_wait_began;
        let left = session.out_budget_ms.saturating_sub(waited) + taken * 2;
        session.out_budget_ms = left.min(self.limits.body_ms);
        session.out_wait_began = self.now_ms;
    }

    /// The kernel reports space only when a third of its buffer is free, which may be megabytes. A slower
    /// reader shows in how much the kernel still holds. Returns whether the budget is not used up.
    fn check_reader(&self, session: &mut Session) -> bool {
        let held = session.socket.unacked_bytes();
        let taken = session.out_unacked.map_or(0, |before| before.saturating_sub(held));
        self.charge_reader(session, taken);
        if session.out_unacked.is_none() {
            // The host may have been busy: nothing follows from a first check.
            session.out_budget_ms = session.out_budget_ms.max(self.check_ms());
        }
        session.out_unacked = Some(held);
        session.out_budget_ms > 0
    }

    fn check_ms(&self) -> u64 {
        (self.limits.body_ms / READER_CHECKS).max(1)
    }

    /// Whether a lingering client still sends fast enough and has time left.
    fn lingers_on(&self, session: &mut Session) -> bool {
        // The host may have been busy: bytes in the kernel count as received.
        let is_sending = session.discarded_bytes >= LINGER_CHECK_BYTES || session.socket.has_bytes();
        session.discarded_bytes = 0;
        session.deadline = session.linger_until.min(self.now_ms + LINGER_CHECK_MS);
        is_sending && self.now_ms < session.linger_until
    }

    /// Whether the first request of a connection is awaited although the server stops.
    pub(super) const fn awaits_first(&self, session: &Session) -> bool {
        session.machine.is_unused() && self.now_ms < session.accepted_ms + STOP_HEAD_MS
    }

    pub(crate) fn time_out(&mut self, slot: u32) {
        let Some(mut session) = self.slots.lift(slot) else { return };
        let verdict = self.time_out_session(slot, &mut session);
        self.put_or_close(slot, session, verdict);
    }

    fn time_out_session(&mut self, slot: u32, session: &mut Session) -> Verdict {
        session.deadline = NO_DEADLINE;
        session.wants_body &= session.machine.is_in_body();
        if session.is_lingering {
            return if self.lingers_on(session) { Verdict::Keep } else { Verdict::Close };
        }
        if session.out_wait_began == 0 && self.has_news(session) {
            // The host was busy: input and responses that are ready come first.
            if !session.is_queued {
                session.is_readable = true;
                self.queue(slot, session);
            }
            session.deadline = self.now_ms + self.tick_ms();
            return Verdict::Keep;
        }
        if session.machine.unsent() > 0 {
            if session.out_wait_began != 0 && self.check_reader(session) {
                self.set_deadline(session);
                return Verdict::Keep;
            }
            // Drop the bytes that the kernel still holds.
            session.socket.reset_on_close();
            return Verdict::Close;
        }
        if session.wants_body {
            session.wants_body = false;
            session.body_failed = 408;
            let stamp = session.machine.stamps().last().unwrap_or_default();
            session.machine.stop_reading();
            self.stats.refused += 1;
            self.host_events.push_back(HostEvent { kind: event::BODY, slot, stamp });
            return Verdict::Keep;
        }
        if session.is_beginning {
            self.handshake_due(session);
        }
        if session.machine.is_in_head() && !self.is_stopping {
            let begun = std::mem::take(&mut session.machine.kept);
            let refusal = Refusal::of(408, "the head took too long");
            self.refuse_session(session, Refused::request(&refusal, "HTTP/1.1"));
            session.machine.refuse(refusal, &begun, &self.heads);
            self.mark_session(slot, session);
            return Verdict::Keep;
        }
        if session.machine.http2().is_some() {
            return self.http2_due(slot, session);
        }
        self.frames_due(slot, session)
    }
}
