//! The functions of libuv that a mailbox needs in a thread's event loop.
//!
//! They are those of the Node executable. Handles are allocated by the size that libuv reports, so no
//! layout is assumed; each is closed from the environment's clean-up hook and freed in its close callback.

use std::{
    alloc::Layout,
    ffi::{c_int, c_void},
    ptr::NonNull,
};

use corespun_bridge::EventLoop;

/// A handle of any kind.
pub type Handle = NonNull<c_void>;
/// Callback of async, prepare, check and idle handles.
pub type Callback = unsafe extern "C" fn(*mut c_void);

/// Callback of poll handles: the handle, an error or 0, the events that are ready.
#[cfg(has_http)]
pub type PollCallback = unsafe extern "C" fn(*mut c_void, c_int, c_int);

const ASYNC: c_int = 1;
const CHECK: c_int = 2;
const IDLE: c_int = 6;
#[cfg(has_http)]
const POLL: c_int = 8;
const PREPARE: c_int = 9;
#[cfg(has_http)]
const TIMER: c_int = 13;
/// The event that a descriptor is watched for.
#[cfg(has_http)]
const READABLE: c_int = 1;

/// libuv's functions, which belong to the running program. The linkers of Linux and macOS leave them to
/// the loader; a library of Windows would name the file that has them, so there they are looked up when
/// they are first called.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        #[cfg(unix)]
        unsafe extern "C" {
            $(fn $name($($argument: $kind),*) $(-> $result)?;)*
        }
        $(#[cfg(windows)]
        unsafe fn $name($($argument: $kind),*) $(-> $result)? {
            type Function = unsafe extern "C" fn($($kind),*) $(-> $result)?;
            static FOUND: std::sync::LazyLock<Function> = std::sync::LazyLock::new(|| {
                let name = std::ffi::CString::new(stringify!($name)).unwrap_or_default();
                // SAFETY: libuv's type of that function.
                unsafe { super::v8::symbol(&name) }.expect("node.exe exports libuv")
            });
            // SAFETY: guaranteed by the caller.
            unsafe { FOUND($($argument),*) }
        })*
    };
}

functions! {
    fn uv_handle_size(kind: c_int) -> usize;
    fn uv_handle_set_data(handle: *mut c_void, data: *mut c_void);
    fn uv_handle_get_data(handle: *const c_void) -> *mut c_void;
    fn uv_handle_get_type(handle: *const c_void) -> c_int;
    fn uv_async_init(uv_loop: *mut c_void, handle: *mut c_void, callback: Callback) -> c_int;
    fn uv_async_send(handle: *mut c_void) -> c_int;
    fn uv_prepare_init(uv_loop: *mut c_void, handle: *mut c_void) -> c_int;
    fn uv_prepare_start(handle: *mut c_void, callback: Callback) -> c_int;
    fn uv_check_init(uv_loop: *mut c_void, handle: *mut c_void) -> c_int;
    fn uv_check_start(handle: *mut c_void, callback: Callback) -> c_int;
    fn uv_idle_init(uv_loop: *mut c_void, handle: *mut c_void) -> c_int;
    fn uv_idle_start(handle: *mut c_void, callback: Callback) -> c_int;
    fn uv_idle_stop(handle: *mut c_void) -> c_int;
    fn uv_ref(handle: *mut c_void);
    fn uv_unref(handle: *mut c_void);
    fn uv_close(handle: *mut c_void, callback: Callback);
}

#[cfg(has_http)]
functions! {
    fn uv_poll_init(uv_loop: *mut c_void, handle: *mut c_void, fd: c_int) -> c_int;
    fn uv_poll_start(handle: *mut c_void, events: c_int, callback: PollCallback) -> c_int;
    fn uv_timer_init(uv_loop: *mut c_void, handle: *mut c_void) -> c_int;
    fn uv_timer_start(handle: *mut c_void, callback: Callback, timeout: u64, repeat: u64) -> c_int;
    fn uv_timer_stop(handle: *mut c_void) -> c_int;
}

fn layout(kind: c_int) -> Layout {
    // SAFETY: a pure function of libuv.
    let size = unsafe { uv_handle_size(kind) };
    Layout::from_size_align(size, 16).expect("libuv's handles are small")
}

fn allocate(kind: c_int, data: *mut c_void) -> Handle {
    // SAFETY: the size is not zero, and the memory is zeroed before libuv initialises it.
    let handle = unsafe { std::alloc::alloc_zeroed(layout(kind)) };
    let handle = NonNull::new(handle.cast::<c_void>()).expect("out of memory");
    // SAFETY: setting the data field of a handle is allowed before its initialisation.
    unsafe { uv_handle_set_data(handle.as_ptr(), data) };
    handle
}

unsafe extern "C" fn free(handle: *mut c_void) {
    // SAFETY: libuv calls this once, after the handle was closed; `allocate` used the same layout.
    unsafe { std::alloc::dealloc(handle.cast(), layout(uv_handle_get_type(handle))) };
}

/// The handles of one thread's mailbox.
pub struct Handles {
    /// Wakes the loop from any thread.
    pub wake: Handle,
    prepare: Handle,
    check: Handle,
    idle: Handle,
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

impl Handles {
    /// Open them on `uv_loop`; none keeps the loop alive yet. `data` goes to the callbacks, which run
    /// before (`prepare`) and after (`check`) the loop looks for events.
    ///
    /// # Safety
    ///
    /// `uv_loop` is this thread's loop; `data` is valid until the handles are
    /// dropped.
    pub unsafe fn open(uv_loop: *mut c_void, data: *mut c_void, prepare: Callback, check: Callback) -> Self {
        let handles = Self {
            wake: allocate(ASYNC, data),
            prepare: allocate(PREPARE, data),
            check: allocate(CHECK, data),
            idle: allocate(IDLE, data),
        };
        // SAFETY: fresh handles on the loop of this thread.
        unsafe {
            uv_async_init(uv_loop, handles.wake.as_ptr(), nothing);
            uv_prepare_init(uv_loop, handles.prepare.as_ptr());
            uv_prepare_start(handles.prepare.as_ptr(), prepare);
            uv_check_init(uv_loop, handles.check.as_ptr());
            uv_check_start(handles.check.as_ptr(), check);
            uv_idle_init(uv_loop, handles.idle.as_ptr());
            for handle in handles.all() {
                uv_unref(handle.as_ptr());
            }
        }
        handles
    }

    const fn all(&self) -> [Handle; 4] {
        [self.wake, self.prepare, self.check, self.idle]
    }
}

impl EventLoop for Handles {
    fn keep_alive(&self, alive: bool) {
        // SAFETY: an open handle of this thread.
        unsafe { if alive { uv_ref(self.wake.as_ptr()) } else { uv_unref(self.wake.as_ptr()) } }
    }

    fn do_not_wait(&self, active: bool) {
        // SAFETY: an open handle of this thread. An active idle handle makes the poll time-out zero.
        unsafe {
            if active {
                uv_idle_start(self.idle.as_ptr(), nothing);
            } else {
                uv_idle_stop(self.idle.as_ptr());
            }
        }
    }
}

impl Drop for Handles {
    /// Close all; libuv calls `free` for each.
    fn drop(&mut self) {
        for handle in self.all() {
            // SAFETY: open handles of this thread.
            unsafe { uv_close(handle.as_ptr(), free) };
        }
    }
}

/// The poll handle of a descriptor in a thread's loop, and a timer.
#[cfg(has_http)]
pub struct Watch {
    poll: Handle,
    timer: Handle,
}

#[cfg(has_http)]
impl Watch {
    /// Watch `fd` on `uv_loop`, which it keeps alive. `data` goes to the callbacks. `None` if libuv refuses
    /// the descriptor.
    ///
    /// # Safety
    ///
    /// `uv_loop` is this thread's loop; `data` is valid until `close`, and `fd` open.
    pub unsafe fn open(
        uv_loop: *mut c_void,
        data: *mut c_void,
        fd: c_int,
        ready: PollCallback,
    ) -> Option<Self> {
        let poll = allocate(POLL, data);
        // SAFETY: a fresh handle on the loop of this thread; freed, not closed, if its initialisation
        // fails.
        unsafe {
            if uv_poll_init(uv_loop, poll.as_ptr(), fd) != 0 {
                std::alloc::dealloc(poll.as_ptr().cast(), layout(POLL));
                return None;
            }
            uv_poll_start(poll.as_ptr(), READABLE, ready);
            let timer = allocate(TIMER, data);
            uv_timer_init(uv_loop, timer.as_ptr());
            uv_unref(timer.as_ptr());
            Some(Self { poll, timer })
        }
    }

    /// Call back at an interval in milliseconds; `None` stops it.
    pub fn tick(&self, every: Option<(u64, Callback)>) {
        // SAFETY: an open handle of this thread.
        unsafe {
            match every {
                Some((ms, callback)) => uv_timer_start(self.timer.as_ptr(), callback, ms, ms),
                None => uv_timer_stop(self.timer.as_ptr()),
            };
        }
    }

    /// Close both; libuv calls `free` for each. The descriptor may be closed afterwards.
    pub fn close(&self) {
        for handle in [self.poll, self.timer] {
            // SAFETY: open handles of this thread, closed once.
            unsafe { uv_close(handle.as_ptr(), free) };
        }
    }
}

/// The data with which the handle was opened.
///
/// # Safety
///
/// `handle` comes from libuv and was opened by [`Handles::open`] or [`Watch::open`].
pub unsafe fn data_of(handle: *mut c_void) -> *mut c_void {
    // SAFETY: guaranteed by the caller.
    unsafe { uv_handle_get_data(handle) }
}

/// Wakes a loop, and its thread if that waits for a joined call; see [`corespun_bridge::Wake`].
pub struct Waker {
    handle: Handle,
    thread: std::thread::Thread,
}

impl Waker {
    /// Make one for this thread; `handle` wakes its loop.
    pub fn new(handle: Handle) -> Self {
        Self { handle, thread: std::thread::current() }
    }
}

// SAFETY: uv_async_send may be called from any thread; the mailbox drops the waker, under its lock, before
// the handle is closed.
unsafe impl Send for Waker {}

impl corespun_bridge::Wake for Waker {
    fn wake(&self) {
        // SAFETY: the handle is open as long as the waker exists, as above.
        unsafe { uv_async_send(self.handle.as_ptr()) };
        self.thread.unpark();
    }
}
