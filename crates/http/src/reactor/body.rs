//! Bodies that the host pulls: read from the socket straight into the body region and decoded there. A body
//! that is not pulled is not read.

use std::io;

use super::{
    Reactor,
    input::{Verdict, is_soon},
    slots::Session,
};
use crate::layout::{READ_BYTES_MAX, pull};

impl Reactor {
    /// Decode the next piece of a request body into the body region. Returns its length, one of `PULL_*`, or
    /// minus the status of a refusal.
    pub fn pull(&mut self, slot: u32, stamp: u32) -> i32 {
        let Some(mut session) = self.slots.lift(slot) else { return pull::DISCONNECTED };
        if !self.in_call {
            self.set_clock();
        }
        if session.machine.http2().is_some() {
            let found = self.pull_http2(slot, stamp, &mut session);
            self.slots.put_back(slot, session);
            if !self.in_call {
                self.flush();
            }
            self.wake_if_needed();
            return found;
        }
        let is_in_flight = session.machine.is_in_flight(stamp);
        let found = if is_in_flight { self.pull_from(slot, &mut session, stamp) } else { pull::DISCONNECTED };
        // A truncated body cannot be handled; the responses before it are still due.
        let closes = is_in_flight
            && found == pull::DISCONNECTED
            && (session.machine.exchanges() == 1 || !self.abort(slot, stamp, &mut session));
        let verdict = if closes { Verdict::Close } else { Verdict::Keep };
        self.put_or_close(slot, session, verdict);
        self.wake_if_needed();
        found
    }

    fn pull_from(&mut self, slot: u32, session: &mut Session, stamp: u32) -> i32 {
        if !session.machine.awaits_body(stamp) {
            return pull::END; // what is ready, or has failed, may be the body of a request behind it
        }
        let ready = session.machine.ready.len();
        if ready > 0 {
            let bytes = ready.min(self.body.len());
            self.body.all_mut()[..bytes].copy_from_slice(&session.machine.ready[..bytes]);
            session.machine.ready.drain(..bytes);
            return bytes as i32;
        }
        if session.body_failed != 0 {
            return -i32::from(session.body_failed);
        }
        if !session.machine.has_body(stamp) {
            return pull::END;
        }
        session.machine.ask(stamp);
        if session.machine.unsent() > 0 {
            self.mark_session(slot, session);
            if !self.in_call {
                self.send(session);
            }
        }
        self.read_body(slot, session)
    }

    fn read_body(&mut self, slot: u32, session: &mut Session) -> i32 {
        loop {
            let buffer_bytes = self.body.len().min(READ_BYTES_MAX);
            let received = match session.socket.receive(&mut self.body.all_mut()[..buffer_bytes]) {
                Ok(0) => {
                    session.is_at_end = true;
                    return pull::DISCONNECTED;
                }
                Ok(bytes) => bytes,
                Err(error) if is_soon(&error) => {
                    session.is_readable = error.kind() == io::ErrorKind::Interrupted;
                    if session.is_readable {
                        self.queue(slot, session);
                    }
                    session.wants_body = true;
                    session.wait_began = self.now_ms;
                    self.set_deadline(session);
                    return pull::WAIT;
                }
                Err(_) => {
                    session.is_at_end = true;
                    return pull::DISCONNECTED;
                }
            };
            self.stats.bytes_in += received as u64;
            self.charge_body(session, received as u64);
            let data = &mut self.body.all_mut()[..received];
            match session.machine.decode(data, &self.limits) {
                Err(refusal) => {
                    self.stats.refused += 1;
                    session.body_failed = refusal.status;
                    return -i32::from(refusal.status);
                }
                Ok(decoded) => {
                    if decoded.consumed < received {
                        session.machine.kept.extend_from_slice(&data[decoded.consumed..]);
                    }
                    if decoded.is_end {
                        session.is_readable = true;
                        self.queue(slot, session);
                    }
                    if decoded.produced > 0 {
                        return decoded.produced as i32;
                    }
                    if decoded.is_end {
                        return pull::END;
                    }
                }
            }
        }
    }

    /// The trailer lines of the body of a request, which are Latin-1; empty before its end, and without any.
    pub fn trailers(&self, slot: u32, stamp: u32) -> String {
        let connection = self.slots.get(slot).filter(|connection| connection.machine.is_open(stamp));
        let lines = connection.map_or(&[][..], |connection| connection.machine.trailers(stamp));
        lines.iter().map(|byte| char::from(*byte)).collect()
    }

    /// The time waited is charged to the body's budget, received bytes refill it: 500 bytes a second keep it
    /// full.
    pub(super) fn charge_body(&self, session: &mut Session, bytes: u64) {
        let waited = if session.wait_began == 0 { 0 } else { self.now_ms - session.wait_began };
        session.wait_began = 0;
        let left = session.body_budget_ms.saturating_sub(waited) + bytes * 2;
        session.body_budget_ms = left.min(self.limits.body_ms);
    }
}
