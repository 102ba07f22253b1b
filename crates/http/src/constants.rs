//! Constant responses: found by method and path, and sent with the current date without calling the host's
//! program.

use std::{cell::Cell, rc::Rc};

use crate::{
    connection::Response,
    head::Method,
    response::{Heads, Persistence, ResponseFraming, ResponseHead},
    shared_bodies::{SharedBodies, SharedBody},
    targets::hash,
};

/// A constant response.
#[derive(Clone, Debug)]
pub struct Constant {
    pub method: Vec<u8>,
    /// The path, without a query.
    pub path: Vec<u8>,
    /// 200 to 599.
    pub status: u16,
    /// Complete header lines.
    pub headers: Vec<u8>,
    pub body: Vec<u8>,
}

impl Constant {
    /// Constants as the host passes them, one after the other: five words (the lengths of method, path,
    /// headers and body, and the status), then those bytes. `None`: the last one is incomplete.
    pub fn decode_all(mut bytes: &[u8]) -> Option<Vec<Self>> {
        let mut constants = Vec::new();
        while !bytes.is_empty() {
            let (words, rest) = bytes.split_first_chunk::<20>()?;
            let [method, path, headers, body, status]: [usize; 5] =
                std::array::from_fn(|index| u32::from_ne_bytes(words.as_chunks::<4>().0[index]) as usize);
            bytes = rest;
            let mut take = |length: usize| {
                let (part, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Some(part.to_vec())
            };
            let (method, path, headers, body) = (take(method)?, take(path)?, take(headers)?, take(body)?);
            constants.push(Self { method, path, status: status as u16, headers, body });
        }
        Some(constants)
    }
}

struct Entry {
    constant: Constant,
    /// The body, if it is long: all connections send from it.
    shared: Option<Rc<SharedBody>>,
    hash: u64,
    /// The whole response on a persistent connection, as of this second, and the length of its head.
    whole: Vec<u8>,
    head_bytes: usize,
    /// How often it was found: for its own method, and for HEAD in place of GET.
    found: [Cell<u64>; 2],
}

/// The constants of a server.
#[derive(Default)]
pub struct Constants {
    entries: Vec<Entry>,
    /// Indices plus one, by hash; open addressing, at most half full.
    table: Vec<u32>,
}

/// Longest body that is stored together with the head; longer ones are shared.
const WHOLE_BYTES_MAX: usize = 64 * 1024;

impl Constants {
    /// Of two constants with the same method and path the first is found.
    pub fn new(constants: Vec<Constant>) -> Self {
        let mut table = vec![0; (constants.len() * 2).next_power_of_two().max(2)];
        let mask = table.len() - 1;
        let mut entries: Vec<Entry> = Vec::with_capacity(constants.len());
        for mut constant in constants {
            let is_long = constant.body.len() > WHOLE_BYTES_MAX;
            // With a count of its own: constants are not part of `held_bytes`.
            let shared = is_long.then(|| SharedBodies::default().share(&std::mem::take(&mut constant.body)));
            let hash = hash(&constant.path);
            let mut at = hash as usize & mask;
            while table[at] != 0 {
                at = (at + 1) & mask;
            }
            let found = [Cell::new(0), Cell::new(0)];
            entries.push(Entry { constant, shared, hash, whole: Vec::new(), head_bytes: 0, found });
            table[at] = entries.len() as u32;
        }
        Self { entries, table }
    }

    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drop the heads of the last second.
    pub fn forget_heads(&mut self) {
        for entry in &mut self.entries {
            entry.whole.clear();
        }
    }

    /// The constant for a request. Those for GET also respond to HEAD.
    #[inline]
    pub fn find(&self, method: Method, name: &[u8], target: &[u8]) -> Option<usize> {
        let path = &target[..memchr::memchr(b'?', target).unwrap_or(target.len())];
        let (hash, mask) = (hash(path), self.table.len().checked_sub(1)?);
        let mut at = hash as usize & mask;
        while let Some(index) = (self.table[at] as usize).checked_sub(1) {
            let entry = &self.entries[index];
            let fits = entry.hash == hash && entry.constant.path == path;
            let method_or_get: &[u8] = if method == Method::Head { b"GET" } else { name };
            if fits && (entry.constant.method == method_or_get || entry.constant.method == name) {
                let found = &entry.found[usize::from(entry.constant.method != name)];
                found.set(found.get() + 1);
                return Some(index);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// How often each was found: for its own method, then for HEAD in place of GET.
    pub fn counts(&self) -> Vec<f64> {
        self.entries.iter().flat_map(|entry| entry.found.each_ref().map(|found| found.get() as f64)).collect()
    }

    /// Append the whole response of a persistent connection. A long body is returned instead of appended.
    #[inline]
    pub fn write(
        &mut self,
        index: usize,
        is_head: bool,
        heads: &Heads,
        out: &mut Vec<u8>,
    ) -> Option<Rc<SharedBody>> {
        let Entry { constant, shared, whole, head_bytes, .. } = &mut self.entries[index];
        if whole.is_empty() {
            let framing = match constant.status {
                204 | 304 => ResponseFraming::None,
                _ => ResponseFraming::Length(length_of(constant, shared.as_ref())),
            };
            let (status, headers) = (constant.status, &constant.headers[..]);
            heads.write(
                &ResponseHead { status, kind: 0, headers, framing, persistence: Persistence::Default },
                whole,
            );
            *head_bytes = whole.len();
            if framing != ResponseFraming::None {
                whole.extend_from_slice(&constant.body);
            }
        }
        if is_head {
            out.extend_from_slice(&whole[..*head_bytes]);
            return None;
        }
        out.extend_from_slice(whole);
        shared.as_ref().filter(|_| !matches!(constant.status, 204 | 304)).map(Rc::clone)
    }

    /// The response in parts, for any connection; the last one is a long body.
    pub fn parts(&self, index: usize) -> (Response<'_>, &[u8], Option<&Rc<SharedBody>>) {
        let Entry { constant: Constant { status, headers, body, .. }, shared, .. } = &self.entries[index];
        (Response { status: *status, kind: 0, headers }, body, shared.as_ref())
    }
}

fn length_of(constant: &Constant, shared: Option<&Rc<SharedBody>>) -> u64 {
    shared.map_or(constant.body.len(), |body| body.bytes().len()) as u64
}

#[cfg(test)]
mod tests;
