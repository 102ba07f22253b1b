//! Bodies that the host pulls: read from the socket straight into the body region and decoded there. A body
//! that is not pulled is not read.

use super::{Reactor, connections::Verdict};
use crate::layout::pull;

impl Reactor {
    /// Decode the next piece of a request body into the body region. Returns its length, one of `PULL_*`, or
    /// minus the status of a refusal.
    pub fn pull(&mut self, slot: u32, stamp: u32) -> i32 {
        let Some(mut session) = self.connections.slots.lift(slot) else { return pull::DISCONNECTED };
        if !self.batches.in_call {
            self.set_clock();
        }
        if session.machine.http2().is_some() {
            let found = self.connections.pull_http2(slot, stamp, &mut session, self.batches.body.all_mut());
            self.connections.slots.put_back(slot, session);
            if !self.batches.in_call {
                self.connections.flush();
            }
            self.wake_if_needed();
            return found;
        }
        let is_in_flight = session.machine.is_in_flight(stamp);
        let (body, sends) = (self.batches.body.all_mut(), !self.batches.in_call);
        let found = if is_in_flight {
            self.connections.pull_from((slot, stamp), &mut session, body, sends)
        } else {
            pull::DISCONNECTED
        };
        // A truncated body cannot be handled; the responses before it are still due.
        let closes = is_in_flight
            && found == pull::DISCONNECTED
            && (session.machine.exchanges() == 1 || !self.connections.abort(slot, stamp, &mut session));
        let verdict = if closes { Verdict::Close } else { Verdict::Keep };
        self.connections.put_or_close(slot, session, verdict);
        self.wake_if_needed();
        found
    }
}
