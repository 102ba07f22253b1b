//! Every interleaving of what is lock-free here: the version words.
//!
//! Compiled with `--cfg loom` only.
#![cfg(loom)]

use corespun_store::Words;
use loom::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

/// In every interleaving a value read together with its word is current while the word is unchanged.
#[test]
fn a_word_that_stands_vouches_for_its_value() {
    loom::model(|| {
        let words = Arc::new(Words::default());
        let entry = Arc::new(Mutex::new(0_u32));
        let ended = Arc::new(AtomicU32::new(0));
        let writer = {
            let (words, entry, ended) = (words.clone(), entry.clone(), ended.clone());
            loom::thread::spawn(move || {
                for value in 1..3 {
                    let mut entry = entry.lock().unwrap();
                    *entry = value;
                    words.touch(0);
                    drop(entry);
                    ended.store(value, Ordering::SeqCst);
                }
            })
        };
        let (value, word) = {
            let entry = entry.lock().unwrap();
            (*entry, words.load(0))
        };
        // A write that ended before the look must be seen by it.
        let ended_before = ended.load(Ordering::SeqCst);
        if words.glance(0) == word {
            assert!(value >= ended_before, "value {value} vouched for after write {ended_before} had ended");
        }
        writer.join().unwrap();
    });
}

/// Two threads each write a key and then look at a view of the other's: one of them sees the other's write.
#[test]
fn two_that_write_and_then_look_do_not_both_see_the_past() {
    loom::model(|| {
        let words = Arc::new(Words::default());
        let write_and_look = |words: &Words, own: usize| {
            words.touch(own);
            // The view of the other's key was made before either wrote: its word was 0.
            words.glance(1 - own) == 0
        };
        let other = {
            let words = words.clone();
            loom::thread::spawn(move || write_and_look(&words, 1))
        };
        let saw_the_past = write_and_look(&words, 0);
        assert!(!(other.join().unwrap() && saw_the_past), "neither saw the write of the other");
    });
}
