//! Random groups.

use firn_model::RowOrder;
use proptest::collection::vec;
use proptest::prelude::*;

use super::oracle::compare_keys;
use super::{Case, EngineLimits, Row, TestFile, column, copying};

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
    let copying = (any::<bool>(), any::<bool>());
    (vec(file, 1..7), order(), limits, 1..8usize, 1..8usize, prop_oneof![Just(1u64), Just(1 << 20)], 1..3usize, copying)
        .prop_map(
            |(
                files,
                order,
                (chunk_rows, read_rows, key_rows, fan_in),
                window_rows,
                group_rows,
                target_bytes,
                threads,
                (copy, claims),
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
                let limits = EngineLimits {
                    chunk_rows,
                    read_rows,
                    key_rows,
                    fan_in,
                    copy,
                    copy_least_bytes: 1,
                    ..EngineLimits::default()
                };
                Case { files, order, limits, window_rows, group_rows, target_bytes, threads, claims }
            },
        )
}

/// Files whose keys follow each other, but for a few: one key may be in two neighbours, twice in one file, or far from the others.
fn disjoint() -> impl Strategy<Value = Case> {
    let step = prop_oneof![6 => 1..3i64, 1 => Just(0), 1 => Just(-3)];
    let row = (step, any::<bool>(), prop::option::of(0..3i64), 0..40u8);
    let files = vec((vec(row, 1..24), 1..4i64), 1..6);
    (files, order(), 1..6usize, 1..9usize, 1..9usize, any::<bool>(), 1..3usize, prop_oneof![Just(1u64), Just(1 << 20)])
        .prop_map(|(mut files, order, key_rows, window_rows, group_rows, claims, threads, target_bytes)| {
            files.sort_by_key(|file| file.1);
            let (mut identity, mut at) = (0, 0);
            let files = files
                .into_iter()
                .map(|(rows, sequence)| {
                    let mut rows: Vec<Row> = rows
                        .into_iter()
                        .map(|(step, named, inserted, special)| {
                            at += step;
                            identity += 1;
                            let name = (named || special > 2).then(|| format!("{at:05}"));
                            let x = match special {
                                0 => None,
                                1 => Some(f64::NAN),
                                2 => Some(-0.0),
                                _ => Some(at as f64),
                            };
                            Row { name, x, inserted, identity }
                        })
                        .collect();
                    rows.sort_by(|a, b| compare_keys(&order.columns, a, b));
                    TestFile { rows, sequence }
                })
                .collect();
            let limits = EngineLimits { key_rows, copy_least_bytes: 1, ..EngineLimits::default() };
            Case { files, order, limits, window_rows, group_rows, target_bytes, threads, claims }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_engine_is_sort_and_keep_the_newest(case in case()) {
        case.check();
    }

    #[test]
    fn copied_row_groups_are_what_decoding_gives(case in disjoint()) {
        let with = |copy| Case { limits: EngineLimits { copy, ..case.limits }, ..case.clone() };
        let (copied, decoded) = (with(true).merge().unwrap(), with(false).merge().unwrap());
        with(true).check_merged(&copied);
        assert_eq!((decoded.0.merge.row_groups_copied, decoded.0.merge.bytes_copied), (0, 0));
        copying::check_arrow_reads(&case, &copied.1);
        copying::check_equal_metrics(&copied.0.merge, &decoded.0.merge, case.claims);
    }
}
