//! Tests of ticker.rs.
//!
//! When the ticker's threads exist and tick.

use super::{Background, Foreground};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub static TICKS: AtomicU64 = AtomicU64::new(0);

fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "corespun-tick").count()
}

fn until(what: &str, reached: impl Fn() -> bool) {
    let begun = Instant::now();
    while !reached() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}, within a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ticks go on beyond those that were counted.
fn beats() {
    let before = TICKS.load(Ordering::Relaxed);
    until("ticks", || TICKS.load(Ordering::Relaxed) > before + 10);
}

/// One test, since the ticker is the process's.
#[test]
fn it_goes_on_while_something_serves_beside_a_thread_that_gives_way_and_is_awake() {
    if !super::platform::HAS_TICKER {
        return;
    }
    let mut background = Background::begin();
    assert_eq!(threads(), 0, "nothing serves");
    let foreground = Foreground::begin();
    let second = Foreground::begin();
    until("a thread on each core", || threads() == crate::cores::allowed().count());
    beats();
    background.set_awake(false);
    background.set_awake(false);
    until("silence", || {
        let before = TICKS.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        TICKS.load(Ordering::Relaxed) == before
    });
    background.set_awake(true);
    beats();
    drop(foreground);
    beats();
    drop(second);
    until("no thread", || threads() == 0);
    let again = Foreground::begin();
    beats();
    drop(background);
    until("no thread", || threads() == 0);
    drop(again);
}
