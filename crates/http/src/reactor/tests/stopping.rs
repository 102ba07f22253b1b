//! A reactor that stops: what is open is finished, and a connection that has just begun is waited for, within
//! a time.

use super::*;

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn stopping_finishes_the_open_exchanges() {
    let mut host = Host::new(anywhere(), false, limits());
    host.responds = false;
    let mut idle = host.connect();
    let mut busy = host.connect();
    busy.write_all(GET).unwrap();
    host.until("the requests", |host| host.open.len() == 1);
    // Connected, with a request that is unread.
    let mut waiting = host.connect();
    waiting.write_all(GET).unwrap();
    host.reactor.stop(5_000);
    assert_eq!(host.read_until(&mut idle, ""), "<closed>");
    host.until("the requests", |host| host.open.len() == 2);
    host.respond("one");
    host.respond("two");
    host.reactor.flush_responses();
    for (client, body) in [(&mut busy, "one"), (&mut waiting, "two")] {
        let text = host.read_until(client, "");
        assert!(text.contains("connection: close") && text.ends_with(&format!("{body}<closed>")), "{text}");
    }
    host.until("the event", |host| host.seen.contains(&format!("event {}", event::STOPPED)));
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn stopping_awaits_the_first_request_of_a_new_connection() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut idle = host.connect();
    idle.write_all(GET).unwrap();
    host.read_until(&mut idle, "/a");
    let mut late = host.connect();
    let mut silent = host.connect();
    host.until("the connections", |host| host.reactor.stats().connections == 3);
    host.reactor.stop(60_000);
    assert_eq!(host.read_until(&mut idle, ""), "<closed>");
    assert_eq!(host.reactor.stats().connections, 2, "one that was used closes at once");
    late.write_all(GET).unwrap();
    let text = host.read_until(&mut late, "");
    assert!(text.contains("connection: close") && text.ends_with("/a<closed>"), "{text}");
    assert_eq!(host.read_until(&mut silent, ""), "<closed>");
    host.until("the event", |host| host.seen.contains(&format!("event {}", event::STOPPED)));
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn the_grace_period_of_a_stop_ends() {
    let mut host = Host::new(anywhere(), false, limits());
    host.responds = false;
    let mut busy = host.connect();
    busy.write_all(GET).unwrap();
    host.until("the requests", |host| host.open.len() == 1);
    host.reactor.stop(20);
    assert_eq!(host.read_until(&mut busy, ""), "<closed>");
    host.until("the event", |host| host.seen.contains(&format!("event {}", event::STOPPED)));
    assert_eq!(host.reactor.stats().aborted, 1);
}

/// A connection of HTTP/2 with empty settings, and one frame more.
fn http2_with(frame: &[u8]) -> Vec<u8> {
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    [preface, frame].concat()
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_that_an_error_has_cut_off_does_not_hold_up_a_stop() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut client = host.connect();
    // A ping of a stream.
    client.write_all(&http2_with(b"\0\0\x08\x06\0\0\0\0\x01\0\0\0\0\0\0\0\0")).expect("space");
    host.until("the end", |host| host.reactor.connections.lingering == 1);
    host.reactor.stop(60_000);
    let began = std::time::Instant::now();
    while host.reactor.stats().connections > 0 {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "it still lingers");
        client.write_all(&[0; 1000]).ok();
        std::thread::sleep(std::time::Duration::from_millis(20));
        host.turn();
        host.reactor.tick();
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_that_ends_its_connection_by_an_error_is_not_waited_for() {
    let mut host = Host::new(anywhere(), false, limits());
    let mut client = host.connect();
    client.write_all(&http2_with(b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x02")).expect("space");
    host.until("the connection", |host| host.reactor.stats().connections == 1);
    host.until("its end", |host| {
        host.reactor.stats().connections == 0 || host.reactor.connections.lingering > 0
    });
    assert_eq!(host.reactor.connections.lingering, 0);
}
