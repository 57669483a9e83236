//! How much there is in each partition, without keeping its files.

use std::collections::HashMap;
use std::sync::Arc;

use firn_model::{PartitionKey, TierCounts};

use super::entry::Content;
use super::manifests::{holds_deletes, reduce, select};
use super::{head, sorted_by_key};
use crate::error::TableError;
use crate::filter::PartitionFilter;
use crate::loaded::LoadedTable;

/// What is live in one partition. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionStats {
    /// The partition.
    pub key: Arc<PartitionKey>,
    /// Live data files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
    /// Data files below the size that counts as small.
    pub small_files: u64,
    /// Their bytes.
    pub small_bytes: u64,
    /// Data files too small to be left as they are in a sorted run, by size tier.
    pub tiers: TierCounts,
    /// Data files that are large enough.
    pub large_files: u64,
    /// Live delete files that may concern the partition: its own and those of unpartitioned specs.
    pub delete_files: u64,
}

/// From which sizes on a file counts as what. Bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SizeLimits {
    /// A file below it is small.
    pub small_below: u64,
    /// A file of this size or more is large.
    pub large_from: u64,
}

impl SizeLimits {
    /// Small files below these bytes, and every file large enough.
    pub fn small_below(bytes: u64) -> Self {
        Self { small_below: bytes, large_from: 0 }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    files: u64,
    bytes: u64,
    rows: u64,
    small_files: u64,
    small_bytes: u64,
    tiers: TierCounts,
    large_files: u64,
    delete_files: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.rows += other.rows;
        self.small_files += other.small_files;
        self.small_bytes += other.small_bytes;
        self.tiers.add(&other.tiers);
        self.large_files += other.large_files;
        self.delete_files += other.delete_files;
    }
}

/// Counts the live files of every partition that passes the filter, by their sizes. Sorted
/// by spec and tuple. Memory grows with the partitions, not with the files. A branch without snapshots has no partitions.
///
/// # Errors
/// [`TableError::BranchAbsent`], or what is wrong with a manifest.
pub async fn partition_stats(
    table: &LoadedTable,
    branch: &str,
    filter: &PartitionFilter,
    limits: SizeLimits,
) -> Result<Vec<PartitionStats>, TableError> {
    let Some(snapshot) = head(table, branch)? else { return Ok(Vec::new()) };
    let specs = table.spec_types()?;
    let manifests = table.manifests(snapshot).await?;
    let selected = select(table, &specs, manifests, |manifest, spec| {
        filter.may_match(spec, manifest.partitions.as_deref()) || (holds_deletes(manifest) && spec.is_unpartitioned())
    })?;
    let mut sums: HashMap<PartitionKey, Sums> = HashMap::new();
    let each = move |sums: &mut HashMap<PartitionKey, Sums>, entry: super::entry::Entry, spec: &super::SpecTypes| {
        let one = match entry.content {
            Content::Data => {
                let bytes = entry.size()?;
                let small = bytes < limits.small_below;
                let large = bytes >= limits.large_from;
                let mut tiers = TierCounts::default();
                if !large {
                    tiers.count(bytes);
                }
                Sums {
                    files: 1,
                    bytes,
                    rows: entry.rows()?,
                    small_files: u64::from(small),
                    small_bytes: if small { bytes } else { 0 },
                    tiers,
                    large_files: u64::from(large),
                    delete_files: 0,
                }
            }
            _ => Sums { delete_files: 1, ..Sums::default() },
        };
        sums.entry(spec.key(entry.partition)).or_default().add(one);
        Ok(())
    };
    reduce(table, selected, HashMap::new, each, |of_manifest| {
        for (key, more) in of_manifest {
            sums.entry(key).or_default().add(more);
        }
    })
    .await?;

    let everywhere: u64 =
        sums.iter().filter(|(key, _)| key.is_unpartitioned()).map(|(_, sums)| sums.delete_files).sum();
    let live = sums.into_iter().filter(|(key, sums)| sums.files > 0 && filter.matches(key));
    let mut stats: Vec<PartitionStats> = live
        .map(|(key, sums)| PartitionStats {
            files: sums.files,
            bytes: sums.bytes,
            rows: sums.rows,
            small_files: sums.small_files,
            small_bytes: sums.small_bytes,
            tiers: sums.tiers,
            large_files: sums.large_files,
            delete_files: if key.is_unpartitioned() { everywhere } else { sums.delete_files + everywhere },
            key: Arc::new(key),
        })
        .collect();
    sorted_by_key(&mut stats, |stats| &stats.key);
    Ok(stats)
}
