//! What the machine and its system offer: clocks, cores, priorities, signals, and the costs of waiting.
//!
//! Everything that asks the operating system is here, so that the queues above it run in models without one.

pub mod clock;
pub mod cores;
pub(crate) mod machine;
pub(crate) mod measure;
pub mod priority;
#[cfg(not(loom))]
pub mod signals;
pub(crate) mod spin;
#[cfg(not(loom))]
pub mod ticker;
