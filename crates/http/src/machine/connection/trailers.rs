//! Trailers of requests, from the end of a body to the end of its exchange; and of responses.
//!
//! Few bodies have trailers, so they are beside the exchanges and not in them. Those of exchanges that have
//! ended are dropped when the next ones come, so a connection stores those of `pipeline_max` bodies at most.

use super::{Connection, Phase, ResponseFraming};

impl Connection {
    /// Store the trailers of a body that has ended; the stamp is 0 if its exchange is not open yet. Returns
    /// whether there are any.
    pub(super) fn keep_trailers(&mut self, stamp: u32, lines: Vec<u8>) -> bool {
        if lines.is_empty() {
            return false;
        }
        let mut before = std::mem::take(&mut self.trailers);
        before.retain(|(stamp, _)| self.is_in_flight(*stamp));
        before.push((stamp, lines));
        self.trailers = before;
        true
    }

    /// The exchange of the request that was returned as [`Trailed`](super::Next::Trailed).
    pub fn bind_trailers(&mut self, stamp: u32) {
        if let Some(last) = self.trailers.last_mut() {
            last.0 = stamp;
        }
    }

    /// The trailer lines of the body of a request; empty before its end.
    pub fn trailers(&self, stamp: u32) -> &[u8] {
        if let Some(http2) = self.http2() {
            return http2.trailers(stamp);
        }
        self.trailers.iter().find(|(owner, _)| *owner == stamp).map_or(&[], |(_, lines)| lines)
    }

    /// End a streaming response with trailers, which only a chunked one can have; as `end`.
    pub fn end_with_trailers(&mut self, stamp: u32, lines: &[u8]) -> Option<bool> {
        let found = self.position(stamp).filter(|&index| {
            matches!(self.exchanges[index].phase, Phase::Streaming(ResponseFraming::Chunked))
        });
        let Some(index) = found else { return self.end(stamp) };
        let sink = self.sink(index);
        sink.extend_from_slice(b"0\r\n");
        sink.extend_from_slice(lines);
        sink.extend_from_slice(b"\r\n");
        self.settle_body(index);
        self.ended(index);
        Some(true)
    }
}
