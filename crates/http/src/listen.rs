//! Listening sockets, which belong to the process and not to a thread.
//!
//! Closing one of several sockets on a port resets the connections in its accept queue. Therefore the sockets
//! of a port form a **group**: a thread that leaves hands its socket to another member, which accepts from it
//! until a thread joins and takes it over. The sockets are closed when the last member leaves. Members share
//! their selectors with the table, under whose lock other threads move sockets between them.
//!
//! A path has one socket, from which all members accept. So has a port where the system does not distribute
//! its connections among several ([`sys::BALANCES_PORTS`]), and a socket that was inherited. That one stays
//! open in the process that has opened it, so its queue outlives the group.
//!
//! A thread that does not return to its loop accepts nothing, while the kernel still assigns connections to
//! its socket. Therefore other threads can ask how long a member has been stalled ([`stalled_ms`]) and send
//! it **away** ([`send_away`]): its sockets and their queues go to another member, as if it had left. It
//! rejoins in its next turn.

mod group;

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    path::PathBuf,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::{selector::Shared, sys};
use group::open;

/// Set in the tokens of listeners; the descriptor is the low half.
pub const TAG: u64 = 1 << 63;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address; port 0 lets the system choose.
    Address(SocketAddr),
    /// The path of a Unix socket.
    Path(PathBuf),
    /// The descriptor of a socket on which another process listens, too: the one that has opened it.
    Inherited(RawFd),
}

impl Endpoint {
    /// The address or the path; `None` for a descriptor that is not that of a socket.
    pub fn bound(&self) -> Option<Self> {
        let Self::Inherited(fd) = *self else { return Some(self.clone()) };
        let socket = sys::duplicate(fd).ok()?;
        let address = sys::address_of(&socket, false).map(Self::Address);
        address.or_else(|| sys::bound_path(&socket).map(|path| Self::Path(PathBuf::from(path))))
    }
}

/// The state of a member's thread as others see it. The fields are independent of each other, so relaxed
/// accesses suffice.
#[derive(Debug, Default)]
pub struct Pulse {
    /// When its last turn began: [`sys::now_ms`].
    turned_ms: AtomicU64,
    /// It is in a turn, or its timer runs.
    is_due: AtomicBool,
    is_away: AtomicBool,
}

impl Pulse {
    /// A turn begins. Returns whether the member has been sent away.
    #[inline]
    pub fn turn(&self, now_ms: u64) -> bool {
        self.turned_ms.store(now_ms, Ordering::Relaxed);
        self.is_due.store(true, Ordering::Relaxed);
        self.is_away.load(Ordering::Relaxed)
    }

    /// The turn is over. `is_due`: a timer starts the next one.
    #[inline]
    pub fn rest(&self, is_due: bool) {
        self.is_due.store(is_due, Ordering::Relaxed);
    }
}

#[derive(Clone)]
struct Member {
    id: u64,
    selector: Arc<Shared>,
    pulse: Arc<Pulse>,
}

/// A member that [`stalled_ms`] can be asked about: until it leaves by itself.
struct Watched {
    member: Member,
    /// When a call first found events that wait for it, and its last turn at that time.
    waits_since: Option<(u64, u64)>,
}

struct Listener {
    socket: OwnedFd,
    /// The member that accepts from it; all members do if it is the only socket.
    member: u64,
    /// Its thread has left: the next member that joins takes it over.
    is_orphan: bool,
}

struct Group {
    endpoint: Endpoint,
    is_shared: bool,
    listeners: Vec<Listener>,
    members: Vec<Member>,
    away: Vec<Member>,
    held_bytes: Arc<AtomicU64>,
}

#[derive(Default)]
struct Table {
    groups: Vec<Group>,
    watched: Vec<Watched>,
    last: u64,
}

impl Table {
    fn register(&mut self, membership: Membership) -> Membership {
        self.watched.push(Watched { member: membership.member.clone(), waits_since: None });
        membership
    }
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread's membership in a group; dropping it leaves the group.
pub struct Membership {
    endpoint: Endpoint,
    member: Member,
    held_bytes: Arc<AtomicU64>,
}

fn watch(selector: &Shared, socket: &OwnedFd) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    selector.watch_listener(fd, TAG | fd as u64)
}

impl Membership {
    /// Listen on `endpoint`.
    /// `EADDRINUSE`: another group uses the endpoint, or this one is not shared.
    pub fn join(endpoint: Endpoint, is_shared: bool, selector: &Arc<Shared>) -> io::Result<Self> {
        let mut table = table();
        table.last += 1;
        let id = table.last;
        let member = Member { id, selector: Arc::clone(selector), pulse: Arc::default() };
        if let Some(group) = table.groups.iter_mut().find(|group| group.endpoint == endpoint) {
            if !(is_shared && group.is_shared) {
                return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
            }
            group.join(member.clone())?;
            let held_bytes = Arc::clone(&group.held_bytes);
            return Ok(table.register(Self { endpoint, member, held_bytes }));
        }
        let (socket, endpoint) = open(endpoint, is_shared)?;
        watch(selector, &socket)?;
        let held_bytes = Arc::default();
        table.groups.push(Group {
            endpoint: endpoint.clone(),
            is_shared,
            listeners: vec![Listener { socket, member: id, is_orphan: false }],
            members: vec![member.clone()],
            away: Vec::new(),
            held_bytes: Arc::clone(&held_bytes),
        });
        Ok(table.register(Self { endpoint, member, held_bytes }))
    }

    /// The number by which any thread can refer to this membership.
    pub const fn member(&self) -> u64 {
        self.member.id
    }

    pub const fn pulse(&self) -> &Arc<Pulse> {
        &self.member.pulse
    }

    /// Bytes of the bodies that all members store for clients that have not read them.
    pub const fn held_bytes(&self) -> &Arc<AtomicU64> {
        &self.held_bytes
    }

    /// Accept again after [`send_away`].
    /// `ENOENT`: the group has been closed.
    pub fn rejoin(&self) -> io::Result<()> {
        let mut table = table();
        let Some(group) = table.groups.iter_mut().find(|group| group.is_away(self.member.id)) else {
            self.pulse().is_away.store(false, Ordering::Relaxed);
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        };
        group.join(self.member.clone())?;
        group.away.retain(|member| member.id != self.member.id);
        self.pulse().is_away.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// The endpoint, with the port that the system has chosen.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether nobody else would accept the connections in the queues.
    pub fn is_last(&self) -> bool {
        if matches!(self.endpoint, Endpoint::Inherited(_)) {
            return false;
        }
        let table = table();
        table.groups.iter().any(|group| group.endpoint == self.endpoint && group.members.len() == 1)
    }

    /// The sockets that this member accepts from.
    pub fn sockets(&self) -> Vec<RawFd> {
        let (table, id) = (table(), self.member.id);
        let own = table.groups.iter().filter(|group| group.members.iter().any(|one| one.id == id));
        own.flat_map(|group| group.listeners_of(id)).map(|listener| listener.socket.as_raw_fd()).collect()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut table = table();
        let id = self.member.id;
        table.watched.retain(|one| one.member.id != id);
        // If its group has been closed, another group may use the endpoint.
        let Some(index) = table.groups.iter().position(|group| group.has(id)) else { return };
        if table.groups[index].leave(id) {
            close(table.groups.swap_remove(index));
        }
    }
}

/// Close the sockets of a group without members.
fn close(group: Group) {
    if let Endpoint::Path(path) = &group.endpoint {
        // The file may have been removed already.
        std::fs::remove_file(path).ok();
    }
}

/// Milliseconds for which a member has had events and not begun a turn; 0 if it runs or has no events, `None`
/// if it has left. The time counts from the first call that finds events waiting.
pub fn stalled_ms(member: u64) -> Option<u64> {
    let mut table = table();
    let found = table.watched.iter_mut().find(|one| one.member.id == member)?;
    let Member { selector, pulse, .. } = &found.member;
    let (now, turned) = (sys::now_ms(), pulse.turned_ms.load(Ordering::Relaxed));
    if pulse.is_due.load(Ordering::Relaxed) {
        found.waits_since = None;
        return Some(now.saturating_sub(turned));
    }
    if !selector.has_events() {
        found.waits_since = None;
        return Some(0);
    }
    match found.waits_since {
        Some((since, before)) if before == turned => Some(now.saturating_sub(since)),
        _ => {
            found.waits_since = Some((now, turned));
            Some(0)
        }
    }
}

/// Hand the sockets of a stalled member to another one. With `is_final` it does not rejoin, and the sockets
/// close if there is no other member. Returns whether it is away.
pub fn send_away(member: u64, is_final: bool) -> bool {
    let mut table = table();
    let Some(index) = table.groups.iter().position(|group| group.has(member)) else { return false };
    let group = &mut table.groups[index];
    let at = group.members.iter().position(|one| one.id == member);
    match at {
        Some(at) if group.members.len() > 1 => {
            let one = group.members[at].clone();
            group.leave(member);
            if !is_final {
                one.pulse.is_away.store(true, Ordering::Relaxed);
                // Without other events its loop would not begin a turn.
                one.selector.wake();
                group.away.push(one);
            }
            true
        }
        Some(_) if is_final => {
            for listener in &group.listeners {
                group.members[0].selector.unwatch(listener.socket.as_raw_fd());
            }
            close(table.groups.swap_remove(index));
            true
        }
        Some(_) => false,
        None => {
            group.away.retain(|one| !(is_final && one.id == member));
            true
        }
    }
}
