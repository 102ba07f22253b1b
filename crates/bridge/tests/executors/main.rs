//! What the executors add to a zone, one thread at a time: forked tasks and who takes them, joins, growth and
//! shrinking, capacity. What can only go wrong between threads is in models.rs and stress.rs.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod forks;
mod growth;
mod seats;
mod threads;
