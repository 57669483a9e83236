//! Batches stay within their bytes, whatever the encoding hides.

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::DataType;
use firn_columnar::BatchLimit;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::random::Random;
use crate::support::{field, list, open, schema, write};

const LIMIT: BatchLimit = BatchLimit { rows: 65_536, bytes: 256 * 1024, read_ahead: 64 * 1024 };

/// Sizes of the batches of one column, in bytes.
fn batches(column: ArrayRef, properties: WriterProperties) -> Vec<usize> {
    let target = schema(vec![field(1, "c", column.data_type().clone(), true)]);
    let rows = column.len();
    let file = open(write(&target, vec![Arc::clone(&column)], properties), &target).unwrap();
    let mut cursor = file.cursor(0, LIMIT).unwrap();
    let mut sizes = Vec::new();
    while let Some(batch) = cursor.next(usize::MAX).unwrap() {
        let from = cursor.row() as usize - batch.len();
        assert_eq!(batch.as_ref(), column.slice(from, batch.len()).as_ref());
        sizes.push(batch.to_data().get_slice_memory_size().unwrap());
    }
    assert_eq!(cursor.row(), rows as u64);
    sizes
}

/// No size statistics, so that the length of texts shows only in the dictionary and the pages.
fn properties() -> parquet::file::properties::WriterPropertiesBuilder {
    WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None).set_offset_index_disabled(true)
}

#[test]
fn long_texts_from_a_small_dictionary() {
    let random = &mut Random(1);
    let texts: Vec<String> = (0..40).map(|n| format!("{n:>2000}")).collect();
    let column: ArrayRef =
        Arc::new((0..20_000).map(|_| Some(texts[random.below(40) as usize].as_str())).collect::<StringArray>());
    let sizes = batches(column, properties().build());
    assert!(sizes.iter().all(|size| *size <= LIMIT.bytes), "{sizes:?}");
    assert!(sizes.len() < 250, "{} batches for 40 MB", sizes.len());
}

#[test]
fn one_long_text_among_short_ones() {
    // The longest is rare in the dictionary and frequent in the rows of the second half.
    let long = "x".repeat(4_000);
    let short: Vec<String> = (0..2_000).map(|n| n.to_string()).collect();
    let random = &mut Random(2);
    let column: ArrayRef = Arc::new(
        (0..40_000)
            .map(|row| match row >= 20_000 && random.chance(90) {
                true => Some(long.as_str()),
                false => Some(short[random.below(2_000) as usize].as_str()),
            })
            .collect::<StringArray>(),
    );
    let sizes = batches(column, properties().set_data_page_row_count_limit(5_000).build());
    // One batch is misjudged, by no more than 8 times, and the next ones are smaller.
    let over = sizes.iter().filter(|size| **size > 4 * LIMIT.bytes).count();
    assert!(over <= 1, "{sizes:?}");
    assert!(*sizes.iter().max().unwrap() <= 8 * LIMIT.bytes, "{sizes:?}");
}

#[test]
fn texts_that_grow_end_batches_with_their_pages() {
    let column: ArrayRef = Arc::new(
        (0..30_000).map(|row| Some("y".repeat(if row < 29_000 { 4 } else { 2_000 }))).collect::<StringArray>(),
    );
    let properties =
        properties().set_dictionary_enabled(false).set_data_page_size_limit(64 * 1024).set_write_batch_size(32).build();
    let sizes = batches(column, properties);
    assert!(*sizes.iter().max().unwrap() < 2 * LIMIT.bytes, "{sizes:?}");
}

#[test]
fn lists_count_all_of_their_elements() {
    let element = field(2, "element", DataType::Int64, true);
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>(
        (0..3_000_i64).map(|row| Some((0..100).map(move |n| Some(row * n)))),
    );
    let (_, offsets, values, nulls) = lists.into_parts();
    let column: ArrayRef = Arc::new(ListArray::new(Arc::new(element.clone()), offsets, values, nulls));
    assert_eq!(column.data_type(), &list(element));
    let sizes = batches(column, properties().build());
    assert!(sizes.iter().all(|size| *size <= 2 * LIMIT.bytes), "{sizes:?}");
    assert!(sizes.len() < 20, "{sizes:?}");
}

#[test]
fn the_cost_of_a_column_counts_what_an_open_reader_holds() {
    let numbers: ArrayRef = Arc::new((0..300_000_i64).map(|n| n * 7).collect::<Int64Array>());
    let flags: ArrayRef = Arc::new((0..300_000).map(|n| Some(n % 2 == 0)).collect::<BooleanArray>());
    let target = schema(vec![
        field(1, "n", DataType::Int64, false),
        field(2, "f", DataType::Boolean, false),
        field(3, "gone", DataType::Int64, true),
    ]);
    let written = schema(target.fields()[..2].iter().map(|field| field.as_ref().clone()).collect());
    let bytes =
        write(&written, vec![numbers, flags], WriterProperties::builder().set_dictionary_enabled(false).build());
    let file = open(bytes, &target).unwrap();
    let limit = BatchLimit::default();
    let cost = file.column_cost(0, &limit).unwrap();
    assert_eq!(cost.bytes_per_row_decoded, 8);
    assert!(cost.uncompressed >= 2_400_000 && cost.compressed >= 2_400_000);
    // Read-ahead 256 kB, the rest of a page of 1 MB as it came, that page twice, a batch of 65,536 rows.
    let expected = 1024 * 1024 + 2 * 1024 * 1024 + 65_536 * 8;
    assert_eq!(cost.open_bytes, expected);
    let small = file.column_cost(1, &limit).unwrap();
    assert!(small.open_bytes < 400_000, "{small:?}");
    let gone = file.column_cost(2, &limit).unwrap();
    assert_eq!((gone.compressed, gone.bytes_per_row_decoded), (0, 9));
    assert!(file.column_cost(3, &limit).is_err());
}
