//! LMDB, behind functions that are safe to call: one file, one table, one writing thread.
//!
//! It is opened without its own lock file, so the caller must have the file alone, and only a file whose
//! pages were read before (`pages`), because LMDB believes what it finds in them. Its map of the file is
//! read-only: pages are written by calls that can fail, so a full disk is an error and not a signal.

use std::{
    ffi::{CStr, CString},
    io, mem,
    path::Path,
    ptr,
};

use lmdb_master_sys as sys;

use super::{
    platform::{DEVICE_ERROR, close_in_children, path_bytes},
    problem::Problem,
};

/// The map is at least so large; a multiple of every system's pages.
const MAP_BYTES_MIN: usize = 16 << 20;

/// A failure that the caller may be able to do something about.
#[derive(Debug)]
pub enum Failure {
    /// The file has reached the end of the map: see [`Lmdb::grow`].
    MapFull,
    /// A write has failed in such a way that the file must be opened again.
    Ended,
    /// The device has failed, or was full in the middle of a write.
    Device(io::Error),
    /// Any other one.
    Problem(Problem),
}

/// The number that LMDB returns: 0, its own (negative), or the system's.
fn checked(code: i32) -> Result<(), Failure> {
    match code {
        0 => Ok(()),
        sys::MDB_MAP_FULL => Err(Failure::MapFull),
        sys::MDB_PANIC => Err(Failure::Ended),
        DEVICE_ERROR => Err(Failure::Device(io::Error::from_raw_os_error(code))),
        1.. => Err(Failure::Problem(io::Error::from_raw_os_error(code).into())),
        _ => {
            // SAFETY: it returns a constant text for each of its own numbers, and one for unknown ones.
            let text = unsafe { CStr::from_ptr(sys::mdb_strerror(code)) }.to_string_lossy().into_owned();
            let is_damage = matches!(
                code,
                sys::MDB_CORRUPTED | sys::MDB_PAGE_NOTFOUND | sys::MDB_INVALID | sys::MDB_VERSION_MISMATCH
            );
            Err(Failure::Problem(if is_damage { Problem::Corrupt(text) } else { Problem::Failed(text) }))
        }
    }
}

/// An open file. The pointer makes it neither `Send` nor `Sync`: it stays in the thread that opens it.
pub struct Lmdb {
    environment: *mut sys::MDB_env,
    map_bytes: usize,
}

impl Lmdb {
    /// Opens a file of `file_bytes` bytes that nobody else has open; an empty one becomes a file of LMDB.
    pub fn open(path: &Path, file_bytes: u64) -> Result<Self, Failure> {
        let path = CString::new(path_bytes(path))
            .map_err(|_| Failure::Problem(Problem::Failed("its path has a zero byte".into())))?;
        let mut environment = ptr::null_mut();
        // SAFETY: the pointer is valid for a write.
        checked(unsafe { sys::mdb_env_create(&raw mut environment) })?;
        let needed = usize::try_from(file_bytes).unwrap_or(usize::MAX).saturating_mul(2);
        let map_bytes = needed.max(MAP_BYTES_MIN).next_power_of_two();
        // From here on it is closed when it is dropped, as it must be also if it cannot be opened.
        let mut opened = Self { environment, map_bytes };
        opened.map()?;
        let flags = sys::MDB_NOSUBDIR | sys::MDB_NOLOCK | sys::MDB_NOTLS;
        // SAFETY: `create` has returned it, it is not open yet, and the path ends with a zero.
        checked(unsafe { sys::mdb_env_open(environment, path.as_ptr(), flags, 0o666) })?;
        // SAFETY: it is open.
        unsafe { close_in_children(environment) };
        Ok(opened)
    }

    /// Makes room for twice as much. No transaction is open: [`Lmdb::commit`] borrows it exclusively.
    pub fn grow(&mut self) -> Result<(), Failure> {
        self.map_bytes = self.map_bytes.checked_mul(2).ok_or(Failure::MapFull)?;
        self.map()
    }

    fn map(&mut self) -> Result<(), Failure> {
        // SAFETY: it is not closed yet, and has no transaction.
        checked(unsafe { sys::mdb_env_set_mapsize(self.environment, self.map_bytes as _) })
    }

    /// All changes that `body` makes, synced; or none of them, if it or the commit fails.
    pub fn commit(
        &mut self,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut handle = ptr::null_mut();
        // SAFETY: the environment is open, and this thread has no other transaction: `self` is borrowed.
        checked(unsafe { sys::mdb_txn_begin(self.environment, ptr::null_mut(), 0, &raw mut handle) })?;
        let mut transaction = Transaction { handle, table: 0, lmdb: self };
        // SAFETY: the transaction is open; without a name it is the table that every file has.
        checked(unsafe { sys::mdb_dbi_open(handle, ptr::null(), 0, &raw mut transaction.table) })?;
        body(&mut transaction)?;
        mem::forget(transaction);
        // SAFETY: it is open, and is not used again: also a failing commit frees it.
        checked(unsafe { sys::mdb_txn_commit(handle) })
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: `create` has returned it, it is closed once, and no transaction is open.
        unsafe { sys::mdb_env_close(self.environment) };
    }
}

/// Changes of one commit; dropped, they are undone.
pub struct Transaction<'a> {
    handle: *mut sys::MDB_txn,
    table: sys::MDB_dbi,
    #[expect(dead_code, reason = "it keeps the file open, and others from beginning")]
    lmdb: &'a mut Lmdb,
}

impl Transaction<'_> {
    /// A key has 1 to 511 bytes.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let (mut key, mut value) = (borrowed(key), borrowed(value));
        // SAFETY: the transaction is open, and both are read only, and copied before it returns.
        checked(unsafe { sys::mdb_put(self.handle, self.table, &raw mut key, &raw mut value, 0) })
    }

    /// Also if it has no such key.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Failure> {
        let mut key = borrowed(key);
        // SAFETY: as `put`; without a value, as tables without duplicates need none.
        match unsafe { sys::mdb_del(self.handle, self.table, &raw mut key, ptr::null_mut()) } {
            sys::MDB_NOTFOUND => Ok(()),
            code => checked(code),
        }
    }

    pub fn clear(&mut self) -> Result<(), Failure> {
        // SAFETY: the transaction is open, and has no cursor.
        checked(unsafe { sys::mdb_drop(self.handle, self.table, 0) })
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open: `commit` forgets one before it ends it.
        unsafe { sys::mdb_txn_abort(self.handle) };
    }
}

fn borrowed(bytes: &[u8]) -> sys::MDB_val {
    sys::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}
