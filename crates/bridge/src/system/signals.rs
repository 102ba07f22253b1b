//! Abort signals that cross threads: who listens to which, and which have fired.
//!
//! A signal is a number; its reason is a frame of the transport. A thread that receives a signal subscribes;
//! the thread that owns it fires it once, and every subscriber gets one piece of mail. Subscribing after that
//! reports it at once: both happen under one lock, so no abort is missed. A signal that ends without having
//! fired sends the same mail, with no reason to be found: its subscribers need not keep theirs.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use crate::{
    Mail, Mailbox,
    layout::mail,
    registry::{self, lock},
};

struct Signal {
    /// The thread whose signal it is; it dies with it.
    owner: &'static Mailbox,
    reason: Option<Arc<[u8]>>,
    listeners: Vec<&'static Mailbox>,
}

static SIGNALS: LazyLock<Mutex<HashMap<u32, Signal>>> = LazyLock::new(Mutex::default);

/// A new signal of the thread with that mailbox.
pub fn make(owner: &'static Mailbox) -> u32 {
    let id = registry::next_id();
    lock(&SIGNALS).insert(id, Signal { owner, reason: None, listeners: Vec::new() });
    id
}

/// Send `mailbox` mail when the signal fires, or ends without. Returns the reason if it has fired; for an
/// unknown (forgotten) signal the mail is sent now.
pub fn listen(id: u32, mailbox: &'static Mailbox) -> Option<Arc<[u8]>> {
    let mut signals = lock(&SIGNALS);
    let Some(signal) = signals.get_mut(&id) else {
        drop(signals);
        send(id, [mailbox]);
        return None;
    };
    if signal.reason.is_none() && !signal.listeners.iter().any(|&other| std::ptr::eq(other, mailbox)) {
        signal.listeners.push(mailbox);
    }
    signal.reason.clone()
}

/// Why the signal was aborted, if it was.
pub fn reason(id: u32) -> Option<Arc<[u8]>> {
    lock(&SIGNALS).get(&id)?.reason.clone()
}

/// Abort. Later calls do nothing.
pub fn fire(id: u32, reason: &[u8]) {
    let listeners = {
        let mut signals = lock(&SIGNALS);
        let Some(signal) = signals.get_mut(&id).filter(|signal| signal.reason.is_none()) else { return };
        signal.reason = Some(reason.into());
        std::mem::take(&mut signal.listeners)
    };
    send(id, listeners);
}

fn send(id: u32, listeners: impl IntoIterator<Item = &'static Mailbox>) {
    for mailbox in listeners {
        mailbox.send(Mail { kind: mail::SIGNAL, subject: id, facts: [0, 0] });
    }
}

/// Forget a signal whose owner no longer has it.
pub fn forget(id: u32) {
    let forgotten = lock(&SIGNALS).remove(&id);
    send(id, forgotten.into_iter().flat_map(|signal| signal.listeners));
}

/// Forget a thread and its signals, which nobody can fire any more.
pub fn mailbox_closed(mailbox: &'static Mailbox) {
    let mut over = Vec::new();
    lock(&SIGNALS).retain(|&id, signal| {
        signal.listeners.retain(|&other| !std::ptr::eq(other, mailbox));
        let is_over = std::ptr::eq(signal.owner, mailbox);
        if is_over {
            over.push((id, std::mem::take(&mut signal.listeners)));
        }
        !is_over
    });
    for (id, listeners) in over {
        send(id, listeners);
    }
}
