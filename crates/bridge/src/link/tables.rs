//! In a child: interned texts have the numbers of the parent, which is asked for each that is new here.
//!
//! So what either side writes the other can read, and the tables are bounded once. A thread asks once for
//! each text or number and keeps the answer, as it does in the parent. The parent's thread answers in some
//! ten microseconds; without an answer for `ANSWER_MAX` the child ends.

use std::{
    io,
    os::{fd::FromRawFd, unix::net::UnixStream},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use super::{
    channel::{Channel, Head, Kind},
    platform::{self, Awaited},
};
use crate::sync::lock;

/// Longest wait for an answer, in slices of at most `SLICE`.
const ANSWER_MAX: Duration = Duration::from_secs(30);
const SLICE: Duration = Duration::from_millis(10);

static PARENT: OnceLock<Mutex<Channel>> = OnceLock::new();

/// The descriptor of the parent's socket.
#[allow(dead_code, reason = "read where no kernel ends the child with its parent")]
pub(super) fn descriptor() -> Option<i32> {
    PARENT.get().map(|parent| lock(parent).descriptor())
}

/// From now on this process has the tables of its parent.
///
/// # Safety
///
/// `descriptor` is that of an open socket, and nothing else uses it.
pub unsafe fn of_parent(descriptor: i32) -> io::Result<()> {
    platform::keep_to_oneself(descriptor)?;
    // SAFETY: guaranteed by the caller.
    let channel = Channel::new(unsafe { UnixStream::from_raw_fd(descriptor) })?;
    _ = PARENT.set(Mutex::new(channel));
    Ok(())
}

/// The parent's number of a text, 0 without one; `None`: this process has tables of its own.
pub fn intern(table: usize, text: &[u16]) -> Option<u32> {
    let parent = PARENT.get()?;
    let bytes: Vec<u8> = text.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    Some(ask(&mut lock(parent), Head::new(Kind::Intern, table as u32, 0), &bytes).0)
}

/// The parent's text of a number, if there is one; `None`: this process has tables of its own.
pub fn interned(table: usize, number: u32) -> Option<Option<Arc<[u16]>>> {
    let parent = PARENT.get()?;
    let (known, text) = ask(&mut lock(parent), Head::new(Kind::Interned, table as u32, number), &[]);
    Some((known > 0).then_some(text))
}

/// The parent's answer. Without one the parent has ended or cannot go on, and neither can this process.
fn ask(parent: &mut Channel, head: Head, bytes: &[u8]) -> (u32, Arc<[u16]>) {
    let asked = parent.send(head, bytes).and_then(|()| await_answer(parent));
    asked.unwrap_or_else(|_| platform::end_now())
}

fn await_answer(parent: &mut Channel) -> io::Result<(u32, Arc<[u16]>)> {
    let begun = Instant::now();
    loop {
        if let Some((answer, range)) = parent.next()? {
            return Ok((answer.detail, units(parent.bytes(range)).into()));
        }
        let awaited = Awaited::new(parent.descriptor(), parent.is_full());
        platform::wait_for(&mut [awaited], Some(SLICE));
        parent.flush()?;
        if !parent.receive()? || begun.elapsed() > ANSWER_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// A text, of the bytes of a message.
pub(super) fn units(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}
