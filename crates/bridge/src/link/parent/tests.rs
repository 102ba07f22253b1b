//! Ends of processes: what they have sent before arrives; and one whose owner cannot wait for it, since its
//! thread has noticed that the sockets are closed, but does not return to its loop any more.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    os::unix::net::UnixStream,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Channel, Head, Kind, Link, Parent, Relay, Waker, start};
use crate::{Limits, Status, Submission, Wake, Worker, Zone, link::relay::tests::Pipes, registry};

const LIMITS: Limits = Limits {
    tasks_max: 4,
    task_bytes_max: 1000,
    queue_bytes_max: 1000,
    broadcasts_max: 2,
    tasks_per_worker_max: 1,
    waiting_per_worker_max: 16,
    call_depth_max: 8,
    tasks_per_tenant_max: usize::MAX,
    worker_tasks_max: usize::MAX,
    spin: Duration::ZERO,
};

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

#[test]
fn a_result_is_received_though_the_other_socket_shows_the_end_first() {
    let pipes: &'static Pipes = Box::leak(Box::default());
    let (tasks, of_tasks) = UnixStream::pair().unwrap();
    let (texts, of_texts) = UnixStream::pair().unwrap();
    let (wake, waker) = UnixStream::pair().unwrap();
    let (mut home, mut receiver) = (registry::take_receiver(), registry::take_receiver());
    home.open(Box::new(Silent));
    receiver.open(Box::new(Waker(waker)));
    let zone = Arc::new(Zone::new(1, LIMITS));
    let slot = zone.add_slot().unwrap();
    let worker = Worker::of_process(zone.attach(slot, receiver.mailbox()).unwrap());
    let relay = Relay::new(pipes, receiver.mailbox());
    let [tasks, texts, mut child] = [tasks, texts, of_tasks].map(|each| Channel::new(each).unwrap());
    let worker = Some(worker);
    let mut parent = Parent { tasks, texts, wake, receiver, relay, worker, broadcast: None, leaving: false };

    let task = home.task(7);
    assert!(zone.submit(Submission::new(task, 0)).is_ok());
    home.sent();
    parent.pass_on().unwrap();
    child.receive().unwrap();
    let (head, _) = child.next().unwrap().unwrap();
    child.send(Head::new(Kind::Done, head.subject, Status::Done as u32), b"result").unwrap();
    // Closed together by a process that ends; the one for tasks may not be seen so in the same look.
    drop(of_texts);
    parent.run();

    let result = home.next_arrival().unwrap();
    // SAFETY: it has returned to its owner.
    unsafe {
        result.body(|body| assert_eq!((body.status, body.bytes.as_slice()), (Status::Done, &b"result"[..])))
    };
    home.put_away(result);
    parent.end();
    home.close();
    registry::return_receiver(home);
}
