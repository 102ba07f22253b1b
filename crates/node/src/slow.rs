//! The functions of slow tasks and requests: conversions.
//!
//! What the numbers mean is in `layout::slow`.

use corespun_bridge::{Bridge, layout::slow::NUMBERS, registry::Text, slow};

use crate::{
    exports,
    js::{Function, Outcome, wrong},
};

pub const FUNCTIONS: &[(&str, Function)] =
    exports! { slow_last, slow_add, slow_numbers, slow_text, slow_gc, slow_thread };

/// The number of the youngest; 0 without any.
fn slow_last() -> u32 {
    slow::last()
}

/// Keep a request that this thread has ended. Returns its number.
fn slow_add(bridge: &mut Bridge, numbers: Vec<f64>, text: Text) -> Outcome<u32> {
    let numbers: [f64; NUMBERS] = numbers.try_into().map_err(|_| wrong("expected all numbers"))?;
    Ok(slow::add(bridge.mailbox().number(), numbers, text))
}

/// The numbers of those after that one, the oldest first.
fn slow_numbers(after: u32) -> Vec<f64> {
    slow::numbers(after)
}

/// The text of one; `undefined` when it was dropped.
fn slow_text(number: u32) -> Option<Text> {
    slow::text(number)
}

/// For how long its thread collected garbage while it ran one.
fn slow_gc(number: u32, ms: f64) {
    slow::set_gc(number, ms);
}

/// The mailbox of this thread.
fn slow_thread(bridge: &mut Bridge) -> u32 {
    bridge.mailbox().number()
}
