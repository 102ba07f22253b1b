//! The members and sockets of a group: joining, leaving, and opening the first socket. All of it runs under
//! the lock of the table.

use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    sync::atomic::Ordering,
};

use super::{Descriptors, Endpoint, Group, Listener, Member, watch};
use crate::sys;

impl Group {
    pub(super) fn is_away(&self, member: u64) -> bool {
        self.away.iter().any(|one| one.id == member)
    }

    pub(super) fn has(&self, member: u64) -> bool {
        self.is_away(member) || self.members.iter().any(|one| one.id == member)
    }

    pub(super) fn join(&mut self, member: Member, backlog: i32) -> io::Result<()> {
        let (id, epoll) = (member.id, member.descriptors.epoll);
        let Endpoint::Address(address) = self.endpoint else {
            watch(epoll, &self.listeners[0].socket)?;
            self.members.push(member);
            return Ok(());
        };
        match self.listeners.iter_mut().find(|listener| listener.is_orphan) {
            Some(orphan) => {
                watch(epoll, &orphan.socket)?;
                if let Some(other) = self.members.iter().find(|other| other.id == orphan.member) {
                    sys::unwatch(other.descriptors.epoll, orphan.socket.as_raw_fd());
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

    /// The member that accepts from the fewest sockets.
    fn successor(&self) -> Option<&Member> {
        let count = |id: u64| self.listeners.iter().filter(|listener| listener.member == id).count();
        self.members.iter().min_by_key(|member| count(member.id))
    }

    /// Returns whether the group has no members left.
    pub(super) fn leave(&mut self, member: u64) -> bool {
        self.away.retain(|one| one.id != member);
        let Some(index) = self.members.iter().position(|one| one.id == member) else { return false };
        let epoll = self.members.swap_remove(index).descriptors.epoll;
        if self.members.is_empty()
            && let Some(back) = self.away.pop()
        {
            // A stalled member is better than none.
            back.pulse.is_away.store(false, Ordering::Relaxed);
            if matches!(self.endpoint, Endpoint::Path(_)) {
                watch(back.descriptors.epoll, &self.listeners[0].socket).ok();
            }
            self.members.push(back);
        }
        let Some(&Member { id: successor, descriptors: Descriptors { epoll: successor_epoll, .. }, .. }) =
            self.successor()
        else {
            return true;
        };
        for listener in &mut self.listeners {
            if matches!(self.endpoint, Endpoint::Path(_)) {
                sys::unwatch(epoll, listener.socket.as_raw_fd());
            } else if listener.member == member {
                sys::unwatch(epoll, listener.socket.as_raw_fd());
                // If that fails, its queue waits until a thread joins and takes the socket over.
                watch(successor_epoll, &listener.socket).ok();
                (listener.member, listener.is_orphan) = (successor, true);
            }
        }
        false
    }
}

/// Open the first socket of a group.
pub(super) fn open(endpoint: Endpoint, is_shared: bool, backlog: i32) -> io::Result<(OwnedFd, Endpoint)> {
    match endpoint {
        Endpoint::Address(address) => {
            let socket = sys::listen_at(address, backlog, is_shared)?;
            let bound = sys::address_of(&socket, false).unwrap_or(address);
            Ok((socket, Endpoint::Address(bound)))
        }
        Endpoint::Path(path) => {
            clear_stale(&path)?;
            let socket = sys::listen_on(path.as_os_str().as_bytes(), backlog)?;
            Ok((socket, Endpoint::Path(path)))
        }
    }
}

/// Remove the socket file of a process that has died, not one that a process listens on.
fn clear_stale(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    // The table is locked, so this must not wait: a full queue shows a listening process, too.
    if is_socket
        && sys::connect_to(path.as_os_str().as_bytes())
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
