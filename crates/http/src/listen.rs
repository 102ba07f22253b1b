//! Listening sockets. They belong to the process and not to a thread.
//!
//! Closing one of several sockets on a port resets the connections that wait in its queue. So the sockets of
//! a port form a **group**: a thread that leaves hands its socket to another, which accepts from it until a
//! thread joins and takes it over; the sockets are closed when the last member leaves. Epoll descriptors of
//! other threads are used under the lock of the table, and a member leaves before its descriptor is closed.
//!
//! A thread that does not return to its loop accepts nothing, while the kernel goes on giving its socket a
//! share of the connections. So others can see for how long a member has not turned ([`stalled_ms`]) and send
//! it **away** ([`send_away`]): its sockets go to another member, with what waits in their queues, as if it
//! had left. It comes back by itself in its next turn.

use std::{
    io,
    net::SocketAddr,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::sys;

/// Set in the data of an epoll event that is about a listener; the descriptor is the low half.
pub const TAG: u64 = 1 << 63;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An address; port 0 lets the system choose.
    Address(SocketAddr),
    /// A path of the file system.
    Path(PathBuf),
}

/// What a member's thread shows of itself. Each field is one word that stands for itself alone, so relaxed
/// accesses suffice.
#[derive(Debug, Default)]
pub struct Pulse {
    /// When its last turn began, on the reactors' clock.
    turned_ms: AtomicU64,
    /// It is in a turn, or has a timer that turns soon.
    is_due: AtomicBool,
    /// It was sent away.
    is_away: AtomicBool,
}

impl Pulse {
    /// A turn begins. True: it was sent away meanwhile.
    #[inline]
    pub fn turn(&self, now_ms: u64) -> bool {
        self.turned_ms.store(now_ms, Ordering::Relaxed);
        self.is_due.store(true, Ordering::Relaxed);
        self.is_away.load(Ordering::Relaxed)
    }

    /// The turn is over; the next one comes by itself, or when there is something to do.
    #[inline]
    pub fn rest(&self, is_due: bool) {
        self.is_due.store(is_due, Ordering::Relaxed);
    }
}

/// The descriptors of a member: what it watches sockets with, and what wakes it.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    /// Its epoll descriptor.
    pub epoll: RawFd,
    /// Its bell, which that watches.
    pub bell: RawFd,
}

#[derive(Debug)]
struct Member {
    id: u64,
    links: Links,
    pulse: Arc<Pulse>,
}

/// A member as others see it, until it leaves by itself.
#[derive(Debug)]
struct Watched {
    id: u64,
    epoll: RawFd,
    pulse: Arc<Pulse>,
    /// Since when it has something to do and has not turned, as far as anybody looked; its last turn then.
    waits_since: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Listener {
    socket: OwnedFd,
    /// Who accepts from it; on a path everybody does.
    member: u64,
    /// Its thread has left: who joins next takes it.
    is_orphan: bool,
}

#[derive(Debug)]
struct Group {
    place: Place,
    is_shared: bool,
    listeners: Vec<Listener>,
    members: Vec<Member>,
    /// Members that were sent away.
    away: Vec<Member>,
}

#[derive(Debug, Default)]
struct Table {
    groups: Vec<Group>,
    watched: Vec<Watched>,
    last: u64,
}

impl Table {
    /// Whoever has taken a seat can be watched.
    fn seat(&mut self, seat: Seat) -> Seat {
        let (id, epoll, pulse) = (seat.member, seat.links.epoll, Arc::clone(&seat.pulse));
        self.watched.push(Watched { id, epoll, pulse, waits_since: None });
        seat
    }
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread's membership; leaves when dropped.
#[derive(Debug)]
pub struct Seat {
    place: Place,
    member: u64,
    backlog: i32,
    links: Links,
    pulse: Arc<Pulse>,
}

fn watch(epoll: RawFd, socket: &OwnedFd) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    sys::watch(epoll, fd, libc::EPOLLIN as u32, TAG | fd as u64)
}

impl Seat {
    /// Listen at `place`; its connections are announced by the epoll descriptor of `links`.
    ///
    /// # Errors
    ///
    /// What the system says; `EADDRINUSE` when the place is taken, unless both share it: another process may
    /// share an address as well.
    pub fn take(place: Place, is_shared: bool, backlog: i32, links: Links) -> io::Result<Self> {
        let mut table = table();
        table.last += 1;
        let id = table.last;
        let pulse = Arc::new(Pulse::default());
        let member = Member { id, links, pulse: Arc::clone(&pulse) };
        if let Some(group) = table.groups.iter_mut().find(|group| group.place == place) {
            if !(is_shared && group.is_shared) {
                return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
            }
            group.join(member, backlog)?;
            return Ok(table.seat(Self { place, member: id, backlog, links, pulse }));
        }
        let (socket, place) = open(place, is_shared, backlog)?;
        watch(links.epoll, &socket)?;
        table.groups.push(Group {
            place: place.clone(),
            is_shared,
            listeners: vec![Listener { socket, member: id, is_orphan: false }],
            members: vec![member],
            away: Vec::new(),
        });
        Ok(table.seat(Self { place, member: id, backlog, links, pulse }))
    }

    /// The number of this membership, by which any thread can ask about it.
    pub const fn member(&self) -> u64 {
        self.member
    }

    /// What this thread shows of itself.
    pub const fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// Accept again after being sent away.
    ///
    /// # Errors
    ///
    /// What the system says to another socket; `ENOENT` when the group has been closed.
    pub fn come_back(&self) -> io::Result<()> {
        let mut table = table();
        let Some(group) = table.groups.iter_mut().find(|group| group.is_away(self.member)) else {
            self.pulse.is_away.store(false, Ordering::Relaxed);
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        };
        let (id, links, pulse) = (self.member, self.links, Arc::clone(&self.pulse));
        group.join(Member { id, links, pulse }, self.backlog)?;
        group.away.retain(|member| member.id != id);
        self.pulse.is_away.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Where it listens, with the port that the system chose.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Whether nobody else would accept what waits in the queues.
    pub fn is_last(&self) -> bool {
        let table = table();
        table.groups.iter().any(|group| group.place == self.place && group.members.len() == 1)
    }

    /// The sockets that this member accepts from.
    pub fn sockets(&self) -> Vec<RawFd> {
        let table = table();
        let own = table.groups.iter().filter(|group| group.place == self.place);
        own.flat_map(|group| &group.listeners)
            .filter(|listener| listener.member == self.member)
            .map(|listener| listener.socket.as_raw_fd())
            .collect()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = table();
        table.watched.retain(|one| one.id != self.member);
        // Another group may listen there by now, if this one has been closed.
        let Some(index) = table.groups.iter().position(|group| group.has(self.member)) else { return };
        if table.groups[index].leave(self.member) {
            close(table.groups.swap_remove(index));
        }
    }
}

/// Nobody is left: the sockets close.
fn close(group: Group) {
    if let Place::Path(path) = &group.place {
        // A file that is gone already is no loss.
        std::fs::remove_file(path).ok();
    }
}

/// For how long a member has had something to do and has not turned, ms. 0: it turns, or has nothing to do.
/// `None`: it has left. What came while nobody looked counts from this look on.
pub fn stalled_ms(member: u64) -> Option<u64> {
    let mut table = table();
    let found = table.watched.iter_mut().find(|one| one.id == member)?;
    let (now, turned) = (sys::now_ms(), found.pulse.turned_ms.load(Ordering::Relaxed));
    if found.pulse.is_due.load(Ordering::Relaxed) {
        found.waits_since = None;
        return Some(now.saturating_sub(turned));
    }
    if !sys::is_readable(found.epoll) {
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

/// Have another member accept what a stalled one would. With `is_over` it does not come back, and nobody else
/// has to be there: then the sockets close. Whether it is away.
pub fn send_away(member: u64, is_over: bool) -> bool {
    let mut table = table();
    let Some(index) = table.groups.iter().position(|group| group.has(member)) else { return false };
    let group = &mut table.groups[index];
    let at = group.members.iter().position(|one| one.id == member);
    match at {
        Some(at) if group.members.len() > 1 => {
            let Member { id, links, pulse, .. } = &group.members[at];
            let (id, links, pulse) = (*id, *links, Arc::clone(pulse));
            group.leave(member);
            if !is_over {
                pulse.is_away.store(true, Ordering::Relaxed);
                // It may have nothing else to do when it returns to its loop.
                sys::ring_at(links.bell);
                group.away.push(Member { id, links, pulse });
            }
            true
        }
        Some(_) if is_over => {
            for listener in &group.listeners {
                sys::unwatch(group.members[0].links.epoll, listener.socket.as_raw_fd());
            }
            close(table.groups.swap_remove(index));
            true
        }
        Some(_) => false,
        None => {
            group.away.retain(|one| !(is_over && one.id == member));
            true
        }
    }
}

impl Group {
    fn is_away(&self, member: u64) -> bool {
        self.away.iter().any(|one| one.id == member)
    }

    fn has(&self, member: u64) -> bool {
        self.is_away(member) || self.members.iter().any(|one| one.id == member)
    }

    fn join(&mut self, member: Member, backlog: i32) -> io::Result<()> {
        let (id, epoll) = (member.id, member.links.epoll);
        let Place::Address(address) = self.place else {
            watch(epoll, &self.listeners[0].socket)?;
            self.members.push(member);
            return Ok(());
        };
        match self.listeners.iter_mut().find(|listener| listener.is_orphan) {
            Some(orphan) => {
                watch(epoll, &orphan.socket)?;
                if let Some(other) = self.members.iter().find(|other| other.id == orphan.member) {
                    sys::unwatch(other.links.epoll, orphan.socket.as_raw_fd());
                }
                (orphan.member, orphan.is_orphan) = (id, false);
            }
            None => {
                let socket = sys::listen_at(address, backlog, true)?;
                watch(epoll, &socket)?;
                self.listeners.push(Listener { socket, member: id, is_orphan: false });
            }
        }
        self.members.push(member);
        Ok(())
    }

    /// Who accepts from the fewest sockets.
    fn heir(&self) -> Option<&Member> {
        let count = |id: u64| self.listeners.iter().filter(|listener| listener.member == id).count();
        self.members.iter().min_by_key(|member| count(member.id))
    }

    /// True: nobody is left.
    fn leave(&mut self, member: u64) -> bool {
        self.away.retain(|one| one.id != member);
        let Some(index) = self.members.iter().position(|one| one.id == member) else { return false };
        let epoll = self.members.swap_remove(index).links.epoll;
        if self.members.is_empty()
            && let Some(back) = self.away.pop()
        {
            // Late is better than never.
            back.pulse.is_away.store(false, Ordering::Relaxed);
            if matches!(self.place, Place::Path(_)) {
                watch(back.links.epoll, &self.listeners[0].socket).ok();
            }
            self.members.push(back);
        }
        let Some(&Member { id: heir, links: Links { epoll: heirs_epoll, .. }, .. }) = self.heir() else {
            return true;
        };
        for listener in &mut self.listeners {
            if matches!(self.place, Place::Path(_)) {
                sys::unwatch(epoll, listener.socket.as_raw_fd());
            } else if listener.member == member {
                sys::unwatch(epoll, listener.socket.as_raw_fd());
                // A failure leaves the queue until a thread joins and takes it over.
                watch(heirs_epoll, &listener.socket).ok();
                (listener.member, listener.is_orphan) = (heir, true);
            }
        }
        false
    }
}

/// Open the first socket of a group.
fn open(place: Place, is_shared: bool, backlog: i32) -> io::Result<(OwnedFd, Place)> {
    match place {
        Place::Address(address) => {
            let socket = sys::listen_at(address, backlog, is_shared)?;
            let bound = sys::address_of(&socket, false).unwrap_or(address);
            Ok((socket, Place::Address(bound)))
        }
        Place::Path(path) => {
            clear_stale(&path)?;
            let socket = sys::listen_on(path.as_os_str().as_bytes(), backlog)?;
            Ok((socket, Place::Path(path)))
        }
    }
}

/// Remove the socket that a process left behind when it died; leave one that somebody answers.
fn clear_stale(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    // Not waited for, with the table locked: a full queue is a sign of life too.
    if is_socket
        && sys::connect_to(path.as_os_str().as_bytes())
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
