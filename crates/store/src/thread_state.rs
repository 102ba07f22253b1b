//! A thread's end of stores and locks: scratch memory of its own, its handles, its waits.
//!
//! A hot call reads its words and the bytes of value and key from the out scratch and leaves what it found in
//! the inbound scratch; [`crate::layout`] names the words. It is not the scratch of calls to zones, so that a
//! store can be read while a task's arguments or a batch of results are being read: the hooks of classes are
//! free to do that.

use std::{
    array,
    sync::{Arc, LazyLock},
};

use corespun_bridge::{Handles, Scratch};

use crate::{
    Begin, Bytes, Call, Channel, Expected, Keeps, Key, KeyRef, LOCKED_COPY_MAX, Limits, Message, NewValue,
    Notify, Parker, Pattern, Put, Refusal, Semaphore, Store, Take, Ttl, Watcher,
    layout::{
        CLOSED_HANDLE, KEY_LENGTH_BITS, found, found_double, given, given_double, mode, passed, read, wait,
        written,
    },
    named::{STORES, SYNC_OBJECTS, SyncObject},
};

/// Words that a hot call reads.
const GIVEN: usize = 8;

/// A call that its caller should not have made: a bug of the TypeScript side.
#[derive(Debug, Eq, PartialEq)]
pub struct Misuse(pub &'static str);

type Done = Result<(), Misuse>;
type Watch = (Arc<Store>, Arc<Watcher>);

/// One thread's end.
pub struct ThreadState {
    out: Scratch,
    inbound: Scratch,
    /// The stores this thread has opened.
    stores: Handles<Arc<Store>>,
    /// Its locks, channels and counters.
    objects: Handles<Arc<SyncObject>>,
    watches: Handles<Watch>,
    /// Keys that JavaScript has numbered, by their numbers.
    keys: Vec<Option<Key>>,
    /// A value that did not fit, until it is fetched.
    large: Option<Bytes>,
    /// What the value read last refers to.
    read_soon: Option<Keeps>,
    /// The same of values that are being read while their hooks read others, innermost last.
    held: Vec<Option<Keeps>>,
    /// What the next value to be written refers to.
    attachments: Option<Keeps>,
    thread: u32,
    /// Where the thread blocks.
    parker: Arc<Parker>,
    mailbox: Arc<dyn Notify>,
}

/// What has the handle [`CLOSED_HANDLE`].
static CLOSED: LazyLock<Arc<Store>> = LazyLock::new(|| {
    // Without bounds: such stores have the most parts, and who walks over those of a store may find it closed
    // on the way.
    let most = u64::MAX;
    let limits =
        Limits { entries_max: most, bytes_max: most, value_bytes_max: most, ttl_ms: 0, evicts: false };
    let store = Store::new(limits, || 1);
    store.close();
    Arc::new(store)
});

impl ThreadState {
    /// The state of the thread with the number `thread`, which waits for mail at `mailbox`.
    #[must_use]
    pub fn new(out: Scratch, inbound: Scratch, thread: u32, mailbox: Arc<dyn Notify>) -> Self {
        let mut stores = Handles::default();
        assert_eq!(stores.put(Arc::clone(&CLOSED)), CLOSED_HANDLE);
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
            thread,
            parker: Arc::default(),
            mailbox,
        }
    }

    /// The thread's number.
    #[must_use]
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
    #[must_use]
    pub const fn read_soon(&self) -> Option<&Keeps> {
        self.read_soon.as_ref()
    }

    /// Where the thread blocks.
    #[must_use]
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
        Some(self.stores.put(STORES.get(number)?))
    }

    /// This thread no longer uses the store.
    pub fn drop_store(&mut self, handle: u32) {
        if handle != CLOSED_HANDLE {
            self.stores.take(handle);
        }
    }

    /// The store with that handle.
    ///
    /// # Errors
    ///
    /// When there is none.
    #[inline]
    pub fn store(&self, handle: u32) -> Result<&Arc<Store>, Misuse> {
        self.stores.get(handle).ok_or(Misuse("no such store"))
    }

    /// The handle of the lock, channel or counter with that number.
    pub fn open_object(&mut self, number: u32) -> Option<u32> {
        Some(self.objects.put(SYNC_OBJECTS.get(number)?))
    }

    /// This thread no longer uses it.
    pub fn drop_object(&mut self, handle: u32) {
        self.objects.take(handle);
    }

    /// What has that handle.
    ///
    /// # Errors
    ///
    /// When nothing has.
    #[inline]
    pub fn object(&self, handle: u32) -> Result<&SyncObject, Misuse> {
        self.objects.get(handle).map(|object| &**object).ok_or(Misuse("no such object"))
    }

    /// The semaphore with that handle.
    ///
    /// # Errors
    ///
    /// When it is something else.
    #[inline]
    pub fn semaphore(&self, handle: u32) -> Result<&Semaphore, Misuse> {
        match self.object(handle)? {
            SyncObject::Semaphore(semaphore) => Ok(semaphore),
            _ => Err(Misuse("not a semaphore")),
        }
    }

    /// The channel with that handle.
    ///
    /// # Errors
    ///
    /// When it is something else.
    pub fn channel(&self, handle: u32) -> Result<&Channel, Misuse> {
        match self.object(handle)? {
            SyncObject::Channel(channel) => Ok(channel),
            _ => Err(Misuse("not a channel")),
        }
    }

    /// storeGet, and storeView when `IS_VIEW`: the value of the version that a view has is not written again.
    ///
    /// # Errors
    ///
    /// As of all calls here: handles and lengths that do not exist.
    #[inline]
    pub fn find<const IS_VIEW: bool>(&mut self) -> Done {
        let given = self.given();
        let Self { stores, keys, out, inbound, read_soon, large, .. } = self;
        *read_soon = None;
        let store = stores.get(given[given::HANDLE]).ok_or(Misuse("no such store"))?;
        let (_, key) = value_and_key(keys, out, &given)?;
        let (looks, had) = if IS_VIEW { (given[given::LOOKS], version(&given)) } else { (0, 0) };
        let mut later = None;
        let status = store.read_again(key, looks, |entry, index, word, left_ms| {
            inbound.put(found::VERSION, entry.version as u32);
            inbound.put(found::VERSION_HIGH, (entry.version >> 32) as u32);
            inbound.put(found::INDEX, index as u32);
            inbound.put(found::WORD, word);
            put_double(inbound, found_double::LEFT_MS, left_ms as f64);
            if IS_VIEW && entry.version == had {
                return;
            }
            if entry.keeps.is_some() {
                read_soon.clone_from(&entry.keeps);
                if IS_VIEW {
                    inbound.put(found::REFERS, 1);
                }
            }
            if entry.bytes.len() > LOCKED_COPY_MAX || !put_bytes(inbound, &entry.bytes) {
                later = Some(entry.bytes.clone());
            }
        });
        let status = match (status, later) {
            (None, _) if store.is_closed() => read::CLOSED,
            (None, _) => read::ABSENT,
            (Some(()), None) => read::FOUND,
            (Some(()), Some(bytes)) if put_bytes(inbound, &bytes) => read::FOUND,
            (Some(()), Some(bytes)) => {
                *large = Some(bytes);
                read::LARGE
            }
        };
        inbound.put(found::STATUS, status);
        Ok(())
    }

    /// storeSet, with a value in the scratch or elsewhere.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    #[inline]
    pub fn set(&mut self, elsewhere: Option<&[u8]>) -> Done {
        let given = self.given();
        let Self { stores, keys, out, inbound, attachments, .. } = self;
        let (value, key) = value_and_key(keys, out, &given)?;
        let store = stores.get(given[given::HANDLE]).ok_or(Misuse("no such store"))?;
        let mode = given[given::MODE];
        let life = if mode & mode::HAS_TTL != 0 {
            Ttl::Ms(double(&given, given_double::TTL_MS) as u64)
        } else if mode & mode::KEEPS_TTL != 0 {
            Ttl::Keep
        } else {
            Ttl::Default
        };
        let value = NewValue { bytes: elsewhere.unwrap_or(value), life, keeps: attachments.take() };
        let outcome = store.set(key, value, expected(&given));
        inbound.put(found::STATUS, outcome.map_or_else(refusal, |_| written::DONE));
        Ok(())
    }

    /// storeRemove.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn remove(&mut self) -> Done {
        let given = self.given();
        let Self { stores, keys, out, inbound, .. } = self;
        let (_, key) = value_and_key(keys, out, &given)?;
        let store = stores.get(given[given::HANDLE]).ok_or(Misuse("no such store"))?;
        let outcome = store.remove(key, expected(&given));
        inbound.put(found::REMOVED, u32::from(outcome == Ok(true)));
        inbound.put(found::STATUS, outcome.map_or_else(refusal, |_| written::DONE));
        Ok(())
    }

    /// storeHas.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn has(&mut self) -> Done {
        let given = self.given();
        let Self { stores, keys, out, inbound, .. } = self;
        let (_, key) = value_and_key(keys, out, &given)?;
        let store = stores.get(given[given::HANDLE]).ok_or(Misuse("no such store"))?;
        let status = match store.has(key) {
            true => read::FOUND,
            false if store.is_closed() => read::CLOSED,
            false => read::ABSENT,
        };
        inbound.put(found::STATUS, status);
        Ok(())
    }

    /// Run `body` with the store of a handle and the key in the scratch.
    fn with_key<R>(
        &mut self,
        handle: u32,
        body: impl FnOnce(&Arc<Store>, KeyRef<'_>) -> R,
    ) -> Result<R, Misuse> {
        let given = self.given();
        let Self { stores, keys, out, .. } = self;
        let store = stores.get(handle).ok_or(Misuse("no such store"))?;
        let (_, key) = value_and_key(keys, out, &given)?;
        Ok(body(store, key))
    }

    /// Watch the key in the scratch; the watch's handle, `None` when the store is closed.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn watch(
        &mut self,
        handle: u32,
        ticket: u32,
        is_prefix: bool,
        events_max: usize,
    ) -> Result<Option<u32>, Misuse> {
        let call = self.call(ticket, false);
        let watch = self.with_key(handle, |store, key| {
            let key: Box<[u8]> = key.bytes().into();
            let pattern = if is_prefix { Pattern::Prefix(key) } else { Pattern::Key(key) };
            store.watch(pattern, events_max, call).map(|watcher| (Arc::clone(store), watcher))
        })?;
        Ok(watch.map(|watch| self.watches.put(watch)))
    }

    /// The changes of a watch: those missed behind the others (a double); then of each its kind and key.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn take_changes(&mut self, watch: u32) -> Result<Vec<u8>, Misuse> {
        let (_, watcher) = self.watches.get(watch).ok_or(Misuse("no such watch"))?;
        let (events, missed) = watcher.take();
        let mut bytes = (missed as f64).to_le_bytes().to_vec();
        for event in events {
            bytes.push(event.change as u8);
            put_key(&mut bytes, &event.key);
        }
        Ok(bytes)
    }

    /// End a watch.
    pub fn unwatch(&mut self, watch: u32) {
        if let Some((store, watcher)) = self.watches.take(watch) {
            store.unwatch(&watcher);
        }
    }

    /// Whether to compute the key in the scratch or to wait.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn begin(&mut self, handle: u32, ticket: u32) -> Result<Begin, Misuse> {
        let call = self.call(ticket, false);
        self.with_key(handle, |store, key| store.compute_begin(key, call))
    }

    /// A computation of the key in the scratch, or a wait for one, is over.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn end(&mut self, handle: u32, ticket: u32, succeeded: bool) -> Done {
        let thread = self.thread;
        self.with_key(handle, |store, key| store.compute_end(key, thread, ticket, succeeded))
    }

    /// semaphoreTry.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn semaphore_try(&mut self) -> Done {
        let given = self.given();
        let semaphore = self.semaphore(given[given::HANDLE])?;
        let outcome = semaphore.try_acquire(self.thread, given[given::TICKET], given[given::AMOUNT]);
        self.inbound.put(found::STATUS, outcome as u32);
        Ok(())
    }

    /// semaphoreRelease.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn semaphore_release(&mut self) -> Done {
        let given = self.given();
        self.semaphore(given[given::HANDLE])?.release(self.thread, given[given::TICKET]);
        Ok(())
    }

    /// semaphoreAcquire.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn semaphore_acquire(
        &self,
        handle: u32,
        ticket: u32,
        amount: u32,
        blocks: bool,
    ) -> Result<crate::Acquire, Misuse> {
        Ok(self.semaphore(handle)?.acquire(self.call(ticket, blocks), amount, blocks))
    }

    /// How a channel's call waits.
    fn waiting(&self, given: &[u32; GIVEN]) -> Option<Call> {
        let how = given[given::WAIT];
        (how != wait::NOT).then(|| self.call(given[given::TICKET], how == wait::BLOCKING))
    }

    /// channelPut, with a message in the scratch or elsewhere.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn channel_put(&mut self, elsewhere: Option<&[u8]>) -> Done {
        let given = self.given();
        // SAFETY: the slice ends with this call, which runs no JavaScript and does not write there.
        let inside = unsafe { self.out.data(given[given::LENGTH] as usize) };
        let bytes = elsewhere.or(inside).ok_or(Misuse("length beyond the scratch"))?;
        let message = Message { bytes: bytes.into(), keeps: self.attachments.take() };
        let outcome = self.channel(given[given::HANDLE])?.put(message, self.waiting(&given));
        let status = match outcome {
            Put::Done => passed::DONE,
            Put::Full => passed::NONE,
            Put::Queued => passed::QUEUED,
            Put::Closed => passed::CLOSED,
        };
        self.inbound.put(found::STATUS, status);
        Ok(())
    }

    /// channelTake.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn channel_take(&mut self) -> Done {
        let given = self.given();
        let taken = self.channel(given[given::HANDLE])?.take(self.waiting(&given));
        self.receive(taken);
        Ok(())
    }

    /// channelFetch.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn channel_fetch(&mut self) -> Done {
        let given = self.given();
        let message = self.channel(given[given::HANDLE])?.fetch(self.thread, given[given::TICKET]);
        self.receive(message.map_or(Take::Empty, Take::Message));
        Ok(())
    }

    fn receive(&mut self, taken: Take) {
        self.read_soon = None;
        let status = match taken {
            Take::Message(message) => {
                self.read_soon = message.keeps;
                if put_bytes(&self.inbound, &message.bytes) {
                    passed::DONE
                } else {
                    self.large = Some(message.bytes.into());
                    passed::LARGE
                }
            }
            Take::Empty => passed::NONE,
            Take::Queued => passed::QUEUED,
            Take::Closed => passed::CLOSED,
        };
        self.inbound.put(found::STATUS, status);
    }

    /// counterDo.
    #[expect(clippy::missing_errors_doc, reason = "as find")]
    pub fn count(&mut self) -> Done {
        let given = self.given();
        let SyncObject::Counter(counter) = self.object(given[given::HANDLE])? else {
            return Err(Misuse("not a counter"));
        };
        let operand = double(&given, given_double::OPERAND) as i64;
        let expected = double(&given, given_double::EXPECTED) as i64;
        let outcome = counter.count(given[given::COUNTING], operand, expected);
        let (Ok(before) | Err(before)) = outcome;
        self.inbound.put(found::STATUS, u32::from(outcome.is_err()));
        put_double(&self.inbound, found_double::BEFORE, before as f64);
        Ok(())
    }
}

/// The value and the key of a call. A length of 0 stands for the key of that number, for no key is shorter
/// than one byte; with a length, a number is what the key is to be known by from now on.
#[inline]
fn value_and_key<'a>(
    keys: &'a mut Vec<Option<Key>>,
    out: &'a Scratch,
    given: &[u32; GIVEN],
) -> Result<(&'a [u8], KeyRef<'a>), Misuse> {
    let (word, value) = (given[given::KEY], given[given::LENGTH] as usize);
    let (length, number) =
        ((word & ((1 << KEY_LENGTH_BITS) - 1)) as usize, (word >> KEY_LENGTH_BITS) as usize);
    // SAFETY: the slices end with the call in progress, which runs no JavaScript and does not write there.
    let bytes = unsafe { out.data(value + length) }.ok_or(Misuse("length beyond the scratch"))?;
    let (value, key) = bytes.split_at(value);
    if number == 0 {
        return Ok((value, KeyRef::new(key)));
    }
    if key.is_empty() {
        let known = keys.get(number - 1).and_then(Option::as_ref).ok_or(Misuse("no such key"))?;
        return Ok((value, known.as_ref()));
    }
    let key = KeyRef::new(key);
    if keys.len() < number {
        keys.resize(number, None);
    }
    keys[number - 1] = Some(key.to_key());
    Ok((value, key))
}

/// Write bytes to the inbound scratch; those that do not fit wait for `scratchLarge`.
#[inline]
fn put_bytes(inbound: &Scratch, bytes: &[u8]) -> bool {
    inbound.put(found::LENGTH, bytes.len() as u32);
    // SAFETY: the core takes no slices of this scratch; JavaScript keeps no view that it reads across a call.
    unsafe { inbound.put_bytes(bytes) }
}

/// A key behind its length.
pub fn put_key(bytes: &mut Vec<u8>, key: &[u8]) {
    bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
    bytes.extend_from_slice(key);
}

fn refusal(refusal: Refusal) -> u32 {
    match refusal {
        Refusal::Conflict => written::CONFLICT,
        Refusal::Closed => written::CLOSED,
        Refusal::TooLarge => written::TOO_LARGE,
        Refusal::Full => written::FULL,
    }
}

#[inline]
fn version(given: &[u32; GIVEN]) -> u64 {
    u64::from(given[given::VERSION]) | u64::from(given[given::VERSION_HIGH]) << 32
}

#[inline]
fn expected(given: &[u32; GIVEN]) -> Expected {
    if given[given::MODE] & mode::EXPECTS == 0 { Expected::Any } else { Expected::Version(version(given)) }
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
