//! The snapshot's summary: what changed, and totals that equal a recount.

use std::collections::{BTreeMap, HashMap};

use super::manifests::LiveSums;

/// Manifests of the new snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ManifestCounts {
    pub(crate) created: usize,
    pub(crate) kept: usize,
    pub(crate) replaced: usize,
}

/// All live files of a snapshot (optional summary fields of the Iceberg spec, `total-…`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) data_files: u64,
    pub(crate) delete_files: u64,
    pub(crate) records: u64,
    /// Data and delete files.
    pub(crate) bytes: u64,
    pub(crate) position_deletes: u64,
    pub(crate) equality_deletes: u64,
}

/// What the manifest list of the new snapshot says of its live files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) data_files: u64,
    pub(crate) records: u64,
    pub(crate) delete_files: u64,
}

/// Totals from the parent's summary and the change; None when the summary lacks one, or the counts of the manifest list
/// show that it was wrong: then everything has to be counted.
pub(crate) fn carried_totals(
    previous: &HashMap<String, String>,
    removed: LiveSums,
    added: LiveSums,
    counted: Counted,
) -> Option<Totals> {
    let number = |key: &str| previous.get(key)?.parse::<u64>().ok();
    let moved = |key: &str, minus: u64, plus: u64| number(key)?.checked_add(plus)?.checked_sub(minus);
    let data_files = moved("total-data-files", removed.files, added.files)?;
    let records = moved("total-records", removed.records, added.records)?;
    let bytes = moved("total-files-size", removed.bytes, added.bytes)?;
    if data_files != counted.data_files || records != counted.records {
        return None;
    }
    let deletes = |key: &str| if counted.delete_files == 0 { Some(0) } else { number(key) };
    if deletes("total-delete-files")? != counted.delete_files {
        return None;
    }
    Some(Totals {
        data_files,
        delete_files: counted.delete_files,
        records,
        bytes,
        position_deletes: deletes("total-position-deletes")?,
        equality_deletes: deletes("total-equality-deletes")?,
    })
}

/// The entries of the summary, without the operation. Entries of the request come first: none can hide a count.
pub(crate) fn entries(
    request: &BTreeMap<String, String>,
    inputs_hash: &str,
    removed: LiveSums,
    added: LiveSums,
    totals: Totals,
    manifests: ManifestCounts,
) -> HashMap<String, String> {
    let mut summary: HashMap<String, String> = request.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    summary.insert("firn.inputs".to_owned(), inputs_hash.to_owned());
    let counts = [
        ("added-data-files", added.files),
        ("deleted-data-files", removed.files),
        ("added-records", added.records),
        ("deleted-records", removed.records),
        ("added-files-size", added.bytes),
        ("removed-files-size", removed.bytes),
        // A group lies in one partition.
        ("changed-partition-count", 1),
        ("total-data-files", totals.data_files),
        ("total-delete-files", totals.delete_files),
        ("total-records", totals.records),
        ("total-files-size", totals.bytes),
        ("total-position-deletes", totals.position_deletes),
        ("total-equality-deletes", totals.equality_deletes),
        ("manifests-created", manifests.created as u64),
        ("manifests-kept", manifests.kept as u64),
        ("manifests-replaced", manifests.replaced as u64),
    ];
    summary.extend(counts.map(|(key, count)| (key.to_owned(), count.to_string())));
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(files: u64, records: u64, bytes: u64) -> LiveSums {
        LiveSums { files, records, bytes, ..LiveSums::default() }
    }

    fn previous(entries: &[(&str, &str)]) -> HashMap<String, String> {
        entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    const ALL: [(&str, &str); 6] = [
        ("total-data-files", "10"),
        ("total-records", "100"),
        ("total-files-size", "1000"),
        ("total-delete-files", "2"),
        ("total-position-deletes", "7"),
        ("total-equality-deletes", "1"),
    ];

    #[test]
    fn totals_move_with_the_change() {
        let counted = Counted { data_files: 8, records: 95, delete_files: 2 };
        assert_eq!(
            carried_totals(&previous(&ALL), sums(3, 30, 300), sums(1, 25, 200), counted),
            Some(Totals {
                data_files: 8,
                delete_files: 2,
                records: 95,
                bytes: 900,
                position_deletes: 7,
                equality_deletes: 1
            })
        );
    }

    #[test]
    fn a_total_that_is_missing_or_wrong_asks_for_a_recount() {
        let counted = Counted { data_files: 8, records: 95, delete_files: 2 };
        let totals =
            |previous: &HashMap<_, _>, counted| carried_totals(previous, sums(3, 30, 300), sums(1, 25, 200), counted);
        for (missing, _) in ALL {
            let mut some = previous(&ALL);
            some.remove(missing);
            assert_eq!(totals(&some, counted), None, "{missing}");
        }
        assert_eq!(totals(&previous(&ALL), Counted { data_files: 9, ..counted }), None);
        assert_eq!(totals(&previous(&ALL), Counted { records: 96, ..counted }), None);
        assert_eq!(totals(&previous(&ALL), Counted { delete_files: 3, ..counted }), None);
        let mut negative = previous(&ALL);
        negative.insert("total-files-size".into(), "50".into());
        assert_eq!(totals(&negative, counted), None);
    }

    #[test]
    fn without_delete_files_their_totals_are_zero_even_if_nobody_wrote_them() {
        let counted = Counted { data_files: 8, records: 95, delete_files: 0 };
        let totals = carried_totals(&previous(&ALL[..3]), sums(3, 30, 300), sums(1, 25, 200), counted).unwrap();
        assert_eq!((totals.delete_files, totals.position_deletes, totals.equality_deletes), (0, 0, 0));
    }

    #[test]
    fn a_request_cannot_overwrite_a_count() {
        let request =
            BTreeMap::from([("total-records".to_owned(), "1".to_owned()), ("firn.proof".to_owned(), "x".to_owned())]);
        let totals = Totals { records: 95, ..Totals::default() };
        let manifests = ManifestCounts { created: 2, kept: 3, replaced: 4 };
        let summary = entries(&request, "h", sums(3, 30, 300), sums(1, 25, 200), totals, manifests);
        let get = |key: &str| summary[key].as_str();
        assert_eq!((get("total-records"), get("firn.proof"), get("firn.inputs")), ("95", "x", "h"));
        assert_eq!((get("deleted-data-files"), get("removed-files-size")), ("3", "300"));
        assert_eq!((get("added-records"), get("changed-partition-count")), ("25", "1"));
        assert_eq!((get("manifests-created"), get("manifests-kept"), get("manifests-replaced")), ("2", "3", "4"));
    }
}
