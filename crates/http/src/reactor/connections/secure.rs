//! Connections with TLS: what their sessions come to, and the certificates that they show and ask for.
//!
//! A session receives and sends like a socket (transport.rs); here is only what a socket does not have: a
//! handshake, which may fail, wait for the host, or turn out to be no TLS.

use std::io;

use super::{Connections, refusals::Refused, slots::Session};
use crate::{
    layout::event,
    limits::Refusal,
    reactor::settings::HostEvent,
    tls::{Failure, News, PLAIN_HTTP},
};

impl Connections {
    /// The name for which a connection waits for a certificate; empty: it does not, or is closed.
    pub fn asked_name(&mut self, slot: u32, generation: u32) -> String {
        let session = self.slots.of_event(slot, generation);
        let asked = session.and_then(|session| session.socket.session()?.0.asked().map(str::to_owned));
        asked.unwrap_or_default()
    }

    /// The certificate of an exchange's client, in DER; empty: it has shown none.
    pub fn client_certificate(&mut self, slot: u32, stamp: u32) -> Vec<u8> {
        let session = self.slots.get_mut(slot).filter(|session| session.machine.is_open(stamp));
        let first = session.and_then(|session| {
            session.socket.session()?.0.client_certificates().first().map(|one| one.to_vec())
        });
        first.unwrap_or_default()
    }

    /// After a connection with TLS was read. Returns whether more can be read without an event; `None`: it
    /// turned out to be no TLS, and nothing was read.
    /// An error: its client has disconnected while the host chooses a certificate.
    pub(super) fn after_records(&mut self, slot: u32, session: &mut Session) -> io::Result<Option<bool>> {
        let is_asking = session.socket.session().is_some_and(|(tls, _)| tls.asked().is_some());
        if is_asking && session.is_half_closed {
            return Err(io::ErrorKind::ConnectionAborted.into()); // no handshake ends with its hello
        }
        self.take_news(slot, session);
        let Some((tls, _)) = session.socket.session() else { return Ok(None) };
        let (has_more, has_unsent) = (tls.has_more(), tls.has_unsent());
        if has_unsent {
            session.is_writable = false;
        }
        Ok(Some(has_more))
    }

    /// The time of a handshake is over.
    pub(super) fn handshake_due(&mut self, session: &mut Session) {
        let is_asking = session.socket.session().is_some_and(|(tls, _)| tls.asked().is_some());
        let detail =
            if is_asking { "tls.sni has not chosen a certificate" } else { "the client has not ended it" };
        let reason = "handshake-timeout";
        let refused = Refused { what: "handshake", reason, status: 0, protocol: "TLS", detail };
        self.refuse_session(session, refused);
    }

    fn take_news(&mut self, slot: u32, session: &mut Session) {
        let Some(news) = session.socket.session().and_then(|(tls, _)| tls.take_news()) else { return };
        match news {
            News::Asks => {
                let stamp = self.slots.generation(slot);
                self.host_events.push_back(HostEvent { kind: event::ASKS, slot, stamp });
                return;
            }
            News::Begun(client) => session.machine.set_client(client),
            News::Failed(Failure { reason, detail }) => {
                let refused =
                    Refused { what: "handshake", reason, status: 0, protocol: "TLS", detail: &detail };
                self.refuse_session(session, refused);
                session.machine.stop_reading();
            }
            News::Plain(refusal) => {
                let is_http = refusal == PLAIN_HTTP;
                let (what, reason) =
                    if is_http { ("handshake", "plain-http") } else { ("connection", "proxy-header") };
                let protocol = if is_http { "TLS" } else { "PROXY" };
                let Refusal { status, why: detail } = refusal;
                self.refuse_session(session, Refused { what, reason, status, protocol, detail });
                session.socket.become_plain();
                session.machine.refuse(refusal, b"", &self.heads);
                self.mark_session(slot, session);
            }
        }
        self.beginning -= usize::from(session.is_beginning);
        session.is_beginning = false;
    }
}
