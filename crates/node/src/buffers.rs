//! Memory that several threads refer to: SharedArrayBuffers, and ArrayBuffers on the move.
//!
//! napi cannot move a backing store from one isolate to another; V8 can, with `GetBackingStore` and `New`.
//! Both are looked up by name, and where they are missing such values are refused. A `std::shared_ptr` is
//! only stored, as the two words it consists of, and never copied or dropped here, because its control block
//! belongs to the C++ library: another reference comes from V8 (`GetBackingStore` of a wrapper made from the
//! stored one), and V8 releases one when the collector drops a wrapper made from it.

use std::{
    collections::HashMap,
    ffi::{CStr, c_void},
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use corespun_bridge::registry::{self, lock};
use napi_sys as sys;

use crate::js::{Env, Outcome, Thrown, Value};

/// A `std::shared_ptr<v8::BackingStore>`: pointer and control block. The third word makes the C ABI return it
/// through memory, as the C++ ABI does.
#[repr(C)]
#[derive(Clone, Copy)]
struct StoreRef {
    pointer: *mut c_void,
    control: *mut c_void,
    unused: *mut c_void,
}

// SAFETY: backing stores and their reference counts are thread-safe.
unsafe impl Send for StoreRef {}

type GetStore = unsafe extern "C" fn(*mut c_void) -> StoreRef;
type MakeBuffer = unsafe extern "C" fn(*mut c_void, *mut StoreRef) -> *mut c_void;
type IsDetachable = unsafe extern "C" fn(*mut c_void) -> bool;
type CurrentIsolate = unsafe extern "C" fn() -> *mut c_void;

struct V8 {
    isolate: CurrentIsolate,
    get_shared: GetStore,
    make_shared: MakeBuffer,
    get_plain: GetStore,
    make_plain: MakeBuffer,
    /// Optional: without it `lend` detaches the buffer at once, before the call that moves it is accepted.
    is_detachable: Option<IsDetachable>,
}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a name up in the running program.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// V8's functions, if this Node exports them under their mangled names.
static V8: LazyLock<Option<V8>> = LazyLock::new(|| {
    let either = |first: &CStr, second: &CStr| symbol(first).or_else(|| symbol(second));
    let isolate = symbol(c"_ZN2v87Isolate10GetCurrentEv")?;
    let get_shared = symbol(c"_ZN2v817SharedArrayBuffer15GetBackingStoreEv")?;
    let get_plain = symbol(c"_ZN2v811ArrayBuffer15GetBackingStoreEv")?;
    let make_shared = either(
        c"_ZN2v817SharedArrayBuffer3NewEPNS_7IsolateESt10shared_ptrINS_12BackingStoreEE",
        c"_ZN2v817SharedArrayBuffer3NewEPNS_7IsolateENSt3__110shared_ptrINS_12BackingStoreEEE",
    )?;
    let make_plain = either(
        c"_ZN2v811ArrayBuffer3NewEPNS_7IsolateESt10shared_ptrINS_12BackingStoreEE",
        c"_ZN2v811ArrayBuffer3NewEPNS_7IsolateENSt3__110shared_ptrINS_12BackingStoreEEE",
    )?;
    // SAFETY: the mangled names fix the parameters; a shared_ptr parameter is passed by address and a
    // shared_ptr result through memory in the Itanium C++ ABI, as in the types above.
    unsafe {
        Some(V8 {
            isolate: std::mem::transmute::<*mut c_void, CurrentIsolate>(isolate),
            get_shared: std::mem::transmute::<*mut c_void, GetStore>(get_shared),
            make_shared: std::mem::transmute::<*mut c_void, MakeBuffer>(make_shared),
            get_plain: std::mem::transmute::<*mut c_void, GetStore>(get_plain),
            make_plain: std::mem::transmute::<*mut c_void, MakeBuffer>(make_plain),
            is_detachable: symbol(c"_ZNK2v811ArrayBuffer12IsDetachableEv")
                .map(|found| std::mem::transmute::<*mut c_void, IsDetachable>(found)),
        })
    }
});

struct Held {
    store: StoreRef,
    shared: bool,
    references: u32,
    /// Bytes that move with it; 0 for shared memory, which also stays with its sender.
    moved: usize,
}

#[derive(Default)]
struct Table {
    held: HashMap<u32, Held>,
    /// Numbers of shared memory by the address of its backing store.
    shared: HashMap<usize, u32>,
    /// References for V8 to release, which requires a thread with an isolate.
    retired: Vec<(StoreRef, bool)>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Whether `Table::retired` has entries; written under the lock.
static RETIRED: AtomicBool = AtomicBool::new(false);

fn v8() -> Outcome<&'static V8> {
    V8.as_ref().ok_or_else(|| {
        Thrown("BUFFER_UNSUPPORTED", "this Node does not export what sharing and moving buffers needs".into())
    })
}

impl Table {
    fn release(&mut self, id: u32) {
        let Some(held) = self.held.get_mut(&id) else { return };
        held.references -= 1;
        if held.references == 0 {
            let Some(held) = self.held.remove(&id) else { return };
            if held.shared {
                self.shared.remove(&(held.store.pointer as usize));
            }
            if !held.store.pointer.is_null() {
                self.put_aside(held.store, held.shared);
            }
        }
    }

    /// Keep a reference that is no longer needed until a thread with an isolate releases it.
    fn put_aside(&mut self, store: StoreRef, shared: bool) {
        self.retired.push((store, shared));
        RETIRED.store(true, Ordering::Relaxed);
    }

    /// Release the retired references.
    ///
    /// # Safety
    ///
    /// On a thread inside a call from JavaScript.
    unsafe fn release_retired(&mut self, v8: &V8) {
        RETIRED.store(false, Ordering::Relaxed);
        for (mut store, shared) in self.retired.drain(..) {
            // SAFETY: the wrapper takes over the stored reference (it is moved from), and nothing refers to
            // the wrapper.
            unsafe { (if shared { v8.make_shared } else { v8.make_plain })((v8.isolate)(), &raw mut store) };
        }
    }
}

/// Release the references that were retired since the last call. The thread that drops the last reference to
/// a frame may have no isolate; the next call of any thread that has one frees the memory.
///
/// # Safety
///
/// At the end of a call from JavaScript.
#[inline]
pub unsafe fn release_retired() {
    // Relaxed: a hint; the next call releases what this one misses.
    if RETIRED.load(Ordering::Relaxed) {
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
        unsafe { lock(&TABLE).release_retired(v8) };
    }
}

/// Add a reference to a SharedArrayBuffer's memory and return its number.
///
/// # Safety
///
/// `value` is a SharedArrayBuffer of the call in progress.
pub unsafe fn share(value: Value) -> Outcome<u32> {
    let v8 = v8()?;
    let mut table = lock(&TABLE);
    // SAFETY: inside a call; a napi value is V8's handle, whose address is the object's `this`.
    let store = unsafe {
        table.release_retired(v8);
        (v8.get_shared)(value.cast())
    };
    let address = store.pointer as usize;
    if let Some(&id) = table.shared.get(&address) {
        table.put_aside(store, true);
        if let Some(held) = table.held.get_mut(&id) {
            held.references += 1;
        }
        return Ok(id);
    }
    let id = registry::next_id();
    table.shared.insert(address, id);
    table.held.insert(id, Held { store, shared: true, references: 1, moved: 0 });
    Ok(id)
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
    if !unsafe { is_detachable(value.cast()) } {
        return Err(Thrown("BUFFER_NOT_DETACHABLE", "this ArrayBuffer cannot be moved".into()));
    }
    let moved = length(env, value);
    let mut table = lock(&TABLE);
    // SAFETY: as above.
    let store = unsafe {
        table.release_retired(v8);
        (v8.get_plain)(value.cast())
    };
    let id = registry::next_id();
    table.held.insert(id, Held { store, shared: false, references: 1, moved });
    Ok(id)
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
    Err(Thrown("BUFFER_NOT_DETACHABLE", "this ArrayBuffer cannot be moved".into()))
}

/// Detach `value`, an ArrayBuffer, and keep its memory under a number, with one reference.
///
/// # Safety
///
/// `value` is an ArrayBuffer of the call in progress.
pub unsafe fn detach(env: Env, value: Value) -> Outcome<u32> {
    let v8 = v8()?;
    let moved = length(env, value);
    let mut table = lock(&TABLE);
    // SAFETY: as in share. The reference is taken before the buffer releases its memory.
    unsafe {
        table.release_retired(v8);
        let store = (v8.get_plain)(value.cast());
        if sys::napi_detach_arraybuffer(env.0, value) != sys::Status::napi_ok {
            table.put_aside(store, false);
            return Err(Thrown("BUFFER_NOT_DETACHABLE", "this ArrayBuffer cannot be moved".into()));
        }
        let id = registry::next_id();
        table.held.insert(id, Held { store, shared: false, references: 1, moved });
        Ok(id)
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
    let mut table = lock(&TABLE);
    let missing =
        || Thrown("BUFFER_MOVED", format!("buffer {id} has no memory: a moved buffer arrives only once"));
    let held = table.held.get_mut(&id).ok_or_else(missing)?;
    if held.store.pointer.is_null() {
        return Err(missing());
    }
    // SAFETY: inside a call. `make_*` moves the reference out of the table into the wrapper; for shared
    // memory another one is taken from the wrapper at once, so the table always owns one.
    unsafe {
        if held.shared {
            let value = (v8.make_shared)((v8.isolate)(), &raw mut held.store);
            // If V8 copied the reference instead, the table still has its own.
            if held.store.pointer.is_null() {
                held.store = (v8.get_shared)(value);
            }
            return Ok(value.cast());
        }
        let value = (v8.make_plain)((v8.isolate)(), &raw mut held.store);
        held.store.pointer = std::ptr::null_mut();
        Ok(value.cast())
    }
}

/// Drop one reference.
pub fn release(id: u32) {
    lock(&TABLE).release(id);
}

/// The number of shared and moved buffers that have not been taken or released; for leak checks.
pub fn count() -> usize {
    lock(&TABLE).held.len()
}

/// The references that belong to some bytes; dropped with the last clone.
pub struct Attached(Arc<References>);

struct References {
    ids: Vec<u32>,
    moved: usize,
}

impl Attached {
    /// Take over one reference of each of `ids`.
    pub fn new(ids: Vec<u32>) -> Self {
        let moved = {
            let table = lock(&TABLE);
            ids.iter().filter_map(|id| table.held.get(id)).map(|held| held.moved).sum()
        };
        Self(Arc::new(References { ids, moved }))
    }

    /// Bytes of memory that move with the references.
    pub fn moved(&self) -> usize {
        self.0.moved
    }

    /// Whether any of the references is to moved memory.
    pub fn moves(&self) -> bool {
        let table = lock(&TABLE);
        self.0.ids.iter().any(|id| table.held.get(id).is_some_and(|held| !held.shared))
    }
}

impl Clone for Attached {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Drop for References {
    fn drop(&mut self) {
        let mut table = lock(&TABLE);
        for &id in &self.ids {
            table.release(id);
        }
    }
}
