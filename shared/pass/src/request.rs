//! What a person asks of a manual pass (design section 10). The flags of the command line and the fields of a message
//! by hand are read by the same functions.

use chrono::NaiveDate;
use firn_model::Rule;
use firn_plan::{pass_rule, tick_rules};
use thiserror::Error;

/// One manual pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManualRequest {
    /// Only this dataset; None: all of them.
    pub dataset: Option<String>,
    /// Only partitions that hold a date in this range.
    pub date_range: Option<DateRange>,
    /// Only partitions that match every one of these.
    pub partitions: Vec<PartitionCondition>,
    /// Plan and report, merge nothing.
    pub dry_run: bool,
    /// The rule full in place of manual.
    pub full: bool,
    /// The rules of a tick after a scheduled time in place of manual: what the long-running compactor and the schedule do, once.
    pub ordinary: bool,
}

/// Days from `from` to `to`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRange {
    /// First day.
    pub from: NaiveDate,
    /// Last day, never before the first.
    pub to: NaiveDate,
}

impl ManualRequest {
    /// The rule that it asks by; the strongest one of an ordinary pass.
    pub fn rule(&self) -> Rule {
        match (self.full, self.ordinary) {
            (true, _) => Rule::Full,
            (false, true) => pass_rule(true),
            (false, false) => Rule::Manual,
        }
    }

    /// All rules that it asks by, strongest first.
    pub(crate) fn rules(&self) -> &'static [Rule] {
        match (self.full, self.ordinary) {
            (true, _) => &[Rule::Full],
            (false, true) => tick_rules(true),
            (false, false) => &[Rule::Manual],
        }
    }

    /// What to tell a person whose request met no partition at all.
    pub fn matched_nothing(&self) -> String {
        let range = self.date_range.map(|range| format!("--date-range {}:{}", range.from, range.to));
        let conditions = self.partitions.iter().map(|PartitionCondition { column, value }| {
            format!("--partition {column}={}", value.as_deref().unwrap_or(r"\N"))
        });
        let asked: Vec<String> = range.into_iter().chain(conditions).collect();
        match asked.as_slice() {
            [] => "there is no partition: nothing was written yet".to_owned(),
            asked => {
                format!(
                    "no partition matches {}; firn compact --dry-run without it shows those that there are",
                    asked.join(" ")
                )
            }
        }
    }
}

/// `COL=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionCondition {
    /// Name of a partition field or of its source column.
    pub column: String,
    /// The value as it was written; None is null (written `\N`).
    pub value: Option<String>,
}

/// A flag or field that cannot be read: wrong usage.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    /// Not `FROM:TO`.
    #[error("\"{0}\" is not a date range; write FROM:TO, for example 2026-11-01:2026-11-30")]
    NotARange(String),
    /// One end is no date.
    #[error("\"{part}\" in \"{range}\" is not a date; write YYYY-MM-DD, for example 2026-11-01")]
    NotADate {
        /// The end.
        part: String,
        /// The whole text.
        range: String,
    },
    /// The first day is after the last.
    #[error("\"{range}\" runs backwards; write {to}:{from}")]
    Reversed {
        /// The whole text.
        range: String,
        /// The later day.
        from: NaiveDate,
        /// The earlier day.
        to: NaiveDate,
    },
    /// Not `COL=VALUE`.
    #[error("\"{0}\" is not a partition; write COL=VALUE, for example day=2026-11-01, or COL=\\N for null")]
    NotACondition(String),
}

impl DateRange {
    /// Reads `FROM:TO`.
    ///
    /// # Errors
    /// What is wrong with it, with the text quoted.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        let (from, to) = text.split_once(':').ok_or_else(|| RequestError::NotARange(text.to_owned()))?;
        let date = |part: &str| {
            day(part).ok_or_else(|| RequestError::NotADate { part: part.to_owned(), range: text.to_owned() })
        };
        let (from, to) = (date(from)?, date(to)?);
        if from > to {
            return Err(RequestError::Reversed { range: text.to_owned(), from, to });
        }
        Ok(Self { from, to })
    }
}

/// Exactly `YYYY-MM-DD`: chrono alone would also take one-digit months and signs.
fn day(text: &str) -> Option<NaiveDate> {
    let shaped = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if shaped { NaiveDate::parse_from_str(text, "%Y-%m-%d").ok() } else { None }
}

impl PartitionCondition {
    /// Reads `COL=VALUE`, split at the first `=`; `COL=\N` is null, `COL=` the empty text.
    ///
    /// # Errors
    /// What is wrong with it, with the text quoted.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        match text.split_once('=') {
            Some((column, value)) if !column.is_empty() => {
                let value = (value != "\\N").then(|| value.to_owned());
                Ok(Self { column: column.to_owned(), value })
            }
            _ => Err(RequestError::NotACondition(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i32, month: u32, day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(year, month, day).unwrap()
    }

    #[test]
    fn a_request_asks_by_one_rule_or_by_those_of_a_tick() {
        let request = |full, ordinary| ManualRequest { full, ordinary, ..ManualRequest::default() };
        let asked = |full, ordinary| (request(full, ordinary).rule(), request(full, ordinary).rules());
        assert_eq!(asked(false, false), (Rule::Manual, [Rule::Manual].as_slice()));
        assert_eq!(asked(true, false), (Rule::Full, [Rule::Full].as_slice()));
        let tick = [Rule::Schedule, Rule::Cold, Rule::Tier, Rule::Backlog];
        assert_eq!(asked(false, true), (Rule::Schedule, tick.as_slice()));
    }

    #[test]
    fn what_matched_nothing_is_named_as_it_is_typed() {
        let request = ManualRequest {
            date_range: DateRange::parse("2026-11-01:2026-11-02").ok(),
            partitions: ["region=eu", r"host=\N"].map(|text| PartitionCondition::parse(text).unwrap()).into(),
            ..ManualRequest::default()
        };
        assert_eq!(
            request.matched_nothing(),
            "no partition matches --date-range 2026-11-01:2026-11-02 --partition region=eu --partition host=\\N; firn compact \
             --dry-run without it shows those that there are"
        );
        assert_eq!(ManualRequest::default().matched_nothing(), "there is no partition: nothing was written yet");
    }

    #[test]
    fn ranges_include_both_ends() {
        let range = DateRange { from: date(2026, 11, 1), to: date(2026, 11, 30) };
        assert_eq!(DateRange::parse("2026-11-01:2026-11-30"), Ok(range));
        let one = DateRange { from: date(2026, 2, 28), to: date(2026, 2, 28) };
        assert_eq!(DateRange::parse("2026-02-28:2026-02-28"), Ok(one));
    }

    #[test]
    fn wrong_ranges_are_quoted() {
        for (text, message) in [
            ("2026-11-01", "\"2026-11-01\" is not a date range; write FROM:TO, for example 2026-11-01:2026-11-30"),
            (
                "2026-11-31:2026-12-01",
                "\"2026-11-31\" in \"2026-11-31:2026-12-01\" is not a date; write YYYY-MM-DD, for example 2026-11-01",
            ),
            (
                "2026-1-1:2026-12-01",
                "\"2026-1-1\" in \"2026-1-1:2026-12-01\" is not a date; write YYYY-MM-DD, for example 2026-11-01",
            ),
            (":2026-12-01", "\"\" in \":2026-12-01\" is not a date; write YYYY-MM-DD, for example 2026-11-01"),
            ("2026-11-02:2026-11-01", "\"2026-11-02:2026-11-01\" runs backwards; write 2026-11-01:2026-11-02"),
        ] {
            assert_eq!(DateRange::parse(text).unwrap_err().to_string(), message);
        }
        assert!(DateRange::parse("2026-11-01:2026-11-02:2026-11-03").is_err());
        assert!(DateRange::parse("20261101ab:2026-11-02").is_err());
    }

    #[test]
    fn conditions_split_at_the_first_equals_sign() {
        let condition = |column: &str, value: Option<&str>| {
            Ok(PartitionCondition { column: column.into(), value: value.map(str::to_owned) })
        };
        assert_eq!(PartitionCondition::parse("day=2026-11-01"), condition("day", Some("2026-11-01")));
        assert_eq!(PartitionCondition::parse("s=a=b"), condition("s", Some("a=b")));
        assert_eq!(PartitionCondition::parse("s="), condition("s", Some("")));
        assert_eq!(PartitionCondition::parse("s=\\N"), condition("s", None));
        for wrong in ["day", "=x", ""] {
            let message = PartitionCondition::parse(wrong).unwrap_err().to_string();
            assert!(message.starts_with(&format!("\"{wrong}\" is not a partition; write COL=VALUE")), "{message}");
        }
    }
}
