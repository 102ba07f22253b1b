//! Connections on sockets, for one thread: what is ready is read and parsed, and given to the host in
//! batches.
//!
//! The host calls [`Reactor::advance`] when the reactor's descriptor is readable, runs its handlers when that
//! says [`Step::Call`], tells by [`Reactor::called`], and goes on until it says [`Step::Done`]. Sockets are
//! watched once, edge-triggered: what is not read now is remembered in `is_readable`, so back-pressure is not
//! reading and costs no call. Connections that could go on without news from the kernel wait in `again`; when
//! the turn is over the bell is rung for them, so that the host's loop comes back after its other work.

mod answers;
mod input;
mod output;
mod state;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    io,
    net::IpAddr,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    path::PathBuf,
    sync::Arc,
};

pub use crate::listen::{Place, send_away, stalled_ms};
use crate::{
    answer::Heads,
    bodies::Bodies,
    constants::{Constant, Constants},
    known::Parser,
    layout,
    limits::Limits,
    listen::{self, Links, Pulse, Seat},
    region::Region,
    sys,
    targets::Targets,
};
use state::{Batch, Slots, Tell};

/// Least bytes of the out and the body region.
const OUT_BYTES_MIN: usize = 4096;

/// What a reactor is made from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens.
    pub place: Place,
    /// Whether other threads of the process may listen there too.
    pub is_shared: bool,
    /// Connections that wait in the kernel.
    pub backlog: i32,
    /// What clients may ask for.
    pub limits: Limits,
    /// Answers that need no host.
    pub constants: Vec<Constant>,
}

impl Settings {
    /// A place from an address or, if `path` is given, a path.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the address is none.
    pub fn place(host: &str, port: u16, path: Option<PathBuf>) -> io::Result<Place> {
        if let Some(path) = path {
            return Ok(Place::Path(path));
        }
        let address: IpAddr = host.parse().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        Ok(Place::Address((address, port).into()))
    }
}

/// What the host does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Handle the records of the inbound region, then tell by [`Reactor::called`].
    Call,
    /// Wait until the descriptor is readable.
    Done,
}

/// Counts since the beginning, but for `connections`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Open now.
    pub connections: u64,
    /// Accepted.
    pub connections_total: u64,
    /// Requests whose head was accepted.
    pub requests: u64,
    /// Answered by a constant.
    pub constants: u64,
    /// Answered with a refusal.
    pub refused: u64,
    /// Requests whose client went before the answer ended.
    pub aborted: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Connections that a stop cut before all was answered.
    pub cut: u64,
    /// Bytes of large whole bodies that wait to be sent now; each body once.
    pub held_bytes: u64,
}

/// Events that one look at the kernel brings.
const EVENTS_MAX: usize = 256;
/// Looks at the kernel in one turn.
const ROUNDS_MAX: u32 = 8;
/// And the longest time for them, ns: then the host's other work has its turn.
const TURN_NS_MAX: u64 = 1_000_000;
/// Events after which it pays to look for more at once, without the round through the host's loop.
const LOOK_AGAIN_EVENTS: usize = 16;
/// What looks that found something are worth together at most.
const LOOK_LUCK_MAX: u32 = 16;
/// One in so many is tried against all odds.
const LOOK_TRIED_EVERY: u32 = 32;
/// Connections accepted from one socket at once.
const ACCEPTS_MAX: usize = 64;
/// And times this when the queue is emptied for good; no system lets it be longer.
const LAST_ACCEPTS_MAX: usize = 1024;
/// The bell's data in its epoll event.
const BELL: u64 = u64::MAX;
/// What a batch should take the host, ns: the first answer of a batch leaves with the last.
const BATCH_NS: u64 = 500_000;

/// The sockets of one thread.
pub struct Reactor {
    // Leaves its group before the descriptors below are closed.
    seat: Option<Seat>,
    pulse: Arc<Pulse>,
    slots: Slots,
    epoll: OwnedFd,
    bell: OwnedFd,
    spare: Option<OwnedFd>,
    limits: Limits,
    constants: Constants,
    bodies: Bodies,
    inbound: Region,
    out: Region,
    body: Region,
    heads: Heads,
    targets: Targets,
    parser: Parser,
    events: Box<[libc::epoll_event]>,
    event_next: usize,
    event_count: usize,
    round: u32,
    turn_began: u64,
    batch: Batch,
    tells: VecDeque<Tell>,
    again: VecDeque<u32>,
    again_left: usize,
    look_luck: u32,
    looks_asked: u32,
    dirty: Vec<u32>,
    /// Buffers that no connection uses.
    buffers: Vec<Vec<u8>>,
    stamp: u32,
    now_ms: u64,
    in_call: bool,
    call_began: u64,
    call_ns_each: u64,
    stats: Stats,
    paused: Vec<RawFd>,
    is_stopping: bool,
    stop_told: bool,
    stop_began: u64,
    stop_at: u64,
    /// Connections that are listened to behind their last answer.
    lingering: usize,
}

impl Reactor {
    /// Begin to listen.
    ///
    /// # Errors
    ///
    /// What the system says to opening, binding and listening.
    pub fn open(settings: Settings, inbound: Region, out: Region, body: Region) -> io::Result<Self> {
        let room = layout::WORDS_BYTES + Batch::data_bytes_min(&settings.limits);
        if inbound.len() < room || out.len() < OUT_BYTES_MIN || body.len() < OUT_BYTES_MIN {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let (epoll, bell) = (sys::epoll()?, sys::bell()?);
        let edge = (libc::EPOLLIN | libc::EPOLLET) as u32;
        sys::watch(epoll.as_raw_fd(), bell.as_raw_fd(), edge, BELL)?;
        let Settings { place, is_shared, backlog, limits, constants } = settings;
        let links = Links { epoll: epoll.as_raw_fd(), bell: bell.as_raw_fd() };
        let seat = Seat::take(place, is_shared, backlog, links)?;
        let pulse = Arc::clone(seat.pulse());
        let mut reactor = Self {
            seat: Some(seat),
            pulse,
            slots: Slots::default(),
            epoll,
            bell,
            spare: sys::spare(),
            batch: Batch::new(&limits, inbound.len()),
            limits,
            constants: Constants::new(constants),
            bodies: Bodies::default(),
            inbound,
            out,
            body,
            heads: Heads::default(),
            targets: Targets::default(),
            parser: Parser::default(),
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX].into_boxed_slice(),
            event_next: 0,
            event_count: 0,
            round: 0,
            turn_began: 0,
            tells: VecDeque::new(),
            again: VecDeque::new(),
            again_left: 0,
            look_luck: 0,
            looks_asked: 0,
            dirty: Vec::new(),
            buffers: Vec::new(),
            stamp: 0,
            now_ms: sys::now_ms(),
            in_call: false,
            call_began: 0,
            call_ns_each: 2_000,
            stats: Stats::default(),
            paused: Vec::new(),
            is_stopping: false,
            stop_told: false,
            stop_began: 0,
            stop_at: u64::MAX,
            lingering: 0,
        };
        reactor.out.put(layout::out::END, layout::HEADER_BYTES as u32);
        Ok(reactor)
    }

    /// Readable when there is something to do.
    pub fn descriptor(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Where it listens.
    pub fn place(&self) -> Option<&Place> {
        self.seat.as_ref().map(Seat::place)
    }

    /// What it has counted.
    pub fn stats(&self) -> Stats {
        let held_bytes = self.bodies.held_bytes();
        Stats { connections: self.slots.open_count() as u64, held_bytes, ..self.stats }
    }

    /// A turn begins: the descriptor was readable.
    pub fn begin(&mut self) {
        self.round = 0;
        self.turn_began = sys::now_ns();
        self.set_clock();
        if self.pulse.turn(self.now_ms) {
            self.come_back();
        }
    }

    /// Others have accepted what this thread would have: it was not in its loop.
    #[cold]
    fn come_back(&mut self) {
        // Without a socket of its own it goes on with its connections, and tries again in its next turn.
        if let Some(seat) = &self.seat {
            seat.come_back().ok();
        }
    }

    /// The number by which any thread can ask [`stalled_ms`] and [`send_away`] about this one; 0 after a
    /// stop.
    pub fn member(&self) -> u64 {
        self.seat.as_ref().map_or(0, Seat::member)
    }

    fn set_clock(&mut self) {
        self.now_ms = sys::now_ms();
        if self.heads.set_time(sys::wall_second()) {
            self.constants.forget_heads();
        }
    }

    /// Go on with the turn.
    pub fn advance(&mut self) -> Step {
        loop {
            while self.event_next < self.event_count {
                if self.batch.is_full() {
                    return self.call();
                }
                let event = self.events[self.event_next];
                self.event_next += 1;
                self.take_event(event.u64, event.events);
            }
            while self.again_left > 0 {
                if self.batch.is_full() {
                    return self.call();
                }
                self.again_left -= 1;
                if let Some(slot) = self.again.pop_front() {
                    self.go_on_with(slot);
                }
            }
            self.flush();
            if self.batch.has_requests() || !self.tells.is_empty() {
                return self.call();
            }
            if self.round > 0 && (self.round >= ROUNDS_MAX || !self.pays_to_look() || self.is_late()) {
                break;
            }
            self.round += 1;
            // An interrupted call is none.
            self.event_count = sys::poll(&self.epoll, &mut self.events).unwrap_or(0);
            self.event_next = 0;
            self.again_left = self.again.len();
            if self.round > 1 {
                self.learn_from_look();
            }
            if self.event_count == 0 && self.again_left == 0 {
                break;
            }
        }
        if !self.again.is_empty() {
            sys::ring(&self.bell);
        }
        self.pulse.rest(self.needs_ticks());
        Step::Done
    }

    /// Whether another look at the kernel is likely to find something: after a full one, when a connection
    /// waits, or when such looks have found something of late; now and then one is tried.
    fn pays_to_look(&mut self) -> bool {
        self.looks_asked = self.looks_asked.wrapping_add(1);
        self.event_count >= LOOK_AGAIN_EVENTS
            || !self.again.is_empty()
            || self.look_luck >= LOOK_LUCK_MAX / 2
            || self.looks_asked.is_multiple_of(LOOK_TRIED_EVERY)
    }

    /// Another look has found something, or nothing, which costs more than a hit saves.
    fn learn_from_look(&mut self) {
        let luck = self.look_luck;
        self.look_luck =
            if self.event_count > 0 { (luck + 1).min(LOOK_LUCK_MAX) } else { luck.saturating_sub(2) };
    }

    fn is_late(&self) -> bool {
        sys::now_ns() - self.turn_began > TURN_NS_MAX
    }

    /// Hand over the batch.
    fn call(&mut self) -> Step {
        while let Some(tell) = self.tells.front() {
            if !self.batch.put_tell(&mut self.inbound, tell) {
                break;
            }
            self.tells.pop_front();
        }
        self.inbound.put(layout::inbound::COUNT, self.batch.records());
        self.out.put(layout::out::IN_BATCH, 1);
        self.in_call = true;
        self.call_began = sys::now_ns();
        Step::Call
    }

    /// The host has handled the batch; or could not, when its program was stopped: then its answers are
    /// dropped.
    pub fn called(&mut self, ran: bool) {
        self.in_call = false;
        self.out.put(layout::out::IN_BATCH, 0);
        self.inbound.put(layout::inbound::COUNT, 0);
        let took = sys::now_ns() - self.call_began;
        let each = took / u64::from(self.batch.requests().max(1));
        self.call_ns_each = (self.call_ns_each * 3 + each) / 4;
        let fitting = BATCH_NS / self.call_ns_each.max(1);
        self.batch.empty(fitting.clamp(1, EVENTS_MAX as u64) as u32);
        if ran {
            self.take_answers(None);
        } else {
            self.out.put(layout::out::END, layout::HEADER_BYTES as u32);
        }
        self.flush();
    }

    /// Answers that were written outside of a batch: take and send them.
    pub fn flush_answers(&mut self) {
        if !self.in_call {
            self.set_clock();
        }
        self.take_answers(None);
        self.flush();
        self.ring_if_needed();
    }

    /// Outside of a turn, whatever was found to do needs one.
    fn ring_if_needed(&mut self) {
        if !self.in_call && (!self.again.is_empty() || !self.tells.is_empty()) {
            sys::ring(&self.bell);
        }
    }

    fn take_event(&mut self, data: u64, events: u32) {
        if data == BELL {
            return;
        }
        if data & listen::TAG != 0 {
            // News from before a stop are of a descriptor that may be another's by now.
            if self.seat.is_some() {
                self.accept(data as u32 as RawFd);
            }
            return;
        }
        self.take_readiness(data as u32, (data >> 32) as u32, events);
    }

    /// Accept what waits, a bounded number. True: more may wait.
    fn accept(&mut self, listener: RawFd) -> bool {
        for _ in 0..ACCEPTS_MAX {
            match sys::accept(listener) {
                Ok(socket) => self.admit(socket),
                Err(error) => match error.raw_os_error() {
                    // The client has gone again.
                    Some(libc::ECONNABORTED | libc::EINTR | libc::EPROTO | libc::EPERM) => {}
                    Some(libc::EMFILE | libc::ENFILE) if self.close_one(listener) => {}
                    Some(libc::EAGAIN) => return false,
                    _ => {
                        self.pause(listener);
                        return false;
                    }
                },
            }
        }
        true
    }

    /// No descriptor is left: use the spare one to accept a connection and close it, so that its client
    /// learns.
    fn close_one(&mut self, listener: RawFd) -> bool {
        self.spare = None;
        let accepted = sys::accept(listener);
        let is_one = accepted.is_ok();
        drop(accepted);
        self.spare = sys::spare();
        is_one && self.spare.is_some()
    }

    /// Leave the queue alone until the next tick.
    fn pause(&mut self, listener: RawFd) {
        let tag = listen::TAG | listener as u64;
        if sys::rewatch(self.epoll.as_raw_fd(), listener, 0, tag).is_ok() {
            self.paused.push(listener);
        }
    }

    fn resume(&mut self) {
        for listener in std::mem::take(&mut self.paused) {
            if self.spare.is_none() {
                self.spare = sys::spare();
            }
            // One that was handed on meanwhile is watched by another.
            let tag = listen::TAG | listener as u64;
            sys::rewatch(self.epoll.as_raw_fd(), listener, libc::EPOLLIN as u32, tag).ok();
        }
    }

    fn admit(&mut self, socket: OwnedFd) {
        if self.slots.open_count() >= self.limits.connections_max {
            return;
        }
        let fd = socket.as_raw_fd();
        self.stats.connections_total += 1;
        let deadline = self.now_ms + self.limits.idle_ms;
        let (slot, generation) = self.slots.put(socket, deadline);
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        let data = u64::from(slot) | u64::from(generation) << 32;
        if sys::watch(self.epoll.as_raw_fd(), fd, events as u32, data).is_err() {
            self.slots.take(slot);
        }
    }

    /// Accept nothing more, finish what was accepted, cut what is left after `grace_ms`. `STOPPED` is told
    /// when no connection is left.
    pub fn stop(&mut self, grace_ms: u64) {
        self.set_clock();
        self.stop_began = self.now_ms;
        self.stop_at = self.now_ms.saturating_add(grace_ms);
        if let Some(seat) = self.seat.take() {
            if seat.is_last() {
                // Those who have been told that they are connected.
                for listener in seat.sockets() {
                    (0..LAST_ACCEPTS_MAX).all(|_| self.accept(listener));
                }
            }
            drop(seat);
            // Their descriptors may be others' from now on.
            self.paused.clear();
        }
        self.is_stopping = true;
        // Each is looked at in the turn to come: what it has sent by now is answered.
        for slot in self.slots.all() {
            if let Some(mut line) = self.slots.lift(slot) {
                line.is_readable = true;
                line.machine.leave();
                self.queue(slot, &mut line);
                self.slots.put_back(slot, line);
            }
        }
        self.flush();
        self.tell_stopped();
        self.ring_if_needed();
    }

    fn tell_stopped(&mut self) {
        if self.is_stopping && !self.stop_told && self.slots.open_count() == 0 {
            self.stop_told = true;
            self.tells.push_back(Tell { kind: layout::event::STOPPED, slot: 0, stamp: 0 });
        }
    }

    /// Time has passed: see whose has run out. To be called every [`tick_ms`](Self::tick_ms) or so.
    pub fn tick(&mut self) {
        self.set_clock();
        if self.pulse.turn(self.now_ms) {
            self.come_back();
        }
        self.resume();
        let (now, cut) = (self.now_ms, self.now_ms >= self.stop_at);
        for slot in self.slots.expired(now, cut) {
            if cut {
                let machine = self.slots.get(slot).map(|line| &line.machine);
                self.stats.cut += machine.map_or(0, |one| u64::from(one.flights() > 0 || one.unsent() > 0));
                self.close(slot);
            } else {
                self.time_out(slot);
            }
        }
        self.flush();
        self.tell_stopped();
        self.ring_if_needed();
        self.pulse.rest(self.needs_ticks());
    }

    /// How often time is looked at, ms: an eighth of the shortest limit, within reason.
    pub fn tick_ms(&self) -> u64 {
        let Limits { idle_ms, headers_ms, body_ms, linger_ms, .. } = self.limits;
        (idle_ms.min(headers_ms).min(body_ms).min(linger_ms) / 8).clamp(5, 250)
    }

    /// Whether [`tick`](Self::tick) has to be called at all.
    pub fn needs_ticks(&self) -> bool {
        self.slots.open_count() > 0 || !self.paused.is_empty()
    }

    /// The address of a client, without its port; empty on a path and when it has gone.
    pub fn remote(&self, slot: u32, stamp: u32) -> String {
        let connection = self.slots.get(slot).filter(|connection| connection.machine.is_in_flight(stamp));
        match connection.and_then(|connection| sys::address_of(&connection.socket, true)) {
            Some(address) => address.ip().to_canonical().to_string(),
            None => String::new(),
        }
    }
}
