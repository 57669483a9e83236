//! Hashing columns into the states of their rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::mix::{LIST_START, STRUCT_START, field_value, fold, mix, of_bytes, of_f64, of_i64, of_i128, seed};
use crate::ColumnarError;
use crate::fields::{child_path, field_id, map_fields, same_shape};

/// The row hash over the columns of a target schema. Shared by threads: it holds no state of any row.
#[derive(Debug, Clone)]
pub struct RowHasher {
    columns: Vec<ColumnHasher>,
}

impl RowHasher {
    /// A hasher for rows of `schema`.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when a field (nested ones too) has no field id, [`ColumnarError::Unsupported`] when its type is
    /// none that an Iceberg table of format version 1 or 2 can have.
    pub fn new(schema: &Schema) -> Result<Self, ColumnarError> {
        let columns = schema.fields().iter().map(|field| ColumnHasher::new(field)).collect::<Result<_, _>>()?;
        Ok(Self { columns })
    }

    /// The hasher of one column, by its position in the schema.
    pub fn column(&self, column: usize) -> Option<&ColumnHasher> {
        self.columns.get(column)
    }

    /// Adds a column's values to the states of their rows: row `n` of `array` belongs to `states[n]`. The states of new rows
    /// are 0; they are complete when every column has been added once, in any order.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when there is no such column, or type or length do not fit.
    pub fn add_column(&self, column: usize, array: &dyn Array, states: &mut [u64]) -> Result<(), ColumnarError> {
        let hasher = self.columns.get(column).ok_or_else(|| ColumnarError::Usage {
            detail: format!("column {column} of {} was to be hashed", self.columns.len()),
        })?;
        hasher.add(array, states)
    }
}

/// The row hash's part of one field.
#[derive(Debug, Clone)]
pub struct ColumnHasher {
    path: String,
    data_type: DataType,
    seed: u64,
    /// Children of a struct, element of a list, key and value of a map.
    children: Vec<ColumnHasher>,
}

impl ColumnHasher {
    /// A hasher for values of `field`, by its field id and its type (the target schema's).
    ///
    /// # Errors
    /// As [`RowHasher::new`].
    pub fn new(field: &Field) -> Result<Self, ColumnarError> {
        Self::with_path(field, field.name().clone())
    }

    fn with_path(field: &Field, path: String) -> Result<Self, ColumnarError> {
        let id = field_id(field)
            .ok_or_else(|| ColumnarError::Usage { detail: format!("column `{path}` has no field id to hash it by") })?;
        let child = |field: &Field| Self::with_path(field, child_path(&path, field.name()));
        let children = match field.data_type() {
            DataType::Struct(fields) => fields.iter().map(|field| child(field)).collect::<Result<_, _>>()?,
            DataType::List(element) | DataType::LargeList(element) => vec![child(element)?],
            DataType::Map(entries, _) => {
                let (key, value) = map_fields(&path, entries)?;
                vec![child(key)?, child(value)?]
            }
            DataType::Boolean
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(..)
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Vec::new(),
            other => {
                return Err(ColumnarError::Unsupported {
                    file: "target schema".into(),
                    detail: format!("type {other} has no row hash"),
                    column: Some(path),
                });
            }
        };
        Ok(Self { seed: seed(id), data_type: field.data_type().clone(), path, children })
    }

    /// f of one integer, date, time or timestamp of this field.
    #[inline]
    pub(crate) fn of_integer(&self, value: i64) -> u64 {
        field_value(self.seed, of_i64(value))
    }

    /// f of one float of this field.
    #[inline]
    pub(crate) fn of_float(&self, value: f64) -> u64 {
        field_value(self.seed, of_f64(value))
    }

    /// f of one text or byte string of this field.
    pub(crate) fn of_bytes(&self, value: &[u8]) -> u64 {
        field_value(self.seed, of_bytes(value))
    }

    /// Adds the values to the states of their rows; see [`RowHasher::add_column`].
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when type or length do not fit.
    pub fn add(&self, array: &dyn Array, states: &mut [u64]) -> Result<(), ColumnarError> {
        if array.len() != states.len() || !same_shape(&self.data_type, array.data_type()) {
            return Err(ColumnarError::Usage {
                detail: format!(
                    "column `{}` of type {} was to be hashed into {} rows, but has {} rows of type {}",
                    self.path,
                    self.data_type,
                    states.len(),
                    array.len(),
                    array.data_type()
                ),
            });
        }
        self.add_checked(array, states);
        Ok(())
    }

    /// As [`add`](Self::add), for an array whose type and length are known to fit.
    fn add_checked(&self, array: &dyn Array, states: &mut [u64]) {
        match array.data_type() {
            DataType::Boolean => {
                let array = array.as_boolean();
                let contents = array.values().iter().map(|value| of_i64(i64::from(value)));
                self.add_contents(contents, array.nulls(), states);
            }
            DataType::Int32 => self.add_primitive::<Int32Type>(array, states, |value| of_i64(value.into())),
            DataType::Int64 => self.add_primitive::<Int64Type>(array, states, of_i64),
            DataType::Float32 => self.add_primitive::<Float32Type>(array, states, |value| of_f64(value.into())),
            DataType::Float64 => self.add_primitive::<Float64Type>(array, states, of_f64),
            DataType::Decimal128(..) => self.add_primitive::<Decimal128Type>(array, states, of_i128),
            DataType::Date32 => self.add_primitive::<Date32Type>(array, states, |value| of_i64(value.into())),
            DataType::Time64(_) => self.add_primitive::<Time64MicrosecondType>(array, states, of_i64),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                self.add_primitive::<TimestampNanosecondType>(array, states, of_i64);
            }
            DataType::Timestamp(..) => self.add_primitive::<TimestampMicrosecondType>(array, states, of_i64),
            DataType::Utf8 => {
                self.add_bytes(array.as_string::<i32>().iter().map(|text| text.map(str::as_bytes)), states)
            }
            DataType::LargeUtf8 => {
                self.add_bytes(array.as_string::<i64>().iter().map(|text| text.map(str::as_bytes)), states);
            }
            DataType::Utf8View => {
                self.add_bytes(array.as_string_view().iter().map(|text| text.map(str::as_bytes)), states);
            }
            DataType::Binary => self.add_bytes(array.as_binary::<i32>().iter(), states),
            DataType::LargeBinary => self.add_bytes(array.as_binary::<i64>().iter(), states),
            DataType::BinaryView => self.add_bytes(array.as_binary_view().iter(), states),
            DataType::FixedSizeBinary(_) => self.add_bytes(array.as_fixed_size_binary().iter(), states),
            DataType::Struct(_) => self.add_struct(array, states),
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                self.add_list(list.offsets(), &[list.values().as_ref()], list.nulls(), states);
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                self.add_list(list.offsets(), &[list.values().as_ref()], list.nulls(), states);
            }
            DataType::Map(..) => {
                let map = array.as_map();
                self.add_list(map.offsets(), &[map.keys().as_ref(), map.values().as_ref()], map.nulls(), states);
            }
            // `new` accepts no other type, and `add` compared this one with it.
            _ => {}
        }
    }

    fn add_primitive<T: ArrowPrimitiveType>(
        &self,
        array: &dyn Array,
        states: &mut [u64],
        content: impl Fn(T::Native) -> u64,
    ) {
        let array: &PrimitiveArray<T> = array.as_primitive();
        self.add_contents(array.values().iter().map(|value| content(*value)), array.nulls(), states);
    }

    /// Adds f of each content whose slot is valid. A null adds nothing.
    fn add_contents(&self, contents: impl Iterator<Item = u64>, nulls: Option<&NullBuffer>, states: &mut [u64]) {
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            None => {
                for (state, content) in states.iter_mut().zip(contents) {
                    *state = state.wrapping_add(field_value(self.seed, content));
                }
            }
            Some(nulls) => {
                for ((state, content), valid) in states.iter_mut().zip(contents).zip(nulls.iter()) {
                    // A mask instead of a branch: nulls come in no order that a processor could guess.
                    let mask = u64::from(valid).wrapping_neg();
                    *state = state.wrapping_add(field_value(self.seed, content) & mask);
                }
            }
        }
    }

    fn add_bytes<'a>(&self, values: impl Iterator<Item = Option<&'a [u8]>>, states: &mut [u64]) {
        for (state, value) in states.iter_mut().zip(values) {
            if let Some(value) = value {
                *state = state.wrapping_add(field_value(self.seed, of_bytes(value)));
            }
        }
    }

    /// A struct stands for the sum over its children by their ids, so their order does not matter.
    fn add_struct(&self, array: &dyn Array, states: &mut [u64]) {
        let array = array.as_struct();
        let mut sums = vec![STRUCT_START; array.len()];
        for (child, column) in self.children.iter().zip(array.columns()) {
            child.add_checked(column.as_ref(), &mut sums);
        }
        self.add_contents(sums.into_iter().map(mix), array.nulls(), states);
    }

    /// A list stands for the fold over its elements in order, a map for that over its entries as stored; an entry is the sum
    /// of its key and its value.
    fn add_list<O: ArrowNativeType>(
        &self,
        offsets: &[O],
        columns: &[&dyn Array],
        nulls: Option<&NullBuffer>,
        states: &mut [u64],
    ) {
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return };
        // A slice of a list keeps all its elements: only those between its offsets are its own.
        let first = first.as_usize();
        let mut elements = vec![0; last.as_usize() - first];
        for (child, column) in self.children.iter().zip(columns) {
            child.add_checked(column.slice(first, elements.len()).as_ref(), &mut elements);
        }
        let contents = offsets.windows(2).map(|pair| {
            elements[pair[0].as_usize() - first..pair[1].as_usize() - first]
                .iter()
                .fold(LIST_START, |state, element| fold(state, *element))
        });
        self.add_contents(contents, nulls, states);
    }
}
