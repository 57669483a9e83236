//! What metadata proves about the keys of two files. What is not proved counts as an overlap.

use std::cmp::Ordering;

use firn_model::{FileFacts, RowOrder};

/// The measures by which two files may be proved to share no key, the key being the columns whose writes have an order: the
/// composite range (0) and the bounds of each key column (1 and on). See [`interval`].
pub(crate) fn measures(order: &RowOrder) -> std::ops::RangeInclusive<usize> {
    // A composite range is over the dedup key, or over the whole order when there is no dedup. Over more than the key it
    // proves nothing: two rows of one key may lie in different ranges.
    let range_is_of_the_key = order.dedup_columns.unwrap_or(order.columns.len()) == order.key_columns;
    usize::from(!range_is_of_the_key)..=order.key_columns
}

/// The first and the last value that a file may have by a measure, both included; None when nothing is proved.
pub(crate) fn interval(file: &FileFacts, measure: usize) -> Option<(&[u8], &[u8])> {
    match measure.checked_sub(1) {
        None => file.key_range.as_ref().map(|range| (range.first.as_slice(), range.last.as_slice())),
        Some(column) => {
            let bounds = file.key_bounds.get(column)?.as_ref()?;
            Some((&bounds.lower, &bounds.upper))
        }
    }
}

/// Whether two files may hold rows of one key: unless they are disjoint by any measure (design section 5, "Commit order").
pub(crate) fn may_overlap(order: &RowOrder, a: &FileFacts, b: &FileFacts) -> bool {
    let proved_apart = |measure| match (interval(a, measure), interval(b, measure)) {
        (Some(a), Some(b)) => a.1 < b.0 || b.1 < a.0,
        _ => false,
    };
    !measures(order).any(proved_apart)
}

/// Whether every row of `a` is proved to come before every row of `b` in row order. Without dedup the two may share the
/// border key; with dedup they may not, for then two rows of one key would be left (design section 3, "One sorted run").
pub(crate) fn proved_before(order: &RowOrder, a: &FileFacts, b: &FileFacts) -> bool {
    let may_touch = order.dedup_columns.is_none();
    if let (Some(a), Some(b)) = (&a.key_range, &b.key_range) {
        return a.before(b, may_touch);
    }
    bounds_before(order, a, b, may_touch)
}

/// The same by the bounds of single columns: the first column must not go back; only where it may stand still does the next
/// one count.
fn bounds_before(order: &RowOrder, a: &FileFacts, b: &FileFacts, may_touch: bool) -> bool {
    let compared = order.dedup_columns.unwrap_or(order.columns.len());
    for (at, column) in order.columns.iter().take(compared).enumerate() {
        let (Some(a), Some(b)) = (a.key_bounds.get(at), b.key_bounds.get(at)) else { return false };
        let (Some(a), Some(b)) = (a, b) else { return false };
        let step = if column.descending { b.upper.cmp(&a.lower) } else { a.upper.cmp(&b.lower) };
        match step {
            Ordering::Less => return true,
            Ordering::Greater => return false,
            Ordering::Equal => {}
        }
    }
    may_touch
}
