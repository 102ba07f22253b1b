//! One connection, without its socket: bytes in, requests out; answers in, bytes out, in the order of the
//! requests.
//!
//! A request that was admitted is a **flight** until its answer has ended. Answers may come in any order;
//! those that are ahead of their turn are held. At most one body is unfinished, the last flight's: nothing
//! behind it is read before it has been taken or thrown away.

use std::{collections::VecDeque, rc::Rc};

use crate::{
    answer::{self, AnswerHead, Ends, Fate, Heads},
    bodies,
    body::Body,
    chunked::Decoded,
    head::{Framing, Head, Method, Parsed, is_for_head},
    known::Parser,
    limits::{Limits, Refusal},
};

/// Bytes of a body that nobody wants and that are read all the same, so that the connection can be kept.
pub const DISCARD_BYTES_MAX: u64 = 256 * 1024;

/// What the next bytes are.
#[derive(Debug)]
enum Reading {
    Head,
    /// The last flight's body.
    Body(Body),
    /// One that nobody wants, and how much of it is put up with.
    Discard(Body, u64),
    /// Whatever comes is not looked at.
    Nothing,
}

/// Which answer ends how.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Streaming(Ends),
    Done,
}

/// A request whose answer has not ended.
#[derive(Debug)]
struct Flight {
    stamp: u32,
    is_head: bool,
    is_old: bool,
    /// The connection closes after it.
    closes: bool,
    /// `100 Continue` is owed when the body is asked for.
    expects: bool,
    /// It was asked for.
    asked: bool,
    /// The last flight, with a body that is not whole.
    has_body: bool,
    /// The host knows that the client has gone.
    is_told: bool,
    phase: Phase,
    /// Its answer, ahead of its turn.
    held: Vec<u8>,
    /// And the body that belongs behind it, if that is not in it.
    held_body: Option<Rc<bodies::Body>>,
}

/// A body that other connections send too, and what comes behind it.
#[derive(Debug)]
struct Tail {
    body: Rc<bodies::Body>,
    /// How much of it has left.
    sent: usize,
    after: Vec<u8>,
}

/// A request that was read.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its head; offsets are into the data.
    pub head: Head,
    /// Bytes of body that lie in the data, decoded, from `head.bytes` on; only if it is whole.
    pub body_bytes: usize,
    /// The whole body is there, if there is one.
    pub is_whole: bool,
    /// Bytes of the data that are used up.
    pub consumed: usize,
    /// The connection closes after the answer.
    pub closes: bool,
}

/// What [`Connection::next`] found.
#[derive(Debug)]
pub enum Next {
    /// Nothing is read now: answers or a body have to go first, or it closes.
    Wait,
    /// The head is not complete.
    Partial,
    /// So many bytes belonged to a body that nobody wants.
    Skipped(usize),
    /// A request; `admit` it.
    Request(Request),
}

/// What became of the bytes that were read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// None are left, or they are a part of a request.
    Part,
    /// Some were not looked at: answers or a body have to go first, or others have their turn.
    Unseen,
}

/// An answer, or its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// 200 to 599.
    pub status: u16,
    /// Content type by number.
    pub kind: u8,
    /// Ready-made lines.
    pub headers: &'a [u8],
}

/// One connection: bytes in, requests and responses out.
#[derive(Debug)]
pub struct Connection {
    /// Bytes that were read and not used.
    pub kept: Vec<u8>,
    /// Decoded bytes of the body that nobody has taken yet.
    pub ready: Vec<u8>,
    /// Bytes to be sent, from `sent` on.
    pub out: Vec<u8>,
    /// How much of `out` has left.
    pub sent: usize,
    /// What is sent behind `out`.
    tails: VecDeque<Tail>,
    reading: Reading,
    flights: VecDeque<Flight>,
    served: u32,
    /// Nothing is read after what is in flight.
    closing: bool,
    /// Requests that are read from now on are the last.
    leaving: bool,
    /// The client was still sending when reading stopped.
    is_cut: bool,
    /// Answers were made ahead of their turn.
    has_held: bool,
    /// The largest body of a whole answer since somebody asked.
    largest: Option<u64>,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            ready: Vec::new(),
            out: Vec::new(),
            sent: 0,
            tails: VecDeque::new(),
            reading: Reading::Head,
            flights: VecDeque::new(),
            served: 0,
            closing: false,
            leaving: false,
            is_cut: false,
            has_held: false,
            largest: None,
        }
    }
}

impl Connection {
    /// Bytes that wait to be sent.
    #[inline]
    pub fn unsent(&self) -> usize {
        let front = self.out.len() - self.sent;
        if self.tails.is_empty() { front } else { front + self.tail_bytes() }
    }

    #[cold]
    fn tail_bytes(&self) -> usize {
        self.tails.iter().map(|tail| tail.body.bytes().len() - tail.sent + tail.after.len()).sum()
    }

    /// The bytes that are sent next, and those behind them that lie elsewhere.
    #[inline]
    pub fn next_bytes(&self) -> (&[u8], &[u8]) {
        let first = &self.out[self.sent..];
        match self.tails.front() {
            None => (first, &[]),
            Some(tail) => (first, &tail.body.bytes()[tail.sent..]),
        }
    }

    /// So many of [`next_bytes`](Self::next_bytes) have left.
    #[inline]
    pub fn has_left(&mut self, bytes: usize) {
        let first = bytes.min(self.out.len() - self.sent);
        self.sent += first;
        if !self.tails.is_empty() {
            self.tail_has_left(bytes - first);
        }
    }

    #[cold]
    fn tail_has_left(&mut self, bytes: usize) {
        if self.sent < self.out.len() {
            return;
        }
        let Some(tail) = self.tails.front_mut() else { return };
        tail.sent += bytes;
        if tail.sent >= tail.body.bytes().len() {
            self.out = std::mem::take(&mut tail.after);
            self.sent = 0;
            self.tails.pop_front();
        }
    }

    /// Send `body`, but for its first `sent` bytes, behind what waits already.
    pub fn push_body(&mut self, body: Rc<bodies::Body>, sent: usize) {
        self.tails.push_back(Tail { body, sent, after: Vec::new() });
    }

    /// The body that belongs to the answer of a flight; its head has been written.
    pub fn give_body(&mut self, index: usize, body: Rc<bodies::Body>) {
        if index == 0 {
            self.push_body(body, 0);
        } else {
            self.flights[index].held_body = Some(body);
        }
    }

    /// Where the bytes go that are sent behind all others.
    #[inline]
    pub fn front_sink(&mut self) -> &mut Vec<u8> {
        sink_of(&mut self.out, &mut self.tails)
    }

    /// Requests without an answer.
    #[inline]
    pub fn flights(&self) -> usize {
        self.flights.len()
    }

    /// Their stamps, oldest first.
    pub fn stamps(&self) -> impl Iterator<Item = u32> {
        self.flights.iter().filter(|flight| flight.phase != Phase::Done).map(|flight| flight.stamp)
    }

    /// Nothing more is read or answered: what is unsent is the last.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.closing && self.flights.is_empty()
    }

    /// Between two requests: nothing is owed and nothing half read.
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty()
            && self.kept.is_empty()
            && self.unsent() == 0
            && matches!(self.reading, Reading::Head)
    }

    /// Whether a head has begun and not ended.
    pub fn is_in_head(&self) -> bool {
        matches!(self.reading, Reading::Head) && !self.kept.is_empty()
    }

    /// Whether a body is being thrown away.
    pub const fn is_discarding(&self) -> bool {
        matches!(self.reading, Reading::Discard(..))
    }

    /// Whether the last flight's body is not whole.
    pub const fn is_in_body(&self) -> bool {
        matches!(self.reading, Reading::Body(_))
    }

    /// Bytes that are missing of the last flight's body, when that is known.
    pub const fn body_left(&self) -> Option<u64> {
        match &self.reading {
            Reading::Body(body) => body.left(),
            _ => None,
        }
    }

    /// Bytes of answers: those that wait to be sent, and those that wait for answers before them.
    #[inline]
    fn answered_bytes(&self) -> usize {
        if !self.has_held {
            return self.unsent();
        }
        self.unsent() + self.flights.iter().map(Flight::held_bytes).sum::<usize>()
    }

    /// The largest body of the whole answers that were given since this was asked last, if any was.
    #[inline]
    pub fn take_largest(&mut self) -> Option<u64> {
        self.largest.take()
    }

    /// Whether bytes that arrive now would be looked at by [`next`](Self::next).
    #[inline]
    pub fn wants_input(&self, limits: &Limits) -> bool {
        match self.reading {
            Reading::Head => {
                !self.closing
                    && self.flights.len() < limits.pipeline_max
                    && self.answered_bytes() <= limits.out_bytes_max
            }
            Reading::Discard(..) => true,
            Reading::Body(_) | Reading::Nothing => false,
        }
    }

    /// The next request in `data`, which begins with what was not used before. A body that is whole is
    /// decoded in place. A malformed request has been answered when this returns its refusal.
    ///
    /// # Errors
    ///
    /// The refusal; nothing is read any more.
    pub fn next(&mut self, data: &mut [u8], limits: &Limits, parser: &mut Parser) -> Result<Next, Refusal> {
        if !self.wants_input(limits) {
            return Ok(Next::Wait);
        }
        if data.is_empty() {
            return Ok(Next::Partial);
        }
        if let Reading::Discard(..) = self.reading {
            return Ok(self.discard(data, limits));
        }
        let Parsed::Whole(head) = parser.parse(data, limits)? else { return Ok(Next::Partial) };
        self.served += 1;
        let closes = !head.keeps || self.leaving || self.served >= limits.requests_per_connection_max;
        let mut request = Request { head, body_bytes: 0, is_whole: true, consumed: head.bytes, closes };
        if head.framing != Framing::Length(0) {
            let mut body = Body::new(head.framing);
            let rest = &mut data[head.bytes..];
            let Decoded { consumed, produced, is_end } = body.decode(rest, limits)?;
            request.consumed += consumed;
            request.body_bytes = produced;
            if !is_end {
                request.is_whole = false;
                self.ready.extend_from_slice(&rest[..produced]);
                self.reading = Reading::Body(body);
            }
        }
        if closes && request.is_whole {
            self.reading = Reading::Nothing;
        }
        Ok(Next::Request(request))
    }

    fn discard(&mut self, data: &mut [u8], limits: &Limits) -> Next {
        let Reading::Discard(body, budget) = &mut self.reading else { return Next::Wait };
        match body.decode(data, limits) {
            Ok(Decoded { consumed, is_end: true, .. }) => {
                self.reading = Reading::Head;
                Next::Skipped(consumed)
            }
            Ok(Decoded { consumed, .. }) if consumed as u64 <= *budget => {
                *budget -= consumed as u64;
                Next::Skipped(consumed)
            }
            // Nobody waits for a word about it: the answer has gone.
            _ => {
                self.cease();
                Next::Wait
            }
        }
    }

    /// Take a request in flight under `stamp`.
    #[inline]
    pub fn admit(&mut self, request: &Request, stamp: u32) {
        self.flights.push_back(Flight {
            stamp,
            is_head: request.head.method == Method::Head,
            is_old: request.head.is_old,
            closes: request.closes,
            expects: request.head.expects && !request.is_whole,
            asked: false,
            has_body: !request.is_whole,
            is_told: false,
            phase: Phase::Waiting,
            held: Vec::new(),
            held_body: None,
        });
    }

    /// Whether an answer may be appended to `out` as it is, without a flight.
    #[inline]
    pub fn is_next(&self, request: &Request) -> bool {
        self.flights.is_empty() && request.is_whole && !request.closes && !request.head.is_old
    }

    /// Read nothing more and close after what is in flight.
    pub fn cease(&mut self) {
        self.reading = Reading::Nothing;
        self.kept = Vec::new();
        self.closing = true;
        self.is_cut = true;
        if let Some(last) = self.flights.back_mut() {
            last.closes = true;
        }
    }

    /// The stamps of those whose answers have not ended and that were not asked for before.
    pub fn take_untold(&mut self) -> Vec<u32> {
        let untold = self.flights.iter_mut().filter(|flight| !flight.is_told && flight.phase != Phase::Done);
        untold
            .map(|flight| {
                flight.is_told = true;
                flight.stamp
            })
            .collect()
    }

    /// Whether some of those have not been told yet.
    pub fn has_untold(&self) -> bool {
        self.flights.iter().any(|flight| !flight.is_told && flight.phase != Phase::Done)
    }

    /// A flight of whose answer nothing has left is not answered: it and those behind it are dropped, and the
    /// connection closes after those before it. Their stamps; `None`: it has begun to leave.
    pub fn give_up(&mut self, stamp: u32) -> Option<Vec<u32>> {
        let index = self.position(stamp)?;
        if index == 0 && self.flights[0].phase != Phase::Waiting {
            return None;
        }
        let dropped = self.flights.drain(index..).filter(|flight| flight.phase != Phase::Done);
        let stamps = dropped.map(|flight| flight.stamp).collect();
        self.ready = Vec::new();
        self.cease();
        Some(stamps)
    }

    /// The client sends nothing more. True: what is in flight is the last, and a part of a request is of no
    /// use. False: what was kept, or a body, is still to be looked at.
    pub fn end_input(&mut self, left: Left) -> bool {
        if left == Left::Unseen || self.is_in_body() {
            return false;
        }
        self.reading = Reading::Nothing;
        self.kept = Vec::new();
        self.closing = true;
        if let Some(last) = self.flights.back_mut() {
            last.closes = true;
        }
        true
    }

    /// The request that is read next is the last.
    pub const fn leave(&mut self) {
        self.leaving = true;
    }

    /// Finish what has begun and close: the last answer says so, if it has not begun.
    pub fn close_soon(&mut self) {
        self.leaving = true;
        let is_between = matches!(self.reading, Reading::Head) && self.kept.is_empty();
        if is_between {
            self.reading = Reading::Nothing;
        }
        if self.is_discarding() {
            self.reading = Reading::Nothing;
            self.is_cut = true;
        }
        if !matches!(self.reading, Reading::Head) {
            self.closing = true;
            if let Some(last) = self.flights.back_mut() {
                last.closes = true;
            }
        }
    }

    /// Bytes are left that were not taken: if that is because nothing more is read, the client was still
    /// sending.
    #[inline]
    pub const fn note_unused(&mut self) {
        self.is_cut |= self.closing || matches!(self.reading, Reading::Nothing);
    }

    /// Whether the client was still sending when reading stopped: then it has to be listened to for a while,
    /// or it may never see the answer.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Answer with a refusal, after the flights there are, and read nothing more. `input` is what is refused:
    /// a response to HEAD has no content (RFC 9110, 9.3.2).
    pub fn refuse(&mut self, refusal: Refusal, input: &[u8], heads: &Heads) {
        self.cease();
        let mut bytes = Vec::new();
        let body_bytes = refusal.why.len() as u64 + 1;
        let (ends, fate) = (Ends::Length(body_bytes), Fate::Closes);
        heads.write(&AnswerHead { status: refusal.status, kind: 1, headers: b"", ends, fate }, &mut bytes);
        if !is_for_head(input) {
            bytes.extend_from_slice(refusal.why.as_bytes());
            bytes.push(b'\n');
        }
        if self.flights.is_empty() {
            self.front_sink().extend_from_slice(&bytes);
            return;
        }
        // Those before it have not been told that the connection closes, and need not be.
        if let Some(last) = self.flights.back_mut() {
            last.closes = false;
        }
        self.flights.push_back(Flight {
            stamp: 0,
            is_head: false,
            is_old: false,
            closes: true,
            expects: false,
            asked: false,
            has_body: false,
            is_told: true,
            phase: Phase::Done,
            held: bytes,
            held_body: None,
        });
    }

    /// Answer the flight with `stamp`. False: there is none that waits.
    #[inline]
    pub fn respond(&mut self, stamp: u32, answer: &Answer<'_>, body: &[u8], heads: &Heads) -> bool {
        match self.respond_head(stamp, answer, body.len() as u64, heads) {
            Some((index, has_body)) => {
                if has_body {
                    self.sink(index).extend_from_slice(body);
                }
                self.ended(index);
                true
            }
            None => false,
        }
    }

    /// The head of a whole answer of `body_bytes`. The flight's index and whether the body is to be sent:
    /// then it is appended to its `sink`, and `ended` called.
    #[inline]
    pub fn respond_head(
        &mut self,
        stamp: u32,
        answer: &Answer<'_>,
        body_bytes: u64,
        heads: &Heads,
    ) -> Option<(usize, bool)> {
        let index = self.waiting(stamp)?;
        self.largest = self.largest.max(Some(body_bytes));
        self.settle_body(index);
        let flight = &mut self.flights[index];
        let fate = flight.fate();
        let ends = ends_of(answer.status, Ends::Length(body_bytes));
        let Answer { status, kind, headers } = *answer;
        let has_body = ends != Ends::Silent && !flight.is_head;
        self.has_held |= index != 0;
        let sink = if index == 0 { sink_of(&mut self.out, &mut self.tails) } else { &mut flight.held };
        heads.write(&AnswerHead { status, kind, headers, ends, fate }, sink);
        Some((index, has_body))
    }

    /// Begin an answer whose body follows; `None`: there is no flight that waits. If the body ends with the
    /// connection, nothing behind it is answered or read: the stamps of those that are dropped.
    pub fn start(
        &mut self,
        stamp: u32,
        answer: &Answer<'_>,
        length: Option<u64>,
        heads: &Heads,
    ) -> Option<Vec<u32>> {
        let index = self.waiting(stamp)?;
        let flight = &mut self.flights[index];
        let framing = match length {
            Some(length) => Ends::Length(length),
            None if flight.is_old => Ends::Silent,
            None => Ends::Chunked,
        };
        let ends = ends_of(answer.status, framing);
        let is_last = framing == Ends::Silent && !flight.is_head;
        flight.closes |= is_last;
        let fate = flight.fate();
        let bodiless = flight.is_head || matches!(answer.status, 204 | 304);
        flight.phase = Phase::Streaming(if bodiless { Ends::Length(0) } else { ends });
        self.has_held |= index != 0;
        let Answer { status, kind, headers } = *answer;
        let sink = if index == 0 { sink_of(&mut self.out, &mut self.tails) } else { &mut flight.held };
        heads.write(&AnswerHead { status, kind, headers, ends, fate }, sink);
        Some(if is_last { self.drop_behind(index) } else { Vec::new() })
    }

    /// The connection closes after that flight, whose own body may still be read: the stamps of those behind
    /// it, which are dropped.
    #[cold]
    fn drop_behind(&mut self, index: usize) -> Vec<u32> {
        self.closing = true;
        self.is_cut |= !self.kept.is_empty() || index + 1 < self.flights.len();
        if !(self.flights[index].has_body && self.is_in_body()) {
            self.reading = Reading::Nothing;
            self.kept = Vec::new();
            self.ready = Vec::new();
        }
        let dropped = self.flights.drain(index + 1..).filter(|flight| flight.phase != Phase::Done);
        dropped.map(|flight| flight.stamp).collect()
    }

    /// A piece of the body. What passes the length that was announced is dropped. The bytes that wait, if the
    /// flight is streaming.
    pub fn write(&mut self, stamp: u32, piece: &[u8]) -> Option<usize> {
        let index = self.position(stamp)?;
        let flight = &mut self.flights[index];
        let is_front = index == 0;
        let sink = if is_front { sink_of(&mut self.out, &mut self.tails) } else { &mut flight.held };
        match &mut flight.phase {
            Phase::Streaming(Ends::Length(left)) => {
                let here = piece.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= here as u64;
                sink.extend_from_slice(&piece[..here]);
            }
            Phase::Streaming(Ends::Silent) => sink.extend_from_slice(piece),
            // A chunk of no bytes would be the end.
            Phase::Streaming(Ends::Chunked) if piece.is_empty() => {}
            Phase::Streaming(Ends::Chunked) => {
                answer::push_chunk_size(piece.len(), sink);
                sink.extend_from_slice(piece);
                sink.extend_from_slice(b"\r\n");
            }
            Phase::Waiting | Phase::Done => return None,
        }
        Some(if is_front { self.unsent() } else { self.flights[index].held.len() })
    }

    /// The end of an answer that streams. An answer shorter than announced cannot be finished: `None` then
    /// asks to cut the connection.
    pub fn end(&mut self, stamp: u32) -> Option<bool> {
        let Some(index) = self.position(stamp) else { return Some(false) };
        match self.flights[index].phase {
            Phase::Streaming(Ends::Length(0) | Ends::Silent) => {}
            Phase::Streaming(Ends::Length(_)) => return None,
            Phase::Streaming(Ends::Chunked) => self.sink(index).extend_from_slice(b"0\r\n\r\n"),
            Phase::Waiting | Phase::Done => return Some(false),
        }
        self.settle_body(index);
        self.ended(index);
        Some(true)
    }

    /// Whether that flight's answer has not ended.
    pub fn is_in_flight(&self, stamp: u32) -> bool {
        self.position(stamp).is_some()
    }

    /// Whether that flight's answer has begun.
    pub fn has_begun(&self, stamp: u32) -> bool {
        self.position(stamp).is_some_and(|index| self.flights[index].phase != Phase::Waiting)
    }

    /// Bytes of that flight's answer that wait.
    pub fn waiting_bytes(&self, stamp: u32) -> usize {
        match self.position(stamp) {
            None => 0,
            Some(0) => self.unsent(),
            Some(index) => self.flights[index].held_bytes(),
        }
    }

    /// The body of the flight with `stamp` is asked for: send `100 Continue` if that is owed and its turn.
    pub fn ask(&mut self, stamp: u32) {
        if let Some(index) = self.position(stamp) {
            self.flights[index].asked = true;
            self.go_on();
        }
    }

    /// Whether that flight's body is the one being read.
    pub fn has_body(&self, stamp: u32) -> bool {
        self.is_in_body() && self.flights.back().is_some_and(|last| last.stamp == stamp && last.has_body)
    }

    /// Decode bytes of the unfinished body, in place.
    ///
    /// # Errors
    ///
    /// The refusal; nothing is read any more, and the answer, if it has not begun, says that the connection
    /// closes.
    pub fn decode(&mut self, data: &mut [u8], limits: &Limits) -> Result<Decoded, Refusal> {
        let Reading::Body(body) = &mut self.reading else {
            return Ok(Decoded { consumed: 0, produced: 0, is_end: true });
        };
        match body.decode(data, limits) {
            Ok(decoded) => {
                if decoded.is_end {
                    self.body_ended();
                }
                Ok(decoded)
            }
            Err(refusal) => {
                self.cease();
                Err(refusal)
            }
        }
    }

    /// The position of a flight whose answer has not ended.
    #[inline]
    fn position(&self, stamp: u32) -> Option<usize> {
        match self.flights.front() {
            Some(front) if front.stamp == stamp && front.phase != Phase::Done => Some(0),
            _ => self.flights.iter().position(|flight| flight.stamp == stamp && flight.phase != Phase::Done),
        }
    }

    #[inline]
    fn waiting(&self, stamp: u32) -> Option<usize> {
        self.position(stamp).filter(|&index| self.flights[index].phase == Phase::Waiting)
    }

    /// Where the flight's bytes go.
    #[inline]
    pub fn sink(&mut self, index: usize) -> &mut Vec<u8> {
        if index == 0 { self.front_sink() } else { &mut self.flights[index].held }
    }

    /// The flight's answer has ended: it and those behind it that wait only for it are over.
    #[inline]
    pub fn ended(&mut self, index: usize) {
        self.flights[index].phase = Phase::Done;
        if index != 0 {
            return;
        }
        while let Some(front) = self.flights.front_mut() {
            if !front.held.is_empty() {
                sink_of(&mut self.out, &mut self.tails).append(&mut front.held);
            }
            if let Some(body) = front.held_body.take() {
                self.tails.push_back(Tail { body, sent: 0, after: Vec::new() });
            }
            if front.phase != Phase::Done {
                self.go_on();
                return;
            }
            let closes = front.closes;
            self.flights.pop_front();
            if closes {
                self.reading = Reading::Nothing;
                self.closing = true;
                self.flights.clear();
            }
        }
        self.has_held = false;
    }

    /// The answer is complete before the body of its request: is the rest worth reading?
    #[inline]
    fn settle_body(&mut self, index: usize) {
        if self.flights[index].has_body {
            self.leave_body(index);
        }
    }

    #[cold]
    fn leave_body(&mut self, index: usize) {
        let flight = &mut self.flights[index];
        flight.has_body = false;
        self.ready = Vec::new();
        let Reading::Body(body) = std::mem::replace(&mut self.reading, Reading::Nothing) else { return };
        let is_small = body.left().is_none_or(|left| left <= DISCARD_BYTES_MAX);
        if flight.closes || flight.expects || !is_small {
            flight.closes = true;
            self.is_cut = true;
        } else {
            self.reading = Reading::Discard(body, DISCARD_BYTES_MAX);
        }
    }

    fn body_ended(&mut self) {
        self.reading = Reading::Head;
        if let Some(last) = self.flights.back_mut() {
            last.has_body = false;
            last.expects = false;
            if last.closes {
                self.reading = Reading::Nothing;
            }
        }
    }

    /// The front may be owed its `100 Continue`.
    fn go_on(&mut self) {
        if let Some(front) = self.flights.front_mut()
            && front.asked
            && front.expects
            && front.phase == Phase::Waiting
        {
            front.expects = false;
            sink_of(&mut self.out, &mut self.tails).extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }
}

/// Behind all that waits.
#[inline]
fn sink_of<'a>(out: &'a mut Vec<u8>, tails: &'a mut VecDeque<Tail>) -> &'a mut Vec<u8> {
    match tails.back_mut() {
        None => out,
        Some(tail) => &mut tail.after,
    }
}

impl Flight {
    /// Bytes of its answer, ahead of its turn.
    fn held_bytes(&self) -> usize {
        self.held.len() + self.held_body.as_ref().map_or(0, |body| body.bytes().len())
    }

    #[inline]
    const fn fate(&self) -> Fate {
        if self.closes {
            Fate::Closes
        } else if self.is_old {
            Fate::KeptOld
        } else {
            Fate::Kept
        }
    }
}

/// Statuses that have no body say nothing about one.
const fn ends_of(status: u16, otherwise: Ends) -> Ends {
    match status {
        204 | 304 => Ends::Silent,
        _ => otherwise,
    }
}

#[cfg(test)]
pub(crate) mod tests;
