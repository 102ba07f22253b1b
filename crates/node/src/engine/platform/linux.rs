//! Linux, with glibc and musl: the list of loaded libraries.
//!
//! Everything else is shared with macOS.

use std::ffi::{CStr, c_int, c_void};

pub use super::unix::{own_path, symbol, symbol_of};

/// The linker has done it: `-z nodelete` (build.rs).
pub fn stay_loaded() {}

/// The paths of the loaded libraries that are Node add-ons, in load order.
pub fn libraries() -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    // SAFETY: the callback only reads its arguments and appends to `paths`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut paths).cast()) };
    paths
}

unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: usize, paths: *mut c_void) -> c_int {
    // SAFETY: `info` is valid during this call of dl_iterate_phdr; `paths` is the vector that `libraries`
    // passed.
    let (name, paths) = unsafe { ((*info).dlpi_name, &mut *paths.cast::<Vec<String>>()) };
    if !name.is_null() {
        // SAFETY: a C string, checked for null.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        if name.ends_with(".node") {
            paths.push(name.into_owned());
        }
    }
    0
}
