//! WebSockets over HTTP/2 (RFC 8441). Each has a slot of its own, with a stream in place of the socket, so
//! rooms, deadlines and back-pressure are those of all WebSockets.
//!
//! Its connection, the carrier, has the events: whatever it has read or written for a stream rings the bell
//! of that stream, and what the stream has taken makes the carrier be driven.

use std::io;

use super::{
    Connections,
    frames::{LATE, LATE_WHY},
    slots::Session,
    transport::Transport,
};
use crate::{
    connection::Connection,
    websocket::{WebSocket, code},
};

impl Connections {
    /// Make a WebSocket of an exchange. Returns its slot.
    #[cold]
    pub(crate) fn upgrade_http2(
        &mut self,
        (own, stamp): (u32, u32),
        session: &mut Session,
        lines: &[u8],
        frames: Box<WebSocket>,
    ) -> Option<u32> {
        let http2 = session.machine.http2_mut()?;
        let has_room = self.slots.open_count() < self.limits.connections_max;
        let stream = if has_room { http2.upgrade(stamp, lines, own) } else { None };
        let Some(stream) = stream else {
            http2.respond(stamp, &LATE, LATE_WHY);
            self.report_late(own, stamp);
            return None;
        };
        let bell = stream.bell();
        let machine = Connection::of_frames(frames);
        let (slot, _) = self.slots.put(Transport::Stream(Box::new(stream)), machine, self.now_ms, 0);
        http2.add_socket(slot, bell);
        if let Some(mut socket) = self.slots.lift(slot) {
            socket.share = u32::MAX;
            if self.is_stopping {
                socket.machine.send_close(code::GOING_AWAY, b"", self.now_ms);
            }
            self.slots.put_back(slot, socket);
        }
        self.wake_stream(slot);
        Some(slot)
    }

    /// Streams of this connection have bytes, room or an end.
    pub(crate) fn wake_streams(&mut self, session: &Session) {
        let Some(http2) = session.machine.http2() else { return };
        for slot in http2.rung() {
            self.wake_stream(slot);
        }
    }

    /// A stream is read, and written to, before the next poll.
    pub(super) fn wake_stream(&mut self, slot: u32) {
        let Some(mut session) = self.slots.lift(slot) else { return };
        (session.is_readable, session.is_writable) = (true, true);
        self.mark_session(slot, &mut session);
        if !session.is_queued {
            session.is_queued = true;
            self.runnable.push_front(slot);
            self.runnable_left += 1;
        }
        self.slots.put_back(slot, session);
    }

    /// Something was written to a stream of this connection, or taken from it.
    pub(super) fn stir(&mut self, carrier: u32) {
        if let Some(session) = self.slots.get_mut(carrier)
            && !session.is_driven
        {
            session.is_driven = true;
            self.driven.push(carrier);
        }
    }

    /// After a stream was read, as after a socket was. Its bytes are counted by the carrier.
    #[cold]
    pub(super) fn after_stream(
        &mut self,
        session: &mut Session,
        received: io::Result<usize>,
    ) -> io::Result<usize> {
        let Some(stream) = session.socket.stream() else { return received };
        let (carrier, has_more) = (stream.carrier, stream.has_more);
        match received {
            Ok(0) => {
                session.is_readable = false;
                session.is_half_closed = true;
                session.is_at_end = true;
            }
            Ok(_) => {
                session.is_readable = has_more;
                self.stir(carrier); // the client's window has grown
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                session.is_readable = false;
                return Ok(0);
            }
            Err(error) => return Err(error),
        }
        received
    }

    /// Whether the next turn will work on this connection.
    pub(super) fn has_news(&self, session: &Session) -> bool {
        let is_read = session.wants_body || session.machine.wants_input(&self.limits);
        session.is_queued || session.is_dirty || is_read && self.has_bytes(session)
    }

    fn has_bytes(&self, session: &Session) -> bool {
        let Some(stream) = session.socket.stream() else { return session.socket.has_news() };
        let carrier = self.slots.get(stream.carrier);
        carrier.is_some_and(|carrier| carrier.is_queued || carrier.socket.has_news())
    }

    /// A connection has ended; its carrier learns of it, and writes the end.
    pub(super) fn stream_ended(&mut self, slot: u32, session: &Session) {
        let Some(stream) = session.socket.stream() else { return };
        let (carrier, now_ms) = (stream.carrier, self.now_ms);
        if let Some(http2) = self.slots.get_mut(carrier).and_then(|carrier| carrier.machine.http2_mut()) {
            http2.remove_socket(slot, now_ms);
        }
        self.stir(carrier);
    }
}
