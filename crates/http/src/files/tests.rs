//! Files in folders of their own: what is found, compared with a slow oracle on random trees of links, and
//! what a cache notices of changes.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::atomic::AtomicU32,
};

use super::*;

/// A folder that is deleted at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("corespun-files-{}-{count}", std::process::id()));
        fs::create_dir_all(path.join("public")).expect("a folder");
        Self(fs::canonicalize(path).expect("its path"))
    }

    pub fn public(&self) -> String {
        self.0.join("public").to_str().expect("UTF-8").to_owned()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn request<'a>(folder: &'a str, path: &'a str) -> FilePath<'a> {
    FilePath { folder, path, index: "index.html" }
}

/// The bytes of what was found.
fn text_of(cache: &FileCache, found: &[f64; found::NUMBERS]) -> String {
    let part = cache.part(found[found::FILE] as u64, 0, found[found::BYTES] as u64).expect("an open file");
    let mut bytes = vec![0; part.bytes];
    let read = sys::read_at(&part.file.fd, &mut bytes, 0).expect("readable");
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

fn find(cache: &mut FileCache, folder: &str, path: &str, now_ms: u64) -> Option<String> {
    let found = cache.find(&request(folder, path), now_ms).expect("no error of the system");
    found.map(|found| text_of(cache, &found))
}

/// Whether the rules allow it, by the real path of what a path leads to.
fn oracle(folder: &Path, path: &str) -> bool {
    let named = folder.join(path.trim_end_matches('/'));
    let file = if named.is_dir() { named.join("index.html") } else { named.clone() };
    let (Ok(top), Ok(real)) = (fs::canonicalize(folder), fs::canonicalize(&file)) else { return false };
    let Ok(rest) = real.strip_prefix(&top) else { return false };
    let is_hidden = |path: &Path| path.iter().any(|part| part.to_string_lossy().starts_with('.'));
    let is_file_as_folder = path.ends_with('/') && named.is_file();
    real.is_file() && !is_hidden(rest) && !is_hidden(Path::new(path)) && !is_file_as_folder
}

/// Pseudo-random numbers, the same for the same seed (xorshift).
struct Dice(u64);

impl Dice {
    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        words[(self.0 >> 11) as usize % words.len()]
    }
}

/// A file is opened by one call as it is folder by folder.
fn compare_openings(root: &OwnedFd, path: &str) {
    let path = CString::new(path.trim_end_matches('/')).unwrap();
    let at_once = sys::open_beneath(root, &path);
    let in_steps = sys::stepwise::open_beneath(root, &path);
    match (&at_once, &in_steps) {
        (Ok(one), Ok(other)) => {
            assert_eq!(FileStat::of_open(one).unwrap(), FileStat::of_open(other).unwrap(), "{path:?}");
        }
        (Err(one), Err(other)) => {
            // A file on the way may be a link to one, which the way by paths finds out.
            let is_link = other.raw_os_error() == Some(libc::ELOOP);
            assert!(one.raw_os_error() == other.raw_os_error() || is_link, "{path:?}: {one} {other}");
        }
        _ => panic!("{path:?}: {at_once:?} {in_steps:?}"),
    }
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn opening_in_steps_leaves_no_folder() {
    let folder = Folder::new();
    fs::create_dir(folder.0.join("public/inner")).unwrap();
    folder.write("public/inner/a", "a");
    folder.write("secret", "secret");
    symlink("a", folder.0.join("public/inner/link")).unwrap();
    symlink("inner", folder.0.join("public/way")).unwrap();
    let root = sys::open_folder(&CString::new(folder.public()).unwrap()).unwrap();
    let open = |path: &str| {
        let opened = sys::stepwise::open_beneath(&root, &CString::new(path).unwrap());
        opened.map(drop).map_err(|error| error.raw_os_error())
    };
    for (path, expected) in [
        ("inner/a", Ok(())),
        ("inner/link", Err(libc::ELOOP)),
        ("way/a", Err(libc::ELOOP)),
        ("inner/none", Err(libc::ENOENT)),
        ("none/a", Err(libc::ENOENT)),
        ("", Err(libc::EXDEV)),
        ("/etc/passwd", Err(libc::EXDEV)),
        ("../secret", Err(libc::EXDEV)),
        ("inner/../../secret", Err(libc::EXDEV)),
        ("./inner/a", Err(libc::EXDEV)),
        ("inner//a", Err(libc::EXDEV)),
        ("inner/", Err(libc::EXDEV)),
    ] {
        assert_eq!(open(path), expected.map_err(Some), "{path:?}");
    }
}

const NAMES: &[&str] = &["a", "b", "c", ".h", "index.html", "ä b"];

#[test]
#[cfg_attr(miri, ignore = "files")]
fn what_is_found_follows_the_rules() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut found, mut linked) = (0, 0);
    for _ in 0..120 {
        let folder = Folder::new();
        let public = folder.public();
        fs::create_dir(folder.0.join("outside")).expect("a folder");
        folder.write("outside/a", "secret");
        let parents = ["public", "public", "public/a", "public/b", "public/.h", "outside"];
        let targets = [
            "a",
            "b",
            "..",
            "../a",
            "../../outside",
            "../outside/a",
            ".h",
            "index.html",
            "/",
            "./b",
            "c/../a",
            "loop",
            "../public/a",
            "/etc/passwd",
        ];
        for _ in 0..14 {
            let path = folder.0.join(dice.pick(&parents)).join(dice.pick(NAMES));
            match dice.pick(&["file", "folder", "link", "link", "inside", "outside"]) {
                "file" => drop(fs::write(path, "public")),
                "folder" => drop(fs::create_dir(path)),
                "link" => drop(symlink(dice.pick(&targets), path)),
                "inside" => drop(symlink(Path::new(&public).join(dice.pick(NAMES)), path)),
                _ => drop(symlink(folder.0.join("outside/a"), path)),
            }
        }
        let mut cache = FileCache::new(8);
        for _ in 0..60 {
            let names: Vec<_> =
                (0..dice.pick(&["", "x", "xx"]).len() + 1).map(|_| dice.pick(NAMES)).collect();
            let path = names.join("/") + dice.pick(&["", "", "", "/"]);
            let expected = oracle(Path::new(&public), &path);
            let seen = find(&mut cache, &public, &path, 0);
            assert_eq!(seen.is_some(), expected, "{path:?} in {public}");
            assert_ne!(seen.as_deref(), Some("secret"), "{path:?} in {public}");
            found += u32::from(expected);
            // The ways that kernels without openat2 take lead to the same.
            let root = sys::open_folder(&CString::new(&*public).unwrap()).expect("a folder");
            compare_openings(&root, &path);
            let name = path.trim_end_matches('/');
            let inside = if Path::new(&public).join(name).is_dir() {
                format!("{name}/index.html")
            } else {
                name.into()
            };
            let is_open = open_linked(&root, &CString::new(inside).unwrap()).is_ok();
            let is_plain = expected || (path.ends_with('/') && oracle(Path::new(&public), name));
            assert_eq!(is_open && !name.split('/').any(|part| part.starts_with('.')), is_plain, "{path:?}");
            linked += u32::from(is_open);
        }
    }
    assert!(found > 100 && linked > 100, "{found} {linked}");
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn dots_and_nul_lead_nowhere() {
    let folder = Folder::new();
    folder.write("secret", "secret");
    folder.write("public/a", "a");
    let mut cache = FileCache::new(8);
    let public = folder.public();
    for path in
        ["../secret", "a/../../secret", "..", ".", "./a", "a\0", "a\0/../../secret", "a/", "a/b", "/.."]
    {
        assert_eq!(find(&mut cache, &public, path, 0), None, "{path:?}");
    }
    for index in ["../secret", ".x"] {
        let path = FilePath { folder: &public, path: "", index };
        assert!(cache.find(&path, 0).expect("no error").is_none());
    }
    assert_eq!(find(&mut cache, &public, "a", 0).as_deref(), Some("a"));
    assert_eq!(find(&mut cache, &folder.0.join("none").to_string_lossy(), "a", 0), None);
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn a_change_is_seen_by_the_next_request() {
    let folder = Folder::new();
    let public = folder.public();
    let mut cache = FileCache::new(8);
    let seen = |cache: &mut FileCache| find(cache, &public, "a", 0);
    assert_eq!(seen(&mut cache), None);
    folder.write("public/a", "one");
    assert_eq!(seen(&mut cache).as_deref(), Some("one"));
    folder.write("public/a", "longer");
    assert_eq!(seen(&mut cache).as_deref(), Some("longer"));
    folder.write("public/b", "renamed");
    fs::rename(folder.0.join("public/b"), folder.0.join("public/a")).unwrap();
    assert_eq!(seen(&mut cache).as_deref(), Some("renamed"));
    fs::remove_file(folder.0.join("public/a")).unwrap();
    assert_eq!(seen(&mut cache), None);
    fs::create_dir(folder.0.join("public/a")).unwrap();
    assert_eq!(seen(&mut cache), None);
    folder.write("public/a/index.html", "index");
    assert_eq!(seen(&mut cache).as_deref(), Some("index"));
    assert_eq!(cache.len(), 1);
    // A deployment that switches the folder itself.
    let (live, other) = (folder.0.join("live"), folder.0.join("other"));
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a"), "other").unwrap();
    symlink(&public, &live).unwrap();
    let live = live.to_str().unwrap().to_owned();
    assert_eq!(find(&mut cache, &live, "a", 0).as_deref(), Some("index"));
    symlink(&other, folder.0.join("next")).unwrap();
    fs::rename(folder.0.join("next"), &live).unwrap();
    assert_eq!(find(&mut cache, &live, "a", 0).as_deref(), Some("other"));
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn a_link_to_the_same_file_from_outside_is_refused_when_the_file_is_opened_again() {
    let folder = Folder::new();
    folder.write("public/a", "moved");
    let public = folder.public();
    let mut cache = FileCache::new(8);
    assert!(find(&mut cache, &public, "a", 0).is_some());
    fs::rename(folder.0.join("public/a"), folder.0.join("a")).unwrap();
    symlink(folder.0.join("a"), folder.0.join("public/a")).unwrap();
    assert_eq!(find(&mut cache, &public, "a", REOPEN_MS), None);
    assert_eq!(cache.len(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn the_same_file_keeps_its_number_when_it_is_opened_again() {
    let folder = Folder::new();
    folder.write("public/a", "same");
    let public = folder.public();
    let mut cache = FileCache::new(8);
    let first = cache.find(&request(&public, "a"), 0).unwrap();
    assert!(first.is_some());
    assert_eq!(cache.find(&request(&public, "a"), REOPEN_MS + 1).unwrap(), first);
    folder.write("public/a", "diff");
    assert_ne!(cache.find(&request(&public, "a"), 0).unwrap(), first);
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn files_that_are_not_used_are_closed() {
    let folder = Folder::new();
    let public = folder.public();
    let mut cache = FileCache::new(3);
    let mut first = None;
    for name in ["a", "b", "c", "d", "e", "f"] {
        folder.write(&format!("public/{name}"), name);
        let found = cache.find(&request(&public, name), 0).unwrap().expect("a file");
        first = first.or(Some(found));
        assert!(cache.len() <= 3);
        assert_eq!(text_of(&cache, &found), name);
    }
    let first = first.expect("a file");
    assert!(cache.part(first[found::FILE] as u64, 0, 1).is_none(), "its slot belongs to another one");
    assert!(find(&mut cache, &public, "f", UNUSED_MS).is_some());
    cache.close_unused(UNUSED_MS + 1);
    assert_eq!(cache.len(), 1);
    cache.close_unused(3 * UNUSED_MS);
    assert_eq!(cache.len(), 0);
    assert!(!cache.clear());
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn pipes_and_unreadable_files_are_missing() {
    let folder = Folder::new();
    let public = folder.public();
    let pipe = CString::new(format!("{public}/pipe")).unwrap();
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    folder.write("public/a", "private");
    fs::set_permissions(folder.0.join("public/a"), fs::Permissions::from_mode(0o0)).unwrap();
    let mut cache = FileCache::new(3);
    assert_eq!(find(&mut cache, &public, "pipe", 0), None);
    // SAFETY: no memory is involved.
    let is_root = unsafe { libc::geteuid() } == 0;
    assert_eq!(find(&mut cache, &public, "a", 0).is_some(), is_root);
    fs::set_permissions(folder.0.join("public/a"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(find(&mut cache, &public, "a", 0).as_deref(), Some("private"));
}
