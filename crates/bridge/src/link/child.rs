//! The child's end: tasks that arrive are submitted to the zone of this process, and their results are sent.
//!
//! The main thread reads, when its loop finds the socket readable. Results leave where they are delivered:
//! the tasks have a mailbox of their own here, which sleeps, and what wakes it sends them. So a result never
//! waits for the next task of its thread to end. Sending blocks, in slices, until the parent has read, which
//! it does at once: its thread runs no JavaScript. What a task puts into the channel of a stream leaves in
//! the same way.

use std::{
    io,
    ops::Range,
    os::{
        fd::{FromRawFd, RawFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    time::Duration,
};

use super::{
    channel::{Channel, Head, Kind},
    outlet::{Outbound, Outlet},
    platform::{self, Awaited},
    relay::{Conduits, Numbers, Relay},
};
use crate::{
    Cancellation, Mail, Mailbox, Receiver, Status, Submission, Task, Zone,
    layout::mail,
    registry, signals,
    sync::{AtomicUsize, Ordering},
};

const SLICE: Duration = Duration::from_millis(10);
/// The call of the broadcast that runs; that of a task is its token and one.
const BROADCAST: u32 = 0;
/// Notes that are not the numbers of signals: no reason given, the zone closes.
const UNSAID: u32 = 0;
const CLOSING: u32 = u32::MAX;

/// This process as a worker of the parent's zone.
pub struct Child {
    zone: Arc<Zone>,
    /// The main thread's, on which the zone's only worker runs.
    main: &'static Mailbox,
    outlet: &'static Outlet<Side>,
    /// The count of waiting tasks that the parent has.
    reported: AtomicUsize,
}

struct Side {
    channel: Channel,
    receiver: Receiver,
    relay: Relay,
    /// By call: what is here, and the signal of its cancellation.
    begun: Vec<Option<Begun>>,
}

#[derive(Clone, Copy)]
struct Begun {
    serial: u32,
    note: u32,
}

impl Child {
    /// Join the parent's zone with that number as the worker of `slot`: here `zone` is all of it. Called in
    /// the main thread.
    ///
    /// # Safety
    ///
    /// `descriptor` is that of an open socket, and nothing else uses it.
    pub unsafe fn join(
        descriptor: RawFd,
        zone: Arc<Zone>,
        main: &'static Mailbox,
        conduits: &'static dyn Conduits,
        (number, slot): (u32, u32),
    ) -> io::Result<&'static Self> {
        platform::keep_to_oneself(descriptor)?;
        // SAFETY: guaranteed by the caller.
        let channel = Channel::new(unsafe { UnixStream::from_raw_fd(descriptor) })?;
        let receiver = registry::take_receiver();
        let relay = Relay::new(conduits, receiver.mailbox());
        let side = Side { channel, receiver, relay, begun: Vec::new() };
        let outlet = Outlet::open(side);
        outlet.with(|side| side.put(Head::new(Kind::Join, number, slot), &[]))?;
        outlet.send();
        Ok(Box::leak(Box::new(Self { zone, main, outlet, reported: AtomicUsize::new(0) })))
    }

    /// The socket is readable. Ends this process when the parent has ended.
    pub fn receive(&self) {
        let received = self.outlet.receive(|side| {
            let is_open = side.channel.receive()?;
            self.handle(side).map(|()| is_open)
        });
        match received {
            Ok(true) => self.outlet.send(),
            // Nobody waits for anything that runs here.
            Ok(false) | Err(_) => platform::end_now(),
        }
    }

    /// In the main thread: begin a link between channels here and those of the parent that a task has
    /// received. The link's number is that of the channel whose messages leave.
    pub fn open(&self, here: Numbers, there: Numbers) {
        let opened = self.outlet.with(|side| {
            let [leaving, arriving] = there;
            let head = Head { depth: arriving, ..Head::new(Kind::Open, here[0], leaving) };
            side.channel.send(head, &[])?;
            side.relay.open(here[0], here, &mut side.channel)?;
            side.drain()
        });
        opened.unwrap_or_else(|_| platform::end_now());
    }

    /// The thread of `mailbox` is about to wait, or ends a task, and `count` of its tasks wait for the other
    /// ends of their streams. The parent is notified where that has changed: a wait within a turn costs
    /// nothing.
    pub fn waits(&self, mailbox: &'static Mailbox, count: usize) {
        // Relaxed: the main thread's alone.
        if std::ptr::eq(mailbox, self.main) && self.reported.load(Ordering::Relaxed) != count {
            self.send_waits(count, false);
        }
    }

    /// All that the thread of `mailbox` runs waits, and nothing of it has come for long: the parent may send
    /// a task more.
    pub fn stalled(&self, mailbox: &'static Mailbox, count: usize) {
        if std::ptr::eq(mailbox, self.main) {
            self.send_waits(count, true);
        }
    }

    fn send_waits(&self, count: usize, is_stalled: bool) {
        // Relaxed: the main thread's alone.
        self.reported.store(count, Ordering::Relaxed);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let head = Head::new(Kind::Waits, count, u32::from(is_stalled));
        self.outlet.with(|side| side.put(head, &[])).unwrap_or_else(|_| platform::end_now());
    }

    fn handle(&self, side: &mut Side) -> io::Result<()> {
        while let Some((head, bytes)) = side.channel.next()? {
            match head.kind {
                Kind::Task => self.begin(side, head, bytes),
                Kind::Broadcast => self.broadcast(side, head, bytes),
                Kind::Abort => self.abort(side, head, bytes)?,
                Kind::Leave => _ = self.zone.close(None),
                Kind::Pass if side.relay.arrived(head.subject, side.channel.bytes(bytes.clone())) => {}
                Kind::Shut => side.relay.shut(head.subject),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(())
    }

    /// Submit a task. One that this zone refuses, since a task has closed it, ends with this process.
    fn begin(&self, side: &mut Side, head: Head, bytes: Range<usize>) {
        let call = head.subject + 1;
        let task = side.receiver.task(call);
        let length = bytes.len();
        // SAFETY: the parent uses a token again only after the result, so this thread holds the idle task.
        unsafe {
            task.body(|body| {
                body.function = head.detail;
                (body.depth, body.chain, body.attachments) = (head.depth, 0, None);
                body.bytes.set(side.channel.bytes(bytes));
            });
        }
        if self.zone.submit(Submission::new(task, length)).is_ok() {
            side.receiver.sent();
            side.note(call, Some(Begun { serial: head.serial, note: UNSAID }));
        }
    }

    fn broadcast(&self, side: &mut Side, head: Head, bytes: Range<usize>) {
        let task = side.receiver.task(BROADCAST);
        let bytes = side.channel.bytes(bytes);
        if self.zone.broadcast(0, head.detail, bytes, 0, None, Some(task)).is_ok() {
            side.receiver.sent();
        }
    }

    fn abort(&self, side: &mut Side, head: Head, bytes: Range<usize>) -> io::Result<()> {
        let call = head.subject + 1;
        // It may have ended before the mail arrived, and another have its token.
        let Some(begun) = side.begun(call).filter(|begun| begun.serial == head.serial) else { return Ok(()) };
        let note = match head.detail {
            UNSAID | CLOSING => head.detail,
            _ => {
                let note = signals::make(self.main);
                signals::fire(note, side.channel.bytes(bytes));
                note
            }
        };
        side.note(call, Some(Begun { note, ..begun }));
        let task = side.receiver.task(call);
        if self.zone.cancel(task, mail::ABORT, note) == Cancellation::Cancelled {
            side.receiver.put_away(task);
            side.note(call, None);
            side.put(Head::new(Kind::Done, head.subject, Status::Closed as u32), &[])?;
        }
        Ok(())
    }
}

impl Outbound for Side {
    fn receiver(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    fn send_mail(&mut self, mail: Mail) {
        self.put_mail(mail).unwrap_or_else(|_| platform::end_now());
    }

    fn send_result(&mut self, task: &'static Task) {
        // Nobody receives it any more.
        self.put_result(task).unwrap_or_else(|_| platform::end_now());
    }

    fn flush(&mut self) {
        self.drain().unwrap_or_else(|_| platform::end_now());
    }
}

impl Side {
    fn begun(&self, call: u32) -> Option<Begun> {
        self.begun.get(call as usize).copied().flatten()
    }

    fn note(&mut self, call: u32, begun: Option<Begun>) {
        let call = call as usize;
        if self.begun.len() <= call {
            self.begun.resize(call + 1, None);
        }
        let old = std::mem::replace(&mut self.begun[call], begun);
        if let Some(Begun { note, .. }) = old.filter(|old| begun.is_none_or(|new| new.note != old.note))
            && note != UNSAID
            && note != CLOSING
        {
            signals::forget(note);
        }
    }

    fn put_result(&mut self, task: &'static Task) -> io::Result<()> {
        let call = task.call();
        let kind = if call == BROADCAST { Kind::BroadcastDone } else { Kind::Done };
        // SAFETY: the task has returned to its owner, this side.
        unsafe {
            task.body(|body| {
                let head = Head::new(kind, call.wrapping_sub(1), body.status as u32);
                self.channel.send(head, body.bytes.as_slice())
            })?;
        }
        self.receiver.put_away(task);
        if call != BROADCAST {
            self.note(call, None);
        }
        Ok(())
    }

    fn put_mail(&mut self, mail: Mail) -> io::Result<()> {
        match mail {
            Mail { kind: mail::SHARED, subject: link, .. } => self.relay.pass(link, &mut self.channel),
            Mail { kind: mail::STREAMED, subject: call, facts: [to, from] } => {
                self.channel.send(Head::new(Kind::Streamed, call.wrapping_sub(1), from), &[])?;
                self.relay.open(from, [from, to], &mut self.channel)
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, head: Head, bytes: &[u8]) -> io::Result<()> {
        self.channel.send(head, bytes)?;
        self.drain()
    }

    /// Wait until the parent's socket has taken everything.
    fn drain(&mut self) -> io::Result<()> {
        while self.channel.is_full() {
            platform::wait_for(&mut [Awaited::new(self.channel.descriptor(), true)], Some(SLICE));
            self.channel.flush()?;
        }
        Ok(())
    }
}
