//! A thread's bridge: its end of the core, with its receiver, its scratch memory and its open zones.
//!
//! Only its own thread uses it, by a raw pointer: JavaScript that the thread calls may call back into it.
//! Therefore no reference to a bridge is alive during a call into JavaScript. A thread has one bridge for
//! each copy of the package that it has loaded. Deliberately absent: JavaScript, the event loop's library.

mod calls;
mod ordered;
mod waiting;
mod zones;

use std::{
    any::Any,
    cell::Cell,
    ptr,
    sync::{Arc, mpsc::Sender},
    time::Duration,
};

use crate::{
    Broadcast, Handles, Mailbox, Misuse, Receiver, Scratch, Spin, Steps, Task, Wake, Worker,
    chains::Wait,
    cores,
    registry::{self, Opened},
    sheets, signals,
    ticker::Background,
};

/// Calls between two checks of the core that this thread runs on.
const SENDS_PER_LOOK: u32 = 64;

thread_local! {
    /// The bridge through which this thread is a worker of a zone.
    static WORKER: Cell<*mut Bridge> = const { Cell::new(ptr::null_mut()) };
}

/// The event loop of a thread, as its bridge uses it.
pub trait EventLoop {
    /// Set whether the bridge keeps the loop alive.
    fn keep_alive(&self, alive: bool);
    /// Set whether the loop polls for events without waiting.
    fn do_not_wait(&self, active: bool);
}

/// Memory that bytes refer to.
pub struct Attachments {
    /// Bytes of it that move with them.
    pub moved: usize,
    /// Its owner.
    pub kept: Box<dyn Any + Send + Sync>,
}

/// A thread's end of the core.
pub struct Bridge {
    /// Where this lies, for `WORKER`.
    address: *mut Self,
    event_loop: Box<dyn EventLoop>,
    receiver: Receiver,
    /// The scratch buffer that JavaScript writes and the core reads.
    out: Scratch,
    /// The scratch buffer that the core writes and JavaScript reads.
    inbound: Scratch,
    /// The zones that this thread has opened.
    zones: Handles<Opened>,
    /// Present in a worker of a zone.
    worker: Option<Worker>,
    /// Broadcasts that this thread blocks on.
    broadcasts: Handles<(Arc<Broadcast>, Option<Wait>)>,
    /// Calls in flight that a broadcast waits for, by number.
    waits: Vec<(u32, Wait)>,
    /// Results that did not fit into the scratch, until JavaScript fetches them.
    large: Vec<(u32, Vec<u8>)>,
    /// The broadcast that this worker is running.
    current: Option<Arc<Broadcast>>,
    /// Attachments of the last drain's results, until JavaScript has read those.
    read_soon: Vec<Box<dyn Any + Send>>,
    /// Attachments of the next bytes that are sent.
    attachments: Option<Attachments>,
    /// Functions, by number, that this thread can call without its loop.
    ready: Vec<bool>,
    spin: Spin,
    step_aside: cores::StepAside,
    /// Calls sent, modulo 2^32.
    sends: u32,
    steps: Steps,
    /// This bridge may be a further one of a worker's thread: it is neither the worker's own nor the main
    /// thread's.
    may_be_further: bool,
    is_main: bool,
    /// The loop stays alive for the tasks of this worker. Not the main thread's: it ends with its program.
    holds_loop: bool,
    /// Processes that this thread has started, by their links, until its loop has waited for them.
    processes: Vec<(u32, Sender<()>)>,
    /// The thread has worked since it last slept; only then does it poll before it sleeps again.
    active: bool,
    asleep: bool,
    /// Present when the thread runs at a lower priority.
    background: Option<Background>,
    idling: bool,
    leaving: bool,
}

impl Bridge {
    /// Open a bridge for this thread, which calls [`Bridge::close`] before it ends. `main`: the main
    /// thread's.
    pub fn open(
        event_loop: Box<dyn EventLoop>,
        waker: Box<dyn Wake>,
        out: Scratch,
        inbound: Scratch,
        main: bool,
    ) -> *mut Self {
        let mut receiver = registry::take_receiver();
        receiver.open(waker);
        registry::mailbox_opened(receiver.mailbox(), main);
        let bridge = Box::into_raw(Box::new(Self {
            address: ptr::null_mut(),
            event_loop,
            receiver,
            out,
            inbound,
            zones: Handles::default(),
            worker: None,
            broadcasts: Handles::default(),
            waits: Vec::new(),
            large: Vec::new(),
            current: None,
            read_soon: Vec::new(),
            attachments: None,
            ready: Vec::new(),
            spin: Spin::new(Duration::ZERO),
            step_aside: cores::StepAside::default(),
            sends: 0,
            steps: Steps::default(),
            may_be_further: !main,
            is_main: main,
            holds_loop: false,
            processes: Vec::new(),
            active: false,
            asleep: false,
            background: None,
            idling: false,
            leaving: false,
        }));
        // SAFETY: made above; the reference ends with the statement.
        unsafe { (*bridge).address = bridge };
        bridge
    }

    /// The environment ends: pass on what waits, close the event loop's handles, free the bridge. Then
    /// `ended` frees what else belongs to the mailbox, which another thread may take when this returns.
    ///
    /// # Safety
    ///
    /// `bridge` comes from `open`, on this thread, which does not use it again.
    pub unsafe fn close(bridge: *mut Self, ended: impl FnOnce(&'static Mailbox)) {
        // SAFETY: guaranteed by the caller.
        let mut bridge = unsafe { Box::from_raw(bridge) };
        let mailbox = bridge.mailbox();
        if WORKER.get() == bridge.address {
            WORKER.set(ptr::null_mut());
        }
        bridge.wake_up();
        bridge.receiver.close();
        // Before another thread uses their tasks again.
        bridge.waits.clear();
        // A worker that its zone has released leaves what it called and did not wait for.
        let abandons = !bridge.leaving && bridge.receiver.in_flight() > 0;
        if abandons {
            bridge.receiver.cancel_forked();
        }
        let is_condemned = bridge.worker.take().is_some_and(|worker| {
            let is_condemned = worker.is_condemned();
            worker.leave();
            is_condemned
        });
        if abandons {
            // What a condemned worker was blocked on has had its time.
            registry::caller_ended(mailbox, is_condemned);
        }
        let Self { receiver, event_loop, .. } = *bridge;
        drop(event_loop);
        registry::mailbox_closed(mailbox);
        signals::mailbox_closed(mailbox);
        sheets::mailbox_closed(mailbox);
        ended(mailbox);
        registry::return_receiver(receiver);
    }

    pub const fn mailbox(&self) -> &'static Mailbox {
        self.receiver.mailbox()
    }

    /// The task of a call, whose numbers JavaScript assigns densely.
    #[inline]
    fn task(&mut self, call: u32) -> Result<&'static Task, Misuse> {
        if self.receiver.may_have(call) { Ok(self.receiver.task(call)) } else { Err(Misuse("no such call")) }
    }

    /// This thread has started a process: `reaped` is sent a value when its loop has waited for it.
    pub fn process_started(&mut self, link: u32, reaped: Sender<()>) {
        self.processes.push((link, reaped));
    }

    /// The loop has waited for the process of that link.
    pub fn process_reaped(&mut self, link: u32) {
        if let Some(index) = self.processes.iter().position(|(number, _)| *number == link) {
            // Its thread may have ended.
            _ = self.processes.swap_remove(index).1.send(());
        }
    }

    /// Set the attachments of the next bytes that are sent.
    pub fn attach_buffers(&mut self, attachments: Attachments) {
        self.attachments = Some(attachments);
    }

    /// Note that a call was sent: the loop stays alive until it returns.
    #[inline]
    fn sent(&mut self) {
        self.active = true;
        // A thread that sends without pause never polls, and may have been moved to another core.
        self.sends = self.sends.wrapping_add(1);
        if self.sends.is_multiple_of(SENDS_PER_LOOK) {
            self.receiver.runs_on(cores::current());
        }
        if self.receiver.sent() && !self.holds_loop {
            self.event_loop.keep_alive(true);
        }
    }

    /// Free the task of a call that has ended.
    #[inline]
    fn put_away(&mut self, task: &'static Task) {
        self.active = true;
        if !self.waits.is_empty() {
            self.end_wait(task.call());
        }
        // SAFETY: its owner, this thread, holds the task.
        let take_called = || unsafe { task.body(|body| std::mem::take(&mut body.from_worker)) };
        if let Some(worker) = self.worker.as_mut() {
            if take_called() {
                worker.call_returned();
            }
        } else if self.may_be_further && take_called() {
            self.elsewhere(|worker| worker.call_returned());
        }
        if self.receiver.put_away(task) && !self.holds_loop {
            self.event_loop.keep_alive(false);
        }
    }

    /// Run `body` with the worker that this thread is through another bridge; `None` without such a worker.
    /// Wakes that bridge, whose prepare step may be over for this turn of the loop.
    fn elsewhere<R>(&self, body: impl FnOnce(&mut Worker) -> R) -> Option<R> {
        if !self.may_be_further {
            return None;
        }
        let other = WORKER.get();
        if other.is_null() || ptr::eq(other, self) {
            return None;
        }
        // SAFETY: it belongs to this thread and is open, as `close` clears WORKER; it is not `self`, and no
        // reference to a bridge is alive during a call into JavaScript or the event loop, one of which is the
        // caller.
        let other = unsafe { &mut *other };
        let done = other.worker.as_mut().map(body);
        other.mailbox().rouse();
        done
    }

    /// The depth of a call from code of this thread that belongs to no task: see `Worker::depth_of_stray`.
    fn depth_of_stray(&self) -> u32 {
        let worker = self.worker.as_ref().map(Worker::depth_of_stray);
        worker.or_else(|| self.elsewhere(|worker| worker.depth_of_stray())).unwrap_or(0)
    }

    /// Whether this worker's tasks may block their thread.
    #[inline]
    fn may_block(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.zone().executor().blocks)
    }

    /// Become the worker in that slot of a zone: the loop stays alive until the zone dismisses it, unless it
    /// is the main thread's. False without such a zone or slot.
    pub fn attach(&mut self, number: u32, slot: u32) -> bool {
        let worker = registry::zone(number).and_then(|entry| entry.zone.attach(slot, self.mailbox()));
        let Some(worker) = worker else { return false };
        self.spin.set_limit(worker.zone().limits().spin);
        self.zones.values_mut().filter(|opened| opened.zone.number() == number).for_each(Opened::uncount);
        self.worker = Some(worker);
        self.may_be_further = false;
        WORKER.set(self.address);
        self.holds_loop = !self.is_main;
        if self.holds_loop {
            self.event_loop.keep_alive(true);
        }
        true
    }

    /// The zone has dismissed this worker: its loop may end.
    fn retire(&mut self) {
        self.leaving = true;
        if self.holds_loop {
            self.event_loop.keep_alive(false);
        }
    }

    /// The zone has dismissed this worker, and its thread goes on as one that is no worker: its slot is free.
    pub fn detach(&mut self) {
        self.worker = None;
        self.leaving = false;
        self.holds_loop = false;
        if WORKER.get() == self.address {
            WORKER.set(ptr::null_mut());
        }
    }

    /// Whether nothing runs on this worker.
    #[inline]
    fn is_free(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.running_count() == 0) && self.current.is_none()
    }
}

#[cfg(test)]
mod tests;
