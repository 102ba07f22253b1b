//! Frames of clients against a table with the sections of RFC 6455, a slow and simple reader, and every way
//! to split them. The fuzz target compares the same two readers.

use super::*;
use crate::fuzz::{Dice, cut, fuzz};

const MESSAGE_BYTES_MAX: usize = 300;

/// A frame as a client sends it: first byte, payload.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = vec![first];
    match payload.len() {
        length @ ..126 => bytes.push(0x80 | length as u8),
        length @ ..65_536 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&mask);
    bytes.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    bytes
}

fn shown(is_text: bool, bytes: &[u8]) -> String {
    if is_text { format!("text {}", String::from_utf8_lossy(bytes)) } else { format!("bytes {bytes:02x?}") }
}

/// What is received when `pieces` arrive, up to the first fault or close frame.
fn transcript(pieces: &[&[u8]], deflates: bool) -> Vec<String> {
    let terms = Terms { message_bytes_max: MESSAGE_BYTES_MAX, deflates, ..Terms::default() };
    let (mut socket, mut deflate, mut words) = (WebSocket::new(terms, 1, 0), Deflate::default(), Vec::new());
    for piece in pieces {
        let mut data = piece.to_vec();
        let mut at = 0;
        loop {
            let (used, received) = socket.receive(&mut data[at..]);
            let from = at;
            at += used;
            assert!(socket.message.len() <= MESSAGE_BYTES_MAX + 100);
            let fault = match received {
                Ok(Received::Nothing) => {
                    assert_eq!(at, data.len(), "all bytes are used");
                    break;
                }
                Ok(Received::Here { is_text, at, bytes }) => {
                    words.push(shown(is_text, &data[from + at..][..bytes]));
                    continue;
                }
                Ok(Received::Gathered { is_text, is_compressed }) => {
                    match socket.take_message(&mut deflate, (is_text, is_compressed)) {
                        Ok(message) => {
                            words.push(shown(is_text, &message));
                            continue;
                        }
                        Err(fault) => fault,
                    }
                }
                Ok(Received::Ping) => {
                    words.push(format!("ping {:02x?}", socket.control()));
                    continue;
                }
                Ok(Received::Pong) => {
                    words.push("pong".into());
                    continue;
                }
                Ok(Received::Close(code)) => {
                    words.push(format!("close {code}"));
                    return words;
                }
                Err(fault) => fault,
            };
            words.push(format!("fault {}", fault.code));
            return words;
        }
    }
    words
}

fn close_of(payload: &[u8]) -> String {
    match payload.split_first_chunk::<2>().map(|(code, why)| (u16::from_be_bytes(*code), why)) {
        None if payload.is_empty() => "close 1005".into(),
        None => "fault 1002".into(),
        Some((_, why)) if String::from_utf8(why.to_vec()).is_err() => "fault 1007".into(),
        Some((code, _)) if may_be_sent(code) => format!("close {code}"),
        Some(_) => "fault 1002".into(),
    }
}

/// The slow and simple reader: one frame after the other, from bytes that are all there.
fn simple(bytes: &[u8], deflates: bool) -> Vec<String> {
    let (mut rest, mut words, mut open) = (bytes, Vec::new(), None::<(bool, bool, Vec<u8>)>);
    let mut deflate = Deflate::default();
    let fail = |mut words: Vec<String>, code: u16| {
        words.push(format!("fault {code}"));
        words
    };
    loop {
        let Some((&[first, second], behind)) = rest.split_first_chunk::<2>() else { return words };
        let (length, behind) = match second & 127 {
            126 => match behind.split_first_chunk::<2>() {
                Some((length, behind)) => (u64::from(u16::from_be_bytes(*length)), behind),
                None => return words,
            },
            127 => match behind.split_first_chunk::<8>() {
                Some((length, behind)) => (u64::from_be_bytes(*length), behind),
                None => return words,
            },
            length => (u64::from(length), behind),
        };
        if second & 128 == 0 {
            return fail(words, 1002);
        }
        let Some((mask, behind)) = behind.split_first_chunk::<4>() else { return words };
        let (opcode, fin, reserved) = (first & 15, first & 128 != 0, first & 0x70);
        let may_compress = deflates && matches!(opcode, 1 | 2);
        let is_data = opcode < 3;
        let is_known = is_data || matches!(opcode, 8..=10);
        let is_in_place = if is_data { (opcode == 0) == open.is_some() } else { fin && length < 126 };
        if !is_known || !is_in_place || reserved & 0x30 != 0 || (reserved != 0 && !may_compress) {
            return fail(words, 1002);
        }
        if is_data {
            let is_compressed = open.as_ref().map_or(reserved != 0, |open| open.1);
            let most = MESSAGE_BYTES_MAX as u64 + if is_compressed { 64 } else { 0 };
            if open.as_ref().map_or(0, |open| open.2.len() as u64).saturating_add(length) > most {
                return fail(words, 1009);
            }
        }
        let Some((payload, behind)) = behind.split_at_checked(length as usize) else { return words };
        rest = behind;
        let payload: Vec<u8> = payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]).collect();
        match opcode {
            9 => words.push(format!("ping {payload:02x?}")),
            10 => words.push("pong".into()),
            8 => return [words, vec![close_of(&payload)]].concat(),
            _ => {
                let mut message = open.take().unwrap_or((opcode == 1, reserved != 0, Vec::new()));
                message.2.extend_from_slice(&payload);
                if !fin {
                    open = Some(message);
                    continue;
                }
                let (is_text, is_compressed, bytes) = message;
                let bytes = match deflate.inflate(&bytes, MESSAGE_BYTES_MAX) {
                    _ if !is_compressed => bytes,
                    Ok(bytes) => bytes,
                    Err(fault) => return fail(words, fault.code),
                };
                if is_text && String::from_utf8(bytes.clone()).is_err() {
                    return fail(words, 1007);
                }
                words.push(shown(is_text, &bytes));
            }
        }
    }
}

#[test]
fn every_rule_of_the_protocol_has_a_case() {
    let long = vec![b'a'; 126];
    let cases: &[(&str, Vec<u8>, &[&str])] = &[
        ("5.6 text", frame(0x81, b"Hello"), &["text Hello"]),
        ("5.6 empty text", frame(0x81, b""), &["text "]),
        ("5.6 bytes", frame(0x82, &[0, 255]), &["bytes [00, ff]"]),
        ("5.2 a length of two bytes", frame(0x81, &long), &[&format!("text {}", "a".repeat(126))]),
        ("5.4 fragments", [frame(1, b"Hel"), frame(0x80, b"lo")].concat(), &["text Hello"]),
        ("5.4 empty fragments", [frame(1, b""), frame(0, b""), frame(0x80, b"")].concat(), &["text "]),
        (
            "5.4 a ping between fragments",
            [frame(1, b"Hel"), frame(0x89, b"p"), frame(0x80, b"lo")].concat(),
            &["ping [70]", "text Hello"],
        ),
        ("5.4 a message in a message", [frame(1, b"a"), frame(0x81, b"b")].concat(), &["fault 1002"]),
        ("5.4 nothing to continue", frame(0x80, b"a"), &["fault 1002"]),
        ("5.1 no mask", vec![0x81, 1, b'a'], &["fault 1002"]),
        ("5.2 reserved bits", frame(0xa1, b"a"), &["fault 1002"]),
        ("7692 6 compressed without agreement", frame(0xc1, b"a"), &["fault 1002"]),
        ("5.2 reserved opcode of data", frame(0x83, b"a"), &["fault 1002"]),
        ("5.2 reserved opcode of control", frame(0x8b, b""), &["fault 1002"]),
        ("5.5 a control frame in fragments", frame(0x09, b""), &["fault 1002"]),
        ("5.5 a control frame of 126 bytes", frame(0x89, &long), &["fault 1002"]),
        ("5.5.2 ping of 125 bytes", frame(0x89, &long[1..]), &[&format!("ping {:02x?}", &long[1..])]),
        ("5.5.3 pong", frame(0x8a, b"x"), &["pong"]),
        ("5.5.1 close", frame(0x88, b""), &["close 1005"]),
        ("5.5.1 close with a code", frame(0x88, &[3, 0xe8]), &["close 1000"]),
        ("5.5.1 close with a reason", frame(0x88, b"\x0f\xa0bye"), &["close 4000"]),
        ("5.5.1 half a code", frame(0x88, &[3]), &["fault 1002"]),
        ("7.4 code 999", frame(0x88, &[3, 0xe7]), &["fault 1002"]),
        ("7.4.1 code 1005", frame(0x88, &[3, 0xed]), &["fault 1002"]),
        ("7.4.1 code 1016", frame(0x88, &[3, 0xf8]), &["fault 1002"]),
        ("7.4 code 5000", frame(0x88, &[0x13, 0x88]), &["fault 1002"]),
        ("8.1 text that is not UTF-8", frame(0x81, &[0xc0, 0xaf]), &["fault 1007"]),
        ("8.1 a character in two fragments", [frame(1, &[0xc3]), frame(0x80, &[0xa9])].concat(), &["text é"]),
        ("8.1 half a character at the end", [frame(1, b"a"), frame(0x80, &[0xc3])].concat(), &["fault 1007"]),
        ("8.1 a surrogate", frame(0x81, &[0xed, 0xa0, 0x80]), &["fault 1007"]),
        ("8.1 a reason that is not UTF-8", frame(0x88, &[3, 0xe8, 0xff]), &["fault 1007"]),
        ("10.4 a message that is too long", frame(0x82, &[0; 301]), &["fault 1009"]),
        ("10.4 fragments that are too long", [frame(2, &[0; 300]), frame(0, b"a")].concat(), &["fault 1009"]),
        (
            "10.4 a length that no message has",
            vec![0x82, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0],
            &["fault 1009"],
        ),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(transcript(&[bytes], false), *expected, "{name}");
        assert_eq!(simple(bytes, false), *expected, "{name}, read simply");
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(transcript(&pieces, false), *expected, "{name}, byte by byte");
    }
}

#[test]
fn compressed_messages_are_what_was_compressed() {
    let mut deflate = Deflate::default();
    for length in [0, 1, 100, 5000, 40_000, 200_000] {
        let message: Vec<u8> = (0..length).map(|at| b"abc def "[at % 8] ^ (at / 5000) as u8).collect();
        let Some(compressed) = deflate.deflate(&message) else {
            assert!(length < 10, "{length} bytes become shorter");
            continue;
        };
        assert!(compressed.len() < message.len());
        assert_eq!(deflate.inflate(&compressed, length), Ok(message), "{length}");
        assert_eq!(deflate.inflate(&compressed, length - 1), Err(TOO_LARGE), "{length}, one byte too many");
    }
    let mut dice = 1_u32;
    let noise: Vec<u8> = (0..1000)
        .map(|_| {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (dice >> 24) as u8
        })
        .collect();
    assert_eq!(deflate.deflate(&noise), None, "noise does not become shorter");
}

#[test]
fn compressed_messages_of_others_are_read() {
    // RFC 7692, 7.2.3: the same text in a block of its own, in a block that is not compressed, in one that is
    // marked as the last, and in two.
    let cases: &[&[u8]] = &[
        &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00],
        &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
        &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
        &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00],
    ];
    for case in cases {
        assert_eq!(transcript(&[&frame(0xc1, case)], true), ["text Hello"]);
        let (begin, end) = case.split_at(3);
        let fragments = [frame(0x41, begin), frame(0x80, end)].concat();
        assert_eq!(transcript(&[&fragments], true), ["text Hello"], "in fragments");
    }
    assert_eq!(transcript(&[&frame(0xc1, b"\xff\xff\xff")], true), ["fault 1007"]);
    let marked_later = [frame(0x41, cases[0]), frame(0xc0, b"")].concat();
    assert_eq!(transcript(&[&marked_later], true), ["fault 1002"], "only the first fragment is marked");
}

#[test]
fn a_bomb_takes_no_more_memory_than_a_message() {
    let zeros = vec![0; 4 * 1024 * 1024];
    let mut deflate = Deflate::default();
    let bomb = deflate.deflate(&zeros).expect("zeros become shorter");
    assert!(bomb.len() < 32 * 1024);
    assert_eq!(deflate.inflate(&bomb, 64 * 1024), Err(TOO_LARGE));
    assert_eq!(
        deflate.inflate(&bomb, zeros.len()).map(|all| all.len()),
        Ok(zeros.len()),
        "and is read again"
    );
}

#[test]
fn too_many_fragments_are_refused() {
    let mut bytes = frame(2, b"");
    for _ in 0..FRAGMENTS_MAX {
        bytes.extend(frame(0, b""));
    }
    assert_eq!(transcript(&[&bytes], false), ["fault 1008"]);
}

#[test]
fn frames_are_written_as_they_are_read() {
    for (kind, first) in [(Kind::Text, 0x81), (Kind::Binary, 0x82), (Kind::Ping, 0x89), (Kind::Pong, 0x8a)] {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let payload = vec![b'x'; length];
            let mut out = Vec::new();
            write_frame(&mut out, kind, false, &payload);
            let head = out.len() - length;
            assert_eq!(out[0], first);
            let masked = frame(first, &payload);
            assert_eq!(out[1], masked[1] & 127, "no mask");
            assert_eq!(out[2..head], masked[2..head], "{length}");
            assert_eq!(out[head..], payload);
        }
    }
    let mut out = Vec::new();
    write_close(&mut out, 1000, "é".repeat(100).as_bytes());
    assert_eq!(out.len(), 2 + 2 + 122, "a reason is cut between characters");
    out.clear();
    write_close(&mut out, code::NONE, b"");
    assert_eq!(out, [0x88, 0]);
}

/// Frames that mostly belong together.
fn frames(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=dice.roll(6) {
        let first = [0x81, 0x82, 1, 2, 0, 0x80, 0x89, 0x8a, 0x88, 0xc1, 0x41, 0xc2][dice.roll(12)];
        let payload: Vec<u8> = match dice.roll(5) {
            0 => Vec::new(),
            1 => [0x03, 0xe8].to_vec(),
            2 => [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00].to_vec(),
            3 => "aé😀".bytes().cycle().take(dice.roll(130)).collect(),
            _ => (0..dice.roll(200)).map(|_| dice.roll(256) as u8).collect(),
        };
        bytes.extend(frame(first, &payload));
    }
    for _ in 0..dice.roll(3) {
        let at = dice.roll(bytes.len());
        bytes[at] = dice.roll(256) as u8;
    }
    bytes
}

#[test]
fn fuzz_frames() {
    fuzz("websocket", frames, |dice, bytes| {
        for deflates in [false, true] {
            let expected = simple(bytes, deflates);
            assert_eq!(transcript(&[bytes], deflates), expected);
            assert_eq!(transcript(&cut(dice, bytes), deflates), expected);
        }
    });
}
