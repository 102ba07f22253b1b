//! Turns that wait for the next request before the thread sleeps.
//!
//! A wait has no end here but the event: what it finds depends on no clock.

use super::*;
use crate::reactor::arrivals::{POLL_PROBE_EVERY, POLL_SCORE_MAX};

/// A host in the middle of a turn; polls after the first have found events.
fn busy() -> Host {
    let mut host = Host::new(anywhere(), false, limits());
    host.reactor.arrivals.poll_wait_ns = u64::MAX;
    (host.reactor.arrivals.poll_score, host.reactor.arrivals.polls_considered, host.reactor.arrivals.round) =
        (POLL_SCORE_MAX, 1, 2);
    host
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_turn_waits_for_an_event_where_such_waits_have_found_some() {
    let mut host = busy();
    let address = host.address();
    let polls = std::sync::Arc::clone(&host.reactor.arrivals.selector.polls);
    let client = std::thread::spawn(move || {
        // Relaxed: the number alone counts. The first poll has found nothing.
        while polls.load(std::sync::atomic::Ordering::Relaxed) < 2 {
            std::hint::spin_loop();
        }
        TcpStream::connect(address)
    });
    host.reactor.look();
    assert_eq!((host.reactor.arrivals.events.len(), host.reactor.arrivals.poll_score), (1, POLL_SCORE_MAX));
    client.join().expect("no panic").expect("a connection");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_turn_does_not_wait_where_waits_were_in_vain() {
    let mut host = busy();
    host.reactor.arrivals.poll_wait_ns = 0;
    for _ in 0..POLL_SCORE_MAX / 4 {
        assert!(host.reactor.arrivals.may_wait(host.reactor.has_runnable()));
        host.reactor.look();
    }
    host.reactor.look();
    assert!(!host.reactor.arrivals.may_wait(host.reactor.has_runnable()));
    host.reactor.arrivals.polls_considered = POLL_PROBE_EVERY;
    assert!(host.reactor.arrivals.may_wait(host.reactor.has_runnable()), "now and then it tries");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_turn_does_not_wait_while_the_host_has_other_work() {
    let mut host = busy();
    host.reactor.arrivals.poll_wait_ns = 0;
    let mut client = host.connect();
    // Its handler awaits what the thread's loop has to fetch.
    host.opened(&mut client, GET, 1);
    host.reactor.arrivals.poll_score = POLL_SCORE_MAX;
    assert!(!host.reactor.arrivals.may_wait(host.reactor.has_runnable()));
    // A batch whose requests all have responses ends that.
    host.responds = true;
    let mut other = host.connect();
    other.write_all(GET).expect("space in the socket");
    host.until("the second request", |host| host.seen.len() == 2);
    host.reactor.arrivals.poll_score = POLL_SCORE_MAX;
    assert!(host.reactor.arrivals.may_wait(host.reactor.has_runnable()));
    // What can continue without an event does not wait for one.
    host.reactor.connections.runnable.push_back(0);
    assert!(!host.reactor.arrivals.may_wait(host.reactor.has_runnable()));
    host.reactor.connections.runnable.clear();
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_batch_of_events_alone_does_not_end_the_work_of_the_host() {
    let mut host = busy();
    host.reactor.arrivals.poll_wait_ns = 0;
    let mut client = host.connect();
    host.opened(&mut client, GET, 1);
    client.shutdown(std::net::Shutdown::Write).expect("open");
    host.until("the event", |host| host.seen.iter().any(|seen| seen.starts_with("event")));
    host.reactor.arrivals.poll_score = POLL_SCORE_MAX;
    assert!(!host.reactor.arrivals.may_wait(host.reactor.has_runnable()), "its handler still runs");
}
