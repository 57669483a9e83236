//! Whether the table's properties for its files can be honoured: what cannot is refused by every merge, or has no effect.

use std::fmt;

use firn_compact::{JobSettings, ineffective_properties};
use firn_config::Dataset;
use firn_table::LoadedTable;

use super::finding::Finding;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Properties {
    Usable {
        dataset: String,
    },
    /// Merges go on without them; each text names one.
    WithoutEffect {
        dataset: String,
        problems: Vec<String>,
    },
    /// Every merge of the table fails; the text has property and remedy.
    Refused {
        dataset: String,
        problem: String,
    },
}

pub(super) fn look(dataset: &Dataset, table: &LoadedTable) -> Properties {
    let refused = JobSettings::new(&dataset.compaction, table).err();
    decide(dataset.name.clone(), refused, ineffective_properties(&table.metadata))
}

fn decide(dataset: String, refused: Option<String>, problems: Vec<String>) -> Properties {
    match refused {
        Some(problem) => Properties::Refused { dataset, problem },
        None if problems.is_empty() => Properties::Usable { dataset },
        None => Properties::WithoutEffect { dataset, problems },
    }
}

impl fmt::Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Properties::Usable { dataset } => write!(f, "{dataset}: what they ask of files is done"),
            Properties::WithoutEffect { dataset, problems } => write!(f, "{dataset}: {}", problems.join("; ")),
            Properties::Refused { dataset, problem } => write!(f, "{dataset}: nothing can be merged: {problem}"),
        }
    }
}

impl Finding for Properties {
    fn ok(&self) -> bool {
        !matches!(self, Properties::Refused { .. })
    }

    fn warns(&self) -> bool {
        matches!(self, Properties::WithoutEffect { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stops_merges_fails_and_what_has_no_effect_warns() {
        let decide = |refused: Option<&str>, problems: &[&str]| {
            decide("d".into(), refused.map(str::to_owned), problems.iter().map(|text| (*text).to_owned()).collect())
        };
        assert_eq!(decide(None, &[]), Properties::Usable { dataset: "d".into() });
        let odd = decide(None, &["a is odd", "b is odd"]);
        assert!(odd.ok() && odd.warns());
        assert_eq!(odd.to_string(), "d: a is odd; b is odd");
        let refused = decide(Some("k: `0` is not a whole number above 0"), &["a is odd"]);
        assert!(!refused.ok() && refused.to_string().starts_with("d: nothing can be merged: k: `0`"), "{refused}");
    }
}
