//! The shortcut for a table that has not changed since nothing was to do in it: one read of its metadata, and no manifest.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use firn_config::Dataset;
use firn_model::Rule;
use firn_table::LoadedTable;

/// Everything that a plan rests on, as one number: the snapshot, what of the table's metadata decides (schema, spec, sort order,
/// properties), the dataset's configuration and the rules. Time is not in it: whether a partition is cold hangs on the table's own
/// highest time, a scheduled time changes the rules, and a partition that cools down has a record, with which nothing is settled.
///
/// Another version of Firn may come to another number, which costs one more plan.
pub(super) fn plan_key(table: &LoadedTable, dataset: &Dataset, rules: &[Rule]) -> String {
    let head = table.head(&dataset.branch).map(|snapshot| snapshot.snapshot_id());
    let mut hasher = DefaultHasher::new();
    (look_key(table, dataset), head, rules).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The same but for the snapshot and the rules: what the decisions on single partitions rest on beside their files.
pub(super) fn look_key(table: &LoadedTable, dataset: &Dataset) -> String {
    let metadata = &table.metadata;
    let mut properties: Vec<(&String, &String)> = metadata.properties().iter().collect();
    properties.sort();
    let mut hasher = DefaultHasher::new();
    table.uuid().hash(&mut hasher);
    (table.format_version() as u8, metadata.current_schema_id()).hash(&mut hasher);
    (metadata.default_partition_spec_id(), metadata.default_sort_order_id()).hash(&mut hasher);
    properties.hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    let mut configured = String::new();
    // Writing to a string does not fail.
    let _ = write!(configured, "{dataset:?}");
    configured.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
