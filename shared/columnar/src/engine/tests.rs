//! The whole engine against a naive oracle: collect all rows, sort them, keep one row a key, compare with what was written.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use arrow_array::builder::{Int32Builder, ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use arrow_select::concat::{concat, concat_batches};
use arrow_select::interleave::interleave_record_batch;
use bytes::Bytes;
use firn_model::{OrderColumn, RowOrder};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::claims::FileClaims;
use crate::error::ColumnarError;
use crate::input::InputFile;
use crate::levels::{GroupReport, merge_group};
use crate::limits::BatchLimit;
use crate::proof::{RowHasher, RowSum, finish};
use crate::reread::verify_file;
use crate::source::MemoryFile;
use crate::temp::TempSpace;
use crate::writer::{FileWriter, WriterSettings};

fn field(id: i32, name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true).with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.into(), id.to_string())]))
}

fn struct_fields() -> Fields {
    let list = DataType::List(Arc::new(field(23, "element", DataType::Utf8)));
    vec![field(21, "x", DataType::Int32), field(22, "words", list)].into()
}

/// Two key columns and an insertion time, then payload of every shape.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        field(10, "text", DataType::Utf8),
        field(1, "name", DataType::Utf8),
        field(2, "x", DataType::Float64),
        field(3, "inserted", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        field(11, "price", DataType::Decimal128(20, 2)),
        field(20, "nested", DataType::Struct(struct_fields())),
        field(30, "numbers", DataType::List(Arc::new(field(31, "element", DataType::Int32)))),
        field(12, "identity", DataType::Int64),
    ]))
}

/// A row: its key, and a number that all its payload is made of.
#[derive(Debug, Clone)]
struct Row {
    name: Option<String>,
    x: Option<f64>,
    inserted: Option<i64>,
    identity: i64,
}

fn words(identity: i64) -> Vec<Option<String>> {
    (0..identity % 4).map(|at| (at != 1).then(|| format!("word {identity} {at}"))).collect()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let identities = || rows.iter().map(|row| row.identity);
    let mut lists = ListBuilder::new(StringBuilder::new()).with_field(field(23, "element", DataType::Utf8));
    let mut numbers = ListBuilder::new(Int32Builder::new()).with_field(field(31, "element", DataType::Int32));
    for identity in identities() {
        for word in words(identity) {
            lists.values().append_option(word);
        }
        lists.append(identity % 5 != 0);
        for number in 0..identity % 3 {
            numbers.values().append_value(number as i32 + identity as i32);
        }
        numbers.append(identity % 6 != 0);
    }
    let xs: Int32Array = identities().map(|identity| (identity % 2 == 0).then_some(identity as i32)).collect();
    let nulls = NullBuffer::from(identities().map(|identity| identity % 7 != 3).collect::<Vec<_>>());
    let nested = StructArray::new(struct_fields(), vec![Arc::new(xs), Arc::new(lists.finish())], Some(nulls));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(identities().map(|id| (id % 9 != 4).then(|| format!("text of {id}"))).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.name.clone()).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.x).collect::<Float64Array>()),
        Arc::new(rows.iter().map(|row| row.inserted).collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        Arc::new(
            identities()
                .map(|id| (id % 8 != 1).then_some(i128::from(id) * 1_000_003))
                .collect::<Decimal128Array>()
                .with_precision_and_scale(20, 2)
                .unwrap(),
        ),
        Arc::new(nested),
        Arc::new(numbers.finish()),
        Arc::new(identities().collect::<Vec<_>>().into_iter().collect::<Int64Array>()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn write_file(rows: &[Row], group_rows: usize) -> Bytes {
    let settings = WriterSettings { page_rows: 4, ..WriterSettings::default() };
    let mut writer = FileWriter::new("input", &schema(), &settings, Vec::new()).unwrap();
    for part in rows.chunks(group_rows) {
        writer.write_row_group(&batch(part)).unwrap();
    }
    writer.finish(&[]).unwrap().1.into()
}

#[derive(Debug, Clone)]
struct TestFile {
    rows: Vec<Row>,
    sequence: i64,
}

fn input(at: usize, file: &TestFile, group_rows: usize) -> MergeInput {
    let source = Arc::new(MemoryFile::new(format!("file-{at}"), write_file(&file.rows, group_rows)));
    let opened = InputFile::open(source, &schema(), None).unwrap();
    MergeInput::of_table(opened, file.sequence, at as u32, file.rows.len() as u64)
}

/// Outputs in memory. An output that was dropped without being closed leaves nothing.
#[derive(Default, Clone)]
struct MemoryOutputs {
    closed: Arc<Mutex<Vec<Vec<u8>>>>,
    created: Arc<Mutex<usize>>,
}

struct MemorySink {
    name: String,
    bytes: Vec<u8>,
    outputs: MemoryOutputs,
}

impl OutputFactory for MemoryOutputs {
    fn create(&mut self) -> Result<Box<dyn OutputSink>, ColumnarError> {
        *self.created.lock().unwrap() += 1;
        Ok(Box::new(MemorySink { name: "output".into(), bytes: Vec::new(), outputs: self.clone() }))
    }

    fn restart(&mut self) -> Result<(), ColumnarError> {
        self.closed.lock().unwrap().clear();
        Ok(())
    }
}

impl Write for MemorySink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OutputSink for MemorySink {
    fn name(&self) -> &str {
        &self.name
    }

    fn close(self: Box<Self>) -> Result<(), ColumnarError> {
        self.outputs.closed.lock().unwrap().push(self.bytes);
        Ok(())
    }
}

fn open(bytes: &[u8]) -> InputFile {
    let source = Arc::new(MemoryFile::new("output", Bytes::copy_from_slice(bytes)));
    InputFile::open(source, &schema(), None).unwrap()
}

fn read_back(bytes: &[u8]) -> RecordBatch {
    let file = open(bytes);
    let columns = (0..schema().fields().len()).map(|column| {
        let mut cursor = file.cursor(column, BatchLimit::default()).unwrap();
        let mut parts = Vec::new();
        while let Some(part) = cursor.next(usize::MAX).unwrap() {
            parts.push(part);
        }
        concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap()
    });
    RecordBatch::try_new(schema(), columns.collect()).unwrap()
}

fn compare_option<T>(
    column: &OrderColumn,
    left: Option<&T>,
    right: Option<&T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Ordering {
    match (left, right) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) if column.nulls_first => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => compare_option(column, right, left, compare).reverse(),
        (Some(left), Some(right)) if column.descending => compare(right, left),
        (Some(left), Some(right)) => compare(left, right),
    }
}

fn compare_column(column: &OrderColumn, left: &Row, right: &Row) -> Ordering {
    match column.field_id {
        1 => compare_option(column, left.name.as_ref(), right.name.as_ref(), String::cmp),
        // The test has one NaN of each sign, so IEEE's total order is the row order.
        2 => compare_option(column, left.x.as_ref(), right.x.as_ref(), f64::total_cmp),
        _ => compare_option(column, left.inserted.as_ref(), right.inserted.as_ref(), i64::cmp),
    }
}

fn compare_keys(columns: &[OrderColumn], left: &Row, right: &Row) -> Ordering {
    columns.iter().fold(Ordering::Equal, |order, column| order.then_with(|| compare_column(column, left, right)))
}

/// (file, row) of the expected output rows.
fn oracle(files: &[TestFile], order: &RowOrder) -> Vec<(usize, usize)> {
    let mut rows: Vec<(usize, usize)> = Vec::new();
    for (at, file) in files.iter().enumerate() {
        rows.extend((0..file.rows.len()).map(|row| (at, row)));
    }
    let row = |place: &(usize, usize)| &files[place.0].rows[place.1];
    let sequence = |place: &(usize, usize)| files[place.0].sequence;
    let place = |place: &(usize, usize)| (sequence(place), place.0, place.1);
    rows.sort_by(|a, b| compare_keys(&order.columns, row(a), row(b)).then_with(|| place(a).cmp(&place(b))));
    let Some(dedup) = order.dedup_columns else { return rows };
    let mut kept: Vec<(usize, usize)> = Vec::new();
    for next in rows {
        match kept.last_mut() {
            Some(last) if compare_keys(&order.columns[..dedup], row(last), row(&next)) == Ordering::Equal => {
                let age = |at: &(usize, usize)| {
                    let inserted = if order.columns.len() > dedup { row(at).inserted } else { None };
                    (sequence(at), inserted, at.0, at.1)
                };
                if age(last) < age(&next) {
                    *last = next;
                }
            }
            _ => kept.push(next),
        }
    }
    kept
}

fn column(field_id: i32, name: &str, (descending, nulls_first): (bool, bool)) -> OrderColumn {
    OrderColumn { field_id, name: name.into(), descending, nulls_first }
}

#[derive(Debug, Clone)]
struct Case {
    files: Vec<TestFile>,
    order: RowOrder,
    limits: EngineLimits,
    window_rows: usize,
    group_rows: usize,
    target_bytes: u64,
    threads: usize,
}

impl Case {
    fn request(&self) -> MergeRequest {
        MergeRequest {
            inputs: self.files.iter().enumerate().map(|(at, file)| input(at, file, self.group_rows)).collect(),
            schema: schema(),
            order: self.order.clone(),
            settings: WriterSettings { max_row_group_rows: self.window_rows, ..WriterSettings::default() },
            target_bytes: self.target_bytes,
            min_file_bytes: 0,
            memory_bytes: 1 << 30,
            upload_bytes: 0,
            threads: self.threads,
            limits: self.limits,
            stop: StopFlag::default(),
        }
    }

    fn merge(&self) -> Result<(GroupReport, Vec<Vec<u8>>), MergeError> {
        let root = tempfile::tempdir().unwrap();
        let temp = TempSpace::create(root.path(), 1 << 30).unwrap();
        let mut outputs = MemoryOutputs::default();
        let report = merge_group(self.request(), &temp, &mut outputs)?;
        assert_eq!(temp.used_bytes(), 0, "all temporary files are gone");
        let files = std::mem::take(&mut *outputs.closed.lock().unwrap());
        Ok((report, files))
    }

    fn expected(&self) -> RecordBatch {
        let batches: Vec<RecordBatch> = self.files.iter().map(|file| batch(&file.rows)).collect();
        let rows = oracle(&self.files, &self.order);
        interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &rows).unwrap()
    }

    fn check(&self) {
        let (report, files) = self.merge().unwrap();
        let expected = self.expected();
        let rows: Vec<RecordBatch> = files.iter().map(|file| read_back(file)).collect();
        let written = concat_batches(&schema(), &rows).unwrap();
        assert_eq!(identities(&written), identities(&expected));
        assert_eq!(written, expected);

        let total: usize = self.files.iter().map(|file| file.rows.len()).sum();
        let merge = &report.merge;
        assert_eq!(merge.rows_in, total as u64);
        assert_eq!(merge.rows_out, expected.num_rows() as u64);
        assert_eq!(merge.duplicates_dropped, (total - expected.num_rows()) as u64);
        assert_eq!(merge.sum_out, row_sum(&expected));
        let all: Vec<RecordBatch> = self.files.iter().map(|file| batch(&file.rows)).collect();
        assert_eq!(merge.sum_in, all.iter().map(row_sum).sum());
        assert_eq!(merge.outputs.len(), files.len());
        for (file, (bytes, rows)) in merge.outputs.iter().zip(files.iter().zip(&rows)) {
            assert_eq!((file.finished.bytes, file.finished.rows), (bytes.len() as u64, rows.num_rows() as u64));
            assert!(file.finished.rows > 0);
            assert_eq!(file.row_sum, row_sum(rows));
            assert_eq!(file.key_range.is_some(), !self.order.is_unordered());
            self.check_file(file, bytes);
        }
        for pair in merge.outputs.windows(2) {
            if let (Some(left), Some(right)) = (&pair[0].key_range, &pair[1].key_range) {
                assert!(left.first <= left.last);
                assert!(
                    left.before(right, self.order.dedup_columns.is_none()),
                    "files ascend; with dedup they share no key"
                );
            }
        }
    }
}

/// Claims and a second reading.
impl Case {
    fn check_file(&self, file: &MergedFile, bytes: &[u8]) {
        let opened = open(bytes);
        verify_file(&opened, file, &schema(), &self.order).unwrap();
        let claims = FileClaims::read(opened.metadata());
        assert_eq!(claims.unique, self.order.dedup_columns.is_some());
        assert_eq!(claims.is_sorted_by(&self.order), !self.order.is_unordered());
        assert_eq!(claims.row_sum, Some(file.row_sum));
        assert_eq!(claims.key_range, file.key_range);
        let claimed_names = claims.sort.unwrap_or_default();
        assert!(claimed_names.iter().eq(self.order.columns.iter().map(|column| &column.name)));
    }
}

fn identities(batch: &RecordBatch) -> Vec<i64> {
    batch.column(7).as_primitive::<Int64Type>().values().to_vec()
}

fn row_sum(batch: &RecordBatch) -> RowSum {
    let hasher = RowHasher::new(&schema()).unwrap();
    let mut states = vec![0; batch.num_rows()];
    for (at, column) in batch.columns().iter().enumerate() {
        hasher.add_column(at, column.as_ref(), &mut states).unwrap();
    }
    finish(&states)
}

fn key_row() -> impl Strategy<Value = (Option<String>, Option<f64>, Option<i64>)> {
    let name = prop_oneof![1 => Just(None), 5 => prop::sample::select(vec!["", "a", "b", "ab"]).prop_map(|text| Some(text.to_owned()))];
    let floats = vec![f64::NAN, -f64::NAN, 0.0, -0.0, 1.0, -1.0, f64::INFINITY];
    let x = prop_oneof![1 => Just(None), 5 => prop::sample::select(floats).prop_map(Some)];
    (name, x, prop::option::of(0..3i64))
}

fn order() -> impl Strategy<Value = RowOrder> {
    let directions = any::<[(bool, bool); 3]>();
    (directions, 0..6u8).prop_map(|(directions, kind)| {
        let all =
            [column(1, "name", directions[0]), column(2, "x", directions[1]), column(3, "inserted", directions[2])];
        let (columns, dedup_columns) = match kind {
            0 => (0, None),
            1 => (2, None),
            2 => (3, None),
            3 => (2, Some(2)),
            4 => (3, Some(2)),
            _ => (1, Some(1)),
        };
        RowOrder { columns: all[..columns].to_vec(), dedup_columns, ..RowOrder::default() }
    })
}

fn case() -> impl Strategy<Value = Case> {
    let file = (vec(key_row(), 0..14), 1..4i64, any::<bool>());
    let limits = (1..6usize, 1..6usize, 1..6usize, prop_oneof![Just(2usize), Just(usize::MAX)]);
    (vec(file, 1..7), order(), limits, 1..8usize, 1..8usize, prop_oneof![Just(1u64), Just(1 << 20)], 1..3usize)
        .prop_map(
            |(
                files,
                order,
                (chunk_rows, read_rows, key_rows, fan_in),
                window_rows,
                group_rows,
                target_bytes,
                threads,
            )| {
                let mut files: Vec<_> = files;
                files.sort_by_key(|file| file.1);
                let mut identity = 0;
                let files = files
                    .into_iter()
                    .map(|(keys, sequence, sorted)| {
                        let mut rows: Vec<Row> = keys
                            .into_iter()
                            .map(|(name, x, inserted)| {
                                identity += 1;
                                Row { name, x, inserted, identity }
                            })
                            .collect();
                        if sorted {
                            rows.sort_by(|a, b| compare_keys(&order.columns, a, b));
                        }
                        TestFile { rows, sequence }
                    })
                    .collect();
                let limits = EngineLimits { chunk_rows, read_rows, key_rows, fan_in, ..EngineLimits::default() };
                Case { files, order, limits, window_rows, group_rows, target_bytes, threads }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_engine_is_sort_and_keep_the_newest(case in case()) {
        case.check();
    }
}

fn row(name: &str, x: f64, identity: i64) -> Row {
    Row { name: Some(name.into()), x: Some(x), inserted: None, identity }
}

fn simple_order(dedup: bool) -> RowOrder {
    RowOrder {
        columns: vec![column(1, "name", (false, true)), column(2, "x", (false, true))],
        dedup_columns: dedup.then_some(2),
        ..RowOrder::default()
    }
}

/// Files of 40 sorted rows that alternate in the key.
fn alternating(files: i64) -> Case {
    let rows = |file: i64| (0..40).map(|at| row("s", (at * files + file) as f64, file * 100 + at)).collect();
    Case {
        files: (0..files).map(|file| TestFile { rows: rows(file), sequence: file }).collect(),
        order: simple_order(true),
        limits: EngineLimits::default(),
        window_rows: 50,
        group_rows: 16,
        target_bytes: 1 << 20,
        threads: 1,
    }
}

#[test]
fn a_value_that_changes_places_is_caught_by_the_proof() {
    fn swap_two(column: usize, rows: ArrayRef) -> ArrayRef {
        if column != 0 || rows.len() < 2 {
            return rows;
        }
        let mut values: Vec<_> = rows.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect();
        values.swap(0, 1);
        Arc::new(StringArray::from(values))
    }
    fn lose_a_sign(column: usize, rows: ArrayRef) -> ArrayRef {
        if column != 2 {
            return rows;
        }
        Arc::new(
            rows.as_primitive::<arrow_array::types::Float64Type>()
                .iter()
                .map(|x| x.map(|x| x.max(1.0)))
                .collect::<Float64Array>(),
        )
    }
    let case = alternating(2);
    let request = case.request();
    for tamper in [swap_two as Tamper, lose_a_sign] {
        let mut outputs = MemoryOutputs::default();
        let error = run(&Task { tamper: Some(tamper), ..Task::of(&request) }, &mut outputs).unwrap_err();
        assert!(matches!(error, MergeError::Proof { .. }), "{error}");
        assert_eq!(outputs.closed.lock().unwrap().len(), 0, "no output is whole");
    }
    fn nothing(_: usize, rows: ArrayRef) -> ArrayRef {
        rows
    }
    run(&Task { tamper: Some(nothing), ..Task::of(&request) }, &mut MemoryOutputs::default()).unwrap();
}

#[test]
fn all_unsorted_inputs_are_named_at_once() {
    let mut case = alternating(4);
    case.files[1].rows.swap(3, 4);
    case.files[3].rows.swap(38, 39);
    let error = merge(&case.request(), &mut MemoryOutputs::default()).unwrap_err();
    assert!(matches!(&error, MergeError::Unsorted { inputs } if *inputs == [1, 3]), "{error}");
    let (report, _) = case.merge().unwrap();
    assert_eq!((report.sorted_inputs, report.levels), (2, 1));
    case.check();
}

#[test]
fn a_group_that_does_not_fit_at_once_is_merged_in_levels() {
    let mut case = alternating(9);
    case.limits.fan_in = 2;
    let (report, _) = case.merge().unwrap();
    // 9 -> 5 -> 3 -> 2 -> 1.
    assert_eq!(report.levels, 4);
    assert!(report.temp_peak_bytes > 0);
    case.check();
}

#[test]
fn a_file_of_other_rows_than_the_metadata_says_is_refused() {
    let case = alternating(2);
    let mut request = case.request();
    request.inputs[1].expected_rows = 41;
    let error = merge(&request, &mut MemoryOutputs::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`file-1` has 40 rows, the table's metadata says 41: the file was replaced or is damaged"
    );
}

#[test]
fn an_input_that_is_not_what_was_written_is_refused() {
    let case = alternating(2);
    let mut request = case.request();
    request.inputs[0].expected_sum = Some(RowSum(1));
    assert!(matches!(merge(&request, &mut MemoryOutputs::default()), Err(MergeError::Proof { .. })));
}

#[test]
fn too_little_memory_and_too_little_disk_say_what_is_needed() {
    let mut case = alternating(4);
    let mut request = case.request();
    request.memory_bytes = 1 << 20;
    let error = merge(&request, &mut MemoryOutputs::default()).unwrap_err();
    assert!(matches!(error, MergeError::OverBudget { inputs: 4, fan_in: 0, .. }), "{error}");

    let root = tempfile::tempdir().unwrap();
    let temp = TempSpace::create(root.path(), 100).unwrap();
    case.files[0].rows.swap(0, 1);
    let error = merge_group(case.request(), &temp, &mut MemoryOutputs::default()).unwrap_err();
    assert!(
        matches!(&error, MergeError::NeedsSpill { space: Space::Disk, what, .. } if what == "sorting `file-0`"),
        "{error}"
    );
    case.files[0].rows.swap(0, 1);
    case.limits.fan_in = 2;
    let error = merge_group(case.request(), &temp, &mut MemoryOutputs::default()).unwrap_err();
    assert!(
        matches!(&error, MergeError::NeedsSpill { space: Space::Disk, what, .. } if what == "merging 4 files in levels"),
        "{error}"
    );
}

#[test]
fn a_window_of_rows_larger_than_the_mean_is_made_smaller() {
    // Small rows, then some that do not compress and are some thousand times as large.
    let mut state = 1_u64;
    let mut noise = |length: usize| -> String {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (state >> 60) as u8)
        };
        (0..length).map(|_| next()).collect()
    };
    let rows = |file: i64, noise: &mut dyn FnMut(usize) -> String| -> Vec<Row> {
        (0..2000)
            .map(|at| {
                let name = if at < 1900 { "s".to_owned() } else { format!("t{}", noise(60_000)) };
                Row { name: Some(name), x: Some((at * 2 + file) as f64), inserted: None, identity: file * 10_000 + at }
            })
            .collect()
    };
    let order = simple_order(false);
    let files = (0..2).map(|file| {
        let mut rows = rows(file, &mut noise);
        rows.sort_by(|a, b| compare_keys(&order.columns, a, b));
        TestFile { rows, sequence: 1 }
    });
    let mut case = Case { files: files.collect(), order, window_rows: 4000, group_rows: 500, ..alternating(1) };
    case.threads = 2;
    let mut request = case.request();
    request.settings.row_group_bytes = 1 << 17;
    request.settings.dictionary_bytes = 1 << 16;
    let mut outputs = MemoryOutputs::default();
    let report = merge(&request, &mut outputs).unwrap();
    let files = outputs.closed.lock().unwrap().clone();
    assert_eq!(files.len(), 1);
    assert_eq!(read_back(&files[0]), case.expected());
    let limit = report.admission.encoded_bytes;
    let groups =
        open(&files[0]).metadata().row_groups().iter().map(|group| group.compressed_size() as u64).collect::<Vec<_>>();
    assert!(groups.iter().sum::<u64>() > 4 * limit, "{groups:?} {limit}");
    assert!(groups.iter().all(|bytes| *bytes <= limit), "{groups:?} {limit}");
}

#[test]
fn a_merge_stops_when_asked_to() {
    let request = alternating(2).request();
    request.stop.stop();
    assert!(matches!(merge(&request, &mut MemoryOutputs::default()), Err(MergeError::Stopped)));
}

#[test]
fn a_sink_that_fails_ends_the_merge() {
    struct Broken;
    impl OutputFactory for Broken {
        fn create(&mut self) -> Result<Box<dyn OutputSink>, ColumnarError> {
            Ok(Box::new(BrokenSink))
        }
        fn restart(&mut self) -> Result<(), ColumnarError> {
            Ok(())
        }
    }
    struct BrokenSink;
    impl Write for BrokenSink {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl OutputSink for BrokenSink {
        fn name(&self) -> &str {
            "broken"
        }
        fn close(self: Box<Self>) -> Result<(), ColumnarError> {
            Ok(())
        }
    }
    let error = merge(&alternating(2).request(), &mut Broken).unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

#[test]
fn no_inputs_and_empty_inputs_give_no_output() {
    let mut case = alternating(1);
    case.files[0].rows.clear();
    let (report, files) = case.merge().unwrap();
    assert_eq!((report.merge.rows_in, files.len()), (0, 0));
    case.files.clear();
    assert_eq!(case.merge().unwrap().1.len(), 0);
}
