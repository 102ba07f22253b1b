//! From sockets to batches: reading, and what is done with each request that was read. One reading per
//! connection and look, so that nobody is starved; a connection that is worked on is lifted out of its slot
//! meanwhile.

use std::{io, rc::Rc};

use super::{
    Reactor,
    state::{Line, Tell},
};
use crate::{
    connection::{Left, Next, Request},
    head::{Method, Span},
    layout::{PULL_END, PULL_GONE, PULL_WAIT, READ_BYTES_MAX, event},
    sys,
    targets::hash,
};

/// Requests of one connection in a batch at most. None of them is answered before the batch is handed over,
/// so what their answers will take can only be judged by those before: see [`Line::share`].
pub(super) const SHARE_MAX: u32 = 16;

/// Whether a connection is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fortune {
    Lives,
    Dies,
}

impl Reactor {
    /// The kernel says something about a connection.
    #[inline]
    pub(super) fn take_readiness(&mut self, slot: u32, generation: u32, events: u32) {
        let Some(line) = self.slots.of_event(slot, generation) else { return };
        // One that is listened to behind its last answer is read to its end: closing it with bytes unread
        // would send a reset.
        let over = libc::EPOLLERR | if line.is_lingering { 0 } else { libc::EPOLLHUP };
        if events & over as u32 != 0 {
            // Reset, or closed on both sides: what was not read is of no use any more.
            self.close(slot);
            return;
        }
        if events & libc::EPOLLRDHUP as u32 != 0 {
            line.is_half_closed = true;
        }
        if events & libc::EPOLLOUT as u32 != 0 && !line.is_writable {
            line.is_writable = true;
            self.mark(slot);
        }
        if events & (libc::EPOLLIN | libc::EPOLLRDHUP) as u32 != 0 {
            if let Some(line) = self.slots.get_mut(slot) {
                line.is_readable = true;
            }
            self.go_on_with(slot);
        }
    }

    /// Read from a connection, or from what it has kept, as far as it wants to.
    pub(super) fn go_on_with(&mut self, slot: u32) {
        let Some(mut line) = self.slots.lift(slot) else { return };
        line.is_queued = false;
        let fortune = self.work(slot, &mut line);
        self.put_or_bury(slot, line, fortune);
    }

    pub(super) fn put_or_bury(&mut self, slot: u32, line: Box<Line>, fortune: Fortune) {
        match fortune {
            Fortune::Lives => self.slots.put_back(slot, line),
            Fortune::Dies => self.bury(slot, line),
        }
    }

    fn work(&mut self, slot: u32, line: &mut Line) -> Fortune {
        if line.is_lingering {
            return self.throw_away(slot, line);
        }
        if line.is_half_closed && !may_be_whole(line) {
            self.tell_gone(slot, line);
        }
        if !line.machine.wants_input(&self.limits) {
            if line.wants_body && (line.is_readable || line.is_at_end) {
                line.wants_body = false;
                line.deadline = 0;
                self.buy_patience(line, 0);
                let stamp = line.machine.stamps().last().unwrap_or_default();
                self.tells.push_back(Tell { kind: event::BODY, slot, stamp });
            } else if line.is_half_closed {
                self.set_deadline(line);
            }
            return Fortune::Lives;
        }
        let (at, end) = self.batch.room();
        let kept = line.machine.kept.len();
        self.inbound.all_mut()[at..at + kept].copy_from_slice(&line.machine.kept);
        let mut total = kept;
        // What was kept may hold whole requests: those first.
        if line.is_readable && kept < self.limits.header_bytes_max {
            match self.receive(line, at + kept, end) {
                Ok(bytes) => total += bytes,
                Err(_) => return Fortune::Dies,
            }
        }
        let (used, left) = self.parse(slot, line, at, total);
        line.machine.kept.clear();
        if used < total {
            line.machine.note_unused();
        }
        if used < total && !line.machine.is_over() {
            line.machine.kept.extend_from_slice(&self.inbound.all()[at + used..at + total]);
        } else if line.machine.kept.capacity() > 0 {
            line.machine.kept = Vec::new();
        }
        let fortune = self.after_input(slot, line, used > 0 || kept == 0, left);
        // An end that came with its request brings no further news: the host is told when it has had the
        // chance to answer at once.
        if line.is_half_closed && !may_be_whole(line) && line.machine.has_untold() {
            self.queue(slot, line);
        }
        fortune
    }

    /// What comes after reading: the end of the input, more of it, the clock.
    fn after_input(&mut self, slot: u32, line: &mut Line, has_moved: bool, left: Left) -> Fortune {
        if line.machine.is_over() {
            // A body that nobody wants was too much, or no body at all: nothing else would bring it to its
            // end. A refusal has marked it before.
            self.mark_line(slot, line);
            return Fortune::Lives;
        }
        if line.is_at_end {
            return self.at_end(slot, line, left);
        }
        if self.is_stopping {
            line.machine.close_soon();
            if line.machine.is_over() && line.machine.unsent() == 0 && !line.is_dirty {
                return self.finish(slot, line);
            }
        }
        let goes_on = line.is_readable || has_moved && !line.machine.kept.is_empty();
        if goes_on && line.machine.wants_input(&self.limits) {
            self.queue(slot, line);
        }
        if line.machine.is_in_head() {
            if has_moved || line.head_began == 0 {
                line.head_began = self.now_ms;
            }
        } else {
            line.head_began = 0;
        }
        self.set_deadline(line);
        Fortune::Lives
    }

    /// The client sends nothing more. What it has sent whole is answered; a part of a request is of no use.
    fn at_end(&mut self, slot: u32, line: &mut Line, left: Left) -> Fortune {
        let is_last = line.machine.end_input(left);
        if is_last && !line.is_dirty && line.machine.flights() == 0 && line.machine.unsent() == 0 {
            return Fortune::Dies;
        }
        // A full batch left it no turn, or its share was used up. What waits for answers to leave comes back
        // when they have.
        if left == Left::Unseen && line.machine.wants_input(&self.limits) {
            self.queue(slot, line);
        }
        self.set_deadline(line);
        Fortune::Lives
    }

    /// Read into the inbound region.
    fn receive(&mut self, line: &mut Line, from: usize, end: usize) -> io::Result<usize> {
        let end = end.min(from + READ_BYTES_MAX);
        let room = &mut self.inbound.all_mut()[from..end];
        let room_bytes = room.len();
        match sys::receive(&line.socket, room) {
            Ok(0) => {
                line.is_readable = false;
                line.is_half_closed = true;
                line.is_at_end = true;
                Ok(0)
            }
            Ok(bytes) => {
                // Less than there was room for: nothing is left, unless the end is.
                line.is_readable = bytes == room_bytes || line.is_half_closed;
                self.stats.bytes_in += bytes as u64;
                Ok(bytes)
            }
            Err(error) if is_soon(&error) => {
                line.is_readable = error.kind() == io::ErrorKind::Interrupted;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Take requests from `total` bytes at `at`; the bytes used, and what is left.
    #[inline]
    fn parse(&mut self, slot: u32, line: &mut Line, at: usize, total: usize) -> (usize, Left) {
        let mut used = 0;
        let before = self.batch.requests();
        while used < total {
            if self.batch.is_full() || self.batch.requests() - before >= line.share {
                return (used, Left::Unseen);
            }
            let data = &mut self.inbound.all_mut()[at + used..at + total];
            match line.machine.next(data, &self.limits, &mut self.parser) {
                Ok(Next::Wait) => return (used, Left::Unseen),
                Ok(Next::Partial) => break,
                Ok(Next::Skipped(bytes)) => used += bytes,
                Ok(Next::Request(request)) => {
                    self.take_request(slot, line, at + used, &request);
                    used += request.consumed;
                }
                Err(refusal) => {
                    self.stats.refused += 1;
                    line.machine.refuse(refusal, &self.inbound.all()[at + used..at + total], &self.heads);
                    self.mark_line(slot, line);
                    break;
                }
            }
        }
        (used, Left::Part)
    }

    #[inline]
    fn take_request(&mut self, slot: u32, line: &mut Line, at: usize, request: &Request) {
        self.stats.requests += 1;
        let span = |span: Span| at + span.at as usize..at + (span.at + span.len) as usize;
        let bytes = self.inbound.all();
        let target = &bytes[span(request.head.target)];
        if !self.constants.is_empty() {
            let name = &bytes[span(request.head.method_name)];
            if let Some(index) = self.constants.find(request.head.method, name, target) {
                return self.answer_constant(slot, line, request, index);
            }
        }
        let number = self.targets.number(target, hash(target));
        let stamp = self.next_stamp();
        line.machine.admit(request, stamp);
        line.body_patience_ms = self.limits.body_ms;
        (line.wants_body, line.wait_began) = (false, 0);
        let place = (slot, stamp);
        self.batch.put_request(&mut self.inbound, request, &self.parser.fields, at, place, number);
        self.batch.use_data(at + request.consumed);
    }

    fn next_stamp(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1);
        self.stamp
    }

    fn answer_constant(&mut self, slot: u32, line: &mut Line, request: &Request, index: usize) {
        self.stats.constants += 1;
        self.lend_buffer(line);
        if line.machine.is_next(request) {
            let is_head = request.head.method == Method::Head;
            let sink = line.machine.front_sink();
            if let Some(body) = self.constants.write(index, is_head, &self.heads, sink) {
                line.machine.push_body(body, 0);
            }
        } else {
            let stamp = self.next_stamp();
            line.machine.admit(request, stamp);
            let (answer, body, shared) = self.constants.parts(index);
            match shared {
                None => drop(line.machine.respond(stamp, &answer, body, &self.heads)),
                Some(shared) => {
                    let length = shared.bytes().len() as u64;
                    if let Some((index, has_body)) =
                        line.machine.respond_head(stamp, &answer, length, &self.heads)
                    {
                        if has_body {
                            line.machine.give_body(index, Rc::clone(shared));
                        }
                        line.machine.ended(index);
                    }
                }
            }
        }
        self.mark_line(slot, line);
    }

    /// Everything was sent: read on until the client closes; its time is the only bound.
    fn throw_away(&mut self, slot: u32, line: &mut Line) -> Fortune {
        match sys::receive(&line.socket, self.body.all_mut()) {
            Ok(0) => Fortune::Dies,
            Ok(bytes) => {
                self.stats.bytes_in += bytes as u64;
                line.thrown_bytes += bytes as u64;
                self.queue(slot, line);
                Fortune::Lives
            }
            Err(error) if is_soon(&error) => Fortune::Lives,
            Err(_) => Fortune::Dies,
        }
    }

    /// The host wants the next piece of a body: its bytes in the body region, or one of `PULL_*`, or minus a
    /// status.
    pub fn pull(&mut self, slot: u32, stamp: u32) -> i32 {
        let Some(mut line) = self.slots.lift(slot) else { return PULL_GONE };
        if !self.in_call {
            self.set_clock();
        }
        let is_in_flight = line.machine.is_in_flight(stamp);
        let found = if is_in_flight { self.pull_from(slot, &mut line, stamp) } else { PULL_GONE };
        // A body that was cut short is of no use; the answers before it are still due.
        let dies = is_in_flight
            && found == PULL_GONE
            && (line.machine.flights() == 1 || !self.give_up(slot, stamp, &mut line));
        let fortune = if dies { Fortune::Dies } else { Fortune::Lives };
        self.put_or_bury(slot, line, fortune);
        self.ring_if_needed();
        found
    }

    fn pull_from(&mut self, slot: u32, line: &mut Line, stamp: u32) -> i32 {
        let ready = line.machine.ready.len();
        if ready > 0 {
            let bytes = ready.min(self.body.len());
            self.body.all_mut()[..bytes].copy_from_slice(&line.machine.ready[..bytes]);
            line.machine.ready.drain(..bytes);
            return bytes as i32;
        }
        if line.body_failed != 0 {
            return -i32::from(line.body_failed);
        }
        if !line.machine.has_body(stamp) {
            return PULL_END;
        }
        line.machine.ask(stamp);
        if line.machine.unsent() > 0 {
            self.mark_line(slot, line);
            if !self.in_call {
                self.send(line);
            }
        }
        self.read_body(slot, line)
    }

    /// Read from the socket and decode, in the body region.
    fn read_body(&mut self, slot: u32, line: &mut Line) -> i32 {
        loop {
            let room = self.body.len().min(READ_BYTES_MAX);
            let received = match sys::receive(&line.socket, &mut self.body.all_mut()[..room]) {
                Ok(0) => {
                    line.is_at_end = true;
                    return PULL_GONE;
                }
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_soon(&error) => {
                    line.is_readable = false;
                    line.wants_body = true;
                    line.wait_began = self.now_ms;
                    self.set_deadline(line);
                    return PULL_WAIT;
                }
                Err(_) => {
                    line.is_at_end = true;
                    return PULL_GONE;
                }
            };
            self.stats.bytes_in += received as u64;
            self.buy_patience(line, received as u64);
            let data = &mut self.body.all_mut()[..received];
            match line.machine.decode(data, &self.limits) {
                Err(refusal) => {
                    self.stats.refused += 1;
                    line.body_failed = refusal.status;
                    return -i32::from(refusal.status);
                }
                Ok(decoded) => {
                    if decoded.consumed < received {
                        line.machine.kept.extend_from_slice(&data[decoded.consumed..]);
                    }
                    if decoded.is_end {
                        line.is_readable = true;
                        self.queue(slot, line);
                    }
                    if decoded.produced > 0 {
                        return decoded.produced as i32;
                    }
                    if decoded.is_end {
                        return PULL_END;
                    }
                }
            }
        }
    }

    /// The time waited is taken from the patience with a body, bytes that came are added: 500 a second keep
    /// it.
    pub(super) fn buy_patience(&self, line: &mut Line, bytes: u64) {
        let waited = if line.wait_began == 0 { 0 } else { self.now_ms - line.wait_began };
        line.wait_began = 0;
        let left = line.body_patience_ms.saturating_sub(waited) + bytes * 2;
        line.body_patience_ms = left.min(self.limits.body_ms);
    }

    /// Tell the host once that nobody may be there any more to read the answers of what is in flight.
    pub(super) fn tell_gone(&mut self, slot: u32, line: &mut Line) {
        for stamp in line.machine.take_untold() {
            self.tells.push_back(Tell { kind: event::GONE, slot, stamp });
        }
    }

    /// Come back to this connection without news from the kernel.
    pub(super) fn queue(&mut self, slot: u32, line: &mut Line) {
        if !line.is_queued {
            line.is_queued = true;
            self.again.push_back(slot);
        }
    }
}

/// With a body unread the end of what a client sends may be just that: the end of its request. Unless less
/// than the rest of the body has come.
fn may_be_whole(line: &Line) -> bool {
    line.machine.is_in_body()
        && line.machine.body_left().is_none_or(|left| sys::unread_bytes(&line.socket) >= left)
}

/// Errors that mean "not now".
pub(super) fn is_soon(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
