//! What every catalog does, by value.

use std::collections::HashMap;

use firn_table::{LoadedTable, NextStep, SwapError};
use iceberg::spec::MAIN_BRANCH;
use iceberg::{TableRequirement, TableUpdate};
use uuid::Uuid;

use crate::bench::{Bench, ident};

fn set(value: &str) -> Vec<TableUpdate> {
    vec![TableUpdate::SetProperties { updates: HashMap::from([("k".to_owned(), value.to_owned())]) }]
}

fn of(table: &LoadedTable) -> Vec<TableRequirement> {
    vec![
        TableRequirement::UuidMatch { uuid: table.metadata.uuid() },
        TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id: None },
    ]
}

async fn tables_are_listed_and_a_missing_one_names_them(bench: Bench) {
    bench.create("b").await;
    bench.create("a").await;
    bench.create_others().await;
    assert_eq!(bench.catalog.list_tables(&["db".to_owned()]).await.unwrap(), ["a", "b"]);
    let inner = vec!["db".to_owned(), "inner".to_owned()];
    assert_eq!(bench.catalog.list_namespaces().await.unwrap(), [vec!["db".to_owned()], inner.clone()]);
    assert_eq!(bench.catalog.list_tables(&inner).await.unwrap(), ["y"]);
    assert_eq!(bench.catalog.list_tables(&["nowhere".to_owned()]).await.unwrap(), Vec::<String>::new());
    for missing in bench.missing() {
        let error = bench.catalog.load(&ident(missing)).await.unwrap_err();
        assert_eq!(error.next_step(), NextStep::Absent);
        let text = error.to_string();
        assert!(text.starts_with(&format!("table `db.{missing}` is not in catalog `")), "{text}");
        assert!(text.ends_with("namespace `db` has `db.a`, `db.b`"), "{text}");
    }
}

async fn a_swap_is_what_the_next_load_sees(bench: Bench) {
    let first = bench.create("t").await;
    let second = bench.catalog.swap(&first, set("1"), of(&first)).await.unwrap();
    let loaded = bench.catalog.load(&ident("t")).await.unwrap();
    for table in [&second, &loaded] {
        assert_eq!(table.property("k"), Some("1"));
        assert_ne!(table.metadata_location, first.metadata_location);
    }
    assert_eq!((&loaded.metadata, &loaded.metadata_location), (&second.metadata, &second.metadata_location));
    let log = loaded.metadata.metadata_log();
    assert_eq!(log.iter().map(|entry| &entry.metadata_file).collect::<Vec<_>>(), [&first.metadata_location]);
}

async fn a_requirement_that_does_not_hold_is_a_conflict(bench: Bench) {
    let base = bench.create("t").await;
    for requirement in [
        TableRequirement::UuidMatch { uuid: Uuid::new_v4() },
        TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id: Some(7) },
    ] {
        let error = bench.catalog.swap(&base, set("1"), vec![requirement]).await.unwrap_err();
        assert!(matches!(error, SwapError::Conflict { .. }), "{error}");
    }
    let now = bench.catalog.load(&ident("t")).await.unwrap();
    assert_eq!((now.property("k"), &now.metadata_location), (None, &base.metadata_location));
}

async fn of_many_swaps_of_one_reference_one_wins(bench: Bench) {
    let base = bench.create("t").await;
    let snapshot = |id: i64| {
        iceberg::spec::Snapshot::builder()
            .with_snapshot_id(id)
            .with_sequence_number(1)
            .with_timestamp_ms(base.metadata.last_updated_ms() + 1)
            .with_manifest_list(format!("{}/metadata/snap-{id}.avro", base.location()))
            .with_summary(iceberg::spec::Summary {
                operation: iceberg::spec::Operation::Append,
                additional_properties: HashMap::new(),
            })
            .with_schema_id(0)
            .build()
    };
    let swaps = (1..=12).map(|id| {
        let retention = iceberg::spec::SnapshotRetention::branch(None, None, None);
        let reference = iceberg::spec::SnapshotReference::new(id, retention);
        let updates = vec![
            TableUpdate::AddSnapshot { snapshot: snapshot(id) },
            TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference },
        ];
        bench.catalog.swap(&base, updates, of(&base))
    });
    let results = futures::future::join_all(swaps).await;
    let won: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    assert_eq!(won.len(), 1, "{results:?}");
    assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(SwapError::Conflict { .. }))), "{results:?}");
    let now = bench.catalog.load(&ident("t")).await.unwrap();
    assert_eq!(now.metadata.current_snapshot_id(), won[0].metadata.current_snapshot_id());
    assert_eq!(now.metadata.snapshots().len(), 1);
}

macro_rules! over {
    ($($kind:ident),+) => {$(
        mod $kind {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn tables_are_listed_and_a_missing_one_names_them() {
                super::tables_are_listed_and_a_missing_one_names_them(Bench::$kind().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn a_swap_is_what_the_next_load_sees() {
                super::a_swap_is_what_the_next_load_sees(Bench::$kind().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn a_requirement_that_does_not_hold_is_a_conflict() {
                super::a_requirement_that_does_not_hold_is_a_conflict(Bench::$kind().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn of_many_swaps_of_one_reference_one_wins() {
                super::of_many_swaps_of_one_reference_one_wins(Bench::$kind().await).await;
            }
        }
    )+};
}

over!(sqlite, postgres, rest, seaweed);
