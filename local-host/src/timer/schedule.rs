//! When a timer fires: NCRONTAB text or a time span, UTC.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use crate::app::time_span;

/// When a timer fires.
#[derive(Clone)]
pub struct TimerSchedule {
    text: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Cron(Box<Cron>),
    Every(Duration),
}

impl fmt::Debug for TimerSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimerSchedule({:?} UTC)", self.text)
    }
}

impl TimerSchedule {
    /// Six fields `{sec} {min} {hour} {day} {month} {weekday}`, five (seconds are 0), or a time span `hh:mm:ss`. A day must
    /// match both day fields, as NCRONTAB reads them (not either, as POSIX does). The error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let kind = match time_span(text).filter(|_| !text.contains(' ')) {
            Some(Duration::ZERO) => return Err("is a time span of nothing".into()),
            Some(every) => Kind::Every(every),
            None => Kind::Cron(Box::new(cron(text)?)),
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// The first time after `time`; None only at the end of the calendar.
    pub fn next_after(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match &self.kind {
            Kind::Cron(cron) => cron.find_next_occurrence(&time, false).ok(),
            Kind::Every(every) => time.checked_add_signed(chrono::Duration::from_std(*every).ok()?),
        }
    }

    /// Whether two of its next times are less than `span` apart.
    pub fn fires_within(&self, span: Duration) -> bool {
        let mut time = DateTime::UNIX_EPOCH;
        // A schedule repeats its pattern of seconds each minute, so a few times show it.
        for _ in 0..8 {
            let Some(next) = self.next_after(time) else { return false };
            let near = next.signed_duration_since(time).to_std().is_ok_and(|gap| gap < span);
            if near && time != DateTime::UNIX_EPOCH {
                return true;
            }
            time = next;
        }
        false
    }

    /// Whether it follows a clock that may change to summer time: what `Schedule.AdjustForDST` says.
    pub fn adjusts_for_dst(&self) -> bool {
        matches!(self.kind, Kind::Cron(_))
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn cron(text: &str) -> Result<Cron, String> {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let text = match fields.len() {
        5 => format!("0 {text}"),
        6 => fields.join(" "),
        count => return Err(format!("has {count} fields, needs 6: second minute hour day month weekday")),
    };
    // What croner knows beyond NCRONTAB would be refused in Azure.
    if let Some(odd) = fields.iter().find(|field| field.contains(['L', 'W', '#', '?', '@']) && !is_names(field)) {
        return Err(format!("\"{odd}\" is not NCRONTAB"));
    }
    let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed).dom_and_dow(true).build();
    let cron = parser.parse(&text).map_err(|error| format!("is not NCRONTAB: {error}"))?;
    match cron.find_next_occurrence(&DateTime::<Utc>::UNIX_EPOCH, false) {
        Ok(_) => Ok(cron),
        Err(_) => Err("names a day that never comes".into()),
    }
}

/// Names of days and months, such as `JUL` and `WED`.
fn is_names(field: &str) -> bool {
    field.split([',', '-', '/']).all(|part| {
        part == "*" || part.parse::<u32>().is_ok() || (part.len() == 3 && part.chars().all(|c| c.is_ascii_alphabetic()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn next_times() {
        for (text, after, next) in [
            ("0 */5 * * * *", "2026-12-01T07:55:00Z", "2026-12-01T08:00:00Z"),
            ("*/5 * * * *", "2026-12-01T07:57:10Z", "2026-12-01T08:00:00Z"),
            ("30 */5 * * * *", "2026-12-01T08:00:29.5Z", "2026-12-01T08:00:30Z"),
            ("0 30 9 * * MON-FRI", "2026-12-04T09:30:00Z", "2026-12-07T09:30:00Z"),
            ("0 0 0 * * 0", "2026-12-01T00:00:00Z", "2026-12-06T00:00:00Z"),
            // Both day fields must match: the first Friday the 13th after this.
            ("0 0 0 13 * 5", "2026-12-01T00:00:00Z", "2027-08-13T00:00:00Z"),
            ("00:05:00", "2026-12-01T07:57:10Z", "2026-12-01T08:02:10Z"),
        ] {
            let schedule = TimerSchedule::parse(text).unwrap();
            assert_eq!(schedule.next_after(at(after)), Some(at(next)), "{text}");
        }
    }

    #[test]
    fn what_is_refused() {
        for (text, part) in [
            ("soon", "has 1 fields, needs 6"),
            ("* * * *", "has 4 fields"),
            ("0 0 0 1 1 * 2027", "has 7 fields"),
            ("0 61 * * * *", "is not NCRONTAB"),
            ("0 0 0 L * *", "\"L\" is not NCRONTAB"),
            ("0 0 0 * * 5#2", "\"5#2\" is not NCRONTAB"),
            ("0 0 0 31 2 *", "never comes"),
            ("00:00:00", "is a time span of nothing"),
        ] {
            let error = TimerSchedule::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn more_than_once_a_minute() {
        for (text, often) in [
            ("0 */5 * * * *", false),
            ("0 * * * * *", false),
            ("*/30 * * * * *", true),
            ("0,59 0 * * * *", true),
            ("00:00:59", true),
            ("00:01:00", false),
        ] {
            assert_eq!(TimerSchedule::parse(text).unwrap().fires_within(Duration::from_secs(60)), often, "{text}");
        }
        assert!(TimerSchedule::parse("* * * * *").unwrap().adjusts_for_dst());
        assert!(!TimerSchedule::parse("01:00:00").unwrap().adjusts_for_dst());
    }
}
