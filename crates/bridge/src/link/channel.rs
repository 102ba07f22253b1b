//! One end of a socket: messages out, messages in, neither of which waits.
//!
//! A message is a head of six words and its bytes. Nothing is believed of what arrives: a length is compared
//! with a maximum, and memory grows with the bytes that have come, not with those that were announced.

use std::{
    io::{self, Read, Write},
    ops::Range,
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
};

const WORDS: usize = 6;
const HEAD_BYTES: usize = WORDS * 4;
/// Longest bytes of a message: those of a frame.
const BYTES_MAX: usize = 1 << 30;
/// Bytes that an empty channel makes memory for, and that it keeps memory for.
const CHUNK_BYTES: usize = 1 << 16;
const KEPT_BYTES: usize = 1 << 18;

/// What a message is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Kind {
    /// Parent: run this task. Token, function, depth, serial.
    Task = 1,
    /// Parent: run this broadcast. Function.
    Broadcast = 2,
    /// Parent: a task was cancelled, for this reason. Token, note, serial.
    Abort = 3,
    /// Parent: leave.
    Leave = 4,
    /// Child: it takes up that slot. Zone, slot.
    Join = 5,
    /// Child: a task has ended. Token, status.
    Done = 6,
    /// Child: the broadcast has ended. Status.
    BroadcastDone = 7,
    /// Child: which number has this text? Table.
    Intern = 8,
    /// Child: which text has this number? Table, number.
    Interned = 9,
    /// Parent: the number and its text; 0: none.
    Text = 10,
    /// Child: a link begins. Its number, and those of the parent's channels: what leaves there, what arrives.
    Open = 11,
    /// Child: the result of a task contains streams. Token, and the number of a link that begins.
    Streamed = 12,
    /// A message of a link, of that number.
    Pass = 13,
    /// That link is shut.
    Shut = 14,
    /// Child: the number of its tasks that wait for the other ends of their streams.
    Waits = 15,
}

const KINDS: [Kind; 15] = [
    Kind::Task,
    Kind::Broadcast,
    Kind::Abort,
    Kind::Leave,
    Kind::Join,
    Kind::Done,
    Kind::BroadcastDone,
    Kind::Intern,
    Kind::Interned,
    Kind::Text,
    Kind::Open,
    Kind::Streamed,
    Kind::Pass,
    Kind::Shut,
    Kind::Waits,
];

/// The head of a message, without the length of its bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Head {
    pub kind: Kind,
    /// The token of a task; a zone, a table, a link; a count.
    pub subject: u32,
    /// A function, a status, a note; a slot, a number, a link.
    pub detail: u32,
    pub depth: u32,
    pub serial: u32,
}

impl Head {
    /// Without depth and serial.
    pub const fn new(kind: Kind, subject: u32, detail: u32) -> Self {
        Self { kind, subject, detail, depth: 0, serial: 0 }
    }

    fn encode(self, length: usize) -> [u8; HEAD_BYTES] {
        let words = [self.kind as u32, self.subject, self.detail, self.depth, self.serial, length as u32];
        let mut bytes = [0; HEAD_BYTES];
        for (slot, word) in bytes.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The head and the length that `bytes` begin with; an error when they are not a message.
    fn decode(bytes: &[u8; HEAD_BYTES]) -> io::Result<(Self, usize)> {
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let [kind, subject, detail, depth, serial, length] = words;
        let kind = KINDS.into_iter().find(|known| *known as u32 == kind);
        match kind {
            Some(kind) if length as usize <= BYTES_MAX => {
                Ok((Self { kind, subject, detail, depth, serial }, length as usize))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// One end of a socket.
pub struct Channel {
    stream: UnixStream,
    arrived: Arrived,
    /// What the socket has not taken; what lies before `sent` it has.
    leaving: Vec<u8>,
    sent: usize,
}

/// What has come: from `read` to `filled`.
struct Arrived {
    memory: Vec<u8>,
    read: usize,
    filled: usize,
}

impl Arrived {
    /// Memory behind what has come. It doubles when it is full, so that as much is zeroed as arrives.
    fn room(&mut self) -> &mut [u8] {
        if self.read == self.filled {
            (self.read, self.filled) = (0, 0);
            if self.memory.len() > KEPT_BYTES {
                self.memory = Vec::new();
            }
        }
        if self.filled == self.memory.len() {
            if self.read > 0 {
                self.memory.copy_within(self.read..self.filled, 0);
                (self.read, self.filled) = (0, self.filled - self.read);
            }
            let bytes = (self.filled * 2).max(CHUNK_BYTES);
            self.memory.resize(bytes, 0);
        }
        &mut self.memory[self.filled..]
    }
}

impl Channel {
    /// An end that never waits.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let arrived = Arrived { memory: Vec::new(), read: 0, filled: 0 };
        Ok(Self { stream, arrived, leaving: Vec::new(), sent: 0 })
    }

    pub fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Add a message, and send what the socket takes now.
    pub fn send(&mut self, head: Head, bytes: &[u8]) -> io::Result<()> {
        self.leaving.extend_from_slice(&head.encode(bytes.len()));
        self.leaving.extend_from_slice(bytes);
        self.flush()
    }

    /// Whether something waits until the socket takes it.
    pub const fn is_full(&self) -> bool {
        self.sent < self.leaving.len()
    }

    /// Send what the socket takes now.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.is_full() {
            match self.stream.write(&self.leaving[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.sent = 0;
        self.leaving.clear();
        self.leaving.shrink_to(KEPT_BYTES);
        Ok(())
    }

    /// Read what has come. False: the other end is closed.
    pub fn receive(&mut self) -> io::Result<bool> {
        loop {
            let room = self.arrived.room();
            let most = room.len();
            match self.stream.read(room) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.arrived.filled += count;
                    // Less than there was room for: that was all.
                    if count < most {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// The next message that is complete, and where its bytes are until the next `receive`.
    pub fn next(&mut self) -> io::Result<Option<(Head, Range<usize>)>> {
        let Arrived { memory, read, filled } = &mut self.arrived;
        let Some(head) = memory[*read..*filled].first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let (head, length) = Head::decode(head)?;
        let start = *read + HEAD_BYTES;
        if *filled - start < length {
            return Ok(None);
        }
        *read = start + length;
        Ok(Some((head, start..*read)))
    }

    /// Bytes of a message that `next` returned.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.arrived.memory[range]
    }
}

#[cfg(test)]
mod tests;
