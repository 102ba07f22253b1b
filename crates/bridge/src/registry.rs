//! The process-wide tables: mailboxes, zones, interned texts. One of each for all threads.
//!
//! Cold paths only: a thread looks an entry up once and then holds it. Locks are held for the look-up and
//! never while foreign code runs.

use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
};

#[cfg(unix)]
use crate::link::tables;
use crate::{Executor, Growth, Limits, Machine, Mail, Mailbox, Receiver, Zone, layout::mail};

/// A text as JavaScript has it.
pub type Text = Box<[u16]>;

/// How a zone that is to be made meets its work.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Idle workers take forked tasks from others.
    pub steals: bool,
    /// Its tasks may block their threads.
    pub blocks: bool,
    /// Workers at its start, and the fewest later.
    pub workers: u32,
    /// The most, where that is more.
    pub workers_max: u32,
    /// See `Growth::patience`.
    pub patience: std::time::Duration,
}

/// A zone and its name.
pub struct Entry {
    pub zone: Arc<Zone>,
    pub id: Text,
    /// Its settings as its maker wrote them.
    pub settings: Text,
    /// The thread that starts and watches its workers.
    pub owner: &'static Mailbox,
    /// How many handles threads have on it, but its own workers. Changed with the tables locked.
    handles: AtomicUsize,
    /// Whether it closes with the last one.
    is_weak: AtomicBool,
}

/// A thread's handle on a zone.
pub struct Opened {
    pub zone: Arc<Zone>,
    entry: Arc<Entry>,
    is_counted: bool,
}

impl Opened {
    /// `is_counted` is false in a worker of the zone, which would keep itself. `None` when the zone has begun
    /// to close without handles since it was looked up.
    pub fn new(entry: Arc<Entry>, is_counted: bool) -> Option<Self> {
        let tables = lock(&TABLES);
        let is_named = tables.zone_numbers.get(&entry.id) == Some(&entry.zone.number());
        // Relaxed, also below: the lock orders.
        if !is_named && entry.is_weak.load(Ordering::Relaxed) {
            return None;
        }
        if is_counted {
            entry.handles.fetch_add(1, Ordering::Relaxed);
        }
        Some(Self { zone: Arc::clone(&entry.zone), entry, is_counted })
    }

    /// Its thread has become a worker of the zone, or the handle is dropped.
    pub fn uncount(&mut self) {
        if !std::mem::take(&mut self.is_counted) {
            return;
        }
        let _tables = lock(&TABLES);
        let left = self.entry.handles.fetch_sub(1, Ordering::Relaxed) - 1;
        if left == 0 && self.entry.is_weak.load(Ordering::Relaxed) {
            let mail = Mail { kind: mail::UNUSED, subject: self.zone.number(), facts: [0, 0] };
            self.entry.owner.send(mail);
        }
    }

    /// The zone closes when its last handle is dropped.
    pub fn weaken(&self) {
        self.entry.is_weak.store(true, Ordering::Relaxed);
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.uncount();
    }
}

/// Called by the owner: free the name of a weak zone and close it, if no thread has a handle on it.
pub fn close_unused(number: u32) -> bool {
    let entry = {
        let mut tables = lock(&TABLES);
        let Some(entry) = tables.zones.get(&number).cloned() else { return false };
        if entry.handles.load(Ordering::Relaxed) > 0 || !entry.is_weak.load(Ordering::Relaxed) {
            return false;
        }
        tables.free_name(&entry);
        entry
    };
    // Its owner reports its end.
    entry.zone.close(None) && entry.zone.is_first_to_report()
}

#[derive(Default)]
struct Tables {
    zones: HashMap<u32, Arc<Entry>>,
    zone_numbers: HashMap<Text, u32>,
    zone_last: u32,
    main: Option<&'static Mailbox>,
    mailboxes: Vec<&'static Mailbox>,
    receivers: Vec<Receiver>,
    receivers_made: u32,
}

static TABLES: LazyLock<Mutex<Tables>> = LazyLock::new(Mutex::default);
static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    Machine::new(std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32))
});

/// Lock `mutex`; poison is ignored, since no lock here is held over code that can fail half-way.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process's cores and how many of its mailboxes are awake.
pub fn machine() -> &'static Machine {
    &MACHINE
}

/// Return a receiver that is not in use: one whose tasks have all returned, or a new one.
pub fn take_receiver() -> Receiver {
    let mut tables = lock(&TABLES);
    if let Some(index) = tables.receivers.iter_mut().position(Receiver::is_idle) {
        return tables.receivers.swap_remove(index);
    }
    tables.receivers_made += 1;
    Receiver::new(tables.receivers_made, machine())
}

/// Keep a closed receiver for a later thread.
pub fn return_receiver(receiver: Receiver) {
    lock(&TABLES).receivers.push(receiver);
}

/// A thread has opened its mailbox. The main thread's owns the zones made from then on; without one, the
/// first.
pub fn mailbox_opened(mailbox: &'static Mailbox, main: bool) {
    let mut tables = lock(&TABLES);
    tables.mailboxes.push(mailbox);
    if main {
        tables.main = Some(mailbox);
    }
}

/// Send every thread that piece of mail.
pub fn send_all(mail: Mail) {
    let mailboxes = lock(&TABLES).mailboxes.clone();
    for mailbox in mailboxes {
        mailbox.send(mail);
    }
}

/// A thread has ended: the zones it owned have lost their workers.
pub fn mailbox_closed(mailbox: &'static Mailbox) {
    let owned: Vec<_> = {
        let mut tables = lock(&TABLES);
        tables.mailboxes.retain(|&other| !std::ptr::eq(other, mailbox));
        tables.main = tables.main.filter(|&main| !std::ptr::eq(main, mailbox));
        let numbers: Vec<u32> = tables
            .zones
            .iter()
            .filter(|(_, entry)| std::ptr::eq(entry.owner, mailbox))
            .map(|(&number, _)| number)
            .collect();
        numbers.into_iter().filter_map(|number| tables.remove(number)).collect()
    };
    for entry in owned {
        entry.zone.orphan();
    }
}

/// A thread ends in the midst of its calls, to whichever zones: they are cancelled. `Receiver::cancel_forked`
/// was called. Those that the thread was blocked on are overdue at once with `joins_at_once`.
pub fn caller_ended(mailbox: &'static Mailbox, joins_at_once: bool) {
    let entries: Vec<_> = lock(&TABLES).zones.values().cloned().collect();
    for entry in entries {
        if let Some(overdue) = entry.zone.cancel_calls_of(mailbox, mail::ABORT, 0, joins_at_once) {
            task_cancelled(entry.zone.number(), overdue);
        }
    }
}

impl Tables {
    fn remove(&mut self, number: u32) -> Option<Arc<Entry>> {
        let entry = self.zones.remove(&number)?;
        self.free_name(&entry);
        Some(entry)
    }

    /// Let others use the zone's name, unless that has happened and they do.
    fn free_name(&mut self, entry: &Entry) {
        if self.zone_numbers.get(&entry.id) == Some(&entry.zone.number()) {
            self.zone_numbers.remove(&entry.id);
        }
    }
}

/// Make a zone whose workers are to be started by its owner. `None` when the name is taken.
pub fn make_zone(id: Text, settings: Text, limits: Limits, plan: Plan) -> Option<Arc<Entry>> {
    let entry = {
        let mut tables = lock(&TABLES);
        if tables.zone_numbers.contains_key(&id) {
            return None;
        }
        let owner = tables.main.or_else(|| tables.mailboxes.first().copied())?;
        tables.zone_last += 1;
        let number = tables.zone_last;
        let growth = (plan.workers_max > plan.workers).then_some(Growth {
            workers_min: plan.workers as usize,
            workers_max: plan.workers_max as usize,
            patience: plan.patience,
            owner,
            mail: mail::GROW,
        });
        let executor = Executor { steals: plan.steals, blocks: plan.blocks, growth };
        let zone = Arc::new(Zone::with(number, limits, executor));
        let (handles, is_weak) = (AtomicUsize::new(0), AtomicBool::new(false));
        let entry = Arc::new(Entry { zone, id: id.clone(), settings, owner, handles, is_weak });
        tables.zones.insert(number, Arc::clone(&entry));
        tables.zone_numbers.insert(id, number);
        entry
    };
    // All are asked for before the first can be there: the zone has started when all of these have.
    let slots: Vec<_> = (0..plan.workers).filter_map(|_| entry.zone.add_slot()).collect();
    for slot in slots {
        ask_for(&entry, slot);
    }
    Some(entry)
}

/// Ask the owner of a zone for one more worker; false when the zone is closing.
pub fn start_worker(entry: &Entry) -> bool {
    let Some(slot) = entry.zone.add_slot() else { return false };
    ask_for(entry, slot)
}

fn ask_for(entry: &Entry, slot: u32) -> bool {
    entry.owner.send(Mail { kind: mail::SPAWN, subject: entry.zone.number(), facts: [slot, 0] })
}

/// Notify the owner of a zone that a running task was cancelled: one that continues too long ends with its
/// worker, even if the caller's thread has ended.
pub fn task_cancelled(number: u32, at_once: bool) {
    if let Some(entry) = zone(number) {
        entry.owner.send(Mail { kind: mail::CANCELLED, subject: number, facts: [u32::from(at_once), 0] });
    }
}

/// Notify the owner of a zone that a worker is about to begin the last of its tasks.
#[cold]
pub fn worker_spent(number: u32, slot: u32) {
    if let Some(entry) = zone(number) {
        entry.owner.send(Mail { kind: mail::SPENT, subject: number, facts: [slot, 0] });
    }
}

pub fn find_zone(id: &[u16]) -> Option<Arc<Entry>> {
    let tables = lock(&TABLES);
    tables.zone_numbers.get(id).and_then(|number| tables.zones.get(number)).cloned()
}

pub fn zone(number: u32) -> Option<Arc<Entry>> {
    lock(&TABLES).zones.get(&number).cloned()
}

pub fn zone_ids() -> Vec<Text> {
    lock(&TABLES).zone_numbers.keys().cloned().collect()
}

/// The number of the main thread's mailbox; 0 without one.
pub fn main_number() -> u32 {
    lock(&TABLES).main.map_or(0, |mailbox| mailbox.number)
}

/// Forget a zone that has closed. While it has workers only its name is forgotten: their ends, which bring
/// their running tasks back, are still reported by number.
pub fn forget_zone(number: u32) {
    let mut tables = lock(&TABLES);
    let Some(entry) = tables.zones.get(&number).cloned() else { return };
    if entry.zone.has_slots() {
        tables.free_name(&entry);
    } else {
        tables.remove(number);
    }
}

/// Tables of interned texts, and how many entries and bytes each may hold.
const TEXT_TABLES: usize = 4;
const TEXT_ENTRIES_MAX: usize = 1 << 16;
const TEXT_UNITS_MAX: usize = 1 << 25;

#[derive(Default)]
struct Texts {
    numbers: HashMap<Arc<[u16]>, u32>,
    texts: Vec<Arc<[u16]>>,
    units: usize,
}

static TEXTS: LazyLock<[Mutex<Texts>; TEXT_TABLES]> = LazyLock::new(Default::default);
static NEXT_ID: AtomicU32 = AtomicU32::new(1);

/// The number of `text` in `table`, from 1; 0 when the table is full. `None`: no such table.
pub fn intern(table: usize, text: &[u16]) -> Option<u32> {
    #[cfg(unix)]
    if let Some(number) = tables::intern(table, text) {
        return Some(number);
    }
    let mut texts = lock(TEXTS.get(table)?);
    if let Some(&number) = texts.numbers.get(text) {
        return Some(number);
    }
    if texts.texts.len() >= TEXT_ENTRIES_MAX || texts.units + text.len() > TEXT_UNITS_MAX {
        return Some(0);
    }
    let text: Arc<[u16]> = text.into();
    let number = texts.texts.len() as u32 + 1;
    texts.units += text.len();
    texts.texts.push(Arc::clone(&text));
    texts.numbers.insert(text, number);
    Some(number)
}

pub fn interned(table: usize, number: u32) -> Option<Arc<[u16]>> {
    #[cfg(unix)]
    if let Some(text) = tables::interned(table, number) {
        return text;
    }
    let texts = lock(TEXTS.get(table)?);
    texts.texts.get((number as usize).checked_sub(1)?).cloned()
}

/// A number that no other call gets.
pub fn next_id() -> u32 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}
