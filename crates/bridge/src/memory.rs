//! Memory that threads share, move and address by numbers.
//!
//! Here are the owners of bytes and their numbers; who may read them when is the protocol of the zone.

#[cfg(not(loom))]
pub mod buffers;
pub(crate) mod bytes;
pub(crate) mod handles;
#[cfg(not(loom))]
pub(crate) mod numbers;
pub(crate) mod scratch;
