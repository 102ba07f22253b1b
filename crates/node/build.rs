//! Link settings of the binding.
//!
//! `nodelete` keeps the library in memory once loaded: the process-wide tables live in it, and a process in
//! which only worker threads load it would otherwise unload it, tables and all, when the first of them ends.

fn main() {
    napi_build::setup();
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
