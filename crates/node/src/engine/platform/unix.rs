//! What Linux and macOS have in common: the dynamic linker's functions.
//!
//! Symbols of the program, and of add-ons that are loaded already; nothing is loaded here.

use std::ffi::{CStr, CString, c_void};

/// The address of a symbol of the running program, null if no symbol has that name.
pub fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: looks a name up.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The path of this library.
pub fn own_path() -> Option<String> {
    // SAFETY: a zeroed Dl_info is valid; the address is in this library.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let found = libc::dladdr((own_path as *const ()).cast(), &raw mut info);
        (found != 0 && !info.dli_fname.is_null())
            .then(|| CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned())
    }
}

/// The address of a symbol of a library that is loaded already, and that stays so.
pub fn symbol_of(path: &str, name: &CStr) -> Option<*mut c_void> {
    let path = CString::new(path).ok()?;
    // SAFETY: RTLD_NOLOAD searches loaded objects only; the handle is closed once.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        let found = libc::dlsym(library, name.as_ptr());
        libc::dlclose(library);
        Some(found).filter(|found| !found.is_null())
    }
}
