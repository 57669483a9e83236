//! Both ways of moving columns side by side: random files in every encoding, codec and page layout, merged by each, must give the same rows,
//! sums and metrics.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use bytes::Bytes;
use firn_merge::{RowRef, Run, Window};
use firn_model::RowOrder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::Page;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;

use crate::engine::tests::{MemoryOutputs, column};
use crate::engine::{EngineLimits, MergeError, MergeInput, MergeReport, MergeRequest, StopFlag, merge};
use crate::error::ColumnarError;
use crate::fast::carried::Value;
use crate::fast::column::{FastColumn, HashSink};
use crate::fast::hashes::RowHashes;
use crate::fast::kind::Kind;
use crate::fast::page::Scratch;
use crate::input::InputFile;
use crate::limits::BatchLimit;
use crate::metrics::FileMetrics;
use crate::samples::{Random, every_type, every_type_rows};
use crate::source::{FarFile, MemoryFile};
use crate::writer::{BloomFilters, Codec, Encodings, WriterSettings};

/// How an input is written.
#[derive(Debug, Clone)]
struct Layout {
    dictionary: bool,
    dictionary_bytes: usize,
    second_version: bool,
    encoding: Option<Encoding>,
    codec: Compression,
    page_rows: usize,
    group_rows: usize,
    statistics: bool,
}

fn layout() -> impl Strategy<Value = Layout> {
    let encoding =
        prop::sample::select(vec![None, Some(Encoding::DELTA_BINARY_PACKED), Some(Encoding::BYTE_STREAM_SPLIT)]);
    let codec = prop::sample::select(vec![
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
    ]);
    let sizes = (prop::sample::select(vec![8, 64, 1 << 20]), 1..40usize, 20..120usize);
    (any::<[bool; 3]>(), encoding, codec, sizes).prop_map(
        |([dictionary, second_version, statistics], encoding, codec, (dictionary_bytes, page_rows, group_rows))| {
            Layout { dictionary, dictionary_bytes, second_version, encoding, codec, page_rows, group_rows, statistics }
        },
    )
}

/// Dictionaries, one version, no more than 1000 rows a row group.
fn ordinary(page_rows: usize) -> Layout {
    Layout {
        dictionary: true,
        dictionary_bytes: 1 << 20,
        second_version: false,
        encoding: None,
        codec: Compression::SNAPPY,
        page_rows,
        group_rows: 1000,
        statistics: true,
    }
}

impl Layout {
    fn write(&self, batch: &RecordBatch) -> Bytes {
        let version = if self.second_version { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
        let mut properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_compression(self.codec)
            .set_dictionary_enabled(self.dictionary)
            .set_dictionary_page_size_limit(self.dictionary_bytes)
            .set_data_page_row_count_limit(self.page_rows)
            .set_write_batch_size(self.page_rows)
            .set_max_row_group_row_count(Some(self.group_rows));
        if !self.statistics {
            properties = properties.set_statistics_enabled(parquet::file::properties::EnabledStatistics::None);
        }
        if let Some(encoding) = self.encoding {
            let names: &[&str] = match encoding {
                Encoding::DELTA_BINARY_PACKED => &["id", "int", "day", "clock", "local", "instant", "nanos"],
                _ => &["id", "int", "float", "double", "instant"],
            };
            for name in names {
                properties = properties.set_column_encoding((*name).into(), encoding);
                properties = properties.set_column_dictionary_enabled((*name).into(), false);
            }
        }
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
        writer.write(batch).unwrap();
        writer.into_inner().unwrap().into()
    }
}

/// Rows of every type with ascending ids, some of them in several files.
fn rows(random: &mut Random, count: usize, distinct: usize, ids: i64) -> RecordBatch {
    let all = every_type_rows(count.max(1) + 40, distinct);
    let offset = random.below(40);
    let batch = all.slice(offset, count);
    let mut keys: Vec<i64> = (0..count).map(|_| random.below(ids as usize) as i64).collect();
    keys.sort_unstable();
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns[0] = Arc::new(Int64Array::from(keys));
    RecordBatch::try_new(batch.schema(), columns).unwrap()
}

struct Merged {
    report: MergeReport,
    files: Vec<Bytes>,
}

/// How files are merged.
#[derive(Debug, Clone, Copy)]
struct How {
    fast: bool,
    memory_bytes: u64,
    /// Read in the background, as from a storage account.
    far: bool,
}

/// Memory in which every reader stays open.
const PLENTY: u64 = 1 << 30;
const FAST: How = How { fast: true, memory_bytes: PLENTY, far: false };
const GENERIC: How = How { fast: false, ..FAST };

fn merged(files: &[(Bytes, u64)], schema: &SchemaRef, order: &RowOrder, settings: &WriterSettings, how: How) -> Merged {
    try_merged(files, schema, order, settings, how).unwrap()
}

/// With no more memory than the leanest layout takes: readers are opened anew in every window.
fn merged_lean(
    files: &[(Bytes, u64)],
    schema: &SchemaRef,
    order: &RowOrder,
    settings: &WriterSettings,
    how: How,
) -> Merged {
    match try_merged(files, schema, order, settings, How { memory_bytes: 0, ..how }) {
        Err(MergeError::OverBudget { needed_bytes, .. }) => {
            try_merged(files, schema, order, settings, How { memory_bytes: needed_bytes, ..how }).unwrap()
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a merge without memory"),
    }
}

fn try_merged(
    files: &[(Bytes, u64)],
    schema: &SchemaRef,
    order: &RowOrder,
    settings: &WriterSettings,
    how: How,
) -> Result<Merged, MergeError> {
    let input = |(at, (bytes, rows)): (usize, &(Bytes, u64))| {
        let source = MemoryFile::new(format!("file-{at}"), bytes.clone());
        let file = match how.far {
            true => InputFile::open_holding(Arc::new(FarFile::new(source)), schema, None, 0)?,
            false => InputFile::open(Arc::new(source), schema, None)?,
        };
        Ok(MergeInput::of_table(file, 1 + at as i64, at as u32, *rows))
    };
    let request = MergeRequest {
        inputs: files.iter().enumerate().map(input).collect::<Result<_, ColumnarError>>()?,
        schema: Arc::clone(schema),
        order: order.clone(),
        settings: settings.clone(),
        target_bytes: 1 << 30,
        min_file_bytes: 0,
        memory_bytes: how.memory_bytes,
        upload_bytes: 0,
        threads: 2,
        limits: EngineLimits { fast_path: how.fast, ..EngineLimits::default() },
        stop: StopFlag::default(),
    };
    let mut outputs = MemoryOutputs::default();
    let report = merge(&request, &mut outputs)?;
    let files = std::mem::take(&mut *outputs.closed.lock().unwrap());
    Ok(Merged { report, files: files.into_iter().map(Bytes::from).collect() })
}

fn read(bytes: &Bytes, schema: &SchemaRef) -> RecordBatch {
    let file = InputFile::open(Arc::new(MemoryFile::new("output", bytes.clone())), schema, None).unwrap();
    let columns = (0..schema.fields().len()).map(|column| {
        let mut cursor = file.cursor(column, BatchLimit::default()).unwrap();
        let mut parts = Vec::new();
        while let Some(part) = cursor.next(usize::MAX).unwrap() {
            parts.push(part);
        }
        concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap()
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect()).unwrap()
}

/// Without what depends on encodings.
fn comparable(metrics: &FileMetrics) -> FileMetrics {
    FileMetrics { column_sizes: HashMap::new(), split_offsets: Vec::new(), ..metrics.clone() }
}

/// Chunks that the fast path wrote have a sorted dictionary, which the generic way never writes.
fn sorted_dictionaries(bytes: &Bytes) -> usize {
    let reader = SerializedFileReader::new(bytes.clone()).unwrap();
    let mut found = 0;
    for group in 0..reader.metadata().num_row_groups() {
        let group = reader.get_row_group(group).unwrap();
        for column in 0..group.num_columns() {
            let mut pages = group.get_column_page_reader(column).unwrap();
            if let Some(Page::DictionaryPage { is_sorted: true, .. }) = pages.get_next_page().unwrap() {
                found += 1;
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn both_ways_give_the_same(
        seed in any::<u64>(),
        layouts in prop::collection::vec((layout(), 0..200usize), 1..5),
        distinct in prop::sample::select(vec![1, 3, 50, 100_000]),
        ids in 1..400i64,
        dedup in any::<bool>(),
        ordered in any::<bool>(),
        window_rows in 1..300usize,
        page_rows in 1..60usize,
        codec in prop::sample::select(vec![Codec::Zstd(3), Codec::Snappy, Codec::Gzip(6), Codec::Lz4, Codec::Uncompressed]),
        modern in any::<bool>(),
        dictionary_bytes in prop::sample::select(vec![0, 100, 1 << 20]),
        lean in any::<bool>(),
        far in any::<bool>(),
    ) {
        let schema: SchemaRef = Arc::new(every_type());
        let mut random = Random(seed);
        let batches: Vec<RecordBatch> =
            layouts.iter().map(|(_, count)| rows(&mut random, *count, distinct, ids)).collect();
        let files: Vec<(Bytes, u64)> = layouts
            .iter()
            .zip(&batches)
            .map(|((layout, _), batch)| (layout.write(batch), batch.num_rows() as u64))
            .collect();
        let order = match ordered {
            true => RowOrder {
                columns: vec![column(1, "id", (false, true))],
                dedup_columns: dedup.then_some(1),
                ..RowOrder::default()
            },
            false => RowOrder::default(),
        };
        let settings = WriterSettings {
            compression: codec,
            max_row_group_rows: window_rows,
            page_rows,
            dictionary_bytes,
            encodings: if modern { Encodings::Modern } else { Encodings::Compatible },
            ..WriterSettings::default()
        };
        let generic = merged(&files, &schema, &order, &settings, How { far: far && lean, ..GENERIC });
        let how = How { far, ..FAST };
        let fast = match lean {
            true => merged_lean(&files, &schema, &order, &settings, how),
            false => merged(&files, &schema, &order, &settings, how),
        };
        prop_assert_eq!(fast.files.len(), generic.files.len());
        for (at, (fast, generic)) in fast.files.iter().zip(&generic.files).enumerate() {
            // Arrays are compared by their bits: every NaN and both zeros count.
            for (fast, generic) in read(fast, &schema).columns().iter().zip(read(generic, &schema).columns()) {
                prop_assert_eq!(fast, generic, "file {}", at);
            }
        }
        let (fast, generic) = (fast.report, generic.report);
        prop_assert_eq!((fast.rows_in, fast.rows_out), (generic.rows_in, generic.rows_out));
        prop_assert_eq!((fast.sum_in, fast.sum_out, fast.sum_dropped), (generic.sum_in, generic.sum_out, generic.sum_dropped));
        prop_assert_eq!(&fast.input_sums, &generic.input_sums);
        for (fast, generic) in fast.outputs.iter().zip(&generic.outputs) {
            prop_assert_eq!(comparable(&fast.finished.metrics), comparable(&generic.finished.metrics));
            prop_assert_eq!((fast.row_sum, &fast.key_range), (generic.row_sum, &generic.key_range));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Bytes come from anyone: whatever they are, the answer is rows or an error.
    #[test]
    fn damage_never_panics(
        layout in layout(),
        damage in prop::collection::vec((0.0..1.0f64, any::<u8>()), 1..8),
        distinct in prop::sample::select(vec![1, 50, 100_000]),
    ) {
        let schema: SchemaRef = Arc::new(every_type());
        let mut bytes = layout.write(&every_type_rows(120, distinct)).to_vec();
        // Pages, not the footer, which has tests of its own.
        let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
        let pages = bytes.len() - 8 - footer;
        for (place, value) in damage {
            bytes[4 + ((pages - 4) as f64 * place) as usize] = value;
        }
        let files = vec![(Bytes::from(bytes), 120)];
        let _ = try_merged(&files, &schema, &RowOrder::default(), &WriterSettings::default(), FAST);
    }
}

struct Unproved;

impl HashSink for Unproved {
    fn came_in(&self, _input: usize, _first_row: u64, _hashes: RowHashes<'_>) -> Result<(), ColumnarError> {
        Ok(())
    }

    fn went_out(&self, _from: usize, _hashes: RowHashes<'_>) -> Result<(), ColumnarError> {
        Ok(())
    }
}

/// With dedup nearly every window carries a row to the next: what it holds must not keep the numbers of all windows in memory.
#[test]
fn a_carried_value_outlives_the_numbers_of_its_window() {
    let schema: SchemaRef = Arc::new(every_type());
    let bytes = ordinary(100).write(&every_type_rows(40, 40));
    let file = InputFile::open(Arc::new(MemoryFile::new("file", bytes)), &schema, None).unwrap();
    let window = |runs: Vec<Run>, range: std::ops::Range<u64>| Window {
        rows: runs.iter().map(|run| u64::from(run.count)).sum(),
        runs,
        ranges: vec![range],
        ..Window::default()
    };
    let carried = Some(RowRef { input: 0, row: 9 });
    let first = Window { carried_out: carried, ..window(vec![Run { input: 0, first_row: 0, count: 9 }], 0..10) };
    let second = Window { carried_in: carried, ..window(vec![Run { input: 0, first_row: 9, count: 31 }], 10..40) };
    let whole = window(vec![Run { input: 0, first_row: 0, count: 40 }], 0..40);
    for (at, field) in schema.fields().iter().enumerate() {
        let column = || FastColumn::new(field, at, std::iter::once(&file), BatchLimit::default()).unwrap();
        let Some(mut straight) = column() else { continue };
        let mut scratch = Scratch::default();
        let values = |column: &mut FastColumn, window: &Window, scratch: &mut Scratch| -> Vec<Value> {
            let gathered = column.gather(window, true, scratch, &Unproved).unwrap();
            (0..gathered.rows.len()).map(|row| Value::of(&gathered.rows, row, column.pool()).unwrap()).collect()
        };
        let expected = values(&mut straight, &whole, &mut scratch);
        let mut column = column().unwrap();
        let mut found = values(&mut column, &first, &mut scratch);
        column.tidy(true);
        column.settle();
        assert_eq!(column.pool().len(), 0, "{}", field.name());
        found.extend(values(&mut column, &second, &mut scratch));
        assert_eq!(found, expected, "{}", field.name());
        // A window that is given up is read again, and the value is still there.
        column.tidy(true);
        column.go_back(&second);
        assert_eq!(values(&mut column, &second, &mut scratch), expected[9..], "{}", field.name());
    }
}

#[test]
fn the_fast_path_is_taken() {
    let schema: SchemaRef = Arc::new(every_type());
    let layout = ordinary(100);
    let batch = every_type_rows(400, 40);
    let ids = Int64Array::from_iter_values(0..400);
    let mut columns = batch.columns().to_vec();
    columns[0] = Arc::new(ids);
    let batch = RecordBatch::try_new(batch.schema(), columns).unwrap();
    let files = vec![(layout.write(&batch), 400), (layout.write(&batch), 400)];
    let settings = WriterSettings::default();
    let merged = |how| merged(&files, &schema, &RowOrder::default(), &settings, how);
    // Integers, floats, dates, times, texts and bytes; not booleans, decimals, fixed or nested ones.
    let expected =
        every_type().fields().iter().filter(|field| super::kind::Kind::of(field.data_type()).is_some()).count();
    assert!(expected >= 12);
    assert_eq!(sorted_dictionaries(&merged(FAST).files[0]), expected);
    assert_eq!(sorted_dictionaries(&merged(GENERIC).files[0]), 0);
}

/// Both ways write the bloom filters that are asked for: every value is found, and most others are not.
#[test]
fn bloom_filters_hold_every_value() {
    use parquet::file::properties::ReaderProperties;
    use parquet::file::serialized_reader::ReadOptionsBuilder;

    let schema: SchemaRef = Arc::new(every_type());
    let files = vec![(ordinary(64).write(&every_type_rows(600, 500)), 600)];
    let kinds = [Kind::I32, Kind::I64, Kind::F64, Kind::Text];
    let named: Vec<(String, usize)> = schema
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| Kind::of(field.data_type()).is_some_and(|kind| kinds.contains(&kind)))
        .map(|(at, field)| (field.name().clone(), at))
        .collect();
    assert!(named.len() >= kinds.len(), "{named:?}");
    let columns: BTreeMap<String, f64> = named.iter().map(|(name, _)| (name.clone(), 0.01)).collect();
    for (how, dictionary_bytes) in [(FAST, 1 << 20), (FAST, 0), (GENERIC, 1 << 20)] {
        let bloom_filters = BloomFilters { columns: BTreeMap::clone(&columns), ..BloomFilters::default() };
        let settings = WriterSettings { bloom_filters, dictionary_bytes, ..WriterSettings::default() };
        let written = merged(&files, &schema, &RowOrder::default(), &settings, how).files.remove(0);
        let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
        let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
        let reader = SerializedFileReader::new_with_options(written.clone(), options).unwrap();
        let group = reader.get_row_group(0).unwrap();
        let rows = read(&written, &schema);
        for (name, at) in &named {
            let filter = group.get_column_bloom_filter(*at).unwrap_or_else(|| panic!("{name} has no filter"));
            let values = rows.column(*at);
            let held = (0..values.len()).filter(|row| values.is_valid(*row)).all(|row| match values.data_type() {
                DataType::Utf8 => filter.check(values.as_string::<i32>().value(row)),
                DataType::LargeUtf8 => filter.check(values.as_string::<i64>().value(row)),
                _ => filter.check(stored(values, row).as_slice()),
            });
            assert!(held, "{name}, {how:?}");
            let in_vain =
                (0..1000_u64).filter(|other| filter.check(&[other.to_le_bytes(), [7; 8]].concat()[..])).count();
            assert!(in_vain < 100, "{name}: {in_vain} of 1000 values that are not there, {how:?}");
        }
        let without = (0..schema.fields().len()).filter(|at| !named.iter().any(|(_, asked)| asked == at));
        assert!(without.filter_map(|at| group.get_column_bloom_filter(at)).next().is_none());
    }
}

/// The bytes of a number as Parquet stores it.
fn stored(values: &ArrayRef, row: usize) -> Vec<u8> {
    let data = values.to_data();
    let width = values.data_type().primitive_width().unwrap();
    let at = (data.offset() + row) * width;
    data.buffers()[0].as_slice()[at..at + width].to_vec()
}

/// What a reader prunes by: each page's rows lie within the bounds that the column index gives, and nulls are counted.
#[test]
fn page_indexes_tell_the_truth() {
    use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
    use parquet::file::metadata::PageIndexPolicy;

    let schema: SchemaRef = Arc::new(every_type());
    let batch = every_type_rows(600, 500);
    let layout = ordinary(64);
    for encodings in [Encodings::Compatible, Encodings::Modern] {
        let settings = WriterSettings { page_rows: 50, encodings, ..WriterSettings::default() };
        let files = vec![(layout.write(&batch), 600)];
        let fast = merged(&files, &schema, &RowOrder::default(), &settings, FAST);
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(fast.files[0].clone(), options).unwrap();
        let metadata = Arc::clone(reader.metadata());
        let (columns, offsets) = (metadata.column_index().unwrap(), metadata.offset_index().unwrap());
        let whole = read(&fast.files[0], &schema);
        for (at, field) in schema.fields().iter().enumerate().take(20) {
            if super::kind::Kind::of(field.data_type()).is_none() {
                continue;
            }
            let pages = offsets[0][at].page_locations();
            assert!(pages.len() >= 12, "{}: {} pages", field.name(), pages.len());
            let generic = merged(&files, &schema, &RowOrder::default(), &settings, GENERIC);
            let reader = SerializedFileReader::new(generic.files[0].clone()).unwrap();
            let theirs = reader.metadata().row_group(0).column(at).statistics().cloned();
            let ours = metadata.row_group(0).column(at).statistics().cloned();
            assert_eq!(ours, theirs, "statistics of {}", field.name());
            for (page, location) in pages.iter().enumerate() {
                let start = location.first_row_index as usize;
                let end = pages.get(page + 1).map_or(600, |next| next.first_row_index as usize);
                let part = whole.column(at).slice(start, end - start);
                if let Some(nulls) = columns[0][at].null_counts() {
                    assert_eq!(nulls[page] as usize, part.null_count(), "{} page {page}", field.name());
                }
            }
        }
        let reread = reader.build().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(concat_batches(&reread[0].schema(), &reread).unwrap().num_rows(), 600);
    }
}
