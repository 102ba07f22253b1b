//! The functions by which the threads of a process count: conversions.
//!
//! What a sheet contains is JavaScript's business (src/metrics/sheet.ts).

use corespun_bridge::{Bridge, Misuse, registry::Text, sheets};

use crate::{exports, js::Function};

pub const FUNCTIONS: &[(&str, Function)] =
    exports! { count_by, counted_by, sheet_take, sheet_add, sheets_all, zone_functions };

/// Have each thread import that module, which counts.
fn count_by(module: Text) {
    sheets::start(module);
}

/// The module that threads import; `undefined`: nothing counts.
fn counted_by() -> Option<Text> {
    sheets::module()
}

/// The number of a buffer in which a thread has counted that has ended, and this one counts on; 0: none.
fn sheet_take(bridge: &mut Bridge) -> u32 {
    sheets::take(bridge.mailbox())
}

/// This thread counts in the buffer with that number, of which the sheet takes over a reference.
fn sheet_add(bridge: &mut Bridge, buffer: u32) {
    sheets::add(bridge.mailbox(), buffer);
}

/// Of all such buffers: the number, and that of its thread's mailbox, 0 if it has ended.
fn sheets_all() -> Vec<u32> {
    sheets::all()
}

/// Of a zone, as doubles: calls that were not accepted, by the order of `Refusal`; then what each function
/// did, as `Functions::encode` writes it with those bounds, in ns.
fn zone_functions(bridge: &mut Bridge, handle: u32, bounds: Vec<f64>) -> Result<Vec<f64>, Misuse> {
    Ok(bridge.zone(handle)?.function_counts(&bounds))
}
