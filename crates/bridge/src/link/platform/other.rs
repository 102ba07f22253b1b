//! Elsewhere on Unix: a thread waits for the end of the parent's socket, and no bound of memory is of use,
//! since reserved address space counts.

/// End this process when the parent's end of the sockets is closed, even if its threads never return.
pub fn end_with_parent(_: u32) {
    let Some(fd) = super::super::tables::descriptor() else { return };
    let watch = move || {
        let mut socket = libc::pollfd { fd, events: 0, revents: 0 };
        while socket.revents & libc::POLLHUP == 0 {
            // SAFETY: the system reads and writes one entry, which outlives the call.
            unsafe { libc::poll(&raw mut socket, 1, -1) };
        }
        super::end_now();
    };
    // Without it the child ends when its loop next turns.
    _ = std::thread::Builder::new().name("corespun parent".into()).stack_size(1 << 16).spawn(watch);
}

/// Other systems count reserved address space as well, of which V8 has much.
pub const fn limit_memory(_: u64) -> bool {
    false
}
