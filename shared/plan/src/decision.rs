//! What the planner answers.

use std::fmt;

use firn_model::{FileFacts, LeftReason, SelectReason};

/// What is to be done with a partition, and why.
#[derive(Debug, Clone, PartialEq)]
pub enum PartitionDecision {
    /// Merge these groups, each with a commit of its own, in any order; with [`SelectReason::NoTextIndex`] index the files of the one group.
    Selected {
        /// Why.
        reason: SelectReason,
        /// Groups without a common file.
        groups: Vec<Group>,
    },
    /// Leave it as it is.
    Left(LeftReason),
}

/// Files that one merge reads and one commit replaces: two or more, of one partition.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    files: Vec<FileFacts>,
    target_bytes: Option<u64>,
}

impl Group {
    pub(crate) fn new(mut files: Vec<FileFacts>) -> Self {
        files.sort_by(|a, b| commit_key(a).cmp(&commit_key(b)));
        Self { files, target_bytes: None }
    }

    /// The same, written into files of another size.
    pub(crate) fn with_target(self, target_bytes: u64) -> Self {
        Self { target_bytes: Some(target_bytes), ..self }
    }

    /// Size of the files to write where it is not the target size: a group in the middle of a sorted run leaves no file below 75 % of the
    /// target behind, so its files are of equal size.
    pub fn target_bytes(&self) -> Option<u64> {
        self.target_bytes
    }

    /// The files in commit order: by data sequence number, then path bytes; among files of number 0 the position of the
    /// snapshot that added them comes before the path (design section 5).
    pub fn files(&self) -> &[FileFacts] {
        &self.files
    }

    /// For each file the number that stands for its commit in ties: greater means committed later, equal means that the
    /// commits have no order (design section 5, "Ties"). The data sequence number alone would make all files of number 0 one
    /// commit.
    pub fn commit_numbers(&self) -> Vec<i64> {
        let mut number = 0;
        let mut numbers = Vec::with_capacity(self.files.len());
        let mut before: Option<&FileFacts> = None;
        for file in &self.files {
            let moved = before.is_some_and(|before| commit_of(before) != commit_of(file));
            number += i64::from(moved);
            numbers.push(number);
            before = Some(file);
        }
        numbers
    }

    /// The data sequence number of the outputs: that of the newest file replaced (design section 6).
    pub fn data_sequence_number(&self) -> i64 {
        self.files.iter().map(|file| file.data_sequence_number).max().unwrap_or(0)
    }

    /// Cuts a group that does not fit in two of at least two files each, as even as commit order allows: with
    /// `keeps_commit_order` only between two sequence numbers, never among files of number 0, so that no file of one part
    /// lies between files of the other. None when there is no such place.
    pub fn halves(&self, keeps_commit_order: bool) -> Option<(Group, Group)> {
        let middle = self.files.len() / 2;
        let is_between_commits = |at: &usize| {
            let [before, after] = [at - 1, *at].map(|at| self.files[at].data_sequence_number);
            before < after
        };
        let places = || 2..self.files.len().saturating_sub(1);
        let nearest = |at: &usize| at.abs_diff(middle);
        // What one commit wrote may be one sorted run, so it stays together where it can.
        let between = places().filter(is_between_commits).min_by_key(nearest);
        let cut = between.or_else(|| places().filter(|_| !keeps_commit_order).min_by_key(nearest))?;
        let (first, second) = self.files.split_at(cut);
        let half = |files: &[FileFacts]| Group { files: files.to_vec(), target_bytes: None };
        Some((half(first), half(second)))
    }

    /// Bytes of the files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Rows of the files.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }
}

/// What orders two commits: the data sequence number, and among files of number 0 the position of the adding snapshot. One
/// that is not known any more is older than those that are.
fn commit_of(file: &FileFacts) -> (i64, Option<u64>) {
    (file.data_sequence_number, file.added_position.filter(|_| file.data_sequence_number == 0))
}

/// The commit order of files.
pub(crate) fn commit_key(file: &FileFacts) -> (i64, Option<u64>, &[u8]) {
    let (number, position) = commit_of(file);
    (number, position, file.path.as_bytes())
}

impl fmt::Display for PartitionDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartitionDecision::Left(reason) => write!(f, "left: {reason}"),
            PartitionDecision::Selected { reason, groups } => {
                let work = if matches!(reason, SelectReason::NoTextIndex { .. }) { "index" } else { "merge" };
                write!(f, "selected: {reason}; {work} ")?;
                for (at, group) in groups.iter().enumerate() {
                    write!(f, "{}{group}", if at == 0 { "" } else { ", then " })?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.files.first().map_or(0, |file| file.data_sequence_number);
        let last = self.data_sequence_number();
        let megabytes = self.bytes() as f64 / f64::from(1 << 20);
        write!(f, "{} files, {megabytes:.1} MB, sequence numbers {first} to {last}", self.files.len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use firn_model::{FileFormat, PartitionKey};

    fn group(numbers: &[i64]) -> Group {
        let file = |(at, number): (usize, &i64)| FileFacts {
            path: format!("file:///t/{at}.parquet"),
            partition: Arc::new(PartitionKey::unpartitioned(0)),
            data_sequence_number: *number,
            added_snapshot_id: None,
            added_position: Some(at as u64),
            size: 1,
            rows: 1,
            format: FileFormat::Parquet,
            sort_order_id: None,
            key_bounds: vec![],
            key_range: None,
        };
        Group::new(numbers.iter().enumerate().map(file).collect())
    }

    fn lengths(numbers: &[i64], keeps_commit_order: bool) -> Option<(usize, usize)> {
        group(numbers).halves(keeps_commit_order).map(|(first, second)| (first.files.len(), second.files.len()))
    }

    #[test]
    fn a_group_is_halved_only_between_two_commits() {
        assert_eq!(lengths(&[1, 1, 1, 1, 2, 2], false), Some((4, 2)));
        assert_eq!(lengths(&[1, 1, 1, 1, 1, 1], false), Some((3, 3)), "without an order anywhere");
        assert_eq!(lengths(&[1, 1, 1, 1, 2, 2], true), Some((4, 2)));
        assert_eq!(lengths(&[1, 1, 1, 1], true), None);
        // Outputs of number 0 would count as newer than the files of number 0 that are left.
        assert_eq!(lengths(&[0, 0, 0, 0], true), None);
        assert_eq!(lengths(&[0, 0, 0, 0, 1, 2], true), Some((4, 2)));
        assert_eq!(lengths(&[1, 2, 3], false), None, "each part needs two files");
        assert_eq!(lengths(&[1, 2, 3, 4], true), Some((2, 2)));
        assert_eq!(lengths(&[1, 2, 2, 2, 2, 3], true), None, "the only places would leave a part of one file");
    }
}
