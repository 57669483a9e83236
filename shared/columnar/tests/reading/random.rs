//! Random types and values, from a seed.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, LargeBinaryBuilder, LargeStringBuilder, StringBuilder,
};
use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, LargeListArray, ListArray, MapArray, PrimitiveArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use crate::support::{field, list, map};

/// A small generator (SplitMix64), so that a failing case is told by its seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize].clone()
    }
}

fn leaf_type(random: &mut Random) -> DataType {
    random.one_of(&[
        DataType::Boolean,
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(9, 2),
        DataType::Decimal128(18, 4),
        DataType::Decimal128(38, 10),
        DataType::Date32,
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Binary,
        DataType::LargeBinary,
        DataType::FixedSizeBinary(5),
        DataType::FixedSizeBinary(16),
    ])
}

/// A field of a random type, nested at most `depth` times, with fresh ids at every level.
pub fn random_field(random: &mut Random, name: &str, depth: u32, next_id: &mut i32, nullable: bool) -> Field {
    let id = *next_id;
    *next_id += 1;
    let choice = if depth == 0 { 0 } else { random.below(7) };
    let data_type = match choice {
        4 => {
            let children = (0..1 + random.below(3))
                .map(|index| {
                    let nullable = random.chance(60);
                    random_field(random, &format!("f{index}"), depth - 1, next_id, nullable)
                })
                .collect::<Vec<_>>();
            DataType::Struct(Fields::from(children))
        }
        5 => {
            let nullable = random.chance(60);
            let element = random_field(random, "element", depth - 1, next_id, nullable);
            if random.chance(20) { DataType::LargeList(Arc::new(element)) } else { list(element) }
        }
        6 => {
            let key = random_field(random, "key", 0, next_id, false);
            let nullable = random.chance(60);
            let value = random_field(random, "value", depth - 1, next_id, nullable);
            map(key, value)
        }
        _ => leaf_type(random),
    };
    field(id, name, data_type, nullable)
}

fn nulls(random: &mut Random, rows: usize, nullable: bool) -> Option<NullBuffer> {
    let percent = if nullable { random.one_of(&[0, 3, 40, 100]) } else { 0 };
    (percent > 0).then(|| (0..rows).map(|_| !random.chance(percent)).collect::<Vec<bool>>().into())
}

fn numbers<T: ArrowPrimitiveType>(
    random: &mut Random,
    rows: usize,
    nulls: Option<NullBuffer>,
    mut make: impl FnMut(u64) -> T::Native,
) -> PrimitiveArray<T> {
    // Few distinct values make dictionaries, many make them overflow.
    let distinct = random.one_of(&[1, 3, 50, u64::MAX]);
    let values: Vec<T::Native> = (0..rows).map(|_| make(Random(random.below(distinct)).next())).collect();
    PrimitiveArray::<T>::new(values.into(), nulls)
}

fn texts(random: &mut Random, rows: usize) -> Vec<String> {
    let distinct = random.one_of(&[1, 3, 50, u64::MAX]);
    let longest = random.one_of(&[1, 10, 200]);
    (0..rows)
        .map(|_| {
            let mut inner = Random(random.below(distinct));
            let length = inner.below(longest);
            (0..length).map(|_| inner.one_of(&['a', 'b', 'ä', '雪', '\0'])).collect()
        })
        .collect()
}

/// Random values of a field.
pub fn random_array(random: &mut Random, field: &Field, rows: usize) -> ArrayRef {
    let nulls = nulls(random, rows, field.is_nullable());
    let valid = |index: usize| nulls.as_ref().is_none_or(|nulls: &NullBuffer| nulls.is_valid(index));
    match field.data_type() {
        DataType::Boolean => {
            let mut builder = BooleanBuilder::new();
            (0..rows).for_each(|index| builder.append_option(valid(index).then(|| random.chance(50))));
            Arc::new(builder.finish())
        }
        DataType::Int32 => Arc::new(numbers::<Int32Type>(random, rows, nulls, |raw| raw as i32)),
        DataType::Int64 => Arc::new(numbers::<Int64Type>(random, rows, nulls, |raw| raw as i64)),
        DataType::Float32 => Arc::new(numbers::<Float32Type>(random, rows, nulls, |raw| f32::from_bits(raw as u32))),
        DataType::Float64 => Arc::new(numbers::<Float64Type>(random, rows, nulls, f64::from_bits)),
        DataType::Date32 => Arc::new(numbers::<Date32Type>(random, rows, nulls, |raw| raw as i32)),
        DataType::Decimal128(precision, scale) => {
            let limit = 10_i128.pow(u32::from(*precision));
            let array = numbers::<Decimal128Type>(random, rows, nulls, |raw| {
                i128::from(raw as i64).wrapping_mul(i128::from(raw)) % limit
            });
            Arc::new(array.with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::Time64(_) => {
            Arc::new(numbers::<Time64MicrosecondType>(random, rows, nulls, |raw| (raw % 86_400_000_000) as i64))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let array = numbers::<TimestampMicrosecondType>(random, rows, nulls, |raw| raw as i64);
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(_, _) => {
            Arc::new(numbers::<TimestampNanosecondType>(random, rows, nulls, |raw| raw as i64))
        }
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            let values = texts(random, rows);
            (0..rows).for_each(|index| builder.append_option(valid(index).then(|| &values[index])));
            Arc::new(builder.finish())
        }
        DataType::LargeUtf8 => {
            let mut builder = LargeStringBuilder::new();
            let values = texts(random, rows);
            (0..rows).for_each(|index| builder.append_option(valid(index).then(|| &values[index])));
            Arc::new(builder.finish())
        }
        DataType::Binary => {
            let mut builder = BinaryBuilder::new();
            let values = texts(random, rows);
            (0..rows).for_each(|index| builder.append_option(valid(index).then(|| values[index].as_bytes())));
            Arc::new(builder.finish())
        }
        DataType::LargeBinary => {
            let mut builder = LargeBinaryBuilder::new();
            let values = texts(random, rows);
            (0..rows).for_each(|index| builder.append_option(valid(index).then(|| values[index].as_bytes())));
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(width) => {
            let mut builder = FixedSizeBinaryBuilder::new(*width);
            let distinct = random.one_of(&[2, u64::MAX]);
            for index in 0..rows {
                let mut inner = Random(random.below(distinct));
                let value: Vec<u8> = (0..*width).map(|_| inner.next() as u8).collect();
                match valid(index) {
                    true => builder.append_value(value).unwrap(),
                    false => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|field| random_array(random, field, rows)).collect();
            Arc::new(StructArray::new(fields.clone(), columns, nulls))
        }
        DataType::List(element) => {
            let lengths = lengths(random, rows, valid);
            let values = random_array(random, element, lengths.iter().sum());
            Arc::new(ListArray::new(Arc::clone(element), OffsetBuffer::from_lengths(lengths), values, nulls))
        }
        DataType::LargeList(element) => {
            let lengths = lengths(random, rows, valid);
            let values = random_array(random, element, lengths.iter().sum());
            Arc::new(LargeListArray::new(Arc::clone(element), OffsetBuffer::from_lengths(lengths), values, nulls))
        }
        DataType::Map(entries, sorted) => {
            let lengths = lengths(random, rows, valid);
            let values = random_array(random, entries, lengths.iter().sum());
            let values = arrow_array::cast::AsArray::as_struct(&values).clone();
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(MapArray::new(Arc::clone(entries), offsets, values, nulls, *sorted))
        }
        other => panic!("no values of {other}"),
    }
}

fn lengths(random: &mut Random, rows: usize, valid: impl Fn(usize) -> bool) -> Vec<usize> {
    let longest = random.one_of(&[1, 3, 12]);
    (0..rows).map(|index| if valid(index) { random.below(longest) as usize } else { 0 }).collect()
}
