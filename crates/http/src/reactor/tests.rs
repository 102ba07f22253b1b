//! Tests of the reactor on real sockets, with a host made of Rust: it reads the records of a batch and writes
//! answers as src/http does.
