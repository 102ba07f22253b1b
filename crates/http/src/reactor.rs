//! Over 400 lines: the fields of a reactor, and its turn.
//!
//! Connections on sockets, for one thread. Requests that are ready are read, parsed and passed to the host in
//! batches.
//!
//! The host calls [`Reactor::advance`] when the reactor's descriptor is readable, runs its handlers on
//! [`Step::Call`], reports with [`Reactor::called`], and repeats this until [`Step::Done`]. Sockets are
//! watched once, edge-triggered: `is_readable` records what was announced and not read, so back-pressure
//! means not reading and costs no system call. Connections that can continue without an event wait in
//! `runnable`; at the end of the turn the waker is signalled for them, so that the host's loop returns after
//! its other work.

mod accept;
mod batch;
mod body;
mod clock;
mod http2;
mod input;
mod output;
mod refusals;
mod responses;
mod secure;
mod settings;
mod slots;
mod streams;
#[cfg(test)]
mod tests;
mod transport;
mod websockets;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    os::fd::{OwnedFd, RawFd},
    sync::Arc,
};

use crate::{
    constants::Constants,
    files::FileCache,
    head::Parser,
    layout,
    limits::Limits,
    listen::{self, Endpoint, Membership, Pulse},
    region::Region,
    response::Heads,
    selector::{EVENTS_MAX, Readiness, Selector, WAKER},
    shared_bodies::SharedBodies,
    sys,
    targets::Targets,
    tls::Context,
    websocket::Deflate,
};
use batch::Batch;
use refusals::Refusals;
pub use settings::{Settings, Stats, Step, error_name};
use slots::{HostEvent, Slots};

/// Minimum size of the out and the body region.
const OUT_BYTES_MIN: usize = 4096;

/// Polls per turn.
const ROUNDS_MAX: u32 = 8;
/// Time after which a turn polls no more, ns, so that the host's other work runs.
const TURN_NS_MAX: u64 = 1_000_000;
/// Events after which another poll in the same turn is likely to find more.
const POLL_AGAIN_EVENTS: usize = 16;
/// Upper bound of `poll_score`.
const POLL_SCORE_MAX: u32 = 16;
/// One in this many polls is made although the score is low.
const POLL_PROBE_EVERY: u32 = 256;
/// How long a poll that is likely to find events waits for them, ns.
const POLL_WAIT_NS: u64 = 20_000;
/// Connections accepted from one socket at once.
const ACCEPTS_MAX: usize = 64;
/// Rounds of `ACCEPTS_MAX` when a queue is emptied for good; longer than any queue can be.
const LAST_ACCEPTS_MAX: usize = 1024;
/// How long the host should take for a batch, ns: its first response is sent with its last.
const BATCH_NS: u64 = 500_000;
/// Messages of WebSockets in a batch, at least. They are not awaited as responses are, and each batch with
/// messages to a room sends to all of its members. Where workers share cores, its time proves little.
const MESSAGES_MIN: u64 = 16;

/// The connections and listening sockets of one thread.
pub struct Reactor {
    membership: Option<Membership>,
    pulse: Arc<Pulse>,
    slots: Slots,
    selector: Selector,
    spare: Option<OwnedFd>,
    limits: Limits,
    /// Whether connections begin with a header of the PROXY protocol.
    is_proxied: bool,
    /// What connections begin with, unless they are plain.
    tls: Option<Arc<Context>>,
    /// Connections whose handshake is not complete.
    beginning: usize,
    constants: Constants,
    bodies: SharedBodies,
    files: FileCache,
    inbound: Region,
    out: Region,
    body: Region,
    heads: Heads,
    targets: Targets,
    parser: Parser,
    events: Vec<Readiness>,
    event_next: usize,
    round: u32,
    turn_began: u64,
    batch: Batch,
    host_events: VecDeque<HostEvent>,
    runnable: VecDeque<u32>,
    runnable_left: usize,
    poll_score: u32,
    polls_considered: u32,
    poll_wait_ns: u64,
    /// Whole responses that were taken since the call began.
    responded: u32,
    /// Requests of the last batch have no whole response yet, so the host has other work.
    has_pending: bool,
    dirty: Vec<u32>,
    /// Connections of HTTP/2 on whose streams something was written or read.
    driven: Vec<u32>,
    /// Unused send buffers.
    buffers: Vec<Vec<u8>>,
    stamp: u32,
    now_ms: u64,
    in_call: bool,
    call_began: u64,
    call_ns_each: u64,
    stats: Stats,
    refusals: Refusals,
    /// Listeners from which more may be accepted.
    accepting: Vec<RawFd>,
    /// Listeners that are left alone until the next tick.
    paused: Vec<RawFd>,
    is_stopping: bool,
    stop_notified: bool,
    stop_began: u64,
    stop_at: u64,
    /// Connections whose input is drained after the last response.
    lingering: usize,
    /// Slots of the WebSockets in each room.
    rooms: BTreeMap<u32, BTreeSet<u32>>,
    /// Messages of the batch that are not in the inbound region.
    gathered: Vec<Vec<u8>>,
    gathered_bytes: usize,
    /// Slots of WebSockets that end after this batch.
    ending: Vec<u32>,
    deflate: Deflate,
}

impl Reactor {
    /// Listen.
    ///
    /// # Errors
    ///
    /// Those of the system; `EINVAL` when a region is too small.
    pub fn open(settings: Settings, inbound: Region, out: Region, body: Region) -> io::Result<Self> {
        let inbound_bytes_min = layout::WORDS_BYTES + Batch::data_bytes_min(&settings.limits);
        if inbound.len() < inbound_bytes_min || out.len() < OUT_BYTES_MIN || body.len() < OUT_BYTES_MIN {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let selector = Selector::open()?;
        let Settings { endpoint, is_shared, backlog, is_proxied, limits, constants } = settings;
        let membership = Membership::join(endpoint, is_shared, backlog, selector.shared())?;
        let pulse = Arc::clone(membership.pulse());
        let bodies = SharedBodies::new(Arc::clone(membership.held_bytes()));
        let mut reactor = Self {
            membership: Some(membership),
            pulse,
            slots: Slots::default(),
            selector,
            spare: sys::spare(),
            batch: Batch::new(&limits, inbound.len()),
            files: FileCache::new(limits.open_files_max),
            limits,
            is_proxied,
            tls: None,
            beginning: 0,
            constants: Constants::new(constants),
            bodies,
            inbound,
            out,
            body,
            heads: Heads::default(),
            targets: Targets::default(),
            parser: Parser::default(),
            events: Vec::with_capacity(EVENTS_MAX),
            event_next: 0,
            round: 0,
            turn_began: 0,
            host_events: VecDeque::new(),
            runnable: VecDeque::new(),
            runnable_left: 0,
            poll_score: 0,
            polls_considered: 0,
            poll_wait_ns: POLL_WAIT_NS,
            responded: 0,
            has_pending: false,
            dirty: Vec::new(),
            driven: Vec::new(),
            buffers: Vec::new(),
            stamp: 0,
            now_ms: sys::now_ms(),
            in_call: false,
            call_began: 0,
            call_ns_each: 2_000,
            stats: Stats::default(),
            refusals: Refusals::default(),
            accepting: Vec::new(),
            paused: Vec::new(),
            is_stopping: false,
            stop_notified: false,
            stop_began: 0,
            stop_at: u64::MAX,
            lingering: 0,
            rooms: BTreeMap::new(),
            gathered: Vec::new(),
            gathered_bytes: 0,
            ending: Vec::new(),
            deflate: Deflate::default(),
        };
        reactor.out.put(layout::out::END, layout::HEADER_BYTES as u32);
        Ok(reactor)
    }

    /// A descriptor that is readable when there is work.
    pub fn descriptor(&self) -> RawFd {
        self.selector.descriptor()
    }

    /// The endpoint, with the port that the system has chosen; `None` after a stop.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.membership.as_ref().map(Membership::endpoint)
    }

    /// The counts so far.
    pub fn stats(&self) -> Stats {
        let held_bytes = self.bodies.held_bytes();
        let open_files = self.files.len() as u64;
        Stats { connections: self.slots.open_count() as u64, held_bytes, open_files, ..self.stats }
    }

    /// Begin a turn: the descriptor is readable.
    pub fn begin(&mut self) {
        self.round = 0;
        self.turn_began = sys::now_ns();
        self.set_clock();
        if self.pulse.turn(self.now_ms) {
            self.rejoin();
        }
    }

    /// This thread was stalled, and its sockets were handed to another one.
    #[cold]
    fn rejoin(&mut self) {
        // Without a socket it continues with its connections and tries again in its next turn.
        if let Some(membership) = &self.membership {
            membership.rejoin().ok();
        }
    }

    /// The number of this reactor for [`crate::stalled_ms`] and [`crate::send_away`]; 0 after a stop.
    pub fn member(&self) -> u64 {
        self.membership.as_ref().map_or(0, Membership::member)
    }

    fn set_clock(&mut self) {
        self.now_ms = sys::now_ms();
        if self.heads.set_time(sys::wall_second()) {
            self.constants.forget_heads();
        }
    }

    /// Continue the turn.
    pub fn advance(&mut self) -> Step {
        loop {
            while self.event_next < self.events.len() {
                if self.batch.is_full() {
                    return self.call();
                }
                let event = self.events[self.event_next];
                self.event_next += 1;
                self.take_event(&event);
            }
            while self.runnable_left > 0 {
                if self.batch.is_full() {
                    return self.call();
                }
                self.runnable_left -= 1;
                if let Some(slot) = self.runnable.pop_front() {
                    self.go_on_with(slot);
                }
            }
            self.flush();
            if self.batch.has_requests() || !self.host_events.is_empty() {
                return self.call();
            }
            if self.round > 0 && (self.round >= ROUNDS_MAX || !self.should_poll_again() || self.is_late()) {
                break;
            }
            self.round += 1;
            self.accept_more();
            self.look();
            if self.events.is_empty() && self.runnable_left == 0 {
                break;
            }
        }
        if self.can_continue() {
            self.selector.shared().wake();
        }
        self.pulse.rest(self.needs_ticks());
        Step::Done
    }

    /// Whether there is work that no event announces.
    fn can_continue(&self) -> bool {
        !self.runnable.is_empty() || !self.accepting.is_empty()
    }

    /// Poll. After the first of a turn, wait a little if that pays: to sleep and be woken takes longer.
    fn look(&mut self) {
        self.selector.poll(&mut self.events);
        self.event_next = 0;
        self.runnable_left = self.runnable.len();
        if self.round == 1 {
            return;
        }
        if self.events.is_empty() && self.may_wait() {
            let began = sys::now_ns();
            while self.events.is_empty() && sys::now_ns() - began < self.poll_wait_ns {
                std::hint::spin_loop();
                self.selector.poll(&mut self.events);
            }
        }
        // A look without events costs more than one with events saves.
        let score = self.poll_score;
        self.poll_score =
            if self.events.is_empty() { score.saturating_sub(2) } else { (score + 1).min(POLL_SCORE_MAX) };
    }

    /// Whether another poll in this turn is likely to find events: after many events, with work left, or when
    /// such polls have found some recently.
    fn should_poll_again(&mut self) -> bool {
        self.polls_considered = self.polls_considered.wrapping_add(1);
        self.events.len() >= POLL_AGAIN_EVENTS || self.can_continue() || self.pays()
    }

    /// Whether there is nothing else to do, here and in the host's loop, and events are likely.
    fn may_wait(&self) -> bool {
        !self.has_pending && !self.can_continue() && self.pays()
    }

    /// Whether such polls have found events recently. Now and then one is made to find out.
    const fn pays(&self) -> bool {
        self.poll_score >= POLL_SCORE_MAX / 2 || self.polls_considered.is_multiple_of(POLL_PROBE_EVERY)
    }

    fn is_late(&self) -> bool {
        sys::now_ns() - self.turn_began > TURN_NS_MAX
    }

    fn call(&mut self) -> Step {
        while let Some(event) = self.host_events.front() {
            if !self.batch.put_event(&mut self.inbound, event) {
                break;
            }
            self.host_events.pop_front();
        }
        self.inbound.put(layout::inbound::COUNT, self.batch.records());
        self.out.put(layout::out::IN_BATCH, 1);
        self.in_call = true;
        self.responded = 0;
        self.call_began = sys::now_ns();
        Step::Call
    }

    /// The host has handled the batch. `ran` is false if its program was stopped: its responses are dropped.
    pub fn called(&mut self, ran: bool) {
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
        if self.host_events.is_empty() && !self.refusals.is_empty() {
            self.refusals.clear(); // the host was notified, and has not taken them
        }
        if ran {
            self.take_responses(None);
        } else {
            self.out.put(layout::out::END, layout::HEADER_BYTES as u32);
        }
        if requests > 0 {
            self.has_pending = self.responded < requests;
        }
        self.end_sockets();
        self.flush();
    }

    /// Take and send responses that were written outside of a batch.
    pub fn flush_responses(&mut self) {
        if !self.in_call {
            self.set_clock();
        }
        self.take_responses(None);
        self.flush();
        self.wake_if_needed();
    }

    /// Outside of a turn, new work needs a turn.
    fn wake_if_needed(&mut self) {
        if !self.in_call && (self.can_continue() || !self.host_events.is_empty()) {
            self.selector.shared().wake();
        }
    }

    fn take_event(&mut self, event: &Readiness) {
        let token = event.token;
        if token == WAKER {
            return;
        }
        if token & listen::TAG != 0 {
            // After a stop the descriptor may have been reused.
            if self.membership.is_some() {
                self.accept_from(token as u32 as RawFd);
            }
            return;
        }
        self.take_readiness(token as u32, (token >> 32) as u32, event);
    }

    /// Whether [`tick`](Self::tick) needs to be called.
    pub fn needs_ticks(&self) -> bool {
        self.slots.open_count() > 0 || !self.paused.is_empty() || self.files.len() > 0
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
