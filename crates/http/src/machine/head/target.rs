//! Request targets and authorities (RFC 9112, 3.2; RFC 3986): which bytes they may contain, and which form of
//! a target fits which method.

use crate::limits::Refusal;

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

fn is_port(digits: &[u8]) -> bool {
    digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')) <= u32::from(u16::MAX)
}

/// The bytes of a registered name: unreserved, sub-delims and `%` (RFC 3986, 3.2.2).
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

/// Flags of [`TARGET_BYTES`]: the parts of a target that may contain a byte (RFC 3986, 2 and 3.3).
const IN_PATH: u8 = 1;
const IN_QUERY: u8 = 2;

/// A path contains only the characters of a URI: the URL standard would turn `\` into `/` after a proxy has
/// applied its rules to the path as received. A query may also contain the characters that the URL standard
/// leaves in one, because browsers send them unescaped.
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

fn has_target_bytes(target: &[u8]) -> bool {
    let query_at = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = target.split_at(query_at);
    let may_contain =
        |flag: u8, bytes: &[u8]| bytes.iter().all(|&byte| TARGET_BYTES[usize::from(byte)] & flag != 0);
    may_contain(IN_PATH, path) && may_contain(IN_QUERY, query)
}

/// The form of the target fits the method (RFC 9112, 3.2), and its bytes are those of a URI without a
/// fragment.
pub fn check_target(method: &[u8], target: &[u8], has_tls: bool) -> Result<(), Refusal> {
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
            // The scheme is part of the target (RFC 9110, 7.4).
            match (is_secure, has_tls) {
                (true, false) => Err(Refusal::of(421, "https on a connection without TLS")),
                (false, true) => Err(Refusal::of(421, "http on a connection with TLS")),
                _ => Ok(()),
            }
        }
    }
}
