//! Cutting a run into groups that fit the budget of one commit.

use std::cmp::Ordering;
use std::ops::Range;

/// A piece of a run that must not be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Files in it.
    pub(crate) files: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
}

/// What a cut has to respect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// `groupBudgetMb`.
    pub(crate) budget: u64,
    /// A group below it leaves a small file behind.
    pub(crate) floor: u64,
    /// Under full a file may stay alone, and the budget counts more than the floor. Under the rules for small files it is
    /// the other way round: what is left small would be selected again.
    pub(crate) full: bool,
}

/// Cuts pieces into consecutive groups of balanced size: none above the budget, none below the floor and, under the rules for
/// small files, none of one file. Where not all can be had, a group may exceed the budget by as much as the floor.
pub(crate) fn cut(pieces: &[Piece], limits: Limits) -> Vec<Range<usize>> {
    let total: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    if total <= limits.budget || pieces.len() < 2 {
        return std::iter::once(0..pieces.len()).filter(|range| !range.is_empty()).collect();
    }
    let chunks = chunks(pieces, limits.budget / CHUNKS_PER_BUDGET);
    let groups = total.div_ceil(limits.budget);
    let ideal = total / groups;
    // best[n]: the cheapest way to cut the first n chunks, and where its last group begins.
    let mut best: Vec<(Cost, usize)> = vec![(Cost::default(), 0)];
    for end in 1..=chunks.len() {
        let mut group = Piece { files: 0, bytes: 0 };
        let mut cheapest: Option<(Cost, usize)> = None;
        for start in (0..end).rev() {
            group.files += chunks[start].piece.files;
            group.bytes += chunks[start].piece.bytes;
            let cost = best[start].0.plus(Cost::of(group, ideal, limits));
            if cheapest.is_none_or(|(known, _)| cost.cmp(&known, limits) == Ordering::Less) {
                cheapest = Some((cost, start));
            }
            // Longer groups only get worse; three chunks let a lone file join either neighbour.
            if group.bytes > limits.budget.saturating_mul(2) && end - start >= 3 {
                break;
            }
        }
        best.extend(cheapest);
    }
    let mut cuts = vec![chunks.len()];
    let mut end = chunks.len();
    while end > 0 {
        end = best[end].1;
        cuts.push(end);
    }
    cuts.reverse();
    let start_of = |chunk: usize| chunks.get(chunk).map_or(pieces.len(), |chunk| chunk.start);
    cuts.windows(2).map(|pair| start_of(pair[0])..start_of(pair[1])).collect()
}

/// Bounds the work of a cut: groups are balanced to this part of the budget.
const CHUNKS_PER_BUDGET: u64 = 64;

struct Chunk {
    start: usize,
    piece: Piece,
}

/// Neighbouring pieces joined until they have `bytes`.
fn chunks(pieces: &[Piece], bytes: u64) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match chunks.last_mut().filter(|chunk| chunk.piece.bytes + piece.bytes <= bytes) {
            Some(chunk) => {
                chunk.piece.files += piece.files;
                chunk.piece.bytes += piece.bytes;
            }
            None => chunks.push(Chunk { start: at, piece: *piece }),
        }
    }
    chunks
}

/// What is wrong with a way to cut.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// Groups below the floor or, but for full, of one file.
    poor: u64,
    /// Bytes above budget and floor together.
    far_over: u64,
    /// Bytes above the budget.
    over: u64,
    /// Squared distances from the ideal size.
    unbalance: u128,
}

impl Cost {
    fn of(group: Piece, ideal: u64, limits: Limits) -> Self {
        Self {
            poor: u64::from(group.bytes < limits.floor || (group.files < 2 && !limits.full)),
            far_over: group.bytes.saturating_sub(limits.budget.saturating_add(limits.floor)),
            over: group.bytes.saturating_sub(limits.budget),
            unbalance: u128::from(group.bytes.abs_diff(ideal)).pow(2),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            poor: self.poor + other.poor,
            far_over: self.far_over + other.far_over,
            over: self.over + other.over,
            unbalance: self.unbalance.saturating_add(other.unbalance),
        }
    }

    fn cmp(&self, other: &Self, limits: Limits) -> Ordering {
        let far_over = self.far_over.cmp(&other.far_over);
        let poor = self.poor.cmp(&other.poor);
        let first = if limits.full { far_over.then(poor) } else { poor.then(far_over) };
        first.then(self.over.cmp(&other.over)).then(self.unbalance.cmp(&other.unbalance))
    }
}
