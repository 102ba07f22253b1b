//! The reactor's connections with their sockets, by slot. A slot is reused after its connection is closed;
//! its generation and the exchange's stamp distinguish them.

use super::transport::Transport;
use crate::connection::Connection;

/// The first share of a connection, whose response sizes are unknown.
const SHARE_FIRST: u32 = 2;

/// A connection with its socket and deadlines. Times are those of the reactor's clock, in ms; 0 means none.
pub struct Session {
    pub socket: Transport,
    pub machine: Connection,
    pub accepted_ms: u64,
    pub deadline: u64,
    /// When the head began that is being read.
    pub head_began: u64,
    /// Remaining time for this client's body, ms; received bytes refill it.
    pub body_budget_ms: u64,
    /// Remaining time for the client to read responses, ms; read bytes refill it.
    pub out_budget_ms: u64,
    /// When the current wait for its body began.
    pub wait_began: u64,
    /// When the current wait for it to read began.
    pub out_wait_began: u64,
    /// Bytes that the kernel held at the last check during that wait.
    pub out_unacked: Option<u64>,
    /// Requests per batch: as many as `out_bytes_max` has capacity for if all responses are as large as the
    /// largest of the last batch, and at most twice as many as before.
    pub share: u32,
    /// Bytes discarded after the last response, since the last check.
    pub discarded_bytes: u64,
    pub linger_until: u64,
    /// Where that is less than the limit.
    pub linger_most_ms: u64,
    /// The kernel may have bytes.
    pub is_readable: bool,
    /// The kernel took all bytes at the last send.
    pub is_writable: bool,
    /// The client sends nothing more: its end was announced or read.
    pub is_half_closed: bool,
    /// Its end was read.
    pub is_at_end: bool,
    /// In `runnable`.
    pub is_queued: bool,
    /// In `dirty`.
    pub is_dirty: bool,
    /// The handshake of TLS is not complete.
    pub is_beginning: bool,
    /// In `driven`.
    pub is_driven: bool,
    /// All responses were sent; input is discarded.
    pub is_lingering: bool,
    /// The host waits for the body.
    pub wants_body: bool,
    /// The host waits for `DRAINED`.
    pub is_full: bool,
    /// The host has had a request of it.
    pub is_known: bool,
    /// The status of a refused body.
    pub body_failed: u16,
}

impl Session {
    /// The flag of a request's kind by which the host recognizes a new connection.
    pub const fn first_flag(&mut self) -> u32 {
        let flag = if self.is_known { 0 } else { crate::layout::flag::FIRST };
        self.is_known = true;
        flag
    }
}

/// Connections by slot. The generation of a slot distinguishes events of its connections.
#[derive(Default)]
pub struct Slots {
    sessions: Vec<(u32, Option<Box<Session>>)>,
    free: Vec<u32>,
    open: usize,
}

impl Slots {
    pub const fn open_count(&self) -> usize {
        self.open
    }

    /// Add a connection. Returns its slot and generation.
    pub fn put(
        &mut self,
        socket: Transport,
        machine: Connection,
        accepted_ms: u64,
        deadline: u64,
    ) -> (u32, u32) {
        let session = Box::new(Session {
            socket,
            machine,
            accepted_ms,
            deadline,
            head_began: 0,
            body_budget_ms: 0,
            out_budget_ms: 0,
            wait_began: 0,
            out_wait_began: 0,
            out_unacked: None,
            share: SHARE_FIRST,
            discarded_bytes: 0,
            linger_until: 0,
            linger_most_ms: u64::MAX,
            is_readable: false,
            is_writable: true,
            is_half_closed: false,
            is_at_end: false,
            is_queued: false,
            is_dirty: false,
            is_beginning: false,
            is_driven: false,
            is_lingering: false,
            wants_body: false,
            is_full: false,
            is_known: false,
            body_failed: 0,
        });
        self.open += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.sessions.push((0, None));
            self.sessions.len() as u32 - 1
        });
        let (generation, entry) = &mut self.sessions[slot as usize];
        // The top bit would make its events look like a listener's.
        *generation = (*generation + 1) & 0x7fff_ffff;
        *entry = Some(session);
        (slot, *generation)
    }

    #[inline]
    pub fn get(&self, slot: u32) -> Option<&Session> {
        self.sessions.get(slot as usize)?.1.as_deref()
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Session> {
        self.sessions.get_mut(slot as usize)?.1.as_deref_mut()
    }

    /// The connection of an event, unless it has been closed.
    #[inline]
    pub fn of_event(&mut self, slot: u32, generation: u32) -> Option<&mut Session> {
        let (current, session) = self.sessions.get_mut(slot as usize)?;
        if *current == generation { session.as_deref_mut() } else { None }
    }

    /// The generation of a slot's connection.
    pub fn generation(&self, slot: u32) -> u32 {
        self.sessions.get(slot as usize).map_or(0, |(generation, _)| *generation)
    }

    /// Take a connection out while it is worked on, until `put_back` or `retire`.
    #[inline]
    pub fn lift(&mut self, slot: u32) -> Option<Box<Session>> {
        self.sessions.get_mut(slot as usize)?.1.take()
    }

    #[inline]
    pub fn put_back(&mut self, slot: u32, session: Box<Session>) {
        self.sessions[slot as usize].1 = Some(session);
    }

    /// Free the slot of a connection that was lifted.
    pub fn retire(&mut self, slot: u32) {
        self.open -= 1;
        self.free.push(slot);
    }

    pub fn take(&mut self, slot: u32) -> Option<Box<Session>> {
        let session = self.lift(slot)?;
        self.retire(slot);
        Some(session)
    }

    /// All slots in use.
    pub fn all(&self) -> Vec<u32> {
        let used = self.sessions.iter().enumerate().filter(|(_, (_, session))| session.is_some());
        used.map(|(slot, _)| slot as u32).collect()
    }

    /// The slots whose deadline has passed, or all.
    pub fn expired(&self, now: u64, all: bool) -> Vec<u32> {
        let is_due = |session: &Session| all || session.deadline != 0 && session.deadline <= now;
        let due = self
            .sessions
            .iter()
            .enumerate()
            .filter(|(_, (_, session))| session.as_deref().is_some_and(is_due));
        due.map(|(slot, _)| slot as u32).collect()
    }
}
