//! Constants as the host encodes them, and the response to a request for each. The reactor's tests send them
//! over sockets.

use super::*;

fn encoded(parts: [&str; 4], status: u32) -> Vec<u8> {
    let lengths = parts.iter().flat_map(|part| (part.len() as u32).to_ne_bytes());
    let texts = parts.iter().flat_map(|part| part.bytes());
    lengths.chain(status.to_ne_bytes()).chain(texts).collect()
}

#[test]
fn constants_are_decoded_and_incomplete_ones_refused() {
    let first = encoded(["GET", "/a", "x: y\r\n", "body"], 200);
    let bytes = [first.clone(), encoded(["PUT", "/", "", ""], 204)].concat();
    let constants = Constant::decode_all(&bytes).expect("two constants");
    let found: Vec<_> = constants.iter().map(|one| (&one.method[..], &one.path[..], one.status)).collect();
    assert_eq!(found, [(&b"GET"[..], &b"/a"[..], 200), (b"PUT", b"/", 204)]);
    assert_eq!((&constants[0].headers[..], &constants[0].body[..]), (&b"x: y\r\n"[..], &b"body"[..]));
    for end in (1..bytes.len()).filter(|end| *end != first.len()) {
        assert!(Constant::decode_all(&bytes[..end]).is_none(), "{end} bytes");
    }
}

#[test]
fn a_constant_is_found_by_method_and_path() {
    let bytes = [encoded(["GET", "/a", "", "get"], 200), encoded(["HEAD", "/b", "", ""], 200)].concat();
    let constants = Constants::new(Constant::decode_all(&bytes).expect("two constants"));
    for (method, name, target, expected) in [
        (Method::Get, "GET", "/a?b", Some(0)),
        (Method::Head, "HEAD", "/a", Some(0)),
        (Method::Head, "HEAD", "/b", Some(1)),
        (Method::Get, "GET", "/b", None),
        (Method::Post, "POST", "/a", None),
        (Method::Get, "GET", "/", None),
    ] {
        assert_eq!(constants.find(method, name.as_bytes(), target.as_bytes()), expected, "{name} {target}");
    }
}
