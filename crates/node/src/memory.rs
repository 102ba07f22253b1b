//! The core's memory as an ArrayBuffer of JavaScript, which calls use for arguments and results.
//!
//! JavaScript may lose its view: a program can detach any buffer that it reaches, by `transfer` or a byte
//! stream (`structuredClone` and `postMessage` refuse buffers of the core). The memory itself stays valid
//! as long as anything refers to it: the buffer, or the mailbox, thread state or server that was opened
//! over it.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use corespun_bridge::{Memory, Scratch};
#[cfg(has_http)]
use corespun_http::Region;
use napi_sys as sys;

use crate::{
    exports,
    js::{Call, Env, Function, NewBuffer, Outcome, Parameter, Thrown, Value, wrong},
    v8::symbol,
};

pub const FUNCTIONS: &[(&str, Function)] = exports! { memory_make, memory_counts, memory_trim };

/// The bytes of a Uint8Array over memory that this thread has made, and the owner of that memory.
fn of(call: &mut Call) -> Outcome<(Arc<Memory>, (*mut u8, usize))> {
    let (data, length) = call.memory()?;
    let memory = Memory::of(data, length).ok_or_else(|| wrong("not a view of the core's memory"))?;
    Ok((memory, (data, length)))
}

impl Parameter for Scratch {
    fn take(call: &mut Call) -> Outcome<Self> {
        let (memory, (data, length)) = of(call)?;
        Self::new(memory, data, length).ok_or_else(|| wrong("scratch too small"))
    }
}

#[cfg(has_http)]
impl Parameter for (Arc<Memory>, Region) {
    fn take(call: &mut Call) -> Outcome<Self> {
        let (memory, (data, length)) = of(call)?;
        // SAFETY: the caller keeps the memory as long as the region; JavaScript waits while native code
        // runs.
        Ok((memory, unsafe { Region::new(data, length) }))
    }
}

/// An ArrayBuffer of zeroes over memory of the core.
fn memory_make(env: Env, bytes: u32) -> Outcome<NewBuffer> {
    let bytes = bytes as usize;
    let memory = Memory::new(bytes).ok_or_else(|| wrong("memory of that size"))?;
    let data = memory.data();
    // SAFETY: the memory is valid as long as the reference that is passed along.
    let buffer = unsafe { external(env, data.cast(), bytes, memory) };
    buffer.ok_or_else(|| Thrown("NATIVE_MEMORY", "this build of Node refuses memory of native code".into()))
}

/// Let the collector of this thread count `bytes` more, or less if negative: it does not count shared memory,
/// and would never collect buffers that keep much of it.
fn memory_counts(env: Env, bytes: f64) {
    let mut all = 0;
    // SAFETY: a valid environment and out pointer.
    unsafe { sys::napi_adjust_external_memory(env.0, bytes as i64, &raw mut all) };
}

/// Return memory that was freed, in all threads, to the system. Of the C libraries only glibc keeps much of
/// it, and has this function.
fn memory_trim() {
    type Trim = unsafe extern "C" fn(usize) -> c_int;
    // SAFETY: the type is that of malloc.h.
    let trim: Option<Trim> = unsafe { symbol(c"malloc_trim") };
    if let Some(trim) = trim {
        // SAFETY: takes a number, and the locks of the allocator, as `malloc` does.
        unsafe { trim(0) };
    }
}

/// Make an ArrayBuffer over memory that `keeper` owns; `None` if Node refuses external memory.
///
/// # Safety
///
/// `bytes` bytes at `data` stay valid as long as the reference.
pub unsafe fn external<T>(env: Env, data: *mut c_void, bytes: usize, keeper: Arc<T>) -> Option<Value> {
    let hint = Arc::into_raw(keeper).cast_mut().cast::<c_void>();
    let mut value = std::ptr::null_mut();
    // SAFETY: guaranteed by the caller; the finalizer drops the reference.
    let status = unsafe {
        sys::napi_create_external_arraybuffer(
            env.0,
            data,
            bytes,
            Some(drop_keeper::<T>),
            hint,
            &raw mut value,
        )
    };
    if status != sys::Status::napi_ok {
        // SAFETY: napi has not taken the reference over.
        drop(unsafe { Arc::from_raw(hint.cast::<T>()) });
        return None;
    }
    Some(value)
}

unsafe extern "C" fn drop_keeper<T>(_: sys::napi_env, _: *mut c_void, hint: *mut c_void) {
    // SAFETY: the reference that `external` passed to napi.
    drop(unsafe { Arc::from_raw(hint.cast::<T>()) });
}
