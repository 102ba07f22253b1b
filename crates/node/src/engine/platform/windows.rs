//! Windows: the modules of the process, and their symbols.
//!
//! Nothing is loaded here; the program's own module is the one that exports Node's functions.

use std::ffi::{CStr, OsString, c_void};
use std::os::windows::ffi::{OsStrExt, OsStringExt};

type Handle = *mut c_void;

/// Add-ons, and everything else that a process has loaded: at most this number of modules is looked at.
const MODULES_MAX: usize = 1024;
/// UTF-16 units of a path that is looked at.
const PATH_UNITS_MAX: usize = 32_768;
const FROM_ADDRESS: u32 = 4;
const PIN: u32 = 1;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetCurrentProcess() -> Handle;
    fn GetModuleHandleW(name: *const u16) -> Handle;
    fn GetModuleHandleExW(flags: u32, name_or_address: *const c_void, module: *mut Handle) -> i32;
    fn GetModuleFileNameW(module: Handle, path: *mut u16, units: u32) -> u32;
    fn GetProcAddress(module: Handle, name: *const std::ffi::c_char) -> *mut c_void;
    fn K32EnumProcessModules(process: Handle, modules: *mut Handle, bytes: u32, needed: *mut u32) -> i32;
}

/// The address of a symbol of the running program, null if no symbol has that name.
pub fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the program's own module is loaded; looks a name up.
    unsafe { GetProcAddress(GetModuleHandleW(std::ptr::null()), name.as_ptr()) }
}

/// This library; with `PIN` it stays in memory.
fn own_module(flags: u32) -> Option<Handle> {
    let mut module = std::ptr::null_mut();
    let address = (own_path as *const ()).cast();
    // SAFETY: an address in this library, and a local. Without PIN the count rises, which keeps it as well.
    let found = unsafe { GetModuleHandleExW(FROM_ADDRESS | flags, address, &raw mut module) };
    (found != 0).then_some(module)
}

/// Keep this library in memory when Node closes it.
pub fn stay_loaded() {
    own_module(PIN);
}

fn path_of(module: Handle) -> Option<String> {
    let mut path = vec![0_u16; PATH_UNITS_MAX];
    // SAFETY: a buffer with its size. A module that is unloaded meanwhile has no path.
    let units = unsafe { GetModuleFileNameW(module, path.as_mut_ptr(), PATH_UNITS_MAX as u32) } as usize;
    (units > 0 && units < PATH_UNITS_MAX)
        .then(|| OsString::from_wide(&path[..units]).to_string_lossy().into_owned())
}

/// The path of this library.
pub fn own_path() -> Option<String> {
    own_module(0).and_then(path_of)
}

/// The paths of the loaded libraries that are Node add-ons, in load order.
pub fn libraries() -> Vec<String> {
    let mut modules = vec![std::ptr::null_mut(); MODULES_MAX];
    let (bytes, mut needed) = ((MODULES_MAX * size_of::<Handle>()) as u32, 0);
    // SAFETY: a buffer with its size, and a local.
    let known =
        unsafe { K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), bytes, &raw mut needed) };
    let count = if known == 0 { 0 } else { needed as usize / size_of::<Handle>() };
    let paths = modules.into_iter().take(count).filter_map(path_of);
    paths.filter(|path| path.ends_with(".node")).collect()
}

/// The address of a symbol of a library that is loaded already, and that stays so.
pub fn symbol_of(path: &str, name: &CStr) -> Option<*mut c_void> {
    let path: Vec<u16> = OsString::from(path).encode_wide().chain([0]).collect();
    // SAFETY: a string with its closing zero; looks a name up in a module that is loaded.
    unsafe {
        let module = GetModuleHandleW(path.as_ptr());
        if module.is_null() {
            return None;
        }
        Some(GetProcAddress(module, name.as_ptr())).filter(|found| !found.is_null())
    }
}
