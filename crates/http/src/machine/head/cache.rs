//! A cache of parsed heads.
//!
//! A client that reuses its connection sends the same bytes again and again. The result of parsing follows
//! from the bytes and the limits alone, so a head that equals a cached one is compared instead of parsed.
//! Heads with a body or an expectation, and long ones, are always parsed. The cache has a fixed size; a
//! client that never repeats a head costs one copy per head.

use super::{Field, Framing, Head, Parsed, parse};
use crate::{
    limits::{Limits, Refusal},
    targets::hash,
};

const ENTRIES: usize = 64;
/// Leading bytes of a head that are hashed.
const KEY_BYTES: usize = 32;
/// Limits of the heads that are cached.
const BYTES_MAX: usize = 512;
const FIELDS_MAX: usize = 16;

#[derive(Debug, Default)]
struct Entry {
    head: Option<Head>,
    bytes: Vec<u8>,
    fields: Vec<Field>,
}

/// A parser with a cache. Its limits must be the same in all calls.
pub struct Parser {
    pub fields: Vec<Field>,
    entries: Box<[Entry]>,
}

impl Default for Parser {
    fn default() -> Self {
        Self { fields: Vec::new(), entries: (0..ENTRIES).map(|_| Entry::default()).collect() }
    }
}

impl Parser {
    /// Like [`parse`].
    #[inline]
    pub fn parse(&mut self, input: &[u8], limits: &Limits) -> Result<Parsed, Refusal> {
        let Some(key) = input.first_chunk::<KEY_BYTES>() else {
            return parse(input, limits, &mut self.fields);
        };
        let index = hash(key) as usize % ENTRIES;
        let entry = &self.entries[index];
        if let Some(head) = entry.head
            && input.starts_with(&entry.bytes)
        {
            self.fields.clear();
            self.fields.extend_from_slice(&entry.fields);
            return Ok(Parsed::Whole(head));
        }
        self.parse_and_cache(input, limits, index)
    }

    fn parse_and_cache(&mut self, input: &[u8], limits: &Limits, index: usize) -> Result<Parsed, Refusal> {
        let parsed = parse(input, limits, &mut self.fields)?;
        if let Parsed::Whole(head) = parsed
            && head.framing == Framing::Length(0)
            && !head.expects
            && head.bytes <= BYTES_MAX
            && self.fields.len() <= FIELDS_MAX
        {
            let entry = &mut self.entries[index];
            entry.head = Some(head);
            entry.bytes.clear();
            entry.bytes.extend_from_slice(&input[..head.bytes]);
            entry.fields.clear();
            entry.fields.extend_from_slice(&self.fields);
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests;
