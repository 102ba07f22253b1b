//! The words and bytes of an entry, and the keys that lead to it.
//!
//! Shared by everything that keeps entries; the rules of stores and channels are beside it.

pub(crate) mod bytes;
pub(crate) mod key;
pub(crate) mod words;
