//! The tables that maintenance looks after: each once, however many datasets have it.

use chrono::{DateTime, TimeDelta, Utc};
use firn_config::{Config, hours};
use firn_table::{LoadedTable, TableIdent, other_optimizer};

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableJob {
    /// The first of its datasets, by whose name it is reported.
    pub dataset: String,
    /// The table.
    pub table: TableIdent,
    /// The longest `snapshotRetentionHours` of its datasets.
    pub retention: TimeDelta,
}

/// The tables of a configuration, or that of one dataset, in the order of the file.
pub fn table_jobs(config: &Config, dataset: Option<&str>) -> Vec<TableJob> {
    let mut jobs: Vec<(bool, TableJob)> = Vec::new();
    for own in &config.datasets {
        let table = TableIdent::from(&own.table);
        let retention = hours(own.compaction.snapshot_retention_hours);
        let asked = dataset.is_none_or(|name| name == own.name);
        match jobs.iter_mut().find(|(_, job)| job.table == table) {
            Some((wanted, job)) => {
                // Another branch of the same table: what one of them still wants to see stays.
                job.retention = job.retention.max(retention);
                if asked && !*wanted {
                    job.dataset.clone_from(&own.name);
                }
                *wanted |= asked;
            }
            None => jobs.push((asked, TableJob { dataset: own.name.clone(), table, retention })),
        }
    }
    jobs.into_iter().filter_map(|(wanted, job)| wanted.then_some(job)).collect()
}

/// Why a table is left alone. No failure: its owner wants it so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// The catalog takes no commits; it says why. Its tables may be views of another format's (Delta in OneLake, UniForm), whose older
    /// files the Iceberg metadata does not name although that format still needs them.
    ReadOnlyCatalog(String),
    /// `firn.enabled=false`.
    Disabled,
    /// `gc.enabled=false`: files may be shared with other tables, so nothing expires and nothing is deleted (Iceberg, table properties).
    NoCollection,
    /// Another program looks after it.
    OtherOptimizer(&'static str),
}

impl std::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SkipReason::ReadOnlyCatalog(reason) => {
                write!(
                    f,
                    "{reason}: its tables may be another format's, which needs files that the Iceberg metadata does not name"
                )
            }
            SkipReason::Disabled => f.write_str("table property firn.enabled=false"),
            SkipReason::NoCollection => {
                f.write_str("table property gc.enabled=false: its files may belong to other tables too")
            }
            SkipReason::OtherOptimizer(key) => {
                write!(f, "table property {key} says that another program looks after the table")
            }
        }
    }
}

/// Why a table is left alone, if it is.
pub fn skipped(table: &LoadedTable) -> Option<SkipReason> {
    if let Some(reason) = &table.read_only {
        return Some(SkipReason::ReadOnlyCatalog(reason.to_string()));
    }
    let off = |key: &str| table.property(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("false"));
    if !table.is_enabled() {
        return Some(SkipReason::Disabled);
    }
    if off("gc.enabled") {
        return Some(SkipReason::NoCollection);
    }
    other_optimizer(&table.metadata).map(SkipReason::OtherOptimizer)
}

/// A time as receipts and messages have it.
pub(crate) fn text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_table_of_two_datasets_is_one_job_with_the_longer_retention() {
        let text = "catalog: {type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'file:///w'}\n\
                    ingestion: {datasets: [\
                    {name: a, table: x.t, compaction: {snapshotRetentionHours: 2}}, {name: b, table: x.u}, \
                    {name: c, table: x.t, branch: dev, compaction: {snapshotRetentionHours: 90}}]}";
        let config = Config::load(text, &HashMap::new()).unwrap();
        let jobs = |dataset: Option<&str>| {
            let jobs = table_jobs(&config, dataset);
            jobs.into_iter()
                .map(|job| (job.dataset, job.table.to_string(), job.retention.num_hours()))
                .collect::<Vec<_>>()
        };
        let of = |dataset: &str, table: &str, hours| (dataset.to_owned(), table.to_owned(), hours);
        assert_eq!(jobs(None), [of("a", "x.t", 90), of("b", "x.u", 24)]);
        assert_eq!(jobs(Some("a")), [of("a", "x.t", 90)], "the other branch keeps its snapshots");
        assert_eq!(jobs(Some("c")), [of("c", "x.t", 90)]);
        assert_eq!(jobs(Some("b")), [of("b", "x.u", 24)]);
    }
}
