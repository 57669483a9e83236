//! Which columns of a file fill which columns of the table (design section 5, "Schema").
//!
//! Everything goes by field id, at every level: a renamed column is found, a dropped and re-added one is not mistaken
//! for the old one, order and upper or lower case do not matter. Files without any id go by the table's name mapping.

mod mapping;
mod prune;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::{
    FieldLevels, PARQUET_FIELD_ID_META_KEY, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema,
};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::adapt::Adapt;
use crate::contain::contain;
use crate::error::ColumnarError;
pub use mapping::NameMapping;
use mapping::{MappedField, find};
use prune::Pruner;
pub(crate) use prune::Shape;

/// How a column of the table is had from a file.
#[derive(Debug, Clone)]
pub(crate) enum ColumnPlan {
    /// The file does not have it: all values are null.
    Missing(DataType),
    /// It is read from these columns of the file.
    Read(Arc<ReadPlan>),
}

/// How to read one column.
pub(crate) struct ReadPlan {
    /// Dotted path in the table, for messages.
    pub(crate) path: String,
    /// Leaf columns of the file, in the order of `levels`.
    pub(crate) leaves: Vec<usize>,
    /// The part of the file's schema that is read, as the Parquet crate's reader wants it.
    pub(crate) levels: FieldLevels,
    /// From what the reader gives to the table's type.
    pub(crate) adapt: Adapt,
}

impl std::fmt::Debug for ReadPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadPlan").field("path", &self.path).field("leaves", &self.leaves).finish_non_exhaustive()
    }
}

/// Where the ids of a node's children come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ids<'a> {
    /// From the file.
    Own,
    /// From the name mapping.
    Mapped(&'a [MappedField]),
}

impl<'a> Ids<'a> {
    /// The id of `node`, which a name mapping knows as `name`, and where those of its children come from.
    pub(crate) fn of(self, node: &Type, name: &str) -> (Option<i32>, Ids<'a>) {
        match self {
            Ids::Own => {
                let info = node.get_basic_info();
                (info.has_id().then(|| info.id()), Ids::Own)
            }
            Ids::Mapped(fields) => match find(fields, name) {
                Some(field) => (field.field_id, Ids::Mapped(&field.fields)),
                None => (None, Ids::Mapped(&[])),
            },
        }
    }
}

/// The field id that a field of the target schema carries.
pub(crate) fn target_id(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

/// Finds every column of `target` in the file.
pub(crate) fn resolve(
    file: &str,
    metadata: &ParquetMetaData,
    target: &Schema,
    mapping: Option<&NameMapping>,
) -> Result<Vec<ColumnPlan>, ColumnarError> {
    let root = metadata.file_metadata().schema();
    let ids = match mapping {
        // If any id is there, the file is not one of those that a mapping is for.
        _ if root.get_fields().iter().any(|node| has_any_id(node)) => Ids::Own,
        Some(mapping) => Ids::Mapped(mapping.fields()),
        None if root.get_fields().is_empty() => Ids::Own,
        None => return Err(ColumnarError::NoFieldIds { file: file.to_owned() }),
    };
    target.fields().iter().map(|field| resolve_column(file, root, field, ids)).collect()
}

fn has_any_id(node: &Type) -> bool {
    node.get_basic_info().has_id() || node.is_group() && node.get_fields().iter().any(|child| has_any_id(child))
}

fn resolve_column(file: &str, root: &Type, field: &Field, ids: Ids<'_>) -> Result<ColumnPlan, ColumnarError> {
    let Some(wanted) = target_id(field) else {
        return Err(ColumnarError::Usage {
            detail: format!("column `{}` of the target has no field id", field.name()),
        });
    };
    let mut found = None;
    let mut first_leaf = 0;
    for node in root.get_fields() {
        let (id, inner) = ids.of(node, node.name());
        if id == Some(wanted) {
            if found.is_some() {
                return Err(twice(file, field.name(), wanted));
            }
            found = Some((node, first_leaf, inner));
        }
        first_leaf += leaf_count(node);
    }
    let Some((node, first_leaf, inner)) = found else {
        return match field.is_nullable() {
            true => Ok(ColumnPlan::Missing(field.data_type().clone())),
            false => Err(ColumnarError::MissingRequired { file: file.to_owned(), column: field.name().clone() }),
        };
    };
    let mut pruner = Pruner::new(file);
    let (pruned, shape) = pruner.prune(field, node, first_leaf, inner, field.name())?;
    let (levels, from) = read_schema(file, field.name(), pruned)?;
    let adapt = Adapt::plan(file, field.name(), &from, field, &shape)?;
    Ok(ColumnPlan::Read(Arc::new(ReadPlan { path: field.name().clone(), leaves: pruner.leaves, levels, adapt })))
}

/// Reads the top-level primitive column of exactly this name, as the type it has in the file.
pub(crate) fn resolve_by_name(file: &str, metadata: &ParquetMetaData, name: &str) -> Result<ReadPlan, ColumnarError> {
    let root = metadata.file_metadata().schema();
    let mut first_leaf = 0;
    for node in root.get_fields() {
        if node.name() == name && node.is_primitive() {
            let (levels, from) = read_schema(file, name, Arc::clone(node))?;
            let adapt = Adapt::keep(name, &from);
            return Ok(ReadPlan { path: name.to_owned(), leaves: vec![first_leaf], levels, adapt });
        }
        first_leaf += leaf_count(node);
    }
    Err(ColumnarError::MissingRequired { file: file.to_owned(), column: name.to_owned() })
}

/// The reader's view of one column, and the Arrow field that it gives.
fn read_schema(file: &str, column: &str, node: TypePtr) -> Result<(FieldLevels, Field), ColumnarError> {
    let build = || {
        let root = Type::group_type_builder("schema").with_fields(vec![node]).build()?;
        let descriptor = SchemaDescriptor::new(Arc::new(root));
        let schema = parquet_to_arrow_schema(&descriptor, None)?;
        let levels = parquet_to_arrow_field_levels(&descriptor, ProjectionMask::all(), None)?;
        Ok::<_, parquet::errors::ParquetError>((levels, schema.field(0).clone()))
    };
    let unsupported =
        |detail: String| ColumnarError::Unsupported { file: file.to_owned(), column: Some(column.to_owned()), detail };
    contain(build).map_err(unsupported)?.map_err(|error| unsupported(error.to_string()))
}

pub(crate) fn leaf_count(node: &Type) -> usize {
    if node.is_primitive() { 1 } else { node.get_fields().iter().map(|child| leaf_count(child)).sum() }
}

fn twice(file: &str, column: &str, id: i32) -> ColumnarError {
    ColumnarError::Unsupported {
        file: file.to_owned(),
        column: Some(column.to_owned()),
        detail: format!("two columns of the file have its field id {id}"),
    }
}

fn text_of(node: &Type) -> String {
    let build = || {
        let root = Type::group_type_builder("schema").with_fields(vec![Arc::new(node.clone())]).build().ok()?;
        let schema = parquet_to_arrow_schema(&SchemaDescriptor::new(Arc::new(root)), None).ok()?;
        Some(schema.field(0).data_type().to_string())
    };
    match contain(build) {
        Ok(Some(text)) => text,
        _ if node.is_group() => "a group".to_owned(),
        _ => node.get_physical_type().to_string(),
    }
}
