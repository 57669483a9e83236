use std::collections::HashSet;
use std::sync::Arc;

use firn_model::{
    Bounds, DeleteFacts, DeleteKind, FileFacts, FileFormat, OrderColumn, PartitionKey, PartitionValue, RowOrder,
    Scalar, TierCounts,
};
use iceberg::TableUpdate;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, Datum, FormatVersion, Literal, PrimitiveType, Schema, Struct,
    Transform,
};

use super::*;
use crate::filter::PartitionFilter;
use crate::key_bytes::memcmp;
use crate::testing::{
    Commit, LOCATION, Lake, NewFile, Shape, Written, data, file, readings_schema, schema_of, spec, tuple,
};

const DAY: i32 = 20_758;

fn day_region() -> Shape {
    Shape::partitioned(&[(2, "day", Transform::Day), (4, "region", Transform::Identity)])
}

fn day_region_tuple(day: i32, region: Option<&str>) -> Struct {
    tuple([Some(Literal::date(day)), region.map(Literal::string)])
}

fn day_region_key(day: i32, region: Option<&str>) -> PartitionKey {
    let value = |name: &str, value| PartitionValue { name: name.to_owned(), value };
    PartitionKey::new(
        0,
        vec![
            value("day", Some(Scalar::Date(day))),
            value("region", region.map(|region| Scalar::String(region.to_owned()))),
        ],
    )
}

fn plain(path: &str, day: i32, region: Option<&str>, size: u64) -> NewFile {
    data(0, path, day_region_tuple(day, region), size, |_| {})
}

fn unordered() -> RowOrder {
    RowOrder::default()
}

fn by(columns: &[i32]) -> RowOrder {
    let column = |id: &i32| OrderColumn { field_id: *id, name: String::new(), descending: false, nulls_first: true };
    RowOrder { columns: columns.iter().map(column).collect(), ..RowOrder::default() }
}

async fn facts_of(table: &LoadedTable, key: &PartitionKey, order: &RowOrder) -> PartitionFacts {
    let wanted = HashSet::from([key.clone()]);
    partition_facts(table, "main", &wanted, order).await.unwrap().remove(key).unwrap()
}

fn names(facts: &PartitionFacts) -> Vec<(&str, i64)> {
    let name = |path: &'_ str| path.len() - path.rsplit('/').next().unwrap().len();
    facts.files.iter().map(|file| (&file.path[name(&file.path)..], file.data_sequence_number)).collect()
}

#[tokio::test]
async fn stats_count_live_files_by_partition_in_order() {
    let lake = Lake::new().await;
    let table = lake.create("t", day_region()).await;
    assert_eq!(
        partition_stats(&table, "main", &PartitionFilter::all(), SizeLimits::small_below(100)).await.unwrap(),
        []
    );
    let table = lake
        .append(
            &table,
            vec![plain("a", DAY, Some("us"), 99), plain("b", DAY, Some("us"), 100), plain("c", DAY - 1, None, 7)],
        )
        .await;
    let delete = file(DataContentType::PositionDeletes, 0, "d", day_region_tuple(DAY, Some("us")), 5, |_| {});
    let alone = file(DataContentType::PositionDeletes, 0, "e", day_region_tuple(DAY, Some("eu")), 5, |_| {});
    let table = lake.append(&table, vec![plain("f", -1, Some("us"), 1), delete, alone]).await;

    let stats = partition_stats(&table, "main", &PartitionFilter::all(), SizeLimits::small_below(100)).await.unwrap();
    let stat = |key: PartitionKey, files, bytes, small_files, small_bytes, delete_files| PartitionStats {
        key: Arc::new(key),
        files,
        bytes,
        rows: files * 10,
        small_files,
        small_bytes,
        tiers: TierCounts::default(),
        large_files: files,
        delete_files,
    };
    assert_eq!(
        stats,
        [
            stat(day_region_key(-1, Some("us")), 1, 1, 1, 1, 0),
            stat(day_region_key(DAY - 1, None), 1, 7, 1, 7, 0),
            stat(day_region_key(DAY, Some("us")), 2, 199, 1, 99, 1),
        ]
    );
}

#[tokio::test]
async fn facts_say_what_the_entries_say() {
    let lake = Lake::new().await;
    let table = lake.create("t", day_region()).await;
    let metrics = |builder: &mut DataFileBuilder| {
        builder
            .null_value_counts([(1, 0), (2, 0), (3, 0), (5, 1)].into())
            .nan_value_counts([(3, 0)].into())
            .lower_bounds(
                [
                    (1, Datum::string("a")),
                    (2, Datum::timestamp_micros(-5)),
                    (3, Datum::double(1.5)),
                    (5, Datum::int(1)),
                ]
                .into(),
            )
            .upper_bounds(
                [(1, Datum::string("é")), (2, Datum::timestamp_micros(7)), (3, Datum::double(2.5)), (5, Datum::int(2))]
                    .into(),
            )
            .sort_order_id(3);
    };
    let table =
        lake.append(&table, vec![data(0, "x%20 y#1.parquet", day_region_tuple(DAY, Some("a/b")), 42, metrics)]).await;
    let key = day_region_key(DAY, Some("a/b"));
    let facts = facts_of(&table, &key, &by(&[1, 2, 3, 5, 4])).await;
    let bounds = |lower: Scalar, upper: Scalar| Some(Bounds { lower: memcmp(&lower), upper: memcmp(&upper) });
    let expected = FileFacts {
        path: format!("{LOCATION}/x%20 y#1.parquet"),
        partition: Arc::new(key),
        data_sequence_number: 1,
        added_snapshot_id: Some(1_000),
        added_position: Some(0),
        size: 42,
        rows: 10,
        format: FileFormat::Parquet,
        sort_order_id: Some(3),
        key_bounds: vec![
            bounds(Scalar::String("a".into()), Scalar::String("é".into())),
            bounds(Scalar::Timestamp(-5), Scalar::Timestamp(7)),
            bounds(Scalar::Double(1.5), Scalar::Double(2.5)),
            // A null lies outside every bound; nothing is known of the last column.
            None,
            None,
        ],
        key_range: None,
    };
    assert_eq!(facts.files, [expected]);
    assert_eq!(facts.deletes, []);
}

#[tokio::test]
async fn floats_without_a_nan_count_prove_nothing_and_promoted_bounds_are_of_the_current_type() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[])).await;
    let metrics = |builder: &mut DataFileBuilder| {
        builder
            .null_value_counts([(3, 0), (5, 0)].into())
            .lower_bounds([(3, Datum::double(1.5)), (5, Datum::int(-1))].into())
            .upper_bounds([(3, Datum::double(2.5)), (5, Datum::int(2))].into());
    };
    let table = lake.append(&table, vec![data(0, "a", Struct::empty(), 1, metrics)]).await;
    let promoted = schema_of(&[
        (1, "name", PrimitiveType::String),
        (3, "value", PrimitiveType::Double),
        (5, "n", PrimitiveType::Long),
    ]);
    let updates = vec![TableUpdate::AddSchema { schema: promoted }, TableUpdate::SetCurrentSchema { schema_id: -1 }];
    let table = lake.update(&table, updates).await;
    let facts = facts_of(&table, &PartitionKey::unpartitioned(0), &by(&[3, 5])).await;
    let long = Bounds { lower: memcmp(&Scalar::Long(-1)), upper: memcmp(&Scalar::Long(2)) };
    assert_eq!(facts.files[0].key_bounds, [None, Some(long)]);
}

#[tokio::test]
async fn existing_entries_keep_their_numbers_and_deleted_ones_are_gone() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[])).await;
    let one = |path| data(0, path, Struct::empty(), 1, |_| {});
    let table = lake.append(&table, vec![one("a"), one("b"), one("c")]).await;
    let table = lake.append(&table, vec![one("d")]).await;
    // A rewrite of the first manifest: b goes, a and c stay as they were, e comes in.
    let kept = table.manifests(table.head("main").unwrap()).await.unwrap();
    let mut commit = Commit::new(&table);
    commit
        .write_manifest(
            0,
            false,
            vec![
                Written::Existing(one("c").file, 1_000, 1),
                Written::Deleted(one("b").file, 1),
                Written::Existing(one("a").file, 999, 1),
                Written::Added(one("e").file),
            ],
        )
        .await;
    commit.manifests.extend(kept.into_iter().filter(|manifest| manifest.added_snapshot_id == 1_001));
    let table = commit.finish(&lake, "main").await;

    let facts = facts_of(&table, &PartitionKey::unpartitioned(0), &unordered()).await;
    assert_eq!(names(&facts), [("a", 1), ("c", 1), ("d", 2), ("e", 3)]);
    let history: Vec<_> = facts.files.iter().map(|file| (file.added_snapshot_id, file.added_position)).collect();
    // 999 is no snapshot of the table any more.
    assert_eq!(history, [(Some(999), None), (Some(1_000), Some(0)), (Some(1_001), Some(1)), (Some(1_002), Some(2))]);
}

#[tokio::test]
async fn files_of_version_1_have_number_0_and_their_place_in_history_also_after_an_upgrade() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[]).version(FormatVersion::V1)).await;
    let one = |path| data(0, path, Struct::empty(), 1, |_| {});
    let table = lake.append(&table, vec![one("b")]).await;
    let table = lake.append(&table, vec![one("a")]).await;
    let upgraded =
        lake.update(&table, vec![TableUpdate::UpgradeFormatVersion { format_version: FormatVersion::V2 }]).await;
    for table in [&table, &upgraded] {
        let facts = facts_of(table, &PartitionKey::unpartitioned(0), &unordered()).await;
        assert_eq!(names(&facts), [("a", 0), ("b", 0)]);
        assert_eq!((facts.files[0].added_position, facts.files[1].added_position), (Some(1), Some(0)));
    }
    let table = lake.append(&upgraded, vec![one("c")]).await;
    let facts = facts_of(&table, &PartitionKey::unpartitioned(0), &unordered()).await;
    assert_eq!(names(&facts), [("a", 0), ("b", 0), ("c", 1)]);
}

#[tokio::test]
async fn manifests_that_cannot_hold_what_is_wanted_are_not_read() {
    let lake = Lake::new().await;
    let mut table = lake.create("t", day_region()).await;
    for (path, day, region) in
        [("a", DAY, Some("eu")), ("b", DAY + 1, Some("eu")), ("c", DAY, Some("us")), ("d", DAY, None)]
    {
        table = lake.append(&table, vec![plain(path, day, region, 1)]).await;
    }
    let manifests = table.manifests(table.head("main").unwrap()).await.unwrap();
    let path_of = |snapshot: i64| {
        &manifests.iter().find(|manifest| manifest.added_snapshot_id == snapshot).unwrap().manifest_path
    };
    // Reading any of the other manifests would fail.
    for snapshot in [1_001, 1_002, 1_003] {
        lake.delete(path_of(snapshot)).await;
    }
    let key = day_region_key(DAY, Some("eu"));
    assert_eq!(names(&facts_of(&table, &key, &unordered()).await), [("a", 1)]);
    let filter = |day: &str, region: &str| {
        let terms = [format!("day={day}").parse().unwrap(), format!("region={region}").parse().unwrap()];
        PartitionFilter::new(&table.spec_types().unwrap(), None, &terms, None).unwrap()
    };
    let stats =
        partition_stats(&table, "main", &filter("2026-11-01", "eu"), SizeLimits::small_below(100)).await.unwrap();
    assert_eq!(stats.iter().map(|stats| &*stats.key).collect::<Vec<_>>(), [&key]);
    for filter in [PartitionFilter::all(), filter("2026-11-01", r"\N"), filter("2026-11-02", "eu")] {
        let error = partition_stats(&table, "main", &filter, SizeLimits::small_below(100)).await.unwrap_err();
        assert!(matches!(&error, crate::TableError::Read { .. }), "{error}");
    }
}

#[tokio::test]
async fn many_manifests_are_all_read() {
    let lake = Lake::new().await;
    let mut table = lake.create("t", Shape::partitioned(&[])).await;
    for n in 0..40 {
        table = lake.append(&table, vec![data(0, &format!("f{n:02}"), Struct::empty(), n, |_| {})]).await;
    }
    let stats = partition_stats(&table, "main", &PartitionFilter::all(), SizeLimits::small_below(20)).await.unwrap();
    assert_eq!(stats.len(), 1);
    let stat = &stats[0];
    assert_eq!((stat.files, stat.bytes, stat.small_files, stat.small_bytes), (40, 780, 20, 190));
    let facts = facts_of(&table, &PartitionKey::unpartitioned(0), &unordered()).await;
    let expected: Vec<(String, i64)> = (0..40).map(|n| (format!("f{n:02}"), n + 1)).collect();
    assert_eq!(names(&facts), expected.iter().map(|(name, number)| (name.as_str(), *number)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_path_that_is_live_twice_is_an_error() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[])).await;
    let one = || data(0, "a", Struct::empty(), 1, |_| {});
    let table = lake.append(&table, vec![one()]).await;
    let table = lake.append(&table, vec![one()]).await;
    let wanted = HashSet::from([PartitionKey::unpartitioned(0)]);
    let error = partition_facts(&table, "main", &wanted, &unordered()).await.unwrap_err();
    assert!(error.to_string().contains(&format!("data file `{LOCATION}/a` is live twice")), "{error}");
}

#[tokio::test]
async fn delete_files_come_with_what_limits_them() {
    let lake = Lake::new().await;
    let table = lake.create("t", day_region()).await;
    let here = || day_region_tuple(DAY, Some("eu"));
    let table = lake.append(&table, vec![plain("a", DAY, Some("eu"), 1), plain("b", DAY, Some("us"), 1)]).await;
    let table = lake
        .update(&table, vec![TableUpdate::AddSpec { spec: spec(&[]) }, TableUpdate::SetDefaultSpec { spec_id: -1 }])
        .await;
    let path_column = 2_147_483_546;
    let bounded = file(DataContentType::PositionDeletes, 0, "p1", here(), 1, |builder| {
        builder
            .lower_bounds([(path_column, Datum::string("x/a"))].into())
            .upper_bounds([(path_column, Datum::string("x/c"))].into())
            .referenced_data_file(Some("x/a".to_owned()));
    });
    let half = file(DataContentType::PositionDeletes, 0, "p2", here(), 1, |builder| {
        builder.lower_bounds([(path_column, Datum::string("x/a"))].into());
    });
    let elsewhere = file(DataContentType::PositionDeletes, 0, "p3", day_region_tuple(DAY, Some("us")), 1, |_| {});
    let global = file(DataContentType::EqualityDeletes, 1, "e1", Struct::empty(), 1, |builder| {
        builder.equality_ids(Some(vec![1]));
    });
    let table = lake.append(&table, vec![bounded, half, elsewhere, global]).await;

    let key = day_region_key(DAY, Some("eu"));
    let facts = facts_of(&table, &key, &unordered()).await;
    let delete = |path: &str, kind, partition: &PartitionKey| DeleteFacts {
        path: format!("{LOCATION}/{path}"),
        kind,
        partition: Arc::new(partition.clone()),
        data_sequence_number: 2,
        referenced_data_file: None,
        file_path_bounds: None,
        content_offset: None,
    };
    let mut limited = delete("p1", DeleteKind::Position, &key);
    limited.referenced_data_file = Some("x/a".to_owned());
    limited.file_path_bounds = Some((b"x/a".to_vec(), b"x/c".to_vec()));
    assert_eq!(
        facts.deletes,
        [
            delete("e1", DeleteKind::Equality, &PartitionKey::unpartitioned(1)),
            limited,
            delete("p2", DeleteKind::Position, &key),
        ]
    );
    let stats = partition_stats(&table, "main", &PartitionFilter::all(), SizeLimits::small_below(1)).await.unwrap();
    assert_eq!(stats.iter().map(|stats| stats.delete_files).collect::<Vec<_>>(), [3, 2]);
}

#[tokio::test]
async fn deletion_vectors_are_known_by_their_format() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[]).version(FormatVersion::V3)).await;
    let table = lake.append(&table, vec![data(0, "a", Struct::empty(), 1, |_| {})]).await;
    let vector = file(DataContentType::PositionDeletes, 0, "v.puffin", Struct::empty(), 1, |builder| {
        builder
            .file_format(DataFileFormat::Puffin)
            .referenced_data_file(Some(format!("{LOCATION}/a")))
            .content_offset(Some(4))
            .content_size_in_bytes(Some(40));
    });
    let table = lake.append(&table, vec![vector]).await;
    let facts = facts_of(&table, &PartitionKey::unpartitioned(0), &unordered()).await;
    let vector = &facts.deletes[0];
    assert_eq!((vector.kind, vector.content_offset), (DeleteKind::Vector, Some(4)));
    assert_eq!(vector.referenced_data_file, Some(format!("{LOCATION}/a")));
    assert_eq!(names(&facts), [("a", 1)]);
}

#[tokio::test]
async fn specs_are_never_mixed_and_void_fields_are_null() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[(5, "n", Transform::Identity)])).await;
    let table = lake
        .update(
            &table,
            vec![
                TableUpdate::AddSpec { spec: spec(&[(5, "n_void", Transform::Void), (2, "day", Transform::Day)]) },
                TableUpdate::AddSpec { spec: spec(&[(5, "n_void", Transform::Void)]) },
                TableUpdate::AddSpec {
                    spec: spec(&[(5, "n", Transform::Identity), (4, "region", Transform::Identity)]),
                },
            ],
        )
        .await;
    let mut ids: Vec<_> = table.metadata.partition_specs_iter().map(|spec| spec.spec_id()).collect();
    ids.sort();
    assert_eq!(ids, [0, 1, 2, 3]);
    let table = lake
        .append(
            &table,
            vec![
                data(0, "a", tuple([Some(Literal::int(1))]), 1, |_| {}),
                data(0, "b", tuple([None]), 1, |_| {}),
                data(1, "c", tuple([None, Some(Literal::date(DAY))]), 1, |_| {}),
                data(1, "d", tuple([None, None]), 1, |_| {}),
                data(2, "e", tuple([None]), 1, |_| {}),
                data(2, "f", tuple([None]), 1, |_| {}),
                data(3, "g", tuple([Some(Literal::int(1)), None]), 1, |_| {}),
            ],
        )
        .await;
    let stats = partition_stats(&table, "main", &PartitionFilter::all(), SizeLimits::small_below(1)).await.unwrap();
    let found: Vec<(i32, String, u64)> =
        stats.iter().map(|stats| (stats.key.spec_id, stats.key.to_string(), stats.files)).collect();
    let expected = [
        (0, "n=null", 1),
        (0, "n=1", 1),
        (1, "n_void=null, day=null", 1),
        (1, "n_void=null, day=2026-11-01", 1),
        (2, "(unpartitioned)", 2),
        (3, "n=1, region=null", 1),
    ];
    assert_eq!(found, expected.map(|(id, key, files)| (id, key.to_owned(), files)));
    for stats in &stats {
        assert_eq!(facts_of(&table, &stats.key, &unordered()).await.files.len() as u64, stats.files, "{}", stats.key);
    }
}

/// Writes an Avro file again with another value of one key of its metadata.
fn with_metadata(bytes: &[u8], key: &str, value: &str) -> Vec<u8> {
    let reader = apache_avro::Reader::new(bytes).unwrap();
    let (schema, metadata) = (reader.writer_schema().clone(), reader.user_metadata().clone());
    let mut writer = apache_avro::Writer::new(&schema, Vec::new());
    for (name, old) in metadata {
        let new = if name == key { value.as_bytes().to_vec() } else { old };
        writer.add_user_metadata(name, new).unwrap();
    }
    for entry in reader {
        writer.append(entry.unwrap()).unwrap();
    }
    writer.into_inner().unwrap()
}

#[tokio::test]
async fn a_spec_whose_source_column_was_dropped_still_has_its_files() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[(4, "region_trunc", Transform::Truncate(2))])).await;
    let table = lake.append(&table, vec![data(0, "a", tuple([Some(Literal::string("eu"))]), 1, |_| {})]).await;
    let without_region: Vec<_> =
        readings_schema().as_struct().fields().iter().filter(|field| field.id != 4).cloned().collect();
    let without_region = Schema::builder().with_fields(without_region).build().unwrap();
    let table = lake
        .update(
            &table,
            vec![
                TableUpdate::AddSpec { spec: spec(&[]) },
                TableUpdate::SetDefaultSpec { spec_id: -1 },
                TableUpdate::AddSchema { schema: without_region.clone() },
                TableUpdate::SetCurrentSchema { schema_id: -1 },
            ],
        )
        .await;
    let stats = partition_stats(&table, "main", &PartitionFilter::all(), SizeLimits::small_below(1)).await.unwrap();
    assert_eq!(stats[0].key.to_string(), "region_trunc=eu");

    // Java rewrites manifests with the current schema in their header.
    let manifest = table.manifests(table.head("main").unwrap()).await.unwrap().remove(0);
    let bytes = table.blobs().read_all(&table.blob_id(&manifest.manifest_path).unwrap()).await.unwrap();
    let rewritten = with_metadata(&bytes, "schema", &serde_json::to_string(&without_region).unwrap());
    lake.delete(&manifest.manifest_path).await;
    lake.put(&manifest.manifest_path, rewritten).await;
    assert!(
        manifest.load_manifest(&table.io).await.is_err(),
        "the iceberg crate reads it now: is an own reader still needed?"
    );
    assert_eq!(names(&facts_of(&table, &stats[0].key, &unordered()).await), [("a", 1)]);
}

#[tokio::test]
async fn tuples_written_before_a_promotion_are_the_same_partition() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[(5, "n", Transform::Identity)])).await;
    let table = lake.append(&table, vec![data(0, "a", tuple([Some(Literal::int(7))]), 1, |_| {})]).await;
    let promoted = schema_of(&[(1, "name", PrimitiveType::String), (5, "n", PrimitiveType::Long)]);
    let updates = vec![TableUpdate::AddSchema { schema: promoted }, TableUpdate::SetCurrentSchema { schema_id: -1 }];
    let table = lake.update(&table, updates).await;
    let table = lake.append(&table, vec![data(0, "b", tuple([Some(Literal::long(7))]), 1, |_| {})]).await;
    let value = PartitionValue { name: "n".to_owned(), value: Some(Scalar::Long(7)) };
    let key = PartitionKey::new(0, vec![value]);
    assert_eq!(names(&facts_of(&table, &key, &unordered()).await), [("a", 1), ("b", 2)]);
}

#[tokio::test]
async fn a_branch_has_its_own_files() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[])).await;
    let one = |path| data(0, path, Struct::empty(), 1, |_| {});
    let table = lake.append(&table, vec![one("a")]).await;
    let table = lake.append_to(&table, "audit", vec![one("b")]).await;
    let table = lake.append(&table, vec![one("c")]).await;
    let key = PartitionKey::unpartitioned(0);
    assert_eq!(names(&facts_of(&table, &key, &unordered()).await), [("a", 1), ("c", 3)]);
    let wanted = HashSet::from([key.clone()]);
    let facts = partition_facts(&table, "audit", &wanted, &unordered()).await.unwrap();
    assert_eq!(names(&facts[&key]), [("a", 1), ("b", 2)]);
    let positions: Vec<_> = facts[&key].files.iter().map(|file| file.added_position).collect();
    assert_eq!(positions, [Some(0), Some(1)]);
    let error = partition_facts(&table, "nothing", &wanted, &unordered()).await.unwrap_err();
    assert_eq!(error.to_string(), "table `db.t` has no branch `nothing`: create it, or correct branch of the dataset");
}

#[tokio::test]
async fn damaged_and_missing_manifests_are_named() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[])).await;
    let table = lake.append(&table, vec![data(0, "a", Struct::empty(), 1, |_| {})]).await;
    let head = table.head("main").unwrap().clone();
    let path = table.manifests(&head).await.unwrap().remove(0).manifest_path;
    let bytes = table.blobs().read_all(&table.blob_id(&path).unwrap()).await.unwrap();
    let stats = || async { partition_stats(&table, "main", &PartitionFilter::all(), SizeLimits::small_below(1)).await };
    for damaged in [bytes.slice(..bytes.len() - 9), bytes.slice(..3), bytes::Bytes::from_static(b"PAR1")] {
        lake.delete(&path).await;
        lake.put(&path, damaged).await;
        let error = stats().await.unwrap_err();
        assert!(matches!(&error, crate::TableError::Damaged { .. }) && error.to_string().contains(&path), "{error}");
    }
    lake.delete(&path).await;
    let error = stats().await.unwrap_err();
    assert!(matches!(&error, crate::TableError::Read { .. }) && error.to_string().contains(&path), "{error}");
    lake.delete(head.manifest_list()).await;
    lake.put(head.manifest_list(), "no list").await;
    let error = stats().await.unwrap_err();
    assert!(
        matches!(&error, crate::TableError::Damaged { .. }) && error.to_string().contains(head.manifest_list()),
        "{error}"
    );
}
