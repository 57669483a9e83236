//! The Arrow form of a table's schema.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema as ArrowSchema};
use iceberg::spec::{PrimitiveType, Schema};

/// Metadata key of Arrow for the name of an extension type.
const EXTENSION_NAME: &str = "ARROW:extension:name";
/// Arrow's canonical name of UUIDs.
const UUID_EXTENSION: &str = "arrow.uuid";
/// Metadata key under which a field carries its field id.
const FIELD_ID: &str = "PARQUET:field_id";

/// The schema in Arrow types; each field, nested ones too, carries its id under `PARQUET:field_id`.
///
/// `uuid` and `fixed[16]` are one Arrow type, so UUIDs are marked as Arrow's canonical extension type: files must say
/// that they hold UUIDs (Iceberg spec, Appendix A "Parquet").
pub(crate) fn arrow_schema(schema: &Schema) -> Result<ArrowSchema, iceberg::Error> {
    let arrow = iceberg::arrow::schema_to_arrow_schema(schema)?;
    let fields: Vec<_> = arrow.fields().iter().map(|field| marked(field, schema)).collect();
    Ok(ArrowSchema::new_with_metadata(fields, arrow.metadata().clone()))
}

fn marked(field: &FieldRef, schema: &Schema) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(children) => DataType::Struct(children.iter().map(|child| marked(child, schema)).collect()),
        DataType::List(element) => DataType::List(marked(element, schema)),
        DataType::LargeList(element) => DataType::LargeList(marked(element, schema)),
        DataType::Map(entries, sorted) => DataType::Map(marked(entries, schema), *sorted),
        other => other.clone(),
    };
    let mut metadata = field.metadata().clone();
    if is_uuid(field, schema) {
        metadata.insert(EXTENSION_NAME.into(), UUID_EXTENSION.into());
    }
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
}

fn is_uuid(field: &Field, schema: &Schema) -> bool {
    let id = field.metadata().get(FIELD_ID).and_then(|id| id.parse().ok());
    let found = id.and_then(|id| schema.field_by_id(id));
    found.and_then(|found| found.field_type.as_primitive_type()) == Some(&PrimitiveType::Uuid)
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{ListType, NestedField, StructType, Type};

    use super::*;

    #[test]
    fn uuids_are_told_from_fixed_bytes_at_every_level() {
        let uuid = || Type::Primitive(PrimitiveType::Uuid);
        let fixed = Type::Primitive(PrimitiveType::Fixed(16));
        let list = Type::List(ListType::new(Arc::new(NestedField::list_element(4, uuid(), true))));
        let inner = StructType::new(vec![Arc::new(NestedField::optional(6, "u", uuid()))]);
        let schema = Schema::builder()
            .with_fields(vec![
                Arc::new(NestedField::optional(1, "u", uuid())),
                Arc::new(NestedField::optional(2, "f", fixed)),
                Arc::new(NestedField::optional(3, "l", list)),
                Arc::new(NestedField::optional(5, "s", Type::Struct(inner))),
            ])
            .build()
            .unwrap();
        let arrow = arrow_schema(&schema).unwrap();
        let is_marked = |field: &Field| field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == UUID_EXTENSION);
        assert!(is_marked(arrow.field(0)));
        assert!(!is_marked(arrow.field(1)));
        assert_eq!(arrow.field(0).data_type(), arrow.field(1).data_type());
        let DataType::List(element) = arrow.field(2).data_type() else { panic!("{:?}", arrow.field(2)) };
        assert!(is_marked(element) && !is_marked(arrow.field(2)));
        let DataType::Struct(children) = arrow.field(3).data_type() else { panic!("{:?}", arrow.field(3)) };
        assert!(is_marked(&children[0]));
        let ids: Vec<_> = arrow.fields().iter().map(|field| field.metadata()[FIELD_ID].as_str()).collect();
        assert_eq!(ids, ["1", "2", "3", "5"]);
    }
}
