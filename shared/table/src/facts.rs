//! A manifest entry as a fact of the model: what the planner knows of a file.

use std::collections::HashMap;
use std::sync::Arc;

use firn_model::{Bounds, DeleteFacts, DeleteKind, FileFacts, FileFormat, PartitionKey, RowOrder};
use iceberg::spec::{PrimitiveType, Schema};

use crate::key_bytes::bounds;
use crate::scan::entry::{Content, Entry};

/// Field id of the `file_path` column of position delete files (Iceberg spec, reserved field ids).
const DELETE_FILE_PATH: i32 = 2_147_483_546;

/// The key columns of a row order with their current types.
#[derive(Debug, Clone)]
pub(crate) struct KeyColumns(Vec<(i32, Option<PrimitiveType>)>);

impl KeyColumns {
    pub(crate) fn of(schema: &Schema, order: &RowOrder) -> Self {
        let column = |id: i32| (id, schema.field_by_id(id).and_then(|f| f.field_type.as_primitive_type().cloned()));
        Self(order.columns.iter().map(|column_of| column(column_of.field_id)).collect())
    }

    /// What the metrics of an entry prove about each key column.
    fn bounds(&self, entry: &Entry) -> Vec<Option<Bounds>> {
        self.0.iter().map(|(id, primitive)| key_bounds(entry, *id, primitive.as_ref()?)).collect()
    }
}

/// Bounds of a column, when no null and no NaN can lie outside them.
fn key_bounds(entry: &Entry, field_id: i32, primitive: &PrimitiveType) -> Option<Bounds> {
    if entry.null_count(field_id) != Some(0) {
        return None;
    }
    let is_float = matches!(primitive, PrimitiveType::Float | PrimitiveType::Double);
    if is_float && entry.nan_count(field_id) != Some(0) {
        return None;
    }
    let (lower, upper) = entry.bounds(field_id)?;
    bounds(lower, upper, primitive)
}

/// The facts of a data file.
///
/// # Errors
/// A sentence on what the entry lacks.
pub(crate) fn file_facts(
    entry: &Entry,
    partition: Arc<PartitionKey>,
    keys: &KeyColumns,
    history: &HashMap<i64, u64>,
) -> Result<FileFacts, String> {
    Ok(FileFacts {
        path: entry.path()?.to_owned(),
        partition,
        data_sequence_number: entry.sequence_number,
        added_snapshot_id: entry.snapshot_id,
        added_position: entry.snapshot_id.and_then(|id| history.get(&id).copied()),
        size: entry.size()?,
        rows: entry.rows()?,
        format: match entry.format()?.as_str() {
            "parquet" => FileFormat::Parquet,
            "orc" => FileFormat::Orc,
            "avro" => FileFormat::Avro,
            other => return Err(format!("data file `{}` has format {other}", entry.path()?)),
        },
        sort_order_id: entry.sort_order_id()?,
        key_bounds: keys.bounds(entry),
        key_range: None,
    })
}

/// The facts of a delete file.
///
/// # Errors
/// A sentence on what the entry lacks.
pub(crate) fn delete_facts(entry: &Entry, partition: Arc<PartitionKey>) -> Result<DeleteFacts, String> {
    let kind = match entry.content {
        Content::EqualityDeletes => DeleteKind::Equality,
        _ if entry.format()? == "puffin" => DeleteKind::Vector,
        _ => DeleteKind::Position,
    };
    let paths = entry.bounds(DELETE_FILE_PATH).filter(|(lower, upper)| lower <= upper);
    Ok(DeleteFacts {
        path: entry.path()?.to_owned(),
        kind,
        partition,
        data_sequence_number: entry.sequence_number,
        referenced_data_file: entry.referenced_data_file()?.map(str::to_owned),
        file_path_bounds: paths.map(|(lower, upper)| (lower.to_vec(), upper.to_vec())),
        content_offset: entry.content_offset()?,
    })
}
