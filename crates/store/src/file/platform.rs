//! The calls of this crate that each operating system has its own for: the choice is made here only.
//!
//! Both systems have the same functions; docs/design/platforms.md lists them. What the standard library or
//! LMDB does everywhere is not here.

use std::{fs, path::Path};

#[cfg(unix)]
#[path = "platform/unix.rs"]
mod chosen;
#[cfg(windows)]
#[path = "platform/windows.rs"]
mod chosen;
#[cfg(not(any(unix, windows)))]
compile_error!("crates/store/src/file/platform has no file for this system");

pub use chosen::{DEVICE_ERROR, Identity, close_in_children, identity, path_bytes, try_lock};

/// Whether the file is still the one at its path. Without a name it would end with the process.
pub fn has_name(file: Identity, path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| identity(&facts) == file)
}
