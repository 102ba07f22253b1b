//! A thread's end of stores and locks: scratch memory of its own, its handles, what it is being told.
//!
//! Apart from the scratch of calls to zones, so that a store can be read while a task's arguments or a batch
//! of results are being read: the hooks of classes are free to do that.

use std::{
    cell::Cell,
    ptr,
    sync::{Arc, LazyLock, atomic::AtomicI64},
};

use napi_sys as sys;
use skein_bridge::{
    Mail, Port,
    layout::{HEADER_BYTES, mail},
};
use skein_store::{
    Bytes, Call, Channel, Fact, Gate, Keeps, Key, KeyRef, Limits, Notify, Parker, Store, Watcher,
};

use crate::{
    buffers::{self, Attached},
    js::{Env, Outcome, Thrown, Value, wrong},
    memory::Memory,
    scratch::Scratch,
    thread_cache::{self, ThreadCache},
};

/// Words that a hot call is given, in the out scratch.
pub const GIVEN: usize = 8;

/// See the module's text.
pub struct Stage {
    env: sys::napi_env,
    /// What JavaScript writes.
    pub out: Scratch,
    /// What it reads.
    pub inbound: Scratch,
    /// The stores this thread has opened, by its own numbers.
    pub stores: Vec<Option<Arc<Store>>>,
    /// The locks and channels.
    pub things: Vec<Option<Arc<Thing>>>,
    /// Keys that JavaScript has numbered, by their numbers.
    pub keys: Vec<Option<Key>>,
    /// Its watches.
    pub watches: Vec<Option<(Arc<Store>, Arc<Watcher>)>>,
    /// A value that did not fit, until it is fetched.
    pub large: Option<Bytes>,
    /// What the value read last refers to.
    pub read_soon: Option<Keeps>,
    /// The same of values that are being read while their hooks read others, innermost last.
    pub held: Vec<Option<Keeps>>,
    /// What the next value to be written refers to.
    pub attachments: Option<Attached>,
    /// The thread's number.
    pub owner: u32,
    /// Where it blocks.
    pub parker: Arc<Parker>,
    mailbox: Arc<Mailbox>,
}

/// What a handle of a lock, a channel or a counter stands for.
pub enum Thing {
    /// A lock, read-write lock or semaphore.
    Gate(Gate),
    /// A channel.
    Channel(Channel),
    /// A counter.
    Counter(AtomicI64),
}

/// Put a thing into the first free place.
pub fn place<T>(places: &mut Vec<Option<T>>, thing: T) -> i32 {
    let free = places.iter().position(Option::is_none).unwrap_or_else(|| {
        places.push(None);
        places.len() - 1
    });
    places[free] = Some(thing);
    free as i32
}

/// The handle, in every thread, on a store that is closed: what a thread has found closed becomes it, and
/// lets its own handle go. The same stands in src/store/opened.ts.
pub const CLOSED_HANDLE: usize = 0;

/// What the first places of a thread's stores hold.
fn first_stores() -> Vec<Option<Arc<Store>>> {
    static CLOSED: LazyLock<Arc<Store>> = LazyLock::new(|| {
        // Without bounds: such stores have the most parts, and who walks over those of a store may find it
        // closed on the way.
        let unlimited = u64::MAX;
        let limits = Limits {
            entries_max: unlimited,
            bytes_max: unlimited,
            value_bytes_max: unlimited,
            ttl_ms: 0,
            evicts: false,
        };
        let store = Store::new(limits, || 1);
        store.close();
        Arc::new(store)
    });
    vec![Some(Arc::clone(&CLOSED))]
}

struct Mailbox(&'static Port);

impl Notify for Mailbox {
    fn notify(&self, ticket: u32, fact: Fact) {
        self.0.send(Mail { kind: mail::SHARED, subject: ticket, facts: [fact as u32, 0] });
    }
}

thread_local! {
    static HERE: Cell<*mut Stage> = const { Cell::new(ptr::null_mut()) };
}

/// The same for hot calls.
static STAGES: ThreadCache<sys::napi_env__, Stage> = ThreadCache::new();

impl Stage {
    /// A wait of this thread, which is told by mail or, if it `blocks`, where it blocks.
    pub fn call(&self, ticket: u32, blocks: bool) -> Call {
        let notify: Arc<dyn Notify> =
            if blocks { Arc::clone(&self.parker) as _ } else { Arc::clone(&self.mailbox) as _ };
        Call { owner: self.owner, ticket, notify }
    }

    /// What the value about to be written refers to.
    pub fn take_attachments(&mut self) -> Option<Keeps> {
        self.attachments.take().map(|attached| Arc::new(attached) as Keeps)
    }

    /// Give bytes to JavaScript in the inbound scratch; those that do not fit wait for `stageLarge`.
    pub fn put_bytes(&mut self, bytes: &[u8]) -> bool {
        // SAFETY: JavaScript waits for the call in progress and keeps no view that it reads across one.
        let memory = unsafe { self.inbound.write() };
        self.inbound.put(LENGTH, bytes.len() as u32);
        let fits = bytes.len() <= memory.len() - HEADER_BYTES;
        if fits {
            memory[HEADER_BYTES..HEADER_BYTES + bytes.len()].copy_from_slice(bytes);
        }
        fits
    }
}

/// Bits of the word of a key that are its length; above them lies its number and one, 0 for none.
const KEY_LENGTH_BITS: u32 = 17;

impl Stage {
    /// The value and the key of a call. A length of 0 stands for the key of that number, for no key is
    /// shorter than one byte; with a length, a number is what the key is to be known by from now on.
    #[inline]
    pub fn value_and_key<'a>(&mut self, given: &[u32; GIVEN]) -> Outcome<(&'a [u8], KeyRef<'a>)> {
        let (key, value) = ((given[1] & ((1 << KEY_LENGTH_BITS) - 1)) as usize, given[2] as usize);
        let number = (given[1] >> KEY_LENGTH_BITS) as usize;
        // SAFETY: JavaScript waits for this call.
        let bytes =
            unsafe { self.out.data(value + key) }.ok_or_else(|| wrong("length beyond the scratch"))?;
        let (value, key) = bytes.split_at(value);
        if number == 0 {
            return Ok((value, KeyRef::new(key)));
        }
        if !key.is_empty() {
            let key = KeyRef::new(key);
            if self.keys.len() < number {
                self.keys.resize(number, None);
            }
            self.keys[number - 1] = Some(key.to_key());
            return Ok((value, key));
        }
        let known = self.keys.get(number - 1).and_then(Option::as_ref).ok_or_else(|| wrong("no such key"))?;
        // SAFETY: known keys are replaced at the beginning of calls only, and this one has begun.
        Ok((value, unsafe { std::mem::transmute::<KeyRef<'_>, KeyRef<'a>>(known.as_ref()) }))
    }
}

/// Word of the inbound scratch: what became of a call.
pub const STATUS: usize = 0;
/// Word of the inbound scratch: bytes that follow the header, or wait.
pub const LENGTH: usize = 1;

/// This thread's stage.
///
/// # Safety
///
/// Called by napi on the thread itself; the reference ends with the call.
#[inline]
pub unsafe fn here<'a>() -> Outcome<&'a mut Stage> {
    // SAFETY: made by open, freed by gone, both on this thread; see above.
    unsafe { HERE.get().as_mut() }.ok_or_else(|| wrong("called before stageOpen"))
}

/// Run `body` with the stage and the words it was given; throw what it fails with.
#[inline]
pub fn hot(env: sys::napi_env, body: impl FnOnce(&mut Stage, [u32; GIVEN]) -> Outcome<()>) -> Value {
    // SAFETY: inside a call from JavaScript; nothing that `body` calls runs JavaScript. What is here lives:
    // gone removes what open has put.
    let stage = match unsafe { STAGES.get(env).as_mut() } {
        Some(stage) => Ok(stage),
        // SAFETY: as above.
        None => unsafe { here() },
    };
    let outcome = stage.and_then(|stage| {
        // One by one: they have just been written one by one, and a wide read of them would wait for that.
        // SAFETY: JavaScript waits for this call.
        let given = std::array::from_fn(|index| unsafe { stage.out.word(index) });
        body(stage, given)
    });
    // SAFETY: JavaScript waits for this call, which is over.
    unsafe { buffers::give_back() };
    match outcome {
        Ok(()) => ptr::null_mut(),
        Err(thrown) => Env(env).throw(&thrown),
    }
}

/// Two words as one number.
#[inline]
pub const fn wide(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Two words as a double.
#[inline]
pub const fn double(low: u32, high: u32) -> f64 {
    f64::from_bits(wide(low, high))
}

/// Run `body` with the arguments of a call and turn its error into an exception.
#[macro_export]
macro_rules! call {
    ($name:ident, $count:literal, |$env:ident, $arguments:ident| $body:block, $doc:literal) => {
        #[doc = $doc]
        pub unsafe extern "C" fn $name(
            env: napi_sys::napi_env,
            info: napi_sys::napi_callback_info,
        ) -> $crate::js::Value {
            let $env = $crate::js::Env(env);
            // SAFETY: napi calls this with its environment and info.
            let $arguments = unsafe { $crate::js::Arguments::<$count>::read($env, info) };
            let run = || -> $crate::js::Outcome<$crate::js::Value> { $body };
            let outcome = run();
            // SAFETY: JavaScript waits for this call, which is over.
            unsafe { $crate::buffers::give_back() };
            match outcome {
                Ok(value) => value,
                Err(thrown) => $env.throw(&thrown),
            }
        }
    };
}

call!(
    memory,
    1,
    |env, arguments| { Memory::buffer(env, env.u32(arguments[0])? as usize) },
    "memoryMake(bytes): an ArrayBuffer of zeroes over memory of the core."
);

call!(
    open,
    2,
    |env, arguments| {
        let port = thread_cache::port().ok_or_else(|| wrong("stageOpen before open"))?;
        let (out, inbound) = (Scratch::of(env, arguments[0])?, Scratch::of(env, arguments[1])?);
        if out.len() < HEADER_BYTES * 2 || inbound.len() < HEADER_BYTES * 2 {
            return Err(wrong("scratch too small"));
        }
        if !HERE.get().is_null() {
            let why = "another copy of skein uses stores or locks in this thread; only one copy can".into();
            return Err(Thrown("NATIVE_SECOND_COPY", why));
        }
        HERE.set(Box::into_raw(Box::new(Stage {
            env: env.0,
            out,
            inbound,
            stores: first_stores(),
            things: Vec::new(),
            keys: Vec::new(),
            watches: Vec::new(),
            large: None,
            read_soon: None,
            held: Vec::new(),
            attachments: None,
            owner: port.number(),
            parker: Arc::default(),
            mailbox: Arc::new(Mailbox(port)),
        })));
        // Of another copy's environment nobody knows here when it ends.
        if thread_cache::is_first(env.0) {
            STAGES.put(env.0, HERE.get());
        }
        Ok(env.undefined())
    },
    "stageOpen(out, inbound): register this thread's scratch memory, after `open`, once."
);

call!(
    attach,
    1,
    |env, arguments| {
        let ids = env.ids(arguments[0])?;
        // SAFETY: inside a call.
        unsafe { here()? }.attachments = Some(Attached::new(ids));
        Ok(env.undefined())
    },
    "stageAttach(ids): the buffers that the next value to be written refers to."
);

call!(
    large,
    0,
    |env, arguments| {
        let _ = &arguments;
        // SAFETY: inside a call.
        let bytes = unsafe { here()? }.large.take().ok_or_else(|| wrong("nothing large"))?;
        env.copy(&bytes)
    },
    "stageLarge(): the value that did not fit."
);

call!(
    hold,
    0,
    |env, arguments| {
        let _ = &arguments;
        // SAFETY: inside a call.
        let stage = unsafe { here()? };
        stage.held.push(stage.read_soon.take());
        Ok(env.undefined())
    },
    "stageHold(): what is read from here on is read within the value read last, which keeps its memory."
);

call!(
    release,
    0,
    |env, arguments| {
        let _ = &arguments;
        // SAFETY: inside a call.
        let stage = unsafe { here()? };
        stage.read_soon = stage.held.pop().flatten();
        Ok(env.undefined())
    },
    "stageRelease(): the end of what stageHold began."
);

call!(
    moves,
    0,
    |env, arguments| {
        let _ = &arguments;
        // SAFETY: inside a call.
        let stage = unsafe { here()? };
        let attached = stage.read_soon.as_deref().and_then(|keeps| keeps.downcast_ref::<Attached>());
        Ok(env.int(i32::from(attached.is_some_and(Attached::moves))))
    },
    "stageMoves(): 1 when the value read last refers to memory that was moved, which can be read once."
);

/// The thread of `port` ends: what its stage holds is let go.
pub fn gone(port: &'static Port) {
    let stage = HERE.get();
    // SAFETY: as in here; the reference ends with the statement.
    let env = unsafe { stage.as_ref() }.filter(|stage| stage.owner == port.number()).map(|stage| stage.env);
    if let Some(env) = env {
        STAGES.remove(env);
        HERE.set(ptr::null_mut());
        // SAFETY: made by Box::into_raw in open; no call is in progress.
        drop(unsafe { Box::from_raw(stage) });
    }
}

impl Env {
    /// The numbers in a Uint8Array over 32-bit words.
    pub fn ids(self, value: Value) -> Outcome<Vec<u32>> {
        let bytes = self.slice(value)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect())
    }

    /// The bytes of a Uint8Array, for the call in progress.
    pub fn slice<'a>(self, value: Value) -> Outcome<&'a [u8]> {
        let (data, length) = self.bytes(value)?;
        // SAFETY: read before JavaScript runs again, as every caller does.
        Ok(if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, length) } })
    }
}
