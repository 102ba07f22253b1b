//! The process-wide maps and locks that every thread reaches synchronously.
//!
//! A [`Store`] maps byte strings to byte strings; what they mean is the transport's business. A [`Gate`] is
//! what locks, read-write locks and semaphores are; a [`Channel`] is a bounded queue of byte strings. Nobody
//! here knows of JavaScript but [`Stage`], which knows the words of its calls: a thread is an owner number,
//! and it receives facts through [`Notify`].

mod bytes;
mod channel;
mod compute;
mod gate;
mod key;
pub mod layout;
pub mod named;
mod notify;
mod shard;
mod stage;
mod store;
mod terms;
mod watch;
mod words;

#[cfg(all(test, not(loom)))]
mod fence_tests;
#[cfg(all(test, not(loom)))]
mod tests;

pub use bytes::{Bytes, LOCKED_COPY_MAX};
pub use channel::{Channel, Message, Put, Take};
pub use compute::Begin;
pub use gate::{Enter, Gate};
pub use key::{Key, KeyRef};
pub use notify::{Call, Fact, Notify, Parker};
pub use shard::Entry;
pub use stage::{Misuse, Stage, put_key};
pub use store::Store;
pub use terms::{Clock, Expected, Keeps, Life, Limits, NewValue, Refusal, Stats};
pub use watch::{Change, Event, Pattern, Watcher};
pub use words::{WORDS, Words};
