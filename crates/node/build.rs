//! Link settings of the binding. The functions of Node that it calls are found when it is loaded.
//!
//! `nodelete` keeps the library in memory once loaded: the process-wide tables live in it, and a process in
//! which only worker threads load it would otherwise unload it, tables and all, when the first of them ends.
//! Elsewhere src/engine/platform.rs does that.
//!
//! `has_http`: crates/http has sockets for the target, as on every Unix. Cargo.toml has the same condition.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(has_http)");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo:rustc-cfg=has_http");
    }
    let arguments: &[&str] = match system.as_str() {
        "linux" => &["-Wl,-z,nodelete"],
        // Without a name of its own the library has the path at which it was linked.
        "macos" => &["-undefined", "dynamic_lookup", "-Wl,-install_name,corespun.node"],
        _ => &[],
    };
    for argument in arguments {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
