//! Section `maintenance`: snapshot expiry and orphan cleanup.

use crate::dataset::Dataset;
use crate::reader::Reader;
use crate::scalar::Whole;
use crate::section::{Section, Unknown};

const EXPIRE_INTERVAL: Whole =
    Whole { key: "expireSnapshotsIntervalMinutes", unit: "minutes", default: 60, least: 1, most: 10_080 };
const ORPHAN_INTERVAL: Whole =
    Whole { key: "orphanCleanupIntervalMinutes", unit: "minutes", default: 60, least: 1, most: 10_080 };
const ORPHAN_MIN_AGE: Whole = Whole { key: "orphanMinAgeHours", unit: "hours", default: 24, least: 1, most: 87_600 };
const ORPHAN_GRACE: Whole = Whole { key: "orphanGraceHours", unit: "hours", default: 1, least: 0, most: 87_600 };
const RECEIPT: Whole = Whole { key: "receiptDays", unit: "days", default: 90, least: 1, most: 36_500 };
const ORPHAN_METADATA: &str = "orphanMetadata";

/// How long deleted files can be brought back at most: as long as the deployment has the account keep them, and as local folders do.
const KEPT_DAYS: u64 = 14;

/// Keys of the section.
pub(crate) const KEYS: [&str; 6] =
    [EXPIRE_INTERVAL.key, ORPHAN_INTERVAL.key, ORPHAN_MIN_AGE.key, ORPHAN_GRACE.key, ORPHAN_METADATA, RECEIPT.key];

/// The whole section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// `expireSnapshotsIntervalMinutes` (60).
    pub expire_snapshots_interval_minutes: u64,
    /// `orphanCleanupIntervalMinutes` (60).
    pub orphan_cleanup_interval_minutes: u64,
    /// `orphanMinAgeHours` (24): a file younger than this is never an orphan. Always more than `runtimeDeadlineHours`.
    pub orphan_min_age_hours: u64,
    /// `orphanGraceHours` (1): how much earlier another sweep must have seen the file unreferenced.
    pub orphan_grace_hours: u64,
    /// `orphanMetadata` (false): whether metadata files are candidates too.
    pub orphan_metadata: bool,
    /// `receiptDays` (90): how long receipts of deletions are kept.
    pub receipt_days: u64,
}

/// Reads the section. `runtime_deadline_hours` is the longest that a job may take (`docs/decisions/configuration.md`).
pub(crate) fn read(section: &Section<'_>, runtime_deadline_hours: u64) -> Maintenance {
    let maintenance = Maintenance {
        expire_snapshots_interval_minutes: section.whole(&EXPIRE_INTERVAL),
        orphan_cleanup_interval_minutes: section.whole(&ORPHAN_INTERVAL),
        orphan_min_age_hours: section.whole(&ORPHAN_MIN_AGE),
        orphan_grace_hours: section.whole(&ORPHAN_GRACE),
        orphan_metadata: section.flag(ORPHAN_METADATA, false),
        receipt_days: section.whole(&RECEIPT),
    };
    let sound = section.reader().sound(&[&section.path_of(ORPHAN_MIN_AGE.key), "compaction.runtimeDeadlineHours"]);
    if sound && maintenance.orphan_min_age_hours <= runtime_deadline_hours {
        section.fault(
            ORPHAN_MIN_AGE.key,
            format!(
                "\"{}\" is not more than compaction.runtimeDeadlineHours {runtime_deadline_hours}: a file that a running \
                 job has uploaded and not committed yet could be deleted; write at least {} or lower runtimeDeadlineHours",
                maintenance.orphan_min_age_hours,
                runtime_deadline_hours + 1
            ),
        );
    }
    section.finish(&KEYS, Unknown::Refuse);
    maintenance
}

/// Warns of settings that are allowed and defeat each other.
pub(crate) fn warn(reader: &Reader<'_>, maintenance: &Maintenance, datasets: &[Dataset]) {
    if maintenance.receipt_days < KEPT_DAYS {
        let message = format!(
            "\"{}\" is less than the {KEPT_DAYS} days for which deleted files are kept: without its receipt a sweep cannot be undone; write \
             at least {KEPT_DAYS}",
            maintenance.receipt_days
        );
        reader.warn("maintenance.receiptDays", message);
    }
    let retention = |table: &Dataset| {
        let of_table = datasets.iter().filter(|other| other.table == table.table);
        of_table.map(|dataset| dataset.compaction.snapshot_retention_hours).max().unwrap_or_default()
    };
    let interval = maintenance.orphan_cleanup_interval_minutes;
    let short = datasets.iter().map(|dataset| (retention(dataset), dataset)).min_by_key(|(hours, _)| *hours);
    if let Some((hours, dataset)) = short.filter(|(hours, _)| interval >= hours.saturating_mul(60)) {
        let message = format!(
            "\"{interval}\" is not less than snapshotRetentionHours {hours} of dataset {}: snapshots come and go between two sweeps, the \
             grace begins anew each time, and nothing is ever deleted from a table that is written to; sweep more often or keep \
             snapshots longer",
            dataset.name
        );
        reader.warn("maintenance.orphanCleanupIntervalMinutes", message);
    }
}
