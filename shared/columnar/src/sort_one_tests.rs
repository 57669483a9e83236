use super::*;
use crate::engine::StopFlag;
use crate::engine::tests::{Case, Row, TestFile, alternating, batch, identities, input, read_all, row_sum};
use crate::temp::TempSpace;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

/// 100 rows whose keys come in no order, some of them equal, in row groups of 7.
fn unsorted() -> (Case, TestFile) {
    let rows: Vec<Row> = (0..100)
        .map(|at| Row {
            name: (at % 11 != 5).then(|| format!("n{}", at * 37 % 10)),
            x: Some(f64::from(at * 53 % 7)),
            inserted: None,
            identity: i64::from(at),
        })
        .collect();
    (alternating(1), TestFile { rows, sequence: 3 })
}

fn sorted_identities(case: &Case, file: &TestFile) -> Vec<i64> {
    let case = Case {
        files: vec![file.clone()],
        order: firn_model::RowOrder { dedup_columns: None, ..case.order.clone() },
        ..case.clone()
    };
    identities(&case.expected())
}

fn temp_space(budget: u64) -> (tempfile::TempDir, TempSpace) {
    let root = tempfile::tempdir().unwrap();
    let temp = TempSpace::create(root.path(), budget).unwrap();
    (root, temp)
}

fn with_task<T>(case: &Case, work: impl FnOnce(&Task<'_>) -> T) -> T {
    let request = case.request();
    work(&Task { limits: case.limits, ..Task::of(&request) })
}

#[test]
fn rows_are_sorted_with_their_positions_in_any_number_of_row_groups() {
    let (case, file) = unsorted();
    let source = input(5, &file, 7);
    let expected = sorted_identities(&case, &file);
    for group_rows in [1, 13, 99, 100, 1000] {
        let (_root, temp) = temp_space(1 << 20);
        let sorted = with_task(&case, |task| sort_into(task, &source, &temp, group_rows, u64::MAX)).unwrap();
        let rows = read_all(&sorted.file);
        assert_eq!(identities(&rows), expected);
        assert_eq!(sorted.file.metadata().num_row_groups(), 100_usize.div_ceil(group_rows));
        let mut cursor = sorted.file.cursor_by_name(POSITION_COLUMN, BatchLimit::default()).unwrap();
        let mut positions = Vec::new();
        while let Some(array) = cursor.next(usize::MAX).unwrap() {
            positions.extend(array.as_primitive::<Int64Type>().values().to_vec());
        }
        // In this file a row's identity is its position.
        assert_eq!(positions, expected);
        assert_eq!(sorted.expected_sum, Some(row_sum(&batch(&file.rows))));
        assert_eq!((sorted.sequence_number, sorted.source, sorted.hidden), (3, 5, Hidden::Position));
    }
}

#[test]
fn values_larger_than_the_footer_said_make_smaller_row_groups() {
    let (case, mut file) = unsorted();
    file.rows = (0..60_000)
        .map(|at| Row { name: Some(format!("{}", at * 7919 % 60_000)), x: None, inserted: None, identity: at })
        .collect();
    let source = input(0, &file, 60_000);
    let expected = sorted_identities(&case, &file);
    // The widest column takes about 3 MB; a third of that forces row groups of at most a third of the rows.
    let (_root, temp) = temp_space(64 << 20);
    let sorted = with_task(&case, |task| sort_into(task, &source, &temp, 60_000, 2 << 20)).unwrap();
    assert_eq!(identities(&read_all(&sorted.file)), expected);
    assert!(sorted.file.metadata().num_row_groups() > 1);
    assert_eq!(sorted.expected_sum, Some(row_sum(&batch(&file.rows))), "no row was hashed twice");

    let error = with_task(&case, |task| sort_into(task, &source, &temp, 60_000, 10_000)).unwrap_err();
    assert!(matches!(error, MergeError::NeedsSpill { space: Space::Memory, .. }), "{error}");
}

#[test]
fn the_budget_of_the_disk_used_up_is_a_clean_refusal_and_leaves_nothing() {
    let (case, file) = unsorted();
    let source = input(0, &file, 7);
    let (_root, temp) = temp_space(500);
    let error = with_task(&case, |task| sort_into(task, &source, &temp, 100, u64::MAX)).unwrap_err();
    assert!(
        matches!(error, MergeError::NeedsSpill { space: Space::Disk, needed_bytes, budget_bytes: 500, .. } if needed_bytes > 500),
        "{error}"
    );
    assert_eq!(temp.used_bytes(), 0);
    let error = with_task(&case, |task| sort_one(task, &source, &temp)).unwrap_err();
    assert!(matches!(error, MergeError::NeedsSpill { space: Space::Disk, .. }), "refused by the footer: {error}");
}

#[test]
fn sorting_stops_when_asked_to() {
    let (case, file) = unsorted();
    let request = case.request();
    let stop = StopFlag::default();
    stop.stop();
    let (_root, temp) = temp_space(1 << 20);
    let task = Task { stop: &stop, ..Task::of(&request) };
    assert!(matches!(sort_one(&task, &input(0, &file, 7), &temp), Err(MergeError::Stopped)));
}

#[test]
fn row_groups_are_as_large_as_memory_allows() {
    let demand = SortDemand {
        rows: 1_000_000,
        key_row_bytes: 40,
        widest_row_bytes: 100,
        encoded_row_bytes: 60,
        fixed_bytes: 20 << 20,
    };
    assert_eq!(demand.group_rows(1 << 30), Ok(1_000_000));
    let half = demand.group_rows(150 << 20).unwrap();
    assert!((LEAST_GROUP_ROWS..1_000_000).contains(&half), "{half}");
    assert!(demand.group_rows(200 << 20).unwrap() > half);
    // The keys of all rows are held at once: 20 MB and 60 bytes a row.
    assert_eq!(demand.group_rows(64 << 20), Err((20 << 20) + 60_000_000));
    assert_eq!(demand.disk_bytes(), 79_000_000);
}
