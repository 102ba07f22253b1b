//! Files as responses: whole and in parts, to readers of any pace, in their turn in a pipeline, sent by the
//! kernel and copied.

use std::fs;

use super::*;
use crate::{
    files::{FilePath, tests::Folder},
    layout::found,
};

impl Host {
    /// Respond to the oldest open request with a part of a file. Returns whether the file was still open.
    fn respond_file(&mut self, file: u64, start: u64, bytes: u64) -> bool {
        let (slot, stamp) = self.open.remove(0);
        let at = self.reactor.batches.out.word(out::END) as usize;
        let words: [u32; head::WORDS] = [reply::RESPOND, slot, stamp, 200, 0, 0, 0, 1];
        self.reactor.batches.out.put_all(at / 4, words);
        self.reactor.batches.out.put(out::END, (at + head::WORDS * 4) as u32);
        self.reactor.put_file(file, start, bytes);
        self.reactor.batches.out.word(out::FOUND) == 1
    }

    fn find(&mut self, folder: &Folder, path: &str) -> [f64; found::NUMBERS] {
        let folder = folder.public();
        let path = FilePath { folder: &folder, path, index: "" };
        self.reactor.find_file(&path).expect("no error of the system").expect("a file")
    }

    /// Take turns until that many requests are open.
    fn wait_for(&mut self, count: usize) {
        self.until("the requests", |host| host.open.len() == count);
    }
}

/// Bytes that differ at each position.
fn bytes_of(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 31 + at / 257) as u8).collect()
}

fn check(copies: bool, count: usize, step: usize) {
    let folder = Folder::new();
    let content = bytes_of(count);
    fs::write(folder.0.join("public/a"), &content).unwrap();
    let mut host = Host::new(anywhere(), false, limits());
    host.responds = false;
    host.reactor.batches.files.copies = copies;
    let mut client = host.connect();
    client.write_all(&GET.repeat(3)).unwrap();
    // The share of a connection may be one request per batch.
    for start in [0, 1000, count as u64 - 1] {
        host.until("a request", |host| !host.open.is_empty());
        let file = host.find(&folder, "a")[found::FILE] as u64;
        assert!(host.respond_file(file, start, count as u64 - start));
        host.reactor.flush_responses();
        let expected = &content[start as usize..];
        let received = host.read_response(&mut client, expected.len(), step);
        assert!(received == expected, "{count} bytes from {start}");
    }
    assert_eq!((host.reactor.stats().aborted, host.reactor.stats().open_files), (0, 1));
}

impl Host {
    /// The body of a response, of which the client reads at most `step` bytes per turn.
    fn read_response(&mut self, client: &mut TcpStream, bytes: usize, step: usize) -> Vec<u8> {
        let (mut all, mut piece) = (Vec::new(), vec![0; step]);
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < Duration::from_secs(20), "{} bytes so far", all.len());
            self.turn();
            if let Ok(read) = client.read(&mut piece) {
                assert_ne!(read, 0, "the connection was closed");
                all.extend_from_slice(&piece[..read]);
            }
            let head = all.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
            if let Some(head) = head
                && all.len() >= head + bytes
            {
                let text = String::from_utf8_lossy(&all[..head]).into_owned();
                assert!(text.contains(&format!("content-length: {bytes}\r\n")), "{text}");
                return all.split_off(head);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_file_is_sent_whatever_its_size_and_the_pace_of_its_reader() {
    for copies in [false, true] {
        check(copies, 1001, 4096);
        check(copies, 100_000, 100_000);
        check(copies, 8_000_000, 300_000);
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn files_of_a_pipeline_are_sent_in_the_order_of_their_requests() {
    let folder = Folder::new();
    folder.write("public/a", "file a.");
    folder.write("public/b", "file b.");
    folder.write("public/none", "");
    let mut host = Host::new(anywhere(), false, limits());
    host.responds = false;
    let mut client = host.connect();
    for _ in 0..2 {
        client.write_all(&GET.repeat(4)).unwrap();
        host.wait_for(4);
        host.open.reverse();
        for name in ["b", "none", "a"] {
            let file = host.find(&folder, name);
            assert!(host.respond_file(file[found::FILE] as u64, 0, file[found::BYTES] as u64));
        }
        host.respond("text.");
        host.reactor.flush_responses();
        let text = host.read_until(&mut client, "file b.");
        let bodies: Vec<_> =
            text.split("\r\n\r\n").skip(1).map(|part| part.split("HTTP").next().unwrap()).collect();
        assert_eq!(bodies, ["text.", "file a.", "", "file b."]);
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn head_has_the_length_and_no_body() {
    let folder = Folder::new();
    folder.write("public/a", "file a.");
    let mut host = Host::new(anywhere(), false, limits());
    host.responds = false;
    let mut client = host.connect();
    client.write_all(b"HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    host.wait_for(1);
    let file = host.find(&folder, "a")[found::FILE] as u64;
    assert!(host.respond_file(file, 0, 7));
    host.reactor.flush_responses();
    assert!(host.read_until(&mut client, "\r\n\r\n").contains("content-length: 7\r\n"));
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_file_that_becomes_shorter_cuts_its_connection_and_no_other() {
    for copies in [false, true] {
        let folder = Folder::new();
        fs::write(folder.0.join("public/a"), bytes_of(8_000_000)).unwrap();
        let mut host = Host::new(anywhere(), false, limits());
        host.responds = false;
        host.reactor.batches.files.copies = copies;
        let (mut client, mut other) = (host.connect(), host.connect());
        client.write_all(GET).unwrap();
        host.wait_for(1);
        let file = host.find(&folder, "a")[found::FILE] as u64;
        assert!(host.respond_file(file, 0, 8_000_000));
        host.reactor.flush_responses();
        fs::write(folder.0.join("public/a"), "short").unwrap();
        assert!(host.read_until(&mut client, "").ends_with("<reset>"));
        host.until("the event", |host| {
            host.seen.iter().any(|seen| *seen == format!("event {}", event::FILE_SHORT))
        });
        assert_eq!(host.reactor.stats().aborted, 1);
        other.write_all(GET).unwrap();
        host.wait_for(1);
        host.respond("still here.");
        host.reactor.flush_responses();
        host.read_until(&mut other, "still here.");
    }
}

#[test]
#[cfg_attr(miri, ignore = "sockets")]
fn a_file_that_was_closed_since_leaves_its_exchange_open() {
    let folder = Folder::new();
    let mut host = Host::new(anywhere(), false, Limits { open_files_max: 1, ..limits() });
    folder.write("public/a", "a");
    folder.write("public/b", "b");
    host.responds = false;
    let mut client = host.connect();
    client.write_all(GET).unwrap();
    host.wait_for(1);
    let exchange = host.open[0];
    let file = host.find(&folder, "a")[found::FILE] as u64;
    host.find(&folder, "b");
    assert!(!host.respond_file(file, 0, 1));
    host.open.push(exchange);
    host.respond("instead.");
    host.reactor.flush_responses();
    host.read_until(&mut client, "instead.");
}
