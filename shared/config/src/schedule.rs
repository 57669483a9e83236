//! Cron text of `compaction.schedule`: five fields, UTC, POSIX day numbers (design section 9).
//!
//! The fields are checked here and computed by `croner`, which knows more dialects than are wanted: it takes seconds,
//! years, `@weekly`, `L`, `W`, `#`, `?` and `+`, and skips empty parts of a list. A text that two dialects read
//! differently must be refused at start, not fire on the wrong day.

use std::fmt;

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

/// When scheduled passes are due.
#[derive(Clone)]
pub struct Schedule {
    text: String,
    cron: Cron,
}

impl Schedule {
    /// Reads five fields: minute, hour, day of month, month (or JAN-DEC), day of week (0-7, 0 and 7 are Sunday, or
    /// SUN-SAT); each a list of `*`, values or ranges, with `/step` after `*` or a range. As in POSIX, a day matches
    /// when either day field does, if neither is `*`. The error says what is wrong and quotes the part.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with('@') {
            return Err("names such as @daily are not taken; write five fields".into());
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        if fields.len() != FIELDS.len() {
            return Err(format!("has {} fields, needs 5: minute hour day month weekday", fields.len()));
        }
        for (field, rule) in fields.iter().zip(&FIELDS) {
            rule.check(field)?;
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(text).map_err(|error| error.to_string())?;
        if cron.find_next_occurrence(&DateTime::<Utc>::UNIX_EPOCH, false).is_err() {
            return Err("names a day that never comes".into());
        }
        Ok(Self { text: text.to_owned(), cron })
    }

    /// The first scheduled time after `time`; None only at the end of the calendar.
    pub fn next_after(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.cron.find_next_occurrence(&time, false).ok()
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schedule({:?} UTC)", self.text)
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// Names for the values from `first_name` on.
    names: &'static [&'static str],
    first_name: u32,
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, names: &[], first_name: 0 },
    Field { name: "hour", least: 0, most: 23, names: &[], first_name: 0 },
    Field { name: "day of month", least: 1, most: 31, names: &[], first_name: 0 },
    Field { name: "month", least: 1, most: 12, names: &MONTHS, first_name: 1 },
    Field { name: "day of week", least: 0, most: 7, names: &DAYS, first_name: 0 },
];

impl Field {
    fn check(&self, field: &str) -> Result<(), String> {
        field.split(',').try_for_each(|part| self.check_part(part))
    }

    fn check_part(&self, part: &str) -> Result<(), String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let bad = |why: &str| Err(format!("\"{part}\" in the field {} {why}", self.name));
        if let Some(step) = step
            && !number(step).is_some_and(|step| step >= 1 && step <= self.most)
        {
            return bad(&format!("has a step that is not a number from 1 to {}", self.most));
        }
        if range == "*" {
            return Ok(());
        }
        let Some((from, to)) = range.split_once('-') else {
            return match self.value(range, false) {
                None => bad(&self.expected()),
                Some(_) if step.is_some() => bad("has a step after a single value; write a range or `*`"),
                Some(_) => Ok(()),
            };
        };
        match (self.value(from, false), self.value(to, true)) {
            (Some(from), Some(to)) if from <= to => Ok(()),
            (Some(_), Some(_)) => bad("is a range that runs backwards; write two ranges"),
            _ => bad(&self.expected()),
        }
    }

    /// The value of a number or name. Sunday ends a range as 7.
    fn value(&self, text: &str, ends_range: bool) -> Option<u32> {
        if let Some(value) = number(text) {
            return (self.least..=self.most).contains(&value).then_some(value);
        }
        let index = self.names.iter().position(|name| name.eq_ignore_ascii_case(text))?;
        let value = self.first_name + u32::try_from(index).ok()?;
        Some(if ends_range && value == 0 { 7 } else { value })
    }

    fn expected(&self) -> String {
        let names = match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => format!(" or {first} to {last}"),
            _ => String::new(),
        };
        format!("is not {} to {}{names}", self.least, self.most)
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate, TimeDelta, Timelike};
    use proptest::prelude::*;

    use super::*;

    fn at(year: i32, month: u32, day: u32, hour: u32, minute: u32) -> DateTime<Utc> {
        NaiveDate::from_ymd_opt(year, month, day).unwrap().and_hms_opt(hour, minute, 0).unwrap().and_utc()
    }

    fn next(text: &str, from: DateTime<Utc>, count: usize) -> Vec<String> {
        let schedule = Schedule::parse(text).unwrap();
        let times = std::iter::successors(Some(from), |time| schedule.next_after(*time)).skip(1);
        times.take(count).map(|time| time.format("%a %Y-%m-%d %H:%M").to_string()).collect()
    }

    #[test]
    fn weekdays_are_posix_numbers_from_a_saturday_on() {
        let saturday = at(2026, 8, 1, 0, 0);
        let sundays = ["Sun 2026-08-02 02:00", "Sun 2026-08-09 02:00"];
        for text in ["0 2 * * 0", "0 2 * * 7", "0 2 * * SUN", "0 2 * * sun"] {
            assert_eq!(next(text, saturday, 2), sundays, "{text}");
        }
        assert_eq!(next("0 2 * * *", saturday, 2), ["Sat 2026-08-01 02:00", "Sun 2026-08-02 02:00"]);
        let workdays = [
            "Mon 2026-08-03 02:00",
            "Tue 2026-08-04 02:00",
            "Wed 2026-08-05 02:00",
            "Thu 2026-08-06 02:00",
            "Fri 2026-08-07 02:00",
            "Mon 2026-08-10 02:00",
        ];
        for text in ["0 2 * * 1-5", "0 2 * * MON-FRI", "0 2 * * mon,2,3-5"] {
            assert_eq!(next(text, saturday, 6), workdays, "{text}");
        }
        assert_eq!(
            next("0 2 * * FRI-SUN", saturday, 3),
            ["Sat 2026-08-01 02:00", "Sun 2026-08-02 02:00", "Fri 2026-08-07 02:00"]
        );
        assert_eq!(
            next("0 2 * * 6-7", saturday, 3),
            ["Sat 2026-08-01 02:00", "Sun 2026-08-02 02:00", "Sat 2026-08-08 02:00"]
        );
    }

    #[test]
    fn other_fields_by_value() {
        assert_eq!(next("0 2 * * *", at(2026, 8, 1, 2, 0), 1), ["Sun 2026-08-02 02:00"], "after, not at");
        assert_eq!(
            next("*/20 22-23 * * *", at(2026, 1, 1, 23, 10), 3),
            ["Thu 2026-01-01 23:20", "Thu 2026-01-01 23:40", "Fri 2026-01-02 22:00"]
        );
        assert_eq!(next("5 4 29 FEB *", at(2026, 1, 1, 0, 0), 2), ["Tue 2028-02-29 04:05", "Sun 2032-02-29 04:05"]);
        assert_eq!(
            next("0 0 13 * 5", at(2026, 2, 1, 0, 0), 3),
            ["Fri 2026-02-06 00:00", "Fri 2026-02-13 00:00", "Fri 2026-02-20 00:00"],
            "either day field"
        );
        assert_eq!(next("0 0 12 * 5", at(2026, 2, 10, 0, 0), 2), ["Thu 2026-02-12 00:00", "Fri 2026-02-13 00:00"]);
    }

    #[test]
    fn other_dialects_are_refused() {
        for (text, part) in [
            ("0 0 2 * * *", "has 6 fields"),
            ("0 0 2 * * * 2026", "has 7 fields"),
            ("0 2 * *", "has 4 fields"),
            ("", "has 0 fields"),
            ("@weekly", "@daily"),
            ("@reboot", "@daily"),
            ("0 2 L * *", "\"L\" in the field day of month is not 1 to 31"),
            ("0 2 15W * *", "\"15W\""),
            ("0 2 * * 5#2", "\"5#2\" in the field day of week is not 0 to 7 or SUN to SAT"),
            ("0 2 * * 5L", "\"5L\""),
            ("0 2 ? * *", "\"?\""),
            ("0 2 * * +5", "\"+5\""),
            ("0 2 * * 8", "\"8\""),
            ("60 2 * * *", "\"60\" in the field minute is not 0 to 59"),
            ("0 24 * * *", "\"24\""),
            ("0 2 0 * *", "\"0\""),
            ("0 2 * 13 *", "\"13\""),
            ("0 2 * * FRI-MON", "backwards"),
            ("0 2 * * MONDAY", "\"MONDAY\""),
            ("0 2 MON * *", "\"MON\""),
            ("1,,2 2 * * *", "\"\" in the field minute"),
            ("5/10 2 * * *", "single value"),
            ("/10 2 * * *", "\"/10\""),
            ("*/0 2 * * *", "step"),
            ("*/60 2 * * *", "step"),
            ("0 2 30 2 *", "never comes"),
            ("a b c d e", "\"a\""),
        ] {
            let error = Schedule::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    /// One field as (text, the values it names).
    fn field(least: u32, most: u32) -> impl Strategy<Value = (String, Vec<u32>)> {
        let all = move || (least..=most).collect::<Vec<_>>();
        let single = (least..=most).prop_map(|value| (value.to_string(), vec![value]));
        let range = (least..=most, least..=most).prop_map(|(a, b)| {
            let (low, high) = (a.min(b), a.max(b));
            (format!("{low}-{high}"), (low..=high).collect())
        });
        let step = (1..=most.min(9))
            .prop_map(move |step| (format!("*/{step}"), (least..=most).step_by(step as usize).collect::<Vec<_>>()));
        let part = prop_oneof![single, range, step];
        prop_oneof![
            Just(("*".to_owned(), all())),
            prop::collection::vec(part, 1..3).prop_map(|parts| {
                let (texts, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                (texts.join(","), values.concat())
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn the_next_time_is_the_first_minute_that_matches(
            minute in field(0, 59), hour in field(0, 23), day in field(1, 31), weekday in field(0, 7), start in 0i64..500_000,
        ) {
            let text = format!("{} {} {} * {}", minute.0, hour.0, day.0, weekday.0);
            let schedule = Schedule::parse(&text).unwrap();
            let matches = |time: DateTime<Utc>| {
                let in_days = day.1.contains(&time.day());
                let number = time.weekday().num_days_from_sunday();
                let in_weekdays = weekday.1.iter().any(|value| value % 7 == number);
                let of_day = match (day.0.as_str(), weekday.0.as_str()) {
                    ("*", _) | (_, "*") => in_days && in_weekdays,
                    _ => in_days || in_weekdays,
                };
                of_day && minute.1.contains(&time.minute()) && hour.1.contains(&time.hour())
            };
            let from = at(2026, 1, 1, 0, 0) + TimeDelta::minutes(start);
            let mut expected = from + TimeDelta::minutes(1);
            while !matches(expected) {
                expected += TimeDelta::minutes(1);
            }
            prop_assert_eq!(schedule.next_after(from), Some(expected), "{}", text);
        }
    }
}
