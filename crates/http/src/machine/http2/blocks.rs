//! What `h2` does not show of header blocks (RFC 7541), seen as they pass: a path with a fragment, which its
//! parser drops before the path can be checked, and pseudo-header fields in trailers, which it leaves out.
//!
//! Representations are followed byte by byte, strings are skipped but for names and paths, and nothing is
//! stored. Of an entry of the dynamic table only three bits are kept. Its size is not: the number of an entry
//! is that of those inserted after it, whichever have been evicted, and `h2` ends the connection for a number
//! without an entry, as for whatever else is malformed here.

/// Flags of a frame (RFC 9113, 6.2).
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
const PRIORITY_BYTES: usize = 5;

/// Names of the static table (RFC 7541, appendix A): pseudo-header fields are the first, two of them paths.
const PSEUDO_MAX: u32 = 14;
const STATIC_MAX: u32 = 61;
/// Entries of a dynamic table, whose 4096 bytes have room for one in 32.
const DYNAMIC_MAX: u32 = 128;

/// For each length of a code, the first one that is longer (RFC 7541, appendix B): the codes are canonical.
const CODE_ENDS: [u32; 31] = {
    let mut ends = [0; 31];
    let lengths = [
        (5, 0xa),
        (6, 0x2e),
        (7, 0x7c),
        (8, 0xfe),
        (10, 0x3fd),
        (11, 0x7fd),
        (12, 0xffc),
        (13, 0x1ffe),
        (14, 0x3ffe),
        (15, 0x7fff),
        (19, 0x7_fff3),
        (20, 0xf_ffee),
        (21, 0x1f_ffe9),
        (22, 0x3f_ffec),
        (23, 0x7f_fff5),
        (24, 0xff_fff6),
        (25, 0x1ff_fff0),
        (26, 0x3ff_ffef),
        (27, 0x7ff_fff1),
        (28, 0xfff_ffff),
        (30, 0x4000_0000),
    ];
    let mut at = 0;
    while at < lengths.len() {
        ends[lengths[at].0] = lengths[at].1;
        at += 1;
    }
    ends
};
/// `:path`, and `#`, as codes with their lengths.
const PATH_CODES: [(u32, usize); 5] = [(0x5c, 7), (0x2b, 6), (0x3, 5), (0x9, 5), (0x27, 6)];
const FRAGMENT_CODE: (u32, usize) = (0xffa, 12);

/// What is wrong with the header block of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Fragment,
    /// Trailers with a pseudo-header field (RFC 9113, 8.1).
    Pseudo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Field,
    Name,
    NameBytes,
    ValueBytes,
    TableSize,
}

/// What the next byte of a block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Representation,
    NameLength,
    ValueLength,
    More(Number),
    Name,
    Value,
}

/// A field, or an entry of the dynamic table.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    is_path: bool,
    is_pseudo: bool,
    has_fragment: bool,
}

/// The dynamic table: a bit for each entry, the lowest for the latest.
#[derive(Debug, Default)]
struct Table {
    paths: u128,
    pseudos: u128,
    fragments: u128,
}

impl Table {
    fn put(&mut self, seen: Seen) {
        self.paths = self.paths << 1 | u128::from(seen.is_path);
        self.pseudos = self.pseudos << 1 | u128::from(seen.is_pseudo);
        self.fragments = self.fragments << 1 | u128::from(seen.has_fragment);
    }

    /// The entry with this number, also of the static table.
    fn get(&self, number: u32) -> Seen {
        match number {
            ..=STATIC_MAX => Seen {
                is_path: matches!(number, 4 | 5),
                is_pseudo: (1..=PSEUDO_MAX).contains(&number),
                has_fragment: false,
            },
            _ if number - STATIC_MAX > DYNAMIC_MAX => Seen::default(),
            _ => {
                let is_in = |bits: u128| bits >> (number - STATIC_MAX - 1) & 1 == 1;
                Seen {
                    is_path: is_in(self.paths),
                    is_pseudo: is_in(self.pseudos),
                    has_fragment: is_in(self.fragments),
                }
            }
        }
    }
}

/// The header blocks of a connection.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Those with a fault, by stream.
    pub faults: Vec<(u32, Fault)>,
    table: Table,
    stream: u32,
    /// The latest stream that was opened.
    last: u32,
    flags: u8,
    /// Bytes of the frame before its part of the block, and of that part.
    before: usize,
    part: usize,
    step: Step,
    number: u32,
    shift: u32,
    field: Seen,
    is_inserted: bool,
    is_huffman: bool,
    /// Bytes of a string that follow, symbols of it that were read, and the begun code with its length.
    left: usize,
    symbols: usize,
    code: (u32, usize),
    has_pseudo: bool,
    has_fragment: bool,
}

impl Blocks {
    /// A frame of HEADERS, or of CONTINUATION, has begun.
    pub fn begin(&mut self, is_first: bool, flags: u8, stream: u32, length: usize) {
        self.flags = flags;
        self.part = length;
        self.before = 0;
        if is_first {
            (self.stream, self.step) = (stream, Step::Representation);
            (self.has_pseudo, self.has_fragment) = (false, false);
            let priority = if flags & PRIORITY == 0 { 0 } else { PRIORITY_BYTES };
            self.before = priority + usize::from(flags & PADDED != 0);
            self.part = length.saturating_sub(self.before);
        } else {
            self.flags &= END_HEADERS;
        }
    }

    /// Bytes of the frame.
    pub fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.before > 0 {
            if self.flags & PADDED != 0 && !rest.is_empty() {
                self.flags &= !PADDED;
                self.part = self.part.saturating_sub(rest[0].into());
            }
            let before = self.before.min(rest.len());
            self.before -= before;
            rest = &rest[before..];
        }
        let part = self.part.min(rest.len());
        self.part -= part;
        self.read(&rest[..part]);
    }

    /// The frame has ended.
    pub fn end(&mut self) {
        if self.flags & END_HEADERS == 0 {
            return;
        }
        let is_trailers = self.stream <= self.last;
        self.last = self.last.max(self.stream);
        if is_trailers && self.has_pseudo {
            self.faults.push((self.stream, Fault::Pseudo));
        } else if !is_trailers && self.has_fragment {
            self.faults.push((self.stream, Fault::Fragment));
        }
    }

    fn read(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            match self.step {
                Step::Name | Step::Value => {
                    let (string, rest) = bytes.split_at(self.left.min(bytes.len()));
                    self.left -= string.len();
                    self.read_string(string);
                    bytes = rest;
                    if self.left == 0 {
                        self.end_string();
                    }
                    continue;
                }
                Step::Representation => self.read_representation(byte),
                Step::NameLength => self.read_length(byte, Number::NameBytes),
                Step::ValueLength => self.read_length(byte, Number::ValueBytes),
                Step::More(what) => {
                    self.number = self.number.saturating_add(u32::from(byte & 0x7f) << self.shift.min(24));
                    self.shift += 7;
                    if byte & 0x80 == 0 {
                        self.end_number(what);
                    }
                }
            }
            bytes = rest;
        }
    }

    fn read_representation(&mut self, byte: u8) {
        self.is_inserted = byte & 0xc0 == 0x40;
        match byte {
            0x80.. => self.begin_number(byte, 0x7f, Number::Field),
            0x40.. => self.begin_number(byte, 0x3f, Number::Name),
            0x20.. => self.begin_number(byte, 0x1f, Number::TableSize),
            _ => self.begin_number(byte, 0x0f, Number::Name),
        }
    }

    fn read_length(&mut self, byte: u8, what: Number) {
        self.is_huffman = byte & 0x80 != 0;
        self.begin_number(byte, 0x7f, what);
    }

    /// A number (RFC 7541, 5.1) whose first bits are those of `prefix`.
    fn begin_number(&mut self, byte: u8, prefix: u8, what: Number) {
        (self.number, self.shift) = ((byte & prefix).into(), 0);
        if byte & prefix == prefix {
            self.step = Step::More(what);
        } else {
            self.end_number(what);
        }
    }

    fn end_number(&mut self, what: Number) {
        self.step = match what {
            Number::Field => {
                self.field = self.table.get(self.number);
                self.add_field();
                Step::Representation
            }
            Number::Name if self.number == 0 => Step::NameLength,
            Number::Name => {
                self.field = Seen { has_fragment: false, ..self.table.get(self.number) };
                Step::ValueLength
            }
            Number::NameBytes => {
                self.field = Seen { is_path: true, is_pseudo: false, has_fragment: false };
                Step::Name
            }
            Number::ValueBytes => Step::Value,
            Number::TableSize => Step::Representation,
        };
        if matches!(self.step, Step::Name | Step::Value) {
            (self.left, self.symbols, self.code) = (self.number as usize, 0, (0, 0));
            if self.left == 0 {
                self.end_string();
            }
        }
    }

    /// Only names and paths are looked at.
    fn read_string(&mut self, bytes: &[u8]) {
        let is_name = self.step == Step::Name;
        if !is_name && !self.field.is_path {
            return;
        }
        if !self.is_huffman {
            if !is_name {
                self.field.has_fragment |= memchr::memchr(b'#', bytes).is_some();
                return;
            }
            for &byte in bytes {
                self.field.is_path &= b":path".get(self.symbols) == Some(&byte);
                self.field.is_pseudo |= self.symbols == 0 && byte == b':';
                self.symbols += 1;
            }
            return;
        }
        for &byte in bytes {
            for bit in (0..8).rev() {
                let (code, length) = (self.code.0 << 1 | u32::from(byte >> bit & 1), self.code.1 + 1);
                if length >= CODE_ENDS.len() {
                    return; // the mark of the end, which is malformed
                }
                if code >= CODE_ENDS[length] {
                    self.code = (code, length);
                    continue;
                }
                if is_name {
                    self.field.is_path &= PATH_CODES.get(self.symbols) == Some(&(code, length));
                    self.field.is_pseudo |= self.symbols == 0 && (code, length) == PATH_CODES[0];
                } else {
                    self.field.has_fragment |= (code, length) == FRAGMENT_CODE;
                }
                (self.symbols, self.code) = (self.symbols + 1, (0, 0));
            }
        }
    }

    fn end_string(&mut self) {
        if self.step == Step::Name {
            self.field.is_path &= self.symbols == PATH_CODES.len();
            self.step = Step::ValueLength;
            return;
        }
        self.step = Step::Representation;
        if self.is_inserted {
            self.table.put(self.field);
        }
        self.add_field();
    }

    fn add_field(&mut self) {
        self.has_pseudo |= self.field.is_pseudo;
        self.has_fragment |= self.field.has_fragment;
    }
}
