//! The members and sockets of a group: joining, leaving, and opening the first socket. All of it runs under
//! the lock of the table.

use std::{
    io,
    net::SocketAddr,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use super::{Endpoint, Group, Listener, Member, watch};
use crate::{layout::BACKLOG, selector::Shared, sys};

impl Group {
    pub(super) fn is_away(&self, member: u64) -> bool {
        self.away.iter().any(|one| one.id == member)
    }

    pub(super) fn has(&self, member: u64) -> bool {
        self.is_away(member) || self.members.iter().any(|one| one.id == member)
    }

    /// The address of which each member has a socket; `None` if all accept from one.
    const fn balanced(&self) -> Option<SocketAddr> {
        match self.endpoint {
            Endpoint::Address(address) if sys::BALANCES_PORTS => Some(address),
            _ => None,
        }
    }

    /// What a member of this group accepts from.
    pub(super) fn listeners_of(&self, member: u64) -> impl Iterator<Item = &Listener> {
        let is_one = self.balanced().is_none();
        self.listeners.iter().filter(move |listener| is_one || listener.member == member)
    }

    pub(super) fn join(&mut self, member: Member) -> io::Result<()> {
        let (id, selector) = (member.id, &member.selector);
        let Some(address) = self.balanced() else {
            watch(selector, &self.listeners[0].socket)?;
            self.members.push(member);
            return Ok(());
        };
        match self.listeners.iter_mut().find(|listener| listener.is_orphan) {
            Some(orphan) => {
                watch(selector, &orphan.socket)?;
                if let Some(other) = self.members.iter().find(|other| other.id == orphan.member) {
                    other.selector.unwatch(orphan.socket.as_raw_fd());
                }
                (orphan.member, orphan.is_orphan) = (id, false);
            }
            None => {
                let socket = sys::listen_at(address, BACKLOG, true)?;
                watch(selector, &socket)?;
                self.listeners.push(Listener { socket, member: id, is_orphan: false });
            }
        }
        self.members.push(member);
        Ok(())
    }

    /// The member that accepts from the fewest sockets, and its selector.
    fn successor(&self) -> Option<(u64, Arc<Shared>)> {
        let count = |id: u64| self.listeners.iter().filter(|listener| listener.member == id).count();
        let member = self.members.iter().min_by_key(|member| count(member.id))?;
        Some((member.id, Arc::clone(&member.selector)))
    }

    /// Returns whether the group has no members left.
    pub(super) fn leave(&mut self, member: u64) -> bool {
        self.away.retain(|one| one.id != member);
        let Some(index) = self.members.iter().position(|one| one.id == member) else { return false };
        let selector = self.members.swap_remove(index).selector;
        let is_one = self.balanced().is_none();
        if self.members.is_empty()
            && let Some(back) = self.away.pop()
        {
            // A stalled member is better than none.
            back.pulse.is_away.store(false, Ordering::Relaxed);
            if is_one {
                watch(&back.selector, &self.listeners[0].socket).ok();
            }
            self.members.push(back);
        }
        let Some((successor, next)) = self.successor() else { return true };
        for listener in &mut self.listeners {
            if is_one {
                selector.unwatch(listener.socket.as_raw_fd());
            } else if listener.member == member {
                selector.unwatch(listener.socket.as_raw_fd());
                // If that fails, its queue waits until a thread joins and takes the socket over.
                watch(&next, &listener.socket).ok();
                (listener.member, listener.is_orphan) = (successor, true);
            }
        }
        false
    }
}

/// Open the first socket of a group.
pub(super) fn open(endpoint: Endpoint, is_shared: bool) -> io::Result<(OwnedFd, Endpoint)> {
    match endpoint {
        Endpoint::Address(address) => {
            let socket = sys::listen_at(address, BACKLOG, is_shared && sys::BALANCES_PORTS)?;
            let bound = sys::address_of(&socket, false).unwrap_or(address);
            Ok((socket, Endpoint::Address(bound)))
        }
        Endpoint::Path(path) => {
            clear_stale(&path)?;
            let socket = sys::listen_on(path.as_os_str().as_bytes(), BACKLOG)?;
            Ok((socket, Endpoint::Path(path)))
        }
        Endpoint::Inherited(fd) => {
            let socket = sys::duplicate(fd)?;
            sys::prepare_listener(&socket)?;
            Ok((socket, endpoint))
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
