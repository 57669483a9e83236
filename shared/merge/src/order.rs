//! The one place of the total order of rows.
//!
//! Keys are encoded with arrow's row format, in which byte order is row order: directions and null orders are part of the bytes,
//! floats follow -NaN < -Inf < … < -0.0 < 0.0 < … < NaN, nulls are equal to each other. All NaN of one sign are made one value
//! first, as in Iceberg (and Java), where NaN have no payload. The comparer, the sortedness check, the galloping search, the
//! argsort of an unsorted file and the key ranges in footers all use these bytes and nothing else.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, downcast_dictionary_array};
use arrow_row::{Row, RowConverter, Rows, SortField};
use arrow_schema::{DataType, FieldRef, SortOptions, TimeUnit};
use arrow_select::take::take;
use firn_model::{OrderColumn, RowOrder};

use crate::fault::KeyError;
use crate::ties::Ties;

/// Version of the byte encoding of composite keys. It changes when the bytes of any value change, so that key ranges
/// stored in footers are never compared across encodings; a test pins the bytes.
pub const KEY_ENCODING: u32 = 1;

/// A row order bound to the types of its columns: encodes key columns for comparing.
#[derive(Debug)]
pub struct KeyOrder {
    columns: Vec<(OrderColumn, DataType)>,
    /// The dedup key, or every column without dedup.
    key: RowConverter,
    key_columns: usize,
    /// The columns after the dedup key (insertion time), in row order.
    tail: Option<RowConverter>,
    /// The same columns by age: ascending, nulls oldest. None where that is what `tail` does.
    age: Option<RowConverter>,
    dedup: bool,
}

impl KeyOrder {
    /// Binds `order` to its columns, given in the same sequence.
    ///
    /// # Errors
    /// A nested column, a wrong number of columns, or a dedup key that is empty or longer than the order.
    pub fn new(order: &RowOrder, fields: &[FieldRef]) -> Result<KeyOrder, KeyError> {
        if fields.len() != order.columns.len() {
            return Err(KeyError::ColumnCount { given: fields.len(), wanted: order.columns.len() });
        }
        let has = order.columns.len();
        if let Some(asked) = order.dedup_columns
            && (asked == 0 || asked > has)
        {
            return Err(KeyError::DedupColumns { asked, has });
        }
        let mut columns = Vec::with_capacity(has);
        for (column, field) in order.columns.iter().zip(fields) {
            let data_type = plain_type(field.data_type());
            if data_type.is_nested() || type_word(data_type).is_none() {
                return Err(KeyError::Unsortable { column: column.name.clone(), found: field.data_type().clone() });
            }
            columns.push((column.clone(), data_type.clone()));
        }
        let key_columns = order.dedup_columns.unwrap_or(has);
        let in_order = |(column, data_type): &(OrderColumn, DataType)| {
            let options = SortOptions { descending: column.descending, nulls_first: column.nulls_first };
            SortField::new_with_options(data_type.clone(), options)
        };
        let key = RowConverter::new(columns[..key_columns].iter().map(in_order).collect())?;
        let after = &columns[key_columns..];
        let tail = if after.is_empty() { None } else { Some(RowConverter::new(after.iter().map(in_order).collect())?) };
        let age = if after.iter().all(|(column, _)| !column.descending && column.nulls_first) {
            None
        } else {
            Some(RowConverter::new(after.iter().map(|(_, data_type)| SortField::new(data_type.clone())).collect())?)
        };
        Ok(KeyOrder { columns, key, key_columns, tail, age, dedup: order.dedup_columns.is_some() })
    }

    /// Whether one row is kept of those that are equal in the dedup key.
    pub fn dedup(&self) -> bool {
        self.dedup
    }

    /// What a stored key range must agree in before it may be compared: encoding, columns with direction, null order and
    /// type, and how many of them the key has. Field ids, not names.
    pub fn key_signature(&self) -> String {
        let columns: Vec<String> = self.columns[..self.key_columns]
            .iter()
            .map(|(column, data_type)| {
                format!(
                    "{} {} {} {}",
                    column.field_id,
                    if column.descending { "desc" } else { "asc" },
                    if column.nulls_first { "nulls-first" } else { "nulls-last" },
                    type_word(data_type).unwrap_or_default()
                )
            })
            .collect();
        format!("v{KEY_ENCODING}:{}", columns.join(","))
    }

    /// Encodes a batch of key columns, whose first row is `first_row` of its input.
    ///
    /// # Errors
    /// Columns of another type or number than the order has, of unequal length, or hidden columns with nulls.
    pub fn encode(&self, columns: &[ArrayRef], ties: Ties, first_row: u64) -> Result<KeyBatch, KeyError> {
        if columns.len() != self.columns.len() {
            return Err(KeyError::ColumnCount { given: columns.len(), wanted: self.columns.len() });
        }
        let rows = columns.first().map_or(0, |column| column.len());
        let mut plain = Vec::with_capacity(columns.len());
        for (column, (order, data_type)) in columns.iter().zip(&self.columns) {
            let column = plain_values(column)?;
            if column.data_type() != data_type {
                return Err(KeyError::TypeMismatch {
                    column: order.name.clone(),
                    found: column.data_type().clone(),
                    expected: data_type.clone(),
                });
            }
            if column.len() != rows {
                let detail = format!("column `{}` has {} rows, the first has {rows}", order.name, column.len());
                return Err(KeyError::Malformed { first_row, detail });
            }
            plain.push(column);
        }
        ties.check(first_row, rows)?;
        let (key, tail) = plain.split_at(self.key_columns);
        Ok(KeyBatch {
            first_row,
            rows,
            key: self.key.convert_columns(key)?,
            tail: self.tail.as_ref().map(|converter| converter.convert_columns(tail)).transpose()?,
            age: self.age.as_ref().map(|converter| converter.convert_columns(tail)).transpose()?,
            ties,
        })
    }
}

/// Encoded keys of neighbouring rows of one input.
#[derive(Debug)]
pub struct KeyBatch {
    first_row: u64,
    rows: usize,
    key: Rows,
    tail: Option<Rows>,
    age: Option<Rows>,
    ties: Ties,
}

impl KeyBatch {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Row number of the first row in its input.
    pub fn first_row(&self) -> u64 {
        self.first_row
    }

    /// The composite key of a row (with dedup: its dedup key) as bytes whose order is row order, for [`firn_model::KeyRange`].
    pub fn key_bytes(&self, row: usize) -> &[u8] {
        self.key.row(row).data()
    }

    /// The composite keys of all rows in turn; with dedup equal ones are one dedup key.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Row<'_>> {
        self.key.iter()
    }

    /// Bytes held.
    pub fn memory_size(&self) -> usize {
        let optional = |rows: &Option<Rows>| rows.as_ref().map_or(0, Rows::size);
        self.key.size() + optional(&self.tail) + optional(&self.age) + self.ties.memory_size()
    }
}

/// Compares two rows by the row order alone: equal means that only ties decide.
pub fn compare_keys(left: &KeyBatch, row: usize, right: &KeyBatch, at: usize) -> Ordering {
    let by_key = left.key.row(row).cmp(&right.key.row(at));
    by_key.then_with(|| match (&left.tail, &right.tail) {
        (Some(tail), Some(other)) => tail.row(row).cmp(&other.row(at)),
        _ => Ordering::Equal,
    })
}

/// The total order of the output: row order, then data sequence number, source, row position.
pub fn compare(left: &KeyBatch, row: usize, right: &KeyBatch, at: usize) -> Ordering {
    compare_keys(left, row, right, at)
        .then_with(|| left.ties.sequence(row).cmp(&right.ties.sequence(at)))
        .then_with(|| left.ties.compare_place(left.first_row, row, &right.ties, right.first_row, at))
}

/// Whether two rows are equal in the dedup key (without dedup: in every column of the order).
pub fn same_key(left: &KeyBatch, row: usize, right: &KeyBatch, at: usize) -> bool {
    left.key.row(row) == right.key.row(at)
}

/// Which of two rows of one dedup key is newer: data sequence number, then the columns after the dedup key (insertion time; null is
/// oldest, whatever the sort direction), then source, then row position.
pub fn compare_age(left: &KeyBatch, row: usize, right: &KeyBatch, at: usize) -> Ordering {
    let by_sequence = left.ties.sequence(row).cmp(&right.ties.sequence(at));
    by_sequence
        .then_with(|| {
            let ages = (left.age.as_ref().or(left.tail.as_ref()), right.age.as_ref().or(right.tail.as_ref()));
            match ages {
                (Some(age), Some(other)) => age.row(row).cmp(&other.row(at)),
                _ => Ordering::Equal,
            }
        })
        .then_with(|| left.ties.compare_place(left.first_row, row, &right.ties, right.first_row, at))
}

/// The first row of `batch` after `from` that comes after row `at` of `bound`, or the end of the batch; row `from` itself is known to
/// come before it. Exponential, then binary search: a long run costs the logarithm of its length, a run of one row two comparisons.
pub fn gallop(batch: &KeyBatch, from: usize, bound: &KeyBatch, at: usize) -> usize {
    let before = |row: usize| compare(batch, row, bound, at) != Ordering::Greater;
    let mut low = from + 1;
    let mut step = 1;
    let mut high = low;
    while high < batch.rows && before(high) {
        low = high + 1;
        high = low + step;
        step *= 2;
    }
    high = high.min(batch.rows);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The rows of one unsorted input in row order, counted from its start; rows of equal keys stay in their order. `batches` hold all
/// its rows, fewer than 2^32.
pub fn argsort(batches: &[KeyBatch]) -> Vec<u32> {
    let rows = batches.iter().map(KeyBatch::rows).sum();
    let mut places: Vec<(u32, u32)> = Vec::with_capacity(rows);
    for (batch, keys) in batches.iter().enumerate() {
        places.extend((0..keys.rows as u32).map(|row| (batch as u32, row)));
    }
    places.sort_unstable_by(|left, right| {
        let (batch, other) = (&batches[left.0 as usize], &batches[right.0 as usize]);
        compare_keys(batch, left.1 as usize, other, right.1 as usize).then_with(|| left.cmp(right))
    });
    places.into_iter().map(|(batch, row)| batches[batch as usize].first_row as u32 + row).collect()
}

/// The word of a type in [`KeyOrder::key_signature`]; types with one encoding share a word. None: Iceberg cannot sort by it.
fn type_word(data_type: &DataType) -> Option<String> {
    let word = match data_type {
        DataType::Boolean => "boolean",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::Float32 => "float32",
        DataType::Float64 => "float64",
        DataType::Date32 => "date",
        DataType::Time64(TimeUnit::Microsecond) => "time_us",
        DataType::Timestamp(TimeUnit::Microsecond, _) => "timestamp_us",
        DataType::Timestamp(TimeUnit::Nanosecond, _) => "timestamp_ns",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary",
        DataType::FixedSizeBinary(width) => return Some(format!("fixed{width}")),
        // The precision does not change the bytes, the scale changes their meaning.
        DataType::Decimal128(_, scale) => return Some(format!("decimal{scale}")),
        _ => return None,
    };
    Some(word.to_owned())
}

fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// Unpacks dictionaries (a null may hide in the values of one) and makes all NaN of one sign one value.
fn plain_values(column: &ArrayRef) -> Result<ArrayRef, KeyError> {
    let column = match column.data_type() {
        DataType::Dictionary(_, _) => {
            let column = column.as_ref();
            downcast_dictionary_array!(
                column => take(column.values(), column.keys(), None)?,
                other => return Err(KeyError::Malformed { first_row: 0, detail: format!("dictionary of type {other}") })
            )
        }
        _ => Arc::clone(column),
    };
    Ok(match column.data_type() {
        DataType::Float32 => {
            let values = column.as_primitive::<Float32Type>();
            if values.values().iter().any(|value| value.is_nan()) {
                Arc::new(values.unary::<_, Float32Type>(|value| {
                    if value.is_nan() { f32::from_bits(0x7fc0_0000).copysign(value) } else { value }
                }))
            } else {
                column
            }
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>();
            if values.values().iter().any(|value| value.is_nan()) {
                Arc::new(values.unary::<_, Float64Type>(|value| {
                    if value.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000).copysign(value) } else { value }
                }))
            } else {
                column
            }
        }
        _ => column,
    })
}
