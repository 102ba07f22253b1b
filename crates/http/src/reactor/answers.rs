//! The host's answers: records in the out region, taken in order. A record that names a request which is not
//! in flight any more is passed over; one that does not fit the region ends the reading.

use super::{
    Reactor,
    input::Fortune,
    state::{Line, Tell},
};
use crate::{
    connection::Answer,
    layout::{self, HEADER_BYTES, answer, reply},
    sys,
};

/// Bytes that wait on a connection after which a piece is sent at once, not at the end of the turn.
const SEND_SOON_BYTES: usize = 64 * 1024;

/// What waits of a whole body, beyond so many bytes, is kept once for all connections that send it.
const SHARED_BYTES_MIN: usize = 64 * 1024;
/// Answered in place of a body that has no room: see `out_bytes_total_max`.
const FULL: Answer<'_> = Answer { status: 503, kind: 1, headers: b"retry-after: 1\r\n" };
const FULL_WHY: &[u8] = b"responses of other clients wait\n";

/// One record, as it was written.
struct Record {
    kind: u32,
    slot: u32,
    stamp: u32,
    status: u16,
    /// Content type by number.
    content: u8,
    /// Where its lines begin.
    lines_at: usize,
    lines: usize,
    body: usize,
    length: Option<u64>,
    is_elsewhere: bool,
    /// Where the next one begins.
    next: usize,
}

impl Reactor {
    /// Take all records. The body of the last one may be elsewhere.
    pub(super) fn take_answers(&mut self, elsewhere: Option<&[u8]>) {
        let end = (self.out.word(layout::out::END) as usize).min(self.out.len());
        let mut at = HEADER_BYTES;
        while let Some(record) = self.record(at, end) {
            at = record.next;
            self.take_answer(&record, elsewhere);
        }
        self.out.put(layout::out::END, HEADER_BYTES as u32);
    }

    #[inline]
    fn record(&self, at: usize, end: usize) -> Option<Record> {
        if at + answer::WORDS * 4 > end {
            return None;
        }
        let words = self.out.words::<{ answer::WORDS }>(at / 4);
        let word = |index: usize| words[index];
        let (low, high) = (word(answer::BYTES), word(answer::BYTES_HIGH));
        let kind = word(answer::KIND);
        let is_elsewhere = word(answer::ELSEWHERE) == 1;
        let is_start = kind & 0xff == reply::START;
        let lines = word(answer::LINES) as usize;
        let body = if is_elsewhere || is_start { 0 } else { low as usize };
        let lines_at = at + answer::WORDS * 4;
        let next = lines_at.checked_add(lines)?.checked_add(body)?.checked_next_multiple_of(4)?;
        if next > self.out.len() {
            return None;
        }
        Some(Record {
            kind: kind & 0xff,
            slot: word(answer::SLOT),
            stamp: word(answer::STAMP),
            status: word(answer::STATUS) as u16,
            content: (kind >> 8) as u8,
            lines_at,
            lines,
            body,
            length: ((low, high) != (u32::MAX, u32::MAX)).then_some(u64::from(low) | u64::from(high) << 32),
            is_elsewhere,
            next,
        })
    }

    #[inline]
    fn take_answer(&mut self, record: &Record, elsewhere: Option<&[u8]>) {
        let Some(mut line) = self.slots.lift(record.slot) else { return };
        if !line.machine.is_in_flight(record.stamp) {
            self.slots.put_back(record.slot, line);
            return;
        }
        self.lend_buffer(&mut line);
        let fortune = self.write_answer(record, &mut line, elsewhere);
        if fortune == Fortune::Lives {
            self.mark_line(record.slot, &mut line);
        }
        self.put_or_bury(record.slot, line, fortune);
    }

    #[inline]
    fn write_answer(&mut self, record: &Record, line: &mut Line, elsewhere: Option<&[u8]>) -> Fortune {
        let bytes = self.out.all();
        let (headers, rest) = bytes[record.lines_at..].split_at(record.lines);
        let body = match elsewhere {
            Some(body) if record.is_elsewhere => body,
            _ => &rest[..record.body],
        };
        let answer = Answer { status: record.status, kind: record.content, headers };
        match record.kind {
            reply::RESPOND if record.is_elsewhere => {
                let body = elsewhere.unwrap_or_default();
                let length = body.len() as u64;
                if !self.bodies.fits(body, self.limits.out_bytes_total_max) {
                    self.stats.refused += 1;
                    line.machine.respond(record.stamp, &FULL, FULL_WHY, &self.heads);
                    return Fortune::Lives;
                }
                if let Some((index, has_body)) =
                    line.machine.respond_head(record.stamp, &answer, length, &self.heads)
                {
                    let fortune = if has_body { self.send_large(line, index, body) } else { Fortune::Lives };
                    line.machine.ended(index);
                    return fortune;
                }
            }
            reply::RESPOND => {
                line.machine.respond(record.stamp, &answer, body, &self.heads);
            }
            reply::START => {
                let dropped = line.machine.start(record.stamp, &answer, record.length, &self.heads);
                self.tell_dropped(record.slot, dropped.unwrap_or_default());
            }
            reply::WRITE => {
                let waiting = line.machine.write(record.stamp, body).unwrap_or_default();
                return self.written(record.stamp, line, waiting);
            }
            reply::END if line.machine.end(record.stamp).is_some() => {}
            reply::ABORT if self.give_up(record.slot, record.stamp, line) => {}
            reply::END | reply::ABORT => {
                sys::reset_on_close(&line.socket);
                return Fortune::Dies;
            }
            _ => {}
        }
        Fortune::Lives
    }

    /// The host answers one no more. False: a part has left, so the connection has to be cut.
    pub(super) fn give_up(&mut self, slot: u32, stamp: u32, line: &mut Line) -> bool {
        let Some(stamps) = line.machine.give_up(stamp) else { return false };
        self.tell_dropped(slot, stamps);
        true
    }

    /// These will not be answered, though their connection may live on for others.
    fn tell_dropped(&mut self, slot: u32, stamps: Vec<u32>) {
        for stamp in stamps {
            self.stats.aborted += 1;
            self.tells.push_back(Tell { kind: layout::event::CLOSED, slot, stamp });
        }
    }

    /// After a piece was written: send at once when much waits, and tell how much still does.
    fn written(&mut self, stamp: u32, line: &mut Line, mut waiting: usize) -> Fortune {
        if waiting >= SEND_SOON_BYTES {
            if self.send(line) == Fortune::Dies {
                return Fortune::Dies;
            }
            waiting = line.machine.waiting_bytes(stamp);
        }
        line.is_full |= waiting > self.limits.out_bytes_max;
        self.out.put(layout::out::FOUND, waiting as u32);
        Fortune::Lives
    }

    /// Send a large body from where it is, and keep what the kernel does not take.
    fn send_large(&mut self, line: &mut Line, index: usize, body: &[u8]) -> Fortune {
        let unsent = line.machine.unsent();
        if index != 0 || !line.is_writable || !line.machine.next_bytes().1.is_empty() {
            if body.len() <= SHARED_BYTES_MIN {
                line.machine.sink(index).extend_from_slice(body);
            } else {
                line.machine.give_body(index, self.bodies.share(body));
            }
            return Fortune::Lives;
        }
        let taken = match sys::send_both(&line.socket, &line.machine.out[line.machine.sent..], body) {
            Ok(taken) => taken,
            Err(error) if super::input::is_soon(&error) => 0,
            Err(_) => return Fortune::Dies,
        };
        self.stats.bytes_out += taken as u64;
        line.machine.sent += taken.min(unsent);
        if taken < unsent + body.len() {
            let from = taken.saturating_sub(unsent);
            if body.len() - from <= SHARED_BYTES_MIN {
                line.machine.out.extend_from_slice(&body[from..]);
            } else {
                line.machine.push_body(self.bodies.share(body), from);
            }
            self.wait_for_reader(line, taken as u64);
        }
        Fortune::Lives
    }

    /// Take the records without sending: the last one's effect is in the out region's `FOUND`. `elsewhere` is
    /// its body, if that is not in its record.
    pub fn put_answers(&mut self, elsewhere: Option<&[u8]>) {
        if !self.in_call {
            self.set_clock();
        }
        self.out.put(layout::out::FOUND, 0);
        self.take_answers(elsewhere);
        self.ring_if_needed();
    }
}
