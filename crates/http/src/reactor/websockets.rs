//! Connections that have become WebSockets: messages to the host, its frames, their deadlines, and the rooms
//! of this thread. A message to a room is encoded once, and compressed once, for all its members.

use std::rc::Rc;

use super::{
    Reactor,
    input::Verdict,
    responses::{Elsewhere, Record},
    slots::{HostEvent, Session},
};
use crate::{
    connection::{OutBody, Response},
    layout::{self, event, reply, send},
    websocket::{End, Fault, Kind, Received, Terms, WebSocket, code, write_frame},
};

/// Bytes of gathered messages, after inflation, with which a batch is full.
const GATHERED_BYTES_MAX: usize = 1024 * 1024;
/// Frames to rooms that are longer are stored once for all members.
const SHARED_FRAME_BYTES_MIN: usize = 8 * 1024;
/// Bytes that wait on a connection above which a message is sent at once instead of at the end of the turn.
const SEND_SOON_BYTES: usize = 64 * 1024;
/// The response to an upgrade that comes too late.
pub(super) const LATE: Response<'_> = Response { status: 503, kind: 1, headers: b"" };
pub(super) const LATE_WHY: &[u8] = b"the connection cannot become a WebSocket now\n";

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
        (frames.received_ms, frames.pinged_ms) = (self.now_ms, 0);
        let stamp = frames.stamp;
        let fault = match received {
            Ok(Received::Nothing | Received::Pong) => return,
            Ok(Received::Here { is_text, at, bytes }) => {
                let kind = event::MESSAGE | if is_text { layout::flag::TEXT } else { 0 };
                let at = from + at;
                self.batch.put_message(&mut self.inbound, [kind, slot, stamp, at as u32, bytes as u32, 0]);
                return self.batch.use_data(at + bytes);
            }
            Ok(Received::Gathered { is_text, is_compressed }) => {
                let kind = event::MESSAGE | if is_text { layout::flag::TEXT } else { 0 };
                match frames.take_message(&mut self.deflate, (is_text, is_compressed)) {
                    Ok(message) => return self.put_gathered(kind, (slot, stamp), 0, message),
                    Err(fault) => fault,
                }
            }
            Ok(Received::Ping) => {
                let payload = frames.control().to_vec();
                self.lend_buffer(session);
                session.machine.send_frame(Kind::Pong, false, &payload);
                return self.mark_session(slot, session);
            }
            Ok(Received::Close(code)) => {
                let reason = frames.control().get(2..).unwrap_or_default().to_vec();
                frames.end = Some(End { code, reason: reason.clone(), is_fault: false });
                self.put_gathered(event::CLOSING, (slot, stamp), code, reason);
                return self.ending.push(slot);
            }
            Err(fault) => fault,
        };
        self.stats.refused += 1;
        frames.end = Some(End { code: fault.code, reason: fault.why.into(), is_fault: true });
        // The host may respond to the messages before first.
        if self.batch.has_requests() { self.ending.push(slot) } else { self.end_frames(slot, session) }
    }

    /// The host has handled the messages that were sent before.
    pub(super) fn end_sockets(&mut self) {
        for slot in std::mem::take(&mut self.ending) {
            let Some(mut session) = self.slots.lift(slot) else { continue };
            self.end_frames(slot, &mut session);
            self.slots.put_back(slot, session);
        }
    }

    fn put_gathered(&mut self, kind: u32, (slot, stamp): (u32, u32), code: u16, bytes: Vec<u8>) {
        let number = self.gathered.len() as u32;
        let words =
            [kind | layout::flag::ELSEWHERE, slot, stamp, number, bytes.len() as u32, u32::from(code)];
        self.batch.put_message(&mut self.inbound, words);
        self.gathered_bytes += bytes.len();
        self.gathered.push(bytes);
        if self.gathered_bytes >= GATHERED_BYTES_MAX {
            self.batch.fill();
        }
    }

    /// Copy a message of the batch that is not in the inbound region. Returns whether it has that length.
    pub fn take_gathered(&mut self, number: u32, bytes: &mut [u8]) -> bool {
        let found = self.gathered.get(number as usize).filter(|message| message.len() == bytes.len());
        found.is_some_and(|message| {
            bytes.copy_from_slice(message);
            true
        })
    }

    pub(super) fn forget_gathered(&mut self) {
        if self.gathered_bytes > 0 || !self.gathered.is_empty() {
            self.gathered.clear();
            self.gathered_bytes = 0;
        }
    }

    /// End a WebSocket: a close frame, which echoes that of the client if it has sent one, then the
    /// connection.
    fn end_frames(&mut self, slot: u32, session: &mut Session) {
        let Some(End { code, reason, is_fault }) =
            session.machine.frames_mut().and_then(|frames| frames.end.take())
        else {
            return;
        };
        self.lend_buffer(session);
        session.machine.send_close(code, &reason, self.now_ms);
        if let Some(frames) = session.machine.end_frames(is_fault) {
            self.report_end(slot, &frames, code);
        }
        self.mark_session(slot, session);
    }

    fn report_end(&mut self, slot: u32, frames: &WebSocket, code: u16) {
        for room in &frames.rooms {
            self.leave(*room, slot);
        }
        let kind = event::SOCKET_CLOSED | u32::from(code) << 16;
        self.host_events.push_back(HostEvent { kind, slot, stamp: frames.stamp });
    }

    /// The connection of a WebSocket is closed without a close frame.
    pub(super) fn frames_lost(&mut self, slot: u32, session: &mut Session) {
        let is_full = session
            .machine
            .frames()
            .is_some_and(|frames| session.machine.unsent() > frames.terms.queued_bytes_max);
        if let Some(frames) = session.machine.end_frames(false) {
            let otherwise = if is_full { code::TRY_LATER } else { code::ABNORMAL };
            self.report_end(slot, &frames, frames.end.as_ref().map_or(otherwise, |end| end.code));
        }
    }

    /// A deadline has passed: close, unless it is a WebSocket that has not been pinged.
    pub(super) fn frames_due(&mut self, slot: u32, session: &mut Session) -> Verdict {
        let now = self.now_ms;
        let Some(frames) = session.machine.frames_mut() else { return Verdict::Close };
        if now >= frames.deadline() {
            if frames.closed_ms != 0 || frames.pinged_ms != 0 {
                return Verdict::Close;
            }
            frames.pinged_ms = now.max(1);
            self.lend_buffer(session);
            session.machine.send_frame(Kind::Ping, false, b"");
            self.mark_session(slot, session);
        }
        self.set_deadline(session);
        Verdict::Keep
    }

    /// Make a connection a WebSocket.
    #[cold]
    pub(super) fn upgrade(&mut self, record: &Record, session: &mut Session) {
        let (lines, frames) = self.granted(record);
        if !session.machine.upgrade(record.stamp, lines, frames) {
            session.machine.respond(record.stamp, &LATE, LATE_WHY, &self.heads);
            return self.report_late(record);
        }
        session.share = u32::MAX;
        if self.is_stopping {
            session.machine.send_close(code::GOING_AWAY, b"", self.now_ms);
        }
    }

    /// The header lines of the response to an upgrade, and the WebSocket by its terms.
    pub(super) fn granted(&self, record: &Record) -> (&[u8], Box<WebSocket>) {
        let bytes = &self.out.all()[record.lines_at..record.lines_at + record.lines + record.body];
        let (lines, words) = bytes.split_at(record.lines);
        let word =
            |index: usize| words.as_chunks::<4>().0.get(index).map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let terms = Terms {
            message_bytes_max: word(layout::terms::MESSAGE_BYTES_MAX) as usize,
            queued_bytes_max: word(layout::terms::QUEUED_BYTES_MAX) as usize,
            ping_ms: word(layout::terms::PING_MS).into(),
            pong_ms: word(layout::terms::PONG_MS).into(),
            close_ms: word(layout::terms::CLOSE_MS).into(),
            deflates: word(layout::terms::DEFLATES) == 1,
        };
        (lines, Box::new(WebSocket::new(terms, record.stamp, self.now_ms)))
    }

    /// An upgrade has come too late.
    pub(super) fn report_late(&mut self, record: &Record) {
        let kind = event::SOCKET_CLOSED | u32::from(code::ABNORMAL) << 16;
        self.host_events.push_back(HostEvent { kind, slot: record.slot, stamp: record.stamp });
    }

    /// Take a record that is for a WebSocket or a room.
    #[cold]
    #[inline(never)]
    pub(super) fn take_frame(&mut self, record: &Record, elsewhere: &mut Option<Elsewhere<'_>>) {
        if self.take_http2(record, elsewhere) || record.kind <= reply::UPGRADE {
            return;
        }
        if record.kind == reply::HINT {
            return self.out.put(layout::out::FOUND, 0);
        }
        if record.kind == reply::PUBLISH {
            return self.publish(record, elsewhere);
        }
        let Some(mut session) = self.slots.lift(record.slot) else { return };
        let verdict = match session.machine.frames() {
            Some(frames) if frames.stamp == record.stamp => {
                self.write_record(record, &mut session, elsewhere)
            }
            _ => Verdict::Keep,
        };
        self.put_or_close(record.slot, session, verdict);
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
                self.rooms.entry(room).or_default().insert(record.slot);
                if let Some(frames) = session.machine.frames_mut() {
                    frames.rooms.push(room);
                }
                return Verdict::Keep;
            }
            reply::LEAVE => {
                self.leave(room, record.slot);
                if let Some(frames) = session.machine.frames_mut() {
                    frames.rooms.retain(|entered| *entered != room);
                }
                return Verdict::Keep;
            }
            reply::TERMINATE => {
                session.socket.reset_on_close();
                return Verdict::Close;
            }
            _ => {}
        }
        self.lend_buffer(session);
        let payload = payload_of(self.out.all(), record, elsewhere);
        match record.kind {
            reply::SEND => {
                let deflates = session.machine.frames().is_some_and(|frames| frames.terms.deflates);
                let may_compress = u32::from(record.content) & send::COMPRESS != 0;
                let compressed = if deflates && may_compress { self.deflate.deflate(payload) } else { None };
                let is_compressed = compressed.is_some();
                session.machine.send_frame(
                    kind_of(record),
                    is_compressed,
                    compressed.as_deref().unwrap_or(payload),
                );
            }
            reply::PING => session.machine.send_frame(Kind::Ping, false, payload),
            reply::CLOSE => session.machine.send_close(record.status, payload, self.now_ms),
            _ => {}
        }
        self.mark_session(record.slot, session);
        self.wrote(session)
    }

    /// After a message was written: send if much waits, close if too much does, and report how many bytes do.
    fn wrote(&mut self, session: &mut Session) -> Verdict {
        let mut waiting = session.machine.unsent();
        if waiting >= SEND_SOON_BYTES {
            if self.send(session) == Verdict::Close {
                return Verdict::Close;
            }
            waiting = session.machine.unsent();
        }
        session.is_full |= waiting > self.limits.out_bytes_max;
        self.out.put(layout::out::FOUND, waiting as u32);
        if session.machine.frames().is_some_and(|frames| waiting > frames.terms.queued_bytes_max) {
            // Its client does not read: a close frame would wait behind all of this.
            session.socket.reset_on_close();
            return Verdict::Close;
        }
        Verdict::Keep
    }

    fn leave(&mut self, room: u32, slot: u32) {
        if let Some(members) = self.rooms.get_mut(&room) {
            members.remove(&slot);
            if members.is_empty() {
                self.rooms.remove(&room);
            }
        }
    }

    /// Send a message to the members of a room.
    fn publish(&mut self, record: &Record, elsewhere: &Option<Elsewhere<'_>>) {
        let room = (record.length.unwrap_or_default() >> 32) as u32;
        let Some(mut members) = self.rooms.remove(&room) else { return };
        let payload = payload_of(self.out.all(), record, elsewhere);
        let may_compress = u32::from(record.content) & send::COMPRESS != 0;
        let deflates = may_compress && members.iter().any(|slot| self.is_deflating(*slot));
        let compressed = if deflates { self.deflate.deflate(payload) } else { None };
        let frame_of = |is_compressed: bool, payload: &[u8]| {
            let mut frame = Vec::with_capacity(payload.len() + 16);
            write_frame(&mut frame, kind_of(record), is_compressed, payload);
            frame
        };
        let plain = frame_of(false, payload);
        let compressed = compressed.map(|payload| frame_of(true, &payload));
        let plain = Prepared::of(plain, &mut self.bodies);
        let compressed = compressed.map(|frame| Prepared::of(frame, &mut self.bodies));
        members.retain(|slot| self.deliver(*slot, record, &plain, compressed.as_ref()));
        if !members.is_empty() {
            self.rooms.insert(room, members);
        }
    }

    fn is_deflating(&self, slot: u32) -> bool {
        let frames = self.slots.get(slot).and_then(|session| session.machine.frames());
        frames.is_some_and(|frames| frames.terms.deflates)
    }

    /// Send a frame to one member. False: its connection had to be closed.
    fn deliver(
        &mut self,
        slot: u32,
        record: &Record,
        plain: &Prepared,
        compressed: Option<&Prepared>,
    ) -> bool {
        let Some(mut session) = self.slots.lift(slot) else { return false };
        let Some(frames) = session.machine.frames() else {
            self.slots.put_back(slot, session);
            return false;
        };
        let is_sender = (slot, frames.stamp) == (record.slot, record.stamp);
        if is_sender || frames.closed_ms != 0 {
            self.slots.put_back(slot, session);
            return true;
        }
        let frame = compressed.filter(|_| frames.terms.deflates).unwrap_or(plain);
        self.lend_buffer(&mut session);
        match frame {
            Prepared::Bytes(bytes) => session.machine.front_sink().extend_from_slice(bytes),
            Prepared::Shared(body) => session.machine.push_body(OutBody::Shared(Rc::clone(body)), 0),
        }
        self.mark_session(slot, &mut session);
        let verdict = self.wrote(&mut session);
        self.put_or_close(slot, session, verdict);
        verdict == Verdict::Keep
    }
}

/// A frame for all members of a room.
enum Prepared {
    Bytes(Vec<u8>),
    Shared(Rc<crate::shared_bodies::SharedBody>),
}

impl Prepared {
    fn of(frame: Vec<u8>, bodies: &mut crate::shared_bodies::SharedBodies) -> Self {
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
