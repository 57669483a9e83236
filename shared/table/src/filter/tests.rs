use firn_model::PartitionValue;
use iceberg::spec::Datum;
use proptest::prelude::*;

use super::*;

fn field(id: i32, name: &str, source: (i32, &str, PrimitiveType), transform: Transform) -> PartitionField {
    let (source_id, source_name, source_type) = source;
    let result = transform.result_type(&iceberg::spec::Type::Primitive(source_type.clone())).unwrap();
    PartitionField {
        id,
        name: name.to_owned(),
        source_id,
        source_name: Some(source_name.to_owned()),
        source_type: Some(source_type),
        transform,
        result_type: result.as_primitive_type().cloned(),
    }
}

fn time() -> (i32, &'static str, PrimitiveType) {
    (2, "time", PrimitiveType::Timestamp)
}

fn region() -> (i32, &'static str, PrimitiveType) {
    (4, "region", PrimitiveType::String)
}

fn specs(of: Vec<Vec<PartitionField>>) -> HashMap<i32, Arc<SpecTypes>> {
    (0..).zip(of).map(|(spec_id, fields)| (spec_id, Arc::new(SpecTypes { spec_id, fields }))).collect()
}

fn key(spec_id: i32, values: &[Option<Scalar>]) -> PartitionKey {
    let values = values.iter().map(|value| PartitionValue { name: "f".to_owned(), value: value.clone() });
    PartitionKey::new(spec_id, values.collect())
}

fn filter(
    specs: &HashMap<i32, Arc<SpecTypes>>,
    range: Option<&str>,
    terms: &[&str],
) -> Result<PartitionFilter, FilterError> {
    let terms: Vec<PartitionTerm> = terms.iter().map(|term| term.parse().unwrap()).collect();
    PartitionFilter::new(specs, range.map(|range| range.parse().unwrap()), &terms, None)
}

#[test]
fn a_date_range_is_two_days_in_order() {
    let day = |text: &str| calendar::parse_date(text).unwrap();
    assert_eq!("2026-11-01:2026-11-03".parse(), Ok(DateRange { from: day("2026-11-01"), to: day("2026-11-03") }));
    assert_eq!("2026-11-01:2026-11-01".parse::<DateRange>().unwrap().from, day("2026-11-01"));
    for (text, part) in [
        ("2026-11-01", "write FROM:TO"),
        ("2026-11-01:2026-11-31", "`2026-11-31` is no date"),
        ("2026-11-01:2026-11-1", "`2026-11-1` is no date"),
        (":2026-11-01", "`` is no date"),
        ("2026-11-03:2026-11-01", "it ends before it begins; write 2026-11-01:2026-11-03"),
    ] {
        let error = text.parse::<DateRange>().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(text), "{error}");
    }
}

#[test]
fn a_term_splits_at_the_first_equals_sign() {
    let term = |text: &str| text.parse::<PartitionTerm>();
    let value = |column: &str, value: Option<&str>| {
        Ok(PartitionTerm { column: column.to_owned(), value: value.map(str::to_owned) })
    };
    assert_eq!(term("region=eu"), value("region", Some("eu")));
    assert_eq!(term("region=a=b"), value("region", Some("a=b")));
    assert_eq!(term("region="), value("region", Some("")));
    assert_eq!(term(r"region=\N"), value("region", None));
    assert_eq!(term(r"region=\n"), value("region", Some(r"\n")));
    for text in ["region", "=eu", ""] {
        assert_eq!(term(text), Err(FilterError::Term { text: text.to_owned() }));
    }
}

#[test]
fn no_filter_takes_every_partition() {
    let all = filter(&specs(vec![vec![]]), None, &[]).unwrap();
    assert_eq!(all, PartitionFilter::all());
    assert!(all.matches(&PartitionKey::unpartitioned(0)) && all.matches(&key(7, &[None])));
}

#[test]
fn a_date_range_takes_texts_that_begin_with_a_date_where_the_dataset_says_that_they_are_times() {
    let dt = || (2, "dt", PrimitiveType::String);
    let by = |transform| specs(vec![vec![field(1000, "p", dt(), transform)]]);
    let takes = |transform, range: &str, value: &str| {
        let filter = PartitionFilter::new(&by(transform), Some(range.parse().unwrap()), &[], Some("dt")).unwrap();
        filter.matches(&key(0, &[Some(Scalar::String(value.into()))]))
    };
    let range = "2026-10-31:2026-11-01";
    for (value, expected) in [
        ("2026-10-30", false),
        ("2026-10-31", true),
        ("2026-11-01", true),
        ("2026-11-01T23:59:59Z", true),
        ("2026-11-02", false),
        ("2026-11-02T00", false),
        ("", false),
    ] {
        assert_eq!(takes(Transform::Identity, range, value), expected, "{value}");
        assert_eq!(takes(Transform::Truncate(13), range, value), expected, "{value}");
    }
    let days = ["2026-10-30", "2026-10-31", "2026-11-01", "2026-11-02"];
    assert_eq!(days.map(|day| takes(Transform::Truncate(10), range, day)), [false, true, true, false]);
    let months = ["2026-09", "2026-10", "2026-11", "2026-12"];
    assert_eq!(months.map(|month| takes(Transform::Truncate(7), range, month)), [false, true, true, false]);
    assert_eq!(["2025", "2026", "2027"].map(|year| takes(Transform::Truncate(4), range, year)), [false, true, false]);
    let not_said = filter(&by(Transform::Truncate(10)), Some(range), &[]).unwrap_err();
    assert_eq!(not_said, FilterError::NoDatePartition { fields: vec!["p".into()] });
}

#[test]
fn a_date_range_takes_days_months_hours_and_plain_dates_of_any_spec() {
    let specs = specs(vec![
        vec![field(1000, "day", time(), Transform::Day)],
        vec![field(1001, "month", time(), Transform::Month), field(1002, "region", region(), Transform::Identity)],
        vec![field(1003, "hour", time(), Transform::Hour)],
        vec![field(1004, "time", time(), Transform::Identity)],
        vec![field(1002, "region", region(), Transform::Identity)],
    ]);
    let filter = filter(&specs, Some("2026-10-31:2026-11-01"), &[]).unwrap();
    let day = 20_758;
    let micros = 86_400_000_000i64;
    let eu = Some(Scalar::String("eu".into()));
    for (key, expected) in [
        (key(0, &[Some(Scalar::Date(day - 2))]), false),
        (key(0, &[Some(Scalar::Date(day - 1))]), true),
        (key(0, &[Some(Scalar::Date(day))]), true),
        (key(0, &[Some(Scalar::Date(day + 1))]), false),
        (key(0, &[None]), false),
        (key(1, &[Some(Scalar::Int(680)), eu.clone()]), false),
        (key(1, &[Some(Scalar::Int(681)), eu.clone()]), true),
        (key(1, &[Some(Scalar::Int(682)), None]), true),
        (key(2, &[Some(Scalar::Int((day - 1) * 24 - 1))]), false),
        (key(2, &[Some(Scalar::Int((day - 1) * 24))]), true),
        (key(2, &[Some(Scalar::Int(day * 24 + 23))]), true),
        (key(2, &[Some(Scalar::Int(day * 24 + 24))]), false),
        (key(3, &[Some(Scalar::Timestamp(i64::from(day + 1) * micros - 1))]), true),
        (key(3, &[Some(Scalar::Timestamp(i64::from(day + 1) * micros))]), false),
        // This spec says nothing about dates.
        (key(4, &[eu]), false),
        (PartitionKey::unpartitioned(5), false),
    ] {
        assert_eq!(filter.matches(&key), expected, "{key} of spec {}", key.spec_id);
    }
}

#[test]
fn a_date_range_needs_one_date_column() {
    let error = filter(
        &specs(vec![vec![field(1000, "region", region(), Transform::Identity)]]),
        Some("2026-11-01:2026-11-01"),
        &[],
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "--date-range needs a table that is partitioned by a date or time; its partition fields are `region`"
    );
    let error = filter(&specs(vec![vec![]]), Some("2026-11-01:2026-11-01"), &[]).unwrap_err();
    assert!(error.to_string().ends_with("the table is not partitioned"), "{error}");

    let born = (6, "born", PrimitiveType::Date);
    let two =
        specs(vec![vec![field(1000, "day", time(), Transform::Day), field(1001, "born", born, Transform::Identity)]]);
    let error = filter(&two, Some("2026-11-01:2026-11-01"), &[]).unwrap_err();
    assert_eq!(error, FilterError::SeveralDates { columns: vec!["time".into(), "born".into()] });
    let range = "2026-11-01:2026-11-01".parse().unwrap();
    let by_time = PartitionFilter::new(&two, Some(range), &[], Some("time")).unwrap();
    assert!(by_time.matches(&key(0, &[Some(Scalar::Date(20_758)), Some(Scalar::Date(0))])));
    assert!(!by_time.matches(&key(0, &[Some(Scalar::Date(0)), Some(Scalar::Date(20_758))])));
}

#[test]
fn terms_name_a_field_or_its_source_column_and_all_must_match() {
    let specs = specs(vec![
        vec![field(1000, "day", time(), Transform::Day), field(1001, "region", region(), Transform::Identity)],
        vec![field(1000, "day", time(), Transform::Void), field(1001, "region", region(), Transform::Identity)],
    ]);
    let eu = || Some(Scalar::String("eu".into()));
    let here = key(0, &[Some(Scalar::Date(20_758)), eu()]);
    let null = key(0, &[None, None]);
    for (terms, takes_here, takes_null) in [
        (vec!["day=2026-11-01"], true, false),
        (vec!["day=2026-11-02"], false, false),
        (vec!["time=2026-11-01"], true, false),
        (vec!["time=2026-11-01T23:59:59.999999"], true, false),
        (vec!["time=2026-11-02T00:00:00"], false, false),
        (vec!["region=eu"], true, false),
        (vec!["region=EU"], false, false),
        (vec!["region=eu", "day=2026-11-01"], true, false),
        (vec!["region=eu", "day=2026-11-02"], false, false),
        (vec!["region=eu", "region=us"], false, false),
        (vec![r"region=\N", r"time=\N"], false, true),
        (vec![r"day=\N"], false, true),
    ] {
        let filter = filter(&specs, None, &terms).unwrap();
        assert_eq!(filter.matches(&here), takes_here, "{terms:?}");
        assert_eq!(filter.matches(&null), takes_null, "{terms:?}");
        // The void field of spec 1 says nothing about days.
        let names_day = terms.iter().any(|term| !term.starts_with("region"));
        let second = key(1, &[None, eu()]);
        assert_eq!(filter.matches(&second), takes_here && !names_day, "{terms:?}");
    }
}

#[test]
fn a_value_of_a_time_transform_is_what_a_person_types_or_icebergs_number() {
    let of = |transform| specs(vec![vec![field(1000, "f", time(), transform)]]);
    for (transform, term, expected) in [
        (Transform::Month, "f=2026-11", Scalar::Int(682)),
        (Transform::Month, "f=682", Scalar::Int(682)),
        (Transform::Month, "time=2026-11", Scalar::Int(682)),
        (Transform::Month, "time=2026-11-30T23:00:00", Scalar::Int(682)),
        (Transform::Year, "f=2026", Scalar::Int(56)),
        (Transform::Year, "f=56", Scalar::Int(56)),
        (Transform::Hour, "f=2026-11-01-05", Scalar::Int(20_758 * 24 + 5)),
        (Transform::Hour, "time=2026-11-01T05:59:00", Scalar::Int(20_758 * 24 + 5)),
        (Transform::Bucket(16), "f=7", Scalar::Int(7)),
        (Transform::Identity, "time=2026-11-01T05:59:00", Scalar::Timestamp(20_758 * 86_400_000_000 + 21_540_000_000)),
    ] {
        let filter = filter(&of(transform), None, &[term]).unwrap();
        assert!(filter.matches(&key(0, &[Some(expected)])), "{term} {transform}");
        assert!(!filter.matches(&key(0, &[Some(Scalar::Int(-3))])), "{term} {transform}");
    }
}

#[test]
fn wrong_terms_say_what_to_write() {
    let all = specs(vec![vec![
        field(1000, "time_day", time(), Transform::Day),
        field(1001, "name_bucket", (1, "name", PrimitiveType::String), Transform::Bucket(4)),
        field(1002, "n", (5, "n", PrimitiveType::Int), Transform::Identity),
    ]]);
    for (term, expected) in [
        (
            "regin=eu",
            "--partition `regin`: no partition field; its partition fields are `time_day`, `name_bucket`, `n`",
        ),
        (
            "Time=2026-11-01",
            "--partition `Time`: no partition field (did you mean `time`?); its partition fields are `time_day`, \
             `name_bucket`, `n`",
        ),
        (
            "name=a",
            "--partition `name`: the table is partitioned by bucket[4] of it; name the partition field `name_bucket` instead",
        ),
        ("n=x", "--partition `n`: `x` is not a 32-bit integer"),
        ("time_day=1.11.2026", "--partition `time_day`: `1.11.2026` is no day as YYYY-MM-DD"),
        (
            "time=2026-11",
            "--partition `time`: `2026-11` is not a timestamp as YYYY-MM-DDTHH:MM:SS.ffffff, and no day as YYYY-MM-DD",
        ),
    ] {
        assert_eq!(filter(&all, None, &[term]).unwrap_err().to_string(), expected);
    }
    let error = filter(&specs(vec![vec![]]), None, &["a=b"]).unwrap_err();
    assert_eq!(error.to_string(), "--partition `a`: no partition field; the table is not partitioned");
}

fn summary(values: &[Option<i32>]) -> FieldSummary {
    let known: Vec<i32> = values.iter().flatten().copied().collect();
    let bytes = |value: Option<&i32>| value.map(|value| Datum::int(*value).to_bytes().unwrap());
    FieldSummary {
        contains_null: values.iter().any(Option::is_none),
        contains_nan: None,
        lower_bound: bytes(known.iter().min()),
        upper_bound: bytes(known.iter().max()),
    }
}

proptest! {
    /// A manifest is passed over only when none of its partitions was asked for.
    #[test]
    fn pruning_never_loses_a_partition(
        tuples in proptest::collection::vec((proptest::option::of(-3..3i32), proptest::option::of(-3..3i32)), 1..6),
        (a, b) in (proptest::option::of(-4..4i32), proptest::option::of(-4..4i32)),
        both in any::<bool>(),
    ) {
        let source = |id, name| (id, name, PrimitiveType::Int);
        let specs = specs(vec![vec![
            field(1000, "a", source(1, "a"), Transform::Identity),
            field(1001, "b", source(2, "b"), Transform::Identity),
        ]]);
        let term = |column: &str, value: Option<i32>| PartitionTerm {
            column: column.to_owned(),
            value: value.map(|value| value.to_string()),
        };
        let terms = if both { vec![term("a", a), term("b", b)] } else { vec![term("a", a)] };
        let filter = PartitionFilter::new(&specs, None, &terms, None).unwrap();
        let asked = |tuple: &(Option<i32>, Option<i32>)| tuple.0 == a && (!both || tuple.1 == b);
        for tuple in &tuples {
            let key = key(0, &[tuple.0.map(Scalar::Int), tuple.1.map(Scalar::Int)]);
            prop_assert_eq!(filter.matches(&key), asked(tuple));
        }
        let first: Vec<_> = tuples.iter().map(|tuple| tuple.0).collect();
        let second: Vec<_> = tuples.iter().map(|tuple| tuple.1).collect();
        let may = filter.may_match(&specs[&0], Some(&[summary(&first), summary(&second)]));
        prop_assert!(may || !tuples.iter().any(asked));
        // One value a manifest: the summary is exact.
        if tuples.len() == 1 && !both {
            prop_assert_eq!(may, asked(&tuples[0]));
        }
        prop_assert!(filter.may_match(&specs[&0], None));
    }
}
