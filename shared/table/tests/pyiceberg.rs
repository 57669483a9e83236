//! Tables that PyIceberg wrote, read through the catalog it wrote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use firn_model::{FileFacts, RowOrder};
use firn_storage::RoutingStore;
use firn_table::{
    Catalog, LoadedTable, OrderColumns, PartitionFacts, PartitionFilter, SizeLimits, SqlCatalog, TableStore,
    partition_facts, partition_stats, row_order,
};
use firn_test_support::{Lake, Python};
use serde_json::{Value, json};

async fn load(lake: &Lake, table: &str) -> LoadedTable {
    let store = TableStore::new(Arc::new(RoutingStore::new()));
    let database = lake.catalog_uri().replace("sqlite:///", "");
    let catalog = SqlCatalog::open(Path::new(&database), lake.catalog_name(), store).await.unwrap();
    catalog.load(&table.parse().unwrap()).await.unwrap()
}

/// Facts of every partition.
async fn all_facts(table: &LoadedTable, order: &RowOrder) -> Vec<PartitionFacts> {
    let stats =
        partition_stats(table, "main", &PartitionFilter::all(), SizeLimits::small_below(1 << 25)).await.unwrap();
    let wanted: HashSet<_> = stats.iter().map(|stats| (*stats.key).clone()).collect();
    let facts = partition_facts(table, "main", &wanted, order).await.unwrap();
    for stats in &stats {
        let files = &facts[&*stats.key].files;
        let sum = |of: fn(&FileFacts) -> u64| files.iter().map(of).sum::<u64>();
        let recount = (files.len() as u64, sum(|file| file.size), sum(|file| file.rows));
        assert_eq!((stats.files, stats.bytes, stats.rows), recount);
    }
    facts.into_values().collect()
}

fn by_path(partitions: &[PartitionFacts]) -> HashMap<&str, &FileFacts> {
    partitions.iter().flat_map(|partition| &partition.files).map(|file| (file.path.as_str(), file)).collect()
}

fn typed_partitions(lake: &Lake, table: &str, version: &str) -> Value {
    let catalog = lake.catalog_uri();
    let args = ["--catalog", &catalog, "--warehouse", lake.warehouse(), "--table", table, "--format-version", version];
    Python::tools().run("typed_partitions.py", &args)
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_tuples_of_every_type_and_transform_are_read_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::local(folder.path());
    for version in ["1", "2"] {
        let name = format!("db.v{version}");
        let written = typed_partitions(&lake, &name, version);
        let table = load(&lake, &name).await;
        let partitions = all_facts(&table, &RowOrder::default()).await;
        let found = by_path(&partitions);
        let files = written["files"].as_array().unwrap();
        assert_eq!(found.len(), files.len());
        for file in files {
            let facts = found[file["path"].as_str().unwrap()];
            assert_eq!(facts.partition.to_json(), file["partition"], "version {version}");
            assert_eq!(json!(facts.partition.spec_id), file["spec_id"]);
            assert_eq!(json!(facts.rows), file["rows"]);
            let commit = facts.partition.spec_id as u64;
            assert_eq!(facts.added_position, Some(commit));
            assert_eq!(facts.data_sequence_number, if version == "1" { 0 } else { commit as i64 + 1 });
        }
        // Each tuple can be asked for alone.
        for partition in &partitions {
            let wanted = HashSet::from([(*partition.key).clone()]);
            let alone = partition_facts(&table, "main", &wanted, &RowOrder::default()).await.unwrap();
            assert_eq!(alone[&*partition.key].files, partition.files);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_with_an_evolved_schema_and_spec_has_the_files_pyiceberg_says() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::local(folder.path());
    let options = "--source weather --limit 600 --appends 12 --partition month:time_hour \
        --sort-order origin,time_hour:desc --evolve rename,drop-and-add-again,promote,nested,spec";
    lake.make_table("iot.weather", &options.split_whitespace().collect::<Vec<_>>());
    let table = load(&lake, "iot.weather").await;
    let columns = OrderColumns {
        series: vec!["origin".to_owned()],
        time: Some("time_hour".to_owned()),
        dedup: true,
        ..OrderColumns::default()
    };
    let order = row_order(&table.metadata, &columns).unwrap();
    assert_eq!(order.table_sort_order_id, Some(1));
    assert!(order.columns[1].descending);
    let partitions = all_facts(&table, &order).await;
    let found = by_path(&partitions);

    let inspected = lake.inspect("iot.weather", &[]);
    let files = inspected["files"].as_array().unwrap();
    assert_eq!(found.len(), files.len());
    assert!(files.iter().map(|file| &file["spec_id"]).collect::<HashSet<_>>().len() > 1, "the spec evolved");
    for file in files {
        let facts = found[file["path"].as_str().unwrap()];
        assert_eq!(json!(facts.data_sequence_number), file["sequence_number"]);
        assert_eq!(json!(facts.added_snapshot_id), file["snapshot_id"]);
        assert_eq!(json!(facts.size), file["bytes"]);
        assert_eq!(json!(facts.rows), file["rows"]);
        assert_eq!(json!(facts.sort_order_id), file["sort_order_id"]);
        assert_eq!(json!(facts.partition.spec_id), file["spec_id"]);
        for (column, bounds) in order.columns.iter().zip(&facts.key_bounds) {
            let bounds = bounds.as_ref().expect("PyIceberg writes bounds and null counts");
            let id = column.field_id.to_string();
            let hex = |of: &str| file[of][&id].as_str().unwrap().to_owned();
            // Numbers are little-endian there, and big-endian with a flipped sign here.
            let shown = |bytes: &[u8]| match column.name.as_str() {
                "origin" => to_hex(bytes),
                _ => to_hex(&(u64::from_be_bytes(bytes.try_into().unwrap()) ^ (1 << 63)).to_le_bytes()),
            };
            assert_eq!((shown(&bounds.lower), shown(&bounds.upper)), (hex("lower_bounds"), hex("upper_bounds")));
        }
    }
    let head = table.head("main").unwrap();
    assert_eq!(json!(head.snapshot_id()), inspected["current_snapshot_id"]);
    assert_eq!(table.uuid(), inspected["uuid"]);
    assert!(Path::new(&table.metadata_location.replace("file://", "")).is_file());
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
