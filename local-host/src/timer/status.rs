//! What is remembered of a timer's runs, and what follows from it at start and after each run.

use chrono::{DateTime, SecondsFormat, TimeZone, Utc};
use serde_json::{Value, json};

use super::schedule::TimerSchedule;

/// The content of a timer's status blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerStatus {
    /// Start of the last run; [`never()`] before the first.
    pub last: DateTime<Utc>,
    /// The time that comes next, and while it is being served this time.
    pub next: DateTime<Utc>,
    /// When the last two were written.
    pub last_updated: DateTime<Utc>,
}

/// The time that stands for "never": .NET's default, 0001-01-01.
pub fn never() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(1, 1, 1, 0, 0, 0).single().unwrap_or(DateTime::<Utc>::MIN_UTC)
}

impl TimerStatus {
    /// As the blob and `ScheduleStatus` hold it.
    pub fn to_json(&self) -> Value {
        json!({"Last": iso(self.last), "Next": iso(self.next), "LastUpdated": iso(self.last_updated)})
    }

    /// Reads a status blob; None for what is none, which the host treats like a first start.
    pub fn parse(bytes: &[u8]) -> Option<TimerStatus> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let time = |key: &str| value.get(key)?.as_str()?.parse::<DateTime<Utc>>().ok();
        Some(TimerStatus {
            last: time("Last")?,
            next: time("Next")?,
            last_updated: time("LastUpdated").unwrap_or(never()),
        })
    }
}

/// Offset and fraction as .NET writes them: `+00:00`, trailing zeros of the fraction cut.
fn iso(time: DateTime<Utc>) -> String {
    let text = time.to_rfc3339_opts(SecondsFormat::Nanos, false);
    // .NET counts in units of 100 ns.
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let fraction: String = rest.chars().take(7).collect();
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}+00:00"),
        fraction => format!("{whole}.{fraction}+00:00"),
    }
}

/// What a timer does when the host starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerStart {
    /// A time went by while no host ran: one run now, however many were missed. `IsPastDue` is true.
    PastDue,
    /// The app asks for a run at start. `IsPastDue` is false.
    OnStartup,
    /// Nothing before the next time.
    Wait,
}

/// What a timer does when the host starts, and the status to write now (None: it stands as it is). `stored` is the status
/// blob's, `monitored` whether the timer has one.
pub fn decide_start(
    schedule: &TimerSchedule,
    stored: Option<&TimerStatus>,
    monitored: bool,
    run_on_startup: bool,
    now: DateTime<Utc>,
) -> (TimerStart, Option<TimerStatus>) {
    let quiet = if run_on_startup { TimerStart::OnStartup } else { TimerStart::Wait };
    if !monitored {
        return (quiet, None);
    }
    let next_from_now = schedule.next_after(now).unwrap_or(DateTime::<Utc>::MAX_UTC);
    let Some(stored) = stored else {
        return (quiet, Some(TimerStatus { last: never(), next: next_from_now, last_updated: never() }));
    };
    // The schedule is the same when it leads from the last run to the time that was written then.
    let from = [stored.last_updated, stored.last].into_iter().find(|time| *time != never());
    let expected = match from {
        Some(from) => schedule.next_after(from),
        None => schedule.next_after(stored.next - chrono::Duration::milliseconds(1)),
    };
    if expected != Some(stored.next) {
        return (quiet, Some(TimerStatus { next: next_from_now, ..stored.clone() }));
    }
    if now > stored.next { (TimerStart::PastDue, None) } else { (quiet, None) }
}

/// The status after a run that began at `began`. A run that began a little early counts as at its time, or it would run
/// twice.
pub fn after_run(schedule: &TimerSchedule, served: Option<DateTime<Utc>>, began: DateTime<Utc>) -> TimerStatus {
    let began = served.map_or(began, |served| began.max(served));
    TimerStatus {
        last: began,
        next: schedule.next_after(began).unwrap_or(DateTime::<Utc>::MAX_UTC),
        last_updated: began,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn schedule() -> TimerSchedule {
        TimerSchedule::parse("0 */5 * * * *").unwrap()
    }

    fn status(last: &str, next: &str) -> TimerStatus {
        TimerStatus { last: at(last), next: at(next), last_updated: at(last) }
    }

    #[test]
    fn the_first_start_waits_and_writes() {
        let (start, write) = decide_start(&schedule(), None, true, false, at("2026-12-01T07:57:00Z"));
        assert_eq!(start, TimerStart::Wait);
        let expected = json!({
            "Last": "0001-01-01T00:00:00+00:00",
            "Next": "2026-12-01T08:00:00+00:00",
            "LastUpdated": "0001-01-01T00:00:00+00:00",
        });
        assert_eq!(write.unwrap().to_json(), expected);
    }

    #[test]
    fn a_missed_time_is_one_run_however_many_were_missed() {
        let stored = status("2026-12-01T07:55:00.002Z", "2026-12-01T08:00:00Z");
        for (now, expected) in [
            ("2026-12-01T08:00:00Z", TimerStart::Wait),
            ("2026-12-01T08:00:01Z", TimerStart::PastDue),
            ("2026-12-03T00:00:00Z", TimerStart::PastDue),
        ] {
            assert_eq!(decide_start(&schedule(), Some(&stored), true, false, at(now)), (expected, None), "{now}");
        }
        // Past due wins over runOnStartup, and only one run comes of both.
        let now = at("2026-12-01T09:00:00Z");
        assert_eq!(decide_start(&schedule(), Some(&stored), true, true, now), (TimerStart::PastDue, None));
    }

    #[test]
    fn a_first_status_is_past_due_too() {
        let (_, first) = decide_start(&schedule(), None, true, false, at("2026-12-01T07:57:00Z"));
        let (start, write) = decide_start(&schedule(), first.as_ref(), true, false, at("2026-12-01T08:03:00Z"));
        assert_eq!((start, write), (TimerStart::PastDue, None));
    }

    #[test]
    fn a_changed_schedule_is_never_past_due() {
        let stored = status("2026-12-01T07:55:00Z", "2026-12-01T08:00:00Z");
        let hourly = TimerSchedule::parse("0 0 * * * *").unwrap();
        let half = TimerSchedule::parse("0 30 * * * *").unwrap();
        let now = at("2026-12-01T09:10:00Z");
        // By chance the same next time: the same schedule, as far as the status shows.
        assert_eq!(decide_start(&hourly, Some(&stored), true, false, now).0, TimerStart::PastDue);
        let (start, write) = decide_start(&half, Some(&stored), true, false, now);
        assert_eq!(
            (start, write),
            (TimerStart::Wait, Some(TimerStatus { next: at("2026-12-01T09:30:00Z"), ..stored }))
        );
    }

    #[test]
    fn without_monitor_nothing_is_remembered() {
        let stored = status("2026-12-01T07:55:00Z", "2026-12-01T08:00:00Z");
        let now = at("2026-12-02T00:00:00Z");
        assert_eq!(decide_start(&schedule(), Some(&stored), false, false, now), (TimerStart::Wait, None));
        assert_eq!(decide_start(&schedule(), None, false, true, now), (TimerStart::OnStartup, None));
    }

    #[test]
    fn after_a_run() {
        let served = at("2026-12-01T08:00:00Z");
        let early = after_run(&schedule(), Some(served), at("2026-12-01T07:59:59.99Z"));
        assert_eq!((early.last, early.next), (served, at("2026-12-01T08:05:00Z")));
        let late = after_run(&schedule(), Some(served), at("2026-12-01T08:00:00.0021Z"));
        assert_eq!(late.next, at("2026-12-01T08:05:00Z"));
        assert_eq!(TimerStatus::parse(late.to_json().to_string().as_bytes()), Some(late.clone()));
        assert_eq!(late.to_json()["Last"], "2026-12-01T08:00:00.0021+00:00");
        assert_eq!(TimerStatus::parse(b"{}"), None);
    }
}
