//! The calls of a state, by the words that JavaScript writes and reads.
//!
//! A scratch is plain memory here, so these run under Miri.

use corespun_bridge::{Memory, layout::HEADER_BYTES};

use super::*;
use crate::{
    layout::{
        Acquire, KEY_LENGTH_BITS, counting, found_double, given, given_double, kind, mode, passed, read,
        wait, written,
    },
    named::Text,
    tests::{Log, OPEN},
};

const BYTES: usize = 4096;

/// A state as JavaScript uses it: words and bytes are written, a call is made, words and bytes are read.
struct Host {
    state: ThreadState,
    memory: [Arc<Memory>; 2],
}

fn host(thread: u32) -> Host {
    let memory = [0; 2].map(|_| Memory::new(BYTES).expect("memory"));
    let [out, inbound] =
        memory.each_ref().map(|memory| Scratch::new(Arc::clone(memory), memory.data(), BYTES).expect("room"));
    Host { state: ThreadState::new(out, inbound, thread, Arc::new(Log::default())), memory }
}

impl Host {
    fn write_words(&self, words: &[(usize, u32)], bytes: &[u8]) {
        let out = self.memory[0].data();
        for &(index, word) in words {
            // SAFETY: within the header; nobody else uses the memory.
            unsafe { out.cast::<u32>().add(index).write(word) };
        }
        // SAFETY: within the memory, as above.
        unsafe { out.add(HEADER_BYTES).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    fn found(&self, index: usize) -> u32 {
        // SAFETY: as in write_words.
        unsafe { self.memory[1].data().cast::<u32>().add(index).read() }
    }

    fn value(&self) -> Vec<u8> {
        let length = self.found(found::LENGTH) as usize;
        // SAFETY: as in write_words.
        unsafe { std::slice::from_raw_parts(self.memory[1].data().add(HEADER_BYTES), length) }.to_vec()
    }

    fn write_key(&self, handle: u32, word: u32, value: &[u8], key: &[u8]) {
        let words = [
            (given::HANDLE, handle),
            (given::KEY, word),
            (given::LENGTH, value.len() as u32),
            (given::MODE, 0),
        ];
        self.write_words(&words, &[value, key].concat());
    }

    fn status(&self, done: Done) -> u32 {
        assert_eq!(done, Ok(()));
        self.found(found::STATUS)
    }

    fn set(&mut self, handle: u32, word: u32, value: &[u8], key: &[u8]) -> u32 {
        self.write_key(handle, word, value, key);
        let done = self.state.set(None);
        self.status(done)
    }

    fn get(&mut self, handle: u32, word: u32, key: &[u8]) -> u32 {
        self.write_key(handle, word, &[], key);
        let done = self.state.find::<{ finds::VALUE }>();
        self.status(done)
    }

    fn open(&mut self, id: &str) -> (u32, u32) {
        let id: Text = id.encode_utf16().collect();
        let number = STORES
            .make(id, Text::default(), Limits { value_bytes_max: u64::MAX, ..OPEN }, None, false)
            .expect("a free name");
        (number, self.state.open_store(number).expect("an open store"))
    }
}

#[test]
fn what_one_thread_writes_another_reads() {
    let (mut one, mut other) = (host(1), host(2));
    let (number, handle) = one.open("state.two");
    let there = other.state.open_store(number).expect("an open store");
    assert_eq!(other.get(there, 3, b"\0ab"), read::ABSENT);
    assert_eq!(one.set(handle, 3, b"value", b"\0ab"), written::DONE);
    assert_eq!((other.get(there, 3, b"\0ab"), other.value()), (read::FOUND, b"value".to_vec()));
    STORES.close(number);
    assert_eq!(other.get(there, 3, b"\0ab"), read::CLOSED);
    assert_eq!(one.set(handle, 3, b"value", b"\0ab"), written::CLOSED);
    assert_eq!(one.get(CLOSED_HANDLE, 3, b"\0ab"), read::CLOSED);
    one.state.drop_store(CLOSED_HANDLE);
    assert_eq!(one.get(CLOSED_HANDLE, 3, b"\0ab"), read::CLOSED, "that handle stays");
}

#[test]
fn a_key_with_a_number_is_known_by_it() {
    let mut host = host(1);
    let (number, handle) = host.open("state.keys");
    let known = 2 << KEY_LENGTH_BITS;
    assert_eq!(host.set(handle, known | 3, b"1", b"\0ab"), written::DONE);
    assert_eq!((host.get(handle, known, b""), host.value()), (read::FOUND, b"1".to_vec()));
    assert_eq!((host.get(handle, 3, b"\0ab"), host.value()), (read::FOUND, b"1".to_vec()));
    host.write_key(handle, 1 << KEY_LENGTH_BITS, &[], &[]);
    assert_eq!(host.state.find::<{ finds::VALUE }>(), Err(Misuse("no such key")));
    assert_eq!(host.set(handle, known | 3, b"2", b"\0cd"), written::DONE, "the number is another key's");
    assert_eq!((host.get(handle, known, b""), host.value()), (read::FOUND, b"2".to_vec()));
    STORES.close(number);
}

#[test]
fn lengths_and_handles_that_do_not_exist_are_refused() {
    let mut host = host(1);
    let (number, handle) = host.open("state.misuse");
    let most = (BYTES - HEADER_BYTES) as u32;
    host.write_words(&[(given::HANDLE, handle), (given::KEY, 1), (given::LENGTH, most)], &[]);
    assert_eq!(host.state.set(None), Err(Misuse("length beyond the scratch")));
    host.write_words(&[(given::LENGTH, u32::MAX)], &[]);
    assert_eq!(host.state.set(None), Err(Misuse("length beyond the scratch")));
    host.write_key(7, 2, &[], b"\0a");
    assert_eq!(host.state.has(), Err(Misuse("no such store")));
    assert_eq!(host.state.semaphore_release(), Err(Misuse("no such object")));
    STORES.close(number);
}

#[test]
fn a_value_beyond_the_scratch_waits_and_what_it_refers_to_is_kept_while_it_is_read() {
    let mut host = host(1);
    let (number, handle) = host.open("state.large");
    let keeps: Keeps = Arc::new("memory");
    host.state.attach(Arc::clone(&keeps));
    host.write_key(handle, 2, &[], b"\0a");
    let done = host.state.set(Some(&[7; BYTES]));
    assert_eq!(host.status(done), written::DONE);
    assert_eq!(Arc::strong_count(&keeps), 2, "the entry's");
    assert_eq!(host.get(handle, 2, b"\0a"), read::LARGE);
    assert_eq!(host.state.take_large().as_deref(), Some(&[7; BYTES][..]));
    host.state.hold();
    assert_eq!(host.set(handle, 2, b"small", b"\0a"), written::DONE);
    assert_eq!((host.get(handle, 2, b"\0a"), Arc::strong_count(&keeps)), (read::FOUND, 2), "the reader's");
    host.state.release();
    assert!(host.state.read_soon().is_some());
    assert_eq!((host.get(handle, 2, b"\0a"), Arc::strong_count(&keeps)), (read::FOUND, 1));
    STORES.close(number);
}

#[test]
fn a_view_of_the_same_version_is_not_written_again() {
    let mut host = host(1);
    let (number, handle) = host.open("state.view");
    assert_eq!(host.set(handle, 2, b"value", b"\0a"), written::DONE);
    assert_eq!(host.get(handle, 2, b"\0a"), read::FOUND);
    let version = [found::VERSION, found::VERSION_HIGH].map(|word| host.found(word));
    host.set(handle, 2, b"other", b"\0b");
    host.get(handle, 2, b"\0b");
    host.write_key(handle, 2, &[], b"\0a");
    host.write_words(
        &[(given::LOOKS, 3), (given::VERSION, version[0]), (given::VERSION_HIGH, version[1])],
        b"\0a",
    );
    let done = host.state.find::<{ finds::VIEW }>();
    assert_eq!((host.status(done), host.value()), (read::FOUND, b"other".to_vec()), "what was there before");
    assert_eq!(host.state.store(handle).map(|store| store.stats().hits), Ok(2 + 1 + 3));
    STORES.close(number);
}

#[test]
fn a_write_that_expects_a_version_meets_it_or_changes_nothing() {
    let mut host = host(1);
    let (number, handle) = host.open("state.expects");
    assert_eq!(host.set(handle, 2, b"1", b"\0a"), written::DONE);
    for expected in [written::CONFLICT, written::DONE] {
        host.get(handle, 2, b"\0a");
        let low = host.found(found::VERSION).wrapping_add(u32::from(expected == written::CONFLICT));
        let high = host.found(found::VERSION_HIGH);
        host.write_key(handle, 2, b"2", b"\0a");
        host.write_words(
            &[(given::MODE, mode::EXPECTS), (given::VERSION, low), (given::VERSION_HIGH, high)],
            b"2",
        );
        let done = host.state.set(None);
        assert_eq!(host.status(done), expected);
    }
    host.write_key(handle, 2, &[], b"\0a");
    let done = host.state.remove();
    assert_eq!((host.status(done), host.found(found::REMOVED)), (written::DONE, 1));
    STORES.close(number);
}

#[test]
fn locks_channels_and_counters_are_called_by_words() {
    let mut host = host(1);
    let [lock, channel, counter] = [(kind::LOCK, 1.0), (kind::CHANNEL, 1.0), (kind::COUNTER, 5.0)]
        .map(|(kind, amount)| SYNC_OBJECTS.make(kind, None, amount).expect("no name"))
        .map(|number| host.state.open_object(number).expect("an object"));
    for status in [Acquire::Granted, Acquire::Busy] {
        host.write_words(&[(given::HANDLE, lock), (given::TICKET, 9), (given::AMOUNT, 1)], &[]);
        let done = host.state.semaphore_try();
        assert_eq!(host.status(done), status as u32);
    }
    host.write_words(&[(given::HANDLE, channel), (given::LENGTH, 2), (given::WAIT, wait::NOT)], b"hi");
    for status in [passed::DONE, passed::NONE] {
        let done = host.state.channel_put(None);
        assert_eq!(host.status(done), status);
    }
    let done = host.state.channel_take();
    assert_eq!((host.status(done), host.value()), (passed::DONE, b"hi".to_vec()));
    let bits = 2_f64.to_bits();
    let operand = given_double::OPERAND * 2;
    let words = [
        (given::HANDLE, counter),
        (given::COUNTING, counting::ADD),
        (operand, bits as u32),
        (operand + 1, (bits >> 32) as u32),
    ];
    host.write_words(&words, &[]);
    for before in [5_f64, 7.0] {
        let done = host.state.count();
        assert_eq!(host.status(done), 0);
        assert_eq!(host.found(found_double::BEFORE * 2 + 1), (before.to_bits() >> 32) as u32);
    }
    assert_eq!(host.state.channel(lock).err(), Some(Misuse("not a channel")));
}
