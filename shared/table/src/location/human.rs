//! Partition values as Iceberg's Java library writes them in directory names (`Transform.toHumanString`), so that Firn's
//! outputs lie in the same directories as those of other writers.

use base64::Engine;
use chrono::{DateTime, Datelike, NaiveDateTime, NaiveTime, TimeDelta, Timelike};
use firn_model::Scalar;
use iceberg::spec::Transform;

const EPOCH_YEAR: i32 = 1970;

/// The directory text of `value` under `transform`, before URL encoding; null is `null`.
pub(crate) fn human_string(transform: Transform, value: Option<&Scalar>) -> String {
    let Some(value) = value else { return "null".to_owned() };
    match (transform, value) {
        (Transform::Void, _) => "null".to_owned(),
        (Transform::Year, Scalar::Int(years)) => format!("{:04}", EPOCH_YEAR + years),
        (Transform::Month, Scalar::Int(months)) => {
            format!("{:04}-{:02}", EPOCH_YEAR + months.div_euclid(12), months.rem_euclid(12) + 1)
        }
        (Transform::Day, Scalar::Int(days)) => day(*days),
        (Transform::Hour, Scalar::Int(hours)) => hour(*hours),
        (_, Scalar::Bool(v)) => v.to_string(),
        (_, Scalar::Int(v)) => v.to_string(),
        (_, Scalar::Long(v)) => v.to_string(),
        (_, Scalar::Float(v)) => java_float(f64::from(*v), &format!("{v:e}")),
        (_, Scalar::Double(v)) => java_float(*v, &format!("{v:e}")),
        (_, Scalar::Decimal { unscaled, scale }) => java_decimal(*unscaled, *scale),
        (_, Scalar::Date(days)) => day(*days),
        (_, Scalar::Time(micros)) => local_time(*micros),
        (_, Scalar::Timestamp(micros)) => from_micros(*micros).map_or_else(|| micros.to_string(), local_date_time),
        (_, Scalar::Timestamptz(micros)) => {
            from_micros(*micros).map_or_else(|| micros.to_string(), |time| local_date_time(time) + "Z")
        }
        (_, Scalar::TimestampNs(nanos)) => local_date_time(DateTime::from_timestamp_nanos(*nanos).naive_utc()),
        (_, Scalar::TimestamptzNs(nanos)) => local_date_time(DateTime::from_timestamp_nanos(*nanos).naive_utc()) + "Z",
        (_, Scalar::String(v)) => v.clone(),
        (_, Scalar::Uuid(v)) => v.to_string(),
        (_, Scalar::Binary(v)) => base64::engine::general_purpose::STANDARD.encode(v),
    }
}

fn from_micros(micros: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|time| time.naive_utc())
}

fn day(days: i32) -> String {
    match DateTime::UNIX_EPOCH.date_naive().checked_add_signed(TimeDelta::days(i64::from(days))) {
        Some(date) => format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day()),
        None => days.to_string(),
    }
}

fn hour(hours: i32) -> String {
    format!("{}-{:02}", day(hours.div_euclid(24)), hours.rem_euclid(24))
}

fn local_time(micros: i64) -> String {
    let seconds = u32::try_from(micros.div_euclid(1_000_000)).ok();
    let nanos = u32::try_from(micros.rem_euclid(1_000_000) * 1000).ok();
    match seconds.zip(nanos).and_then(|(s, n)| NaiveTime::from_num_seconds_from_midnight_opt(s, n)) {
        Some(time) => iso_time(time),
        None => micros.to_string(),
    }
}

/// `LocalDateTime.toString`: years beyond 9999 have a plus sign, times are as short as they can be.
fn local_date_time(time: NaiveDateTime) -> String {
    let plus = if time.year() > 9999 { "+" } else { "" };
    format!("{plus}{:04}-{:02}-{:02}T{}", time.year(), time.month(), time.day(), iso_time(time.time()))
}

/// `LocalTime.toString`: no seconds when they and their fraction are zero; fractions of 3, 6 or 9 digits.
fn iso_time(time: NaiveTime) -> String {
    let (hour, minute, second, nanos) = (time.hour(), time.minute(), time.second(), time.nanosecond());
    if nanos != 0 {
        let fraction = if nanos % 1_000_000 == 0 {
            format!("{:03}", nanos / 1_000_000)
        } else if nanos % 1000 == 0 {
            format!("{:06}", nanos / 1000)
        } else {
            format!("{nanos:09}")
        };
        return format!("{hour:02}:{minute:02}:{second:02}.{fraction}");
    }
    if second != 0 {
        return format!("{hour:02}:{minute:02}:{second:02}");
    }
    format!("{hour:02}:{minute:02}")
}

/// `Double.toString` and `Float.toString` (JDK 19 and later): shortest digits, plain from 10^-3 up to below 10^7.
/// `exponent_form` is the value's shortest digits as Rust writes them, for example `1.25e-7`.
fn java_float(value: f64, exponent_form: &str) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let (mantissa, exponent) = exponent_form.split_once('e').unwrap_or((exponent_form, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if value == 0.0 {
        return format!("{sign}0.0");
    }
    let fraction = |text: &str| if text.is_empty() { "0".to_owned() } else { text.to_owned() };
    match exponent {
        -3..=-1 => format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1).unsigned_abs() as usize)),
        0..=6 => {
            let whole = exponent.unsigned_abs() as usize + 1;
            let padded = format!("{digits:0<whole$}");
            format!("{sign}{}.{}", &padded[..whole], fraction(&padded[whole..]))
        }
        _ => format!("{sign}{}.{}E{exponent}", &digits[..1], fraction(&digits[1..])),
    }
}

/// `BigDecimal.toString` for a scale that is not negative: scientific when the value is far below 1.
fn java_decimal(unscaled: i128, scale: u32) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    let scale = scale as usize;
    let adjusted = digits.len() as i64 - 1 - scale as i64;
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    if adjusted >= -6 {
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        return format!("{sign}{whole}.{fraction}");
    }
    if digits.len() == 1 {
        return format!("{sign}{digits}E{adjusted}");
    }
    format!("{sign}{}.{}E{adjusted}", &digits[..1], &digits[1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(value: Scalar) -> String {
        human_string(Transform::Identity, Some(&value))
    }

    #[test]
    fn transforms_write_dates_as_java_does() {
        assert_eq!(human_string(Transform::Year, Some(&Scalar::Int(56))), "2026");
        assert_eq!(human_string(Transform::Month, Some(&Scalar::Int(56 * 12 + 10))), "2026-11");
        assert_eq!(human_string(Transform::Month, Some(&Scalar::Int(-1))), "1969-12");
        assert_eq!(human_string(Transform::Day, Some(&Scalar::Date(20_758))), "2026-11-01");
        assert_eq!(human_string(Transform::Day, Some(&Scalar::Int(20_758))), "2026-11-01");
        assert_eq!(human_string(Transform::Hour, Some(&Scalar::Int(20_758 * 24 + 5))), "2026-11-01-05");
        assert_eq!(human_string(Transform::Hour, Some(&Scalar::Int(-1))), "1969-12-31-23");
        assert_eq!(human_string(Transform::Bucket(4), Some(&Scalar::Int(3))), "3");
        assert_eq!(human_string(Transform::Truncate(2), Some(&Scalar::String("ab".into()))), "ab");
        assert_eq!(human_string(Transform::Void, Some(&Scalar::Int(3))), "null");
        assert_eq!(human_string(Transform::Identity, None), "null");
    }

    #[test]
    fn times_are_as_short_as_java_makes_them() {
        let micros = 1_510_871_468_000_000;
        assert_eq!(identity(Scalar::Timestamp(micros)), "2017-11-16T22:31:08");
        assert_eq!(identity(Scalar::Timestamp(micros - 8_000_000)), "2017-11-16T22:31");
        assert_eq!(identity(Scalar::Timestamp(micros + 120_000)), "2017-11-16T22:31:08.120");
        assert_eq!(identity(Scalar::Timestamp(micros + 120_001)), "2017-11-16T22:31:08.120001");
        assert_eq!(identity(Scalar::Timestamptz(micros + 120_001)), "2017-11-16T22:31:08.120001Z");
        assert_eq!(identity(Scalar::TimestampNs(1)), "1970-01-01T00:00:00.000000001");
        assert_eq!(identity(Scalar::Timestamp(-1)), "1969-12-31T23:59:59.999999");
        assert_eq!(identity(Scalar::Time(36_775_038_194)), "10:12:55.038194");
        assert_eq!(identity(Scalar::Time(0)), "00:00");
        assert_eq!(identity(Scalar::Date(17_501)), "2017-12-01");
    }

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (123.456, "123.456"),
            (9_999_999.0, "9999999.0"),
            (10_000_000.0, "1.0E7"),
            (12_345_678.5, "1.23456785E7"),
            (0.001, "0.001"),
            (0.012_5, "0.0125"),
            (0.000_9, "9.0E-4"),
            (1e-300, "1.0E-300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, expected) in cases {
            assert_eq!(identity(Scalar::Double(value)), expected);
        }
        assert_eq!(identity(Scalar::Float(0.1)), "0.1");
        assert_eq!(identity(Scalar::Float(1.0e10)), "1.0E10");
    }

    #[test]
    fn decimals_are_written_as_big_decimal_does() {
        let decimal = |unscaled, scale| identity(Scalar::Decimal { unscaled, scale });
        assert_eq!(decimal(1420, 2), "14.20");
        assert_eq!(decimal(-5, 2), "-0.05");
        assert_eq!(decimal(0, 2), "0.00");
        assert_eq!(decimal(7, 0), "7");
        assert_eq!(decimal(1, 6), "0.000001");
        assert_eq!(decimal(1, 7), "1E-7");
        assert_eq!(decimal(-123, 10), "-1.23E-8");
    }

    #[test]
    fn the_rest() {
        assert_eq!(identity(Scalar::Bool(true)), "true");
        assert_eq!(identity(Scalar::Long(-3)), "-3");
        assert_eq!(identity(Scalar::Binary(vec![0, 1, 255])), "AAH/");
        assert_eq!(
            identity(Scalar::Uuid(uuid::Uuid::from_u128(0xF79C_3E09_677C_4BBD_A479_3F34_9CB7_85E7))),
            "f79c3e09-677c-4bbd-a479-3f349cb785e7"
        );
    }
}
