//! Loom models of the protocol in README.md: every interleaving, and every stale value the orderings allow,
//! of a few threads that do what crates/node/src/thread.rs does. A wake-up that is lost shows as a deadlock,
//! a body with two holders as a concurrent access.
//!
//! Models name the mutations of the source that they were seen to fail for; a model that cannot fail
//! shows nothing. Run: `RUSTFLAGS="--cfg loom" cargo test --release -p corespun-bridge --test models`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod capacity;
mod forks;
mod outlet;
mod seats;
mod shutdown;
mod sleep;
mod thread_cache;
