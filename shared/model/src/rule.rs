//! The rules that select partitions (design section 3, "Which rule runs when").

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a partition is looked at. Ordered by strength: a stronger rule may replace a weaker one in a queued record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// More small files than `backlogFileThreshold`.
    Backlog,
    /// Enough neighbours of one size tier.
    Tier,
    /// A partition whose time is past is finished once.
    Cold,
    /// Files without a text index.
    Backfill,
    /// The nightly schedule: two or more small files.
    Schedule,
    /// By hand: as schedule, filtered.
    Manual,
    /// By hand: every partition that is not one sorted run.
    Full,
}

impl Rule {
    /// Every rule, weakest first.
    pub const ALL: [Rule; 7] =
        [Rule::Backlog, Rule::Tier, Rule::Cold, Rule::Backfill, Rule::Schedule, Rule::Manual, Rule::Full];

    /// The word used in messages, JSON and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::Backlog => "backlog",
            Rule::Tier => "tier",
            Rule::Cold => "cold",
            Rule::Backfill => "backfill",
            Rule::Schedule => "schedule",
            Rule::Manual => "manual",
            Rule::Full => "full",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Rule::ALL.into_iter().find(|rule| rule.as_str() == text).ok_or_else(|| {
            format!("unknown rule `{text}`: use one of backlog, tier, cold, backfill, schedule, manual, full")
        })
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strength_is_full_manual_schedule_backfill_cold_tier_backlog() {
        let mut rules = Rule::ALL;
        rules.sort();
        let words: Vec<_> = rules.iter().rev().map(|rule| rule.as_str()).collect();
        assert_eq!(words, ["full", "manual", "schedule", "backfill", "cold", "tier", "backlog"]);
    }

    #[test]
    fn words_parse_back() {
        for rule in Rule::ALL {
            assert_eq!(rule.as_str().parse(), Ok(rule));
            assert_eq!(serde_json::from_value::<Rule>(serde_json::json!(rule)).ok(), Some(rule));
        }
        assert!("nightly".parse::<Rule>().unwrap_err().contains("`nightly`"));
    }
}
