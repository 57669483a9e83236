//! Neighbours of one size tier (design section 3, rule tier).
//!
//! A merge of a tier takes neighbours of this tier and of lower ones, enough of them of the tier itself that what they become is in
//! a higher one. So every byte that is written again moves up, and is written again at most once a tier (specification, issue
//! #68); with `compactMinFiles` below 4 it may stay in its tier and be written some times more. What a merge becomes is reckoned with at once: where it is the last of a higher tier's neighbours, all of them are one
//! merge, and the plan that follows finds nothing.

use firn_model::{FileFacts, SelectReason, TierCounts};

use crate::settings::PlanSettings;

/// Whether a file takes part in the tiers: below 75 % of the target, and not what was left over when its commit rolled larger files.
pub(crate) fn is_in_tier(settings: &PlanSettings, files: &[FileFacts], file: &FileFacts) -> bool {
    if settings.is_large(file) {
        return false;
    }
    let is_tail = !settings.is_small(file)
        && file.added_snapshot_id.is_some()
        && files.iter().any(|other| {
            other.added_snapshot_id == file.added_snapshot_id
                && other.data_sequence_number == file.data_sequence_number
                && settings.is_large(other)
        });
    !is_tail
}

/// Neighbouring pieces of a run that become one.
#[derive(Debug, Clone)]
struct Node {
    pieces: Vec<usize>,
    tiers: TierCounts,
    /// None for what is as large as it should be: nothing is merged across it.
    highest: Option<usize>,
    bytes: u64,
    merged: bool,
}

impl Node {
    fn of_piece(at: usize, files: &[&FileFacts]) -> Self {
        let mut tiers = TierCounts::default();
        files.iter().for_each(|file| tiers.count(file.size));
        let bytes = files.iter().map(|file| file.size).sum();
        Self { pieces: vec![at], tiers, highest: tiers.highest(), bytes, merged: false }
    }

    fn merged(nodes: &[Node], nearly_target: u64) -> Self {
        let pieces = nodes.iter().flat_map(|node| node.pieces.iter().copied()).collect();
        let bytes = nodes.iter().map(|node| node.bytes).sum();
        let mut tiers = TierCounts::default();
        if bytes < nearly_target {
            tiers.count(bytes);
        }
        Self { pieces, tiers, highest: tiers.highest(), bytes, merged: true }
    }
}

/// What the tiers of a run ask for.
#[derive(Debug, Default)]
pub(crate) struct TierMerges {
    /// Pieces that become one file or several, in their order.
    pub(crate) merges: Vec<Vec<usize>>,
    /// Of the highest tier that asked.
    pub(crate) reason: Option<SelectReason>,
    /// The most neighbours of one tier that were found.
    pub(crate) most: usize,
}

/// The merges of a run, given as the files of its pieces. Where their commits have no order to keep, all files of one tier are neighbours.
pub(crate) fn tier_merges(
    run: &[Vec<&FileFacts>],
    settings: &PlanSettings,
    min_files: usize,
    keeps_order: bool,
) -> TierMerges {
    let mut found = TierMerges::default();
    let mut nodes: Vec<Node> = run.iter().enumerate().map(|(at, files)| Node::of_piece(at, files)).collect();
    let mut asked: Option<(usize, usize)> = None;
    loop {
        let before = nodes.len();
        let mut changed = false;
        for tier in TierCounts::tiers() {
            if !keeps_order {
                nodes.sort_by_key(|node| node.highest.unwrap_or(usize::MAX));
            }
            let mut next: Vec<Node> = Vec::with_capacity(nodes.len());
            for segment in nodes.chunk_by(|a, b| is_up_to(a, tier) && is_up_to(b, tier)) {
                let files: usize = segment.iter().map(|node| node.tiers.of(tier)).sum();
                let takes_part = segment.iter().all(|node| is_up_to(node, tier));
                found.most = found.most.max(if takes_part { files } else { 0 });
                let done = matches!(segment, [only] if only.merged);
                if takes_part && files >= min_files && !done {
                    asked = asked.max(Some((tier, files)));
                    next.push(Node::merged(segment, settings.nearly_target_bytes()));
                    changed = true;
                } else {
                    next.extend(segment.iter().cloned());
                }
            }
            nodes = next;
        }
        if !changed || nodes.len() == before {
            break;
        }
    }
    let merged = nodes.into_iter().filter(|node| node.merged);
    found.merges = merged
        .map(|mut node| {
            node.pieces.sort_unstable();
            node.pieces
        })
        .collect();
    found.reason = asked.map(|(tier, files)| SelectReason::Tier { files, tier, min_files });
    found
}

fn is_up_to(node: &Node, tier: usize) -> bool {
    node.highest.is_some_and(|highest| highest <= tier)
}
