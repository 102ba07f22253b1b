//! What can be wrong with the file of a store.
//!
//! JavaScript makes an error with a code of each, see src/store/file.ts.

use std::io::{self, ErrorKind};

/// Why a file cannot be opened or written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Problem {
    /// Another store or process has it open.
    InUse,
    /// The folder does not exist.
    Missing,
    Denied(String),
    /// It is something else than the file of a store.
    Foreign(String),
    Corrupt(String),
    Version(u64),
    DiskFull,
    /// An entry is too large for the store: its key.
    TooLarge(Box<[u8]>),
    /// The store contains as many entries as it can, and does not evict.
    TooMany,
    /// The file was deleted or replaced while it was open.
    Removed,
    Failed(String),
}

impl Problem {
    /// A name for JavaScript, and the detail of it: the system's or the engine's sentence, a version, or the
    /// key of an entry in hexadecimal digits.
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
            Self::Removed => ("removed", String::new()),
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
