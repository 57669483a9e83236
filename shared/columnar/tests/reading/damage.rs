//! Damaged files give errors that name them: no panic, no wrong rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::*;
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use firn_columnar::{BatchLimit, ColumnarError, InputFile, MemoryFile, RangeRead};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use crate::random::{Random, random_array, random_field};
use crate::support::{field, open, open_counted, rest, schema, write};

const LIMIT: BatchLimit = BatchLimit { rows: 100, bytes: 4_000, read_ahead: 2_000 };

fn target() -> SchemaRef {
    schema(vec![field(1, "n", DataType::Int64, true), field(2, "s", DataType::Utf8, false)])
}

/// 1000 rows in 2 row groups, with a dictionary for the texts.
fn sample(properties: parquet::file::properties::WriterPropertiesBuilder) -> Bytes {
    let numbers: ArrayRef = Arc::new((0..1000_i64).map(|n| (n % 7 > 0).then_some(n * n)).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new((0..1000).map(|n| Some(format!("text {}", n % 50))).collect::<StringArray>());
    let properties = properties
        .set_max_row_group_row_count(Some(600))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(50)
        .build();
    write(&target(), vec![numbers, texts], properties)
}

fn read_all(bytes: Bytes, target: &SchemaRef) -> Result<Vec<ArrayRef>, ColumnarError> {
    let file = open(bytes, target)?;
    (0..target.fields().len()).map(|column| rest(&mut file.cursor(column, LIMIT)?)).collect()
}

/// Lengths and offsets of damage are reported for the file by name.
fn assert_damaged(error: &ColumnarError, words: &str) {
    let text = error.to_string();
    assert!(matches!(error, ColumnarError::Corrupt { .. }), "{text}");
    assert!(text.contains("`t.parquet`") && text.contains(words), "{text} lacks `{words}`");
}

#[test]
fn files_that_are_no_parquet() {
    for (bytes, words) in [
        (&b""[..], "0 bytes are too short"),
        (b"PAR1PAR1", "8 bytes are too short"),
        (b"PAR1 hello world, this is text", "magic"),
        (b"PAR1\xff\xff\xff\x7fPAR1", "claims 2147483647 bytes"),
        (b"PAR1\0\0\0\0PAR1", "footer cannot be read"),
    ] {
        assert_damaged(&open(Bytes::from_static(bytes), &target()).unwrap_err(), words);
    }
    let encrypted = Bytes::from_static(b"PAR1\0\0\0\0PARE");
    assert!(matches!(open(encrypted, &target()).unwrap_err(), ColumnarError::Unsupported { .. }));
}

#[test]
fn a_file_cut_anywhere_is_damaged() {
    let bytes = sample(WriterProperties::builder());
    assert!(read_all(bytes.clone(), &target()).is_ok());
    for length in (0..bytes.len()).step_by(13) {
        let error = read_all(bytes.slice(..length), &target()).unwrap_err();
        assert!(matches!(error, ColumnarError::Corrupt { .. }), "{length}: {error}");
        // The beginning is lost instead: offsets lead elsewhere or out of the file.
        if length > 0 {
            let cut = read_all(bytes.slice(length..), &target());
            assert!(cut.is_err(), "{length}");
        }
    }
}

#[test]
fn a_footer_that_points_outside_is_damaged() {
    // The same file behind 1 MB of other bytes would be found again; behind a hole it is not.
    let bytes = sample(WriterProperties::builder());
    let footer_length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
    let footer = bytes.slice(bytes.len() - 8 - footer_length..);
    let only_footer: Bytes = [b"PAR1", &footer[..]].concat().into();
    assert_damaged(&open(only_footer, &target()).unwrap_err(), "do not lie before the footer");
}

#[test]
fn any_flipped_byte_is_an_error_or_does_no_harm_to_the_process() {
    let random = &mut Random(7);
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for (compression, statistics) in [
            (Compression::UNCOMPRESSED, EnabledStatistics::Page),
            (Compression::ZSTD(ZstdLevel::try_new(1).unwrap()), EnabledStatistics::None),
            (Compression::SNAPPY, EnabledStatistics::Chunk),
            (Compression::LZ4_RAW, EnabledStatistics::Page),
        ] {
            let properties = WriterProperties::builder()
                .set_writer_version(version)
                .set_compression(compression)
                .set_statistics_enabled(statistics)
                .set_offset_index_disabled(statistics == EnabledStatistics::None);
            let bytes = sample(properties);
            for _ in 0..400 {
                let mut damaged = bytes.to_vec();
                // Half of the damage in the footer, where counts and offsets are.
                let range = if random.chance(50) { damaged.len() as u64 } else { 1500.min(damaged.len() as u64) };
                let at = damaged.len() - 1 - random.below(range) as usize;
                damaged[at] ^= 1 << random.below(8);
                if random.chance(20) {
                    damaged[at] = random.next() as u8;
                }
                match read_all(damaged.into(), &target()) {
                    Ok(columns) => assert!(columns.iter().all(|column| column.len() == columns[0].len())),
                    Err(error) => assert!(!error.is_retryable(), "{error}"),
                }
            }
        }
    }
}

#[test]
fn flipped_bytes_in_nested_columns() {
    let random = &mut Random(11);
    for seed in 0..60 {
        let inner = &mut Random(seed);
        let column = random_field(inner, "c", 2, &mut 1, true);
        let array = random_array(inner, &column, 200);
        let target = schema(vec![column]);
        let version = inner.one_of(&[WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0]);
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_data_page_row_count_limit(30)
            .set_write_batch_size(10)
            .build();
        let bytes = write(&target, vec![array], properties);
        for _ in 0..20 {
            let mut damaged = bytes.to_vec();
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
            if let Err(error) = read_all(damaged.into(), &target) {
                assert!(!error.is_retryable(), "{error}");
            }
        }
    }
}

#[test]
fn a_row_group_of_other_rows_than_its_pages_is_damaged() {
    // Two files of the same shape: the footer of one behind the pages of the other.
    let of = |rows: i32| {
        let column: ArrayRef = Arc::new((0..rows).collect::<Int32Array>());
        let target = schema(vec![field(1, "x", DataType::Int32, false)]);
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true);
        (write(&target, vec![column], properties.build()), target)
    };
    let ((long, target), (short, _)) = (of(1000), of(999));
    let footer_of = |bytes: &Bytes| {
        let length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
        bytes.len() - 8 - length
    };
    let mixed = [&short[..footer_of(&short)], &[0; 4][..], &long[footer_of(&long)..]].concat();
    let error = read_all(mixed.into(), &target).unwrap_err();
    assert_damaged(&error, "column `x`");
    let mixed = [&long[..footer_of(&long)], &short[footer_of(&short)..]].concat();
    let error = read_all(mixed.into(), &target).unwrap_err();
    assert_damaged(&error, "column `x`");
}

/// Fails every read but the first ones.
#[derive(Debug)]
struct Flaky {
    inner: MemoryFile,
    good: AtomicU64,
}

impl RangeRead for Flaky {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, ColumnarError> {
        if self.good.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |good| good.checked_sub(1)).is_err() {
            return Err(ColumnarError::Read { file: "t.parquet".into(), source: "reset".into(), retryable: true });
        }
        self.inner.read(range)
    }
}

#[test]
fn a_failed_transfer_can_be_tried_again() {
    let target = schema(vec![field(1, "n", DataType::Int64, true)]);
    let numbers: ArrayRef =
        Arc::new((0..50_000_i64).map(|n| Some(n.wrapping_mul(0x9e37_79b9))).collect::<Int64Array>());
    let properties = WriterProperties::builder().set_dictionary_enabled(false).set_data_page_row_count_limit(500);
    let bytes = write(&target, vec![Arc::clone(&numbers)], properties.build());
    let flaky = Arc::new(Flaky { inner: MemoryFile::new("t.parquet", bytes), good: AtomicU64::new(1) });
    let file = InputFile::open(Arc::clone(&flaky) as _, &target, None).unwrap();
    let mut cursor = file.cursor(0, LIMIT).unwrap();
    let mut failures = 0;
    while cursor.row() < file.rows() {
        match cursor.next(1000) {
            Ok(batch) => {
                let batch = batch.unwrap();
                let from = cursor.row() as usize - batch.len();
                assert_eq!(batch.as_ref(), numbers.slice(from, batch.len()).as_ref());
            }
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                failures += 1;
                flaky.good.store(10, Ordering::SeqCst);
            }
        }
    }
    assert!(failures > 5, "{failures}");
}

#[test]
fn a_tiny_file_is_asked_for_once() {
    let (file, counted) = open_counted(sample(WriterProperties::builder()), &target());
    for column in 0..2 {
        rest(&mut file.cursor(column, LIMIT).unwrap()).unwrap();
    }
    assert_eq!(counted.requests(), 1);
    assert!(file.held_bytes() >= counted.bytes());
}
