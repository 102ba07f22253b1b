//! The pages of LMDB's format, read and checked before LMDB itself sees them.
//!
//! LMDB has no checksums and believes what a page contains: a damaged one can end the process. So a file is
//! read here once, by ordinary reads, when it is opened. Its entries are passed on, and it is refused unless
//! every page has one use: a tree whose nodes fill their pages exactly and whose keys are in order, or free.
//! What values contain is checked by whoever receives the entries.

use std::{
    cmp::Ordering,
    io::{ErrorKind, Read, Seek, SeekFrom},
};

use super::problem::Problem;

const MAGIC: u32 = 0xbeef_c0de;
const FORMAT: u32 = 1;
/// Before the nodes of a page, and before the facts of a meta page.
const HEADER_BYTES: usize = 16;
const META_BYTES: usize = HEADER_BYTES + 136;
const NODE_BYTES: usize = 8;
/// The first two pages begin the trees; commits write them in turn.
const META_PAGES: u64 = 2;
/// LMDB's own bound; 2^32 pages have less.
const DEPTH_MAX: u16 = 32;
const NO_PAGE: u64 = u64::MAX;

mod kind {
    pub const BRANCH: u16 = 1;
    pub const LEAF: u16 = 2;
    pub const OVERFLOW: u16 = 4;
    pub const META: u16 = 8;
}
/// The flag of a node whose value has pages of its own.
const BIG: u16 = 1;
/// Flags of a tree that change how its keys are compared or stored.
const ORDER_FLAGS: u16 = 0x7e;
const NUMBERS: u16 = 8;

/// Receives each key with its value, in the order of keys.
pub type OnEntry<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), Problem> + 'a;

/// Reads a whole file; an empty one has no entries.
/// `Foreign`: it is not of LMDB; `Corrupt`: it is damaged. Other errors are those of `on_entry`.
pub fn read(source: &mut (impl Read + Seek), on_entry: &mut OnEntry<'_>) -> Result<(), Problem> {
    let file_bytes = source.seek(SeekFrom::End(0))?;
    if file_bytes == 0 {
        return Ok(());
    }
    let (meta, page_bytes) = newest_meta(source, file_bytes)?;
    let last = u64_at(&meta, 120);
    let pages = file_bytes / page_bytes as u64;
    let mut reader = Reader { source, page_bytes, pages, last, used: Vec::new() };
    let mut free = Vec::new();
    reader.tree(&meta[24..72], NUMBERS, &mut |number, list| take_free(&mut free, number, list))?;
    reader.tree(&meta[72..120], 0, on_entry)?;
    let mut used = reader.used;
    used.append(&mut free);
    used.sort_unstable();
    if used.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(damaged("a page has two uses"));
    }
    let last_used = used.last().copied().unwrap_or(META_PAGES - 1);
    let is_outside = used.first().is_some_and(|&first| first < META_PAGES) || last_used > last;
    // What a killed process has left behind the last page is not counted.
    if is_outside || last > last_used.max(pages) {
        return Err(damaged("its number of pages is wrong"));
    }
    Ok(())
}

/// The facts on the meta page of the last commit, and the size of pages.
fn newest_meta(source: &mut (impl Read + Seek), file_bytes: u64) -> Result<(Vec<u8>, usize), Problem> {
    let first = meta(source, 0)?.ok_or_else(|| Problem::Foreign("it has another format".into()))?;
    let page_bytes = u32_at(&first, 24);
    if !page_bytes.is_power_of_two() || !(512..=1 << 15).contains(&page_bytes) {
        return Err(damaged("its size of pages is wrong"));
    }
    if file_bytes < META_PAGES * u64::from(page_bytes) {
        return Err(cut());
    }
    let second = meta(source, page_bytes.into())?.ok_or_else(|| damaged("its second page is wrong"))?;
    if u32_at(&second, 24) != page_bytes {
        return Err(damaged("its sizes of pages differ"));
    }
    // As LMDB chooses.
    let newest = if u64_at(&first, 128) < u64_at(&second, 128) { second } else { first };
    Ok((newest, page_bytes as usize))
}

/// `None` if that is no meta page.
fn meta(source: &mut (impl Read + Seek), at: u64) -> Result<Option<Vec<u8>>, Problem> {
    let mut page = Vec::new();
    source.seek(SeekFrom::Start(at))?;
    source.take(META_BYTES as u64).read_to_end(&mut page)?;
    if page.len() < META_BYTES {
        return if page.get(16..20) == Some(&MAGIC.to_le_bytes()) { Err(cut()) } else { Ok(None) };
    }
    let facts = page.split_off(HEADER_BYTES);
    let is_meta = u16_at(&page, 10) == kind::META && u32_at(&facts, 0) == MAGIC;
    if is_meta && u32_at(&facts, 4) != FORMAT {
        return Err(Problem::Foreign(format!("version {} of LMDB's format", u32_at(&facts, 4))));
    }
    Ok(is_meta.then_some(facts))
}

/// The numbers of pages that became free in one commit: their count, then they, the highest first.
fn take_free(free: &mut Vec<u64>, number: &[u8], list: &[u8]) -> Result<(), Problem> {
    let wrong = || damaged("a list of free pages is malformed");
    let (words, rest) = list.as_chunks::<8>();
    let (count, words) = words.split_first().ok_or_else(wrong)?;
    let count = usize::try_from(u64::from_le_bytes(*count)).map_err(|_| wrong())?;
    let begin = free.len();
    free.extend(words.get(..count).ok_or_else(wrong)?.iter().map(|word| u64::from_le_bytes(*word)));
    let is_sorted = free[begin..].windows(2).all(|pair| pair[0] > pair[1]);
    if number.len() == 8 && rest.is_empty() && is_sorted { Ok(()) } else { Err(wrong()) }
}

struct Reader<'a, S> {
    source: &'a mut S,
    page_bytes: usize,
    /// In the file.
    pages: u64,
    /// The highest number that is used; the file is shorter if the last ones are free.
    last: u64,
    used: Vec<u64>,
}

/// What a tree must have, and what was found of it.
struct Tree<'a> {
    depth: u16,
    order: u16,
    /// Branch pages, leaves, pages of large values, entries.
    counts: [u64; 4],
    /// The key before: of an entry, or of a branch, which the next entry may have as well.
    before: Option<Vec<u8>>,
    is_branch_before: bool,
    on_entry: &'a mut OnEntry<'a>,
}

impl Tree<'_> {
    /// The next key, from left to right.
    fn next(&mut self, key: &[u8], is_branch: bool) -> Result<(), Problem> {
        let is_number = self.order == NUMBERS;
        let order = match &mut self.before {
            _ if is_number && key.len() != 8 => Ordering::Greater,
            Some(before) if is_number => u64_at(before, 0).cmp(&u64_at(key, 0)),
            Some(before) => before.as_slice().cmp(key),
            None => Ordering::Less,
        };
        if order.is_gt() || (order.is_eq() && !self.is_branch_before) {
            return Err(damaged("keys are not in order"));
        }
        let before = self.before.get_or_insert_default();
        before.clear();
        before.extend_from_slice(key);
        self.is_branch_before = is_branch;
        Ok(())
    }
}

impl<S: Read + Seek> Reader<'_, S> {
    /// The tree that 48 bytes of a meta page describe.
    fn tree(&mut self, facts: &[u8], order: u16, on_entry: &mut OnEntry<'_>) -> Result<(), Problem> {
        let (flags, depth, root) = (u16_at(facts, 4), u16_at(facts, 6), u64_at(facts, 40));
        let mut on_entry = |key: &[u8], value: &[u8]| on_entry(key, value);
        let (before, on_entry): (_, &mut OnEntry<'_>) = (None, &mut on_entry);
        let mut tree = Tree { depth, order, counts: [0; 4], before, is_branch_before: false, on_entry };
        if flags & ORDER_FLAGS != order || depth > DEPTH_MAX || (depth == 0) != (root == NO_PAGE) {
            return Err(damaged("the facts of a tree are wrong"));
        }
        if depth > 0 {
            self.visit(root, 1, &mut tree)?;
        }
        if (0..4).any(|index| u64_at(facts, 8 + 8 * index) != tree.counts[index]) {
            return Err(damaged("the counts of a tree are wrong"));
        }
        Ok(())
    }

    fn visit(&mut self, number: u64, level: u16, tree: &mut Tree<'_>) -> Result<(), Problem> {
        let page = self.page(number)?;
        let is_branch = level < tree.depth;
        let nodes = nodes(&page, if is_branch { kind::BRANCH } else { kind::LEAF })?;
        tree.counts[usize::from(!is_branch)] += 1;
        for (index, (key, node)) in nodes.into_iter().enumerate() {
            // Nothing uses the first key of a branch.
            if !is_branch || index > 0 {
                tree.next(key, is_branch)?;
            }
            match node {
                Node::Branch(child) => self.visit(child, level + 1, tree)?,
                Node::Value(value) => (tree.on_entry)(key, value)?,
                Node::Big(first, bytes) => {
                    let pages = self.big(first, bytes)?;
                    tree.counts[2] += (pages.len() / self.page_bytes) as u64;
                    (tree.on_entry)(key, &pages[HEADER_BYTES..HEADER_BYTES + bytes])?;
                }
            }
            tree.counts[3] += u64::from(!is_branch);
        }
        Ok(())
    }

    /// A page that no tree has used before.
    fn page(&mut self, number: u64) -> Result<Vec<u8>, Problem> {
        let page = self.bytes(number, 1)?;
        if u64_at(&page, 0) != number {
            return Err(damaged("a page has the number of another one"));
        }
        self.used.push(number);
        Ok(page)
    }

    /// The pages of a value of `bytes` bytes, the first of which is `first`.
    fn big(&mut self, first: u64, bytes: usize) -> Result<Vec<u8>, Problem> {
        let header = self.page(first)?;
        let count = u64::from(u32_at(&header, 12));
        if u16_at(&header, 10) != kind::OVERFLOW
            || count * (self.page_bytes as u64) < (HEADER_BYTES + bytes) as u64
        {
            return Err(damaged("a large value is malformed"));
        }
        self.used.extend(first + 1..first.saturating_add(count).min(self.pages));
        self.bytes(first, count)
    }

    fn bytes(&mut self, first: u64, count: u64) -> Result<Vec<u8>, Problem> {
        if first < META_PAGES || first > self.last {
            return Err(damaged("a page does not exist"));
        }
        if first.saturating_add(count) > self.pages {
            return Err(cut());
        }
        if self.used.len() as u64 > self.pages {
            return Err(damaged("a page has two uses"));
        }
        self.source.seek(SeekFrom::Start(first * self.page_bytes as u64))?;
        let mut bytes = vec![0; count as usize * self.page_bytes];
        self.source.read_exact(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => cut(),
            _ => error.into(),
        })?;
        Ok(bytes)
    }
}

/// What a key of a page has.
enum Node<'a> {
    /// In a branch: the page with the keys from this one on.
    Branch(u64),
    Value(&'a [u8]),
    /// The first page of a value, and its bytes.
    Big(u64, usize),
}

/// The nodes of a page, which are to fill what is not free of it exactly.
fn nodes(page: &[u8], expected: u16) -> Result<Vec<(&[u8], Node<'_>)>, Problem> {
    let malformed = || damaged("a page is malformed");
    let (lower, upper) = (usize::from(u16_at(page, 12)), usize::from(u16_at(page, 14)));
    let is_expected = u16_at(page, 10) == expected && lower % 2 == 0 && lower > HEADER_BYTES;
    if !is_expected || lower > upper || upper > page.len() {
        return Err(malformed());
    }
    let count = (lower - HEADER_BYTES) / 2;
    let (mut nodes, mut ranges) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for pointer in (HEADER_BYTES..lower).step_by(2) {
        let at = usize::from(u16_at(page, pointer));
        let header = page.get(at..at + NODE_BYTES).ok_or_else(malformed)?;
        let (low, flags) = (u32_at(header, 0), u16_at(header, 4));
        let value_at = at + NODE_BYTES + usize::from(u16_at(header, 6));
        let key = page.get(at + NODE_BYTES..value_at).ok_or_else(malformed)?;
        let value_bytes = match (expected, flags) {
            (kind::BRANCH, _) => 0,
            (_, 0) => low as usize,
            (_, BIG) => 8,
            _ => return Err(malformed()),
        };
        let value = page.get(value_at..value_at + value_bytes).ok_or_else(malformed)?;
        let node = match (expected, flags) {
            (kind::BRANCH, _) => Node::Branch(u64::from(low) | u64::from(flags) << 32),
            (_, BIG) => Node::Big(u64_at(value, 0), low as usize),
            _ => Node::Value(value),
        };
        nodes.push((key, node));
        ranges.push((at, (value_at + value_bytes).next_multiple_of(2)));
    }
    ranges.sort_unstable();
    let end = ranges.iter().try_fold(upper, |end, &(from, to)| (from == end).then_some(to));
    if end == Some(page.len()) { Ok(nodes) } else { Err(malformed()) }
}

fn damaged(what: &str) -> Problem {
    Problem::Corrupt(what.into())
}

fn cut() -> Problem {
    damaged("it is cut short")
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
