//! One dataset, loaded fresh and planned partition by partition: the same for passes that merge here and passes that enqueue.

use std::collections::{HashMap, HashSet};

use firn_compact::backfill::{SettledFiles, backfills, decided_on};
use firn_compact::{TableTime, ineffective_properties, only_if_writable, plan_settings, prove_key_ranges};
use firn_config::{Config, Dataset};
use firn_model::{LeftReason, PartitionKey, RowOrder, Rule};
use firn_plan::{
    Counts, Explanation, PartitionDecision, PartitionFiles, PlanSettings, TableRules, counts_of, explain_partition,
    left_by_counts, plan_backfill, plan_by_strongest, wants_key_ranges,
};
use firn_sidecar::SidecarColumns;
use firn_table::{
    Catalog, LoadedTable, NextStep, OrderColumns, PartitionFacts, PartitionFilter, PartitionStats, PartitionTerm,
    SizeLimits, TableError, TableIdent, partition_facts, partition_label, partition_stats, row_order,
};

use crate::report::{PassError, PlannedPartition};
use crate::request::ManualRequest;

/// Live files whose facts are held at once while a table is planned, so that memory does not grow with the table.
const FACTS_AT_ONCE: u64 = 150_000;

/// The table of a dataset as it is now, and how much there is in each partition asked for.
pub(crate) struct LoadedDataset<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) table: LoadedTable,
    pub(crate) order: RowOrder,
    /// Largest debt first, so that a pass that is cut short has done what matters most.
    pub(crate) stats: Vec<PartitionStats>,
    settings: PlanSettings,
    time: TableTime,
    /// Files with a text index or a note, in a pass that looks for those without.
    indexed: Option<SettledFiles>,
}

/// Why nothing of a table is planned.
pub(crate) fn stopped(table: &LoadedTable) -> Option<LeftReason> {
    if let Some(reason) = &table.read_only {
        return Some(LeftReason::ReadOnlyCatalog { detail: reason.to_string() });
    }
    (!table.is_enabled()).then_some(LeftReason::Disabled)
}

impl<'a> LoadedDataset<'a> {
    /// Loads the table of a dataset and counts the partitions that the request asks for; all of them for the default one. `rules` are
    /// those that it will be planned by.
    pub(crate) async fn load(
        catalog: &dyn Catalog,
        dataset: &'a Dataset,
        request: &ManualRequest,
        rules: &[Rule],
    ) -> Result<Self, PassError> {
        Self::of_table(load_table(catalog, dataset).await?, dataset, request, rules).await
    }

    /// The same for a table that is loaded already.
    pub(crate) async fn of_table(
        table: LoadedTable,
        dataset: &'a Dataset,
        request: &ManualRequest,
        rules: &[Rule],
    ) -> Result<Self, PassError> {
        let order = row_order(&table.metadata, &OrderColumns::from(dataset))
            .map_err(|error| PassError::Usage(format!("dataset \"{}\": {error}", dataset.name)))?;
        for problem in ineffective_properties(&table.metadata) {
            tracing::warn!(dataset = dataset.name, "{problem}");
        }
        let filter = filter(&table, dataset, request)?;
        let settings = plan_settings(dataset);
        let limits = SizeLimits { small_below: settings.min_file_bytes, large_from: settings.nearly_target_bytes() };
        let mut stats = partition_stats(&table, &dataset.branch, &filter, limits).await.map_err(pass_error)?;
        stats.sort_by_key(|partition| std::cmp::Reverse((partition.small_files, partition.files)));
        let time = TableTime::load(&table, dataset, rules).await.map_err(pass_error)?;
        let indexed = indexed(&table, dataset, rules).await?;
        Ok(Self { dataset, table, order, stats, settings, time, indexed })
    }

    /// Why a partition needs no look at its files.
    pub(crate) fn left_by_counts(&self, stats: &PartitionStats, rules: &[Rule]) -> Option<(Rule, LeftReason)> {
        if self.indexed.is_some() {
            return None;
        }
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let counts = Counts {
            files: count(stats.files),
            small_files: count(stats.small_files),
            small_bytes: stats.small_bytes,
            tiers: stats.tiers,
            large_files: count(stats.large_files),
            coldness: self.settings.coldness(self.time.of(&stats.key)),
        };
        left_by_counts(counts, &self.settings, rules)
    }

    /// The facts of a few partitions.
    pub(crate) async fn facts(
        &self,
        batch: &[&PartitionStats],
    ) -> Result<HashMap<PartitionKey, PartitionFacts>, PassError> {
        let wanted: HashSet<PartitionKey> = batch.iter().map(|stats| PartitionKey::clone(&stats.key)).collect();
        partition_facts(&self.table, &self.dataset.branch, &wanted, &self.order).await.map_err(pass_error)
    }

    /// Whether a decision needs the footers of the partition's files.
    pub(crate) fn looks_into_files(&self, facts: &PartitionFacts, rules: &[Rule]) -> bool {
        let time = self.time.of(&facts.key);
        let counts = counts_of(&PartitionFiles { files: &facts.files, deletes: &facts.deletes, time }, &self.settings);
        wants_key_ranges(counts, &self.settings, rules)
    }

    /// What the strongest of the rules that selects a partition does with it.
    pub(crate) async fn decide(&self, facts: &mut PartitionFacts, rules: &[Rule]) -> (Rule, PartitionDecision) {
        let time = self.time.of(&facts.key);
        if self.looks_into_files(facts, rules) {
            prove_key_ranges(&self.table, &self.order, facts).await;
        }
        let partition = PartitionFiles { files: &facts.files, deletes: &facts.deletes, time };
        let (rule, decision) = plan_by_strongest(partition, &self.rules(), &self.settings, rules);
        match only_if_writable(decision, &self.table, &self.dataset.branch, &facts.key) {
            left @ PartitionDecision::Left(_) => match self.backfill(facts).await {
                Some(decision) => (Rule::Backfill, decision),
                None => (rule, left),
            },
            selected => (rule, selected),
        }
    }

    /// Whether the pass looks for files without a text index.
    pub(crate) fn looks_for_indexes(&self) -> bool {
        self.indexed.is_some()
    }

    /// Whether files of a partition have neither text index nor a note that holds, in a pass that looks for those.
    pub(crate) async fn lacks_index(&self, facts: &PartitionFacts) -> bool {
        self.backfill(facts).await.is_some()
    }

    /// What is to be indexed in a partition of which nothing is merged.
    async fn backfill(&self, facts: &PartitionFacts) -> Option<PartitionDecision> {
        let target_bytes = self.dataset.compaction.target_size_mb << 20;
        let settled = self.indexed.as_ref()?.of(&self.table, &facts.files, target_bytes).await;
        plan_backfill(&facts.files, target_bytes, |file| settled.contains(&file.path))
    }

    /// What every predicate says of a partition.
    pub(crate) async fn explain(&self, facts: &mut PartitionFacts) -> Explanation {
        let time = self.time.of(&facts.key);
        let unproved = facts.files.clone();
        let counts = counts_of(&PartitionFiles { files: &unproved, deletes: &facts.deletes, time }, &self.settings);
        prove_key_ranges(&self.table, &self.order, facts).await;
        let under_full = PartitionFiles { files: &facts.files, deletes: &facts.deletes, time };
        let proved_for_all = wants_key_ranges(counts, &self.settings, &[]);
        let partition = if proved_for_all { under_full } else { PartitionFiles { files: &unproved, ..under_full } };
        explain_partition(partition, under_full, &self.rules(), &self.settings)
    }

    fn rules(&self) -> TableRules<'_> {
        TableRules {
            format_version: self.table.format_version() as u8,
            enabled: self.table.is_enabled(),
            order: &self.order,
        }
    }

    /// A partition for people.
    pub(crate) fn label(&self, key: &PartitionKey) -> String {
        partition_label(&self.table, key)
    }

    /// A decision as a pass reports it.
    pub(crate) fn planned(&self, key: &PartitionKey, rule: Rule, decision: &PartitionDecision) -> PlannedPartition {
        let (selected, reason, files) = match decision {
            PartitionDecision::Selected { reason, groups } => {
                (true, reason.to_string(), groups.iter().flat_map(|group| group.files()).collect())
            }
            PartitionDecision::Left(reason) => (false, reason.to_string(), Vec::new()),
        };
        PlannedPartition {
            dataset: self.dataset.name.clone(),
            partition: key.clone(),
            label: self.label(key),
            selected,
            rule,
            reason,
            bytes: files.iter().map(|file| file.size).sum(),
            rows: files.iter().map(|file| file.rows).sum(),
            files: files.into_iter().map(|file| file.path.clone()).collect(),
        }
    }
}

/// Which files have a text index or a note; None when the pass does not ask.
async fn indexed(table: &LoadedTable, dataset: &Dataset, rules: &[Rule]) -> Result<Option<SettledFiles>, PassError> {
    let asks = rules.iter().any(|rule| backfills(*rule, dataset));
    if !asks || !table.is_enabled() || table.read_only.is_some() {
        return Ok(None);
    }
    let schema = table.arrow_schema().map_err(pass_error)?;
    let columns = SidecarColumns::resolve(&schema, &dataset.indexing_columns, &[], &[]);
    if columns.is_empty() {
        return Ok(None);
    }
    let location = table.blob_id(table.location()).map_err(pass_error)?;
    let listed = SettledFiles::list(&**table.blobs(), &location, decided_on(dataset, &columns)).await;
    listed.map(Some).map_err(|error| PassError::Unavailable(error.to_string()))
}

/// The table of a dataset as it is now: one read of its metadata.
pub(crate) async fn load_table(catalog: &dyn Catalog, dataset: &Dataset) -> Result<LoadedTable, PassError> {
    let ident = TableIdent::new(dataset.table.namespace.iter().cloned(), dataset.table.name.clone());
    catalog.load(&ident).await.map_err(pass_error)
}

fn filter(table: &LoadedTable, dataset: &Dataset, request: &ManualRequest) -> Result<PartitionFilter, PassError> {
    let specs = table.spec_types().map_err(pass_error)?;
    let range = request.date_range.map(|range| firn_table::DateRange { from: range.from, to: range.to });
    let terms: Vec<PartitionTerm> = request
        .partitions
        .iter()
        .map(|condition| PartitionTerm { column: condition.column.clone(), value: condition.value.clone() })
        .collect();
    PartitionFilter::new(&specs, range, &terms, dataset.time_column.as_deref())
        .map_err(|error| PassError::Usage(format!("dataset \"{}\": {error}", dataset.name)))
}

/// The dataset asked for, or all of them.
pub(crate) fn chosen<'a>(config: &'a Config, name: Option<&str>) -> Result<Vec<&'a Dataset>, PassError> {
    let Some(name) = name else { return Ok(config.datasets.iter().collect()) };
    config.named_dataset(name).map(|dataset| vec![dataset]).map_err(PassError::Usage)
}

/// Cuts partitions so that each batch has at most [`FACTS_AT_ONCE`] files, or one partition.
pub(crate) fn batches<'s>(stats: &'s [&'s PartitionStats]) -> Vec<&'s [&'s PartitionStats]> {
    let mut cuts = Vec::new();
    let (mut start, mut files) = (0, 0);
    for (at, partition) in stats.iter().enumerate() {
        if at > start && files + partition.files > FACTS_AT_ONCE {
            cuts.push(&stats[start..at]);
            (start, files) = (at, 0);
        }
        files += partition.files;
    }
    if start < stats.len() {
        cuts.push(&stats[start..]);
    }
    cuts
}

/// What a pass says of a table that cannot be read.
pub(crate) fn pass_error(error: TableError) -> PassError {
    match error.next_step() {
        NextStep::Usage => PassError::Usage(error.to_string()),
        NextStep::Absent | NextStep::Retry | NextStep::Skip => PassError::Unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_model::TierCounts;

    use super::*;

    fn stats(files: u64) -> PartitionStats {
        PartitionStats {
            key: Arc::new(PartitionKey::unpartitioned(0)),
            files,
            bytes: 0,
            rows: 0,
            small_files: 0,
            small_bytes: 0,
            tiers: TierCounts::default(),
            large_files: 0,
            delete_files: 0,
        }
    }

    #[test]
    fn batches_hold_a_bounded_number_of_files_or_one_partition() {
        let all = [stats(90_000), stats(90_000), stats(270_000), stats(1), stats(2)];
        let all: Vec<&PartitionStats> = all.iter().collect();
        let lengths: Vec<usize> = batches(&all).iter().map(|batch| batch.len()).collect();
        assert_eq!(lengths, [1, 1, 1, 2]);
        assert!(batches(&[]).is_empty());
    }
}
