//! The parent's end: a thread that is the worker of a slot, and a process that does its work.
//!
//! The thread sleeps until the zone wakes it, the child has sent something or asks for a number. It never
//! waits for the child: what the socket does not take stays here. A child that ends, closes its socket or
//! breaks the protocol ends the thread; the owner receives mail, after which the slot's tasks can be failed.

use std::{
    io,
    io::{Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    sync::{Arc, Mutex, mpsc},
};

use super::{
    channel::{Channel, Head, Kind},
    platform::{self, Awaited},
    relay::{Conduits, Relay},
    tables::units,
};
use crate::{
    Broadcast, Failure, Mail, Mailbox, Next, Receiver, Status, Wake, Worker,
    layout::mail,
    registry::{self, lock},
    signals,
};

/// Its work needs little; a thread has two mebibytes by default.
const STACK_BYTES: usize = 1 << 18;
/// Capacity of the channels over which a result with streams is sent: for a message each way, and more.
const CONTROL_MESSAGES: u32 = 16;

/// The sockets of a child that is about to be started.
pub struct Link {
    tasks: UnixStream,
    texts: UnixStream,
    of_child: [UnixStream; 2],
}

impl Link {
    /// Two pairs of sockets.
    pub fn open() -> io::Result<Self> {
        let (tasks, of_tasks) = UnixStream::pair()?;
        let (texts, of_texts) = UnixStream::pair()?;
        Ok(Self { tasks, texts, of_child: [of_tasks, of_texts] })
    }

    /// The child's descriptors: for tasks, for texts.
    pub fn descriptors(&self) -> [RawFd; 2] {
        self.of_child.each_ref().map(AsRawFd::as_raw_fd)
    }
}

/// Start the thread for the process `pid`, which has been started with the descriptors of `link`. When it has
/// ended, `owner` receives mail about `number`. What is returned receives a value when the owner's event loop
/// has waited for the process; if it is dropped before, this thread does that.
pub fn start(
    link: Link,
    (number, pid): (u32, i32),
    owner: &'static Mailbox,
    conduits: &'static dyn Conduits,
) -> io::Result<mpsc::Sender<()>> {
    let Link { tasks, texts, of_child } = link;
    drop(of_child);
    let (wake, waker) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    waker.set_nonblocking(true)?;
    let (tasks, texts) = (Channel::new(tasks)?, Channel::new(texts)?);
    let (reaped, is_reaped) = mpsc::channel();
    let run = move || {
        let mut receiver = registry::take_receiver();
        receiver.open(Box::new(Waker(waker)));
        let relay = Relay::new(conduits, receiver.mailbox());
        let mut parent =
            Parent { tasks, texts, wake, receiver, relay, worker: None, broadcast: None, leaving: false };
        parent.run();
        parent.end();
        _ = owner.send(Mail { kind: mail::LINK_ENDED, subject: number, facts: [0, 0] });
        if is_reaped.recv().is_err() {
            platform::end_child(pid);
        }
    };
    let thread = std::thread::Builder::new().name("corespun child".into()).stack_size(STACK_BYTES);
    thread.spawn(run).map(|_| reaped)
}

/// Wakes the thread out of its wait for descriptors.
struct Waker(UnixStream);

impl Wake for Waker {
    fn wake(&self) {
        // Full only if it has been woken already.
        _ = (&self.0).write(&[0]);
    }
}

struct Parent {
    tasks: Channel,
    texts: Channel,
    wake: UnixStream,
    receiver: Receiver,
    relay: Relay,
    /// Present from the child's `Join` on.
    worker: Option<Worker>,
    /// The one that the child is running.
    broadcast: Option<Arc<Broadcast>>,
    /// The zone has dismissed the child.
    leaving: bool,
}

impl Parent {
    /// Until the child has ended, or broken the protocol: the end is the same. Whichever socket shows it
    /// first, what the child has sent before is received.
    fn run(&mut self) {
        if self.serve().is_err() {
            _ = self.receive();
        }
    }

    /// Until the child has closed its socket for tasks; an error when the other one shows that it has ended.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.pass_on()?;
            let may_sleep = match self.worker.as_mut().filter(|_| !self.leaving) {
                Some(worker) => worker.try_sleep(&mut self.receiver),
                None => self.receiver.try_sleep(),
            };
            if !may_sleep {
                continue;
            }
            let mut awaited = [
                Awaited::new(self.tasks.descriptor(), self.tasks.is_full()),
                Awaited::new(self.wake.as_raw_fd(), false),
                Awaited::new(self.texts.descriptor(), self.texts.is_full()),
            ];
            platform::wait_for(&mut awaited, None);
            if let Some(worker) = self.worker.as_mut() {
                worker.wake_up();
            }
            self.receiver.wake_up();
            let [tasks, wake, texts] = awaited.map(|each| each.is_ready);
            if wake {
                _ = self.wake.read(&mut [0; 64]);
            }
            if texts {
                self.texts.flush()?;
                if !answer(&mut self.texts)? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            if tasks {
                self.tasks.flush()?;
                if !self.receive()? {
                    return Ok(());
                }
            }
        }
    }

    /// Send the child what there is for it.
    fn pass_on(&mut self) -> io::Result<()> {
        while let Some(mail) = self.receiver.next_mail() {
            match mail.kind {
                mail::SHARED => self.relay.pass(mail.subject, &mut self.tasks)?,
                _ => self.abort(mail)?,
            }
        }
        while !self.leaving
            && let Some(worker) = self.worker.as_mut()
        {
            match worker.take() {
                Next::Nothing => break,
                Next::Task { task, token, serial } => {
                    // SAFETY: this worker holds the task while it runs.
                    unsafe {
                        task.body(|body| {
                            let head = Head {
                                kind: Kind::Task,
                                subject: token,
                                detail: body.function,
                                depth: body.depth,
                                serial,
                            };
                            self.tasks.send(head, body.bytes.as_slice())
                        })?;
                    }
                }
                Next::Broadcast(broadcast) => {
                    let head = Head::new(Kind::Broadcast, 0, broadcast.function);
                    self.tasks.send(head, &broadcast.bytes)?;
                    self.broadcast = Some(broadcast);
                }
                Next::Leave => {
                    self.leaving = true;
                    self.tasks.send(Head::new(Kind::Leave, 0, 0), &[])?;
                }
            }
        }
        Ok(())
    }

    /// A task that the child runs was cancelled; other mail only makes the thread look.
    fn abort(&mut self, mail: Mail) -> io::Result<()> {
        let Mail { kind: mail::ABORT, subject, facts: [serial, note] } = mail else { return Ok(()) };
        let reason = signals::reason(note);
        let head = Head { serial, ..Head::new(Kind::Abort, subject, note) };
        self.tasks.send(head, reason.as_deref().unwrap_or_default())
    }

    /// Handle what the child has sent. False: it has closed its socket, or breaks the protocol.
    fn receive(&mut self) -> io::Result<bool> {
        let is_open = self.tasks.receive()?;
        while let Some((head, range)) = self.tasks.next()? {
            let bytes = self.tasks.bytes(range);
            let status = Status::of_number(head.detail);
            let is_right = match (head.kind, self.worker.as_mut()) {
                (Kind::Join, None) => {
                    let entry = registry::zone(head.subject);
                    self.worker =
                        entry.and_then(|entry| entry.zone.attach(head.detail, self.receiver.mailbox()));
                    self.worker = self.worker.take().map(Worker::of_process);
                    self.worker.is_some()
                }
                (Kind::Done, Some(worker)) => worker.complete(head.subject, |body| {
                    body.status = status;
                    body.attachments = None;
                    body.bytes.set(bytes);
                }),
                (Kind::BroadcastDone, Some(worker)) => self.broadcast.take().is_some_and(|_| {
                    let failure = (status != Status::Done).then(|| Failure { status, bytes: bytes.into() });
                    worker.broadcast_done(failure);
                    true
                }),
                (Kind::Open, Some(_)) => {
                    let numbers = [head.detail, head.depth];
                    self.relay.open(head.subject, numbers, &mut self.tasks)?;
                    true
                }
                (Kind::Waits, Some(worker)) => {
                    worker.set_waits(head.subject as usize);
                    if head.detail != 0 {
                        worker.begin_any();
                    }
                    true
                }
                (Kind::Streamed, Some(_)) => self.streamed(head)?,
                (Kind::Pass, Some(_)) => self.relay.arrived(head.subject, bytes),
                (Kind::Shut, Some(_)) => {
                    self.relay.shut(head.subject);
                    true
                }
                _ => false,
            };
            if !is_right {
                return Ok(false);
            }
        }
        Ok(is_open)
    }

    /// The result of a task contains streams: its caller opens the channels that are made for that. False:
    /// there is no such task.
    fn streamed(&mut self, head: Head) -> io::Result<bool> {
        let running = self.worker.as_ref().and_then(|worker| worker.running(head.subject));
        let Some(task) = running else { return Ok(false) };
        let [to, from] = self.relay.make(CONTROL_MESSAGES);
        self.relay.open(head.detail, [to, from], &mut self.tasks)?;
        let notice = Mail { kind: mail::STREAMED, subject: task.call(), facts: [to, from] };
        if !task.caller.send(notice) {
            self.relay.shut(head.detail);
            self.tasks.send(Head::new(Kind::Shut, head.detail, 0), &[])?;
        }
        Ok(true)
    }

    fn end(self) {
        let Self { mut receiver, mut relay, worker, .. } = self;
        relay.end();
        receiver.close();
        if let Some(worker) = worker {
            worker.leave();
        }
        registry::return_receiver(receiver);
    }
}

/// Links whose children are about to be started.
static LINKS: Mutex<Vec<(u32, Link)>> = Mutex::new(Vec::new());

/// Keep a link until its child has been started. Returns its number.
pub fn keep(link: Link) -> u32 {
    let number = registry::next_id();
    lock(&LINKS).push((number, link));
    number
}

/// Take a link that was kept.
pub fn take(number: u32) -> Option<Link> {
    let mut links = lock(&LINKS);
    let index = links.iter().position(|(other, _)| *other == number)?;
    Some(links.swap_remove(index).1)
}

/// Answer what the child has asked about interned texts. False: it has closed its end, or does not keep to
/// the protocol.
fn answer(child: &mut Channel) -> io::Result<bool> {
    let is_open = child.receive()?;
    while let Some((head, range)) = child.next()? {
        let table = head.subject as usize;
        let (number, text) = match head.kind {
            Kind::Intern => (registry::intern(table, &units(child.bytes(range))).unwrap_or(0), None),
            Kind::Interned => {
                let text = registry::interned(table, head.detail);
                (text.as_ref().map_or(0, |_| head.detail), text)
            }
            _ => return Ok(false),
        };
        let bytes: Vec<u8> =
            text.iter().flat_map(|text| text.iter()).flat_map(|unit| unit.to_le_bytes()).collect();
        child.send(Head::new(Kind::Text, 0, number), &bytes)?;
    }
    Ok(is_open)
}

#[cfg(test)]
mod tests;
