//! One dataset of a pass that enqueues: load, plan, record, send.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use firn_compact::{HostServices, facts_hash};
use firn_config::Dataset;
use firn_model::{PartitionKey, Rule};
use firn_plan::PartitionDecision;
use firn_state::{DatasetCursor, Look, Selection, Settled, Situation};
use firn_table::PartitionStats;
use futures::future::join_all;

use super::dispatch::{Dispatched, Dispatcher, Place};
use super::looks::{KnownLooks, files_and_rules};
use super::records::Records;
use super::room::{Room, Turn};
use super::settled::{look_key, plan_key};
use super::summary::SendCounts;
use crate::load::{LoadedDataset, batches, load_table, stopped};
use crate::report::{EnqueuedPartition, PassError, Report};
use crate::request::ManualRequest;

/// A pass that enqueues, for each of its datasets.
pub(crate) struct FanOutPass<'a> {
    pub(crate) host: &'a HostServices,
    /// Id of the pass.
    pub(crate) pass: &'a str,
    pub(crate) request: &'a ManualRequest,
    /// When it began.
    pub(crate) now: DateTime<Utc>,
    /// Whether the queue was empty then.
    pub(crate) queue_empty: bool,
    /// Whether it looks at every partition, and so knows which records nothing asks for: a tick does.
    pub(crate) tidies: bool,
    /// What the tick before found of each dataset, for a tick.
    pub(crate) before: Option<&'a BTreeMap<String, DatasetCursor>>,
}

/// How far a dataset came, also when it came to an error.
#[derive(Debug, Default)]
pub(crate) struct DatasetProgress {
    pub(crate) counts: SendCounts,
    /// The snapshot that was planned.
    pub(crate) snapshot_id: Option<i64>,
    /// Partitions on the queue by their pass, as they were before this one.
    pub(crate) passes: BTreeMap<String, u64>,
    /// On what nothing is to do; None when something is.
    pub(crate) settled: Option<Settled>,
}

/// A partition that is about to be sent.
struct Chosen {
    key: PartitionKey,
    selection: Selection,
    place: Place,
    fingerprint: String,
}

impl FanOutPass<'_> {
    /// Plans a dataset by `rules`, strongest first, and sends what they select: largest debt first, at most
    /// `maxPartitionsPerPass`.
    pub(crate) async fn dataset(
        &self,
        dataset: &Dataset,
        rules: &[Rule],
        progress: &mut DatasetProgress,
        report: &mut dyn Report,
    ) -> Result<(), PassError> {
        let mut records = Records::read(&self.host.state, &dataset.name).await?;
        records.clear_damaged(&self.host.state).await?;
        progress.passes = records.passes();
        let table = load_table(&*self.host.compact.catalog, dataset).await?;
        progress.snapshot_id = table.head(&dataset.branch).map(|snapshot| snapshot.snapshot_id());
        let (key, nothing_under_way) = (plan_key(&table, dataset, rules), records.is_empty());
        let before = self.before.and_then(|cursors| cursors.get(&dataset.name)?.settled.clone());
        if let Some(settled) = before.filter(|settled| settled.key == key && nothing_under_way) {
            tracing::debug!(dataset = dataset.name, "nothing has changed since nothing was to do");
            progress.counts.partitions = settled.partitions;
            progress.counts.left = settled.partitions;
            progress.settled = Some(settled);
            return Ok(());
        }
        if let Some(reason) = stopped(&table) {
            tracing::info!(dataset = dataset.name, "left: {reason}");
            return Ok(());
        }
        let loaded = LoadedDataset::of_table(table, dataset, self.request, rules).await?;
        progress.counts.partitions = loaded.stats.len() as u64;
        let looks = KnownLooks::read(&self.host.state, &dataset.name, look_key(&loaded.table, dataset)).await;
        let mut run = DatasetRun { pass: self, loaded: &loaded, rules, records: &mut records, report, progress, looks };
        let planned = run.plan_and_send().await;
        let uuid = loaded.table.uuid();
        let live = loaded.stats.iter().map(|stats| stats.key.fingerprint(&uuid)).collect();
        run.looks.write(&self.host.state, &live).await;
        planned?;
        if self.tidies {
            let situation = self.dispatcher().situation();
            progress.counts.forgotten = records.forget_leftovers(self.host, &situation).await;
        }
        let counts = &progress.counts;
        if nothing_under_way && counts.left == counts.partitions && counts.waiting == 0 {
            progress.settled = Some(Settled { key, partitions: counts.partitions });
        }
        Ok(())
    }

    fn dispatcher(&self) -> Dispatcher<'_> {
        Dispatcher { host: self.host, queue_empty: self.queue_empty, now: self.now }
    }
}

struct DatasetRun<'a> {
    pass: &'a FanOutPass<'a>,
    loaded: &'a LoadedDataset<'a>,
    rules: &'a [Rule],
    records: &'a mut Records,
    report: &'a mut dyn Report,
    progress: &'a mut DatasetProgress,
    looks: KnownLooks,
}

impl DatasetRun<'_> {
    async fn plan_and_send(&mut self) -> Result<(), PassError> {
        let dispatcher = self.pass.dispatcher();
        let situation = dispatcher.situation();
        let mut room =
            Room::new(self.loaded.dataset.compaction.max_partitions_per_pass, self.loaded.looks_for_indexes());
        let uuid = self.loaded.table.uuid();
        let mut wanted = Vec::new();
        for stats in &self.loaded.stats {
            let rules = self.rules_for(stats, &uuid, &situation);
            match self.loaded.left_by_counts(stats, &rules) {
                Some((rule, reason)) => self.left(&stats.key, rule, reason.to_string()),
                None => wanted.push(stats),
            }
        }
        let mut held = Vec::new();
        for batch in batches(&wanted) {
            if room.is_used_up() {
                self.wait(batch, &uuid);
                continue;
            }
            let mut facts = self.loaded.facts(batch).await?;
            let mut rest = batch.iter();
            while !rest.as_slice().is_empty() && !room.is_used_up() {
                let mut chosen = Vec::new();
                while chosen.len() < room.at_once()
                    && let Some(stats) = rest.next()
                {
                    let Some(mut found) = facts.remove(&*stats.key) else { continue };
                    if room.is_for_indexes() && !room.holds_more(held.len()) && !self.loaded.lacks_index(&found).await {
                        self.wait(&[stats], &uuid);
                        continue;
                    }
                    let rules = self.rules_for(stats, &uuid, &situation);
                    // Where footers have to be read, whoever read them before need not do so again.
                    let looked = self.loaded.looks_into_files(&found, &rules).then(|| files_and_rules(&found, &rules));
                    let fingerprint = stats.key.fingerprint(&uuid);
                    let known = looked.as_deref().and_then(|files| self.looks.find(&fingerprint, files));
                    let known = known.cloned();
                    if let Some(Look { rule, reason, .. }) = known
                        && !self.loaded.lacks_index(&found).await
                    {
                        self.left(&stats.key, rule, reason);
                        continue;
                    }
                    match self.loaded.decide(&mut found, &rules).await {
                        (rule, PartitionDecision::Left(reason)) => {
                            // A footer that could not be read may be read the next time.
                            let complete = found.files.iter().all(|file| file.key_range.is_some());
                            if let Some(files) = looked.filter(|_| complete) {
                                self.looks.note(&fingerprint, files, rule, &reason);
                            }
                            self.left(&stats.key, rule, reason.to_string());
                        }
                        (rule, PartitionDecision::Selected { .. }) => {
                            let choice = self.choose(&stats.key, &uuid, rule, facts_hash(&found));
                            match room.turn(rule, held.len()) {
                                Turn::Now => chosen.push(choice),
                                Turn::IfRoomIsLeft => held.push(choice),
                                Turn::NextTick => self.waits(&choice.fingerprint),
                            }
                        }
                    }
                }
                self.send(&dispatcher, chosen, &mut room).await?;
            }
            self.wait(rest.as_slice(), &uuid);
        }
        // What was kept for indexes and not needed.
        while !held.is_empty() && room.left() > 0 {
            let rest = held.split_off(held.len().min(room.left_at_once()));
            self.send(&dispatcher, std::mem::replace(&mut held, rest), &mut room).await?;
        }
        held.iter().for_each(|choice| self.waits(&choice.fingerprint));
        Ok(())
    }

    /// The rules of the pass, and that of a record whose message never arrived, strongest first.
    fn rules_for(&self, stats: &PartitionStats, uuid: &str, situation: &Situation) -> Vec<Rule> {
        let silent = self.records.silent_rule(&stats.key.fingerprint(uuid), situation);
        let mut rules: Vec<Rule> = self.rules.iter().copied().chain(silent).collect();
        rules.sort_by(|one, other| other.cmp(one));
        rules.dedup();
        rules
    }

    fn choose(&self, key: &PartitionKey, uuid: &str, rule: Rule, inputs_hash: String) -> Chosen {
        let dataset = &self.loaded.dataset.name;
        let fingerprint = key.fingerprint(uuid);
        let root = self.pass.host.state.root();
        Chosen {
            key: key.clone(),
            place: Place { record: root.inflight(dataset, &fingerprint), parked: root.parked(&fingerprint) },
            fingerprint,
            selection: Selection {
                dataset: dataset.clone(),
                partition: key.json_fields(),
                spec_id: key.spec_id,
                rule,
                pass: self.pass.pass.to_owned(),
                inputs_hash,
            },
        }
    }

    async fn send(
        &mut self,
        dispatcher: &Dispatcher<'_>,
        chosen: Vec<Chosen>,
        room: &mut Room,
    ) -> Result<(), PassError> {
        let records: Vec<_> = chosen.iter().map(|chosen| self.records.take(&chosen.fingerprint)).collect();
        let sending = chosen
            .iter()
            .zip(records)
            .map(|(chosen, record)| dispatcher.dispatch(&chosen.selection, &chosen.place, record));
        // Every one of them is counted before the first error ends the dataset.
        let mut first_error = None;
        for (chosen, result) in chosen.iter().zip(join_all(sending).await) {
            match result {
                Ok(dispatched) => {
                    if matches!(dispatched, Dispatched::Sent { .. }) {
                        room.take(chosen.selection.rule);
                    }
                    self.count(chosen, &dispatched);
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn count(&mut self, chosen: &Chosen, dispatched: &Dispatched) {
        let counts = &mut self.progress.counts;
        counts.selected += 1;
        let (word, reason) = match dispatched {
            Dispatched::Sent { why, again } => {
                counts.sent += 1;
                counts.resent += u64::from(*again);
                (if *again { "sentAgain" } else { "sent" }, why.clone())
            }
            Dispatched::Raised { from } => {
                counts.raised += 1;
                ("raised", format!("queued by rule {from}"))
            }
            Dispatched::Running { why } => {
                counts.running += 1;
                ("running", why.clone())
            }
            Dispatched::AtRest { why } => {
                counts.at_rest += 1;
                ("atRest", why.clone())
            }
            Dispatched::Impossible { why } => {
                counts.failed += 1;
                tracing::error!(partition = %chosen.key, "cannot be sent: {why}");
                ("failed", why.clone())
            }
        };
        self.say(&chosen.key, chosen.selection.rule, word, reason);
    }

    fn left(&mut self, key: &PartitionKey, rule: Rule, reason: String) {
        self.progress.counts.left += 1;
        self.say(key, rule, "left", reason);
    }

    /// Partitions beyond the cap. Whether their files can be merged shows when their turn comes.
    fn wait(&mut self, beyond: &[&PartitionStats], uuid: &str) {
        for stats in beyond {
            self.waits(&stats.key.fingerprint(uuid));
        }
    }

    fn waits(&mut self, fingerprint: &str) {
        // Its record is taken out, so that it is not forgotten as one that nothing asks for.
        if self.records.take(fingerprint).is_some() {
            self.progress.counts.selected += 1;
            self.progress.counts.running += 1;
        } else {
            self.progress.counts.waiting += 1;
        }
    }

    fn say(&mut self, key: &PartitionKey, rule: Rule, decision: &'static str, reason: String) {
        self.report.enqueued(&EnqueuedPartition {
            dataset: self.loaded.dataset.name.clone(),
            partition: key.clone(),
            label: self.loaded.label(key),
            decision,
            rule,
            reason,
        });
    }
}
