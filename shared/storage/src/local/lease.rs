//! Leases of files: a locked file beside the blob, which a dead process loses with its lock.
//!
//! Whoever takes, renews, gives back or respects a lease does so during its turn in the folder, so what it finds in the
//! lease file stays true until it is done. The file tells whose lease it is and when it runs out; without a lock on it
//! nobody who lives has it.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use firn_model::BlobId;

use super::publish::{folder_of, take_turn};
use super::{LocalStore, on_disk};
use crate::clock::{Clock, later};
use crate::error::StorageError;
use crate::lease::{Lease, LeaseError, LeaseId, check_duration};

const PREFIX: &str = ".firn-";
const SUFFIX: &str = ".lease";

/// Whether a file name is that of a lease.
pub(super) fn is_lease(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// The leases that this process holds: the locks are gone with the last clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Leases {
    held: Arc<Mutex<HashMap<LeaseId, Held>>>,
    clock: Clock,
}

#[derive(Debug)]
struct Held {
    /// Locked as long as the lease is ours.
    file: File,
    duration: Duration,
}

/// What a lease file says.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    id: LeaseId,
    runs_out: DateTime<Utc>,
}

impl Said {
    fn text(&self) -> String {
        format!("{}\n{}\n", self.id, self.runs_out.to_rfc3339())
    }

    fn parse(text: &str) -> Option<Said> {
        let (id, runs_out) = text.trim_end().split_once('\n')?;
        Some(Said { id: LeaseId::new(id), runs_out: runs_out.parse().ok()? })
    }
}

impl Leases {
    pub(super) fn with_clock(clock: Clock) -> Self {
        Leases { clock, ..Self::default() }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<LeaseId, Held>> {
        // No code panics while it holds the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a write with `given` is allowed. To be asked during one's turn.
    pub(super) fn check_write(&self, id: &BlobId, path: &Path, given: Option<&LeaseId>) -> Result<(), StorageError> {
        let failed = |error: io::Error| StorageError::io(id, "read its lease", &error);
        let active = active(&lease_path(path), self.clock.now()).map_err(failed)?;
        match (active, given) {
            (None, None) => {
                // A write ends what is left of a lease that has run out: it cannot be renewed any more.
                remove(&lease_path(path)).map_err(failed)
            }
            (Some(said), Some(given)) if said.id == *given => Ok(()),
            _ => Err(StorageError::leased(id)),
        }
    }

    fn acquire(&self, id: &BlobId, path: &Path, duration: Duration) -> Result<LeaseId, LeaseError> {
        let failed = |error: io::Error| LeaseError::other(id, error.to_string());
        let _turn = take_turn(path).map_err(|error| missing_or(id, &error))?;
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Err(LeaseError::not_found(id)),
            Err(error) => return Err(missing_or(id, &error)),
        }
        let beside = lease_path(path);
        let now = self.clock.now();
        if active(&beside, now).map_err(failed)?.is_some() {
            return Err(LeaseError::held(id));
        }
        // A file of its own for each lease: who lost the old one may still hold a lock on that.
        remove(&beside).map_err(failed)?;
        let said = Said { id: LeaseId::random(), runs_out: later(now, duration) };
        let mut file = OpenOptions::new().write(true).create_new(true).open(&beside).map_err(failed)?;
        file.try_lock().map_err(|error| LeaseError::other(id, format!("cannot lock its lease file: {error}")))?;
        file.write_all(said.text().as_bytes()).map_err(failed)?;
        self.held().insert(said.id.clone(), Held { file, duration });
        Ok(said.id)
    }

    fn renew(&self, id: &BlobId, path: &Path, lease: &LeaseId) -> Result<(), LeaseError> {
        self.own(id, path, lease, |held, _| {
            let said = Said { id: lease.clone(), runs_out: later(self.clock.now(), held.duration) };
            // In place, so that the lock stays. Readers wait for their turn.
            let mut file = &held.file;
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(said.text().as_bytes())
        })
    }

    fn release(&self, id: &BlobId, path: &Path, lease: &LeaseId) -> Result<(), LeaseError> {
        let released = self.own(id, path, lease, |_, beside| remove(beside));
        self.held().remove(lease);
        released
    }

    /// Does `work` during one's turn, if the lease file is that of `lease`.
    fn own(
        &self,
        id: &BlobId,
        path: &Path,
        lease: &LeaseId,
        work: impl FnOnce(&Held, &Path) -> io::Result<()>,
    ) -> Result<(), LeaseError> {
        let failed = |error: io::Error| LeaseError::Transient { blob: Box::new(id.clone()), detail: error.to_string() };
        let _turn = match take_turn(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(LeaseError::lost(id)),
            turn => turn.map_err(failed)?,
        };
        let beside = lease_path(path);
        let said = read(&beside).map_err(failed)?;
        let held = self.held();
        match held.get(lease) {
            Some(held) if path.is_file() && said.is_some_and(|said| said.id == *lease) => {
                work(held, &beside).map_err(failed)
            }
            _ => Err(LeaseError::lost(id)),
        }
    }
}

/// `folder/.firn-name.lease` for `folder/name`.
fn lease_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(PREFIX);
    name.push(path.file_name().unwrap_or_default());
    name.push(SUFFIX);
    folder_of(path).join(name)
}

/// The lease that somebody alive has, if it has not run out.
fn active(beside: &Path, now: DateTime<Utc>) -> io::Result<Option<Said>> {
    let file = match File::open(beside) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(read(beside)?.filter(|said| said.runs_out > now)),
        Err(TryLockError::Error(error)) => Err(error),
        // Its holder is dead.
        Ok(()) => Ok(None),
    }
}

fn read(beside: &Path) -> io::Result<Option<Said>> {
    match fs::read_to_string(beside) {
        Ok(text) => Ok(Said::parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(beside: &Path) -> io::Result<()> {
    match fs::remove_file(beside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn missing_or(id: &BlobId, error: &io::Error) -> LeaseError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => LeaseError::not_found(id),
        io::ErrorKind::PermissionDenied => LeaseError::Denied { blob: Box::new(id.clone()), detail: error.to_string() },
        _ => LeaseError::other(id, error.to_string()),
    }
}

/// Runs `work` on the runtime's threads for blocking calls.
async fn on_lease<T: Send + 'static>(
    id: &BlobId,
    work: impl FnOnce(&BlobId, &Path) -> Result<T, LeaseError> + Send + 'static,
) -> Result<T, LeaseError> {
    let result = on_disk(id, move |id, path| Ok(work(id, path))).await;
    result.map_err(|error| LeaseError::other(id, error.to_string()))?
}

#[async_trait]
impl Lease for LocalStore {
    async fn acquire(&self, id: &BlobId, duration: Duration) -> Result<LeaseId, LeaseError> {
        check_duration(id, duration)?;
        let leases = self.leases.clone();
        on_lease(id, move |id, path| leases.acquire(id, path, duration)).await
    }

    async fn renew(&self, id: &BlobId, lease: &LeaseId) -> Result<(), LeaseError> {
        let (leases, lease) = (self.leases.clone(), lease.clone());
        on_lease(id, move |id, path| leases.renew(id, path, &lease)).await
    }

    async fn release(&self, id: &BlobId, lease: &LeaseId) -> Result<(), LeaseError> {
        let (leases, lease) = (self.leases.clone(), lease.clone());
        on_lease(id, move |id, path| leases.release(id, path, &lease)).await
    }
}
