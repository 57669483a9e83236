//! Where files of a table belong (design section 6: "in the table's own layout").

mod human;
pub(crate) mod layout;
mod sidecar;

use firn_model::{PartitionKey, PartitionValue};
use iceberg::spec::{PartitionSpec, Transform};

use crate::error::TableError;
use crate::loaded::LoadedTable;

pub use sidecar::sidecar_uuid;

/// The full path of a new data file of `partition`, in the form of URL that the table location (or `write.data.path`) uses.
///
/// Follows `write.data.path` with its older names, `write.object-storage.enabled` with
/// `write.object-storage.partitioned-paths`, and encodes partition directories as Iceberg's Java library does.
///
/// # Errors
/// [`TableError::Damaged`] when the table's layout is made by code that Firn does not have, or the partition's spec is not
/// in the table's metadata.
pub fn output_path(table: &LoadedTable, partition: &PartitionKey, file_name: &str) -> Result<String, TableError> {
    let metadata = &table.metadata;
    let damaged = |detail: String| TableError::Damaged { ident: table.ident.clone(), detail };
    let spec = metadata.partition_spec_by_id(partition.spec_id).ok_or_else(|| {
        damaged(format!("partition ({partition}) has spec {}, which the table's metadata lacks", partition.spec_id))
    })?;
    layout::data_path(metadata.location(), metadata.properties(), spec, partition, file_name)
        .map_err(|error| damaged(error.to_string()))
}

/// A partition for people: as [`PartitionKey`] prints it, but years, months and hours as dates and not as their numbers since 1970
/// (`ts_month=2026-11`, `ts_hour=2026-11-30-14`), in the words that `--partition` and messages by hand take.
pub fn partition_label(table: &LoadedTable, partition: &PartitionKey) -> String {
    match table.metadata.partition_spec_by_id(partition.spec_id) {
        Some(spec) if spec.fields().len() == partition.values.len() => label(spec, partition),
        _ => partition.to_string(),
    }
}

fn label(spec: &PartitionSpec, partition: &PartitionKey) -> String {
    let is_period =
        |transform| matches!(transform, Transform::Year | Transform::Month | Transform::Day | Transform::Hour);
    if !spec.fields().iter().any(|field| is_period(field.transform)) {
        return partition.to_string();
    }
    let named =
        spec.fields().iter().zip(&partition.values).map(|(field, PartitionValue { name, value })| match value {
            Some(value) if is_period(field.transform) => {
                format!("{name}={}", human::human_string(field.transform, Some(value)))
            }
            Some(value) => format!("{name}={value}"),
            None => format!("{name}=null"),
        });
    named.collect::<Vec<_>>().join(", ")
}

/// The hash at the start of a file name of Firn's own (`<hash>-<uuid>.parquet`), compared with `hash`. The
/// object-storage layout may put bits and a dash before it.
pub fn is_output_of(path: &str, hash: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let starts = |name: &str| name.strip_prefix(hash).is_some_and(|rest| rest.starts_with('-'));
    let is_bits = |text: &str| text.bytes().all(|byte| matches!(byte, b'0' | b'1'));
    starts(name) || name.split_once('-').is_some_and(|(bits, rest)| is_bits(bits) && starts(rest))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_model::Scalar;
    use iceberg::spec::{NestedField, PrimitiveType, Schema, Type, UnboundPartitionField, UnboundPartitionSpec};

    use super::*;

    #[test]
    fn periods_are_dates_for_people() {
        let time = NestedField::optional(1, "ts", Type::Primitive(PrimitiveType::Timestamp));
        let region = NestedField::optional(2, "region", Type::Primitive(PrimitiveType::String));
        let schema = Schema::builder().with_fields([Arc::new(time), Arc::new(region)]).build().unwrap();
        let label = |transform: Transform, value: Option<Scalar>, region: Option<&str>| {
            let field = |source_id, name: &str, transform| UnboundPartitionField {
                source_id,
                field_id: None,
                name: name.into(),
                transform,
            };
            let fields = [field(1, "p", transform), field(2, "region", Transform::Identity)];
            let spec = UnboundPartitionSpec::builder().add_partition_fields(fields).unwrap().build();
            let spec = spec.bind(Arc::new(schema.clone())).unwrap();
            let region = region.map(|region| Scalar::String(region.into()));
            let values = [("p", value), ("region", region)];
            let values = values.map(|(name, value)| PartitionValue { name: name.into(), value });
            super::label(&spec, &PartitionKey::new(0, values.into()))
        };
        for (transform, value, expected) in [
            (Transform::Hour, Scalar::Int(498_950), "p=2026-12-02-14, region=eu"),
            (Transform::Month, Scalar::Int(682), "p=2026-11, region=eu"),
            (Transform::Year, Scalar::Int(56), "p=2026, region=eu"),
            (Transform::Day, Scalar::Date(20_758), "p=2026-11-01, region=eu"),
            (Transform::Bucket(16), Scalar::Int(7), "p=7, region=eu"),
        ] {
            assert_eq!(label(transform, Some(value), Some("eu")), expected);
        }
        assert_eq!(label(Transform::Hour, None, None), "p=null, region=null");
    }

    #[test]
    fn outputs_are_known_by_their_hash() {
        assert!(is_output_of("abfss://c@a/t/data/d=1/abc-123.parquet", "abc"));
        assert!(is_output_of("abfss://c@a/t/data/0101/0110/1001/10110010-abc-123.parquet", "abc"));
        assert!(!is_output_of("abfss://c@a/t/data/abcd-123.parquet", "abc"));
        assert!(!is_output_of("abfss://c@a/t/abc-data/x-123.parquet", "abc"));
        assert!(!is_output_of("abfss://c@a/t/data/xyz-abc-123.parquet", "abc"));
    }
}
