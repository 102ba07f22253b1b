//! The connections of one thread, which have sockets, and what is left to do with each of them.
//!
//! A connection is lifted out of its slot while it is worked on. Those that can continue without an event
//! wait in `runnable`, those with something to send in `dirty`, and what the host is notified of in
//! `host_events`.

pub(super) mod deadlines;
pub(super) mod frames;
pub(super) mod http2;
pub(super) mod input;
pub(super) mod output;
pub(super) mod refusals;
pub(super) mod secure;
pub(super) mod slots;
pub(super) mod streams;
pub(super) mod transport;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
};

use super::settings::{HostEvent, Stats};
use crate::{connection::Connection, layout::event, limits::Limits, response::Heads, sys, websocket::code};
use refusals::Refusals;
use slots::{Session, Slots};
use transport::Transport;

/// One in this many of `connections_max` may be in a handshake; others are closed when they are accepted.
const BEGINNING_SHARE: usize = 4;
/// Number and size of unused buffers that are stored.
const BUFFERS_MAX: usize = 256;
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Requests of one connection in a batch. They get no response before the batch is handed over, so the size
/// of their responses can only be estimated from earlier ones: see [`Session::share`].
const SHARE_MAX: u32 = 16;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    Close,
}

/// Connections by slot, their limits and times.
pub struct Connections {
    pub(super) slots: Slots,
    pub(super) limits: Limits,
    pub(super) heads: Heads,
    pub(super) now_ms: u64,
    pub(super) runnable: VecDeque<u32>,
    runnable_left: usize,
    dirty: Vec<u32>,
    /// Connections of HTTP/2 on whose streams something was written or read.
    driven: Vec<u32>,
    /// Unused send buffers.
    buffers: Vec<Vec<u8>>,
    pub(super) host_events: VecDeque<HostEvent>,
    refusals: Refusals,
    pub(super) stats: Stats,
    /// Connections whose handshake is not complete.
    beginning: usize,
    /// Connections whose input is drained after the last response.
    pub(super) lingering: usize,
    /// Slots of the WebSockets in each room.
    pub(super) rooms: BTreeMap<u32, BTreeSet<u32>>,
    is_stopping: bool,
    stop_notified: bool,
    stop_began: u64,
    stop_at: u64,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            slots: Slots::default(),
            limits,
            heads: Heads::default(),
            now_ms: sys::now_ms(),
            runnable: VecDeque::new(),
            runnable_left: 0,
            dirty: Vec::new(),
            driven: Vec::new(),
            buffers: Vec::new(),
            host_events: VecDeque::new(),
            refusals: Refusals::default(),
            stats: Stats::default(),
            beginning: 0,
            lingering: 0,
            rooms: BTreeMap::new(),
            is_stopping: false,
            stop_notified: false,
            stop_began: 0,
            stop_at: u64::MAX,
        }
    }

    /// Returns whether the second is another one, which heads of responses contain.
    pub(super) fn set_clock(&mut self) -> bool {
        self.now_ms = sys::now_ms();
        self.heads.set_time(sys::wall_second())
    }

    /// Why no further connection is accepted.
    pub(super) fn why_full(&self, has_handshakes: bool) -> Option<&'static str> {
        let most = self.limits.connections_max;
        if self.slots.open_count() >= most {
            return Some("connections-max");
        }
        let is_full = has_handshakes && self.beginning >= (most / BEGINNING_SHARE).max(1);
        is_full.then_some("handshakes-max")
    }

    /// Add a connection that was accepted. Returns its slot and generation.
    pub(super) fn begin(&mut self, socket: Transport, machine: Connection) -> (u32, u32) {
        let is_beginning = socket.is_secure();
        self.stats.connections_total += 1;
        let deadline =
            self.now_ms + if is_beginning { self.limits.handshake_ms } else { self.limits.idle_ms };
        let (slot, generation) = self.slots.put(socket, machine, self.now_ms, deadline);
        if is_beginning && let Some(session) = self.slots.get_mut(slot) {
            session.is_beginning = true;
            self.beginning += 1;
        }
        (slot, generation)
    }

    /// It cannot be watched.
    pub(super) fn forget(&mut self, slot: u32) {
        if let Some(session) = self.slots.take(slot) {
            self.beginning -= usize::from(session.is_beginning);
        }
    }

    /// Those that can continue now do so before the next poll.
    pub(super) fn begin_round(&mut self) {
        self.runnable_left = self.runnable.len();
    }

    #[inline]
    pub(super) const fn has_next(&self) -> bool {
        self.runnable_left > 0
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<u32> {
        self.runnable_left -= 1;
        self.runnable.pop_front()
    }

    pub(super) fn put_or_close(&mut self, slot: u32, session: Box<Session>, verdict: Verdict) {
        match verdict {
            Verdict::Keep => self.slots.put_back(slot, session),
            Verdict::Close => self.close_lifted(slot, session),
        }
    }

    /// Continue with this connection without an event from the kernel.
    pub(super) fn queue(&mut self, slot: u32, session: &mut Session) {
        if !session.is_queued {
            session.is_queued = true;
            self.runnable.push_back(slot);
        }
    }

    /// Process a connection in `flush`.
    pub(super) fn mark(&mut self, slot: u32) {
        if let Some(session) = self.slots.get_mut(slot)
            && !session.is_dirty
        {
            session.is_dirty = true;
            self.dirty.push(slot);
        }
    }

    /// Like [`mark`](Self::mark), for a connection that is lifted.
    #[inline]
    pub(super) fn mark_session(&mut self, slot: u32, session: &mut Session) {
        if !session.is_dirty {
            session.is_dirty = true;
            self.dirty.push(slot);
        }
    }

    #[inline]
    pub(super) fn lend_buffer(&mut self, session: &mut Session) {
        if session.machine.out.capacity() == 0
            && let Some(buffer) = self.buffers.pop()
        {
            session.machine.out = buffer;
        }
    }

    fn take_buffer(&mut self, session: &mut Session) {
        let mut buffer = std::mem::take(&mut session.machine.out);
        session.machine.sent = 0;
        if self.buffers.len() < BUFFERS_MAX && buffer.capacity() <= BUFFER_BYTES_MAX {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Close a connection in any state.
    pub(super) fn close(&mut self, slot: u32) {
        if let Some(session) = self.slots.lift(slot) {
            self.close_lifted(slot, session);
        }
    }

    /// Close a connection that is lifted, and notify the host for its open exchanges.
    fn close_lifted(&mut self, slot: u32, mut session: Box<Session>) {
        if session.machine.exchanges() == 0 && session.machine.unsent() == 0 {
            session.socket.close();
        }
        for stamp in session.machine.stamps() {
            self.stats.aborted += 1;
            self.host_events.push_back(HostEvent { kind: event::CLOSED, slot, stamp });
        }
        self.frames_lost(slot, &mut session);
        self.beginning -= usize::from(session.is_beginning);
        self.http2_lost(slot, &mut session);
        self.lingering -= usize::from(session.is_lingering);
        self.slots.retire(slot);
        self.take_buffer(&mut session);
        self.stream_ended(slot, &session);
        drop(session);
        self.notify_stopped();
    }

    /// Notify the host once that the client may not read the responses of the open exchanges.
    pub(super) fn notify_gone(&mut self, slot: u32, session: &mut Session) {
        for stamp in session.machine.take_unnotified() {
            self.host_events.push_back(HostEvent { kind: event::DISCONNECTED, slot, stamp });
        }
    }

    /// Notify the host of exchanges that were dropped; their connection may stay open for others.
    pub(super) fn notify_dropped(&mut self, slot: u32, stamps: Vec<u32>) {
        for stamp in stamps {
            self.stats.aborted += 1;
            self.host_events.push_back(HostEvent { kind: event::CLOSED, slot, stamp });
        }
    }

    pub(super) fn notify_stopped(&mut self) {
        if self.is_stopping && !self.stop_notified && self.slots.open_count() == 0 {
            self.stop_notified = true;
            self.host_events.push_back(HostEvent { kind: event::STOPPED, slot: 0, stamp: 0 });
        }
    }

    /// The host does not respond. False: a part of the response was sent, so the connection has to be cut.
    pub(super) fn abort(&mut self, slot: u32, stamp: u32, session: &mut Session) -> bool {
        let Some(stamps) = session.machine.abort(stamp) else { return false };
        self.notify_dropped(slot, stamps);
        true
    }

    /// The connection closes after this response.
    #[cold]
    pub(super) fn close_after(&mut self, (slot, stamp): (u32, u32), session: &mut Session) {
        let dropped = session.machine.close_after(stamp);
        self.notify_dropped(slot, dropped);
    }

    /// The server stops.
    pub(super) fn leave_politely(&mut self, slot: u32, session: &mut Session) {
        if let Some(http2) = session.machine.http2_mut() {
            http2.leave(self.now_ms);
            return self.mark_http2(slot, session);
        }
        if session.machine.frames().is_some() {
            self.lend_buffer(session);
            session.machine.send_close(code::GOING_AWAY, b"", self.now_ms);
            self.mark_session(slot, session);
        }
    }

    /// "port address" of a client, or "0 address" as a proxy has stated it; empty for Unix sockets and when
    /// the client has disconnected.
    pub fn remote(&self, slot: u32, stamp: u32) -> String {
        let connection = self.slots.get(slot).filter(|connection| connection.machine.is_open(stamp));
        let stated = connection.and_then(|connection| Some((0, connection.machine.client()?)));
        let (port, address) = match stated.or_else(|| {
            let address = connection?.socket.address()?;
            Some((address.port(), address.ip()))
        }) {
            Some(found) => found,
            None => return String::new(),
        };
        format!("{port} {address}")
    }
}

pub(super) fn is_soon(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
