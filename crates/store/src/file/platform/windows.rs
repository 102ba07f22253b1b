//! Windows: locks of ranges, which are for other handles of their owner too, and paths of UTF-16, which LMDB
//! makes of UTF-8.

use std::{
    borrow::Cow,
    ffi::c_void,
    fs::{File, Metadata, TryLockError},
    io,
    os::windows::io::AsRawHandle,
    path::Path,
};

use lmdb_master_sys as sys;

/// None: a full disk has a number of its own.
pub const DEVICE_ERROR: i32 = i32::MAX;

#[repr(C)]
struct Overlapped {
    internal: [usize; 2],
    offset: [u32; 2],
    event: *mut c_void,
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn LockFileEx(
        file: *mut c_void,
        flags: u32,
        reserved: u32,
        bytes: u32,
        bytes_high: u32,
        overlapped: *mut Overlapped,
    ) -> i32;
}

/// None: a file keeps its name while the engine, which does not share that, has it open.
pub type Identity = ();

pub fn identity(_: &Metadata) -> Identity {}

/// Keep other processes away until the file is closed. A lock also refuses reads and writes by other handles
/// of its owner, such as the engine's. So it is on a byte that no file is long enough to have.
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    const EXCLUSIVE_AT_ONCE: u32 = 2 | 1;
    const LOCK_VIOLATION: i32 = 33;

    let mut range = Overlapped { internal: [0; 2], offset: [0, 0x4000_0000], event: std::ptr::null_mut() };
    // SAFETY: the handle is open, and not an overlapped one: the call has ended when it returns.
    if unsafe { LockFileEx(file.as_raw_handle(), EXCLUSIVE_AT_ONCE, 0, 1, 0, &raw mut range) } != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let is_held = error.raw_os_error() == Some(LOCK_VIOLATION);
    Err(if is_held { TryLockError::WouldBlock } else { TryLockError::Error(error) })
}

pub fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    path.to_string_lossy().into_owned().into_bytes().into()
}

/// Windows passes no handle that is not marked for it.
///
/// # Safety
///
/// None is needed here; that of Unix needs an open environment.
pub unsafe fn close_in_children(_: *mut sys::MDB_env) {}
