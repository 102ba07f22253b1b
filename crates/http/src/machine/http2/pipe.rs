//! What the `h2` crate reads from and writes to: bytes in memory, which the reactor moves from and to the
//! socket.

use std::{
    cell::RefCell,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether a connection whose first bytes are these is one of HTTP/2; at least one byte.
pub fn is_preface(bytes: &[u8]) -> bool {
    let there = bytes.len().min(PREFACE.len());
    bytes[..there] == PREFACE[..there]
}

/// The bytes of a connection that are on their way.
#[derive(Debug, Default)]
pub struct Flow {
    /// Received; those before `read` are used.
    pub input: Vec<u8>,
    pub read: usize,
    /// The client sends nothing more.
    pub is_at_end: bool,
    /// To be sent.
    pub output: Vec<u8>,
    /// How many more bytes may be written before some are sent.
    pub room: usize,
    /// Something was to be written when there was no room.
    pub is_blocked: bool,
}

#[derive(Debug)]
pub struct Pipe(pub Rc<RefCell<Flow>>);

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut flow = self.0.borrow_mut();
        let there = &flow.input[flow.read..];
        if there.is_empty() {
            return if flow.is_at_end { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        let bytes = there.len().min(buffer.remaining());
        buffer.put_slice(&there[..bytes]);
        flow.read += bytes;
        if flow.read == flow.input.len() {
            flow.input.clear();
            flow.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut flow = self.0.borrow_mut();
        if flow.output.len() >= flow.room {
            flow.is_blocked = true;
            return Poll::Pending;
        }
        let before = flow.output.len();
        for slice in slices {
            flow.output.extend_from_slice(slice);
        }
        Poll::Ready(Ok(flow.output.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
