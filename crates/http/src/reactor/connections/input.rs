//! What is received: into memory of the host, and what the end of it means. Bodies are decoded where they are
//! received; a body that is not pulled is not read.

use std::io;

use super::{Connections, Verdict, is_soon, slots::Session};
use crate::{
    connection::Rest,
    layout::{READ_BYTES_MAX, pull},
};

impl Connections {
    pub(crate) fn receive(
        &mut self,
        slot: u32,
        session: &mut Session,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        let buffer_bytes = buffer.len();
        let received = session.socket.receive(buffer);
        let mut has_more = false;
        if !session.socket.is_plain() {
            if session.socket.stream().is_some() {
                return self.after_stream(session, received);
            }
            let Some(more) = self.after_records(slot, session)? else { return Ok(0) };
            has_more = more;
        }
        match received {
            Ok(0) => {
                session.is_readable = false;
                session.is_half_closed = true;
                session.is_at_end = true;
                Ok(0)
            }
            Ok(bytes) => {
                // Less than the buffer's size: nothing remains, except possibly the end.
                session.is_readable = bytes == buffer_bytes || session.is_half_closed || has_more;
                self.stats.bytes_in += bytes as u64;
                Ok(bytes)
            }
            Err(error) if is_soon(&error) => {
                session.is_readable = error.kind() == io::ErrorKind::Interrupted;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// After reading: handle the end of the input, continue with more of it, set the deadline.
    pub(crate) fn after_input(
        &mut self,
        slot: u32,
        session: &mut Session,
        has_progressed: bool,
        left: Rest,
    ) -> Verdict {
        if session.machine.is_over() {
            // An unwanted body was too long or malformed: nothing else would close this connection. Refusals
            // have marked it already.
            self.mark_session(slot, session);
            return Verdict::Keep;
        }
        if session.is_at_end {
            return self.at_end(slot, session, left);
        }
        if self.is_stopping && !self.awaits_first(session) {
            session.machine.close_soon();
            if session.machine.is_over() && session.machine.unsent() == 0 && !session.is_dirty {
                return self.finish(slot, session);
            }
        }
        let goes_on = session.is_readable || has_progressed && !session.machine.kept.is_empty();
        if goes_on && session.machine.wants_input(&self.limits) {
            self.queue(slot, session);
        }
        if session.machine.is_in_head() {
            if has_progressed || session.head_began == 0 {
                session.head_began = self.now_ms;
            }
        } else {
            session.head_began = 0;
        }
        self.set_deadline(session);
        Verdict::Keep
    }

    /// The client sends nothing more. Whole requests get a response; a part of a request is dropped.
    fn at_end(&mut self, slot: u32, session: &mut Session, left: Rest) -> Verdict {
        let is_last = session.machine.end_input(left);
        if is_last && !session.is_dirty && session.machine.exchanges() == 0 && session.machine.unsent() == 0 {
            return Verdict::Close;
        }
        // The batch was full or its share used up. A connection that waits for responses to be sent continues
        // when they have been.
        if left == Rest::Unread && session.machine.wants_input(&self.limits) {
            self.queue(slot, session);
        }
        self.set_deadline(session);
        Verdict::Keep
    }

    /// All responses were sent: read until the client closes, limited only by time.
    pub(crate) fn discard_input(&mut self, slot: u32, session: &mut Session, buffer: &mut [u8]) -> Verdict {
        match session.socket.receive_raw(buffer) {
            Ok(0) => Verdict::Close,
            Ok(bytes) => {
                self.stats.bytes_in += bytes as u64;
                session.discarded_bytes += bytes as u64;
                self.queue(slot, session);
                Verdict::Keep
            }
            Err(error) if is_soon(&error) => Verdict::Keep,
            Err(_) => Verdict::Close,
        }
    }

    /// Decode the next piece of a body into `buffer`. Returns what [`pull`](crate::Reactor::pull) does.
    /// `sends`: what waits is sent now, not at the end of a turn.
    pub(crate) fn pull_from(
        &mut self,
        (slot, stamp): (u32, u32),
        session: &mut Session,
        buffer: &mut [u8],
        sends: bool,
    ) -> i32 {
        if !session.machine.awaits_body(stamp) {
            return pull::END; // what is ready, or has failed, may be the body of a request behind it
        }
        let ready = session.machine.ready.len();
        if ready > 0 {
            let bytes = ready.min(buffer.len());
            buffer[..bytes].copy_from_slice(&session.machine.ready[..bytes]);
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
            if sends {
                self.send(session);
            }
        }
        self.read_body(slot, session, buffer)
    }

    fn read_body(&mut self, slot: u32, session: &mut Session, buffer: &mut [u8]) -> i32 {
        loop {
            let buffer_bytes = buffer.len().min(READ_BYTES_MAX);
            let received = match session.socket.receive(&mut buffer[..buffer_bytes]) {
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
            let data = &mut buffer[..received];
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
}
