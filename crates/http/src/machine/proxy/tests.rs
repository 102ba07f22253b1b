//! Headers by table, each of them cut at each byte; random and damaged ones; and connections that begin with
//! one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Parsed, parse};
use crate::{
    connection::{Connection, Next, Rest},
    fuzz::{Dice, fuzz, generated},
    head::Parser,
    limits::Limits,
};

const MAX: usize = 4096;

fn binary(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    bytes.extend([0x20 | command, family]);
    bytes.extend(u16::try_from(addresses.len()).expect("short").to_be_bytes());
    bytes.extend(addresses);
    bytes
}

/// A header, the client it states ("" for none), or `None` if it is refused.
fn table() -> Vec<(Vec<u8>, Option<&'static str>)> {
    let four: &[u8] = &[192, 0, 2, 7, 192, 0, 2, 1, 0xdc, 4, 1, 187];
    let six: Vec<u8> = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[7], &[0; 16], &[0xdc, 4, 1, 187]].concat();
    let mapped: Vec<u8> = [&[0; 10][..], &[255, 255, 192, 0, 2, 7], &[0; 20]].concat();
    let line = |text: &str| text.as_bytes().to_vec();
    vec![
        (line("PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n"), Some("192.0.2.7")),
        (line("PROXY TCP6 2001:db8::7 2001:db8::1 56324 443\r\n"), Some("2001:db8::7")),
        (line("PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n"), Some("192.0.2.7")),
        (line("PROXY UNKNOWN\r\n"), Some("")),
        (line("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), Some("")),
        (line("PROXY TCP4 192.0.2.7 192.0.2.1 56324\r\n"), None),
        (line("PROXY TCP4 192.0.2.7 192.0.2.1 56324 443 1\r\n"), None),
        (line("PROXY TCP4 192.0.2.7 192.0.2.1 56324 65536\r\n"), None),
        (line("PROXY TCP4 192.0.2.7 192.0.2.1 +56324 443\r\n"), None),
        (line("PROXY TCP4 2001:db8::7 192.0.2.1 56324 443\r\n"), None),
        (line("PROXY TCP6 192.0.2.7 192.0.2.1 56324 443\r\n"), None),
        (line("PROXY TCP4  192.0.2.7 192.0.2.1 56324 443\r\n"), None),
        (line("PROXY TCP4 192.0.2.007 192.0.2.1 56324 443\r\n"), None),
        (line("PROXY UDP4 192.0.2.7 192.0.2.1 56324 443\r\n"), None),
        (line("PROXY\r\n"), None),
        (line("proxy TCP4 192.0.2.7 192.0.2.1 56324 443\r\n"), None),
        (line("GET / HTTP/1.1\r\n"), None),
        (line(&format!("PROXY UNKNOWN {}\r\n", "f".repeat(91))), Some("")),
        (line(&format!("PROXY UNKNOWN {}\r\n", "f".repeat(92))), None),
        (binary(1, 0x11, four), Some("192.0.2.7")),
        (binary(1, 0x12, four), Some("192.0.2.7")),
        (binary(1, 0x11, &[four, &[4, 0, 1, 0][..]].concat()), Some("192.0.2.7")),
        (binary(1, 0x21, &six), Some("2001:db8::7")),
        (binary(1, 0x21, &mapped), Some("192.0.2.7")),
        (binary(1, 0x31, &[0; 216]), Some("")),
        (binary(1, 0, &[]), Some("")),
        (binary(0, 0x11, four), Some("")),
        (binary(0, 0, &[]), Some("")),
        (binary(1, 0x11, &four[..11]), None),
        (binary(1, 0x21, &six[..35]), None),
        (binary(2, 0x11, four), None),
        (binary(1, 0x11, &[0; MAX - 15]), None),
        (binary(1, 0x11, &[0; MAX - 16]), Some("0.0.0.0")),
    ]
}

#[test]
fn a_header_is_read_wherever_it_is_cut() {
    for (header, expected) in table() {
        let mut input = header.clone();
        input.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
        let shown = String::from_utf8_lossy(&header).into_owned();
        match (parse(&input, MAX), expected) {
            (Err(_), None) => continue,
            (Ok(Parsed::Whole { bytes, client }), Some(expected)) => {
                assert_eq!(bytes, header.len(), "{shown}");
                assert_eq!(client.map_or(String::new(), |client| client.to_string()), expected, "{shown}");
            }
            (found, _) => panic!("{shown}: {found:?}"),
        }
        for length in 0..header.len() {
            assert_eq!(parse(&header[..length], MAX), Ok(Parsed::Partial), "{length} bytes of {shown}");
        }
    }
}

#[test]
fn a_header_that_never_ends_is_refused() {
    assert!(parse(&[b"PROXY UNKNOWN ", &[b' '; 100][..]].concat(), MAX).is_err());
}

/// Parts of headers.
const WORDS: &[&str] = &[
    "PROXY ",
    "PROXY",
    "TCP4 ",
    "TCP6 ",
    "UNKNOWN",
    " ",
    "\r\n",
    "\r",
    "\n",
    "192.0.2.7",
    "::1",
    "::ffff:1.2.3.4",
    "443",
    "65536",
    "\r\n\r\n\0\r\nQUIT\n",
    "\u{21}",
    "\u{20}",
    "\u{11}",
    "\0",
    "\u{c}",
    "\u{24}",
    "GET / HTTP/1.1\r\n",
];

/// A valid header and the address in it.
fn valid(dice: &mut Dice) -> (Vec<u8>, IpAddr) {
    let octets: [u8; 16] = std::array::from_fn(|_| dice.roll(256) as u8);
    let is_four = dice.roll(2) == 0;
    let address = if is_four {
        IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]))
    } else {
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let header = if dice.roll(2) == 0 {
        let family = if is_four { "TCP4" } else { "TCP6" };
        format!("PROXY {family} {address} {address} {} {}\r\n", dice.roll(65_536), dice.roll(65_536))
            .into_bytes()
    } else {
        let mut addresses = match address {
            IpAddr::V4(four) => four.octets().repeat(2),
            IpAddr::V6(six) => six.octets().repeat(2),
        };
        addresses.extend([0; 4]);
        addresses.extend(vec![7; dice.roll(50)]);
        binary(1, if is_four { 0x11 } else { 0x21 }, &addresses)
    };
    (header, address.to_canonical())
}

#[test]
fn fuzz_proxy() {
    let make = |dice: &mut Dice| {
        let mut bytes = if dice.roll(2) == 0 { generated(dice, WORDS) } else { valid(dice).0 };
        if dice.roll(2) == 0 && !bytes.is_empty() {
            let at = dice.roll(bytes.len());
            bytes[at] = dice.roll(256) as u8;
        }
        bytes
    };
    fuzz("proxy", make, |dice, bytes| {
        let whole = parse(bytes, MAX);
        let cut = dice.roll(bytes.len() + 1);
        match (parse(&bytes[..cut], MAX), whole) {
            // A part may be refused only if all of it is.
            (Err(_), whole) => assert!(whole.is_err(), "refused after {cut} bytes"),
            (Ok(Parsed::Partial), Ok(Parsed::Whole { bytes, .. })) => assert!(cut < bytes),
            (Ok(Parsed::Partial), _) => {}
            (part, whole) => assert_eq!(part, whole),
        }
        let (header, client) = valid(dice);
        let expected = Parsed::Whole { bytes: header.len(), client: Some(client) };
        assert_eq!(parse(&[&header[..], bytes].concat(), MAX), Ok(expected));
    });
}

/// What a connection behind a proxy makes of `pieces`: targets, the client, whether it was refused.
fn read(pieces: &[&[u8]]) -> (Vec<String>, Option<IpAddr>, bool) {
    let (mut connection, mut parser, mut input) = (Connection::behind_proxy(), Parser::default(), Vec::new());
    let (limits, mut targets) = (Limits::default(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match connection.next(&mut input, &limits, &mut parser) {
                Ok(Next::Request(request)) => {
                    targets.push(String::from_utf8_lossy(request.head.target.of(&input)).into_owned());
                    connection.admit(&request, targets.len() as u32);
                    input.drain(..request.consumed);
                }
                Ok(Next::Skipped(bytes)) => drop(input.drain(..bytes)),
                Ok(Next::Wait | Next::Partial | Next::Trailed(_) | Next::Frames(..)) => break,
                Err(refusal) => return (targets, connection.client(), refusal.status == 400),
            }
        }
    }
    (targets, connection.client(), false)
}

#[test]
fn a_connection_begins_with_a_header_and_only_once() {
    let request = b"GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\n\r\n";
    let header = b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n";
    let all = [&header[..], request].concat();
    let expected = (vec!["/a".into(), "/b".into()], Some(IpAddr::from([192, 0, 2, 7])), false);
    for cut in 0..=all.len() {
        let (first, second) = all.split_at(cut);
        assert_eq!(read(&[first, second]), expected, "cut at {cut}");
    }
    assert_eq!(read(&[request]), (vec![], None, true));
    assert_eq!(read(&[header, header, request]), (vec![], expected.1, true));
    let (local, none) = (binary(0, 0, &[]), (expected.0, None, false));
    assert_eq!(read(&[&local, request]), none);
}

#[test]
fn a_connection_that_ends_or_stops_before_its_header_has_ended_is_over() {
    let mut connection = Connection::behind_proxy();
    assert!(connection.is_unused() && connection.wants_input(&Limits::default()));
    connection.close_soon();
    assert!(connection.is_over() && !connection.wants_input(&Limits::default()));
    let mut connection = Connection::behind_proxy();
    let mut input = b"PROXY TC".to_vec();
    assert!(matches!(
        connection.next(&mut input, &Limits::default(), &mut Parser::default()),
        Ok(Next::Partial)
    ));
    connection.kept = input;
    assert!(connection.is_in_head() && !connection.is_unused());
    assert!(connection.end_input(Rest::Partial) && connection.is_over());
}
