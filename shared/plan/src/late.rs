//! Late data of a cold partition (specification, issue #66).
//!
//! A row that comes late must not make Firn write a whole closed day again. Late files stay beside it, in their own tier: rule tier
//! merges them with each other, the nightly schedule too, and they join the rest when they are a quarter of it.

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
