//! The call site of a function (script and position) as one number, and the function number stored for it.
//!
//! V8 has this information and napi does not expose it, so the methods of `v8::Function` are looked up by
//! name. Where they are missing, or a function has no script, the result is -1 and callers distinguish
//! functions by their source text.

use std::{
    cell::RefCell,
    ffi::{CStr, c_int, c_void},
    sync::LazyLock,
};

use corespun_bridge::{CallSite, CallSites};
use napi_sys as sys;

use crate::js::{Arguments, Env, Value};

/// Memory for the `v8::ScriptOrigin` that V8 returns: more words than it has in any release.
#[repr(C)]
struct OriginWords([usize; 16]);

type GetOrigin = unsafe extern "C" fn(*mut c_void) -> OriginWords;
type CurrentIsolate = unsafe extern "C" fn() -> *mut c_void;
type GetInt = unsafe extern "C" fn(*mut c_void) -> c_int;

struct V8Function {
    script: GetInt,
    position: Option<GetInt>,
    line: GetInt,
    column: GetInt,
    origin: Option<(GetOrigin, CurrentIsolate)>,
}

static V8_FUNCTION: LazyLock<Option<V8Function>> = LazyLock::new(|| {
    let int_method = |name: &CStr| {
        // SAFETY: looks a name up in the running program. The mangled names fix the type: a const method
        // without parameters that returns an int.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, GetInt>(found))
        }
    };
    let find = |name: &CStr| {
        // SAFETY: looks a name up in the running program.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let origin = find(c"_ZNK2v88Function15GetScriptOriginEv").zip(find(c"_ZN2v87Isolate10GetCurrentEv"));
    Some(V8Function {
        script: int_method(c"_ZNK2v88Function8ScriptIdEv")?,
        position: int_method(c"_ZNK2v88Function22GetScriptStartPositionEv"),
        line: int_method(c"_ZNK2v88Function19GetScriptLineNumberEv")?,
        column: int_method(c"_ZNK2v88Function21GetScriptColumnNumberEv")?,
        // SAFETY: as above. An origin has more than two words, so the C ABI returns it through memory as the
        // C++ ABI does.
        origin: origin.map(|(origin, isolate)| unsafe {
            (
                std::mem::transmute::<*mut c_void, GetOrigin>(origin),
                std::mem::transmute::<*mut c_void, CurrentIsolate>(isolate),
            )
        }),
    })
});

thread_local! {
    /// Function numbers by call site; an environment never changes threads.
    static KNOWN: RefCell<CallSites> = RefCell::default();
}

/// functionKnown(fn): the number stored for its call site; 0 if none is stored, -1 if it has no call site.
pub unsafe extern "C" fn function_known(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    let env = Env(env);
    // SAFETY: napi calls this with its environment and info.
    let function = unsafe { Arguments::<1>::read(env, info) }[0];
    // SAFETY: read from the call in progress.
    env.int(unsafe { known(env, function) }.map_or(-1, u32::cast_signed))
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

/// functionRemember(fn, number): store the number for this thread's functions from the same call site.
pub unsafe extern "C" fn function_remember(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    let env = Env(env);
    // SAFETY: napi calls this with its environment and info.
    let arguments = unsafe { Arguments::<2>::read(env, info) };
    // SAFETY: read from the call in progress.
    let found = unsafe { call_site(env, arguments[0]) };
    if let (Some(site), Ok(number)) = (found, env.u32(arguments[1])) {
        KNOWN.with_borrow_mut(|known| known.remember(site, number));
    }
    env.undefined()
}

/// functionOrigin(fn, numbers): the file of its script, `undefined` if unknown. Writes four int32: script,
/// line, column (from 0) and whether it is a module.
pub unsafe extern "C" fn function_origin(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    let env = Env(env);
    // SAFETY: napi calls this with its environment and info.
    let arguments = unsafe { Arguments::<2>::read(env, info) };
    let (function, numbers) = (arguments[0], arguments[1]);
    // SAFETY: read from the call in progress.
    match (unsafe { origin(env, function) }, env.bytes(numbers)) {
        (Some((name, found)), Ok((data, length))) if length >= 16 => {
            for (index, number) in found.into_iter().enumerate() {
                // SAFETY: within the array's memory, whose length was checked.
                unsafe { data.add(index * 4).cast::<[u8; 4]>().write_unaligned(number.to_le_bytes()) };
            }
            name
        }
        _ => env.undefined(),
    }
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
    let (origin, isolate) = v8.origin?;
    let this = value.cast();
    // SAFETY: the value is a function, inside a call.
    let (words, isolate, script, line, column) = unsafe {
        (origin(this).0, isolate() as usize, (v8.script)(this), (v8.line)(this), (v8.column)(this))
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
