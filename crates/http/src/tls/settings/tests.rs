//! Settings as the host writes them, whole and cut.
//!
//! The bytes of keys and certificates do not matter here: rustls reads them.

use super::{Credentials, Settings, flag};

fn blob(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    [(items.len() as u32).to_le_bytes().to_vec(), items.concat()].concat()
}

fn credentials(key: &[u8], names: &[&str], chain: &[&[u8]]) -> Vec<u8> {
    let names: Vec<_> = names.iter().map(|name| blob(name.as_bytes())).collect();
    let chain: Vec<_> = chain.iter().map(|one| blob(one)).collect();
    [blob(key), list(&names), list(&chain)].concat()
}

fn whole(names: &[&str], chain: &[u8]) -> Vec<u8> {
    let flags = (flag::ONLY_13 | flag::ASKS_CLIENTS).to_le_bytes().to_vec();
    let one = credentials(b"key", names, &[chain, b"issuer"]);
    [flags, list(&[blob(b"http/1.1")]), list(&[blob(b"root")]), list(&[one])].concat()
}

#[test]
fn settings_are_read_as_written() {
    let settings = Settings::decode(&whole(&["a.example", "*.b.example"], b"leaf")).unwrap();
    assert_eq!(settings.flags, flag::ONLY_13 | flag::ASKS_CLIENTS);
    assert_eq!(settings.protocols, [b"http/1.1"]);
    assert_eq!(settings.authorities[0].as_ref(), b"root");
    let [one] = &settings.credentials[..] else { panic!("one") };
    assert_eq!(one.key.secret_der(), b"key");
    assert_eq!(one.names, ["a.example", "*.b.example"]);
    assert_eq!(one.chain.iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>(), [&b"leaf"[..], b"issuer"]);
}

#[test]
fn cut_or_longer_settings_are_refused() {
    let bytes = whole(&["a"], b"leaf");
    for end in 0..bytes.len() {
        assert!(Settings::decode(&bytes[..end]).is_none(), "{end}");
    }
    assert!(Settings::decode(&[&bytes[..], b"x"].concat()).is_none());
    let one = credentials(b"key", &[], &[b"leaf"]);
    assert!(Credentials::decode(&one).is_some());
    assert!(Credentials::decode(&one[..one.len() - 1]).is_none());
    assert!(Credentials::decode(&[&one[..], b"x"].concat()).is_none());
}

#[test]
fn tickets_survive_a_renewed_certificate_and_nothing_else() {
    let kind = |names: &[&str], chain: &[u8]| Settings::decode(&whole(names, chain)).unwrap().kind;
    assert_eq!(kind(&["a"], b"leaf"), kind(&["a"], b"renewed"));
    assert_ne!(kind(&["a"], b"leaf"), kind(&["b"], b"leaf"));
}
