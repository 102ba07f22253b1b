//! The last tasks and requests of the process that took far longer than others of their kind.
//!
//! `functions` finds tasks, src/metrics requests. Each is a row of numbers (`layout::slow`) and a text, from
//! which src/metrics/slow.ts makes what people read. What is known later is put into the row later: the way
//! back of a result when its caller reads it, collections of garbage by the thread that ran it.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    clock,
    layout::slow::{ENDED, GC, HOP, NUMBER, NUMBERS, THREAD},
    registry::{Text, lock},
};

/// What takes less is not slow to anybody.
pub const LEAST_MS: f64 = 5.0;
/// The oldest of more is dropped.
const KEPT_MAX: usize = 128;

pub type Numbers = [f64; NUMBERS];

struct Row {
    numbers: Numbers,
    text: Text,
    /// In ticks.
    ended: u64,
}

static ROWS: Mutex<VecDeque<Row>> = Mutex::new(VecDeque::new());
/// The number of the youngest.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Keep one that ends now, in the thread of that mailbox. Returns its number.
pub fn add(thread: u32, mut numbers: Numbers, text: Text) -> u32 {
    let ended = clock::ticks();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut rows = lock(&ROWS);
    // Relaxed: under the lock; who reads it without looks again.
    let number = LAST.load(Ordering::Relaxed) + 1;
    numbers[NUMBER] = f64::from(number);
    numbers[THREAD] = f64::from(thread);
    numbers[ENDED] = since_1970.as_secs_f64() * 1000.0;
    if rows.len() == KEPT_MAX {
        rows.pop_front();
    }
    rows.push_back(Row { numbers, text, ended });
    LAST.store(number, Ordering::Relaxed);
    number
}

/// The number of the youngest; 0 without any.
pub fn last() -> u32 {
    LAST.load(Ordering::Relaxed)
}

/// The numbers of those after number `after`, the oldest first.
pub fn numbers(after: u32) -> Vec<f64> {
    let rows = lock(&ROWS);
    rows.iter()
        .map(|row| row.numbers)
        .filter(|numbers| numbers[NUMBER] > f64::from(after))
        .flatten()
        .collect()
}

/// The text of one; `None` when it was dropped.
pub fn text(number: u32) -> Option<Text> {
    find(&mut lock(&ROWS), number).map(|row| row.text.clone())
}

/// For how long its thread collected garbage while it ran one.
pub fn set_gc(number: u32, ms: f64) {
    if let Some(row) = find(&mut lock(&ROWS), number) {
        row.numbers[GC] = ms;
    }
}

/// The caller reads the result of a task.
#[cold]
#[inline(never)]
pub fn returned(number: u32) {
    let now = clock::ticks();
    if let Some(row) = find(&mut lock(&ROWS), number) {
        row.numbers[HOP] = now.saturating_sub(row.ended) as f64 * clock::tick_ns() / 1e6;
    }
}

fn find(rows: &mut VecDeque<Row>, number: u32) -> Option<&mut Row> {
    rows.iter_mut().find(|row| row.numbers[NUMBER] == f64::from(number))
}

#[cfg(all(test, not(miri)))]
mod tests;
