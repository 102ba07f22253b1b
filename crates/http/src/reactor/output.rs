//! From answers to sockets: sending, closing, and what is done when time runs out. A connection is sent to
//! once per batch, whatever was answered on it.

use std::io;

use super::{
    Reactor,
    input::{Fortune, SHARE_MAX, is_soon},
    state::{Line, Tell},
};
use crate::{layout::event, limits::Refusal, sys};

/// While a client is listened to after everything was sent: how often it is looked whether it still sends,
/// ms, and the bytes that have to have come since the look before.
const LINGER_LOOK_MS: u64 = 2_000;
const LINGER_LOOK_BYTES: u64 = 1_000;
/// What a head that has begun may still take when the server stops, ms.
const STOP_HEAD_MS: u64 = 1_000;
/// Buffers kept for later, and the largest of them.
const BUFFERS_MAX: usize = 256;
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Looks at what the kernel holds for a reader, in `body_ms`.
const READER_LOOKS: u64 = 4;
/// One in so many of the connections there may be is listened to behind its last answer; more are closed.
const LINGERING_SHARE: usize = 4;
/// Nothing to look after.
const NO_DEADLINE: u64 = 0;

impl Reactor {
    /// Something is to be sent, or decided, on that connection.
    pub(super) fn mark(&mut self, slot: u32) {
        if let Some(line) = self.slots.get_mut(slot)
            && !line.is_dirty
        {
            line.is_dirty = true;
            self.dirty.push(slot);
        }
    }

    /// The same for one that is lifted.
    #[inline]
    pub(super) fn mark_line(&mut self, slot: u32, line: &mut Line) {
        if !line.is_dirty {
            line.is_dirty = true;
            self.dirty.push(slot);
        }
    }

    /// Give the connection a buffer for what it sends.
    #[inline]
    pub(super) fn lend_buffer(&mut self, line: &mut Line) {
        if line.machine.out.capacity() == 0
            && let Some(buffer) = self.buffers.pop()
        {
            line.machine.out = buffer;
        }
    }

    fn take_buffer(&mut self, line: &mut Line) {
        let mut buffer = std::mem::take(&mut line.machine.out);
        line.machine.sent = 0;
        if self.buffers.len() < BUFFERS_MAX && buffer.capacity() <= BUFFER_BYTES_MAX {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Send what is to be sent, on all connections that were marked.
    pub(super) fn flush(&mut self) {
        // Nothing that is done here marks another one.
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            let Some(mut line) = self.slots.lift(slot) else { continue };
            line.is_dirty = false;
            let fortune = self.settle(slot, &mut line);
            self.put_or_bury(slot, line, fortune);
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    /// Send, and decide what comes next on this connection.
    #[inline]
    fn settle(&mut self, slot: u32, line: &mut Line) -> Fortune {
        if let Some(largest) = line.machine.take_largest() {
            let fitting = self.limits.out_bytes_max as u64 / largest.max(1);
            let most = u64::from(line.share * 2).min(SHARE_MAX.into());
            line.share = fitting.clamp(1, most) as u32;
        }
        if self.send(line) == Fortune::Dies {
            return Fortune::Dies;
        }
        if line.is_full && line.machine.unsent() <= self.limits.out_bytes_max / 2 {
            self.tell_drained(slot, line);
        }
        if self.is_stopping {
            line.machine.close_soon();
        }
        if line.machine.unsent() == 0 && line.machine.is_over() {
            return self.finish(slot, line);
        }
        let may_go_on = line.is_readable || line.is_at_end || !line.machine.kept.is_empty();
        if may_go_on && line.machine.wants_input(&self.limits) {
            self.queue(slot, line);
        }
        self.set_deadline(line);
        Fortune::Lives
    }

    /// Send what waits; the kernel may not take all of it.
    #[inline]
    pub(super) fn send(&mut self, line: &mut Line) -> Fortune {
        if line.machine.unsent() == 0 || !line.is_writable {
            return Fortune::Lives;
        }
        loop {
            let (bytes, more) = line.machine.next_bytes();
            let result = match more {
                [] => sys::send(&line.socket, bytes),
                more => sys::send_both(&line.socket, bytes, more),
            };
            let asked = bytes.len() + more.len();
            match result {
                Ok(sent) => {
                    self.stats.bytes_out += sent as u64;
                    let is_all = sent == asked;
                    line.machine.has_left(sent);
                    if is_all && line.machine.unsent() > 0 {
                        continue;
                    }
                    if is_all {
                        line.out_wait_began = 0;
                        self.take_buffer(line);
                    } else {
                        self.wait_for_reader(line, sent as u64);
                    }
                    return Fortune::Lives;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_soon(&error) => {
                    self.wait_for_reader(line, 0);
                    return Fortune::Lives;
                }
                Err(_) => return Fortune::Dies,
            }
        }
    }

    /// The kernel took a part.
    pub(super) fn wait_for_reader(&self, line: &mut Line, sent: u64) {
        line.is_writable = false;
        if line.out_wait_began == 0 {
            line.out_patience_ms = self.limits.body_ms;
            line.out_wait_began = self.now_ms;
            line.out_held = None;
        }
        self.charge_reader(line, sent);
        // What has left need not be kept.
        if line.machine.sent >= BUFFER_BYTES_MAX {
            line.machine.out.drain(..line.machine.sent);
            line.machine.sent = 0;
        }
    }

    /// The time a client needs to read is taken from the patience with it; what it reads buys more: 500 bytes
    /// a second keep it.
    fn charge_reader(&self, line: &mut Line, taken: u64) {
        let waited = self.now_ms - line.out_wait_began;
        let left = line.out_patience_ms.saturating_sub(waited) + taken * 2;
        line.out_patience_ms = left.min(self.limits.body_ms);
        line.out_wait_began = self.now_ms;
    }

    /// The kernel says that there is room when a third of its buffer is free, which is megabytes. Whoever
    /// reads less shows in what it still holds. True: the patience is not used up.
    fn look_at_reader(&self, line: &mut Line) -> bool {
        let held = sys::untaken_bytes(&line.socket);
        let taken = line.out_held.map_or(0, |before| before.saturating_sub(held));
        self.charge_reader(line, taken);
        if line.out_held.is_none() {
            // The host may have been busy: nothing can be said before a second look.
            line.out_patience_ms = line.out_patience_ms.max(self.look_ms());
        }
        line.out_held = Some(held);
        line.out_patience_ms > 0
    }

    fn look_ms(&self) -> u64 {
        (self.limits.body_ms / READER_LOOKS).max(1)
    }

    fn tell_drained(&mut self, slot: u32, line: &mut Line) {
        line.is_full = false;
        let half = self.limits.out_bytes_max / 2;
        for stamp in line.machine.stamps() {
            if line.machine.waiting_bytes(stamp) <= half {
                self.tells.push_back(Tell { kind: event::DRAINED, slot, stamp });
            } else {
                line.is_full = true;
            }
        }
    }

    /// Everything was sent and nothing more is read.
    pub(super) fn finish(&mut self, slot: u32, line: &mut Line) -> Fortune {
        if line.is_lingering {
            return Fortune::Lives;
        }
        if line.is_at_end || !line.is_readable && !line.machine.is_cut() {
            return Fortune::Dies;
        }
        if self.lingering >= (self.limits.connections_max / LINGERING_SHARE).max(1) {
            return Fortune::Dies;
        }
        // Closing now, with bytes unread or under way, would send a reset, which may overtake the answer:
        // most clients look for one only when they have sent all (RFC 9112, 9.6).
        sys::shut_writing(&line.socket);
        line.is_lingering = true;
        self.lingering += 1;
        line.linger_until = self.now_ms + self.limits.linger_ms;
        line.deadline = line.linger_until.min(self.now_ms + LINGER_LOOK_MS);
        self.queue(slot, line);
        Fortune::Lives
    }

    /// Whether a client that is listened to goes on sending, fast enough, and has time left.
    fn lingers_on(&self, line: &mut Line) -> bool {
        // The host may have been busy: what lies in the kernel has come.
        let is_sending = line.thrown_bytes >= LINGER_LOOK_BYTES || sys::has_bytes(&line.socket);
        line.thrown_bytes = 0;
        line.deadline = line.linger_until.min(self.now_ms + LINGER_LOOK_MS);
        is_sending && self.now_ms < line.linger_until
    }

    /// When to look after a connection of which nothing is heard.
    #[inline]
    pub(super) fn set_deadline(&self, line: &mut Line) {
        // An answer may come before the body has: then nobody waits for it any more.
        line.wants_body &= line.machine.is_in_body();
        if line.is_lingering {
            return;
        }
        line.deadline = if line.machine.unsent() > 0 && line.out_wait_began != 0 {
            line.out_wait_began + line.out_patience_ms.min(self.look_ms())
        } else if line.wants_body {
            line.wait_began + line.body_patience_ms
        } else if line.machine.flights() > 0 || line.machine.unsent() > 0 {
            // Whoever has stopped sending has most likely gone: an answer that does not come is not waited
            // for.
            if line.is_half_closed { self.now_ms + self.limits.body_ms } else { NO_DEADLINE }
        } else if line.head_began != 0 {
            let until = line.head_began + self.limits.headers_ms;
            if self.is_stopping { until.min(self.stop_began + STOP_HEAD_MS) } else { until }
        } else if line.machine.is_discarding() {
            self.now_ms + self.limits.body_ms
        } else {
            self.now_ms + self.limits.idle_ms
        };
    }

    /// A connection's time has run out.
    pub(super) fn time_out(&mut self, slot: u32) {
        let Some(mut line) = self.slots.lift(slot) else { return };
        let fortune = self.time_out_line(slot, &mut line);
        self.put_or_bury(slot, line, fortune);
    }

    /// Whether something is to be done for this connection as soon as there is a turn.
    fn has_news(&self, line: &Line) -> bool {
        let is_read = line.wants_body || line.machine.wants_input(&self.limits);
        line.is_queued || line.is_dirty || is_read && sys::has_bytes(&line.socket)
    }

    fn time_out_line(&mut self, slot: u32, line: &mut Line) -> Fortune {
        line.deadline = NO_DEADLINE;
        line.wants_body &= line.machine.is_in_body();
        if line.is_lingering {
            return if self.lingers_on(line) { Fortune::Lives } else { Fortune::Dies };
        }
        if line.out_wait_began == 0 && self.has_news(line) {
            // The host was busy: what is here, or was answered, has its turn first.
            if !line.is_queued {
                line.is_readable = true;
                self.queue(slot, line);
            }
            line.deadline = self.now_ms + self.tick_ms();
            return Fortune::Lives;
        }
        if line.machine.unsent() > 0 {
            if line.out_wait_began != 0 && self.look_at_reader(line) {
                self.set_deadline(line);
                return Fortune::Lives;
            }
            // What the kernel still holds is not wanted either.
            sys::reset_on_close(&line.socket);
            return Fortune::Dies;
        }
        if line.wants_body {
            line.wants_body = false;
            line.body_failed = 408;
            let stamp = line.machine.stamps().last().unwrap_or_default();
            line.machine.cease();
            self.stats.refused += 1;
            self.tells.push_back(Tell { kind: event::BODY, slot, stamp });
            return Fortune::Lives;
        }
        if line.machine.is_in_head() && !self.is_stopping {
            self.stats.refused += 1;
            let begun = std::mem::take(&mut line.machine.kept);
            line.machine.refuse(Refusal::of(408, "the head took too long"), &begun, &self.heads);
            self.mark_line(slot, line);
            return Fortune::Lives;
        }
        Fortune::Dies
    }

    /// Close a connection, whatever it was doing.
    pub(super) fn close(&mut self, slot: u32) {
        if let Some(line) = self.slots.lift(slot) {
            self.bury(slot, line);
        }
    }

    /// The connection that was lifted is closed: whoever waits for it is told.
    pub(super) fn bury(&mut self, slot: u32, mut line: Box<Line>) {
        for stamp in line.machine.stamps() {
            self.stats.aborted += 1;
            self.tells.push_back(Tell { kind: event::CLOSED, slot, stamp });
        }
        self.lingering -= usize::from(line.is_lingering);
        self.slots.retire(slot);
        self.take_buffer(&mut line);
        drop(line);
        self.tell_stopped();
    }
}
