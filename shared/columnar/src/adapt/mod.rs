//! From what the reader gives to the table's type, at every level of nesting.

mod leaf;
mod scale;

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, LargeListArray, ListArray, MapArray, StructArray, cast::AsArray, make_array, new_null_array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};

use crate::error::ColumnarError;
use crate::resolve::Shape;
use leaf::{LeafCast, LeafProblem};

/// How one field of the table is made of what was read.
#[derive(Debug, Clone)]
pub(crate) struct Adapt {
    how: How,
    /// Dotted path in the table.
    path: String,
    data_type: DataType,
    required: bool,
}

#[derive(Debug, Clone)]
enum How {
    /// As it was read.
    Keep,
    /// A value of another type.
    Cast(LeafCast),
    /// For each field of the struct its place in the one that was read, or nothing but nulls.
    Struct(Fields, Vec<Option<(usize, Adapt)>>),
    List(FieldRef, Box<Adapt>),
    LargeList(FieldRef, Box<Adapt>),
    Map(MapFields, Box<Adapt>, Box<Adapt>),
}

#[derive(Debug, Clone)]
struct MapFields {
    entries: FieldRef,
    fields: Fields,
    sorted: bool,
}

/// Where a batch comes from, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) file: &'a str,
    /// First row of the batch within the file.
    pub(crate) first_row: u64,
}

/// An origin and whether indices of the array at hand are rows.
#[derive(Clone, Copy)]
struct Place<'a> {
    origin: Origin<'a>,
    by_row: bool,
}

impl Place<'_> {
    fn row(&self, index: usize) -> u64 {
        self.origin.first_row + if self.by_row { index as u64 } else { 0 }
    }
}

impl Adapt {
    /// Plans the way from `from`, a field as it is read, to `field` of the table.
    ///
    /// # Errors
    /// [`ColumnarError::Incompatible`] when the types do not allow it.
    pub(crate) fn plan(
        file: &str,
        path: &str,
        from: &Field,
        field: &Field,
        shape: &Shape,
    ) -> Result<Self, ColumnarError> {
        let mismatch = || ColumnarError::Incompatible {
            file: file.to_owned(),
            column: path.to_owned(),
            from: from.data_type().to_string(),
            to: field.data_type().to_string(),
        };
        let inner = |from: &Field, field: &Field, shape: &Shape| {
            Self::plan(file, &format!("{path}.{}", field.name()), from, field, shape)
        };
        let data_type = field.data_type().clone();
        let how = match (shape, from.data_type(), &data_type) {
            (Shape::Leaf { int96 }, from, to) => match LeafCast::plan(from, to, *int96) {
                Some(LeafCast::Same) => How::Keep,
                Some(cast) => How::Cast(cast),
                None => return Err(mismatch()),
            },
            (Shape::Struct(children), DataType::Struct(read), DataType::Struct(wanted)) => {
                let mut sources = Vec::with_capacity(wanted.len());
                for (field, child) in wanted.iter().zip(children) {
                    sources.push(match child {
                        Some((index, shape)) => {
                            let from = read.get(*index).ok_or_else(mismatch)?;
                            Some((*index, inner(from, field, shape)?))
                        }
                        None => None,
                    });
                }
                How::Struct(wanted.clone(), sources)
            }
            (Shape::List(element), DataType::List(read), DataType::List(wanted)) => {
                How::List(Arc::clone(wanted), Box::new(inner(read, wanted, element)?))
            }
            (Shape::List(element), DataType::List(read), DataType::LargeList(wanted)) => {
                How::LargeList(Arc::clone(wanted), Box::new(inner(read, wanted, element)?))
            }
            (Shape::Map(key, value), DataType::Map(read, _), DataType::Map(entries, sorted)) => {
                match (read.data_type(), entries.data_type()) {
                    (DataType::Struct(read), DataType::Struct(fields)) if read.len() == 2 && fields.len() == 2 => {
                        How::Map(
                            MapFields { entries: Arc::clone(entries), fields: fields.clone(), sorted: *sorted },
                            Box::new(inner(&read[0], &fields[0], key)?),
                            Box::new(inner(&read[1], &fields[1], value)?),
                        )
                    }
                    _ => return Err(mismatch()),
                }
            }
            _ => return Err(mismatch()),
        };
        Ok(Self { how, path: path.to_owned(), data_type, required: !field.is_nullable() })
    }

    /// A column that stays as it is read.
    pub(crate) fn keep(path: &str, from: &Field) -> Self {
        Self { how: How::Keep, path: path.to_owned(), data_type: from.data_type().clone(), required: false }
    }

    /// Whether every value stays the number or the bytes that the file holds; at most the label of the type changes.
    pub(crate) fn keeps_values(&self) -> bool {
        match &self.how {
            How::Keep => true,
            How::Cast(cast) => cast.keeps_numbers(),
            _ => false,
        }
    }

    /// The type that [`Self::apply`] gives.
    pub(crate) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Makes the table's column of a batch that was read.
    ///
    /// # Errors
    /// [`ColumnarError::NullInRequired`], [`ColumnarError::Inexact`], or [`ColumnarError::Corrupt`] for text that is
    /// not UTF-8.
    pub(crate) fn apply(&self, array: ArrayRef, origin: Origin<'_>) -> Result<ArrayRef, ColumnarError> {
        self.convert(array, None, Place { origin, by_row: true })
    }

    /// `within` tells where the structs around are not null: there a required field needs no value.
    fn convert(
        &self,
        array: ArrayRef,
        within: Option<&NullBuffer>,
        place: Place<'_>,
    ) -> Result<ArrayRef, ColumnarError> {
        if self.required
            && let Some(index) = first_null(array.nulls(), within)
        {
            return Err(ColumnarError::NullInRequired {
                file: place.origin.file.to_owned(),
                column: self.path.clone(),
                row: place.row(index),
            });
        }
        let converted = self.convert_values(array, within, place)?;
        if self.required && converted.null_count() > 0 {
            // Nulls that are left stem from null structs around; on their own they would contradict the field.
            return with_nulls(&converted, None).map_err(|error| self.bug(place, error));
        }
        Ok(converted)
    }

    fn convert_values(
        &self,
        array: ArrayRef,
        within: Option<&NullBuffer>,
        place: Place<'_>,
    ) -> Result<ArrayRef, ColumnarError> {
        let elements = Place { by_row: false, ..place };
        match &self.how {
            How::Keep => Ok(array),
            How::Cast(cast) => {
                let array = hide(array, within).map_err(|error| self.bug(place, error))?;
                cast.apply(&array).map_err(|problem| self.explain(problem, place))
            }
            How::Struct(fields, sources) => {
                let read = array.as_struct();
                let nulls = read.nulls().cloned();
                let inside = NullBuffer::union(within, nulls.as_ref());
                let mut columns = Vec::with_capacity(fields.len());
                for (field, source) in fields.iter().zip(sources) {
                    columns.push(match source {
                        Some((index, adapt)) => {
                            adapt.convert(Arc::clone(read.column(*index)), inside.as_ref(), place)?
                        }
                        None => new_null_array(field.data_type(), read.len()),
                    });
                }
                let built = StructArray::try_new_with_length(fields.clone(), columns, nulls, read.len());
                built.map(|array| Arc::new(array) as ArrayRef).map_err(|error| self.bug(place, error))
            }
            How::List(field, element) => {
                let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
                let values = element.convert(values, None, elements)?;
                let built = ListArray::try_new(Arc::clone(field), offsets, values, nulls);
                built.map(|array| Arc::new(array) as ArrayRef).map_err(|error| self.bug(place, error))
            }
            How::LargeList(field, element) => {
                let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
                let values = element.convert(values, None, elements)?;
                let offsets = leaf::wide_offsets(&offsets);
                let built = LargeListArray::try_new(Arc::clone(field), offsets, values, nulls);
                built.map(|array| Arc::new(array) as ArrayRef).map_err(|error| self.bug(place, error))
            }
            How::Map(map, key, value) => {
                let (_, offsets, entries, nulls, _) = array.as_map().clone().into_parts();
                let (_, columns, _) = entries.into_parts();
                let [keys, values] = <[ArrayRef; 2]>::try_from(columns)
                    .map_err(|_| self.bug(place, ArrowError::SchemaError("a map without keys and values".into())))?;
                let keys = key.convert(keys, None, elements)?;
                let values = value.convert(values, None, elements)?;
                let built = StructArray::try_new(map.fields.clone(), vec![keys, values], None).and_then(|entries| {
                    MapArray::try_new(Arc::clone(&map.entries), offsets, entries, nulls, map.sorted)
                });
                built.map(|array| Arc::new(array) as ArrayRef).map_err(|error| self.bug(place, error))
            }
        }
    }

    fn explain(&self, problem: LeafProblem, place: Place<'_>) -> ColumnarError {
        match problem {
            LeafProblem::Inexact(value) => ColumnarError::Inexact {
                file: place.origin.file.to_owned(),
                column: self.path.clone(),
                row: place.origin.first_row,
                value,
                to: self.data_type.to_string(),
            },
            LeafProblem::Arrow(error) => self.bug(place, error),
        }
    }

    /// Arrays that do not fit together come from bytes that do not.
    fn bug(&self, place: Place<'_>, error: ArrowError) -> ColumnarError {
        ColumnarError::Corrupt {
            file: place.origin.file.to_owned(),
            row_group: None,
            column: Some(self.path.clone()),
            page: None,
            detail: error.to_string(),
        }
    }
}

/// Makes null what lies within a null struct: a required field holds filler there, which need not be a value at all.
fn hide(array: ArrayRef, within: Option<&NullBuffer>) -> Result<ArrayRef, ArrowError> {
    match within.filter(|within| within.null_count() > 0) {
        Some(within) => with_nulls(&array, NullBuffer::union(array.nulls(), Some(within))),
        None => Ok(array),
    }
}

fn with_nulls(array: &ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?))
}

/// The first null of `nulls` where `within` is not null.
fn first_null(nulls: Option<&NullBuffer>, within: Option<&NullBuffer>) -> Option<usize> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    match within {
        None => (0..nulls.len()).find(|index| nulls.is_null(*index)),
        Some(within) => (0..nulls.len()).find(|index| nulls.is_null(*index) && within.is_valid(*index)),
    }
}
