//! A connection without sockets: what is read however it is split, and what is sent in which order. The fuzz
//! target compares the same transcript.

mod rare;

use std::cell::Cell;

use super::*;

fn limits() -> Limits {
    Limits { body_bytes_max: 1000, pipeline_max: 4, ..Limits::default() }
}

fn heads() -> Heads {
    Heads::default()
}

thread_local! {
    // It caches heads from one transcript to the next, which must not matter.
    static PARSER: Cell<Parser> = Cell::default();
}

/// What happens when `pieces` arrive: every request gets a response at once, bodies are pulled to their end
/// first. The limits are low enough that fuzzing exceeds them.
pub(crate) fn transcript(pieces: &[&[u8]]) -> Vec<String> {
    let (limits, heads) = (Limits { header_bytes_max: 120, headers_max: 5, ..limits() }, heads());
    let (mut connection, mut parser, mut words) = (Connection::default(), PARSER.take(), Vec::new());
    let (mut input, mut stamp, mut pulling) = (Vec::new(), 0, None::<Vec<u8>>);
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            if let Some(body) = &mut pulling {
                body.append(&mut connection.ready);
                if connection.is_in_body() {
                    let step = match connection.decode(&mut input, &limits) {
                        Ok(step) => step,
                        Err(refusal) => {
                            words.push(format!("refused body {}", refusal.status));
                            pulling = None;
                            input.clear();
                            respond(&mut connection, stamp, &heads);
                            continue;
                        }
                    };
                    body.extend_from_slice(&input[..step.produced]);
                    input.drain(..step.consumed);
                    if !step.is_end {
                        break;
                    }
                }
                words.push(format!("body {}", String::from_utf8_lossy(body)));
                words.push(format!("trailers {}", String::from_utf8_lossy(connection.trailers(stamp))));
                pulling = None;
                respond(&mut connection, stamp, &heads);
            }
            match connection.next(&mut input, &limits, &mut parser) {
                Ok(next @ (Next::Request(request) | Next::Trailed(request))) => {
                    stamp += 1;
                    connection.admit(&request, stamp);
                    if matches!(next, Next::Trailed(_)) {
                        connection.bind_trailers(stamp);
                    }
                    let name = request.head.method_name.of(&input);
                    let target = String::from_utf8_lossy(request.head.target.of(&input)).into_owned();
                    words.push(format!("{} {target} {}", String::from_utf8_lossy(name), parser.fields.len()));
                    let body = input[request.head.bytes..][..request.body_bytes].to_vec();
                    input.drain(..request.consumed);
                    pulling = Some(if request.is_whole { body } else { Vec::new() });
                }
                Ok(Next::Skipped(bytes)) => {
                    input.drain(..bytes);
                }
                Ok(Next::Wait | Next::Partial | Next::Frames(..)) => break,
                Err(refusal) => {
                    // Only faults of a body can be found after its head was accepted.
                    let is_body = matches!(parser.parse(&input, &limits), Ok(Parsed::Whole(_)));
                    words.push(format!(
                        "refused {} {}",
                        if is_body { "body" } else { "head" },
                        refusal.status
                    ));
                    connection.refuse(refusal, &input, &heads);
                    break;
                }
            }
        }
    }
    // Not every way of splitting accepts the head of a request whose body is refused.
    if let Some(at) = words.iter().position(|word| word.starts_with("refused"))
        && at > 0
        && !words[at - 1].starts_with("trailers")
    {
        words.remove(at - 1);
    }
    words.push(format!("over {}", connection.is_over()));
    PARSER.set(parser);
    words
}

fn respond(connection: &mut Connection, stamp: u32, heads: &Heads) {
    let response = Response { status: 200, kind: 1, headers: b"" };
    assert!(connection.respond(stamp, &response, b"ok", heads));
}

fn chunked(body: &str) -> String {
    format!("POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked~~{body}")
}

#[test]
fn requests_do_not_depend_on_how_they_are_split() {
    let inputs = [
        "GET /a HTTP/1.1~Host: a~~GET /b HTTP/1.1~Host: a~X: y~~~~GET /c HTTP/1.0~~GET /d HTTP/1.1~Host: a~~",
        "POST / HTTP/1.1~Host: a~Content-Length: 5~~helloGET /b HTTP/1.1~Host: a~~",
        "POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked~~5;x=y~hello~3~abc~0~T: u~~GET / HTTP/1.0~~",
        "POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked~~5~hello~Z",
        "POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked~~5~hellox",
        "POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked~~FFFF~hello",
        &chunked(&format!("5;{}", "x".repeat(130))),
        &chunked(&format!("5~hello~0~X: {}", "x".repeat(130))),
        &chunked(&format!("5~hello~0~{}~", "X:~".repeat(6))),
        &chunked(&format!("5~hello~0~{}~GET /b HTTP/1.1~Host: a~~", "X:~".repeat(5))),
        "POST / HTTP/1.1~Host: a~Content-Length: 5~Content-Length: 5~~hello",
        "GET / HTTP/1.1~Host: a~~GET / HTTP/1.1~~GET / HTTP/1.1~Host: a~~",
        "GET / HTTP/1.1~Host: a~Connection: close~~GET / HTTP/1.1~Host: a~~",
        "PUT / HTTP/1.1~Host: a~Expect: 100-continue~Content-Length: 3~~abcGET / HTTP/1.1~Host: a~~",
    ];
    for input in inputs {
        let bytes = input.replace('~', "\r\n").into_bytes();
        let whole = transcript(&[&bytes]);
        for cut in (0..=bytes.len()).step_by(if cfg!(miri) { 37 } else { 1 }) {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(transcript(&[first, second]), whole, "{input:?} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(if cfg!(miri) { 31 } else { 1 }).collect();
        assert_eq!(transcript(&single), whole, "{input:?} byte by byte");
    }
}

/// A connection that has read `input` with its requests admitted under 1, 2, ..., and the number of unused
/// bytes.
fn read(input: &str, limits: &Limits) -> (Connection, usize) {
    let (mut connection, mut parser, mut stamp) = (Connection::default(), Parser::default(), 0);
    let mut input = input.replace('~', "\r\n").into_bytes();
    loop {
        match connection.next(&mut input, limits, &mut parser) {
            Ok(next @ (Next::Request(request) | Next::Trailed(request))) => {
                stamp += 1;
                connection.admit(&request, stamp);
                if matches!(next, Next::Trailed(_)) {
                    connection.bind_trailers(stamp);
                }
                input.drain(..request.consumed);
            }
            Ok(Next::Skipped(bytes)) => drop(input.drain(..bytes)),
            Ok(Next::Wait | Next::Partial | Next::Frames(..)) => return (connection, input.len()),
            Err(refusal) => {
                connection.refuse(refusal, &input, &heads());
                return (connection, 0);
            }
        }
    }
}

/// The bytes that were sent, with heads shortened.
fn sent(connection: &mut Connection) -> String {
    let text = String::from_utf8(std::mem::take(&mut connection.out)).unwrap();
    let date = "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    text.replace(date, "").replace("content-type: text/plain;charset=UTF-8\r\n", "").replace("\r\n", "~")
}

fn respond_with(connection: &mut Connection, stamp: u32, body: &str) -> bool {
    let response = Response { status: 200, kind: 1, headers: b"" };
    connection.respond(stamp, &response, body.as_bytes(), &heads())
}

const GET: &str = "GET / HTTP/1.1~Host: a~~";

#[test]
fn responses_are_sent_in_the_order_of_their_requests() {
    let (mut connection, _) = read(&GET.repeat(3), &limits());
    assert!(respond_with(&mut connection, 3, "c"));
    assert!(respond_with(&mut connection, 2, "b"));
    assert_eq!(sent(&mut connection), "");
    assert!(respond_with(&mut connection, 1, "a"));
    let one = |body| format!("HTTP/1.1 200 OK~content-length: 1~~{body}");
    assert_eq!(sent(&mut connection), one("a") + &one("b") + &one("c"));
    assert!(!respond_with(&mut connection, 1, "again"));
    assert_eq!((connection.exchanges(), connection.unsent()), (0, 0));
}

#[test]
fn a_streamed_response_ahead_of_its_turn_is_held() {
    let (mut connection, _) = read(&GET.repeat(2), &limits());
    let response = Response { status: 200, kind: 0, headers: b"" };
    assert!(connection.start(2, &response, None, &heads()).is_some());
    assert_eq!(connection.write(2, b"abc"), Some(92));
    assert!(respond_with(&mut connection, 1, "a"));
    assert_eq!(
        sent(&mut connection),
        "HTTP/1.1 200 OK~content-length: 1~~aHTTP/1.1 200 OK~transfer-encoding: chunked~~3~abc~"
    );
    assert_eq!(connection.write(2, b""), Some(0));
    assert_eq!(connection.write(2, b"0123456789"), Some(15));
    assert_eq!(connection.end(2), Some(true));
    assert_eq!(sent(&mut connection), "a~0123456789~0~~");
    assert_eq!(connection.end(2), Some(false));
}

#[test]
fn a_full_pipeline_stops_reading() {
    let (mut connection, left) = read(&GET.repeat(6), &limits());
    assert_eq!((connection.exchanges(), left), (4, 2 * GET.replace('~', "\r\n").len()));
    assert!(!connection.wants_input(&limits()));
    assert!(respond_with(&mut connection, 1, ""));
    assert!(connection.wants_input(&limits()));
}

#[test]
fn held_responses_stop_reading_like_unsent_ones() {
    let (mut connection, _) = read(&GET.repeat(3), &limits());
    let held = "x".repeat(limits().out_bytes_max);
    assert!(respond_with(&mut connection, 2, &held));
    assert!(!connection.wants_input(&limits()));
    let found =
        connection.next(&mut GET.replace('~', "\r\n").into_bytes(), &limits(), &mut Parser::default());
    assert!(matches!(found, Ok(Next::Wait)), "{found:?}");
    assert!(respond_with(&mut connection, 1, "") && respond_with(&mut connection, 3, ""));
    assert!(!connection.wants_input(&limits()));
    connection.sent = connection.out.len();
    assert!(connection.wants_input(&limits()));
}

#[test]
fn the_end_of_the_input_drops_no_unread_request() {
    let limits = Limits { out_bytes_max: 100, ..limits() };
    let (mut connection, _) = read(&GET.repeat(2), &limits);
    let large = "x".repeat(100);
    assert!(respond_with(&mut connection, 1, &large) && respond_with(&mut connection, 2, &large));
    assert!(connection.exchanges() == 0 && !connection.wants_input(&limits));
    // The client's end follows one more request, which is still unread.
    assert!(!connection.end_input(Rest::Unread) && !connection.is_over());
    connection.sent = connection.out.len();
    let mut rest = GET.replace('~', "\r\n").into_bytes();
    let found = connection.next(&mut rest, &limits, &mut Parser::default());
    let Ok(Next::Request(request)) = found else { panic!("{found:?}") };
    connection.admit(&request, 3);
    assert!(connection.end_input(Rest::Partial) && !connection.is_over());
    connection.out.clear();
    connection.sent = 0;
    assert!(respond_with(&mut connection, 3, "x"));
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~content-length: 1~connection: close~~x");
    assert!(connection.is_over());
    // The host notices a truncated body when it pulls it.
    let (mut connection, _) = read("PUT / HTTP/1.1~Host: a~Content-Length: 3~~ab", &limits);
    assert!(!connection.end_input(Rest::Partial) && connection.has_body(1));
}

#[test]
fn a_refusal_follows_the_responses_before_it() {
    let (mut connection, _) = read(&format!("{GET}GET / HTTP/1.1~~{GET}"), &limits());
    assert_eq!(sent(&mut connection), "");
    assert!(!connection.is_over());
    assert!(respond_with(&mut connection, 1, ""));
    assert_eq!(
        sent(&mut connection),
        "HTTP/1.1 200 OK~content-length: 0~~\
         HTTP/1.1 400 Bad Request~content-length: 8~connection: close~~no host\n"
    );
    assert!(connection.is_over() && connection.is_cut());
}

#[test]
fn connections_close_after_close_and_at_the_request_limit() {
    let closes = "HTTP/1.1 200 OK~content-length: 1~connection: close~~x";
    for input in ["GET / HTTP/1.0~~", "GET / HTTP/1.1~Host: a~Connection: close~~"] {
        let (mut connection, _) = read(input, &limits());
        assert!(respond_with(&mut connection, 1, "x"));
        assert_eq!(sent(&mut connection), closes);
        assert!(connection.is_over() && !connection.is_cut());
    }
    let (mut connection, _) = read("GET / HTTP/1.0~Connection: keep-alive~~", &limits());
    assert!(respond_with(&mut connection, 1, "x"));
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~content-length: 1~connection: keep-alive~~x");
    let (mut connection, left) = read(&GET.repeat(3), &Limits { requests_per_connection_max: 2, ..limits() });
    assert!(respond_with(&mut connection, 1, "x") && respond_with(&mut connection, 2, "x"));
    assert!(sent(&mut connection).ends_with(closes) && left > 0 && connection.is_over());
}

#[test]
fn responses_without_content_have_no_body() {
    let response = |status| Response { status, kind: 0, headers: b"" };
    let (mut connection, _) = read(&(GET.repeat(2) + "HEAD / HTTP/1.1~Host: a~~"), &limits());
    assert!(connection.respond(1, &response(204), b"no", &heads()));
    assert!(connection.respond(2, &response(304), b"no", &heads()));
    assert!(connection.respond(3, &response(200), b"four", &heads()));
    assert_eq!(
        sent(&mut connection),
        "HTTP/1.1 204 No Content~~HTTP/1.1 304 Not Modified~~HTTP/1.1 200 OK~content-length: 4~~"
    );
    let (mut connection, _) =
        read("HEAD / HTTP/1.1~Host: a~~HEAD / HTTP/1.0~Connection: keep-alive~~", &limits());
    for stamp in [1, 2] {
        assert!(connection.start(stamp, &response(200), None, &heads()).is_some());
        assert!(connection.write(stamp, b"abc").is_some());
        assert_eq!(connection.end(stamp), Some(true));
    }
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~~HTTP/1.1 200 OK~connection: keep-alive~~");
    assert!(!connection.is_over());
}

#[test]
fn a_streamed_body_has_its_announced_length() {
    let response = Response { status: 200, kind: 0, headers: b"" };
    let (mut connection, _) = read(&GET.repeat(2), &limits());
    assert!(connection.start(1, &response, Some(4), &heads()).is_some());
    connection.write(1, b"abcdef");
    assert_eq!(connection.end(1), Some(true));
    assert!(sent(&mut connection).ends_with("content-length: 4~~abcd"));
    assert!(connection.start(2, &response, Some(4), &heads()).is_some());
    connection.write(2, b"abc");
    assert_eq!(connection.end(2), None);
}

#[test]
fn an_http_1_0_response_of_unknown_length_ends_with_the_connection() {
    let (mut connection, _) = read("GET / HTTP/1.0~Connection: keep-alive~~", &limits());
    assert!(connection.start(1, &Response { status: 200, kind: 0, headers: b"" }, None, &heads()).is_some());
    connection.write(1, b"abc");
    assert_eq!(connection.end(1), Some(true));
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~connection: close~~abc");
    assert!(connection.is_over());
}

#[test]
fn continue_is_sent_when_the_body_is_pulled_and_its_turn_has_come() {
    let expecting = format!("{GET}PUT / HTTP/1.1~Host: a~Expect: 100-continue~Content-Length: 3~~");
    let (mut connection, _) = read(&expecting, &limits());
    assert!(connection.is_in_body() && connection.has_body(2));
    connection.ask(2);
    assert_eq!(sent(&mut connection), "");
    assert!(respond_with(&mut connection, 1, ""));
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~content-length: 0~~HTTP/1.1 100 Continue~~");
    connection.ask(2);
    assert_eq!(sent(&mut connection), "");
    let step = connection.decode(&mut b"abcGET".to_vec(), &limits()).unwrap();
    assert_eq!((step.consumed, step.produced, step.is_end), (3, 3, true));
    assert!(respond_with(&mut connection, 2, ""));
    assert!(!connection.is_over() && connection.wants_input(&limits()));
    // The host did not pull: the client may send the body or not, so the connection cannot persist.
    let (mut connection, _) = read(&expecting[GET.len()..], &limits());
    assert!(respond_with(&mut connection, 1, ""));
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~content-length: 0~connection: close~~");
    assert!(connection.is_over() && connection.is_cut());
}

#[test]
fn an_unwanted_body_is_skipped_if_it_is_small() {
    let large = Limits { body_bytes_max: u64::MAX, ..limits() };
    let (mut connection, _) = read("POST / HTTP/1.1~Host: a~Content-Length: 9~~12", &large);
    assert!(respond_with(&mut connection, 1, ""));
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~content-length: 0~~");
    let mut rest = b"3456789GET / HTTP/1.1\r\n".to_vec();
    let found = connection.next(&mut rest, &large, &mut Parser::default());
    assert!(matches!(found, Ok(Next::Skipped(7))), "{found:?}");
    let (mut connection, _) = read("POST / HTTP/1.1~Host: a~Content-Length: 999999~~12", &large);
    assert!(respond_with(&mut connection, 1, ""));
    assert!(sent(&mut connection).contains("connection: close") && connection.is_cut());
    // The length of a chunked body shows only at its end.
    let (mut connection, _) = read("POST / HTTP/1.1~Host: a~Transfer-Encoding: chunked~~FFFFFF~12", &large);
    assert!(respond_with(&mut connection, 1, ""));
    let mut piece = vec![b'x'; 64 * 1024];
    for _ in 0..4 {
        assert!(matches!(
            connection.next(&mut piece, &large, &mut Parser::default()),
            Ok(Next::Skipped(65536))
        ));
    }
    assert!(matches!(connection.next(&mut piece, &large, &mut Parser::default()), Ok(Next::Wait)));
    assert!(connection.is_over());
}

#[test]
fn closing_soon_finishes_the_open_exchanges() {
    let (mut connection, _) = read(GET, &limits());
    connection.close_soon();
    assert!(!connection.is_over());
    assert!(respond_with(&mut connection, 1, "x"));
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~content-length: 1~connection: close~~x");
    assert!(connection.is_over());
    let (mut connection, _) = read("", &limits());
    connection.close_soon();
    assert!(connection.is_over());
}

#[test]
fn take_unnotified_returns_each_stamp_once() {
    let (mut connection, _) = read(&GET.repeat(3), &limits());
    assert!(respond_with(&mut connection, 2, ""));
    assert_eq!(connection.take_unnotified(), [1, 3]);
    assert!(connection.take_unnotified().is_empty());
}

#[test]
fn nothing_is_read_behind_a_body_that_ends_with_the_connection() {
    let response = Response { status: 200, kind: 0, headers: b"" };
    let old = "GET / HTTP/1.0~Connection: keep-alive~~";
    let (mut connection, _) = read(&old.repeat(3), &limits());
    assert!(respond_with(&mut connection, 3, "dropped"));
    assert_eq!(connection.start(1, &response, None, &heads()), Some(vec![2]));
    assert!(!connection.wants_input(&limits()) && !connection.is_over());
    let found = connection.next(&mut b"no request\r\n\r\n".to_vec(), &limits(), &mut Parser::default());
    assert!(matches!(found, Ok(Next::Wait)), "{found:?}");
    connection.write(1, b"abc");
    assert_eq!(connection.end(1), Some(true));
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~connection: close~~abc");
    assert!(connection.is_over() && connection.is_cut());
    // A refusal behind it is not sent either: its bytes would become part of the streamed body.
    let (mut connection, _) = read(&format!("{old}GET / HTTP/1.1~~"), &limits());
    assert_eq!(connection.start(1, &response, None, &heads()), Some(vec![]));
    assert_eq!(connection.end(1), Some(true));
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK~connection: close~~");
    // Its own body can be read while it streams.
    let upload = "POST / HTTP/1.0~Connection: keep-alive~Content-Length: 3~~a";
    let (mut connection, _) = read(upload, &limits());
    assert_eq!(connection.start(1, &response, None, &heads()), Some(vec![]));
    assert!(connection.has_body(1));
    let step = connection.decode(&mut b"bc".to_vec(), &limits()).unwrap();
    assert_eq!((step.produced, step.is_end), (2, true));
    assert!(!connection.wants_input(&limits()));
    assert_eq!(connection.end(1), Some(true));
    assert!(connection.is_over());
}
