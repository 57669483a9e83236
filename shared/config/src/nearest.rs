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

/// The known word that `word` was probably meant to be; None when none is near. Less than half of the letters may differ, and no more
/// than two or a third of them: of short words everything is within two edits.
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().count();
    let most = (letters / 3).max(2).min(letters.saturating_sub(1) / 2);
    let mut nearest: Option<(&str, usize)> = None;
    for candidate in known {
        // Another case is the commonest error and may need many edits.
        if candidate.eq_ignore_ascii_case(word) {
            return Some(candidate);
        }
        let edits = edit_distance(word, candidate);
        if edits <= most && nearest.is_none_or(|(_, least)| edits < least) {
            nearest = Some((candidate, edits));
        }
    }
    nearest.map(|(candidate, _)| candidate)
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

    #[test]
    fn only_what_is_near_is_suggested() {
        let columns = ["ts", "day", "host", "region", "time_hour", "ID"];
        for (word, expected) in [
            ("regoin", Some("region")),
            ("Region", Some("region")),
            ("time_hours", Some("time_hour")),
            ("dya", None),
            ("days", Some("day")),
            ("id", Some("ID")),
            ("x", None),
            ("dt", None),
            ("hour", None),
            ("customer", None),
            ("", None),
        ] {
            assert_eq!(near(word, columns), expected, "{word}");
        }
        assert_eq!(near("spam", ["spans", "span"]), Some("span"), "the nearest");
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
