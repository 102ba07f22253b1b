//! Link settings of the binding. The functions of Node that it calls are found when it is loaded.
//!
//! `nodelete` keeps the library in memory once loaded: the process-wide tables live in it, and a process in
//! which only worker threads load it would otherwise unload it, tables and all, when the first of them ends.
//! Elsewhere src/engine/platform.rs does that.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let arguments: &[&str] = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux") => &["-Wl,-z,nodelete"],
        Ok("macos") => &["-undefined", "dynamic_lookup"],
        _ => &[],
    };
    for argument in arguments {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
