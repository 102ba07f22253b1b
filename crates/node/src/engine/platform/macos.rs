//! macOS: the list of loaded libraries, and staying among them.
//!
//! Everything else is shared with Linux.

use std::ffi::{CStr, CString, c_char};

pub use super::unix::{own_path, symbol, symbol_of};

unsafe extern "C" {
    fn _dyld_image_count() -> u32;
    fn _dyld_get_image_name(index: u32) -> *const c_char;
}

/// Keep this library in memory when Node closes it: a handle that is never closed.
pub fn stay_loaded() {
    if let Some(path) = own_path().and_then(|path| CString::new(path).ok()) {
        // SAFETY: the library is loaded, so that only its count rises.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    }
}

/// The paths of the loaded libraries that are Node add-ons, in load order.
pub fn libraries() -> Vec<String> {
    // SAFETY: a count, and names by index: null for an index that is not below the count any more. Add-ons
    // that could be unloaded meanwhile are not copies of this library, which stay; their names are only
    // compared.
    let name = |index| unsafe {
        let name = _dyld_get_image_name(index);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    };
    // SAFETY: takes nothing, returns a number.
    let count = unsafe { _dyld_image_count() };
    (0..count).filter_map(name).filter(|name| name.ends_with(".node")).collect()
}
