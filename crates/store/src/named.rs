//! The stores, locks, channels and counters of a process, by number and by name, for all threads.
//!
//! A thread looks up an object here once and then has a handle. No lock is held while an object is used.
//! Over 400 lines: one table, and what is in it.

use std::{
    cell::Cell,
    collections::HashMap,
    hash::Hash,
    path::PathBuf,
    sync::{
        Arc, LazyLock, Weak,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use crate::{
    Channel, Journal, Limits, Semaphore, Store, file,
    layout::{counting, kind},
};

/// A text as JavaScript has it.
pub type Text = Box<[u16]>;

/// How far tests have moved the clock.
static AHEAD_MS: AtomicU64 = AtomicU64::new(0);

/// The clock of all stores.
fn clock() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    1 + START.elapsed().as_millis() as u64 + AHEAD_MS.load(Ordering::Relaxed)
}

/// The time of day, for expirations in files.
fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64 + AHEAD_MS.load(Ordering::Relaxed)
}

/// Move the clock of all stores forward; for tests.
pub fn advance(ms: u64) {
    AHEAD_MS.fetch_add(ms, Ordering::Relaxed);
}

thread_local! {
    static SEEDED_MS: Cell<u64> = const { Cell::new(1) };
}

/// The clock of the stores of a seeded run, which are used in the thread of that run.
fn seeded() -> u64 {
    SEEDED_MS.get()
}

/// Set the clock of the seeded run of this thread.
pub fn seeded_at(ms: u64) {
    SEEDED_MS.set(ms.saturating_add(1));
}

/// Objects by number and, if named, by name. Numbers are not reused.
struct Table<Name, T> {
    all: HashMap<u32, (T, Option<Name>)>,
    numbers: HashMap<Name, u32>,
    last: u32,
}

impl<Name, T> Default for Table<Name, T> {
    fn default() -> Self {
        Self { all: HashMap::new(), numbers: HashMap::new(), last: 0 }
    }
}

impl<Name: Clone + Eq + Hash, T> Table<Name, T> {
    /// Inserts an object; `name` must be free.
    fn insert(&mut self, name: Option<Name>, object: T) -> u32 {
        self.last += 1;
        if let Some(name) = &name {
            self.numbers.insert(name.clone(), self.last);
        }
        self.all.insert(self.last, (object, name));
        self.last
    }

    fn get(&self, number: u32) -> Option<&T> {
        self.all.get(&number).map(|(object, _)| object)
    }

    fn remove(&mut self, number: u32) -> Option<T> {
        let (object, name) = self.all.remove(&number)?;
        if let Some(name) = name {
            self.numbers.remove(&name);
        }
        Some(object)
    }
}

/// The stores of the process.
pub static STORES: LazyLock<Stores> = LazyLock::new(Stores::default);
/// Its locks, channels and counters.
pub static SYNC_OBJECTS: LazyLock<SyncObjects> = LazyLock::new(SyncObjects::default);

/// The file of a new store.
pub struct File {
    pub path: PathBuf,
    /// Most bytes of changes that wait for it.
    pub bytes_max: u64,
}

/// A store with the settings of its creator.
struct Known {
    store: Arc<Store>,
    settings: Text,
    /// How many handles threads have on a store that closes with the last one.
    handles: Option<usize>,
}

/// Stores, each with a name.
#[derive(Default)]
pub struct Stores(Mutex<Table<Text, Known>>);

/// A handle on a store, which the last one of a weak store closes.
pub struct Opened {
    store: Arc<Store>,
    /// The number of a weak store; 0 of others.
    number: u32,
}

impl Opened {
    /// A handle that closes nothing.
    pub const fn lasting(store: Arc<Store>) -> Self {
        Self { store, number: 0 }
    }
}

impl std::ops::Deref for Opened {
    type Target = Arc<Store>;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.number != 0 {
            STORES.leave(self.number);
        }
    }
}

impl Stores {
    /// Creates a store and returns its number; `None` if the name is taken. With a file, a thread of its own
    /// opens that, see [`Store::journal`], and it has the machine's clock even in a seeded run. A weak store
    /// closes with the last handle that a thread has on it.
    pub fn make(
        &self,
        id: Text,
        settings: Text,
        limits: Limits,
        file: Option<File>,
        is_weak: bool,
    ) -> Option<u32> {
        let mut table = self.0.lock();
        if table.numbers.contains_key(&id) {
            return None;
        }
        let journal = file.map(|file| Arc::new(Journal::new(file.path, file.bytes_max, clock, wall)));
        let chosen = if limits.is_seeded && journal.is_none() { seeded } else { clock };
        let store = Arc::new(Store::with_journal(limits, chosen, journal.clone()));
        let handles = is_weak.then_some(0);
        let number = table.insert(Some(id), Known { store: Arc::clone(&store), settings, handles });
        drop(table);
        if let Some(journal) = journal {
            file::start(store, journal);
        }
        Some(number)
    }

    /// The number of the store with that name.
    pub fn number(&self, id: &[u16]) -> Option<u32> {
        self.0.lock().numbers.get(id).copied()
    }

    /// The name of an open store.
    pub fn id(&self, number: u32) -> Option<Text> {
        self.0.lock().all.get(&number)?.1.clone()
    }

    pub fn settings(&self, number: u32) -> Option<Text> {
        self.0.lock().get(number).map(|known| known.settings.clone())
    }

    pub fn get(&self, number: u32) -> Option<Arc<Store>> {
        self.0.lock().get(number).map(|known| Arc::clone(&known.store))
    }

    /// A handle for a thread.
    pub fn open(&self, number: u32) -> Option<Opened> {
        let mut table = self.0.lock();
        let (known, _) = table.all.get_mut(&number)?;
        let store = Arc::clone(&known.store);
        let number = known.handles.as_mut().map_or(0, |handles| {
            *handles += 1;
            number
        });
        Some(Opened { store, number })
    }

    /// A handle on a weak store is dropped.
    fn leave(&self, number: u32) {
        let unused = {
            let mut table = self.0.lock();
            let handles = table.all.get_mut(&number).and_then(|(known, _)| known.handles.as_mut());
            let Some(handles) = handles else { return };
            *handles -= 1;
            if *handles == 0 { table.remove(number) } else { None }
        };
        if let Some(known) = unused {
            known.store.close();
        }
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.0.lock().all.len()
    }

    /// Their names, in order, at most `most`.
    pub fn names(&self, most: usize) -> Vec<Text> {
        let mut names: Vec<Text> = self.0.lock().numbers.keys().cloned().collect();
        names.sort_unstable();
        names.truncate(most);
        names
    }

    /// Empties a store forever and frees its name.
    pub fn close(&self, number: u32) {
        // The lock is released first: dropping the contents of a store can take long.
        let found = self.0.lock().remove(number);
        if let Some(known) = found {
            known.store.close();
        }
    }

    /// A thread has ended: its computations and watchers end.
    pub fn thread_ended(&self, thread: u32) {
        let all: Vec<_> = self.0.lock().all.values().map(|(known, _)| Arc::clone(&known.store)).collect();
        all.iter().for_each(|store| store.thread_ended(thread));
    }
}

pub enum SyncObject {
    /// A lock, read-write lock or semaphore.
    Semaphore(Semaphore),
    Channel(Channel),
    Counter(Counter),
}

impl SyncObject {
    /// Permits, or the most messages; 0 of a counter.
    pub fn amount(&self) -> f64 {
        match self {
            Self::Semaphore(semaphore) => f64::from(semaphore.permits()),
            Self::Channel(channel) => channel.messages_max() as f64,
            Self::Counter(_) => 0.0,
        }
    }
}

/// Locks, channels and counters: named ones, and anonymous ones that a thread has opened.
#[derive(Default)]
pub struct SyncObjects(Mutex<SyncTable>);

#[derive(Default)]
struct SyncTable {
    table: Table<(u32, Text), Arc<SyncObject>>,
    /// Disposed of, but perhaps still in use: a thread that ends releases these too.
    forgotten: Vec<Weak<SyncObject>>,
}

impl SyncObjects {
    /// Makes an object and returns its number, or `None` if another object of that kind has the name.
    pub fn make(&self, kind: u32, name: Option<Text>, amount: f64) -> Option<u32> {
        let SyncTable { table, .. } = &mut *self.0.lock();
        let name = name.map(|name| (kind, name));
        if name.as_ref().is_some_and(|name| table.numbers.contains_key(name)) {
            return None;
        }
        let object = match kind {
            kind::CHANNEL => SyncObject::Channel(Channel::new(amount as usize)),
            kind::COUNTER => SyncObject::Counter(Counter(AtomicI64::new(amount as i64))),
            _ => SyncObject::Semaphore(Semaphore::new(amount as u32)),
        };
        Some(table.insert(name, Arc::new(object)))
    }

    pub fn number(&self, kind: u32, name: Text) -> Option<u32> {
        self.0.lock().table.numbers.get(&(kind, name)).copied()
    }

    /// The first `most` names of objects of that kind, in order.
    pub fn names(&self, kind: u32, most: usize) -> Vec<Text> {
        let table = &self.0.lock().table;
        let mut names: Vec<_> = table.numbers.keys().filter(|(of, _)| *of == kind).collect();
        names.sort_unstable();
        names.into_iter().take(most).map(|(_, name)| name.clone()).collect()
    }

    pub fn get(&self, number: u32) -> Option<Arc<SyncObject>> {
        self.0.lock().table.get(number).cloned()
    }

    /// How many can be opened.
    pub fn count(&self) -> usize {
        self.0.lock().table.all.len()
    }

    /// Removes an object. Threads that have a handle can still use it; the last one drops it.
    pub fn forget(&self, number: u32) {
        let SyncTable { table, forgotten } = &mut *self.0.lock();
        let Some(object) = table.remove(number) else { return };
        if Arc::strong_count(&object) > 1 {
            if forgotten.len() == forgotten.capacity() {
                forgotten.retain(|object| object.strong_count() > 0);
            }
            forgotten.push(Arc::downgrade(&object));
        }
    }

    /// A thread has ended: its permits are released and its waits dropped.
    pub fn thread_ended(&self, thread: u32) {
        let all: Vec<_> = {
            let SyncTable { table, forgotten } = &mut *self.0.lock();
            forgotten.retain(|object| object.strong_count() > 0);
            let forgotten = forgotten.iter().filter_map(Weak::upgrade);
            table.all.values().map(|(object, _)| Arc::clone(object)).chain(forgotten).collect()
        };
        for object in all {
            match &*object {
                SyncObject::Semaphore(semaphore) => semaphore.thread_ended(thread),
                SyncObject::Channel(channel) => channel.thread_ended(thread),
                SyncObject::Counter(_) => {}
            }
        }
    }
}

/// JavaScript's largest exact integer.
const EXACT_MAX: u64 = (1 << 53) - 1;

/// An integer that JavaScript can hold exactly.
pub struct Counter(AtomicI64);

impl Counter {
    /// Performs an operation of [`counting`] and returns the previous value.
    /// The error is the current value: the sum is not a safe integer.
    pub fn count(&self, what: u32, operand: i64, expected: i64) -> Result<i64, i64> {
        // Relaxed suffices for the count; with SeqCst programs can order other operations by it.
        match what {
            counting::ADD => self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| {
                old.checked_add(operand).filter(|sum| sum.unsigned_abs() <= EXACT_MAX)
            }),
            counting::SET => Ok(self.0.swap(operand, Ordering::SeqCst)),
            _ => match self.0.compare_exchange(expected, operand, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(old) | Err(old) => Ok(old),
            },
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Acquire, tests::OPEN};

    fn text(text: &str) -> Text {
        text.encode_utf16().collect()
    }

    #[test]
    fn a_name_belongs_to_one_store_until_it_is_closed() {
        let stores = Stores::default();
        let first = stores.make(text("a"), text("{}"), OPEN, None, false).expect("a free name");
        assert_eq!(stores.make(text("a"), text("{}"), OPEN, None, false), None);
        stores.make(text("b"), text("{}"), OPEN, None, false).expect("a free name");
        assert_eq!((stores.number(&text("a")), stores.id(first)), (Some(first), Some(text("a"))));
        assert_eq!((stores.count(), stores.names(1)), (2, vec![text("a")]));
        let held = stores.get(first).expect("an open store");
        stores.close(first);
        assert!(held.is_closed());
        assert_eq!((stores.number(&text("a")), stores.settings(first)), (None, None));
        assert_ne!(
            stores.make(text("a"), text("{}"), OPEN, None, false),
            Some(first),
            "no number is used again"
        );
    }

    #[test]
    fn a_weak_store_closes_with_the_last_handle_on_it() {
        let make = |id: &str, is_weak: bool| {
            STORES.make(text(id), text("{}"), OPEN, None, is_weak).expect("a free name")
        };
        let (weak, lasting) = (make("weak", true), make("lasting", false));
        let [first, second, other] =
            [weak, weak, lasting].map(|number| STORES.open(number).expect("an open store"));
        drop((first, other));
        assert!(!second.is_closed());
        let held = Arc::clone(&second);
        drop(second);
        assert!(held.is_closed());
        assert_eq!((STORES.number(&text("weak")), STORES.number(&text("lasting"))), (None, Some(lasting)));
        STORES.close(lasting);
    }

    #[test]
    fn a_name_belongs_to_one_object_of_a_kind_until_it_is_forgotten() {
        let objects = SyncObjects::default();
        let lock = objects.make(kind::LOCK, Some(text("a")), 1.0).expect("a free name");
        assert_eq!(objects.make(kind::LOCK, Some(text("a")), 1.0), None);
        objects.make(kind::LOCK, Some(text("b")), 1.0).expect("a free name");
        objects.make(kind::CHANNEL, Some(text("a")), 3.0).expect("another kind");
        assert_ne!(objects.make(kind::LOCK, None, 1.0), objects.make(kind::LOCK, None, 1.0));
        assert_eq!(objects.count(), 5);
        assert_eq!(objects.number(kind::LOCK, text("a")), Some(lock));
        assert_eq!(objects.number(kind::COUNTER, text("a")), None);
        assert_eq!(objects.names(kind::LOCK, 9), [text("a"), text("b")]);
        assert_eq!(objects.names(kind::LOCK, 1), [text("a")]);
        objects.forget(lock);
        assert!(objects.get(lock).is_none());
        assert_eq!(objects.number(kind::LOCK, text("a")), None);
        assert_ne!(objects.make(kind::LOCK, Some(text("a")), 1.0), Some(lock), "no number is used again");
    }

    #[test]
    fn a_forgotten_lock_is_released_when_its_holder_ends() {
        let objects = SyncObjects::default();
        let number = objects.make(kind::LOCK, None, 1.0).expect("a lock");
        let held = objects.get(number).expect("a lock");
        let SyncObject::Semaphore(semaphore) = &*held else { panic!("not a semaphore") };
        assert_eq!(semaphore.try_acquire(7, 1, 1), Acquire::Granted);
        objects.forget(number);
        assert_eq!(semaphore.try_acquire(8, 1, 1), Acquire::Busy);
        objects.thread_ended(7);
        assert_eq!(semaphore.try_acquire(8, 1, 1), Acquire::Abandoned);
    }

    #[test]
    fn a_counter_stays_within_the_exact_integers() {
        let most = EXACT_MAX as i64;
        let counter = Counter(AtomicI64::new(most - 1));
        assert_eq!(counter.count(counting::ADD, 1, 0), Ok(most - 1));
        assert_eq!(counter.count(counting::ADD, 1, 0), Err(most));
        assert_eq!(counter.count(counting::ADD, i64::MAX, 0), Err(most));
        assert_eq!(counter.count(counting::SWAP, 5, 4), Ok(most), "not what is expected");
        assert_eq!(counter.count(counting::SWAP, 5, most), Ok(most));
        assert_eq!(counter.count(counting::SET, -most, 0), Ok(5));
        assert_eq!(counter.count(counting::ADD, -1, 0), Err(-most));
    }
}
