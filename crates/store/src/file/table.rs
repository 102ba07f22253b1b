//! The table in the file: what a record contains, and which changes of it are one commit.
//!
//! A record is its checksum (CRC-32 of the table's key and all that follows), the wall-clock time of its
//! expiration (8 bytes, little-endian, 0: never) and the frame of its value, which must be one that any
//! process can read. LMDB's keys have at most 511 bytes: a longer one is replaced by its hash with a secret
//! of the file, and precedes the frame. The first record is about the file.

use std::{
    collections::hash_map::RandomState,
    fs::File,
    hash::{BuildHasher, Hasher},
    path::{Path, PathBuf},
};

use siphasher::sip128::SipHasher24;

use super::{
    journal::Group,
    lmdb::{Failure, Lmdb, Transaction},
    lock::{is_disk_full, open_locked},
    pages,
    platform::{Identity, has_name, identity},
    problem::Problem,
};

/// The version that is written, and the newest that can be read.
pub const VERSION_MAX: u32 = 1;
/// The key of the record about the file, which contains [`NAME`], the version and the secret.
pub const ABOUT: [u8; 1] = [0];
/// The name of the format.
pub const NAME: &[u8] = b"corespun.store";
/// The first byte of the table's key for a key that follows it.
const WHOLE: u8 = 1;
/// The first byte of the table's key for the hash of a longer one.
const HASHED: u8 = 2;
const KEY_BYTES_MAX: usize = 511;
/// The first bytes of a frame: its version, and that it uses no numbers of a process.
pub const FRAME: [u8; 2] = [1, 1];

type Secret = [u8; 16];

/// Where groups go.
pub trait Table {
    /// Commits a group; when it returns, the group is in the file, also after a loss of power.
    /// After an error the file has all of the group's changes, or stays as it was.
    fn commit(&mut self, group: &Group) -> Result<(), Problem>;
}

pub struct FileTable {
    path: PathBuf,
    /// The identity of the file that was opened first.
    identity: Identity,
    /// `None` after a failure that the engine does not survive.
    open: Option<Open>,
}

struct Open {
    // Closed before the lock ends.
    lmdb: Lmdb,
    file: File,
    secret: Secret,
}

impl FileTable {
    /// Opens the file, or creates it, and passes each entry to `load`: key, expiration and frame.
    pub fn open(
        path: &Path,
        mut load: impl FnMut(&[u8], u64, &[u8]) -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        let open = open(path, &mut load)?;
        Ok(Self { path: path.into(), identity: identity(&open.file.metadata()?), open: Some(open) })
    }

    pub const fn identity(&self) -> Identity {
        self.identity
    }
}

#[cfg(test)]
impl FileTable {
    /// As a failure that the engine does not survive.
    pub fn end(&mut self) {
        self.open = None;
    }
}

type Load<'a> = dyn FnMut(&[u8], u64, &[u8]) -> Result<(), Problem> + 'a;

fn open(path: &Path, load: &mut Load<'_>) -> Result<Open, Problem> {
    let mut file = open_locked(path)?;
    let mut secret = None;
    pages::read(&mut file, &mut |key, record| {
        let foreign = || Problem::Foreign("a database of another program".into());
        match secret {
            None if key == ABOUT => secret = Some(secret_in(record).ok_or_else(foreign)??),
            None => return Err(foreign()),
            Some(secret) => {
                let (key, expires_ms, frame) = entry(key, record, &secret).ok_or_else(|| {
                    Problem::Corrupt(format!("an entry of {} bytes is malformed", record.len()))
                })?;
                load(key, expires_ms, frame)?;
            }
        }
        Ok(())
    })?;
    let lmdb = Lmdb::open(path, file.metadata()?.len()).map_err(|failure| problem(failure, &mut file))?;
    let mut open = Open { lmdb, file, secret: secret.unwrap_or_else(new_secret) };
    if secret.is_none() {
        let record = about_record(&open.secret);
        let outcome = open.lmdb.commit(|transaction| transaction.put(&ABOUT, &record));
        outcome.map_err(|failure| problem(failure, &mut open.file))?;
        sync_folder(path)?;
    }
    Ok(open)
}

impl Table for FileTable {
    fn commit(&mut self, group: &Group) -> Result<(), Problem> {
        if !has_name(self.identity, &self.path) {
            return Err(Problem::Removed);
        }
        loop {
            let open = match &mut self.open {
                Some(open) => open,
                none => none.insert(open(&self.path, &mut |_, _, _| Ok(()))?),
            };
            let secret = &open.secret;
            match open.lmdb.commit(|transaction| write(transaction, group, secret)) {
                Ok(()) => return Ok(()),
                Err(Failure::MapFull) => {
                    open.lmdb.grow().map_err(|failure| problem(failure, &mut open.file))?
                }
                Err(Failure::Ended) => self.open = None,
                Err(failure) => return Err(problem(failure, &mut open.file)),
            }
        }
    }
}

fn problem(failure: Failure, file: &mut File) -> Problem {
    match failure {
        Failure::Problem(problem) => problem,
        Failure::Device(_) if is_disk_full(file) => Problem::DiskFull,
        Failure::Device(error) => error.into(),
        Failure::MapFull => Problem::Failed("the system has no addresses for a file so large".into()),
        Failure::Ended => Problem::Failed("an earlier write has failed".into()),
    }
}

fn write(transaction: &mut Transaction<'_>, group: &Group, secret: &Secret) -> Result<(), Failure> {
    if group.cleared {
        transaction.clear()?;
        transaction.put(&ABOUT, &about_record(secret))?;
    }
    for (key, change) in &group.changes {
        let stored = table_key(key, secret);
        let Some(record) = change else {
            transaction.delete(&stored)?;
            continue;
        };
        let bytes = sealed(&stored, |bytes| {
            bytes.extend_from_slice(&record.expires_ms.to_le_bytes());
            if stored[0] == HASHED {
                bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
                bytes.extend_from_slice(key);
            }
            bytes.extend_from_slice(&record.bytes);
        });
        transaction.put(&stored, &bytes)?;
    }
    Ok(())
}

fn about_record(secret: &Secret) -> Vec<u8> {
    sealed(&ABOUT, |record| {
        record.extend_from_slice(NAME);
        record.extend_from_slice(&VERSION_MAX.to_le_bytes());
        record.extend_from_slice(secret);
    })
}

/// The secret in the record about the file; `None` if another program has written that.
fn secret_in(record: &[u8]) -> Option<Result<Secret, Problem>> {
    let (version, secret) = record.get(4..)?.strip_prefix(NAME)?.split_first_chunk()?;
    Some(match u32::from_le_bytes(*version) {
        1..=VERSION_MAX => unsealed(&ABOUT, record)
            .and_then(|_| secret.try_into().ok())
            .ok_or_else(|| Problem::Corrupt("its first record is damaged".into())),
        version => Err(Problem::Version(version.into())),
    })
}

/// The key, expiration and frame of a record.
fn entry<'a>(key: &'a [u8], record: &'a [u8], secret: &Secret) -> Option<(&'a [u8], u64, &'a [u8])> {
    let (expires_ms, rest) = unsealed(key, record)?.split_first_chunk()?;
    let (own, frame) = match key.split_first()? {
        (&WHOLE, own) => (own, rest),
        (&HASHED, _) => {
            let (bytes, rest) = rest.split_first_chunk()?;
            rest.split_at_checked(u32::from_le_bytes(*bytes) as usize)?
        }
        _ => return None,
    };
    let is_sound = !own.is_empty() && table_key(own, secret) == key && frame.starts_with(&FRAME);
    is_sound.then_some((own, u64::from_le_bytes(*expires_ms), frame))
}

fn table_key(key: &[u8], secret: &Secret) -> Vec<u8> {
    if key.len() < KEY_BYTES_MAX {
        return [&[WHOLE], key].concat();
    }
    // Nobody can choose two keys with one hash without the secret, and by chance none have one.
    [&[HASHED], &SipHasher24::new_with_key(secret).hash(key).as_bytes()[..]].concat()
}

/// A record with its checksum.
fn sealed(key: &[u8], write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut record = vec![0; 4];
    write(&mut record);
    let sum = checksum(key, &record[4..]).to_le_bytes();
    record[..4].copy_from_slice(&sum);
    record
}

/// What follows the checksum, if that is right.
fn unsealed<'a>(key: &[u8], record: &'a [u8]) -> Option<&'a [u8]> {
    let (sum, rest) = record.split_first_chunk()?;
    (checksum(key, rest) == u32::from_le_bytes(*sum)).then_some(rest)
}

fn checksum(key: &[u8], rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(rest);
    hasher.finalize()
}

/// Unpredictable, as the keys of the standard library's maps are.
fn new_secret() -> Secret {
    let random = || RandomState::new().build_hasher().finish().to_le_bytes();
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&random());
    secret[8..].copy_from_slice(&random());
    secret
}

/// The name of a new file is durable once its folder is. Where folders cannot be opened, as on Windows, the
/// system does that itself.
fn sync_folder(path: &Path) -> Result<(), Problem> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        folder.sync_all()?;
    }
    Ok(())
}
