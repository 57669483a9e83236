//! The live files of chosen partitions as facts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use firn_model::{DeleteFacts, FileFacts, PartitionKey, RowOrder};
use iceberg::spec::ManifestFile;

use super::entry::{Content, Entry};
use super::manifests::{holds_deletes, reduce, select};
use super::{SpecTypes, head, history};
use crate::error::TableError;
use crate::facts::{KeyColumns, delete_facts, file_facts};
use crate::filter::may_hold;
use crate::key_bytes::memcmp;
use crate::loaded::LoadedTable;

/// What is live in one partition.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionFacts {
    /// The partition.
    pub key: Arc<PartitionKey>,
    /// Live data files, sorted by data sequence number and then by the bytes of their paths.
    pub files: Vec<FileFacts>,
    /// Live delete files that may concern it: its own and those of unpartitioned specs, sorted in the same way.
    pub deletes: Vec<DeleteFacts>,
}

#[derive(Default)]
struct Found {
    files: Vec<FileFacts>,
    deletes: Vec<DeleteFacts>,
}

/// The live files of the `wanted` partitions on a branch, with what their metrics prove about the columns of `order`. Every
/// wanted partition has an entry in the result, empty when nothing is live in it. Memory grows with the files of the wanted
/// partitions only.
///
/// # Errors
/// [`TableError::BranchAbsent`]; what is wrong with a manifest; [`TableError::Damaged`] when a path is live twice.
pub async fn partition_facts(
    table: &LoadedTable,
    branch: &str,
    wanted: &HashSet<PartitionKey>,
    order: &RowOrder,
) -> Result<HashMap<PartitionKey, PartitionFacts>, TableError> {
    let keys: HashMap<PartitionKey, Arc<PartitionKey>> =
        wanted.iter().map(|key| (key.clone(), Arc::new(key.clone()))).collect();
    let mut found = Found::default();
    if let Some(snapshot) = head(table, branch)? {
        let specs = table.spec_types()?;
        let manifests = table.manifests(snapshot).await?;
        let selected = select(table, &specs, manifests, |manifest, spec| {
            (holds_deletes(manifest) && spec.is_unpartitioned())
                || wanted.iter().any(|key| may_hold_partition(manifest, spec, key))
        })?;
        let reading = Reading {
            keys: keys.clone(),
            columns: KeyColumns::of(table.metadata.current_schema(), order),
            history: history(table, snapshot),
        };
        let each = move |found: &mut Found, entry: Entry, spec: &SpecTypes| reading.add(found, entry, spec);
        reduce(table, selected, Found::default, each, |more| {
            found.files.extend(more.files);
            found.deletes.extend(more.deletes);
        })
        .await?;
    }
    refuse_live_twice(table, &found.files)?;
    Ok(by_partition(keys, found))
}

/// Paths of the live data files in manifests that can hold `partition` and that `wanted` picks.
pub(crate) async fn live_data_paths(
    table: &LoadedTable,
    branch: &str,
    partition: &PartitionKey,
    wanted: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> Result<Vec<String>, TableError> {
    let Some(snapshot) = head(table, branch)? else { return Ok(Vec::new()) };
    let specs = table.spec_types()?;
    let manifests = table.manifests(snapshot).await?;
    let selected = select(table, &specs, manifests, |manifest, spec| {
        !holds_deletes(manifest) && may_hold_partition(manifest, spec, partition)
    })?;
    let each = move |found: &mut Vec<String>, entry: Entry, _: &SpecTypes| {
        let path = entry.path()?;
        if wanted(path) {
            found.push(path.to_owned());
        }
        Ok(())
    };
    let mut paths = Vec::new();
    reduce(table, selected, Vec::new, each, |more| paths.extend(more)).await?;
    Ok(paths)
}

/// What is needed to turn entries into facts.
struct Reading {
    keys: HashMap<PartitionKey, Arc<PartitionKey>>,
    columns: KeyColumns,
    history: HashMap<i64, u64>,
}

impl Reading {
    fn add(&self, found: &mut Found, mut entry: Entry, spec: &SpecTypes) -> Result<(), String> {
        let key = spec.key(std::mem::take(&mut entry.partition));
        let wanted = self.keys.get(&key);
        match (entry.content, wanted) {
            (Content::Data, Some(key)) => {
                found.files.push(file_facts(&entry, Arc::clone(key), &self.columns, &self.history)?);
            }
            (Content::Data, None) => {}
            (_, Some(key)) => found.deletes.push(delete_facts(&entry, Arc::clone(key))?),
            (_, None) if key.is_unpartitioned() => found.deletes.push(delete_facts(&entry, Arc::new(key))?),
            (_, None) => {}
        }
        Ok(())
    }
}

/// Whether a manifest can hold files of a partition, by the summaries of its fields. What is not known counts as yes.
pub(crate) fn may_hold_partition(manifest: &ManifestFile, spec: &SpecTypes, key: &PartitionKey) -> bool {
    if key.spec_id != spec.spec_id {
        return false;
    }
    let Some(summaries) = &manifest.partitions else { return true };
    spec.fields.iter().zip(summaries).zip(&key.values).all(|((field, summary), value)| match &value.value {
        _ if field.is_void() => true,
        None => summary.contains_null,
        Some(value) => {
            let value = memcmp(value);
            may_hold(field, summary, &value, &value)
        }
    })
}

/// A path that is live twice (invariant I3) would be merged twice and doubled.
fn refuse_live_twice(table: &LoadedTable, files: &[FileFacts]) -> Result<(), TableError> {
    let mut paths = HashSet::with_capacity(files.len());
    for file in files {
        if !paths.insert(file.path.as_str()) {
            return Err(table.damaged(format!("data file `{}` is live twice", file.path)));
        }
    }
    Ok(())
}

fn by_partition(keys: HashMap<PartitionKey, Arc<PartitionKey>>, found: Found) -> HashMap<PartitionKey, PartitionFacts> {
    let empty = |key: Arc<PartitionKey>| PartitionFacts { key, files: Vec::new(), deletes: Vec::new() };
    let mut facts: HashMap<PartitionKey, PartitionFacts> =
        keys.into_iter().map(|(key, shared)| (key, empty(shared))).collect();
    for file in found.files {
        if let Some(partition) = facts.get_mut(&*file.partition) {
            partition.files.push(file);
        }
    }
    for delete in found.deletes {
        if delete.partition.is_unpartitioned() {
            for partition in facts.values_mut() {
                partition.deletes.push(delete.clone());
            }
        } else if let Some(partition) = facts.get_mut(&*delete.partition) {
            partition.deletes.push(delete);
        }
    }
    for partition in facts.values_mut() {
        partition.files.sort_by(|a, b| (a.data_sequence_number, &a.path).cmp(&(b.data_sequence_number, &b.path)));
        partition.deletes.sort_by(|a, b| (a.data_sequence_number, &a.path).cmp(&(b.data_sequence_number, &b.path)));
    }
    facts
}
