//! Locations: whose files are whose.

use firn_maintain::{SweepOutcome, TableSweep, Verdict};
use iceberg::spec::FormatVersion;

use crate::lake::{Lake, WAREHOUSE};

fn stopped(swept: &TableSweep) -> String {
    match &swept.outcome {
        SweepOutcome::Stopped(stop) => stop.to_string(),
        other => panic!("{other:?}"),
    }
}

/// K73: a neighbour whose name begins alike is not touched, whatever slashes the location has.
#[tokio::test]
async fn a_neighbour_with_a_longer_name_is_not_touched() {
    for location in ["wh/db/orders", "wh/db/orders/"] {
        let lake = Lake::new().await;
        let base = "abfss://lake@acct.dfs.core.windows.net";
        lake.create_at("orders", &format!("{base}/{location}"), &[], FormatVersion::V2).await;
        lake.create_at("orders_2", &format!("{base}/wh/db/orders_2"), &[], FormatVersion::V2).await;
        for table in ["orders", "orders_2"] {
            lake.append(table, &[&format!("{base}/wh/db/{table}/data/a.parquet")]).await;
            lake.put(&format!("{base}/wh/db/{table}/data/orphan.parquet"), b"x").await;
        }
        lake.hours(48);
        let (swept, heard) = lake.sweep_twice("orders").await;
        assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");
        assert!(lake.exists(&format!("{base}/wh/db/orders_2/data/orphan.parquet")).await);
        lake.check_whole("orders").await;
        lake.check_whole("orders_2").await;
    }
}

/// K73: a table inside another stops both, also one that no catalog here knows.
#[tokio::test]
async fn nested_tables_stop() {
    let lake = Lake::new().await;
    lake.create_at("orders", &format!("{WAREHOUSE}/orders"), &[], FormatVersion::V2).await;
    lake.create_at("sub", &format!("{WAREHOUSE}/orders/sub"), &[], FormatVersion::V2).await;
    lake.append("sub", &["a.parquet"]).await;
    lake.hours(48);
    for table in ["orders", "sub"] {
        let (swept, heard) = lake.sweep(table).await;
        assert!(stopped(&swept).contains("overlap: one table's files would be the other's orphans"), "{swept:?}");
        assert!(heard.0.is_empty());
    }

    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    lake.put(&format!("{WAREHOUSE}/t/data/sub/metadata/00000-x.metadata.json"), b"{}").await;
    lake.hours(48);
    let (swept, _) = lake.sweep("t").await;
    assert!(stopped(&swept).contains("holds the metadata of another table"), "{swept:?}");

    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    lake.put(&format!("{WAREHOUSE}/metadata/v7.metadata.json"), b"{}").await;
    let (swept, _) = lake.sweep("t").await;
    assert!(stopped(&swept).contains("lies inside another one"), "{swept:?}");
}

/// A table called `metadata` is no table around its neighbours.
#[tokio::test]
async fn a_neighbour_called_metadata_is_a_neighbour() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.create("metadata", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    let (swept, _) = lake.sweep("t").await;
    assert!(matches!(swept.outcome, SweepOutcome::Done), "{swept:?}");
}

/// Two tables with one data path.
#[tokio::test]
async fn a_shared_data_path_stops() {
    let lake = Lake::new().await;
    let shared = format!("{WAREHOUSE}-shared");
    for table in ["t", "u"] {
        lake.create(table, &[("write.data.path", &shared)]).await;
        lake.append(table, &[&format!("{shared}/{table}.parquet")]).await;
    }
    lake.hours(48);
    for _ in 0..3 {
        let (swept, _) = lake.sweep("t").await;
        assert!(stopped(&swept).contains("of table `db.u` overlap"), "{swept:?}");
        lake.hours(2);
    }
    lake.check_whole("u").await;
}

/// A data path of its own elsewhere is listed as well.
#[tokio::test]
async fn data_and_metadata_elsewhere_are_swept_too() {
    let lake = Lake::new().await;
    let (data, metadata) = (format!("{WAREHOUSE}-d/t"), format!("{WAREHOUSE}-m/t"));
    lake.create("t", &[("write.data.path", &data), ("write.metadata.path", &metadata)]).await;
    lake.append("t", &["old.parquet", &format!("{data}/new.parquet")]).await;
    lake.put(&format!("{data}/orphan.parquet"), b"x").await;
    lake.put(&format!("{WAREHOUSE}/t/data/orphan2.parquet"), b"x").await;
    lake.put(&format!("{WAREHOUSE}/t/stray.parquet"), b"x").await;
    lake.hours(48);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet", "orphan2.parquet"], "{swept:?}");
    assert_eq!(heard.reason("stray.parquet"), "keep: unknown layout");
    lake.check_whole("t").await;
}

/// The state of Firn never lies in a table.
#[tokio::test]
async fn a_table_that_holds_the_state_stops() {
    let lake = Lake::new().await;
    let location = "abfss://firn-state@acct.dfs.core.windows.net/";
    lake.create_at("t", location.trim_end_matches('/'), &[], FormatVersion::V2).await;
    let (swept, _) = lake.sweep("t").await;
    assert!(stopped(&swept).contains("holds the state of Firn"), "{swept:?}");
}
