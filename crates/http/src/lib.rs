//! HTTP/1.1 connections without napi.
//!
//! The **machine** (`head`, `chunked`, `body`, `connection`, `proxy`, `response`, `websocket`) turns bytes
//! into requests and messages, and responses into bytes. It has no sockets, no clock and no unsafe code, so
//! tables, splitting tests and fuzzers reach all of it. The **reactor** (`reactor`, `selector`, `sys`,
//! `listen`, `region`) runs it on
//! sockets: a selector whose descriptor the host nests in its own loop, and regions of the host's memory
//! through which requests and responses pass in batches. README.md describes the protocol between reactor
//! and host.

mod constants;
mod files;
#[cfg(test)]
mod fuzz;
pub mod layout;
mod limits;
mod listen;
mod machine;
mod reactor;
mod region;
mod selector;
mod shared_bodies;
mod sys;
mod targets;
mod tls;

use machine::{body, chunked, connection, head, http2, proxy, response, websocket};

pub use constants::Constant;
pub use files::FilePath;
pub use limits::Limits;
pub use listen::{Endpoint, send_away, stalled_ms};
pub use reactor::{Reactor, Settings, Stats, Step, error_name};
pub use region::Region;
pub use tls::TlsError;
