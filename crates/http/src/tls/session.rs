//! TLS of one connection: `receive` and `send` behave like those of a socket, with plaintext.
//!
//! Over 400 lines: both directions share the connection, its buffers and what waits in them.
//!
//! An idle session has no buffer: what is received and encrypted is in memory of the thread. Kept is only a
//! part of a record, plaintext that its reader had no room for, and ciphertext that the kernel has not taken.
//! The bytes of such ciphertext count as sent when the kernel has all of it: until then `send` returns
//! `WouldBlock`, and its caller passes the same bytes again. Therefore what waits to be sent, its limits and
//! its deadlines are those of a connection without TLS.

use std::{cell::RefCell, io, mem, net::IpAddr, os::fd::OwnedFd, sync::Arc};

use rustls::{
    Error, PeerIncompatible,
    pki_types::CertificateDer,
    server::UnbufferedServerConnection,
    unbuffered::{ConnectionState, EncodeError, UnbufferedStatus},
};

use super::context::{Context, TlsError, take_asked};
use crate::{limits::Refusal, proxy, sys};

/// Most bytes that wait for the rest of their message: a client's hello, its certificates, or a record.
const UNPROCESSED_BYTES_MAX: usize = 20 * 1024;
/// Bytes received at once: two records.
const RECEIVED_BYTES: usize = 36 * 1024;
/// Times that one call receives. Records may contain padding alone, and others have their turn, too.
const RECEIVES_MAX: usize = 4;
/// Bytes of a record, and more than any cipher adds to them.
const RECORD_BYTES: usize = 16 * 1024;
const RECORD_BYTES_MORE: usize = 64;
/// Bytes encrypted at once.
const SENT_BYTES: usize = 4 * RECORD_BYTES;
/// Bytes of ciphertext that a client may cause without reading it, such as responses to its key updates.
const UNSENT_BYTES_MAX: usize = 256 * 1024;

/// Memory of the thread for one call: none is in use between two.
#[derive(Default)]
struct Scratch {
    received: Vec<u8>,
    encrypted: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// What a session has come to, beyond bytes.
pub enum News {
    /// The handshake is complete; a proxy has stated this client before it.
    Begun(Option<IpAddr>),
    /// The host has to choose a certificate for [`Session::asked`].
    Asks,
    /// It cannot begin; the alert is sent.
    Failed(Failure),
    /// It is no TLS. This is what a client without TLS understands.
    Plain(Refusal),
}

/// Why a handshake has failed.
pub struct Failure {
    pub reason: &'static str,
    pub detail: String,
}

impl Failure {
    fn of(error: &Error) -> Self {
        let reason = match error {
            Error::AlertReceived(_) => "client-alert",
            Error::InvalidCertificate(_) => "client-certificate",
            Error::NoCertificatesPresented => "no-client-certificate",
            Error::NoApplicationProtocol => "no-common-protocol",
            Error::PeerIncompatible(
                PeerIncompatible::NoCipherSuitesInCommon
                | PeerIncompatible::NoKxGroupsInCommon
                | PeerIncompatible::NoSignatureSchemesInCommon,
            ) => "no-common-cipher",
            Error::PeerIncompatible(_) => "tls-version",
            Error::InvalidMessage(_) | Error::DecryptError | Error::PeerSentOversizedRecord => "malformed",
            _ => "handshake",
        };
        let text = error.to_string();
        // What openssl x509 -req makes unless it has extensions to add.
        let is_version = text.contains("UnsupportedCertVersion");
        let detail = if is_version { "X.509 version 1; 3 is required".into() } else { text };
        Self { reason, detail }
    }
}

/// The response to HTTP where TLS is expected.
pub const PLAIN_HTTP: Refusal = Refusal::bad("this port serves https: begin with TLS");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A header of the PROXY protocol comes first.
    Proxy,
    /// Nothing has been processed.
    Unused,
    /// The host is asked for a certificate.
    Asking,
    Handshake,
    Open,
    Failed,
}

/// TLS of one connection.
pub struct Session {
    context: Arc<Context>,
    connection: Box<UnbufferedServerConnection>,
    stage: Stage,
    /// What was received and not processed.
    received: Vec<u8>,
    /// What was decrypted and not read.
    plain: Vec<u8>,
    /// Ciphertext that the kernel has not taken.
    unsent: Vec<u8>,
    /// Bytes of `send` in it, which count as sent when it has been.
    owed: usize,
    /// The client sends nothing more.
    is_ended: bool,
    /// The last call has not received all that the socket has.
    is_cut_short: bool,
    client: Option<IpAddr>,
    /// The name for which the host is asked.
    asked: Option<String>,
    news: Option<News>,
}

impl Session {
    pub fn new(context: Arc<Context>, is_proxied: bool) -> Result<Self, Error> {
        let connection = Box::new(UnbufferedServerConnection::new(Arc::clone(&context.config))?);
        Ok(Self {
            context,
            connection,
            stage: if is_proxied { Stage::Proxy } else { Stage::Unused },
            received: Vec::new(),
            plain: Vec::new(),
            unsent: Vec::new(),
            owed: 0,
            is_ended: false,
            is_cut_short: false,
            client: None,
            asked: None,
            news: None,
        })
    }

    /// What has happened since the last call.
    pub fn take_news(&mut self) -> Option<News> {
        self.news.take()
    }

    pub fn is_http2(&self) -> bool {
        self.connection.alpn_protocol() == Some(b"h2")
    }

    /// Whether plaintext, or the client's end, can be read without an event of the socket.
    pub fn has_more(&self) -> bool {
        !self.plain.is_empty() || self.is_ended || self.is_cut_short
    }

    /// Bytes of plaintext that wait to be read.
    pub fn plain_bytes(&self) -> usize {
        self.plain.len()
    }

    /// Whether ciphertext waits for the kernel.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The client's certificate and its chain, in DER.
    pub fn client_certificates(&self) -> &[CertificateDer<'static>] {
        self.connection.peer_certificates().unwrap_or_default()
    }

    /// Read plaintext; 0 at the client's end. What else arrives is handled meanwhile. `Interrupted`: nothing
    /// so far, and there may be more.
    pub fn receive(&mut self, socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = self.take_plain(buffer);
        let mut count = 0;
        self.is_cut_short = false;
        while filled < buffer.len() && !self.is_ended {
            if count == RECEIVES_MAX {
                self.is_cut_short = true;
                return if filled > 0 { Ok(filled) } else { Err(io::ErrorKind::Interrupted.into()) };
            }
            count += 1;
            let more = SCRATCH.with_borrow_mut(|scratch| {
                self.receive_once(socket, &mut scratch.received, &mut buffer[filled..])
            });
            match more {
                Ok(bytes) => filled += bytes,
                Err(error) if filled > 0 => {
                    self.is_ended |= !is_soon(&error); // nothing follows, and the socket reports it once
                    return Ok(filled);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn take_plain(&mut self, buffer: &mut [u8]) -> usize {
        let bytes = self.plain.len().min(buffer.len());
        if bytes > 0 {
            buffer[..bytes].copy_from_slice(&self.plain[..bytes]);
            self.plain.drain(..bytes);
            if self.plain.is_empty() {
                self.plain = Vec::new();
            }
        }
        bytes
    }

    fn receive_once(
        &mut self,
        socket: &OwnedFd,
        memory: &mut Vec<u8>,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        if matches!(self.stage, Stage::Asking | Stage::Failed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let kept = self.received.len();
        memory.resize(memory.len().max(kept + RECEIVED_BYTES), 0);
        memory[..kept].copy_from_slice(&self.received);
        let bytes = sys::receive(socket, &mut memory[kept..kept + RECEIVED_BYTES])?;
        self.is_ended = bytes == 0;
        self.process(socket, &mut memory[..kept + bytes], buffer)
    }

    /// Handle what was received; returns the bytes of plaintext in `buffer`.
    fn process(&mut self, socket: &OwnedFd, received: &mut [u8], buffer: &mut [u8]) -> io::Result<usize> {
        let mut at = 0;
        if self.stage == Stage::Proxy {
            match proxy::parse(received, UNPROCESSED_BYTES_MAX) {
                Ok(proxy::Parsed::Partial) => {
                    self.received = received.to_vec();
                    return Ok(0);
                }
                Ok(proxy::Parsed::Whole { bytes, client }) => (at, self.client) = (bytes, client),
                Err(refusal) => self.news = Some(News::Plain(refusal)),
            }
            self.stage = Stage::Unused;
        }
        if self.stage == Stage::Unused && self.news.is_none() && is_plain_http(&received[at..]) {
            self.news = Some(News::Plain(PLAIN_HTTP));
        }
        if matches!(self.news, Some(News::Plain(_))) {
            self.stage = Stage::Failed;
            return Ok(0);
        }
        if self.stage == Stage::Unused && received.len() > at {
            self.stage = Stage::Handshake;
        }
        let mut filled = 0;
        let (used, result) = self.process_records(&mut received[at..], buffer, &mut filled);
        if result.is_err()
            && let Some(name) = take_asked()
        {
            return self.ask(name, &received[at..]).map(|()| 0);
        }
        let rest = &received[at + used..];
        if rest.len() <= UNPROCESSED_BYTES_MAX {
            self.received = rest.to_vec(); // without bytes, without memory
        }
        let is_long = rest.len() > UNPROCESSED_BYTES_MAX;
        // Otherwise `send` does.
        if self.owed == 0
            && let Err(error) = self.flush(socket)
            && !is_soon(&error)
        {
            return Err(error);
        }
        if let Err(error) = result {
            return self.fail(Failure::of(&error));
        }
        if is_long || self.unsent.len() > UNSENT_BYTES_MAX {
            return self.fail(Failure { reason: "malformed", detail: "a message is too long".into() });
        }
        if self.stage == Stage::Handshake && !self.connection.is_handshaking() {
            self.stage = Stage::Open;
            self.news = Some(News::Begun(self.client));
        }
        Ok(filled)
    }

    /// Returns the bytes used.
    fn process_records(
        &mut self,
        received: &mut [u8],
        buffer: &mut [u8],
        filled: &mut usize,
    ) -> (usize, Result<(), Error>) {
        let (mut used, mut failed) = (0, None);
        loop {
            let UnbufferedStatus { discard, state, .. } =
                self.connection.process_tls_records(&mut received[used..]);
            let goes_on = match state {
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(Ok(record)) = records.next_record() {
                        let (now, later) =
                            record.payload.split_at(record.payload.len().min(buffer.len() - *filled));
                        buffer[*filled..*filled + now.len()].copy_from_slice(now);
                        *filled += now.len();
                        self.plain.extend_from_slice(later);
                    }
                    true
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let at = self.unsent.len();
                    if let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut []) {
                        self.unsent.resize(at + size.required_size, 0);
                        data.encode(&mut self.unsent[at..]).is_ok()
                    } else {
                        false
                    }
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done(); // `flush` does
                    true
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.is_ended = true;
                    true
                }
                Ok(_) => false,
                // Once more, for the alert.
                Err(error) => failed.replace(error).is_none(),
            };
            used += discard;
            if !goes_on {
                return (used, failed.map_or(Ok(()), Err));
            }
        }
    }

    /// The certificate depends on the host. The handshake begins anew when it has chosen.
    fn ask(&mut self, name: String, hello: &[u8]) -> io::Result<()> {
        self.connection = new_connection(&self.context)?;
        self.received = hello.to_vec();
        self.unsent = Vec::new();
        self.stage = Stage::Asking;
        self.asked = Some(name);
        self.news = Some(News::Asks);
        Ok(())
    }

    /// The name for which the host has to choose a certificate.
    pub fn asked(&self) -> Option<&str> {
        self.asked.as_deref()
    }

    /// The host has chosen; empty: no certificate of its own.
    /// With a choice that cannot be used the handshake fails.
    pub fn choose(&mut self, socket: &OwnedFd, chosen: &[u8]) -> Result<(), TlsError> {
        let Some(name) = self.asked.take() else { return Ok(()) };
        let chosen = self.context.choose(&name, chosen);
        self.stage = Stage::Handshake;
        let mut hello = mem::take(&mut self.received);
        // A handshake has no plaintext before the client has replied to this one.
        if chosen.is_err() || self.process(socket, &mut hello, &mut []).is_err() {
            self.stage = Stage::Failed;
            let detail = "tls.sni has chosen none that can be used".into();
            self.news = Some(News::Failed(Failure { reason: "certificate-choice", detail }));
        }
        chosen
    }

    fn fail(&mut self, failure: Failure) -> io::Result<usize> {
        if self.stage == Stage::Open {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.stage = Stage::Failed;
        self.news = Some(News::Failed(failure));
        Ok(0)
    }

    /// Send the bytes of `parts`, as far as the kernel takes all of their ciphertext. Those that were not
    /// reported as sent are passed again.
    pub fn send(&mut self, socket: &OwnedFd, parts: [&[u8]; 2]) -> io::Result<usize> {
        self.flush(socket)?;
        let mut sent = mem::take(&mut self.owed);
        let total = parts[0].len() + parts[1].len();
        while sent < total {
            let bytes = SCRATCH.with_borrow_mut(|scratch| {
                let (bytes, encrypted) = self.encrypt(parts, sent, &mut scratch.encrypted)?;
                let taken = match sys::send(socket, encrypted) {
                    Ok(taken) => taken,
                    Err(error) if is_soon(&error) => 0,
                    Err(error) => return Err(error),
                };
                if taken < encrypted.len() {
                    self.unsent.extend_from_slice(&encrypted[taken..]);
                    self.owed = bytes;
                }
                Ok(bytes)
            })?;
            if self.owed > 0 {
                break;
            }
            sent += bytes;
        }
        if sent == 0 && total > 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(sent) }
    }

    /// Bytes that were passed before and have been sent since: their caller need not read them again.
    pub fn send_owed(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        self.flush(socket)?;
        Ok(mem::take(&mut self.owed))
    }

    /// Encrypt what follows the first `from` bytes, a bounded number. Returns that and the ciphertext.
    fn encrypt<'a>(
        &mut self,
        [first, second]: [&[u8]; 2],
        from: usize,
        memory: &'a mut Vec<u8>,
    ) -> io::Result<(usize, &'a [u8])> {
        memory.resize(memory.len().max(SENT_BYTES + 8 * RECORD_BYTES_MORE), 0);
        let (mut bytes, mut at) = (0, 0);
        while bytes + RECORD_BYTES <= SENT_BYTES {
            let begin = from + bytes;
            let piece = match first.get(begin..) {
                Some(rest) if !rest.is_empty() => rest,
                _ => &second[(begin - first.len()).min(second.len())..],
            };
            let piece = &piece[..piece.len().min(RECORD_BYTES)];
            if piece.is_empty() {
                break;
            }
            let UnbufferedStatus { state, .. } = self.connection.process_tls_records(&mut []);
            match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    at += traffic.encrypt(piece, &mut memory[at..]).map_err(io::Error::other)?;
                    bytes += piece.len();
                }
                // New keys, which rustls announces by itself.
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    at += data.encode(&mut memory[at..]).map_err(io::Error::other)?;
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                _ => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
        Ok((bytes, &memory[..at]))
    }

    /// Pass the kernel what waits. `WouldBlock`: it has not taken all.
    pub fn flush(&mut self, socket: &OwnedFd) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let taken = sys::send(socket, &self.unsent)?;
            self.unsent.drain(..taken);
        }
        if self.unsent.capacity() > 0 {
            self.unsent = Vec::new();
        }
        Ok(())
    }

    /// Announce the end: without it, a response and a part of it look the same.
    pub fn close(&mut self, socket: &OwnedFd) {
        if self.stage != Stage::Open || self.flush(socket).is_err() {
            return;
        }
        let mut alert = [0; RECORD_BYTES_MORE];
        let UnbufferedStatus { state, .. } = self.connection.process_tls_records(&mut []);
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = state
            && let Ok(bytes) = traffic.queue_close_notify(&mut alert)
        {
            sys::send(socket, &alert[..bytes]).ok(); // a client that has disconnected misses nothing
        }
    }
}

fn new_connection(context: &Context) -> io::Result<Box<UnbufferedServerConnection>> {
    UnbufferedServerConnection::new(Arc::clone(&context.config)).map(Box::new).map_err(io::Error::other)
}

/// Methods begin with a capital letter, records of TLS with a small number.
fn is_plain_http(received: &[u8]) -> bool {
    received.first().is_some_and(u8::is_ascii_uppercase)
}

fn is_soon(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
