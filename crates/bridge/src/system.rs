//! What the machine and its system offer: clocks, cores, priorities, signals, and the costs of waiting.
//!
//! Everything that asks the operating system is here, so that the queues above it run in models without one;
//! what each system has its own calls for is in `platform`.

pub mod clock;
pub mod cores;
pub(crate) mod durations;
pub mod functions;
pub(crate) mod machine;
pub(crate) mod measure;
mod platform;
pub mod priority;
#[cfg(not(loom))]
pub mod signals;
pub(crate) mod spin;
#[cfg(not(loom))]
pub mod ticker;
pub(crate) mod usual;
