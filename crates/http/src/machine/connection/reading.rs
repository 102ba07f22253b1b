//! From bytes to requests and bodies, and the ways in which reading ends: the client's end, a fault, a body
//! that is not worth reading, a server that stops.

use super::{
    Body, Connection, DISCARD_BYTES_MAX, Decoded, Framing, Limits, Next, Parsed, Parser, Reading, Refusal,
    Request, Rest, proxy,
};

impl Connection {
    /// Nothing of a request has arrived yet.
    pub const fn is_unused(&self) -> bool {
        self.served == 0 && self.kept.is_empty() && self.is_before_head() && !self.closing
    }

    /// Whether the header of the PROXY protocol has not been read.
    pub const fn is_before_proxy(&self) -> bool {
        matches!(self.reading, Reading::Proxy)
    }

    /// Whether no request has been read.
    pub const fn is_first(&self) -> bool {
        self.served == 0 && matches!(self.reading, Reading::Head)
    }

    pub fn is_in_head(&self) -> bool {
        self.is_before_head() && !self.kept.is_empty()
    }

    pub const fn is_discarding(&self) -> bool {
        matches!(self.reading, Reading::Discard(..))
    }

    /// Whether the body of the last exchange is unfinished.
    pub const fn is_in_body(&self) -> bool {
        matches!(self.reading, Reading::Body(_))
    }

    /// Whether that exchange's body has not ended; it may have failed.
    pub fn awaits_body(&self, stamp: u32) -> bool {
        self.exchanges.back().is_some_and(|last| last.stamp == stamp && last.has_body)
    }

    /// Bytes missing from the unfinished body, if its length is known.
    pub const fn body_left(&self) -> Option<u64> {
        match &self.reading {
            Reading::Body(body) => body.left(),
            _ => None,
        }
    }

    /// The next request in `data`, which begins with the bytes that were not used before. A body that is
    /// whole is decoded in place.
    /// A refusal is to be passed to `refuse`.
    pub fn next(&mut self, data: &mut [u8], limits: &Limits, parser: &mut Parser) -> Result<Next, Refusal> {
        if !self.wants_input(limits) {
            return Ok(Next::Wait);
        }
        if data.is_empty() {
            return Ok(Next::Partial);
        }
        match self.reading {
            Reading::Discard(..) => return Ok(self.discard(data, limits)),
            Reading::Proxy => return self.read_proxy(data, limits),
            Reading::Frames(ref mut frames) => {
                let (used, received) = frames.receive(data);
                return Ok(Next::Frames(used, received));
            }
            _ => {}
        }
        let Parsed::Whole(head) = parser.parse(data, limits)? else { return Ok(Next::Partial) };
        self.served += 1;
        let closes =
            !head.keeps_alive || self.closes_after_next || self.served >= limits.requests_per_connection_max;
        let mut request = Request { head, body_bytes: 0, is_whole: true, consumed: head.bytes, closes };
        if head.framing != Framing::Length(0) {
            let mut body = Body::new(head.framing);
            let rest = &mut data[head.bytes..];
            let Decoded { consumed, produced, is_end } = body.decode(rest, limits)?;
            request.consumed += consumed;
            request.body_bytes = produced;
            if !is_end {
                request.is_whole = false;
                self.ready.extend_from_slice(&rest[..produced]);
                self.reading = Reading::Body(body);
            } else if self.keep_trailers(0, body.take_trailers()) {
                if closes {
                    self.reading = Reading::Nothing;
                }
                return Ok(Next::Trailed(request));
            }
        }
        if closes && request.is_whole {
            self.reading = Reading::Nothing;
        } else if head.upgrades {
            self.reading = Reading::Upgrade;
        }
        Ok(Next::Request(request))
    }

    #[cold]
    fn read_proxy(&mut self, data: &[u8], limits: &Limits) -> Result<Next, Refusal> {
        let proxy::Parsed::Whole { bytes, client } = proxy::parse(data, limits.header_bytes_max)? else {
            return Ok(Next::Partial);
        };
        self.client = client;
        self.reading = Reading::Head;
        Ok(Next::Skipped(bytes))
    }

    fn discard(&mut self, data: &mut [u8], limits: &Limits) -> Next {
        let Reading::Discard(body, budget) = &mut self.reading else { return Next::Wait };
        match body.decode(data, limits) {
            Ok(Decoded { consumed, is_end: true, .. }) => {
                self.reading = Reading::Head;
                Next::Skipped(consumed)
            }
            Ok(Decoded { consumed, .. }) if consumed as u64 <= *budget => {
                *budget -= consumed as u64;
                Next::Skipped(consumed)
            }
            // Its response has been written, so a malformed body closes the connection without a refusal.
            _ => {
                self.stop_reading();
                Next::Wait
            }
        }
    }

    /// Decode bytes of the unfinished body, in place.
    /// After a refusal nothing more is read, and the connection closes after the response.
    pub fn decode(&mut self, data: &mut [u8], limits: &Limits) -> Result<Decoded, Refusal> {
        let Reading::Body(body) = &mut self.reading else {
            return Ok(Decoded { consumed: 0, produced: 0, is_end: true });
        };
        let decoded = body.decode(data, limits).inspect_err(|_| self.stop_reading())?;
        if decoded.is_end {
            self.body_ended();
        }
        Ok(decoded)
    }

    fn body_ended(&mut self) {
        let stamp = self.exchanges.back().map_or(0, |last| last.stamp);
        if let Reading::Body(mut body) = std::mem::replace(&mut self.reading, Reading::Head) {
            self.keep_trailers(stamp, body.take_trailers());
        }
        if let Some(last) = self.exchanges.back_mut() {
            last.has_body = false;
            last.expects = false;
            if last.closes {
                self.reading = Reading::Nothing;
            }
        }
    }

    /// The response is complete before the body of its request: decide whether to read the rest.
    #[inline]
    pub(super) fn settle_body(&mut self, index: usize) {
        if self.exchanges[index].has_body {
            self.abandon_body(index);
        }
    }

    #[cold]
    fn abandon_body(&mut self, index: usize) {
        let exchange = &mut self.exchanges[index];
        exchange.has_body = false;
        self.ready = Vec::new();
        let Reading::Body(body) = std::mem::replace(&mut self.reading, Reading::Nothing) else { return };
        let is_small = body.left().is_none_or(|left| left <= DISCARD_BYTES_MAX);
        if exchange.closes || exchange.expects || !is_small {
            exchange.closes = true;
            self.is_cut = true;
        } else {
            self.reading = Reading::Discard(body, DISCARD_BYTES_MAX);
        }
    }

    /// Read nothing more and close after the open exchanges.
    pub fn stop_reading(&mut self) {
        self.reading = Reading::Nothing;
        self.kept = Vec::new();
        self.is_cut = true;
        self.close_after_last();
    }

    fn close_after_last(&mut self) {
        self.closing = true;
        if let Some(last) = self.exchanges.back_mut() {
            last.closes = true;
        }
    }

    /// The client sends nothing more. Returns whether the open exchanges are the last; a part of a request is
    /// dropped then. False: unread bytes, or a body, come first.
    pub fn end_input(&mut self, rest: Rest) -> bool {
        if rest == Rest::Unread
            || self.is_in_body()
            || self.frames().is_some_and(|frames| frames.end.is_some())
        {
            return false;
        }
        // The end of a WebSocket is reported when its connection is closed.
        if !matches!(self.reading, Reading::Frames(_)) {
            self.reading = Reading::Nothing;
        }
        self.kept = Vec::new();
        self.close_after_last();
        true
    }

    /// The request that is read next is the last.
    pub const fn close_after_next(&mut self) {
        self.closes_after_next = true;
    }

    /// Finish what has begun and close. The last response carries `connection: close` if it has not begun.
    pub fn close_soon(&mut self) {
        // These have their own ways to close.
        if matches!(self.reading, Reading::Frames(_) | Reading::Http2(_)) {
            return;
        }
        self.closes_after_next = true;
        let is_between = self.is_before_head() && self.kept.is_empty();
        self.is_cut |= self.is_discarding();
        if is_between || self.is_discarding() {
            self.reading = Reading::Nothing;
        }
        if !self.is_before_head() {
            self.close_after_last();
        }
    }

    /// Bytes remain that were not used. If nothing more is read, the client was still sending.
    #[inline]
    pub const fn note_unused(&mut self) {
        self.is_cut |= self.closing || matches!(self.reading, Reading::Nothing);
    }

    /// Whether the client was still sending when reading stopped: then its input is drained for a while
    /// before closing, or a reset may overtake the response.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }
}
