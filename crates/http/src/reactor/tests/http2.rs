//! Connections of HTTP/2 on sockets. Frames and streams are tested in machine/http2/tests.rs, and from
//! outside in src/http/http2.

use std::os::fd::AsRawFd;

use super::*;

const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0pingping";
/// Turns in which a client could write nothing, after which the system stores no more for it.
const STUCK_TURNS: u32 = 1000;
/// What the system stores of what the client writes, on each side: that would grow to tens of megabytes.
const STORED: libc::c_int = 100_000;
/// More than it stores of that.
const WRITTEN_MAX: usize = 4_000_000;

/// Limit what the system stores of what a socket sends, or receives.
fn store(socket: &impl AsRawFd, option: libc::c_int, bytes: libc::c_int) {
    // SAFETY: the descriptor is open, and the value is an integer of the length that is passed.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(set, 0);
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_client_that_does_not_read_is_not_read_and_takes_no_turns() {
    let mut host = Host::new(anywhere(), false, Limits { out_bytes_max: 16 * 1024, ..limits() });
    let mut client = host.connect();
    store(&client, libc::SO_RCVBUF, 4096);
    store(&client, libc::SO_SNDBUF, STORED);
    client.write_all(BEGIN).unwrap();
    host.until("the connection", |host| host.reactor.connections.slots.get(0).is_some());
    let server = &host.reactor.connections.slots.get(0).unwrap().socket;
    store(server, libc::SO_SNDBUF, 4096);
    store(server, libc::SO_RCVBUF, STORED);
    client.set_nonblocking(true).unwrap();
    let (flood, mut written, mut stuck) = (PING.repeat(1000), 0, 0);
    while stuck < STUCK_TURNS {
        match client.write(&flood[written % flood.len()..]) {
            Ok(bytes) => (written, stuck) = (written + bytes, 0),
            Err(_) => stuck += 1,
        }
        assert!(written < WRITTEN_MAX, "it is read without end");
        host.turn();
    }
    assert!(host.reactor.connections.runnable.is_empty(), "it would be worked on again and again");
    // When it reads, it gets the whole of what was written, and is read again.
    let received = std::cell::RefCell::new(Vec::new());
    host.until("the rest", |_| {
        let mut bytes = [0; 4096];
        let read = (&client).read(&mut bytes).unwrap_or(0);
        received.borrow_mut().extend_from_slice(&bytes[..read]);
        received.borrow().len() > 40_000
    });
}
