//! Files that responses are sent from, open for the next request.
//!
//! A file is opened inside of its folder and nowhere else: without a symbolic link on the way by the kernel's
//! own rule (`openat2`), with one by the path of what was found. Each request looks at what its path leads to
//! now; anything but the very same file, unchanged, is opened anew. A path that begins to lead to the same
//! file from outside is noticed when the file is opened again, after [`REOPEN_MS`]. Nothing waits here for
//! more than the disk.

use std::{
    cell::Cell,
    collections::HashMap,
    ffi::CString,
    io,
    os::fd::OwnedFd,
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    layout::found,
    sys::{self, FileStat},
};

/// Time after which a file is opened again although nothing has changed.
const REOPEN_MS: u64 = 1_000;
/// Time without a request after which a file is closed.
const UNUSED_MS: u64 = 10_000;
/// Times that an open is tried while its path changes.
const TRIES: u32 = 3;
/// Bits of a file's number that are its slot.
const SLOT_BITS: u32 = 16;
/// Files at most, by the number of slots.
const FILES_MAX: usize = 1 << SLOT_BITS;
/// Bytes that are copied at once where the kernel cannot send a file.
const COPY_BYTES: usize = 64 * 1024;

/// The part above the slot of the next number. Numbers are unique in the process: a host may keep one of a
/// server that has ended.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Where a request looks for a file.
#[derive(Clone, Copy, Debug)]
pub struct FilePath<'a> {
    /// The folder that is not left.
    pub folder: &'a str,
    /// Relative, without empty segments; a slash at its end excludes files.
    pub path: &'a str,
    /// The file for a folder; empty: none.
    pub index: &'a str,
}

struct OpenFile {
    fd: OwnedFd,
    stat: FileStat,
    /// The kernel cannot send it.
    is_copied: Cell<bool>,
}

/// A part of an open file.
pub struct FilePart {
    file: Rc<OpenFile>,
    start: u64,
    pub bytes: usize,
}

impl FilePart {
    /// Send at most `bytes`, which begin `from` bytes after the part's start; 0 if the file ends before.
    pub fn send(&self, socket: &OwnedFd, from: usize, bytes: usize) -> io::Result<usize> {
        let at = self.start + from as u64;
        if !self.file.is_copied.get() {
            match sys::send_file(socket, &self.file.fd, at, bytes) {
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
                    self.file.is_copied.set(true);
                }
                other => return other,
            }
        }
        self.read(from, bytes, |piece| sys::send(socket, piece))
    }

    /// Read instead, and pass what was read; 0 if the file ends before.
    pub fn read(
        &self,
        from: usize,
        bytes: usize,
        send: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut piece = vec![0; bytes.min(COPY_BYTES)];
        match sys::read_at(&self.file.fd, &mut piece, self.start + from as u64)? {
            0 => Ok(0),
            read => send(&piece[..read]),
        }
    }
}

struct Entry {
    key: Box<[u8]>,
    /// The path that was opened, from the root on.
    path: CString,
    file: Rc<OpenFile>,
    number: u64,
    is_index: bool,
    opened_ms: u64,
    used_ms: u64,
    /// Used since the hand of the clock has passed.
    is_recent: bool,
}

impl Entry {
    fn found(&self) -> [f64; found::NUMBERS] {
        let FileStat { bytes, modified, .. } = self.file.stat;
        let mut numbers = [0.0; found::NUMBERS];
        numbers[found::FILE] = self.number as f64;
        numbers[found::BYTES] = bytes as f64;
        numbers[found::SECONDS] = modified.0 as f64;
        numbers[found::NANOSECONDS] = modified.1 as f64;
        numbers[found::IS_INDEX] = f64::from(u8::from(self.is_index));
        numbers
    }
}

/// The open files of one server. At its limit, the one that has not been used for longest, nearly, is closed.
pub struct FileCache {
    files_max: usize,
    slots: Vec<Option<Entry>>,
    free: Vec<usize>,
    by_key: HashMap<Box<[u8]>, usize>,
    /// The slot that is looked at next for one to close.
    hand: usize,
    swept_ms: u64,
    /// Copy instead of sending, for tests.
    #[cfg(test)]
    pub copies: bool,
}

/// A file that was just opened.
struct Opened {
    path: CString,
    fd: OwnedFd,
    stat: FileStat,
    is_index: bool,
}

impl FileCache {
    pub fn new(files_max: usize) -> Self {
        Self {
            files_max: files_max.clamp(1, FILES_MAX),
            slots: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            hand: 0,
            swept_ms: 0,
            #[cfg(test)]
            copies: false,
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Close all, except for those that are being sent. Returns whether there were any.
    pub fn clear(&mut self) -> bool {
        let had_any = self.len() > 0;
        self.slots.clear();
        self.free.clear();
        self.by_key.clear();
        self.hand = 0;
        had_any
    }

    /// Close files that no request has used for a while.
    pub fn close_unused(&mut self, now_ms: u64) {
        if self.len() == 0 || now_ms < self.swept_ms + REOPEN_MS {
            return;
        }
        self.swept_ms = now_ms;
        for slot in 0..self.slots.len() {
            if self.slots[slot].as_ref().is_some_and(|entry| now_ms >= entry.used_ms + UNUSED_MS) {
                self.remove(slot);
            }
        }
        if self.len() == 0 {
            self.clear();
        }
    }

    /// The file that a path leads to, as the numbers of [`found`]; `None` if it leads to nothing, or to a
    /// file that may not be read.
    /// Errors are those that do not depend on the path, such as `EMFILE`.
    pub fn find(&mut self, request: &FilePath<'_>, now_ms: u64) -> io::Result<Option<[f64; found::NUMBERS]>> {
        let FilePath { folder, path, index } = request;
        let key = [folder.as_bytes(), path.as_bytes(), index.as_bytes()].join(&0);
        let known = self.by_key.get(&*key).copied();
        if let Some(slot) = known
            && let Some(entry) = &mut self.slots[slot]
            && now_ms < entry.opened_ms + REOPEN_MS
            && FileStat::at(&entry.path).is_ok_and(|stat| stat == entry.file.stat)
        {
            entry.used_ms = now_ms;
            entry.is_recent = true;
            return Ok(Some(entry.found()));
        }
        let opened = match open(request) {
            Err(error) if is_exhausted(&error) && self.clear() => open(request),
            other => other,
        };
        let known = self.by_key.get(&*key).copied();
        match opened? {
            Some(opened) => Ok(Some(self.put(key.into(), known, opened, now_ms))),
            None => {
                if let Some(slot) = known {
                    self.remove(slot);
                }
                Ok(None)
            }
        }
    }

    /// A part of a file that was found; `None` if it has been closed since.
    pub fn part(&self, number: u64, start: u64, bytes: u64) -> Option<FilePart> {
        let slot = usize::try_from(number).ok()? % FILES_MAX;
        let entry = self.slots.get(slot)?.as_ref().filter(|entry| entry.number == number)?;
        let bytes = usize::try_from(bytes).ok()?;
        Some(FilePart { file: Rc::clone(&entry.file), start, bytes })
    }

    fn put(
        &mut self,
        key: Box<[u8]>,
        known: Option<usize>,
        opened: Opened,
        now_ms: u64,
    ) -> [f64; found::NUMBERS] {
        if let Some(entry) = known.and_then(|slot| self.slots[slot].as_mut())
            && entry.file.stat == opened.stat
        {
            entry.path = opened.path;
            entry.is_index = opened.is_index;
            (entry.opened_ms, entry.used_ms, entry.is_recent) = (now_ms, now_ms, true);
            return entry.found();
        }
        let slot = known.unwrap_or_else(|| self.free_slot());
        let Opened { path, fd, stat, is_index } = opened;
        let is_copied = Cell::new(self.copies());
        let file = Rc::new(OpenFile { fd, stat, is_copied });
        // Relaxed: only uniqueness matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed) << SLOT_BITS | slot as u64;
        let (opened_ms, used_ms) = (now_ms, now_ms);
        self.by_key.insert(key.clone(), slot);
        let entry = Entry { key, path, file, number, is_index, opened_ms, used_ms, is_recent: true };
        self.slots[slot].insert(entry).found()
    }

    #[cfg(test)]
    fn copies(&self) -> bool {
        self.copies
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "as in tests, which can have files copied")]
    const fn copies(&self) -> bool {
        false
    }

    fn free_slot(&mut self) -> usize {
        if self.free.is_empty() && self.slots.len() < self.files_max {
            self.slots.push(None);
            return self.slots.len() - 1;
        }
        while self.free.is_empty() {
            self.hand = (self.hand + 1) % self.slots.len();
            match &mut self.slots[self.hand] {
                Some(entry) if entry.is_recent => entry.is_recent = false,
                _ => self.remove(self.hand),
            }
        }
        self.free.pop().unwrap_or_default()
    }

    fn remove(&mut self, slot: usize) {
        if let Some(entry) = self.slots[slot].take() {
            self.by_key.remove(&entry.key);
            self.free.push(slot);
        }
    }
}

/// No descriptor is left.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Whether an error means that this path does not lead to a file that may be read.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENOENT
                | libc::ENOTDIR
                | libc::EACCES
                | libc::EPERM
                | libc::ELOOP
                | libc::ENAMETOOLONG
                | libc::EISDIR
                | libc::ENXIO
                | libc::EXDEV
        )
    )
}

fn or_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Open what a path leads to, if it is a file inside of the folder.
fn open(FilePath { folder, path, index }: &FilePath<'_>) -> io::Result<Option<Opened>> {
    let name = path.strip_suffix('/').unwrap_or(path);
    let is_hidden = |part: &str| part.split('/').any(|segment| segment.starts_with('.'));
    let (Ok(root), Ok(joined)) = (CString::new(*folder), CString::new(format!("{folder}/{name}"))) else {
        return Ok(None);
    };
    if is_hidden(name) || is_hidden(index) {
        return Ok(None);
    }
    // Looked at before it is opened, since opening a pipe or a device can have effects.
    let Some(stat) = or_missing(FileStat::at(&joined))? else { return Ok(None) };
    let is_index = stat.is_folder && !index.is_empty();
    let inside = match (is_index, name.is_empty()) {
        (false, _) => name.to_owned(),
        (true, true) => (*index).to_owned(),
        (true, false) => format!("{name}/{index}"),
    };
    if !is_index && (!stat.is_file || name.len() < path.len()) {
        return Ok(None);
    }
    let (Ok(inside), Ok(path)) = (CString::new(&*inside), CString::new(format!("{folder}/{inside}"))) else {
        return Ok(None);
    };
    if is_index && !or_missing(FileStat::at(&path))?.is_some_and(|stat| stat.is_file) {
        return Ok(None);
    }
    let Some(root) = or_missing(sys::open_folder(&root))? else { return Ok(None) };
    let Some(fd) = or_missing(open_inside(&root, &inside))? else { return Ok(None) };
    let stat = FileStat::of_open(&fd)?;
    Ok(stat.is_file.then_some(Opened { path, fd, stat, is_index }))
}

/// Open a file in a folder. Links are followed as long as they stay inside and lead to nothing hidden.
fn open_inside(folder: &OwnedFd, path: &CString) -> io::Result<OwnedFd> {
    let mut tried = 0;
    loop {
        match sys::open_beneath(folder, path) {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) && tried < TRIES => tried += 1,
            // A link, or no such call: before Linux 5.6, and where a sandbox refuses it.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOSYS | libc::EPERM)) => {
                return open_linked(folder, path);
            }
            other => return other,
        }
    }
}

/// The same by the path of what was found: its descriptor names it, whatever happens to the path meanwhile.
fn open_linked(folder: &OwnedFd, path: &CString) -> io::Result<OwnedFd> {
    let named = sys::open_name(folder, path)?;
    let stat = FileStat::of_open(&named)?;
    let (top, real) = (sys::path_of(folder)?, sys::path_of(&named)?);
    let top = top.strip_suffix(b"/").unwrap_or(&top);
    let is_inside = real.strip_prefix(top).is_some_and(|rest| {
        rest.first() == Some(&b'/')
            && !rest.split(|&byte| byte == b'/').any(|part| part.first() == Some(&b'.'))
    });
    if !is_inside || !stat.is_file || !stat.has_name() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    sys::open_named(&named)
}

#[cfg(test)]
pub mod tests;
