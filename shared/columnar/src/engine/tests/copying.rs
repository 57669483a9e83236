//! Row groups that are copied, and each reason why one is not.

use std::ops::Range;

use arrow_array::{RecordBatch, new_null_array};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnPath;

use super::*;
use crate::footer::chunk_range;
use crate::writer::{BloomFilters, Codec};

/// Files of 48 rows in row groups of 16, whose keys follow each other.
fn following(files: i64) -> Case {
    let rows = |file: i64| (0..48).map(|at| row("s", (file * 48 + at) as f64, file * 100 + at)).collect();
    Case {
        files: (0..files).map(|file| TestFile { rows: rows(file), sequence: file + 1 }).collect(),
        limits: EngineLimits { copy_least_bytes: 1, ..EngineLimits::default() },
        window_rows: 16,
        ..alternating(1)
    }
}

fn copied(case: &Case) -> u64 {
    let merged = case.merge().unwrap();
    case.check_merged(&merged);
    check_arrow_reads(case, &merged.1);
    merged.0.merge.row_groups_copied
}

/// What arrow-rs reads, page index and all, is what is right.
pub(super) fn check_arrow_reads(case: &Case, files: &[Vec<u8>]) {
    let read = files.iter().flat_map(|file| {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let bytes = Bytes::copy_from_slice(file);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options).unwrap().build().unwrap();
        reader.map(Result::unwrap)
    });
    let read: Vec<RecordBatch> = read.map(|batch| batch.with_schema(schema()).unwrap()).collect();
    assert_eq!(concat_batches(&schema(), &read).unwrap(), case.expected());
}

/// The table's metadata says of copied row groups what it says of others. NaN are counted where the source's footer tells them.
pub(super) fn check_equal_metrics(copied: &MergeReport, decoded: &MergeReport, claims: bool) {
    // Files may end elsewhere: row groups of the source are of another size than windows.
    let (Some(one), Some(other)) = (only(&copied.outputs), only(&decoded.outputs)) else { return };
    let (one, other) = (&one.finished.metrics, &other.finished.metrics);
    assert_eq!(one.value_counts, other.value_counts);
    assert_eq!(one.null_counts, other.null_counts);
    let told = claims || copied.row_groups_copied == 0;
    let (mut lower, mut upper) = (other.lower.clone(), other.upper.clone());
    if !told {
        lower.remove(&2);
        upper.remove(&2);
    }
    assert_eq!((&one.lower, &one.upper), (&lower, &upper));
    assert_eq!(one.nan_counts, if told { other.nan_counts.clone() } else { HashMap::new() });
}

fn only(files: &[MergedFile]) -> Option<&MergedFile> {
    if let [file] = files { Some(file) } else { None }
}

fn metadata(bytes: &[u8]) -> ParquetMetaData {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    reader.parse_and_finish(&Bytes::copy_from_slice(bytes)).unwrap()
}

fn chunk(metadata: &ParquetMetaData, group: usize, leaf: usize) -> Range<usize> {
    let range = chunk_range(metadata.row_group(group).column(leaf)).unwrap();
    range.start as usize..range.end as usize
}

#[test]
fn chunks_statistics_and_page_indexes_are_those_of_the_inputs() {
    for claims in [false, true] {
        let case = Case { claims, ..following(2) };
        let (report, files) = case.merge().unwrap();
        let inputs: Vec<Bytes> =
            case.files.iter().map(|file| write_with(&file.rows, 16, &WriterSettings::default(), claims)).collect();
        let [output] = files.as_slice() else { panic!("one output") };
        let (to, from) = (metadata(output), inputs.iter().map(|input| metadata(input)).collect::<Vec<_>>());
        let mut bytes = 0;
        for (group, row_group) in to.row_groups().iter().enumerate() {
            let (input, source) = (group / 3, group % 3);
            for (leaf, column) in row_group.columns().iter().enumerate() {
                let (here, there) = (chunk(&to, group, leaf), chunk(&from[input], source, leaf));
                assert_eq!(output[here.clone()], inputs[input][there.clone()]);
                bytes += here.len() as u64;
                let original = from[input].row_group(source).column(leaf);
                assert_eq!(column.statistics(), original.statistics());
                assert_eq!(column.num_values(), original.num_values());
                assert_eq!(column.encodings_mask(), original.encodings_mask());
                let index =
                    |metadata: &ParquetMetaData, group: usize| metadata.column_index().unwrap()[group][leaf].clone();
                assert_eq!(index(&to, group), index(&from[input], source));
                assert!(!matches!(index(&to, group), ColumnIndexMetaData::NONE));
                let places = |metadata: &ParquetMetaData, group: usize, start: usize| {
                    let spots = &metadata.offset_index().unwrap()[group][leaf].page_locations;
                    spots
                        .iter()
                        .map(|spot| (spot.offset - start as i64, spot.compressed_page_size, spot.first_row_index))
                        .collect::<Vec<_>>()
                };
                assert_eq!(places(&to, group, here.start), places(&from[input], source, there.start));
            }
        }
        let merge = &report.merge;
        assert_eq!((merge.row_groups_copied, merge.bytes_copied), (6, bytes));
        assert_eq!(merge.rows_by_bytes, if claims { 0 } else { 96 });
        let proofs = &merge.outputs[0].groups;
        assert!(proofs.iter().all(|proof| matches!(proof, GroupProof::Rows(_)) == claims));
        let decoded = Case { limits: EngineLimits { copy: false, ..case.limits }, ..case.clone() }.merge().unwrap();
        check_equal_metrics(merge, &decoded.0.merge, claims);
        case.check_merged(&(report, files));
    }
}

#[test]
fn an_output_is_copied_again_with_its_sums() {
    let case = Case { claims: true, ..following(3) };
    let (_, files) = case.merge().unwrap();
    let all = TestFile { rows: case.files.iter().flat_map(|file| file.rows.clone()).collect(), sequence: 3 };
    let mut request = case.request();
    request.inputs = vec![input_of(0, &all, files[0].clone().into())];
    let (report, _) = merge_in_memory(request).unwrap();
    assert_eq!((report.merge.row_groups_copied, report.merge.rows_by_bytes), (9, 0));
    assert_eq!(report.merge.sum_out, row_sum(&case.expected()));
    assert_eq!(report.merge.outputs[0].row_sum, Some(row_sum(&case.expected())));
    assert_eq!(report.merge.outputs[0].finished.metrics.nan_counts, [(2, 0)].into());
}

#[test]
fn nothing_is_copied_when_it_is_switched_off() {
    let mut case = following(2);
    assert_eq!(copied(&case), 6);
    case.limits.copy = false;
    assert_eq!(copied(&case), 0);
}

#[test]
fn a_row_of_another_input_makes_its_row_group_decoded() {
    let mut case = following(2);
    // Between rows 19 and 20 of the first file, that is in its second row group; the file of one row is no row group of its own.
    case.files.push(TestFile { rows: vec![row("s", 19.5, 999)], sequence: 9 });
    assert_eq!(copied(&case), 5);
    // Between two row groups it stands in nobody's way.
    case.files[2].rows = vec![row("s", 15.5, 999)];
    assert_eq!(copied(&case), 6);
}

#[test]
fn an_equal_key_is_a_doubt_with_dedup_only() {
    // The last key of the first file again as the first of the second.
    let mut case = following(2);
    case.files[1].rows[0].x = Some(47.0);
    assert_eq!(copied(&case), 4, "both row groups at the border are decoded");
    case.order = simple_order(false);
    assert_eq!(copied(&case), 6, "the earlier file goes first");

    // Twice in one row group, and over the border of two.
    for (at, left) in [(20, 5), (16, 4)] {
        let mut case = following(2);
        case.files[0].rows[at].x = Some(at as f64 - 1.0);
        assert_eq!(copied(&case), left);
        case.order = simple_order(false);
        assert_eq!(copied(&case), 6);
    }
}

#[test]
fn without_an_order_whole_files_are_copied() {
    let case = Case { order: RowOrder::default(), ..following(3) };
    assert_eq!(copied(&case), 9);
}

#[test]
fn small_row_groups_are_joined() {
    let mut case = Case { window_rows: 33, ..following(2) };
    assert_eq!(copied(&case), 0, "16 rows are less than half of a row group");
    case.window_rows = 32;
    assert_eq!(copied(&case), 6);
    case.limits.copy_least_bytes = 8 << 20;
    assert_eq!(copied(&case), 0, "whatever the rows, 8 MB are the least");
    case.limits = EngineLimits { copy_most_bytes: 100, copy_least_bytes: 1, ..case.limits };
    assert_eq!(copied(&case), 0, "more than sidecars have memory for");
}

#[test]
fn temporary_files_are_not_copied() {
    let mut case = following(4);
    case.limits.fan_in = 2;
    assert_eq!(copied(&case), 0);
    case.files[2].rows.swap(3, 4);
    case.limits.fan_in = usize::MAX;
    assert_eq!(copied(&case), 9, "the file that was sorted is decoded");
}

/// Copies of a merge of `case` whose first file is replaced by `bytes`, with these settings.
fn copied_with(case: &Case, bytes: Bytes, settings: WriterSettings) -> (u64, Vec<Vec<u8>>) {
    let mut request = case.request();
    request.settings = WriterSettings { max_row_group_rows: case.window_rows, ..settings };
    request.inputs[0] = input_of(0, &case.files[0], bytes);
    let merged = merge_in_memory(request).unwrap();
    let copied = merged.0.merge.row_groups_copied;
    case.check_merged(&merged);
    (copied, merged.1)
}

/// The rows of a file as arrow-rs writes them.
fn by_arrow(batch: &RecordBatch, more: impl FnOnce(WriterPropertiesBuilder) -> WriterPropertiesBuilder) -> Bytes {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_max_row_group_row_count(Some(16))
        .set_statistics_enabled(EnabledStatistics::Page);
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(more(properties).build())).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap().into()
}

fn settings() -> WriterSettings {
    WriterSettings::default()
}

#[test]
fn files_of_other_writers_are_copied_too() {
    let case = following(2);
    let rows = batch(&case.files[0].rows);
    let (copied, files) = copied_with(&case, by_arrow(&rows, |more| more), settings());
    assert_eq!(copied, 6);
    check_arrow_reads(&case, &files);
}

#[test]
fn a_codec_that_the_table_does_not_want_is_decoded() {
    let case = following(2);
    let snappy =
        |codec| write_with(&case.files[0].rows, 16, &WriterSettings { compression: codec, ..settings() }, false);
    assert_eq!(copied_with(&case, snappy(Codec::Snappy), settings()).0, 3);
    // The other file is compressed by zstd.
    let wanted = WriterSettings { compression: Codec::Snappy, ..settings() };
    assert_eq!(copied_with(&case, snappy(Codec::Snappy), wanted).0, 3);
    assert_eq!(copied_with(&case, snappy(Codec::Zstd(9)), settings()).0, 6, "levels are not told");
    let plain = by_arrow(&batch(&case.files[0].rows), |more| more.set_compression(Compression::UNCOMPRESSED));
    assert_eq!(copied_with(&case, plain, settings()).0, 3);
    assert_eq!(copied_with(&case, snappy(Codec::Uncompressed), settings()).0, 6, "Firn knew that it gains nothing");
}

#[test]
fn an_encoding_that_readers_may_not_know_is_decoded() {
    let case = following(2);
    let delta = by_arrow(&batch(&case.files[0].rows), |more| {
        let column = ColumnPath::from("identity");
        more.set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
    });
    assert_eq!(copied_with(&case, delta.clone(), settings()).0, 3);
    let modern = WriterSettings { encodings: crate::writer::Encodings::Modern, ..settings() };
    assert_eq!(copied_with(&case, delta, modern).0, 6);
}

#[test]
fn row_groups_without_statistics_are_decoded() {
    let case = following(2);
    let without = by_arrow(&batch(&case.files[0].rows), |more| {
        more.set_column_statistics_enabled(ColumnPath::from("price"), EnabledStatistics::None)
    });
    assert_eq!(copied_with(&case, without, settings()).0, 3);
}

#[test]
fn a_bloom_filter_is_made_of_the_values_again() {
    let case = following(2);
    let columns = [("identity".to_owned(), 0.01)].into();
    let wanted = WriterSettings { bloom_filters: BloomFilters { columns, ..Default::default() }, ..settings() };
    let with = write_with(&case.files[0].rows, 16, &wanted, false);
    let (copied, files) = copied_with(&case, with, wanted);
    assert_eq!(copied, 0, "neither what has one nor what lacks one is copied");
    let reader = SerializedFileReader::new_with_options(
        Bytes::copy_from_slice(&files[0]),
        parquet::file::serialized_reader::ReadOptionsBuilder::new()
            .with_reader_properties(
                parquet::file::properties::ReaderProperties::builder().set_read_bloom_filter(true).build(),
            )
            .build(),
    )
    .unwrap();
    let leaf = reader.metadata().file_metadata().schema_descr().num_columns() - 1;
    let mut row = 0;
    for group in 0..reader.num_row_groups() {
        let row_group = reader.get_row_group(group).unwrap();
        let filter = row_group.get_column_bloom_filter(leaf).expect("a filter in every row group");
        let rows = row_group.metadata().num_rows() as usize;
        let present = identities(&case.expected())[row..row + rows].to_vec();
        assert!(present.iter().all(|identity| filter.check(identity)));
        assert!((10_000..10_100).filter(|identity: &i64| filter.check(identity)).count() < 20);
        row += rows;
    }
    assert_eq!(row, 96);
}

/// The first file of `case` with another schema.
fn reshaped(case: &Case, change: impl Fn(usize, Field) -> Option<Field>) -> Bytes {
    let rows = batch(&case.files[0].rows);
    let all = schema();
    let kept = all.fields().iter().enumerate().filter_map(|(at, field)| {
        let field = change(at, field.as_ref().clone())?;
        let column = cast(rows.column(at), field.data_type()).unwrap();
        Some((Arc::new(field), column))
    });
    let (fields, columns): (Vec<_>, Vec<_>) = kept.unzip();
    let schema = Arc::new(Schema::new(fields));
    let rows = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let mut writer = FileWriter::new("reshaped", &schema, &settings(), Vec::new()).unwrap();
    for start in (0..rows.num_rows()).step_by(16) {
        writer.write_row_group(&rows.slice(start, 16)).unwrap();
    }
    writer.finish(&[]).unwrap().1.into()
}

#[test]
fn columns_that_are_not_the_output_s_are_decoded() {
    let case = following(2);
    let same = reshaped(&case, |_, field| Some(field));
    assert_eq!(copied_with(&case, same, settings()).0, 6);
    let renamed = reshaped(&case, |at, field| Some(if at == 7 { field.with_name("old") } else { field }));
    assert_eq!(copied_with(&case, renamed, settings()).0, 3, "renamed");
    let promoted =
        reshaped(&case, |at, field| Some(if at == 7 { field.with_data_type(DataType::Int32) } else { field }));
    assert_eq!(copied_with(&case, promoted, settings()).0, 3, "promoted");
    let required = reshaped(&case, |at, field| Some(field.with_nullable(at != 7)));
    assert_eq!(copied_with(&case, required, settings()).0, 3, "required there, optional here");
}

#[test]
fn a_column_that_was_added_since_is_decoded() {
    let case = following(2);
    let mut request = case.request();
    let without = reshaped(&case, |at, field| (at != 0).then_some(field));
    request.inputs[0] = input_of(0, &case.files[0], without);
    let (report, files) = merge_in_memory(request).unwrap();
    assert_eq!(report.merge.row_groups_copied, 3);
    let expected = case.expected();
    let written = read_back(&files[0]);
    assert_eq!(written.columns()[1..], expected.columns()[1..]);
    assert_eq!(written.column(0).slice(0, 48).as_ref(), new_null_array(&DataType::Utf8, 48).as_ref());
    assert_eq!(written.column(0).slice(48, 48).as_ref(), expected.column(0).slice(48, 48).as_ref());
}

#[test]
fn a_column_that_was_dropped_is_left_behind_with_the_sums() {
    // The file has one column more than the table; its sums are with it.
    let case = Case { claims: true, ..following(1) };
    let rows = batch(&case.files[0].rows);
    let extra = Field::new("gone", DataType::Int64, true)
        .with_metadata([(PARQUET_FIELD_ID_META_KEY.to_owned(), "99".to_owned())].into());
    let fields: Vec<_> = schema().fields().iter().cloned().chain([Arc::new(extra)]).collect();
    let wider = Arc::new(Schema::new(fields));
    let columns = rows.columns().iter().cloned().chain([rows.column(7).clone()]).collect();
    let rows = RecordBatch::try_new(Arc::clone(&wider), columns).unwrap();
    let mut writer = FileWriter::new("wider", &wider, &settings(), Vec::new()).unwrap();
    for start in (0..48).step_by(16) {
        writer.write_row_group(&rows.slice(start, 16)).unwrap();
    }
    let sums = sums_entry([Some(RowSum(1)); 3].into_iter());
    let bytes = writer.finish(&[sums]).unwrap().1.into();
    let mut request = case.request();
    request.inputs[0] = input_of(0, &case.files[0], bytes);
    let merged = merge_in_memory(request).unwrap();
    assert_eq!((merged.0.merge.row_groups_copied, merged.0.merge.rows_by_bytes), (3, 48));
    case.check_merged(&merged);
}

#[test]
fn without_a_page_index_flat_columns_get_offsets_and_nested_ones_are_decoded() {
    let case = following(2);
    let rows = batch(&case.files[0].rows);
    let bare = |more: WriterPropertiesBuilder| {
        more.set_statistics_enabled(EnabledStatistics::Chunk).set_offset_index_disabled(true)
    };
    assert_eq!(copied_with(&case, by_arrow(&rows, bare), settings()).0, 3);

    let flat = Arc::new(schema().project(&[1, 2, 7]).unwrap());
    let rows = rows.project(&[1, 2, 7]).unwrap();
    let bytes = by_arrow(&rows, |more| bare(more).set_data_page_row_count_limit(4).set_write_batch_size(4));
    let source = Arc::new(MemoryFile::new("flat", bytes));
    let opened = InputFile::open(source, &flat, None).unwrap();
    let request = MergeRequest {
        inputs: vec![MergeInput::of_table(opened, 1, 0, 48)],
        schema: Arc::clone(&flat),
        ..case.request()
    };
    let mut outputs = FlatOutputs::default();
    let report = merge(&request, &mut outputs).unwrap();
    assert_eq!(report.row_groups_copied, 3);
    let written = outputs.0.lock().unwrap().clone();
    let read = metadata(&written);
    for group in &read.offset_index().unwrap()[..] {
        for leaf in group {
            let rows: Vec<i64> = leaf.page_locations.iter().map(|spot| spot.first_row_index).collect();
            assert_eq!(rows, [0, 4, 8, 12]);
        }
    }
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(written), options).unwrap();
    let read: Vec<RecordBatch> =
        reader.build().unwrap().map(|batch| batch.unwrap().with_schema(flat.clone()).unwrap()).collect();
    assert_eq!(concat_batches(&flat, &read).unwrap(), rows);
}

/// One output without a tap.
#[derive(Default)]
struct FlatOutputs(Arc<Mutex<Vec<u8>>>);

impl OutputFactory for FlatOutputs {
    fn create(&mut self) -> Result<Box<dyn OutputSink>, ColumnarError> {
        Ok(Box::new(FlatSink(Arc::clone(&self.0))))
    }

    fn restart(&mut self) -> Result<(), ColumnarError> {
        Ok(())
    }
}

struct FlatSink(Arc<Mutex<Vec<u8>>>);

impl Write for FlatSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OutputSink for FlatSink {
    fn name(&self) -> &str {
        "flat"
    }

    fn close(self: Box<Self>) -> Result<(), ColumnarError> {
        Ok(())
    }
}

#[test]
fn nan_are_counted_only_where_the_footer_tells_them() {
    let mut case = following(1);
    case.files[0].rows[47].x = Some(f64::NAN);
    let file = |claims| write_with(&case.files[0].rows, 16, &settings(), claims);
    let nans = |bytes: Bytes| {
        let mut request = case.request();
        request.inputs[0] = input_of(0, &case.files[0], bytes);
        let (report, _) = merge_in_memory(request).unwrap();
        assert_eq!(report.merge.row_groups_copied, 3);
        let metrics = &report.merge.outputs[0].finished.metrics;
        let bound =
            |bounds: &HashMap<i32, Vec<u8>>| Some(f64::from_le_bytes(bounds.get(&2)?.clone().try_into().unwrap()));
        (metrics.nan_counts.get(&2).copied(), bound(&metrics.lower), bound(&metrics.upper))
    };
    let unknown = (None, None, None);
    assert_eq!(nans(file(true)), (Some(1), Some(-0.0), Some(46.0)));
    assert_eq!(nans(file(false)), unknown);
    // A program that carries Firn's entries over to a file of its own says nothing of it.
    let foreign = by_arrow(&batch(&case.files[0].rows), |more| {
        let (key, _) = sums_entry(std::iter::empty());
        let entry = |key: &str, value: &str| parquet::file::metadata::KeyValue::new(key.to_owned(), value.to_owned());
        let nans = crate::copy::group_claims::GROUP_NANS;
        more.set_key_value_metadata(Some(vec![entry(nans, ";;"), entry(&key, "1:-,-,-")]))
    });
    assert_eq!(nans(foreign), unknown);
}

#[test]
fn a_damaged_chunk_is_named_and_not_copied() {
    let case = following(1);
    let bytes = write_file(&case.files[0].rows, 16);
    let damaged = chunk(&metadata(&bytes), 1, 0);
    let mut bytes = bytes.to_vec();
    bytes[damaged.start] = 0xff;
    let mut request = case.request();
    request.inputs[0] = input_of(0, &case.files[0], bytes.into());
    let error = merge_in_memory(request).unwrap_err();
    let MergeError::Columnar(ColumnarError::Corrupt { file, row_group, column, .. }) = &error else {
        panic!("{error}")
    };
    assert_eq!((file.as_str(), *row_group, column.as_deref()), ("file-0", Some(1), Some("text")));
}

#[test]
fn rereading_finds_copied_rows_that_are_not_what_was_claimed() {
    // By bytes.
    let case = following(1);
    let (report, files) = case.merge().unwrap();
    let written = &report.merge.outputs[0];
    verify_file(&open(&files[0]), written, &schema(), &case.order).unwrap();
    let mut other = written.clone();
    let GroupProof::Bytes { crc } = &mut other.groups[1] else { panic!("by bytes") };
    *crc ^= 1;
    let error = verify_file(&open(&files[0]), &other, &schema(), &case.order).unwrap_err();
    assert!(error.to_string().contains("row group 1 has CRC"), "{error}");

    // By a sum that the source's footer claims and that is none of its rows.
    let mut writer = FileWriter::new("liar", &schema(), &settings(), Vec::new()).unwrap();
    writer.write_row_group(&batch(&case.files[0].rows)).unwrap();
    let bytes = writer.finish(&[sums_entry([Some(RowSum(3))].into_iter())]).unwrap().1;
    let mut request = case.request();
    request.inputs[0] = input_of(0, &case.files[0], bytes.into());
    let (report, files) = merge_in_memory(request).unwrap();
    assert_eq!(report.merge.row_groups_copied, 1);
    let error = verify_file(&open(&files[0]), &report.merge.outputs[0], &schema(), &case.order).unwrap_err();
    assert!(error.to_string().contains("the rows of row group 0 sum up to"), "{error}");
}
