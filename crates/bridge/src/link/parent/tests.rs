//! The end of a process whose owner cannot wait for it: its thread has noticed that the sockets are closed,
//! but does not return to its loop any more.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use super::{Link, start};
use crate::{Wake, link::relay::tests::Pipes, registry};

struct Silent;

impl Wake for Silent {
    fn wake(&self) {}
}

/// Whether the process, or what is left of it until somebody has waited for it, has its number.
fn has_number(pid: i32) -> bool {
    // SAFETY: takes numbers; 0 sends nothing.
    unsafe { libc::kill(pid, 0) == 0 }
}

#[test]
#[expect(clippy::zombie_processes, reason = "that nobody waits for it is what this is about")]
fn a_process_that_its_owners_loop_cannot_wait_for_leaves_nothing() {
    let pipes: &'static Pipes = Box::leak(Box::default());
    let mut receiver = registry::take_receiver();
    receiver.open(Box::new(Silent));
    let link = Link::open().expect("descriptors");
    let child = Command::new("true").spawn().expect("a process");
    let pid = child.id().cast_signed();
    let reaped = start(link, (1, pid), receiver.mailbox(), pipes).expect("a thread");
    // The mailbox is open: the thread that owns it has received the mail, but will not return to its loop.
    drop(reaped);
    let begun = Instant::now();
    while has_number(pid) {
        assert!(begun.elapsed() < Duration::from_secs(60), "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(1));
    }
}
