//! What the host passes: certificates and keys in DER, which it has read and checked, and their names.
//!
//! A sequence of words and blobs (a word and that many bytes). A cut sequence is refused as a whole.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Bits of the first word.
pub mod flag {
    /// TLS 1.2 is refused.
    pub const ONLY_13: u32 = 1;
    /// Clients are asked for certificates.
    pub const ASKS_CLIENTS: u32 = 2;
    /// Clients without one are refused.
    pub const REFUSES_OTHERS: u32 = 4;
    /// The host chooses certificates for names that the list does not have.
    pub const ASKS_HOST: u32 = 8;
}

/// One certificate with its chain and key.
pub struct Credentials {
    pub key: PrivateKeyDer<'static>,
    pub chain: Vec<CertificateDer<'static>>,
    /// Names of hosts, in lower case; a leading `*` is for one label.
    pub names: Vec<String>,
}

/// The settings of a server.
pub struct Settings {
    pub flags: u32,
    pub protocols: Vec<Vec<u8>>,
    /// Certificates that sign those of clients.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The first is that of clients that send no name, or one that nothing else has.
    pub credentials: Vec<Credentials>,
    /// What sessions depend on: equal for servers whose tickets are each other's.
    pub kind: Vec<u8>,
}

impl Settings {
    /// `None`: the bytes are not settings.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let flags = reader.word()?;
        let protocols = reader.list(|reader| reader.blob().map(<[u8]>::to_vec))?;
        let authorities = reader.list(Reader::certificate)?;
        let mut kind = bytes[..bytes.len() - reader.0.len()].to_vec();
        let credentials = reader.list(Credentials::read)?;
        for name in credentials.iter().flat_map(|one| &one.names) {
            kind.extend_from_slice(name.as_bytes());
            kind.push(b'\n');
        }
        reader.0.is_empty().then_some(Self { flags, protocols, authorities, credentials, kind })
    }
}

impl Credentials {
    /// One alone: what the host has chosen for a name.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        Self::read(&mut reader).filter(|_| reader.0.is_empty())
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let key = PrivatePkcs8KeyDer::from(reader.blob()?.to_vec()).into();
        let names = reader.list(|reader| String::from_utf8(reader.blob()?.to_vec()).ok())?;
        Some(Self { key, names, chain: reader.list(Reader::certificate)? })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn blob(&mut self) -> Option<&'a [u8]> {
        let length = self.word()? as usize;
        let (blob, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(blob)
    }

    fn certificate(&mut self) -> Option<CertificateDer<'static>> {
        Some(CertificateDer::from(self.blob()?.to_vec()))
    }

    /// Each element takes a word at least, so a forged count ends with the bytes.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.word()?;
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests;
