//! The whole engine against a naive oracle: collect all rows, sort them, keep one row a key, compare with what was written.
//!
//! This file builds input files, holds outputs in memory and checks what a merge gave; `oracle` says what is right.

mod cases;
mod copying;
mod oracle;
mod random;

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
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use arrow_select::concat::{concat, concat_batches};
use arrow_select::interleave::interleave_record_batch;
use bytes::Bytes;
use firn_model::{OrderColumn, RowOrder};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::*;
use crate::claims::FileClaims;
use crate::copy::group_claims::sums_entry;
use crate::error::ColumnarError;
use crate::input::InputFile;
use crate::levels::{GroupReport, merge_group};
use crate::limits::BatchLimit;
use crate::proof::{RowHasher, RowSum, finish};
use crate::reread::verify_file;
use crate::source::MemoryFile;
use crate::tap::{RowGroupTap, WrittenGroup};
use crate::temp::TempSpace;
use crate::writer::{FileWriter, WriterSettings};
use oracle::oracle;

pub(crate) fn field(id: i32, name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true).with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.into(), id.to_string())]))
}

pub(crate) fn struct_fields() -> Fields {
    let list = DataType::List(Arc::new(field(23, "element", DataType::Utf8)));
    vec![field(21, "x", DataType::Int32), field(22, "words", list)].into()
}

/// Two key columns and an insertion time, then payload of every shape.
pub(crate) fn schema() -> SchemaRef {
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
pub(crate) struct Row {
    pub(crate) name: Option<String>,
    pub(crate) x: Option<f64>,
    pub(crate) inserted: Option<i64>,
    pub(crate) identity: i64,
}

pub(crate) fn words(identity: i64) -> Vec<Option<String>> {
    (0..identity % 4).map(|at| (at != 1).then(|| format!("word {identity} {at}"))).collect()
}

pub(crate) fn batch(rows: &[Row]) -> RecordBatch {
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

pub(crate) fn write_file(rows: &[Row], group_rows: usize) -> Bytes {
    write_with(rows, group_rows, &WriterSettings::default(), false)
}

/// A file of Firn's. With `claims` its footer says what the sums of its row groups and their NaN are.
pub(crate) fn write_with(rows: &[Row], group_rows: usize, settings: &WriterSettings, claims: bool) -> Bytes {
    let settings = WriterSettings { page_rows: 4, ..settings.clone() };
    let mut writer = FileWriter::new("input", &schema(), &settings, Vec::new()).unwrap();
    let mut sums = Vec::new();
    for part in rows.chunks(group_rows) {
        writer.write_row_group(&batch(part)).unwrap();
        sums.push(Some(row_sum(&batch(part))));
    }
    let mut entries: Vec<_> = claims.then(|| sums_entry(sums.into_iter())).into_iter().collect();
    entries.extend(writer.nans_entry().filter(|_| claims));
    writer.finish(&entries).unwrap().1.into()
}

#[derive(Debug, Clone)]
pub(crate) struct TestFile {
    pub(crate) rows: Vec<Row>,
    pub(crate) sequence: i64,
}

pub(crate) fn input(at: usize, file: &TestFile, group_rows: usize) -> MergeInput {
    input_of(at, file, write_file(&file.rows, group_rows))
}

/// An input of the rows of `file` as they stand in `bytes`.
pub(crate) fn input_of(at: usize, file: &TestFile, bytes: Bytes) -> MergeInput {
    let source = Arc::new(MemoryFile::new(format!("file-{at}"), bytes));
    let opened = InputFile::open(source, &schema(), None).unwrap();
    MergeInput::of_table(opened, file.sequence, at as u32, file.rows.len() as u64)
}

/// Outputs in memory. An output that was dropped without being closed leaves nothing.
#[derive(Default, Clone)]
pub(crate) struct MemoryOutputs {
    pub(crate) closed: Arc<Mutex<Vec<Vec<u8>>>>,
    pub(crate) created: Arc<Mutex<usize>>,
    /// What the taps of the closed outputs have seen.
    tapped: Arc<Mutex<Vec<RecordBatch>>>,
}

/// Columns that taps want, in an order of their own.
const TAPPED: [usize; 5] = [7, 0, 1, 3, 4];

struct Tap(Arc<Mutex<Vec<RecordBatch>>>);

impl RowGroupTap for Tap {
    fn columns(&self) -> Vec<usize> {
        TAPPED.to_vec()
    }

    fn row_group(&mut self, group: WrittenGroup) -> bool {
        let mut rows = 0;
        let read = group.read(|batch| {
            rows += batch.num_rows() as u64;
            self.0.lock().unwrap().push(batch);
            Ok::<(), ColumnarError>(())
        });
        read.unwrap();
        assert_eq!(rows, group.rows());
        true
    }
}

/// What taps saw is what the files hold.
fn check_tapped(tapped: &[RecordBatch], files: &[Vec<u8>]) {
    let written: Vec<RecordBatch> = files.iter().map(|file| read_back(file)).collect();
    let written = concat_batches(&schema(), &written).unwrap();
    assert_eq!(tapped.iter().map(RecordBatch::num_rows).sum::<usize>(), written.num_rows());
    for (at, column) in TAPPED.into_iter().enumerate().filter(|_| !tapped.is_empty()) {
        let seen: Vec<&dyn Array> = tapped.iter().map(|batch| batch.column(at).as_ref()).collect();
        let seen = cast(&concat(&seen).unwrap(), written.column(column).data_type()).unwrap();
        assert_eq!(&seen, written.column(column), "column {column}");
    }
}

pub(crate) struct MemorySink {
    name: String,
    bytes: Vec<u8>,
    rows: u64,
    seen: Arc<Mutex<Vec<RecordBatch>>>,
    outputs: MemoryOutputs,
}

impl OutputFactory for MemoryOutputs {
    fn create(&mut self) -> Result<Box<dyn OutputSink>, ColumnarError> {
        *self.created.lock().unwrap() += 1;
        Ok(Box::new(MemorySink {
            name: "output".into(),
            bytes: Vec::new(),
            rows: 0,
            seen: Arc::default(),
            outputs: self.clone(),
        }))
    }

    fn restart(&mut self) -> Result<(), ColumnarError> {
        self.closed.lock().unwrap().clear();
        self.tapped.lock().unwrap().clear();
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

    fn tap(&mut self) -> Option<Box<dyn RowGroupTap>> {
        Some(Box::new(Tap(Arc::clone(&self.seen))))
    }

    fn finished(&mut self, rows: u64) {
        self.rows = rows;
    }

    fn close(self: Box<Self>) -> Result<(), ColumnarError> {
        let mut seen = std::mem::take(&mut *self.seen.lock().unwrap());
        assert_eq!(seen.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), self.rows);
        self.outputs.tapped.lock().unwrap().append(&mut seen);
        self.outputs.closed.lock().unwrap().push(self.bytes);
        Ok(())
    }
}

pub(crate) fn open(bytes: &[u8]) -> InputFile {
    let source = Arc::new(MemoryFile::new("output", Bytes::copy_from_slice(bytes)));
    InputFile::open(source, &schema(), None).unwrap()
}

pub(crate) fn read_back(bytes: &[u8]) -> RecordBatch {
    read_all(&open(bytes))
}

pub(crate) fn read_all(file: &InputFile) -> RecordBatch {
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

pub(crate) fn column(field_id: i32, name: &str, (descending, nulls_first): (bool, bool)) -> OrderColumn {
    OrderColumn { field_id, name: name.into(), descending, nulls_first }
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) files: Vec<TestFile>,
    pub(crate) order: RowOrder,
    pub(crate) limits: EngineLimits,
    pub(crate) window_rows: usize,
    pub(crate) group_rows: usize,
    pub(crate) target_bytes: u64,
    pub(crate) threads: usize,
    /// The inputs' footers say what their row groups sum up to.
    pub(crate) claims: bool,
}

impl Case {
    pub(crate) fn input(&self, at: usize, file: &TestFile) -> MergeInput {
        input_of(at, file, write_with(&file.rows, self.group_rows, &WriterSettings::default(), self.claims))
    }

    pub(crate) fn request(&self) -> MergeRequest {
        MergeRequest {
            inputs: self.files.iter().enumerate().map(|(at, file)| self.input(at, file)).collect(),
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

    pub(crate) fn merge(&self) -> Result<(GroupReport, Vec<Vec<u8>>), MergeError> {
        merge_in_memory(self.request())
    }
}

/// Merges a whole group, and looks at what the taps of its outputs saw.
pub(crate) fn merge_in_memory(request: MergeRequest) -> Result<(GroupReport, Vec<Vec<u8>>), MergeError> {
    let root = tempfile::tempdir().unwrap();
    let temp = TempSpace::create(root.path(), 1 << 30).unwrap();
    let mut outputs = MemoryOutputs::default();
    let report = merge_group(request, &temp, &mut outputs)?;
    assert_eq!(temp.used_bytes(), 0, "all temporary files are gone");
    let files = std::mem::take(&mut *outputs.closed.lock().unwrap());
    check_tapped(&outputs.tapped.lock().unwrap(), &files);
    Ok((report, files))
}

impl Case {
    pub(crate) fn expected(&self) -> RecordBatch {
        let batches: Vec<RecordBatch> = self.files.iter().map(|file| batch(&file.rows)).collect();
        let rows = oracle(&self.files, &self.order);
        interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &rows).unwrap()
    }

    pub(crate) fn check(&self) {
        self.check_merged(&self.merge().unwrap());
    }

    pub(crate) fn check_merged(&self, (report, files): &(GroupReport, Vec<Vec<u8>>)) {
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
        if merge.rows_by_bytes == 0 {
            assert_eq!(merge.sum_out, row_sum(&expected));
            let all: Vec<RecordBatch> = self.files.iter().map(|file| batch(&file.rows)).collect();
            assert_eq!(merge.sum_in, all.iter().map(row_sum).sum());
        }
        assert_eq!(merge.outputs.len(), files.len());
        for (file, (bytes, rows)) in merge.outputs.iter().zip(files.iter().zip(&rows)) {
            assert_eq!((file.finished.bytes, file.finished.rows), (bytes.len() as u64, rows.num_rows() as u64));
            assert!(file.finished.rows > 0);
            if merge.rows_by_bytes == 0 {
                assert_eq!(file.row_sum, Some(row_sum(rows)));
            }
            assert_eq!(file.groups.len(), file.finished.row_groups);
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
    pub(crate) fn check_file(&self, file: &MergedFile, bytes: &[u8]) {
        let opened = open(bytes);
        verify_file(&opened, file, &schema(), &self.order).unwrap();
        let claims = FileClaims::read(opened.metadata());
        assert_eq!(claims.unique, self.order.dedup_columns.is_some());
        assert_eq!(claims.is_sorted_by(&self.order), !self.order.is_unordered());
        assert_eq!(claims.row_sum, file.row_sum);
        assert_eq!(claims.key_range, file.key_range);
        let claimed_names = claims.sort.unwrap_or_default();
        assert!(claimed_names.iter().eq(self.order.columns.iter().map(|column| &column.name)));
    }
}

pub(crate) fn identities(batch: &RecordBatch) -> Vec<i64> {
    batch.column(7).as_primitive::<Int64Type>().values().to_vec()
}

pub(crate) fn row_sum(batch: &RecordBatch) -> RowSum {
    let hasher = RowHasher::new(&schema()).unwrap();
    let mut states = vec![0; batch.num_rows()];
    for (at, column) in batch.columns().iter().enumerate() {
        hasher.add_column(at, column.as_ref(), &mut states).unwrap();
    }
    finish(&states)
}

pub(crate) fn row(name: &str, x: f64, identity: i64) -> Row {
    Row { name: Some(name.into()), x: Some(x), inserted: None, identity }
}

pub(crate) fn simple_order(dedup: bool) -> RowOrder {
    RowOrder {
        columns: vec![column(1, "name", (false, true)), column(2, "x", (false, true))],
        dedup_columns: dedup.then_some(2),
        ..RowOrder::default()
    }
}

/// Files of 40 sorted rows that alternate in the key.
pub(crate) fn alternating(files: i64) -> Case {
    let rows = |file: i64| (0..40).map(|at| row("s", (at * files + file) as f64, file * 100 + at)).collect();
    Case {
        files: (0..files).map(|file| TestFile { rows: rows(file), sequence: file }).collect(),
        order: simple_order(true),
        limits: EngineLimits::default(),
        window_rows: 50,
        group_rows: 16,
        target_bytes: 1 << 20,
        threads: 1,
        claims: false,
    }
}
