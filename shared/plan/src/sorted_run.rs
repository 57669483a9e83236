//! Is a set of files one sorted run (design section 3)?

use std::cmp::Ordering;

use firn_model::{FileFacts, RowOrder, Rule};

use crate::decision::Group;
use crate::overlap::proved_before;
use crate::settings::PlanSettings;

/// One file; or files of which all but the last have at least 75 % of the target size, with proved ascending key ranges
/// that do not overlap. Without a row order: at most one file below 75 %.
pub(crate) fn is_one_sorted_run(order: &RowOrder, settings: &PlanSettings, files: &[&FileFacts]) -> bool {
    let is_large = |file: &&FileFacts| file.size >= settings.nearly_target_bytes();
    if files.len() < 2 {
        return true;
    }
    if order.is_unordered() {
        return files.iter().filter(|file| !is_large(file)).count() < 2;
    }
    let mut run = files.to_vec();
    if files.iter().all(|file| file.key_range.is_some()) {
        run.sort_by(|a, b| range_start(a).cmp(&range_start(b)));
    } else {
        run.sort_by(|a, b| bounds_start(order, a, b));
    }
    let all_but_last = &run[..run.len() - 1];
    all_but_last.iter().all(is_large) && run.windows(2).all(|pair| proved_before(order, pair[0], pair[1]))
}

/// Whether a part of a group that was too large at once needs no merge of its own: under full and cold, when it is one sorted run already.
/// Else each `--full` would write the same parts again.
pub fn needs_no_merge(part: &Group, order: &RowOrder, settings: &PlanSettings, rule: Rule) -> bool {
    let sorts = matches!(rule, Rule::Full | Rule::Cold);
    sorts && is_one_sorted_run(order, settings, &part.files().iter().collect::<Vec<_>>())
}

fn range_start(file: &FileFacts) -> Option<(&[u8], &[u8])> {
    file.key_range.as_ref().map(|range| (range.first.as_slice(), range.last.as_slice()))
}

/// The order that files of one sorted run have. For other files any order will do: each pair of neighbours is checked.
fn bounds_start(order: &RowOrder, a: &FileFacts, b: &FileFacts) -> Ordering {
    let columns = order.columns.iter().zip(a.key_bounds.iter().zip(&b.key_bounds));
    let compared = columns.map(|(column, (a, b))| match (a, b) {
        (Some(a), Some(b)) if column.descending => (&b.upper, &b.lower).cmp(&(&a.upper, &a.lower)),
        (Some(a), Some(b)) => (&a.lower, &a.upper).cmp(&(&b.lower, &b.upper)),
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    compared.fold(Ordering::Equal, Ordering::then)
}
