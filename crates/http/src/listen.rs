//! Listening sockets. They belong to the process and not to a thread.
//!
//! Closing one of several sockets on a port resets the connections that wait in its queue. So the sockets of
//! a port form a **group**: a thread that leaves hands its socket to another, which accepts from it until a
//! thread joins and takes it over; the sockets are closed when the last member leaves. Epoll descriptors of
//! other threads are used under the lock of the table, and a member leaves before its descriptor is closed.

use std::{
    io,
    net::SocketAddr,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
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
    members: Vec<(u64, RawFd)>,
}

#[derive(Debug, Default)]
struct Table {
    groups: Vec<Group>,
    last: u64,
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
}

fn watch(epoll: RawFd, socket: &OwnedFd) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    sys::watch(epoll, fd, libc::EPOLLIN as u32, TAG | fd as u64)
}

impl Seat {
    /// Listen at `place`; its connections are announced by `epoll`.
    ///
    /// # Errors
    ///
    /// What the system says; `EADDRINUSE` when the place is taken, unless both share it: another process may
    /// share an address as well.
    pub fn take(place: Place, is_shared: bool, backlog: i32, epoll: RawFd) -> io::Result<Self> {
        let mut table = table();
        table.last += 1;
        let member = table.last;
        if let Some(group) = table.groups.iter_mut().find(|group| group.place == place) {
            if !(is_shared && group.is_shared) {
                return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
            }
            group.join(member, backlog, epoll)?;
            return Ok(Self { place, member });
        }
        let (socket, place) = open(place, is_shared, backlog)?;
        watch(epoll, &socket)?;
        table.groups.push(Group {
            place: place.clone(),
            is_shared,
            listeners: vec![Listener { socket, member, is_orphan: false }],
            members: vec![(member, epoll)],
        });
        Ok(Self { place, member })
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
        let Some(index) = table.groups.iter().position(|group| group.place == self.place) else { return };
        if table.groups[index].leave(self.member) {
            let group = table.groups.swap_remove(index);
            if let Place::Path(path) = &group.place {
                // A file that is gone already is no loss.
                std::fs::remove_file(path).ok();
            }
        }
    }
}

impl Group {
    fn join(&mut self, member: u64, backlog: i32, epoll: RawFd) -> io::Result<()> {
        let Place::Address(address) = self.place else {
            watch(epoll, &self.listeners[0].socket)?;
            self.members.push((member, epoll));
            return Ok(());
        };
        match self.listeners.iter_mut().find(|listener| listener.is_orphan) {
            Some(orphan) => {
                watch(epoll, &orphan.socket)?;
                if let Some(&(_, other)) = self.members.iter().find(|(id, _)| *id == orphan.member) {
                    sys::unwatch(other, orphan.socket.as_raw_fd());
                }
                (orphan.member, orphan.is_orphan) = (member, false);
            }
            None => {
                let socket = sys::listen_at(address, backlog, true)?;
                watch(epoll, &socket)?;
                self.listeners.push(Listener { socket, member, is_orphan: false });
            }
        }
        self.members.push((member, epoll));
        Ok(())
    }

    /// True: nobody is left.
    fn leave(&mut self, member: u64) -> bool {
        let Some(index) = self.members.iter().position(|(id, _)| *id == member) else { return false };
        let (_, epoll) = self.members.swap_remove(index);
        let Some(&(heir, heirs_epoll)) = self.members.first() else { return true };
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
