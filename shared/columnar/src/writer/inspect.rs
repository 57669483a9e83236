//! What is looked at in every batch before it is encoded: that it can be written as it is, and how many NaN it has.
//!
//! The encoder itself would write whatever lies below a null of a required column, and cut a decimal that is too long.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, Field};

use crate::ColumnarError;
use crate::fields::{child_path, same_shape};

/// Where a batch belongs: for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchPlace<'a> {
    pub(super) file: &'a str,
    /// Row of the file that the batch starts with.
    pub(super) first_row: u64,
}

/// Checks that `array` can be written as `field` without changing a value, and adds the NaN of each of its leaves to `nans`.
pub(super) fn inspect(
    place: BatchPlace<'_>,
    field: &Field,
    array: &ArrayRef,
    nans: &mut [u64],
) -> Result<(), ColumnarError> {
    if !same_shape(field.data_type(), array.data_type()) {
        return Err(ColumnarError::Usage {
            detail: format!(
                "column `{}` of `{}` has type {}, but a batch of type {} was to be written",
                field.name(),
                place.file,
                field.data_type(),
                array.data_type()
            ),
        });
    }
    let mut walk = Walk { place, nans: nans.iter_mut(), repeated: false };
    walk.visit(field, field.name(), array.as_ref(), None)
}

struct Walk<'a, 'n> {
    place: BatchPlace<'a>,
    nans: std::slice::IterMut<'n, u64>,
    repeated: bool,
}

impl Walk<'_, '_> {
    /// `parents` has the slots whose parents are not null; the others hold nothing that is written.
    fn visit(
        &mut self,
        field: &Field,
        path: &str,
        array: &dyn Array,
        parents: Option<&NullBuffer>,
    ) -> Result<(), ColumnarError> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        if !field.is_nullable()
            && let Some(nulls) = nulls
            && let Some(row) = (0..array.len()).find(|row| nulls.is_null(*row) && is_valid(parents, *row))
        {
            let row = if self.repeated { 0 } else { row as u64 };
            return Err(ColumnarError::NullInRequired {
                file: self.place.file.to_owned(),
                column: path.to_owned(),
                row: self.place.first_row + row,
            });
        }
        let valid = NullBuffer::union(parents, nulls);
        let valid = valid.as_ref();
        match array.data_type() {
            DataType::Struct(fields) => {
                for (child, column) in fields.iter().zip(array.as_struct().columns()) {
                    self.visit(child, &child_path(path, child.name()), column.as_ref(), valid)?;
                }
                Ok(())
            }
            DataType::List(element) => {
                let list = array.as_list::<i32>();
                self.visit_elements(&[(element, list.values())], path, list.offsets(), valid)
            }
            DataType::LargeList(element) => {
                let list = array.as_list::<i64>();
                self.visit_elements(&[(element, list.values())], path, list.offsets(), valid)
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let columns: Vec<_> = map.entries().fields().iter().zip(map.entries().columns()).collect();
                self.visit_elements(&columns, path, map.offsets(), valid)
            }
            _ => {
                let nans = match array.data_type() {
                    DataType::Float32 => count::<Float32Type>(array, valid, f32::is_nan),
                    DataType::Float64 => count::<Float64Type>(array, valid, f64::is_nan),
                    DataType::Decimal128(precision, _) => {
                        self.check_digits(*precision, path, array, valid)?;
                        0
                    }
                    _ => 0,
                };
                if let Some(sum) = self.nans.next() {
                    *sum += nans;
                }
                Ok(())
            }
        }
    }

    fn visit_elements<O: ArrowNativeType, F: AsRef<Field>>(
        &mut self,
        columns: &[(F, &ArrayRef)],
        path: &str,
        offsets: &[O],
        valid: Option<&NullBuffer>,
    ) -> Result<(), ColumnarError> {
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Ok(()) };
        let (first, last) = (first.as_usize(), last.as_usize());
        let valid_elements = valid.and_then(|valid| element_validity(offsets, valid));
        let outer = std::mem::replace(&mut self.repeated, true);
        for (field, column) in columns {
            let field = field.as_ref();
            let elements = column.slice(first, last - first);
            self.visit(field, &child_path(path, field.name()), elements.as_ref(), valid_elements.as_ref())?;
        }
        self.repeated = outer;
        Ok(())
    }

    fn check_digits(
        &self,
        precision: u8,
        path: &str,
        array: &dyn Array,
        valid: Option<&NullBuffer>,
    ) -> Result<(), ColumnarError> {
        let limit = 10_u128.checked_pow(precision.into()).unwrap_or(u128::MAX);
        let values = array.as_primitive::<Decimal128Type>().values();
        let mut too_long = values.iter().enumerate().filter(|(_, value)| value.unsigned_abs() >= limit);
        match too_long.find(|(row, _)| is_valid(valid, *row)) {
            None => Ok(()),
            Some((_, value)) => Err(ColumnarError::Inexact {
                file: self.place.file.to_owned(),
                column: path.to_owned(),
                row: self.place.first_row,
                value: format!("the unscaled decimal {value}"),
                to: array.data_type().to_string(),
            }),
        }
    }
}

fn is_valid(valid: Option<&NullBuffer>, row: usize) -> bool {
    valid.is_none_or(|valid| valid.is_valid(row))
}

/// The valid values for which `test` holds.
fn count<T: ArrowPrimitiveType>(
    array: &dyn Array,
    valid: Option<&NullBuffer>,
    test: impl Fn(T::Native) -> bool,
) -> u64 {
    let values = array.as_primitive::<T>().values();
    let everywhere = values.iter().filter(|value| test(**value)).count();
    let counted = match valid {
        // Below nulls there may be anything.
        Some(valid) if everywhere > 0 => {
            values.iter().zip(valid.iter()).filter(|(value, valid)| *valid && test(**value)).count()
        }
        _ => everywhere,
    };
    counted as u64
}

/// Which elements belong to lists that are not null; None when all do. A null list may cover elements.
fn element_validity<O: ArrowNativeType>(offsets: &[O], lists: &NullBuffer) -> Option<NullBuffer> {
    let lengths = || offsets.windows(2).map(|pair| pair[1].as_usize() - pair[0].as_usize());
    if lengths().zip(lists.iter()).all(|(length, valid)| valid || length == 0) {
        return None;
    }
    let mut builder = BooleanBufferBuilder::new(lengths().sum());
    for (length, valid) in lengths().zip(lists.iter()) {
        builder.append_n(length, valid);
    }
    Some(NullBuffer::new(builder.finish()))
}

/// Bytes of the values in `array` that have no fixed width, dictionaries not counted. Decides how finely a batch is cut for
/// the encoder, nothing else.
pub(super) fn variable_bytes(array: &dyn Array) -> usize {
    fn of_elements<O: ArrowNativeType>(offsets: &[O], values: &dyn Array) -> usize {
        match (offsets.first(), offsets.last()) {
            (Some(first), Some(last)) => {
                variable_bytes(values.slice(first.as_usize(), last.as_usize() - first.as_usize()).as_ref())
            }
            _ => 0,
        }
    }
    fn span<O: ArrowNativeType>(offsets: &[O]) -> usize {
        offsets.last().map_or(0, |last| last.as_usize()) - offsets.first().map_or(0, |first| first.as_usize())
    }
    match array.data_type() {
        DataType::Utf8 => span(array.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => span(array.as_string::<i64>().offsets()),
        DataType::Binary => span(array.as_binary::<i32>().offsets()),
        DataType::LargeBinary => span(array.as_binary::<i64>().offsets()),
        DataType::Utf8View => array.as_string_view().lengths().map(|length| length as usize).sum(),
        DataType::BinaryView => array.as_binary_view().lengths().map(|length| length as usize).sum(),
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| variable_bytes(column.as_ref())).sum(),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            of_elements(list.offsets(), list.values().as_ref()) + span(list.offsets()) * 8
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            of_elements(list.offsets(), list.values().as_ref()) + span(list.offsets()) * 8
        }
        DataType::Map(..) => {
            let map = array.as_map();
            of_elements(map.offsets(), map.entries()) + span(map.offsets()) * 8
        }
        DataType::FixedSizeBinary(width) => array.len() * usize::try_from(*width).unwrap_or_default(),
        _ => 0,
    }
}
