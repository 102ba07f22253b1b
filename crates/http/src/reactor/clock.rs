//! Stopping, and the ticks that check deadlines. Without connections no ticks are needed, so an idle server
//! has no timer.

use std::{thread, time::Duration};

use super::{
    LAST_ACCEPTS_MAX, Reactor,
    slots::{HostEvent, Session},
};
use crate::{layout, limits::Limits, listen::Endpoint, sys, websocket::code};

/// For handshakes that have begun when the last server of a process stops listening. On one machine they take
/// microseconds; those of distant clients have no bound, and the kernel resets what is left of them.
const HANDSHAKE_TIME: Duration = Duration::from_millis(1);

impl Reactor {
    /// Accept nothing more, finish the open exchanges, and close the remaining connections after `grace_ms`.
    /// The host receives `STOPPED` when no connection is left.
    pub fn stop(&mut self, grace_ms: u64) {
        self.set_clock();
        self.stop_began = self.now_ms;
        self.stop_at = self.now_ms.saturating_add(grace_ms);
        if let Some(membership) = self.membership.take() {
            if membership.is_last() {
                // Closing resets whoever is in the queue, or in a handshake.
                let sockets = membership.sockets();
                if matches!(membership.endpoint(), Endpoint::Address(_)) {
                    sockets.iter().for_each(|&listener| sys::drop_handshakes(listener));
                    thread::sleep(HANDSHAKE_TIME);
                }
                for listener in sockets {
                    (0..LAST_ACCEPTS_MAX).all(|_| self.accept(listener));
                }
            }
            drop(membership);
            // The descriptors may be reused from now on.
            self.paused.clear();
            self.accepting.clear();
        }
        self.is_stopping = true;
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
        self.wake_if_needed();
    }

    /// The server stops.
    fn leave_politely(&mut self, slot: u32, session: &mut Session) {
        if let Some(http2) = session.machine.http2_mut() {
            http2.leave(self.now_ms);
            return self.mark_http2(slot, session);
        }
        if session.machine.frames().is_some() {
            self.lend_buffer(session);
            session.machine.send_close(code::GOING_AWAY, b"", self.now_ms);
            self.mark_session(slot, session);
        }
    }

    pub(super) fn notify_stopped(&mut self) {
        if self.is_stopping && !self.stop_notified && self.slots.open_count() == 0 {
            self.stop_notified = true;
            self.host_events.push_back(HostEvent { kind: layout::event::STOPPED, slot: 0, stamp: 0 });
        }
    }

    /// Check all deadlines. The host calls this every [`tick_ms`](Self::tick_ms).
    pub fn tick(&mut self) {
        self.set_clock();
        if self.pulse.turn(self.now_ms) {
            self.rejoin();
        }
        self.resume();
        self.files.close_unused(self.now_ms);
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
        self.wake_if_needed();
        self.pulse.rest(self.needs_ticks());
    }

    /// Milliseconds between ticks: an eighth of the shortest time limit, within bounds.
    pub fn tick_ms(&self) -> u64 {
        let Limits { idle_ms, headers_ms, body_ms, linger_ms, handshake_ms, .. } = self.limits;
        let least = idle_ms.min(headers_ms).min(body_ms).min(linger_ms).min(handshake_ms);
        (least / 8).clamp(5, 250)
    }
}
