//! A session against rustls' own client over datagrams, so that each call of the system receives one record.
//!
//! On a stream several records arrive at once or not, as time will have it.

use std::{
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    sync::Arc,
};

use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use super::{Context, News, Session};

const KEY: &[u8] = include_bytes!("key.der");
const CERTIFICATE: &[u8] = include_bytes!("certificate.der");

/// Trusts every server: what is tested is the session.
#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

struct Client {
    connection: ClientConnection,
    socket: UnixDatagram,
}

impl Client {
    fn new(socket: UnixDatagram) -> Self {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Trusting))
            .with_no_client_auth();
        let name = ServerName::try_from("a.example").unwrap();
        Self { connection: ClientConnection::new(Arc::new(config), name).unwrap(), socket }
    }

    /// Send each record that is due in a datagram of its own.
    fn send(&mut self) {
        let mut bytes = Vec::new();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while let [_, _, _, high, low, ..] = *rest {
            let (record, after) = rest.split_at(5 + usize::from(u16::from_be_bytes([high, low])));
            self.socket.send(record).unwrap();
            rest = after;
        }
    }

    fn receive(&mut self) {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count) = self.socket.recv(&mut bytes) {
            let mut rest = &bytes[..count];
            while !rest.is_empty() {
                self.connection.read_tls(&mut rest).unwrap();
                self.connection.process_new_packets().unwrap();
            }
        }
    }
}

fn context() -> Arc<Context> {
    let number = |count: usize| (count as u32).to_le_bytes().to_vec();
    let blob = |bytes: &[u8]| [&number(bytes.len())[..], bytes].concat();
    let one = [blob(KEY), number(1), blob(b"a.example"), number(1), blob(CERTIFICATE)].concat();
    // Flags, protocols, authorities, credentials.
    Arc::new(Context::new(&[number(0), number(0), number(0), number(1), one].concat()).unwrap())
}

fn pair() -> (Client, Session, OwnedFd) {
    let (near, far) = UnixDatagram::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    (Client::new(near), Session::new(context(), false).unwrap(), far.into())
}

#[test]
fn records_behind_the_handshake_are_read_in_the_same_call() {
    let (mut client, mut session, socket) = pair();
    let mut buffer = [0; 1000];
    client.send();
    assert!(session.receive(&socket, &mut buffer).is_err(), "the handshake has begun");
    client.receive();
    client.connection.writer().write_all(b"first").unwrap();
    client.connection.writer().flush().unwrap();
    client.connection.writer().write_all(b" and second").unwrap();
    client.send();
    let mut received = Vec::new();
    while let Ok(bytes) = session.receive(&socket, &mut buffer) {
        received.extend_from_slice(&buffer[..bytes]);
    }
    assert_eq!(received, b"first and second");
    assert!(matches!(session.take_news(), Some(News::Begun(None))));
    assert_eq!(session.send(&socket, [b"result", b""]).unwrap(), 6);
    client.receive();
    let mut result = [0; 6];
    client.connection.reader().read_exact(&mut result).unwrap();
    assert_eq!(&result, b"result");
}
