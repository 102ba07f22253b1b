//! The head of a request: request line and fields, parsed by `httparse`, then checked for what RFC 9110 and
//! RFC 9112 require beyond syntax.
//!
//! Heads are refused, never repaired, if two readers could disagree about where the head or its body ends.
//! Nothing is copied: a head consists of offsets into the bytes it was parsed from.

mod cache;
mod fields;
mod target;

use std::mem::MaybeUninit;

use memchr::memchr_iter;

pub use crate::layout::Method;
use crate::limits::{HEADERS_MAX, Limits, Refusal};
pub use cache::Parser;
pub use fields::MessageFields;
pub use target::check_target;

/// A range of the bytes that a head was parsed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub at: u32,
    pub len: u32,
}

/// Its name as received, its value without surrounding whitespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    pub name: Span,
    pub value: Span,
}

impl Method {
    /// Method names are case-sensitive (RFC 9110, 9.1).
    pub fn named(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"PATCH" => Self::Patch,
            b"OPTIONS" => Self::Options,
            _ => Self::Other,
        }
    }
}

/// How the body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
}

/// A head that was accepted.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub method_name: Span,
    pub method: Method,
    pub target: Span,
    pub framing: Framing,
    pub is_http10: bool,
    /// The client allows the connection to persist.
    pub keeps_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects: bool,
    /// The client asks for a WebSocket.
    pub upgrades: bool,
    /// Length of the head; the body follows.
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// The head; its fields are in the list that was passed.
    Whole(Head),
}

/// Parse the head that `input` begins with. Its fields replace those in `fields`.
pub fn parse(input: &[u8], limits: &Limits, fields: &mut Vec<Field>) -> Result<Parsed, Refusal> {
    parse_as(input, input, limits, fields)
}

/// Parse `text`, which differs from `input` only in the minor version; offsets are the same in both.
fn parse_as(input: &[u8], text: &[u8], limits: &Limits, fields: &mut Vec<Field>) -> Result<Parsed, Refusal> {
    let mut array = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let memory = &mut array[..limits.headers_max.min(HEADERS_MAX)];
    let mut request = httparse::Request::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_request_with_uninit_headers(&mut request, text, memory);
    let bytes = match parsed {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return still_partial(input, limits),
        Err(httparse::Error::Version) if is_version_begun(text) => return still_partial(input, limits),
        Err(httparse::Error::Version) => return parse_later_version(text, limits, fields),
        Err(error) => return Err(refusal_of(error, input)),
    };
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(Refusal::bad("no request line"));
    };
    if target.len() > limits.target_bytes_max {
        return Err(Refusal::of(414, "target too long"));
    }
    if bytes > limits.header_bytes_max {
        return Err(Refusal::of(431, "head too long"));
    }
    let whole = Base(text);
    let mut head = Head {
        method_name: whole.span(method.as_bytes()),
        method: Method::named(method.as_bytes()),
        target: whole.span(target.as_bytes()),
        framing: Framing::Length(0),
        is_http10: version == 0,
        keeps_alive: version == 1,
        expects: false,
        upgrades: false,
        bytes,
    };
    fields.clear();
    let mut message = MessageFields::default();
    for header in request.headers.iter() {
        message.add(header.name.as_bytes(), header.value, &mut head)?;
        fields.push(Field { name: whole.span(header.name.as_bytes()), value: whole.span(header.value) });
    }
    check_lines(input, &head, fields)?;
    if head.is_http10 {
        // It has no upgrades: the field is as if absent (RFC 9110, 7.8).
        fields.retain(|field| {
            !text[field.name.at as usize..][..field.name.len as usize].eq_ignore_ascii_case(b"upgrade")
        });
    }
    message.finish(&mut head, limits)?;
    check_target(method.as_bytes(), target.as_bytes(), limits.is_secure)?;
    Ok(Parsed::Whole(head))
}

/// Whether `input`, which may be a part of a head, begins a HEAD request.
pub fn is_for_head(input: &[u8]) -> bool {
    input.trim_ascii_start().starts_with(b"HEAD ")
}

/// Converts slices of a buffer to offsets.
struct Base<'a>(&'a [u8]);

impl Base<'_> {
    fn span(&self, part: &[u8]) -> Span {
        let at = (part.as_ptr() as usize).wrapping_sub(self.0.as_ptr() as usize);
        // An empty slice may point anywhere.
        Span { at: if part.is_empty() { 0 } else { at as u32 }, len: part.len() as u32 }
    }
}

fn still_partial(input: &[u8], limits: &Limits) -> Result<Parsed, Refusal> {
    check_line_ends(input)?;
    // Empty lines before a request are skipped and count as part of its head (RFC 9112, 2.2).
    let line = input.trim_ascii_start();
    let line_end = memchr::memchr(b'\n', line).unwrap_or(line.len());
    // The target ends at the second space of the request line.
    if memchr::memchr(b' ', &line[..line_end]).is_some_and(|at| {
        let target = &line[at + 1..line_end];
        memchr::memchr(b' ', target).unwrap_or(target.len()) > limits.target_bytes_max
    }) {
        return Err(Refusal::of(414, "target too long"));
    }
    // Bytes beyond the limit are not read, so a head of that length cannot become complete.
    if input.len() >= limits.header_bytes_max {
        return Err(Refusal::of(431, "head too long"));
    }
    Ok(Parsed::Partial)
}

/// [`check_line_ends`] for a complete head: looks only where its lines end.
#[inline]
fn check_lines(input: &[u8], head: &Head, fields: &[Field]) -> Result<(), Refusal> {
    let ends_well = |at: usize| at >= 2 && input[at - 2..at] == *b"\r\n";
    let before = &input[..head.method_name.at as usize];
    let is_well = (before.is_empty() || check_line_ends(before).is_ok())
        && fields.iter().all(|field| ends_well(field.name.at as usize))
        && ends_well(head.bytes)
        && ends_well(head.bytes - 2);
    if is_well { Ok(()) } else { Err(Refusal::bad("line feed without carriage return")) }
}

/// Every line ends with CR LF: only some readers accept a bare line feed (RFC 9112, 2.2).
fn check_line_ends(head: &[u8]) -> Result<(), Refusal> {
    for at in memchr_iter(b'\n', head) {
        if at == 0 || head[at - 1] != b'\r' {
            return Err(Refusal::bad("line feed without carriage return"));
        }
    }
    Ok(())
}

fn refusal_of(error: httparse::Error, input: &[u8]) -> Refusal {
    use httparse::Error;
    match error {
        Error::TooManyHeaders => Refusal::of(431, "too many fields"),
        // Unsupported versions were handled by the caller; this one has been parsed as HTTP/1.1.
        Error::Version => version_refusal(input),
        Error::HeaderName => Refusal::bad("field name"),
        Error::HeaderValue => Refusal::bad("field value"),
        Error::NewLine => Refusal::bad("line end"),
        Error::Token => Refusal::bad("method or target"),
        Error::Status => Refusal::bad("status line"),
    }
}

/// A minor version above 1.1 is read as 1.1, the highest supported (RFC 9110, 2.5): a copy of the head with
/// that version is parsed. Only one digit differs, so the offsets are the same.
#[cold]
fn parse_later_version(input: &[u8], limits: &Limits, fields: &mut Vec<Field>) -> Result<Parsed, Refusal> {
    let word = version_word(input);
    if !matches!(word, [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9']) {
        return Err(version_refusal(input));
    }
    let minor_at = Base(input).span(word).at as usize + 7;
    // One byte beyond the limit shows that the head is too long.
    let mut text = input[..input.len().min(limits.header_bytes_max + 1)].to_vec();
    match text.get_mut(minor_at) {
        Some(minor) => *minor = b'1',
        None => return Err(Refusal::of(431, "head too long")),
    }
    parse_as(input, &text, limits, fields)
}

/// The third word of the request line, up to the end of the line or of the input.
fn version_word(input: &[u8]) -> &[u8] {
    let line = input.trim_ascii_start();
    let line = &line[..memchr::memchr(b'\r', line).unwrap_or(line.len())];
    line.splitn(3, |&byte| byte == b' ').nth(2).unwrap_or_default()
}

/// A well-formed but unsupported version is 505, anything else 400 (RFC 9112, 2.3).
fn version_refusal(input: &[u8]) -> Refusal {
    match version_word(input) {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Refusal::of(505, "version")
        }
        _ => Refusal::bad("version"),
    }
}

/// Whether the input ends within a well-formed version, so that more bytes are needed.
fn is_version_begun(input: &[u8]) -> bool {
    let line = input.trim_ascii_start();
    let word = line.splitn(3, |&byte| byte == b' ').nth(2).unwrap_or_default();
    word.len() < 8
        && word.iter().enumerate().all(|(at, byte)| match at {
            5 | 7 => byte.is_ascii_digit(),
            _ => *byte == b"HTTP/?.?"[at],
        })
}

#[cfg(test)]
mod tests;
