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
use corespun_http::{Constant, Endpoint, FilePath, Reactor, Region, Settings, Step, TlsError, error_name};
use napi_sys as sys;

use crate::{
    exports,
    js::{self, Call, Callee, Env, Function, Outcome, Parameter, Thrown, put_numbers, wrong},
    uv::{self, Watch},
};

pub const FUNCTIONS: &[(&str, Function)] = exports! {
    http_open, http_address, http_flush, http_put, http_large, http_pull, http_remote, http_stats,
    http_constants, http_stop, http_take, http_member, http_stalled_ms, http_send_away, http_close,
    http_find_file, http_file, http_trailers, http_tls, http_asked_name, http_choose, http_client_certificate,
    http_refusals,
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

/// A server of this thread, by its number.
struct Pointer(*mut Server);

impl Parameter for Pointer {
    fn take(call: &mut Call) -> Outcome<Self> {
        let index = u32::take(call)? as usize;
        let found = SERVERS.with_borrow(|servers| servers.get(index).copied());
        found.filter(|server| !server.is_null()).map(Self).ok_or_else(|| wrong("no such HTTP server"))
    }
}

impl Pointer {
    /// Run `body`, which does not call JavaScript, with the server.
    fn with<R>(&self, body: impl FnOnce(&mut Server) -> R) -> R {
        // SAFETY: only `release` frees it, on this thread; no other reference is alive during this call from
        // JavaScript.
        body(unsafe { &mut *self.0 })
    }
}

fn listen_error(error: &io::Error) -> Thrown {
    let name = error_name(error);
    Thrown(name, format!("listen {name}: {error}"))
}

/// A stretch of memory and its owner.
type Kept = (Arc<Memory>, Region);

/// Listen. Returns the server's number.
#[expect(clippy::too_many_arguments, reason = "native/core.ts is the only caller and packs them")]
fn http_open(
    env: Env,
    call: Callee,
    inbound: Kept,
    out: Kept,
    body: Kept,
    numbers: &[u8],
    host: String,
    path: &[u8],
    constants: &[u8],
) -> Outcome<u32> {
    let constants = Constant::decode_all(constants).ok_or_else(|| wrong("constants were cut"))?;
    let reactor = Settings::decode(numbers, &host, path, constants)
        .and_then(|settings| Reactor::open(settings, inbound.1, out.1, body.1))
        .map_err(|error| listen_error(&error))?;
    // SAFETY: inside a call.
    unsafe { begin(env, call, [inbound.0, out.0, body.0], reactor) }
}

/// Add a reactor to the thread's loop. Returns the server's number.
///
/// # Safety
///
/// Inside a call from JavaScript.
unsafe fn begin(env: Env, callback: Callee, regions: [Arc<Memory>; 3], reactor: Reactor) -> Outcome<u32> {
    let mut uv_loop = ptr::null_mut();
    let memory = Box::into_raw(Box::<Server>::new_uninit());
    let server = memory.cast::<Server>();
    // SAFETY: valid environment, values and out pointers; the server is freed after its handles are closed.
    let watch = unsafe {
        sys::napi_get_uv_event_loop(env.0, &raw mut uv_loop);
        Watch::open(uv_loop.cast(), server.cast(), reactor.arrivals.descriptor(), on_ready)
    };
    let Some(watch) = watch else {
        // SAFETY: made above; nothing was written to it and no other pointer to it exists.
        drop(unsafe { Box::from_raw(memory) });
        return Err(Thrown("EIO", "the event loop refuses the descriptor".into()));
    };
    // SAFETY: guaranteed by the caller.
    let (handle, context) = unsafe { js::callback(env, callback, c"corespun.http") };
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
    Ok(index as u32)
}

unsafe extern "C" fn on_ready(handle: *mut c_void, _: c_int, _: c_int) {
    // SAFETY: libuv calls this on the thread itself while the handle is open; references end with their
    // statements, so that none is alive while JavaScript runs.
    unsafe {
        let server = uv::data_of(handle).cast::<Server>();
        if !js::is_live((*server).env) {
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
        if !js::is_live((*server).env) {
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
            self.watch.tick(needed.then(|| (self.reactor.connections.tick_ms(), on_tick as uv::Callback)));
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
    unsafe { js::call_back(env, handle, context) }
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

/// Port and host, or 0 and path.
fn http_address(server: Pointer) -> String {
    server.with(|server| match server.reactor.arrivals.endpoint().and_then(Endpoint::bound) {
        Some(Endpoint::Address(address)) => format!("{} {}", address.port(), address.ip()),
        Some(Endpoint::Path(path)) => format!("0 {}", path.display()),
        _ => String::new(),
    })
}

/// Take the responses in the out region and send them.
fn http_flush(server: Pointer) {
    server.with(|server| server.reactor.flush_responses());
}

/// Take the records; the out region has the bytes that wait for the last one.
fn http_put(server: Pointer) {
    server.with(|server| server.reactor.put_responses(None));
}

/// Like httpPut; `bytes` is the body of the last record.
fn http_large(server: Pointer, bytes: &[u8]) {
    server.with(|server| server.reactor.put_responses(Some(bytes)));
}

/// Find a file for a response; writes its numbers. 0: no file there may be read.
fn http_find_file(
    server: Pointer,
    folder: String,
    path: String,
    index: String,
    numbers: &mut [u8],
) -> Outcome<bool> {
    let path = FilePath { folder: &folder, path: &path, index: &index };
    match server.with(|server| server.reactor.find_file(&path)) {
        Ok(Some(found)) => put_numbers(numbers, &found).map(|()| true),
        Ok(None) => Ok(false),
        Err(error) => {
            let name = error_name(&error);
            Err(Thrown(name, format!("{name}: cannot open {folder}/{}: {error}", path.path)))
        }
    }
}

/// Like httpPut; the body of the last record is a part of a file, whose number is in `file`.
fn http_file(server: Pointer, file: u64, start: u64, bytes: u64) {
    server.with(|server| server.reactor.put_file(file, start, bytes));
}

/// Connections begin with TLS from now on, with these certificates.
fn http_tls(server: Pointer, settings: &[u8]) -> Outcome<()> {
    server.with(|server| server.reactor.set_tls(settings)).map_err(|error| tls_error(&error))
}

/// The name for which a connection waits for a certificate.
fn http_asked_name(server: Pointer, slot: u32, generation: u32) -> String {
    server.with(|server| server.reactor.connections.asked_name(slot, generation))
}

/// The certificate for that name; empty: none of its own.
fn http_choose(server: Pointer, slot: u32, generation: u32, chosen: &[u8]) -> Outcome<()> {
    server.with(|server| server.reactor.choose(slot, generation, chosen)).map_err(|error| tls_error(&error))
}

/// Refusals since the last call, as text.
fn http_refusals(server: Pointer) -> String {
    server.with(|server| server.reactor.connections.take_refusals())
}

/// The certificate of a client, in DER; empty: it has shown none.
fn http_client_certificate(server: Pointer, slot: u32, stamp: u32) -> Vec<u8> {
    server.with(|server| server.reactor.connections.client_certificate(slot, stamp))
}

fn tls_error(error: &TlsError) -> Thrown {
    Thrown("ETLS", error.to_string())
}

/// Decode the next piece of a body; their number, or a PULL_ result.
fn http_pull(server: Pointer, slot: u32, stamp: u32) -> i32 {
    server.with(|server| server.reactor.pull(slot, stamp))
}

/// Copy a message of the batch that is not in the inbound region.
fn http_take(server: Pointer, number: u32, bytes: &mut [u8]) -> bool {
    server.with(|server| server.reactor.batches.take_gathered(number, bytes))
}

/// The client's port and address.
fn http_remote(server: Pointer, slot: u32, stamp: u32) -> String {
    server.with(|server| server.reactor.connections.remote(slot, stamp))
}

/// The trailers of a body that has ended, as their lines.
fn http_trailers(server: Pointer, slot: u32, stamp: u32) -> String {
    server.with(|server| server.reactor.connections.trailers(slot, stamp))
}

/// Write the eleven counts.
fn http_stats(server: Pointer, counts: &mut [u8]) -> Outcome<()> {
    put_numbers(counts, &server.with(|server| server.reactor.stats()).encode())
}

/// Of each constant response as float64: how often it was sent, and how often to HEAD in place of GET.
fn http_constants(server: Pointer) -> Vec<f64> {
    server.with(|server| server.reactor.constant_counts())
}

/// Accept nothing more, finish the open exchanges.
fn http_stop(server: Pointer, grace_ms: f64) {
    server.with(|server| {
        server.reactor.stop(grace_ms as u64);
        server.set_ticking();
    });
}

/// The number of this server for httpStalledMs and httpSendAway.
fn http_member(server: Pointer) -> u32 {
    server.with(|server| server.reactor.arrivals.member() as u32)
}

/// Milliseconds with events and without a turn; -1: it has left.
fn http_stalled_ms(member: u32) -> i32 {
    corespun_http::stalled_ms(u64::from(member)).map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX))
}

/// Others accept instead; `is_final` 1: or nobody. Whether it is away.
fn http_send_away(member: u32, is_final: u32) -> bool {
    corespun_http::send_away(u64::from(member), is_final == 1)
}

/// Close all connections and free the server: at the end of its turn, if one is going on.
fn http_close(server: Pointer) {
    if server.with(|server| {
        server.is_closing = server.in_turn;
        !server.in_turn
    }) {
        // SAFETY: on its thread, and not in a turn.
        unsafe { destroy(server.0) };
    }
}
