//! The cached parser against the plain one: the same results, in whatever order heads arrive and however
//! they are cut.

use super::*;

const HEADS: [&str; 12] = [
    "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: xy\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\r\nContent-Length: 4\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\r\nContent-Length: 0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\r\nA b: c\r\n\r\n",
    "\r\nGET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\r\n\r\n",
    "GET / HTTP/1.0\r\nHost: a.example\r\nUser-Agent: x\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
];

fn outcome(parsed: Result<Parsed, Refusal>, fields: &[Field]) -> String {
    match parsed {
        Ok(Parsed::Whole(head)) => format!("{head:?} {fields:?}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn cached_heads_equal_parsed_ones() {
    let limits = Limits::default();
    let mut parser = Parser::default();
    // Every head after every other; under Miri a part of these pairs.
    let pairs = (0..HEADS.len()).flat_map(|at| (0..HEADS.len()).map(move |to| (at, to)));
    for (first, second) in pairs.step_by(if cfg!(miri) { HEADS.len() - 1 } else { 1 }) {
        for text in [HEADS[first], HEADS[second], HEADS[second]] {
            for tail in ["", "GET", "\r\n\r\n", HEADS[first]] {
                let input = format!("{text}{tail}");
                let mut fields = Vec::new();
                let expected = parse(input.as_bytes(), &limits, &mut fields);
                let found = parser.parse(input.as_bytes(), &limits);
                assert_eq!(outcome(found, &parser.fields), outcome(expected, &fields), "{input:?}");
            }
        }
    }
}

#[test]
fn a_prefix_of_a_cached_head_is_partial() {
    let limits = Limits::default();
    let mut parser = Parser::default();
    for text in HEADS {
        let _ = parser.parse(text.as_bytes(), &limits);
        // Under Miri every seventh byte.
        for end in (1..text.len()).step_by(if cfg!(miri) { 7 } else { 1 }) {
            let mut fields = Vec::new();
            let cut = &text.as_bytes()[..end];
            let expected = outcome(parse(cut, &limits, &mut fields), &fields);
            let found = parser.parse(cut, &limits);
            assert_eq!(outcome(found, &parser.fields), expected, "{:?}", &text[..end]);
        }
    }
}

#[test]
fn long_heads_and_those_with_many_fields_are_not_cached() {
    let limits = Limits::default();
    for lines in [FIELDS_MAX - 1, FIELDS_MAX, FIELDS_MAX + 1] {
        for value in ["v", &"v".repeat(BYTES_MAX)] {
            let mut parser = Parser::default();
            let text =
                format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", format!("x: {value}\r\n").repeat(lines));
            assert!(parser.parse(text.as_bytes(), &limits).is_ok());
            let kept = parser.entries.iter().filter(|entry| entry.head.is_some()).count();
            assert_eq!(kept, usize::from(lines < FIELDS_MAX && value.len() == 1), "{lines} {}", value.len());
        }
    }
}
