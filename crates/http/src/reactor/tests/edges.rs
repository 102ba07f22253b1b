//! Interactions of a connection's parts: bodies that are no longer needed, responses that end in an unusual
//! order, input during closing, deadlines while the host is busy.

use std::{
    os::fd::{AsRawFd, FromRawFd},
    sync::mpsc,
    thread,
};

use super::*;

impl Host {
    /// Write a record that may have a body.
    fn put(&mut self, kind: u32, (slot, stamp): (u32, u32), body: &[u8]) {
        let at = self.reactor.batches.out.word(out::END) as usize;
        let (low, high) = if kind == reply::START { (u32::MAX, u32::MAX) } else { (body.len() as u32, 0) };
        let words: [u32; head::WORDS] = [kind, slot, stamp, 200, 0, low, high, 0];
        self.reactor.batches.out.put_all(at / 4, words);
        let body_at = at + head::WORDS * 4;
        self.reactor.batches.out.all_mut()[body_at..body_at + body.len()].copy_from_slice(body);
        self.reactor.batches.out.put(out::END, (body_at + body.len()).next_multiple_of(4) as u32);
    }

    /// A client that has sent `request`, once the host has received it.
    fn ask(&mut self, request: &[u8]) -> (TcpStream, (u32, u32)) {
        self.responds = false;
        let mut client = self.connect();
        client.write_all(request).expect("space in the socket");
        let before = self.open.len();
        self.until("the requests", |host| host.open.len() > before);
        let endpoint = self.open[before];
        (client, endpoint)
    }
}

const UPLOAD: &[u8] = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n0123456789";

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_body_that_has_ended_gets_neither_bytes_nor_the_failure_of_the_next_one() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, first) = host.ask(UPLOAD);
    assert_eq!(host.reactor.pull(first.0, first.1), 10);
    assert_eq!(host.reactor.pull(first.0, first.1), layout::pull::WAIT);
    let head = "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(format!("{}{head}3\r\nabc\r\n", "x".repeat(90)).as_bytes()).unwrap();
    host.until("its rest", |host| count(host, event::BODY) == 1);
    assert_eq!(host.reactor.pull(first.0, first.1), 90);
    host.until("the next request", |host| host.open.len() == 2);
    let second = host.open[1];
    assert_eq!(host.reactor.pull(first.0, first.1), layout::pull::END);
    assert_eq!(host.reactor.pull(second.0, second.1), 3);
    assert_eq!(host.reactor.pull(second.0, second.1), layout::pull::WAIT);
    client.write_all(b"no size\r\n").unwrap();
    host.until("the failure", |host| count(host, event::BODY) == 2);
    assert_eq!(host.reactor.pull(second.0, second.1), -400);
    assert_eq!(host.reactor.pull(first.0, first.1), layout::pull::END);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_response_ends_the_wait_for_its_request_body() {
    let mut host = Host::new(anywhere(), false, Limits { body_ms: 60, ..limits() });
    let early = |host: &mut Host| {
        let (mut client, (slot, stamp)) = host.ask(UPLOAD);
        assert_eq!(host.reactor.pull(slot, stamp), 10);
        assert_eq!(host.reactor.pull(slot, stamp), layout::pull::WAIT);
        host.respond("early");
        host.reactor.flush_responses();
        host.read_until(&mut client, "early");
        client
    };
    // A client that sends the rest continues, at any time.
    let mut good = early(&mut host);
    good.write_all(&[b'x'; 90]).unwrap();
    let began = Instant::now();
    host.until("later", |_| began.elapsed() > Duration::from_millis(150));
    good.write_all(GET).unwrap();
    host.until("the requests", |host| host.open.len() == 1);
    host.respond("next");
    host.reactor.flush_responses();
    host.read_until(&mut good, "next");
    // The time until then is not charged to the budget of its next body.
    good.write_all(UPLOAD).unwrap();
    host.until("the requests", |host| host.open.len() == 1);
    let (slot, stamp) = host.open[0];
    assert_eq!(host.reactor.pull(slot, stamp), 10);
    assert_eq!(host.reactor.pull(slot, stamp), layout::pull::WAIT);
    good.write_all(&[b'y'; 40]).unwrap();
    host.seen.clear();
    host.until("the event", |host| count(host, event::BODY) == 1);
    assert_eq!(host.reactor.pull(slot, stamp), 40);
    host.open.clear();
    drop(good);
    host.until("closed", |host| host.reactor.stats().connections == 0);
    // A client that does not is disconnected.
    let _stalled = early(&mut host);
    host.until("closed", |host| host.reactor.stats().connections == 0);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn drained_follows_a_full_buffer_whatever_the_limit() {
    let mut host = Host::new(anywhere(), false, Limits { out_bytes_max: 4096, ..limits() });
    let (mut client, endpoint) = host.ask(GET);
    host.put(reply::START, endpoint, b"");
    host.put(reply::WRITE, endpoint, &[b'x'; 8192]);
    host.reactor.put_responses(None);
    assert!(host.reactor.batches.out.word(out::FOUND) > 4096);
    host.reactor.flush_responses();
    host.until("the event", |host| count(host, event::DRAINED) == 1);
    host.put(reply::END, endpoint, b"");
    host.reactor.flush_responses();
    host.read_until(&mut client, "\r\n0\r\n\r\n");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn exchanges_behind_a_body_that_ends_with_the_connection_are_closed() {
    let mut host = Host::new(anywhere(), false, limits());
    let old = b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let (mut client, first) = host.ask(&old.repeat(3));
    host.until("the requests", |host| host.open.len() == 3);
    host.put(reply::START, first, b"");
    host.put(reply::WRITE, first, b"all of it");
    host.reactor.flush_responses();
    host.until("the event", |host| count(host, event::CLOSED) == 2);
    client.write_all(b"no request\r\n\r\n").unwrap();
    host.read_until(&mut client, "all of it");
    host.put(reply::END, first, b"");
    host.reactor.flush_responses();
    assert_eq!(host.read_until(&mut client, ""), "<closed>");
    assert_eq!((host.reactor.stats().aborted, host.reactor.stats().refused), (2, 0));
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn stopping_accepts_the_connections_in_the_queue() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut clients: Vec<_> = (0..ACCEPTS_MAX * 2 + 5).map(|_| host.connect()).collect();
    for client in &mut clients {
        client.write_all(GET).unwrap();
    }
    host.reactor.stop(5_000);
    for client in &mut clients {
        assert!(host.read_until(client, "").ends_with("/a<closed>"));
    }
    host.until("the event", |host| count(host, event::STOPPED) == 1);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn the_last_member_of_a_path_accepts_its_queue_when_it_stops() {
    let path = std::env::temp_dir().join(format!("corespun-http-last-{}", std::process::id()));
    let endpoint = Endpoint::Path(path.clone());
    let first = Host::new(endpoint.clone(), true, limits());
    let mut last = Host::new(endpoint, true, limits());
    drop(first);
    let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    client.write_all(GET).unwrap();
    last.reactor.stop(5_000);
    last.until("the event", |host| count(host, event::STOPPED) == 1);
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("/a"), "{text}");
    assert!(!path.exists());
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn an_inherited_socket_is_shared_and_keeps_its_queue() {
    let opened = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = Endpoint::Inherited(opened.as_raw_fd());
    let bound = Endpoint::Address(opened.local_addr().unwrap());
    assert_eq!(endpoint.bound(), Some(bound));
    let first = Host::new(endpoint.clone(), true, limits());
    let mut second = Host::new(endpoint.clone(), true, limits());
    drop(first);
    let mut client = TcpStream::connect(opened.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    client.write_all(GET).unwrap();
    assert!(second.read_until(&mut client, "/a").ends_with("/a"));
    drop(client);
    // What waits when the last server stops is for the next one.
    let mut waiting = TcpStream::connect(opened.local_addr().unwrap()).unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    waiting.write_all(GET).unwrap();
    second.reactor.stop(5_000);
    second.until("the event", |host| count(host, event::STOPPED) == 1);
    drop(second);
    let mut next = Host::new(endpoint, false, limits());
    assert!(next.read_until(&mut waiting, "/a").ends_with("/a"));
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn only_a_listening_socket_can_be_inherited() {
    let folder = std::env::temp_dir().join(format!("corespun-http-inherited-{}", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&folder).unwrap();
    let of = |fd: RawFd| Endpoint::Inherited(fd);
    assert_eq!(of(listener.as_raw_fd()).bound(), Some(Endpoint::Path(folder.clone())));
    let connected = std::os::unix::net::UnixStream::connect(&folder).unwrap();
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    for (fd, error) in [
        (connected.as_raw_fd(), libc::EINVAL),
        (file.as_raw_fd(), libc::ENOTSOCK),
        (1_000_000, libc::EBADF),
        (-1, libc::EBADF),
    ] {
        let refused = Host::try_new(of(fd), false, limits()).err();
        assert_eq!(refused.and_then(|error| error.raw_os_error()), Some(error), "{fd}");
    }
    let host = Host::new(of(listener.as_raw_fd()), false, limits());
    drop(host);
    assert!(folder.exists(), "the path is not ours");
    std::fs::remove_file(folder).unwrap();
}

/// The event of a listener that has connections.
fn announced(listener: RawFd) -> Readiness {
    Readiness {
        token: listen::TAG | listener as u64,
        is_readable: true,
        is_writable: false,
        is_read_closed: false,
        is_write_closed: false,
        is_error: false,
    }
}

/// Take turns as a loop does: only while the descriptor is readable.
fn turn_while_readable(host: &mut Host) {
    let began = Instant::now();
    while sys::is_readable(host.reactor.arrivals.descriptor()) {
        assert!(began.elapsed() < Duration::from_secs(10), "it remains readable");
        host.turn();
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_queue_is_emptied_by_one_announcement_over_several_turns() {
    let count = ACCEPTS_MAX * 3 + 5;
    let mut host = Host::new(anywhere(), false, limits());
    let _clients: Vec<_> = (0..count).map(|_| host.connect()).collect();
    // The announcement is taken here, and a bounded number is accepted.
    let listener = host.reactor.arrivals.membership.as_ref().unwrap().sockets()[0];
    let mut events = Vec::new();
    host.reactor.arrivals.selector.poll(&mut events);
    assert_eq!(events.iter().map(|event| event.token).collect::<Vec<_>>(), [listen::TAG | listener as u64]);
    host.reactor.accept_from(listener);
    assert_eq!(host.reactor.stats().connections, ACCEPTS_MAX as u64);
    host.reactor.wake_if_needed();
    turn_while_readable(&mut host);
    assert_eq!(host.reactor.stats().connections, count as u64);
    assert!(host.reactor.arrivals.accepting.is_empty());
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_paused_listener_accepts_after_the_next_tick() {
    let mut host = Host::new(anywhere(), false, limits());
    let listener = host.reactor.arrivals.membership.as_ref().unwrap().sockets()[0];
    // No listener: accepting from it fails. It is not this member's either.
    let other = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    host.reactor.accept_from(other.as_raw_fd());
    host.reactor.arrivals.paused.push(listener);
    let _client = host.connect();
    turn_while_readable(&mut host);
    assert_eq!(host.reactor.stats().connections, 0);
    assert!(host.reactor.needs_ticks());
    host.reactor.tick();
    turn_while_readable(&mut host);
    assert_eq!(host.reactor.stats().connections, 1);
    assert!(host.reactor.arrivals.paused.is_empty() && host.reactor.arrivals.accepting.is_empty());
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn an_event_of_a_closed_listener_is_ignored() {
    let mut host = Host::new(anywhere(), false, limits());
    host.reactor.stop(5_000);
    // Its descriptor may have been reused.
    let other = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    other.set_nonblocking(true).unwrap();
    let _client = TcpStream::connect(other.local_addr().unwrap()).unwrap();
    host.reactor.take_event(&announced(other.as_raw_fd()));
    assert_eq!(host.reactor.stats().connections_total, 0);
    assert!(other.accept().is_ok());
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn time_that_the_host_takes_is_not_charged_to_clients() {
    let mut host = Host::new(anywhere(), false, Limits { headers_ms: 30, pipeline_max: 1, ..limits() });
    let mut client = host.connect();
    client.write_all(&GET.repeat(3)).unwrap();
    // The first gets a response, the others wait for their turn.
    host.reactor.begin();
    while host.seen.is_empty() {
        if host.reactor.advance() == Step::Call {
            host.handle();
            host.reactor.called(true);
        } else {
            // The client's bytes had not come when the turn began.
            host.reactor.begin();
        }
    }
    thread::sleep(Duration::from_millis(60));
    host.reactor.tick();
    host.until("the requests", |host| host.seen.len() == 3);
    assert_eq!(host.reactor.stats().refused, 0);
    // Unread input counts as well, whether its head has begun or not.
    let mut host = Host::new(anywhere(), false, Limits { headers_ms: 30, idle_ms: 30, ..limits() });
    for cut in [0, 10] {
        let mut client = host.connect();
        host.until("accepted", |host| host.reactor.stats().connections == 1);
        client.write_all(&GET[..cut]).unwrap();
        host.turn();
        client.write_all(&GET[cut..]).unwrap();
        thread::sleep(Duration::from_millis(60));
        host.reactor.tick();
        assert!(host.read_until(&mut client, "").ends_with("/a<closed>"));
        host.until("closed", |host| host.reactor.stats().connections == 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_that_still_sends_receives_the_last_response() {
    let mut host = Host::new(anywhere(), false, Limits { requests_per_connection_max: 2, ..limits() });
    let (mut client, _) = host.ask(&GET.repeat(2));
    host.until("the requests", |host| host.open.len() == 2);
    client.write_all(&GET.repeat(3)).unwrap();
    host.turn();
    host.respond("one");
    host.respond("two");
    host.reactor.flush_responses();
    let text = host.read_until(&mut client, "");
    assert!(text.ends_with("two<closed>"), "{text}");
    // The rest follows the last request, which gets its response at once, also from a constant.
    for last in ["/a", "/constant"] {
        let mut host = Host::new(anywhere(), false, limits());
        let mut client = host.connect();
        let request = format!("GET {last} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nmore");
        client.write_all(request.as_bytes()).unwrap();
        let text = host.read_until(&mut client, "");
        assert!(text.ends_with("<closed>") && text.contains("200 OK"), "{text}");
        assert_eq!(host.reactor.stats().connections, 1);
        client.write_all(GET).unwrap();
        drop(client);
        host.until("closed", |host| host.reactor.stats().connections == 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_stop_lets_unwanted_bodies_finish() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, _) = host.ask(UPLOAD);
    host.respond("early");
    host.reactor.flush_responses();
    host.read_until(&mut client, "early");
    host.reactor.stop(5_000);
    client.write_all(b"some").unwrap();
    assert_eq!(host.read_until(&mut client, ""), "<closed>");
    assert_eq!(host.reactor.stats().connections, 1);
    client.write_all(b"more").unwrap();
    host.turn();
    client.write_all(b"more").unwrap();
    drop(client);
    host.until("the event", |host| count(host, event::STOPPED) == 1);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_truncated_body_keeps_the_responses_before_it() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, _) = host.ask(&[GET, UPLOAD].concat());
    host.until("the requests", |host| host.open.len() == 2);
    client.shutdown(Shutdown::Write).unwrap();
    let (slot, stamp) = host.open[1];
    assert_eq!(host.reactor.pull(slot, stamp), 10);
    host.turn();
    assert_eq!(host.reactor.pull(slot, stamp), layout::pull::DISCONNECTED);
    host.until("the event", |host| count(host, event::CLOSED) == 1);
    // Nor does pulling it again.
    assert_eq!(host.reactor.pull(slot, stamp), layout::pull::DISCONNECTED);
    host.respond("first");
    host.reactor.flush_responses();
    let text = host.read_until(&mut client, "");
    assert!(text.ends_with("first<closed>") && text.matches("HTTP/1.1").count() == 1, "{text}");
    // Alone, its connection is closed.
    let (mut client, _) = host.ask(UPLOAD);
    client.shutdown(Shutdown::Write).unwrap();
    let (slot, stamp) = *host.open.last().unwrap();
    assert_eq!(host.reactor.pull(slot, stamp), 10);
    assert_eq!(host.reactor.pull(slot, stamp), layout::pull::DISCONNECTED);
    assert_eq!(host.read_until(&mut client, ""), "<closed>");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn an_unfinished_head_of_the_maximum_length_is_refused_at_once() {
    let limits = Limits { header_bytes_max: 1024, ..limits() };
    for more in [0, 1] {
        let mut host = Host::new(anywhere(), false, limits);
        let mut client = host.connect();
        let head = format!("{:x<1$}", "GET / HTTP/1.1\r\nHost: a\r\nA: ", limits.header_bytes_max);
        client.write_all(head.as_bytes()).unwrap();
        for _ in 0..5 {
            host.turn();
        }
        client.write_all(&b"x"[..more]).unwrap();
        let text = host.read_until(&mut client, "");
        assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_path_whose_server_is_stalled_is_in_use_without_waiting() {
    let path = std::env::temp_dir().join(format!("corespun-http-stuck-{}", std::process::id()));
    std::fs::remove_file(&path).ok();
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    let _owner = sys::listen_on(bytes, 0).unwrap();
    let mut queued = Vec::new();
    let full = loop {
        match sys::connect_to(bytes) {
            Ok(client) => queued.push(client),
            Err(error) => break error,
        }
    };
    assert_eq!(full.raw_os_error(), Some(libc::EAGAIN));
    let (sender, receiver) = mpsc::channel();
    let endpoint = Endpoint::Path(path.clone());
    thread::spawn(move || {
        sender.send(Host::try_new(endpoint, false, limits()).err().and_then(|error| error.raw_os_error()))
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(5)), Ok(Some(libc::EADDRINUSE)));
    std::fs::remove_file(path).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_pipeline_has_a_share_of_each_batch() {
    let mut host = Host::new(anywhere(), false, Limits { pipeline_max: 200, ..limits() });
    let mut client = host.connect();
    for end in [false, true] {
        host.seen.clear();
        let many: String = (0..100).map(|n| format!("GET /{n}. HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
        client.write_all(many.as_bytes()).unwrap();
        if end {
            client.shutdown(Shutdown::Write).unwrap();
        }
        let began = Instant::now();
        while host.seen.iter().filter(|seen| seen.starts_with('/')).count() < 100 {
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", host.seen);
            host.reactor.begin();
            while host.reactor.advance() == Step::Call {
                let before = host.seen.len();
                host.handle();
                // A connection that is queued twice has its share twice.
                assert!(host.seen.len() - before <= 32, "{} in a batch", host.seen.len() - before);
                host.reactor.called(true);
            }
        }
        let text = host.read_until(&mut client, if end { "" } else { "/99." });
        assert_eq!(text.matches("HTTP/1.1 200").count(), 100);
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn an_end_behind_a_pipeline_of_constants_keeps_their_responses() {
    const COUNT: usize = 800;
    let mut host = Host::new(anywhere(), false, limits());
    let mut client = host.connect();
    client.write_all(&b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n".repeat(COUNT)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    // Until the kernel accepts no more, and a while longer.
    host.until("a full kernel", |host| {
        let session = host.reactor.connections.slots.get(0);
        session
            .is_some_and(|session| session.machine.unsent() > limits().out_bytes_max && !session.is_writable)
    });
    for _ in 0..50 {
        host.turn();
    }
    let before = host.reactor.stats().constants;
    assert!(before < COUNT as u64, "{before}");
    let (mut text, mut piece, began) = (Vec::new(), vec![0; 256 * 1024], Instant::now());
    loop {
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", host.reactor.stats());
        host.turn();
        host.reactor.tick();
        match client.read(&mut piece) {
            Ok(0) => break,
            Ok(bytes) => text.extend_from_slice(&piece[..bytes]),
            Err(error) => assert!(connections::is_soon(&error), "{error}"),
        }
    }
    let heads = String::from_utf8_lossy(&text).matches("HTTP/1.1 200").count();
    let bodies = text.iter().filter(|&&byte| byte == b'x').count();
    assert_eq!((heads, bodies), (COUNT, COUNT * LARGE_BYTES));
    assert_eq!(host.reactor.stats().constants, COUNT as u64);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn an_end_within_an_unread_body_is_reported() {
    let mut host = Host::new(anywhere(), false, limits());
    let (client, _) = host.ask(UPLOAD);
    client.shutdown(Shutdown::Write).unwrap();
    host.until("the event", |host| count(host, event::DISCONNECTED) == 1);
    // While the rest of the body is unread, the client's end may be that of its body.
    let (mut client, (slot, stamp)) = host.ask(UPLOAD);
    client.write_all(&[b'x'; 90]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    for _ in 0..5 {
        host.turn();
    }
    assert_eq!(count(&host, event::DISCONNECTED), 1);
    assert_eq!((host.reactor.pull(slot, stamp), host.reactor.pull(slot, stamp)), (10, 90));
}

/// A client with the smallest receive buffer, whose window is a few hundred bytes.
fn narrow(host: &Host) -> TcpStream {
    let SocketAddr::V4(address) = host.address() else { panic!("no IPv4") };
    let least: libc::c_int = 1;
    // SAFETY: a new descriptor, owned by the stream; option and address are locals, passed with their sizes.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0);
        let client = TcpStream::from_raw_fd(fd);
        let of_int = size_of_val(&least) as libc::socklen_t;
        for (level, name) in
            [(libc::SOL_SOCKET, libc::SO_RCVBUF), (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP)]
        {
            assert_eq!(libc::setsockopt(fd, level, name, (&raw const least).cast(), of_int), 0);
        }
        let mut to: libc::sockaddr_in = std::mem::zeroed();
        to.sin_family = libc::AF_INET as libc::sa_family_t;
        to.sin_port = address.port().to_be();
        to.sin_addr.s_addr = u32::from(*address.ip()).to_be();
        let length = size_of_val(&to) as libc::socklen_t;
        assert_eq!(libc::connect(fd, (&raw const to).cast(), length), 0);
        client.set_nonblocking(true).expect("a non-blocking socket");
        client
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_with_a_tiny_window_delays_no_other() {
    let mut host = Host::new(anywhere(), false, Limits { body_ms: 2000, ..limits() });
    host.responds = false;
    let mut client = narrow(&host);
    client.write_all(GET).unwrap();
    host.until("the requests", |host| host.open.len() == 1);
    let (slot, stamp) = host.open.remove(0);
    let words: [u32; head::WORDS] = [reply::RESPOND, slot, stamp, 200, 0, 0, 0, 1];
    host.reactor.batches.out.put_all(HEADER_BYTES / 4, words);
    host.reactor.batches.out.put(out::END, (HEADER_BYTES + head::WORDS * 4) as u32);
    // More than the kernel holds for a client that reads nothing.
    let large = vec![b'x'; 4 * 1024 * 1024];
    host.reactor.put_responses(Some(&large));
    host.reactor.flush_responses();
    // Others are served meanwhile.
    let mut other = host.connect();
    host.responds = true;
    other.write_all(GET).unwrap();
    host.read_until(&mut other, "/a");
    let held = host.reactor.connections.slots.get(slot).map_or(0, |session| session.machine.unsent());
    assert!(held > 0 && held < large.len(), "{held}");
    // It reads slowly, which refills its budget.
    let mut piece = [0; 256];
    let (mut taken, began) = (0, Instant::now());
    while taken < 4096 {
        assert!(began.elapsed() < Duration::from_secs(10), "{taken}");
        host.turn();
        host.reactor.tick();
        taken += client.read(&mut piece).unwrap_or(0);
    }
    assert_eq!(host.reactor.stats().connections, 2);
    // When it stops, it is disconnected.
    host.until("cut", |host| host.reactor.stats().connections == 1);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_slow_reader_is_kept_until_it_reads_nothing() {
    const BODY_MS: u64 = 800;
    let mut host = Host::new(anywhere(), false, Limits { body_ms: BODY_MS, ..limits() });
    host.responds = false;
    let mut client = narrow(&host);
    client.write_all(GET).unwrap();
    host.until("the requests", |host| host.open.len() == 1);
    let (slot, stamp) = host.open.remove(0);
    let words: [u32; head::WORDS] = [reply::RESPOND, slot, stamp, 200, 0, 0, 0, 1];
    host.reactor.batches.out.put_all(HEADER_BYTES / 4, words);
    host.reactor.batches.out.put(out::END, (HEADER_BYTES + head::WORDS * 4) as u32);
    host.reactor.put_responses(Some(&vec![b'x'; 4 * 1024 * 1024]));
    host.reactor.flush_responses();
    let held = |host: &Host| host.reactor.connections.slots.get(slot).map(|session| session.machine.unsent());
    let (before, began, mut taken) = (held(&host), Instant::now(), 0);
    // Some 4,000 bytes a second: not noticeable in a buffer of megabytes.
    while began.elapsed() < Duration::from_millis(3 * BODY_MS) {
        host.turn();
        host.reactor.tick();
        if taken < 4 * began.elapsed().as_millis() as usize {
            taken += client.read(&mut [0; 64]).unwrap_or(0);
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((held(&host), host.reactor.stats().connections), (before, 1), "{taken} bytes read");
    // What it has read last may have refilled the whole budget, but not more.
    let stopped = Instant::now();
    host.until("cut", |host| host.reactor.stats().connections == 0);
    let waited = stopped.elapsed().as_millis() as u64;
    assert!(waited < 2 * BODY_MS, "{waited} ms");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_partial_head_before_the_end_is_not_parsed_repeatedly() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, _) = host.ask(&[GET, &GET[..6]].concat());
    client.shutdown(Shutdown::Write).unwrap();
    host.until("the event", |host| count(host, event::DISCONNECTED) == 1);
    host.turn();
    host.turn();
    assert!(host.reactor.connections.runnable.is_empty());
    host.respond("late");
    host.reactor.flush_responses();
    assert!(host.read_until(&mut client, "").ends_with("late<closed>"));
    // Nor is a host awaited that does not respond.
    let mut host = Host::new(anywhere(), false, Limits { body_ms: 30, ..limits() });
    let (client, _) = host.ask(&[GET, &GET[..6]].concat());
    client.shutdown(Shutdown::Write).unwrap();
    host.until("cut", |host| host.reactor.stats().connections == 0);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn the_share_of_a_connection_follows_the_size_of_its_responses() {
    // Each response is as long as its target.
    let shares = |target_bytes: usize, count: usize| {
        let mut host = Host::new(anywhere(), false, Limits { out_bytes_max: 2_000, ..Limits::default() });
        let mut client = host.connect();
        let one = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(target_bytes - 1));
        client.write_all(one.repeat(count).as_bytes()).unwrap();
        client.write_all(b"GET /last HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        host.read_until(&mut client, "/last");
        assert_eq!(host.seen.len(), count + 1);
        std::mem::take(&mut host.batches)
    };
    assert_eq!(shares(2, 45), [2, 4, 8, 16, 16]);
    assert_eq!(shares(300, 13), [2, 4, 6, 2]);
    assert_eq!(shares(1_500, 5), [2, 1, 1, 1, 1]);
}

impl Host {
    /// Respond to the oldest open request with a body that is not in the region.
    fn respond_elsewhere(&mut self, body: &[u8]) {
        let (slot, stamp) = self.open.remove(0);
        let words: [u32; head::WORDS] = [reply::RESPOND, slot, stamp, 200, 0, 0, 0, 1];
        self.reactor.batches.out.put_all(HEADER_BYTES / 4, words);
        self.reactor.batches.out.put(out::END, (HEADER_BYTES + head::WORDS * 4) as u32);
        self.reactor.put_responses(Some(body));
        self.reactor.flush_responses();
    }

    /// Read until the response ends with `end`. Returns the number of `x`.
    fn read_bodies(&mut self, client: &mut TcpStream, end: &str) -> usize {
        let (mut text, mut piece, began) = (Vec::new(), vec![0; 256 * 1024], Instant::now());
        while !text.ends_with(end.as_bytes()) {
            assert!(began.elapsed() < Duration::from_secs(30), "{} bytes", text.len());
            self.turn();
            self.reactor.tick();
            match client.read(&mut piece) {
                Ok(bytes) => text.extend_from_slice(&piece[..bytes]),
                Err(error) => assert!(connections::is_soon(&error), "{error}"),
            }
        }
        text.iter().filter(|&&byte| byte == b'x').count()
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_body_that_many_clients_do_not_read_is_in_memory_once() {
    const BYTES: usize = 16 * 1024 * 1024;
    const CLIENTS: usize = 6;
    let limits = Limits { out_bytes_total_max: BYTES as u64 + 100_000, ..limits() };
    let mut host = Host::new(anywhere(), false, limits);
    let large = vec![b'x'; BYTES];
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        // What follows a body that waits is sent behind it.
        let (client, _) = host.ask(&GET.repeat(2));
        host.until("both", |host| host.open.len() == 2);
        host.respond_elsewhere(&large.clone());
        let mut client = client;
        client.write_all(GET).unwrap();
        host.respond("second");
        host.reactor.flush_responses();
        clients.push(client);
    }
    assert_eq!(host.reactor.stats().held_bytes, BYTES as u64);
    for slot in 0..CLIENTS as u32 {
        let machine = host.reactor.connections.slots.get(slot).map(|session| &session.machine).unwrap();
        assert!(machine.unsent() > BYTES / 4 && machine.out.capacity() < 1024 * 1024);
    }
    // No capacity is left for another body, but the same one fits.
    let (mut refused, _) = host.ask(GET);
    host.respond_elsewhere(&vec![b'y'; BYTES]);
    assert!(host.read_until(&mut refused, "wait\n").starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    assert_eq!((host.reactor.stats().refused, host.reactor.stats().held_bytes), (1, BYTES as u64));
    // Two large ones, the second ahead of its turn.
    let (mut both, _) = host.ask(&GET.repeat(3));
    host.until("all", |host| host.open.len() == 3);
    host.open.swap(0, 1);
    host.respond_elsewhere(&large);
    host.respond_elsewhere(&large);
    host.respond("third");
    host.reactor.flush_responses();
    assert_eq!(host.reactor.stats().held_bytes, BYTES as u64);
    assert_eq!(host.read_bodies(&mut both, "third"), 2 * BYTES);
    host.responds = true;
    for client in &mut clients {
        assert_eq!(host.read_bodies(client, "/a"), BYTES);
    }
    assert_eq!(host.reactor.stats().held_bytes, 0);
    assert_eq!(host.reactor.stats().connections, CLIENTS as u64 + 2);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_long_constant_is_sent_without_a_copy() {
    let mut host = Host::new(anywhere(), false, limits());
    let requests = b"GET /huge HTTP/1.1\r\nHost: a\r\n\r\nHEAD /huge HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let last = b"GET /huge HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut clients: Vec<_> = (0..4).map(|_| host.connect()).collect();
    for client in &mut clients {
        client.write_all(&[&requests[..], b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"].concat()).unwrap();
    }
    host.until("the responses", |host| host.reactor.stats().constants >= 4);
    for slot in 0..4 {
        let machine = host.reactor.connections.slots.get(slot).map(|session| &session.machine).unwrap();
        assert!(machine.unsent() > HUGE_BYTES / 4 && machine.out.capacity() < 256 * 1024);
    }
    assert_eq!(host.reactor.stats().held_bytes, 0, "constants do not count");
    for client in &mut clients {
        assert_eq!(host.read_bodies(client, "/a"), HUGE_BYTES);
    }
    let mut client = host.connect();
    client.write_all(&[&GET.repeat(2)[..], last].concat()).unwrap();
    let text = host.read_until(&mut client, "");
    assert_eq!(text.matches('x').count(), HUGE_BYTES);
    assert!(text.contains("connection: close\r\n") && text.ends_with("x<closed>"));
}
