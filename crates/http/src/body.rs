//! The body of a request that is being read: how much of the bytes after the head belongs to it.
//!
//! Like the chunk decoder it keeps no bytes.

use crate::{
    chunked::{Chunked, Decoded},
    head::Framing,
    limits::{Limits, Refusal},
};

/// A body, as far as it has been read.
#[derive(Clone, Debug)]
pub enum Body {
    /// So many bytes are left.
    Length(u64),
    /// In chunks.
    Chunked(Chunked),
}

impl Body {
    /// One of which nothing has been read.
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Chunked::default()),
        }
    }

    /// Bytes that are left, when that is known.
    pub const fn left(&self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(*left),
            Self::Chunked(_) => None,
        }
    }

    /// Decode what `data` begins with, in place; see [`Chunked::decode`].
    ///
    /// # Errors
    ///
    /// The refusal, when it is malformed or passes a limit.
    pub fn decode(&mut self, data: &mut [u8], limits: &Limits) -> Result<Decoded, Refusal> {
        match self {
            Self::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(data.len());
                *left -= here as u64;
                Ok(Decoded { consumed: here, produced: here, is_end: *left == 0 })
            }
            Self::Chunked(chunked) => chunked.decode(data, limits),
        }
    }
}
