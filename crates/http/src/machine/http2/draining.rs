//! Requests whose response is complete while their client still sends (RFC 9113, 8.1). A reset would be
//! allowed, but clients that notice it before the response do not report that. So what arrives is dropped, as
//! long as a connection of HTTP/1.1 lingers: for a time, and while the client sends at the least rate.

use std::task::Poll;

use h2::RecvStream;

use super::{Exchange, context, limiting::Budget};

/// How long nothing may arrive.
const SILENT_MS: u64 = 2_000;

#[derive(Default)]
pub(super) struct Draining {
    rests: Vec<Rest>,
    linger_ms: u64,
    /// The connection leaves: nothing is waited for.
    is_over: bool,
}

struct Rest {
    receive: RecvStream,
    /// 0: it was not looked at yet.
    until_ms: u64,
    time: Budget,
}

impl Rest {
    fn due(&self) -> u64 {
        self.time.end().map_or(self.until_ms, |end| end.min(self.until_ms))
    }

    /// Returns the bytes that were dropped; `None`: the client sends no more.
    fn read(&mut self) -> Option<u64> {
        let mut dropped = 0;
        loop {
            match self.receive.poll_data(&mut context()) {
                Poll::Pending => return Some(dropped),
                Poll::Ready(Some(Ok(bytes))) => {
                    dropped += bytes.len() as u64;
                    // It cannot fail: these bytes are counted.
                    let _ = self.receive.flow_control().release_capacity(bytes.len());
                }
                Poll::Ready(_) => return None,
            }
        }
    }
}

impl Draining {
    pub fn new(linger_ms: u64) -> Self {
        Self { linger_ms, ..Self::default() }
    }

    /// The response of that one is complete.
    pub fn add_rest(&mut self, exchange: &mut Exchange) {
        if let Some(mut receive) = exchange.receive.take() {
            // It cannot fail: these bytes are counted.
            let _ = receive.flow_control().release_capacity(exchange.ready.len() - exchange.credited);
            self.add(receive);
        }
    }

    pub fn add(&mut self, receive: RecvStream) {
        if self.linger_ms > 0 && !self.is_over {
            self.rests.push(Rest { receive, until_ms: 0, time: Budget::new(SILENT_MS) });
        }
    }

    /// Drop what has arrived. Returns whether clients have room for more.
    pub fn read(&mut self, now_ms: u64) -> bool {
        let mut has_dropped = false;
        self.rests.retain_mut(|rest| {
            if rest.until_ms == 0 {
                rest.until_ms = now_ms + self.linger_ms;
                rest.time.begin(now_ms);
            }
            let Some(dropped) = rest.read() else { return false };
            if dropped > 0 {
                has_dropped = true;
                rest.time.charge(now_ms, dropped);
                rest.time.begin(now_ms);
            }
            true
        });
        has_dropped
    }

    pub fn is_empty(&self) -> bool {
        self.rests.is_empty()
    }

    pub fn deadline(&self) -> Option<u64> {
        self.rests.iter().map(Rest::due).min()
    }

    /// Reset the streams whose time is over.
    pub fn time_out(&mut self, now_ms: u64) {
        self.rests.retain(|rest| now_ms < rest.due());
    }

    pub fn leave(&mut self) {
        self.is_over = true;
        self.rests.clear();
    }
}
