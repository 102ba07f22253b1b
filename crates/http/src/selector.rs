//! What a reactor waits with: the system's selector (epoll, kqueue), and what other threads may do to it.
//!
//! `mio` makes both look alike, so that this file is the same for all systems. It announces edges only: each
//! change once, whether or not anything was read. So a socket is registered once and never changed; who does
//! not read remembers that there is something. Nothing here waits: the host's loop waits for the selector's
//! descriptor.

use std::{
    io,
    os::fd::{AsRawFd, RawFd},
    sync::Arc,
    time::Duration,
};

use mio::{Events, Interest, Poll, Registry, Token, Waker, unix::SourceFd};

use crate::sys;

/// Events per poll.
pub const EVENTS_MAX: usize = 256;
/// The token of the waker.
pub const WAKER: u64 = u64::MAX;

/// What has changed at a socket. A system may announce several changes in one event, or each in its own.
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    pub token: u64,
    /// There are bytes, connections, or the end of the input.
    pub is_readable: bool,
    /// There is space for bytes.
    pub is_writable: bool,
    /// The peer sends nothing more.
    pub is_read_closed: bool,
    /// Nothing more can be sent: the connection was closed on both sides.
    pub is_write_closed: bool,
    pub is_error: bool,
}

/// The selector of one thread.
pub struct Selector {
    poll: Poll,
    events: Events,
    shared: Arc<Shared>,
    /// How often it was polled, for tests.
    #[cfg(test)]
    pub polls: Arc<std::sync::atomic::AtomicU64>,
}

/// The end of a selector that other threads use.
pub struct Shared {
    registry: Registry,
    waker: Waker,
}

impl Selector {
    pub fn open() -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = Waker::new(&registry, Token(WAKER as usize))?;
        let shared = Arc::new(Shared { registry, waker });
        Ok(Self {
            poll,
            events: Events::with_capacity(EVENTS_MAX),
            shared,
            #[cfg(test)]
            polls: Arc::default(),
        })
    }

    pub const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Readable when there are events.
    pub fn descriptor(&self) -> RawFd {
        self.poll.as_raw_fd()
    }

    /// Watch a connection in both directions until it is closed.
    pub fn watch(&self, fd: RawFd, token: u64) -> io::Result<()> {
        let both = Interest::READABLE.add(Interest::WRITABLE);
        self.poll.registry().register(&mut SourceFd(&fd), Token(token as usize), both)
    }

    /// Replace `found` by the events that are ready now. An interrupted poll counts as one without events.
    #[inline]
    pub fn poll(&mut self, found: &mut Vec<Readiness>) {
        found.clear();
        #[cfg(test)]
        self.polls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if self.poll.poll(&mut self.events, Some(Duration::ZERO)).is_err() {
            return;
        }
        found.extend(self.events.iter().map(|event| Readiness {
            token: event.token().0 as u64,
            is_readable: event.is_readable(),
            is_writable: event.is_writable(),
            is_read_closed: event.is_read_closed(),
            is_write_closed: event.is_write_closed(),
            is_error: event.is_error(),
        }));
    }
}

impl Shared {
    /// Watch a listener, which may have connections already.
    pub fn watch_listener(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.registry.register(&mut SourceFd(&fd), Token(token as usize), Interest::READABLE)
    }

    /// Stop watching. A descriptor that is not watched is ignored.
    pub fn unwatch(&self, fd: RawFd) {
        self.registry.deregister(&mut SourceFd(&fd)).ok();
    }

    /// Make the selector readable.
    #[inline]
    pub fn wake(&self) {
        // It fails only without a selector.
        self.waker.wake().ok();
    }

    /// Whether there are events, without taking any.
    pub fn has_events(&self) -> bool {
        sys::is_readable(self.registry.as_raw_fd())
    }
}
