//! The own reader of manifest entries against what the iceberg crate wrote and reads.

use std::sync::Arc;

use firn_model::Scalar;
use firn_storage::MemoryStore;
use iceberg::spec::{Datum, FormatVersion, Literal, ManifestWriterBuilder, PartitionSpec, PrimitiveType, Transform};
use proptest::prelude::*;

use super::entry::{Content, live_entries};
use crate::partition_type::{PartitionField, SpecTypes};
use crate::testing::{data, schema_of, tuple};
use crate::{TableStore, key_bytes};

/// Types that can partition by identity, with field ids. Not uuid: the crate cannot write it in a partition tuple (0.10.1).
fn columns() -> Vec<(i32, &'static str, PrimitiveType)> {
    vec![
        (1, "bool", PrimitiveType::Boolean),
        (2, "int", PrimitiveType::Int),
        (3, "long", PrimitiveType::Long),
        (4, "float", PrimitiveType::Float),
        (5, "double", PrimitiveType::Double),
        (6, "dec", PrimitiveType::Decimal { precision: 20, scale: 3 }),
        (7, "date", PrimitiveType::Date),
        (8, "time", PrimitiveType::Time),
        (9, "ts", PrimitiveType::Timestamp),
        (10, "tstz", PrimitiveType::Timestamptz),
        (11, "string", PrimitiveType::String),
        (13, "fixed", PrimitiveType::Fixed(3)),
        (14, "binary", PrimitiveType::Binary),
    ]
}

fn value(primitive: &PrimitiveType) -> BoxedStrategy<(Scalar, Literal)> {
    match primitive {
        PrimitiveType::Boolean => any::<bool>().prop_map(|v| (Scalar::Bool(v), Literal::bool(v))).boxed(),
        PrimitiveType::Int => any::<i32>().prop_map(|v| (Scalar::Int(v), Literal::int(v))).boxed(),
        PrimitiveType::Long => any::<i64>().prop_map(|v| (Scalar::Long(v), Literal::long(v))).boxed(),
        PrimitiveType::Float => any::<f32>().prop_map(|v| (Scalar::Float(v), Literal::float(v))).boxed(),
        PrimitiveType::Double => any::<f64>().prop_map(|v| (Scalar::Double(v), Literal::double(v))).boxed(),
        PrimitiveType::Decimal { scale, .. } => {
            let scale = *scale;
            let most = 10i128.pow(20) - 1;
            (-most..=most)
                .prop_map(move |unscaled| (Scalar::Decimal { unscaled, scale }, Literal::decimal(unscaled)))
                .boxed()
        }
        PrimitiveType::Date => any::<i32>().prop_map(|v| (Scalar::Date(v), Literal::date(v))).boxed(),
        PrimitiveType::Time => (0..86_400_000_000i64).prop_map(|v| (Scalar::Time(v), Literal::time(v))).boxed(),
        PrimitiveType::Timestamp => any::<i64>().prop_map(|v| (Scalar::Timestamp(v), Literal::timestamp(v))).boxed(),
        PrimitiveType::Timestamptz => {
            any::<i64>().prop_map(|v| (Scalar::Timestamptz(v), Literal::timestamptz(v))).boxed()
        }
        PrimitiveType::String => ".{0,8}".prop_map(|v: String| (Scalar::String(v.clone()), Literal::string(v))).boxed(),
        PrimitiveType::Fixed(size) => proptest::collection::vec(any::<u8>(), *size as usize)
            .prop_map(|v| (Scalar::Binary(v.clone()), Literal::fixed(v)))
            .boxed(),
        _ => any::<Vec<u8>>().prop_map(|v| (Scalar::Binary(v.clone()), Literal::binary(v))).boxed(),
    }
}

fn a_tuple() -> BoxedStrategy<Vec<Option<(Scalar, Literal)>>> {
    columns().iter().map(|(_, _, of)| proptest::option::of(value(of))).collect::<Vec<_>>().boxed()
}

fn spec_types() -> SpecTypes {
    let field = |(index, (id, name, of)): (i32, &(i32, &str, PrimitiveType))| PartitionField {
        id: 1_000 + index,
        name: (*name).to_owned(),
        source_id: *id,
        source_name: Some((*name).to_owned()),
        source_type: Some(of.clone()),
        transform: Transform::Identity,
        result_type: Some(of.clone()),
    };
    SpecTypes { spec_id: 0, fields: (0..).zip(&columns()).map(field).collect() }
}

/// What is compared of an entry.
#[derive(Debug, PartialEq)]
struct Seen {
    path: String,
    snapshot_id: Option<i64>,
    sequence_number: i64,
    partition: Vec<Option<Scalar>>,
    rows: u64,
    size: u64,
    sort_order_id: Option<i32>,
    nulls: Option<i64>,
    bounds: Option<(Vec<u8>, Vec<u8>)>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_entry_is_read_as_it_was_written(
        tuples in proptest::collection::vec((a_tuple(), any::<i32>(), 0..3u8), 1..20),
        version in prop_oneof![Just(FormatVersion::V1), Just(FormatVersion::V2), Just(FormatVersion::V3)],
        manifest_number in 1..100i64,
    ) {
        let schema = Arc::new(schema_of(&columns()));
        let mut spec = PartitionSpec::builder(schema.clone()).with_spec_id(0);
        for (_, name, _) in columns() {
            spec = spec.add_partition_field(name, name, Transform::Identity).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = TableStore::new(Arc::new(MemoryStore::new()));
        let io = store.file_io();
        let output = io.new_output("file:///m.avro").unwrap();
        let builder = ManifestWriterBuilder::new(output, Some(77), schema.clone(), spec.build().unwrap());
        let mut writer = match version {
            FormatVersion::V1 => builder.build_v1(),
            FormatVersion::V2 => builder.build_v2_data(),
            FormatVersion::V3 => builder.build_v3_data(),
        };
        let mut written = Vec::new();
        for (n, (values, bound, status)) in tuples.iter().enumerate() {
            let literals = values.iter().map(|value| value.as_ref().map(|(_, literal)| literal.clone()));
            let file = data(0, &format!("f{n}"), tuple(literals), n as u64 + 7, |builder| {
                builder.record_count(n as u64 + 3).null_value_counts([(2, n as u64), (3, 1)].into());
                builder.lower_bounds([(2, Datum::int(*bound))].into()).upper_bounds([(2, Datum::int(*bound))].into());
                if n % 2 == 0 {
                    builder.sort_order_id(n as i32);
                }
            }).file;
            match status {
                0 => writer.add_file(file, -1).unwrap(),
                1 => writer.add_existing_file(file, 50, 4, Some(5)).unwrap(),
                _ => writer.add_delete_file(file, 4, Some(5)).unwrap(),
            }
            let (snapshot_id, number) = if *status == 0 { (77, manifest_number) } else { (50, 4) };
            if *status < 2 {
                let bytes = bound.to_le_bytes().to_vec();
                written.push(Seen {
                    path: format!("{}/f{n}", crate::testing::LOCATION),
                    snapshot_id: Some(snapshot_id),
                    sequence_number: if version == FormatVersion::V1 { 0 } else { number },
                    partition: values.iter().map(|value| value.as_ref().map(|(scalar, _)| scalar.clone())).collect(),
                    rows: n as u64 + 3,
                    size: n as u64 + 7,
                    sort_order_id: (n % 2 == 0).then_some(n as i32),
                    nulls: Some(n as i64),
                    bounds: Some((bytes.clone(), bytes)),
                });
            }
        }
        let mut manifest = runtime.block_on(writer.write_manifest_file()).unwrap();
        manifest.sequence_number = if version == FormatVersion::V1 { 0 } else { manifest_number };
        let bytes = runtime.block_on(io.new_input("file:///m.avro").unwrap().read()).unwrap();

        let mut seen = Vec::new();
        live_entries(&bytes, &spec_types(), &manifest, |entry| {
            assert_eq!(entry.content, Content::Data);
            assert_eq!(entry.format().unwrap(), "parquet");
            seen.push(Seen {
                path: entry.path().unwrap().to_owned(),
                snapshot_id: entry.snapshot_id,
                sequence_number: entry.sequence_number,
                rows: entry.rows().unwrap(),
                size: entry.size().unwrap(),
                sort_order_id: entry.sort_order_id().unwrap(),
                nulls: entry.null_count(2),
                bounds: entry.bounds(2).map(|(lower, upper)| (lower.to_vec(), upper.to_vec())),
                partition: entry.partition,
            });
            Ok(())
        }).unwrap();
        prop_assert_eq!(&seen, &written);

        // And the crate reads the same, in the same order.
        let theirs = runtime.block_on(manifest.load_manifest(&io)).unwrap();
        let theirs: Vec<Seen> = theirs.entries().iter().filter(|entry| entry.is_alive()).zip(&seen).map(|(entry, ours)| {
            let file = entry.data_file();
            Seen {
                path: entry.file_path().to_owned(),
                snapshot_id: entry.snapshot_id(),
                sequence_number: entry.sequence_number().unwrap(),
                partition: ours.partition.clone(),
                rows: entry.record_count(),
                size: entry.file_size_in_bytes(),
                sort_order_id: file.sort_order_id(),
                nulls: file.null_value_counts().get(&2).map(|count| *count as i64),
                bounds: Some((
                    file.lower_bounds()[&2].to_bytes().unwrap().into_vec(),
                    file.upper_bounds()[&2].to_bytes().unwrap().into_vec(),
                )),
            }
        }).collect();
        prop_assert_eq!(theirs, seen);
    }

    #[test]
    fn summaries_of_a_manifest_hold_its_own_values(values in proptest::collection::vec(any::<i32>(), 1..5), other in any::<i32>()) {
        let lower = values.iter().min().unwrap().to_le_bytes();
        let upper = values.iter().max().unwrap().to_le_bytes();
        let bounds = key_bytes::bounds(&lower, &upper, &PrimitiveType::Int).unwrap();
        for value in &values {
            let value = key_bytes::memcmp(&Scalar::Int(*value));
            prop_assert!(bounds.lower <= value && value <= bounds.upper);
        }
        let encoded = key_bytes::memcmp(&Scalar::Int(other));
        let inside = values.iter().min().unwrap() <= &other && &other <= values.iter().max().unwrap();
        prop_assert_eq!(bounds.lower <= encoded && encoded <= bounds.upper, inside);
    }
}
