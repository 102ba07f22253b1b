//! Results and mail on their way out of a child: sent by whichever thread delivers them, each once.
//!
//! Their mailbox has no loop that looks into it. It sleeps, and its waker sends what has arrived, in the
//! thread that has delivered it. Mail that a thread has left before it delivers a result goes first: the last
//! items of a stream precede the end of its task. The main thread, while it submits what it has received,
//! holds the same lock; what it delivers itself meanwhile it sends afterwards. Loom explores this file.

use crate::{
    Mail, Receiver, Task, Wake,
    sync::{AtomicBool, Mutex, Ordering, ThreadId, lock, this_thread},
};

/// What the lock guards: the way out, and the receiver of what is sent.
pub trait Outbound: Send + 'static {
    /// The mailbox's end.
    fn receiver(&mut self) -> &mut Receiver;
    /// Send what the mail is about. Takes no lock that a thread holds which delivers, as do the others.
    fn send_mail(&mut self, mail: Mail);
    /// Send a result, and put its task away.
    fn send_result(&mut self, task: &'static Task);
    /// Wait until it has been sent.
    fn flush(&mut self);
}

fn send_arrivals(side: &mut impl Outbound) {
    loop {
        let arrival = side.receiver().next_arrival();
        // Behind the look at the arrivals: what was left before this one was delivered is there.
        while let Some(mail) = side.receiver().next_mail() {
            side.send_mail(mail);
        }
        match arrival {
            Some(task) => side.send_result(task),
            None => break,
        }
    }
    side.flush();
}

/// The results of one process.
pub struct Outlet<Side> {
    /// The thread that made it, which receives.
    thread: ThreadId,
    /// That thread holds the lock and sends afterwards what is delivered meanwhile. Only it looks.
    is_receiving: AtomicBool,
    side: Mutex<Side>,
}

impl<Side: Outbound> Outlet<Side> {
    /// Open the receiver of `side` in the thread that will receive. It is never freed, as its mailbox is not.
    pub fn open(side: Side) -> &'static Self {
        let (thread, is_receiving) = (this_thread(), AtomicBool::new(false));
        let outlet: &'static Self =
            Box::leak(Box::new(Self { thread, is_receiving, side: Mutex::new(side) }));
        lock(&outlet.side).receiver().open(Box::new(Sender(outlet)));
        outlet
    }

    /// In the receiving thread: submit or cancel what has come. Then `send` must follow.
    pub fn receive<Found>(&self, body: impl FnOnce(&mut Side) -> Found) -> Found {
        // Relaxed: no other thread looks.
        self.is_receiving.store(true, Ordering::Relaxed);
        let found = body(&mut lock(&self.side));
        self.is_receiving.store(false, Ordering::Relaxed);
        found
    }

    /// Send what has been delivered, and declare the mailbox asleep.
    pub fn send(&self) {
        if this_thread() == self.thread && self.is_receiving.load(Ordering::Relaxed) {
            return;
        }
        let mut side = lock(&self.side);
        loop {
            send_arrivals(&mut *side);
            if side.receiver().try_sleep() {
                return;
            }
        }
    }

    /// Use what the lock guards, in the receiving thread or when everything has ended.
    pub fn with<Found>(&self, body: impl FnOnce(&mut Side) -> Found) -> Found {
        body(&mut lock(&self.side))
    }
}

struct Sender<Side: 'static>(&'static Outlet<Side>);

impl<Side: Outbound> Wake for Sender<Side> {
    fn wake(&self) {
        self.0.send();
    }
}
