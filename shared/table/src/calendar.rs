//! Partition values of time transforms: from the forms people type, and from typed values of the source column.

use chrono::{DateTime, Datelike, NaiveDate};
use firn_model::Scalar;
use iceberg::spec::{PrimitiveType, Transform};

const MICROS_PER_HOUR: i64 = 3_600_000_000;
const HOURS_PER_DAY: i64 = 24;

/// Reads the form in which a person names a partition of a time transform: day 2026-11-01, month 2026-11, year 2026, hour
/// 2026-11-01-05. None for another transform or another form.
pub(crate) fn by_hand(text: &str, transform: &Transform) -> Option<Scalar> {
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return None;
    }
    let digits: Vec<usize> = text.split('-').map(str::len).collect();
    match (transform, digits.as_slice()) {
        (Transform::Day, [4, 2, 2]) => Some(Scalar::Date(days(parse_date(text)?))),
        (Transform::Month, [4, 2]) => Some(Scalar::Int(months(parse_date(&format!("{text}-01"))?))),
        (Transform::Year, [4]) => Some(Scalar::Int(parse_date(&format!("{text}-01-01"))?.year() - 1970)),
        (Transform::Hour, [4, 2, 2, 2]) => {
            let (date, hour) = text.rsplit_once('-')?;
            let hour: i64 = hour.parse().ok().filter(|hour| *hour < HOURS_PER_DAY)?;
            let hours = i64::from(days(parse_date(date)?)) * HOURS_PER_DAY + hour;
            Some(Scalar::Int(i32::try_from(hours).ok()?))
        }
        _ => None,
    }
}

/// The form that [`by_hand`] reads, for messages.
pub(crate) fn by_hand_form(transform: &Transform) -> Option<&'static str> {
    match transform {
        Transform::Day => Some("YYYY-MM-DD"),
        Transform::Month => Some("YYYY-MM"),
        Transform::Year => Some("YYYY"),
        Transform::Hour => Some("YYYY-MM-DD-HH"),
        _ => None,
    }
}

/// The partition value of a source value under identity, day, month, year or hour (Iceberg spec, "Partition Transforms":
/// floor, UTC). None for other transforms and types.
pub(crate) fn apply(value: &Scalar, transform: &Transform) -> Option<Scalar> {
    if *transform == Transform::Identity {
        return Some(value.clone());
    }
    let hours = match value {
        Scalar::Date(days) => i64::from(*days) * HOURS_PER_DAY,
        Scalar::Timestamp(micros) | Scalar::Timestamptz(micros) => micros.div_euclid(MICROS_PER_HOUR),
        Scalar::TimestampNs(nanos) | Scalar::TimestamptzNs(nanos) => nanos.div_euclid(1_000 * MICROS_PER_HOUR),
        _ => return None,
    };
    let days = i32::try_from(hours.div_euclid(HOURS_PER_DAY)).ok()?;
    match transform {
        Transform::Hour if !matches!(value, Scalar::Date(_)) => Some(Scalar::Int(i32::try_from(hours).ok()?)),
        Transform::Day => Some(Scalar::Date(days)),
        Transform::Month => Some(Scalar::Int(months(date_of(days)?))),
        Transform::Year => Some(Scalar::Int(date_of(days)?.year() - 1970)),
        _ => None,
    }
}

/// First and last partition value that can hold rows of the days `from..=to`, for a partition field on a date or timestamp
/// column. None when the field does not partition by time.
pub(crate) fn covering(
    from: NaiveDate,
    to: NaiveDate,
    transform: &Transform,
    source: &PrimitiveType,
) -> Option<(Scalar, Scalar)> {
    let day = |date: NaiveDate| i64::from(days(date));
    let micros = 24 * MICROS_PER_HOUR;
    let ends = |per_day: i64| (day(from).checked_mul(per_day), (day(to) + 1).checked_mul(per_day).map(|end| end - 1));
    let (first, last) = match source {
        PrimitiveType::Date => (Scalar::Date(days(from)), Scalar::Date(days(to))),
        PrimitiveType::Timestamp => {
            let (first, last) = ends(micros);
            (Scalar::Timestamp(first?), Scalar::Timestamp(last?))
        }
        PrimitiveType::Timestamptz => {
            let (first, last) = ends(micros);
            (Scalar::Timestamptz(first?), Scalar::Timestamptz(last?))
        }
        // Nanoseconds end in 2262; days beyond hold no rows.
        PrimitiveType::TimestampNs => {
            let (first, last) = ends(micros * 1_000);
            (Scalar::TimestampNs(first.unwrap_or(i64::MAX)), Scalar::TimestampNs(last.unwrap_or(i64::MAX)))
        }
        PrimitiveType::TimestamptzNs => {
            let (first, last) = ends(micros * 1_000);
            (Scalar::TimestamptzNs(first.unwrap_or(i64::MAX)), Scalar::TimestamptzNs(last.unwrap_or(i64::MAX)))
        }
        _ => return None,
    };
    Some((apply(&first, transform)?, apply(&last, transform)?))
}

/// The same for a column of texts that begin with a date as YYYY-MM-DD, partitioned by the text or by its beginning. A partition of less than
/// a date (a month, a year) is meant when any of its days is.
pub(crate) fn covering_text(from: NaiveDate, to: NaiveDate, transform: &Transform) -> Option<(Scalar, Scalar)> {
    const DATE: usize = 10;
    let whole = [from, to].map(|date| date.format("%Y-%m-%d").to_string());
    // Years of five digits have no place in such an order.
    if whole.iter().any(|text| text.len() != DATE) {
        return None;
    }
    let [first, mut last] = match transform {
        Transform::Identity => whole,
        Transform::Truncate(width) if *width as usize > DATE => whole,
        Transform::Truncate(width) => {
            let beginning = |text: String| text[..*width as usize].to_owned();
            let [first, last] = whole.map(beginning);
            return Some((Scalar::String(first), Scalar::String(last)));
        }
        _ => return None,
    };
    // Whatever follows the date, a time for example.
    last.push(char::MAX);
    Some((Scalar::String(first), Scalar::String(last)))
}

/// A date as YYYY-MM-DD, two digits each and nothing else.
pub(crate) fn parse_date(text: &str) -> Option<NaiveDate> {
    let shaped = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    shaped.then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()).flatten()
}

fn days(date: NaiveDate) -> i32 {
    date.signed_duration_since(DateTime::UNIX_EPOCH.date_naive()).num_days() as i32
}

fn months(date: NaiveDate) -> i32 {
    (date.year() - 1970) * 12 + date.month0() as i32
}

fn date_of(days: i32) -> Option<NaiveDate> {
    DateTime::UNIX_EPOCH.date_naive().checked_add_signed(chrono::TimeDelta::days(i64::from(days)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iceberg::spec::Datum;
    use proptest::prelude::*;

    fn date(text: &str) -> NaiveDate {
        parse_date(text).unwrap()
    }

    #[test]
    fn forms_typed_by_hand() {
        for (text, transform, expected) in [
            ("2026-11-01", Transform::Day, Some(Scalar::Date(20_758))),
            ("1969-12-31", Transform::Day, Some(Scalar::Date(-1))),
            ("2026-11", Transform::Month, Some(Scalar::Int(682))),
            ("1969-12", Transform::Month, Some(Scalar::Int(-1))),
            ("2026", Transform::Year, Some(Scalar::Int(56))),
            ("2026-11-01-05", Transform::Hour, Some(Scalar::Int(20_758 * 24 + 5))),
            ("2026-11-01-24", Transform::Hour, None),
            ("2026-11-31", Transform::Day, None),
            ("2026-13", Transform::Month, None),
            ("2026-1-1", Transform::Day, None),
            ("56", Transform::Year, None),
            ("2026-11-01", Transform::Month, None),
            ("2026-11", Transform::Day, None),
            ("2026-11-01", Transform::Identity, None),
            ("+026", Transform::Year, None),
        ] {
            assert_eq!(by_hand(text, &transform), expected, "{text} {transform}");
        }
    }

    #[test]
    fn a_range_of_days_covers_first_to_last_value() {
        let (from, to) = (date("2026-10-31"), date("2026-11-01"));
        let cover = |transform, source| covering(from, to, &transform, &source);
        let stamp = PrimitiveType::Timestamp;
        assert_eq!(cover(Transform::Day, stamp.clone()), Some((Scalar::Date(20_757), Scalar::Date(20_758))));
        assert_eq!(cover(Transform::Month, PrimitiveType::Date), Some((Scalar::Int(681), Scalar::Int(682))));
        assert_eq!(cover(Transform::Year, PrimitiveType::Timestamptz), Some((Scalar::Int(56), Scalar::Int(56))));
        let hours = (Scalar::Int(20_757 * 24), Scalar::Int(20_758 * 24 + 23));
        assert_eq!(cover(Transform::Hour, PrimitiveType::TimestampNs), Some(hours));
        let day = 86_400_000_000;
        let ends = (Scalar::Timestamp(20_757 * day), Scalar::Timestamp(20_759 * day - 1));
        assert_eq!(cover(Transform::Identity, stamp.clone()), Some(ends));
        assert_eq!(cover(Transform::Bucket(4), stamp), None);
        assert_eq!(cover(Transform::Identity, PrimitiveType::String), None);
    }

    proptest! {
        #[test]
        fn transforms_agree_with_the_iceberg_crate(micros in -100_000_000_000_000_000i64..100_000_000_000_000_000) {
            for transform in [Transform::Year, Transform::Month, Transform::Day, Transform::Hour] {
                let function = iceberg::transform::create_transform_function(&transform).unwrap();
                let theirs = function.transform_literal(&Datum::timestamp_micros(micros)).unwrap().unwrap();
                let ours = apply(&Scalar::Timestamp(micros), &transform).unwrap();
                let theirs = crate::key_bytes::scalar_from_bytes(&theirs.to_bytes().unwrap(), theirs.data_type());
                prop_assert_eq!(Some(ours), theirs);
            }
        }
    }
}
