//! What can go wrong while Parquet is read or written, told by what the caller does next.

use std::error::Error as StdError;
use std::fmt;

/// An error of the columnar layer. Every message names the file and, where there is one, the column.
///
/// What the caller does next (design section 4, "Outcomes"):
/// - [`Read`](Self::Read) and [`Write`](Self::Write): retry when [`is_retryable`](Self::is_retryable), else park;
/// - [`Corrupt`](Self::Corrupt), [`Incompatible`](Self::Incompatible), [`MissingRequired`](Self::MissingRequired),
///   [`NullInRequired`](Self::NullInRequired), [`Inexact`](Self::Inexact), [`NoFieldIds`](Self::NoFieldIds),
///   [`NameMapping`](Self::NameMapping) and [`Unsupported`](Self::Unsupported): leave the partition as it is and report the reason; trying again changes nothing;
/// - [`Disk`](Self::Disk) and [`OverBudget`](Self::OverBudget): shrink the work (fewer inputs, smaller windows) or leave it;
/// - [`Usage`](Self::Usage): a bug in the caller.
#[derive(Debug, thiserror::Error)]
pub enum ColumnarError {
    /// The file's bytes are not what its own footer and headers promise.
    #[error("`{file}` is damaged{}: {detail}; restore the file or remove it from the table", Place { row_group, column, page })]
    Corrupt {
        /// Name of the file, as its source gives it.
        file: String,
        /// Row group within the file, counted from 0, when known.
        row_group: Option<usize>,
        /// Dotted path of the column in the file, when known.
        column: Option<String>,
        /// Page of the chunk, counted from 0, when known.
        page: Option<usize>,
        /// What was found.
        detail: String,
    },
    /// The file's type of a column cannot become the table's (Iceberg spec, "Schema Evolution": only promotions).
    #[error("`{file}`: types of column `{column}` are not compatible: the file has {from}, the table has {to}")]
    Incompatible {
        /// Name of the file.
        file: String,
        /// Dotted path of the column in the table.
        column: String,
        /// Type in the file.
        from: String,
        /// Type in the table.
        to: String,
    },
    /// A required column of the table does not exist in the file. Defaults (v3) are not supported.
    #[error("`{file}` has no column `{column}`, which the table requires and has no default for")]
    MissingRequired {
        /// Name of the file.
        file: String,
        /// Dotted path of the column in the table.
        column: String,
    },
    /// A column that the table requires holds a null in the file.
    #[error("`{file}`: column `{column}` is required by the table but is null in row {row}")]
    NullInRequired {
        /// Name of the file.
        file: String,
        /// Dotted path of the column in the table.
        column: String,
        /// The row, counted from 0 over the whole file; for a column inside a list or map that of the batch's first row.
        row: u64,
    },
    /// A value cannot be written exactly in the table's type, so it is refused instead of cut.
    #[error(
        "`{file}`: column `{column}` at or after row {row} holds {value}, which the table's type {to} cannot hold exactly"
    )]
    Inexact {
        /// Name of the file.
        file: String,
        /// Dotted path of the column in the table.
        column: String,
        /// First row of the batch that holds the value, counted from 0 over the whole file.
        row: u64,
        /// The value in the file.
        value: String,
        /// Type in the table.
        to: String,
    },
    /// No column of the file carries a field id and the table has no name mapping.
    #[error(
        "`{file}` has no field ids and the table has no name mapping: set the table property `schema.name-mapping.default`"
    )]
    NoFieldIds {
        /// Name of the file.
        file: String,
    },
    /// The table's name mapping cannot be used.
    #[error("the table property `schema.name-mapping.default` cannot be used: {detail}")]
    NameMapping {
        /// What is wrong with it.
        detail: String,
    },
    /// The file uses something that this version does not read or write.
    #[error("`{file}`{}: {detail}", Place { row_group: &None, column, page: &None })]
    Unsupported {
        /// Name of the file.
        file: String,
        /// Dotted path of the column, when known.
        column: Option<String>,
        /// What is not supported.
        detail: String,
    },
    /// The file's bytes could not be had.
    #[error("`{file}` could not be read: {source}")]
    Read {
        /// Name of the file.
        file: String,
        /// Why.
        source: Box<dyn StdError + Send + Sync>,
        /// True when trying again may help.
        retryable: bool,
    },
    /// Bytes could not be handed over to the sink, or could not be encoded.
    #[error("`{file}` could not be written: {source}")]
    Write {
        /// Name of the file or sink.
        file: String,
        /// Why.
        source: Box<dyn StdError + Send + Sync>,
        /// True when trying again may help.
        retryable: bool,
    },
    /// The temporary disk failed or is full.
    #[error("temporary disk at `{path}`: {source}; free space there or lower `tempDiskMb`")]
    Disk {
        /// Path of the file or folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The work does not fit the memory or disk it was given.
    #[error(
        "{what} needs {needed_bytes} bytes, {budget_bytes} are allowed: raise `memoryMb`, or `tempDiskMb` for temporary files"
    )]
    OverBudget {
        /// What was to be done.
        what: String,
        /// Bytes it needs at least.
        needed_bytes: u64,
        /// Bytes it may take.
        budget_bytes: u64,
    },
    /// The caller asked for something that makes no sense, for example a column that is not there.
    #[error("wrong use of the columnar layer: {detail}")]
    Usage {
        /// What was wrong.
        detail: String,
    },
}

impl ColumnarError {
    /// True when trying the same again may help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Read { retryable: true, .. } | Self::Write { retryable: true, .. })
    }

    /// The file that the error is about, when there is one.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Corrupt { file, .. }
            | Self::Incompatible { file, .. }
            | Self::MissingRequired { file, .. }
            | Self::NullInRequired { file, .. }
            | Self::Inexact { file, .. }
            | Self::NoFieldIds { file }
            | Self::Unsupported { file, .. }
            | Self::Read { file, .. }
            | Self::Write { file, .. } => Some(file),
            Self::NameMapping { .. } | Self::Disk { .. } | Self::OverBudget { .. } | Self::Usage { .. } => None,
        }
    }

    /// Damage of a file as a whole (its footer), not of one column.
    pub fn corrupt_file(file: &str, detail: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), row_group: None, column: None, page: None, detail: detail.into() }
    }
}

/// Where in a file something was found, for messages: ` in row group 2, column `a.b`, page 7`.
struct Place<'a> {
    row_group: &'a Option<usize>,
    column: &'a Option<String>,
    page: &'a Option<usize>,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = " in ";
        if let Some(row_group) = self.row_group {
            write!(f, "{before}row group {row_group}")?;
            before = ", ";
        }
        if let Some(column) = self.column {
            write!(f, "{before}column `{column}`")?;
            before = ", ";
        }
        if let Some(page) = self.page {
            write!(f, "{before}page {page}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_names_the_place_as_far_as_it_is_known() {
        let error = ColumnarError::Corrupt {
            file: "a.parquet".into(),
            row_group: Some(2),
            column: Some("s.x".into()),
            page: Some(7),
            detail: "bad CRC".into(),
        };
        assert_eq!(
            error.to_string(),
            "`a.parquet` is damaged in row group 2, column `s.x`, page 7: bad CRC; restore the file or remove it from the table"
        );
        assert_eq!(
            ColumnarError::corrupt_file("a.parquet", "no footer").to_string(),
            "`a.parquet` is damaged: no footer; restore the file or remove it from the table"
        );
        assert_eq!(error.file(), Some("a.parquet"));
    }

    #[test]
    fn only_transfers_are_tried_again() {
        let read = |retryable| ColumnarError::Read { file: "a".into(), source: "reset".into(), retryable };
        assert!(read(true).is_retryable());
        assert!(!read(false).is_retryable());
        assert!(!ColumnarError::NoFieldIds { file: "a".into() }.is_retryable());
    }
}
