//! How far a table is in time, which decides whether its partitions are cold (design section 3).

use std::collections::HashMap;
use std::sync::Arc;

use firn_config::Dataset;
use firn_model::{Moment, PartitionKey, Rule};
use firn_plan::PartitionTime;
use firn_table::partition_type::SpecTypes;
use firn_table::{LoadedTable, TableError, TimeColumn, highest_time};

/// The time of a table and of its partitions, by the dataset's `timeColumn`.
#[derive(Debug, Clone, Default)]
pub struct TableTime {
    column: Option<TimeColumn>,
    specs: HashMap<i32, Arc<SpecTypes>>,
    highest: Option<Moment>,
    now: Option<Moment>,
}

impl TableTime {
    /// Reads it from the metrics of the newest partitions; nothing is read for a table that is not partitioned by the dataset's
    /// `timeColumn`, with `compactColdAfter: off`, or when none of `rules` asks.
    ///
    /// # Errors
    /// What is wrong with a manifest.
    pub async fn load(table: &LoadedTable, dataset: &Dataset, rules: &[Rule]) -> Result<Self, TableError> {
        let asks = |rule: &Rule| matches!(rule, Rule::Cold | Rule::Schedule | Rule::Manual);
        let Some(name) = &dataset.time_column else { return Ok(Self::default()) };
        if dataset.compaction.compact_cold_after.is_none() || !rules.iter().any(asks) {
            return Ok(Self::default());
        }
        let Some(column) = TimeColumn::of_partitions(table, name)? else { return Ok(Self::default()) };
        let highest = highest_time(table, &dataset.branch, &column).await?;
        let now = Some(Moment(chrono::Utc::now().timestamp_micros()));
        Ok(Self { column: Some(column), specs: table.spec_types()?, highest, now })
    }

    /// When a partition ends, and how far the table is.
    pub fn of(&self, key: &PartitionKey) -> PartitionTime {
        let spec = self.specs.get(&key.spec_id);
        let end = self.column.as_ref().zip(spec).and_then(|(column, spec)| column.end(spec, key));
        PartitionTime { end, highest: self.highest, now: self.now }
    }
}
