//! What a backlog leaves out: a file that outweighs all the small ones after it.
//!
//! Without size tiers (no `timeColumn`, or `compactMinFiles: off`) every hundred small files make a backlog. Merged together with
//! what earlier backlogs became, the same bytes would be written again each time, until they are `minFileSizeMb`. Taken only when as
//! much has come after it, a file doubles each time at least.

use firn_model::{FileFacts, LeftReason};

use crate::runs::Run;
use crate::settings::PlanSettings;

/// Files below it cost less to write again than to keep apart.
const WORTH_KEEPING: u64 = 1 << 20;

/// A run without the files at its beginning that outweigh what follows. Never so many that a backlog would be left.
pub(crate) fn drop_what_outweighs(
    run: &Run,
    files: &[FileFacts],
    settings: &PlanSettings,
    left: &mut Option<LeftReason>,
) -> Run {
    let bytes = |pieces: &[Vec<usize>]| -> u64 { pieces.iter().flatten().map(|at| files[*at].size).sum() };
    let mut rest = run.as_slice();
    while let Some((first, others)) = rest.split_first() {
        let kept = run.len() - others.len();
        let (heavy, after) = (bytes(std::slice::from_ref(first)), bytes(others));
        let outweighs = first.len() == 1 && heavy >= WORTH_KEEPING && heavy >= after;
        if !outweighs || others.is_empty() || kept + 1 > settings.backlog_file_threshold {
            break;
        }
        *left = first.first().map(|at| LeftReason::OneOutweighs {
            path: files[*at].path.clone(),
            bytes: heavy,
            rest: after,
        });
        rest = others;
    }
    rest.to_vec()
}
