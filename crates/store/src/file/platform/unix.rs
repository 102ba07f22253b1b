//! Unix: locks of whole files, and paths of any bytes. A descriptor stays open in programs that the process
//! starts, unless it is marked.

use std::{
    borrow::Cow,
    fs::{File, Metadata, TryLockError},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

use lmdb_master_sys as sys;

/// EIO: also a write for which there was room in part.
pub const DEVICE_ERROR: i32 = 5;

/// What two names of one file have in common: its device and inode.
pub type Identity = (u64, u64);

pub fn identity(facts: &Metadata) -> Identity {
    (facts.dev(), facts.ino())
}

/// Keep other processes away until the file is closed.
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// A path as LMDB takes it.
pub fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    path.as_os_str().as_bytes().into()
}

/// LMDB leaves this descriptor open in programs that the process starts.
///
/// # Safety
///
/// The environment is open.
pub unsafe fn close_in_children(environment: *mut sys::MDB_env) {
    let mut descriptor = -1;
    // SAFETY: an open environment has a descriptor, which is its own; the flag is of no other.
    unsafe {
        if sys::mdb_env_get_fd(environment, &raw mut descriptor) == 0 {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}
