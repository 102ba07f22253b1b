//! TLS by rustls, with ring: ciphertext from a socket to plaintext for the machine, and back.
//!
//! `context` is what a server has (certificates by name, tickets, protocols), `settings` how the host passes
//! it, `session` one connection. Nothing here waits: a connection whose certificate the host has to choose
//! is asked about and replayed. ring and not aws-lc: it is smaller, needs no cmake, and any C compiler builds
//! it for all targets. Early data is off, since it can be replayed; renegotiation is refused by rustls.

mod context;
mod session;
mod settings;

pub use context::{Context, TlsError};
pub use session::{Failure, News, PLAIN_HTTP, Session};
