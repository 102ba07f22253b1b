//! Thin, checked conversions between napi values and Rust's. An error becomes a JavaScript exception whose
//! `code` is that of [`Thrown`].

use std::{
    ffi::{CString, c_void},
    ptr,
};

use napi_sys as sys;

/// An exception to throw: code and message.
#[derive(Debug)]
pub struct Thrown(pub &'static str, pub String);

/// The result of a native function.
pub type Outcome<T> = Result<T, Thrown>;

/// The error of a call with values of the wrong type: a bug of the TypeScript side.
pub fn wrong(what: &str) -> Thrown {
    Thrown("NATIVE_ARGUMENT", format!("native call: {what}"))
}

/// One environment; copied freely, valid during a call from JavaScript.
#[derive(Clone, Copy)]
pub struct Env(pub sys::napi_env);

/// A value of the current handle scope.
pub type Value = sys::napi_value;

impl Env {
    /// A number that is an unsigned integer.
    pub fn u32(self, value: Value) -> Outcome<u32> {
        let mut number = 0;
        // SAFETY: napi checks the value's type and reports it.
        match unsafe { sys::napi_get_value_uint32(self.0, value, &raw mut number) } {
            sys::Status::napi_ok => Ok(number),
            _ => Err(wrong("expected an unsigned integer")),
        }
    }

    /// Any number.
    pub fn f64(self, value: Value) -> Outcome<f64> {
        let mut number = 0.0;
        // SAFETY: as above.
        match unsafe { sys::napi_get_value_double(self.0, value, &raw mut number) } {
            sys::Status::napi_ok => Ok(number),
            _ => Err(wrong("expected a number")),
        }
    }

    /// A boolean.
    pub fn bool(self, value: Value) -> Outcome<bool> {
        let mut truth = false;
        // SAFETY: as above.
        match unsafe { sys::napi_get_value_bool(self.0, value, &raw mut truth) } {
            sys::Status::napi_ok => Ok(truth),
            _ => Err(wrong("expected a boolean")),
        }
    }

    /// A string. Lone surrogates are kept apart, since the text is UTF-16 here.
    pub fn string(self, value: Value) -> Outcome<Box<[u16]>> {
        let mut length = 0;
        // SAFETY: with no buffer napi only measures.
        let status =
            unsafe { sys::napi_get_value_string_utf16(self.0, value, ptr::null_mut(), 0, &raw mut length) };
        if status != sys::Status::napi_ok {
            return Err(wrong("expected a string"));
        }
        let mut text = vec![0_u16; length + 1];
        // SAFETY: the buffer has room for the text and napi's closing zero.
        unsafe {
            sys::napi_get_value_string_utf16(
                self.0,
                value,
                text.as_mut_ptr().cast(),
                length + 1,
                &raw mut length,
            );
        }
        text.truncate(length);
        Ok(text.into_boxed_slice())
    }

    /// The memory of a Uint8Array.
    pub fn bytes(self, value: Value) -> Outcome<(*mut u8, usize)> {
        let (mut kind, mut length, mut data) = (0, 0, ptr::null_mut());
        // SAFETY: napi checks the type; out pointers that are null are not written.
        let status = unsafe {
            sys::napi_get_typedarray_info(
                self.0,
                value,
                &raw mut kind,
                &raw mut length,
                &raw mut data,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        if status == sys::Status::napi_ok && kind == sys::TypedarrayType::uint8_array {
            Ok((data.cast(), length))
        } else {
            Err(wrong("expected a Uint8Array"))
        }
    }

    /// A small integer as a value.
    #[inline]
    pub fn int(self, number: i32) -> Value {
        let mut value = ptr::null_mut();
        // SAFETY: a valid environment and out pointer.
        unsafe { sys::napi_create_int32(self.0, number, &raw mut value) };
        value
    }

    /// A number as a value.
    pub fn number(self, number: f64) -> Value {
        let mut value = ptr::null_mut();
        // SAFETY: as above.
        unsafe { sys::napi_create_double(self.0, number, &raw mut value) };
        value
    }

    /// `undefined`.
    pub fn undefined(self) -> Value {
        let mut value = ptr::null_mut();
        // SAFETY: as above.
        unsafe { sys::napi_get_undefined(self.0, &raw mut value) };
        value
    }

    /// A string as a value.
    pub fn text(self, text: &[u16]) -> Value {
        let mut value = ptr::null_mut();
        // SAFETY: pointer and length of one slice.
        unsafe {
            sys::napi_create_string_utf16(self.0, text.as_ptr().cast(), text.len() as isize, &raw mut value)
        };
        value
    }

    /// An array of texts.
    pub fn texts<'a>(self, texts: impl Iterator<Item = &'a [u16]>) -> Value {
        let mut value = ptr::null_mut();
        // SAFETY: a valid environment and out pointer.
        unsafe { sys::napi_create_array(self.0, &raw mut value) };
        for (index, text) in (0..).zip(texts) {
            // SAFETY: the array of this call, and a value of it.
            unsafe { sys::napi_set_element(self.0, value, index, self.text(text)) };
        }
        value
    }

    /// A new Uint8Array with a copy of `bytes`.
    pub fn copy(self, bytes: &[u8]) -> Outcome<Value> {
        let (mut buffer, mut data, mut value) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: out pointers are valid; `data` is written only on success, then has room for the bytes.
        unsafe {
            if sys::napi_create_arraybuffer(self.0, bytes.len(), &raw mut data, &raw mut buffer)
                != sys::Status::napi_ok
            {
                return Err(Thrown("NATIVE_MEMORY", format!("no memory for {} bytes", bytes.len())));
            }
            if !bytes.is_empty() {
                ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast::<u8>(), bytes.len());
            }
            let kind = sys::TypedarrayType::uint8_array;
            sys::napi_create_typedarray(self.0, kind, bytes.len(), buffer, 0, &raw mut value);
        }
        Ok(value)
    }

    /// The bytes of a Uint8Array, for the call in progress.
    pub fn slice<'a>(self, value: Value) -> Outcome<&'a [u8]> {
        let (data, length) = self.bytes(value)?;
        // SAFETY: read before JavaScript runs again, as every caller does.
        Ok(if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, length) } })
    }

    /// Throw.
    pub fn throw(self, thrown: &Thrown) -> Value {
        let code = CString::new(thrown.0).unwrap_or_default();
        let message = CString::new(thrown.1.replace('\0', " ")).unwrap_or_default();
        // SAFETY: both are C strings that live through the call.
        unsafe { sys::napi_throw_error(self.0, code.as_ptr(), message.as_ptr()) };
        ptr::null_mut()
    }
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

/// Whether the environment can still run JavaScript. Node turns the loop of an ending thread a few more times
/// to close its handles.
///
/// # Safety
///
/// On the thread of `env`, outside of any call from JavaScript.
pub unsafe fn is_live(env: sys::napi_env) -> bool {
    let mut equal = false;
    // SAFETY: valid environment and out pointer. napi checks whether JavaScript can run before it refuses the
    // missing values, and makes nothing.
    let status = unsafe { sys::napi_strict_equals(env, ptr::null_mut(), ptr::null_mut(), &raw mut equal) };
    status == sys::Status::napi_invalid_arg
}

/// The arguments of one call, at most `N`, and the data of its function.
pub struct Arguments<const N: usize> {
    /// Missing ones are `undefined`.
    pub values: [Value; N],
    /// The data with which the function was made.
    pub data: *mut c_void,
}

impl<const N: usize> Arguments<N> {
    /// Read them.
    ///
    /// # Safety
    ///
    /// `env` and `info` come from the call in progress.
    #[inline]
    pub unsafe fn read(env: Env, info: sys::napi_callback_info) -> Self {
        let (mut count, mut values, mut data) = (N, [ptr::null_mut(); N], ptr::null_mut());
        // SAFETY: `values` has room for `count`; missing ones become undefined.
        unsafe {
            sys::napi_get_cb_info(
                env.0,
                info,
                &raw mut count,
                values.as_mut_ptr(),
                ptr::null_mut(),
                &raw mut data,
            );
        }
        Self { values, data }
    }
}

impl<const N: usize> std::ops::Index<usize> for Arguments<N> {
    type Output = Value;

    fn index(&self, index: usize) -> &Value {
        &self.values[index]
    }
}

/// A type that a JavaScript value converts to.
pub trait Given: Sized {
    /// Convert it.
    fn of(env: Env, value: Value) -> Outcome<Self>;
}

/// A type that converts to a JavaScript value.
pub trait Reply {
    /// Convert it.
    fn value(self, env: Env) -> Outcome<Value>;
}

macro_rules! given {
    ($($kind:ty: |$env:ident, $value:ident| $of:expr;)*) => {
        $(impl Given for $kind {
            #[inline]
            fn of($env: Env, $value: Value) -> Outcome<Self> {
                $of
            }
        })*
    };
}

given! {
    u32: |env, value| env.u32(value);
    f64: |env, value| env.f64(value);
    bool: |env, value| env.bool(value);
    Box<[u16]>: |env, value| env.string(value);
    &[u8]: |env, value| env.slice(value);
    (*mut u8, usize): |env, value| env.bytes(value);
    // The nearest integer; the largest for infinity.
    u64: |env, value| env.f64(value).map(|number| if number.is_finite() { number as u64 } else { u64::MAX });
    // The words in a Uint8Array.
    Vec<u32>: |env, value| {
        Ok(env.slice(value)?.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect())
    };
}

macro_rules! reply {
    ($($kind:ty: |$env:ident, $own:ident| $value:expr;)*) => {
        $(impl Reply for $kind {
            #[inline]
            fn value(self, $env: Env) -> Outcome<Value> {
                let $own = self;
                Ok($value)
            }
        })*
    };
}

reply! {
    Value: |_env, value| value;
    (): |env, _nothing| env.undefined();
    i32: |env, number| env.int(number);
    u32: |env, number| env.number(f64::from(number));
    f64: |env, number| env.number(number);
    Option<Value>: |env, value| value.unwrap_or_else(|| env.undefined());
    Option<Box<[u16]>>: |env, text| text.map_or_else(|| env.undefined(), |text| env.text(&text));
}

/// Run `body` with the arguments of a call and turn its error into an exception.
#[macro_export]
macro_rules! call {
    ($name:ident, $count:literal, |$env:ident, $arguments:ident| $body:block, $doc:literal) => {
        #[doc = $doc]
        pub unsafe extern "C" fn $name(
            env: napi_sys::napi_env,
            info: napi_sys::napi_callback_info,
        ) -> $crate::js::Value {
            let $env = $crate::js::Env(env);
            // SAFETY: napi calls this with its environment and info.
            let $arguments = unsafe { $crate::js::Arguments::<$count>::read($env, info) };
            let run = || -> $crate::js::Outcome<$crate::js::Value> { $body };
            let outcome = run();
            // SAFETY: JavaScript waits for this call, which is over.
            unsafe { $crate::buffers::release_retired() };
            match outcome {
                Ok(value) => value,
                Err(thrown) => $env.throw(&thrown),
            }
        }
    };
}
