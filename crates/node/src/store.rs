//! Stores as JavaScript sees them: the process-wide table of them, and conversions.
//!
//! Hot calls take their words and the bytes of value and key from the stage's out scratch and leave what they
//! found in its inbound scratch; the layout stands in `src/bridge/scratch.ts`.

use std::{
    collections::HashMap,
    ffi::c_void,
    ptr,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use napi_sys as sys;
use skein_store::{
    Begin, Expected, KeyRef, LOCKED_COPY_MAX, Life, Limits, NewValue, Pattern, Refusal, Store, WORDS,
};

use crate::{
    call,
    js::{Env, Outcome, Value, wrong},
    registry::{self, Text, lock},
    stage::{self, CLOSED_HANDLE, GIVEN, STATUS, Stage, double, hot, place, wide},
};

struct Entry {
    id: Text,
    settings: Text,
    store: Arc<Store>,
}

#[derive(Default)]
struct Stores {
    all: HashMap<u32, Entry>,
    numbers: HashMap<Text, u32>,
}

static STORES: LazyLock<Mutex<Stores>> = LazyLock::new(Mutex::default);
/// How far tests have moved the clock.
static AHEAD_MS: AtomicU64 = AtomicU64::new(0);

fn clock() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    1 + START.elapsed().as_millis() as u64 + AHEAD_MS.load(Ordering::Relaxed)
}

/// A thread has ended: what it held is released, what it waits for forgotten.
pub fn owner_gone(owner: u32) {
    let all: Vec<_> = lock(&STORES).all.values().map(|entry| Arc::clone(&entry.store)).collect();
    all.iter().for_each(|store| store.owner_gone(owner));
}

const FOUND: u32 = 0;
const ABSENT: u32 = 1;
const CLOSED: u32 = 2;
const LARGE: u32 = 3;

const fn status(outcome: Result<u32, Refusal>) -> u32 {
    match outcome {
        Ok(status) => status,
        Err(Refusal::Conflict) => 1,
        Err(Refusal::Closed) => CLOSED,
        Err(Refusal::TooLarge) => 3,
        Err(Refusal::Full) => 4,
    }
}

#[inline]
fn store_of(stage: &Stage, handle: u32) -> Outcome<&Arc<Store>> {
    stage.stores.get(handle as usize).and_then(Option::as_ref).ok_or_else(|| wrong("no such store"))
}

fn expected(given: &[u32; GIVEN]) -> Expected {
    if given[3] & 1 == 0 { Expected::Any } else { Expected::Version(wide(given[4], given[5])) }
}

fn life(given: &[u32; GIVEN]) -> Life {
    match given[3] >> 1 {
        0 => Life::Default,
        1 => Life::Keep,
        _ => Life::Ms(double(given[6], given[7]) as u64),
    }
}

/// storeGet(): handle, key length. Status, length, version, word index, word, milliseconds left; then the
/// value.
pub unsafe extern "C" fn get(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    find::<false>(env)
}

/// storeView(): as storeGet, and behind two lengths how often the view was looked at without asking, then the
/// version it is of: of that one the value is not given again. Writes 1 to word 8 when the value refers to
/// memory.
pub unsafe extern "C" fn view(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    find::<true>(env)
}

#[inline]
fn find<const IS_VIEW: bool>(env: sys::napi_env) -> Value {
    hot(env, |stage, given| {
        stage.read_soon = None;
        let store = Arc::as_ptr(store_of(stage, given[0])?);
        // SAFETY: the stage holds the store; only calls of this thread could let it go.
        let store = unsafe { &*store };
        let (_, key) = stage.value_and_key(&given)?;
        let mut later = None;
        let (before, had) = if IS_VIEW { (given[3], wide(given[4], given[5])) } else { (0, 0) };
        let found = store.read_again(key, before, |entry, index, word, left_ms| {
            let inbound = &stage.inbound;
            inbound.put(2, entry.version as u32);
            inbound.put(3, (entry.version >> 32) as u32);
            inbound.put(4, index as u32);
            inbound.put(5, word);
            let left = (left_ms as f64).to_bits();
            inbound.put(6, left as u32);
            inbound.put(7, (left >> 32) as u32);
            if IS_VIEW && entry.version == had {
                return;
            }
            if entry.keeps.is_some() {
                stage.read_soon.clone_from(&entry.keeps);
                if IS_VIEW {
                    inbound.put(8, 1);
                }
            }
            if entry.bytes.len() <= LOCKED_COPY_MAX {
                stage.put_bytes(&entry.bytes);
            } else {
                later = Some(entry.bytes.clone());
            }
        });
        let status = match (found, later) {
            (None, _) => {
                if store.is_closed() {
                    CLOSED
                } else {
                    ABSENT
                }
            }
            (Some(()), None) => FOUND,
            (Some(()), Some(bytes)) => {
                if stage.put_bytes(&bytes) {
                    FOUND
                } else {
                    stage.large = Some(bytes);
                    LARGE
                }
            }
        };
        stage.inbound.put(STATUS, status);
        Ok(())
    })
}

#[inline]
fn write(stage: &mut Stage, given: &[u32; GIVEN], value: &[u8], key: KeyRef<'_>) -> Outcome<()> {
    let value = NewValue { bytes: value, life: life(given), keeps: stage.take_attachments() };
    let outcome = store_of(stage, given[0])?.set(key, value, expected(given)).map(|_| 0);
    stage.inbound.put(STATUS, status(outcome));
    Ok(())
}

/// storeSet(): handle, key and value lengths, mode, expected version, ttl. Status.
pub unsafe extern "C" fn set(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    hot(env, |stage, given| {
        let (value, key) = stage.value_and_key(&given)?;
        write(stage, &given, value, key)
    })
}

call!(
    set_large,
    1,
    |env, arguments| {
        let value = env.slice(arguments[0])?;
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        // SAFETY: as above.
        let given = unsafe { stage.out.words() };
        let (_, key) = stage.value_and_key(&given)?;
        write(stage, &given, value, key)?;
        Ok(env.undefined())
    },
    "storeSetLarge(value): storeSet with a value of its own memory and no value in the scratch."
);

/// storeRemove(): handle, key length, 0, mode, expected version. Status, and in the next word whether it was
/// there.
pub unsafe extern "C" fn remove(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    hot(env, |stage, given| {
        let (_, key) = stage.value_and_key(&given)?;
        let outcome = store_of(stage, given[0])?.remove(key, expected(&given));
        stage.inbound.put(1, u32::from(outcome == Ok(true)));
        stage.inbound.put(STATUS, status(outcome.map(|_| 0)));
        Ok(())
    })
}

/// storeHas(): handle, key length. Status.
pub unsafe extern "C" fn has(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    hot(env, |stage, given| {
        let (_, key) = stage.value_and_key(&given)?;
        let store = store_of(stage, given[0])?;
        let found = if store.has(key) {
            FOUND
        } else if store.is_closed() {
            CLOSED
        } else {
            ABSENT
        };
        stage.inbound.put(STATUS, found);
        Ok(())
    })
}

call!(
    make,
    7,
    |env, arguments| {
        let bound =
            |value| env.f64(value).map(|number| if number.is_finite() { number as u64 } else { u64::MAX });
        let (id, settings) = (env.string(arguments[0])?, env.string(arguments[1])?);
        let limits = Limits {
            entries_max: bound(arguments[2])?,
            bytes_max: bound(arguments[3])?,
            value_bytes_max: bound(arguments[4])?,
            ttl_ms: bound(arguments[5])?,
            evicts: env.bool(arguments[6])?,
        };
        let mut stores = lock(&STORES);
        if stores.numbers.contains_key(&id) {
            return Ok(env.int(0));
        }
        let number = registry::next_id();
        stores.numbers.insert(id.clone(), number);
        stores.all.insert(number, Entry { id, settings, store: Arc::new(Store::new(limits, clock)) });
        Ok(env.number(f64::from(number)))
    },
    "storeMake(id, settings, entriesMax, bytesMax, valueBytesMax, ttlMs, evicts): its number; 0: name taken."
);

call!(
    number,
    1,
    |env, arguments| {
        let number = lock(&STORES).numbers.get(&env.string(arguments[0])?).copied();
        Ok(env.number(f64::from(number.unwrap_or(0))))
    },
    "storeNumber(id): the number of the store with that name, 0 when there is none."
);

call!(
    id,
    1,
    |env, arguments| {
        let number = env.u32(arguments[0])?;
        Ok(lock(&STORES).all.get(&number).map_or(env.undefined(), |entry| env.text(&entry.id)))
    },
    "storeId(number): its name; undefined when it is closed."
);

call!(
    settings,
    1,
    |env, arguments| {
        let number = env.u32(arguments[0])?;
        Ok(lock(&STORES).all.get(&number).map_or(env.undefined(), |entry| env.text(&entry.settings)))
    },
    "storeSettings(number): its settings as its maker wrote them."
);

call!(
    count,
    0,
    |env, arguments| {
        let _ = &arguments;
        Ok(env.int(lock(&STORES).all.len() as i32))
    },
    "storeCount(): stores that are open."
);

call!(
    names,
    1,
    |env, arguments| {
        let most = env.u32(arguments[0])? as usize;
        let mut names: Vec<Text> = lock(&STORES).numbers.keys().cloned().collect();
        names.sort_unstable();
        Ok(env.texts(names.iter().take(most).map(|name| &name[..])))
    },
    "storeNames(most): names of open stores, in order, at most so many."
);

call!(
    open,
    1,
    |env, arguments| {
        let number = env.u32(arguments[0])?;
        let Some(store) = lock(&STORES).all.get(&number).map(|entry| Arc::clone(&entry.store)) else {
            return Ok(env.int(-1));
        };
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        Ok(env.int(place(&mut stage.stores, store)))
    },
    "storeOpen(number): this thread's handle on it; -1 when it is closed."
);

call!(
    drop_handle,
    1,
    |env, arguments| {
        let handle = env.u32(arguments[0])? as usize;
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        if let Some(place) = stage.stores.get_mut(handle).filter(|_| handle != CLOSED_HANDLE) {
            *place = None;
        }
        Ok(env.undefined())
    },
    "storeDrop(handle): this thread no longer uses it."
);

call!(
    close,
    1,
    |env, arguments| {
        let number = env.u32(arguments[0])?;
        let entry = {
            let mut stores = lock(&STORES);
            let entry = stores.all.remove(&number);
            if let Some(entry) = &entry {
                stores.numbers.remove(&entry.id);
            }
            entry
        };
        if let Some(entry) = entry {
            entry.store.close();
        }
        Ok(env.undefined())
    },
    "storeClose(number): empty it and forget its name."
);

/// The store of a handle argument.
fn store(env: Env, value: Value) -> Outcome<Arc<Store>> {
    // SAFETY: inside a call.
    store_of(unsafe { stage::here()? }, env.u32(value)?).cloned()
}

call!(
    clear,
    1,
    |env, arguments| {
        store(env, arguments[0])?.clear();
        Ok(env.undefined())
    },
    "storeClear(handle): delete everything."
);

call!(
    stats,
    2,
    |env, arguments| {
        let stats = store(env, arguments[0])?.stats();
        let (data, length) = env.bytes(arguments[1])?;
        let numbers =
            [stats.entries, stats.bytes, stats.hits, stats.misses, stats.evictions, stats.expirations]
                .map(|n| n as f64);
        if length < size_of_val(&numbers) {
            return Err(wrong("storeStats: too short"));
        }
        // SAFETY: there is room; any alignment is written.
        unsafe { data.cast::<[f64; 6]>().write_unaligned(numbers) };
        Ok(env.undefined())
    },
    "storeStats(handle, numbers): entries, bytes, hits, misses, evictions, expirations as doubles."
);

call!(
    words,
    1,
    |env, arguments| {
        let store = store(env, arguments[0])?;
        let address = store.words().address().cast_mut().cast::<c_void>();
        let hint = Arc::into_raw(store).cast_mut().cast::<c_void>();
        let mut value = ptr::null_mut();
        // SAFETY: the memory lives as long as the reference that the finalizer gives back.
        let status = unsafe {
            sys::napi_create_external_arraybuffer(
                env.0,
                address,
                WORDS * 4,
                Some(let_go),
                hint,
                &raw mut value,
            )
        };
        if status != sys::Status::napi_ok {
            // SAFETY: napi has not taken the reference over.
            drop(unsafe { Arc::from_raw(hint.cast::<Store>()) });
            return Ok(env.undefined());
        }
        Ok(value)
    },
    "storeWords(handle): its version words as memory; undefined where memory of others is not allowed."
);

unsafe extern "C" fn let_go(_: sys::napi_env, _: *mut c_void, hint: *mut c_void) {
    // SAFETY: the reference that `words` gave away.
    drop(unsafe { Arc::from_raw(hint.cast::<Store>()) });
}

call!(
    parts,
    1,
    |env, arguments| { Ok(env.int(store(env, arguments[0])?.parts() as i32)) },
    "storeParts(handle): into how many parts its keys are divided."
);

call!(
    keys,
    2,
    |env, arguments| {
        let mut bytes = Vec::new();
        store(env, arguments[0])?.keys(env.u32(arguments[1])? as usize, |key| put_key(&mut bytes, key));
        env.copy(&bytes)
    },
    "storeKeys(handle, part): its keys, each behind its length as 32 bits."
);

fn put_key(bytes: &mut Vec<u8>, key: &[u8]) {
    bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
    bytes.extend_from_slice(key);
}

call!(
    watch,
    4,
    |env, arguments| {
        let store = store(env, arguments[0])?;
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        // SAFETY: as above.
        let given = unsafe { stage.out.words() };
        let key: Box<[u8]> = stage.value_and_key(&given)?.1.bytes().into();
        let pattern = if env.bool(arguments[2])? { Pattern::Prefix(key) } else { Pattern::Key(key) };
        let call = stage.call(env.u32(arguments[1])?, false);
        Ok(env.int(match store.watch(pattern, env.u32(arguments[3])? as usize, call) {
            Some(watcher) => place(&mut stage.watches, (store, watcher)),
            None => -1,
        }))
    },
    "storeWatch(handle, ticket, isPrefix, eventsMax): watch the key in the scratch; -1: the store is closed."
);

call!(
    watch_take,
    1,
    |env, arguments| {
        let handle = env.u32(arguments[0])? as usize;
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        let (_, watcher) =
            stage.watches.get(handle).and_then(Option::as_ref).ok_or_else(|| wrong("no such watch"))?;
        let (events, missed) = watcher.take();
        let mut bytes = (missed as f64).to_le_bytes().to_vec();
        for event in events {
            bytes.push(event.change as u8);
            put_key(&mut bytes, &event.key);
        }
        env.copy(&bytes)
    },
    "storeWatchTake(watch): changes missed behind the others (a double); then of each its kind and key."
);

call!(
    unwatch,
    1,
    |env, arguments| {
        let handle = env.u32(arguments[0])? as usize;
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        if let Some((store, watcher)) = stage.watches.get_mut(handle).and_then(Option::take) {
            store.unwatch(&watcher);
        }
        Ok(env.undefined())
    },
    "storeUnwatch(watch): end it."
);

call!(
    begin,
    2,
    |env, arguments| {
        let store = store(env, arguments[0])?;
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        // SAFETY: as above.
        let given = unsafe { stage.out.words() };
        let (_, key) = stage.value_and_key(&given)?;
        Ok(env.int(match store.compute_begin(key, stage.call(env.u32(arguments[1])?, false)) {
            Begin::Lead => 0,
            Begin::Wait => 1,
        }))
    },
    "storeBegin(handle, ticket): whether to compute the key in the scratch (0) or to wait (1)."
);

call!(
    end,
    3,
    |env, arguments| {
        let store = store(env, arguments[0])?;
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        // SAFETY: as above.
        let given = unsafe { stage.out.words() };
        let (_, key) = stage.value_and_key(&given)?;
        store.compute_end(key, stage.owner, env.u32(arguments[1])?, env.bool(arguments[2])?);
        Ok(env.undefined())
    },
    "storeEnd(handle, ticket, well): a computation, or a wait for one, is over."
);

call!(
    advance,
    1,
    |env, arguments| {
        AHEAD_MS.fetch_add(u64::from(env.u32(arguments[0])?), Ordering::Relaxed);
        Ok(env.undefined())
    },
    "storeAdvance(ms): move the clock of all stores forward; for tests."
);
