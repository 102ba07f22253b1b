//! What a client may do: the deadlines of a connection of HTTP/2 and of its streams, how many streams may be
//! reset, and how much may wait for it.

use std::collections::VecDeque;

use h2::Reason;

use super::{Engine, Exchange, Http2, News, Piece, pipe::CONTROL_COST};
use crate::limits::Limits;

/// Streams that a client may reset in `RESETS_MS` after the host has received their requests.
pub(super) const RESETS_MAX: u32 = 256;
const RESETS_MS: u64 = 2_000;
/// Frames without requests or bodies that a client may send in as much time. What is sent to it earns it
/// more, up to a bound: it measures round trips and opens windows for that.
const CONTROLS_MAX: u64 = 2_000;
pub(super) const CALM: u64 = CONTROLS_MAX * CONTROL_COST;
const EARNED_MAX: u64 = 4 * 1024 * 1024;
/// Time for a client without open requests to acknowledge that the server stops, ms.
const LEAVE_MS: u64 = 1_000;

/// Bytes of responses in memory, and responses, that may wait for the windows of one client. With more of
/// both its requests wait too, since each response would be made and wait. Few large ones hold up no others.
const HELD_BYTES_MAX: usize = 32 * 1024 * 1024;
const HELD_MAX: usize = 16;

/// How long a client may be waited for: bytes refill it, 500 a second keep it full.
#[derive(Debug)]
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

/// What waits for a client to read it.
#[derive(Default)]
pub(super) struct Held {
    pub is_much: bool,
    /// It is not much any more, and requests may have waited for that.
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

/// Whether the client may still be sending after such an end: not one that has ended the connection itself.
pub(super) fn is_cut<Ended>(ended: Result<Ended, h2::Error>) -> bool {
    ended.is_err_and(|error| !error.is_remote())
}

impl Http2 {
    /// Whether requests may be taken that were left before.
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

    /// The client resets streams faster than requests are worth taking: each has cost a call of the host.
    pub(super) fn count_reset(&mut self, now_ms: u64) {
        let (left, since) = self.resets;
        let refilled = u64::from(left) + (now_ms - since) * u64::from(RESETS_MAX) / RESETS_MS;
        match refilled.min(RESETS_MAX.into()) as u32 {
            0 => self.shut_down(),
            left => self.resets = (left - 1, now_ms),
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
            None => self.shut_down(),
            Some(left) => self.calm = (left, now_ms),
        }
    }

    /// What was sent to the client.
    pub(super) fn earn(&mut self, bytes: usize) {
        self.calm.0 = (self.calm.0 + bytes as u64).min(EARNED_MAX);
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

    pub(super) fn close(&mut self, is_cut: bool) {
        self.engine = Engine::Over;
        self.is_cut |= is_cut;
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
        due.chain(self.draining.deadline()).min().unwrap_or(0)
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
