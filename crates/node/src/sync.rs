//! Locks, semaphores, channels and counters as JavaScript sees them: one process-wide table, and conversions.
//!
//! Only `syncWait` blocks, and for 10 ms at most: a thread can be ended only between native calls.

use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex, Weak,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use napi_sys as sys;
use skein_store::{Channel, Enter, Gate, Message, Put, Take};

use crate::{
    call,
    js::{Outcome, Value, wrong},
    registry::{self, Text, lock},
    stage::{self, GIVEN, STATUS, Stage, Thing, double, hot, place},
};

/// What a thing is called: its kind and its name.
type Name = (u32, Text);

#[derive(Default)]
struct Things {
    all: HashMap<u32, (Arc<Thing>, Option<Name>)>,
    numbers: HashMap<Name, u32>,
    /// Forgotten, but perhaps still in use: threads that end let go of these too.
    forgotten: Vec<Weak<Thing>>,
}

static THINGS: LazyLock<Mutex<Things>> = LazyLock::new(Mutex::default);

/// Longest time that one call blocks: a thread that is being ended waits for it.
const SLICE_MAX: Duration = Duration::from_millis(10);

/// A thread has ended: what it held is released, what it waits for forgotten.
pub fn owner_gone(owner: u32) {
    let all: Vec<_> = {
        let mut things = lock(&THINGS);
        things.forgotten.retain(|thing| thing.strong_count() > 0);
        let forgotten = things.forgotten.iter().filter_map(Weak::upgrade);
        things.all.values().map(|(thing, _)| Arc::clone(thing)).chain(forgotten).collect()
    };
    for thing in all {
        match &*thing {
            Thing::Gate(gate) => gate.owner_gone(owner),
            Thing::Channel(channel) => channel.owner_gone(owner),
            Thing::Counter(_) => {}
        }
    }
}

#[inline]
fn thing(stage: &Stage, handle: u32) -> Outcome<&Thing> {
    let place = stage.things.get(handle as usize).and_then(Option::as_ref);
    place.map(|thing| &**thing).ok_or_else(|| wrong("no such thing"))
}

#[inline]
fn gate(stage: &Stage, handle: u32) -> Outcome<&Gate> {
    match thing(stage, handle)? {
        Thing::Gate(gate) => Ok(gate),
        _ => Err(wrong("not a gate")),
    }
}

fn channel(stage: &Stage, handle: u32) -> Outcome<&Channel> {
    match thing(stage, handle)? {
        Thing::Channel(channel) => Ok(channel),
        _ => Err(wrong("not a channel")),
    }
}

call!(
    make,
    4,
    |env, arguments| {
        let (kind, amount) = (env.u32(arguments[0])?, env.f64(arguments[2])?);
        let (name, named) = (env.string(arguments[1])?, env.bool(arguments[3])?);
        let name = (kind, name);
        let mut things = lock(&THINGS);
        if let Some(&number) = things.numbers.get(&name).filter(|_| named) {
            return Ok(env.number(f64::from(number)));
        }
        let thing = match kind {
            KIND_CHANNEL => Thing::Channel(Channel::new(amount as usize)),
            KIND_COUNTER => Thing::Counter(AtomicI64::new(amount as i64)),
            _ => Thing::Gate(Gate::new(amount as u32)),
        };
        let number = registry::next_id();
        if named {
            things.numbers.insert(name.clone(), number);
        }
        things.all.insert(number, (Arc::new(thing), named.then_some(name)));
        Ok(env.number(f64::from(number)))
    },
    "syncMake(kind, name, amount, named): the number of the thing with that name, made if there is none."
);

const KIND_CHANNEL: u32 = 4;
const KIND_COUNTER: u32 = 5;

call!(
    open,
    1,
    |env, arguments| {
        let number = env.u32(arguments[0])?;
        let found = lock(&THINGS).all.get(&number).map(|(thing, _)| Arc::clone(thing));
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        Ok(env.int(found.map_or(-1, |thing| place(&mut stage.things, thing))))
    },
    "syncOpen(number): this thread's handle; -1 when there is no such thing."
);

call!(
    drop_handle,
    1,
    |env, arguments| {
        let handle = env.u32(arguments[0])? as usize;
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        if let Some(place) = stage.things.get_mut(handle) {
            *place = None;
        }
        Ok(env.undefined())
    },
    "syncDrop(handle): this thread no longer uses it."
);

call!(
    forget,
    1,
    |env, arguments| {
        let number = env.u32(arguments[0])?;
        let mut things = lock(&THINGS);
        if let Some((thing, name)) = things.all.remove(&number) {
            // Whoever has it may go on with it; without a thread that has, it ends here.
            if Arc::strong_count(&thing) > 1 {
                if things.forgotten.len() == things.forgotten.capacity() {
                    things.forgotten.retain(|thing| thing.strong_count() > 0);
                }
                things.forgotten.push(Arc::downgrade(&thing));
            }
            if let Some(name) = name {
                things.numbers.remove(&name);
            }
        }
        Ok(env.undefined())
    },
    "syncForget(number): nobody else may open it any more; threads that have it keep it."
);

call!(
    count,
    0,
    |env, arguments| {
        let _ = &arguments;
        Ok(env.int(lock(&THINGS).all.len() as i32))
    },
    "syncCount(): things that can be opened; for leak checks."
);

call!(
    amount,
    1,
    |env, arguments| {
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        Ok(env.number(match thing(stage, env.u32(arguments[0])?)? {
            Thing::Gate(gate) => f64::from(gate.permits()),
            Thing::Channel(channel) => channel.messages_max() as f64,
            Thing::Counter(_) => 0.0,
        }))
    },
    "syncAmount(handle): its permits, or the most messages it holds."
);

const fn entered(outcome: Enter) -> u32 {
    match outcome {
        Enter::Granted => 0,
        Enter::Abandoned => 1,
        Enter::Busy => 2,
        Enter::Queued => 3,
        Enter::Own => 4,
    }
}

/// gateTry(): handle, ticket, amount. Status.
pub unsafe extern "C" fn gate_try(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    hot(env, |stage, given| {
        let outcome = gate(stage, given[0])?.try_enter(stage.owner, given[1], given[2]);
        stage.inbound.put(STATUS, entered(outcome));
        Ok(())
    })
}

/// gateLeave(): handle, ticket.
pub unsafe extern "C" fn gate_leave(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    hot(env, |stage, given| {
        gate(stage, given[0])?.leave(stage.owner, given[1]);
        Ok(())
    })
}

call!(
    gate_enter,
    4,
    |env, arguments| {
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        let (ticket, amount, blocks) =
            (env.u32(arguments[1])?, env.u32(arguments[2])?, env.bool(arguments[3])?);
        let outcome = gate(stage, env.u32(arguments[0])?)?.enter(stage.call(ticket, blocks), amount, blocks);
        Ok(env.int(entered(outcome) as i32))
    },
    "gateEnter(handle, ticket, amount, blocks): as gateTry, but stands in line."
);

call!(
    gate_cancel,
    2,
    |env, arguments| {
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        let waited = gate(stage, env.u32(arguments[0])?)?.cancel(stage.owner, env.u32(arguments[1])?);
        Ok(env.int(i32::from(waited)))
    },
    "gateCancel(handle, ticket): leave the line; 0: the permits have come already."
);

call!(
    gate_counts,
    2,
    |env, arguments| {
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        let (free, waiting) = gate(stage, env.u32(arguments[0])?)?.counts();
        let asked = if env.bool(arguments[1])? { waiting as u32 } else { free };
        Ok(env.number(f64::from(asked)))
    },
    "gateCounts(handle, waiting): permits free, or calls that wait."
);

call!(
    wait,
    3,
    |env, arguments| {
        let (ticket, slice) =
            (env.u32(arguments[0])?, Duration::from_secs_f64(env.f64(arguments[1])?.max(0.0) / 1000.0));
        // SAFETY: inside a call.
        let parker = Arc::clone(&unsafe { stage::here()? }.parker);
        let fact = parker.wait(ticket, slice.min(SLICE_MAX), env.bool(arguments[2])?);
        Ok(env.int(fact.map_or(0, |fact| fact as i32)))
    },
    "syncWait(ticket, sliceMs, spins): block until told about the ticket, 10 ms at most; what was told, or 0."
);

call!(
    unwait,
    1,
    |env, arguments| {
        // SAFETY: inside a call.
        let fact = unsafe { stage::here()? }.parker.forget(env.u32(arguments[0])?);
        Ok(env.int(fact.map_or(0, |fact| fact as i32)))
    },
    "syncUnwait(ticket): forget what was told; what it was, or 0."
);

fn put_message(stage: &mut Stage, given: &[u32; GIVEN], bytes: &[u8]) -> Outcome<()> {
    let message = Message { bytes: bytes.into(), keeps: stage.take_attachments() };
    let call = (given[3] != 0).then(|| stage.call(given[1], given[3] == 2));
    let outcome = channel(stage, given[0])?.put(message, call);
    stage.inbound.put(
        STATUS,
        match outcome {
            Put::Done => 0,
            Put::Full => 2,
            Put::Queued => 3,
            Put::Closed => 4,
        },
    );
    Ok(())
}

/// channelPut(): handle, ticket, length, how to wait (0 not, 1 for mail, 2 blocking). Status.
pub unsafe extern "C" fn channel_put(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    hot(env, |stage, given| {
        // SAFETY: JavaScript waits for this call.
        let bytes = unsafe { stage.out.data(given[2] as usize) };
        put_message(stage, &given, bytes.ok_or_else(|| wrong("length beyond the scratch"))?)
    })
}

call!(
    channel_put_large,
    1,
    |env, arguments| {
        let bytes = env.slice(arguments[0])?;
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        // SAFETY: as above.
        let given = unsafe { stage.out.words() };
        put_message(stage, &given, bytes)?;
        Ok(env.undefined())
    },
    "channelPutLarge(bytes): channelPut with bytes of their own memory."
);

fn give(stage: &mut Stage, message: Message) -> u32 {
    stage.read_soon = message.keeps;
    if stage.put_bytes(&message.bytes) {
        return 0;
    }
    stage.large = Some(message.bytes.into());
    1
}

/// channelTake(): handle, ticket, 0, how to wait. Status, length; then the message.
pub unsafe extern "C" fn channel_take(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    hot(env, |stage, given| {
        stage.read_soon = None;
        let call = (given[3] != 0).then(|| stage.call(given[1], given[3] == 2));
        let status = match channel(stage, given[0])?.take(call) {
            Take::Message(message) => give(stage, message),
            Take::Empty => 2,
            Take::Queued => 3,
            Take::Closed => 4,
        };
        stage.inbound.put(STATUS, status);
        Ok(())
    })
}

/// channelFetch(): handle, ticket. Status, length; then the message set aside for a taker.
pub unsafe extern "C" fn channel_fetch(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    hot(env, |stage, given| {
        stage.read_soon = None;
        let status = match channel(stage, given[0])?.fetch(stage.owner, given[1]) {
            Some(message) => give(stage, message),
            None => 2,
        };
        stage.inbound.put(STATUS, status);
        Ok(())
    })
}

call!(
    channel_cancel,
    2,
    |env, arguments| {
        // SAFETY: inside a call.
        let stage = unsafe { stage::here()? };
        let waited = channel(stage, env.u32(arguments[0])?)?.cancel_put(stage.owner, env.u32(arguments[1])?);
        Ok(env.int(i32::from(waited)))
    },
    "channelCancel(handle, ticket): take a message back that waits for room; 0: it is in the queue already."
);

call!(
    channel_close,
    1,
    |env, arguments| {
        // SAFETY: inside a call.
        channel(unsafe { stage::here()? }, env.u32(arguments[0])?)?.close();
        Ok(env.undefined())
    },
    "channelClose(handle): no more messages."
);

call!(
    channel_length,
    1,
    |env, arguments| {
        // SAFETY: inside a call.
        let channel = channel(unsafe { stage::here()? }, env.u32(arguments[0])?)?;
        Ok(env.number(if channel.is_closed() && channel.is_empty() { -1.0 } else { channel.len() as f64 }))
    },
    "channelLength(handle): messages in the queue; -1 when it is closed and empty."
);

/// counterDo(): handle, what to do (0 add, 1 set, 2 set if equal), 0, 0, then two doubles: operand and, for
/// 2, what is expected. Status: 1 when the result would leave the exact integers; in the double at word 6
/// what there was.
pub unsafe extern "C" fn counter_do(env: sys::napi_env, _: sys::napi_callback_info) -> Value {
    hot(env, |stage, given| {
        let Thing::Counter(counter) = thing(stage, given[0])? else { return Err(wrong("not a counter")) };
        let operand = double(given[4], given[5]) as i64;
        let other = double(given[6], given[7]) as i64;
        // Relaxed would do for the count alone; SeqCst lets programs order other things by it.
        let result = match given[1] {
            0 => counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| {
                old.checked_add(operand).filter(|sum| sum.unsigned_abs() <= EXACT_MAX)
            }),
            1 => Ok(counter.swap(operand, Ordering::SeqCst)),
            _ => match counter.compare_exchange(other, operand, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(old) | Err(old) => Ok(old),
            },
        };
        let (status, old) = match result {
            Ok(old) => (0, old),
            Err(old) => (1, old),
        };
        let bits = (old as f64).to_bits();
        stage.inbound.put(STATUS, status);
        stage.inbound.put(6, bits as u32);
        stage.inbound.put(7, (bits >> 32) as u32);
        Ok(())
    })
}

/// JavaScript's largest exact integer.
const EXACT_MAX: u64 = (1 << 53) - 1;
