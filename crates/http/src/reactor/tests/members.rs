//! Reactors that share a port or a path: who has new connections when members leave, stall or stop.
//! What one reactor does with its own connections is tested beside.

use super::*;
use crate::listen::{send_away, stalled_ms};

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_shared_port_is_handed_on_by_members_that_leave() {
    let mut first = Host::new(anywhere(), true, limits());
    let endpoint = Endpoint::Address(first.address());
    let refused =
        Host::try_new(endpoint.clone(), false, limits()).err().and_then(|error| error.raw_os_error());
    assert_eq!(refused, Some(libc::EADDRINUSE));
    let second = Host::new(endpoint.clone(), true, limits());
    // Some of these wait in the queue of the second, which leaves without reading them.
    let mut clients: Vec<_> = (0..16).map(|_| first.connect()).collect();
    drop(second);
    for client in &mut clients {
        client.write_all(GET).unwrap();
        first.read_until(client, "/a");
    }
    // A third takes the orphan over.
    let third = Host::new(endpoint.clone(), true, limits());
    drop(first);
    let mut third = third;
    let mut client = third.connect();
    client.write_all(GET).unwrap();
    third.read_until(&mut client, "/a");
    drop(third);
    let unshared = Host::new(endpoint.clone(), false, limits());
    let refused = Host::try_new(endpoint, true, limits()).err().and_then(|error| error.raw_os_error());
    assert_eq!(refused, Some(libc::EADDRINUSE));
    drop(unshared);
}

/// Poll until a member counts as stalled.
fn until_stalled(member: u64) {
    let began = Instant::now();
    while stalled_ms(member).expect("a member") < 20 {
        assert!(began.elapsed() < Duration::from_secs(10), "it does not count as stalled");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn sockets_of_a_stalled_member_go_to_another_until_it_turns_again() {
    let mut well = Host::new(anywhere(), true, limits());
    let mut stuck = Host::new(Endpoint::Address(well.address()), true, limits());
    let (of_well, of_stuck) = (well.reactor.arrivals.member(), stuck.reactor.arrivals.member());
    assert_eq!(
        (stalled_ms(of_well), stalled_ms(of_stuck)),
        (Some(0), Some(0)),
        "a member without work is not stalled"
    );
    // Some of these wait in the queue of the one that does not turn.
    let mut clients: Vec<_> = (0..32).map(|_| well.connect()).collect();
    until_stalled(of_stuck);
    well.turn();
    assert_eq!(stalled_ms(of_well).map(|ms| ms < 10_000), Some(true));
    assert!(send_away(of_stuck, false));
    assert!(send_away(of_stuck, false), "it is away already");
    for client in &mut clients {
        client.write_all(GET).unwrap();
        well.read_until(client, "/a");
    }
    // There is no other member for what the last one accepts.
    assert!(!send_away(of_well, false));
    assert_eq!(stuck.reactor.stats().connections_total, 0);
    // Its waker makes it turn, and it has a share again.
    assert!(stalled_ms(of_stuck).is_some());
    stuck.turn();
    assert_eq!(stalled_ms(of_stuck), Some(0));
    let began = Instant::now();
    while stuck.reactor.stats().connections_total == 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "it does not accept again");
        clients.push(well.connect());
        well.turn();
        stuck.turn();
    }
    // In the middle of a call it does not turn either.
    let mut client = loop {
        let before = stuck.reactor.stats().connections_total;
        let client = stuck.connect();
        std::thread::sleep(Duration::from_millis(1));
        well.turn();
        stuck.turn();
        if stuck.reactor.stats().connections_total > before {
            break client;
        }
    };
    client.write_all(GET).unwrap();
    let began = Instant::now();
    stuck.reactor.begin();
    while stuck.reactor.advance() != Step::Call {
        assert!(began.elapsed() < Duration::from_secs(10));
        stuck.reactor.begin();
    }
    until_stalled(of_stuck);
    assert!(send_away(of_stuck, false));
    // The others leave while it is away: it is the only member, and accepts in its next turn.
    drop(well);
    stuck.handle();
    stuck.reactor.called(true);
    while stuck.reactor.advance() == Step::Call {
        stuck.handle();
        stuck.reactor.called(true);
    }
    stuck.read_until(&mut client, "/a");
    let mut last = stuck.connect();
    last.write_all(GET).unwrap();
    stuck.read_until(&mut last, "/a");
    drop(stuck);
    assert_eq!(stalled_ms(of_stuck), None);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_final_send_away_closes_the_port_of_stalled_members() {
    let stuck = Host::new(anywhere(), true, limits());
    let other = Host::new(Endpoint::Address(stuck.address()), true, limits());
    let address = stuck.address();
    assert!(send_away(other.reactor.arrivals.member(), true));
    assert!(send_away(stuck.reactor.arrivals.member(), true));
    assert_eq!(
        stalled_ms(stuck.reactor.arrivals.member()),
        Some(0),
        "it is registered until it leaves by itself"
    );
    assert!(TcpStream::connect(address).is_err());
    // A new group on the same endpoint is independent of those.
    let mut next = Host::new(Endpoint::Address(address), true, limits());
    for mut one in [other, stuck] {
        one.turn();
        drop(one);
    }
    let mut client = next.connect();
    client.write_all(GET).unwrap();
    next.read_until(&mut client, "/a");
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_port_of_another_process_is_in_use() {
    let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = Endpoint::Address(taken.local_addr().unwrap());
    for is_shared in [false, true] {
        let refused = Host::try_new(endpoint.clone(), is_shared, limits()).err();
        assert_eq!(refused.and_then(|error| error.raw_os_error()), Some(libc::EADDRINUSE));
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_path_is_shared_and_a_stale_one_is_cleared() {
    let folder = std::env::temp_dir().join(format!("corespun-http-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let endpoint = Endpoint::Path(path.clone());
    let mut host = Host::new(endpoint.clone(), true, limits());
    let other = Host::new(endpoint, true, limits());
    drop(other);
    let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    client.write_all(GET).unwrap();
    host.until("the requests", |host| host.seen.len() == 1);
    let mut text = [0; 4096];
    let bytes = client.read(&mut text).unwrap();
    assert!(text[..bytes].ends_with(b"/a"));
    drop(host);
    assert!(!path.exists());
    std::fs::remove_dir_all(folder).unwrap();
}
