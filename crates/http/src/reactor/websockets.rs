//! Connections that have become WebSockets: messages to the host, its frames, their deadlines, and the rooms
//! of this thread. A message to a room is encoded once, and compressed once, for all its members.

use std::rc::Rc;

use super::{
    Reactor,
    batches::Record,
    connections::{Verdict, slots::Session},
    responses::Elsewhere,
};
use crate::{
    connection::OutBody,
    layout::{self, event, reply, send},
    shared_bodies::{SharedBodies, SharedBody},
    websocket::{End, Fault, Kind, Received, code, write_frame},
};

/// Frames to rooms that are longer are stored once for all members.
const SHARED_FRAME_BYTES_MIN: usize = 8 * 1024;

impl Reactor {
    /// Take what the client of a WebSocket has sent; its bytes begin at `from`.
    pub(super) fn take_received(
        &mut self,
        slot: u32,
        session: &mut Session,
        from: usize,
        received: Result<Received, Fault>,
    ) {
        let Some(frames) = session.machine.frames_mut() else { return };
        (frames.received_ms, frames.pinged_ms) = (self.connections.now_ms, 0);
        let stamp = frames.stamp;
        let fault = match received {
            Ok(Received::Nothing | Received::Pong) => return,
            Ok(Received::Here { is_text, at, bytes }) => {
                let kind = event::MESSAGE | if is_text { layout::flag::TEXT } else { 0 };
                let at = from + at;
                self.batches
                    .batch
                    .put_message(&mut self.batches.inbound, [kind, slot, stamp, at as u32, bytes as u32, 0]);
                return self.batches.batch.use_data(at + bytes);
            }
            Ok(Received::Gathered { is_text, is_compressed }) => {
                let kind = event::MESSAGE | if is_text { layout::flag::TEXT } else { 0 };
                match frames.take_message(&mut self.batches.deflate, (is_text, is_compressed)) {
                    Ok(message) => return self.batches.put_gathered(kind, (slot, stamp), 0, message),
                    Err(fault) => fault,
                }
            }
            Ok(Received::Ping) => {
                let payload = frames.control().to_vec();
                self.connections.lend_buffer(session);
                session.machine.send_frame(Kind::Pong, false, &payload);
                return self.connections.mark_session(slot, session);
            }
            Ok(Received::Close(code)) => {
                let reason = frames.control().get(2..).unwrap_or_default().to_vec();
                frames.end = Some(End { code, reason: reason.clone(), is_fault: false });
                self.batches.put_gathered(event::CLOSING, (slot, stamp), code, reason);
                return self.batches.ending.push(slot);
            }
            Err(fault) => fault,
        };
        self.connections.stats.refused += 1;
        frames.end = Some(End { code: fault.code, reason: fault.why.into(), is_fault: true });
        // The host may respond to the messages before first.
        if self.batches.batch.has_requests() {
            self.batches.ending.push(slot)
        } else {
            self.connections.end_frames(slot, session)
        }
    }

    /// Take a record that is for a WebSocket or a room.
    #[cold]
    #[inline(never)]
    pub(super) fn take_frame(&mut self, record: &Record, elsewhere: &mut Option<Elsewhere<'_>>) {
        if self.take_http2(record, elsewhere) || record.kind <= reply::UPGRADE {
            return;
        }
        if record.kind == reply::HINT {
            return self.batches.out.put(layout::out::FOUND, 0);
        }
        if record.kind == reply::PUBLISH {
            return self.publish(record, elsewhere);
        }
        let Some(mut session) = self.connections.slots.lift(record.slot) else { return };
        let verdict = match session.machine.frames() {
            Some(frames) if frames.stamp == record.stamp => {
                self.write_record(record, &mut session, elsewhere)
            }
            _ => Verdict::Keep,
        };
        self.connections.put_or_close(record.slot, session, verdict);
    }

    fn write_record(
        &mut self,
        record: &Record,
        session: &mut Session,
        elsewhere: &Option<Elsewhere<'_>>,
    ) -> Verdict {
        let room = (record.length.unwrap_or_default() >> 32) as u32;
        match record.kind {
            reply::JOIN => {
                self.connections.enter(room, record.slot, session);
                return Verdict::Keep;
            }
            reply::LEAVE => {
                self.connections.leave(room, record.slot, session);
                return Verdict::Keep;
            }
            reply::TERMINATE => {
                session.socket.reset_on_close();
                return Verdict::Close;
            }
            _ => {}
        }
        self.connections.lend_buffer(session);
        let payload = payload_of(self.batches.out.all(), record, elsewhere);
        match record.kind {
            reply::SEND => {
                let deflates = session.machine.frames().is_some_and(|frames| frames.terms.deflates);
                let may_compress = u32::from(record.content) & send::COMPRESS != 0;
                let compressed =
                    if deflates && may_compress { self.batches.deflate.deflate(payload) } else { None };
                let is_compressed = compressed.is_some();
                session.machine.send_frame(
                    kind_of(record),
                    is_compressed,
                    compressed.as_deref().unwrap_or(payload),
                );
            }
            reply::PING => session.machine.send_frame(Kind::Ping, false, payload),
            reply::PAUSE => {
                if let Some(frames) = session.machine.frames_mut() {
                    frames.is_paused = record.status != 0;
                }
            }
            reply::CLOSE if session.machine.frames().is_some_and(|frames| frames.terms.is_raw) => {
                if let Some(frames) = session.machine.frames_mut() {
                    frames.end = Some(End { code: code::NONE, reason: Vec::new(), is_fault: true });
                }
                self.connections.end_frames(record.slot, session);
            }
            reply::CLOSE => session.machine.send_close(record.status, payload, self.connections.now_ms),
            _ => {}
        }
        self.connections.mark_session(record.slot, session);
        self.wrote(session)
    }

    /// After a message was written: send if much waits, close if too much does, and report how many bytes do.
    fn wrote(&mut self, session: &mut Session) -> Verdict {
        let waiting = session.machine.unsent();
        let after = |session: &Session| session.machine.unsent();
        let Some(waiting) = self.connections.send_soon(session, waiting, after) else {
            return Verdict::Close;
        };
        self.batches.out.put(layout::out::FOUND, waiting as u32);
        if session.machine.frames().is_some_and(|frames| waiting > frames.terms.queued_bytes_max) {
            // Its client does not read: a close frame would wait behind all of this.
            session.socket.reset_on_close();
            return Verdict::Close;
        }
        Verdict::Keep
    }

    /// Send a message to the members of a room.
    fn publish(&mut self, record: &Record, elsewhere: &Option<Elsewhere<'_>>) {
        let room = (record.length.unwrap_or_default() >> 32) as u32;
        let Some(mut members) = self.connections.rooms.remove(&room) else { return };
        let payload = payload_of(self.batches.out.all(), record, elsewhere);
        let may_compress = u32::from(record.content) & send::COMPRESS != 0;
        let deflates = may_compress && members.iter().any(|slot| self.connections.is_deflating(*slot));
        let compressed = if deflates { self.batches.deflate.deflate(payload) } else { None };
        let frame_of = |is_compressed: bool, payload: &[u8]| {
            let mut frame = Vec::with_capacity(payload.len() + 16);
            write_frame(&mut frame, kind_of(record), is_compressed, payload);
            frame
        };
        let plain = frame_of(false, payload);
        let compressed = compressed.map(|payload| frame_of(true, &payload));
        let plain = Prepared::of(plain, &mut self.batches.bodies);
        let compressed = compressed.map(|frame| Prepared::of(frame, &mut self.batches.bodies));
        members.retain(|slot| self.deliver(*slot, record, &plain, compressed.as_ref()));
        if !members.is_empty() {
            self.connections.rooms.insert(room, members);
        }
    }

    /// Send a frame to one member. False: its connection had to be closed.
    fn deliver(
        &mut self,
        slot: u32,
        record: &Record,
        plain: &Prepared,
        compressed: Option<&Prepared>,
    ) -> bool {
        let Some(mut session) = self.connections.slots.lift(slot) else { return false };
        let Some(frames) = session.machine.frames() else {
            self.connections.slots.put_back(slot, session);
            return false;
        };
        let is_sender = (slot, frames.stamp) == (record.slot, record.stamp);
        if is_sender || frames.closed_ms != 0 {
            self.connections.slots.put_back(slot, session);
            return true;
        }
        let frame = compressed.filter(|_| frames.terms.deflates).unwrap_or(plain);
        self.connections.lend_buffer(&mut session);
        match frame {
            Prepared::Bytes(bytes) => session.machine.front_sink().extend_from_slice(bytes),
            Prepared::Shared(body) => session.machine.push_body(OutBody::Shared(Rc::clone(body)), 0),
        }
        self.connections.mark_session(slot, &mut session);
        let verdict = self.wrote(&mut session);
        self.connections.put_or_close(slot, session, verdict);
        verdict == Verdict::Keep
    }
}

/// A frame for all members of a room.
enum Prepared {
    Bytes(Vec<u8>),
    Shared(Rc<SharedBody>),
}

impl Prepared {
    fn of(frame: Vec<u8>, bodies: &mut SharedBodies) -> Self {
        if frame.len() < SHARED_FRAME_BYTES_MIN {
            Self::Bytes(frame)
        } else {
            Self::Shared(bodies.share(&frame))
        }
    }
}

fn kind_of(record: &Record) -> Kind {
    if u32::from(record.content) & send::TEXT != 0 { Kind::Text } else { Kind::Binary }
}

/// The body of a record, wherever it is.
fn payload_of<'a>(out: &'a [u8], record: &Record, elsewhere: &'a Option<Elsewhere<'_>>) -> &'a [u8] {
    match elsewhere {
        Some(Elsewhere::Bytes(bytes)) if record.is_elsewhere => bytes,
        _ => out
            .get(record.lines_at + record.lines..)
            .and_then(|rest| rest.get(..record.body))
            .unwrap_or_default(),
    }
}
