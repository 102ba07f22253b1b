//! Settings and counts as they cross the boundary to the host: numbers as doubles, texts as bytes. What a
//! double cannot express exactly is saturated, never wrapped.

use super::*;

fn decoded(numbers: &[(usize, f64)], host: &str, path: &[u8]) -> io::Result<Settings> {
    let mut bytes = [0; opening::NUMBERS * 8];
    for (index, number) in numbers {
        bytes[index * 8..][..8].copy_from_slice(&number.to_ne_bytes());
    }
    Settings::decode(&bytes, host, path, Vec::new())
}

#[test]
fn every_number_has_its_index() {
    let mut numbers: Vec<_> = (0..opening::NUMBERS).map(|index| (index, 100.0 + index as f64)).collect();
    numbers[opening::INHERITED].1 = 0.0;
    let Settings { endpoint, is_shared, limits, .. } = decoded(&numbers, "127.0.0.1", b"").unwrap();
    assert_eq!(endpoint, Endpoint::Address("127.0.0.1:100".parse().unwrap()));
    assert!(is_shared);
    assert_eq!((limits.header_bytes_max, limits.headers_max, limits.target_bytes_max), (102, 103, 104));
    assert_eq!(
        (limits.body_bytes_max, limits.idle_ms, limits.headers_ms, limits.body_ms),
        (105, 106, 107, 108)
    );
    assert_eq!((limits.handshake_ms, limits.linger_ms), (107, 108));
    assert_eq!((limits.connections_max, limits.out_bytes_max, limits.out_bytes_total_max), (109, 110, 111));
    assert_eq!((limits.streams_max, limits.pipeline_max, limits.resets_max), (114, 64, 115));
}

#[test]
fn numbers_saturate_and_missing_ones_are_zero() {
    let infinite: Vec<_> = (1..opening::NUMBERS).map(|index| (index, f64::INFINITY)).collect();
    let Settings { limits, .. } = decoded(&infinite, "::1", b"").unwrap();
    assert_eq!((limits.streams_max, limits.body_ms), (u32::MAX, u64::MAX));
    assert_eq!((limits.header_bytes_max, limits.headers_max), (HEADER_BYTES_MAX, usize::MAX));
    let none = Settings::decode(b"", "::1", b"", Vec::new()).unwrap();
    assert_eq!((none.is_shared, none.limits.pipeline_max, none.limits.body_bytes_max), (false, 1, 0));
}

#[test]
fn a_descriptor_replaces_the_address() {
    let of = |number: f64| decoded(&[(opening::INHERITED, number)], "ignored", b"").unwrap().endpoint;
    assert_eq!(of(1.0), Endpoint::Inherited(0));
    assert_eq!(of(4.0), Endpoint::Inherited(3));
    assert_eq!(of(f64::INFINITY), Endpoint::Inherited(-1));
}

#[test]
fn a_path_replaces_the_address() {
    let path = decoded(&[], "ignored", b"/tmp/\xff").map(|settings| settings.endpoint).unwrap();
    assert_eq!(path, Endpoint::Path(PathBuf::from(OsString::from_vec(b"/tmp/\xff".to_vec()))));
    let error = decoded(&[], "localhost", b"").expect_err("a name is not an address");
    assert_eq!(error_name(&error), "EINVAL");
    assert_eq!(error_name(&io::Error::from_raw_os_error(libc::EPIPE)), "EIO");
}

#[test]
fn every_count_has_its_index() {
    let stats = Stats {
        connections: 0,
        connections_total: 1,
        requests: 2,
        constants: 3,
        refused: 4,
        aborted: 5,
        bytes_in: 6,
        bytes_out: 7,
        cut: 8,
        held_bytes: 9,
        open_files: 10,
    };
    assert!(stats.encode().iter().enumerate().all(|(index, count)| *count == index as f64));
}
