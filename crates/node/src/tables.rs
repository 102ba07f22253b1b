//! Interned texts, buffers, signals and settings: functions that need no mailbox.
//!
//! Any thread may call them at any time, also before `open`: they use only the process-wide tables.

use std::sync::OnceLock;

use napi_sys as sys;

use crate::{
    buffers, call,
    js::{Env, Outcome, Value, wrong},
    registry, signals,
};

call!(
    intern,
    2,
    |env, arguments| {
        let number = registry::intern(env.u32(arguments[0])? as usize, &env.string(arguments[1])?);
        Ok(env.int(number.ok_or_else(|| wrong("no such table"))? as i32))
    },
    "intern(table, text): the text's number, from 1; 0 if the table is full."
);

call!(
    interned,
    2,
    |env, arguments| {
        let text = registry::interned(env.u32(arguments[0])? as usize, env.u32(arguments[1])?);
        Ok(text.map_or(env.undefined(), |text| env.text(&text)))
    },
    "interned(table, number): the text; `undefined` if no text has that number."
);

call!(
    buffer_share,
    1,
    |env, arguments| {
        // SAFETY: src/native/index.ts has checked the value's class with V8's own test, which napi lacks.
        Ok(env.number(f64::from(unsafe { buffers::share(arguments[0]) }?)))
    },
    "bufferShare(buffer): add a reference to its memory; returns the memory's number."
);

/// Returns the argument if it is an ArrayBuffer.
fn array_buffer(env: Env, value: Value) -> Outcome<Value> {
    let mut is_buffer = false;
    // SAFETY: a valid environment, value and out pointer.
    unsafe { sys::napi_is_arraybuffer(env.0, value, &raw mut is_buffer) };
    if is_buffer { Ok(value) } else { Err(wrong("expected an ArrayBuffer")) }
}

call!(
    buffer_move,
    1,
    |env, arguments| {
        let buffer = array_buffer(env, arguments[0])?;
        // SAFETY: the value's class was checked.
        Ok(env.number(f64::from(unsafe { buffers::detach(env, buffer) }?)))
    },
    "bufferMove(buffer): detach it and keep its memory under a number, with one reference."
);

call!(
    buffer_lend,
    1,
    |env, arguments| {
        let buffer = array_buffer(env, arguments[0])?;
        // SAFETY: the value's class was checked.
        Ok(env.number(f64::from(unsafe { buffers::lend(env, buffer) }?)))
    },
    "bufferLend(buffer): keep its memory under a number, with one reference; it is not detached yet."
);

call!(
    buffer_leave,
    1,
    |env, arguments| {
        let buffer = array_buffer(env, arguments[0])?;
        // SAFETY: the value's class was checked.
        unsafe { buffers::leave(env, buffer) }?;
        Ok(env.undefined())
    },
    "bufferLeave(buffer): detach a buffer whose memory was lent."
);

call!(
    buffer_take,
    1,
    |env, arguments| {
        // SAFETY: inside a call from JavaScript.
        unsafe { buffers::take(env.u32(arguments[0])?) }
    },
    "bufferTake(number): make a buffer over that memory."
);

call!(
    buffer_release,
    1,
    |env, arguments| {
        buffers::release(env.u32(arguments[0])?);
        Ok(env.undefined())
    },
    "bufferRelease(number): drop one reference."
);

/// The token in frames of this process that user code can hold; the same for all threads.
static FRAME_TOKEN: OnceLock<[u8; 8]> = OnceLock::new();

call!(
    frame_token,
    1,
    |env, arguments| {
        let (data, length) = env.bytes(arguments[0])?;
        // SAFETY: the buffer of the argument, which no other code accesses during this call.
        let offer = unsafe { std::slice::from_raw_parts_mut(data, length) };
        let random: [u8; 8] = (&*offer).try_into().map_err(|_| wrong("expected 8 bytes"))?;
        offer.copy_from_slice(FRAME_TOKEN.get_or_init(|| random));
        Ok(env.undefined())
    },
    "frameToken(offer): replace its 8 bytes by the token of the process, which is the first offer."
);

call!(
    buffer_count,
    0,
    |env, arguments| {
        let _ = &arguments;
        Ok(env.int(buffers::count() as i32))
    },
    "bufferCount(): the number of buffers held."
);

call!(
    signal_fire,
    2,
    |env, arguments| {
        let (data, length) = env.bytes(arguments[1])?;
        // SAFETY: read before JavaScript runs again.
        let reason = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, length) } };
        signals::fire(env.u32(arguments[0])?, reason);
        Ok(env.undefined())
    },
    "signalFire(number, reason): abort the signal."
);

call!(
    signal_reason,
    1,
    |env, arguments| {
        match signals::reason(env.u32(arguments[0])?) {
            Some(reason) => env.copy(&reason),
            None => Ok(env.undefined()),
        }
    },
    "signalReason(number): its reason; `undefined` if it was not aborted."
);

call!(
    signal_forget,
    1,
    |env, arguments| {
        signals::forget(env.u32(arguments[0])?);
        Ok(env.undefined())
    },
    "signalForget(number): free the signal, which will not be aborted any more."
);
