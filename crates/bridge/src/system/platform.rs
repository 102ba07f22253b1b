//! The calls of this crate that each operating system has its own for: the choice is made here only.
//!
//! Every system has the same functions. One that a system lacks does nothing there and its result shows
//! that; docs/design/platforms.md lists what that costs. What the standard library does everywhere (locks,
//! parking, monotonic clocks, the number of cores) is not here.

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
compile_error!("crates/bridge/src/system/platform has no file for this system");

#[allow(unused_imports, reason = "no counter is read on other processors, and in models")]
pub use chosen::can_trust_counter;
pub use chosen::{allowed_cores, current_core, move_from, pin, renice, short_slices, thread_cpu_ns};

/// Whether a thread can be pinned to a core and its priority compared when another wakes up: without, the
/// ticker does not run.
pub use chosen::HAS_TICKER;
