//! Every interleaving of what is lock-free here, the version words, and of waits for locks and channels.
//!
//! Compiled with `--cfg loom` only.
#![cfg(loom)]

use corespun_store::{Acquire, Call, Channel, Fact, Message, Notify, Put, Semaphore, Take, Words};
use loom::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    thread,
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
            thread::spawn(move || {
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
            thread::spawn(move || write_and_look(&words, 1))
        };
        let saw_the_past = write_and_look(&words, 0);
        assert!(!(other.join().unwrap() && saw_the_past), "neither saw the write of the other");
    });
}

/// A thread that waits for `on`: the facts that were left for it, and what it sleeps on.
struct Sleeper<On> {
    on: Arc<On>,
    /// Takes the lock of `on`: a model in which the waking thread holds it never ends.
    look: fn(&On),
    facts: Mutex<Vec<Fact>>,
    sleep: loom::sync::Notify,
}

impl<On: Send + Sync> Notify for Sleeper<On> {
    fn leave(&self, _: u32, fact: Fact) {
        self.facts.lock().unwrap().push(fact);
    }

    fn wake(&self) {
        (self.look)(&self.on);
        self.sleep.notify();
    }
}

impl<On: Send + Sync + 'static> Sleeper<On> {
    /// The only wait of that thread.
    fn call(on: &Arc<On>, look: fn(&On), thread: u32) -> (std::sync::Arc<Self>, Call) {
        let (facts, sleep) = (Mutex::new(Vec::new()), loom::sync::Notify::new());
        let sleeper = std::sync::Arc::new(Self { on: on.clone(), look, facts, sleep });
        let notify = sleeper.clone();
        (sleeper, Call { thread, ticket: 1, notify })
    }

    fn fact(&self) -> Option<Fact> {
        self.facts.lock().unwrap().pop()
    }

    fn wait(&self) -> Fact {
        loop {
            if let Some(fact) = self.fact() {
                return fact;
            }
            self.sleep.wait();
        }
    }
}

/// Acquire the only permit; returns the fact or the outcome.
fn acquired(lock: &Arc<Semaphore>, thread: u32) -> Result<Acquire, Fact> {
    let (sleeper, call) = Sleeper::call(lock, |lock| assert!(lock.counts().0 <= 1), thread);
    match lock.acquire(call, 1, false) {
        Acquire::Queued => Err(sleeper.wait()),
        outcome => Ok(outcome),
    }
}

/// One thread at a time is inside, each gets its turn, and none is woken while the lock's own lock is held.
///
/// Guards against: `admit` before the permits are free; a `Woken` that is dropped before the guard.
#[test]
fn a_lock_is_held_by_one_and_passed_on() {
    loom::model(|| {
        let (lock, inside) = (Arc::new(Semaphore::new(1)), Arc::new(AtomicU32::new(0)));
        let pass = |lock: &Arc<Semaphore>, inside: &AtomicU32, thread: u32| {
            assert!(matches!(acquired(lock, thread), Ok(Acquire::Granted) | Err(Fact::Granted)));
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "somebody is inside");
            inside.fetch_sub(1, Ordering::Relaxed);
            assert!(lock.release(thread, 1));
        };
        let other = {
            let (lock, inside) = (lock.clone(), inside.clone());
            thread::spawn(move || pass(&lock, &inside, 1))
        };
        pass(&lock, &inside, 2);
        other.join().unwrap();
        assert_eq!(lock.counts(), (1, 0));
    });
}

/// A wait that is cancelled while the permit is released was granted or not, and who cancels learns which.
///
/// Guards against: a fact that is left behind the lock, so that `cancel` finds neither it nor the wait.
#[test]
fn a_cancelled_wait_has_its_permit_or_leaves_nothing() {
    loom::model(|| {
        let lock = Arc::new(Semaphore::new(1));
        assert_eq!(acquired(&lock, 1), Ok(Acquire::Granted));
        let holder = {
            let lock = lock.clone();
            thread::spawn(move || assert!(lock.release(1, 1)))
        };
        let (sleeper, call) = Sleeper::call(&lock, |lock| assert!(lock.counts().0 <= 1), 2);
        let is_granted = match lock.acquire(call, 1, false) {
            Acquire::Queued if lock.cancel(2, 1) => false,
            Acquire::Queued => sleeper.fact() == Some(Fact::Granted) || panic!("no fact, and no wait"),
            outcome => outcome == Acquire::Granted,
        };
        assert_eq!(lock.release(2, 1), is_granted);
        holder.join().unwrap();
        assert_eq!((sleeper.fact(), lock.counts()), (None, (1, 0)));
    });
}

/// The holder ends while another thread comes: that one learns of it, by its outcome or by its fact.
#[test]
fn who_comes_after_a_holder_that_ended_is_notified() {
    loom::model(|| {
        let lock = Arc::new(Semaphore::new(1));
        assert_eq!(acquired(&lock, 1), Ok(Acquire::Granted));
        let ended = {
            let lock = lock.clone();
            thread::spawn(move || lock.thread_ended(1))
        };
        assert!(matches!(acquired(&lock, 2), Ok(Acquire::Abandoned) | Err(Fact::Abandoned)));
        ended.join().unwrap();
        assert!(lock.release(2, 1));
        assert_eq!(lock.counts(), (1, 0));
    });
}

const LOOK: fn(&Channel) = |channel| assert!(channel.len() <= 1);

fn put(channel: &Arc<Channel>, byte: u8) {
    let (sleeper, call) = Sleeper::call(channel, LOOK, 1);
    let message = Message { bytes: [byte].into(), keeps: None };
    match channel.put(message, Some(call)) {
        Put::Queued => assert_eq!(sleeper.wait(), Fact::Granted),
        outcome => assert_eq!(outcome, Put::Done),
    }
}

fn taken(channel: &Arc<Channel>) -> u8 {
    let (sleeper, call) = Sleeper::call(channel, LOOK, 2);
    let message = match channel.take(Some(call)) {
        Take::Message(message) => Some(message),
        Take::Queued if sleeper.wait() == Fact::Granted => channel.fetch(2, 1),
        _ => None,
    };
    message.expect("one was put").bytes[0]
}

/// A taker that waits is woken with its message set aside, and finds no lock.
///
/// Guards against: a message that is set aside behind the lock; a `Woken` that is dropped before the guard.
#[test]
fn a_message_arrives_whoever_comes_first() {
    loom::model(|| {
        let channel = Arc::new(Channel::new(1));
        let sender = {
            let channel = channel.clone();
            thread::spawn(move || put(&channel, 1))
        };
        assert_eq!(taken(&channel), 1);
        sender.join().unwrap();
        assert!(channel.is_empty());
    });
}

/// A sender that waits for capacity is woken by the message that is taken, and finds no lock.
#[test]
fn a_sender_waits_until_there_is_capacity() {
    loom::model(|| {
        let channel = Arc::new(Channel::new(1));
        put(&channel, 1);
        let sender = {
            let channel = channel.clone();
            thread::spawn(move || put(&channel, 2))
        };
        assert_eq!(taken(&channel), 1);
        sender.join().unwrap();
        assert_eq!(taken(&channel), 2);
    });
}
