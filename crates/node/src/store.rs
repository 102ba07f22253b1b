//! The store functions of JavaScript: conversions.
//!
//! `corespun_store::layout` defines the words that the hot calls read and write.

use corespun_bridge::Misuse;
use corespun_store::{
    Begin, Limits, ThreadState, WORDS, finds,
    named::{self, File, STORES, Text},
    put_key,
};

use crate::{
    exports, hot_exports,
    js::{Env, Function, NewBuffer, Outcome, put_numbers, wrong},
    memory, thread_state,
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    store_set_large, store_step_large, store_make, store_number, store_id, store_settings, store_count,
    store_names, store_open, store_drop, store_close, store_clear, store_stats, store_words, store_parts,
    store_keys, store_watch, store_watch_take, store_unwatch, store_begin, store_end, store_advance,
    store_seeded_at, store_flush, store_file_stage, store_file_problem,
};

/// These read and write the words of the scratch buffers.
pub const HOT: &[(&str, Function)] = hot_exports![thread_state::hot;
    store_get: ThreadState::find::<{ finds::VALUE }>,
    // As store_get, but does not write the value again if the view is of its version.
    store_view: ThreadState::find::<{ finds::VIEW }>,
    // As store_get, with the version word of an absent key.
    store_read: ThreadState::find::<{ finds::WORD }>,
    store_set: |state| state.set(None),
    store_remove: ThreadState::remove,
    store_has: ThreadState::has,
    // Adds a step to the next commit; see `mode`.
    store_step: |state| state.step(None),
    store_commit: ThreadState::commit,
    store_abandon: ThreadState::abandon,
];

/// As storeSet, with the value as an argument, not in the scratch buffer.
fn store_set_large(state: &mut ThreadState, value: &[u8]) -> Result<(), Misuse> {
    state.set(Some(value))
}

/// As storeStep, with the value as an argument.
fn store_step_large(state: &mut ThreadState, value: &[u8]) -> Result<(), Misuse> {
    state.step(Some(value))
}

/// Its number, or 0 if the name is taken. The limits are doubles; the last one is 1 for a store that closes
/// with the last handle on it. With a path, see `storeFileStage`; with `is_seeded`, `storeSeededAt`.
fn store_make(
    id: Text,
    settings: Text,
    limits: Vec<f64>,
    evicts: bool,
    file: String,
    is_seeded: bool,
) -> Outcome<u32> {
    let limits = <[f64; 6]>::try_from(limits).map_err(|_| wrong("expected six limits"))?;
    let [entries_max, bytes_max, value_bytes_max, ttl_ms, unflushed_bytes_max, weak] =
        limits.map(|limit| if limit.is_finite() { limit as u64 } else { u64::MAX });
    let limits = Limits { entries_max, bytes_max, value_bytes_max, ttl_ms, evicts, is_seeded };
    let file = (!file.is_empty()).then(|| File { path: file.into(), bytes_max: unflushed_bytes_max });
    Ok(STORES.make(id, settings, limits, file, weak == 1).unwrap_or(0))
}

/// The number of the store with that name, 0 if no store has it.
fn store_number(id: Text) -> u32 {
    STORES.number(&id).unwrap_or(0)
}

/// Its name; `undefined` if it is closed.
fn store_id(number: u32) -> Option<Text> {
    STORES.id(number)
}

/// Its settings as storeMake received them.
fn store_settings(number: u32) -> Option<Text> {
    STORES.settings(number)
}

/// The number of open stores.
fn store_count() -> u32 {
    STORES.count() as u32
}

/// The first names of open stores, in order, at most `most`.
fn store_names(most: u32) -> Vec<Text> {
    STORES.names(most as usize)
}

/// This thread's handle; -1 if the store is closed.
fn store_open(state: &mut ThreadState, number: u32) -> i32 {
    state.open_store(number).map_or(-1, u32::cast_signed)
}

/// Close this thread's handle.
fn store_drop(state: &mut ThreadState, handle: u32) {
    state.drop_store(handle);
}

/// Delete all entries and free the name.
fn store_close(number: u32) {
    STORES.close(number);
}

/// Delete all entries.
fn store_clear(state: &mut ThreadState, handle: u32) -> Result<(), Misuse> {
    state.store(handle).map(|store| store.clear())
}

/// Write the counts, as doubles.
fn store_stats(state: &mut ThreadState, handle: u32, numbers: &mut [u8]) -> Outcome<()> {
    put_numbers(numbers, &state.store(handle)?.stats().encode())
}

/// Its version words as memory; `undefined` if Node refuses external memory.
fn store_words(env: Env, state: &mut ThreadState, handle: u32) -> Result<Option<NewBuffer>, Misuse> {
    let store = state.store(handle)?.clone();
    let address = store.words().address().cast_mut().cast();
    // SAFETY: the words exist as long as the store.
    Ok(unsafe { memory::external(env, address, WORDS * 4, store) })
}

/// The number of parts that its keys are divided into.
fn store_parts(state: &mut ThreadState, handle: u32) -> Result<u32, Misuse> {
    Ok(state.store(handle)?.parts() as u32)
}

/// The keys of a part, each after its length in 32 bits.
fn store_keys(state: &mut ThreadState, handle: u32, part: u32) -> Result<Vec<u8>, Misuse> {
    let mut bytes = Vec::new();
    state.store(handle)?.keys(part as usize, |key| put_key(&mut bytes, key));
    Ok(bytes)
}

/// Watch the key in the scratch buffer; -1: closed.
fn store_watch(
    state: &mut ThreadState,
    handle: u32,
    ticket: u32,
    is_prefix: bool,
    events_max: u32,
) -> Result<i32, Misuse> {
    let watch = state.watch(handle, ticket, is_prefix, events_max as usize)?;
    Ok(watch.map_or(-1, u32::cast_signed))
}

/// How many changes were missed after these (a double), then each kind and key.
fn store_watch_take(state: &mut ThreadState, watch: u32) -> Result<Vec<u8>, Misuse> {
    state.take_changes(watch)
}

/// Stop watching.
fn store_unwatch(state: &mut ThreadState, watch: u32) {
    state.unwatch(watch);
}

/// 0: compute the value of the key in the scratch buffer; 1: wait for it.
fn store_begin(state: &mut ThreadState, handle: u32, ticket: u32) -> Result<bool, Misuse> {
    Ok(state.begin(handle, ticket)? == Begin::Wait)
}

/// End a computation, or the wait for one.
fn store_end(state: &mut ThreadState, handle: u32, ticket: u32, succeeded: bool) -> Result<(), Misuse> {
    state.end(handle, ticket, succeeded)
}

/// Advance the clock of all stores; for tests.
fn store_advance(ms: u32) {
    named::advance(u64::from(ms));
}

/// Set the clock of stores that were made in a seeded run of this thread.
fn store_seeded_at(ms: u64) {
    named::seeded_at(ms);
}

/// See `Flush`.
fn store_flush(state: &mut ThreadState, handle: u32, ticket: u32) -> Result<u32, Misuse> {
    state.flush(handle, ticket).map(|flush| flush as u32)
}

/// See `Stage`; waits up to 10 ms while the file is being opened or closed.
fn store_file_stage(state: &mut ThreadState, handle: u32) -> Result<u32, Misuse> {
    state.file_stage(handle).map(|stage| stage as u32)
}

/// What is wrong with the file: a kind and its details, one to a line; `undefined` when nothing is.
fn store_file_problem(state: &mut ThreadState, handle: u32) -> Result<Option<String>, Misuse> {
    Ok(state.file_problem(handle)?.map(|problem| {
        let (kind, detail) = problem.parts();
        format!("{kind}\n{detail}")
    }))
}
