//! Which known word is nearest to a wrong one.

/// How many edits (insert, delete or replace one character) lead from `a` to `b`; capital letters count.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The known word with the fewest edits from `word` and their number; the first of equals. None without known words.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    known.into_iter().map(|candidate| (candidate, edit_distance(word, candidate))).min_by_key(|(_, edits)| *edits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edits_are_counted() {
        for (a, b, edits) in [
            ("", "", 0),
            ("abc", "", 3),
            ("timecolumn", "timeColumn", 1),
            ("tabel", "table", 2),
            ("kitten", "sitting", 3),
            ("dedupe", "dedup", 1),
        ] {
            assert_eq!(edit_distance(a, b), edits, "{a} {b}");
        }
        assert_eq!(nearest("targetSizeMB", ["minFileSizeMb", "targetSizeMb"]), Some(("targetSizeMb", 1)));
        assert_eq!(nearest("a", []), None);
    }

    /// The definition, written as it is said.
    fn naive(a: &[char], b: &[char]) -> usize {
        match (a.split_first(), b.split_first()) {
            (None, _) => b.len(),
            (_, None) => a.len(),
            (Some((x, rest_a)), Some((y, rest_b))) if x == y => naive(rest_a, rest_b),
            (Some((_, rest_a)), Some((_, rest_b))) => {
                1 + naive(rest_a, b).min(naive(a, rest_b)).min(naive(rest_a, rest_b))
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(a in "[ab]{0,6}", b in "[abc]{0,6}") {
            let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            prop_assert_eq!(edit_distance(&a, &b), naive(&x, &y));
        }
    }
}
