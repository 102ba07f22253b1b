//! The PROXY protocol, versions 1 and 2: the header by which a proxy states the client of a connection.
//!
//! <https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt>. It comes before everything else on a
//! connection and is not optional: a server that expects it refuses connections without it, since a client
//! could otherwise state any address. Only addresses are read; what else version 2 carries is skipped.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::limits::Refusal;

/// The longest header of version 1, with its line end.
const LINE_BYTES_MAX: usize = 107;
const LINE_BEGIN: &[u8] = b"PROXY ";
/// The first bytes of a header of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of version 2 before the addresses.
const FIXED_BYTES: usize = 16;
const REFUSED: Refusal = Refusal::bad("the connection must begin with a valid PROXY protocol header");

/// What the beginning of a connection contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The header is not complete.
    Partial,
    /// It has this many bytes.
    Whole {
        bytes: usize,
        /// The client; `None` if the proxy states none, as in its health checks.
        client: Option<IpAddr>,
    },
}

/// Read the header that `input` begins with, of at most `bytes_max` bytes.
pub fn parse(input: &[u8], bytes_max: usize) -> Result<Parsed, Refusal> {
    let is_prefix = |of: &[u8]| input.iter().zip(of).all(|(one, other)| one == other);
    if is_prefix(SIGNATURE) {
        return parse_binary(input, bytes_max);
    }
    if is_prefix(LINE_BEGIN) {
        return parse_line(input);
    }
    Err(REFUSED)
}

/// `PROXY TCP4 192.0.2.7 192.0.2.1 56324 443`, or `PROXY UNKNOWN` and anything.
fn parse_line(input: &[u8]) -> Result<Parsed, Refusal> {
    let line = &input[..input.len().min(LINE_BYTES_MAX)];
    let Some(end) = line.windows(2).position(|pair| pair == b"\r\n") else {
        return if input.len() < LINE_BYTES_MAX { Ok(Parsed::Partial) } else { Err(REFUSED) };
    };
    let text = str::from_utf8(&line[LINE_BEGIN.len()..end]).map_err(|_| REFUSED)?;
    let mut words = text.split(' ');
    let family = words.next();
    let client = if family == Some("UNKNOWN") {
        None
    } else {
        let [Some(source), Some(target), Some(from), Some(to), None] = std::array::from_fn(|_| words.next())
        else {
            return Err(REFUSED);
        };
        let is_port =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok();
        let source: IpAddr = source.parse().map_err(|_| REFUSED)?;
        let target: IpAddr = target.parse().map_err(|_| REFUSED)?;
        let is_family = match family {
            Some("TCP4") => source.is_ipv4() && target.is_ipv4(),
            Some("TCP6") => source.is_ipv6() && target.is_ipv6(),
            _ => false,
        };
        if !is_family || !is_port(from) || !is_port(to) {
            return Err(REFUSED);
        }
        Some(source.to_canonical())
    };
    Ok(Parsed::Whole { bytes: end + 2, client })
}

fn parse_binary(input: &[u8], bytes_max: usize) -> Result<Parsed, Refusal> {
    let Some((fixed, rest)) = input.split_first_chunk::<FIXED_BYTES>() else { return Ok(Parsed::Partial) };
    let (version, command, family) = (fixed[12] >> 4, fixed[12] & 15, fixed[13]);
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if version != 2 || command > 1 || FIXED_BYTES + length > bytes_max {
        return Err(REFUSED);
    }
    let Some(addresses) = rest.get(..length) else { return Ok(Parsed::Partial) };
    // Command 0 is a connection of the proxy itself. High half: IPv4, IPv6; others have no IP address.
    let client = match (command, family >> 4) {
        (1, 1) => {
            let (octets, _) = addresses.split_first_chunk::<4>().filter(|_| length >= 12).ok_or(REFUSED)?;
            Some(IpAddr::V4(Ipv4Addr::from(*octets)))
        }
        (1, 2) => {
            let (octets, _) = addresses.split_first_chunk::<16>().filter(|_| length >= 36).ok_or(REFUSED)?;
            Some(IpAddr::V6(Ipv6Addr::from(*octets)).to_canonical())
        }
        _ => None,
    };
    Ok(Parsed::Whole { bytes: FIXED_BYTES + length, client })
}

#[cfg(test)]
mod tests;
