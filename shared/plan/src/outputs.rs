//! What a merge is expected to write, if its bytes stay as many: the same arithmetic by which an output is closed.

/// Sizes of the files that a merge of so many bytes writes. A file is closed at the target when what follows is worth a file
/// of its own: a quarter more than a small file, and a quarter of the target.
pub fn expected_outputs(bytes: u64, target_bytes: u64, min_file_bytes: u64) -> Vec<u64> {
    let target = target_bytes.max(1);
    let least = min_file_bytes.saturating_add(min_file_bytes / 4).max(target / 4);
    let mut rest = bytes;
    let mut sizes = Vec::new();
    while rest >= target.saturating_add(least) {
        sizes.push(target);
        rest -= target;
    }
    sizes.push(rest);
    sizes
}

/// A target near `target_bytes` at which so many bytes make files of equal size, so that none of them is below 75 % of it.
/// For bytes that are more than that themselves.
pub(crate) fn balanced_target(bytes: u64, target_bytes: u64) -> u64 {
    let target = target_bytes.max(1);
    let files = (bytes.saturating_add(target / 2) / target).max(1);
    bytes.div_ceil(files).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_that_is_worth_no_file_stays_with_the_last_one() {
        assert_eq!(expected_outputs(100, 128, 32), [100]);
        assert_eq!(expected_outputs(167, 128, 32), [167]);
        assert_eq!(expected_outputs(168, 128, 32), [128, 40]);
        assert_eq!(expected_outputs(300, 128, 32), [128, 128, 44]);
        assert_eq!(expected_outputs(0, 128, 32), [0]);
    }

    #[test]
    fn balanced_files_are_no_smaller_than_three_quarters_of_the_target() {
        for bytes in 96..3000 {
            let target = balanced_target(bytes, 128);
            let files = bytes.div_ceil(target);
            assert!((96..=192).contains(&target), "{bytes}: {files} files of {target}");
            assert!(bytes - (files - 1) * target >= 96, "{bytes}: the last of {files} files of {target}");
        }
    }
}
