//! Heads between the two forms: of a request, from the map of `h2` to the bytes and offsets that the host
//! reads; of a response, from lines of HTTP/1.1 to that map.

use bytes::Bytes;
use h2::{ext::Protocol, server::SendResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header, request::Parts};

use crate::{
    connection::Response,
    head::{self, Field, Framing, Head, MessageFields, Span, check_target},
    layout::TYPES,
    limits::{Limits, Refusal},
};

/// Bytes written one after the other into the region of the host.
struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<Span> {
        let (at, end) = (self.at, self.at + bytes.len());
        self.bytes.get_mut(at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(Span { at: at as u32, len: bytes.len() as u32 })
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Option<Field> {
        Some(Field { name: self.put(name)?, value: self.put(value)? })
    }

    /// Add to what was written last.
    fn add(&mut self, span: &mut Span, bytes: &[u8]) -> Option<()> {
        span.len += self.put(bytes)?.len;
        Some(())
    }
}

const TOO_LARGE: Refusal = Refusal::of(431, "head too large");

/// Write a request's head into `bytes`, its fields into `fields`. `is_whole`: no body follows.
/// It refuses by the rules of HTTP/1.1 about the host, the length and the expectation.
pub fn write_head(
    parts: &Parts,
    is_whole: bool,
    limits: &Limits,
    bytes: &mut [u8],
    fields: &mut Vec<Field>,
) -> Result<Head, Refusal> {
    fields.clear();
    let connects = parts.method == Method::CONNECT;
    if connects && !asks_socket(parts) {
        return Err(Refusal::of(501, "CONNECT"));
    }
    let own = if connects { 3 } else { 1 };
    if parts.headers.len() + own > limits.headers_max {
        return Err(Refusal::of(431, "too many fields"));
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    if path.len() > limits.target_bytes_max {
        return Err(Refusal::of(414, "target too long"));
    }
    let end = bytes.len().min(limits.header_bytes_max);
    let mut writer = Writer { bytes: &mut bytes[..end], at: 0 };
    // A request for a WebSocket is shown as one of HTTP/1.1 (RFC 8441, 5).
    let name = if connects { "GET" } else { parts.method.as_str() }.as_bytes();
    let method_name = writer.put(name).ok_or(TOO_LARGE)?;
    let target = writer.put(path.as_bytes()).ok_or(TOO_LARGE)?;
    let mut head = Head {
        method_name,
        method: head::Method::named(name),
        target,
        framing: Framing::Length(0),
        is_http10: false,
        keeps_alive: true,
        expects: false,
        upgrades: false,
        bytes: 0,
    };
    check_target(name, path.as_bytes(), limits.is_secure)?;
    let mut message = MessageFields::default();
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    if let Some(authority) = authority {
        message.add(b"host", authority, &mut head)?;
        fields.push(writer.field(b"host", authority).ok_or(TOO_LARGE)?);
    }
    if connects {
        fields.push(writer.field(b"upgrade", b"websocket").ok_or(TOO_LARGE)?);
        fields.push(writer.field(b"connection", b"Upgrade").ok_or(TOO_LARGE)?);
    }
    write_fields(parts, (&mut message, &mut head), &mut writer, fields)?;
    message.finish(&mut head, limits)?;
    head.upgrades = connects;
    if connects && (is_whole || head.framing != Framing::Length(0)) {
        return Err(Refusal::bad("a request for a WebSocket has no body, and no end"));
    }
    if !connects
        && !is_whole
        && head.framing == Framing::Length(0)
        && !parts.headers.contains_key(header::CONTENT_LENGTH)
    {
        head.framing = Framing::Chunked;
        head.expects = parts.headers.contains_key(header::EXPECT);
    }
    head.bytes = writer.at;
    Ok(head)
}

/// Write the fields of a request but that of `:authority`.
fn write_fields(
    parts: &Parts,
    (message, head): (&mut MessageFields, &mut Head),
    writer: &mut Writer<'_>,
    fields: &mut Vec<Field>,
) -> Result<(), Refusal> {
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    for name in parts.headers.keys() {
        let values = parts.headers.get_all(name);
        if name == header::HOST && authority.is_some() {
            // It is redundant, or contradicts (RFC 9113, 8.3.1).
            if values.iter().any(|value| Some(value.as_bytes()) != authority) {
                return Err(Refusal::bad("host and :authority differ"));
            }
            continue;
        }
        let name_span = writer.put(name.as_str().as_bytes()).ok_or(TOO_LARGE)?;
        let from = fields.len();
        for value in values {
            if value.as_bytes() != value.as_bytes().trim_ascii() {
                return Err(Refusal::bad("spaces around a value")); // RFC 9113, 8.2.1
            }
            message.add(name.as_str().as_bytes(), value.as_bytes(), head)?;
            // A client may send each cookie in a field of its own (RFC 9113, 8.2.3).
            if let Some(first) = fields.get_mut(from).filter(|_| name == header::COOKIE) {
                writer.add(&mut first.value, b"; ").ok_or(TOO_LARGE)?;
                writer.add(&mut first.value, value.as_bytes()).ok_or(TOO_LARGE)?;
                continue;
            }
            let value = writer.put(value.as_bytes()).ok_or(TOO_LARGE)?;
            fields.push(Field { name: name_span, value });
        }
    }
    Ok(())
}

/// Whether a CONNECT is one for a WebSocket (RFC 8441, 4).
fn asks_socket(parts: &Parts) -> bool {
    let protocol = parts.extensions.get::<Protocol>();
    protocol.is_some_and(|protocol| protocol.as_str().eq_ignore_ascii_case("websocket"))
}

/// The head of a response. `lines` are of HTTP/1.1; those about its connection are dropped.
pub fn response_of(response: &Response<'_>, length: Option<u64>, date: &HeaderValue) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() = http::StatusCode::from_u16(response.status).unwrap_or_default();
    let map = head.headers_mut();
    map.reserve(4);
    if let Some(kind) = TYPES.get(usize::from(response.kind)).filter(|kind| !kind.is_empty()) {
        map.append(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    map.append(header::DATE, date.clone());
    if let Some(length) = length.filter(|_| !matches!(response.status, 204 | 304)) {
        map.append(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    append_lines(map, response.headers);
    head
}

/// The fields of lines of HTTP/1.1.
pub fn map_of(lines: &[u8]) -> HeaderMap {
    let mut map = HeaderMap::new();
    append_lines(&mut map, lines);
    map
}

fn append_lines(map: &mut HeaderMap, lines: &[u8]) {
    for line in lines.split(|byte| *byte == b'\n') {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let Ok(name) = HeaderName::from_bytes(&line[..colon]) else { continue };
        let Ok(value) = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()) else { continue };
        if !is_of_connection(&name) {
            map.append(name, value);
        }
    }
}

pub fn refuse(mut respond: SendResponse<Bytes>, refusal: &Refusal, is_head: bool, date: &HeaderValue) {
    let body = format!("{}\n", refusal.why);
    let response = Response { status: refusal.status, kind: 1, headers: b"" };
    let head = response_of(&response, Some(body.len() as u64), date);
    if let Ok(mut send) = respond.send_response(head, is_head)
        && !is_head
    {
        // Otherwise the stream has ended.
        let _ = send.send_data(Bytes::from(body), true);
    }
}

/// Whether a field concerns the connection, which HTTP/2 excludes (RFC 9113, 8.2.2).
fn is_of_connection(name: &HeaderName) -> bool {
    // TE is one of requests; `h2` refuses a response with it.
    matches!(*name, header::CONNECTION | header::TRANSFER_ENCODING | header::UPGRADE | header::TE)
        || name == "keep-alive"
        || name == "proxy-connection"
}

/// The lines of trailers of a request.
pub fn lines_of(map: &HeaderMap) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in map {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    lines
}
