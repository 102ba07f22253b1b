//! Where a function was written, as one number: script and position. And the number it has, by its place.
//!
//! V8 knows and napi does not ask it. The functions of V8's class are looked up by name; without them, or for
//! a function that has no script, the answer is -1 and callers tell functions apart by their text.

use std::{
    cell::RefCell,
    ffi::{CStr, c_int, c_void},
    sync::LazyLock,
};

use corespun_bridge::{CallSite, CallSites};
use napi_sys as sys;

use crate::js::{Arguments, Env, Value};

/// What V8 returns of a script's origin, through memory: more than it has words, whatever the release.
#[repr(C)]
struct OriginWords([usize; 16]);

type AskOrigin = unsafe extern "C" fn(*mut c_void) -> OriginWords;
type CurrentIsolate = unsafe extern "C" fn() -> *mut c_void;
type Ask = unsafe extern "C" fn(*mut c_void) -> c_int;

struct Places {
    script: Ask,
    position: Option<Ask>,
    line: Ask,
    column: Ask,
    origin: Option<(AskOrigin, CurrentIsolate)>,
}

static PLACES: LazyLock<Option<Places>> = LazyLock::new(|| {
    let ask = |name: &CStr| {
        // SAFETY: a look-up in the running program; the mangled names fix the type: a const method that takes
        // nothing and returns an int.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, Ask>(found))
        }
    };
    let find = |name: &CStr| {
        // SAFETY: a look-up in the running program.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let origin = find(c"_ZNK2v88Function15GetScriptOriginEv").zip(find(c"_ZN2v87Isolate10GetCurrentEv"));
    Some(Places {
        script: ask(c"_ZNK2v88Function8ScriptIdEv")?,
        position: ask(c"_ZNK2v88Function22GetScriptStartPositionEv"),
        line: ask(c"_ZNK2v88Function19GetScriptLineNumberEv")?,
        column: ask(c"_ZNK2v88Function21GetScriptColumnNumberEv")?,
        // SAFETY: as above. An origin has more than two words, so the C ABI returns it through memory as the
        // C++ ABI does.
        origin: origin.map(|(origin, isolate)| unsafe {
            (
                std::mem::transmute::<*mut c_void, AskOrigin>(origin),
                std::mem::transmute::<*mut c_void, CurrentIsolate>(isolate),
            )
        }),
    })
});

thread_local! {
    /// A Node environment never changes threads.
    static KNOWN: RefCell<CallSites> = RefCell::default();
}

/// functionKnown(fn): the number that was remembered for its place; 0 when none was, -1 without a
/// place.
pub unsafe extern "C" fn function_known(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    let env = Env(env);
    // SAFETY: napi calls this with its environment and info.
    let function = unsafe { Arguments::<1>::read(env, info) }[0];
    // SAFETY: read from the call in progress.
    env.int(unsafe { known(env, function) }.map_or(-1, u32::cast_signed))
}

/// The number that was remembered for the place of `value`; 0 when none was, `None` without a place.
///
/// # Safety
///
/// Called during a call from JavaScript, with a value of it.
#[inline]
pub unsafe fn known(env: Env, value: Value) -> Option<u32> {
    // SAFETY: passed on to the caller.
    let found = unsafe { place(env, value) };
    found.map(|place| KNOWN.with_borrow(|known| known.get(place)))
}

/// functionRemember(fn, number): the number of every function of this place in this thread.
pub unsafe extern "C" fn function_remember(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    let env = Env(env);
    // SAFETY: napi calls this with its environment and info.
    let arguments = unsafe { Arguments::<2>::read(env, info) };
    // SAFETY: read from the call in progress.
    let found = unsafe { place(env, arguments[0]) };
    if let (Some(place), Ok(number)) = (found, env.u32(arguments[1])) {
        KNOWN.with_borrow_mut(|known| known.remember(place, number));
    }
    env.undefined()
}

/// functionOrigin(fn, numbers): the file of its script, or `undefined` where it is unknown; four
/// int32 are written: script, line, column (from 0) and whether it is a module.
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

/// The name of a function's script, and its number, line, column and whether it is a module.
///
/// # Safety
///
/// Called during a call from JavaScript, with a value of it.
unsafe fn origin(env: Env, value: Value) -> Option<(Value, [c_int; 4])> {
    // SAFETY: passed on to the caller. What has a place is a function.
    unsafe { place(env, value) }?;
    let places = PLACES.as_ref()?;
    let (origin, isolate) = places.origin?;
    let this = value.cast();
    // SAFETY: the value is a function, inside a call.
    let (words, isolate, script, line, column) = unsafe {
        (
            origin(this).0,
            isolate() as usize,
            (places.script)(this),
            (places.line)(this),
            (places.column)(this),
        )
    };
    // A handle of the name, four integers (offsets of line and column, options, the script); older releases
    // have the isolate before it. The script's number, known otherwise, shows that this is how they lie.
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
unsafe fn place(env: Env, value: Value) -> Option<CallSite> {
    let mut kind = 0;
    // SAFETY: a valid environment, value and out pointer.
    unsafe { sys::napi_typeof(env.0, value, &raw mut kind) };
    let places = PLACES.as_ref().filter(|_| kind == sys::ValueType::napi_function)?;
    // A napi value is V8's handle, whose address is the object's `this`.
    let this = value.cast();
    // SAFETY: the value is a function.
    unsafe {
        let script = (places.script)(this);
        match places.position {
            Some(position) => CallSite::at(script, position(this)),
            None => CallSite::at_line(script, (places.line)(this), (places.column)(this)),
        }
    }
}
