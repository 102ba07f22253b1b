//! Conversions between JavaScript's values and Rust's, by type.
//!
//! An exported function is a Rust function: each parameter is a [`Parameter`], its result is a [`Reply`],
//! and [`exports!`] makes the entry that Node calls. An error becomes an exception whose `code` is that of
//! [`Thrown`]. Over 400 lines: one entry for each type that crosses.

use std::{
    ffi::{CStr, CString, c_void},
    ptr,
    sync::Arc,
};

use corespun_bridge::Misuse;
use napi_sys as sys;

/// An exception to throw: code and message.
pub struct Thrown(pub &'static str, pub String);

/// The result of a native function.
pub type Outcome<T> = Result<T, Thrown>;

/// The error of a call with values of the wrong type: a bug of the TypeScript side.
pub fn wrong(what: &str) -> Thrown {
    Thrown("NATIVE_ARGUMENT", format!("native call: {what}"))
}

impl From<Misuse> for Thrown {
    fn from(misuse: Misuse) -> Self {
        wrong(misuse.0)
    }
}

/// One environment; copied freely, valid during a call from JavaScript.
#[derive(Clone, Copy)]
pub struct Env(pub sys::napi_env);

/// A value of the current handle scope.
pub type Value = sys::napi_value;

/// Values that differ in the type that build/functions.rs prints for TypeScript.
pub type AnyFunction = Value;
pub type SharedBuffer = Value;
pub type NewBuffer = Value;
pub type AnyBuffer = Value;
pub type NumberOrBytes = Value;

/// What Node calls for an exported function.
pub type Function = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> Value;

/// Values that one call reads at most.
const ARGUMENTS_MAX: usize = 8;

/// A call in progress.
pub struct Call {
    /// Its environment.
    pub env: Env,
    /// The data with which its function was made.
    pub data: *mut c_void,
    values: [Value; ARGUMENTS_MAX],
    next: usize,
}

impl Call {
    /// Read the call's arguments; missing ones are `undefined`.
    ///
    /// # Safety
    ///
    /// `env` and `info` come from the call in progress.
    #[inline]
    pub unsafe fn read(env: sys::napi_env, info: sys::napi_callback_info) -> Self {
        let (mut count, mut values, mut data) = (ARGUMENTS_MAX, [ptr::null_mut(); _], ptr::null_mut());
        // SAFETY: `values` has room for `count`; missing ones become undefined.
        unsafe {
            let this = ptr::null_mut();
            sys::napi_get_cb_info(env, info, &raw mut count, values.as_mut_ptr(), this, &raw mut data);
        }
        Self { env: Env(env), data, values, next: 0 }
    }

    /// The next argument.
    #[inline]
    pub const fn next(&mut self) -> Value {
        self.next += 1;
        self.values[self.next - 1]
    }

    /// The memory of the next argument, a Uint8Array.
    pub fn memory(&mut self) -> Outcome<(*mut u8, usize)> {
        let (mut kind, mut length, mut data) = (0, 0, ptr::null_mut());
        // SAFETY: napi checks the type; out pointers that are null are not written.
        let status = unsafe {
            let (value, none) = (self.next(), ptr::null_mut());
            let (kind, length, data) = (&raw mut kind, &raw mut length, &raw mut data);
            sys::napi_get_typedarray_info(self.env.0, value, kind, length, data, none, none.cast())
        };
        if status == sys::Status::napi_ok && kind == sys::TypedarrayType::uint8_array {
            Ok((data.cast(), length))
        } else {
            Err(wrong("expected a Uint8Array"))
        }
    }
}

/// A parameter of an exported function. References end with the call, whatever lifetime the function names.
pub trait Parameter: Sized {
    /// Convert what the call has for it.
    fn take(call: &mut Call) -> Outcome<Self>;
}

/// The result of an exported function.
pub trait Reply {
    /// Convert it.
    fn value(self, env: Env) -> Outcome<Value>;
}

/// What one of napi's functions that check the type reads from the next argument.
macro_rules! get {
    ($call:ident, $read:ident, $expected:literal) => {{
        let mut converted = Default::default();
        // SAFETY: the call's environment and argument; a valid out pointer.
        match unsafe { sys::$read($call.env.0, $call.next(), &raw mut converted) } {
            sys::Status::napi_ok => Ok(converted),
            _ => Err(wrong(concat!("expected ", $expected))),
        }
    }};
}

/// The value that one of napi's functions makes.
macro_rules! make {
    ($env:ident, $create:ident $(, $argument:expr)*) => {{
        let mut value = ptr::null_mut();
        // SAFETY: the call's environment, valid pointers, the length of one slice or buffer.
        unsafe { sys::$create($env.0, $($argument,)* &raw mut value) };
        value
    }};
}

macro_rules! parameters {
    ($($kind:ty: |$call:ident| $of:expr;)*) => {
        $(impl Parameter for $kind {
            #[inline]
            fn take($call: &mut Call) -> Outcome<Self> {
                $of
            }
        })*
    };
}

parameters! {
    Env: |call| Ok(call.env);
    Value: |call| Ok(call.next());
    u32: |call| get!(call, napi_get_value_uint32, "an unsigned integer");
    f64: |call| get!(call, napi_get_value_double, "a number");
    bool: |call| get!(call, napi_get_value_bool, "a boolean");
    // The nearest integer; the largest for infinity.
    u64: |call| f64::take(call).map(|number| if number.is_finite() { number as u64 } else { u64::MAX });
    Box<[u16]>: |call| text(call.env, call.next());
    String: |call| Ok(Self::from_utf16_lossy(&Box::<[u16]>::take(call)?));
    // The words and doubles in a Uint8Array.
    Vec<u32>: |call| {
        Ok(<&[u8]>::take(call)?.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    };
    Vec<f64>: |call| {
        Ok(<&[u8]>::take(call)?.as_chunks().0.iter().map(|double| f64::from_le_bytes(*double)).collect())
    };
    &[u8]: |call| <&mut [u8]>::take(call).map(|bytes| &*bytes);
    &mut [u8]: |call| {
        let (data, length) = call.memory()?;
        // SAFETY: JavaScript waits for this call, with which the reference ends.
        Ok(if length == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(data, length) } })
    };
}

/// A function.
pub struct Callee(pub Value);

impl Parameter for Callee {
    fn take(call: &mut Call) -> Outcome<Self> {
        let (mut kind, value) = (0, call.next());
        // SAFETY: a valid environment, value and out pointer.
        unsafe { sys::napi_typeof(call.env.0, value, &raw mut kind) };
        if kind == sys::ValueType::napi_function {
            Ok(Self(value))
        } else {
            Err(wrong("expected a function"))
        }
    }
}

/// The units of a string. Lone surrogates are kept apart, since the text is UTF-16 here.
fn text(env: Env, value: Value) -> Outcome<Box<[u16]>> {
    let mut length = 0;
    // SAFETY: with no buffer napi only measures.
    let status =
        unsafe { sys::napi_get_value_string_utf16(env.0, value, ptr::null_mut(), 0, &raw mut length) };
    if status != sys::Status::napi_ok {
        return Err(wrong("expected a string"));
    }
    let mut text = vec![0_u16; length + 1];
    let (units, room) = (text.as_mut_ptr().cast(), length + 1);
    // SAFETY: the buffer has room for the text and napi's closing zero.
    unsafe { sys::napi_get_value_string_utf16(env.0, value, units, room, &raw mut length) };
    text.truncate(length);
    Ok(text.into_boxed_slice())
}

/// Write `numbers` to the Uint8Array of an argument, as doubles.
pub fn put_numbers(bytes: &mut [u8], numbers: &[f64]) -> Outcome<()> {
    let targets = bytes.get_mut(..numbers.len() * 8).ok_or_else(|| wrong("the numbers need more bytes"))?;
    for (target, number) in targets.as_chunks_mut().0.iter_mut().zip(numbers) {
        *target = number.to_le_bytes();
    }
    Ok(())
}

macro_rules! replies {
    ($($kind:ty: |$env:ident, $own:ident| $value:expr;)*) => {
        $(impl Reply for $kind {
            #[inline]
            fn value(self, $env: Env) -> Outcome<Value> {
                let $own = self;
                $value
            }
        })*
    };
}

replies! {
    Value: |_env, value| Ok(value);
    (): |_env, _nothing| Ok(ptr::null_mut());
    i32: |env, number| Ok(make!(env, napi_create_int32, number));
    // 1 or 0.
    bool: |env, truth| i32::from(truth).value(env);
    u32: |env, number| f64::from(number).value(env);
    f64: |env, number| Ok(make!(env, napi_create_double, number));
    &[u16]: |env, text| {
        Ok(make!(env, napi_create_string_utf16, text.as_ptr().cast(), text.len() as isize))
    };
    Box<[u16]>: |env, text| (&*text).value(env);
    Arc<[u16]>: |env, text| (&*text).value(env);
    &str: |env, text| text.encode_utf16().collect::<Box<[u16]>>().value(env);
    String: |env, text| text.as_str().value(env);
    // An array of strings.
    Vec<Box<[u16]>>: |env, texts| {
        let array = make!(env, napi_create_array);
        for (index, text) in (0..).zip(texts) {
            let text = text.value(env)?;
            // SAFETY: the array of this call, and a value of it.
            unsafe { sys::napi_set_element(env.0, array, index, text) };
        }
        Ok(array)
    };
    // A new Uint8Array.
    &[u8]: |env, bytes| copy(env, bytes);
    Vec<u8>: |env, bytes| copy(env, &bytes);
    Box<[u8]>: |env, bytes| copy(env, &bytes);
    Arc<[u8]>: |env, bytes| copy(env, &bytes);
    corespun_store::Bytes: |env, bytes| copy(env, &bytes);
    Vec<u32>: |env, words| words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>().value(env);
    Vec<f64>: |env, numbers| numbers.into_iter().flat_map(f64::to_le_bytes).collect::<Vec<_>>().value(env);
}

/// `None` is `undefined`.
impl<T: Reply> Reply for Option<T> {
    #[inline]
    fn value(self, env: Env) -> Outcome<Value> {
        self.map_or(Ok(ptr::null_mut()), |some| some.value(env))
    }
}

impl<T: Reply, E: Into<Thrown>> Reply for Result<T, E> {
    #[inline]
    fn value(self, env: Env) -> Outcome<Value> {
        self.map_err(Into::into)?.value(env)
    }
}

fn copy(env: Env, bytes: &[u8]) -> Outcome<Value> {
    let (mut buffer, mut data) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: a valid environment and out pointers.
    let status = unsafe { sys::napi_create_arraybuffer(env.0, bytes.len(), &raw mut data, &raw mut buffer) };
    if status != sys::Status::napi_ok {
        return Err(Thrown("NATIVE_MEMORY", format!("no memory for {} bytes", bytes.len())));
    }
    if !bytes.is_empty() {
        // SAFETY: a fresh buffer of that length.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast::<u8>(), bytes.len()) };
    }
    let kind = sys::TypedarrayType::uint8_array;
    Ok(make!(env, napi_create_typedarray, kind, bytes.len(), buffer, 0))
}

impl Env {
    /// Throw.
    pub fn throw(self, thrown: &Thrown) -> Value {
        let code = CString::new(thrown.0).unwrap_or_default();
        let message = CString::new(thrown.1.replace('\0', " ")).unwrap_or_default();
        // SAFETY: both are C strings that live through the call.
        unsafe { sys::napi_throw_error(self.0, code.as_ptr(), message.as_ptr()) };
        ptr::null_mut()
    }
}

/// A Rust function that JavaScript can call. An implementation exists for each number of parameters.
pub trait Native<Parameters> {
    /// Call it with the converted arguments.
    fn call(self, call: &mut Call) -> Outcome<Value>;
}

macro_rules! natives {
    ($(($($parameter:ident)*))*) => {
        $(impl<F, R, $($parameter),*> Native<($($parameter,)*)> for F
        where
            F: Fn($($parameter),*) -> R,
            R: Reply,
            $($parameter: Parameter,)*
        {
            #[inline]
            fn call(self, call: &mut Call) -> Outcome<Value> {
                // A tuple, so that they are taken in order.
                #[allow(non_snake_case)]
                let ($($parameter,)*) = ($($parameter::take(call)?,)*);
                self($($parameter),*).value(call.env)
            }
        })*
    };
}

natives! {
    () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E G) (A B C D E G H) (A B C D E G H I J)
}

/// Call `function` with what JavaScript passed; throw its error.
///
/// # Safety
///
/// `env` and `info` come from the call in progress.
#[inline]
pub unsafe fn run<P>(env: sys::napi_env, info: sys::napi_callback_info, function: impl Native<P>) -> Value {
    // SAFETY: guaranteed by the caller.
    let outcome = function.call(&mut unsafe { Call::read(env, info) });
    // SAFETY: JavaScript waits for this call, which is over.
    unsafe { crate::buffers::release_retired() };
    outcome.unwrap_or_else(|thrown| Env(env).throw(&thrown))
}

/// The names of functions and what Node calls for them.
#[macro_export]
macro_rules! exports {
    ($($function:ident),* $(,)?) => {
        &[$((stringify!($function), {
            unsafe extern "C" fn called(
                env: napi_sys::napi_env,
                info: napi_sys::napi_callback_info,
            ) -> $crate::js::Value {
                // SAFETY: Node calls this with its environment and info.
                unsafe { $crate::js::run(env, info, $function) }
            }
            called as $crate::js::Function
        })),*]
    };
}

/// The names of functions without arguments and what Node calls for them: a method, run by `hot`.
#[macro_export]
macro_rules! hot_exports {
    ($hot:expr; $($name:ident: $body:expr),* $(,)?) => {
        &[$((stringify!($name), {
            unsafe extern "C" fn called(
                env: napi_sys::napi_env,
                info: napi_sys::napi_callback_info,
            ) -> $crate::js::Value {
                $hot(env, info, $body)
            }
            called as $crate::js::Function
        })),*]
    };
}

/// A function that the event loop calls, by a reference and with an async context of that name.
///
/// # Safety
///
/// Inside a call from JavaScript.
pub unsafe fn callback(env: Env, function: Callee, name: &CStr) -> (sys::napi_ref, sys::napi_async_context) {
    let (mut reference, mut context) = (ptr::null_mut(), ptr::null_mut());
    let name = make!(env, napi_create_string_utf8, name.as_ptr(), name.count_bytes() as isize);
    // SAFETY: valid environment, values and out pointers.
    unsafe {
        sys::napi_create_reference(env.0, function.0, 1, &raw mut reference);
        sys::napi_async_init(env.0, ptr::null_mut(), name, &raw mut context);
    }
    (reference, context)
}

/// Call a function from the event loop, then run the microtasks. An exception goes to `uncaughtException`.
/// Returns false if the environment can no longer run JavaScript.
///
/// # Safety
///
/// On the thread of `env`, outside of any call from JavaScript; `function` refers to a function of it.
pub unsafe fn call_back(
    env: sys::napi_env,
    function: sys::napi_ref,
    context: sys::napi_async_context,
) -> bool {
    let (mut scope, mut callee, mut global) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: valid environment; values live in the scope opened here.
    unsafe {
        if sys::napi_open_handle_scope(env, &raw mut scope) != sys::Status::napi_ok {
            return false;
        }
        sys::napi_get_reference_value(env, function, &raw mut callee);
        sys::napi_get_global(env, &raw mut global);
        let status = sys::napi_make_callback(env, context, global, callee, 0, ptr::null(), ptr::null_mut());
        let mut runs = status == sys::Status::napi_ok;
        if status == sys::Status::napi_pending_exception {
            let mut error = ptr::null_mut();
            if sys::napi_get_and_clear_last_exception(env, &raw mut error) == sys::Status::napi_ok {
                runs = sys::napi_fatal_exception(env, error) == sys::Status::napi_ok;
            }
        }
        sys::napi_close_handle_scope(env, scope);
        runs
    }
}

/// Whether the environment can still run JavaScript. Node turns the loop of an ending thread a few more
/// times to close its handles.
///
/// # Safety
///
/// On the thread of `env`, outside of any call from JavaScript.
#[cfg(has_http)]
pub unsafe fn is_live(env: sys::napi_env) -> bool {
    let mut equal = false;
    // SAFETY: valid environment and out pointer. napi checks whether JavaScript can run before it refuses
    // the missing values, and makes nothing.
    let status = unsafe { sys::napi_strict_equals(env, ptr::null_mut(), ptr::null_mut(), &raw mut equal) };
    status == sys::Status::napi_invalid_arg
}
