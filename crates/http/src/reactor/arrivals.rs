//! What arrives at this thread: the events of its selector, and new connections at its listening sockets.
//!
//! A turn polls several times while that pays. New connections are announced once, however many there are.
//! Therefore a listener whose queue was not emptied is remembered, in `accepting` until the next poll or in
//! `paused` until the next tick.

use std::{
    io,
    os::fd::{OwnedFd, RawFd},
    sync::Arc,
};

use crate::{
    listen::{Endpoint, Membership, Pulse},
    selector::{EVENTS_MAX, Readiness, Selector},
    sys,
    tls::Context,
};

/// Polls per turn.
const ROUNDS_MAX: u32 = 8;
/// Time after which a turn polls no more, ns, so that the host's other work runs.
const TURN_NS_MAX: u64 = 1_000_000;
/// Events after which another poll in the same turn is likely to find more.
const POLL_AGAIN_EVENTS: usize = 16;
/// Upper bound of `poll_score`.
pub(super) const POLL_SCORE_MAX: u32 = 16;
/// One in this many polls is made although the score is low.
pub(super) const POLL_PROBE_EVERY: u32 = 256;
/// How long a poll that is likely to find events waits for them, ns.
const POLL_WAIT_NS: u64 = 20_000;

/// The selector and the listening sockets of one thread, and how far its turn is.
pub struct Arrivals {
    pub(super) selector: Selector,
    pub(super) events: Vec<Readiness>,
    event_next: usize,
    pub(super) round: u32,
    turn_began: u64,
    pub(super) poll_score: u32,
    pub(super) polls_considered: u32,
    pub(super) poll_wait_ns: u64,
    /// Requests of the last batch have no whole response yet, so the host has other work.
    pub(super) has_pending: bool,
    pulse: Arc<Pulse>,
    pub(super) membership: Option<Membership>,
    spare: Option<OwnedFd>,
    /// Listeners from which more may be accepted.
    pub(super) accepting: Vec<RawFd>,
    /// Listeners that are left alone until the next tick.
    pub(super) paused: Vec<RawFd>,
    /// Whether connections begin with a header of the PROXY protocol.
    pub(super) is_proxied: bool,
    /// What connections begin with, unless they are plain.
    pub(super) tls: Option<Arc<Context>>,
}

impl Arrivals {
    pub(super) fn listen(endpoint: Endpoint, is_shared: bool, is_proxied: bool) -> io::Result<Self> {
        let selector = Selector::open()?;
        let membership = Membership::join(endpoint, is_shared, selector.shared())?;
        Ok(Self {
            selector,
            events: Vec::with_capacity(EVENTS_MAX),
            event_next: 0,
            round: 0,
            turn_began: 0,
            poll_score: 0,
            polls_considered: 0,
            poll_wait_ns: POLL_WAIT_NS,
            has_pending: false,
            pulse: Arc::clone(membership.pulse()),
            membership: Some(membership),
            spare: sys::spare(),
            accepting: Vec::new(),
            paused: Vec::new(),
            is_proxied,
            tls: None,
        })
    }

    /// Begin a turn.
    pub(super) fn begin(&mut self) {
        self.round = 0;
        self.turn_began = sys::now_ns();
    }

    /// A turn or a tick shows that this thread is not stalled.
    pub(super) fn attend(&mut self, now_ms: u64) {
        if self.pulse.turn(now_ms) {
            self.rejoin();
        }
    }

    /// It pauses; whether it is due to continue.
    pub(super) fn rest(&self, is_due: bool) {
        self.pulse.rest(is_due);
    }

    /// Make the host's loop return for another turn.
    pub(super) fn wake(&self) {
        self.selector.shared().wake();
    }

    #[inline]
    pub(super) fn has_events(&self) -> bool {
        self.event_next < self.events.len()
    }

    #[inline]
    pub(super) fn next_event(&mut self) -> Readiness {
        let event = self.events[self.event_next];
        self.event_next += 1;
        event
    }

    /// Whether there is work that no event announces.
    #[inline]
    pub(super) const fn can_continue(&self, has_runnable: bool) -> bool {
        has_runnable || !self.accepting.is_empty()
    }

    /// Whether the turn polls again.
    pub(super) fn goes_on(&mut self, has_runnable: bool) -> bool {
        let is_over = self.round > 0
            && (self.round >= ROUNDS_MAX || !self.should_poll_again(has_runnable) || self.is_late());
        self.round += u32::from(!is_over);
        !is_over
    }

    /// A descriptor that is readable when there is work.
    pub fn descriptor(&self) -> RawFd {
        self.selector.descriptor()
    }

    /// The endpoint, with the port that the system has chosen; `None` after a stop.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.membership.as_ref().map(Membership::endpoint)
    }

    /// The number of this reactor for [`crate::stalled_ms`] and [`crate::send_away`]; 0 after a stop.
    pub fn member(&self) -> u64 {
        self.membership.as_ref().map_or(0, Membership::member)
    }

    /// This thread was stalled, and its sockets were handed to another one.
    #[cold]
    fn rejoin(&mut self) {
        // Without a socket it continues with its connections and tries again in its next turn.
        if let Some(membership) = &self.membership {
            membership.rejoin().ok();
        }
    }

    /// Poll. After the first of a turn, wait a little if that pays: to sleep and be woken takes longer.
    pub(super) fn look(&mut self, has_runnable: bool) {
        self.selector.poll(&mut self.events);
        self.event_next = 0;
        if self.round == 1 {
            return;
        }
        if self.events.is_empty() && self.may_wait(has_runnable) {
            let began = sys::now_ns();
            while self.events.is_empty() && sys::now_ns() - began < self.poll_wait_ns {
                std::hint::spin_loop();
                self.selector.poll(&mut self.events);
            }
        }
        // A look without events costs more than one with events saves.
        let score = self.poll_score;
        self.poll_score =
            if self.events.is_empty() { score.saturating_sub(2) } else { (score + 1).min(POLL_SCORE_MAX) };
    }

    /// Whether another poll in this turn is likely to find events: after many events, with work left, or when
    /// such polls have found some recently.
    fn should_poll_again(&mut self, has_runnable: bool) -> bool {
        self.polls_considered = self.polls_considered.wrapping_add(1);
        self.events.len() >= POLL_AGAIN_EVENTS || self.can_continue(has_runnable) || self.pays()
    }

    /// Whether there is nothing else to do, here and in the host's loop, and events are likely.
    pub(super) const fn may_wait(&self, has_runnable: bool) -> bool {
        !self.has_pending && !self.can_continue(has_runnable) && self.pays()
    }

    /// Whether such polls have found events recently. Now and then one is made to find out.
    const fn pays(&self) -> bool {
        self.poll_score >= POLL_SCORE_MAX / 2 || self.polls_considered.is_multiple_of(POLL_PROBE_EVERY)
    }

    fn is_late(&self) -> bool {
        sys::now_ns() - self.turn_began > TURN_NS_MAX
    }

    /// The process has no descriptor left: use the spare one to accept a connection and close it, so that its
    /// client receives a reset instead of waiting.
    pub(super) fn close_one(&mut self, listener: RawFd) -> bool {
        self.spare = None;
        let accepted = sys::accept(listener);
        let is_one = accepted.is_ok();
        drop(accepted);
        self.spare = sys::spare();
        is_one && self.spare.is_some()
    }

    /// Stop accepting until the next tick.
    pub(super) fn pause(&mut self, listener: RawFd) {
        if !self.paused.contains(&listener) {
            self.paused.push(listener);
        }
    }

    /// Accept in the next turn from what was paused.
    pub(super) fn resume(&mut self) {
        if self.paused.is_empty() {
            return;
        }
        if self.spare.is_none() {
            self.spare = sys::spare();
        }
        self.accepting.append(&mut self.paused);
    }
}
