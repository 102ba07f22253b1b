//! The calls of this crate that each operating system has its own for: the choice is made here only.
//!
//! Two parts depend on it: how symbols and loaded libraries are found, and how V8's C++ functions are
//! named and called (`abi`). docs/design/platforms.md lists them.

#[cfg(target_os = "linux")]
#[path = "platform/linux.rs"]
mod chosen;
#[cfg(target_os = "macos")]
#[path = "platform/macos.rs"]
mod chosen;
#[cfg(windows)]
#[path = "platform/windows.rs"]
mod chosen;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
compile_error!("crates/node/src/engine/platform.rs has no file for this system");

#[cfg(unix)]
#[path = "platform/itanium.rs"]
pub mod abi;
#[cfg(windows)]
#[path = "platform/msvc.rs"]
pub mod abi;

#[cfg(unix)]
#[path = "platform/unix.rs"]
mod unix;

pub use chosen::{libraries, own_path, stay_loaded, symbol, symbol_of};
