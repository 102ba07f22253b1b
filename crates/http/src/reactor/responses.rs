//! The host's responses: records in the out region, taken in order. A record for an exchange that is no
//! longer open is skipped; one that exceeds the region ends the reading.

use std::io;

use super::{
    Reactor,
    batches::Record,
    connections::{Verdict, is_soon, slots::Session},
};
use crate::{
    connection::{OutBody, Response},
    files::{FilePart, FilePath},
    layout::{self, HEADER_BYTES, reply},
};

/// The body of a record that is not in the record.
pub(super) enum Elsewhere<'a> {
    Bytes(&'a [u8]),
    /// Part of a file; `None` if the file is not open any more: the record is dropped.
    File(Option<FilePart>),
}

/// Unsent bytes of a whole body above which it is stored once for all connections that send it.
pub(super) const SHARED_BYTES_MIN: usize = 64 * 1024;
/// The response in place of a body that exceeds `out_bytes_total_max`.
pub(super) const FULL: Response<'_> = Response { status: 503, kind: 1, headers: b"retry-after: 1\r\n" };
pub(super) const FULL_WHY: &[u8] = b"responses of other clients wait\n";

impl Reactor {
    /// Take all records. `elsewhere` is the body of the last one if it is not in its record.
    pub(super) fn take_responses(&mut self, mut elsewhere: Option<Elsewhere<'_>>) {
        let end = (self.batches.out.word(layout::out::END) as usize).min(self.batches.out.len());
        let mut at = HEADER_BYTES;
        while let Some(record) = self.batches.record(at, end) {
            at = record.next;
            self.batches.responded += u32::from(record.kind & 0xff == reply::RESPOND);
            self.take_response(&record, &mut elsewhere);
        }
        self.batches.drop_records();
    }

    #[inline]
    fn take_response(&mut self, record: &Record, elsewhere: &mut Option<Elsewhere<'_>>) {
        let Some(mut session) = self.connections.slots.lift(record.slot) else {
            return self.take_frame(record, elsewhere);
        };
        if !session.machine.is_in_flight(record.stamp) {
            self.connections.slots.put_back(record.slot, session);
            return self.take_frame(record, elsewhere);
        }
        self.connections.lend_buffer(&mut session);
        let verdict = self.write_response(record, &mut session, elsewhere);
        if verdict == Verdict::Keep {
            self.connections.mark_session(record.slot, &mut session);
        }
        self.connections.put_or_close(record.slot, session, verdict);
    }

    #[inline]
    fn write_response(
        &mut self,
        record: &Record,
        session: &mut Session,
        elsewhere: &mut Option<Elsewhere<'_>>,
    ) -> Verdict {
        if record.is_elsewhere
            && let Some(Elsewhere::File(part)) = elsewhere
        {
            return self.respond_file(record, session, part.take());
        }
        let elsewhere = match elsewhere {
            Some(Elsewhere::Bytes(bytes)) => Some(*bytes),
            _ => None,
        };
        let bytes = self.batches.out.all();
        let (headers, rest) = bytes[record.lines_at..].split_at(record.lines);
        let body = match elsewhere {
            Some(body) if record.is_elsewhere => body,
            _ => &rest[..record.body],
        };
        let response = Response { status: record.status, kind: record.content, headers };
        match record.kind {
            reply::RESPOND if record.is_elsewhere => {
                let body = elsewhere.unwrap_or_default();
                let length = body.len() as u64;
                if !self.batches.bodies.fits(body, self.connections.limits.out_bytes_total_max) {
                    self.connections.stats.refused += 1;
                    session.machine.respond(record.stamp, &FULL, FULL_WHY, &self.connections.heads);
                    return Verdict::Keep;
                }
                if let Some((index, has_body)) =
                    session.machine.respond_head(record.stamp, &response, length, &self.connections.heads)
                {
                    let verdict =
                        if has_body { self.send_large(session, index, body) } else { Verdict::Keep };
                    session.machine.ended(index);
                    return verdict;
                }
            }
            reply::RESPOND => {
                session.machine.respond(record.stamp, &response, body, &self.connections.heads);
            }
            reply::START => {
                let dropped =
                    session.machine.start(record.stamp, &response, record.length, &self.connections.heads);
                self.connections.notify_dropped(record.slot, dropped.unwrap_or_default());
            }
            reply::WRITE => {
                let waiting = session.machine.write(record.stamp, body).unwrap_or_default();
                return self.written(record.stamp, session, waiting);
            }
            reply::END if session.machine.end(record.stamp).is_some() => {}
            reply::UPGRADE => {
                let (lines, frames) = self.batches.granted(record, self.connections.now_ms);
                self.connections.upgrade((record.slot, record.stamp), session, lines, frames);
            }
            reply::ABORT if self.connections.abort(record.slot, record.stamp, session) => {}
            reply::END | reply::ABORT => {
                session.socket.reset_on_close();
                return Verdict::Close;
            }
            _ => return self.write_rare(record, session, elsewhere),
        }
        Verdict::Keep
    }

    /// What few responses have.
    #[cold]
    fn write_rare(&mut self, record: &Record, session: &mut Session, body: Option<&[u8]>) -> Verdict {
        let lines = &self.batches.out.all()[record.lines_at..record.lines_at + record.lines];
        match record.kind {
            reply::HINT => {
                let is_written = session.machine.hint(record.stamp, lines);
                self.batches.out.put(layout::out::FOUND, u32::from(is_written));
            }
            reply::TRAILERS if session.machine.end_with_trailers(record.stamp, lines).is_some() => {}
            reply::TRAILERS => {
                session.socket.reset_on_close();
                return Verdict::Close;
            }
            kind if kind & layout::FLAG_LAST != 0 => {
                self.connections.close_after((record.slot, record.stamp), session);
                let record = Record { kind: kind & 0xff, ..*record };
                return self.write_response(&record, session, &mut body.map(Elsewhere::Bytes));
            }
            _ => {}
        }
        Verdict::Keep
    }

    /// Respond with a part of a file, which is sent without a copy.
    fn respond_file(&mut self, record: &Record, session: &mut Session, part: Option<FilePart>) -> Verdict {
        let Some(part) = part else { return Verdict::Keep };
        if record.kind & layout::FLAG_LAST != 0 {
            self.connections.close_after((record.slot, record.stamp), session);
        }
        let headers = &self.batches.out.all()[record.lines_at..record.lines_at + record.lines];
        let response = Response { status: record.status, kind: record.content, headers };
        let bytes = part.bytes;
        if let Some((index, has_body)) =
            session.machine.respond_head(record.stamp, &response, bytes as u64, &self.connections.heads)
        {
            if has_body && bytes > 0 {
                session.machine.attach_body(index, OutBody::File(part));
            }
            session.machine.ended(index);
        }
        Verdict::Keep
    }

    /// After a piece was written: send if much waits, and report how many bytes still do.
    fn written(&mut self, stamp: u32, session: &mut Session, waiting: usize) -> Verdict {
        let after = |session: &Session| session.machine.waiting_bytes(stamp);
        let Some(waiting) = self.connections.send_soon(session, waiting, after) else {
            return Verdict::Close;
        };
        self.batches.out.put(layout::out::FOUND, waiting as u32);
        Verdict::Keep
    }

    /// Send a large body from where it is, and store what the kernel does not accept.
    fn send_large(&mut self, session: &mut Session, index: usize, body: &[u8]) -> Verdict {
        let unsent = session.machine.unsent();
        if index != 0 || !session.is_writable || session.machine.has_tail() {
            if body.len() <= SHARED_BYTES_MIN {
                session.machine.sink(index).extend_from_slice(body);
            } else {
                session.machine.attach_body(index, OutBody::Shared(self.batches.bodies.share(body)));
            }
            return Verdict::Keep;
        }
        let taken = match session.socket.send_both(&session.machine.out[session.machine.sent..], body) {
            Ok(taken) => taken,
            Err(error) if is_soon(&error) => 0,
            Err(_) => return Verdict::Close,
        };
        self.connections.stats.bytes_out += taken as u64;
        session.machine.sent += taken.min(unsent);
        if taken < unsent + body.len() {
            let from = taken.saturating_sub(unsent);
            if body.len() - from <= SHARED_BYTES_MIN {
                session.machine.out.extend_from_slice(&body[from..]);
            } else {
                session.machine.push_body(OutBody::Shared(self.batches.bodies.share(body)), from);
            }
            self.connections.wait_for_reader(session, taken as u64);
        }
        Verdict::Keep
    }

    /// Take the records without sending. The result of the last one is in the out region's `FOUND`.
    pub fn put_responses(&mut self, elsewhere: Option<&[u8]>) {
        if !self.batches.in_call {
            self.set_clock();
        }
        self.batches.out.put(layout::out::FOUND, 0);
        self.take_responses(elsewhere.map(Elsewhere::Bytes));
        self.wake_if_needed();
    }

    /// The same; the body of the last record is a part of a file that [`find_file`](Self::find_file) has
    /// found. `FOUND` is 1 if the file is still open; otherwise that record is dropped.
    pub fn put_file(&mut self, file: u64, start: u64, bytes: u64) {
        if !self.batches.in_call {
            self.set_clock();
        }
        let part = self.batches.files.part(file, start, bytes);
        let is_open = part.is_some();
        self.take_responses(Some(Elsewhere::File(part)));
        self.batches.out.put(layout::out::FOUND, u32::from(is_open));
        self.wake_if_needed();
    }

    /// Find a file for a response. The doubles are those of [`layout::found`].
    pub fn find_file(&mut self, path: &FilePath<'_>) -> io::Result<Option<[f64; layout::found::NUMBERS]>> {
        if !self.batches.in_call {
            self.set_clock();
        }
        self.batches.files.find(path, self.connections.now_ms)
    }
}
