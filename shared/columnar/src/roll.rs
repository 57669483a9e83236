//! Where an output file ends (design section 5): decided at the border of a window, before the next window's rows go anywhere.
//!
//! A file is closed when it has reached the target and what is left makes another file worth having. Otherwise it goes on, so
//! that a merge never leaves a tail which the next pass would take for a small file.

/// What is known at the border of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowBorder {
    /// Bytes of the file being written.
    pub file_bytes: u64,
    /// Bytes of all files of this merge, the one being written included.
    pub total_bytes: u64,
    /// Input rows that these bytes came from, dropped duplicates included.
    pub rows_done: u64,
    /// Input rows still to come.
    pub rows_left: u64,
    /// Whether the first row to come has another dedup key than the last one written; true without dedup. Equal keys stay in
    /// one file.
    pub key_changes: bool,
}

/// Sizes that files should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RollLimits {
    /// Size at which a file is large enough (`targetSizeMb`).
    pub target_bytes: u64,
    /// Size below which a file is small (`minFileSizeMb`).
    pub min_file_bytes: u64,
}

impl RollLimits {
    /// What must be left to be worth a file of its own: a quarter more than a small file, as the estimate may be wrong, and
    /// a quarter of the target.
    pub fn least_rest(&self) -> u64 {
        (self.min_file_bytes.saturating_add(self.min_file_bytes / 4)).max(self.target_bytes / 4)
    }
}

/// What to do at the border of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roll {
    /// Nothing is left: the file ends here.
    End,
    /// Close the file and start another one.
    Close {
        /// Bytes that the rest is estimated to make.
        rest_bytes: u64,
    },
    /// The file is below the target.
    BelowTarget,
    /// The next row has the key of the last one.
    SameKey,
    /// The rest is too little for a file of its own.
    SmallRest {
        /// Bytes that the rest is estimated to make.
        rest_bytes: u64,
        /// Bytes that would be worth a file.
        least_bytes: u64,
    },
}

impl Roll {
    /// Decides at `border`. The rest is estimated by the bytes that an input row has made so far.
    pub fn decide(border: &WindowBorder, limits: &RollLimits) -> Roll {
        if border.rows_left == 0 {
            return Roll::End;
        }
        if border.file_bytes < limits.target_bytes {
            return Roll::BelowTarget;
        }
        if !border.key_changes {
            return Roll::SameKey;
        }
        let rest = u128::from(border.total_bytes) * u128::from(border.rows_left) / u128::from(border.rows_done.max(1));
        let rest_bytes = u64::try_from(rest).unwrap_or(u64::MAX);
        let least_bytes = limits.least_rest();
        if rest_bytes < least_bytes { Roll::SmallRest { rest_bytes, least_bytes } } else { Roll::Close { rest_bytes } }
    }

    /// True when the next row goes to another file.
    pub fn closes(self) -> bool {
        matches!(self, Roll::Close { .. })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: RollLimits = RollLimits { target_bytes: 128, min_file_bytes: 32 };

    fn border() -> WindowBorder {
        WindowBorder { file_bytes: 130, total_bytes: 390, rows_done: 39, rows_left: 4, key_changes: true }
    }

    #[test]
    fn a_file_closes_at_the_target_when_the_rest_is_worth_a_file() {
        assert_eq!(Roll::decide(&border(), &LIMITS), Roll::Close { rest_bytes: 40 });
        assert!(Roll::decide(&border(), &LIMITS).closes());
        assert_eq!(Roll::decide(&WindowBorder { file_bytes: 127, ..border() }, &LIMITS), Roll::BelowTarget);
        assert_eq!(Roll::decide(&WindowBorder { key_changes: false, ..border() }, &LIMITS), Roll::SameKey);
        let small = WindowBorder { rows_left: 3, ..border() };
        assert_eq!(Roll::decide(&small, &LIMITS), Roll::SmallRest { rest_bytes: 30, least_bytes: 40 });
        assert_eq!(Roll::decide(&WindowBorder { rows_left: 0, ..border() }, &LIMITS), Roll::End);
    }

    #[test]
    fn a_quarter_of_the_target_counts_when_small_files_are_tiny() {
        let limits = RollLimits { target_bytes: 128, min_file_bytes: 1 };
        assert_eq!(limits.least_rest(), 32);
        assert_eq!(LIMITS.least_rest(), 40);
    }

    #[test]
    fn nothing_overflows() {
        let border = WindowBorder {
            file_bytes: u64::MAX,
            total_bytes: u64::MAX,
            rows_done: 0,
            rows_left: u64::MAX,
            key_changes: true,
        };
        let limits = RollLimits { target_bytes: u64::MAX, min_file_bytes: u64::MAX };
        assert_eq!(Roll::decide(&border, &limits), Roll::Close { rest_bytes: u64::MAX });
    }

    /// Files that a merge of `rows` equal rows writes in windows of `window` rows; `same_key` says at which borders the
    /// key goes on.
    fn files(rows: u64, window: u64, row_bytes: u64, limits: &RollLimits, same_key: impl Fn(u64) -> bool) -> Vec<u64> {
        let (mut files, mut file_bytes, mut done) = (vec![], 0, 0);
        loop {
            let taken = window.min(rows - done);
            done += taken;
            file_bytes += taken * row_bytes;
            let border = WindowBorder {
                file_bytes,
                total_bytes: done * row_bytes,
                rows_done: done,
                rows_left: rows - done,
                key_changes: !same_key(done),
            };
            match Roll::decide(&border, limits) {
                Roll::End => {
                    files.push(file_bytes);
                    return files;
                }
                Roll::Close { .. } => {
                    files.push(file_bytes);
                    file_bytes = 0;
                }
                Roll::BelowTarget | Roll::SameKey | Roll::SmallRest { .. } => {}
            }
        }
    }

    proptest! {
        #[test]
        fn no_file_of_several_is_small_and_none_is_much_too_large(
            rows in 1_u64..50_000,
            window in 1_u64..3_000,
            row_bytes in 1_u64..200,
            target_bytes in 1_000_u64..200_000,
            min_percent in 0_u64..=100,
        ) {
            let limits = RollLimits { target_bytes, min_file_bytes: target_bytes * min_percent / 100 };
            let files = files(rows, window, row_bytes, &limits, |_| false);
            prop_assert_eq!(files.iter().sum::<u64>(), rows * row_bytes);
            let row_group = window * row_bytes;
            for bytes in &files {
                prop_assert!(*bytes <= target_bytes + limits.least_rest() + row_group);
                prop_assert!(files.len() == 1 || *bytes >= limits.min_file_bytes);
            }
            // All but the last reached the target.
            prop_assert!(files[..files.len() - 1].iter().all(|bytes| *bytes >= target_bytes));
        }

        #[test]
        fn a_key_never_lies_in_two_files(rows in 1_u64..20_000, window in 1_u64..500, run in 1_u64..40) {
            // The key goes on at all borders but each `run`-th.
            let same_key = |done: u64| !(done / window).is_multiple_of(run);
            let ends: Vec<u64> = files(rows, window, 10, &LIMITS, same_key)
                .iter()
                .scan(0, |sum, bytes| { *sum += bytes / 10; Some(*sum) })
                .collect();
            prop_assert!(ends[..ends.len() - 1].iter().all(|end| !same_key(*end)));
            prop_assert_eq!(ends.last(), Some(&rows));
        }
    }
}
