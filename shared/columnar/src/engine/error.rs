//! Why a merge gave no result, by what the caller does next.

use std::fmt;

use firn_merge::{KeyError, MergeFault};

use crate::error::ColumnarError;

/// What does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// `memoryMb`.
    Memory,
    /// `tempDiskMb`.
    Disk,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Memory => "memoryMb",
            Space::Disk => "tempDiskMb",
        })
    }
}

/// Why a merge gave no result. Whatever the variant, no output of the attempt may be used.
///
/// - [`Unsorted`](Self::Unsorted): sort those inputs, start again ([`merge_group`](crate::merge_group) does both);
/// - [`OverBudget`](Self::OverBudget): merge fewer inputs at once ([`merge_group`](crate::merge_group) does, in levels), or leave the
///   partition with the figure;
/// - [`NeedsSpill`](Self::NeedsSpill): make smaller groups, or leave the partition with the figure;
/// - [`RowCount`](Self::RowCount): an input is not what the table's metadata says: leave the partition, report it;
/// - [`Proof`](Self::Proof), [`Order`](Self::Order): a fault of the program or of the machine: stop, report, never commit;
/// - [`Key`](Self::Key): the row order does not fit the table: report as a configuration error;
/// - [`Stopped`](Self::Stopped): the caller asked for it;
/// - [`Columnar`](Self::Columnar): see there.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// These inputs are not in row order.
    #[error("inputs {inputs:?} are not sorted in the row order")]
    Unsorted {
        /// Their indices in the request: all there are, so that one restart is enough.
        inputs: Vec<usize>,
    },
    /// An input does not have the rows that the table's metadata says.
    #[error("`{file}` has {found} rows, the table's metadata says {expected}: the file was replaced or is damaged")]
    RowCount {
        /// Name of the input.
        file: String,
        /// Rows expected.
        expected: u64,
        /// Rows found.
        found: u64,
    },
    /// What went out is not what came in.
    #[error("row proof failed {place}: {detail}; nothing of this merge may be used")]
    Proof {
        /// Where it was noticed.
        place: String,
        /// The figures.
        detail: String,
    },
    /// The inputs need more memory than there is.
    #[error(
        "over budget: merging {inputs} inputs at once needs {} MB, memoryMb allows {}; {fan_in} at once would fit",
        megabytes(needed_bytes),
        megabytes(budget_bytes)
    )]
    OverBudget {
        /// Inputs of the merge.
        inputs: usize,
        /// Bytes that they need at least.
        needed_bytes: u64,
        /// Bytes allowed.
        budget_bytes: u64,
        /// How many of them fit at once; 0 or 1 when not even two do.
        fan_in: usize,
    },
    /// A file that must be sorted, or parts that must be kept on disk, do not fit.
    #[error(
        "needs spill: {what} needs {} MB of {space}, {} are allowed",
        megabytes(needed_bytes),
        megabytes(budget_bytes)
    )]
    NeedsSpill {
        /// The file, or what is to be kept.
        what: String,
        /// Bytes needed.
        needed_bytes: u64,
        /// Bytes allowed.
        budget_bytes: u64,
        /// Of what.
        space: Space,
    },
    /// The row order does not fit the columns.
    #[error("row order: {0}")]
    Key(#[from] KeyError),
    /// The merge itself went wrong.
    #[error("{0}")]
    Order(MergeFault),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// Reading or writing went wrong.
    #[error(transparent)]
    Columnar(#[from] ColumnarError),
}

impl MergeError {
    /// True when trying the same again may help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, MergeError::Columnar(error) if error.is_retryable())
    }
}

/// Bytes as MB of 2^20, rounded up.
fn megabytes(bytes: &u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_figures_in_the_units_of_the_configuration() {
        let over = MergeError::OverBudget { inputs: 96, needed_bytes: 700 << 20, budget_bytes: 360 << 20, fan_in: 48 };
        assert_eq!(
            over.to_string(),
            "over budget: merging 96 inputs at once needs 700 MB, memoryMb allows 360; 48 at once would fit"
        );
        let spill = MergeError::NeedsSpill {
            what: "sorting `a.parquet`".into(),
            needed_bytes: (500 << 20) + 1,
            budget_bytes: 400 << 20,
            space: Space::Disk,
        };
        assert_eq!(spill.to_string(), "needs spill: sorting `a.parquet` needs 501 MB of tempDiskMb, 400 are allowed");
    }
}
