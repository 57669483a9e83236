//! The one value that is carried from window to window, on its own: numbers of a pool mean nothing once the pool was emptied, and columns
//! change their way.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Float32Array, Float64Array, Int32Array, Int64Array, new_null_array};
use arrow_cast::cast;
use arrow_schema::DataType;
use firn_codec::Texts;

use super::Stop;
use super::kind::Kind;
use super::lane::{Lane, Rows};
use super::pool::{Pool, PoolValues};
use crate::error::ColumnarError;
use crate::proof::ColumnHasher;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Narrow(u32),
    Wide(u64),
    Text(Vec<u8>),
}

impl Value {
    /// That of a row; None when there is no such row, or its number is none of the pool's.
    pub(crate) fn of(rows: &Rows, row: usize, pool: &Pool) -> Option<Value> {
        if rows.present.as_ref().is_some_and(|present| present.get(row) == Some(&0)) {
            return Some(Value::Null);
        }
        match (&rows.lane, &pool.values) {
            (Lane::Narrow(words), _) => words.get(row).copied().map(Value::Narrow),
            (Lane::Wide(words), _) => words.get(row).copied().map(Value::Wide),
            (Lane::Ids(ids), values) => {
                let id = *ids.get(row)? as usize;
                match values {
                    PoolValues::Narrow(pool) => pool.values().get(id).copied().map(Value::Narrow),
                    PoolValues::Wide(pool) => pool.values().get(id).copied().map(Value::Wide),
                    PoolValues::Texts(pool) => pool.texts().get(id).map(|text| Value::Text(text.to_vec())),
                }
            }
        }
    }

    /// As a row in a lane like `lane`.
    pub(crate) fn to_rows(&self, lane: &Lane, pool: &mut Pool, hasher: &ColumnHasher) -> Result<Rows, Stop> {
        let numbers = matches!(lane, Lane::Ids(_));
        let mut rows = Rows::new(lane.like(1));
        rows.lane = match self {
            Value::Null => {
                rows.push_nulls(1);
                return Ok(rows);
            }
            Value::Narrow(word) if numbers => Lane::Ids(pool.words(&[*word], hasher)?),
            Value::Wide(word) if numbers => Lane::Ids(pool.words(&[*word], hasher)?),
            Value::Narrow(word) => Lane::Narrow(vec![*word]),
            Value::Wide(word) => Lane::Wide(vec![*word]),
            Value::Text(text) => {
                let mut texts = Texts::new();
                texts.push(text).map_err(|_| Stop::Unfit("a text of more than 4 GiB"))?;
                Lane::Ids(pool.texts(&texts, hasher)?)
            }
        };
        Ok(rows)
    }

    /// As an array of one row.
    pub(crate) fn to_array(&self, kind: Kind, data_type: &DataType) -> Result<ArrayRef, ColumnarError> {
        let array: ArrayRef = match self {
            Value::Null => return Ok(new_null_array(data_type, 1)),
            Value::Narrow(word) if kind == Kind::F32 => Arc::new(Float32Array::from(vec![f32::from_bits(*word)])),
            Value::Narrow(word) => Arc::new(Int32Array::from(vec![word.cast_signed()])),
            Value::Wide(word) if kind == Kind::F64 => Arc::new(Float64Array::from(vec![f64::from_bits(*word)])),
            Value::Wide(word) => Arc::new(Int64Array::from(vec![word.cast_signed()])),
            Value::Text(text) => Arc::new(BinaryArray::from(vec![text.as_slice()])),
        };
        cast(&array, data_type)
            .map_err(|error| ColumnarError::Usage { detail: format!("a carried value is no {data_type}: {error}") })
    }
}
