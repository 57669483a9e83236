//! Groups that are not random: what must be caught, refused and named.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float64Array, StringArray};

use super::oracle::compare_keys;
use super::{Case, MemoryOutputs, Row, TestFile, alternating, open, read_back, simple_order};
use crate::engine::*;
use crate::error::ColumnarError;
use crate::levels::merge_group;
use crate::proof::RowSum;
use crate::temp::TempSpace;

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
fn two_files_of_one_place_in_commit_order_are_refused() {
    let mut request = alternating(2).request();
    (request.inputs[1].sequence_number, request.inputs[1].source) = (0, 0);
    let error = merge(&request, &mut MemoryOutputs::default()).unwrap_err();
    assert!(error.to_string().contains("`file-0` and `file-1` have the same place"), "{error}");
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
