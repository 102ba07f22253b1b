//! Chunked bodies (RFC 9112, 7.1), decoded in place, however they are split.
//!
//! The decoder stores a state and counts, and of the bytes only those of trailers. Chunk extensions are
//! checked and dropped. The bytes of both are limited over the whole body, so that it cannot consist of them.

use crate::limits::{Limits, Refusal};

/// The position of the next byte in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// First digit of a size.
    SizeFirst,
    /// Further digits.
    Size,
    /// Whitespace where only a semicolon may follow.
    BeforeSemicolon,
    /// After a semicolon, before the extension's name.
    NameFirst,
    Name,
    NameEnd,
    /// After the equals sign.
    ValueFirst,
    /// In a token value.
    Value,
    Quoted,
    /// After a backslash in a quoted value.
    Escaped,
    QuotedEnd,
    /// The line feed of a size line.
    SizeFeed,
    /// Bytes of data that remain in this chunk.
    Data(u64),
    /// The carriage return after data.
    DataReturn,
    /// The line feed after data.
    DataFeed,
    /// First byte of a trailer line, or the carriage return of the last line.
    TrailerFirst,
    TrailerName,
    TrailerValue,
    /// The line feed of a trailer.
    TrailerFeed,
    /// The line feed of the last line.
    LastFeed,
    End,
}

/// The decoder of one body.
#[derive(Clone, Debug)]
pub struct Chunked {
    /// Complete trailer lines, as they were received.
    pub trailer_lines: Vec<u8>,
    at: At,
    size: u64,
    digits: u8,
    /// Bytes of data so far, this chunk's size included.
    total: u64,
    /// Bytes of extensions and trailers so far.
    extra_bytes: usize,
    trailers: usize,
}

/// The result of [`Chunked::decode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that were used.
    pub consumed: usize,
    /// Bytes of the body, at the beginning of the input.
    pub produced: usize,
    pub is_end: bool,
}

const SIZE_DIGITS_MAX: u8 = 16;

impl Default for Chunked {
    fn default() -> Self {
        Self {
            trailer_lines: Vec::new(),
            at: At::SizeFirst,
            size: 0,
            digits: 0,
            total: 0,
            extra_bytes: 0,
            trailers: 0,
        }
    }
}

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Field content and whitespace: of the control bytes only HTAB.
const fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

impl Chunked {
    /// Decode the beginning of `data` in place: the bytes of the body are moved to its front.
    pub fn decode(&mut self, data: &mut [u8], limits: &Limits) -> Result<Decoded, Refusal> {
        let (mut from, mut to) = (0, 0);
        while from < data.len() && self.at != At::End {
            if let At::Data(left) = self.at {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(data.len() - from);
                if from != to {
                    data.copy_within(from..from + here, to);
                }
                (from, to) = (from + here, to + here);
                let left = left - here as u64;
                self.at = if left == 0 { At::DataReturn } else { At::Data(left) };
            } else {
                self.at = self.step(data[from], limits)?;
                from += 1;
            }
        }
        Ok(Decoded { consumed: from, produced: to, is_end: self.at == At::End })
    }

    /// Parse a byte outside of chunk data.
    fn step(&mut self, byte: u8, limits: &Limits) -> Result<At, Refusal> {
        Ok(match (self.at, byte) {
            (At::SizeFirst | At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte)?,
            (At::Size, b'\r') => At::SizeFeed,
            (At::SizeFeed, b'\n') => self.size_end(limits)?,
            (At::DataReturn, b'\r') => At::DataFeed,
            (At::DataFeed, b'\n') => At::SizeFirst,
            (At::TrailerFirst, b'\r') => At::LastFeed,
            (At::LastFeed, b'\n') => At::End,
            (At::TrailerFirst | At::TrailerName | At::TrailerValue | At::TrailerFeed, _) => {
                self.trailer(byte, limits)?
            }
            (At::SizeFirst, _) => return Err(Refusal::bad("chunk size")),
            (At::SizeFeed | At::DataReturn | At::DataFeed | At::LastFeed, _) => {
                return Err(Refusal::bad("line end in a chunked body"));
            }
            _ => self.extension(byte, limits)?,
        })
    }

    fn digit(&mut self, byte: u8) -> Result<At, Refusal> {
        self.digits += 1;
        if self.digits > SIZE_DIGITS_MAX {
            return Err(Refusal::bad("chunk size"));
        }
        let value = (byte as char).to_digit(16).unwrap_or_default();
        self.size = self.size << 4 | u64::from(value);
        Ok(At::Size)
    }

    fn size_end(&mut self, limits: &Limits) -> Result<At, Refusal> {
        let size = std::mem::take(&mut self.size);
        self.digits = 0;
        if size == 0 {
            return Ok(At::TrailerFirst);
        }
        self.total = self.total.saturating_add(size);
        if self.total > limits.body_bytes_max {
            return Err(Refusal::of(413, "body too long"));
        }
        Ok(At::Data(size))
    }

    fn count_extra(&mut self, limits: &Limits) -> Result<(), Refusal> {
        self.extra_bytes += 1;
        if self.extra_bytes > limits.header_bytes_max {
            return Err(Refusal::of(431, "chunk extensions or trailers too long"));
        }
        Ok(())
    }

    /// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`
    fn extension(&mut self, byte: u8, limits: &Limits) -> Result<At, Refusal> {
        self.count_extra(limits)?;
        Ok(match (self.at, byte) {
            (At::Quoted, b'"') => At::QuotedEnd,
            (At::Quoted, b'\\') => At::Escaped,
            (At::Quoted | At::Escaped, _) if is_text(byte) => At::Quoted,
            (At::Size | At::BeforeSemicolon | At::NameEnd | At::Name | At::Value | At::QuotedEnd, b';') => {
                At::NameFirst
            }
            (At::Size | At::BeforeSemicolon | At::Value | At::QuotedEnd, b' ' | b'\t') => At::BeforeSemicolon,
            (At::NameFirst, b' ' | b'\t') => At::NameFirst,
            (At::NameFirst | At::Name, _) if is_token(byte) => At::Name,
            (At::Name | At::NameEnd, b' ' | b'\t') => At::NameEnd,
            (At::Name | At::NameEnd, b'=') => At::ValueFirst,
            (At::ValueFirst, b'"') => At::Quoted,
            (At::ValueFirst, _) if is_blank(byte) => At::ValueFirst,
            (At::ValueFirst | At::Value, _) if is_token(byte) => At::Value,
            (At::Name | At::Value | At::QuotedEnd, b'\r') => At::SizeFeed,
            (At::Size, _) => return Err(Refusal::bad("chunk size")),
            _ => return Err(Refusal::bad("chunk extension")),
        })
    }

    fn trailer(&mut self, byte: u8, limits: &Limits) -> Result<At, Refusal> {
        self.count_extra(limits)?;
        self.trailer_lines.push(byte);
        Ok(match (self.at, byte) {
            (At::TrailerFirst, _) if is_token(byte) => {
                self.trailers += 1;
                if self.trailers > limits.headers_max {
                    return Err(Refusal::of(431, "too many trailers"));
                }
                At::TrailerName
            }
            (At::TrailerName, b':') => At::TrailerValue,
            (At::TrailerName, _) if is_token(byte) => At::TrailerName,
            (At::TrailerValue, b'\r') => At::TrailerFeed,
            (At::TrailerValue, _) if is_text(byte) => At::TrailerValue,
            (At::TrailerFeed, b'\n') => At::TrailerFirst,
            _ => return Err(Refusal::bad("trailer")),
        })
    }
}

#[cfg(test)]
mod tests;
