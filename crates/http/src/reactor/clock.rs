//! Stopping, and the ticks that check deadlines. Without connections no ticks are needed, so an idle server
//! has no timer.

use std::{thread, time::Duration};

use super::{LAST_ACCEPTS_MAX, Reactor};
use crate::{listen::Endpoint, sys};

/// For handshakes that have begun when the last server of a process stops listening. On one machine they take
/// microseconds; those of distant clients have no bound, and the kernel resets what is left of them.
const HANDSHAKE_TIME: Duration = Duration::from_millis(1);

impl Reactor {
    /// Accept nothing more, finish the open exchanges, and close the remaining connections after `grace_ms`.
    /// The host receives `STOPPED` when no connection is left.
    pub fn stop(&mut self, grace_ms: u64) {
        self.set_clock();
        if let Some(membership) = self.arrivals.membership.take() {
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
            self.arrivals.paused.clear();
            self.arrivals.accepting.clear();
        }
        self.connections.stop(grace_ms);
        self.wake_if_needed();
    }

    /// Check all deadlines. The host calls this every [`tick_ms`](Self::tick_ms).
    pub fn tick(&mut self) {
        self.set_clock();
        self.arrivals.attend(self.connections.now_ms);
        self.arrivals.resume();
        self.batches.files.close_unused(self.connections.now_ms);
        self.connections.check_deadlines();
        self.wake_if_needed();
        self.arrivals.rest(self.needs_ticks());
    }
}
