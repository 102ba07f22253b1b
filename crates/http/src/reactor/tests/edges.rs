//! Where a connection's parts meet: a body that nobody waits for any more, answers that end in an unusual
//! order, bytes that come while the connection closes, clocks that run while nobody looks.

use std::{
    os::fd::{AsRawFd, FromRawFd},
    sync::mpsc,
    thread,
};

use super::*;

impl Host {
    /// Write a record that may have a body.
    fn put(&mut self, kind: u32, (slot, stamp): (u32, u32), body: &[u8]) {
        let at = self.reactor.out.word(out::END) as usize;
        let (low, high) = if kind == reply::START { (u32::MAX, u32::MAX) } else { (body.len() as u32, 0) };
        let words: [u32; answer::WORDS] = [kind, slot, stamp, 200, 0, low, high, 0];
        self.reactor.out.put_all(at / 4, words);
        let body_at = at + answer::WORDS * 4;
        self.reactor.out.all_mut()[body_at..body_at + body.len()].copy_from_slice(body);
        self.reactor.out.put(out::END, (body_at + body.len()).next_multiple_of(4) as u32);
    }

    /// A client that has sent `request`, once the host has it.
    fn ask(&mut self, request: &[u8]) -> (TcpStream, (u32, u32)) {
        self.answers = false;
        let mut client = self.connect();
        client.write_all(request).expect("room in the socket");
        let before = self.open.len();
        self.until("read", |host| host.open.len() > before);
        let place = self.open[before];
        (client, place)
    }
}

const UPLOAD: &[u8] = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n0123456789";

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_body_is_waited_for_no_longer_than_its_answer_is() {
    let mut host = Host::new(anywhere(), false, Limits { body_ms: 60, ..limits() });
    let early = |host: &mut Host| {
        let (mut client, (slot, stamp)) = host.ask(UPLOAD);
        assert_eq!(host.reactor.pull(slot, stamp), 10);
        assert_eq!(host.reactor.pull(slot, stamp), layout::PULL_WAIT);
        host.answer("early");
        host.reactor.flush_answers();
        host.read_until(&mut client, "early");
        client
    };
    // One that sends the rest may go on, whenever it likes.
    let mut good = early(&mut host);
    good.write_all(&[b'x'; 90]).unwrap();
    let began = Instant::now();
    host.until("later", |_| began.elapsed() > Duration::from_millis(150));
    good.write_all(GET).unwrap();
    host.until("read", |host| host.open.len() == 1);
    host.answer("next");
    host.reactor.flush_answers();
    host.read_until(&mut good, "next");
    // The time it took to come back is not taken from the patience with its next body.
    good.write_all(UPLOAD).unwrap();
    host.until("read", |host| host.open.len() == 1);
    let (slot, stamp) = host.open[0];
    assert_eq!(host.reactor.pull(slot, stamp), 10);
    assert_eq!(host.reactor.pull(slot, stamp), layout::PULL_WAIT);
    good.write_all(&[b'y'; 40]).unwrap();
    host.seen.clear();
    host.until("told", |host| told(host, event::BODY) == 1);
    assert_eq!(host.reactor.pull(slot, stamp), 40);
    host.open.clear();
    drop(good);
    host.until("closed", |host| host.reactor.stats().connections == 0);
    // One that does not is closed.
    let _stalled = early(&mut host);
    host.until("closed", |host| host.reactor.stats().connections == 0);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_stream_that_was_told_to_wait_is_told_to_go_on_whatever_the_bound() {
    let mut host = Host::new(anywhere(), false, Limits { out_bytes_max: 4096, ..limits() });
    let (mut client, place) = host.ask(GET);
    host.put(reply::START, place, b"");
    host.put(reply::WRITE, place, &[b'x'; 8192]);
    host.reactor.put_answers(None);
    assert!(host.reactor.out.word(out::FOUND) > 4096);
    host.reactor.flush_answers();
    host.until("told", |host| told(host, event::DRAINED) == 1);
    host.put(reply::END, place, b"");
    host.reactor.flush_answers();
    host.read_until(&mut client, "\r\n0\r\n\r\n");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn who_waits_behind_a_stream_that_ends_with_its_connection_is_told() {
    let mut host = Host::new(anywhere(), false, limits());
    let old = b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let (mut client, first) = host.ask(&old.repeat(3));
    host.until("read", |host| host.open.len() == 3);
    host.put(reply::START, first, b"");
    host.put(reply::WRITE, first, b"all of it");
    host.reactor.flush_answers();
    host.until("told", |host| told(host, event::CLOSED) == 2);
    client.write_all(b"no request\r\n\r\n").unwrap();
    host.read_until(&mut client, "all of it");
    host.put(reply::END, first, b"");
    host.reactor.flush_answers();
    assert_eq!(host.read_until(&mut client, ""), "<closed>");
    assert_eq!((host.reactor.stats().aborted, host.reactor.stats().refused), (2, 0));
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn stopping_accepts_all_who_are_connected() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut clients: Vec<_> = (0..ACCEPTS_MAX * 2 + 5).map(|_| host.connect()).collect();
    for client in &mut clients {
        client.write_all(GET).unwrap();
    }
    host.reactor.stop(5_000);
    for client in &mut clients {
        assert!(host.read_until(client, "").ends_with("/a<closed>"));
    }
    host.until("told", |host| told(host, event::STOPPED) == 1);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn news_of_a_listener_that_was_closed_are_no_news() {
    let mut host = Host::new(anywhere(), false, limits());
    host.reactor.stop(5_000);
    // Its descriptor may be another's by now.
    let other = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    other.set_nonblocking(true).unwrap();
    let _client = TcpStream::connect(other.local_addr().unwrap()).unwrap();
    host.reactor.take_event(listen::TAG | other.as_raw_fd() as u64, libc::EPOLLIN as u32);
    assert_eq!(host.reactor.stats().connections_total, 0);
    assert!(other.accept().is_ok());
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn time_that_the_host_took_is_not_the_clients() {
    let mut host = Host::new(anywhere(), false, Limits { headers_ms: 30, pipeline_max: 1, ..limits() });
    let mut client = host.connect();
    client.write_all(&GET.repeat(3)).unwrap();
    // The first is answered, the others wait for their turn.
    host.reactor.begin();
    while host.seen.is_empty() {
        if host.reactor.advance() == Step::Call {
            host.handle();
            host.reactor.called(true);
        }
    }
    thread::sleep(Duration::from_millis(60));
    host.reactor.tick();
    host.until("read", |host| host.seen.len() == 3);
    assert_eq!(host.reactor.stats().refused, 0);
    // What has arrived and was not looked at counts too, with its head begun or not.
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
fn who_is_still_sending_when_its_connection_closes_sees_the_last_answer() {
    let mut host = Host::new(anywhere(), false, Limits { requests_per_connection_max: 2, ..limits() });
    let (mut client, _) = host.ask(&GET.repeat(2));
    host.until("read", |host| host.open.len() == 2);
    client.write_all(&GET.repeat(3)).unwrap();
    host.turn();
    host.answer("one");
    host.answer("two");
    host.reactor.flush_answers();
    let text = host.read_until(&mut client, "");
    assert!(text.ends_with("two<closed>"), "{text}");
    // The rest comes behind the last request, which is answered at once, also by a constant.
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
fn stopping_lets_those_finish_whose_body_is_not_wanted() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, _) = host.ask(UPLOAD);
    host.answer("early");
    host.reactor.flush_answers();
    host.read_until(&mut client, "early");
    host.reactor.stop(5_000);
    client.write_all(b"some").unwrap();
    assert_eq!(host.read_until(&mut client, ""), "<closed>");
    assert_eq!(host.reactor.stats().connections, 1);
    client.write_all(b"more").unwrap();
    host.turn();
    client.write_all(b"more").unwrap();
    drop(client);
    host.until("told", |host| told(host, event::STOPPED) == 1);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_body_that_is_cut_short_costs_no_answer_before_it() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, _) = host.ask(&[GET, UPLOAD].concat());
    host.until("read", |host| host.open.len() == 2);
    client.shutdown(Shutdown::Write).unwrap();
    let (slot, stamp) = host.open[1];
    assert_eq!(host.reactor.pull(slot, stamp), 10);
    host.turn();
    assert_eq!(host.reactor.pull(slot, stamp), layout::PULL_GONE);
    host.until("told", |host| told(host, event::CLOSED) == 1);
    // Nor does asking for it again.
    assert_eq!(host.reactor.pull(slot, stamp), layout::PULL_GONE);
    host.answer("first");
    host.reactor.flush_answers();
    let text = host.read_until(&mut client, "");
    assert!(text.ends_with("first<closed>") && text.matches("HTTP/1.1").count() == 1, "{text}");
    // Alone, its connection is closed.
    let (mut client, _) = host.ask(UPLOAD);
    client.shutdown(Shutdown::Write).unwrap();
    let (slot, stamp) = *host.open.last().unwrap();
    assert_eq!(host.reactor.pull(slot, stamp), 10);
    assert_eq!(host.reactor.pull(slot, stamp), layout::PULL_GONE);
    assert_eq!(host.read_until(&mut client, ""), "<closed>");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_head_as_long_as_the_limit_that_has_not_ended_is_refused_at_once() {
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
fn a_path_whose_owner_is_stuck_is_taken_and_not_waited_for() {
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
    let (tell, told) = mpsc::channel();
    let place = Place::Path(path.clone());
    thread::spawn(move || {
        tell.send(Host::try_new(place, false, limits()).err().and_then(|error| error.raw_os_error()))
    });
    assert_eq!(told.recv_timeout(Duration::from_secs(5)), Ok(Some(libc::EADDRINUSE)));
    std::fs::remove_file(path).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_pipeline_has_a_share_of_a_batch_and_all_of_it_is_answered() {
    let mut host = Host::new(anywhere(), false, Limits { pipeline_max: 200, ..limits() });
    let mut client = host.connect();
    for end in [false, true] {
        host.seen.clear();
        let many: String = (0..100).map(|n| format!("GET /{n}. HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
        client.write_all(many.as_bytes()).unwrap();
        if end {
            client.shutdown(Shutdown::Write).unwrap();
        }
        let patience = Instant::now();
        while host.seen.iter().filter(|seen| seen.starts_with('/')).count() < 100 {
            assert!(patience.elapsed() < Duration::from_secs(10), "{:?}", host.seen);
            host.reactor.begin();
            while host.reactor.advance() == Step::Call {
                let before = host.seen.len();
                host.handle();
                // One that is looked at for two reasons has its share twice.
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
fn an_end_behind_a_pipeline_of_constants_costs_no_answer_however_late_they_are_read() {
    const COUNT: usize = 800;
    let mut host = Host::new(anywhere(), false, limits());
    let mut client = host.connect();
    client.write_all(&b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n".repeat(COUNT)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    // Until the kernel takes no more, and a while longer.
    host.until("a full kernel", |host| {
        let line = host.reactor.slots.get(0);
        line.is_some_and(|line| line.machine.unsent() > limits().out_bytes_max && !line.is_writable)
    });
    for _ in 0..50 {
        host.turn();
    }
    let before = host.reactor.stats().constants;
    assert!(before < COUNT as u64, "{before}");
    let (mut text, mut piece, patience) = (Vec::new(), vec![0; 256 * 1024], Instant::now());
    loop {
        assert!(patience.elapsed() < Duration::from_secs(10), "{:?}", host.reactor.stats());
        host.turn();
        host.reactor.tick();
        match client.read(&mut piece) {
            Ok(0) => break,
            Ok(bytes) => text.extend_from_slice(&piece[..bytes]),
            Err(error) => assert!(input::is_soon(&error), "{error}"),
        }
    }
    let heads = String::from_utf8_lossy(&text).matches("HTTP/1.1 200").count();
    let bodies = text.iter().filter(|&&byte| byte == b'x').count();
    assert_eq!((heads, bodies), (COUNT, COUNT * LARGE_BYTES));
    assert_eq!(host.reactor.stats().constants, COUNT as u64);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn who_ends_in_the_middle_of_a_body_is_told_of_though_nobody_reads_it() {
    let mut host = Host::new(anywhere(), false, limits());
    let (client, _) = host.ask(UPLOAD);
    client.shutdown(Shutdown::Write).unwrap();
    host.until("told", |host| told(host, event::GONE) == 1);
    // With the rest of the body unread, its end may be all that the end is.
    let (mut client, (slot, stamp)) = host.ask(UPLOAD);
    client.write_all(&[b'x'; 90]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    for _ in 0..5 {
        host.turn();
    }
    assert_eq!(told(&host, event::GONE), 1);
    assert_eq!((host.reactor.pull(slot, stamp), host.reactor.pull(slot, stamp)), (10, 90));
}

/// A client whose kernel takes as little as can be, so that the window it offers is a few hundred bytes.
fn narrow(host: &Host) -> TcpStream {
    let SocketAddr::V4(address) = host.address() else { panic!("no IPv4") };
    let least: libc::c_int = 1;
    // SAFETY: the descriptor is fresh and becomes the stream's own; option and address are locals of the
    // lengths that are said.
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
        client.set_nonblocking(true).expect("a socket that may not block");
        client
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_with_a_tiny_window_gets_its_answer_and_keeps_nobody_waiting() {
    let mut host = Host::new(anywhere(), false, Limits { body_ms: 2000, ..limits() });
    host.answers = false;
    let mut client = narrow(&host);
    client.write_all(GET).unwrap();
    host.until("read", |host| host.open.len() == 1);
    let (slot, stamp) = host.open.remove(0);
    let words: [u32; answer::WORDS] = [reply::RESPOND, slot, stamp, 200, 0, 0, 0, 1];
    host.reactor.out.put_all(HEADER_BYTES / 4, words);
    host.reactor.out.put(out::END, (HEADER_BYTES + answer::WORDS * 4) as u32);
    // More than the kernel holds for a client that takes nothing.
    let large = vec![b'x'; 4 * 1024 * 1024];
    host.reactor.put_answers(Some(&large));
    host.reactor.flush_answers();
    // Others are served meanwhile.
    let mut other = host.connect();
    host.answers = true;
    other.write_all(GET).unwrap();
    host.read_until(&mut other, "/a");
    let held = host.reactor.slots.get(slot).map_or(0, |line| line.machine.unsent());
    assert!(held > 0 && held < large.len(), "{held}");
    // It reads slowly, and buys patience with it.
    let mut piece = [0; 256];
    let (mut taken, began) = (0, Instant::now());
    while taken < 4096 {
        assert!(began.elapsed() < Duration::from_secs(10), "{taken}");
        host.turn();
        host.reactor.tick();
        taken += client.read(&mut piece).unwrap_or(0);
    }
    assert_eq!(host.reactor.stats().connections, 2);
    // And when it stops, it is cut.
    host.until("cut", |host| host.reactor.stats().connections == 1);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_that_reads_less_than_the_kernel_tells_of_is_kept_until_it_reads_nothing() {
    const BODY_MS: u64 = 800;
    let mut host = Host::new(anywhere(), false, Limits { body_ms: BODY_MS, ..limits() });
    host.answers = false;
    let mut client = narrow(&host);
    client.write_all(GET).unwrap();
    host.until("read", |host| host.open.len() == 1);
    let (slot, stamp) = host.open.remove(0);
    let words: [u32; answer::WORDS] = [reply::RESPOND, slot, stamp, 200, 0, 0, 0, 1];
    host.reactor.out.put_all(HEADER_BYTES / 4, words);
    host.reactor.out.put(out::END, (HEADER_BYTES + answer::WORDS * 4) as u32);
    host.reactor.put_answers(Some(&vec![b'x'; 4 * 1024 * 1024]));
    host.reactor.flush_answers();
    let held = |host: &Host| host.reactor.slots.get(slot).map(|line| line.machine.unsent());
    let (before, began, mut taken) = (held(&host), Instant::now(), 0);
    // Some 4,000 bytes a second: nothing to a buffer of megabytes.
    while began.elapsed() < Duration::from_millis(3 * BODY_MS) {
        host.turn();
        host.reactor.tick();
        if taken < 4 * began.elapsed().as_millis() as usize {
            taken += client.read(&mut [0; 64]).unwrap_or(0);
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((held(&host), host.reactor.stats().connections), (before, 1), "{taken} bytes read");
    // What it has read last may have bought all the patience there is; more than that there is not.
    let stopped = Instant::now();
    host.until("cut", |host| host.reactor.stats().connections == 0);
    let waited = stopped.elapsed().as_millis() as u64;
    assert!(waited < 2 * BODY_MS, "{waited} ms");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_part_of_a_head_with_the_end_behind_it_is_not_looked_at_over_and_over() {
    let mut host = Host::new(anywhere(), false, limits());
    let (mut client, _) = host.ask(&[GET, &GET[..6]].concat());
    client.shutdown(Shutdown::Write).unwrap();
    host.until("told", |host| told(host, event::GONE) == 1);
    host.turn();
    host.turn();
    assert!(host.reactor.again.is_empty());
    host.answer("late");
    host.reactor.flush_answers();
    assert!(host.read_until(&mut client, "").ends_with("late<closed>"));
    // And nobody is waited for who does not answer.
    let mut host = Host::new(anywhere(), false, Limits { body_ms: 30, ..limits() });
    let (client, _) = host.ask(&[GET, &GET[..6]].concat());
    client.shutdown(Shutdown::Write).unwrap();
    host.until("cut", |host| host.reactor.stats().connections == 0);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_batch_takes_as_many_requests_as_the_answers_before_have_room_for_and_twice_as_many_as_before() {
    // Each is answered with its target.
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
    /// Answer the oldest open request with a body that is not in the region.
    fn answer_elsewhere(&mut self, body: &[u8]) {
        let (slot, stamp) = self.open.remove(0);
        let words: [u32; answer::WORDS] = [reply::RESPOND, slot, stamp, 200, 0, 0, 0, 1];
        self.reactor.out.put_all(HEADER_BYTES / 4, words);
        self.reactor.out.put(out::END, (HEADER_BYTES + answer::WORDS * 4) as u32);
        self.reactor.put_answers(Some(body));
        self.reactor.flush_answers();
    }

    /// Read until what the client has ends with `end`: how many `x` there are.
    fn read_bodies(&mut self, client: &mut TcpStream, end: &str) -> usize {
        let (mut text, mut piece, patience) = (Vec::new(), vec![0; 256 * 1024], Instant::now());
        while !text.ends_with(end.as_bytes()) {
            assert!(patience.elapsed() < Duration::from_secs(30), "{} bytes", text.len());
            self.turn();
            self.reactor.tick();
            match client.read(&mut piece) {
                Ok(bytes) => text.extend_from_slice(&piece[..bytes]),
                Err(error) => assert!(input::is_soon(&error), "{error}"),
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
        // What comes behind a body that waits is sent behind it.
        let (client, _) = host.ask(&GET.repeat(2));
        host.until("both", |host| host.open.len() == 2);
        host.answer_elsewhere(&large.clone());
        let mut client = client;
        client.write_all(GET).unwrap();
        host.answer("second");
        host.reactor.flush_answers();
        clients.push(client);
    }
    assert_eq!(host.reactor.stats().held_bytes, BYTES as u64);
    for slot in 0..CLIENTS as u32 {
        let machine = host.reactor.slots.get(slot).map(|line| &line.machine).unwrap();
        assert!(machine.unsent() > BYTES / 4 && machine.out.capacity() < 1024 * 1024);
    }
    // No room is left for another one; the same one has it.
    let (mut refused, _) = host.ask(GET);
    host.answer_elsewhere(&vec![b'y'; BYTES]);
    assert!(host.read_until(&mut refused, "wait\n").starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    assert_eq!((host.reactor.stats().refused, host.reactor.stats().held_bytes), (1, BYTES as u64));
    // Two large ones behind each other, the second ahead of its turn.
    let (mut both, _) = host.ask(&GET.repeat(3));
    host.until("all", |host| host.open.len() == 3);
    host.open.swap(0, 1);
    host.answer_elsewhere(&large);
    host.answer_elsewhere(&large);
    host.answer("third");
    host.reactor.flush_answers();
    assert_eq!(host.reactor.stats().held_bytes, BYTES as u64);
    assert_eq!(host.read_bodies(&mut both, "third"), 2 * BYTES);
    host.answers = true;
    for client in &mut clients {
        assert_eq!(host.read_bodies(client, "/a"), BYTES);
    }
    assert_eq!(host.reactor.stats().held_bytes, 0);
    assert_eq!(host.reactor.stats().connections, CLIENTS as u64 + 2);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_long_constant_is_sent_from_where_it_is() {
    let mut host = Host::new(anywhere(), false, limits());
    let requests = b"GET /huge HTTP/1.1\r\nHost: a\r\n\r\nHEAD /huge HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let last = b"GET /huge HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut clients: Vec<_> = (0..4).map(|_| host.connect()).collect();
    for client in &mut clients {
        client.write_all(&[&requests[..], b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"].concat()).unwrap();
    }
    host.until("answered", |host| host.reactor.stats().constants >= 4);
    for slot in 0..4 {
        let machine = host.reactor.slots.get(slot).map(|line| &line.machine).unwrap();
        assert!(machine.unsent() > HUGE_BYTES / 4 && machine.out.capacity() < 256 * 1024);
    }
    assert_eq!(host.reactor.stats().held_bytes, 0, "it is there anyway");
    for client in &mut clients {
        assert_eq!(host.read_bodies(client, "/a"), HUGE_BYTES);
    }
    let mut client = host.connect();
    client.write_all(&[&GET.repeat(2)[..], last].concat()).unwrap();
    let text = host.read_until(&mut client, "");
    assert_eq!(text.matches('x').count(), HUGE_BYTES);
    assert!(text.contains("connection: close\r\n") && text.ends_with("x<closed>"));
}
