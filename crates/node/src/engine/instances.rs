//! Other copies of this library in the process.
//!
//! Two copies of the package would have two separate sets of tables. Each copy exports
//! `corespun_native_version`; a copy that is loaded later finds the first one among the loaded objects, and
//! JavaScript uses the first one if the versions are equal and throws if they differ. The copy that is loaded
//! first finds no other.

use std::ffi::{CStr, c_char, c_int, c_void};

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
#[cfg(target_os = "linux")]
pub fn other() -> Option<Other> {
    let mut paths: Vec<String> = Vec::new();
    // SAFETY: the callback only reads its arguments and appends to `paths`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut paths).cast()) };
    let own = own_path();
    // Objects are listed in load order.
    paths.into_iter().take_while(|path| Some(path) != own.as_ref()).find_map(ask)
}

/// Other systems: copies are not detected.
#[cfg(not(target_os = "linux"))]
pub fn other() -> Option<Other> {
    None
}

#[cfg(target_os = "linux")]
unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: usize, paths: *mut c_void) -> c_int {
    // SAFETY: `info` is valid during this call of dl_iterate_phdr; `paths` is the vector that `other` passed.
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

#[cfg(target_os = "linux")]
fn own_path() -> Option<String> {
    // SAFETY: a zeroed Dl_info is valid; the address is in this library.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let found = libc::dladdr((corespun_native_version as *const ()).cast(), &raw mut info);
        (found != 0 && !info.dli_fname.is_null())
            .then(|| CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned())
    }
}

#[cfg(target_os = "linux")]
fn ask(path: String) -> Option<Other> {
    let name = std::ffi::CString::new(path.as_str()).ok()?;
    // SAFETY: RTLD_NOLOAD searches loaded objects only; the symbol, if any, has the type declared here.
    unsafe {
        let library = libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        let found = libc::dlsym(library, c"corespun_native_version".as_ptr());
        let version = (!found.is_null()).then(|| {
            let version = std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_char>(found);
            CStr::from_ptr(version()).to_string_lossy().into_owned()
        });
        libc::dlclose(library);
        version.map(|version| Other { path, version })
    }
}
