//! A request whose response has not ended, with the bytes of that response that are ahead of their turn.
//! Responses of a pipeline are sent in the order of its requests (RFC 9112, 9.3.2).

use super::output::Body;
use crate::response::{Persistence, ResponseFraming};

/// How far the response is.
#[derive(Debug, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    /// The head is written; how much of the body may follow.
    Streaming(ResponseFraming),
    Done,
}

pub struct Exchange {
    pub stamp: u32,
    pub is_head: bool,
    pub is_http10: bool,
    /// The connection closes after it.
    pub closes: bool,
    /// The client expects `100 Continue` before it sends the body.
    pub expects: bool,
    /// The host pulls the body.
    pub asked: bool,
    /// It is the last exchange and its body is unfinished.
    pub has_body: bool,
    /// The host has been notified that the client disconnected.
    pub is_notified: bool,
    pub phase: Phase,
    /// The response, ahead of its turn.
    pub held: Vec<u8>,
    /// The body that follows `held`, if it is not copied.
    pub held_body: Option<Body>,
}

impl Exchange {
    #[inline]
    pub const fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Done)
    }

    pub fn held_bytes(&self) -> usize {
        self.held.len() + self.held_body.as_ref().map_or(0, Body::len)
    }

    #[inline]
    pub const fn persistence(&self) -> Persistence {
        if self.closes {
            Persistence::Close
        } else if self.is_http10 {
            Persistence::KeepAlive
        } else {
            Persistence::Default
        }
    }
}
