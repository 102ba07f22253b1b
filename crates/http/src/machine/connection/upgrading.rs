//! From requests to frames: the connection of a request that asked for a WebSocket, and what is sent on it.
//! Bytes behind that request are not read before its response: only that decides what they are.

use super::{Connection, Reading};
use crate::{
    http2::Http2,
    websocket::{Kind, WebSocket, write_close, write_frame},
};

impl Connection {
    /// A WebSocket from its first byte on.
    pub fn of_frames(frames: Box<WebSocket>) -> Self {
        Self { reading: Reading::Frames(frames), ..Self::default() }
    }

    /// Grant the upgrade that this exchange asked for: `lines` complete the response. False: nothing was
    /// asked, something was sent, or the client has ended.
    pub fn upgrade(&mut self, stamp: u32, lines: &[u8], frames: Box<WebSocket>) -> bool {
        if !matches!(self.reading, Reading::Upgrade) || self.waiting(stamp) != Some(0) || self.closing {
            return false;
        }
        self.exchanges.clear();
        let sink = self.front_sink();
        sink.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
        sink.extend_from_slice(lines);
        sink.extend_from_slice(b"\r\n");
        self.reading = Reading::Frames(frames);
        true
    }

    pub const fn frames(&self) -> Option<&WebSocket> {
        match &self.reading {
            Reading::Frames(frames) => Some(frames),
            _ => None,
        }
    }

    /// The same, to change it.
    pub const fn frames_mut(&mut self) -> Option<&mut WebSocket> {
        match &mut self.reading {
            Reading::Frames(frames) => Some(frames),
            _ => None,
        }
    }

    /// This connection speaks HTTP/2 from its first byte on.
    pub fn become_http2(&mut self, http2: Box<Http2>) {
        self.reading = Reading::Http2(http2);
    }

    /// What it is, if that is HTTP/2.
    pub const fn http2(&self) -> Option<&Http2> {
        match &self.reading {
            Reading::Http2(http2) => Some(http2),
            _ => None,
        }
    }

    /// The same, to change it.
    pub const fn http2_mut(&mut self) -> Option<&mut Http2> {
        match &mut self.reading {
            Reading::Http2(http2) => Some(http2),
            _ => None,
        }
    }

    /// The same, and where its bytes go.
    pub fn http2_and_out(&mut self) -> Option<(&mut Http2, &mut Vec<u8>)> {
        match &mut self.reading {
            Reading::Http2(http2) => Some((http2, &mut self.out)),
            _ => None,
        }
    }

    /// It has ended: close after what waits is sent.
    pub fn end_http2(&mut self) -> Option<Box<Http2>> {
        self.http2()?;
        self.closing = true;
        match std::mem::replace(&mut self.reading, Reading::Nothing) {
            Reading::Http2(http2) => {
                self.is_cut |= http2.is_cut();
                Some(http2)
            }
            _ => None,
        }
    }

    /// Send a frame behind all that waits. Nothing follows a close frame.
    pub fn send_frame(&mut self, kind: Kind, is_compressed: bool, payload: &[u8]) {
        match self.frames() {
            Some(frames) if frames.terms.is_raw && kind == Kind::Binary => {
                self.front_sink().extend_from_slice(payload);
            }
            Some(frames) if !frames.terms.is_raw && frames.closed_ms == 0 => {
                write_frame(self.front_sink(), kind, is_compressed, payload);
            }
            _ => {}
        }
    }

    /// Send a close frame, unless one was sent.
    pub fn send_close(&mut self, code: u16, reason: &[u8], now_ms: u64) {
        let Some(frames) = self.frames_mut().filter(|frames| frames.closed_ms == 0) else { return };
        frames.closed_ms = now_ms.max(1);
        if !frames.terms.is_raw {
            write_close(self.front_sink(), code, reason);
        }
    }

    /// The WebSocket has ended: close after what waits is sent. `is_cut`: the client may still be sending.
    pub fn end_frames(&mut self, is_cut: bool) -> Option<Box<WebSocket>> {
        self.frames()?;
        let reading = std::mem::replace(&mut self.reading, Reading::Nothing);
        self.is_cut |= is_cut || !self.kept.is_empty();
        self.kept = Vec::new();
        self.closing = true;
        match reading {
            Reading::Frames(frames) => Some(frames),
            _ => None,
        }
    }
}
