//! V8's C++ functions on Linux and macOS: names and calls of the Itanium C++ ABI.
//!
//! An object that is not trivial is returned through memory, as C returns a large structure, and passed by
//! address.

use std::ffi::{CStr, c_void};

/// A method that returns an object through memory. Objects have more than two words, or are not trivial.
#[repr(transparent)]
pub struct Getter<R>(unsafe extern "C" fn(*mut c_void) -> R);

impl<R> Getter<R> {
    /// Call it.
    ///
    /// # Safety
    ///
    /// `this` is an object of the method's class, in a call from JavaScript.
    pub unsafe fn call(&self, this: *mut c_void) -> R {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.0)(this) }
    }
}

/// A function of an isolate and an object that returns a handle.
#[repr(transparent)]
pub struct Maker<P>(unsafe extern "C" fn(*mut c_void, *mut P) -> *mut c_void);

impl<P> Maker<P> {
    /// Call it.
    ///
    /// # Safety
    ///
    /// The isolate is the thread's, in a call from JavaScript; the object may be moved from.
    pub unsafe fn call(&self, isolate: *mut c_void, object: *mut P) -> *mut c_void {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.0)(isolate, object) }
    }
}

/// `v8::Isolate::GetCurrent`.
pub const CURRENT_ISOLATE: &CStr = c"_ZN2v87Isolate10GetCurrentEv";
/// `v8::Function::GetScriptOrigin`.
pub const SCRIPT_ORIGIN: &CStr = c"_ZNK2v88Function15GetScriptOriginEv";
/// `v8::Function::ScriptId`.
pub const SCRIPT_ID: &CStr = c"_ZNK2v88Function8ScriptIdEv";
/// `v8::Function::GetScriptStartPosition`.
pub const SCRIPT_POSITION: &CStr = c"_ZNK2v88Function22GetScriptStartPositionEv";
/// `v8::Function::GetScriptLineNumber`.
pub const SCRIPT_LINE: &CStr = c"_ZNK2v88Function19GetScriptLineNumberEv";
/// `v8::Function::GetScriptColumnNumber`.
pub const SCRIPT_COLUMN: &CStr = c"_ZNK2v88Function21GetScriptColumnNumberEv";
/// `v8::SharedArrayBuffer::GetBackingStore`.
pub const SHARED_STORE: &CStr = c"_ZN2v817SharedArrayBuffer15GetBackingStoreEv";
/// `v8::ArrayBuffer::GetBackingStore`.
pub const PLAIN_STORE: &CStr = c"_ZN2v811ArrayBuffer15GetBackingStoreEv";
/// `v8::SharedArrayBuffer::New` with a store, of libstdc++ and of libc++.
pub const SHARED_NEW: [&CStr; 2] = [
    c"_ZN2v817SharedArrayBuffer3NewEPNS_7IsolateESt10shared_ptrINS_12BackingStoreEE",
    c"_ZN2v817SharedArrayBuffer3NewEPNS_7IsolateENSt3__110shared_ptrINS_12BackingStoreEEE",
];
/// `v8::ArrayBuffer::New` with a store, of libstdc++ and of libc++.
pub const PLAIN_NEW: [&CStr; 2] = [
    c"_ZN2v811ArrayBuffer3NewEPNS_7IsolateESt10shared_ptrINS_12BackingStoreEE",
    c"_ZN2v811ArrayBuffer3NewEPNS_7IsolateENSt3__110shared_ptrINS_12BackingStoreEEE",
];
/// `v8::ArrayBuffer::IsDetachable`.
pub const IS_DETACHABLE: &CStr = c"_ZNK2v811ArrayBuffer12IsDetachableEv";
