//! Files are read back with arrow-rs and compared.

use std::io;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, LogicalType, Type as PhysicalType};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};

use super::*;
use crate::samples::{every_type, every_type_rows, field, required};

/// Writes the batches as row groups, each column in pieces of `piece` rows.
fn write(batches: &[RecordBatch], piece: usize, settings: &WriterSettings) -> (FinishedFile, Bytes) {
    let schema = batches[0].schema();
    let mut writer = FileWriter::new("test.parquet", &schema, settings, Vec::new()).unwrap();
    for batch in batches {
        let columns = batch.columns().iter().enumerate().map(|(at, array)| {
            let mut encoder = writer.column_encoder(at).unwrap();
            for start in (0..array.len()).step_by(piece) {
                encoder.write(&array.slice(start, piece.min(array.len() - start))).unwrap();
            }
            encoder.finish().unwrap()
        });
        let columns = columns.collect();
        writer.append_row_group(columns).unwrap();
    }
    let (finished, sink) = writer.finish(&[]).unwrap();
    (finished, sink.into())
}

fn read(bytes: &Bytes) -> (RecordBatch, Arc<ParquetMetaData>) {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes.clone(), options).unwrap();
    let (schema, metadata) = (Arc::clone(builder.schema()), Arc::clone(builder.metadata()));
    let batches: Vec<_> = builder.with_batch_size(1000).build().unwrap().map(Result::unwrap).collect();
    (concat_batches(&schema, &batches).unwrap(), metadata)
}

/// Compares values; what the reader makes of types without an `ARROW:schema` entry is cast back.
fn assert_same(written: &RecordBatch, read: &RecordBatch) {
    assert_eq!(written.num_rows(), read.num_rows());
    for (at, field) in written.schema().fields().iter().enumerate() {
        let cast = arrow_cast::cast(read.column(at), field.data_type()).unwrap();
        assert_eq!(&cast.to_data(), &written.column(at).to_data(), "{}", field.name());
    }
}

#[test]
fn every_type_is_read_back_as_it_was_written() {
    let batches = [every_type_rows(5000, 5000), every_type_rows(1, 1), every_type_rows(3000, 12)];
    let settings = WriterSettings { page_rows: 700, ..WriterSettings::default() };
    let (finished, bytes) = write(&batches, 350, &settings);
    let (read, metadata) = read(&bytes);
    assert_same(&concat_batches(&batches[0].schema(), &batches).unwrap(), &read);
    assert_eq!((finished.rows, finished.row_groups, finished.bytes), (8001, 3, bytes.len() as u64));
    assert_eq!(metadata.file_metadata().num_rows(), 8001);
    assert!(metadata.file_metadata().key_value_metadata().is_none());
    for row_group in metadata.row_groups() {
        for chunk in row_group.columns() {
            assert!(matches!(chunk.compression(), Compression::ZSTD(_)));
            assert!(chunk.statistics().unwrap().null_count_opt().is_some(), "{}", chunk.column_path());
            assert!(chunk.column_index_offset().is_some() && chunk.offset_index_offset().is_some());
        }
    }
    let pages = &metadata.offset_index().unwrap()[0][0].page_locations;
    assert!(pages.len() >= 5000 / 700, "{} pages", pages.len());
    assert!(pages.windows(2).all(|pair| pair[1].first_row_index - pair[0].first_row_index <= 700));
}

#[test]
fn field_ids_names_and_logical_types_are_iceberg_s() {
    let (_, bytes) = write(&[every_type_rows(10, 10)], 10, &WriterSettings::default());
    let (_, metadata) = read(&bytes);
    let columns: Vec<_> = metadata
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| {
            let info = column.self_type().get_basic_info();
            (column.path().string(), info.id(), column.physical_type(), column.logical_type_ref().cloned())
        })
        .collect();
    let find = |path: &str| columns.iter().find(|column| column.0 == path).unwrap_or_else(|| panic!("no {path}"));
    for (path, id, physical) in [
        ("id", 1, PhysicalType::INT64),
        ("digit", 6, PhysicalType::INT32),
        ("price", 7, PhysicalType::INT32),
        ("amount", 8, PhysicalType::INT64),
        ("huge", 9, PhysicalType::FIXED_LEN_BYTE_ARRAY),
        ("nested.x", 31, PhysicalType::INT32),
        ("nested.y", 32, PhysicalType::BYTE_ARRAY),
        ("list.list.element", 41, PhysicalType::INT32),
        ("map.key_value.key", 51, PhysicalType::BYTE_ARRAY),
        ("map.key_value.value", 52, PhysicalType::INT32),
    ] {
        let column = find(path);
        assert_eq!((column.1, column.2), (id, physical), "{path}");
    }
    assert_eq!(find("uuid").3, Some(LogicalType::Uuid));
    assert_eq!(find("fixed").3, None);
    assert_eq!(find("text").3, Some(LogicalType::String));
    let adjusted = |path: &str| match &find(path).3 {
        Some(LogicalType::Timestamp { is_adjusted_to_u_t_c, unit }) => (*is_adjusted_to_u_t_c, format!("{unit:?}")),
        other => panic!("{other:?}"),
    };
    assert_eq!(adjusted("local"), (false, "MICROS".into()));
    assert_eq!(adjusted("instant"), (true, "MICROS".into()));
    assert_eq!(adjusted("nanos"), (false, "NANOS".into()));
    let groups: Vec<_> = metadata
        .file_metadata()
        .schema()
        .get_fields()
        .iter()
        .filter(|field| field.is_group())
        .map(|field| (field.name().to_owned(), field.get_basic_info().id()))
        .collect();
    assert_eq!(groups, [("nested".into(), 21), ("list".into(), 22), ("map".into(), 23)]);
}

#[test]
fn columns_may_be_encoded_on_other_threads_and_ahead_of_the_file() {
    let batches = [every_type_rows(400, 400), every_type_rows(300, 5)];
    let schema = batches[0].schema();
    let mut writer = FileWriter::new("test.parquet", &schema, &WriterSettings::default(), Vec::new()).unwrap();
    let encoders = writer.encoders();
    let mut row_groups: Vec<Vec<EncodedColumn>> = std::thread::scope(|scope| {
        let encode = |batch: &RecordBatch, at: usize| {
            let (encoders, array) = (encoders.clone(), Arc::clone(batch.column(at)));
            scope.spawn(move || {
                let mut encoder = encoders.encoder(at, 0).unwrap();
                encoder.write(&array).unwrap();
                encoder.finish().unwrap()
            })
        };
        // Later row groups first.
        let handles: Vec<Vec<_>> =
            batches.iter().rev().map(|batch| (0..batch.num_columns()).map(|at| encode(batch, at)).collect()).collect();
        handles.into_iter().map(|columns| columns.into_iter().map(|c| c.join().unwrap()).collect()).collect()
    });
    let mut before = writer.bytes_written();
    while let Some(columns) = row_groups.pop() {
        let bytes: u64 = columns.iter().map(EncodedColumn::bytes).sum();
        writer.append_row_group(columns).unwrap();
        assert_eq!(writer.bytes_written(), before + bytes);
        before += bytes;
    }
    let (_, sink) = writer.finish(&[]).unwrap();
    assert_same(&concat_batches(&schema, &batches).unwrap(), &read(&sink.into()).0);
}

#[test]
fn key_values_given_at_the_end_win() {
    let settings = WriterSettings {
        key_values: vec![("a".into(), "1".into()), ("b".into(), "2".into())],
        ..WriterSettings::default()
    };
    let batch = every_type_rows(3, 3);
    let mut writer = FileWriter::new("test.parquet", &batch.schema(), &settings, Vec::new()).unwrap();
    writer.write_row_group(&batch).unwrap();
    let (_, sink) = writer.finish(&[("b".into(), "3".into()), ("c".into(), "4".into())]).unwrap();
    let (_, metadata) = read(&sink.into());
    let mut found: Vec<_> = metadata
        .file_metadata()
        .key_value_metadata()
        .unwrap()
        .iter()
        .map(|entry| (entry.key.as_str(), entry.value.as_deref().unwrap()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [("a", "1"), ("b", "3"), ("c", "4")]);
}

fn encode_one(field: Field, array: ArrayRef) -> Result<(), ColumnarError> {
    let schema = Arc::new(Schema::new(vec![field]));
    let writer = FileWriter::new("test.parquet", &schema, &WriterSettings::default(), Vec::new()).unwrap();
    writer.column_encoder(0).unwrap().write(&array)
}

#[test]
fn a_null_in_a_required_column_is_refused() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let error = encode_one(required(1, "n", DataType::Int32), array).unwrap_err();
    assert_eq!(error.to_string(), "`test.parquet`: column `n` is required by the table but is null in row 1");
}

#[test]
fn a_null_below_a_null_parent_is_no_null_of_the_child() {
    let child = required(2, "n", DataType::Int32);
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let schema_field = field(1, "s", DataType::Struct(vec![child.clone()].into()));
    let parents = |second| Some(NullBuffer::from(vec![true, second]));
    let array = |second| -> ArrayRef {
        // The array's own child is nullable, so that it may be built at all; the shape is compared first.
        Arc::new(StructArray::new(
            vec![child.clone().with_nullable(true)].into(),
            vec![Arc::clone(&numbers)],
            parents(second),
        ))
    };
    let error = encode_one(schema_field.clone(), array(true)).unwrap_err();
    assert!(matches!(error, ColumnarError::Usage { .. }), "{error}");

    let masked: ArrayRef = Arc::new(StructArray::new(vec![child].into(), vec![numbers], parents(false)));
    encode_one(schema_field, masked).unwrap();
}

#[test]
fn a_null_list_may_cover_elements_that_are_not_written() {
    let element = required(2, "element", DataType::Float64);
    let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0]));
    let offsets = OffsetBuffer::new(vec![0, 1, 2, 3].into());
    let nulls = NullBuffer::from(vec![true, false, true]);
    let list: ArrayRef = Arc::new(ListArray::new(Arc::new(element.clone()), offsets, values, Some(nulls)));
    let schema = Arc::new(Schema::new(vec![field(1, "l", DataType::List(Arc::new(element)))]));
    let batch = RecordBatch::try_new(schema, vec![list]).unwrap();
    let (finished, bytes) = write(std::slice::from_ref(&batch), 2, &WriterSettings::default());
    assert_eq!(finished.metrics.nan_counts[&2], 0);
    let (read, _) = read(&bytes);
    let read = read.column(0).as_list::<i32>();
    assert!(read.is_null(1));
    assert_eq!(read.value(0).as_primitive::<types::Float64Type>().values().as_ref(), [1.0]);
    assert_eq!(read.value(2).as_primitive::<types::Float64Type>().values().as_ref(), [2.0]);
}

#[test]
fn a_decimal_with_too_many_digits_is_refused_and_not_cut() {
    let array = |value: i128| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(9, 2).unwrap())
    };
    let price = || field(1, "price", DataType::Decimal128(9, 2));
    encode_one(price(), array(999_999_999)).unwrap();
    encode_one(price(), array(-999_999_999)).unwrap();
    let error = encode_one(price(), array(1_000_000_000)).unwrap_err();
    assert!(matches!(&error, ColumnarError::Inexact { value, .. } if value.contains("1000000000")), "{error}");
}

#[test]
fn swapped_struct_children_of_one_type_are_refused() {
    let fields = |names: [&str; 2]| Fields::from(names.map(|name| field(1, name, DataType::Int32)).to_vec());
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let array = StructArray::new(fields(["b", "a"]), vec![Arc::clone(&numbers), numbers], None);
    let error = encode_one(field(9, "s", DataType::Struct(fields(["a", "b"]))), Arc::new(array)).unwrap_err();
    assert!(matches!(error, ColumnarError::Usage { .. }), "{error}");
}

#[test]
fn types_that_no_table_has_are_refused_with_the_column_s_path() {
    let inner = field(2, "x", DataType::Duration(arrow_schema::TimeUnit::Second));
    let schema = Arc::new(Schema::new(vec![field(1, "s", DataType::Struct(vec![inner].into()))]));
    let error = FileWriter::new("test.parquet", &schema, &WriterSettings::default(), Vec::new()).unwrap_err();
    assert!(matches!(&error, ColumnarError::Unsupported { column: Some(column), .. } if column == "s.x"), "{error}");
}

#[test]
fn a_row_group_needs_every_column_once_and_equally_long() {
    let batch = every_type_rows(4, 4);
    let mut writer = FileWriter::new("test.parquet", &batch.schema(), &WriterSettings::default(), Vec::new()).unwrap();
    let encode = |writer: &FileWriter<Vec<u8>>, at: usize, rows: usize| {
        let mut encoder = writer.column_encoder(at).unwrap();
        encoder.write(&batch.column(at).slice(0, rows)).unwrap();
        encoder.finish().unwrap()
    };
    let all =
        |writer: &FileWriter<Vec<u8>>| -> Vec<_> { (0..batch.num_columns()).map(|at| encode(writer, at, 4)).collect() };
    let mut columns = all(&writer);
    columns.pop();
    assert!(matches!(writer.append_row_group(columns), Err(ColumnarError::Usage { .. })));
    let mut columns = all(&writer);
    columns.swap(0, 1);
    assert!(matches!(writer.append_row_group(columns), Err(ColumnarError::Usage { .. })));
    let mut columns = all(&writer);
    columns[3] = encode(&writer, 3, 2);
    assert!(matches!(writer.append_row_group(columns), Err(ColumnarError::Usage { .. })));
    assert!(matches!(writer.append_row_group(vec![]), Err(ColumnarError::Usage { .. })));
    assert!(matches!(writer.column_encoder(99), Err(ColumnarError::Usage { .. })));
    // Nothing of that was written.
    let columns = all(&writer);
    writer.append_row_group(columns).unwrap();
    let (finished, sink) = writer.finish(&[]).unwrap();
    assert_eq!(finished.rows, 4);
    assert_same(&batch, &read(&sink.into()).0);
}

#[test]
fn pages_of_large_values_stay_near_their_limit() {
    let value = |n: usize| format!("{n:08}").repeat(10_000);
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..64).map(value)));
    let schema = Arc::new(Schema::new(vec![field(1, "text", DataType::Utf8)]));
    let batch = RecordBatch::try_new(schema, vec![text]).unwrap();
    let settings = WriterSettings {
        page_bytes: 200_000,
        dictionary_bytes: 200_000,
        compression: Codec::Uncompressed,
        ..WriterSettings::default()
    };
    let (_, bytes) = write(std::slice::from_ref(&batch), 64, &settings);
    let (read, metadata) = read(&bytes);
    assert_same(&batch, &read);
    let pages = &metadata.offset_index().unwrap()[0][0].page_locations;
    let largest = pages.iter().map(|page| page.compressed_page_size).max().unwrap();
    assert!(largest <= 400_000, "a page of {largest} bytes");
}

/// Takes so many bytes, then fails.
struct FullSink(usize);

impl io::Write for FullSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sink_that_fails_is_told_when_the_row_group_is_appended() {
    let batch = every_type_rows(100, 100);
    let mut writer =
        FileWriter::new("test.parquet", &batch.schema(), &WriterSettings::default(), FullSink(100)).unwrap();
    let error = writer.write_row_group(&batch).unwrap_err();
    assert!(matches!(error, ColumnarError::Disk { .. }), "{error}");
}

#[test]
fn a_file_without_rows_is_a_file() {
    let schema = Arc::new(every_type());
    let writer = FileWriter::new("test.parquet", &schema, &WriterSettings::default(), Vec::new()).unwrap();
    let (finished, sink) = writer.finish(&[]).unwrap();
    assert_eq!((finished.rows, finished.row_groups, finished.bytes), (0, 0, sink.len() as u64));
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(sink)).unwrap();
    assert_eq!(builder.build().unwrap().count(), 0);
}
