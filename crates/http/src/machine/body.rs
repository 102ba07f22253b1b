//! The body of a request while it is read: how many of the bytes after the head belong to it. Like the
//! chunked decoder it stores no bytes of the content.

use crate::{
    chunked::{Chunked, Decoded},
    head::Framing,
    limits::{Limits, Refusal},
};

#[derive(Clone, Debug)]
pub enum Body {
    /// Bytes that remain.
    Length(u64),
    Chunked(Chunked),
}

impl Body {
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Chunked::default()),
        }
    }

    /// Bytes that remain, if the length is known.
    pub const fn left(&self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(*left),
            Self::Chunked(_) => None,
        }
    }

    /// The trailer lines of a body that has ended.
    pub fn take_trailers(&mut self) -> Vec<u8> {
        match self {
            Self::Length(_) => Vec::new(),
            Self::Chunked(chunked) => std::mem::take(&mut chunked.trailer_lines),
        }
    }

    /// Decode the beginning of `data` in place; see [`Chunked::decode`].
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
