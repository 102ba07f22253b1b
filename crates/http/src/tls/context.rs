//! What all connections of a server share: certificates by name, the tickets of the process, protocols.
//!
//! A context never changes. New certificates are a new context, and connections keep the one they began with.
//! Tickets outlive it: all threads and all contexts of the same kind share their keys, so that a client
//! resumes its session on any worker, also after a certificate was renewed. What a client has to prove is
//! part of the kind, so no ticket of another server admits it.

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    server::{
        ClientHello, NoServerSessionStorage, ProducesTickets, ResolvesServerCert, WebPkiClientVerifier,
    },
    sign::CertifiedKey,
    version,
};

use super::settings::{Credentials, Settings, flag};

/// Time for which a host's choice is used again.
const CHOICE_KEPT: Duration = Duration::from_secs(60);
/// Choices that are kept; with more, all are asked for again.
const CHOICES_MAX: usize = 1024;

/// Why settings cannot be used.
#[derive(Debug)]
pub struct TlsError(pub String);

impl fmt::Display for TlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn failed(error: impl fmt::Display) -> TlsError {
    TlsError(error.to_string())
}

/// What all connections of a server share.
pub struct Context {
    pub config: Arc<ServerConfig>,
    names: Arc<Names>,
    provider: Arc<CryptoProvider>,
}

impl Context {
    pub fn new(bytes: &[u8]) -> Result<Self, TlsError> {
        let settings = Settings::decode(bytes).ok_or_else(|| failed("the settings were cut"))?;
        let provider = Arc::new(ring::default_provider());
        let has = |bit| settings.flags & bit != 0;
        let versions: &[_] =
            if has(flag::ONLY_13) { &[&version::TLS13] } else { &[&version::TLS13, &version::TLS12] };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(failed)?;
        let builder = if has(flag::ASKS_CLIENTS) {
            let mut roots = rustls::RootCertStore::empty();
            for authority in settings.authorities {
                roots.add(authority).map_err(failed)?;
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            let verifier =
                if has(flag::REFUSES_OTHERS) { verifier } else { verifier.allow_unauthenticated() };
            builder.with_client_cert_verifier(verifier.build().map_err(failed)?)
        } else {
            builder.with_no_client_auth()
        };
        let names = Arc::new(Names::new(settings.credentials, has(flag::ASKS_HOST), &provider)?);
        let mut config = builder.with_cert_resolver(Arc::clone(&names) as _);
        config.alpn_protocols = settings.protocols;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = tickets_of(settings.kind)?;
        Ok(Self { config: Arc::new(config), names, provider })
    }

    /// The host's choice for a name; `None`: that of the list, or none.
    pub fn choose(&self, name: &str, chosen: &[u8]) -> Result<(), TlsError> {
        let chosen = if chosen.is_empty() {
            None
        } else {
            let credentials = Credentials::decode(chosen).ok_or_else(|| failed("the choice was cut"))?;
            Some(certified(credentials, &self.provider)?.0)
        };
        let mut choices = self.names.choices.lock().unwrap_or_else(PoisonError::into_inner);
        if choices.len() >= CHOICES_MAX {
            choices.clear();
        }
        choices.insert(name.to_owned(), (chosen, Instant::now()));
        Ok(())
    }
}

/// What the host has chosen, and when.
type Choice = (Option<Arc<CertifiedKey>>, Instant);

/// Certificates by the names that clients ask for.
#[derive(Debug)]
struct Names {
    exact: HashMap<String, Arc<CertifiedKey>>,
    /// By what follows the first label.
    wild: HashMap<String, Arc<CertifiedKey>>,
    first: Option<Arc<CertifiedKey>>,
    asks_host: bool,
    choices: Mutex<HashMap<String, Choice>>,
}

thread_local! {
    /// The name for which the host has to be asked: the result of a resolver cannot contain that.
    static ASKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The name that the last handshake of this thread has to wait for.
pub fn take_asked() -> Option<String> {
    ASKED.take()
}

impl Names {
    fn new(all: Vec<Credentials>, asks_host: bool, provider: &CryptoProvider) -> Result<Self, TlsError> {
        let (mut exact, mut wild, mut first) = (HashMap::new(), HashMap::new(), None);
        for credentials in all {
            let (key, names) = certified(credentials, provider)?;
            for name in names {
                // The first certificate with a name has it.
                match name.strip_prefix("*.") {
                    Some(rest) => wild.entry(rest.to_owned()).or_insert_with(|| Arc::clone(&key)),
                    None => exact.entry(name).or_insert_with(|| Arc::clone(&key)),
                };
            }
            first.get_or_insert(key);
        }
        Ok(Self { exact, wild, first, asks_host, choices: Mutex::default() })
    }

    fn of_list(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        self.exact.get(name).or_else(|| self.wild.get(name.split_once('.')?.1))
    }
}

impl ResolvesServerCert for Names {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let Some(name) = hello.server_name().map(str::to_ascii_lowercase) else { return self.first.clone() };
        if let Some(found) = self.of_list(&name) {
            return Some(Arc::clone(found));
        }
        if self.asks_host {
            let choices = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
            match choices.get(&name) {
                Some((Some(chosen), at)) if at.elapsed() < CHOICE_KEPT => return Some(Arc::clone(chosen)),
                Some((None, at)) if at.elapsed() < CHOICE_KEPT => {}
                _ => {
                    ASKED.set(Some(name));
                    return None;
                }
            }
        }
        self.first.clone()
    }
}

fn certified(
    credentials: Credentials,
    provider: &CryptoProvider,
) -> Result<(Arc<CertifiedKey>, Vec<String>), TlsError> {
    let Credentials { key, chain, names } = credentials;
    Ok((Arc::new(CertifiedKey::from_der(chain, key, provider).map_err(failed)?), names))
}

/// Keys of tickets by the kind of server; each as long as a server of that kind exists.
static TICKETS: Mutex<Vec<Kind>> = Mutex::new(Vec::new());
type Kind = (Vec<u8>, Weak<dyn ProducesTickets>);

fn tickets_of(kind: Vec<u8>) -> Result<Arc<dyn ProducesTickets>, TlsError> {
    let mut all = TICKETS.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(_, tickets)| tickets.strong_count() > 0);
    let known = all.iter().find(|(other, _)| *other == kind).and_then(|(_, tickets)| tickets.upgrade());
    if let Some(tickets) = known {
        return Ok(tickets);
    }
    let tickets = ring::Ticketer::new().map_err(failed)?;
    all.push((kind, Arc::downgrade(&tickets)));
    Ok(tickets)
}
