//! Memory that the core owns and JavaScript sees as an ArrayBuffer: what calls go through.
//!
//! JavaScript may lose its view of it: a program can detach any buffer that it gets hold of, by `transfer` or
//! a byte stream (`structuredClone` and `postMessage` refuse those of the core). The memory itself stays
//! where it is as long as somebody refers to it: the buffer, or the port, stage or server that was opened
//! over it.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    cell::RefCell,
    ffi::c_void,
    ptr,
    sync::{Arc, Weak},
};

use napi_sys as sys;

use crate::js::{Env, Outcome, Thrown, Value, wrong};

/// Any kind of number lies well at its start, and cache lines are its own.
const ALIGN: usize = 128;

/// See the module's text.
pub struct Memory {
    data: *mut u8,
    layout: Layout,
}

// SAFETY: only its address is used here; who reads or writes there answers for that.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with that layout.
        unsafe { dealloc(self.data, self.layout) };
    }
}

thread_local! {
    /// What this thread has made and somebody still refers to.
    static MADE: RefCell<Vec<Weak<Memory>>> = const { RefCell::new(Vec::new()) };
}

impl Memory {
    fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes, ALIGN).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: not of size zero.
        let data = unsafe { alloc_zeroed(layout) };
        (!data.is_null()).then_some(Self { data, layout })
    }

    /// The bytes of a Uint8Array over memory that this thread has made, and what keeps them.
    pub fn of(env: Env, view: Value) -> Outcome<(Arc<Self>, (*mut u8, usize))> {
        let (data, length) = env.bytes(view)?;
        let found = MADE.with_borrow(|made| {
            made.iter().filter_map(Weak::upgrade).find(|memory| memory.contains(data, length))
        });
        found.map(|memory| (memory, (data, length))).ok_or_else(|| wrong("not a view of the core's memory"))
    }

    /// An ArrayBuffer of that many zeroes.
    pub fn buffer(env: Env, bytes: usize) -> Outcome<Value> {
        let memory = Arc::new(Self::new(bytes).ok_or_else(|| wrong("memory of that size"))?);
        MADE.with_borrow_mut(|made| {
            made.retain(|other| other.strong_count() > 0);
            made.push(Arc::downgrade(&memory));
        });
        let data = memory.data.cast::<c_void>();
        let hint = Arc::into_raw(memory).cast_mut().cast::<c_void>();
        let mut value = ptr::null_mut();
        // SAFETY: the memory lives as long as the reference that the finalizer drops.
        let status = unsafe {
            sys::napi_create_external_arraybuffer(env.0, data, bytes, Some(drop_buffer), hint, &raw mut value)
        };
        if status != sys::Status::napi_ok {
            // SAFETY: napi has not taken the reference over.
            drop(unsafe { Arc::from_raw(hint.cast::<Self>()) });
            return Err(Thrown("NATIVE_MEMORY", "this build of Node refuses memory of native code".into()));
        }
        Ok(value)
    }

    fn contains(&self, data: *mut u8, length: usize) -> bool {
        let (start, end) = (self.data.addr(), self.data.addr() + self.layout.size());
        length > 0 && data.addr() >= start && data.addr() + length <= end
    }
}

unsafe extern "C" fn drop_buffer(_: sys::napi_env, _: *mut c_void, hint: *mut c_void) {
    // SAFETY: the reference that `buffer` gave away.
    drop(unsafe { Arc::from_raw(hint.cast::<Memory>()) });
}
