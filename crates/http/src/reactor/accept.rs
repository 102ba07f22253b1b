//! Accepting connections, also when the process has no descriptor left. A listener that fails otherwise is
//! left alone until the next tick.
//!
//! New connections are announced once, however many there are. Therefore a listener whose queue was not
//! emptied is remembered, in `accepting` until the next poll or in `paused` until the next tick.

use std::{
    os::fd::{AsRawFd, OwnedFd, RawFd},
    sync::Arc,
};

use super::{ACCEPTS_MAX, Reactor, refusals::Refused, transport::Transport};
use crate::{connection::Connection, listen::Membership, sys, tls::Session};

/// One in this many of `connections_max` may be in a handshake; others are closed when they are accepted.
const BEGINNING_SHARE: usize = 4;

impl Reactor {
    /// New connections were announced, or more may wait. A paused listener remains so.
    pub(super) fn accept_from(&mut self, listener: RawFd) {
        if self.paused.contains(&listener) {
            return;
        }
        if self.accept(listener) && !self.accepting.contains(&listener) {
            self.accepting.push(listener);
        }
    }

    /// Accept from the listeners whose queues were not emptied, unless other members have them now.
    pub(super) fn accept_more(&mut self) {
        if self.accepting.is_empty() {
            return;
        }
        let own = self.membership.as_ref().map(Membership::sockets).unwrap_or_default();
        for listener in std::mem::take(&mut self.accepting) {
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
                    Some(libc::EMFILE | libc::ENFILE) if self.files.clear() || self.close_one(listener) => {}
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

    /// The process has no descriptor left: use the spare one to accept a connection and close it, so that its
    /// client receives a reset instead of waiting.
    fn close_one(&mut self, listener: RawFd) -> bool {
        self.spare = None;
        let accepted = sys::accept(listener);
        let is_one = accepted.is_ok();
        drop(accepted);
        self.spare = sys::spare();
        is_one && self.spare.is_some()
    }

    /// Stop accepting until the next tick.
    fn pause(&mut self, listener: RawFd) {
        if !self.paused.contains(&listener) {
            self.paused.push(listener);
        }
    }

    /// Accept in the next turn from what was paused.
    pub(super) fn resume(&mut self) {
        if self.paused.is_empty() {
            return;
        }
        if self.spare.is_none() {
            self.spare = sys::spare();
        }
        self.accepting.append(&mut self.paused);
    }

    pub(super) fn admit(&mut self, socket: OwnedFd) {
        if self.slots.open_count() >= self.limits.connections_max {
            return self.refuse_connection(&socket, "connections-max");
        }
        if self.tls.is_some() && self.beginning >= (self.limits.connections_max / BEGINNING_SHARE).max(1) {
            return self.refuse_connection(&socket, "handshakes-max");
        }
        let fd = socket.as_raw_fd();
        let Some((socket, machine)) = self.transport_of(socket) else { return };
        let is_beginning = socket.is_secure();
        self.stats.connections_total += 1;
        let deadline =
            self.now_ms + if is_beginning { self.limits.handshake_ms } else { self.limits.idle_ms };
        let (slot, generation) = self.slots.put(socket, machine, self.now_ms, deadline);
        if is_beginning && let Some(session) = self.slots.get_mut(slot) {
            session.is_beginning = true;
            self.beginning += 1;
        }
        let token = u64::from(slot) | u64::from(generation) << 32;
        if self.selector.watch(fd, token).is_err()
            && let Some(session) = self.slots.take(slot)
        {
            self.beginning -= usize::from(session.is_beginning);
        }
    }

    #[cold]
    fn refuse_connection(&mut self, socket: &OwnedFd, reason: &'static str) {
        let client = sys::address_of(socket, true).map(|address| address.ip().to_canonical());
        self.stats.refused += 1;
        self.report(client, Refused { what: "connection", reason, status: 0, protocol: "", detail: "" });
    }

    /// How a connection begins: with TLS, the header of the PROXY protocol comes before it.
    fn transport_of(&self, socket: OwnedFd) -> Option<(Transport, Connection)> {
        match &self.tls {
            None if self.is_proxied => Some((Transport::Plain(socket), Connection::behind_proxy())),
            None => Some((Transport::Plain(socket), Connection::default())),
            Some(context) => {
                let session = Session::new(Arc::clone(context), self.is_proxied).ok()?;
                Some((Transport::Secure(socket, Box::new(session)), Connection::default()))
            }
        }
    }
}
