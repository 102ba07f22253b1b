//! HTTP servers of this thread: a reactor each, whose descriptor is nested in the thread's loop.
//!
//! A turn begins when the loop finds the descriptor readable. It calls JavaScript once per batch; answers
//! that are written meanwhile, microtasks included, are taken when the call returns. JavaScript that is
//! called may call back, even close the server: so a server is reached by raw pointer, no reference to it or
//! its reactor lives across a call, and one that is closed in the middle of a turn is freed at its end.

use std::{
    cell::RefCell,
    ffi::{OsString, c_int, c_void},
    io,
    os::unix::ffi::OsStringExt,
    path::PathBuf,
    ptr,
    sync::Arc,
};

use corespun_bridge::{Memory, ticker::Foreground};
use corespun_http::{
    Limits, Reactor, Settings, Step,
    constants::Constant,
    layout::{HEADER_BYTES_MAX, counts, opening},
    reactor::{self, Place},
    region::Region,
};
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
    /// What the reactor's regions lie in; behind it, so that it goes after it.
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
    /// By their numbers. Freed by `destroy` only.
    static SERVERS: RefCell<Vec<*mut Server>> = const { RefCell::new(Vec::new()) };
}

/// The server with that number.
fn server(env: Env, value: Value) -> Outcome<*mut Server> {
    let index = env.u32(value)? as usize;
    let found = SERVERS.with_borrow(|servers| servers.get(index).copied());
    found.filter(|server| !server.is_null()).ok_or_else(|| wrong("no such HTTP server"))
}

/// A system's error by its name.
fn named(error: &io::Error) -> Thrown {
    let name = match error.raw_os_error() {
        Some(libc::EADDRINUSE) => "EADDRINUSE",
        Some(libc::EACCES) => "EACCES",
        Some(libc::EADDRNOTAVAIL) => "EADDRNOTAVAIL",
        Some(libc::EINVAL) => "EINVAL",
        Some(libc::EMFILE) => "EMFILE",
        Some(libc::ENFILE) => "ENFILE",
        Some(libc::ENOENT) => "ENOENT",
        Some(libc::ENOTDIR) => "ENOTDIR",
        Some(libc::EROFS) => "EROFS",
        Some(libc::ENAMETOOLONG) => "ENAMETOOLONG",
        Some(libc::EAFNOSUPPORT) => "EAFNOSUPPORT",
        _ => "EIO",
    };
    Thrown(name, format!("listen {name}: {error}"))
}

fn settings(env: Env, numbers: Value, texts: [Value; 2], constants: Value) -> Outcome<Settings> {
    let bytes = env.slice(numbers)?.as_chunks::<8>().0;
    // A double becomes the nearest integer, too large ones the largest.
    let number = |index: usize| bytes.get(index).map_or(0, |bytes| f64::from_ne_bytes(*bytes) as u64);
    let size = |index| usize::try_from(number(index)).unwrap_or(usize::MAX);
    let limits = Limits {
        header_bytes_max: size(opening::HEADER_BYTES_MAX).min(HEADER_BYTES_MAX),
        headers_max: size(opening::HEADERS_MAX),
        target_bytes_max: size(opening::TARGET_BYTES_MAX),
        body_bytes_max: number(opening::BODY_BYTES_MAX),
        idle_ms: number(opening::IDLE_MS),
        headers_ms: number(opening::HEADERS_MS),
        body_ms: number(opening::BODY_MS),
        connections_max: size(opening::CONNECTIONS_MAX),
        requests_per_connection_max: u32::try_from(number(opening::REQUESTS_PER_CONNECTION_MAX))
            .unwrap_or(u32::MAX),
        pipeline_max: size(opening::PIPELINE_MAX).max(1),
        out_bytes_max: size(opening::OUT_BYTES_MAX),
        linger_ms: number(opening::LINGER_MS),
        out_bytes_total_max: number(opening::OUT_BYTES_TOTAL_MAX),
    };
    let host = String::from_utf16_lossy(&env.string(texts[0])?);
    let path = env.slice(texts[1])?;
    let path = (!path.is_empty()).then(|| PathBuf::from(OsString::from_vec(path.to_vec())));
    let place = Settings::place(&host, number(opening::PORT) as u16, path).map_err(|error| named(&error))?;
    Ok(Settings {
        place,
        is_shared: number(opening::IS_SHARED) != 0,
        backlog: i32::try_from(number(opening::BACKLOG)).unwrap_or(i32::MAX),
        limits,
        constants: constants_of(env.slice(constants)?)?,
    })
}

/// Constants one after the other: five words (bytes of method, path, lines and body, and the status), then
/// those.
fn constants_of(mut bytes: &[u8]) -> Outcome<Vec<Constant>> {
    let mut constants = Vec::new();
    let cut = || wrong("constants were cut");
    while !bytes.is_empty() {
        let (words, rest) = bytes.split_first_chunk::<20>().ok_or_else(cut)?;
        let [method, path, lines, body, status]: [usize; 5] = std::array::from_fn(|index| {
            let word = &words.as_chunks::<4>().0[index];
            u32::from_ne_bytes(*word) as usize
        });
        bytes = rest;
        let mut take = |length: usize| -> Outcome<Vec<u8>> {
            let (part, rest) = bytes.split_at_checked(length).ok_or_else(cut)?;
            bytes = rest;
            Ok(part.to_vec())
        };
        let (method, path, headers, body) = (take(method)?, take(path)?, take(lines)?, take(body)?);
        constants.push(Constant { method, path, status: status as u16, headers, body });
    }
    Ok(constants)
}

call!(
    open,
    8,
    |env, arguments| {
        let [inbound, out, body] =
            [arguments[1], arguments[2], arguments[3]].map(|view| memory::of(env, view));
        let ((first, inbound), (second, out), (third, body)) = (inbound?, out?, body?);
        // SAFETY: the server keeps the memory until it is gone; JavaScript waits while native code runs.
        let [inbound, out, body] = [inbound, out, body].map(|(data, len)| unsafe { Region::new(data, len) });
        let settings = settings(env, arguments[4], [arguments[5], arguments[6]], arguments[7])?;
        let reactor = Reactor::open(settings, inbound, out, body).map_err(|error| named(&error))?;
        // SAFETY: inside a call.
        unsafe { begin(env, arguments[0], [first, second, third], reactor) }
            .map(|index| env.int(index as i32))
    },
    "httpOpen(call, inbound, out, body, numbers, host, path, constants): listen. Returns the server's number."
);

/// Put a reactor into the thread's loop.
///
/// # Safety
///
/// Inside a call from JavaScript; `callback` is a function.
unsafe fn begin(env: Env, callback: Value, regions: [Arc<Memory>; 3], reactor: Reactor) -> Outcome<usize> {
    let (mut uv_loop, mut handle, mut context) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let (mut name, label) = (ptr::null_mut(), c"corespun.http");
    let memory = Box::into_raw(Box::<Server>::new_uninit());
    let server = memory.cast::<Server>();
    // SAFETY: valid environment, values and out pointers; the server lives until its handles are closed.
    let watch = unsafe {
        sys::napi_get_uv_event_loop(env.0, &raw mut uv_loop);
        Watch::open(uv_loop.cast(), server.cast(), reactor.descriptor(), on_ready)
    };
    let Some(watch) = watch else {
        // SAFETY: made above; nothing was written to it and nobody knows it.
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
        let free = servers.iter().position(|place| place.is_null()).unwrap_or(servers.len());
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

/// The loop found the descriptor readable: a turn.
unsafe extern "C" fn on_ready(handle: *mut c_void, _: c_int, _: c_int) {
    // SAFETY: libuv calls this on the thread itself while the handle is open; references end with their
    // statements, so that none is alive while JavaScript runs.
    unsafe {
        let server = uv::data_of(handle).cast::<Server>();
        if !crate::js::is_live((*server).env) {
            // Nobody would answer what it accepted; the others get its queue when it is released.
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
    // SAFETY: as in on_ready. What a tick finds to tell is told in the next turn.
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
    /// The clock runs while there is somebody to wait for.
    fn set_ticking(&mut self) {
        let needed = self.reactor.needs_ticks();
        if needed != self.is_ticking {
            self.is_ticking = needed;
            self.watch.tick(needed.then(|| (self.reactor.tick_ms(), on_tick as uv::Callback)));
        }
    }
}

/// Call JavaScript with the batch. False: the environment can no longer run it.
///
/// # Safety
///
/// `server` is this thread's and no reference to it is alive.
unsafe fn call_back(server: *mut Server) -> bool {
    // SAFETY: the fields are copied out; none changes during the server's life.
    let (env, handle, context) = unsafe { ((*server).env, (*server).handle, (*server).context) };
    // SAFETY: valid environment, reference and context.
    unsafe { crate::js::call_back(env, handle, context) }
}

/// Free a server: its handles, what it refers to, its sockets.
///
/// # Safety
///
/// On its thread, no turn of it is going on, and nobody uses it afterwards.
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

/// The environment ends, and takes its references with it.
unsafe extern "C" fn environment_ends(data: *mut c_void) {
    // SAFETY: the hook of a server that was not destroyed; no callback comes after its handles are closed.
    unsafe { release(data.cast()) };
}

unsafe fn release(server: *mut Server) {
    // SAFETY: see the callers.
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
        let text = match unsafe { (*server).reactor.place() } {
            Some(Place::Address(address)) => format!("{} {}", address.port(), address.ip()),
            Some(Place::Path(path)) => format!("0 {}", path.display()),
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
        unsafe { (*server(env, arguments[0])?).reactor.flush_answers() };
        Ok(ptr::null_mut())
    },
    "httpFlush(server): take the answers in the out region and send them."
);

call!(
    put,
    1,
    |env, arguments| {
        // SAFETY: as in flush.
        unsafe { (*server(env, arguments[0])?).reactor.put_answers(None) };
        Ok(ptr::null_mut())
    },
    "httpPut(server): take the records; what waits on the connection of the last is found in the region."
);

call!(
    large,
    2,
    |env, arguments| {
        let bytes = env.slice(arguments[1])?;
        // SAFETY: as in flush.
        unsafe { (*server(env, arguments[0])?).reactor.put_answers(Some(bytes)) };
        Ok(ptr::null_mut())
    },
    "httpLarge(server, bytes): the same; the bytes are the last one's body."
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
    "httpPull(server, slot, stamp): the body's next bytes, in the body region: how many, or why none."
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
        let put = |index: usize, number: u64| {
            // SAFETY: within the array, which JavaScript does not touch during the call.
            unsafe { data.cast::<f64>().add(index).write_unaligned(number as f64) };
        };
        put(counts::CONNECTIONS, stats.connections);
        put(counts::CONNECTIONS_TOTAL, stats.connections_total);
        put(counts::REQUESTS, stats.requests);
        put(counts::CONSTANTS, stats.constants);
        put(counts::REFUSED, stats.refused);
        put(counts::ABORTED, stats.aborted);
        put(counts::BYTES_IN, stats.bytes_in);
        put(counts::BYTES_OUT, stats.bytes_out);
        put(counts::CUT, stats.cut);
        put(counts::HELD_BYTES, stats.held_bytes);
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
    "httpStop(server, graceMs): accept no more, finish what was accepted."
);

call!(
    member,
    1,
    |env, arguments| {
        let server = server(env, arguments[0])?;
        // SAFETY: the reference ends with the statement.
        Ok(env.int(unsafe { (*server).reactor.member() } as i32))
    },
    "httpMember(server): the number by which any thread asks about this one."
);

call!(
    stalled_ms,
    1,
    |env, arguments| {
        let stalled = reactor::stalled_ms(u64::from(env.u32(arguments[0])?));
        Ok(env.int(stalled.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX))))
    },
    "httpStalledMs(member): for how long it has not turned though there is something to do; -1: it has left."
);

call!(
    send_away,
    2,
    |env, arguments| {
        let member = u64::from(env.u32(arguments[0])?);
        Ok(env.int(i32::from(reactor::send_away(member, env.u32(arguments[1])? == 1))))
    },
    "httpSendAway(member, isOver): others accept in its place; isOver 1: nobody has to. Whether it is away."
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
    "httpClose(server): cut what is left and free it."
);
