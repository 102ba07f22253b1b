//! Sharing of equal bodies, and the count of the bytes that are stored. A body is freed with its last
//! user.

use super::*;

#[test]
fn equal_bodies_are_stored_once_until_the_last_connection_drops_them() {
    let mut bodies = SharedBodies::default();
    let first = bodies.share(b"same");
    let second = bodies.share(&Vec::from(*b"same"));
    let other = bodies.share(b"else");
    assert!(Rc::ptr_eq(&first, &second) && !Rc::ptr_eq(&first, &other));
    assert_eq!(bodies.held_bytes(), 8);
    assert!(bodies.fits(b"same", 8) && bodies.fits(b"12", 10) && !bodies.fits(b"123", 10));
    drop((first, other));
    assert_eq!(bodies.held_bytes(), 4);
    drop(second);
    assert_eq!(bodies.held_bytes(), 0);
    assert!(bodies.fits(b"more than the limit", 1), "one alone");
    // Only the last few are compared: a repeated older body is stored twice.
    let kept: Vec<_> = (0..20_u8).map(|byte| bodies.share(&[byte])).collect();
    assert_eq!((bodies.held_bytes(), bodies.recent.len()), (20, RECENT_MAX));
    assert!(Rc::ptr_eq(&bodies.share(&[19]), &kept[19]) && !Rc::ptr_eq(&bodies.share(&[0]), &kept[0]));
}

#[test]
fn the_threads_of_a_server_share_its_bound() {
    let of_server = Arc::new(AtomicU64::new(0));
    let mut one = SharedBodies::new(Arc::clone(&of_server));
    let mut other = SharedBodies::new(of_server);
    let first = one.share(b"first");
    assert_eq!((one.held_bytes(), other.held_bytes()), (5, 0));
    assert!(!other.fits(b"second", 10) && other.fits(b"second", 11));
    // Each thread stores its own.
    assert!(one.fits(b"first", 5) && !other.fits(b"first", 9));
    let second = other.share(b"second");
    drop(first);
    assert!(!one.fits(b"third", 10) && one.fits(b"third", 11));
    drop(second);
    assert!(one.fits(b"more than the limit", 1), "one alone");
}
