//! Memory that several threads refer to: SharedArrayBuffers, and ArrayBuffers on the move.
//!
//! napi cannot move a backing store from one isolate to another; V8 can, with `GetBackingStore` and `New`.
//! Both are looked up by name, and where they are missing such values are refused. A reference to a backing
//! store is only stored, in [`Buffers`], because its control block belongs to the C++ library: another
//! reference comes from V8 (`GetBackingStore` of a wrapper made from the stored one), and V8 releases one
//! when the collector drops a wrapper made from it.

use std::{
    ffi::c_void,
    ptr,
    sync::{
        LazyLock, MutexGuard,
        atomic::{AtomicU32, Ordering},
    },
};

use corespun_bridge::buffers::{self, BackingStore, Buffers};
use napi_sys as sys;

use crate::{
    js::{Env, Outcome, Thrown, Value},
    v8::{CurrentIsolate, abi, symbol},
};

type GetStore = abi::Getter<BackingStore>;
type MakeBuffer = abi::Maker<BackingStore>;
type IsDetachable = unsafe extern "C" fn(*mut c_void) -> bool;

struct V8 {
    isolate: CurrentIsolate,
    get_shared: GetStore,
    make_shared: MakeBuffer,
    get_plain: GetStore,
    make_plain: MakeBuffer,
    /// Optional: without it `lend` detaches the buffer at once, before the call that moves it is accepted.
    is_detachable: Option<IsDetachable>,
}

/// V8's functions, if this Node exports them under their mangled names.
static V8: LazyLock<Option<V8>> = LazyLock::new(|| {
    // SAFETY: the types are those of the names.
    unsafe {
        Some(V8 {
            isolate: symbol(abi::CURRENT_ISOLATE)?,
            get_shared: symbol(abi::SHARED_STORE)?,
            get_plain: symbol(abi::PLAIN_STORE)?,
            make_shared: abi::SHARED_NEW.into_iter().find_map(|name| symbol(name))?,
            make_plain: abi::PLAIN_NEW.into_iter().find_map(|name| symbol(name))?,
            is_detachable: symbol(abi::IS_DETACHABLE),
        })
    }
});

fn v8() -> Outcome<&'static V8> {
    V8.as_ref().ok_or_else(|| {
        Thrown("BUFFER_UNSUPPORTED", "this Node does not export what sharing and moving buffers needs".into())
    })
}

/// The buffers of the process, without the references that were retired since the last call.
///
/// # Safety
///
/// On a thread inside a call from JavaScript.
unsafe fn fresh(v8: &V8) -> MutexGuard<'static, Buffers> {
    let mut buffers = buffers::buffers();
    for (mut store, shared) in buffers.take_retired() {
        let make = if shared { &v8.make_shared } else { &v8.make_plain };
        // SAFETY: inside a call. The wrapper takes over the stored reference, and nothing refers to the
        // wrapper.
        unsafe { wrap(v8, make, &mut store) };
    }
    buffers
}

/// Make a buffer that takes over the reference in `store`, which is empty afterwards.
///
/// # Safety
///
/// Inside a call from JavaScript, with a reference to a backing store of the maker's kind.
unsafe fn wrap(v8: &V8, make: &MakeBuffer, store: &mut BackingStore) -> *mut c_void {
    // SAFETY: guaranteed by the caller.
    let value = unsafe { make.call((v8.isolate)(), store) };
    // V8 may copy the reference instead. Then this one is one too many, except where the function that is
    // called destroys what it receives (the C++ ABI of Windows).
    if !cfg!(windows) && !store.pointer.is_null() {
        // SAFETY: the count of references is the 32 bits behind the first pointer of a control block in
        // libstdc++, and the low half of a word there in libc++. The copy of the wrapper, which the call in
        // progress keeps, is another reference, so the count stays above 0.
        let count = unsafe { AtomicU32::from_ptr(store.control.cast::<usize>().add(1).cast()) };
        // Release: as the C++ library drops a reference, so that the last one sees what this thread has done.
        count.fetch_sub(1, Ordering::Release);
    }
    store.pointer = ptr::null_mut();
    value
}

/// Release the references that were retired since the last call. The thread that drops the last reference
/// to a frame may have no isolate; the next call of any thread that has one frees the memory.
///
/// # Safety
///
/// At the end of a call from JavaScript.
#[inline]
pub unsafe fn release_retired() {
    if buffers::has_retired() {
        // SAFETY: guaranteed by the caller.
        unsafe { release_retired_now() };
    }
}

/// # Safety
///
/// As [`release_retired`].
#[cold]
unsafe fn release_retired_now() {
    if let Ok(v8) = v8() {
        // SAFETY: guaranteed by the caller.
        drop(unsafe { fresh(v8) });
    }
}

fn not_detachable() -> Thrown {
    Thrown("BUFFER_NOT_DETACHABLE", "this ArrayBuffer cannot be moved".into())
}

/// Add a reference to a SharedArrayBuffer's memory and return its number.
///
/// # Safety
///
/// `value` is a SharedArrayBuffer of the call in progress.
pub unsafe fn share(value: Value) -> Outcome<u32> {
    let v8 = v8()?;
    // SAFETY: inside a call; a napi value is V8's handle, whose address is the object's `this`.
    Ok(unsafe { fresh(v8).share(v8.get_shared.call(value.cast())) })
}

/// Keep the memory of `value`, an ArrayBuffer that can be detached, under a number, with one reference.
/// [`leave`] detaches the buffer; if the reference is dropped before that, the buffer is unchanged.
///
/// # Safety
///
/// `value` is an ArrayBuffer of the call in progress.
pub unsafe fn lend(env: Env, value: Value) -> Outcome<u32> {
    let v8 = v8()?;
    let Some(is_detachable) = v8.is_detachable else {
        // SAFETY: guaranteed by the caller.
        return unsafe { detach(env, value) };
    };
    // SAFETY: inside a call; a napi value is V8's handle, whose address is the object's `this`.
    unsafe {
        if !is_detachable(value.cast()) {
            return Err(not_detachable());
        }
        let moved = length(env, value);
        Ok(fresh(v8).keep(v8.get_plain.call(value.cast()), moved))
    }
}

/// The byte length of `value`, an ArrayBuffer of the call in progress.
fn length(env: Env, value: Value) -> usize {
    let (mut data, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: a valid environment, value and out pointers.
    unsafe { sys::napi_get_arraybuffer_info(env.0, value, &raw mut data, &raw mut bytes) };
    bytes
}

/// Detach `value`, an ArrayBuffer whose memory was lent.
///
/// # Safety
///
/// `value` is an ArrayBuffer of the call in progress.
pub unsafe fn leave(env: Env, value: Value) -> Outcome<()> {
    let mut is_detached = false;
    // SAFETY: a valid environment, value and out pointer.
    unsafe { sys::napi_is_detached_arraybuffer(env.0, value, &raw mut is_detached) };
    // SAFETY: a valid environment and value.
    if is_detached || unsafe { sys::napi_detach_arraybuffer(env.0, value) } == sys::Status::napi_ok {
        return Ok(());
    }
    Err(not_detachable())
}

/// Detach `value`, an ArrayBuffer, and keep its memory under a number, with one reference.
///
/// # Safety
///
/// `value` is an ArrayBuffer of the call in progress.
pub unsafe fn detach(env: Env, value: Value) -> Outcome<u32> {
    let v8 = v8()?;
    let moved = length(env, value);
    // SAFETY: as in share. The reference is taken before the buffer releases its memory.
    unsafe {
        let mut buffers = fresh(v8);
        let store = v8.get_plain.call(value.cast());
        if sys::napi_detach_arraybuffer(env.0, value) != sys::Status::napi_ok {
            buffers.put_aside(store, false);
            return Err(not_detachable());
        }
        Ok(buffers.keep(store, moved))
    }
}

/// Make a buffer of this thread over the memory with number `id`: any number of times for a
/// SharedArrayBuffer, once for a moved ArrayBuffer.
///
/// # Safety
///
/// Inside a call from JavaScript.
pub unsafe fn take(id: u32) -> Outcome<Value> {
    let v8 = v8()?;
    // SAFETY: inside a call. The wrapper takes over the reference of the table; for shared memory another
    // one is taken from the wrapper at once, so the table always owns one.
    let taken = buffers::buffers().take(id, |store, shared| unsafe {
        if !shared {
            return wrap(v8, &v8.make_plain, store);
        }
        let value = wrap(v8, &v8.make_shared, store);
        *store = v8.get_shared.call(value);
        value
    });
    taken.map(<*mut c_void>::cast).ok_or_else(|| {
        Thrown("BUFFER_TAKEN", format!("buffer {id} has no memory: a moved buffer arrives only once"))
    })
}
