//! From responses to sockets: sending, and how a connection goes on or ends. A connection is sent to once per
//! batch, however many responses it has.

use std::io;

use super::{Connections, SHARE_MAX, Verdict, deadlines::LINGER_CHECK_MS, is_soon, slots::Session};
use crate::{connection::More, layout::event, reactor::settings::HostEvent};

/// One in this many of `connections_max` may linger; others are closed at once.
const LINGERING_SHARE: usize = 4;
/// Bytes of files that one connection is sent before others have their turn.
const FILE_SHARE_BYTES: usize = 1024 * 1024;
/// Bytes that wait on a connection above which a piece is sent at once instead of at the end of the turn.
const SEND_SOON_BYTES: usize = 64 * 1024;

impl Connections {
    /// Send on all connections that were marked.
    pub(crate) fn flush(&mut self) {
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
    pub(crate) fn send(&mut self, session: &mut Session) -> Verdict {
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

    /// After a piece was written: send if many bytes wait now. Returns how many still wait; `None`: the
    /// connection has to be closed.
    pub(crate) fn send_soon(
        &mut self,
        session: &mut Session,
        mut waiting: usize,
        after: impl Fn(&Session) -> usize,
    ) -> Option<usize> {
        if waiting >= SEND_SOON_BYTES {
            if self.send(session) == Verdict::Close {
                return None;
            }
            waiting = after(session);
        }
        session.is_full |= waiting > self.limits.out_bytes_max;
        Some(waiting)
    }

    /// The file has become shorter than the length that was announced.
    #[cold]
    fn file_ended(&mut self, session: &mut Session) -> Verdict {
        self.stats.aborted += 1;
        self.host_events.push_back(HostEvent { kind: event::FILE_SHORT, slot: 0, stamp: 0 });
        session.socket.reset_on_close();
        Verdict::Close
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
}
