//! The table in the file: redb, a B-tree whose commits are atomic and synced, with a checksum for each page.
//!
//! An entry is its key, the wall-clock time of its expiration (8 bytes, little-endian, 0: never) and the
//! frame of its value, which must be one that any process can read. After an I/O error redb must be opened
//! again, which the next commit does.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use redb::{
    Builder, CommitError, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError,
    TableDefinition, TableError, TransactionError,
};

use super::journal::Group;

const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");
/// Facts about the file.
const ABOUT: TableDefinition<&str, u64> = TableDefinition::new("corespun.store");
/// In [`ABOUT`]: the version of the format.
const VERSION: &str = "version";
/// The version that is written, and the newest that can be read.
pub const VERSION_MAX: u64 = 1;
/// Bytes before the frame of a record.
const EXPIRES_BYTES: usize = 8;
/// The first bytes of a frame: its version, and that it uses no numbers of a process.
const FRAME: [u8; 2] = [1, 1];
/// Memory for pages: all values are in the store's map, so that pages are only read to be changed.
const CACHE_BYTES: usize = 8 << 20;

/// Why a file cannot be opened or written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Problem {
    /// Another store or process has it open.
    InUse,
    /// The folder does not exist.
    Missing,
    /// The system refuses access.
    Denied(String),
    /// It is something else than the file of a store.
    Foreign(String),
    /// It is damaged.
    Corrupt(String),
    /// A newer version has written it.
    Version(u64),
    /// No space is left.
    DiskFull,
    /// An entry is too large for the store: its key.
    TooLarge(Box<[u8]>),
    /// The store cannot contain so many entries, and does not evict.
    TooMany,
    /// Anything else.
    Failed(String),
}

impl Problem {
    /// A name for JavaScript, and the detail of it: the system's or the engine's sentence, a version, or the
    /// key of an entry in hexadecimal digits.
    #[must_use]
    pub fn parts(&self) -> (&'static str, String) {
        match self {
            Self::InUse => ("inUse", String::new()),
            Self::Missing => ("missing", String::new()),
            Self::Denied(what) => ("denied", what.clone()),
            Self::Foreign(what) => ("foreign", what.clone()),
            Self::Corrupt(what) => ("corrupt", what.clone()),
            Self::Version(version) => ("version", version.to_string()),
            Self::DiskFull => ("full", String::new()),
            Self::TooLarge(key) => ("tooLarge", hex(key)),
            Self::TooMany => ("tooMany", String::new()),
            Self::Failed(what) => ("failed", what.clone()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Self::DiskFull,
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::Missing,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::Denied(error.to_string()),
            ErrorKind::InvalidData | ErrorKind::IsADirectory => Self::Foreign(error.to_string()),
            ErrorKind::UnexpectedEof => Self::Corrupt(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Io(error) => error.into(),
            StorageError::Corrupted(what) => Self::Corrupt(what),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<DatabaseError> for Problem {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::InUse,
            DatabaseError::Storage(error) => error.into(),
            other => Self::Corrupt(other.to_string()),
        }
    }
}

impl From<TransactionError> for Problem {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Storage(error) => error.into(),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<TableError> for Problem {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Storage(error) => error.into(),
            other => Self::Foreign(other.to_string()),
        }
    }
}

impl From<CommitError> for Problem {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Storage(error) => error.into(),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Where groups go.
pub trait Table {
    /// Commits a group; when it returns, the group is in the file, also after a loss of power.
    ///
    /// # Errors
    ///
    /// See [`Problem`]; then the file has all of the group's changes, or stays as it was.
    fn commit(&mut self, group: &Group) -> Result<(), Problem>;
}

/// The table of a file.
pub struct FileTable {
    path: PathBuf,
    /// `None` after a failure.
    database: Option<Database>,
}

impl FileTable {
    /// Opens the file, or creates it, and passes each entry to `load`: key, expiration and frame.
    ///
    /// # Errors
    ///
    /// See [`Problem`]; and what `load` returns.
    pub fn open(
        path: &Path,
        mut load: impl FnMut(&[u8], u64, &[u8]) -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        let is_new = fs::metadata(path).map_or(true, |metadata| metadata.is_file() && metadata.len() == 0);
        let database = builder().set_check_integrity_on_open(!is_new).create(path)?;
        check_version(&database)?;
        if is_new {
            sync_folder(path)?;
        }
        let entries = database.begin_read()?.open_table(ENTRIES)?;
        for entry in entries.iter()? {
            let (key, record) = entry?;
            let (key, record) = (key.value(), record.value());
            let damaged = || Problem::Corrupt(format!("an entry of {} bytes is malformed", record.len()));
            let (expires_ms, frame) = record.split_first_chunk::<EXPIRES_BYTES>().ok_or_else(damaged)?;
            if key.is_empty() || !frame.starts_with(&FRAME) {
                return Err(damaged());
            }
            load(key, u64::from_le_bytes(*expires_ms), frame)?;
        }
        Ok(Self { path: path.into(), database: Some(database) })
    }
}

impl Table for FileTable {
    fn commit(&mut self, group: &Group) -> Result<(), Problem> {
        // Taken: after an error it is dropped.
        let database = match self.database.take() {
            Some(database) => database,
            None => builder().create(&self.path)?,
        };
        write(&database, group)?;
        self.database = Some(database);
        Ok(())
    }
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn write(database: &Database, group: &Group) -> Result<(), Problem> {
    let transaction = database.begin_write()?;
    if group.cleared {
        transaction.delete_table(ENTRIES)?;
    }
    let mut entries = transaction.open_table(ENTRIES)?;
    let mut bytes = Vec::new();
    for (key, change) in &group.changes {
        match change {
            Some(record) => {
                bytes.clear();
                bytes.extend_from_slice(&record.expires_ms.to_le_bytes());
                bytes.extend_from_slice(&record.bytes);
                entries.insert(&**key, &*bytes)?;
            }
            None => drop(entries.remove(&**key)?),
        }
    }
    drop(entries);
    Ok(transaction.commit()?)
}

/// Refuses what another program or a newer version has written; a file without any table becomes ours.
fn check_version(database: &Database) -> Result<(), Problem> {
    let transaction = database.begin_read()?;
    if transaction.list_tables()?.next().is_none() {
        let transaction = database.begin_write()?;
        transaction.open_table(ABOUT)?.insert(VERSION, VERSION_MAX)?;
        transaction.open_table(ENTRIES)?;
        return Ok(transaction.commit()?);
    }
    let about = match transaction.open_table(ABOUT) {
        Err(TableError::TableDoesNotExist(_)) => {
            return Err(Problem::Foreign("a database of another program".into()));
        }
        about => about?,
    };
    match about.get(VERSION)?.map(|version| version.value()) {
        Some(1..=VERSION_MAX) => Ok(()),
        Some(version) => Err(Problem::Version(version)),
        None => Err(Problem::Corrupt("its version is missing".into())),
    }
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
