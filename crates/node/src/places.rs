//! Where a function was written, as one number: script and position.
//!
//! V8 knows and napi does not ask it. The functions of V8's class are looked up by name; without them, or for a
//! function that has no script, the answer is -1 and callers tell functions apart by their text.

use std::{
    ffi::{CStr, c_int, c_void},
    sync::LazyLock,
};

use napi_sys as sys;

use crate::js::{Arguments, Env, Value};

type Ask = unsafe extern "C" fn(*mut c_void) -> c_int;

struct Places {
    script: Ask,
    position: Option<Ask>,
    line: Ask,
    column: Ask,
}

/// Positions are below this; scripts stay below 2^21, so a place is an exact double.
const POSITIONS: f64 = 4_294_967_296.0;
/// Where only line and column are known, longer lines are not told apart.
const COLUMNS: c_int = 4096;

static PLACES: LazyLock<Option<Places>> = LazyLock::new(|| {
    let ask = |name: &CStr| {
        // SAFETY: a look-up in the running program; the mangled names fix the type: a const method that takes
        // nothing and returns an int.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, Ask>(found))
        }
    };
    Some(Places {
        script: ask(c"_ZNK2v88Function8ScriptIdEv")?,
        position: ask(c"_ZNK2v88Function22GetScriptStartPositionEv"),
        line: ask(c"_ZNK2v88Function19GetScriptLineNumberEv")?,
        column: ask(c"_ZNK2v88Function21GetScriptColumnNumberEv")?,
    })
});

/// functionPlace(function): a number that no other function text of this isolate has, or -1.
pub unsafe extern "C" fn function_place(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    let env = Env(env);
    // SAFETY: napi calls this with its environment and info.
    let function = unsafe { Arguments::<1>::read(env, info) }[0];
    let mut kind = 0;
    // SAFETY: a valid environment, value and out pointer.
    unsafe { sys::napi_typeof(env.0, function, &raw mut kind) };
    let known = PLACES.as_ref().filter(|_| kind == sys::ValueType::napi_function);
    // SAFETY: the value is a function, and a napi value is V8's handle, whose address is the object's `this`.
    env.number(known.and_then(|places| unsafe { place(places, function.cast()) }).unwrap_or(-1.0))
}

/// # Safety
///
/// `this` is a V8 handle of a function.
unsafe fn place(places: &Places, this: *mut c_void) -> Option<f64> {
    // SAFETY: passed on to the caller.
    unsafe {
        let script = (places.script)(this);
        let position = match places.position {
            Some(position) => position(this),
            None => match ((places.line)(this), (places.column)(this)) {
                (line @ 0.., column @ 0..COLUMNS) => line.checked_mul(COLUMNS)?.checked_add(column)?,
                _ => -1,
            },
        };
        (script > 0 && position >= 0).then(|| f64::from(script) * POSITIONS + f64::from(position))
    }
}
