//! A data file that Firn wrote, turned into a manifest entry's data file.

use std::collections::HashMap;

use iceberg::spec::{DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Schema, Struct};

/// A Parquet file that was uploaded and waits for its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDataFile {
    /// Full path, as the table will name it.
    pub path: String,
    /// Size in bytes; checked against the store before every try.
    pub size: u64,
    /// Record count.
    pub rows: u64,
    /// Metrics of its columns.
    pub metrics: NewFileMetrics,
    /// The table sort order that the whole file was verified to be in.
    pub sort_order_id: Option<i32>,
}

/// Column metrics of a new file by field id (Iceberg spec, "Data file fields"). Maps may lack columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewFileMetrics {
    /// Bytes on disk.
    pub column_sizes: HashMap<i32, u64>,
    /// Values, nulls and NaNs included.
    pub value_counts: HashMap<i32, u64>,
    /// Nulls.
    pub null_counts: HashMap<i32, u64>,
    /// NaNs.
    pub nan_counts: HashMap<i32, u64>,
    /// Lower bounds in Iceberg's single-value binary form, in the column's current type.
    pub lower_bounds: HashMap<i32, Vec<u8>>,
    /// Upper bounds in Iceberg's single-value binary form, in the column's current type.
    pub upper_bounds: HashMap<i32, Vec<u8>>,
    /// Offsets of the row groups, ascending.
    pub split_offsets: Vec<i64>,
}

impl NewDataFile {
    /// The Iceberg data file of partition `tuple` under spec `spec_id`.
    ///
    /// # Errors
    /// A sentence that names file, column and what is wrong: a metric of a column that `schema` lacks, or a bound that is no
    /// value of its column's type. A wrong bound would hide rows from readers, so it is never dropped silently.
    pub(crate) fn data_file(&self, schema: &Schema, spec_id: i32, tuple: &Struct) -> Result<DataFile, String> {
        let metrics = &self.metrics;
        let mut builder = DataFileBuilder::default();
        builder
            .content(DataContentType::Data)
            .file_path(self.path.clone())
            .file_format(DataFileFormat::Parquet)
            .partition(tuple.clone())
            .partition_spec_id(spec_id)
            .record_count(self.rows)
            .file_size_in_bytes(self.size)
            .column_sizes(metrics.column_sizes.clone())
            .value_counts(metrics.value_counts.clone())
            .null_value_counts(metrics.null_counts.clone())
            .nan_value_counts(metrics.nan_counts.clone())
            .lower_bounds(self.bounds(schema, &metrics.lower_bounds)?)
            .upper_bounds(self.bounds(schema, &metrics.upper_bounds)?)
            .split_offsets((!metrics.split_offsets.is_empty()).then(|| metrics.split_offsets.clone()));
        if let Some(order) = self.sort_order_id {
            builder.sort_order_id(order);
        }
        builder.build().map_err(|error| format!("output `{}`: {error}", self.path))
    }

    fn bounds(&self, schema: &Schema, bounds: &HashMap<i32, Vec<u8>>) -> Result<HashMap<i32, Datum>, String> {
        bounds
            .iter()
            .map(|(id, bytes)| {
                let field = schema
                    .field_by_id(*id)
                    .ok_or_else(|| format!("output `{}`: bound of field {id}, which the schema lacks", self.path))?;
                let kind = field.field_type.as_primitive_type().ok_or_else(|| {
                    format!("output `{}`: bound of column `{}`, which is nested", self.path, field.name)
                })?;
                let datum = Datum::try_from_bytes(bytes, kind.clone()).map_err(|error| {
                    format!("output `{}`: bound {bytes:?} of column `{}` is no {kind}: {error}", self.path, field.name)
                })?;
                if datum.is_nan() {
                    return Err(format!("output `{}`: bound of column `{}` is NaN", self.path, field.name));
                }
                Ok((*id, datum))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{NestedField, PrimitiveType, Type};

    use super::*;

    fn schema() -> Schema {
        let field = |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
        Schema::builder()
            .with_fields(vec![
                field(1, "a", PrimitiveType::Long),
                field(2, "d", PrimitiveType::Decimal { precision: 9, scale: 2 }),
                field(3, "f", PrimitiveType::Double),
            ])
            .build()
            .unwrap()
    }

    fn file(lower: Vec<(i32, Vec<u8>)>) -> NewDataFile {
        NewDataFile {
            path: "file:///w/t/data/h-u.parquet".into(),
            size: 10,
            rows: 3,
            metrics: NewFileMetrics { lower_bounds: lower.into_iter().collect(), ..NewFileMetrics::default() },
            sort_order_id: Some(7),
        }
    }

    #[test]
    fn bounds_are_values_of_the_current_type() {
        let made = file(vec![(1, 5_i64.to_le_bytes().to_vec()), (2, vec![0xFF, 0x38])])
            .data_file(&schema(), 3, &Struct::empty())
            .unwrap();
        assert_eq!(made.lower_bounds()[&1], Datum::long(5));
        assert_eq!(made.lower_bounds()[&2].to_bytes().unwrap().as_slice(), &[0xFF, 0x38]);
        assert_eq!(made.sort_order_id(), Some(7));
        assert_eq!(made.split_offsets(), None);
        assert_eq!((made.record_count(), made.file_size_in_bytes()), (3, 10));
    }

    #[test]
    fn a_bound_that_would_hide_rows_is_refused() {
        let refused = |bounds| file(bounds).data_file(&schema(), 3, &Struct::empty()).unwrap_err();
        assert!(refused(vec![(9, vec![0])]).contains("field 9"));
        assert!(refused(vec![(1, vec![0, 1, 2])]).contains("column `a` is no long"));
        assert!(refused(vec![(3, f64::NAN.to_le_bytes().to_vec())]).contains("column `f` is NaN"));
    }
}
