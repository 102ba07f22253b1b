//! A thread's scratch memory, handles and waits for stores and sync objects.
//!
//! A hot call reads its words and the bytes of value and key from the out scratch and writes its results to
//! the inbound scratch; [`crate::layout`] names the words. Calls to zones have another scratch: the hooks of
//! classes may use a store while a task's arguments or a batch of results are being read.

mod store_calls;
mod sync_calls;

use std::{
    array,
    sync::{Arc, LazyLock},
};

use corespun_bridge::{Handles, Misuse, Scratch};

use crate::{
    Bytes, Call, Channel, Keeps, Key, Limits, Notify, Parker, Semaphore, Step, Store, Watcher,
    layout::{CLOSED_HANDLE, found},
    named::{Opened, STORES, SYNC_OBJECTS, SyncObject},
};

pub use store_calls::{finds, put_key};

/// Words that a hot call reads.
const GIVEN: usize = 8;

type Done = Result<(), Misuse>;
type Watch = (Arc<Store>, Arc<Watcher>);

pub struct ThreadState {
    out: Scratch,
    inbound: Scratch,
    stores: Handles<Opened>,
    /// Its locks, channels and counters.
    objects: Handles<Arc<SyncObject>>,
    watches: Handles<Watch>,
    /// Keys that JavaScript has numbered, by their numbers.
    keys: Vec<Option<Key>>,
    /// A value that did not fit the scratch, until it is fetched.
    large: Option<Bytes>,
    /// Memory that the value read last refers to.
    read_soon: Option<Keeps>,
    /// The same for values whose hooks are reading other values, innermost last.
    held: Vec<Option<Keeps>>,
    /// Memory that the next value to be written refers to.
    attachments: Option<Keeps>,
    /// The steps of the next commit.
    steps: Vec<Step>,
    thread: u32,
    /// Where the thread blocks.
    parker: Arc<Parker>,
    mailbox: Arc<dyn Notify>,
}

/// The store of [`CLOSED_HANDLE`].
static CLOSED: LazyLock<Arc<Store>> = LazyLock::new(|| {
    // Without bounds: such stores have the most parts, and who walks over those of a store may find it closed
    // on the way.
    let most = u64::MAX;
    let limits = Limits {
        entries_max: most,
        bytes_max: most,
        value_bytes_max: most,
        ttl_ms: 0,
        evicts: false,
        is_seeded: false,
    };
    let store = Store::new(limits, || 1);
    store.close();
    Arc::new(store)
});

impl ThreadState {
    /// The state of the thread with the number `thread`, which waits for mail at `mailbox`.
    pub fn new(out: Scratch, inbound: Scratch, thread: u32, mailbox: Arc<dyn Notify>) -> Self {
        let mut stores = Handles::default();
        assert_eq!(stores.put(Opened::lasting(Arc::clone(&CLOSED))), CLOSED_HANDLE);
        Self {
            out,
            inbound,
            stores,
            objects: Handles::default(),
            watches: Handles::default(),
            keys: Vec::new(),
            large: None,
            read_soon: None,
            held: Vec::new(),
            attachments: None,
            steps: Vec::new(),
            thread,
            parker: Arc::default(),
            mailbox,
        }
    }

    /// The thread's number.
    pub const fn thread(&self) -> u32 {
        self.thread
    }

    /// What the next value to be written refers to.
    pub fn attach(&mut self, keeps: Keeps) {
        self.attachments = Some(keeps);
    }

    /// The value that did not fit the inbound scratch.
    pub fn take_large(&mut self) -> Option<Bytes> {
        self.large.take()
    }

    /// What is read from here on is read within the value read last, which keeps its memory.
    pub fn hold(&mut self) {
        self.held.push(self.read_soon.take());
    }

    /// The end of what `hold` began.
    pub fn release(&mut self) {
        self.read_soon = self.held.pop().flatten();
    }

    /// What the value read last refers to.
    pub const fn read_soon(&self) -> Option<&Keeps> {
        self.read_soon.as_ref()
    }

    /// Where the thread blocks.
    pub const fn parker(&self) -> &Arc<Parker> {
        &self.parker
    }

    /// The words of a call. One by one: they have just been written one by one, and a wide read of them would
    /// wait for that.
    #[inline]
    fn given(&self) -> [u32; GIVEN] {
        array::from_fn(|index| self.out.word(index))
    }

    /// A wait of this thread, which ends by mail or, if it `blocks`, where it blocks.
    fn call(&self, ticket: u32, blocks: bool) -> Call {
        let notify = if blocks { Arc::clone(&self.parker) as _ } else { Arc::clone(&self.mailbox) };
        Call { thread: self.thread, ticket, notify }
    }

    /// The handle of the store with that number; `None` when it is closed.
    pub fn open_store(&mut self, number: u32) -> Option<u32> {
        Some(self.stores.put(STORES.open(number)?))
    }

    /// This thread no longer uses the store.
    pub fn drop_store(&mut self, handle: u32) {
        if handle != CLOSED_HANDLE {
            self.stores.take(handle);
        }
    }

    #[inline]
    pub fn store(&self, handle: u32) -> Result<&Arc<Store>, Misuse> {
        self.stores.get(handle).map(|opened| &**opened).ok_or(Misuse("no such store"))
    }

    /// The handle of the lock, channel or counter with that number.
    pub fn open_object(&mut self, number: u32) -> Option<u32> {
        Some(self.objects.put(SYNC_OBJECTS.get(number)?))
    }

    /// This thread no longer uses it.
    pub fn drop_object(&mut self, handle: u32) {
        self.objects.take(handle);
    }

    #[inline]
    pub fn object(&self, handle: u32) -> Result<&SyncObject, Misuse> {
        self.objects.get(handle).map(|object| &**object).ok_or(Misuse("no such object"))
    }

    #[inline]
    pub fn semaphore(&self, handle: u32) -> Result<&Semaphore, Misuse> {
        match self.object(handle)? {
            SyncObject::Semaphore(semaphore) => Ok(semaphore),
            _ => Err(Misuse("not a semaphore")),
        }
    }

    pub fn channel(&self, handle: u32) -> Result<&Channel, Misuse> {
        match self.object(handle)? {
            SyncObject::Channel(channel) => Ok(channel),
            _ => Err(Misuse("not a channel")),
        }
    }
}

/// Write bytes to the inbound scratch; those that do not fit wait for `scratchLarge`.
#[inline]
fn put_bytes(inbound: &Scratch, bytes: &[u8]) -> bool {
    inbound.put(found::LENGTH, bytes.len() as u32);
    // SAFETY: the core takes no slices of this scratch; JavaScript keeps no view that it reads across a call.
    unsafe { inbound.put_bytes(bytes) }
}

#[inline]
fn double(given: &[u32; GIVEN], index: usize) -> f64 {
    f64::from_bits(u64::from(given[index * 2]) | u64::from(given[index * 2 + 1]) << 32)
}

#[inline]
fn put_double(inbound: &Scratch, index: usize, number: f64) {
    let bits = number.to_bits();
    inbound.put(index * 2, bits as u32);
    inbound.put(index * 2 + 1, (bits >> 32) as u32);
}

#[cfg(all(test, not(loom)))]
mod tests;
