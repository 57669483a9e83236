//! Late data of a cold partition (specification, issue #66).
//!
//! A row that comes late must not make Firn write a whole closed day again. Late files stay beside it, in their own tier: rule tier
//! merges them with each other, the nightly schedule too, and they join the rest when they are a quarter of it.

use std::collections::HashMap;

use firn_model::{FileFacts, LeftReason, RowOrder, size_tier};

use crate::settings::PlanSettings;
use crate::sorted_run::is_one_sorted_run;

/// Why files of a cold partition that have to be merged wait; None when they are merged now.
pub(crate) fn waits(order: &RowOrder, settings: &PlanSettings, files: &[&FileFacts]) -> Option<LeftReason> {
    let body = body(order, settings, files)?;
    let is_late = |file: &&&FileFacts| !body.iter().any(|of_body| std::ptr::eq(*of_body, **file));
    let late: Vec<&&FileFacts> = files.iter().filter(is_late).collect();
    let bytes: u64 = late.iter().map(|file| file.size).sum();
    let beside: u64 = body.iter().map(|file| file.size).sum();
    let is_little = bytes.saturating_mul(4) < beside && size_tier(bytes) < size_tier(beside);
    (is_little && !late.is_empty()).then_some(LeftReason::LateData { files: late.len(), bytes, beside })
}

/// A cold partition above the budget of a commit that was finished as far as the budget allows: as many sorted runs as commits, each written
/// once. That they could become fewer, now that their key ranges are known, is left to `--full`: a cold partition is written again once.
pub(crate) fn finished_above_budget(
    order: &RowOrder,
    settings: &PlanSettings,
    files: &[FileFacts],
) -> Option<LeftReason> {
    let total: u64 = files.iter().map(|file| file.size).sum();
    let budget_bytes = settings.group_budget_bytes.max(1);
    if total <= budget_bytes {
        return None;
    }
    let mut commits: HashMap<(i64, Option<u64>), Vec<&FileFacts>> = HashMap::new();
    for file in files {
        commits.entry((file.data_sequence_number, file.added_position)).or_default().push(file);
    }
    let (runs, late): (Vec<_>, Vec<_>) = commits.into_values().partition(|commit| {
        commit.iter().any(|file| settings.is_large(file)) && is_one_sorted_run(order, settings, commit)
    });
    let bytes: u64 = late.iter().flatten().map(|file| file.size).sum();
    let beside = total - bytes;
    if runs.is_empty() || runs.len() as u64 > total.div_ceil(budget_bytes) || bytes.saturating_mul(4) >= beside {
        return None;
    }
    Some(match late.iter().map(Vec::len).sum() {
        0 => LeftReason::SortedRuns { files: files.len(), runs: runs.len(), budget_bytes },
        files => LeftReason::LateData { files, bytes, beside },
    })
}

/// What was there before: the files of 75 % of the target and more, if they are one run, else the largest file. None when large
/// files overlap each other: then they have not been finished yet.
fn body<'f>(order: &RowOrder, settings: &PlanSettings, files: &[&'f FileFacts]) -> Option<Vec<&'f FileFacts>> {
    let large: Vec<&FileFacts> = files.iter().copied().filter(|file| settings.is_large(file)).collect();
    if large.is_empty() {
        return files.iter().copied().max_by_key(|file| file.size).map(|file| vec![file]);
    }
    let is_run = is_one_sorted_run(order, settings, &large);
    is_run.then_some(large)
}
