//! The calls of this crate that each operating system has its own for: the choice is made here only.
//!
//! Both systems have the same functions; docs/design/platforms.md lists them. What the standard library or
//! LMDB does everywhere is not here.

#[cfg(unix)]
#[path = "platform/unix.rs"]
mod chosen;
#[cfg(windows)]
#[path = "platform/windows.rs"]
mod chosen;
#[cfg(not(any(unix, windows)))]
compile_error!("crates/store/src/file/platform has no file for this system");

pub use chosen::{DEVICE_ERROR, Identity, close_in_children, identity, path_bytes, try_lock};
