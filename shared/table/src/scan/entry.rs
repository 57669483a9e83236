//! Entries of a manifest, decoded one at a time.
//!
//! The iceberg crate can only load a manifest as a whole, with every metric of every column of every file, and it resolves
//! the partition type against the schema in the manifest, which fails when that schema no longer has the source column. Here
//! an entry is one Avro value, looked at and dropped, and the partition is resolved by field id. A parity test holds the two
//! readers together.

use apache_avro::types::Value;
use apache_avro::{Reader, Schema};
use firn_model::Scalar;
use iceberg::spec::{ManifestFile, PrimitiveType};

use crate::avro::readable;
use crate::key_bytes::scalar_from_bytes;
use crate::partition_type::SpecTypes;

/// What a file of a manifest entry holds (Iceberg spec, field 134).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Data,
    PositionDeletes,
    EqualityDeletes,
}

/// A live entry. Metrics are looked up in the decoded value when asked for.
pub(crate) struct Entry {
    pub(crate) snapshot_id: Option<i64>,
    pub(crate) sequence_number: i64,
    pub(crate) content: Content,
    pub(crate) partition: Vec<Option<Scalar>>,
    file: Record,
}

impl Entry {
    /// Path exactly as it stands.
    pub(crate) fn path(&self) -> Result<&str, String> {
        self.file.text("file_path")?.ok_or_else(|| "an entry has no file_path".to_owned())
    }

    pub(crate) fn format(&self) -> Result<String, String> {
        let format = self.file.text("file_format")?.ok_or("an entry has no file_format")?;
        Ok(format.to_ascii_lowercase())
    }

    pub(crate) fn rows(&self) -> Result<u64, String> {
        self.count("record_count")
    }

    pub(crate) fn size(&self) -> Result<u64, String> {
        self.count("file_size_in_bytes")
    }

    pub(crate) fn sort_order_id(&self) -> Result<Option<i32>, String> {
        Ok(self.file.long("sort_order_id")?.and_then(|id| i32::try_from(id).ok()))
    }

    pub(crate) fn referenced_data_file(&self) -> Result<Option<&str>, String> {
        self.file.text("referenced_data_file")
    }

    pub(crate) fn content_offset(&self) -> Result<Option<i64>, String> {
        self.file.long("content_offset")
    }

    /// Field ids of an equality delete file's key; empty for any other file.
    pub(crate) fn equality_ids(&self) -> Result<Vec<i32>, String> {
        let Some(value) = self.file.get("equality_ids") else { return Ok(Vec::new()) };
        let Value::Array(ids) = value else { return Err(format!("equality_ids is {value:?}")) };
        let id = |id: &Value| integer(id).and_then(|id| i32::try_from(id).ok());
        ids.iter().map(id).collect::<Option<_>>().ok_or_else(|| format!("equality_ids is {value:?}"))
    }

    /// Nulls of a column; None when not known.
    pub(crate) fn null_count(&self, field_id: i32) -> Option<i64> {
        integer(self.file.metric("null_value_counts", field_id)?)
    }

    /// NaNs of a column; None when not known.
    pub(crate) fn nan_count(&self, field_id: i32) -> Option<i64> {
        integer(self.file.metric("nan_value_counts", field_id)?)
    }

    /// Lower and upper bound of a column in Iceberg's binary form; None unless both are known.
    pub(crate) fn bounds(&self, field_id: i32) -> Option<(&[u8], &[u8])> {
        match (self.file.metric("lower_bounds", field_id)?, self.file.metric("upper_bounds", field_id)?) {
            (Value::Bytes(lower), Value::Bytes(upper)) => Some((lower, upper)),
            _ => None,
        }
    }

    fn count(&self, name: &str) -> Result<u64, String> {
        let value = self.file.long(name)?.ok_or_else(|| format!("an entry has no {name}"))?;
        u64::try_from(value).map_err(|_| format!("{name} is {value}"))
    }
}

/// Decodes a manifest and hands its live entries to `each`, one at a time. Numbers that an entry leaves out are inherited
/// from the manifest (Iceberg spec, "Sequence Number Inheritance").
///
/// # Errors
/// A sentence on what cannot be understood, or the first error of `each`.
pub(crate) fn live_entries(
    bytes: &[u8],
    spec: &SpecTypes,
    manifest: &ManifestFile,
    mut each: impl FnMut(Entry) -> Result<(), String>,
) -> Result<(), String> {
    let avro = |error: apache_avro::Error| format!("is no readable Avro file: {error}");
    let reader = Reader::new(readable(bytes)?).map_err(avro)?;
    let columns = partition_columns(reader.writer_schema(), spec)?;
    for value in reader {
        let entry = Record::of(value.map_err(avro)?)?;
        if let Some(entry) = live_entry(entry, &columns, spec, manifest)? {
            each(entry)?;
        }
    }
    Ok(())
}

pub(super) const STATUS_EXISTING: i64 = 0;
pub(super) const STATUS_ADDED: i64 = 1;
pub(super) const STATUS_DELETED: i64 = 2;

fn live_entry(
    mut entry: Record,
    columns: &[Option<usize>],
    spec: &SpecTypes,
    manifest: &ManifestFile,
) -> Result<Option<Entry>, String> {
    let status = entry.long("status")?;
    let added = match status {
        Some(STATUS_DELETED) => return Ok(None),
        Some(STATUS_ADDED) => true,
        Some(STATUS_EXISTING) => false,
        other => return Err(format!("an entry has status {other:?}")),
    };
    let sequence_number = match entry.long("sequence_number")? {
        Some(number) => number,
        // Also every entry of a manifest that was written by format version 1, whose number is 0.
        None if added || manifest.sequence_number == 0 => manifest.sequence_number,
        None => return Err("an existing entry has no sequence number".to_owned()),
    };
    let snapshot_id = entry.long("snapshot_id")?.or(Some(manifest.added_snapshot_id));
    let mut file = Record::of(entry.take("data_file").ok_or("an entry has no data_file")?)?;
    let content = match file.long("content")? {
        None | Some(0) => Content::Data,
        Some(1) => Content::PositionDeletes,
        Some(2) => Content::EqualityDeletes,
        Some(other) => return Err(format!("an entry has content {other}")),
    };
    let partition = match file.take("partition") {
        Some(value) => partition(Record::of(value)?, columns, spec)?,
        None if columns.iter().all(Option::is_none) => vec![None; columns.len()],
        None => return Err("an entry has no partition".to_owned()),
    };
    Ok(Some(Entry { snapshot_id, sequence_number, content, partition, file }))
}

/// Where each field of the spec stands in the partition record of this manifest, by field id. Void fields need not be there.
fn partition_columns(schema: &Schema, spec: &SpecTypes) -> Result<Vec<Option<usize>>, String> {
    let partition = member(schema, "data_file").and_then(|file| member(file, "partition"));
    let written: &[apache_avro::schema::RecordField] = match partition {
        Some(Schema::Record(record)) => &record.fields,
        _ => &[],
    };
    let mut columns = Vec::new();
    for field in &spec.fields {
        let by_id = written.iter().position(|column| {
            column.custom_attributes.get("field-id").and_then(serde_json::Value::as_i64) == Some(i64::from(field.id))
        });
        if by_id.is_none() && !field.is_void() {
            return Err(format!("its partition has no field {} (`{}` of spec {})", field.id, field.name, spec.spec_id));
        }
        columns.push(by_id.filter(|_| !field.is_void()));
    }
    Ok(columns)
}

fn member<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    match schema {
        Schema::Record(record) => record.fields.iter().find(|field| field.name == name).map(|field| &field.schema),
        _ => None,
    }
}

fn partition(record: Record, columns: &[Option<usize>], spec: &SpecTypes) -> Result<Vec<Option<Scalar>>, String> {
    let mut values = Vec::with_capacity(columns.len());
    for (column, field) in columns.iter().zip(&spec.fields) {
        let value = column.and_then(|column| record.0.get(column)).map(|(_, value)| unwrapped(value));
        values.push(match (value, &field.result_type) {
            (None | Some(Value::Null), _) | (_, None) => None,
            (Some(value), Some(primitive)) => Some(scalar(value, primitive).ok_or_else(|| {
                format!("partition field `{}` has value {value:?}, which is no {primitive}", field.name)
            })?),
        });
    }
    Ok(values)
}

/// An Avro value as a value of an Iceberg type (spec, Appendix A). Values written before a promotion become the current type.
fn scalar(value: &Value, primitive: &PrimitiveType) -> Option<Scalar> {
    let bytes = |bytes: &[u8]| scalar_from_bytes(bytes, primitive);
    Some(match (primitive, value) {
        (PrimitiveType::Boolean, Value::Boolean(v)) => Scalar::Bool(*v),
        (PrimitiveType::Int, value) => Scalar::Int(i32::try_from(integer(value)?).ok()?),
        (PrimitiveType::Date, value) => Scalar::Date(i32::try_from(integer(value)?).ok()?),
        (PrimitiveType::Long, value) => Scalar::Long(integer(value)?),
        (PrimitiveType::Time, value) => Scalar::Time(integer(value)?),
        (PrimitiveType::Timestamp, value) => Scalar::Timestamp(integer(value)?),
        (PrimitiveType::Timestamptz, value) => Scalar::Timestamptz(integer(value)?),
        (PrimitiveType::TimestampNs, value) => Scalar::TimestampNs(integer(value)?),
        (PrimitiveType::TimestamptzNs, value) => Scalar::TimestamptzNs(integer(value)?),
        (PrimitiveType::Float, Value::Float(v)) => Scalar::Float(*v),
        (PrimitiveType::Double, Value::Double(v)) => Scalar::Double(*v),
        (PrimitiveType::Double, Value::Float(v)) => Scalar::Double(f64::from(*v)),
        (PrimitiveType::String, Value::String(v)) => Scalar::String(v.clone()),
        (PrimitiveType::Decimal { .. }, Value::Decimal(v)) => bytes(&Vec::<u8>::try_from(v.clone()).ok()?)?,
        (_, Value::Bytes(v) | Value::Fixed(_, v)) => bytes(v)?,
        _ => return None,
    })
}

/// The number behind any of Avro's integer-like values.
fn integer(value: &Value) -> Option<i64> {
    match unwrapped(value) {
        Value::Int(v) | Value::Date(v) | Value::TimeMillis(v) => Some(i64::from(*v)),
        Value::Long(v)
        | Value::TimeMicros(v)
        | Value::TimestampMicros(v)
        | Value::TimestampNanos(v)
        | Value::LocalTimestampMicros(v)
        | Value::LocalTimestampNanos(v) => Some(*v),
        _ => None,
    }
}

fn unwrapped(value: &Value) -> &Value {
    match value {
        Value::Union(_, inner) => unwrapped(inner),
        other => other,
    }
}

/// The fields of an Avro record, by name.
pub(super) struct Record(Vec<(String, Value)>);

impl Record {
    pub(super) fn of(value: Value) -> Result<Self, String> {
        match value {
            Value::Record(fields) => Ok(Self(fields)),
            Value::Union(_, inner) => Self::of(*inner),
            other => Err(format!("holds {other:?} where a record belongs")),
        }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let (_, value) = self.0.iter_mut().find(|(field, _)| field == name)?;
        Some(std::mem::replace(value, Value::Null))
    }

    /// The value of a field; None when it is null or not there.
    fn get(&self, name: &str) -> Option<&Value> {
        let (_, value) = self.0.iter().find(|(field, _)| field == name)?;
        Some(unwrapped(value)).filter(|value| !matches!(value, Value::Null))
    }

    pub(super) fn long(&self, name: &str) -> Result<Option<i64>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => integer(value).map(Some).ok_or_else(|| format!("{name} is {value:?}")),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(value) => Err(format!("{name} is {value:?}")),
        }
    }

    /// The value for a field id in one of the metrics maps, which Avro holds as arrays of key and value.
    fn metric(&self, name: &str, field_id: i32) -> Option<&Value> {
        let Value::Array(entries) = self.get(name)? else { return None };
        entries.iter().find_map(|entry| match unwrapped(entry) {
            Value::Record(fields) => match fields.as_slice() {
                [(_, key), (_, value)] if integer(key) == Some(i64::from(field_id)) => Some(unwrapped(value)),
                _ => None,
            },
            _ => None,
        })
    }
}
