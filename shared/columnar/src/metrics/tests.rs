//! Metrics of files that were written, by value.

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, Schema};

use super::*;
use crate::samples::{every_type_rows, field};
use crate::writer::{Codec, FileWriter, FinishedFile, WriterSettings};

fn write(batches: &[RecordBatch], settings: &WriterSettings) -> FinishedFile {
    let mut writer = FileWriter::new("test.parquet", &batches[0].schema(), settings, Vec::new()).unwrap();
    for batch in batches {
        writer.write_row_group(batch).unwrap();
    }
    writer.finish(&[]).unwrap().0
}

/// The metrics of one column with field id 1, written as one row group for each array.
fn metrics_of(arrays: Vec<ArrayRef>, mode: MetricsMode) -> FileMetrics {
    let schema = Arc::new(Schema::new(vec![field(1, "c", arrays[0].data_type().clone())]));
    let batches: Vec<_> =
        arrays.into_iter().map(|array| RecordBatch::try_new(Arc::clone(&schema), vec![array]).unwrap()).collect();
    write(&batches, &WriterSettings { metrics: mode.into(), ..WriterSettings::default() }).metrics
}

fn bounds(metrics: &FileMetrics) -> (Option<&[u8]>, Option<&[u8]>) {
    (metrics.lower.get(&1).map(Vec::as_slice), metrics.upper.get(&1).map(Vec::as_slice))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn counts_are_summed_over_row_groups() {
    let first: ArrayRef = Arc::new(Int32Array::from(vec![Some(5), None, Some(-3)]));
    let second: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(9)]));
    let metrics = metrics_of(vec![first, second], MetricsMode::default());
    assert_eq!((metrics.value_counts[&1], metrics.null_counts[&1]), (5, 2));
    assert!(metrics.nan_counts.is_empty());
    assert_eq!(bounds(&metrics), (Some(&(-3_i32).to_le_bytes()[..]), Some(&9_i32.to_le_bytes()[..])));
    assert_eq!(metrics.split_offsets.len(), 2);
    assert_eq!(metrics.split_offsets[0], 4);
    // The second row group follows the first one, and the two are the whole column.
    let first_size = metrics.split_offsets[1] - 4;
    assert!(first_size > 0 && metrics.column_sizes[&1] > first_size as u64);
}

#[test]
fn nan_and_null_have_counts_and_no_bounds() {
    let floats = |values: &[Option<f64>]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let nothing = metrics_of(vec![floats(&[None, Some(f64::NAN)])], MetricsMode::default());
    assert_eq!((nothing.null_counts[&1], nothing.nan_counts[&1]), (1, 1));
    assert_eq!(bounds(&nothing), (None, None));

    let some = metrics_of(
        vec![floats(&[Some(f64::NAN), None]), floats(&[Some(2.5), Some(f64::NAN)]), floats(&[Some(-1.5)])],
        MetricsMode::default(),
    );
    assert_eq!((some.null_counts[&1], some.nan_counts[&1]), (1, 2));
    assert_eq!(bounds(&some), (Some(&(-1.5_f64).to_le_bytes()[..]), Some(&2.5_f64.to_le_bytes()[..])));

    let none = metrics_of(vec![floats(&[Some(1.0)])], MetricsMode::default());
    assert_eq!(none.nan_counts[&1], 0);

    let singles: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN, 0.0, 3.5]));
    let singles = metrics_of(vec![singles], MetricsMode::default());
    assert_eq!(singles.nan_counts[&1], 1);
    assert_eq!(bounds(&singles), (Some(&(-0.0_f32).to_le_bytes()[..]), Some(&3.5_f32.to_le_bytes()[..])));
}

#[test]
fn long_text_is_cut_to_16_characters_and_rounded_up() {
    let (low, high) = ("a\u{1F600}".repeat(40), "z\u{1F600}".repeat(40));
    let metrics = metrics_of(vec![texts(&[&high, &low])], MetricsMode::default());
    let lower = "a\u{1F600}".repeat(8);
    let upper = format!("{}z\u{1F601}", "z\u{1F600}".repeat(7));
    assert_eq!(bounds(&metrics), (Some(lower.as_bytes()), Some(upper.as_bytes())));

    let short = metrics_of(vec![texts(&["b", ""])], MetricsMode::default());
    assert_eq!(bounds(&short), (Some(&b""[..]), Some(&b"b"[..])));

    // 100 times the last character: the statistics keep the whole value, and nothing lies above it.
    let last = "\u{10FFFF}".repeat(100);
    let unbounded = metrics_of(vec![texts(&["m", &last])], MetricsMode::default());
    assert_eq!(bounds(&unbounded), (Some(&b"m"[..]), None));
}

#[test]
fn modes_are_iceberg_s() {
    let long = "x".repeat(100);
    let full = metrics_of(vec![texts(&[&long])], MetricsMode::Full);
    assert_eq!(bounds(&full), (Some(long.as_bytes()), Some(long.as_bytes())));
    let wide = metrics_of(vec![texts(&[&long])], MetricsMode::Truncate(90));
    let upper = format!("{}y", "x".repeat(89));
    assert_eq!(bounds(&wide), (Some(&long.as_bytes()[..90]), Some(upper.as_bytes())));
    let counts = metrics_of(vec![texts(&[&long])], MetricsMode::Counts);
    assert_eq!((bounds(&counts), counts.value_counts[&1]), ((None, None), 1));
    let none = metrics_of(vec![texts(&[&long])], MetricsMode::None);
    assert!(none.value_counts.is_empty() && none.null_counts.is_empty());
    assert!(none.column_sizes[&1] > 0);
}

#[test]
fn every_type_has_bounds_in_single_value_form() {
    let metrics = write(&[every_type_rows(300, 300), every_type_rows(50, 3)], &WriterSettings::default()).metrics;
    let widths = [
        (1, 8),
        (2, 1),
        (3, 4),
        (4, 4),
        (5, 8),
        (10, 4),
        (11, 8),
        (12, 8),
        (13, 8),
        (14, 8),
        (17, 8),
        (18, 8),
        (19, 3),
        (20, 16),
        (31, 4),
        (33, 8),
    ];
    for (id, width) in widths {
        assert_eq!((metrics.lower[&id].len(), metrics.upper[&id].len()), (width, width), "field {id}");
    }
    let decimal = |bytes: &[u8]| {
        bytes.iter().fold(if bytes[0] > 127 { -1 } else { 0 }, |sum: i128, byte| sum << 8 | i128::from(*byte))
    };
    for (id, digits) in [(6, 1), (7, 9), (8, 18), (9, 38)] {
        let (lower, upper) = (decimal(&metrics.lower[&id]), decimal(&metrics.upper[&id]));
        assert!(lower < 0 && upper > 0 && lower.unsigned_abs() < 10_u128.pow(digits), "field {id}: {lower} to {upper}");
    }
    // Inside lists and maps: counts, no bounds. Lists and maps themselves have nothing.
    for id in [41, 51, 52] {
        assert!(metrics.value_counts[&id] > 350 && metrics.null_counts[&id] > 0, "field {id}");
        assert!(!metrics.lower.contains_key(&id) && !metrics.upper.contains_key(&id));
    }
    for id in [21, 22, 23] {
        assert!(!metrics.value_counts.contains_key(&id));
    }
    let floats: Vec<i32> = metrics.nan_counts.keys().copied().collect();
    assert_eq!(floats.len(), 3);
    assert!([4, 5, 33].iter().all(|id| metrics.nan_counts[id] > 0));
}

#[test]
fn columns_without_a_field_id_have_no_metrics() {
    let hidden = arrow_schema::Field::new("_position", DataType::UInt64, false);
    let schema = Arc::new(Schema::new(vec![field(1, "c", DataType::Int32), hidden]));
    let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![1])), Arc::new(UInt64Array::from(vec![u64::MAX]))];
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let settings = WriterSettings { compression: Codec::Snappy, ..WriterSettings::default() };
    let metrics = write(&[batch], &settings).metrics;
    assert_eq!(metrics.column_sizes.keys().collect::<Vec<_>>(), [&1]);
}
