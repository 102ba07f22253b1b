//! Interned texts, buffers and signals: functions on the process-wide tables, which need no mailbox.
//!
//! Any thread may call them at any time, also before `open`.

use std::sync::{Arc, OnceLock};

use corespun_bridge::{buffers::buffers, registry, signals};

use crate::{
    buffers, exports,
    js::{AnyBuffer, Call, Env, Function, Outcome, Parameter, SharedBuffer, Value, wrong},
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    intern, interned, buffer_share, buffer_move, buffer_lend, buffer_leave, buffer_take, buffer_release,
    buffer_count, frame_token, signal_fire, signal_reason, signal_forget,
};

/// The text's number, from 1; 0 if the table is full.
fn intern(table: u32, text: Box<[u16]>) -> Outcome<u32> {
    registry::intern(table as usize, &text).ok_or_else(|| wrong("no such table"))
}

/// The text; `undefined` if no text has that number.
fn interned(table: u32, number: u32) -> Option<Arc<[u16]>> {
    registry::interned(table as usize, number)
}

/// An ArrayBuffer.
struct ArrayBuffer(Value);

impl Parameter for ArrayBuffer {
    fn take(call: &mut Call) -> Outcome<Self> {
        let (mut is_buffer, value) = (false, call.next());
        // SAFETY: a valid environment, value and out pointer.
        unsafe { napi_sys::napi_is_arraybuffer(call.env.0, value, &raw mut is_buffer) };
        if is_buffer { Ok(Self(value)) } else { Err(wrong("expected an ArrayBuffer")) }
    }
}

/// Add a reference to its memory; returns the memory's number.
fn buffer_share(buffer: SharedBuffer) -> Outcome<u32> {
    // SAFETY: src/native/index.ts has checked the value's class with V8's own test, which napi lacks.
    unsafe { buffers::share(buffer) }
}

/// Detach it and keep its memory under a number, with one reference.
fn buffer_move(env: Env, buffer: ArrayBuffer) -> Outcome<u32> {
    // SAFETY: the value's class was checked.
    unsafe { buffers::detach(env, buffer.0) }
}

/// Keep its memory under a number, with one reference; it is not detached yet.
fn buffer_lend(env: Env, buffer: ArrayBuffer) -> Outcome<u32> {
    // SAFETY: the value's class was checked.
    unsafe { buffers::lend(env, buffer.0) }
}

/// Detach a buffer whose memory was lent.
fn buffer_leave(env: Env, buffer: ArrayBuffer) -> Outcome<()> {
    // SAFETY: the value's class was checked.
    unsafe { buffers::leave(env, buffer.0) }
}

/// Make a buffer over that memory.
fn buffer_take(number: u32) -> Outcome<AnyBuffer> {
    // SAFETY: inside a call from JavaScript.
    unsafe { buffers::take(number) }
}

/// Drop one reference.
fn buffer_release(number: u32) {
    buffers().release(number);
}

/// The number of buffers held.
fn buffer_count() -> u32 {
    buffers().count() as u32
}

/// Replace the offer's 8 bytes by the token of the process, which is the first offer: the token in frames
/// that user code can hold.
fn frame_token(offer: &mut [u8]) -> Outcome<()> {
    static TOKEN: OnceLock<[u8; 8]> = OnceLock::new();
    let random: [u8; 8] = (&*offer).try_into().map_err(|_| wrong("expected 8 bytes"))?;
    offer.copy_from_slice(TOKEN.get_or_init(|| random));
    Ok(())
}

/// Abort the signal.
fn signal_fire(number: u32, reason: &[u8]) {
    signals::fire(number, reason);
}

/// The signal's reason; `undefined` if it was not aborted.
fn signal_reason(number: u32) -> Option<Arc<[u8]>> {
    signals::reason(number)
}

/// Free the signal, which will not be aborted any more.
fn signal_forget(number: u32) {
    signals::forget(number);
}
