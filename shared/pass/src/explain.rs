//! `firn explain`: why a partition is selected or left, from its files to every rule. Nothing is changed.

use chrono::Utc;
use firn_compact::{Services, facts_hash};
use firn_config::{Config, Dataset};
use firn_model::{LeftReason, PartitionKey, Rule, TierCounts, TierSizes};
use firn_plan::{Explanation, PartitionDecision, tick_rules};
use firn_state::{InflightRecord, Selection, SendDecision, Situation, decide_send};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::load::{LoadedDataset, batches, chosen, stopped};
use crate::queue::records::Records;
use crate::report::PassError;
use crate::request::ManualRequest;
use crate::wiring;

/// Why one partition is selected or left.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedPartition {
    /// Name of the dataset.
    pub dataset: String,
    /// Spec id and tuple.
    pub partition: PartitionKey,
    /// The partition for people: months, years and hours as dates.
    pub label: String,
    /// Bytes of its live data files.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
    /// Delete files that may concern it.
    pub delete_files: u64,
    /// What every predicate says.
    pub explanation: Explanation,
    /// What holds a selected partition back: it is queued or in work already, waits for another try, is parked, or rests. None: nothing,
    /// or it is not known because the state of the host path cannot be read.
    pub held_back: Option<String>,
}

impl ExplainedPartition {
    /// The rule by which the next tick selects it, and the one by which the tick after a scheduled time does.
    pub fn selected_by(&self) -> [Option<Rule>; 2] {
        [false, true].map(|due| self.explanation.selected_by(tick_rules(due)))
    }

    /// How many files there are of each size.
    pub fn sizes(&self) -> Vec<(String, usize)> {
        let counts = &self.explanation.counts;
        let tiers = TierCounts::tiers().map(|tier| (TierSizes(tier).to_string(), counts.tiers.of(tier)));
        let large = ("75 % of the target and more".to_owned(), counts.large_files);
        tiers.chain([large]).filter(|(_, files)| *files > 0).collect()
    }

    /// As one JSON object.
    pub fn to_json(&self) -> Value {
        let counts = &self.explanation.counts;
        let [tick, schedule] = self.selected_by().map(|rule| rule.map(Rule::as_str));
        let reason = |left: &LeftReason| left.to_string();
        let conditions = self.explanation.conditions.iter().map(|condition| {
            json!({
                "condition": condition.asks,
                "holds": condition.broken.is_none(),
                "reason": condition.broken.as_ref().map(reason),
            })
        });
        let rules = self.explanation.rules.iter().map(|verdict| {
            let (decision, why, groups) = match &verdict.decision {
                PartitionDecision::Selected { reason, groups } => ("selected", reason.to_string(), groups.as_slice()),
                PartitionDecision::Left(left) => ("left", left.to_string(), [].as_slice()),
            };
            let groups: Vec<Value> = groups
                .iter()
                .map(|group| json!({"fileCount": group.files().len(), "bytes": group.bytes(), "rows": group.rows()}))
                .collect();
            json!({"rule": verdict.rule.as_str(), "asks": verdict.asks, "decision": decision, "reason": why, "groups": groups})
        });
        let sizes = self.sizes().into_iter().map(|(size, files)| json!({"size": size, "files": files}));
        json!({
            "dataset": self.dataset,
            "partition": self.partition.to_json(),
            "specId": self.partition.spec_id,
            "files": counts.files,
            "bytes": self.bytes,
            "rows": self.rows,
            "smallFiles": counts.small_files,
            "smallBytes": counts.small_bytes,
            "deleteFiles": self.delete_files,
            "sizes": sizes.collect::<Vec<_>>(),
            "time": counts.coldness.to_string(),
            "conditions": conditions.collect::<Vec<_>>(),
            "rules": rules.collect::<Vec<_>>(),
            "heldBack": self.held_back,
            "nextTick": tick,
            "afterSchedule": schedule,
        })
    }
}

/// Explains every partition that the request asks for; says how many there were.
///
/// # Errors
/// [`PassError::Usage`] for an unknown dataset, column or value, [`PassError::Unavailable`] for what is not there.
pub async fn explain(
    config: &Config,
    request: &ManualRequest,
    tell: &mut (dyn FnMut(&ExplainedPartition) + Send),
) -> Result<u64, PassError> {
    let datasets = chosen(config, request.dataset.as_deref())?;
    let services = wiring::open(config).await?;
    let state = wiring::look_at_state(config)?;
    let mut told = 0;
    for dataset in datasets {
        // Before the table, as a tick does it.
        let records = match &state {
            Some(state) => Records::read(state, &dataset.name).await.unwrap_or_else(|error| {
                tracing::warn!(dataset = dataset.name, "what is queued or parked is not known: {error}");
                Records::default()
            }),
            None => Records::default(),
        };
        told += explain_dataset(&services, dataset, request, records, tell).await?;
    }
    Ok(told)
}

async fn explain_dataset(
    services: &Services,
    dataset: &Dataset,
    request: &ManualRequest,
    mut records: Records,
    tell: &mut (dyn FnMut(&ExplainedPartition) + Send),
) -> Result<u64, PassError> {
    let loaded = LoadedDataset::load(&*services.catalog, dataset, request, &Rule::ALL).await?;
    let stats: Vec<_> = loaded.stats.iter().collect();
    let stopped = stopped(&loaded.table);
    let mut told = 0;
    for batch in batches(&stats) {
        let mut facts = loaded.facts(batch).await?;
        for stats in batch {
            let Some(mut found) = facts.remove(&*stats.key) else { continue };
            let explanation = as_a_tick_sees_it(loaded.explain(&mut found).await, stopped.as_ref());
            let record = records.take(&stats.key.fingerprint(&loaded.table.uuid()));
            let held_back = record.and_then(|record| held_back(&record.value, &explanation, facts_hash(&found)));
            tell(&ExplainedPartition {
                dataset: dataset.name.clone(),
                partition: PartitionKey::clone(&stats.key),
                label: loaded.label(&stats.key),
                bytes: stats.bytes,
                rows: stats.rows,
                delete_files: stats.delete_files,
                explanation,
                held_back,
            });
            told += 1;
        }
    }
    Ok(told)
}

/// No rule selects anything of a table that a tick stops at before it asks them, as where its catalog can only be read.
fn as_a_tick_sees_it(mut explanation: Explanation, stopped: Option<&LeftReason>) -> Explanation {
    let Some(reason) = stopped else { return explanation };
    for verdict in &mut explanation.rules {
        if matches!(verdict.decision, PartitionDecision::Selected { .. }) {
            verdict.decision = PartitionDecision::Left(reason.clone());
        }
    }
    explanation
}

/// Why the next tick would not send a partition by the rule that selects it, or, when none does, why it would not be sent at all.
fn held_back(record: &InflightRecord, explanation: &Explanation, inputs_hash: String) -> Option<String> {
    let selected = [false, true].into_iter().find_map(|due| explanation.selected_by(tick_rules(due)));
    let selection = Selection {
        dataset: record.dataset.clone(),
        partition: record.partition.clone(),
        spec_id: record.spec_id,
        rule: selected.unwrap_or(Rule::Backlog),
        pass: String::new(),
        inputs_hash,
    };
    let situation = Situation { leased: false, queue_empty: false, generation: Uuid::nil(), now: Utc::now() };
    match decide_send(Some(record), &selection, &situation) {
        SendDecision::Skip { reason } => Some(reason.to_string()),
        SendDecision::Send { .. } | SendDecision::Resend { .. } | SendDecision::RaiseRule { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use firn_model::{RowOrder, SelectReason};
    use firn_plan::{PartitionFiles, PartitionTime, PlanSettings, TableRules, explain_partition};

    use super::*;

    #[test]
    fn what_a_tick_stops_at_is_selected_by_no_rule() {
        let none = PartitionFiles { files: &[], deletes: &[], time: PartitionTime::default() };
        let rules = TableRules { format_version: 2, enabled: true, order: &RowOrder::default() };
        let mut explanation = explain_partition(none, none, &rules, &PlanSettings::default());
        let left = explanation.clone();
        for verdict in explanation.rules.iter_mut().filter(|verdict| verdict.rule == Rule::Backlog) {
            let reason = SelectReason::Backlog { small: 101, threshold: 100 };
            verdict.decision = PartitionDecision::Selected { reason, groups: vec![] };
        }
        assert_eq!(as_a_tick_sees_it(explanation.clone(), None), explanation);
        assert_eq!(explanation.selected_by(tick_rules(false)), Some(Rule::Backlog));
        let read_only = LeftReason::ReadOnlyCatalog { detail: "metadata found by its path".into() };
        let seen = as_a_tick_sees_it(explanation, Some(&read_only));
        assert_eq!([false, true].map(|due| seen.selected_by(tick_rules(due))), [None, None]);
        for (now, before) in seen.rules.iter().zip(&left.rules) {
            let expected = match now.rule {
                Rule::Backlog => PartitionDecision::Left(read_only.clone()),
                _ => before.decision.clone(),
            };
            assert_eq!(now.decision, expected, "{}", now.rule);
        }
    }

    #[test]
    fn what_holds_a_partition_back_is_said_in_the_words_of_a_tick() {
        let none = PartitionFiles { files: &[], deletes: &[], time: PartitionTime::default() };
        let rules = TableRules { format_version: 2, enabled: true, order: &RowOrder::default() };
        let explanation = explain_partition(none, none, &rules, &PlanSettings::default());
        let selection = Selection {
            dataset: "readings".into(),
            partition: Default::default(),
            spec_id: 0,
            rule: Rule::Tier,
            pass: "p".into(),
            inputs_hash: "these files".into(),
        };
        let now = Utc::now();
        let queued = InflightRecord::new(&selection, Uuid::new_v4(), now);
        let parked = queued.parked("dies at merge", TimeDelta::hours(6), now);
        let why = |record: &InflightRecord, files: &str| held_back(record, &explanation, files.into());
        let said = why(&parked, "these files").unwrap();
        assert!(said.starts_with("parked: dies at merge (until "), "{said}");
        assert_eq!(why(&parked, "other files"), None, "it is worth another look");
        let rested = queued.parked("dies at merge", TimeDelta::zero(), now - TimeDelta::minutes(1));
        assert_eq!(why(&rested, "these files"), None);
        let said = why(&queued.sent(now), "these files").unwrap();
        assert!(said.starts_with("queued since "), "{said}");
    }
}
