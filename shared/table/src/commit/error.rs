//! How a commit ends when it does not succeed, told by what the caller does next.

use crate::error::{NextStep, Source, TableError};
use crate::ident::TableIdent;

/// Why a group was not committed. Unless the variant says otherwise, the table is as it was, and the outputs are orphans for
/// the sweep.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Inputs are no longer live: re-plan the partition once.
    #[error("table `{ident}`: {} input(s) are no longer live, first `{}`; the partition must be planned again",
        .missing.len(), .missing.first().map_or("", String::as_str))]
    InputsGone {
        /// The table.
        ident: TableIdent,
        /// Their exact paths.
        missing: Vec<String>,
    },
    /// Somebody else committed this very group: nothing is left to do.
    #[error("table `{ident}`: the inputs were already replaced, see {by}")]
    Superseded {
        /// The table.
        ident: TableIdent,
        /// The snapshot or live file that shows it.
        by: String,
    },
    /// Delete files that may apply to an input came since the merge was planned: drop the merge and re-plan.
    #[error("table `{ident}`: {} delete file(s) added since planning may apply to an input, first `{}`; the merge must be \
        planned again", .deletes.len(), .deletes.first().map_or("", String::as_str))]
    NewDeletes {
        /// The table.
        ident: TableIdent,
        /// Paths of the delete files (a vector's with its offset).
        deletes: Vec<String>,
    },
    /// The table's current schema changed since the merge was planned: drop the merge and re-plan.
    #[error(
        "table `{ident}`: the schema changed from {planned} to {current} since planning; the merge must be planned again"
    )]
    SchemaChanged {
        /// The table.
        ident: TableIdent,
        /// Schema id that the outputs were written with.
        planned: i32,
        /// Schema id of the table now.
        current: i32,
    },
    /// Every try met a conflict: try again later.
    #[error("table `{ident}`: {conflicts} tries met conflicting commits, last: {last}; it will be tried again later")]
    ConflictsUsedUp {
        /// The table.
        ident: TableIdent,
        /// How many.
        conflicts: u32,
        /// What the catalog said last.
        last: String,
    },
    /// An output is not in the store as it was written: do not commit; merge again.
    #[error("table `{ident}`: output `{path}` should have {expected} bytes, the store has {}",
        .found.map_or("no such blob".to_owned(), |bytes| bytes.to_string()))]
    OutputMissing {
        /// The table.
        ident: TableIdent,
        /// The output.
        path: String,
        /// Bytes written.
        expected: u64,
        /// Bytes found; None when there is no such blob.
        found: Option<u64>,
    },
    /// The catalog's answer was lost, and our snapshot is not to be seen. It may still appear: nothing was deleted and
    /// nothing may be. Try again later; the next run finds the outputs live or plans anew.
    #[error("table `{ident}`: nobody knows whether snapshot {snapshot_id} was committed: {source}")]
    Unknown {
        /// The table.
        ident: TableIdent,
        /// The snapshot to look for.
        snapshot_id: i64,
        /// What was lost.
        source: Source,
    },
    /// Store or catalog did not answer, and nothing was sent: try again later.
    #[error("table `{ident}`: {what}: {source}")]
    Storage {
        /// The table.
        ident: TableIdent,
        /// What was tried.
        what: String,
        /// Why it failed.
        source: Source,
    },
    /// Trying again cannot help; a person must look.
    #[error("table `{ident}`: {detail}")]
    Permanent {
        /// The table.
        ident: TableIdent,
        /// What is wrong, with the file or value.
        detail: String,
    },
}

impl CommitError {
    /// True when the merge is worthless now and the partition should be planned again at once (once, design section 9).
    pub fn wants_replan(&self) -> bool {
        matches!(
            self,
            CommitError::InputsGone { .. } | CommitError::NewDeletes { .. } | CommitError::SchemaChanged { .. }
        )
    }
}

impl From<TableError> for CommitError {
    /// A table that could not be read while a commit was built.
    fn from(error: TableError) -> Self {
        let ident = match &error {
            TableError::BranchAbsent { ident, .. }
            | TableError::TableAbsent { ident, .. }
            | TableError::Metadata { ident, .. }
            | TableError::Url { ident, .. }
            | TableError::Read { ident, .. }
            | TableError::Damaged { ident, .. } => ident.clone(),
            TableError::CatalogAbsent { .. }
            | TableError::CatalogDenied { .. }
            | TableError::CatalogUnavailable { .. } => TableIdent::new(Vec::<String>::new(), ""),
        };
        match error.next_step() {
            NextStep::Retry => {
                CommitError::Storage { ident, what: "cannot read the table".to_owned(), source: error.into() }
            }
            _ => CommitError::Permanent { ident, detail: error.to_string() },
        }
    }
}
