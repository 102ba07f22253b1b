//! The file itself, held by a lock of the system.
//!
//! No other process writes it, or reads it as a store, until it is closed.

use std::{
    fs::{File, TryLockError},
    io::{Seek, SeekFrom, Write},
    path::Path,
};

use super::problem::Problem;

/// Written beyond the end to learn whether a disk is full.
static PROBE: [u8; 1 << 16] = [0; 1 << 16];

/// Opens a file, which is created if it does not exist, and locks it until it is closed.
///
/// # Errors
///
/// `InUse` if another process has it; see [`Problem`].
pub fn open_locked(path: &Path) -> Result<File, Problem> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Problem::Foreign("it is not a regular file".into()));
    }
    match try_lock(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Problem::InUse),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Whether a file cannot become longer. The engine reports a write for which there was room in part as a
/// failure of the device.
pub fn is_disk_full(file: &mut File) -> bool {
    let Ok(end) = file.seek(SeekFrom::End(0)) else { return false };
    let outcome = file.write_all(&PROBE).and_then(|()| file.sync_data());
    file.set_len(end).ok();
    outcome.is_err_and(|error| matches!(error.into(), Problem::DiskFull))
}

#[cfg(unix)]
fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// A lock of Windows also refuses reads and writes by other handles of its owner, such as the engine's. So it
/// is on a byte that no file is long enough to have.
#[cfg(windows)]
fn try_lock(file: &File) -> Result<(), TryLockError> {
    use std::{ffi::c_void, io, os::windows::io::AsRawHandle};

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
