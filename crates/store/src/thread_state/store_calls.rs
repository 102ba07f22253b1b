//! Calls of stores: the hot `store*` functions of JavaScript.
//!
//! They read words and bytes of the out scratch and write their results to the inbound scratch.

use std::{sync::Arc, time::Duration};

use corespun_bridge::Scratch;

use super::{Done, GIVEN, Misuse, ThreadState, double, put_bytes, put_double};
use crate::{
    Action, Begin, Bytes, Expected, Key, KeyRef, LOCKED_COPY_MAX, NewValue, Pattern, Refusal, Step, Store,
    Ttl, commit,
    file::Problem,
    layout::{Flush, KEY_LENGTH_BITS, Stage, found, found_double, given, given_double, mode, read, written},
};

/// How long a call waits for a file: no native call may wait without bound.
const FILE_SLICE: Duration = Duration::from_millis(10);

/// How a value is found, for [`ThreadState::find`].
pub mod finds {
    /// storeGet: the value.
    pub const VALUE: u8 = 0;
    /// storeView: the value, unless it has the version that a view has.
    pub const VIEW: u8 = 1;
    /// storeRead: the value, and the version word also of an absent key.
    pub const WORD: u8 = 2;
}

impl ThreadState {
    /// storeGet, storeView or storeRead; see [`finds`].
    #[inline]
    pub fn find<const HOW: u8>(&mut self) -> Done {
        let given = self.given();
        let Self { stores, keys, out, inbound, read_soon, large, .. } = self;
        *read_soon = None;
        let store = stores.get(given[given::HANDLE]).ok_or(Misuse("no such store"))?;
        let (_, key) = value_and_key(keys, out, &given)?;
        let is_view = const { HOW == finds::VIEW };
        let (looks, had) = if is_view { (given[given::LOOKS], version(&given)) } else { (0, 0) };
        let mut later = None;
        let status = store.read_again(key, looks, |entry, index, word, left_ms| {
            inbound.put(found::VERSION, entry.version as u32);
            inbound.put(found::VERSION_HIGH, (entry.version >> 32) as u32);
            inbound.put(found::INDEX, index as u32);
            inbound.put(found::WORD, word);
            put_double(inbound, found_double::LEFT_MS, left_ms as f64);
            if is_view && entry.version == had {
                return;
            }
            if entry.keeps.is_some() {
                read_soon.clone_from(&entry.keeps);
                if is_view {
                    inbound.put(found::REFERS, 1);
                }
            }
            if entry.bytes.len() > LOCKED_COPY_MAX || !put_bytes(inbound, &entry.bytes) {
                later = Some(entry.bytes.clone());
            }
        });
        let status = match (status, later) {
            (None, _) if store.is_closed() => read::CLOSED,
            (None, _) if HOW == finds::WORD => match store.word_of_absent(key) {
                Some((index, word)) => {
                    inbound.put(found::INDEX, index as u32);
                    inbound.put(found::WORD, word);
                    read::ABSENT
                }
                // Written meanwhile.
                None => return self.find::<HOW>(),
            },
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
    #[inline]
    pub fn set(&mut self, elsewhere: Option<&[u8]>) -> Done {
        let given = self.given();
        let Self { stores, keys, out, inbound, attachments, .. } = self;
        let (value, key) = value_and_key(keys, out, &given)?;
        let store = stores.get(given[given::HANDLE]).ok_or(Misuse("no such store"))?;
        let keeps = attachments.take();
        let value = NewValue { bytes: elsewhere.unwrap_or(value), ttl: ttl(&given), keeps };
        let outcome = store.set(key, value, expected(&given));
        inbound.put(found::STATUS, outcome.map_or_else(refusal, |_| written::DONE));
        Ok(())
    }

    /// storeStep: adds a step to the next commit, with a value in the scratch or elsewhere.
    pub fn step(&mut self, elsewhere: Option<&[u8]>) -> Done {
        let given = self.given();
        let Self { stores, keys, out, attachments, steps, .. } = self;
        let (value, key) = value_and_key(keys, out, &given)?;
        let store = Arc::clone(stores.get(given[given::HANDLE]).ok_or(Misuse("no such store"))?);
        let mode = given[given::MODE];
        let action = if mode & mode::CHECKS != 0 {
            Action::Check
        } else if mode & mode::REMOVES != 0 {
            Action::Remove
        } else {
            let bytes = Bytes::new(elsewhere.unwrap_or(value));
            Action::Set { bytes, ttl: ttl(&given), keeps: attachments.take() }
        };
        steps.push(Step { store, key: key.to_key(), expected: expected(&given), action });
        Ok(())
    }

    /// storeCommit: takes the steps that were added, all or none.
    pub fn commit(&mut self) -> Done {
        let outcome = commit(std::mem::take(&mut self.steps));
        let status = outcome.map_or_else(|refused| refusal(refused.refusal), |()| written::DONE);
        self.inbound.put(found::STATUS, status);
        self.inbound.put(found::STEP, outcome.map_or_else(|refused| refused.step as u32, |()| 0));
        Ok(())
    }

    /// storeAbandon: drops the steps that were added.
    pub fn abandon(&mut self) -> Done {
        self.steps.clear();
        Ok(())
    }

    /// storeRemove.
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
    pub fn watch(
        &mut self,
        handle: u32,
        ticket: u32,
        is_prefix: bool,
        events_max: usize,
    ) -> Result<Option<u32>, Misuse> {
        let call = self.call(ticket, false);
        let watch = self.with_key(handle, |store, key| {
            let pattern =
                if is_prefix { Pattern::Prefix(key.bytes().into()) } else { Pattern::Key(key.to_key()) };
            store.watch(pattern, events_max, call).map(|watcher| (Arc::clone(store), watcher))
        })?;
        Ok(watch.map(|watch| self.watches.put(watch)))
    }

    /// The changes of a watch: those missed behind the others (a double); then of each its kind and key.
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

    /// Ask for a fact when the file contains all changes up to now.
    pub fn flush(&mut self, handle: u32, ticket: u32) -> Result<Flush, Misuse> {
        let call = self.call(ticket, false);
        Ok(self.store(handle)?.journal().map_or(Flush::Done, |journal| journal.flush(call)))
    }

    /// The stage of a store's file, after at most 10 ms while it is being opened or closed.
    pub fn file_stage(&self, handle: u32) -> Result<Stage, Misuse> {
        Ok(self.store(handle)?.journal().map_or(Stage::Open, |journal| journal.stage(FILE_SLICE)))
    }

    /// What is wrong with a store's file.
    pub fn file_problem(&self, handle: u32) -> Result<Option<Problem>, Misuse> {
        Ok(self.store(handle)?.journal().and_then(|journal| journal.problem()))
    }

    /// End a watch.
    pub fn unwatch(&mut self, watch: u32) {
        if let Some((store, watcher)) = self.watches.take(watch) {
            store.unwatch(&watcher);
        }
    }

    /// Whether to compute the key in the scratch or to wait.
    pub fn begin(&mut self, handle: u32, ticket: u32) -> Result<Begin, Misuse> {
        let call = self.call(ticket, false);
        self.with_key(handle, |store, key| store.compute_begin(key, call))
    }

    /// A computation of the key in the scratch, or a wait for one, is over.
    pub fn end(&mut self, handle: u32, ticket: u32, succeeded: bool) -> Done {
        let thread = self.thread;
        self.with_key(handle, |store, key| store.compute_end(key, thread, ticket, succeeded))
    }
}

/// The value and the key of a call. A key of length 0 is the known key of that number, because no key is
/// shorter than one byte; with a length, a number is what the key is to be known by from now on.
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

fn ttl(given: &[u32; GIVEN]) -> Ttl {
    let mode = given[given::MODE];
    if mode & mode::HAS_TTL != 0 {
        Ttl::Ms(double(given, given_double::TTL_MS) as u64)
    } else if mode & mode::KEEPS_TTL != 0 {
        Ttl::Keep
    } else {
        Ttl::Default
    }
}

fn refusal(refusal: Refusal) -> u32 {
    match refusal {
        Refusal::Conflict => written::CONFLICT,
        Refusal::Closed => written::CLOSED,
        Refusal::TooLarge => written::TOO_LARGE,
        Refusal::Full => written::FULL,
        Refusal::Behind => written::BEHIND,
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

/// A key behind its length.
pub fn put_key(bytes: &mut Vec<u8>, key: &[u8]) {
    bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
    bytes.extend_from_slice(key);
}
