//! What the server refuses by itself, with their reasons, for the host: connections, handshakes, requests
//! before a route, and connections of HTTP/2 that are given up.
//!
//! Records are text, since they are rare, and few: a flood of refusals is counted. The host is notified once
//! until it has taken them.

use std::{fmt::Write as _, net::IpAddr, os::fd::OwnedFd};

use super::{Connections, slots::Session};
use crate::{layout::event, limits::Refusal, reactor::settings::HostEvent, sys};

/// Records that the host gets at once; further ones are only counted.
const RECORDS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Refusals {
    records: String,
    count: usize,
    left_out: u64,
}

impl Refusals {
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A refusal, without who was refused. The host reads it as src/http/core/native/reported-refusals.ts does.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    pub what: &'static str,
    pub reason: &'static str,
    /// The status of the response; 0 without a response.
    pub status: u16,
    pub protocol: &'static str,
    pub detail: &'a str,
}

impl Refused<'static> {
    /// A request of that protocol; the host finds the reason by its status.
    pub const fn request(refusal: &Refusal, protocol: &'static str) -> Self {
        Self { what: "request", reason: "", status: refusal.status, protocol, detail: refusal.why }
    }
}

impl Connections {
    #[cold]
    pub(crate) fn refuse_connection(&mut self, socket: &OwnedFd, reason: &'static str) {
        let client = sys::address_of(socket, true).map(|address| address.ip().to_canonical());
        self.stats.refused += 1;
        self.report(client, Refused { what: "connection", reason, status: 0, protocol: "", detail: "" });
    }

    /// Count and report a refusal of this connection.
    #[cold]
    pub(crate) fn refuse_session(&mut self, session: &Session, refused: Refused<'_>) {
        self.stats.refused += 1;
        self.report(session.machine.client().or_else(|| Some(session.socket.address()?.ip())), refused);
    }

    #[cold]
    fn report(&mut self, client: Option<IpAddr>, refused: Refused<'_>) {
        if self.refusals.is_empty() {
            self.host_events.push_back(HostEvent { kind: event::REFUSED, slot: 0, stamp: 0 });
        }
        if self.refusals.count == RECORDS_MAX {
            self.refusals.left_out += 1;
            return;
        }
        self.refusals.count += 1;
        let Refused { what, reason, status, protocol, detail } = refused;
        let client = client.map_or_else(String::new, |client| client.to_string());
        let detail = detail.replace(['\t', '\n'], " ");
        let line = format_args!("{what}\t{reason}\t{status}\t{protocol}\t{client}\t{detail}\n");
        self.refusals.records.write_fmt(line).ok(); // text in memory has room
    }

    /// The host was notified, and has not taken them.
    pub(crate) fn forget_refusals(&mut self) {
        if self.host_events.is_empty() && !self.refusals.is_empty() {
            self.refusals.clear();
        }
    }

    /// Refusals since the last call: how many were only counted, and a line for each of the others.
    pub fn take_refusals(&mut self) -> String {
        let Refusals { records, left_out, .. } = std::mem::take(&mut self.refusals);
        format!("{left_out}\n{records}")
    }
}
