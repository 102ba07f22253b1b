//! Opening a file beneath a folder with calls that every Unix has: each folder on the way in the one before.
//!
//! It takes a call per segment, and each folder has to be readable. Linux opens such a file in one call;
//! there this is compiled for the tests only, which compare the two.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use super::{READING, owned};

/// The flags with which folders are opened.
pub const FOLDER: libc::c_int = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;

/// Open a file in a folder for reading, never by a link. `ELOOP`: there is a symbolic link on the way;
/// `EXDEV`: the path may leave the folder.
pub fn open_beneath(folder: &OwnedFd, path: &CStr) -> io::Result<OwnedFd> {
    let mut segments = path.to_bytes().split(|&byte| byte == b'/').peekable();
    let mut inner: Option<OwnedFd> = None;
    while let Some(segment) = segments.next() {
        if matches!(segment, b"" | b"." | b"..") {
            break;
        }
        let within = inner.as_ref().unwrap_or(folder).as_raw_fd();
        let is_last = segments.peek().is_none();
        let flags = libc::O_NOFOLLOW | if is_last { READING } else { FOLDER };
        let name = CString::new(segment)?;
        // SAFETY: a C string.
        match owned(unsafe { libc::openat(within, name.as_ptr(), flags) }) {
            Ok(file) if is_last => return Ok(file),
            Ok(next) => inner = Some(next),
            // A link is not a folder either; what it leads to may be one.
            Err(error) if !is_last && error.raw_os_error() == Some(libc::ENOTDIR) => {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EXDEV))
}
