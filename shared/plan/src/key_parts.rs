//! The parts of a partition that share no key: each is merged on its own, and what overlaps nothing stays as it is (specification,
//! issue #69).

use firn_model::{FileFacts, RowOrder};

use crate::overlap::{may_overlap, proved_before};
use crate::settings::PlanSettings;

/// Pairs of more files than this are not compared one by one; without proved ranges they are one part.
const COMPARED: usize = 256;

/// Files that have to become one sorted run together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPart {
    /// Their positions.
    pub(crate) files: Vec<usize>,
    /// Whether no part follows it in key order: only its last file may be small.
    pub(crate) is_last: bool,
}

/// The parts in key order. Files that may share a key are in one part, and so are parts that would leave a file below 75 % of
/// the target in the middle of the run.
pub(crate) fn key_parts(order: &RowOrder, settings: &PlanSettings, files: &[FileFacts]) -> Vec<KeyPart> {
    // Files from before an upgrade are taken all or none, so they hold everything together.
    let number_0 = files.iter().filter(|file| file.data_sequence_number == 0).count();
    let mut parts = match order.keeps_commit_order && number_0 > 1 {
        true => vec![(0..files.len()).collect()],
        false => apart(order, files),
    };
    let bytes = |part: &[usize]| -> u64 { part.iter().map(|at| files[*at].size).sum() };
    // A part in the middle that would be small joins the neighbour that is merged anyway, or the smaller one.
    while let Some(at) =
        (0..parts.len().saturating_sub(1)).find(|at| bytes(&parts[*at]) < settings.nearly_target_bytes())
    {
        let cost = |at: usize| (parts[at].len() < 2, bytes(&parts[at]));
        let first = if at > 0 && cost(at - 1) < cost(at + 1) { at - 1 } else { at };
        let joined = parts.remove(first + 1);
        parts[first].extend(joined);
    }
    join_what_commit_order_holds_together(order, files, &mut parts);
    let last = parts.len().saturating_sub(1);
    parts.into_iter().enumerate().map(|(at, files)| KeyPart { files, is_last: at == last }).collect()
}

/// Without dedup neighbours may share the key at their border. Where one of them is merged, the commit order may ask for the other: when it was
/// written between the files of the merge.
fn join_what_commit_order_holds_together(order: &RowOrder, files: &[FileFacts], parts: &mut Vec<Vec<usize>>) {
    if !order.keeps_commit_order || order.dedup_columns.is_some() {
        return;
    }
    let number = |at: usize| files[at].data_sequence_number;
    let holds = |merged: &[usize], beside: &[usize]| {
        let highest = merged.iter().map(|at| number(*at)).max().unwrap_or(0);
        let is_between =
            |member: usize, outside: usize| number(member) <= number(outside) && number(outside) <= highest;
        let asks = |member: usize, outside: usize| {
            is_between(member, outside) && may_overlap(order, &files[member], &files[outside])
        };
        merged.len() > 1 && merged.iter().any(|member| beside.iter().any(|outside| asks(*member, *outside)))
    };
    let mut at = 0;
    while at + 1 < parts.len() {
        if holds(&parts[at], &parts[at + 1]) || holds(&parts[at + 1], &parts[at]) {
            let joined = parts.remove(at + 1);
            parts[at].extend(joined);
            // What is merged now may hold the one before.
            at = at.saturating_sub(1);
        } else {
            at += 1;
        }
    }
}

/// Files in parts such that every row of one part is proved to come before every row of the next.
fn apart(order: &RowOrder, files: &[FileFacts]) -> Vec<Vec<usize>> {
    if files.iter().all(|file| file.key_range.is_some()) {
        return by_ranges(order, files);
    }
    if files.len() > COMPARED {
        return vec![(0..files.len()).collect()];
    }
    by_pairs(order, files)
}

fn by_ranges(order: &RowOrder, files: &[FileFacts]) -> Vec<Vec<usize>> {
    let range = |at: usize| files[at].key_range.as_ref().map(|range| (range.first.as_slice(), range.last.as_slice()));
    let mut sorted: Vec<usize> = (0..files.len()).collect();
    sorted.sort_by(|a, b| range(*a).cmp(&range(*b)).then_with(|| files[*a].path.cmp(&files[*b].path)));
    let may_touch = order.dedup_columns.is_none();
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut end: Option<&[u8]> = None;
    for at in sorted {
        let Some((first, last)) = range(at) else { continue };
        let follows = end.is_some_and(|end| if may_touch { end <= first } else { end < first });
        match parts.last_mut().filter(|_| !follows) {
            Some(part) => part.push(at),
            None => parts.push(vec![at]),
        }
        end = end.max(Some(last));
    }
    parts
}

fn by_pairs(order: &RowOrder, files: &[FileFacts]) -> Vec<Vec<usize>> {
    let before = |a: usize, b: usize| proved_before(order, &files[a], &files[b]);
    let all_before = |a: &[usize], b: &[usize]| a.iter().all(|a| b.iter().all(|b| before(*a, *b)));
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for at in 0..files.len() {
        let mut joined = vec![at];
        // What joins may be what others were apart from, so all are asked again.
        while let Some(other) = parts.iter().position(|part| !all_before(part, &joined) && !all_before(&joined, part)) {
            joined.extend(parts.swap_remove(other));
        }
        parts.push(joined);
    }
    // In an order of all of them, the place of a part is the number of parts before it.
    let mut placed: Vec<(usize, Vec<usize>)> =
        parts.iter().map(|part| (parts.iter().filter(|other| all_before(other, part)).count(), part.clone())).collect();
    placed.sort();
    let mut parts: Vec<Vec<usize>> = placed.into_iter().map(|(_, part)| part).collect();
    if parts.windows(2).all(|pair| all_before(&pair[0], &pair[1])) {
        parts.iter_mut().for_each(|part| part.sort_unstable());
        parts
    } else {
        vec![(0..files.len()).collect()]
    }
}
