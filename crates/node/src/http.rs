//! The HTTP servers of this thread: for each a reactor, whose descriptor is nested in the thread's loop.
//!
//! A turn begins when the loop finds the descriptor readable. It calls JavaScript once per batch; responses
//! that are written during the call, microtasks included, are taken when it returns. The called JavaScript
//! may call back, and even close the server. Therefore a server is reached by raw pointer, no reference to it
//! or its reactor is alive during a call, and a server that is closed in a turn is freed at its end.

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    io, ptr,
    sync::Arc,
};

use corespun_bridge::{Memory, ticker::Foreground};
use corespun_http::{Constant, Endpoint, Reactor, Region, Settings, Step, error_name, layout::counts};
use napi_sys as sys;

use crate::{
    call,
    js::{Env, Outcome, Thrown, Value, wrong},
    memory,
    uv::{self, Watch},
};

struct Server {
    env: sys::napi_env,
    reactor: Reactor,
    /// The memory of the reactor's regions; dropped after the reactor.
    _regions: [Arc<Memory>; 3],
    watch: Watch,
    handle: sys::napi_ref,
    context: sys::napi_async_context,
    index: usize,
    in_turn: bool,
    is_closing: bool,
    is_ticking: bool,
    _foreground: Foreground,
}

thread_local! {
    /// By number. Only `release` frees them.
    static SERVERS: RefCell<Vec<*mut Server>> = const { RefCell::new(Vec::new()) };
}

fn server(env: Env, value: Value) -> Outcome<*mut Server> {
    let index = env.u32(value)? as usize;
    let found = SERVERS.with_borrow(|servers| servers.get(index).copied());
    found.filter(|server| !server.is_null()).ok_or_else(|| wrong("no such HTTP server"))
}

fn listen_error(error: &io::Error) -> Thrown {
    let name = error_name(error);
    Thrown(name, format!("listen {name}: {error}"))
}

call!(
    open,
    8,
    |env, arguments| {
        let [inbound, out, body] =
            [arguments[1], arguments[2], arguments[3]].map(|view| memory::of(env, view));
        let ((first, inbound), (second, out), (third, body)) = (inbound?, out?, body?);
        // SAFETY: the server holds the memory until it is freed; JavaScript waits while native code runs.
        let [inbound, out, body] = [inbound, out, body].map(|(data, len)| unsafe { Region::new(data, len) });
        let (numbers, host) =
            (env.slice(arguments[4])?, String::from_utf16_lossy(&env.string(arguments[5])?));
        let constants =
            Constant::decode_all(env.slice(arguments[7])?).ok_or_else(|| wrong("constants were cut"))?;
        let reactor = Settings::decode(numbers, &host, env.slice(arguments[6])?, constants)
            .and_then(|settings| Reactor::open(settings, inbound, out, body))
            .map_err(|error| listen_error(&error))?;
        // SAFETY: inside a call.
        unsafe { begin(env, arguments[0], [first, second, third], reactor) }
            .map(|index| env.int(index as i32))
    },
    "httpOpen(call, inbound, out, body, numbers, host, path, constants): listen. Returns the server's number."
);

/// Add a reactor to the thread's loop. Returns the server's number.
///
/// # Safety
///
/// Inside a call from JavaScript; `callback` is a function.
unsafe fn begin(env: Env, callback: Value, regions: [Arc<Memory>; 3], reactor: Reactor) -> Outcome<usize> {
    let (mut uv_loop, mut handle, mut context) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let (mut name, label) = (ptr::null_mut(), c"corespun.http");
    let memory = Box::into_raw(Box::<Server>::new_uninit());
    let server = memory.cast::<Server>();
    // SAFETY: valid environment, values and out pointers; the server is freed after its handles are closed.
    let watch = unsafe {
        sys::napi_get_uv_event_loop(env.0, &raw mut uv_loop);
        Watch::open(uv_loop.cast(), server.cast(), reactor.descriptor(), on_ready)
    };
    let Some(watch) = watch else {
        // SAFETY: made above; nothing was written to it and no other pointer to it exists.
        drop(unsafe { Box::from_raw(memory) });
        return Err(Thrown("EIO", "the event loop refuses the descriptor".into()));
    };
    // SAFETY: as above.
    unsafe {
        sys::napi_create_reference(env.0, callback, 1, &raw mut handle);
        sys::napi_create_string_utf8(env.0, label.as_ptr(), 10, &raw mut name);
        sys::napi_async_init(env.0, ptr::null_mut(), name, &raw mut context);
    }
    let index = SERVERS.with_borrow_mut(|servers| {
        let free = servers.iter().position(|server| server.is_null()).unwrap_or(servers.len());
        if free == servers.len() {
            servers.push(ptr::null_mut());
        }
        servers[free] = server;
        free
    });
    // SAFETY: fresh memory of the right type; the hook is removed before it is freed.
    unsafe {
        server.write(Server {
            env: env.0,
            reactor,
            _regions: regions,
            watch,
            handle,
            context,
            index,
            in_turn: false,
            is_closing: false,
            is_ticking: false,
            _foreground: Foreground::begin(),
        });
        sys::napi_add_env_cleanup_hook(env.0, Some(environment_ends), server.cast());
    }
    Ok(index)
}

unsafe extern "C" fn on_ready(handle: *mut c_void, _: c_int, _: c_int) {
    // SAFETY: libuv calls this on the thread itself while the handle is open; references end with their
    // statements, so that none is alive while JavaScript runs.
    unsafe {
        let server = uv::data_of(handle).cast::<Server>();
        if !crate::js::is_live((*server).env) {
            // JavaScript no longer runs; other members get the accept queue when the server is released.
            return;
        }
        (*server).in_turn = true;
        (*server).reactor.begin();
        while (*server).reactor.advance() == Step::Call {
            let ran = call_back(server);
            (*server).reactor.called(ran);
            if !ran || (*server).is_closing {
                break;
            }
        }
        (*server).in_turn = false;
        if (*server).is_closing {
            destroy(server);
        } else {
            (*server).set_ticking();
        }
    }
}

unsafe extern "C" fn on_tick(handle: *mut c_void) {
    // SAFETY: as in on_ready. The host receives the events of a tick in the next turn.
    unsafe {
        let server = uv::data_of(handle).cast::<Server>();
        if !crate::js::is_live((*server).env) {
            return;
        }
        (*server).reactor.tick();
        (*server).set_ticking();
    }
}

impl Server {
    /// The timer runs only while the reactor needs ticks.
    fn set_ticking(&mut self) {
        let needed = self.reactor.needs_ticks();
        if needed != self.is_ticking {
            self.is_ticking = needed;
            self.watch.tick(needed.then(|| (self.reactor.tick_ms(), on_tick as uv::Callback)));
        }
    }
}

/// Call JavaScript with the batch. False: the environment no longer runs JavaScript.
///
/// # Safety
///
/// `server` belongs to this thread and no reference to it is alive.
unsafe fn call_back(server: *mut Server) -> bool {
    // SAFETY: the fields are copied; none changes while the server exists.
    let (env, handle, context) = unsafe { ((*server).env, (*server).handle, (*server).context) };
    // SAFETY: valid environment, reference and context.
    unsafe { crate::js::call_back(env, handle, context) }
}

/// Free a server with its handles, references and sockets.
///
/// # Safety
///
/// On its thread, outside of its turns, and without later use.
unsafe fn destroy(server: *mut Server) {
    // SAFETY: made by Box in `begin`; the handles are closed before their descriptor.
    unsafe {
        sys::napi_remove_env_cleanup_hook((*server).env, Some(environment_ends), server.cast());
        let mut scope = ptr::null_mut();
        sys::napi_open_handle_scope((*server).env, &raw mut scope);
        sys::napi_delete_reference((*server).env, (*server).handle);
        sys::napi_async_destroy((*server).env, (*server).context);
        sys::napi_close_handle_scope((*server).env, scope);
        release(server);
    }
}

/// The environment ends and frees its references itself.
unsafe extern "C" fn environment_ends(data: *mut c_void) {
    // SAFETY: the hook of a server that was not destroyed; no callback comes after its handles are closed.
    unsafe { release(data.cast()) };
}

unsafe fn release(server: *mut Server) {
    // SAFETY: guaranteed by the callers.
    let server = unsafe { Box::from_raw(server) };
    server.watch.close();
    SERVERS.with_borrow_mut(|servers| servers[server.index] = ptr::null_mut());
}

call!(
    address,
    1,
    |env, arguments| {
        let server = server(env, arguments[0])?;
        // SAFETY: the reference ends with the statement.
        let text = match unsafe { (*server).reactor.endpoint() } {
            Some(Endpoint::Address(address)) => format!("{} {}", address.port(), address.ip()),
            Some(Endpoint::Path(path)) => format!("0 {}", path.display()),
            None => String::new(),
        };
        Ok(env.text(&text.encode_utf16().collect::<Vec<_>>()))
    },
    "httpAddress(server): port and host, or 0 and path."
);

call!(
    flush,
    1,
    |env, arguments| {
        // SAFETY: inside a call; the reference ends with the statement.
        unsafe { (*server(env, arguments[0])?).reactor.flush_responses() };
        Ok(ptr::null_mut())
    },
    "httpFlush(server): take the responses in the out region and send them."
);

call!(
    put,
    1,
    |env, arguments| {
        // SAFETY: as in flush.
        unsafe { (*server(env, arguments[0])?).reactor.put_responses(None) };
        Ok(ptr::null_mut())
    },
    "httpPut(server): take the records; the out region has the bytes that wait for the last one."
);

call!(
    large,
    2,
    |env, arguments| {
        let bytes = env.slice(arguments[1])?;
        // SAFETY: as in flush.
        unsafe { (*server(env, arguments[0])?).reactor.put_responses(Some(bytes)) };
        Ok(ptr::null_mut())
    },
    "httpLarge(server, bytes): like httpPut; `bytes` is the body of the last record."
);

call!(
    pull,
    3,
    |env, arguments| {
        let server = server(env, arguments[0])?;
        let (slot, stamp) = (env.u32(arguments[1])?, env.u32(arguments[2])?);
        // SAFETY: as in flush.
        Ok(env.int(unsafe { (*server).reactor.pull(slot, stamp) }))
    },
    "httpPull(server, slot, stamp): decode the next piece of a body; their number, or a PULL_ result."
);

call!(
    remote,
    3,
    |env, arguments| {
        let server = server(env, arguments[0])?;
        let (slot, stamp) = (env.u32(arguments[1])?, env.u32(arguments[2])?);
        // SAFETY: as in flush.
        let text = unsafe { (*server).reactor.remote(slot, stamp) };
        Ok(env.text(&text.encode_utf16().collect::<Vec<_>>()))
    },
    "httpRemote(server, slot, stamp): the client's address."
);

call!(
    stats,
    2,
    |env, arguments| {
        let server = server(env, arguments[0])?;
        let (data, length) = env.bytes(arguments[1])?;
        // SAFETY: the reference ends with the statement.
        let stats = unsafe { (*server).reactor.stats() };
        if length < counts::NUMBERS * 8 {
            return Err(wrong("httpStats: too short"));
        }
        // SAFETY: at least as long; JavaScript does not touch it during the call.
        unsafe { data.cast::<[f64; counts::NUMBERS]>().write_unaligned(stats.encode()) };
        Ok(ptr::null_mut())
    },
    "httpStats(server, counts): write the ten counts."
);

call!(
    stop,
    2,
    |env, arguments| {
        let (server, grace_ms) = (server(env, arguments[0])?, env.f64(arguments[1])?);
        // SAFETY: as in flush.
        unsafe {
            (*server).reactor.stop(grace_ms as u64);
            (*server).set_ticking();
        }
        Ok(ptr::null_mut())
    },
    "httpStop(server, graceMs): accept nothing more, finish the open exchanges."
);

call!(
    member,
    1,
    |env, arguments| {
        let server = server(env, arguments[0])?;
        // SAFETY: the reference ends with the statement.
        Ok(env.int(unsafe { (*server).reactor.member() } as i32))
    },
    "httpMember(server): the number of this server for httpStalledMs and httpSendAway."
);

call!(
    stalled_ms,
    1,
    |env, arguments| {
        let stalled = corespun_http::stalled_ms(u64::from(env.u32(arguments[0])?));
        Ok(env.int(stalled.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX))))
    },
    "httpStalledMs(member): milliseconds with events and without a turn; -1: it has left."
);

call!(
    send_away,
    2,
    |env, arguments| {
        let member = u64::from(env.u32(arguments[0])?);
        Ok(env.int(i32::from(corespun_http::send_away(member, env.u32(arguments[1])? == 1))))
    },
    "httpSendAway(member, isFinal): others accept instead; isFinal 1: or nobody. Whether it is away."
);

call!(
    close,
    1,
    |env, arguments| {
        let server = server(env, arguments[0])?;
        // SAFETY: freed here unless a turn is going on; then at its end.
        unsafe {
            if (*server).in_turn {
                (*server).is_closing = true;
            } else {
                destroy(server);
            }
        }
        Ok(ptr::null_mut())
    },
    "httpClose(server): close all connections and free the server."
);
