//! What a client may leave waiting, send for nothing, and send behind its response: by time, by number and
//! by rate.

use super::*;

#[test]
fn a_response_waits_for_the_window_of_its_client() {
    let mut builder = client::Builder::new();
    let mut pair = Pair::with(Limits::default(), builder.initial_window_size(1000));
    let mut response = pair.send(get("/"), None);
    let stamp = pair.turn()[0].stamp;
    let body: Vec<u8> = (0..50_000_u32).map(|byte| byte as u8).collect();
    pair.server.start(stamp, &OK, None).unwrap();
    pair.server.exchange(stamp).unwrap().push(&body);
    pair.turn();
    assert_eq!(pair.server.exchange(stamp).unwrap().queued(), body.len() - 1000);
    assert!(pair.server.end(stamp, None));
    let (_, headers, received) = pair.response(&mut response);
    assert!(!headers.contains_key("content-length"));
    assert_eq!(received, body);
    assert_eq!(pair.server.open_count(), 0);
}

#[test]
fn requests_of_a_client_that_is_owed_much_wait_until_it_has_read() {
    for (bytes, owed, waits) in [(2 * 1024 * 1024, 17, true), (3 * 1024 * 1024, 16, false), (1024, 17, false)]
    {
        let mut builder = client::Builder::new();
        builder.initial_window_size(0).initial_connection_window_size(u32::MAX >> 1);
        let mut pair = Pair::with(Limits::default(), &builder);
        let body = vec![7; bytes];
        let mut waiting = Vec::new();
        for _ in 0..owed {
            let future = pair.send(get("/"), None);
            let stamp = pair.turn()[0].stamp;
            pair.server.respond(stamp, &OK, &body);
            pair.turn();
            waiting.push(future);
        }
        let mut last = pair.send(get("/last"), None);
        let mut seen = pair.turn();
        assert_eq!(seen.is_empty(), waits, "{owed} of {bytes}");
        assert!(!pair.server.take_resumes());
        pair.client.set_initial_window_size(u32::MAX >> 1).unwrap();
        while seen.is_empty() {
            seen = pair.turn();
            let Some(response) = waiting.first_mut() else { continue };
            if let Some(found) = now(response) {
                let mut stream = found.unwrap().into_body();
                while let Poll::Ready(Some(bytes)) = stream.poll_data(&mut context()) {
                    let bytes = bytes.unwrap().len();
                    stream.flow_control().release_capacity(bytes).unwrap();
                }
                drop(waiting.remove(0));
            }
        }
        assert_eq!(pair.server.take_resumes(), waits);
        assert_eq!(seen[0].target, "/last");
        pair.server.respond(seen[0].stamp, &OK, b"last");
        assert_eq!(pair.response(&mut last).2, b"last");
    }
}

#[test]
fn a_client_that_makes_no_room_is_given_up() {
    let mut builder = client::Builder::new();
    let mut pair = Pair::with(Limits { body_ms: 500, ..Limits::default() }, builder.initial_window_size(10));
    let response = pair.send(get("/"), None);
    let stamp = pair.turn()[0].stamp;
    pair.server.start(stamp, &OK, None).unwrap();
    pair.server.exchange(stamp).unwrap().push(b"more than ten bytes");
    pair.now_ms = 100;
    pair.turn();
    assert_eq!(pair.server.deadline(&pair.limits), 600);
    let limits = pair.limits;
    let mut lost = Vec::new();
    assert!(!pair.server.time_out(599, &limits, |stamp, news| lost.push((stamp, news))));
    assert!(lost.is_empty());
    assert!(!pair.server.time_out(600, &limits, |stamp, news| lost.push((stamp, news))));
    assert_eq!(lost, [(stamp, News::Lost)]);
    drop(response);
}

#[test]
fn a_client_that_makes_little_room_is_given_up_unless_the_rest_was_sent() {
    let mut builder = client::Builder::new();
    let mut pair = Pair::with(Limits { body_ms: 500, ..Limits::default() }, builder.initial_window_size(10));
    let mut response = pair.send(get("/"), None);
    let stamp = pair.turn()[0].stamp;
    pair.server.start(stamp, &OK, None).unwrap();
    pair.server.exchange(stamp).unwrap().push(&[b'x'; 1000]);
    pair.turn();
    let mut stream = now(&mut response).unwrap().unwrap().into_body();
    let mut more = |pair: &mut Pair, bytes: usize| {
        pair.now_ms += 50;
        stream.flow_control().release_capacity(bytes).unwrap();
        pair.turn();
        while stream.poll_data(&mut context()).is_ready() {}
        pair.server.deadline(&pair.limits)
    };
    more(&mut pair, 0);
    for round in 0..9 {
        // Each waits 50 ms and is sent 5 bytes, which are worth 10.
        assert_eq!(more(&mut pair, 5), 501 + (round + 1) * 10, "round {round}");
    }
    let limits = pair.limits;
    pair.now_ms = 592;
    let mut lost = Vec::new();
    pair.server.time_out(592, &limits, |stamp, news| lost.push((stamp, news)));
    assert_eq!(lost, [(stamp, News::Lost)]);
}

#[test]
fn frames_for_their_own_sake_end_the_connection_unless_they_are_few_or_earned() {
    const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    const PRIORITY: &[u8] = b"\0\0\x05\x02\0\0\0\0\x03\0\0\0\0\x01";
    const UNKNOWN: &[u8] = b"\0\0\0\x42\0\0\0\0\0";
    const UPDATE: &[u8] = b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01";
    let sent = |pair: &mut Pair, frames: &[u8], ms: u64| {
        pair.now_ms += ms;
        pair.server.feed(frames, false);
        // A turn reads a share of them.
        for _ in 0..200 {
            pair.accept_all();
            pair.server.drive(&mut Vec::new(), usize::MAX, pair.now_ms, &mut pair.lost);
        }
        assert!(!pair.server.has_input() || pair.server.is_over());
        pair.server.is_over()
    };
    for (frame, most) in
        [(PING, 3_000), (SETTINGS, 3_000), (PRIORITY, 2_100), (UNKNOWN, 2_100), (UPDATE, 17_000)]
    {
        let mut pair = Pair::new(Limits::default());
        let _response = pair.send(get("/"), None);
        pair.turn();
        for _ in 0..100 {
            assert!(!sent(&mut pair, &frame.repeat(100), 100), "as many as time allows");
        }
        assert!(!sent(&mut pair, &frame.repeat(most), 0), "a request is open, type {}", frame[3]);
        assert!(sent(&mut pair, &frame.repeat(most), 0), "type {}", frame[3]);
        let mut pair = Pair::new(Limits::default());
        pair.turn();
        assert!(sent(&mut pair, &frame.repeat(most), 0), "nothing is open, type {}", frame[3]);
    }
    // What is sent to a client lets it open windows, and measure how long it takes.
    let mut pair = Pair::new(Limits::default());
    let _response = pair.send(get("/"), None);
    pair.turn();
    pair.server.earn(17_000 * 8);
    assert!(!sent(&mut pair, &UPDATE.repeat(17_000), 0));
}

#[test]
fn a_client_that_is_refused_may_send_its_body_to_the_end() {
    const BYTES: usize = 3 << 20;
    for is_refused_by_its_head in [false, true] {
        let mut pair = Pair::new(Limits { body_bytes_max: 1 << 20, ..Limits::default() });
        let mut request = post("/");
        if is_refused_by_its_head {
            request.headers_mut().insert("content-length", BYTES.into());
        }
        let ready = pair.send.poll_ready(&mut context());
        assert!(matches!(ready, Poll::Ready(Ok(()))));
        let (mut response, mut stream) = pair.send.send_request(request, false).unwrap();
        stream.reserve_capacity(BYTES);
        let seen = pair.turn();
        assert_eq!((seen.len(), pair.refused), if is_refused_by_its_head { (0, 1) } else { (1, 0) });
        if let Some(seen) = seen.first() {
            assert!(pair.server.respond(
                seen.stamp,
                &Response { status: 401, kind: 1, headers: b"" },
                b"who?"
            ));
        }
        let mut sent = 0;
        while sent < BYTES {
            pair.now_ms += 1_000;
            pair.turn();
            let room = stream.capacity().min(BYTES - sent);
            assert!(room > 0, "no room after {sent} bytes");
            sent += room;
            stream.send_data(vec![b'x'; room].into(), sent == BYTES).unwrap();
        }
        pair.turn();
        let (status, _, _) = pair.response(&mut response);
        assert_eq!(status, if is_refused_by_its_head { 413 } else { 401 });
        assert!(pair.server.draining.is_empty() && stream.poll_reset(&mut context()).is_pending());
    }
}

#[test]
fn a_client_that_is_refused_is_read_for_a_time_and_while_it_sends() {
    for (linger_ms, is_sending, end) in [(30_000, false, 2_001), (10_000, true, 10_001), (0, true, 1)] {
        let mut pair = Pair::new(Limits { linger_ms, ..Limits::default() });
        let limits = pair.limits;
        let (_response, mut stream) = pair.send.send_request(post("/"), false).unwrap();
        let stamp = pair.turn()[0].stamp;
        assert!(pair.server.respond(stamp, &OK, b""));
        pair.turn();
        while !pair.server.draining.is_empty() {
            assert!(pair.server.deadline(&limits) > pair.now_ms);
            pair.now_ms += 500;
            if is_sending {
                stream.send_data(vec![b'x'; 500].into(), false).unwrap();
            }
            pair.turn();
            let now_ms = pair.now_ms;
            assert!(!pair.server.time_out(now_ms, &limits, |_, _| panic!("nothing is open")));
        }
        assert_eq!(pair.now_ms, end);
        pair.turn();
        assert!(stream.poll_reset(&mut context()).is_ready());
    }
    let mut pair = Pair::new(Limits::default());
    let (_response, _stream) = pair.send.send_request(post("/"), false).unwrap();
    let stamp = pair.turn()[0].stamp;
    assert!(pair.server.respond(stamp, &OK, b""));
    pair.turn();
    assert!(!pair.server.draining.is_empty());
    pair.server.leave(pair.now_ms);
    assert!(pair.server.draining.is_empty(), "a stop waits for nothing");
}

/// The next of a series of numbers, below `most`.
fn roll(state: &mut u64, most: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % most
}

/// What a client may still reset, millisecond by millisecond, in two-thousandths of one.
struct Oracle {
    parts: u64,
    most: u64,
}

impl Oracle {
    fn wait(&mut self, ms: u64) {
        for _ in 0..ms {
            let full = self.most * 2_000;
            self.parts = if self.parts < full { (self.parts + self.most).min(full) } else { self.parts };
        }
    }

    fn begin(&mut self) {
        self.parts = (self.parts + 2_000).min(16 * self.most * 2_000);
    }

    fn cancel(&mut self) -> bool {
        let is_allowed = self.parts >= 2_000;
        self.parts = self.parts.saturating_sub(2_000);
        is_allowed
    }
}

#[test]
fn resets_are_counted_as_an_oracle_counts_them() {
    let seeds: u64 = std::env::var("CORESPUN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40);
    let mut given_up = 0;
    for seed in 1..=seeds {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let most = 1 + roll(&mut state, 12);
        let mut pair = Pair::new(Limits { resets_max: most as u32, streams_max: 1000, ..Limits::default() });
        let mut oracle = Oracle { parts: most * 2_000, most };
        // Something is open all the time: the connection is given up before it ends.
        let mut witness = pair.send(get("/witness"), None);
        let open = pair.turn()[0].stamp;
        // Honest clients wait for most responses, hostile ones for none.
        let hostility = roll(&mut state, 4);
        for step in 0..200 {
            let ms = roll(&mut state, 40);
            pair.now_ms += ms;
            oracle.wait(ms);
            let response = pair.send(get("/"), None);
            let stamp = pair.turn()[0].stamp;
            let is_allowed = if roll(&mut state, 4) < hostility {
                drop(response);
                oracle.cancel()
            } else {
                pair.server.start(stamp, &OK, None).unwrap();
                pair.turn();
                if roll(&mut state, 2) == 0 {
                    assert!(pair.server.end(stamp, None));
                    pair.turn();
                }
                drop(response); // a cancel, unless it is complete
                oracle.begin();
                true
            };
            pair.turn();
            assert_eq!(pair.server.given_up_ms == 0, is_allowed, "seed {seed}, step {step}, at most {most}");
            assert!(!pair.server.is_over());
            if !is_allowed {
                given_up += 1;
                break;
            }
        }
        pair.server.respond(open, &OK, b"open before");
        assert_eq!(pair.response(&mut witness).2, b"open before", "seed {seed}");
    }
    assert!(given_up > 0 && given_up < seeds, "{given_up} of {seeds} are too much");
}

#[test]
fn a_connection_that_is_given_up_refuses_new_streams_and_finishes_the_open_ones_within_a_bound() {
    let begun = || {
        let mut pair = Pair::new(Limits { resets_max: 1, ..Limits::default() });
        let witness = pair.send(get("/"), None);
        let open = pair.turn()[0].stamp;
        for _ in 0..2 {
            let cancelled = pair.send(get("/"), None);
            pair.turn();
            drop(cancelled);
        }
        let _ = Pin::new(&mut pair.client).poll(&mut context());
        let sent = std::mem::take(&mut pair.flow.borrow_mut().output);
        pair.server.feed(&sent, false);
        pair.server.drive(&mut Vec::new(), usize::MAX, 1, &mut pair.lost);
        let limits = pair.limits;
        pair.server.news(1, &limits, |_, _| ());
        // This one is sent before its client has read GOAWAY.
        let late = pair.send(get("/late"), None);
        assert!(pair.turn().is_empty());
        (pair, open, witness, late)
    };
    let (mut pair, open, mut witness, mut late) = begun();
    let error = now(&mut late).unwrap().err().map(|error| error.reason());
    assert_eq!(error, Some(Some(h2::Reason::REFUSED_STREAM)));
    pair.server.respond(open, &OK, b"finished");
    assert_eq!(pair.response(&mut witness).2, b"finished");
    pair.turn();
    assert!(pair.server.is_over());

    let (mut pair, _, mut witness, _) = begun();
    let limits = pair.limits;
    let due = pair.server.deadline(&limits);
    assert_eq!(due, 1 + 5_000);
    pair.now_ms = due - 1;
    pair.turn();
    assert!(!pair.server.is_over());
    pair.now_ms = due;
    assert!(!pair.server.time_out(due, &limits, |_, _| ()));
    pair.turn();
    assert!(pair.server.is_over() && pair.server.is_cut());
    assert!(now(&mut witness).is_none(), "it was not finished");
}
