//! A small world for planner tests: files with real keys, the facts a catalog would give of them, and a merge.
#![allow(dead_code, unreachable_pub, reason = "a module of two test binaries, each of which uses a part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_model::{Bounds, FileFacts, FileFormat, KeyRange, OrderColumn, PartitionKey, RowOrder};
use firn_plan::{Group, PlanSettings};

pub const MB: u64 = 1 << 20;

/// Key (series, time) and value. Values are unique, so it shows which write of a key was kept.
pub type Row = ((u8, u8), u32);

/// What is known of a file's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    Nothing,
    Bounds,
    TimeBounds,
    Range,
}

#[derive(Debug, Clone, PartialEq)]
pub struct File {
    pub path: String,
    pub sequence_number: i64,
    pub position: Option<u64>,
    pub bytes: u64,
    pub rows: Vec<Row>,
    pub proof: Proof,
}

impl File {
    pub fn new(path: &str, sequence_number: i64, bytes: u64, keys: &[(u8, u8)]) -> File {
        let rows = keys.iter().map(|key| (*key, 0)).collect();
        File { path: path.into(), sequence_number, position: None, bytes, rows, proof: Proof::Nothing }
    }

    pub fn proved(self, proof: Proof) -> File {
        File { proof, ..self }
    }

    pub fn facts(&self) -> FileFacts {
        let keys = || self.rows.iter().map(|(key, _)| *key);
        let bounds = |column: fn((u8, u8)) -> u8| {
            let values = || keys().map(column);
            Some(Bounds { lower: vec![values().min()?], upper: vec![values().max()?] })
        };
        let (series, time) = (bounds(|key| key.0), bounds(|key| key.1));
        let range = keys().min().zip(keys().max());
        FileFacts {
            path: self.path.clone(),
            partition: Arc::new(PartitionKey::unpartitioned(0)),
            data_sequence_number: self.sequence_number,
            added_snapshot_id: self.position.map(|position| position as i64),
            added_position: self.position,
            size: self.bytes,
            rows: self.rows.len() as u64,
            format: FileFormat::Parquet,
            sort_order_id: None,
            key_bounds: match self.proof {
                Proof::Nothing | Proof::Range => vec![None, None],
                Proof::TimeBounds => vec![None, time],
                Proof::Bounds => vec![series, time],
            },
            key_range: range
                .filter(|_| self.proof == Proof::Range)
                .map(|(first, last)| KeyRange { first: vec![first.0, first.1], last: vec![last.0, last.1] }),
        }
    }
}

pub fn facts(files: &[File]) -> Vec<FileFacts> {
    files.iter().map(File::facts).collect()
}

/// Rows in the order of series and time.
pub fn series_order(dedup: bool) -> RowOrder {
    let column =
        |field_id, name: &str| OrderColumn { field_id, name: name.into(), descending: false, nulls_first: true };
    RowOrder {
        columns: vec![column(1, "series"), column(2, "time")],
        dedup_columns: dedup.then_some(2),
        keeps_commit_order: true,
        key_columns: 2,
        table_sort_order_id: None,
    }
}

/// The same order without a promise to keep the order of commits, as `sortColumns` give it.
pub fn sort_columns_order() -> RowOrder {
    RowOrder { keeps_commit_order: false, key_columns: 0, ..series_order(false) }
}

/// What a reader that keeps the last write of each key sees.
pub fn last_writes(files: &[File]) -> BTreeMap<(u8, u8), u32> {
    let mut rows = Vec::new();
    for file in files {
        let position = if file.sequence_number == 0 { file.position } else { None };
        for (at, (key, value)) in file.rows.iter().enumerate() {
            rows.push(((file.sequence_number, position, file.path.as_bytes(), at), *key, *value));
        }
    }
    rows.sort();
    rows.into_iter().map(|(_, key, value)| (key, value)).collect()
}

/// Replaces the files of a group by what a merge writes: rows in key order (with dedup the last write of each key), rolled
/// at the target size when what follows makes a file of its own, with proved ranges and the group's sequence number.
pub fn merge(files: &mut Vec<File>, group: &Group, order: &RowOrder, settings: &PlanSettings, shrink: f64) {
    merge_proving(files, group, order, settings, shrink, |_| Proof::Range);
}

/// As `merge`, by a writer that proves no more than was proved of every input.
pub fn merge_proving_nothing_new(files: &mut Vec<File>, group: &Group, order: &RowOrder, settings: &PlanSettings) {
    merge_proving(files, group, order, settings, 1.0, |inputs| {
        let all = |proofs: &[Proof]| inputs.iter().all(|file| proofs.contains(&file.proof));
        match () {
            () if all(&[Proof::Range]) => Proof::Range,
            () if all(&[Proof::Bounds]) => Proof::Bounds,
            () if all(&[Proof::Bounds, Proof::TimeBounds]) => Proof::TimeBounds,
            () => Proof::Nothing,
        }
    });
}

fn merge_proving(
    files: &mut Vec<File>,
    group: &Group,
    order: &RowOrder,
    settings: &PlanSettings,
    shrink: f64,
    proof: impl Fn(&[File]) -> Proof,
) {
    let position = files.iter().filter_map(|file| file.position).max().unwrap_or(0) + 1;
    let mut inputs = Vec::new();
    for member in group.files() {
        let at = files.iter().position(|file| file.path == member.path).expect("a group names live files");
        inputs.push(files.remove(at));
    }
    let proof = proof(&inputs);
    let mut rows: Vec<Row> = if order.dedup_columns.is_some() {
        last_writes(&inputs).into_iter().collect()
    } else {
        inputs.iter().flat_map(|file| file.rows.clone()).collect()
    };
    rows.sort_by_key(|(key, _)| *key);
    let bytes = (inputs.iter().map(|file| file.bytes).sum::<u64>() as f64 * shrink) as u64;
    let target = group.target_bytes().unwrap_or(settings.target_bytes);
    let sizes = rolled(bytes, target, settings, rows.len());
    let each = rows.len().div_ceil(sizes.len());
    for (number, size) in sizes.iter().enumerate() {
        // A file ends only where the key changes; what is left over goes into the last one.
        let mut until = if number + 1 == sizes.len() { rows.len() } else { each.min(rows.len()) };
        while until > 0 && until < rows.len() && rows[until].0 == rows[until - 1].0 {
            until += 1;
        }
        files.push(File {
            // Names of outputs say nothing of their order.
            path: format!("{:02x}-out-{position}", (number * 97 + position as usize * 61) % 251),
            sequence_number: group.data_sequence_number(),
            position: Some(position),
            bytes: *size,
            rows: rows.drain(..until).collect(),
            proof,
        });
    }
    // Keys that repeat may leave the last ones empty; their bytes belong to those before.
    while files.last().is_some_and(|file| file.rows.is_empty()) {
        let empty = files.pop().expect("the last one");
        files.last_mut().expect("a merge writes a file").bytes += empty.bytes;
    }
}

fn rolled(mut bytes: u64, target: u64, settings: &PlanSettings, rows: usize) -> Vec<u64> {
    let least = (settings.min_file_bytes * 5 / 4).max(target / 4);
    let mut sizes = Vec::new();
    while bytes >= target + least && sizes.len() + 1 < rows {
        sizes.push(target);
        bytes -= target;
    }
    sizes.push(bytes.max(1));
    sizes
}
