//! The functions by which the threads of a process count: conversions.
//!
//! What a sheet contains is JavaScript's business (src/metrics/sheet.ts).

use corespun_bridge::{
    Bridge, Misuse,
    registry::{self, Text},
    sheets,
};

use crate::{exports, js::Function};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    count_by, counted_by, sheet_take, sheet_add, sheets_all, zone_functions, zone_queue, name_tenant,
    tenant_name,
};

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

/// What `Zone::function_counts` has of a zone, with those bounds, in ns.
fn zone_functions(bridge: &mut Bridge, handle: u32, bounds: Vec<f64>) -> Result<Vec<f64>, Misuse> {
    Ok(bridge.zone(handle)?.function_counts(&bounds))
}

/// What waits in the zone of that name in an order, as `Zone::waiting_ordered` writes it; empty if there is
/// no such zone.
fn zone_queue(id: Text) -> Vec<f64> {
    registry::find_zone(&id).map_or_else(Vec::new, |entry| entry.zone.waiting_ordered())
}

/// A tenant is called so, by the two halves of its hash.
fn name_tenant(low: u32, high: u32, name: Text) {
    sheets::name_tenant(hash_of(low, high), name);
}

fn tenant_name(low: u32, high: u32) -> Option<Text> {
    sheets::tenant_name(hash_of(low, high))
}

fn hash_of(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
