//! Bytes into requests, and responses into bytes.
//!
//! No sockets, no clock and no unsafe code, so that tables, splitting tests and fuzzers reach all of it.

pub(crate) mod body;
pub(crate) mod chunked;
pub(crate) mod connection;
pub(crate) mod head;
pub(crate) mod http2;
pub(crate) mod proxy;
pub(crate) mod response;
pub(crate) mod websocket;
