//! Lowering the priority of a thread against the others of the machine.
//!
//! Weight alone keeps a thread that wakes up waiting: Linux's EEVDF lets the running thread finish a slice,
//! some milliseconds, before it compares (`RUN_TO_PARITY`). Since Linux 6.12 a thread sets the length of
//! its own slices, and one that wakes up preempts at once a thread whose slices are longer than its own and
//! whose deadline, the end of its slice, is later (`PREEMPT_SHORT`). So a low-priority thread asks for
//! long slices: they move its deadlines away and leave its share as it is. Older kernels ignore the field.
//! Windows and macOS have priorities of threads as well, and schedulers that compare them at each wake-up
//! (docs/design/platforms.md).

/// Lower this thread's priority by steps of `nice`; let a thread that needs the core for microseconds only
/// preempt others when it wakes up.
pub use super::platform::{renice, short_slices};
