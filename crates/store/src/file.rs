//! The file behind a store: what it does not contain yet, the thread that writes it, and its table.
//!
//! The map in memory is what is read. [`Journal`] takes each change under the lock of its shard; `writer`
//! commits them in groups; `table` is the only part that depends on the engine.

mod journal;
mod lmdb;
mod lock;
mod pages;
mod platform;
mod problem;
mod table;
mod writer;

#[cfg(test)]
mod tests;

pub use journal::{Changes, Journal, Record};
pub use problem::Problem;
pub use writer::start;
