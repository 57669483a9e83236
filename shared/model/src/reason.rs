//! Why a partition was selected or left. Decisions carry these, people read their `Display`.

use std::fmt;

use chrono::{DateTime, SecondsFormat};

use crate::rule::Rule;
use crate::tier::TierSizes;

/// A point in time of a table's own time column: microseconds from 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub i64);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::from_timestamp_micros(self.0) {
            Some(time) => f.write_str(&time.to_rfc3339_opts(SecondsFormat::Secs, true)),
            None => write!(f, "{} microseconds from 1970", self.0),
        }
    }
}

/// Why a partition was selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectReason {
    /// More small files than the backlog threshold.
    Backlog {
        /// Small files found.
        small: usize,
        /// `backlogFileThreshold`.
        threshold: usize,
    },
    /// Two or more small files.
    SmallFiles {
        /// Small files found.
        small: usize,
        /// Their bytes.
        bytes: u64,
    },
    /// Enough neighbours of one size tier.
    Tier {
        /// Files of the tier.
        files: usize,
        /// The tier.
        tier: usize,
        /// `compactMinFiles`.
        min_files: usize,
    },
    /// The time of the partition is past, and it is not one sorted run.
    Cold {
        /// Live files found.
        files: usize,
        /// Where its time ends.
        end: Moment,
    },
    /// Files that are not merged have no text index.
    NoTextIndex {
        /// Files found.
        files: usize,
    },
    /// The partition is not one sorted run.
    NotOneSortedRun {
        /// Live files found.
        files: usize,
    },
}

impl fmt::Display for SelectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectReason::Backlog { small, threshold } => {
                write!(f, "{}, more than backlogFileThreshold {threshold}", Count(*small, "small file"))
            }
            SelectReason::SmallFiles { small, bytes } => {
                write!(f, "{}, {}", Count(*small, "small file"), Megabytes(*bytes))
            }
            SelectReason::Tier { files, tier, min_files } => {
                write!(
                    f,
                    "{} of one size ({}), at least compactMinFiles {min_files}",
                    Count(*files, "neighbour"),
                    TierSizes(*tier)
                )
            }
            SelectReason::Cold { files, end } => match files {
                1 => write!(f, "its time ended at {end}, and its file is not one sorted run"),
                files => write!(f, "its time ended at {end}, and its {files} files are not one sorted run"),
            },
            SelectReason::NoTextIndex { files } => write!(f, "{} without a text index", Count(*files, "file")),
            SelectReason::NotOneSortedRun { files: 1 } => f.write_str("1 file that is not one sorted run"),
            SelectReason::NotOneSortedRun { files } => write!(f, "{files} files that are not one sorted run"),
        }
    }
}

/// Why a partition was left as it is. None of these is a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftReason {
    /// Fewer than two small files.
    NothingToMerge {
        /// Live files.
        files: usize,
        /// Small files among them.
        small: usize,
    },
    /// The rule asks for more small files than there are.
    BelowThreshold {
        /// Small files found.
        small: usize,
        /// `backlogFileThreshold`.
        threshold: usize,
    },
    /// The merged file would also be small, so the partition waits for more data.
    MergedFileWouldBeSmall {
        /// Small files found.
        small: usize,
        /// Their bytes.
        bytes: u64,
        /// `minFileSizeMb` in bytes.
        min_bytes: u64,
        /// `backlogFileThreshold`.
        threshold: usize,
    },
    /// Already one sorted run.
    OneSortedRun {
        /// Live files.
        files: usize,
    },
    /// Several sorted runs, each of them one whole group: they are too large to become one run.
    SortedRuns {
        /// Live files.
        files: usize,
        /// Runs.
        runs: usize,
        /// `groupBudgetMb` in bytes.
        budget_bytes: u64,
    },
    /// No two files that may be merged fit one commit.
    AboveGroupBudget {
        /// Live files.
        files: usize,
        /// `groupBudgetMb` in bytes.
        budget_bytes: u64,
    },
    /// No size tier has enough neighbours.
    FewOfOneSize {
        /// Files of the tier that has most.
        most: usize,
        /// `compactMinFiles`.
        min_files: usize,
    },
    /// `compactMinFiles` is `off`, or the dataset has no `timeColumn`.
    NoTiers,
    /// `compactColdAfter` is `off`.
    ColdIsOff,
    /// The partition has no end in time: the table is not partitioned by the dataset's `timeColumn`.
    NoEndInTime,
    /// The table has no time far enough past the partition's end yet.
    NotCold {
        /// The time of `timeColumn` from which the partition is cold.
        cold_at: Moment,
        /// The table's highest time.
        highest: Option<Moment>,
    },
    /// Late data waits beside the large rest of a cold partition until it is worth rewriting that.
    LateData {
        /// Late files.
        files: usize,
        /// Their bytes.
        bytes: u64,
        /// Bytes that would have to be written again.
        beside: u64,
    },
    /// One small file outweighs all the others, which wait until they are as much.
    OneOutweighs {
        /// The file.
        path: String,
        /// Its bytes.
        bytes: u64,
        /// Bytes of the small files after it.
        rest: u64,
    },
    /// A merge would not lower the number of files.
    NoFewerFiles {
        /// Files that could be merged.
        files: usize,
    },
    /// The rule merges nothing.
    RuleSelectsNothing {
        /// The rule.
        rule: Rule,
    },
    /// A delete file can apply to one of its data files.
    HasDeleteFiles {
        /// How many can.
        deletes: usize,
    },
    /// The table has format version 3 (row lineage is not written yet).
    FormatVersion3,
    /// The order of the files cannot be known, so dedup or series order cannot be kept.
    NoCommitOrder {
        /// What is missing.
        detail: String,
    },
    /// Every mergeable run of neighbours in commit order has fewer than two files.
    CommitOrder {
        /// A file that had to stay out.
        blocking: String,
    },
    /// A file is not Parquet.
    NotParquet {
        /// The file.
        path: String,
    },
    /// The inputs need more memory than the job has.
    OverBudget {
        /// MiB needed.
        needed_mb: u64,
        /// `memoryMb`.
        budget_mb: u64,
    },
    /// An unsorted input does not fit memory or temporary disk.
    NeedsSpill {
        /// The file.
        path: String,
        /// What would be needed.
        detail: String,
    },
    /// A file has no field ids and the table no name mapping.
    NoFieldIds {
        /// The file.
        path: String,
    },
    /// Table property `firn.enabled=false`.
    Disabled,
    /// A merge of the partition could not be committed: something about the table that Firn cannot write.
    NotWritable {
        /// What it is about the table.
        detail: String,
    },
    /// The catalog takes no commits.
    ReadOnlyCatalog {
        /// How that is known.
        detail: String,
    },
}

impl fmt::Display for LeftReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftReason::NothingToMerge { files, small } => {
                write!(f, "nothing to merge: {small} small of {}", Count(*files, "file"))
            }
            LeftReason::BelowThreshold { small, threshold } => {
                write!(f, "{}, not more than backlogFileThreshold {threshold}", Count(*small, "small file"))
            }
            LeftReason::MergedFileWouldBeSmall { small, bytes, min_bytes, threshold } => write!(
                f,
                "merged file would also be small: {} of {} together, below minFileSizeMb {} and fewer than backlogFileThreshold \
                 {threshold}; --full merges them all the same",
                Count(*small, "small file"),
                Megabytes(*bytes),
                Megabytes(*min_bytes)
            ),
            LeftReason::OneSortedRun { files } => {
                write!(f, "already one sorted run of {}", Count(*files, "file"))
            }
            LeftReason::SortedRuns { files, runs, budget_bytes } => write!(
                f,
                "already {} of {} together; one run would exceed groupBudgetMb {}",
                Count(*runs, "sorted run"),
                Count(*files, "file"),
                Megabytes(*budget_bytes)
            ),
            LeftReason::AboveGroupBudget { files, budget_bytes } => write!(
                f,
                "no two of {files} files that may be merged fit groupBudgetMb {}; raise it",
                Megabytes(*budget_bytes)
            ),
            LeftReason::FewOfOneSize { most, min_files } => {
                write!(f, "at most {} of one size, fewer than compactMinFiles {min_files}", Count(*most, "neighbour"))
            }
            LeftReason::NoTiers => {
                f.write_str("no size tiers: compactMinFiles is off or the dataset has no timeColumn")
            }
            LeftReason::ColdIsOff => f.write_str("compactColdAfter is off"),
            LeftReason::NoEndInTime => f.write_str("the partition has no end in time: it is not one of timeColumn"),
            LeftReason::NotCold { cold_at, highest: Some(highest) } => {
                write!(f, "not cold: the table's time would have to reach {cold_at}, it is at {highest}")
            }
            LeftReason::NotCold { cold_at, highest: None } => {
                write!(f, "not cold: the table's time would have to reach {cold_at}, and no file says where it is")
            }
            LeftReason::LateData { files, bytes, beside } => write!(
                f,
                "late data waits in its own tier: {} of {} together, less than a quarter of the {} beside",
                Count(*files, "file"),
                Megabytes(*bytes),
                Megabytes(*beside)
            ),
            LeftReason::OneOutweighs { path, bytes, rest } => write!(
                f,
                "{path} of {} outweighs the small files after it ({}); they wait until they are as much",
                Megabytes(*bytes),
                Megabytes(*rest)
            ),
            LeftReason::NoFewerFiles { files: 1 } => f.write_str("merging 1 file would leave one file"),
            LeftReason::NoFewerFiles { files } => write!(f, "merging {files} files would not make them fewer"),
            LeftReason::RuleSelectsNothing { rule } => write!(f, "rule {rule} merges nothing"),
            LeftReason::HasDeleteFiles { deletes } => {
                write!(f, "has delete files: {deletes} can apply to its data files")
            }
            LeftReason::FormatVersion3 => f.write_str("format version 3: row lineage is not kept yet"),
            LeftReason::NoCommitOrder { detail } => write!(f, "no commit order: {detail}"),
            LeftReason::CommitOrder { blocking } => {
                write!(f, "commit order: no two small files are neighbours, {blocking} lies between them")
            }
            LeftReason::NotParquet { path } => write!(f, "not Parquet: {path}"),
            LeftReason::OverBudget { needed_mb, budget_mb } => {
                write!(f, "over budget: needs memoryMb {needed_mb}, has {budget_mb}")
            }
            LeftReason::NeedsSpill { path, detail } => write!(f, "needs spill: {path}: {detail}"),
            LeftReason::NoFieldIds { path } => {
                write!(f, "no field ids in {path} and no schema.name-mapping.default on the table")
            }
            LeftReason::Disabled => f.write_str("table property firn.enabled=false"),
            LeftReason::NotWritable { detail } => write!(f, "{detail}"),
            LeftReason::ReadOnlyCatalog { detail } => write!(f, "{detail}: nothing can be committed"),
        }
    }
}

/// `1 file`, `2 files`.
struct Count(usize, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(number, word) = self;
        write!(f, "{number} {word}{}", if *number == 1 { "" } else { "s" })
    }
}

/// Bytes as MB (2^20) with one decimal, or KB below one MB.
struct Megabytes(u64);

impl fmt::Display for Megabytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 1 << 20 {
            write!(f, "{:.1} MB", self.0 as f64 / f64::from(1 << 20))
        } else {
            write!(f, "{:.1} KB", self.0 as f64 / 1024.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_figures_and_remedy() {
        let left =
            LeftReason::MergedFileWouldBeSmall { small: 40, bytes: 400 << 10, min_bytes: 32 << 20, threshold: 100 };
        assert_eq!(
            left.to_string(),
            "merged file would also be small: 40 small files of 400.0 KB together, below minFileSizeMb 32.0 MB and fewer \
             than backlogFileThreshold 100; --full merges them all the same"
        );
        assert_eq!(
            SelectReason::Tier { files: 9, tier: 2, min_files: 8 }.to_string(),
            "9 neighbours of one size (1 MB to 4 MB), at least compactMinFiles 8"
        );
        let end = Moment(1_793_491_200_000_000);
        assert_eq!(
            SelectReason::Cold { files: 3, end }.to_string(),
            "its time ended at 2026-11-01T00:00:00Z, and its 3 files are not one sorted run"
        );
        assert_eq!(
            LeftReason::NotCold { cold_at: Moment(end.0 + 3_600_000_000), highest: Some(end) }.to_string(),
            "not cold: the table's time would have to reach 2026-11-01T01:00:00Z, it is at 2026-11-01T00:00:00Z"
        );
        for (reason, words) in [
            (LeftReason::OneSortedRun { files: 1 }, "already one sorted run of 1 file"),
            (LeftReason::OneSortedRun { files: 2 }, "already one sorted run of 2 files"),
            (LeftReason::NothingToMerge { files: 1, small: 1 }, "nothing to merge: 1 small of 1 file"),
            (
                LeftReason::BelowThreshold { small: 1, threshold: 9 },
                "1 small file, not more than backlogFileThreshold 9",
            ),
            (
                LeftReason::FewOfOneSize { most: 1, min_files: 8 },
                "at most 1 neighbour of one size, fewer than compactMinFiles 8",
            ),
        ] {
            assert_eq!(reason.to_string(), words);
        }
        assert_eq!(SelectReason::NotOneSortedRun { files: 1 }.to_string(), "1 file that is not one sorted run");
        assert_eq!(
            LeftReason::OverBudget { needed_mb: 900, budget_mb: 360 }.to_string(),
            "over budget: needs memoryMb 900, has 360"
        );
    }
}
