//! Link settings of the binding. The functions of Node that it calls are found when it is loaded.
//!
//! `nodelete` keeps the library in memory once loaded: the process-wide tables live in it, and a process in
//! which only worker threads load it would otherwise unload it, tables and all, when the first of them ends.
//! Elsewhere src/engine/platform.rs does that.
//!
//! It also prints what both sides of the border have as TypeScript, the numbers and the functions, so set-up
//! compiles the core first. The files are in git: only a change of their source changes them.
//!
//! `has_http`: crates/http has sockets for the target, as on every Unix. Cargo.toml has the same condition.

#[allow(dead_code)]
#[path = "../bridge/src/layout.rs"]
mod bridge;
#[path = "build/functions.rs"]
mod functions;
#[allow(dead_code)]
#[path = "../http/src/layout.rs"]
mod http;
#[allow(dead_code)]
#[path = "../store/src/layout.rs"]
mod store;

/// Rust's numbers, and the file of TypeScript that they are printed to.
const PRINTED: [(&str, &str, &[corespun_layout::Item]); 3] = [
    ("crates/bridge/src/layout.rs", "src/native/layout.ts", bridge::ITEMS),
    ("crates/http/src/layout.rs", "src/http/message/layout.ts", http::ITEMS),
    ("crates/store/src/layout.rs", "src/bridge/layout.ts", store::ITEMS),
];

/// The file of TypeScript that the functions are printed to.
const BINDING: &str = "src/native/binding.ts";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    for (source, target, items) in PRINTED {
        println!("cargo:rerun-if-changed=../../{source}");
        println!("cargo:rerun-if-changed=../../{target}");
        corespun_layout::write(source, target, &corespun_layout::typescript(source, items));
    }
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=../../{BINDING}");
    corespun_layout::write("crates/node/src/lib.rs", BINDING, &functions::typescript("src"));
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
