//! How much is asked for.

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use firn_columnar::BatchLimit;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};

use crate::random::Random;
use crate::support::{field, open_counted, rest, schema, write};

const ROWS: usize = 200_000;
const PAGE_ROWS: usize = 10_000;
const WINDOWS: u64 = 10;

fn target() -> SchemaRef {
    schema(vec![field(1, "plain", DataType::Int64, false), field(2, "dictionary", DataType::Int64, false)])
}

/// One row group; 20 pages a column, of 80 kB each in the first one; no compression, so that sizes are known.
fn sample(index: bool) -> Bytes {
    let random = &mut Random(1);
    let plain: ArrayRef = Arc::new((0..ROWS).map(|_| random.next() as i64).collect::<Int64Array>());
    let dictionary: ArrayRef = Arc::new((0..ROWS).map(|_| random.below(5_000) as i64).collect::<Int64Array>());
    let statistics = if index { EnabledStatistics::Page } else { EnabledStatistics::None };
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_column_dictionary_enabled("plain".into(), false)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS / 10)
        .set_statistics_enabled(statistics)
        .set_offset_index_disabled(!index);
    write(&target(), vec![plain, dictionary], WriterPropertiesBuilder::build(properties))
}

#[test]
fn windows_with_releases_read_each_page_about_once() {
    for index in [false, true] {
        for column in 0..2 {
            let (file, counted) = open_counted(sample(index), &target());
            let chunk = file.metadata().row_group(0).column(column);
            let size = chunk.compressed_size() as u64;
            let dictionary = chunk.dictionary_page_offset().map_or(0, |at| (chunk.data_page_offset() - at) as u64);
            assert_eq!(dictionary > 0, column == 1);
            let page = (size - dictionary) / 20;
            let (requests, bytes) = (counted.requests(), counted.bytes());
            // Windows end within pages.
            let window = ROWS as u64 / WINDOWS - 777;
            let mut cursor = file.cursor(column, BatchLimit::default()).unwrap();
            for _ in 0..=WINDOWS {
                let end = (cursor.row() + window).min(ROWS as u64);
                cursor.expect(end - cursor.row());
                while cursor.row() < end {
                    cursor.next((end - cursor.row()) as usize).unwrap().unwrap();
                }
                cursor.release();
            }
            assert_eq!(cursor.row(), ROWS as u64);
            let (requests, bytes) = (counted.requests() - requests, counted.bytes() - bytes);
            // What lies between dictionary and page is read along when it is less than a second request is worth.
            let gap = if dictionary > 0 { 64 * 1024 } else { 0 };
            let most = size + WINDOWS * (page + dictionary + gap);
            // Without an index the end of a window is a guess.
            let most = if index { most } else { most + most / 8 };
            assert!(bytes <= most, "column {column}, index {index}: {bytes} of {most} bytes, chunk {size}");
            assert!(requests <= 5 * (WINDOWS + 1), "column {column}, index {index}: {requests} requests");
        }
    }
}

#[test]
fn without_a_hint_a_release_costs_at_most_the_read_ahead() {
    let (file, counted) = open_counted(sample(false), &target());
    let size = file.metadata().row_group(0).column(0).compressed_size() as u64;
    let before = counted.bytes();
    let limit = BatchLimit::default();
    let mut cursor = file.cursor(0, limit).unwrap();
    for _ in 0..WINDOWS {
        let end = cursor.row() + ROWS as u64 / WINDOWS;
        while cursor.row() < end {
            cursor.next((end - cursor.row()) as usize).unwrap().unwrap();
        }
        cursor.release();
    }
    let bytes = counted.bytes() - before;
    assert!(bytes <= size + WINDOWS * limit.read_ahead as u64, "{bytes}");
}

#[test]
fn a_column_is_read_once_from_end_to_end() {
    for index in [false, true] {
        let (file, counted) = open_counted(sample(index), &target());
        for column in 0..2 {
            let size = file.metadata().row_group(0).column(column).compressed_size() as u64;
            let (requests, bytes) = (counted.requests(), counted.bytes());
            rest(&mut file.cursor(column, BatchLimit::default()).unwrap()).unwrap();
            assert_eq!(counted.bytes() - bytes, size, "column {column}, index {index}");
            let requests = counted.requests() - requests;
            assert!(requests <= 2 + size.div_ceil(150_000), "column {column}, index {index}: {requests} requests");
        }
    }
}

#[test]
fn pages_larger_than_the_read_ahead_take_one_request_each() {
    for index in [false, true] {
        let (file, counted) = open_counted(sample(index), &target());
        let before = counted.requests();
        let limit = BatchLimit { read_ahead: 16 * 1024, ..BatchLimit::default() };
        rest(&mut file.cursor(0, limit).unwrap()).unwrap();
        let requests = counted.requests() - before;
        assert!((20..=22).contains(&requests), "index {index}: {requests} requests for 20 pages");
    }
}

#[test]
fn skipped_pages_are_not_read() {
    let (file, counted) = open_counted(sample(true), &target());
    let size = file.metadata().row_group(0).column(0).compressed_size() as u64;
    let before = (counted.requests(), counted.bytes());
    let mut cursor = file.cursor(0, BatchLimit::default()).unwrap();
    cursor.skip(153_210).unwrap();
    cursor.expect(100);
    cursor.next(100).unwrap();
    assert_eq!(counted.requests() - before.0, 1);
    assert!(counted.bytes() - before.1 <= size / 20);

    // Without an index the headers on the way are looked at, not the pages.
    let (file, counted) = open_counted(sample(false), &target());
    let before = (counted.requests(), counted.bytes());
    let mut cursor = file.cursor(0, BatchLimit { read_ahead: 0, ..BatchLimit::default() }).unwrap();
    cursor.skip(153_210).unwrap();
    cursor.next(100).unwrap();
    assert!(counted.requests() - before.0 <= 18);
    assert!(counted.bytes() - before.1 <= size / 20 + 18 * 4096, "{}", counted.bytes() - before.1);
}

#[test]
fn a_small_chunk_comes_in_one_request() {
    let (file, counted) = open_counted(sample(false), &target());
    let before = counted.requests();
    let limit = BatchLimit { read_ahead: 4 * 1024 * 1024, ..BatchLimit::default() };
    rest(&mut file.cursor(1, limit).unwrap()).unwrap();
    assert_eq!(counted.requests() - before, 1);
}

#[test]
fn nothing_is_read_before_rows_are_asked_for() {
    let (file, counted) = open_counted(sample(true), &target());
    assert_eq!(counted.requests(), 1);
    let mut cursor = file.cursor(0, BatchLimit::default()).unwrap();
    cursor.skip(ROWS as u64).unwrap();
    assert!(cursor.next(1).unwrap().is_none());
    assert_eq!(counted.requests(), 1);
}
