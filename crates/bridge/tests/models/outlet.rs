//! The results of a process that is a worker, and what its tasks send before.
//!
//! Each is sent once, in its turn, and none waits for a thread that does not come.

use corespun_bridge::{
    Mail, Receiver, Status, Submission, Task,
    outlet::{Outbound, Outlet},
};
use loom::thread;

use super::seats::{explore, machine, zone_of};

/// What has been sent, instead of a socket.
struct Side {
    receiver: Receiver,
    sent: Vec<(u32, Status)>,
    /// How many results had been sent before each piece of mail.
    mail: Vec<usize>,
}

impl Outbound for Side {
    fn receiver(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    fn send_mail(&mut self, _: Mail) {
        self.mail.push(self.sent.len());
    }

    fn send_result(&mut self, task: &'static Task) {
        // SAFETY: it has returned to this side.
        let status = unsafe { task.body(|body| body.status) };
        self.sent.push((task.call(), status));
        self.receiver.put_away(task);
    }

    fn flush(&mut self) {}
}

fn opened() -> &'static Outlet<Side> {
    Outlet::open(Side { receiver: Receiver::new(1, machine()), sent: Vec::new(), mail: Vec::new() })
}

/// The calls that were sent, in the order of their numbers; the receiver waits for none.
fn sent(outlet: &Outlet<Side>) -> Vec<(u32, Status)> {
    outlet.with(|side| {
        assert_eq!(side.receiver.in_flight(), 0);
        side.sent.sort_unstable_by_key(|&(call, _)| call);
        std::mem::take(&mut side.sent)
    })
}

impl Side {
    fn submit(&mut self, zone: &corespun_bridge::Zone, call: u32) {
        let task = self.receiver.task(call);
        // SAFETY: a number is used once, so the task is idle here.
        unsafe { task.body(|body| body.bytes.set(&[call as u8])) };
        assert!(zone.submit(Submission::new(task, 1)).is_ok());
        self.receiver.sent();
    }
}

/// Another thread delivers results while the main thread submits, sends and puts the mailbox to sleep.
///
/// Seen to fail: `send` that does not look again behind `try_sleep`; `send` of the main thread that sends
/// nothing.
#[test]
fn results_of_another_thread_are_sent() {
    explore(|| {
        let outlet = opened();
        let (zone, mut staff) = zone_of(1, machine());
        let (mut seat, mut worker) = staff.remove(0);
        let thread = thread::spawn(move || assert_eq!(seat.work(&mut worker, 2), 2));
        outlet.receive(|side| side.submit(&zone, 0));
        outlet.send();
        outlet.receive(|side| side.submit(&zone, 1));
        outlet.send();
        thread.join().unwrap();
        assert_eq!(sent(outlet), [(0, Status::Done), (1, Status::Done)]);
    });
}

/// The main thread delivers a result itself, under the lock, while another thread delivers one: neither
/// waits for the other, and both are sent.
///
/// Seen to fail: `send` without its look at `is_receiving` (a deadlock).
#[test]
fn results_of_the_receiving_thread_are_sent_afterwards() {
    explore(|| {
        let outlet = opened();
        let (zone, mut staff) = zone_of(1, machine());
        let (mut seat, mut worker) = staff.remove(0);
        outlet.receive(|side| {
            side.submit(&zone, 0);
            side.submit(&zone, 1);
        });
        outlet.send();
        let thread = thread::spawn(move || seat.work(&mut worker, 2));
        // What waits returns at once, in this thread; what runs ends by itself.
        outlet.receive(|_| zone.finish(Status::Closed, &[]));
        outlet.send();
        let done = thread.join().unwrap();
        let sent = sent(outlet);
        assert_eq!(sent.iter().map(|&(call, _)| call).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(sent.iter().filter(|&&(_, status)| status == Status::Done).count(), done);
    });
}

/// Mail that the thread of a task has left before the result is sent before it, whichever thread sends.
///
/// Seen to fail: mail that is looked at before the arrivals alone.
#[test]
fn what_a_task_has_sent_precedes_its_result() {
    explore(|| {
        let outlet = opened();
        let (zone, mut staff) = zone_of(1, machine());
        let (mut seat, mut worker) = staff.remove(0);
        outlet.receive(|side| side.submit(&zone, 0));
        let mailbox = outlet.with(|side| side.receiver.mailbox());
        let thread = thread::spawn(move || {
            mailbox.send(Mail { kind: 0, subject: 0, facts: [0, 0] });
            assert_eq!(seat.work(&mut worker, 1), 1);
        });
        outlet.send();
        thread.join().unwrap();
        assert_eq!(sent(outlet), [(0, Status::Done)]);
        assert_eq!(outlet.with(|side| std::mem::take(&mut side.mail)), [0]);
    });
}
