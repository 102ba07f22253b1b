//! Functions of V8 that napi does not expose, looked up by their mangled names in the running
//! program ([`abi`]).
//!
//! A napi value is V8's handle, whose address is the `this` of its object's methods.

use std::ffi::{CStr, c_void};

use super::platform;
pub use super::platform::abi;

/// `v8::Isolate::GetCurrent`.
pub type CurrentIsolate = unsafe extern "C" fn() -> *mut c_void;
/// The function with that name, if this Node exports it.
///
/// # Safety
///
/// `F` is a function pointer of its type, which the mangled name fixes.
pub unsafe fn symbol<F>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: looks a name up in the running program; the type is guaranteed by the caller.
    unsafe {
        let found = platform::symbol(name);
        (!found.is_null()).then(|| std::mem::transmute_copy::<*mut c_void, F>(&found))
    }
}
