//! Heads that came before.
//!
//! A client that keeps its connection asks again and again with the same bytes. What a head says follows from
//! its bytes and the limits alone, so a head that is byte for byte one of those seen of late says what that
//! one said, and is compared instead of parsed. Heads with a body or an expectation, and long ones, are
//! always parsed. The table is small and never grows; who sends ever new heads costs a copy each.

use crate::{
    head::{self, Field, Framing, Head, Parsed},
    limits::{Limits, Refusal},
    targets::hash,
};

/// Heads remembered.
const PLACES: usize = 64;
/// By so many of its first bytes a head finds its place.
const KEY_BYTES: usize = 32;
/// Longest head that is remembered, and most fields it has.
const BYTES_MAX: usize = 512;
const FIELDS_MAX: usize = 16;

#[derive(Debug, Default)]
struct Known {
    head: Option<Head>,
    bytes: Vec<u8>,
    fields: Vec<Field>,
}

/// Parses heads under one set of limits.
#[derive(Debug)]
pub struct Parser {
    /// The fields of the head that was parsed last.
    pub fields: Vec<Field>,
    known: Box<[Known]>,
}

impl Default for Parser {
    fn default() -> Self {
        Self { fields: Vec::new(), known: (0..PLACES).map(|_| Known::default()).collect() }
    }
}

impl Parser {
    /// As [`head::parse`]; the limits have to be the same in all calls.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn parse(&mut self, input: &[u8], limits: &Limits) -> Result<Parsed, Refusal> {
        let Some(key) = input.first_chunk::<KEY_BYTES>() else {
            return head::parse(input, limits, &mut self.fields);
        };
        let place = hash(key) as usize % PLACES;
        let known = &self.known[place];
        if let Some(head) = known.head
            && input.starts_with(&known.bytes)
        {
            self.fields.clear();
            self.fields.extend_from_slice(&known.fields);
            return Ok(Parsed::Whole(head));
        }
        self.parse_anew(input, limits, place)
    }

    fn parse_anew(&mut self, input: &[u8], limits: &Limits, place: usize) -> Result<Parsed, Refusal> {
        let parsed = head::parse(input, limits, &mut self.fields)?;
        if let Parsed::Whole(head) = parsed
            && head.framing == Framing::Length(0)
            && !head.expects
            && head.bytes <= BYTES_MAX
            && self.fields.len() <= FIELDS_MAX
        {
            let known = &mut self.known[place];
            known.head = Some(head);
            known.bytes.clear();
            known.bytes.extend_from_slice(&input[..head.bytes]);
            known.fields.clear();
            known.fields.extend_from_slice(&self.fields);
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
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

    /// What either way of parsing came to.
    fn told(parsed: Result<Parsed, Refusal>, fields: &[Field]) -> String {
        match parsed {
            Ok(Parsed::Whole(head)) => format!("{head:?} {fields:?}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_head_says_the_same_whatever_came_before_and_follows() {
        let limits = Limits::default();
        let mut parser = Parser::default();
        // Every head after every other; under Miri each of them first once and second once.
        let pairs = (0..HEADS.len()).flat_map(|at| (0..HEADS.len()).map(move |to| (at, to)));
        for (first, second) in pairs.step_by(if cfg!(miri) { HEADS.len() - 1 } else { 1 }) {
            for text in [HEADS[first], HEADS[second], HEADS[second]] {
                for tail in ["", "GET", "\r\n\r\n", HEADS[first]] {
                    let input = format!("{text}{tail}");
                    let mut fields = Vec::new();
                    let expected = head::parse(input.as_bytes(), &limits, &mut fields);
                    let found = parser.parse(input.as_bytes(), &limits);
                    assert_eq!(told(found, &parser.fields), told(expected, &fields), "{input:?}");
                }
            }
        }
    }

    #[test]
    fn a_head_cut_anywhere_is_partial_though_it_was_seen_whole() {
        let limits = Limits::default();
        let mut parser = Parser::default();
        for text in HEADS {
            let _ = parser.parse(text.as_bytes(), &limits);
            // Under Miri some cuts in each line and field of a head.
            for end in (1..text.len()).step_by(if cfg!(miri) { 7 } else { 1 }) {
                let mut fields = Vec::new();
                let cut = &text.as_bytes()[..end];
                let expected = told(head::parse(cut, &limits, &mut fields), &fields);
                let found = parser.parse(cut, &limits);
                assert_eq!(told(found, &parser.fields), expected, "{:?}", &text[..end]);
            }
        }
    }

    #[test]
    fn long_heads_and_those_of_many_fields_are_not_remembered() {
        let limits = Limits::default();
        for lines in [FIELDS_MAX - 1, FIELDS_MAX, FIELDS_MAX + 1] {
            for value in ["v", &"v".repeat(BYTES_MAX)] {
                let mut parser = Parser::default();
                let text =
                    format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", format!("x: {value}\r\n").repeat(lines));
                assert!(parser.parse(text.as_bytes(), &limits).is_ok());
                let kept = parser.known.iter().filter(|known| known.head.is_some()).count();
                assert_eq!(
                    kept,
                    usize::from(lines < FIELDS_MAX && value.len() == 1),
                    "{lines} {}",
                    value.len()
                );
            }
        }
    }
}
