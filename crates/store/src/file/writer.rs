//! The thread that opens a file, loads its entries into the store, and commits groups until the store closes.
//!
//! One file belongs to one store of the process: the claims below ensure that without asking the system, and
//! let a store that is created right after another was closed wait for the end of that one.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use super::{
    journal::{Journal, Stage},
    problem::Problem,
    table::{FileTable, Table},
};
use crate::{
    key::KeyRef,
    store::Store,
    terms::{Expected, NewValue, Refusal, Ttl},
};

/// Starts the thread of a store with a file.
pub fn start(store: Arc<Store>, journal: Arc<Journal>) {
    let for_thread = Arc::clone(&journal);
    let run = move || run_to_end(store, &for_thread);
    if let Err(error) = thread::Builder::new().name("corespun-file".into()).spawn(run) {
        journal.ended(Some(Problem::Failed(error.to_string())));
    }
}

fn run_to_end(store: Arc<Store>, journal: &Arc<Journal>) {
    let claim = match Claim::take(journal) {
        Ok(claim) => claim,
        Err(problem) => return journal.ended(Some(problem)),
    };
    let opened = caught(|| {
        FileTable::open(journal.path(), |key, expires_ms, frame| {
            load(&store, journal, key, expires_ms, frame)
        })
    });
    drop(store);
    let outcome = opened.and_then(|mut table| {
        journal.identified(table.identity());
        journal.opened();
        write(journal, &mut table)
    });
    // The file is closed first: who waits for the end may open it again.
    drop(claim);
    journal.ended(outcome.err());
}

/// Commits groups until the store is closed.
pub(super) fn write(journal: &Journal, table: &mut impl Table) -> Result<(), Problem> {
    while let Some((group, up_to)) = journal.next() {
        let outcome = caught(|| table.commit(&group));
        let problem = outcome.clone().err();
        if !journal.committed(group, up_to, outcome) {
            return problem.map_or(Ok(()), Err);
        }
    }
    Ok(())
}

/// Puts an entry of the file into the store, unless it has expired.
pub(super) fn load(
    store: &Store,
    journal: &Journal,
    key: &[u8],
    expires_ms: u64,
    frame: &[u8],
) -> Result<(), Problem> {
    let key = KeyRef::new(key);
    let left_ms = match expires_ms {
        0 => 0,
        expires_ms => match journal.left_ms(expires_ms) {
            Some(left_ms) => left_ms,
            None => {
                journal.remove(key);
                return Ok(());
            }
        },
    };
    // With a time to live of 0 it does not expire, whatever the store's default is now.
    let value = NewValue { bytes: frame, ttl: Ttl::Ms(left_ms), keeps: None };
    match store.set(key, value, Expected::Any) {
        Ok(_) => Ok(()),
        Err(Refusal::TooLarge) => Err(Problem::TooLarge(key.bytes().into())),
        Err(Refusal::Full) => Err(Problem::TooMany),
        Err(_) => Err(Problem::Failed("the store was closed while it was opened".into())),
    }
}

/// The engine's assertions fail on some damaged files: they must not end the process.
fn caught<T>(body: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it cannot be read");
        Err(Problem::Corrupt(text.to_owned()))
    })
}

static CLAIMS: LazyLock<Mutex<HashMap<PathBuf, Arc<Journal>>>> = LazyLock::new(Mutex::default);
static RELEASED: Condvar = Condvar::new();

/// The right of one journal to its file.
struct Claim(PathBuf, Arc<Journal>);

impl Claim {
    /// Waits for a store that is being closed; refuses while another one is open that has not lost its file.
    fn take(journal: &Arc<Journal>) -> Result<Self, Problem> {
        let path = true_path(journal.path());
        let mut claims = CLAIMS.lock();
        while let Some(holder) = claims.get(&path) {
            if holder.has_lost_file() {
                break;
            }
            if !matches!(holder.stage(Duration::ZERO), Stage::Closing | Stage::Ended) {
                return Err(Problem::InUse);
            }
            RELEASED.wait(&mut claims);
        }
        claims.insert(path.clone(), Arc::clone(journal));
        Ok(Self(path, Arc::clone(journal)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claims = CLAIMS.lock();
        if claims.get(&self.0).is_some_and(|holder| Arc::ptr_eq(holder, &self.1)) {
            claims.remove(&self.0);
        }
        RELEASED.notify_all();
    }
}

/// The path without links, so that two names of one file are one.
fn true_path(path: &Path) -> PathBuf {
    let canonical = path.canonicalize().or_else(|error| match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => folder.canonicalize().map(|folder| folder.join(name)),
        _ => Err(error),
    });
    canonical.unwrap_or_else(|_| path.into())
}
