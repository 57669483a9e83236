//! The replace commit (design section 6): one snapshot swaps the inputs of a group for its outputs.
//!
//! A try reads the head's manifests ([`manifests`]), finds the inputs by their exact paths ([`locate`]), refuses what came
//! since planning and makes the merge wrong ([`deletes`]), writes manifests and list ([`attempt`], [`pack`]) and asks the
//! catalog to swap. A refused try is built again on the new head without merging again; a lost answer is never taken for a
//! failure.

mod attempt;
mod build;
mod deletes;
mod done;
mod entry;
mod error;
mod head;
mod history;
mod locate;
mod manifests;
mod outputs;
mod pack;
mod request;
mod snapshot;
mod summary;
mod tuple;

pub use done::{AlreadyDone, already_done};
pub use error::CommitError;
pub use head::check_writable;
pub use request::{CommitPolicy, Committed, ConflictCounter, ReplaceOperation, ReplaceRequest};

use crate::catalog::Catalog;
use crate::error::{Source, SwapError};
use crate::loaded::LoadedTable;
use attempt::Attempt;
use build::{Builder, Ready};

/// Commits a group: swaps its inputs for its outputs in one snapshot.
///
/// The outputs must be in the store. They are never removed here: those of a commit that failed are orphans for the sweep.
///
/// # Errors
/// See [`CommitError`]; [`CommitError::Unknown`] is the only one after which the snapshot may still appear in the table.
pub async fn replace(
    catalog: &dyn Catalog,
    request: ReplaceRequest,
    policy: CommitPolicy,
) -> Result<Committed, CommitError> {
    let mut run = Run {
        catalog,
        request: &request,
        policy: &policy,
        builder: Builder::new(&request)?,
        tries: 0,
        conflicts: 0,
        outdated: 0,
        in_doubt: false,
    };
    let mut table = request.newest.as_ref().unwrap_or(&request.base).clone();
    loop {
        match run.try_on(&table).await {
            Ok(Tried::Committed(committed)) => return Ok(committed),
            Ok(Tried::TryOn(moved)) => table = moved,
            Err(error) if run.in_doubt && !matches!(error, CommitError::Unknown { .. }) => {
                return Err(run.unknown(error.into()));
            }
            Err(error) => return Err(error),
        }
    }
}

/// The sending side of a commit.
struct Run<'a> {
    catalog: &'a dyn Catalog,
    request: &'a ReplaceRequest,
    policy: &'a CommitPolicy,
    builder: Builder<'a>,
    /// Tries that were sent.
    tries: u32,
    conflicts: u32,
    /// Versions that could not be built on and were no longer current.
    outdated: u32,
    /// A try was refused though the branch had not moved: what refused it may have been our own request, which is still being worked on
    /// (a resent one, by us or by a proxy between). It may land at any time, so nothing that it names is removed and no failure is certain.
    in_doubt: bool,
}

/// How a try ended that did not end the commit with an error.
enum Tried {
    Committed(Committed),
    /// Refused, or not worth sending; the next try builds on this version.
    TryOn(LoadedTable),
}

impl Run<'_> {
    /// One try on a version of the table.
    async fn try_on(&mut self, table: &LoadedTable) -> Result<Tried, CommitError> {
        let prepared = match self.builder.prepare(table).await {
            Ok(prepared) => prepared,
            Err(error) => return self.not_built(table, error).await,
        };
        // Writing manifests took time, in which writers may have committed: a try on what is outdated would only be refused. So it is where
        // one was refused already: somebody else commits all the time, and to look costs less than another refusal.
        if (prepared.took_time || self.conflicts > 0)
            && let Some(newer) = self.moved_on(table).await
        {
            return Ok(Tried::TryOn(newer));
        }
        match self.builder.finish(prepared).await {
            Ok(ready) => self.send(table, ready).await,
            Err(error) => self.not_built(table, error).await,
        }
    }

    /// A try could not be built. On a newer version it may be possible: the manifests of `table` may be gone after an expiry, or rewritten
    /// by others. Where the error would be the same, nothing of the commit is left.
    async fn not_built(&mut self, table: &LoadedTable, error: CommitError) -> Result<Tried, CommitError> {
        let may_be_stale = matches!(error, CommitError::Storage { .. } | CommitError::Permanent { .. });
        if may_be_stale && let Some(newer) = self.moved_on(table).await {
            return Ok(Tried::TryOn(newer));
        }
        self.drop_manifests(table).await;
        Err(error)
    }

    /// The current version, when `table` is not it any more.
    async fn moved_on(&mut self, table: &LoadedTable) -> Option<LoadedTable> {
        if self.outdated >= self.policy.retry_max {
            return None;
        }
        let current = self.catalog.load(&self.request.base.ident).await.ok()?;
        if current.metadata_location == table.metadata_location {
            return None;
        }
        self.outdated += 1;
        Some(current)
    }

    async fn send(&mut self, table: &LoadedTable, ready: Ready) -> Result<Tried, CommitError> {
        let Ready { attempt, updates, requirements } = ready;
        let ident = self.request.base.ident.clone();
        self.tries += 1;
        let refusal = match self.catalog.swap(table, updates, requirements).await {
            Ok(swapped) => {
                if let Some(committed) = self.committed(swapped) {
                    return Ok(Tried::Committed(committed));
                }
                let lost = "the catalog answered with success, but its metadata lacks the snapshot";
                return self.find_or_give_up(lost.into()).await.map(Tried::Committed);
            }
            Err(SwapError::Unknown { source, .. }) => {
                return self.find_or_give_up(source).await.map(Tried::Committed);
            }
            Err(SwapError::NotSent { source, .. }) => {
                self.void(attempt, table).await;
                return Err(CommitError::Storage { ident, what: "the commit was not sent".to_owned(), source });
            }
            Err(SwapError::Denied { source, .. }) => {
                let what = "the catalog does not let Firn commit".to_owned();
                return self.refused(attempt, table, CommitError::Storage { ident, what, source }).await;
            }
            Err(SwapError::Permanent { source, .. }) => {
                let detail = format!("the commit was refused: {source}");
                return self.refused(attempt, table, CommitError::Permanent { ident, detail }).await;
            }
            Err(SwapError::Conflict { detail, .. }) => detail,
        };
        self.conflicts += 1;
        self.policy.conflicts.add_one();
        let used_up = self.conflicts > self.policy.retry_max;
        if !used_up {
            tokio::time::sleep(self.policy.wait_after_conflict(self.conflicts)).await;
        }
        // The refusal may answer a second delivery of our own request, of which the first was applied: only the table knows.
        let moved = match self.catalog.load(&ident).await {
            Ok(moved) => moved,
            Err(error) => return Err(self.unknown(error.into())),
        };
        if let Some(committed) = self.committed(moved.clone()) {
            return Ok(Tried::Committed(committed));
        }
        if self.head(&moved) == self.head(table) {
            self.in_doubt = true;
        } else {
            attempt.clean_up(&table.io).await;
        }
        if used_up {
            self.drop_manifests(table).await;
            return Err(CommitError::ConflictsUsedUp { ident, conflicts: self.conflicts, last: refusal });
        }
        tracing::info!(table = %ident, conflicts = self.conflicts, refusal, "commit conflict, trying on the new head");
        Ok(Tried::TryOn(moved))
    }

    fn head(&self, table: &LoadedTable) -> Option<i64> {
        table.head(&self.request.branch).map(|snapshot| snapshot.snapshot_id())
    }

    /// A try was refused for good, or because of who asks. The refusal, too, may answer a second delivery of a request of which the first was
    /// applied: before anything is removed the table is looked at, and when that cannot be done, nothing is removed. What is left so is an
    /// orphan for the sweep.
    async fn refused(
        &mut self,
        attempt: Attempt,
        table: &LoadedTable,
        error: CommitError,
    ) -> Result<Tried, CommitError> {
        match self.catalog.load(&self.request.base.ident).await {
            Ok(now) => match self.committed(now) {
                Some(committed) => return Ok(Tried::Committed(committed)),
                None => self.void(attempt, table).await,
            },
            Err(unseen) => {
                tracing::warn!(%unseen, "a refused commit cannot be looked into, so its files stay for the sweep")
            }
        }
        Err(error)
    }

    /// Removes what a try wrote that was not sent or was refused for good, and what all tries share.
    async fn void(&mut self, attempt: Attempt, table: &LoadedTable) {
        attempt.clean_up(&table.io).await;
        self.drop_manifests(table).await;
    }

    /// Removes the manifests that all tries share, unless one of them may still land.
    async fn drop_manifests(&mut self, table: &LoadedTable) {
        if !self.in_doubt {
            self.builder.clean_up(table).await;
        }
    }

    /// The answer, when the version of the table has our snapshot. One that was rolled back since counts too: it was applied, and its
    /// files are the table's.
    fn committed(&self, table: LoadedTable) -> Option<Committed> {
        let snapshot_id = self.builder.snapshot_id;
        let same_table = table.metadata.uuid() == self.request.base.metadata.uuid();
        let applied = same_table && table.metadata.snapshot_by_id(snapshot_id).is_some();
        applied.then_some(Committed { snapshot_id, tries: self.tries, conflicts: self.conflicts, table })
    }

    /// Looks for our snapshot after a lost answer. Not seen is not the same as not applied: nothing is removed.
    async fn find_or_give_up(&self, source: Source) -> Result<Committed, CommitError> {
        for reload in 1..=self.policy.unknown_reloads {
            tokio::time::sleep(self.policy.wait(reload.into())).await;
            let loaded = self.catalog.load(&self.request.base.ident).await;
            match loaded.map(|table| self.committed(table)) {
                Ok(Some(committed)) => return Ok(committed),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "cannot look for a commit whose answer was lost"),
            }
        }
        Err(self.unknown(source))
    }

    fn unknown(&self, source: Source) -> CommitError {
        CommitError::Unknown { ident: self.request.base.ident.clone(), snapshot_id: self.builder.snapshot_id, source }
    }
}
