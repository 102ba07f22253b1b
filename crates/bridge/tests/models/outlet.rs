//! The results of a process that is a worker.
//!
//! Each is sent once, and none waits for a thread that does not come.

use corespun_bridge::{
    Receiver, Status,
    outlet::{Outbound, Outlet},
};
use loom::thread;

use super::seats::{explore, machine, zone_of};

/// What has been sent, instead of a socket.
struct Side {
    receiver: Receiver,
    sent: Vec<(u32, Status)>,
}

impl Outbound for Side {
    fn receiver(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    fn send_arrivals(&mut self) {
        while let Some(task) = self.receiver.next_arrival() {
            // SAFETY: it has returned to this side.
            let status = unsafe { task.body(|body| body.status) };
            self.sent.push((task.call(), status));
            self.receiver.put_away(task);
        }
    }
}

fn opened() -> &'static Outlet<Side> {
    Outlet::open(Side { receiver: Receiver::new(1, machine()), sent: Vec::new() })
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
        assert!(zone.submit(task, 1).is_ok());
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
