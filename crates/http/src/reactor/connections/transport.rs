//! What the bytes of a connection go through: a socket, with TLS or without, or a stream of another
//! connection. What the reactor reads and sends is plaintext.
//!
//! Without TLS each call is the system's behind one branch, always the same for a server.

use std::{io, mem, net::SocketAddr, os::fd::OwnedFd};

use crate::{files::FilePart, http2::Stream, sys, tls::Session};

pub enum Transport {
    Plain(OwnedFd),
    Secure(OwnedFd, Box<Session>),
    /// A WebSocket over HTTP/2. The selector has no descriptor of it: its carrier has the events.
    Stream(Box<Stream>),
}

impl Transport {
    const fn fd(&self) -> Option<&OwnedFd> {
        match self {
            Self::Plain(socket) | Self::Secure(socket, _) => Some(socket),
            Self::Stream(_) => None,
        }
    }

    #[inline]
    pub const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    pub const fn is_secure(&self) -> bool {
        matches!(self, Self::Secure(..))
    }

    /// Whether the client has agreed on HTTP/2.
    pub fn is_http2(&self) -> bool {
        matches!(self, Self::Secure(_, tls) if tls.is_http2())
    }

    /// The TLS of a connection with its socket.
    pub fn session(&mut self) -> Option<(&mut Session, &OwnedFd)> {
        match self {
            Self::Secure(socket, tls) => Some((tls, socket)),
            _ => None,
        }
    }

    /// The stream, in place of a socket.
    #[inline]
    pub const fn stream(&self) -> Option<&Stream> {
        match self {
            Self::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// Continue without TLS: its client does not use it.
    pub fn become_plain(&mut self) {
        *self = match mem::replace(self, Self::Stream(Box::default())) {
            Self::Secure(socket, _) => Self::Plain(socket),
            other => other,
        };
    }

    /// Receive plaintext.
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => sys::receive(socket, buffer),
            Self::Secure(socket, tls) => tls.receive(socket, buffer),
            Self::Stream(stream) => stream.receive(buffer),
        }
    }

    /// Receive bytes that nobody reads, as they arrive.
    pub fn receive_raw(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fd().map_or(Ok(0), |socket| sys::receive(socket, buffer))
    }

    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => sys::send(socket, bytes),
            Self::Secure(socket, tls) => tls.send(socket, [bytes, &[]]),
            Self::Stream(stream) => stream.send(bytes),
        }
    }

    pub fn send_both(&mut self, first: &[u8], second: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => sys::send_both(socket, first, second),
            Self::Secure(socket, tls) => tls.send(socket, [first, second]),
            Self::Stream(stream) => stream.send_both(first, second),
        }
    }

    pub fn send_before_file(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => sys::send_before_file(socket, bytes),
            _ => self.send(bytes),
        }
    }

    /// Send a part of a file; with TLS it is read and encrypted.
    pub fn send_file(&mut self, part: &FilePart, from: usize, bytes: usize) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => part.send(socket, from, bytes),
            Self::Secure(socket, tls) => match tls.send_owed(socket)? {
                0 => part.read(from, bytes, |piece| tls.send(socket, [piece, &[]])),
                sent => Ok(sent),
            },
            Self::Stream(stream) => part.read(from, bytes, |piece| stream.send(piece)),
        }
    }

    /// Whether bytes have arrived that were not read; of a stream, its carrier has them.
    pub fn has_bytes(&self) -> bool {
        matches!(self, Self::Secure(_, tls) if tls.has_more()) || self.fd().is_some_and(sys::has_bytes)
    }

    /// The same, unless nothing is read before the host has chosen a certificate.
    pub fn has_news(&self) -> bool {
        !matches!(self, Self::Secure(_, tls) if tls.asked().is_some()) && self.has_bytes()
    }

    /// Bytes that have arrived and were not read; with TLS, that many or a few less.
    pub fn unread_bytes(&self) -> u64 {
        let plain = if let Self::Secure(_, tls) = self { tls.plain_bytes() as u64 } else { 0 };
        plain + self.fd().map_or(0, sys::unread_bytes)
    }

    /// Bytes that were sent and that the client's kernel has not acknowledged.
    pub fn unacked_bytes(&self) -> u64 {
        self.fd().map_or(0, sys::unacked_bytes)
    }

    /// The address of the other end.
    pub fn address(&self) -> Option<SocketAddr> {
        let address = sys::address_of(self.fd()?, true)?;
        Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }

    /// The kernel has space. Whether it has taken what TLS itself had to send.
    pub fn flush(&mut self) -> bool {
        self.session().is_none_or(|(tls, socket)| tls.flush(socket).is_ok())
    }

    /// All was sent: notify a client with TLS, or one of a stream.
    pub fn close(&mut self) {
        match self {
            Self::Plain(_) => {}
            Self::Secure(socket, tls) => tls.close(socket),
            Self::Stream(stream) => stream.close(),
        }
    }

    /// Announce that nothing more will be sent.
    pub fn shut_writing(&mut self) {
        self.close();
        if let Some(socket) = self.fd() {
            sys::shut_writing(socket);
        }
    }

    /// When it is closed, drop what was not sent, and reset the connection.
    pub fn reset_on_close(&mut self) {
        match self {
            Self::Plain(socket) | Self::Secure(socket, _) => sys::reset_on_close(socket),
            Self::Stream(stream) => stream.reset(),
        }
    }
}

#[cfg(test)]
impl std::os::fd::AsRawFd for Transport {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd().map_or(-1, std::os::fd::AsRawFd::as_raw_fd)
    }
}
