//! The process-wide maps and locks that every thread reaches synchronously.
//!
//! A [`Store`] maps byte strings to byte strings, which the transport encodes. Locks, read-write locks and
//! semaphores are [`Semaphore`]s; a [`Channel`] is a bounded queue of byte strings. Only [`ThreadState`]
//! depends on the layout of JavaScript's calls. A store may have a file, which a thread of its own writes
//! from the [`Journal`] of changes. Elsewhere a thread is a number that receives facts through
//! [`Notify`].

mod channel;
mod compute;
mod file;
pub mod layout;
mod lock;
mod memory;
pub mod named;
mod notify;
#[cfg(all(unix, not(loom)))]
mod relayed;
mod semaphore;
mod shard;
mod store;
mod tally;
mod terms;
mod thread_state;
mod watch;

#[cfg(all(test, not(loom)))]
mod commit_tests;
#[cfg(all(test, not(loom)))]
mod fence_tests;
#[cfg(all(test, not(loom)))]
mod tests;

use memory::{bytes, key, words};

pub use bytes::{Bytes, LOCKED_COPY_MAX};
pub use channel::{Channel, Message, Put, Take};
pub use compute::Begin;
pub use file::{Journal, Problem};
pub use key::{Key, KeyRef};
pub use notify::{ByMail, Call, Fact, Notify, Parker};
pub use semaphore::{Acquire, Semaphore};
pub use shard::Entry;
pub use store::{Action, Refused, Step, Store, commit};
pub use terms::{Clock, Expected, Keeps, Limits, NewValue, Refusal, Stats, Ttl};
pub use thread_state::{ThreadState, finds, put_key};
pub use watch::{Change, Event, Pattern, Watcher};
pub use words::{WORDS, Words};
