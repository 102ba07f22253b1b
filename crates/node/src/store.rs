//! The store functions of JavaScript: conversions.
//!
//! `corespun_store::layout` defines the words that the hot calls read and write.

use corespun_store::{
    Begin, Limits, ThreadState, WORDS,
    layout::counts,
    named::{self, STORES, Text},
    put_key,
};
use napi_sys as sys;

use crate::{
    function,
    js::{Value, wrong},
    memory, thread_state,
};

/// storeGet(): status, length, version, word index, word, milliseconds left; then the value.
pub unsafe extern "C" fn get(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, ThreadState::find::<false>)
}

/// storeView(): as storeGet, but does not write the value again if the view is of its version.
pub unsafe extern "C" fn view(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, ThreadState::find::<true>)
}

/// storeSet(): status.
pub unsafe extern "C" fn set(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, |state| state.set(None))
}

/// storeRemove(): status, and whether the key was present.
pub unsafe extern "C" fn remove(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, ThreadState::remove)
}

/// storeHas(): status.
pub unsafe extern "C" fn has(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    thread_state::hot(env, ThreadState::has)
}

function! {
    /// storeSetLarge(value): as storeSet, with the value as an argument, not in the scratch buffer.
    set_large(value: &[u8]) |env, state| state.set(Some(value))?
}

function! {
    /// storeMake(id, settings, entriesMax, bytesMax, valueBytesMax, ttlMs, evicts): its number, or 0
    /// if the name is taken.
    make(
        id: Text,
        settings: Text,
        entries_max: u64,
        bytes_max: u64,
        value_bytes_max: u64,
        ttl_ms: u64,
        evicts: bool
    ) |env| {
        let limits = Limits { entries_max, bytes_max, value_bytes_max, ttl_ms, evicts };
        STORES.make(id, settings, limits).unwrap_or(0)
    }
}

function! {
    /// storeNumber(id): the number of the store with that name, 0 if no store has it.
    number(id: Text) |env| STORES.number(&id).unwrap_or(0)
}

function! {
    /// storeId(number): its name; `undefined` if it is closed.
    id(number: u32) |env| STORES.id(number)
}

function! {
    /// storeSettings(number): its settings as storeMake received them.
    settings(number: u32) |env| STORES.settings(number)
}

function! {
    /// storeCount(): the number of open stores.
    count() |env| STORES.count() as u32
}

function! {
    /// storeNames(most): the first names of open stores, in order, at most `most`.
    names(most: u32) |env| env.texts(STORES.names(most as usize).iter().map(|name| &name[..]))
}

function! {
    /// storeOpen(number): this thread's handle; -1 if the store is closed.
    open(number: u32) |env, state| state.open_store(number).map_or(-1, |handle| handle as i32)
}

function! {
    /// storeDrop(handle): close this thread's handle.
    drop_handle(handle: u32) |env, state| state.drop_store(handle)
}

function! {
    /// storeClose(number): delete all entries and free the name.
    close(number: u32) |env| STORES.close(number)
}

function! {
    /// storeClear(handle): delete all entries.
    clear(handle: u32) |env, state| state.store(handle)?.clear()
}

function! {
    /// storeStats(handle, numbers): write the counts, as doubles.
    stats(handle: u32, numbers: (*mut u8, usize)) |env, state| {
        let stats = state.store(handle)?.stats();
        let (data, length) = numbers;
        if length < counts::NUMBERS * 8 {
            return Err(wrong("storeStats: too short"));
        }
        let put = |index: usize, number: u64| {
            // SAFETY: within the array's memory, whose length was checked; no alignment is assumed.
            unsafe { data.cast::<f64>().add(index).write_unaligned(number as f64) };
        };
        put(counts::ENTRIES, stats.entries);
        put(counts::BYTES, stats.bytes);
        put(counts::HITS, stats.hits);
        put(counts::MISSES, stats.misses);
        put(counts::EVICTIONS, stats.evictions);
        put(counts::EXPIRATIONS, stats.expirations);
    }
}

function! {
    /// storeWords(handle): its version words as memory; `undefined` if Node refuses external memory.
    words(handle: u32) |env, state| {
        let store = state.store(handle)?.clone();
        let address = store.words().address().cast_mut().cast();
        // SAFETY: the words exist as long as the store.
        unsafe { memory::external(env, address, WORDS * 4, store) }
    }
}

function! {
    /// storeParts(handle): the number of parts that its keys are divided into.
    parts(handle: u32) |env, state| state.store(handle)?.parts() as u32
}

function! {
    /// storeKeys(handle, part): the keys of a part, each after its length in 32 bits.
    keys(handle: u32, part: u32) |env, state| {
        let mut bytes = Vec::new();
        state.store(handle)?.keys(part as usize, |key| put_key(&mut bytes, key));
        env.copy(&bytes)?
    }
}

function! {
    /// storeWatch(handle, ticket, isPrefix, eventsMax): watch the key in the scratch buffer; -1: closed.
    watch(handle: u32, ticket: u32, is_prefix: bool, events_max: u32) |env, state| {
        let watch = state.watch(handle, ticket, is_prefix, events_max as usize)?;
        watch.map_or(-1, |watch| watch as i32)
    }
}

function! {
    /// storeWatchTake(watch): how many changes were missed after these (a double), then each kind and key.
    watch_take(watch: u32) |env, state| env.copy(&state.take_changes(watch)?)?
}

function! {
    /// storeUnwatch(watch): stop watching.
    unwatch(watch: u32) |env, state| state.unwatch(watch)
}

function! {
    /// storeBegin(handle, ticket): 0: compute the value of the key in the scratch buffer; 1: wait for it.
    begin(handle: u32, ticket: u32) |env, state| u32::from(state.begin(handle, ticket)? == Begin::Wait)
}

function! {
    /// storeEnd(handle, ticket, succeeded): end a computation, or the wait for one.
    end(handle: u32, ticket: u32, succeeded: bool) |env, state| state.end(handle, ticket, succeeded)?
}

function! {
    /// storeAdvance(ms): advance the clock of all stores; for tests.
    advance(ms: u32) |env| named::advance(u64::from(ms))
}
