//! What can go wrong with a table, told by what the caller does next.

use firn_model::BlobIdError;
use firn_storage::StorageError;

use crate::ident::TableIdent;

/// Any boxed cause.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

/// What the caller of a failed call does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextStep {
    /// Wrong usage or configuration: tell the person, exit code 2.
    Usage,
    /// Something that must exist does not: tell the person, exit code 1.
    Absent,
    /// A service did not answer or refused for now: try again later.
    Retry,
    /// The table or file is damaged or of a kind that Firn cannot read: leave it alone and go on with the others.
    Skip,
}

/// What helps when a metadata file cannot be used.
fn unusable(source: &Source) -> &'static str {
    // Iceberg's readers hold the times in the logs of the metadata to be in order, but for a minute.
    match source.to_string().contains("log entries") {
        true => {
            "the clock of a writer was more than a minute ahead; set the clocks (NTP). The file is whole and no row is lost: do not go back to \
             an older one. Iceberg's Java library refuses it as well until the entries of that writer are out of the log; PyIceberg reads it"
        }
        false => "restore this file (soft delete, a backup), or let the catalog name an older one of the same folder",
    }
}

/// Why a catalog or table could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// There is no such catalog, or it cannot be used as it is configured.
    #[error("catalog `{catalog}`: {detail}")]
    CatalogAbsent {
        /// The catalog's name or file.
        catalog: String,
        /// What was looked for.
        detail: String,
    },
    /// The catalog does not accept who asks. A person mends that, and no message is to blame: work waits for it, however long.
    #[error("catalog `{catalog}` does not let Firn in: {detail}; work waits and is tried again")]
    CatalogDenied {
        /// The catalog's name or file.
        catalog: String,
        /// What it said, and the remedy.
        detail: String,
    },
    /// The catalog did not answer.
    #[error(
        "catalog `{catalog}` does not answer: {source}: check that it runs and that catalog.uri is right, then try again"
    )]
    CatalogUnavailable {
        /// The catalog's name or file.
        catalog: String,
        /// Why.
        source: Source,
    },
    /// The catalog does not know the table.
    #[error("table `{ident}` is not in catalog `{catalog}`; {}", known_tables(.ident, .known))]
    TableAbsent {
        /// The table asked for.
        ident: TableIdent,
        /// The catalog's name.
        catalog: String,
        /// Tables of the same namespace, sorted.
        known: Vec<String>,
    },
    /// The table has no such branch.
    #[error("table `{ident}` has no branch `{branch}`: create it, or correct branch of the dataset")]
    BranchAbsent {
        /// The table.
        ident: TableIdent,
        /// The branch asked for.
        branch: String,
    },
    /// The table's metadata cannot be read as an Iceberg table.
    #[error(
        "table `{ident}`: metadata `{location}` cannot be used: {source}: {}", unusable(.source)
    )]
    Metadata {
        /// The table.
        ident: TableIdent,
        /// The metadata file.
        location: String,
        /// Why.
        source: Source,
    },
    /// A path in the table's metadata names no blob that Firn can reach.
    #[error("table `{ident}`: {source}")]
    Url {
        /// The table.
        ident: TableIdent,
        /// What is wrong with the path.
        source: BlobIdError,
    },
    /// A metadata file of the table could not be read.
    #[error("table `{ident}`: cannot read {what}: {source}{}", restore(.source))]
    Read {
        /// The table.
        ident: TableIdent,
        /// What kind of file it is.
        what: &'static str,
        /// Why; names the file.
        source: StorageError,
    },
    /// What the table's files say cannot be true, or cannot be understood.
    #[error("table `{ident}`: {detail}: Firn leaves the table as it is; its writer or its catalog has to mend it")]
    Damaged {
        /// The table.
        ident: TableIdent,
        /// What is wrong, with the file or value.
        detail: String,
    },
}

impl TableError {
    /// What the caller does next.
    pub fn next_step(&self) -> NextStep {
        match self {
            TableError::CatalogAbsent { .. } | TableError::TableAbsent { .. } | TableError::BranchAbsent { .. } => {
                NextStep::Absent
            }
            TableError::CatalogUnavailable { .. } | TableError::CatalogDenied { .. } => NextStep::Retry,
            TableError::Read { source, .. } => match source {
                error if error.heals() => NextStep::Retry,
                StorageError::NoContainer { .. } => NextStep::Absent,
                _ => NextStep::Skip,
            },
            TableError::Metadata { .. } | TableError::Url { .. } | TableError::Damaged { .. } => NextStep::Skip,
        }
    }
}

/// What helps when a file that the metadata names is gone; other errors say it themselves.
fn restore(source: &StorageError) -> &'static str {
    match source {
        StorageError::NotFound { .. } => {
            ": restore it (soft delete, a backup), or let the catalog name a version of the table that does without it"
        }
        StorageError::OutOfRange { .. } | StorageError::Other { .. } => {
            ": restore it as it was (soft delete, a backup)"
        }
        _ => "",
    }
}

fn known_tables(ident: &TableIdent, known: &[String]) -> String {
    let namespace = ident.namespace();
    if known.is_empty() {
        return format!("namespace `{namespace}` has no tables");
    }
    const SHOWN: usize = 20;
    let shown: Vec<String> = known.iter().take(SHOWN).map(|name| format!("`{namespace}.{name}`")).collect();
    let more = known.len().saturating_sub(SHOWN);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("namespace `{namespace}` has {}{tail}", shown.join(", "))
}

/// How a swap of a table's metadata ended when it did not succeed (design section 6).
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// Definitely not applied, because the table moved on or a requirement does not hold: reload and decide anew.
    #[error("table `{ident}` changed meanwhile: {detail}")]
    Conflict {
        /// The table.
        ident: TableIdent,
        /// What does not hold.
        detail: String,
    },
    /// Definitely not applied, because nothing was sent, or what took it asks for patience: try again later.
    #[error("table `{ident}`: commit not sent: {source}")]
    NotSent {
        /// The table.
        ident: TableIdent,
        /// Why.
        source: Source,
    },
    /// Definitely not applied, because the catalog does not accept who asks: a person mends that, and then the same commit goes. Try again
    /// later.
    #[error("table `{ident}`: the catalog does not let Firn commit: {source}")]
    Denied {
        /// The table.
        ident: TableIdent,
        /// What it said, and the remedy.
        source: Source,
    },
    /// Sent, but nobody knows whether it was or will be applied. Delete nothing; reload and look for the snapshot.
    #[error("table `{ident}`: commit state unknown: {source}")]
    Unknown {
        /// The table.
        ident: TableIdent,
        /// Why.
        source: Source,
    },
    /// Definitely not applied, and it will not be next time either.
    #[error("table `{ident}`: commit refused: {source}")]
    Permanent {
        /// The table.
        ident: TableIdent,
        /// Why.
        source: Source,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_table_names_the_tables_of_its_namespace() {
        let error = |known: &[&str]| TableError::TableAbsent {
            ident: TableIdent::new(["iot"], "readngs"),
            catalog: "lake".into(),
            known: known.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(
            error(&["logs", "readings"]).to_string(),
            "table `iot.readngs` is not in catalog `lake`; namespace `iot` has `iot.logs`, `iot.readings`"
        );
        assert_eq!(
            error(&[]).to_string(),
            "table `iot.readngs` is not in catalog `lake`; namespace `iot` has no tables"
        );
        let many: Vec<String> = (0..23).map(|n| format!("t{n}")).collect();
        assert!(known_tables(&TableIdent::new(["n"], "x"), &many).ends_with("`n.t19` and 3 more"));
        assert_eq!(error(&[]).next_step(), NextStep::Absent);
    }

    #[test]
    fn what_is_broken_says_what_to_do() {
        let ident = TableIdent::new(["iot"], "readings");
        let id = firn_model::BlobId::local("/wh/t/metadata/3.metadata.json");
        let failed = |source| TableError::Read { ident: ident.clone(), what: "its current metadata", source };
        let read = |source| failed(source).to_string();
        let gone = read(StorageError::NotFound { blob: Box::new(id.clone()) });
        assert!(gone.contains("restore it (soft delete, a backup), or let the catalog name a version"), "{gone}");
        let refused = || StorageError::Denied { blob: Box::new(id.clone()), detail: "permission denied".into() };
        assert_eq!(
            failed(refused()).next_step(),
            NextStep::Retry,
            "a person gives the right back, nobody names the work again"
        );
        let denied = read(refused());
        assert!(
            denied.ends_with("access denied (permission denied): let the user of this process read and write there")
        );
        let metadata = TableError::Metadata {
            ident: ident.clone(),
            location: "file:///wh/t/metadata/3.metadata.json".into(),
            source: "EOF while parsing".into(),
        };
        assert!(metadata.to_string().contains("EOF while parsing: restore this file"), "{metadata}");
        let damaged = TableError::Damaged { ident, detail: "data file `a` is live twice".into() };
        assert!(damaged.to_string().ends_with("its writer or its catalog has to mend it"), "{damaged}");
        let away = TableError::CatalogUnavailable { catalog: "lake".into(), source: "refused".into() };
        assert!(away.to_string().contains("check that it runs and that catalog.uri is right"), "{away}");
    }
}
