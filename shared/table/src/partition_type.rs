//! What the fields of a table's partition specs are, each by its own field id.

use std::collections::HashMap;
use std::sync::Arc;

use firn_model::{PartitionKey, PartitionValue, Scalar, ScalarType};
use iceberg::spec::{PartitionSpec, PrimitiveType, Schema, TableMetadata, Transform, Type};

use crate::error::TableError;
use crate::ident::TableIdent;

/// One field of a partition spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// Partition field id: what the partition struct of a manifest is resolved by.
    pub id: i32,
    /// Name in the spec.
    pub name: String,
    /// Field id of the source column.
    pub source_id: i32,
    /// Name of the source column: the current one, or for a dropped column its last.
    pub source_name: Option<String>,
    /// Type of the source column (the current one, or for a dropped column its last).
    pub source_type: Option<PrimitiveType>,
    /// The transform.
    pub transform: Transform,
    /// Type of the partition values; None only for void fields, whose values are null whatever the type.
    pub result_type: Option<PrimitiveType>,
}

impl PartitionField {
    /// Whether this field is kept only for its place in the tuple.
    pub fn is_void(&self) -> bool {
        self.transform == Transform::Void
    }

    /// The model's word for the type of the partition values.
    pub fn scalar_type(&self) -> Option<ScalarType> {
        self.result_type.as_ref().map(scalar_type)
    }
}

/// A partition spec with its types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecTypes {
    /// Spec id.
    pub spec_id: i32,
    /// Fields in the order of the tuple.
    pub fields: Vec<PartitionField>,
}

impl SpecTypes {
    /// True when no field partitions anything (no fields, or void ones only).
    pub fn is_unpartitioned(&self) -> bool {
        self.fields.iter().all(PartitionField::is_void)
    }

    /// The partition of these values, one a field.
    pub fn key(&self, values: Vec<Option<Scalar>>) -> PartitionKey {
        if self.is_unpartitioned() {
            return PartitionKey::all_void(self.spec_id, self.fields.iter().map(|field| field.name.clone()));
        }
        let named = self.fields.iter().zip(values);
        let values = named.map(|(field, value)| PartitionValue { name: field.name.clone(), value });
        PartitionKey::new(self.spec_id, values.collect())
    }
}

/// The types of every partition spec of a table, by spec id.
///
/// A source column that was dropped is looked up in the table's older schemas, the latest first: its spec may still have
/// files.
///
/// # Errors
/// [`TableError::Damaged`] when a field's source column or transform is in no schema or not known to Firn.
pub fn spec_types(ident: &TableIdent, metadata: &TableMetadata) -> Result<HashMap<i32, Arc<SpecTypes>>, TableError> {
    let mut schemas: Vec<&Schema> = metadata.schemas_iter().map(AsRef::as_ref).collect();
    schemas.sort_by_key(|schema| (schema.schema_id() != metadata.current_schema_id(), -schema.schema_id()));
    let mut types = HashMap::new();
    for spec in metadata.partition_specs_iter() {
        let spec_types =
            types_of(spec, &schemas).map_err(|detail| TableError::Damaged { ident: ident.clone(), detail })?;
        types.insert(spec.spec_id(), Arc::new(spec_types));
    }
    Ok(types)
}

fn types_of(spec: &PartitionSpec, schemas: &[&Schema]) -> Result<SpecTypes, String> {
    let mut fields = Vec::new();
    for field in spec.fields() {
        let source = schemas.iter().find_map(|schema| schema.field_by_id(field.source_id));
        let source_name = schemas.iter().find_map(|schema| schema.name_by_field_id(field.source_id));
        let source_type = source.and_then(|source| source.field_type.as_primitive_type().cloned());
        let result_type = match (&field.transform, &source_type) {
            (Transform::Void, _) => source_type.clone(),
            (Transform::Unknown, _) => {
                return Err(format!(
                    "partition field `{}` of spec {} has an unknown transform",
                    field.name,
                    spec.spec_id()
                ));
            }
            (transform, Some(source_type)) => {
                let result = transform
                    .result_type(&Type::Primitive(source_type.clone()))
                    .map_err(|error| format!("partition field `{}` of spec {}: {error}", field.name, spec.spec_id()))?;
                result.as_primitive_type().cloned()
            }
            (_, None) => {
                return Err(format!(
                    "the source column {} of partition field `{}` (spec {}) is in no schema of the table",
                    field.source_id,
                    field.name,
                    spec.spec_id()
                ));
            }
        };
        fields.push(PartitionField {
            id: field.field_id,
            name: field.name.clone(),
            source_id: field.source_id,
            source_name: source_name.map(str::to_owned),
            source_type,
            transform: field.transform,
            result_type,
        });
    }
    Ok(SpecTypes { spec_id: spec.spec_id(), fields })
}

/// The model's word for an Iceberg primitive type.
pub fn scalar_type(primitive: &PrimitiveType) -> ScalarType {
    match primitive {
        PrimitiveType::Boolean => ScalarType::Bool,
        PrimitiveType::Int => ScalarType::Int,
        PrimitiveType::Long => ScalarType::Long,
        PrimitiveType::Float => ScalarType::Float,
        PrimitiveType::Double => ScalarType::Double,
        PrimitiveType::Decimal { scale, .. } => ScalarType::Decimal(*scale),
        PrimitiveType::Date => ScalarType::Date,
        PrimitiveType::Time => ScalarType::Time,
        PrimitiveType::Timestamp => ScalarType::Timestamp,
        PrimitiveType::Timestamptz => ScalarType::Timestamptz,
        PrimitiveType::TimestampNs => ScalarType::TimestampNs,
        PrimitiveType::TimestamptzNs => ScalarType::TimestamptzNs,
        PrimitiveType::String => ScalarType::String,
        PrimitiveType::Uuid => ScalarType::Uuid,
        PrimitiveType::Fixed(_) | PrimitiveType::Binary => ScalarType::Binary,
    }
}
