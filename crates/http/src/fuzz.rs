//! Generated and damaged bytes against the protocol machine: seeded, 20,000 cases in `cargo test`, minutes on
//! request.
//!
//! `CORESPUN_FUZZ_MINUTES=10 cargo test --release -p corespun-http fuzz` runs each target that long.
//! `CORESPUN_FUZZ_SEED` sets the seed, which a failure reports with its input. Inputs that have failed are in
//! `corpus/`, with which each target begins. The targets check more than the absence of panics: requests do
//! not depend on how their bytes are split, and a chunked body is what a slow and simple reader makes of it.
//! Over 400 lines: the oracles and the generators that they are compared on belong together.

use std::{
    fmt::Write as _,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use crate::{
    chunked::Chunked,
    connection::{Connection, Next, Response, Rest, tests::transcript},
    head::Parser,
    limits::Limits,
    response::Heads,
};

/// Pseudo-random numbers, the same for the same seed (xorshift).
pub struct Dice(u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides.max(1)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len())]
    }
}

/// Parts of heads, which are also inserted at random.
const WORDS: &[&str] = &[
    "GET",
    "HEAD",
    "POST",
    "OPTIONS",
    "CONNECT",
    "TRACE",
    " ",
    "/",
    "/a?b=c",
    "*",
    "http://a/",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/2.0",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    "\0",
    "\t",
    ":",
    ": ",
    ",",
    ";",
    "Host",
    "Host: a\r\n",
    "Content-Length",
    "Content-Length: 3\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "chunked",
    "identity",
    "Expect: 100-continue\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "keep-alive",
    "0",
    "3",
    "-1",
    "abc",
    "\u{ff}",
    "18446744073709551616",
    "0\r\n\r\n",
    "3\r\nabc\r\n",
    "X: y\r\n",
    "\"",
    "\\",
];

/// Parts of chunked bodies.
const CHUNK_WORDS: &[&str] = &[
    "0\r\n",
    "0\r\n\r\n",
    "1\r\nx\r\n",
    "3\r\nabc\r\n",
    "A\r\n0123456789\r\n",
    "00",
    "f",
    "F",
    ";",
    ";a",
    ";a=b",
    "=",
    ";a=\"b;\\\"\"",
    "\"",
    "\\",
    " ",
    "\t",
    "\r\n",
    "\r",
    "\n",
    "\0",
    "T: u\r\n",
    "T",
    ":",
    "x",
    "64\r\n",
    "65\r\n",
    "FFFFFFFFFFFFFFFF",
    "10000000000000000",
];

pub fn generated(dice: &mut Dice, words: &[&str]) -> Vec<u8> {
    (0..=dice.roll(24)).flat_map(|_| dice.pick(words).bytes()).collect()
}

fn request(dice: &mut Dice) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..=dice.roll(4) {
        let method = dice.pick(&["GET", "POST", "PUT", "HEAD", "X"]);
        let _ = write!(text, "{method} /{} HTTP/1.{}\r\nHost: a\r\n", dice.roll(100), dice.roll(8).min(1));
        for _ in 0..dice.roll(3) {
            text += dice.pick(&[
                "X: y\r\n",
                "Expect: 100-continue\r\n",
                "Connection: keep-alive\r\n",
                "Y:\t\r\n",
            ]);
        }
        match dice.roll(3) {
            0 => text += "\r\n",
            1 => {
                let length = dice.roll(40);
                let _ = write!(text, "Content-Length: {length}\r\n\r\n{}", "b".repeat(length));
            }
            _ => {
                text += "Transfer-Encoding: chunked\r\n\r\n";
                text += &String::from_utf8_lossy(&chunks(dice).0);
            }
        }
    }
    text.into_bytes()
}

/// A well-formed chunked body, and its content.
fn chunks(dice: &mut Dice) -> (Vec<u8>, Vec<u8>) {
    let (mut text, mut body) = (String::new(), String::new());
    for _ in 0..dice.roll(5) {
        let data = "d".repeat(1 + dice.roll(20));
        let extension = dice.pick(&["", "", ";a", ";a=b", " ;a", ";a=\"b\\\";\"", ";a;b=c"]);
        let _ = write!(text, "{:x}{extension}\r\n{data}\r\n", data.len());
        body += &data;
    }
    text += dice.pick(&[
        "0\r\n\r\n",
        "00\r\n\r\n",
        "0;a\r\n\r\n",
        "0\r\nT: u\r\n\r\n",
        "0\r\nT:\r\nV:\tw\r\n\r\n",
    ]);
    (text.into_bytes(), body.into_bytes())
}

fn damage(dice: &mut Dice, bytes: &mut Vec<u8>, words: &[&str]) {
    for _ in 0..dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        match dice.roll(5) {
            0 if at < bytes.len() => bytes[at] = dice.roll(256) as u8,
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.insert(at, dice.roll(256) as u8),
            3 => drop(bytes.splice(at..at, dice.pick(words).bytes())),
            4 => {
                let end = at + dice.roll(bytes.len() - at + 1);
                let again = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, again));
            }
            _ => {}
        }
    }
}

pub fn cut<'a>(dice: &mut Dice, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(1 + dice.roll(rest.len().min(30)));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

/// Run `target` on the corpus, then on inputs from `make`, for the requested time.
pub fn fuzz(name: &str, make: impl Fn(&mut Dice) -> Vec<u8>, target: impl Fn(&mut Dice, &[u8])) {
    let minutes: f64 =
        std::env::var("CORESPUN_FUZZ_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let seed = std::env::var("CORESPUN_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0x5eed);
    let cases_min = if cfg!(miri) { 20 } else { 20_000 };
    let mut dice = Dice(seed);
    let run = |bytes: &[u8], dice: &mut Dice| {
        let before = dice.0;
        let outcome = catch_unwind(AssertUnwindSafe(|| target(dice, bytes)));
        assert!(outcome.is_ok(), "{name}: seed {before}, input {:?}", String::from_utf8_lossy(bytes));
    };
    if !cfg!(miri) {
        let folder = format!("{}/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
        for file in fs::read_dir(&folder).expect("the corpus") {
            let bytes = fs::read(file.expect("a file").path()).expect("its bytes");
            for _ in 0..100 {
                run(&bytes, &mut dice);
            }
        }
    }
    let (begun, mut cases) = (Instant::now(), 0_u64);
    while cases < cases_min || begun.elapsed() < Duration::from_secs_f64(minutes * 60.0) {
        let bytes = make(&mut dice);
        run(&bytes, &mut dice);
        cases += 1;
    }
    println!("{name}: {cases} cases from seed {seed} in {:.0} s", begun.elapsed().as_secs_f64());
}

/// The transcript without the statuses of refused heads: of two faults in a head the first one that has
/// arrived is reported. In a body it is always the first.
fn seen(pieces: &[&[u8]]) -> Vec<String> {
    let words = transcript(pieces).into_iter();
    words.map(|word| if word.starts_with("refused head") { "refused head".into() } else { word }).collect()
}

#[test]
fn fuzz_connection() {
    let make = |dice: &mut Dice| {
        let mut bytes = if dice.roll(3) == 0 { generated(dice, WORDS) } else { request(dice) };
        damage(dice, &mut bytes, WORDS);
        bytes
    };
    fuzz("connection", make, |dice, bytes| {
        let pieces = cut(dice, bytes);
        assert_eq!(seen(&pieces), seen(&[bytes]), "{pieces:?}");
    });
}

/// The responses of a connection with these limits whose responses are sent in random pieces and whose client
/// ends after `bytes`.
fn responses(dice: &mut Dice, bytes: &[u8], limits: &Limits) -> String {
    let (heads, mut parser) = (Heads::default(), Parser::default());
    let (mut connection, mut input) = (Connection::default(), bytes.to_vec());
    let (mut open, mut stamp, mut text) = (Vec::new(), 0, Vec::new());
    while !connection.is_over() {
        let left = match connection.next(&mut input, limits, &mut parser) {
            Ok(Next::Request(request) | Next::Trailed(request)) => {
                stamp += 1;
                connection.admit(&request, stamp);
                input.drain(..request.consumed);
                open.push(stamp);
                continue;
            }
            Ok(Next::Skipped(bytes)) => {
                input.drain(..bytes);
                continue;
            }
            Ok(Next::Wait | Next::Frames(..)) => Rest::Unread,
            Ok(Next::Partial) => Rest::Partial,
            Err(refusal) => {
                connection.refuse(refusal, &input, &heads);
                Rest::Partial
            }
        };
        connection.end_input(left);
        // A body that its client does not finish is aborted, as in `pull`.
        if connection.is_in_body()
            && let Some(last) = open.pop()
        {
            connection.abort(last);
        }
        if !open.is_empty() {
            let next = open.remove(dice.roll(open.len()));
            let response = Response { status: 200, kind: 1, headers: b"" };
            connection.respond(next, &response, format!("{next}.").as_bytes(), &heads);
        }
        let leaves = dice.roll(connection.unsent() + 1);
        text.extend_from_slice(&connection.out[connection.sent..connection.sent + leaves]);
        connection.sent += leaves;
    }
    text.extend_from_slice(&connection.out[connection.sent..]);
    // Which response is known to be the last depends on when it is written.
    String::from_utf8_lossy(&text)
        .replace("connection: close\r\n", "")
        .replace("connection: keep-alive\r\n", "")
}

#[test]
fn fuzz_end_of_input() {
    let tight = Limits { out_bytes_max: 90, pipeline_max: 3, ..Limits::default() };
    let make = |dice: &mut Dice| {
        let mut bytes = request(dice);
        if dice.roll(3) == 0 {
            damage(dice, &mut bytes, WORDS);
        }
        bytes.truncate(if dice.roll(2) == 0 { dice.roll(bytes.len() + 1) } else { usize::MAX });
        bytes
    };
    fuzz("connection", make, |dice, bytes| {
        assert_eq!(responses(dice, bytes, &tight), responses(dice, bytes, &Limits::default()));
    });
}

/// A body, the bytes used, and its trailer lines.
type Read = (Vec<u8>, usize, Vec<u8>);

/// Decode in pieces. `None` if more are needed.
fn decode(pieces: &[&[u8]], limits: &Limits) -> Result<Option<Read>, ()> {
    let (mut decoder, mut body, mut used) = (Chunked::default(), Vec::new(), 0);
    for piece in pieces {
        let mut data = piece.to_vec();
        let step = decoder.decode(&mut data, limits).map_err(drop)?;
        assert!(step.produced <= step.consumed && step.consumed <= data.len());
        body.extend_from_slice(&data[..step.produced]);
        used += step.consumed;
        if step.is_end {
            return Ok(Some((body, used, decoder.trailer_lines)));
        }
        assert_eq!(step.consumed, data.len());
    }
    Ok(None)
}

/// A simple reader: the complete body at the beginning of `bytes`.
fn simple(bytes: &[u8]) -> Option<Read> {
    let (mut at, mut body, mut trailers) = (0, Vec::new(), Vec::new());
    let line = |at: usize| {
        let end = bytes[at..].windows(2).position(|pair| pair == b"\r\n")?;
        let text = &bytes[at..at + end];
        text.iter()
            .all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
            .then_some((text, at + end + 2))
    };
    loop {
        let (text, next) = line(at)?;
        let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let is_size = (1..=16).contains(&digits) && is_extension(&text[digits..]);
        let size = usize::from_str_radix(std::str::from_utf8(&text[..digits]).ok()?, 16).ok()?;
        if !is_size {
            return None;
        }
        at = next;
        if size == 0 {
            break;
        }
        body.extend_from_slice(bytes.get(at..at.checked_add(size)?)?);
        at += size;
        at = bytes[at..].starts_with(b"\r\n").then_some(at + 2)?;
    }
    loop {
        let (text, next) = line(at)?;
        at = next;
        if text.is_empty() {
            return Some((body, at, trailers));
        }
        let name = text.iter().position(|&byte| byte == b':')?;
        if name == 0 || !text[..name].iter().all(|&byte| is_token(byte)) {
            return None;
        }
        trailers.extend_from_slice(text);
        trailers.extend_from_slice(b"\r\n");
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted ) ] )`, one extension after the other.
fn is_extension(text: &[u8]) -> bool {
    if text.is_empty() {
        return true;
    }
    let blanks = |text: &[u8]| text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let token = |text: &[u8]| text.iter().take_while(|&&byte| is_token(byte)).count();
    let text = &text[blanks(text)..];
    let Some(text) = text.strip_prefix(b";") else { return false };
    let text = &text[blanks(text)..];
    let name = token(text);
    let behind = &text[name..];
    if name == 0 {
        return false;
    }
    let Some(value) = behind[blanks(behind)..].strip_prefix(b"=") else { return is_extension(behind) };
    let value = &value[blanks(value)..];
    if let Some(quoted) = value.strip_prefix(b"\"") {
        let mut at = 0;
        while quoted.get(at).is_some_and(|&byte| byte != b'"') {
            at += if quoted[at] == b'\\' { 2 } else { 1 };
        }
        return at < quoted.len() && is_extension(&quoted[at + 1..]);
    }
    let length = token(value);
    length > 0 && is_extension(&value[length..])
}

#[test]
fn fuzz_chunked() {
    let limits = Limits::default();
    let make = |dice: &mut Dice| {
        if dice.roll(4) == 0 {
            return generated(dice, CHUNK_WORDS);
        }
        let mut bytes = chunks(dice).0;
        damage(dice, &mut bytes, CHUNK_WORDS);
        bytes
    };
    fuzz("chunked", make, |dice, bytes| {
        let whole = decode(&[bytes], &limits);
        assert_eq!(decode(&cut(dice, bytes), &limits), whole);
        assert_eq!(whole.ok().flatten(), simple(bytes));
        let (valid, body) = chunks(dice);
        let found =
            decode(&cut(dice, &valid), &limits).map(|found| found.map(|(body, used, _)| (body, used)));
        assert_eq!(found, Ok(Some((body, valid.len()))));
    });
}
