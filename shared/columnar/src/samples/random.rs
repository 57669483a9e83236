//! Random fields of nested types and random values of them.

use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::field;

/// A small generator of numbers: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    /// A field of at most `depth` levels below itself; each takes the next id.
    pub(crate) fn field(&mut self, name: &str, depth: usize, next_id: &mut i32) -> Field {
        let id = *next_id;
        *next_id += 1;
        let data_type = match self.below(if depth == 0 { 3 } else { 6 }) {
            0 => DataType::Int32,
            1 => DataType::Utf8,
            2 => DataType::Float64,
            3 => {
                let children = 1 + self.below(3);
                DataType::Struct((0..children).map(|n| self.field(&format!("c{n}"), depth - 1, next_id)).collect())
            }
            4 => DataType::List(Arc::new(self.field("element", depth - 1, next_id))),
            _ => {
                let key = field(*next_id, "key", DataType::Utf8).with_nullable(false);
                *next_id += 1;
                let entries = Fields::from(vec![key, self.field("value", depth - 1, next_id)]);
                DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false)
            }
        };
        field(id, name, data_type).with_nullable(self.below(3) > 0)
    }

    /// Values of `field`. Below null lists and structs there are values, and the array is a slice of a longer one.
    pub(crate) fn array(&mut self, field: &Field, rows: usize) -> ArrayRef {
        let skipped = self.below(3);
        let whole = self.whole(field, rows + skipped + 1);
        whole.slice(skipped, rows)
    }

    fn whole(&mut self, field: &Field, rows: usize) -> ArrayRef {
        let nulls: Option<NullBuffer> = field.is_nullable().then(|| (0..rows).map(|_| self.below(4) > 0).collect());
        match field.data_type() {
            DataType::Int32 => {
                let values: Vec<i32> = (0..rows).map(|_| self.below(5) as i32 - 2).collect();
                Arc::new(Int32Array::new(values.into(), nulls))
            }
            DataType::Float64 => {
                let values: Vec<f64> = (0..rows).map(|_| [f64::NAN, -0.0, 0.0, 1.5][self.below(4)]).collect();
                Arc::new(Float64Array::new(values.into(), nulls))
            }
            DataType::Utf8 => {
                let texts = (0..rows).map(|_| ["", "a", "\u{10FFFF}b"][self.below(3)]);
                let (offsets, values, _) = StringArray::from_iter_values(texts).into_parts();
                Arc::new(StringArray::new(offsets, values, nulls))
            }
            DataType::Struct(fields) => {
                let children = fields.iter().map(|field| self.array(field, rows)).collect();
                Arc::new(StructArray::new(fields.clone(), children, nulls))
            }
            DataType::List(element) => {
                let offsets = self.offsets(rows);
                let values = self.array(element, offsets.last().map_or(0, |last| *last as usize));
                Arc::new(ListArray::new(Arc::clone(element), offsets, values, nulls))
            }
            DataType::Map(entry, _) => {
                let DataType::Struct(fields) = entry.data_type() else { unreachable!() };
                let offsets = self.offsets(rows);
                let length = offsets.last().map_or(0, |last| *last as usize);
                let children = fields.iter().map(|field| self.array(field, length)).collect();
                let entries = StructArray::new(fields.clone(), children, None);
                Arc::new(MapArray::new(Arc::clone(entry), offsets, entries, nulls, false))
            }
            other => unreachable!("{other}"),
        }
    }

    fn offsets(&mut self, rows: usize) -> OffsetBuffer<i32> {
        OffsetBuffer::from_lengths((0..rows).map(|_| self.below(4)))
    }
}
