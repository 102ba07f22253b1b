//! Heads as a table: the section of RFC 9110 or 9112, the bytes, and the result. `~` means CR LF, so that a
//! row fits a line.

use super::*;

impl Span {
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.at as usize..][..self.len as usize]
    }
}

fn parsed(text: &str, limits: &Limits) -> Result<Parsed, Refusal> {
    parse(text.replace('~', "\r\n").as_bytes(), limits, &mut Vec::new())
}

fn check(table: &[(&str, &str, &str)]) {
    for (clause, text, expected) in table {
        let found = match parsed(text, &Limits::default()) {
            Err(Refusal { status, why }) => format!("{status} {why}"),
            Ok(Parsed::Partial) => "partial".into(),
            Ok(Parsed::Whole(head)) => {
                let framing = match head.framing {
                    Framing::Length(length) => length.to_string(),
                    Framing::Chunked => "chunked".into(),
                };
                let keeps = if head.keeps_alive { "keeps" } else { "closes" };
                let expects = if head.expects { " expects" } else { "" };
                format!("{:?} {framing} {keeps}{expects}", head.method)
            }
        };
        assert_eq!(&found, expected, "{clause}: {text:?}");
    }
}

#[test]
fn valid_requests_are_accepted() {
    check(&[
        ("9112 3", "GET / HTTP/1.1~Host: a~~", "Get 0 keeps"),
        ("9112 3.1", "get / HTTP/1.1~Host: a~~", "Other 0 keeps"),
        ("9110 9.1", "PROPFIND / HTTP/1.1~Host: a~~", "Other 0 keeps"),
        ("9112 2.2", "~~GET / HTTP/1.1~Host: a~~", "Get 0 keeps"),
        ("9112 5.1", "GET / HTTP/1.1~HOST:a~~", "Get 0 keeps"),
        ("9110 5.5", "GET / HTTP/1.1~Host: a~X: \t b \t ~~", "Get 0 keeps"),
        ("9110 5.5", "GET / HTTP/1.1~Host: a~X:~~", "Get 0 keeps"),
        ("9110 5.5", "GET / HTTP/1.1~Host: a~X: \u{80}~~", "Get 0 keeps"),
        ("9112 9.3", "GET / HTTP/1.0~~", "Get 0 closes"),
        ("9112 9.3", "GET / HTTP/1.0~Connection: Keep-Alive~~", "Get 0 keeps"),
        ("9112 9.6", "GET / HTTP/1.1~Host: a~Connection: x, CLOSE~~", "Get 0 closes"),
        ("9112 9.6", "GET / HTTP/1.0~Connection: keep-alive, close~~", "Get 0 closes"),
        ("9112 6.2", "POST / HTTP/1.1~Host: a~Content-Length: 007~~", "Post 7 keeps"),
        ("9112 6.1", "POST / HTTP/1.1~Host: a~Transfer-Encoding: Chunked~~", "Post chunked keeps"),
        (
            "9110 10.1.1",
            "PUT / HTTP/1.1~Host: a~Expect: 100-Continue~Content-Length: 1~~",
            "Put 1 keeps expects",
        ),
        ("9110 10.1.1", "PUT / HTTP/1.1~Host: a~Expect: 100-continue~~", "Put 0 keeps"),
        ("9110 10.1.1", "PUT / HTTP/1.0~Expect: 100-continue~Content-Length: 1~~", "Put 1 closes"),
        ("9110 7.8", "GET / HTTP/1.1~Host: a~Connection: Upgrade~Upgrade: h2c~~", "Get 0 keeps"),
    ]);
}

#[test]
fn targets_have_the_form_of_their_method() {
    check(&[
        ("9112 3.2.1", "GET /a?b=c HTTP/1.1~Host: a~~", "Get 0 keeps"),
        ("9112 3.2.2", "GET http://a:80/b HTTP/1.1~Host: a~~", "Get 0 keeps"),
        ("9112 3.2.2", "GET HTTP://a?b HTTP/1.1~Host: a~~", "Get 0 keeps"),
        ("9110 7.4", "GET HTTPS://a?b HTTP/1.1~Host: a~~", "421 https on a connection without TLS"),
        ("9110 4.2.1", "GET https://:1/ HTTP/1.1~Host: a~~", "400 authority of the target"),
        ("9112 3.2.4", "OPTIONS * HTTP/1.1~Host: a~~", "Options 0 keeps"),
        ("9112 3.2.4", "GET * HTTP/1.1~Host: a~~", "400 form of the target"),
        ("9112 3.2.3", "CONNECT a:1 HTTP/1.1~Host: a~~", "501 CONNECT"),
        ("9110 9.3.8", "TRACE / HTTP/1.1~Host: a~~", "501 TRACE"),
        ("9112 3.2", "GET a HTTP/1.1~Host: a~~", "400 form of the target"),
        ("9112 3.2", "GET ftp://a/ HTTP/1.1~Host: a~~", "400 form of the target"),
        ("9110 4.2.1", "GET http:///b HTTP/1.1~Host: a~~", "400 authority of the target"),
        ("9110 4.2.4", "GET http://u@a/ HTTP/1.1~Host: a~~", "400 authority of the target"),
        ("9112 3.2", "GET /a#b HTTP/1.1~Host: a~~", "400 target"),
        ("9112 3.2", "GET /\u{e9} HTTP/1.1~Host: a~~", "400 target"),
        ("9112 3", "GET  / HTTP/1.1~Host: a~~", "400 method or target"),
        ("9112 3", "GET / a HTTP/1.1~Host: a~~", "400 version"),
        ("9112 3", "GET /\tHTTP/1.1~Host: a~~", "400 method or target"),
        ("9112 3.1", "G(T / HTTP/1.1~Host: a~~", "400 method or target"),
        ("9112 3", " GET / HTTP/1.1~Host: a~~", "400 method or target"),
    ]);
}

#[test]
fn a_target_contains_only_characters_of_a_uri() {
    for byte in 0..=127_u8 {
        let character = byte as char;
        let status = |target: &str| {
            let text = format!("GET {target} HTTP/1.1~Host: a~~").replace('~', "\r\n");
            parse(text.as_bytes(), &Limits::default(), &mut Vec::new()).map(drop).map_err(|it| it.status)
        };
        let is_uri = byte.is_ascii_alphanumeric() || b"-._~:/?[]@!$&'()*+,;=%".contains(&byte);
        // The URL standard leaves these in a query, so browsers send them.
        let is_query = is_uri || b"\\^`{|}".contains(&byte);
        if byte != b'~' {
            assert_eq!(status(&format!("/a{character}b")).is_ok(), is_uri, "path {character:?}");
            assert_eq!(status(&format!("/?a{character}b")).is_ok(), is_query, "query {character:?}");
            assert_eq!(status(&format!("http://a/b{character}c")).is_ok(), is_uri, "absolute {character:?}");
        }
    }
}

#[test]
fn a_later_minor_version_is_read_as_http_1_1() {
    let limits = Limits { header_bytes_max: 200, ..Limits::default() };
    for padding in [0, 10, 140, 150, 152, 153, 154, 160, 300] {
        let text = format!("GET /a HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\nrest", "x".repeat(padding));
        let later = text.replace("HTTP/1.1", "HTTP/1.7");
        for end in 0..=text.len() {
            let outcome = |text: &str| {
                let mut fields = Vec::new();
                let parsed = parse(&text.as_bytes()[..end], &limits, &mut fields);
                format!("{parsed:?} {fields:?}")
            };
            assert_eq!(outcome(&later), outcome(&text), "{padding} bytes, the first {end}");
        }
    }
}

#[test]
fn unsupported_versions_are_refused() {
    check(&[
        ("9110 15.6.6", "GET / HTTP/2.0~Host: a~~", "505 version"),
        ("9110 15.6.6", "PRI * HTTP/2.0~~SM~~", "505 version"),
        ("9110 2.5", "GET / HTTP/1.2~Host: a~~", "Get 0 keeps"),
        ("9110 2.5", "~~GET / HTTP/1.9~Host: a~Connection: close~~", "Get 0 closes"),
        ("9110 2.5", "GET / HTTP/1.2~", "partial"),
        ("9110 2.5", "GET / HTTP/1.2", "partial"),
        ("9110 2.5", "GET / HTTP/1.2 ~Host: a~~", "400 version"),
        ("9112 3.2", "GET / HTTP/1.2~~", "400 no host"),
        (
            "9112 6.1",
            "POST / HTTP/1.3~Host: a~Content-Length: 1~Transfer-Encoding: chunked~~",
            "400 content-length with transfer-encoding",
        ),
        ("9112 2.3", "GET / http/1.1~Host: a~~", "400 version"),
        ("9112 2.3", "GET / HTTP/1.10~Host: a~~", "400 line end"),
        ("9112 2.3", "GET / HTTP/11~Host: a~~", "400 version"),
        ("9112 3", "GET /~~", "400 method or target"),
    ]);
}

#[test]
fn framing_that_could_be_read_two_ways_is_refused() {
    check(&[
        (
            "9112 6.3",
            "POST / HTTP/1.1~Host: a~Content-Length: 1~Content-Length: 2~~",
            "400 more than one content-length",
        ),
        (
            "9112 6.3",
            "POST / HTTP/1.1~Host: a~Content-Length: 1~Content-Length: 1~~",
            "400 more than one content-length",
        ),
        ("9112 6.3", "POST / HTTP/1.1~Host: a~Content-Length: 1, 1~~", "400 content-length"),
        ("9110 8.6", "POST / HTTP/1.1~Host: a~Content-Length: +1~~", "400 content-length"),
        ("9110 8.6", "POST / HTTP/1.1~Host: a~Content-Length: -1~~", "400 content-length"),
        ("9110 8.6", "POST / HTTP/1.1~Host: a~Content-Length: 0x1~~", "400 content-length"),
        ("9110 8.6", "POST / HTTP/1.1~Host: a~Content-Length:~~", "400 content-length"),
        ("9110 8.6", "POST / HTTP/1.1~Host: a~Content-Length: 1 2~~", "400 content-length"),
        ("9110 8.6", "POST / HTTP/1.1~Host: a~Content-Length: 99999999999999999999~~", "413 body too long"),
        ("9110 15.5.14", "POST / HTTP/1.1~Host: a~Content-Length: 1048577~~", "413 body too long"),
        (
            "9112 6.1",
            "POST / HTTP/1.1~Host: a~Content-Length: 1~Transfer-Encoding: chunked~~",
            "400 content-length with transfer-encoding",
        ),
        (
            "9112 6.1",
            "POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked~Content-Length: 0~~",
            "400 content-length with transfer-encoding",
        ),
        ("9112 6.1", "POST / HTTP/1.0~Transfer-Encoding: chunked~~", "400 transfer-encoding in HTTP/1.0"),
        (
            "9112 6.1",
            "POST / HTTP/1.1~Host: a~Transfer-Encoding: gzip~~",
            "400 chunked is not the last coding",
        ),
        (
            "9112 6.1",
            "POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked, gzip~~",
            "400 a coding after chunked",
        ),
        ("9112 7", "POST / HTTP/1.1~Host: a~Transfer-Encoding: gzip, chunked~~", "501 transfer coding"),
        (
            "9112 7.1",
            "POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked, chunked~~",
            "400 a coding after chunked",
        ),
        (
            "9112 7.1",
            "POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked~Transfer-Encoding: chunked~~",
            "400 a coding after chunked",
        ),
        ("9112 7", "POST / HTTP/1.1~Host: a~Transfer-Encoding: identity~~", "400 transfer-encoding"),
        ("9112 7", "POST / HTTP/1.1~Host: a~Transfer-Encoding:~~", "400 transfer-encoding"),
        ("9112 7", "POST / HTTP/1.1~Host: a~Transfer-Encoding: \u{b}chunked~~", "400 field value"),
        (
            "9112 7",
            "POST / HTTP/1.1~Host: a~Transfer-Encoding: xchunked~~",
            "400 chunked is not the last coding",
        ),
        ("9110 10.1.1", "POST / HTTP/1.1~Host: a~Expect: 200-ok~~", "417 expectation"),
        ("9110 10.1.1", "POST / HTTP/1.1~Host: a~Expect: 100-continue, tea~~", "417 expectation"),
    ]);
}

#[test]
fn lines_and_fields_are_well_formed() {
    check(&[
        ("9112 5.2", "GET / HTTP/1.1~Host: a~X: b~ c~~", "400 field name"),
        ("9112 5.2", "GET / HTTP/1.1~ Host: a~~", "400 field name"),
        ("9112 5.1", "GET / HTTP/1.1~Host : a~~", "400 field name"),
        ("9112 5.1", "GET / HTTP/1.1~Host\t: a~~", "400 field name"),
        ("9110 5.1", "GET / HTTP/1.1~Host: a~X(: b~~", "400 field name"),
        ("9110 5.1", "GET / HTTP/1.1~Host: a~: b~~", "400 field name"),
        ("9112 5", "GET / HTTP/1.1~Host: a~X~~", "400 field name"),
        ("9110 5.5", "GET / HTTP/1.1~Host: a~X: b\0c~~", "400 field value"),
        ("9110 5.5", "GET / HTTP/1.1~Host: a~X: b\x7fc~~", "400 field value"),
        ("9112 2.2", "GET / HTTP/1.1~Host: a~X: b\rc~~", "400 field value"),
        ("9112 2.2", "GET / HTTP/1.1~Host: a~X: b\r\r\n~", "400 field value"),
        ("9112 2.2", "GET / HTTP/1.1\nHost: a~~", "400 line feed without carriage return"),
        ("9112 2.2", "GET / HTTP/1.1~Host: a\n\r\n", "400 line feed without carriage return"),
        ("9112 2.2", "GET / HTTP/1.1~Host: a~\n", "400 line feed without carriage return"),
        ("9112 2.2", "\nGET / HTTP/1.1~Host: a~~", "400 line feed without carriage return"),
        ("9112 2.2", "GET / HTTP/1.1~Host: a~X: b\n", "400 line feed without carriage return"),
        ("9112 2.2", "GET / HTTP/1.1\rHost: a~~", "400 line end"),
        ("9112 3", "\x16\x03\x01\x02", "400 method or target"),
    ]);
}

#[test]
fn a_request_has_exactly_one_valid_host() {
    check(&[
        ("9112 3.2", "GET / HTTP/1.1~~", "400 no host"),
        ("9112 3.2", "GET / HTTP/1.1~Host: a~Host: a~~", "400 more than one host"),
        ("9112 3.2", "GET / HTTP/1.0~Host: a~Host: b~~", "400 more than one host"),
        ("9110 4.2.1", "GET / HTTP/1.1~Host:~~", "400 host"),
        ("9110 7.2", "GET / HTTP/1.1~Host: a b~~", "400 host"),
        ("9110 7.2", "GET / HTTP/1.1~Host: a,b/c~~", "400 host"),
        ("9110 4.2.4", "GET / HTTP/1.1~Host: u@a~~", "400 host"),
        ("9110 7.2", "GET / HTTP/1.1~Host: a:b~~", "400 host"),
        ("9110 7.2", "GET / HTTP/1.1~Host: :80~~", "400 host"),
        ("9110 7.2", "GET / HTTP/1.1~Host: a:123456~~", "400 host"),
        ("9110 7.2", "GET / HTTP/1.1~Host: a:65536~~", "400 host"),
        ("9110 4.2.1", "GET http://a:65536/b HTTP/1.1~Host: a~~", "400 authority of the target"),
        ("9110 7.2", "GET / HTTP/1.1~Host: [::1~~", "400 host"),
        ("9110 7.2", "GET / HTTP/1.1~Host: [a]~~", "400 host"),
        ("9110 7.2", "GET / HTTP/1.1~Host: [::1]x~~", "400 host"),
        ("9110 7.2", "GET / HTTP/1.1~Host: [::1]:80~~", "Get 0 keeps"),
        ("9110 7.2", "GET / HTTP/1.1~Host: a_b.c-d:~~", "Get 0 keeps"),
    ]);
}

#[test]
fn exceeding_a_limit_has_its_status() {
    let limits = Limits { header_bytes_max: 200, headers_max: 3, target_bytes_max: 20, ..Limits::default() };
    let long = "x".repeat(200);
    let table = [
        (format!("GET /{} HTTP/1.1~Host: a~~", &long[..30]), 414),
        (format!("GET /{}", &long[..30]), 414),
        (format!("GET / HTTP/1.1~Host: a~X: {long}~~"), 431),
        (format!("GET / HTTP/1.1~Host: a~X: {long}"), 431),
        ("~".repeat(101), 431),
        (long.clone() + "x", 431),
        ("GET / HTTP/1.1~Host: a~B: c~D: e~F: g~~".into(), 431),
    ];
    for (text, status) in table {
        assert_eq!(parsed(&text, &limits).map(drop).map_err(|refusal| refusal.status), Err(status), "{text}");
    }
}

#[test]
fn every_prefix_of_a_head_is_partial() {
    let whole =
        "~PUT /a HTTP/1.1~Host: a~Expect: 100-continue~X:  y ~Content-Length: 3~~".replace('~', "\r\n");
    for end in 0..whole.len() {
        let found = parse(&whole.as_bytes()[..end], &Limits::default(), &mut Vec::new());
        assert!(matches!(found, Ok(Parsed::Partial)), "{end}: {found:?}");
    }
}

#[test]
fn fields_are_found_at_their_offsets() {
    let text = b"GET /a HTTP/1.1\r\nHost: b\r\nEmpty:\r\nX-Y:  c d \r\n\r\n";
    let mut fields = Vec::new();
    let Ok(Parsed::Whole(head)) = parse(text, &Limits::default(), &mut fields) else { panic!("refused") };
    assert_eq!(head.target.of(text), b"/a");
    let found: Vec<_> = fields.iter().map(|field| (field.name.of(text), field.value.of(text))).collect();
    assert_eq!(found, [(&b"Host"[..], &b"b"[..]), (b"Empty", b""), (b"X-Y", b"c d")]);
}
