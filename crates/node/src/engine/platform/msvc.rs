//! V8's C++ functions on Windows: names and calls of the MSVC C++ ABI.
//!
//! An object with constructors is returned through memory whose address follows `this`, and comes first in
//! a static function, also if it is one word, as a handle is. It is passed by address, and the function
//! destroys it.

use std::{
    ffi::{CStr, c_void},
    mem::MaybeUninit,
    ptr,
};

/// A method that returns an object through memory.
#[repr(transparent)]
pub struct Getter<R>(unsafe extern "C" fn(*mut c_void, *mut R) -> *mut R);

impl<R> Getter<R> {
    /// Call it.
    ///
    /// # Safety
    ///
    /// `this` is an object of the method's class, in a call from JavaScript. All zeros is a valid `R`.
    pub unsafe fn call(&self, this: *mut c_void) -> R {
        let mut object = MaybeUninit::<R>::zeroed();
        // SAFETY: guaranteed by the caller; the method writes at most an object.
        unsafe {
            (self.0)(this, object.as_mut_ptr());
            object.assume_init()
        }
    }
}

/// A static function of an isolate and an object that returns a handle.
#[repr(transparent)]
pub struct Maker<P>(unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *mut P) -> *mut c_void);

impl<P> Maker<P> {
    /// Call it.
    ///
    /// # Safety
    ///
    /// The isolate is the thread's, in a call from JavaScript; the object is moved from.
    pub unsafe fn call(&self, isolate: *mut c_void, object: *mut P) -> *mut c_void {
        let mut handle = ptr::null_mut();
        // SAFETY: guaranteed by the caller; the function writes one handle.
        unsafe { (self.0)(&raw mut handle, isolate, object) };
        handle
    }
}

/// `v8::Isolate::GetCurrent`.
pub const CURRENT_ISOLATE: &CStr = c"?GetCurrent@Isolate@v8@@SAPEAV12@XZ";
/// `v8::Function::GetScriptOrigin`.
pub const SCRIPT_ORIGIN: &CStr = c"?GetScriptOrigin@Function@v8@@QEBA?AVScriptOrigin@2@XZ";
/// `v8::Function::ScriptId`.
pub const SCRIPT_ID: &CStr = c"?ScriptId@Function@v8@@QEBAHXZ";
/// `v8::Function::GetScriptStartPosition`.
pub const SCRIPT_POSITION: &CStr = c"?GetScriptStartPosition@Function@v8@@QEBAHXZ";
/// `v8::Function::GetScriptLineNumber`.
pub const SCRIPT_LINE: &CStr = c"?GetScriptLineNumber@Function@v8@@QEBAHXZ";
/// `v8::Function::GetScriptColumnNumber`.
pub const SCRIPT_COLUMN: &CStr = c"?GetScriptColumnNumber@Function@v8@@QEBAHXZ";
/// `v8::SharedArrayBuffer::GetBackingStore`.
pub const SHARED_STORE: &CStr =
    c"?GetBackingStore@SharedArrayBuffer@v8@@QEAA?AV?$shared_ptr@VBackingStore@v8@@@std@@XZ";
/// `v8::ArrayBuffer::GetBackingStore`.
pub const PLAIN_STORE: &CStr =
    c"?GetBackingStore@ArrayBuffer@v8@@QEAA?AV?$shared_ptr@VBackingStore@v8@@@std@@XZ";
/// `v8::SharedArrayBuffer::New` with a store.
pub const SHARED_NEW: [&CStr; 1] =
    [c"?New@SharedArrayBuffer@v8@@SA?AV?$Local@VSharedArrayBuffer@v8@@@2@PEAVIsolate@2@\
    V?$shared_ptr@VBackingStore@v8@@@std@@@Z"];
/// `v8::ArrayBuffer::New` with a store.
pub const PLAIN_NEW: [&CStr; 1] = [c"?New@ArrayBuffer@v8@@SA?AV?$Local@VArrayBuffer@v8@@@2@PEAVIsolate@2@\
    V?$shared_ptr@VBackingStore@v8@@@std@@@Z"];
/// `v8::ArrayBuffer::IsDetachable`.
pub const IS_DETACHABLE: &CStr = c"?IsDetachable@ArrayBuffer@v8@@QEBA_NXZ";
