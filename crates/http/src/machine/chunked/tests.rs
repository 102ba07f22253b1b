//! Chunked bodies as a table, each decoded whole and split in two at every byte. `~` means CR LF. The fuzz
//! target compares the same decoder with a simple reader.

use super::*;

/// Decode `pieces` in order. Returns the body, the unused bytes and whether it ended.
fn decoded(pieces: &[&[u8]], limits: &Limits) -> Result<(Vec<u8>, usize, bool), Refusal> {
    let (mut decoder, mut body, mut left, mut is_end) = (Chunked::default(), Vec::new(), 0, false);
    for piece in pieces {
        let mut data = piece.to_vec();
        let step = decoder.decode(&mut data, limits)?;
        body.extend_from_slice(&data[..step.produced]);
        left += data.len() - step.consumed;
        is_end = step.is_end;
    }
    Ok((body, left, is_end))
}

fn check(text: &str, expected: Result<&str, u16>) {
    let bytes = text.replace('~', "\r\n").into_bytes();
    let limits = Limits { body_bytes_max: 100, header_bytes_max: 64, headers_max: 2, ..Limits::default() };
    for cut in 0..=bytes.len() {
        let (first, second) = bytes.split_at(cut);
        let found = decoded(&[first, second], &limits);
        let found = match &found {
            Ok((body, left, true)) => Ok(format!("{} +{left}", String::from_utf8_lossy(body))),
            Ok((body, _, false)) => Ok(format!("{} ...", String::from_utf8_lossy(body))),
            Err(refusal) => Err(refusal.status),
        };
        assert_eq!(found.as_deref().map_err(|status| *status), expected, "{text:?} cut at {cut}");
    }
}

#[test]
fn bodies_are_decoded_however_they_are_split() {
    check("0~~", Ok(" +0"));
    check("3~abc~0~~", Ok("abc +0"));
    check("3~abc~A~0123456789~00~~GET", Ok("abc0123456789 +3"));
    check("003~abc~0~~", Ok("abc +0"));
    check("2~\r\n~0~~", Ok("\r\n +0"));
    check("3~abc~0~A: b~c:~~x", Ok("abc +1"));
    check("3~ab", Ok("ab ..."));
    check("3~abc~0~A: b~", Ok("abc ..."));
}

#[test]
fn extensions_are_checked_and_dropped() {
    check("3;a~abc~0;b=c~~", Ok("abc +0"));
    check("3 ; a = \"b;\\\"c\" ;d=e~abc~0~~", Ok("abc +0"));
    for bad in
        ["3;~abc~0~~", "3 ~abc~0~~", "3;a=~abc~0~~", "3;a b~abc~0~~", "3;a=\"b~abc~0~~", "3;a=\"\0\"~abc~0~~"]
    {
        check(bad, Err(400));
    }
    check("3;a\nabc~0~~", Err(400));
    check("3;a\rabc~0~~", Err(400));
    check(&format!("3;{}~abc~0~~", "a".repeat(70)), Err(431));
    check(&("1;a=b~x~".repeat(20) + "0~~"), Err(431));
}

#[test]
fn bad_chunks_are_refused() {
    for bad in [
        "~abc",
        "x~abc~0~~",
        "-1~abc~0~~",
        "+3~abc~0~~",
        "0x3~abc~0~~",
        "3\nabc~0~~",
        "3~abcd~0~~",
        "3~ab~0~~",
        "3~abc\n0~~",
        "3~abc0~~",
        "3\r\rabc~0~~",
        " 3~abc~0~~",
        "00000000000000003~abc~0~~",
        "3~abc~0~\n",
        "0~\r\r",
    ] {
        check(bad, Err(400));
    }
    check("FFFFFFFFFFFFFFFF~a", Err(413));
    check("65~a", Err(413));
    check("64~a", Ok("a ..."));
    check("60~", Ok(" ..."));
}

#[test]
fn trailers_are_checked_and_limited() {
    for bad in ["0~ a: b~~", "0~a~~", "0~a : b~~", "0~: b~~", "0~a: b\0~~", "0~a: b\nc: d~~", "0~a: b\rc~~"] {
        check(bad, Err(400));
    }
    check("0~a: b~c: d~e: f~~", Err(431));
    check(&format!("0~a: {}~~", "b".repeat(70)), Err(431));
}
