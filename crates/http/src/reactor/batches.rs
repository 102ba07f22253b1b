//! What passes between the connections and the host: batches of requests in the inbound region, the host's
//! records in the out region, and what responses are made of.

mod batch;

use std::collections::VecDeque;

use super::settings::HostEvent;
use crate::{
    connection::Request,
    constants::{Constant, Constants},
    files::FileCache,
    head::{Parser, Span},
    layout::{self, HEADER_BYTES, READ_BYTES_MAX, head, reply},
    limits::Limits,
    region::Region,
    selector::EVENTS_MAX,
    shared_bodies::SharedBodies,
    sys,
    targets::{Targets, hash},
    websocket::{Deflate, Terms, WebSocket},
};
pub(super) use batch::Batch;

/// How long the host should take for a batch, ns: its first response is sent with its last.
const BATCH_NS: u64 = 500_000;
/// Messages of WebSockets in a batch, at least. They are not awaited as responses are, and each batch with
/// messages to a room sends to all of its members. Where workers share cores, its time proves little.
const MESSAGES_MIN: u64 = 16;
/// Bytes of gathered messages, after inflation, with which a batch is full.
const GATHERED_BYTES_MAX: usize = 1024 * 1024;

/// What the host has written: a response, a part of one, or a frame.
#[derive(Clone, Copy)]
pub struct Record {
    /// [`reply`], and [`FLAG_LAST`](layout::FLAG_LAST).
    pub kind: u32,
    pub slot: u32,
    pub stamp: u32,
    pub status: u16,
    /// Index into [`layout::TYPES`].
    pub content: u8,
    /// Where the header lines begin.
    pub lines_at: usize,
    pub lines: usize,
    pub body: usize,
    pub length: Option<u64>,
    pub is_elsewhere: bool,
    /// Where the next record begins.
    pub next: usize,
}

/// The regions of the host's memory, the batch that is made or handled, and what responses consist of.
pub struct Batches {
    pub(super) inbound: Region,
    pub(super) out: Region,
    pub(super) body: Region,
    pub(super) batch: Batch,
    /// Messages of the batch that are not in the inbound region.
    pub(super) gathered: Vec<Vec<u8>>,
    pub(super) gathered_bytes: usize,
    /// Slots of WebSockets that end after this batch.
    pub(super) ending: Vec<u32>,
    pub(super) parser: Parser,
    targets: Targets,
    pub(super) stamp: u32,
    pub(super) in_call: bool,
    call_began: u64,
    pub(super) call_ns_each: u64,
    /// Whole responses that were taken since the call began.
    pub(super) responded: u32,
    pub(super) constants: Constants,
    pub(super) bodies: SharedBodies,
    pub(super) files: FileCache,
    pub(super) deflate: Deflate,
}

impl Batches {
    pub(super) fn new(
        (inbound, out, body): (Region, Region, Region),
        limits: &Limits,
        constants: Vec<Constant>,
        bodies: SharedBodies,
    ) -> Self {
        let mut batches = Self {
            batch: Batch::new(limits, inbound.len()),
            inbound,
            out,
            body,
            gathered: Vec::new(),
            gathered_bytes: 0,
            ending: Vec::new(),
            parser: Parser::default(),
            targets: Targets::default(),
            stamp: 0,
            in_call: false,
            call_began: 0,
            call_ns_each: 2_000,
            responded: 0,
            constants: Constants::new(constants),
            bodies,
            files: FileCache::new(limits.open_files_max),
            deflate: Deflate::default(),
        };
        batches.drop_records();
        batches
    }

    /// The host handles the batch, with as many of these events as fit.
    pub(super) fn begin_call(&mut self, events: &mut VecDeque<HostEvent>) {
        while let Some(event) = events.front() {
            if !self.batch.put_event(&mut self.inbound, event) {
                break;
            }
            events.pop_front();
        }
        self.inbound.put(layout::inbound::COUNT, self.batch.records());
        self.out.put(layout::out::IN_BATCH, 1);
        self.in_call = true;
        self.responded = 0;
        self.call_began = sys::now_ns();
    }

    /// The host has handled the batch. Returns how many requests it had.
    pub(super) fn end_call(&mut self) -> u32 {
        self.in_call = false;
        self.out.put(layout::out::IN_BATCH, 0);
        self.inbound.put(layout::inbound::COUNT, 0);
        let took = sys::now_ns() - self.call_began;
        let requests = self.batch.requests();
        let each = took / u64::from(requests.max(1));
        self.call_ns_each = (self.call_ns_each * 3 + each) / 4;
        let fitting = BATCH_NS / self.call_ns_each.max(1);
        let least = if self.batch.has_messages_only() { MESSAGES_MIN } else { 1 };
        self.batch.clear(fitting.clamp(least, EVENTS_MAX as u64) as u32);
        self.forget_gathered();
        requests
    }

    /// The records of the out region were taken, or are not.
    pub(super) fn drop_records(&mut self) {
        self.out.put(layout::out::END, HEADER_BYTES as u32);
    }

    /// Where the bytes that are read next go: behind `at` in the inbound region.
    #[inline]
    pub(super) fn space(&mut self, at: usize) -> &mut [u8] {
        let (_, end) = self.batch.free_range();
        &mut self.inbound.all_mut()[at..end.min(at + READ_BYTES_MAX)]
    }

    /// The constant that responds to a request whose bytes begin at `at`.
    #[inline(always)] // once per request
    pub(super) fn constant_of(&self, request: &Request, at: usize) -> Option<usize> {
        if self.constants.is_empty() {
            return None;
        }
        let head = &request.head;
        self.constants.find(head.method, self.bytes(at, head.method_name), self.bytes(at, head.target))
    }

    /// Write the record of a request whose bytes begin at `at`.
    #[inline(always)] // once per request
    pub(super) fn put_request(&mut self, request: &Request, at: usize, id: (u32, u32, u32)) {
        let Span { at: from, len } = request.head.target;
        let target = &self.inbound.all()[at + from as usize..at + (from + len) as usize];
        let number = self.targets.number(target, hash(target));
        self.batch.put_request(&mut self.inbound, request, &self.parser.fields, at, id, number);
        self.batch.use_data(at + request.consumed);
    }

    #[inline(always)] // once per request
    fn bytes(&self, at: usize, span: Span) -> &[u8] {
        &self.inbound.all()[at + span.at as usize..at + (span.at + span.len) as usize]
    }

    /// The record at `at`, unless it is not complete.
    #[inline]
    pub(super) fn record(&self, at: usize, end: usize) -> Option<Record> {
        if at + head::WORDS * 4 > end {
            return None;
        }
        let words = self.out.words::<{ head::WORDS }>(at / 4);
        let word = |index: usize| words[index];
        let (low, high) = (word(head::BYTES), word(head::BYTES_HIGH));
        let kind = word(head::KIND);
        let is_elsewhere = word(head::ELSEWHERE) == 1;
        let is_start = kind & 0xff == reply::START;
        let lines = word(head::LINES) as usize;
        let body = if is_elsewhere || is_start { 0 } else { low as usize };
        let lines_at = at + head::WORDS * 4;
        let next = lines_at.checked_add(lines)?.checked_add(body)?.checked_next_multiple_of(4)?;
        if next > self.out.len() {
            return None;
        }
        Some(Record {
            kind: kind & (layout::FLAG_LAST | 0xff),
            slot: word(head::SLOT),
            stamp: word(head::STAMP),
            status: word(head::STATUS) as u16,
            content: (kind >> 8) as u8,
            lines_at,
            lines,
            body,
            length: ((low, high) != (u32::MAX, u32::MAX)).then_some(u64::from(low) | u64::from(high) << 32),
            is_elsewhere,
            next,
        })
    }

    /// The header lines of the response to an upgrade, and the WebSocket by its terms.
    pub(super) fn granted(&self, record: &Record, now_ms: u64) -> (&[u8], Box<WebSocket>) {
        let bytes = &self.out.all()[record.lines_at..record.lines_at + record.lines + record.body];
        let (lines, words) = bytes.split_at(record.lines);
        let word =
            |index: usize| words.as_chunks::<4>().0.get(index).map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let terms = Terms {
            message_bytes_max: word(layout::terms::MESSAGE_BYTES_MAX) as usize,
            queued_bytes_max: word(layout::terms::QUEUED_BYTES_MAX) as usize,
            ping_ms: word(layout::terms::PING_MS).into(),
            pong_ms: word(layout::terms::PONG_MS).into(),
            close_ms: word(layout::terms::CLOSE_MS).into(),
            deflates: word(layout::terms::DEFLATES) == 1,
            is_raw: word(layout::terms::IS_RAW) == 1,
        };
        (lines, Box::new(WebSocket::new(terms, record.stamp, now_ms)))
    }

    pub(super) fn next_stamp(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1);
        self.stamp
    }

    pub(super) fn put_gathered(&mut self, kind: u32, (slot, stamp): (u32, u32), code: u16, bytes: Vec<u8>) {
        let number = self.gathered.len() as u32;
        let words =
            [kind | layout::flag::ELSEWHERE, slot, stamp, number, bytes.len() as u32, u32::from(code)];
        self.batch.put_message(&mut self.inbound, words);
        self.gathered_bytes += bytes.len();
        self.gathered.push(bytes);
        if self.gathered_bytes >= GATHERED_BYTES_MAX {
            self.batch.fill();
        }
    }

    /// Copy a message of the batch that is not in the inbound region. Returns whether it has that length.
    pub fn take_gathered(&mut self, number: u32, bytes: &mut [u8]) -> bool {
        let found = self.gathered.get(number as usize).filter(|message| message.len() == bytes.len());
        found.is_some_and(|message| {
            bytes.copy_from_slice(message);
            true
        })
    }

    fn forget_gathered(&mut self) {
        if self.gathered_bytes > 0 || !self.gathered.is_empty() {
            self.gathered.clear();
            self.gathered_bytes = 0;
        }
    }
}
