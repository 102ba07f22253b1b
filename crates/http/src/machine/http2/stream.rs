//! A stream whose DATA frames are the bytes of a WebSocket (RFC 8441): it is read and written like a socket.
//!
//! Windows are its back-pressure: the client's grows by what is read, and no more is written than its own and
//! the buffer of `h2` have room for. The end of the stream is that of a socket, its reset that of one, too.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};

use super::{Http2, fields::response_of};
use crate::connection::Response;

/// The response to a request for a WebSocket where a handler has another one: as a success it would be taken
/// for a WebSocket.
pub const NO_SOCKET: Response<'_> = Response { status: 501, kind: 1, headers: b"" };
pub const NO_SOCKET_WHY: &[u8] = b"no WebSocket here\n";

/// Bytes for which room is asked at once, so that other streams of the connection have some.
const SENT_BYTES_MAX: usize = 64 * 1024;

/// Notices that a stream has bytes, room, or an end.
#[derive(Debug, Default)]
pub struct Bell(AtomicBool);

impl Bell {
    /// Whether it has rung since the last call.
    pub fn take(&self) -> bool {
        // Relaxed: the thread that polls the connection rings it, and no other looks.
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // Relaxed: as in `take`.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How the client has ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Reset,
}

#[derive(Debug, Default)]
pub struct Stream {
    /// The slot of its connection.
    pub carrier: u32,
    /// Until this side has ended it.
    halves: Option<(SendStream<Bytes>, RecvStream)>,
    /// Received and not read.
    rest: Bytes,
    /// Whether `receive` would find more, or the end, without an event.
    pub has_more: bool,
    end: Option<End>,
    bell: Arc<Bell>,
}

impl Stream {
    pub fn new(send: SendStream<Bytes>, receive: RecvStream, carrier: u32) -> Self {
        Self { carrier, halves: Some((send, receive)), ..Self::default() }
    }

    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// As the `recv` of a socket: 0 at the end. Less than the buffer has room for is all that there is.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut context = Context::from_waker(&waker);
        let Some((_, receive)) = &mut self.halves else { return Err(io::ErrorKind::NotConnected.into()) };
        let mut filled = 0;
        self.has_more = true;
        while filled < buffer.len() {
            if self.rest.is_empty() {
                match receive.poll_data(&mut context) {
                    Poll::Ready(Some(Ok(bytes))) => {
                        self.rest = bytes;
                        continue;
                    }
                    Poll::Ready(Some(Err(_))) => self.end = Some(End::Reset),
                    Poll::Ready(None) => self.end = Some(End::Closed),
                    Poll::Pending => self.has_more = false,
                }
                break;
            }
            let bytes = self.rest.len().min(buffer.len() - filled);
            buffer[filled..filled + bytes].copy_from_slice(&self.rest.split_to(bytes));
            // It cannot fail: these bytes were received.
            let _ = receive.flow_control().release_capacity(bytes);
            filled += bytes;
        }
        match self.end {
            _ if filled > 0 => Ok(filled),
            None => Err(io::ErrorKind::WouldBlock.into()),
            Some(End::Closed) => Ok(0),
            Some(End::Reset) => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    /// As the `send` of a socket. After a part, the bell rings when there is room for more.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut context = Context::from_waker(&waker);
        let Some((send, _)) = &mut self.halves else { return Err(io::ErrorKind::NotConnected.into()) };
        let mut sent = 0;
        while sent < bytes.len() {
            let most = (bytes.len() - sent).min(SENT_BYTES_MAX);
            send.reserve_capacity(most);
            let room = match send.capacity() {
                0 => match send.poll_capacity(&mut context) {
                    Poll::Pending => break,
                    Poll::Ready(Some(Ok(room))) => room,
                    Poll::Ready(_) => return Err(io::ErrorKind::ConnectionReset.into()),
                },
                room => room,
            };
            let piece = &bytes[sent..sent + room.min(most)];
            if send.send_data(Bytes::copy_from_slice(piece), false).is_err() {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            sent += piece.len();
        }
        if sent > 0 { Ok(sent) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    pub fn send_both(&mut self, first: &[u8], second: &[u8]) -> io::Result<usize> {
        let sent = if first.is_empty() { 0 } else { self.send(first)? };
        if sent < first.len() {
            return Ok(sent);
        }
        match self.send(second) {
            Ok(more) => Ok(sent + more),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && sent > 0 => Ok(sent),
            Err(error) => Err(error),
        }
    }

    /// End this side; what was sent before arrives.
    pub fn close(&mut self) {
        if let Some((mut send, _)) = self.halves.take() {
            // It fails if the client has reset the stream.
            let _ = send.send_data(Bytes::new(), true);
        }
    }

    /// Drop what has not been written, and reset the stream, as RFC 8441 demands in place of a TCP reset.
    pub fn reset(&mut self) {
        if let Some((mut send, _)) = self.halves.take() {
            send.send_reset(Reason::CANCEL);
        }
    }
}

impl Http2 {
    /// Grant a WebSocket to the exchange that asked for it: `lines` are the response's. `None`: it did not
    /// ask, has its response, or its client has disconnected.
    pub fn upgrade(&mut self, stamp: u32, lines: &[u8], carrier: u32) -> Option<Stream> {
        let index = self.position(stamp).filter(|index| {
            let exchange = &self.exchanges[*index];
            exchange.connects && !exchange.has_begun()
        })?;
        let head = response_of(&Response { status: 200, kind: 0, headers: lines }, None, &self.date.1);
        if !self.exchanges[index].start(head, None) {
            return None; // `news` reports it
        }
        self.exchanges.remove(index)?.into_stream(carrier)
    }

    /// A WebSocket has this slot, and a stream with this bell.
    pub fn add_socket(&mut self, slot: u32, bell: Arc<Bell>) {
        self.sockets.push((slot, bell));
    }

    /// It has ended.
    pub fn remove_socket(&mut self, slot: u32, now_ms: u64) {
        self.sockets.retain(|(other, _)| *other != slot);
        self.active_ms = now_ms;
    }

    /// Slots of its WebSockets.
    pub fn sockets(&self) -> impl Iterator<Item = u32> {
        self.sockets.iter().map(|(slot, _)| *slot)
    }

    /// The same, if there is news of them since the last call.
    pub fn rung(&self) -> impl Iterator<Item = u32> {
        self.sockets.iter().filter(|(_, bell)| bell.take()).map(|(slot, _)| *slot)
    }
}
