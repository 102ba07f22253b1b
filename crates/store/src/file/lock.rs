//! The file itself, held by a lock of the system.
//!
//! No other process writes it, or reads it as a store, until it is closed.

use std::{
    fs::{File, TryLockError},
    io::{Seek, SeekFrom, Write},
    path::Path,
};

use super::{platform::try_lock, problem::Problem};

/// Written beyond the end to learn whether a disk is full.
static PROBE: [u8; 1 << 16] = [0; 1 << 16];

/// Opens a file, which is created if it does not exist, and locks it until it is closed.
/// `InUse`: another process has it.
pub fn open_locked(path: &Path) -> Result<File, Problem> {
    let irregular = || Problem::Foreign("it is not a regular file".into());
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
    // Windows denies access to a folder.
    let file = opened.map_err(|error| if path.is_dir() { irregular() } else { error.into() })?;
    if !file.metadata()?.is_file() {
        return Err(irregular());
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
