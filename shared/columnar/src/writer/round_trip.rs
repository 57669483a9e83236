//! What the writer writes, the reader of this crate reads, at the schema it was written with and at a later one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use proptest::prelude::*;

use super::*;
use crate::samples::{Random, every_type, every_type_rows, field};
use crate::{BatchLimit, ColumnCursor, InputFile, MemoryFile, RowHasher, RowSum, proof};

fn written(batches: &[RecordBatch]) -> Arc<MemoryFile> {
    let settings = WriterSettings { page_rows: 300, ..WriterSettings::default() };
    let mut writer = FileWriter::new("test.parquet", &batches[0].schema(), &settings, Vec::new()).unwrap();
    for batch in batches {
        writer.write_row_group(batch).unwrap();
    }
    Arc::new(MemoryFile::new("test.parquet", writer.finish(&[]).unwrap().1.into()))
}

fn read(mut cursor: ColumnCursor) -> ArrayRef {
    let mut arrays = Vec::new();
    while let Some(array) = cursor.next(333).unwrap() {
        arrays.push(array);
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    concat(&arrays).unwrap()
}

fn read_all(file: &Arc<MemoryFile>, target: &SchemaRef) -> RecordBatch {
    let file = InputFile::open(Arc::clone(file) as _, target, None).unwrap();
    let columns = (0..target.fields().len()).map(|at| read(file.cursor(at, BatchLimit::default()).unwrap())).collect();
    RecordBatch::try_new(Arc::clone(target), columns).unwrap()
}

fn sum_of(batch: &RecordBatch) -> RowSum {
    let hasher = RowHasher::new(&batch.schema()).unwrap();
    let mut states = vec![0; batch.num_rows()];
    for (at, column) in batch.columns().iter().enumerate() {
        hasher.add_column(at, column, &mut states).unwrap();
    }
    proof::finish(&states)
}

#[test]
fn the_reader_gives_every_type_back_and_the_proof_agrees() {
    let batches = [every_type_rows(2000, 2000), every_type_rows(900, 7)];
    let file = written(&batches);
    let read = read_all(&file, &Arc::new(every_type()));
    assert_eq!(sum_of(&read), batches.iter().map(sum_of).sum());
    for (at, column) in read.columns().iter().enumerate() {
        let whole = concat(&[batches[0].column(at), batches[1].column(at)]).unwrap();
        assert_eq!(&column.to_data(), &whole.to_data(), "{}", read.schema().field(at).name());
    }
    // What was read can be written again as it is.
    let again = read_all(&written(std::slice::from_ref(&read)), &read.schema());
    assert_eq!(again, read);
}

/// [`every_type`] some changes of the table later: columns renamed, moved, promoted and added, none dropped.
fn later() -> SchemaRef {
    let mut fields: Vec<Field> = every_type().fields().iter().rev().map(|field| field.as_ref().clone()).collect();
    for field in &mut fields {
        let promoted = match (field.name().as_str(), field.data_type()) {
            ("int", _) => DataType::Int64,
            ("float", _) => DataType::Float64,
            ("digit" | "price" | "amount", DataType::Decimal128(precision, scale)) => {
                DataType::Decimal128(precision + 12, *scale)
            }
            ("nested", DataType::Struct(children)) => {
                let mut children: Vec<_> = children.iter().rev().map(|child| child.as_ref().clone()).collect();
                children[2].set_data_type(DataType::Int64);
                children.push(crate::samples::field(34, "added", DataType::Date32));
                DataType::Struct(children.into())
            }
            (_, same) => same.clone(),
        };
        field.set_data_type(promoted);
        field.set_name(format!("new_{}", field.name()));
    }
    fields.push(field(70, "added", DataType::Utf8));
    Arc::new(Schema::new(fields))
}

#[test]
fn the_proof_holds_across_every_change_of_the_schema_that_keeps_the_values() {
    let rows = every_type_rows(1500, 1500);
    let read = read_all(&written(std::slice::from_ref(&rows)), &later());
    assert_eq!(sum_of(&read), sum_of(&rows));
    let finished = {
        let mut writer = FileWriter::new("new.parquet", &later(), &WriterSettings::default(), Vec::new()).unwrap();
        writer.write_row_group(&read).unwrap();
        writer.finish(&[]).unwrap().0
    };
    // Bounds have the width of the promoted type.
    let widths = [3, 4, 31].map(|id| (finished.metrics.lower[&id].len(), finished.metrics.upper[&id].len()));
    assert_eq!(widths, [(8, 8); 3]);
    assert_eq!(finished.metrics.null_counts[&70], 1500);
    assert!(!finished.metrics.lower.contains_key(&70));
}

#[test]
fn hidden_columns_of_temporary_files_are_found_by_name() {
    let hidden = Field::new("_position", DataType::UInt64, false);
    let schema = Arc::new(Schema::new(vec![field(1, "c", DataType::Int32), hidden]));
    let positions: ArrayRef = Arc::new(UInt64Array::from(vec![7, u64::MAX, 0]));
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let file = written(&[RecordBatch::try_new(schema, vec![numbers, Arc::clone(&positions)]).unwrap()]);
    let target = Arc::new(Schema::new(vec![field(1, "c", DataType::Int32)]));
    let file = InputFile::open(file, &target, None).unwrap();
    let cursor = file.cursor_by_name("_position", BatchLimit::default()).unwrap();
    assert_eq!(&read(cursor), &positions);
}

/// NaN of an array in which nothing lies below nulls.
fn naive_nans(array: &dyn Array) -> u64 {
    match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().flatten().filter(|v| v.is_nan()).count() as u64,
        DataType::Struct(_) => (0..array.len())
            .filter(|row| array.is_valid(*row))
            .map(|row| array.as_struct().columns().iter().map(|child| naive_nans(&child.slice(row, 1))).sum::<u64>())
            .sum(),
        DataType::List(_) => array.as_list::<i32>().iter().flatten().map(|list| naive_nans(&list)).sum(),
        DataType::Map(..) => array.as_map().iter().flatten().map(|entries| naive_nans(&entries)).sum(),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn nested_columns_of_any_shape_survive(seed in any::<u64>(), rows in 1_usize..40, piece in 1_usize..9) {
        let mut random = Random(seed);
        let field = random.field("c", 3, &mut 1);
        let array = random.array(&field, rows);
        let schema = Arc::new(Schema::new(vec![field]));
        let mut writer = FileWriter::new("test.parquet", &schema, &WriterSettings::default(), Vec::new()).unwrap();
        let mut encoder = writer.column_encoder(0).unwrap();
        for start in (0..rows).step_by(piece) {
            encoder.write(&array.slice(start, piece.min(rows - start))).unwrap();
        }
        writer.append_row_group(vec![encoder.finish().unwrap()]).unwrap();
        let (finished, sink) = writer.finish(&[]).unwrap();

        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(&array)]).unwrap();
        let read = read_all(&Arc::new(MemoryFile::new("test.parquet", sink.into())), &schema);
        prop_assert_eq!(&read.column(0).to_data(), &array.to_data());
        prop_assert_eq!(sum_of(&read), sum_of(&batch));
        prop_assert_eq!(finished.metrics.nan_counts.values().sum::<u64>(), naive_nans(&array));
        prop_assert_eq!(naive_nans(read.column(0)), naive_nans(&array));
    }
}
