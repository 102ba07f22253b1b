//! Connections on sockets, for one thread. Requests that are ready are read, parsed and passed to the host in
//! batches.
//!
//! A reactor has three parts, none of which uses another: [`Arrivals`], the selector and the listening
//! sockets; [`Connections`], with their sockets, deadlines and events for the host; [`Batches`], the memory
//! through which requests and responses pass. Here, and in the files that implement [`Reactor`], is what
//! leads from one to another.
//!
//! The host calls [`Reactor::advance`] when the reactor's descriptor is readable, runs its handlers on
//! [`Step::Call`], reports with [`Reactor::called`], and repeats this until [`Step::Done`]. Sockets are
//! watched once, edge-triggered: `is_readable` records what was announced and not read, so back-pressure
//! means not reading and costs no system call. Connections that can continue without an event wait in
//! `runnable`; at the end of the turn the waker is signalled for them, so that the host's loop returns after
//! its other work.

mod accept;
mod arrivals;
mod batches;
mod body;
mod clock;
mod connections;
mod http2;
mod input;
mod responses;
mod settings;
#[cfg(test)]
mod tests;
mod websockets;

use std::{io, os::fd::RawFd, sync::Arc};

use crate::{
    layout,
    listen::{self, Membership},
    region::Region,
    selector::{Readiness, WAKER},
    shared_bodies::SharedBodies,
};
use arrivals::Arrivals;
use batches::{Batch, Batches};
use connections::Connections;
pub use settings::{Settings, Stats, Step, error_name};

/// Minimum size of the out and the body region.
const OUT_BYTES_MIN: usize = 4096;
/// Connections accepted from one socket at once.
const ACCEPTS_MAX: usize = 64;
/// Rounds of `ACCEPTS_MAX` when a queue is emptied for good; longer than any queue can be.
const LAST_ACCEPTS_MAX: usize = 1024;

/// The connections and listening sockets of one thread.
pub struct Reactor {
    /// Its endpoint and its descriptor.
    pub arrivals: Arrivals,
    /// What the host asks of one connection.
    pub connections: Connections,
    /// The batch that the host handles.
    pub batches: Batches,
}

impl Reactor {
    /// Listen.
    /// `EINVAL`: a region is too small.
    pub fn open(settings: Settings, inbound: Region, out: Region, body: Region) -> io::Result<Self> {
        let inbound_bytes_min = layout::WORDS_BYTES + Batch::data_bytes_min(&settings.limits);
        if inbound.len() < inbound_bytes_min || out.len() < OUT_BYTES_MIN || body.len() < OUT_BYTES_MIN {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let Settings { endpoint, is_shared, is_proxied, limits, constants } = settings;
        let arrivals = Arrivals::listen(endpoint, is_shared, is_proxied)?;
        let held_bytes = arrivals.membership.as_ref().map(Membership::held_bytes).map(Arc::clone);
        let bodies = SharedBodies::new(held_bytes.unwrap_or_default());
        let batches = Batches::new((inbound, out, body), &limits, constants, bodies);
        Ok(Self { arrivals, connections: Connections::new(limits), batches })
    }

    /// How often each constant response was sent, see `Constants::counts`.
    pub fn constant_counts(&self) -> Vec<f64> {
        self.batches.constants.counts()
    }

    pub fn stats(&self) -> Stats {
        let held_bytes = self.batches.bodies.held_bytes();
        let open_files = self.batches.files.len() as u64;
        Stats {
            connections: self.connections.slots.open_count() as u64,
            held_bytes,
            open_files,
            ..self.connections.stats
        }
    }

    /// Begin a turn: the descriptor is readable.
    pub fn begin(&mut self) {
        self.arrivals.begin();
        self.set_clock();
        self.arrivals.attend(self.connections.now_ms);
    }

    fn set_clock(&mut self) {
        if self.connections.set_clock() {
            self.batches.constants.forget_heads();
        }
    }

    /// Continue the turn.
    pub fn advance(&mut self) -> Step {
        loop {
            while self.arrivals.has_events() {
                if self.batches.batch.is_full() {
                    return self.call();
                }
                let event = self.arrivals.next_event();
                self.take_event(&event);
            }
            while self.connections.has_next() {
                if self.batches.batch.is_full() {
                    return self.call();
                }
                if let Some(slot) = self.connections.next() {
                    self.go_on_with(slot);
                }
            }
            self.connections.flush();
            if self.batches.batch.has_requests() || !self.connections.host_events.is_empty() {
                return self.call();
            }
            if !self.arrivals.goes_on(self.has_runnable()) {
                break;
            }
            self.accept_more();
            self.look();
            if !self.arrivals.has_events() && !self.connections.has_next() {
                break;
            }
        }
        if self.can_continue() {
            self.arrivals.wake();
        }
        self.arrivals.rest(self.needs_ticks());
        Step::Done
    }

    /// Whether there is work that no event announces.
    fn can_continue(&self) -> bool {
        self.arrivals.can_continue(self.has_runnable())
    }

    fn has_runnable(&self) -> bool {
        !self.connections.runnable.is_empty()
    }

    fn look(&mut self) {
        self.connections.begin_round();
        self.arrivals.look(self.has_runnable());
    }

    fn call(&mut self) -> Step {
        self.batches.begin_call(&mut self.connections.host_events);
        Step::Call
    }

    /// The host has handled the batch. `ran` is false if its program was stopped: its responses are dropped.
    pub fn called(&mut self, ran: bool) {
        let requests = self.batches.end_call();
        self.connections.forget_refusals();
        if ran {
            self.take_responses(None);
        } else {
            self.batches.drop_records();
        }
        if requests > 0 {
            self.arrivals.has_pending = self.batches.responded < requests;
        }
        self.connections.end_sockets(std::mem::take(&mut self.batches.ending));
        self.connections.flush();
    }

    /// Take and send responses that were written outside of a batch.
    pub fn flush_responses(&mut self) {
        if !self.batches.in_call {
            self.set_clock();
        }
        self.take_responses(None);
        self.connections.flush();
        self.wake_if_needed();
    }

    /// Outside of a turn, new work needs a turn.
    fn wake_if_needed(&mut self) {
        if !self.batches.in_call && (self.can_continue() || !self.connections.host_events.is_empty()) {
            self.arrivals.wake();
        }
    }

    fn take_event(&mut self, event: &Readiness) {
        let token = event.token;
        if token == WAKER {
            return;
        }
        if token & listen::TAG != 0 {
            // After a stop the descriptor may have been reused.
            if self.arrivals.membership.is_some() {
                self.accept_from(token as u32 as RawFd);
            }
            return;
        }
        self.take_readiness(token as u32, (token >> 32) as u32, event);
    }

    /// Whether [`tick`](Self::tick) needs to be called.
    pub fn needs_ticks(&self) -> bool {
        self.connections.slots.open_count() > 0
            || !self.arrivals.paused.is_empty()
            || self.batches.files.len() > 0
    }
}
