//! The head of a request: request line and fields, by `httparse`, then what RFC 9110 and 9112 ask beyond
//! syntax.
//!
//! Strict where two readers of the same bytes could disagree about where a message ends: those heads are
//! refused, never repaired. Nothing is copied; a head is offsets into the bytes it was parsed from.

use std::mem::MaybeUninit;

use memchr::memchr_iter;

pub use crate::layout::Method;
use crate::limits::{HEADERS_MAX, Limits, Refusal};

/// A stretch of the bytes that a head was parsed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Its first byte.
    pub at: u32,
    /// Its length.
    pub len: u32,
}

impl Span {
    /// The bytes.
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.at as usize..][..self.len as usize]
    }
}

/// A field: its name as it was written, its value without the blanks around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: Span,
    /// The value.
    pub value: Span,
}

impl Method {
    /// The method with that name. Names are case-sensitive.
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

/// How the bytes after a head are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes of body.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// A head that was accepted.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The method's name.
    pub method_name: Span,
    /// The method.
    pub method: Method,
    /// The target.
    pub target: Span,
    /// How the body is framed.
    pub framing: Framing,
    /// HTTP/1.0.
    pub is_old: bool,
    /// The client keeps the connection.
    pub keeps: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects: bool,
    /// Bytes of the head, up to the body's first.
    pub bytes: usize,
}

/// What parsing came to.
#[derive(Clone, Copy, Debug)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// A head; its fields are in the list that was given.
    Whole(Head),
}

/// Parse the head that `input` begins with.
///
/// # Errors
///
/// The refusal, when it is malformed or passes a limit.
pub fn parse(input: &[u8], limits: &Limits, fields: &mut Vec<Field>) -> Result<Parsed, Refusal> {
    parse_as(input, input, limits, fields)
}

/// Parse `text`, which is `input` but for the minor version; offsets and line ends are those of `input`.
fn parse_as(input: &[u8], text: &[u8], limits: &Limits, fields: &mut Vec<Field>) -> Result<Parsed, Refusal> {
    let mut memory = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let room = &mut memory[..limits.headers_max.min(HEADERS_MAX)];
    let mut request = httparse::Request::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_request_with_uninit_headers(&mut request, text, room);
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
    let whole = Place(text);
    let mut head = Head {
        method_name: whole.span(method.as_bytes()),
        method: Method::named(method.as_bytes()),
        target: whole.span(target.as_bytes()),
        framing: Framing::Length(0),
        is_old: version == 0,
        keeps: version == 1,
        expects: false,
        bytes,
    };
    fields.clear();
    let mut seen = Seen::default();
    for header in request.headers.iter() {
        seen.field(header.name.as_bytes(), header.value, &mut head)?;
        fields.push(Field { name: whole.span(header.name.as_bytes()), value: whole.span(header.value) });
    }
    check_lines(input, &head, fields)?;
    seen.finish(&mut head, limits)?;
    check_target(method.as_bytes(), target.as_bytes())?;
    Ok(Parsed::Whole(head))
}

/// Whether the head that `input` begins with, which may be no whole one, asks by HEAD.
pub fn is_for_head(input: &[u8]) -> bool {
    input.trim_ascii_start().starts_with(b"HEAD ")
}

/// Where slices of a buffer lie in it.
struct Place<'a>(&'a [u8]);

impl Place<'_> {
    fn span(&self, part: &[u8]) -> Span {
        let at = (part.as_ptr() as usize).wrapping_sub(self.0.as_ptr() as usize);
        // A value of no bytes may point anywhere.
        Span { at: if part.is_empty() { 0 } else { at as u32 }, len: part.len() as u32 }
    }
}

fn still_partial(input: &[u8], limits: &Limits) -> Result<Parsed, Refusal> {
    check_line_ends(input)?;
    // Empty lines before a request are skipped, and count as part of its head.
    let line = input.trim_ascii_start();
    let line_end = memchr::memchr(b'\n', line).unwrap_or(line.len());
    // The method and two blanks, at least, surround the target.
    if memchr::memchr(b' ', &line[..line_end]).is_some_and(|at| {
        let target = &line[at + 1..line_end];
        memchr::memchr(b' ', target).unwrap_or(target.len()) > limits.target_bytes_max
    }) {
        return Err(Refusal::of(414, "target too long"));
    }
    // One of just that length is not read on, so it cannot end any more.
    if input.len() >= limits.header_bytes_max {
        return Err(Refusal::of(431, "head too long"));
    }
    Ok(Parsed::Partial)
}

/// The same as [`check_line_ends`] for a head that is whole, looking only where its lines end.
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

/// Every line ends with CR LF: a line feed alone is a line end for some readers only (RFC 9112, 2.2).
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
        // Looked at before; a second look finds a version of ours.
        Error::Version => version_refusal(input),
        Error::HeaderName => Refusal::bad("field name"),
        Error::HeaderValue => Refusal::bad("field value"),
        Error::NewLine => Refusal::bad("line end"),
        Error::Token => Refusal::bad("method or target"),
        Error::Status => Refusal::bad("status line"),
    }
}

/// A later minor version than 1.1 is read as 1.1, the highest that this server knows (RFC 9110, 2.5): parsed
/// from a copy of the head that says so. Nothing but the version differs, so the offsets are the same.
#[cold]
fn parse_later_version(input: &[u8], limits: &Limits, fields: &mut Vec<Field>) -> Result<Parsed, Refusal> {
    let word = version_word(input);
    if !matches!(word, [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9']) {
        return Err(version_refusal(input));
    }
    let minor_at = Place(input).span(word).at as usize + 7;
    // One byte more than a head may have shows that it has more.
    let mut text = input[..input.len().min(limits.header_bytes_max + 1)].to_vec();
    match text.get_mut(minor_at) {
        Some(minor) => *minor = b'1',
        None => return Err(Refusal::of(431, "head too long")),
    }
    parse_as(input, &text, limits, fields)
}

/// What the request line has where the version belongs, up to the end of the line or of the input.
fn version_word(input: &[u8]) -> &[u8] {
    let line = input.trim_ascii_start();
    let line = &line[..memchr::memchr(b'\r', line).unwrap_or(line.len())];
    line.splitn(3, |&byte| byte == b' ').nth(2).unwrap_or_default()
}

/// A version that is well written and not ours is 505, anything else in its place 400 (RFC 9112, 2.3).
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

/// Whether the line so far ends with the beginning of a version, so that which one it is stays to be seen.
fn is_version_begun(input: &[u8]) -> bool {
    let line = input.trim_ascii_start();
    let word = line.splitn(3, |&byte| byte == b' ').nth(2).unwrap_or_default();
    word.len() < 8
        && word.iter().enumerate().all(|(at, byte)| match at {
            5 | 7 => byte.is_ascii_digit(),
            _ => *byte == b"HTTP/?.?"[at],
        })
}

/// What the fields seen so far say about the message as a whole.
#[derive(Default)]
struct Seen {
    length: Option<u64>,
    codings: bool,
    chunked: bool,
    unknown_coding: bool,
    host: bool,
    close: bool,
    keep_alive: bool,
}

impl Seen {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8], head: &mut Head) -> Result<(), Refusal> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.host(value),
            6 if name.eq_ignore_ascii_case(b"expect") => self.expect(value, head),
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.connection(value);
                Ok(())
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => self.content_length(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.transfer_encoding(value),
            _ => Ok(()),
        }
    }

    fn host(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.host {
            return Err(Refusal::bad("more than one host"));
        }
        self.host = true;
        if is_authority(value) { Ok(()) } else { Err(Refusal::bad("host")) }
    }

    fn expect(&self, value: &[u8], head: &mut Head) -> Result<(), Refusal> {
        let mut members = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        if !members.all(|member| member.eq_ignore_ascii_case(b"100-continue")) {
            return Err(Refusal::of(417, "expectation"));
        }
        // One from a client of HTTP/1.0 is ignored (RFC 9110, 10.1.1).
        head.expects = !head.is_old;
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.length.is_some() {
            return Err(Refusal::bad("more than one content-length"));
        }
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(Refusal::bad("content-length"));
        }
        let digits = value.iter().try_fold(0_u64, |sum, digit| {
            sum.checked_mul(10).and_then(|sum| sum.checked_add(u64::from(digit - b'0')))
        });
        // More than fits is more than is allowed.
        self.length = Some(digits.unwrap_or(u64::MAX));
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.codings = true;
        for coding in value.split(|&byte| byte == b',') {
            let coding = coding.trim_ascii();
            if self.chunked {
                return Err(Refusal::bad("a coding after chunked"));
            }
            if coding.eq_ignore_ascii_case(b"chunked") {
                self.chunked = true;
            } else if coding.is_empty() || coding.eq_ignore_ascii_case(b"identity") {
                return Err(Refusal::bad("transfer-encoding"));
            } else {
                self.unknown_coding = true;
            }
        }
        Ok(())
    }

    fn finish(&self, head: &mut Head, limits: &Limits) -> Result<(), Refusal> {
        if self.codings {
            if self.length.is_some() {
                return Err(Refusal::bad("content-length with transfer-encoding"));
            }
            if head.is_old {
                return Err(Refusal::bad("transfer-encoding in HTTP/1.0"));
            }
            if !self.chunked {
                return Err(Refusal::bad("chunked is not the last coding"));
            }
            if self.unknown_coding {
                return Err(Refusal::of(501, "transfer coding"));
            }
            head.framing = Framing::Chunked;
        } else if let Some(length) = self.length {
            if length > limits.body_bytes_max {
                return Err(Refusal::of(413, "body too long"));
            }
            head.framing = Framing::Length(length);
        }
        if !self.host && !head.is_old {
            return Err(Refusal::bad("no host"));
        }
        head.expects &= head.framing != Framing::Length(0);
        head.keeps = !self.close && (head.keeps || self.keep_alive);
        Ok(())
    }
}

/// `uri-host [":" port]`, not empty and without user information (RFC 9110, 4.2 and 7.2).
pub fn is_authority(value: &[u8]) -> bool {
    let (host, port) = match value.first() {
        None | Some(b':') => return false,
        Some(b'[') => {
            let Some(end) = memchr::memchr(b']', value) else { return false };
            let address = &value[1..end];
            let fits = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
            if !address.iter().all(fits) || !address.contains(&b':') {
                return false;
            }
            (&value[..=end], &value[end + 1..])
        }
        Some(_) => value.split_at(memchr::memchr(b':', value).unwrap_or(value.len())),
    };
    let is_name = host[0] == b'[' || host.iter().all(|&byte| is_name_byte(byte));
    let is_end = match port {
        [] | [b':'] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit) && is_port(digits),
        _ => false,
    };
    is_name && is_end
}

/// Whether up to five digits are a port that there can be.
fn is_port(digits: &[u8]) -> bool {
    digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')) <= u32::from(u16::MAX)
}

/// What a registered name may consist of: unreserved, sub-delims, percent signs (RFC 3986, 3.2.2).
const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'%'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
        )
}

/// What a byte of a target may be part of (RFC 3986, 2 and 3.3).
const IN_PATH: u8 = 1;
const IN_QUERY: u8 = 2;

/// Bytes of a target. A path has the characters that a URI has, and no others: whoever resolves it by the URL
/// standard would turn `\` into `/`, after a proxy has applied its rules to the path that it saw. A query
/// has those as well that the URL standard leaves in one, so that browsers send them: nobody changes them.
static TARGET_BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0x21;
    while byte <= 0x7e {
        table[byte] = match byte as u8 {
            b'"' | b'#' | b'<' | b'>' => 0,
            b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => IN_QUERY,
            _ => IN_PATH | IN_QUERY,
        };
        byte += 1;
    }
    table
};

/// Whether every byte of a target may be where it is.
fn has_target_bytes(target: &[u8]) -> bool {
    let query_at = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = target.split_at(query_at);
    let are =
        |bytes: &[u8], place: u8| bytes.iter().all(|&byte| TARGET_BYTES[usize::from(byte)] & place != 0);
    are(path, IN_PATH) && are(query, IN_QUERY)
}

/// The form of the target fits the method (RFC 9112, 3.2), and its bytes are those of a URI without fragment.
fn check_target(method: &[u8], target: &[u8]) -> Result<(), Refusal> {
    match method {
        b"CONNECT" => return Err(Refusal::of(501, "CONNECT")),
        b"TRACE" => return Err(Refusal::of(501, "TRACE")),
        _ => {}
    }
    if !has_target_bytes(target) {
        return Err(Refusal::bad("target"));
    }
    match target {
        [b'/', ..] => Ok(()),
        b"*" if method == b"OPTIONS" => Ok(()),
        _ => {
            let colon = memchr::memchr(b':', target).unwrap_or(target.len());
            let (scheme, after) = target.split_at(colon);
            let is_secure = scheme.eq_ignore_ascii_case(b"https");
            let Some(rest) = after.strip_prefix(b"://") else {
                return Err(Refusal::bad("form of the target"));
            };
            if !is_secure && !scheme.eq_ignore_ascii_case(b"http") {
                return Err(Refusal::bad("form of the target"));
            }
            let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
            if !is_authority(&rest[..end]) {
                return Err(Refusal::bad("authority of the target"));
            }
            // The scheme is part of the target, and this connection is not secured (RFC 9110, 7.4).
            if is_secure { Err(Refusal::of(421, "https on a connection without TLS")) } else { Ok(()) }
        }
    }
}

#[cfg(test)]
mod tests;
