//! From responses to bytes: whole ones, and those whose body follows in pieces. What is ahead of its turn
//! goes to the exchange and not to the output.

use super::{
    Connection, Exchange, Heads, Phase, Reading, Response, ResponseFraming, ResponseHead, Tail, sink_of,
};
use crate::response::push_chunk_size;

impl Connection {
    /// Write a whole response. False: no exchange with that stamp waits for one.
    #[inline]
    pub fn respond(&mut self, stamp: u32, response: &Response<'_>, body: &[u8], heads: &Heads) -> bool {
        match self.respond_head(stamp, response, body.len() as u64, heads) {
            Some((index, has_body)) => {
                if has_body {
                    self.sink(index).extend_from_slice(body);
                }
                self.ended(index);
                true
            }
            None => false,
        }
    }

    /// Write the head of a whole response. Returns the exchange's index and whether it has a body; the caller
    /// appends that to `sink` and calls `ended`.
    #[inline]
    pub fn respond_head(
        &mut self,
        stamp: u32,
        response: &Response<'_>,
        body_bytes: u64,
        heads: &Heads,
    ) -> Option<(usize, bool)> {
        let index = self.waiting(stamp)?;
        self.largest = self.largest.max(Some(body_bytes));
        self.settle_body(index);
        let exchange = &mut self.exchanges[index];
        let persistence = exchange.persistence();
        let framing = framing_of(response.status, ResponseFraming::Length(body_bytes));
        let Response { status, kind, headers } = *response;
        let has_body = framing != ResponseFraming::None && !exchange.is_head;
        self.has_held |= index != 0;
        let sink = if index == 0 { sink_of(&mut self.out, &mut self.tails) } else { &mut exchange.held };
        heads.write(&ResponseHead { status, kind, headers, framing, persistence }, sink);
        Some((index, has_body))
    }

    /// Begin a response whose body follows. `None`: no exchange with that stamp waits for one. If the body
    /// ends with the connection, the exchanges behind it are dropped; returns their stamps.
    pub fn start(
        &mut self,
        stamp: u32,
        response: &Response<'_>,
        length: Option<u64>,
        heads: &Heads,
    ) -> Option<Vec<u32>> {
        let index = self.waiting(stamp)?;
        let exchange = &mut self.exchanges[index];
        let ends_with_connection = length.is_none() && exchange.is_http10;
        let framing = match length {
            Some(length) => ResponseFraming::Length(length),
            // Without a body to delimit, nothing states how one would be: it may have had a length.
            None if ends_with_connection || exchange.is_head => ResponseFraming::None,
            None => ResponseFraming::Chunked,
        };
        let framing = framing_of(response.status, framing);
        let is_last = ends_with_connection && !exchange.is_head;
        exchange.closes |= is_last;
        let persistence = exchange.persistence();
        let bodiless = exchange.is_head || matches!(response.status, 204 | 304);
        exchange.phase = Phase::Streaming(if bodiless { ResponseFraming::Length(0) } else { framing });
        self.has_held |= index != 0;
        let Response { status, kind, headers } = *response;
        let sink = if index == 0 { sink_of(&mut self.out, &mut self.tails) } else { &mut exchange.held };
        heads.write(&ResponseHead { status, kind, headers, framing, persistence }, sink);
        Some(if is_last { self.drop_behind(index) } else { Vec::new() })
    }

    /// The response of that exchange, which has not begun, is the last. Those behind it are dropped; returns
    /// their stamps.
    #[cold]
    pub fn close_after(&mut self, stamp: u32) -> Vec<u32> {
        let Some(index) = self.waiting(stamp) else { return Vec::new() };
        self.exchanges[index].closes = true;
        self.drop_behind(index)
    }

    /// Write an informational response, 103 (RFC 8297). False: the response has begun, or its client
    /// would take this for the response (RFC 9110, 15.2).
    pub fn hint(&mut self, stamp: u32, lines: &[u8]) -> bool {
        let Some(index) = self.waiting(stamp).filter(|&index| !self.exchanges[index].is_http10) else {
            return false;
        };
        self.has_held |= index != 0;
        let sink = self.sink(index);
        sink.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\n");
        sink.extend_from_slice(lines);
        sink.extend_from_slice(b"\r\n");
        true
    }

    /// Close after that exchange, whose own request body may still be read, and drop those behind it.
    #[cold]
    fn drop_behind(&mut self, index: usize) -> Vec<u32> {
        self.closing = true;
        self.is_cut |= !self.kept.is_empty() || index + 1 < self.exchanges.len();
        if !(self.exchanges[index].has_body && self.is_in_body()) {
            self.reading = Reading::Nothing;
            self.kept = Vec::new();
            self.ready = Vec::new();
        }
        let dropped = self.exchanges.drain(index + 1..).filter(Exchange::is_open);
        dropped.map(|exchange| exchange.stamp).collect()
    }

    /// Write a piece of the body; bytes beyond `content-length` are dropped. Returns the bytes that wait,
    /// `None` unless the response is streaming.
    pub fn write(&mut self, stamp: u32, piece: &[u8]) -> Option<usize> {
        let index = self.position(stamp)?;
        let exchange = &mut self.exchanges[index];
        let is_front = index == 0;
        let sink = if is_front { sink_of(&mut self.out, &mut self.tails) } else { &mut exchange.held };
        match &mut exchange.phase {
            Phase::Streaming(ResponseFraming::Length(left)) => {
                let here = piece.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= here as u64;
                sink.extend_from_slice(&piece[..here]);
            }
            Phase::Streaming(ResponseFraming::None) => sink.extend_from_slice(piece),
            // An empty chunk would end the body.
            Phase::Streaming(ResponseFraming::Chunked) if piece.is_empty() => {}
            Phase::Streaming(ResponseFraming::Chunked) => {
                push_chunk_size(piece.len(), sink);
                sink.extend_from_slice(piece);
                sink.extend_from_slice(b"\r\n");
            }
            Phase::Waiting | Phase::Done => return None,
        }
        Some(if is_front { self.unsent() } else { self.exchanges[index].held.len() })
    }

    /// End a streaming response. `None`: the body is shorter than `content-length`, so the connection has to
    /// be cut.
    pub fn end(&mut self, stamp: u32) -> Option<bool> {
        let Some(index) = self.position(stamp) else { return Some(false) };
        match self.exchanges[index].phase {
            Phase::Streaming(ResponseFraming::Length(0) | ResponseFraming::None) => {}
            Phase::Streaming(ResponseFraming::Length(_)) => return None,
            Phase::Streaming(ResponseFraming::Chunked) => self.sink(index).extend_from_slice(b"0\r\n\r\n"),
            Phase::Waiting | Phase::Done => return Some(false),
        }
        self.settle_body(index);
        self.ended(index);
        Some(true)
    }

    /// A response is complete: remove the exchanges at the front whose responses are, and send what the next
    /// one holds.
    #[inline]
    pub fn ended(&mut self, index: usize) {
        self.exchanges[index].phase = Phase::Done;
        if index != 0 {
            return;
        }
        while let Some(front) = self.exchanges.front_mut() {
            if !front.held.is_empty() {
                sink_of(&mut self.out, &mut self.tails).append(&mut front.held);
            }
            if let Some(body) = front.held_body.take() {
                self.tails.push_back(Tail { body, sent: 0, after: Vec::new() });
            }
            if front.is_open() {
                self.continue_front();
                return;
            }
            let closes = front.closes;
            self.exchanges.pop_front();
            if closes {
                self.reading = Reading::Nothing;
                self.closing = true;
                self.exchanges.clear();
            }
        }
        self.has_held = false;
        if matches!(self.reading, Reading::Upgrade) {
            self.reading = Reading::Head; // it was not granted
        }
    }
}

/// A response without content has no framing fields.
const fn framing_of(status: u16, otherwise: ResponseFraming) -> ResponseFraming {
    match status {
        204 | 304 => ResponseFraming::None,
        _ => otherwise,
    }
}
