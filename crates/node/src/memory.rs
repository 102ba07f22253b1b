//! Memory that the core owns and JavaScript sees as an ArrayBuffer: what calls go through.
//!
//! JavaScript may lose its view of it: a program can detach any buffer that it gets hold of, by `transfer` or
//! a byte stream (`structuredClone` and `postMessage` refuse those of the core). The memory itself stays
//! where it is as long as somebody refers to it: the buffer, or the mailbox, thread state or server that was
//! opened over it.

use std::{
    cell::RefCell,
    ffi::c_void,
    sync::{Arc, Weak},
};

use corespun_bridge::{Memory, Scratch};
use napi_sys as sys;

use crate::js::{Env, Given, Outcome, Thrown, Value, wrong};

thread_local! {
    /// What this thread has made and somebody still refers to.
    static MADE: RefCell<Vec<Weak<Memory>>> = const { RefCell::new(Vec::new()) };
}

/// The bytes of a Uint8Array over memory that this thread has made, and what keeps them.
pub fn of(env: Env, view: Value) -> Outcome<(Arc<Memory>, (*mut u8, usize))> {
    let (data, length) = env.bytes(view)?;
    let found = MADE.with_borrow(|made| {
        made.iter().filter_map(Weak::upgrade).find(|memory| memory.contains(data, length))
    });
    found.map(|memory| (memory, (data, length))).ok_or_else(|| wrong("not a view of the core's memory"))
}

impl Given for Scratch {
    fn of(env: Env, view: Value) -> Outcome<Self> {
        let (memory, (data, length)) = of(env, view)?;
        Self::new(memory, data, length).ok_or_else(|| wrong("scratch too small"))
    }
}

/// An ArrayBuffer of that many zeroes.
pub fn buffer(env: Env, bytes: usize) -> Outcome<Value> {
    let memory = Memory::new(bytes).ok_or_else(|| wrong("memory of that size"))?;
    MADE.with_borrow_mut(|made| {
        made.retain(|other| other.strong_count() > 0);
        made.push(Arc::downgrade(&memory));
    });
    let data = memory.data();
    // SAFETY: the memory lives as long as the reference that goes along.
    let buffer = unsafe { external(env, data.cast(), bytes, memory) };
    buffer.ok_or_else(|| Thrown("NATIVE_MEMORY", "this build of Node refuses memory of native code".into()))
}

/// An ArrayBuffer over memory that `keeper` keeps; `None` where Node refuses that.
///
/// # Safety
///
/// `bytes` bytes at `data` stay valid as long as the reference.
pub unsafe fn external<T>(env: Env, data: *mut c_void, bytes: usize, keeper: Arc<T>) -> Option<Value> {
    let hint = Arc::into_raw(keeper).cast_mut().cast::<c_void>();
    let mut value = std::ptr::null_mut();
    // SAFETY: the caller's promise; the finalizer drops the reference.
    let status = unsafe {
        sys::napi_create_external_arraybuffer(env.0, data, bytes, Some(let_go::<T>), hint, &raw mut value)
    };
    if status != sys::Status::napi_ok {
        // SAFETY: napi has not taken the reference over.
        drop(unsafe { Arc::from_raw(hint.cast::<T>()) });
        return None;
    }
    Some(value)
}

unsafe extern "C" fn let_go<T>(_: sys::napi_env, _: *mut c_void, hint: *mut c_void) {
    // SAFETY: the reference that `external` gave away.
    drop(unsafe { Arc::from_raw(hint.cast::<T>()) });
}
