//! Partition tuples of every kind and specs of every age survive a commit.

use std::sync::Arc;

use firn_model::{PartitionKey, PartitionValue, Scalar};
use firn_table::LoadedTable;
use firn_table::commit::{CommitError, check_writable, replace};
use iceberg::TableUpdate;
use iceberg::spec::{Datum, FormatVersion, Literal, NestedField, PrimitiveType, Schema, Struct, Transform, Type};

use crate::files::*;
use crate::lake::*;
use crate::look::*;

fn one(value: Option<Literal>) -> Struct {
    [value].into_iter().collect()
}

fn schema_of(kind: PrimitiveType) -> Schema {
    let field = |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
    Schema::builder().with_fields([field(1, "id", PrimitiveType::Long), field(2, "p", kind)]).build().unwrap()
}

/// The tuples of all entries of the head, with the names of their files.
async fn tuples(table: &LoadedTable) -> Vec<(String, Struct)> {
    let mut found = Vec::new();
    for file in manifest_files(table, table.metadata.current_snapshot().unwrap()).await {
        let manifest = file.load_manifest(&table.io).await.unwrap();
        found.extend(manifest.entries().iter().map(|e| (name(e.file_path()), e.data_file().partition().clone())));
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    found
}

#[tokio::test]
async fn values_of_every_type_are_copied() {
    let decimal = PrimitiveType::Decimal { precision: 9, scale: 2 };
    let cases = [
        (PrimitiveType::Boolean, Literal::bool(true), Scalar::Bool(true)),
        (PrimitiveType::Int, Literal::int(-5), Scalar::Int(-5)),
        (PrimitiveType::Long, Literal::long(1_i64 << 40), Scalar::Long(1 << 40)),
        (PrimitiveType::Float, Literal::float(1.5_f32), Scalar::Float(1.5)),
        (PrimitiveType::Double, Literal::double(f64::NAN), Scalar::Double(f64::NAN)),
        (decimal, Literal::decimal(-1234), Scalar::Decimal { unscaled: -1234, scale: 2 }),
        (PrimitiveType::Date, Literal::date(20_758), Scalar::Date(20_758)),
        (PrimitiveType::Time, Literal::time(36_775_038_194), Scalar::Time(36_775_038_194)),
        (PrimitiveType::Timestamp, Literal::timestamp(-1), Scalar::Timestamp(-1)),
        (PrimitiveType::Timestamptz, Literal::timestamptz(7), Scalar::Timestamptz(7)),
        (PrimitiveType::String, Literal::string("11/12/13"), Scalar::String("11/12/13".into())),
        (PrimitiveType::Fixed(3), Literal::fixed([1, 2, 255]), Scalar::Binary(vec![1, 2, 255])),
        (PrimitiveType::Binary, Literal::binary([0, 255]), Scalar::Binary(vec![0, 255])),
    ];
    for (kind, literal, scalar) in cases {
        for (value, wanted) in [(Some(literal.clone()), Some(scalar.clone())), (None, None)] {
            let lake = Lake::new(FormatVersion::V2, schema_of(kind.clone()), by(2, "p", Transform::Identity)).await;
            let other = if value.is_none() { Some(literal.clone()) } else { None };
            // PyIceberg and Spark write null and value into one manifest.
            lake.append(vec![
                file_in("f1", one(value.clone()), 1),
                file_in("f2", one(value.clone()), 2),
                file_in("g", one(other.clone()), 4),
            ])
            .await;
            let key = PartitionKey::new(0, vec![PartitionValue { name: "p".into(), value: wanted }]);
            let request = request_for(&lake, key).await;
            let output = name(&request.outputs[0].path);
            let table =
                replace(&lake.catalog, request, at_once()).await.unwrap_or_else(|e| panic!("{kind}: {e}")).table;
            let expected = [("f1", &value), ("f2", &value), ("g", &other), (output.as_str(), &value)];
            let expected: Vec<(String, Struct)> =
                expected.iter().map(|(file, value)| ((*file).to_owned(), one((*value).clone()))).collect();
            assert_eq!(tuples(&table).await, expected, "{kind}");
            check_counts(&table, "main").await;
        }
    }
}

async fn request_for(lake: &Lake, key: PartitionKey) -> firn_table::commit::ReplaceRequest {
    use firn_table::new_file::{NewDataFile, NewFileMetrics};
    let base = lake.load().await;
    let output = format!("{}/data/h-{}.parquet", base.metadata.location(), uuid::Uuid::new_v4());
    lake.io.new_output(&output).unwrap().write(vec![7_u8; 10].into()).await.unwrap();
    firn_table::commit::ReplaceRequest {
        base,
        newest: None,
        branch: "main".into(),
        partition: Arc::new(key),
        inputs: vec!["f1".into(), "f2".into()],
        outputs: vec![NewDataFile {
            path: output,
            size: 10,
            rows: 3,
            metrics: NewFileMetrics::default(),
            sort_order_id: None,
        }],
        data_sequence_number: 1,
        rows_removed: 0,
        operation: firn_table::commit::ReplaceOperation::Replace,
        summary: Default::default(),
        inputs_hash: "h".into(),
    }
}

#[tokio::test]
async fn files_of_an_old_spec_stay_in_it() {
    let lake = by_p().await;
    lake.append(vec![file("f1", "x", 1), file("f2", "x", 2)]).await;
    let spec = iceberg::spec::UnboundPartitionSpec::builder()
        .add_partition_field(2, "p", Transform::Identity)
        .unwrap()
        .add_partition_field(1, "id", Transform::Identity)
        .unwrap()
        .build();
    lake.update(vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id: -1 }]).await;
    let newer: Struct = [Some(Literal::string("x")), Some(Literal::long(1))].into_iter().collect();
    lake.append(vec![file_in("f3", newer, 4)]).await;
    let request = lake.request(&["f1", "f2"], "h").await;
    assert_eq!(request.partition.spec_id, 0);
    let output = name(&request.outputs[0].path);
    let table = replace(&lake.catalog, request, at_once()).await.unwrap().table;
    let specs: Vec<(String, i32)> = entries(&table, "main").await.into_iter().map(|e| (e.file, e.spec)).collect();
    for (file, spec) in [("f1", 0), ("f2", 0), ("f3", 1), (output.as_str(), 0)] {
        assert!(specs.contains(&(file.to_owned(), spec)), "{file} {specs:?}");
    }
    check_counts(&table, "main").await;
}

#[tokio::test]
async fn files_of_a_spec_whose_column_was_dropped_are_still_written() {
    let lake = by_p().await;
    lake.append(vec![file("f1", "x", 1), file("f2", "x", 2), file("f3", "y", 4)]).await;
    let unpartitioned = iceberg::spec::UnboundPartitionSpec::builder().build();
    let id = Arc::new(NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)));
    let schema = Schema::builder().with_schema_id(1).with_fields([id]).build().unwrap();
    lake.update(vec![
        TableUpdate::AddSpec { spec: unpartitioned },
        TableUpdate::SetDefaultSpec { spec_id: -1 },
        TableUpdate::AddSchema { schema },
        TableUpdate::SetCurrentSchema { schema_id: -1 },
    ])
    .await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let output = name(&request.outputs[0].path);
    let table = replace(&lake.catalog, request, at_once()).await.unwrap().table;
    assert_eq!(live(&table, "main").await, ["f3", output.as_str()]);
    let of_output = tuples(&table).await.into_iter().find(|(file, _)| file == &output).unwrap();
    assert_eq!(of_output.1, one(Some(Literal::string("x"))));
    check_counts(&table, "main").await;
}

#[tokio::test]
async fn a_promoted_partition_column_is_one_partition() {
    let lake = Lake::new(FormatVersion::V2, schema_of(PrimitiveType::Int), by(2, "p", Transform::Identity)).await;
    lake.append(vec![file_in("f1", one(Some(Literal::int(5))), 1)]).await;
    let wide = schema_of(PrimitiveType::Long);
    let schema = Schema::builder().with_schema_id(1).with_fields(wide.as_struct().fields().to_vec()).build().unwrap();
    lake.update(vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }]).await;
    lake.append(vec![file_in("f2", one(Some(Literal::long(5))), 2), file_in("g", one(Some(Literal::long(6))), 2)])
        .await;
    let key = PartitionKey::new(0, vec![PartitionValue { name: "p".into(), value: Some(Scalar::Long(5)) }]);
    let mut request = request_for(&lake, key).await;
    request.data_sequence_number = 2;
    let output = name(&request.outputs[0].path);
    let table = replace(&lake.catalog, request, at_once()).await.unwrap().table;
    let five = one(Some(Literal::long(5)));
    let expected = [("f1", five.clone()), ("f2", five.clone()), ("g", one(Some(Literal::long(6)))), (&output, five)];
    assert_eq!(tuples(&table).await, expected.map(|(file, tuple)| (file.to_owned(), tuple)));
}

#[tokio::test]
async fn bounds_follow_the_current_type_of_their_column() {
    let narrow = |kind| {
        let field = |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
        [field(1, "v", kind), field(2, "p", PrimitiveType::String)]
    };
    let first = Schema::builder().with_fields(narrow(PrimitiveType::Int)).build().unwrap();
    let lake = Lake::new(FormatVersion::V2, first, by(2, "p", Transform::Identity)).await;
    let bounded = |path: &str, upper: Datum| {
        let plain = file(path, "a", 1);
        iceberg::spec::DataFileBuilder::default()
            .content(plain.content_type())
            .file_path(path.to_owned())
            .file_format(plain.file_format())
            .partition(plain.partition().clone())
            .record_count(1)
            .file_size_in_bytes(10)
            .upper_bounds(std::collections::HashMap::from([(1, upper)]))
            .build()
            .unwrap()
    };
    lake.append(vec![bounded("f1", Datum::int(5)), bounded("f2", Datum::int(6)), bounded("f3", Datum::int(7))]).await;
    let schema = Schema::builder().with_schema_id(1).with_fields(narrow(PrimitiveType::Long)).build().unwrap();
    lake.update(vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }]).await;
    let mut request = lake.request(&["f1", "f2"], "h").await;
    request.outputs[0].metrics.upper_bounds.insert(1, (1_i64 << 40).to_le_bytes().to_vec());
    let output = name(&request.outputs[0].path);
    let table = replace(&lake.catalog, request, at_once()).await.unwrap().table;
    let mut uppers = Vec::new();
    for file in manifest_files(&table, table.metadata.current_snapshot().unwrap()).await {
        let manifest = file.load_manifest(&table.io).await.unwrap();
        uppers
            .extend(manifest.entries().iter().map(|e| (name(e.file_path()), e.data_file().upper_bounds()[&1].clone())));
    }
    uppers.sort_by(|left, right| left.0.cmp(&right.0));
    let expected = [("f1", 5_i64), ("f2", 6), ("f3", 7), (output.as_str(), 1 << 40)];
    assert_eq!(uppers, expected.map(|(file, value)| (file.to_owned(), Datum::long(value))));
}

#[tokio::test]
async fn a_spec_that_cannot_be_written_is_refused_before_any_work() {
    let lake = Lake::new(FormatVersion::V2, schema_of(PrimitiveType::Uuid), by(2, "p", Transform::Identity)).await;
    lake.append(vec![]).await;
    let error = check_writable(&lake.load().await, "main", 0).unwrap_err();
    assert!(matches!(&error, CommitError::Permanent { detail, .. } if detail.contains("`p` is a UUID")), "{error}");
    let bucket =
        Lake::new(FormatVersion::V2, schema_of(PrimitiveType::Uuid), by(2, "p_bucket", Transform::Bucket(4))).await;
    bucket.append(vec![]).await;
    check_writable(&bucket.load().await, "main", 0).unwrap();
    assert!(check_writable(&bucket.load().await, "main", 7).is_err());
    assert!(check_writable(&bucket.load().await, "absent", 0).is_err());
}
