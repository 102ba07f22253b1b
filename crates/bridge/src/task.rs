//! What a task carries, and how far it has come.
//!
//! Facts alone: who may touch them, and when, is said by the task itself (port.rs).

use std::any::Any;

use crate::bytes::Bytes;
pub use crate::layout::Status;

/// What a task carries.
#[derive(Debug)]
pub struct Body {
    /// Number of the function to call.
    pub function: u32,
    /// How it ended.
    pub status: Status,
    /// Arguments, then the result.
    pub bytes: Bytes,
    /// What must stay alive as long as the bytes do, such as memory that they refer to by number.
    pub attachments: Option<Box<dyn Any + Send>>,
    /// When it was submitted, in ticks of the clock.
    pub(crate) submitted: u64,
    /// What it counts for among the bytes that wait: its arguments and the memory that moves with them.
    pub(crate) counted: usize,
    /// How many tasks wait for this one, each for the next, as far as is known: 0 for a call from a thread
    /// which is no worker. Set by who submits.
    pub depth: u32,
    /// A task of a worker called it: that worker has one more place until it is home.
    pub from_worker: bool,
}

/// How far a task has come in its zone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    /// Submitted, or between two places: in the injector, or with who has just taken it.
    Accepted,
    /// In the zone's queue, linked.
    Queued,
    /// In the deque of the worker that forked it.
    Local,
    /// There too, but its caller no longer wants it: who takes it out sends it home.
    Withdrawn,
    /// Taken by the worker in that slot, under that serial number.
    Running { slot: u32, serial: u32 },
}

impl Stage {
    /// Slots have 24 bits; a process cannot have as many threads.
    pub(crate) const fn pack(self) -> u64 {
        match self {
            Self::Accepted => 0,
            Self::Queued => 1,
            Self::Local => 2,
            Self::Withdrawn => 3,
            Self::Running { slot, serial } => 4 | (slot as u64 & 0xff_ffff) << 8 | (serial as u64) << 32,
        }
    }

    pub(crate) const fn unpack(word: u64) -> Self {
        match word & 0xff {
            0 => Self::Accepted,
            1 => Self::Queued,
            2 => Self::Local,
            3 => Self::Withdrawn,
            _ => Self::Running { slot: (word >> 8 & 0xff_ffff) as u32, serial: (word >> 32) as u32 },
        }
    }
}
