//! The socket of a connection, with TLS or without: what the reactor reads and sends is plaintext.
//!
//! Without TLS each call is the system's behind one branch, always the same for a server.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

use crate::{files::FilePart, sys, tls::Session};

/// A socket, and its TLS.
#[derive(Debug)]
pub struct Transport {
    socket: OwnedFd,
    tls: Option<Box<Session>>,
}

impl Transport {
    pub const fn plain(socket: OwnedFd) -> Self {
        Self { socket, tls: None }
    }

    pub fn secure(socket: OwnedFd, session: Session) -> Self {
        Self { socket, tls: Some(Box::new(session)) }
    }

    /// The socket, for what does not concern bytes.
    pub const fn fd(&self) -> &OwnedFd {
        &self.socket
    }

    #[inline]
    pub const fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// The TLS of a connection with its socket.
    pub fn session(&mut self) -> Option<(&mut Session, &OwnedFd)> {
        self.tls.as_deref_mut().map(|tls| (tls, &self.socket))
    }

    /// Continue without TLS: its client does not use it.
    pub fn become_plain(&mut self) {
        self.tls = None;
    }

    /// Receive plaintext.
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => sys::receive(&self.socket, buffer),
            Some(tls) => tls.receive(&self.socket, buffer),
        }
    }

    /// Receive bytes that nobody reads, as they arrive.
    pub fn receive_raw(&self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::receive(&self.socket, buffer)
    }

    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => sys::send(&self.socket, bytes),
            Some(tls) => tls.send(&self.socket, [bytes, &[]]),
        }
    }

    pub fn send_both(&mut self, first: &[u8], second: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => sys::send_both(&self.socket, first, second),
            Some(tls) => tls.send(&self.socket, [first, second]),
        }
    }

    pub fn send_before_file(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => sys::send_before_file(&self.socket, bytes),
            Some(tls) => tls.send(&self.socket, [bytes, &[]]),
        }
    }

    /// Send a part of a file; with TLS it is read and encrypted.
    pub fn send_file(&mut self, part: &FilePart, from: usize, bytes: usize) -> io::Result<usize> {
        match &mut self.tls {
            None => part.send(&self.socket, from, bytes),
            Some(tls) => match tls.send_owed(&self.socket)? {
                0 => part.read(from, bytes, |piece| tls.send(&self.socket, [piece, &[]])),
                sent => Ok(sent),
            },
        }
    }

    /// Whether bytes have arrived that were not read.
    pub fn has_bytes(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_more()) || sys::has_bytes(&self.socket)
    }

    /// The same, unless nothing is read before the host has chosen a certificate.
    pub fn has_news(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.asked().is_none()) && self.has_bytes()
    }

    /// Bytes that have arrived and were not read; with TLS, that many or a few less.
    pub fn unread_bytes(&self) -> u64 {
        self.tls.as_ref().map_or(0, |tls| tls.plain_bytes() as u64) + sys::unread_bytes(&self.socket)
    }

    /// The kernel has space. Whether it has taken what TLS itself had to send.
    pub fn flush(&mut self) -> bool {
        self.tls.as_mut().is_none_or(|tls| tls.flush(&self.socket).is_ok())
    }

    /// All was sent: notify a client with TLS.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close(&self.socket);
        }
    }

    /// Announce that nothing more will be sent.
    pub fn shut_writing(&mut self) {
        self.close();
        sys::shut_writing(&self.socket);
    }
}

impl AsRawFd for Transport {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
