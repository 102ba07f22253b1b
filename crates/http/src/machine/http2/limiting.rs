//! What a client may do: the deadlines of a connection of HTTP/2 and of its streams, how many streams may be
//! reset, and how much may wait for it.

use std::collections::VecDeque;

use h2::Reason;

use super::{Engine, Exchange, Http2, News, Piece, pipe::CONTROL_COST};
use crate::limits::Limits;

/// The time for which `resets_max` streams may be reset before their responses have begun, ms.
const RESETS_MS: u64 = 2_000;
/// How many times `resets_max` such resets a client can have earned by responses that have begun.
const RESETS_EARNED: u64 = 16;
/// Frames without requests or bodies that a client may send in as much time. What is sent to it earns it
/// more, up to a bound: it measures round trips and opens windows for that.
const CONTROLS_MAX: u64 = 2_000;
pub(super) const CALM: u64 = CONTROLS_MAX * CONTROL_COST;
const EARNED_MAX: u64 = 4 * 1024 * 1024;
/// Time for a client without open requests to acknowledge that the server stops, ms.
const LEAVE_MS: u64 = 1_000;
/// Time for the open streams of a connection that is given up, ms.
const GIVE_UP_MS: u64 = 5_000;

/// Bytes of responses in memory, and responses, that may wait for the windows of one client. With more of
/// both its requests wait too, since each response would be made and wait. Few large ones hold up no others.
const HELD_BYTES_MAX: usize = 32 * 1024 * 1024;
const HELD_MAX: usize = 16;

/// How long a client may be waited for: bytes refill it, 500 a second keep it full.
pub struct Budget {
    left_ms: u64,
    most_ms: u64,
    /// 0: nothing is awaited.
    since_ms: u64,
}

impl Budget {
    pub const fn new(most_ms: u64) -> Self {
        Self { left_ms: most_ms, most_ms, since_ms: 0 }
    }

    pub const fn begin(&mut self, now_ms: u64) {
        if self.since_ms == 0 {
            self.since_ms = now_ms;
        }
    }

    /// The time waited is charged.
    pub fn charge(&mut self, now_ms: u64, bytes: u64) {
        let waited = if self.since_ms == 0 { 0 } else { now_ms - self.since_ms };
        self.since_ms = 0;
        self.left_ms = self.left_ms.saturating_sub(waited).saturating_add(bytes * 2).min(self.most_ms);
    }

    pub const fn fill(&mut self) {
        self.left_ms = self.most_ms;
    }

    /// When it is used up, in ms.
    pub fn end(&self) -> Option<u64> {
        (self.since_ms > 0).then_some(self.since_ms.saturating_add(self.left_ms))
    }
}

/// The streams that a client may still reset before their responses have begun: each costs a call of the host
/// for nothing (CVE-2023-44487). A response that has begun allows one more, since whoever cancels some of its
/// requests, as proxies of many users do, waits for the others.
pub(super) struct Resets {
    /// In parts of one: `RESETS_MS` of them, as a millisecond brings `most` parts.
    left: u64,
    most: u64,
    since_ms: u64,
}

impl Resets {
    pub fn new(most: u32, now_ms: u64) -> Self {
        Self { left: u64::from(most) * RESETS_MS, most: most.into(), since_ms: now_ms }
    }

    /// A response has begun.
    pub fn earn(&mut self) {
        self.left = (self.left + RESETS_MS).min(self.most * RESETS_EARNED * RESETS_MS);
    }

    /// One was reset. False: that was one too many.
    pub fn take(&mut self, now_ms: u64) -> bool {
        let refilled = self.left + (now_ms - self.since_ms) * self.most;
        self.since_ms = now_ms;
        self.left = self.left.max(refilled.min(self.most * RESETS_MS));
        let rest = self.left.checked_sub(RESETS_MS);
        self.left = rest.unwrap_or_default();
        rest.is_some()
    }
}

/// What waits for a client to read it.
#[derive(Default)]
pub(super) struct Held {
    pub is_much: bool,
    /// The connection has to be worked on: it is not much any more, and requests may have waited for that, or
    /// the client was given up.
    resumes: bool,
}

impl Held {
    pub fn measure(&mut self, exchanges: &VecDeque<Exchange>) {
        let held = exchanges.iter().map(held_of).filter(|bytes| *bytes > 0);
        let (count, bytes) = held.fold((0, 0), |(count, all), bytes| (count + 1, all + bytes));
        let is_much = bytes > HELD_BYTES_MAX && count > HELD_MAX;
        self.resumes |= self.is_much && !is_much;
        self.is_much = is_much;
    }
}

/// Bytes that a response has in memory.
fn held_of(exchange: &Exchange) -> usize {
    exchange.queue.iter().filter(|piece| !matches!(piece, Piece::File(..))).map(Piece::len).sum()
}

impl Http2 {
    /// Whether there is work that no event announces.
    pub fn take_resumes(&mut self) -> bool {
        std::mem::take(&mut self.held.resumes)
    }

    /// Accept nothing more, finish what is open and close.
    pub fn leave(&mut self, now_ms: u64) {
        if self.left_ms > 0 {
            return;
        }
        self.left_ms = now_ms.max(1);
        self.draining.leave();
        if let Engine::Serves(connection) = &mut self.engine {
            connection.graceful_shutdown();
        }
    }

    /// The client has reset a stream before its response had begun.
    pub(super) fn count_reset(&mut self, now_ms: u64) {
        if !self.resets.take(now_ms) {
            self.give_up(now_ms, "resets");
        }
    }

    /// The client sends frames for their own sake: pings, settings, windows for what it was not sent.
    pub(super) fn count_frames(&mut self, now_ms: u64) {
        let costs = std::mem::take(&mut self.flow.borrow_mut().frames.costs);
        if costs == 0 {
            return;
        }
        let (left, since) = self.calm;
        let refilled = left + (now_ms - since) * CONTROLS_MAX * CONTROL_COST / RESETS_MS;
        match refilled.min(CALM).max(left).checked_sub(costs) {
            None => self.give_up(now_ms, "frames"),
            Some(left) => self.calm = (left, now_ms),
        }
    }

    /// What was sent to the client.
    pub(super) fn earn(&mut self, bytes: usize) {
        self.calm.0 = (self.calm.0 + bytes as u64).min(EARNED_MAX);
    }

    /// The client has exceeded a limit. Its open streams have a time to finish (RFC 9113, 6.8), within the
    /// same limits once more, and new ones are refused: others may share the connection.
    fn give_up(&mut self, now_ms: u64, reason: &'static str) {
        self.held.resumes = true;
        if self.given_up_ms == 0 {
            self.why.get_or_insert_with(|| (reason, String::new()));
        }
        if self.given_up_ms > 0 || self.exchanges.is_empty() && self.sockets.is_empty() {
            return self.shut_down();
        }
        self.given_up_ms = now_ms.max(1);
        self.resets = Resets::new(self.resets.most as u32, now_ms);
        self.calm = (CALM, now_ms);
        self.leave(now_ms);
    }

    /// A client whose time to finish is over, or who has finished and does not end the connection.
    pub(super) fn end_given_up(&mut self, now_ms: u64) {
        let Engine::Serves(connection) = &self.engine else { return };
        let is_late = now_ms >= self.given_up_ms + GIVE_UP_MS;
        if self.given_up_ms > 0 && (is_late || self.is_idle() && !connection.has_streams()) {
            self.shut_down();
        }
    }

    fn shut_down(&mut self) {
        if let Engine::Serves(connection) = &mut self.engine {
            connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            self.is_cut = true; // the engine reports no error for this
        }
    }

    /// Nothing more is read or written.
    pub const fn is_over(&self) -> bool {
        matches!(self.engine, Engine::Over)
    }

    /// Whether an error ended it: the client may still be sending.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The engine has ended. After an error that is not the client's, the client may still be sending.
    pub(super) fn close(&mut self, error: Option<h2::Error>) {
        self.engine = Engine::Over;
        let Some(error) = error.filter(|error| !error.is_remote()) else { return };
        self.is_cut = true;
        if error.is_library() && error.is_go_away() && self.given_up_ms == 0 {
            let is_flood = error.reason() == Some(Reason::ENHANCE_YOUR_CALM);
            let reason = if is_flood { "flood" } else { "protocol" };
            self.why.get_or_insert_with(|| (reason, error.to_string()));
        }
    }

    /// Whether nothing is open.
    fn is_idle(&self) -> bool {
        self.exchanges.is_empty() && self.sockets.is_empty() && self.draining.is_empty()
    }

    /// When something of this connection is due, in ms; 0: nothing.
    pub fn deadline(&self, limits: &Limits) -> u64 {
        if self.is_idle() {
            let most = if self.has_served { limits.idle_ms } else { limits.headers_ms };
            let until = self.active_ms + most;
            return if self.left_ms > 0 { until.min(self.left_ms + LEAVE_MS) } else { until };
        }
        let due = self.exchanges.iter().filter_map(Exchange::deadline);
        let end = (self.given_up_ms > 0).then_some(self.given_up_ms + GIVE_UP_MS);
        due.chain(self.draining.deadline()).chain(end).min().unwrap_or(0)
    }

    /// End what is due: bodies that do not arrive, streams whose client does not read. Returns whether the
    /// connection itself is due.
    pub fn time_out(&mut self, now_ms: u64, limits: &Limits, mut report: impl FnMut(u32, News)) -> bool {
        self.draining.time_out(now_ms);
        if self.is_idle() {
            return now_ms >= self.deadline(limits);
        }
        self.exchanges.retain_mut(|exchange| {
            if exchange.deadline().is_none_or(|due| now_ms < due) {
                return true;
            }
            if exchange.wants_body {
                exchange.wants_body = false;
                exchange.body_failed = 408;
                report(exchange.stamp, News::Body);
                return true;
            }
            exchange.reset(Reason::CANCEL);
            if exchange.is_open() {
                report(exchange.stamp, News::Lost);
            }
            false
        });
        false
    }
}
