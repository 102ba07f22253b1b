//! Other copies of this library in the process.
//!
//! Two copies of the package would have two separate sets of tables. Each copy exports
//! `corespun_native_version`; a copy that is loaded later finds the first one among the loaded objects, and
//! JavaScript uses the first one if the versions are equal and throws if they differ. The copy that is
//! loaded first finds no other.

use std::ffi::{CStr, c_char, c_void};

use super::platform;

/// The version, as a C string for `corespun_native_version`.
static VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => unreachable!(),
};

/// This copy's version; other copies look this function up by name.
#[unsafe(no_mangle)]
pub extern "C" fn corespun_native_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Another copy of the library.
pub struct Other {
    /// Path of its library.
    pub path: String,
    /// Its version.
    pub version: String,
}

/// The first copy that was loaded before this one, if any.
pub fn other() -> Option<Other> {
    let own = platform::own_path();
    platform::libraries().into_iter().take_while(|path| Some(path) != own.as_ref()).find_map(ask)
}

fn ask(path: String) -> Option<Other> {
    let found = platform::symbol_of(&path, c"corespun_native_version")?;
    // SAFETY: the symbol has the type declared here, and each copy stays loaded.
    let version = unsafe {
        let version = std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_char>(found);
        CStr::from_ptr(version()).to_string_lossy().into_owned()
    };
    Some(Other { path, version })
}
