//! Durations as people write them: `1h`, `30m`, `1h30m`.

use std::time::Duration;

use chrono::TimeDelta;

/// A count of hours in the configuration, as a distance in time; what is beyond the calendar is the longest there is.
pub fn hours(count: u64) -> TimeDelta {
    i64::try_from(count).ok().and_then(TimeDelta::try_hours).unwrap_or(TimeDelta::MAX)
}

/// The same for minutes.
pub fn minutes(count: u64) -> TimeDelta {
    i64::try_from(count).ok().and_then(TimeDelta::try_minutes).unwrap_or(TimeDelta::MAX)
}

/// Reads a sum of whole days, hours, minutes and seconds (`2d`, `1h30m`, `45s`), units in that order, each at most
/// once. None for anything else, a bare number too: its unit would be a guess.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: u64 = 0;
    for (unit, seconds) in [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)] {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && rest[digits..].starts_with(unit) {
            let count: u64 = rest[..digits].parse().ok()?;
            total = total.checked_add(count.checked_mul(seconds)?)?;
            rest = &rest[digits + 1..];
        }
    }
    (rest.is_empty() && !text.is_empty()).then(|| Duration::from_secs(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_units_are_read() {
        for (text, seconds) in
            [("1h", 3600), ("30m", 1800), ("1h30m", 5400), ("2d", 172_800), ("1d2h3m4s", 93_784), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn counts_are_times_and_huge_ones_the_longest() {
        assert_eq!((hours(6), minutes(90)), (TimeDelta::hours(6), TimeDelta::minutes(90)));
        assert_eq!((hours(u64::MAX), minutes(1 << 62)), (TimeDelta::MAX, TimeDelta::MAX));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "1",
            "h",
            "1 h",
            "1h 30m",
            "30m1h",
            "1h1h",
            "-1h",
            "1.5h",
            "1w",
            "1H",
            "99999999999999999999d",
            "300000000000000d",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
