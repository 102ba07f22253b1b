//! Answers that never change: found by method and path, copied out with the date of the second. The host's
//! program does not run for them.

use std::rc::Rc;

use crate::{
    answer::{AnswerHead, Ends, Fate, Heads},
    bodies::{Bodies, Body},
    connection::Answer,
    head::Method,
    targets::hash,
};

/// One constant answer.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The method's name.
    pub method: Vec<u8>,
    /// The path, without a query.
    pub path: Vec<u8>,
    /// 200 to 599.
    pub status: u16,
    /// Ready-made lines.
    pub headers: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

struct Entry {
    constant: Constant,
    /// Its body, if it is a long one: all connections send from here.
    shared: Option<Rc<Body>>,
    hash: u64,
    /// The whole answer on a connection that is kept, as of this second; how much of it is the head.
    whole: Vec<u8>,
    head_bytes: usize,
}

/// All of a server.
#[derive(Default)]
pub struct Constants {
    entries: Vec<Entry>,
    /// Indices plus one by hash; open addressing, at most half full.
    table: Vec<u32>,
}

/// Longest constant that is kept as a whole, with its head: longer ones are put together for each answer.
const WHOLE_BYTES_MAX: usize = 64 * 1024;

impl Constants {
    /// A table of them. Of two with the same method and path the first is meant.
    pub fn new(constants: Vec<Constant>) -> Self {
        let mut table = vec![0; (constants.len() * 2).next_power_of_two().max(2)];
        let mask = table.len() - 1;
        let mut entries: Vec<Entry> = Vec::with_capacity(constants.len());
        for mut constant in constants {
            let is_long = constant.body.len() > WHOLE_BYTES_MAX;
            // Counted for themselves: they stay.
            let shared = is_long.then(|| Bodies::default().share(&std::mem::take(&mut constant.body)));
            let hash = hash(&constant.path);
            let mut at = hash as usize & mask;
            while table[at] != 0 {
                at = (at + 1) & mask;
            }
            entries.push(Entry { constant, shared, hash, whole: Vec::new(), head_bytes: 0 });
            table[at] = entries.len() as u32;
        }
        Self { entries, table }
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The second has changed.
    pub fn forget_heads(&mut self) {
        for entry in &mut self.entries {
            entry.whole.clear();
        }
    }

    /// The constant for a request; one for GET answers HEAD.
    #[inline]
    pub fn find(&self, method: Method, name: &[u8], target: &[u8]) -> Option<usize> {
        let path = &target[..memchr::memchr(b'?', target).unwrap_or(target.len())];
        let (hash, mask) = (hash(path), self.table.len().checked_sub(1)?);
        let mut at = hash as usize & mask;
        while let Some(index) = (self.table[at] as usize).checked_sub(1) {
            let entry = &self.entries[index];
            let fits = entry.hash == hash && entry.constant.path == path;
            let wanted: &[u8] = if method == Method::Head { b"GET" } else { name };
            if fits && (entry.constant.method == wanted || entry.constant.method == name) {
                return Some(index);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Append the whole answer for a connection that is kept, but for a long body, which it returns.
    #[inline]
    pub fn write(
        &mut self,
        index: usize,
        is_head: bool,
        heads: &Heads,
        out: &mut Vec<u8>,
    ) -> Option<Rc<Body>> {
        let Entry { constant, shared, whole, head_bytes, .. } = &mut self.entries[index];
        if whole.is_empty() {
            let ends = match constant.status {
                204 | 304 => Ends::Silent,
                _ => Ends::Length(length_of(constant, shared.as_ref())),
            };
            let (status, headers) = (constant.status, &constant.headers[..]);
            heads.write(&AnswerHead { status, kind: 0, headers, ends, fate: Fate::Kept }, whole);
            *head_bytes = whole.len();
            if ends != Ends::Silent {
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

    /// The answer in parts, for any connection; a long body is the last of them.
    pub fn parts(&self, index: usize) -> (Answer<'_>, &[u8], Option<&Rc<Body>>) {
        let Entry { constant: Constant { status, headers, body, .. }, shared, .. } = &self.entries[index];
        (Answer { status: *status, kind: 0, headers }, body, shared.as_ref())
    }
}

fn length_of(constant: &Constant, shared: Option<&Rc<Body>>) -> u64 {
    shared.map_or(constant.body.len(), |body| body.bytes().len()) as u64
}
