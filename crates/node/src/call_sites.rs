//! The call site of a function (script and position) as one number, and the function number stored for it.
//!
//! V8 has this information and napi does not expose it, so the methods of `v8::Function` are looked up by
//! name. Where they are missing, or a function has no script, the result is -1 and callers distinguish
//! functions by their source text.

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    sync::LazyLock,
};

use corespun_bridge::{CallSite, CallSites};
use napi_sys as sys;

use crate::{
    exports,
    js::{AnyFunction, Env, Function, Value},
    v8::{CurrentIsolate, abi, symbol},
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    function_known, function_remember, function_origin,
};

/// Memory for the `v8::ScriptOrigin` that V8 returns: more words than it has in any release.
#[repr(C)]
struct OriginWords([usize; 16]);

type GetOrigin = abi::Getter<OriginWords>;
type GetInt = unsafe extern "C" fn(*mut c_void) -> c_int;

struct V8Function {
    script: GetInt,
    position: Option<GetInt>,
    line: GetInt,
    column: GetInt,
    origin: Option<(GetOrigin, CurrentIsolate)>,
}

static V8_FUNCTION: LazyLock<Option<V8Function>> = LazyLock::new(|| {
    // SAFETY: const methods without parameters that return an int, and one that returns an origin.
    unsafe {
        let origin = symbol(abi::SCRIPT_ORIGIN);
        Some(V8Function {
            script: symbol(abi::SCRIPT_ID)?,
            position: symbol(abi::SCRIPT_POSITION),
            line: symbol(abi::SCRIPT_LINE)?,
            column: symbol(abi::SCRIPT_COLUMN)?,
            origin: origin.zip(symbol(abi::CURRENT_ISOLATE)),
        })
    }
});

thread_local! {
    /// Function numbers by call site; an environment never changes threads.
    static KNOWN: RefCell<CallSites> = RefCell::default();
}

/// The number stored for its call site; 0 if none is stored, -1 if it has no call site.
fn function_known(env: Env, value: AnyFunction) -> i32 {
    // SAFETY: read from the call in progress.
    unsafe { known(env, value) }.map_or(-1, u32::cast_signed)
}

/// The number stored for the call site of `value`; 0 if none is stored, `None` if it has no call site.
///
/// # Safety
///
/// Called during a call from JavaScript, with a value of it.
#[inline]
pub unsafe fn known(env: Env, value: Value) -> Option<u32> {
    // SAFETY: guaranteed by the caller.
    let found = unsafe { call_site(env, value) };
    found.map(|site| KNOWN.with_borrow(|known| known.get(site)))
}

/// Store the number for this thread's functions from the same call site.
fn function_remember(env: Env, value: AnyFunction, number: u32) {
    // SAFETY: read from the call in progress.
    if let Some(site) = unsafe { call_site(env, value) } {
        KNOWN.with_borrow_mut(|known| known.remember(site, number));
    }
}

/// The file of its script, `undefined` if unknown. Writes four int32: script, line, column (from 0) and
/// whether it is a module.
fn function_origin(env: Env, value: AnyFunction, numbers: &mut [u8]) -> Option<Value> {
    // SAFETY: read from the call in progress.
    let (name, found) = unsafe { origin(env, value) }.filter(|_| numbers.len() >= 16)?;
    for (target, number) in numbers.as_chunks_mut().0.iter_mut().zip(found) {
        *target = number.to_le_bytes();
    }
    Some(name)
}

/// The name of a function's script, and the script's number, line, column and whether it is a module.
///
/// # Safety
///
/// Called during a call from JavaScript, with a value of it.
unsafe fn origin(env: Env, value: Value) -> Option<(Value, [c_int; 4])> {
    // SAFETY: guaranteed by the caller. Only functions have a call site.
    unsafe { call_site(env, value) }?;
    let v8 = V8_FUNCTION.as_ref()?;
    let (origin, isolate) = v8.origin.as_ref()?;
    let this = value.cast();
    // SAFETY: the value is a function, inside a call.
    let (words, isolate, script, line, column) = unsafe {
        (origin.call(this).0, isolate() as usize, (v8.script)(this), (v8.line)(this), (v8.column)(this))
    };
    // A handle of the name, then four integers: offsets of line and column, options, the script. Older
    // releases put the isolate first. The script's number, as `v8.script` returns it, verifies this layout.
    let first = usize::from(words[0] == isolate);
    let options = words[first + 2] as u32;
    if (words[first + 2] >> 32) as c_int != script || words[first] == 0 {
        return None;
    }
    Some((words[first] as Value, [script, line, column, c_int::from(options & IS_MODULE != 0)]))
}

/// A bit of `v8::ScriptOriginOptions`.
const IS_MODULE: u32 = 8;

/// Script and position of a value, if it is a function written in JavaScript.
///
/// # Safety
///
/// Called during a call from JavaScript, with a value of it.
#[inline]
unsafe fn call_site(env: Env, value: Value) -> Option<CallSite> {
    let mut kind = 0;
    // SAFETY: a valid environment, value and out pointer.
    unsafe { sys::napi_typeof(env.0, value, &raw mut kind) };
    let v8 = V8_FUNCTION.as_ref().filter(|_| kind == sys::ValueType::napi_function)?;
    // A napi value is V8's handle, whose address is the object's `this`.
    let this = value.cast();
    // SAFETY: the value is a function.
    unsafe {
        let script = (v8.script)(this);
        match v8.position {
            Some(position) => CallSite::at(script, position(this)),
            None => CallSite::at_line(script, (v8.line)(this), (v8.column)(this)),
        }
    }
}
