//! Accepting connections, also when the process has no descriptor left. A listener that fails otherwise is
//! left alone until the next tick.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::{ACCEPTS_MAX, Reactor};
use crate::{listen, sys};

impl Reactor {
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
    pub(super) fn pause(&mut self, listener: RawFd) {
        let tag = listen::TAG | listener as u64;
        if sys::rewatch(self.epoll.as_raw_fd(), listener, 0, tag).is_ok() {
            self.paused.push(listener);
        }
    }

    pub(super) fn resume(&mut self) {
        for listener in std::mem::take(&mut self.paused) {
            if self.spare.is_none() {
                self.spare = sys::spare();
            }
            // A socket that was handed to another member meanwhile fails here.
            let tag = listen::TAG | listener as u64;
            sys::rewatch(self.epoll.as_raw_fd(), listener, libc::EPOLLIN as u32, tag).ok();
        }
    }

    pub(super) fn admit(&mut self, socket: OwnedFd) {
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
}
