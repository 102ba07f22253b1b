//! The C interfaces of Node: napi, libuv, V8, and the environments that have loaded the library.
//!
//! The other files are conversions for one crate each, and reach Node only through these.

pub(crate) mod instances;
pub(crate) mod js;
pub(crate) mod platform;
pub(crate) mod uv;
pub(crate) mod v8;
