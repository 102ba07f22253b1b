//! HTTP/1.1 connections without napi.
//!
//! Two halves. The **machine** (`head`, `chunked`, `body`, `connection`, `answer`) is bytes in, requests and
//! bytes out; it has no sockets, no clock and no unsafe code, so tables, splitting tests and fuzzers reach
//! all of it. The **reactor** (`reactor`, `sys`, `listen`, `region`) puts it on sockets: an epoll descriptor
//! that a host nests in its own loop, and two regions of the host's memory through which requests and answers
//! pass in batches. README.md has the protocol between the two.

pub mod answer;
mod bodies;
pub mod body;
pub mod chunked;
pub mod connection;
pub mod constants;
#[cfg(test)]
mod fuzz;
pub mod head;
pub mod known;
pub mod layout;
pub mod limits;
mod listen;
pub mod reactor;
pub mod region;
mod sys;
mod targets;

pub use limits::Limits;
pub use reactor::{Reactor, Settings, Step};
