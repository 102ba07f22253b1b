//! Mailboxes, task queues and wake-ups between the threads of a process.
//!
//! The part of the native core that does not depend on JavaScript: a [`Receiver`] submits tasks to a
//! [`Zone`], a [`Worker`] takes and completes them, and each returns to the receiver's [`Mailbox`] exactly
//! once. README.md in this folder states the protocol, its states and the races it excludes; loom explores
//! it, Miri runs it.

#[cfg(not(loom))]
mod bridge;
mod broadcast;
mod call_sites;
#[cfg(not(loom))]
mod chains;
mod deque;
pub mod layout;
#[cfg(all(unix, not(loom)))]
pub mod link;
mod mailbox;
mod memory;
#[cfg(loom)]
#[path = "link/outlet.rs"]
pub mod outlet;
mod receiver;
#[cfg(not(loom))]
pub mod registry;
#[cfg(not(loom))]
pub mod sheets;
#[cfg(not(loom))]
pub mod slow;
mod sync;
mod system;
mod task;
pub mod thread_cache;
mod turns;
mod zone;

#[cfg(not(loom))]
pub use memory::buffers;
#[cfg(not(loom))]
use memory::numbers;
use memory::{bytes, handles, scratch};

#[cfg(not(loom))]
pub use system::signals;
#[cfg(not(loom))]
pub use system::ticker;
pub use system::{clock, cores, functions, priority};
use system::{durations, machine, measure, spin, usual};

#[cfg(not(loom))]
pub use bridge::{Attachments, Bridge, EventLoop};
pub use broadcast::{Broadcast, Failure};
pub use bytes::Bytes;
pub use call_sites::{CallSite, CallSites};
pub use handles::Handles;
pub use machine::Machine;
pub use mailbox::{Mail, Mailbox, Wake};
pub use measure::Times;
#[cfg(not(loom))]
pub use numbers::decode_plan;
pub use receiver::Receiver;
pub use scratch::{Memory, Scratch};
pub use spin::Spin;
pub use task::{Body, Status, Task};
pub use turns::{Rounds, Steps};
pub use zone::{
    Cancellation, Counts, Executor, Grown, Growth, Help, Limits, Next, Order, Overdue, Priority, Refusal,
    Shrunk, Slot, Submission, Worker, WorkerCounts, Zone,
};

/// A call with handles or numbers that nothing has: a bug of the TypeScript side.
#[derive(Debug, Eq, PartialEq)]
pub struct Misuse(pub &'static str);
