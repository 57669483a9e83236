//! When a tick works and which scheduled times it makes up: arithmetic on UTC, which has no summer time (design sections 4
//! and 9).

use chrono::{DateTime, TimeDelta, Utc};
use firn_config::Schedule;

/// Timers fire a moment early or late. Without some play a tick that comes a second early would wait a whole further timer.
const PLAY: i32 = 30;
/// The most play, however long the interval is.
const MOST_PLAY: TimeDelta = TimeDelta::seconds(30);

/// Whether a tick works now: when the interval has passed since the recorded tick, or none is recorded. A recorded tick of the
/// future (a clock that was set back) is waited for at most one interval.
pub(crate) fn tick_is_due(last: Option<DateTime<Utc>>, now: DateTime<Utc>, interval: TimeDelta) -> bool {
    let Some(last) = last else { return true };
    let needed = interval - (interval / PLAY).min(MOST_PLAY);
    (now - last).abs() >= needed
}

/// Scheduled times that are dropped are named one by one up to here.
const NAMED: usize = 100;

/// What the schedule asks for at a tick.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScheduleDue {
    /// The latest scheduled time that is made up now. Several missed ones make one pass.
    pub(crate) made_up: Option<DateTime<Utc>>,
    /// Scheduled times that are too long past, oldest first, and no more than a person would read. They are not made up.
    pub(crate) dropped: Vec<DateTime<Utc>>,
    /// Whether more were dropped than are named.
    pub(crate) more_dropped: bool,
}

/// Scheduled times after `done_until` and not after `now`: made up when they are at most `catch_up` late, else dropped. What it costs does
/// not grow with the time that has passed: a machine may have been off for a year of minutes.
///
/// Without `done_until` nothing was ever planned here, so nothing was missed: the schedule counts from now on, as it counts from
/// the start of a long-running compactor.
pub(crate) fn schedule_due(
    schedule: &Schedule,
    done_until: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
    catch_up: TimeDelta,
) -> ScheduleDue {
    let mut due = ScheduleDue::default();
    let Some(mut at) = done_until else { return due };
    let last_dropped = too_late(now, catch_up);
    while let Some(next) = schedule.next_after(at).filter(|next| *next <= last_dropped) {
        if due.dropped.len() == NAMED {
            due.more_dropped = true;
            break;
        }
        due.dropped.push(next);
        at = next;
    }
    due.made_up = latest(schedule, at.max(last_dropped), now);
    due
}

/// The latest time that is too late to be made up.
pub(crate) fn too_late(now: DateTime<Utc>, catch_up: TimeDelta) -> DateTime<Utc> {
    let border =
        now.checked_sub_signed(catch_up).and_then(|border| border.checked_sub_signed(TimeDelta::milliseconds(1)));
    border.unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// The latest scheduled time after `after` and not after `now`, looked for from `now` back in spans twice as long each time.
fn latest(schedule: &Schedule, after: DateTime<Utc>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let next = |at| schedule.next_after(at).filter(|next| *next <= now);
    let mut span = TimeDelta::minutes(1);
    loop {
        let from = now.checked_sub_signed(span).map_or(after, |from| from.max(after));
        if let Some(first) = next(from) {
            return std::iter::successors(Some(first), |at| next(*at)).last();
        }
        if from == after {
            return None;
        }
        span = span * 2;
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;

    fn at(day: u32, hour: u32, minute: u32) -> DateTime<Utc> {
        NaiveDate::from_ymd_opt(2026, 11, day).unwrap().and_hms_opt(hour, minute, 0).unwrap().and_utc()
    }

    fn due(text: &str, done_until: DateTime<Utc>, now: DateTime<Utc>, hours: i64) -> ScheduleDue {
        schedule_due(&Schedule::parse(text).unwrap(), Some(done_until), now, TimeDelta::hours(hours))
    }

    #[test]
    fn a_tick_works_when_the_interval_has_passed_and_when_none_is_recorded() {
        let interval = TimeDelta::minutes(15);
        let after = |seconds| tick_is_due(Some(at(1, 10, 0)), at(1, 10, 0) + TimeDelta::seconds(seconds), interval);
        assert!(tick_is_due(None, at(1, 10, 0), interval));
        assert!(!after(0));
        assert!(!after(10 * 60));
        assert!(!after(14 * 60 + 29));
        assert!(after(14 * 60 + 30), "the timer came a moment early");
        assert!(after(15 * 60));
        let every_minute = |seconds| {
            tick_is_due(Some(at(1, 10, 0)), at(1, 10, 0) + TimeDelta::seconds(seconds), TimeDelta::minutes(1))
        };
        assert!(!every_minute(57));
        assert!(every_minute(58));
    }

    #[test]
    fn a_clock_that_was_set_back_stops_no_tick_for_ever() {
        let interval = TimeDelta::minutes(15);
        assert!(!tick_is_due(Some(at(1, 10, 5)), at(1, 10, 0), interval));
        assert!(tick_is_due(Some(at(2, 10, 0)), at(1, 10, 0), interval));
    }

    #[test]
    fn a_scheduled_time_is_made_up_once_by_the_first_tick_after_it() {
        let schedule = "0 2 * * *";
        assert_eq!(due(schedule, at(1, 1, 50), at(1, 1, 55), 12), ScheduleDue::default());
        let made_up = |time| ScheduleDue { made_up: Some(time), ..ScheduleDue::default() };
        assert_eq!(due(schedule, at(1, 1, 55), at(1, 2, 0), 12), made_up(at(1, 2, 0)), "due at its own minute");
        assert_eq!(due(schedule, at(1, 1, 55), at(1, 2, 10), 12), made_up(at(1, 2, 0)));
        assert_eq!(due(schedule, at(1, 2, 10), at(1, 2, 25), 12), ScheduleDue::default(), "not again");
        assert_eq!(due(schedule, at(1, 2, 0), at(1, 2, 15), 12), ScheduleDue::default(), "after, not at");
    }

    /// K104: on the days on which clocks change in Europe and America nothing is done twice or left out: times are UTC.
    #[test]
    fn every_day_has_one_scheduled_pass_when_clocks_change_too() {
        for (month, day) in [(3, 8), (3, 29), (10, 25), (11, 1)] {
            for text in ["30 1 * * *", "30 2 * * *"] {
                let midnight =
                    NaiveDate::from_ymd_opt(2026, month, day).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc();
                let ticks = (0..288).map(|tick| midnight + TimeDelta::minutes(5 * tick));
                let made_up: Vec<_> = ticks
                    .filter_map(|now| due(text, now - TimeDelta::minutes(5), now, 12).made_up)
                    .map(|time| time.format("%H:%M").to_string())
                    .collect();
                assert_eq!(made_up, [if text.starts_with("30 1") { "01:30" } else { "02:30" }], "{month}-{day}");
            }
        }
    }

    #[test]
    fn what_is_later_than_the_catch_up_is_dropped_and_named() {
        let schedule = "0 2 * * *";
        assert_eq!(due(schedule, at(1, 1, 0), at(1, 14, 0), 12).made_up, Some(at(1, 2, 0)), "twelve hours late");
        let late = due(schedule, at(1, 1, 0), at(1, 14, 1), 12);
        assert_eq!(late, ScheduleDue { dropped: vec![at(1, 2, 0)], ..ScheduleDue::default() });
        let away = due(schedule, at(1, 1, 0), at(4, 9, 0), 12);
        assert_eq!(
            away,
            ScheduleDue {
                made_up: Some(at(4, 2, 0)),
                dropped: vec![at(1, 2, 0), at(2, 2, 0), at(3, 2, 0)],
                more_dropped: false
            }
        );
        assert_eq!(due(schedule, at(1, 1, 0), at(1, 2, 0), 0).made_up, Some(at(1, 2, 0)), "no catch-up: in time only");
    }

    #[test]
    fn several_missed_times_make_one_pass() {
        let all_night = due("0 * * * *", at(1, 0, 30), at(1, 5, 20), 12);
        assert_eq!(all_night, ScheduleDue { made_up: Some(at(1, 5, 0)), ..ScheduleDue::default() });
    }

    /// K51, K122: a week off is the last night only, down from two to nine is one pass at nine.
    #[test]
    fn a_long_time_off_is_one_pass_for_the_last_night() {
        let week = due("0 2 * * *", at(1, 2, 10), at(8, 9, 0), 12);
        assert_eq!((week.made_up, week.dropped.len(), week.more_dropped), (Some(at(8, 2, 0)), 6, false));
        assert_eq!(due("0 2 * * *", at(1, 1, 59), at(1, 9, 0), 12).made_up, Some(at(1, 2, 0)));
    }

    #[test]
    fn a_year_of_minutes_is_not_walked_through() {
        let year = due("* * * * *", at(1, 0, 0) - TimeDelta::days(366), at(1, 0, 0), 12);
        let named = |number: usize| at(1, 0, number as u32) - TimeDelta::days(366);
        assert_eq!((year.made_up, year.dropped.len(), year.more_dropped), (Some(at(1, 0, 0)), NAMED, true));
        assert_eq!((year.dropped[0], year.dropped[58]), (named(1), named(59)));
        // However long the catch-up is.
        assert_eq!(
            due("* * * * *", at(1, 0, 0) - TimeDelta::days(366), at(1, 0, 0), 24 * 400).made_up,
            Some(at(1, 0, 0))
        );
        assert_eq!(due("30 4 1 1 *", at(1, 0, 0), at(30, 0, 0), 24 * 400), ScheduleDue::default());
    }

    /// K25, K51, K122.
    #[test]
    fn a_restart_at_a_scheduled_time_or_hours_after_it_makes_one_pass() {
        let made_up = |time| ScheduleDue { made_up: Some(time), ..ScheduleDue::default() };
        let restarted = at(1, 1, 0) + TimeDelta::seconds(12);
        assert_eq!(due("0 1 * * *", at(1, 0, 59), restarted, 12), made_up(at(1, 1, 0)));
        assert_eq!(due("0 1 * * *", restarted, at(1, 1, 1), 12), ScheduleDue::default(), "two ticks in a minute");
        assert_eq!(due("0 2 * * *", at(1, 1, 45), at(1, 9, 0), 12), made_up(at(1, 2, 0)), "down from two till nine");
        assert_eq!(due("0 2 * * *", at(1, 9, 0), at(1, 9, 15), 12), ScheduleDue::default(), "and no second one");
    }

    /// All times one after the other.
    fn walked(schedule: &Schedule, mut at: DateTime<Utc>, now: DateTime<Utc>, catch_up: TimeDelta) -> ScheduleDue {
        let mut due = ScheduleDue::default();
        while let Some(next) = schedule.next_after(at).filter(|next| *next <= now) {
            match now - next <= catch_up {
                true => due.made_up = Some(next),
                false => due.dropped.push(next),
            }
            at = next;
        }
        due.more_dropped = due.dropped.len() > NAMED;
        due.dropped.truncate(NAMED);
        due
    }

    proptest::proptest! {
        #[test]
        fn it_says_what_a_walk_through_all_times_says(
            which in 0..7_usize, off in 0..20_000_i64, second in 0..60_i64, hours in 0..60_i64
        ) {
            let texts = ["0 2 * * *", "* * * * *", "*/7 1-3 * * 1-5", "0 0 1 * *", "59 23 * * 0", "* 4 * * *", "30 */5 2 * *"];
            let schedule = Schedule::parse(texts[which]).unwrap();
            let now = at(20, 13, 37) + TimeDelta::seconds(second);
            let (from, catch_up) = (now - TimeDelta::minutes(off), TimeDelta::hours(hours));
            proptest::prop_assert_eq!(
                schedule_due(&schedule, Some(from), now, catch_up),
                walked(&schedule, from, now, catch_up)
            );
        }
    }

    #[test]
    fn nothing_was_missed_before_the_first_tick() {
        let schedule = Schedule::parse("* * * * *").unwrap();
        assert_eq!(schedule_due(&schedule, None, at(1, 2, 0), TimeDelta::hours(12)), ScheduleDue::default());
        assert_eq!(due("* * * * *", at(2, 0, 0), at(1, 0, 0), 12), ScheduleDue::default(), "a clock that was set back");
    }

    #[test]
    fn the_night_without_an_hour_elsewhere_has_every_hour_in_utc() {
        // 2026-03-29, when clocks in Europe leave out 02:00 to 03:00.
        let day = NaiveDate::from_ymd_opt(2026, 3, 29).unwrap();
        let time = |hour| day.and_hms_opt(hour, 30, 0).unwrap().and_utc();
        assert_eq!(due("30 2 * * *", time(1), time(3), 12).made_up, Some(time(2)));
        assert_eq!(due("30 1 * * *", time(1), time(3), 12), ScheduleDue::default());
    }
}
