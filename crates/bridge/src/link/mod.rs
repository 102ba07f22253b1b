//! A worker that is a process: tasks travel to it, and results back, over a pair of sockets.
//!
//! In the parent a native thread is the worker of a slot ([`start`]): it takes tasks from the zone as any
//! worker does, writes them to the socket, and completes them with what comes back. In the child a zone of
//! the same name has the main thread as its only worker; its tasks are those that arrive ([`Child`]). So
//! neither the queue nor the loop of a worker differs. By a second pair the child asks the parent for numbers
//! of interned texts: frames have the same numbers on both sides ([`tables`]). Numbers of what one process
//! alone has (memory, handles) are refused before a frame is written. The channels of streams continue in the
//! other process ([`Conduits`]). README.md has the protocol.

mod channel;
mod child;
mod outlet;
mod parent;
mod platform;
mod relay;
pub mod tables;

pub use child::Child;
pub use parent::{Link, keep, start, take};
pub use platform::{end_with_parent, limit_memory};
pub use relay::{Conduit, Conduits, Leaving, Numbers};
