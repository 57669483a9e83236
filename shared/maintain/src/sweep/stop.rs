//! Why a sweep ended without deleting anything, although it was asked to (design section 7: "stops and deletes nothing when anything looks
//! wrong"). Each is a state of things that a person should look at; the next sweep asks again.

use chrono::{DateTime, Utc};
use firn_model::BlobIdError;
use firn_state::StateError;
use firn_storage::StorageError;
use firn_table::{TableError, TableIdent};

/// Something looks wrong.
#[derive(Debug, thiserror::Error)]
pub enum SweepStop {
    /// A path of the metadata names no blob that can be reached.
    #[error("the metadata names `{path}`: {source}")]
    UnknownUrl {
        /// The path.
        path: String,
        /// What is wrong with it.
        source: BlobIdError,
    },
    /// A path has `.` or `..` in it: stores and engines differ in what it means.
    #[error(
        "the metadata names `{path}`, whose `.` or `..` may mean another file: rewrite this file or remove its reference"
    )]
    UnclearPath {
        /// The path.
        path: String,
    },
    /// A path leads to an account or container that is none of the table's.
    #[error(
        "the metadata names `{path}`, which lies in another account or container than {listed}: its files could have two names; \
         orphan cleanup does not take such a table"
    )]
    OtherAccount {
        /// The path.
        path: String,
        /// What was listed.
        listed: String,
    },
    /// A path outside the listed folders is another name of a folder that was listed.
    #[error(
        "the metadata names `{path}`, which is another name (a link) of a file in {listed}: use one name for the table's files"
    )]
    OtherName {
        /// The path.
        path: String,
        /// What was listed.
        listed: String,
    },
    /// No file of a form of URL was found in the listing.
    #[error(
        "the metadata has paths like `{form}` (`{example}`), and not one of them was found in the listing: listing and metadata may name \
         files differently"
    )]
    FormNotFound {
        /// The form.
        form: String,
        /// A path of it.
        example: String,
    },
    /// A file that a snapshot needs is gone.
    #[error(
        "`{path}` is not there although the table refers to it: the table is damaged; restore the file before anything is cleaned"
    )]
    Missing {
        /// The path.
        path: String,
    },
    /// A file is there, was there before the listing began, and was not listed.
    #[error("`{path}` is there and the listing lacks it: the listing is not whole, or the file has another name in it")]
    Unlisted {
        /// The path.
        path: String,
    },
    /// So many files were not in the listing that it cannot be whole.
    #[error("more than {0} files that the table refers to are not in the listing: it cannot be whole")]
    ManyUnlisted(usize),
    /// A listing ended in an error.
    #[error("the listing of {folder} ended early: {source}")]
    Listing {
        /// The folder.
        folder: String,
        /// Why.
        source: StorageError,
    },
    /// Another table lies in a folder of this one.
    #[error("{folder} holds the metadata of another table (`{found}`): give each table a location of its own")]
    TableInside {
        /// The folder that was listed.
        folder: String,
        /// The other table's metadata.
        found: String,
    },
    /// This table lies in the folder of another one.
    #[error("the table lies inside another one, whose metadata is `{found}`: give each table a location of its own")]
    TableAround {
        /// The other table's metadata.
        found: String,
    },
    /// A later version of the table is there, built on versions that the catalog does not know.
    #[error(
        "`{found}` is a later version of this table than the one that the catalog names (`{named}`), and builds on others that it does not know: \
         another catalog goes on with the table, and its files would look like orphans here; look after the table there. After a return to an \
         older version the next commit ends this"
    )]
    Ahead {
        /// The later version.
        found: String,
        /// The version that the catalog names.
        named: String,
    },
    /// Another table of the catalog shares a folder with this one.
    #[error(
        "{mine} and {its} of table `{other}` overlap: one table's files would be the other's orphans; give each a location of its own"
    )]
    Shared {
        /// A folder of this table.
        mine: String,
        /// A folder of the other.
        its: String,
        /// The other table.
        other: TableIdent,
    },
    /// Files lie outside the location, and a neighbour cannot be read, so nobody knows whether it has files there too.
    #[error(
        "files of this table lie outside its location, and table `{other}` cannot be read: {detail}; mend or drop that one first"
    )]
    NeighbourUnknown {
        /// The neighbour.
        other: TableIdent,
        /// Why.
        detail: String,
    },
    /// The tables of the catalog cannot be listed, so nobody knows whether one of them has files in the folders of this one.
    #[error(
        "the tables of the catalog cannot be listed, and one of them might have files here: {source}; let this identity list all namespaces \
         and tables"
    )]
    NeighboursUnlisted {
        /// Why.
        source: TableError,
    },
    /// The list of the catalog's tables lacks the one that is swept: it is not whole.
    #[error(
        "the catalog's list of tables lacks `{table}`, so it may lack others that have files here: write the name as the catalog lists it, and \
         let this identity list all namespaces and tables"
    )]
    NotListed {
        /// The table.
        table: TableIdent,
    },
    /// The location is that of a table of another format too, which needs files that the Iceberg metadata does not name.
    #[error(
        "`{found}` belongs to a table of another format in the same location, which may need files that the Iceberg metadata does not name: \
         remove it if that table is no longer in use"
    )]
    OtherFormat {
        /// A file of the other table.
        found: String,
    },
    /// The time of the run was used up before anything was deleted.
    #[error(
        "out of time while {at}: nothing was deleted; a longer functionTimeout, or `firn orphans` by hand, which has no limit, gets through"
    )]
    OutOfTime {
        /// What the time went by.
        at: String,
    },
    /// The state of Firn lies in the table.
    #[error("{folder} holds the state of Firn: choose another storage.stateContainer, or move the table")]
    HoldsState {
        /// The folder.
        folder: String,
    },
    /// This machine's clock and the store's are far apart.
    #[error(
        "the clock of this machine says {own}, that of the store {store}: ages cannot be trusted; set the clock (NTP)"
    )]
    Clock {
        /// This machine.
        own: DateTime<Utc>,
        /// The store.
        store: DateTime<Utc>,
    },
    /// The table was replaced, dropped or moved while it was swept.
    #[error("the table changed under the sweep ({detail}): nothing is deleted until it rests")]
    Moved {
        /// What changed.
        detail: String,
    },
    /// The table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A look at a file failed.
    #[error("cannot look at a file: {0}")]
    Storage(#[from] StorageError),
    /// The state cannot be read or written.
    #[error("state: {0}")]
    State(#[from] StateError),
}

impl SweepStop {
    /// Whether it is over once a service answers again, so nobody has to do anything.
    pub fn passes(&self) -> bool {
        match self {
            SweepStop::Listing { source, .. } | SweepStop::Storage(source) => source.is_retryable(),
            SweepStop::Table(error) | SweepStop::NeighboursUnlisted { source: error } => {
                // To be let in again somebody has to do something.
                error.next_step() == firn_table::NextStep::Retry
                    && !matches!(error, firn_table::TableError::CatalogDenied { .. })
            }
            SweepStop::State(error) => error.is_retryable() || error.is_conflict(),
            SweepStop::Moved { .. } => true,
            _ => false,
        }
    }
}
