//! Where each key of Firn's sections belongs, for messages about one that stands elsewhere: a key that is ignored where it stands looks
//! like one that works.

use crate::{catalog, compaction, dataset, maintenance, storage};

/// Keys of one place.
struct Home {
    /// What the place is called after "belongs into".
    place: &'static str,
    /// A key of it, as it is to be written.
    form: fn(&str) -> String,
    keys: &'static [&'static str],
    /// Keys that others use too: they say nothing where foreign keys may stand.
    common: &'static [&'static str],
    /// Whether a dataset with such a key means Firn's: an ingestor has accounts and addresses of its own.
    meant_in_a_dataset: bool,
}

const HOMES: [Home; 8] = [
    Home {
        place: "section compaction",
        form: |key| format!("compaction.{key}"),
        keys: &compaction::PASS_KEYS,
        common: &[],
        meant_in_a_dataset: true,
    },
    Home {
        place: "section compaction, or a dataset's own compaction block",
        form: |key| format!("compaction.{key}"),
        keys: &compaction::SETTINGS_KEYS,
        common: &[],
        meant_in_a_dataset: true,
    },
    Home {
        place: "section maintenance",
        form: |key| format!("maintenance.{key}"),
        keys: &maintenance::KEYS,
        common: &[],
        meant_in_a_dataset: true,
    },
    Home {
        place: "a dataset",
        form: |key| format!("ingestion.datasets[].{key}"),
        keys: &dataset::KEYS,
        common: &["name", "table", "branch", "compaction"],
        meant_in_a_dataset: false,
    },
    Home {
        place: "a dataset's block tantivy",
        form: |key| format!("ingestion.datasets[].tantivy.{key}"),
        keys: &[dataset::INDEXING_COLUMNS],
        common: &[],
        meant_in_a_dataset: true,
    },
    Home {
        place: "section ingestion",
        form: |key| format!("ingestion.{key}"),
        keys: &["datasets"],
        common: &[],
        meant_in_a_dataset: false,
    },
    Home {
        place: "section storage",
        form: |key| format!("storage.{key}"),
        keys: &storage::KEYS,
        common: &["account", "credential", "clientId", "queue"],
        meant_in_a_dataset: false,
    },
    Home {
        place: "section catalog",
        form: |key| format!("catalog.{key}"),
        keys: &catalog::KEYS,
        common: &["type", "uri", "name", "warehouse", "auth", "token", "credential", "scope", "headers"],
        meant_in_a_dataset: false,
    },
];

/// Where a key stands that is not known there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stands {
    /// In a section of Firn's alone.
    InOurs,
    /// In a dataset or a block of it, which an ingestor shares.
    InADataset,
    /// At the top level or in `ingestion`, which others share.
    Outside,
}

/// What to do with a known key that stands elsewhere; None when it is nobody's here.
pub(crate) fn remedy(key: &str, stands: Stands) -> Option<String> {
    let meant = |home: &&Home| {
        home.keys.contains(&key)
            && match stands {
                Stands::InOurs => true,
                Stands::InADataset => home.meant_in_a_dataset,
                Stands::Outside => !home.common.contains(&key),
            }
    };
    let homes: Vec<&Home> = HOMES.iter().filter(meant).collect();
    let places: Vec<&str> = homes.iter().map(|home| home.place).collect();
    let forms: Vec<String> = homes.iter().map(|home| (home.form)(key)).collect();
    (!homes.is_empty()).then(|| format!("belongs into {}; write it as {}", places.join(" or "), forms.join(" or ")))
}

/// The keys that mean Firn's wherever they stand, as they are to be written.
pub(crate) fn unmistakable() -> impl Iterator<Item = (&'static str, String)> {
    HOMES.iter().flat_map(|home| {
        let own = home.keys.iter().filter(|key| !home.common.contains(*key));
        own.map(|key| (*key, (home.form)(key)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_home() {
        assert_eq!(
            remedy("memoryMb", Stands::Outside).as_deref(),
            Some(
                "belongs into section compaction, or a dataset's own compaction block; write it as compaction.memoryMb"
            )
        );
        assert_eq!(
            remedy("credential", Stands::InOurs).as_deref(),
            Some(
                "belongs into section storage or section catalog; write it as storage.credential or catalog.credential"
            )
        );
        assert_eq!(
            remedy("timeColumn", Stands::InOurs).as_deref(),
            Some("belongs into a dataset; write it as ingestion.datasets[].timeColumn")
        );
    }

    #[test]
    fn what_others_may_mean_is_theirs() {
        for key in ["name", "uri", "account", "queue", "token", "gateway"] {
            assert_eq!(remedy(key, Stands::Outside), None, "{key}");
        }
        for key in ["connectionString", "uri", "datasets", "maximumAge"] {
            assert_eq!(remedy(key, Stands::InADataset), None, "{key}");
        }
        assert!(remedy("orphanMinAgeHours", Stands::InADataset).is_some());
    }

    #[test]
    fn common_keys_are_keys() {
        for home in &HOMES {
            assert!(home.common.iter().all(|key| home.keys.contains(key)), "{}", home.place);
        }
    }
}
