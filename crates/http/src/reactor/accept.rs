//! Accepting connections, also when the process has no descriptor left, and what they begin with. A listener
//! that fails otherwise is left alone until the next tick.

use std::{
    os::fd::{AsRawFd, OwnedFd, RawFd},
    sync::Arc,
};

use super::{ACCEPTS_MAX, Reactor, connections::transport::Transport};
use crate::{
    connection::Connection,
    listen::Membership,
    sys,
    tls::{Context, Session, TlsError},
};

impl Reactor {
    /// New connections were announced, or more may wait. A paused listener remains so.
    pub(super) fn accept_from(&mut self, listener: RawFd) {
        if self.arrivals.paused.contains(&listener) {
            return;
        }
        if self.accept(listener) && !self.arrivals.accepting.contains(&listener) {
            self.arrivals.accepting.push(listener);
        }
    }

    /// Accept from the listeners whose queues were not emptied, unless other members have them now.
    pub(super) fn accept_more(&mut self) {
        if self.arrivals.accepting.is_empty() {
            return;
        }
        let own = self.arrivals.membership.as_ref().map(Membership::sockets).unwrap_or_default();
        for listener in std::mem::take(&mut self.arrivals.accepting) {
            if own.contains(&listener) {
                self.accept_from(listener);
            }
        }
    }

    /// Accept a bounded number of connections. Returns whether more may wait.
    pub(super) fn accept(&mut self, listener: RawFd) -> bool {
        for _ in 0..ACCEPTS_MAX {
            match sys::accept(listener) {
                Ok(socket) => self.admit(socket),
                Err(error) => match error.raw_os_error() {
                    // The client has disconnected already.
                    Some(libc::ECONNABORTED | libc::EINTR | libc::EPROTO | libc::EPERM) => {}
                    Some(libc::EMFILE | libc::ENFILE)
                        if self.batches.files.clear() || self.arrivals.close_one(listener) => {}
                    Some(libc::EAGAIN) => return false,
                    _ => {
                        self.arrivals.pause(listener);
                        return false;
                    }
                },
            }
        }
        true
    }

    pub(super) fn admit(&mut self, socket: OwnedFd) {
        if let Some(reason) = self.connections.why_full(self.arrivals.tls.is_some()) {
            return self.connections.refuse_connection(&socket, reason);
        }
        let fd = socket.as_raw_fd();
        let Some((socket, machine)) = self.transport_of(socket) else { return };
        let (slot, generation) = self.connections.begin(socket, machine);
        let token = u64::from(slot) | u64::from(generation) << 32;
        if self.arrivals.selector.watch(fd, token).is_err() {
            self.connections.forget(slot);
        }
    }

    /// How a connection begins: with TLS, the header of the PROXY protocol comes before it.
    fn transport_of(&self, socket: OwnedFd) -> Option<(Transport, Connection)> {
        match &self.arrivals.tls {
            None if self.arrivals.is_proxied => Some((Transport::Plain(socket), Connection::behind_proxy())),
            None => Some((Transport::Plain(socket), Connection::default())),
            Some(context) => {
                let session = Session::new(Arc::clone(context), self.arrivals.is_proxied).ok()?;
                Some((Transport::Secure(socket, Box::new(session)), Connection::default()))
            }
        }
    }

    /// Connections that are accepted from now on begin with TLS.
    /// Where they cannot be used, those before remain.
    pub fn set_tls(&mut self, settings: &[u8]) -> Result<(), TlsError> {
        self.arrivals.tls = Some(Arc::new(Context::new(settings)?));
        self.connections.limits.is_secure = true;
        Ok(())
    }

    /// The host has chosen a certificate for that name; empty: none of its own.
    /// For a choice that cannot be used the connection is closed.
    pub fn choose(&mut self, slot: u32, generation: u32, chosen: &[u8]) -> Result<(), TlsError> {
        if self.connections.slots.of_event(slot, generation).is_none() {
            return Ok(());
        }
        let Some(mut session) = self.connections.slots.lift(slot) else { return Ok(()) };
        if !self.batches.in_call {
            self.set_clock();
        }
        let result = session.socket.session().map_or(Ok(()), |(tls, socket)| tls.choose(socket, chosen));
        session.is_readable = true;
        self.connections.queue(slot, &mut session);
        self.connections.slots.put_back(slot, session);
        self.wake_if_needed();
        result
    }
}
