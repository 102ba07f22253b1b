//! Heads of responses.
//!
//! The bytes that all common responses of one second share (status line, type, date, the name of the length)
//! are written once per second and copied.

use std::io::Write as _;

use crate::layout::TYPES;

/// The reason phrase of a status; empty for unregistered ones.
pub const fn phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a Teapot",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}

/// How the body of a response is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFraming {
    /// Without a field: there is no body (204, 304), or it ends with the connection.
    None,
    Length(u64),
    Chunked,
}

/// The `connection` field of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// No field: HTTP/1.1 persists.
    Default,
    /// `keep-alive`, for an HTTP/1.0 client that asked for it.
    KeepAlive,
    Close,
}

#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// 200 to 599.
    pub status: u16,
    /// Index into [`TYPES`].
    pub kind: u8,
    /// Complete header lines.
    pub headers: &'a [u8],
    pub framing: ResponseFraming,
    pub persistence: Persistence,
}

/// Writes heads with the date of the current second.
pub struct Heads {
    second: i64,
    date: Vec<u8>,
    /// For status 200 and each type, the bytes before the length's digits.
    common: [Vec<u8>; TYPES.len()],
}

impl Default for Heads {
    fn default() -> Self {
        let mut heads = Self { second: i64::MIN, date: Vec::new(), common: Default::default() };
        heads.set_time(0);
        heads
    }
}

impl Heads {
    /// Set the time, in seconds since 1970. Returns whether it has changed.
    pub fn set_time(&mut self, second: i64) -> bool {
        if second == self.second {
            return false;
        }
        self.second = second;
        self.date.clear();
        self.date.extend_from_slice(b"date: ");
        write_date(second, &mut self.date);
        self.date.extend_from_slice(b"\r\n");
        for (kind, common) in self.common.iter_mut().enumerate() {
            common.clear();
            common.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
            push_type(kind, common);
            common.extend_from_slice(&self.date);
            common.extend_from_slice(b"content-length: ");
        }
        true
    }

    /// The time of the heads.
    pub const fn second(&self) -> i64 {
        self.second
    }

    /// Append a head, including the empty line that ends it.
    #[inline]
    pub fn write(&self, head: &ResponseHead<'_>, out: &mut Vec<u8>) {
        if let (200, ResponseFraming::Length(length), Persistence::Default) =
            (head.status, head.framing, head.persistence)
        {
            out.extend_from_slice(&self.common[usize::from(head.kind) % TYPES.len()]);
            push_number(length, out);
            if head.headers.is_empty() {
                out.extend_from_slice(b"\r\n\r\n");
            } else {
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(head.headers);
                out.extend_from_slice(b"\r\n");
            }
            return;
        }
        self.write_any(head, out);
    }

    #[cold]
    fn write_any(&self, head: &ResponseHead<'_>, out: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "HTTP/1.1 {} {}\r\n", head.status, phrase(head.status));
        push_type(usize::from(head.kind), out);
        out.extend_from_slice(&self.date);
        match head.framing {
            ResponseFraming::None => {}
            ResponseFraming::Length(length) => {
                out.extend_from_slice(b"content-length: ");
                push_number(length, out);
                out.extend_from_slice(b"\r\n");
            }
            ResponseFraming::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        }
        match head.persistence {
            Persistence::Default => {}
            Persistence::KeepAlive => out.extend_from_slice(b"connection: keep-alive\r\n"),
            Persistence::Close => out.extend_from_slice(b"connection: close\r\n"),
        }
        out.extend_from_slice(head.headers);
        out.extend_from_slice(b"\r\n");
    }
}

fn push_type(kind: usize, out: &mut Vec<u8>) {
    match TYPES.get(kind) {
        None | Some(&"") => {}
        Some(text) => {
            out.extend_from_slice(b"content-type: ");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

#[inline]
pub fn push_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

pub fn push_chunk_size(size: usize, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{size:x}\r\n");
}

/// Append a time, in seconds since 1970, as an IMF-fixdate (RFC 9110, 5.6.7).
pub fn write_date(second: i64, out: &mut Vec<u8>) {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, time) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hours, minutes, seconds) = (time / 3600, time / 60 % 60, time % 60);
    let weekday = DAYS[days.rem_euclid(7) as usize];
    let month = MONTHS[month as usize - 1];
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{weekday}, {day:02} {month} {year:04} {hours:02}:{minutes:02}:{seconds:02} GMT");
}

/// Year, month and day of a number of days since 1970-01-01. Years are counted from March, in eras of 400.
const fn civil(days: i64) -> (i64, i64, i64) {
    let from_march = days + 719_468;
    let era = from_march.div_euclid(146_097);
    let of_era = from_march.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + next, month, day)
}

#[cfg(test)]
mod tests;
