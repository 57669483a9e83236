//! Which files may be merged together: runs that keep the commit order (design section 5, first paragraph).
//!
//! A run is valid when for no member G and no live file X outside, with seq(G) <= seq(X) <= the highest sequence number of
//! the run, the keys of G and X may overlap. So merging it, with the highest number as the number of the output, changes
//! for no key which write is the last.
//!
//! Files are taken one sequence number (a block) at a time, because members of one number stand or fall together unless
//! they are proved to share no key. A run is extended block by block until a file outside overlaps a member; it ends there.
//! Whatever part of a run ends where a block ends is valid on its own, which is where `cut` may cut it.

use firn_model::{FileFacts, RowOrder};

use crate::decision::commit_key;
use crate::overlap::{interval, may_overlap, measures};

/// A run in pieces that must stay together, in commit order. Any neighbouring pieces make a valid group.
pub(crate) type Run = Vec<Vec<usize>>;

/// The runs of a partition and what stands between them.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// Runs, as positions in the files given.
    pub(crate) runs: Vec<Run>,
    /// The first file that keeps a candidate from its neighbours.
    pub(crate) blocking: Option<usize>,
    /// Why files of sequence number 0 had to stay out.
    pub(crate) no_order: Option<String>,
}

/// The files in commit order.
fn in_commit_order(files: &[FileFacts]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by(|a, b| commit_key(&files[*a]).cmp(&commit_key(&files[*b])));
    order
}

/// What runs are made by.
#[derive(Clone, Copy)]
pub(crate) struct RunRules<'a> {
    /// Row order of the dataset.
    pub(crate) order: &'a RowOrder,
    /// Whether a file may be merged at all; what may not stays out.
    pub(crate) is_candidate: &'a dyn Fn(&FileFacts) -> bool,
    /// Whether the files of one commit stay together because they are finished: outputs of an earlier merge, cut apart and
    /// joined with others, would be merged again and again.
    pub(crate) is_finished: &'a dyn Fn(&[&FileFacts]) -> bool,
    /// In a table of version 2 or later files of sequence number 0 were written before the upgrade: all of them are taken, or
    /// none.
    pub(crate) all_of_number_0: bool,
    /// Above these bytes the files of one number are cut where they are proved to share no key.
    pub(crate) split_above: u64,
}

/// One run of all candidates, cut anywhere: the order of their commits need not be kept. Files of one sequence number that
/// came with different commits stand together, commit by commit.
pub(crate) fn without_commit_order(files: &[FileFacts], rules: RunRules<'_>) -> Runs {
    let mut candidates: Vec<usize> = (0..files.len()).filter(|at| (rules.is_candidate)(&files[*at])).collect();
    candidates.sort_by_key(|at| {
        let file = &files[*at];
        (file.data_sequence_number, file.added_position, file.path.as_bytes())
    });
    Runs { runs: vec![Sweep { files, rules }.atoms(&candidates)], ..Runs::default() }
}

/// The runs that keep the commit order.
pub(crate) fn with_commit_order(files: &[FileFacts], rules: RunRules<'_>) -> Runs {
    Sweep { files, rules }.run()
}

struct Sweep<'a> {
    files: &'a [FileFacts],
    rules: RunRules<'a>,
}

/// The files of one sequence number.
struct Block {
    /// Those that may be taken, all together.
    taken: Vec<usize>,
    /// Those that stay out.
    outside: Vec<usize>,
}

impl Sweep<'_> {
    fn run(&self) -> Runs {
        let mut found = Runs::default();
        let mut run = Run::new();
        // Files outside the run that came after its last member: they do not touch it until it grows past them.
        let mut passed: Vec<usize> = Vec::new();
        let sorted = in_commit_order(self.files);
        for numbers in sorted.chunk_by(|a, b| self.number(*a) == self.number(*b)) {
            let block = self.block(numbers, &mut found);
            passed.extend(&block.outside);
            if block.taken.is_empty() {
                continue;
            }
            let members = run.iter().flatten();
            let between = members.flat_map(|member| self.first_overlap(*member, &passed)).next();
            if let Some(blocking) = between {
                found.blocking.get_or_insert(blocking);
                found.runs.push(std::mem::take(&mut run));
            }
            let pieces = self.pieces(&run, block.taken);
            run.extend(pieces);
            passed.clear();
        }
        found.runs.push(run);
        found
    }

    fn number(&self, at: usize) -> i64 {
        self.files[at].data_sequence_number
    }

    fn overlap(&self, a: usize, b: usize) -> bool {
        may_overlap(self.rules.order, &self.files[a], &self.files[b])
    }

    fn first_overlap(&self, file: usize, others: &[usize]) -> Option<usize> {
        others.iter().copied().find(|other| self.overlap(file, *other))
    }

    /// Splits the files of one number into those that may be taken and those that stay out: a candidate that may share a
    /// key with a file that stays out stays out too.
    fn block(&self, numbers: &[usize], found: &mut Runs) -> Block {
        let (mut taken, mut outside): (Vec<usize>, Vec<usize>) =
            numbers.iter().partition(|at| (self.rules.is_candidate)(&self.files[**at]));
        let is_number_0 = numbers.first().is_some_and(|at| self.number(*at) == 0);
        let takes_part_of_0 = is_number_0 && self.rules.all_of_number_0 && !taken.is_empty();
        if let Some(first) = outside.first().filter(|_| takes_part_of_0) {
            found.blocking.get_or_insert(*first);
            outside.append(&mut taken);
        }
        let mut unseen = 0;
        while unseen < outside.len() && !taken.is_empty() {
            let stays_out = outside[unseen];
            unseen += 1;
            let dragged: Vec<usize> = taken.extract_if(.., |at| self.overlap(*at, stays_out)).collect();
            if !dragged.is_empty() {
                found.blocking.get_or_insert(stays_out);
            }
            outside.extend(dragged);
        }
        if is_number_0
            && taken.len() > 1
            && let Some(at) = taken.iter().find(|at| self.files[**at].added_position.is_none())
        {
            found.no_order.get_or_insert(format!(
                "{} has sequence number 0 and the snapshot that added it is not known any more",
                self.files[*at].path
            ));
            outside.append(&mut taken);
        }
        Block { taken, outside }
    }

    /// A block as pieces that may be cut apart, given the pieces before it in the run.
    fn pieces(&self, run: &Run, block: Vec<usize>) -> Run {
        let bytes: u64 = block.iter().map(|at| self.files[*at].size).sum();
        let is_number_0 = block.first().is_some_and(|at| self.number(*at) == 0);
        if bytes <= self.rules.split_above || (is_number_0 && self.rules.all_of_number_0) {
            return vec![block];
        }
        let mut bound = Vec::new();
        let mut free = Vec::new();
        for mut part in self.parts(&block) {
            let earlier = run.iter().flatten();
            let touches = earlier.clone().any(|member| part.iter().any(|at| self.overlap(*member, *at)));
            if touches { bound.append(&mut part) } else { free.push(part) }
        }
        bound.sort_by(|a, b| commit_key(&self.files[*a]).cmp(&commit_key(&self.files[*b])));
        std::iter::once(bound).filter(|part| !part.is_empty()).chain(free).collect()
    }

    /// The files of one number in parts that share no key by the first measure that tells them apart.
    fn parts(&self, block: &[usize]) -> Vec<Vec<usize>> {
        let atoms = self.atoms(block);
        let parts = measures(self.rules.order).filter_map(|measure| self.parts_by(measure, &atoms));
        parts.into_iter().find(|parts| parts.len() > 1).unwrap_or_else(|| vec![atoms.concat()])
    }

    /// Atoms joined where their intervals meet; None when one of them has no interval.
    fn parts_by(&self, measure: usize, atoms: &[Vec<usize>]) -> Option<Vec<Vec<usize>>> {
        let hull = |atom: &'_ Vec<usize>| {
            let intervals: Option<Vec<_>> = atom.iter().map(|at| interval(&self.files[*at], measure)).collect();
            let intervals = intervals?;
            Some((intervals.iter().map(|i| i.0).min()?, intervals.iter().map(|i| i.1).max()?))
        };
        let mut sorted: Vec<(_, &Vec<usize>)> = Vec::with_capacity(atoms.len());
        for atom in atoms {
            sorted.push((hull(atom)?, atom));
        }
        sorted.sort_by_key(|(interval, _)| *interval);
        let mut parts: Vec<(&[u8], Vec<usize>)> = Vec::new();
        for ((first, last), atom) in sorted {
            match parts.last_mut().filter(|(end, _)| first <= *end) {
                Some((end, part)) => {
                    *end = last.max(*end);
                    part.extend(atom);
                }
                None => parts.push((last, atom.clone())),
            }
        }
        Some(parts.into_iter().map(|(_, part)| part).collect())
    }

    /// Single files, and finished files of one commit together.
    fn atoms(&self, files: &[usize]) -> Vec<Vec<usize>> {
        let mut by_commit = files.to_vec();
        by_commit.sort_by_key(|at| (self.number(*at), self.files[*at].added_position));
        let commits = by_commit.chunk_by(|a, b| self.commit(*a).is_some() && self.commit(*a) == self.commit(*b));
        let atoms = commits.flat_map(|commit| {
            let of_commit: Vec<&FileFacts> = commit.iter().map(|at| &self.files[*at]).collect();
            if (self.rules.is_finished)(&of_commit) {
                vec![commit.to_vec()]
            } else {
                commit.iter().map(|at| vec![*at]).collect()
            }
        });
        atoms.collect()
    }

    fn commit(&self, at: usize) -> Option<(i64, u64)> {
        self.files[at].added_position.map(|position| (self.number(at), position))
    }
}
