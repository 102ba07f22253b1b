//! The memory in which threads count for the metrics of the process: a sheet for each of them.
//!
//! A sheet is shared memory of JavaScript, by its number. It outlives its thread with all counts in it, and
//! the next thread that asks for one counts on in it. So no count is lost or added twice, however a thread
//! ends, and there are never more sheets than threads at a time.

use std::{
    collections::BTreeMap,
    sync::{Mutex, OnceLock},
};

use crate::{
    Mail, Mailbox, functions,
    layout::mail,
    registry::{self, Text, lock},
};

/// A sheet, and the mailbox of the thread that has it; 0: it has ended.
#[derive(Clone, Copy)]
struct Sheet {
    buffer: u32,
    thread: u32,
}

static SHEETS: Mutex<Vec<Sheet>> = Mutex::new(Vec::new());
static MODULE: OnceLock<Text> = OnceLock::new();
/// By their hashes, as queues have them.
static TENANTS: Mutex<BTreeMap<u64, Text>> = Mutex::new(BTreeMap::new());
/// Names of tenants that are kept, for who looks at the queues.
const TENANTS_MAX: usize = 4096;

/// Count from now on: each thread imports `module`, the first one that was named. Those that
/// are there receive mail, later ones ask when they begin.
pub fn start(module: Text) {
    if MODULE.set(module).is_ok() {
        functions::start();
        registry::send_all(Mail { kind: mail::COUNT, subject: 0, facts: [0, 0] });
    }
}

/// What threads import; `None`: nothing counts.
pub fn module() -> Option<Text> {
    MODULE.get().cloned()
}

/// A sheet whose thread has ended, for the thread of `mailbox`; 0 without one.
pub fn take(mailbox: &Mailbox) -> u32 {
    let mut sheets = lock(&SHEETS);
    let Some(sheet) = sheets.iter_mut().find(|sheet| sheet.thread == 0) else { return 0 };
    sheet.thread = mailbox.number();
    sheet.buffer
}

/// Add one that the thread of `mailbox` has made.
pub fn add(mailbox: &Mailbox, buffer: u32) {
    lock(&SHEETS).push(Sheet { buffer, thread: mailbox.number() });
}

/// All sheets: the number of each, and that of its thread's mailbox, 0 if it has ended.
pub fn all() -> Vec<u32> {
    lock(&SHEETS).iter().flat_map(|sheet| [sheet.buffer, sheet.thread]).collect()
}

/// The thread of `mailbox` has ended.
pub fn mailbox_closed(mailbox: &Mailbox) {
    lock(&SHEETS)
        .iter_mut()
        .filter(|sheet| sheet.thread == mailbox.number())
        .for_each(|sheet| sheet.thread = 0);
}

/// What the program calls a tenant.
pub fn name_tenant(hash: u64, name: Text) {
    let mut tenants = lock(&TENANTS);
    if tenants.len() < TENANTS_MAX {
        tenants.entry(hash).or_insert(name);
    }
}

/// The name of a tenant, if it was named and there was room.
pub fn tenant_name(hash: u64) -> Option<Text> {
    lock(&TENANTS).get(&hash).cloned()
}
