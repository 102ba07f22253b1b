//! The batch of records that the host handles in one call: requests with their fields, and events. It is
//! written straight into the inbound region.

use super::super::settings::HostEvent;
use crate::{
    connection::Request,
    head::{Field, Framing},
    layout::{self, HEADER_BYTES, READ_BYTES_MAX, WORDS_BYTES, event, message, request},
    limits::{HEADERS_MAX, Limits},
    region::Region,
};

/// The batch under construction in the inbound region.
pub struct Batch {
    records: u32,
    requests: u32,
    /// Those of `requests` that are messages of WebSockets.
    messages: u32,
    requests_max: u32,
    /// Index of the next free word.
    word: usize,
    /// Offset of the next free byte after the words.
    pub data_at: usize,
    data_end: usize,
    /// Free bytes without which nothing is read.
    data_bytes_min: usize,
    fields_max: usize,
}

impl Batch {
    pub fn new(limits: &Limits, inbound_bytes: usize) -> Self {
        Self {
            records: 0,
            requests: 0,
            messages: 0,
            requests_max: 16,
            word: HEADER_BYTES / 4,
            data_at: WORDS_BYTES,
            data_end: inbound_bytes,
            data_bytes_min: Self::data_bytes_min(limits),
            fields_max: limits.headers_max.min(HEADERS_MAX),
        }
    }

    /// The bytes that a connection may have kept, and those that one read adds.
    pub const fn data_bytes_min(limits: &Limits) -> usize {
        limits.header_bytes_max + 2 * READ_BYTES_MAX
    }

    pub const fn clear(&mut self, requests_max: u32) {
        self.records = 0;
        self.requests = 0;
        self.messages = 0;
        self.requests_max = requests_max;
        self.word = HEADER_BYTES / 4;
        self.data_at = WORDS_BYTES;
    }

    #[inline]
    pub const fn is_full(&self) -> bool {
        self.requests >= self.requests_max
            || self.data_end - self.data_at < self.data_bytes_min
            || (self.word + request::WORDS + self.fields_max * layout::FIELD_WORDS) * 4 > WORDS_BYTES
    }

    pub const fn has_requests(&self) -> bool {
        self.requests > 0
    }

    pub const fn requests(&self) -> u32 {
        self.requests
    }

    pub const fn records(&self) -> u32 {
        self.records
    }

    /// The free range for bytes.
    #[inline]
    pub const fn free_range(&self) -> (usize, usize) {
        (self.data_at, self.data_end)
    }

    /// Mark the bytes up to `end` as used.
    pub fn use_data(&mut self, end: usize) {
        self.data_at = (end + 7) & !7;
        self.data_at = self.data_at.min(self.data_end);
    }

    /// Write the record of an event. False: it does not fit.
    pub fn put_event(&mut self, inbound: &mut Region, event: &HostEvent) -> bool {
        if (self.word + layout::EVENT_WORDS) * 4 > WORDS_BYTES {
            return false;
        }
        inbound.put_all(self.word, [event.kind, event.slot, event.stamp]);
        self.word += layout::EVENT_WORDS;
        self.records += 1;
        true
    }

    /// Write the record of a message, or of a close frame. It counts as a request.
    pub fn put_message(&mut self, inbound: &mut Region, words: [u32; message::WORDS]) {
        inbound.put_all(self.word, words);
        self.word += message::WORDS;
        self.records += 1;
        self.requests += 1;
        self.messages += 1;
    }

    /// Whether it has messages of WebSockets and no requests.
    pub const fn has_messages_only(&self) -> bool {
        self.messages > 0 && self.messages == self.requests
    }

    /// Take nothing more into this batch.
    pub const fn fill(&mut self) {
        self.requests_max = self.requests;
    }

    /// Write the record of a request whose bytes begin at `at`.
    #[inline]
    pub fn put_request(
        &mut self,
        inbound: &mut Region,
        incoming: &Request,
        fields: &[Field],
        at: usize,
        (flags, slot, stamp): (u32, u32, u32),
        target: Option<(u32, bool)>,
    ) {
        let head = &incoming.head;
        let mut kind = event::REQUEST | flags;
        let number = target.map_or(layout::NO_TARGET.cast_unsigned(), |(number, is_new)| {
            kind |= if is_new { layout::flag::NEW_TARGET } else { 0 };
            number
        });
        kind |= if incoming.is_whole { layout::flag::WHOLE } else { 0 };
        let length = match head.framing {
            Framing::Length(length) => length,
            Framing::Chunked => u64::MAX,
        };
        let words: [u32; request::WORDS] = [
            kind,
            slot,
            stamp,
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
            incoming.body_bytes as u32,
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
