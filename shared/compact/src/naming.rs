//! Names of outputs and the hash of what they were made from (design section 6, "Output name").

use firn_model::RowOrder;
use firn_state::hash_inputs;
use firn_table::PartitionFacts;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Raised whenever the way of merging changes so that equal inputs no longer give an equal result.
const NAME_VERSION: u32 = 1;

/// Everything that decides what a merge's output holds.
#[derive(Debug, Clone)]
pub struct HashedInputs<'a> {
    /// Input paths exactly as the manifests have them, in any order.
    pub paths: Vec<&'a str>,
    /// Delete files applied: path, offset in a Puffin file, data sequence number.
    pub deletes: Vec<(&'a str, Option<i64>, i64)>,
    /// Schema the rows are written with.
    pub schema_id: i32,
    /// Partition spec of inputs and outputs.
    pub spec_id: i32,
    /// Row order and dedup.
    pub order: &'a RowOrder,
    /// `targetSizeMb` in bytes.
    pub target_bytes: u64,
}

/// 128 bits (32 hex digits) that are equal exactly when the same inputs would be merged in the same way.
///
/// Two runs of one group give one hash, so the second finds the first one's output in the table and stops.
pub fn inputs_hash(inputs: &HashedInputs<'_>) -> String {
    let mut hasher = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    field(&NAME_VERSION.to_be_bytes());
    let mut paths = inputs.paths.clone();
    paths.sort_unstable();
    field(&(paths.len() as u64).to_be_bytes());
    for path in paths {
        field(path.as_bytes());
    }
    let mut deletes = inputs.deletes.clone();
    deletes.sort_unstable();
    for (path, offset, sequence_number) in deletes {
        field(path.as_bytes());
        field(&offset.unwrap_or(-1).to_be_bytes());
        field(&sequence_number.to_be_bytes());
    }
    field(&inputs.schema_id.to_be_bytes());
    field(&inputs.spec_id.to_be_bytes());
    field(inputs.order.canonical().as_bytes());
    field(&inputs.order.dedup_columns.map_or(0, |columns| columns as u64 + 1).to_be_bytes());
    field(&inputs.target_bytes.to_be_bytes());
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of what there is to merge in a partition, for its record. Planner and worker take it from here, so that both give the same
/// files.
pub fn facts_hash(facts: &PartitionFacts) -> String {
    let files = facts.files.iter().map(|file| file.path.as_str());
    hash_inputs(files.chain(facts.deletes.iter().map(|delete| delete.path.as_str())))
}

/// `<hash>-<uuid>.parquet`: the UUID is fresh for each attempt and file, so attempts never share a blob.
pub fn output_name(inputs_hash: &str, uuid: Uuid) -> String {
    format!("{inputs_hash}-{uuid}.parquet")
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_model::OrderColumn;

    fn hash(change: impl FnOnce(&mut HashedInputs<'_>)) -> String {
        let order = RowOrder {
            columns: vec![OrderColumn { field_id: 1, name: "k".into(), descending: false, nulls_first: true }],
            ..RowOrder::default()
        };
        let mut inputs = HashedInputs {
            paths: vec!["file:///t/a.parquet", "file:///t/b.parquet"],
            deletes: vec![],
            schema_id: 0,
            spec_id: 0,
            order: &order,
            target_bytes: 128 << 20,
        };
        change(&mut inputs);
        inputs_hash(&inputs)
    }

    #[test]
    fn the_order_of_paths_does_not_matter_and_everything_else_does() {
        let base = hash(|_| {});
        assert_eq!(base.len(), 32);
        assert_eq!(base, hash(|inputs| inputs.paths.reverse()));
        let deduped = RowOrder { dedup_columns: Some(1), ..RowOrder::default() };
        let others = [
            hash(|inputs| inputs.paths.truncate(1)),
            hash(|inputs| inputs.paths = vec!["file:///t/a.parquetfile:///t/b.parquet"]),
            hash(|inputs| inputs.deletes.push(("file:///t/d.parquet", None, 3))),
            hash(|inputs| inputs.schema_id = 1),
            hash(|inputs| inputs.spec_id = 1),
            hash(|inputs| inputs.target_bytes = 1),
            inputs_hash(&HashedInputs {
                paths: vec!["file:///t/a.parquet", "file:///t/b.parquet"],
                deletes: vec![],
                schema_id: 0,
                spec_id: 0,
                order: &deduped,
                target_bytes: 128 << 20,
            }),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(&base, other, "change {index}");
        }
    }

    #[test]
    fn names_carry_hash_and_uuid() {
        let uuid = Uuid::from_u128(7);
        assert_eq!(output_name("ab", uuid), "ab-00000000-0000-0000-0000-000000000007.parquet");
    }
}
