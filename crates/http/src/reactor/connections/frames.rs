//! Connections that have become WebSockets: how they begin and end, their deadlines, and who is in the rooms
//! of this thread.

use super::{Connections, Verdict, slots::Session};
use crate::{
    connection::Response,
    layout::event,
    reactor::settings::HostEvent,
    websocket::{End, Kind, WebSocket, code},
};

/// The response to an upgrade that comes too late.
pub(super) const LATE: Response<'_> = Response { status: 503, kind: 1, headers: b"" };
pub(super) const LATE_WHY: &[u8] = b"the connection cannot become a WebSocket now\n";

impl Connections {
    /// The host has handled the messages that were sent before.
    pub(crate) fn end_sockets(&mut self, ending: Vec<u32>) {
        for slot in ending {
            let Some(mut session) = self.slots.lift(slot) else { continue };
            self.end_frames(slot, &mut session);
            self.slots.put_back(slot, session);
        }
    }

    /// End a WebSocket: a close frame, which echoes that of the client if it has sent one, then the
    /// connection.
    pub(crate) fn end_frames(&mut self, slot: u32, session: &mut Session) {
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
            self.remove_member(*room, slot);
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
    pub(crate) fn upgrade(
        &mut self,
        (slot, stamp): (u32, u32),
        session: &mut Session,
        lines: &[u8],
        frames: Box<WebSocket>,
    ) {
        if !session.machine.upgrade(stamp, lines, frames) {
            session.machine.respond(stamp, &LATE, LATE_WHY, &self.heads);
            return self.report_late(slot, stamp);
        }
        session.share = u32::MAX;
        if self.is_stopping {
            session.machine.send_close(code::GOING_AWAY, b"", self.now_ms);
        }
    }

    /// An upgrade has come too late.
    pub(super) fn report_late(&mut self, slot: u32, stamp: u32) {
        let kind = event::SOCKET_CLOSED | u32::from(code::ABNORMAL) << 16;
        self.host_events.push_back(HostEvent { kind, slot, stamp });
    }

    pub(crate) fn enter(&mut self, room: u32, slot: u32, session: &mut Session) {
        self.rooms.entry(room).or_default().insert(slot);
        if let Some(frames) = session.machine.frames_mut() {
            frames.rooms.push(room);
        }
    }

    pub(crate) fn leave(&mut self, room: u32, slot: u32, session: &mut Session) {
        self.remove_member(room, slot);
        if let Some(frames) = session.machine.frames_mut() {
            frames.rooms.retain(|entered| *entered != room);
        }
    }

    fn remove_member(&mut self, room: u32, slot: u32) {
        if let Some(members) = self.rooms.get_mut(&room) {
            members.remove(&slot);
            if members.is_empty() {
                self.rooms.remove(&room);
            }
        }
    }

    pub(crate) fn is_deflating(&self, slot: u32) -> bool {
        let frames = self.slots.get(slot).and_then(|session| session.machine.frames());
        frames.is_some_and(|frames| frames.terms.deflates)
    }
}
