//! Over 400 lines: what is sent, and when a client is waited for no longer, depend on each other.
//!
//! From responses to sockets: sending, closing, and what is done when a deadline passes. A connection is sent
//! to once per batch, however many responses it has.

use std::io;

use super::{
    Reactor,
    input::{SHARE_MAX, Verdict, is_soon},
    refusals::Refused,
    slots::{HostEvent, Session},
};
use crate::{connection::More, layout::event, limits::Refusal};

/// How often a lingering connection is checked, ms, and the bytes that must arrive between two checks.
const LINGER_CHECK_MS: u64 = 2_000;
const LINGER_CHECK_BYTES: u64 = 1_000;
/// Time for a partial head when the server stops, ms.
const STOP_HEAD_MS: u64 = 1_000;
/// Time for the first bytes of a connection when the server stops, from its beginning, ms: the client of one
/// that has just begun has sent them, or is about to.
const STOP_UNUSED_MS: u64 = 500;
/// Number and size of unused buffers that are stored.
const BUFFERS_MAX: usize = 256;
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Checks per `body_ms` of what the kernel holds for a client that reads.
const READER_CHECKS: u64 = 4;
/// One in this many of `connections_max` may linger; others are closed at once.
const LINGERING_SHARE: usize = 4;
const NO_DEADLINE: u64 = 0;
/// Bytes of files that one connection is sent before others have their turn.
const FILE_SHARE_BYTES: usize = 1024 * 1024;

impl Reactor {
    /// Process a connection in `flush`.
    pub(super) fn mark(&mut self, slot: u32) {
        if let Some(session) = self.slots.get_mut(slot)
            && !session.is_dirty
        {
            session.is_dirty = true;
            self.dirty.push(slot);
        }
    }

    /// Like [`mark`](Self::mark), for a connection that is lifted.
    #[inline]
    pub(super) fn mark_session(&mut self, slot: u32, session: &mut Session) {
        if !session.is_dirty {
            session.is_dirty = true;
            self.dirty.push(slot);
        }
    }

    #[inline]
    pub(super) fn lend_buffer(&mut self, session: &mut Session) {
        if session.machine.out.capacity() == 0
            && let Some(buffer) = self.buffers.pop()
        {
            session.machine.out = buffer;
        }
    }

    fn take_buffer(&mut self, session: &mut Session) {
        let mut buffer = std::mem::take(&mut session.machine.out);
        session.machine.sent = 0;
        if self.buffers.len() < BUFFERS_MAX && buffer.capacity() <= BUFFER_BYTES_MAX {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Send on all connections that were marked.
    pub(super) fn flush(&mut self) {
        loop {
            if !self.driven.is_empty() {
                self.drive();
            }
            // Nothing in this loop marks another connection.
            let mut dirty = std::mem::take(&mut self.dirty);
            for slot in dirty.drain(..) {
                let Some(mut session) = self.slots.lift(slot) else { continue };
                session.is_dirty = false;
                let verdict = self.settle(slot, &mut session);
                self.put_or_close(slot, session, verdict);
            }
            if self.dirty.is_empty() {
                self.dirty = dirty;
            }
            // What WebSockets have sent on streams; it becomes less with each of them.
            if self.driven.is_empty() {
                return;
            }
        }
    }

    /// Send, and decide how the connection continues.
    #[inline]
    fn settle(&mut self, slot: u32, session: &mut Session) -> Verdict {
        if let Some(largest) = session.machine.take_largest() {
            let fitting = self.limits.out_bytes_max as u64 / largest.max(1);
            let most = u64::from(session.share * 2).min(SHARE_MAX.into());
            session.share = fitting.clamp(1, most) as u32;
        }
        if self.send(session) == Verdict::Close {
            return Verdict::Close;
        }
        if session.is_writable && session.machine.unsent() > 0 {
            self.queue(slot, session);
        }
        if session.is_full && session.machine.unsent() <= self.limits.out_bytes_max / 2 {
            self.notify_drained(slot, session);
        }
        if self.is_stopping {
            session.machine.close_soon();
        }
        if session.machine.unsent() == 0 && session.machine.is_over() {
            return self.finish(slot, session);
        }
        let may_go_on = session.is_readable || session.is_at_end || !session.machine.kept.is_empty();
        if may_go_on && session.machine.wants_input(&self.limits) {
            self.queue(slot, session);
        }
        self.set_deadline(session);
        Verdict::Keep
    }

    /// Send the bytes that wait, as far as the kernel accepts them, and of files a share.
    #[inline]
    pub(super) fn send(&mut self, session: &mut Session) -> Verdict {
        if session.machine.unsent() == 0 || !session.is_writable {
            return Verdict::Keep;
        }
        let mut file_bytes = 0;
        loop {
            let (bytes, more) = session.machine.next_bytes();
            let is_file = bytes.is_empty() && matches!(more, More::File(..));
            let (result, asked) = match more {
                More::Nothing => (session.socket.send(bytes), bytes.len()),
                More::Bytes(more) => (session.socket.send_both(bytes, more), bytes.len() + more.len()),
                More::File(..) if !bytes.is_empty() => (session.socket.send_before_file(bytes), bytes.len()),
                More::File(..) if file_bytes >= FILE_SHARE_BYTES => return Verdict::Keep,
                More::File(part, from) => {
                    let asked = (part.bytes - from).min(FILE_SHARE_BYTES);
                    (session.socket.send_file(part, from, asked), asked)
                }
            };
            match result {
                Ok(0) => return self.file_ended(session),
                Ok(sent) => {
                    match session.socket.stream() {
                        None => self.stats.bytes_out += sent as u64,
                        Some(stream) => self.stir(stream.carrier),
                    }
                    // Less of a file may be all that it has now: only an error means that the kernel is full.
                    let is_all = is_file || sent == asked;
                    file_bytes += if is_file { sent } else { 0 };
                    session.machine.advance_sent(sent);
                    if is_all && session.machine.unsent() > 0 {
                        continue;
                    }
                    if is_all {
                        session.out_wait_began = 0;
                        self.take_buffer(session);
                    } else {
                        self.wait_for_reader(session, sent as u64);
                    }
                    return Verdict::Keep;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_soon(&error) => {
                    self.wait_for_reader(session, 0);
                    return Verdict::Keep;
                }
                Err(_) => return Verdict::Close,
            }
        }
    }

    /// The file has become shorter than the length that was announced.
    #[cold]
    fn file_ended(&mut self, session: &mut Session) -> Verdict {
        self.stats.aborted += 1;
        self.host_events.push_back(HostEvent { kind: event::FILE_SHORT, slot: 0, stamp: 0 });
        session.socket.reset_on_close();
        Verdict::Close
    }

    /// The kernel accepted only a part.
    pub(super) fn wait_for_reader(&self, session: &mut Session, sent: u64) {
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

    fn notify_drained(&mut self, slot: u32, session: &mut Session) {
        session.is_full = false;
        if session.machine.http2().is_some() {
            // Its streams go on in the next turn.
            return self.queue(slot, session);
        }
        if let Some(frames) = session.machine.frames() {
            self.host_events.push_back(HostEvent { kind: event::DRAINED, slot, stamp: frames.stamp });
        }
        let half = self.limits.out_bytes_max / 2;
        for stamp in session.machine.stamps() {
            if session.machine.waiting_bytes(stamp) <= half {
                self.host_events.push_back(HostEvent { kind: event::DRAINED, slot, stamp });
            } else {
                session.is_full = true;
            }
        }
    }

    /// All responses were sent and nothing more is read.
    pub(super) fn finish(&mut self, slot: u32, session: &mut Session) -> Verdict {
        if session.is_lingering {
            return Verdict::Keep;
        }
        let is_quiet = !session.is_readable && !session.machine.is_cut();
        // Nothing overtakes what was sent on a stream.
        if session.is_at_end || is_quiet || session.socket.stream().is_some() {
            return Verdict::Close;
        }
        if self.lingering >= (self.limits.connections_max / LINGERING_SHARE).max(1) {
            return Verdict::Close;
        }
        // Closing now, with bytes unread or in transit, would send a reset, which may overtake the response:
        // most clients read one only when they have sent everything (RFC 9112, 9.6).
        session.socket.shut_writing();
        session.is_lingering = true;
        self.lingering += 1;
        session.linger_until = self.now_ms + session.linger_most_ms.min(self.limits.linger_ms);
        session.deadline = session.linger_until.min(self.now_ms + LINGER_CHECK_MS);
        self.queue(slot, session);
        Verdict::Keep
    }

    /// Whether a lingering client still sends fast enough and has time left.
    fn lingers_on(&self, session: &mut Session) -> bool {
        // The host may have been busy: bytes in the kernel count as received.
        let is_sending = session.discarded_bytes >= LINGER_CHECK_BYTES || session.socket.has_bytes();
        session.discarded_bytes = 0;
        session.deadline = session.linger_until.min(self.now_ms + LINGER_CHECK_MS);
        is_sending && self.now_ms < session.linger_until
    }

    #[inline]
    pub(super) fn set_deadline(&self, session: &mut Session) {
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
            session.accepted_ms + STOP_UNUSED_MS
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

    /// Whether the first request of a connection is awaited although the server stops.
    pub(super) const fn awaits_first(&self, session: &Session) -> bool {
        session.machine.is_unused() && self.now_ms < session.accepted_ms + STOP_UNUSED_MS
    }

    pub(super) fn time_out(&mut self, slot: u32) {
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

    /// Close a connection in any state.
    pub(super) fn close(&mut self, slot: u32) {
        if let Some(session) = self.slots.lift(slot) {
            self.close_lifted(slot, session);
        }
    }

    /// Close a connection that is lifted, and notify the host for its open exchanges.
    pub(super) fn close_lifted(&mut self, slot: u32, mut session: Box<Session>) {
        if session.machine.exchanges() == 0 && session.machine.unsent() == 0 {
            session.socket.close();
        }
        for stamp in session.machine.stamps() {
            self.stats.aborted += 1;
            self.host_events.push_back(HostEvent { kind: event::CLOSED, slot, stamp });
        }
        self.frames_lost(slot, &mut session);
        self.beginning -= usize::from(session.is_beginning);
        self.http2_lost(slot, &mut session);
        self.lingering -= usize::from(session.is_lingering);
        self.slots.retire(slot);
        self.take_buffer(&mut session);
        self.stream_ended(slot, &session);
        drop(session);
        self.notify_stopped();
    }
}
