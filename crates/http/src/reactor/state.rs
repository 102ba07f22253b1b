//! What the reactor keeps: its connections by slot, the batch that is being put together, what there is to
//! tell.

use std::os::fd::OwnedFd;

use crate::{
    connection::{Connection, Request},
    head::{Field, Framing},
    layout::{self, HEADER_BYTES, READ_BYTES_MAX, WORDS_BYTES, event, request},
    limits::{HEADERS_MAX, Limits},
    region::Region,
};

/// The first share of a connection: nothing is known of its answers.
const SHARE_FIRST: u32 = 2;

/// A connection on its socket.
#[derive(Debug)]
pub struct Line {
    /// The socket.
    pub socket: OwnedFd,
    /// The connection without it.
    pub machine: Connection,
    /// When to look after it, on the reactor's clock; 0: never.
    pub deadline: u64,
    /// When the head that is being read began.
    pub head_began: u64,
    /// What is left of the patience with this client's body, ms; bytes that come buy more.
    pub body_patience_ms: u64,
    /// The same for the answers it reads.
    pub out_patience_ms: u64,
    /// When the wait for its body that is going on began.
    pub wait_began: u64,
    /// When the wait for it to read began.
    pub out_wait_began: u64,
    /// What the kernel held when it was asked last, in that wait.
    pub out_held: Option<u64>,
    /// Requests that a batch takes of it: as many as the limit of what waits unsent has room for if all
    /// answers are as large as the largest of the last ones, and at most twice as many as before.
    pub share: u32,
    /// Bytes thrown away after the last answer, since that was looked at.
    pub thrown_bytes: u64,
    /// When nobody listens to it any more.
    pub linger_until: u64,
    /// The kernel may have bytes.
    pub is_readable: bool,
    /// The kernel took all it was given.
    pub is_writable: bool,
    /// The client sends nothing more: the end was announced, or read.
    pub is_half_closed: bool,
    /// The end was read.
    pub is_at_end: bool,
    /// In `again`.
    pub is_queued: bool,
    /// In `dirty`.
    pub is_dirty: bool,
    /// Everything was sent; what still comes is thrown away.
    pub is_lingering: bool,
    /// The host waits for the body.
    pub wants_body: bool,
    /// A write was told to wait.
    pub is_full: bool,
    /// Why the body cannot be had: a status.
    pub body_failed: u16,
}

/// Connections by slot. A slot's generation tells old events from new ones.
#[derive(Debug, Default)]
pub struct Slots {
    lines: Vec<(u32, Option<Box<Line>>)>,
    free: Vec<u32>,
    open: usize,
}

impl Slots {
    /// How many are open.
    pub const fn open_count(&self) -> usize {
        self.open
    }

    /// Put a fresh connection somewhere; its slot and generation.
    pub fn put(&mut self, socket: OwnedFd, deadline: u64) -> (u32, u32) {
        let line = Box::new(Line {
            socket,
            machine: Connection::default(),
            deadline,
            head_began: 0,
            body_patience_ms: 0,
            out_patience_ms: 0,
            wait_began: 0,
            out_wait_began: 0,
            out_held: None,
            share: SHARE_FIRST,
            thrown_bytes: 0,
            linger_until: 0,
            is_readable: false,
            is_writable: true,
            is_half_closed: false,
            is_at_end: false,
            is_queued: false,
            is_dirty: false,
            is_lingering: false,
            wants_body: false,
            is_full: false,
            body_failed: 0,
        });
        self.open += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.lines.push((0, None));
            self.lines.len() as u32 - 1
        });
        let (generation, place) = &mut self.lines[slot as usize];
        // The top bit would make its events look like a listener's.
        *generation = (*generation + 1) & 0x7fff_ffff;
        *place = Some(line);
        (slot, *generation)
    }

    /// The connection in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&Line> {
        self.lines.get(slot as usize)?.1.as_deref()
    }

    /// The same, to change.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Line> {
        self.lines.get_mut(slot as usize)?.1.as_deref_mut()
    }

    /// The connection that an event is about, unless it has gone.
    #[inline]
    pub fn of_event(&mut self, slot: u32, generation: u32) -> Option<&mut Line> {
        let (current, line) = self.lines.get_mut(slot as usize)?;
        if *current == generation { line.as_deref_mut() } else { None }
    }

    /// Take it out while it is worked on; `put_back` it, or `retire` the slot.
    #[inline]
    pub fn lift(&mut self, slot: u32) -> Option<Box<Line>> {
        self.lines.get_mut(slot as usize)?.1.take()
    }

    /// Put it where it was.
    #[inline]
    pub fn put_back(&mut self, slot: u32, line: Box<Line>) {
        self.lines[slot as usize].1 = Some(line);
    }

    /// The connection that was lifted does not come back.
    pub fn retire(&mut self, slot: u32) {
        self.open -= 1;
        self.free.push(slot);
    }

    /// Remove a connection.
    pub fn take(&mut self, slot: u32) -> Option<Box<Line>> {
        let line = self.lift(slot)?;
        self.retire(slot);
        Some(line)
    }

    /// All slots in use.
    pub fn all(&self) -> Vec<u32> {
        let used = self.lines.iter().enumerate().filter(|(_, (_, line))| line.is_some());
        used.map(|(slot, _)| slot as u32).collect()
    }

    /// Those whose deadline has passed, or all.
    pub fn expired(&self, now: u64, all: bool) -> Vec<u32> {
        let is_due = |line: &Line| all || line.deadline != 0 && line.deadline <= now;
        let due = self.lines.iter().enumerate().filter(|(_, (_, line))| line.as_deref().is_some_and(is_due));
        due.map(|(slot, _)| slot as u32).collect()
    }
}

/// Something the host is told that is no request.
#[derive(Clone, Copy, Debug)]
pub struct Tell {
    /// Of [`event`].
    pub kind: u32,
    /// The connection.
    pub slot: u32,
    /// The flight.
    pub stamp: u32,
}

/// The batch that is being put together in the inbound region.
#[derive(Debug)]
pub struct Batch {
    records: u32,
    requests: u32,
    requests_max: u32,
    /// The next free word.
    word: usize,
    /// The next free byte after the words.
    pub data_at: usize,
    data_end: usize,
    /// Room for bytes without which nothing is read.
    data_bytes_min: usize,
    fields_max: usize,
}

impl Batch {
    /// An empty one in a region of `inbound_bytes`.
    pub fn new(limits: &Limits, inbound_bytes: usize) -> Self {
        Self {
            records: 0,
            requests: 0,
            requests_max: 16,
            word: HEADER_BYTES / 4,
            data_at: WORDS_BYTES,
            data_end: inbound_bytes,
            data_bytes_min: Self::data_bytes_min(limits),
            fields_max: limits.headers_max.min(HEADERS_MAX),
        }
    }

    /// Bytes that may have been kept of a connection, and those that one reading adds.
    pub const fn data_bytes_min(limits: &Limits) -> usize {
        limits.header_bytes_max + 2 * READ_BYTES_MAX
    }

    /// Begin anew.
    pub const fn empty(&mut self, requests_max: u32) {
        self.records = 0;
        self.requests = 0;
        self.requests_max = requests_max;
        self.word = HEADER_BYTES / 4;
        self.data_at = WORDS_BYTES;
    }

    /// Whether the next request would not fit, or should not.
    #[inline]
    pub const fn is_full(&self) -> bool {
        self.requests >= self.requests_max
            || self.data_end - self.data_at < self.data_bytes_min
            || (self.word + request::WORDS + self.fields_max * layout::FIELD_WORDS) * 4 > WORDS_BYTES
    }

    /// Whether a request is in it.
    pub const fn has_requests(&self) -> bool {
        self.requests > 0
    }

    /// Requests in it.
    pub const fn requests(&self) -> u32 {
        self.requests
    }

    /// Records in it.
    pub const fn records(&self) -> u32 {
        self.records
    }

    /// Where bytes can be read to.
    #[inline]
    pub const fn room(&self) -> (usize, usize) {
        (self.data_at, self.data_end)
    }

    /// Bytes up to `end` are in use.
    pub fn use_data(&mut self, end: usize) {
        self.data_at = (end + 7) & !7;
        self.data_at = self.data_at.min(self.data_end);
    }

    /// Write a record. False: no room.
    pub fn put_tell(&mut self, inbound: &mut Region, tell: &Tell) -> bool {
        if (self.word + layout::EVENT_WORDS) * 4 > WORDS_BYTES {
            return false;
        }
        inbound.put_all(self.word, [tell.kind, tell.slot, tell.stamp]);
        self.word += layout::EVENT_WORDS;
        self.records += 1;
        true
    }

    /// Write the record of a request whose bytes begin at `at`.
    #[inline]
    pub fn put_request(
        &mut self,
        inbound: &mut Region,
        given: &Request,
        fields: &[Field],
        at: usize,
        place: (u32, u32),
        target: Option<(u32, bool)>,
    ) {
        let head = &given.head;
        let mut kind = event::REQUEST;
        let number = target.map_or(layout::NO_TARGET, |(number, is_new)| {
            kind |= if is_new { layout::FLAG_NEW_TARGET } else { 0 };
            number
        });
        kind |= if given.is_whole { layout::FLAG_WHOLE } else { 0 };
        let length = match head.framing {
            Framing::Length(length) => length,
            Framing::Chunked => u64::MAX,
        };
        let words: [u32; request::WORDS] = [
            kind,
            place.0,
            place.1,
            head.method as u32,
            number,
            at as u32 + head.method_name.at,
            head.method_name.len,
            at as u32 + head.target.at,
            head.target.len,
            fields.len() as u32,
            length as u32,
            (length >> 32) as u32,
            (at + head.bytes) as u32,
            given.body_bytes as u32,
            head.bytes as u32,
        ];
        inbound.put_all(self.word, words);
        self.word += request::WORDS;
        for field in fields {
            let lengths = field.name.len | field.value.len << 16;
            let field = [at as u32 + field.name.at, lengths, at as u32 + field.value.at];
            inbound.put_all(self.word, field);
            self.word += layout::FIELD_WORDS;
        }
        self.records += 1;
        self.requests += 1;
    }
}
