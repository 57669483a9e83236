//! The terminal event of one partition.

use std::collections::BTreeMap;
use std::time::Instant;

use firn_model::{Outcome, PartitionKey, Rule};
use serde::Serialize;
use serde_json::Value;

use crate::emitter::Emitter;
use crate::event::Event;
use crate::memory::peak_rss_bytes;
use crate::message::Parked;

/// The counter of refused commits, under the name that the compactor specification gives it.
pub const CONFLICTS_COUNTER: &str = "tracelake_catalog_commit_conflicts_total{component=\"compactor\"}";

/// The reason in the event of a partition whose work ended without saying how.
const NO_OUTCOME: &str = "ended without an outcome: a panic or a stop; the files stay as they are";

/// What is known of a partition when its work starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionStart {
    /// Name of the dataset.
    pub dataset: String,
    /// Table with its namespace.
    pub table: String,
    /// Partition spec id.
    pub spec_id: i32,
    /// Partition tuple in Iceberg's JSON form.
    pub partition: Value,
    /// The pass it belongs to.
    pub pass: String,
    /// This run of the program or function.
    pub invocation: String,
    /// Word of the rule that selected it.
    pub rule: &'static str,
}

impl PartitionStart {
    /// Names a partition.
    pub fn new(
        dataset: impl Into<String>,
        table: impl Into<String>,
        key: &PartitionKey,
        pass: impl Into<String>,
        invocation: impl Into<String>,
        rule: Rule,
    ) -> Self {
        Self {
            dataset: dataset.into(),
            table: table.into(),
            spec_id: key.spec_id,
            partition: key.to_json(),
            pass: pass.into(),
            invocation: invocation.into(),
            rule: rule.as_str(),
        }
    }
}

/// The counter of sidecars that could not be built or uploaded.
pub const SIDECARS_DROPPED_COUNTER: &str = "firn_sidecars_dropped_total";

/// What became of the sidecars of a partition's outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SidecarCounts {
    /// Sidecars that were uploaded.
    pub written: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Milliseconds that building them took, beside the merge.
    pub build_ms: u64,
    /// Data files that get no text index for good; a note beside them says why.
    pub noted: u64,
    /// Sidecars that could not be built or uploaded; their data files were committed without them.
    pub dropped: u64,
    /// Why, and which columns cannot have one.
    pub reasons: Vec<String>,
}

impl SidecarCounts {
    /// Adds those of other outputs; equal reasons stand once.
    pub fn add(&mut self, other: &SidecarCounts) {
        self.written += other.written;
        self.bytes += other.bytes;
        self.build_ms += other.build_ms;
        self.noted += other.noted;
        self.dropped += other.dropped;
        for reason in &other.reasons {
            if !self.reasons.contains(reason) {
                self.reasons.push(reason.clone());
            }
        }
    }
}

/// What the work on a partition came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionResult {
    /// How it ended; in the line it stands as `outcome`.
    #[serde(skip)]
    pub outcome: Outcome,
    /// Why.
    pub reason: String,
    /// Live data files before.
    pub files_before: u64,
    /// Live data files after.
    pub files_after: u64,
    /// Rows read.
    pub rows_in: u64,
    /// Rows written.
    pub rows_out: u64,
    /// Rows that dedup dropped.
    pub duplicates_dropped: u64,
    /// Bytes of the files that were replaced.
    pub bytes_in: u64,
    /// Bytes of the files that were written.
    pub bytes_out: u64,
    /// Row groups of them that were copied without decoding.
    pub row_groups_copied: u64,
    /// Encoded bytes of those.
    pub bytes_copied: u64,
    /// Commits that the catalog refused.
    pub conflicts: u64,
    /// Commits that were sent.
    pub tries: u64,
    /// The last snapshot that was committed.
    pub snapshot_id: Option<i64>,
    /// Its sidecars, where the dataset asks for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sidecars: Option<SidecarCounts>,
}

impl PartitionResult {
    /// An outcome with a reason and no counts yet.
    pub fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            reason: reason.into(),
            files_before: 0,
            files_after: 0,
            rows_in: 0,
            rows_out: 0,
            duplicates_dropped: 0,
            bytes_in: 0,
            bytes_out: 0,
            row_groups_copied: 0,
            bytes_copied: 0,
            conflicts: 0,
            tries: 0,
            snapshot_id: None,
            sidecars: None,
        }
    }
}

/// A partition came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionFinished {
    /// Which partition.
    #[serde(flatten)]
    pub start: PartitionStart,
    /// What became of it.
    #[serde(flatten)]
    pub result: PartitionResult,
    /// Milliseconds since the start.
    pub duration_ms: u64,
    /// Highest resident set of the process so far.
    pub peak_rss_bytes: Option<u64>,
    /// What this event adds to counters, by their full names.
    pub counters: BTreeMap<&'static str, u64>,
}

impl Event for PartitionFinished {
    const NAME: &'static str = "partitionFinished";

    fn outcome(&self) -> &'static str {
        self.result.outcome.as_str()
    }
}

/// Work on a partition that ends with exactly one event: by [`PartitionRun::finish`], or, when it is dropped before (a
/// panic, a stop), with outcome `failed`.
#[derive(Debug)]
#[must_use = "dropping it says that the work ended without an outcome"]
pub struct PartitionRun {
    emitter: Emitter,
    /// Taken by the event.
    start: Option<PartitionStart>,
    started: Instant,
}

impl PartitionRun {
    /// The work starts now.
    pub fn start(emitter: &Emitter, start: PartitionStart) -> Self {
        Self { emitter: emitter.clone(), start: Some(start), started: Instant::now() }
    }

    /// The work is over.
    pub fn finish(mut self, result: PartitionResult) {
        self.end(result);
    }

    /// The work is over and its message is parked: that is the terminal event.
    pub fn park(mut self, parked: Parked) {
        self.start = None;
        self.emitter.emit(&parked.counted());
    }

    fn end(&mut self, result: PartitionResult) {
        let Some(start) = self.start.take() else { return };
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut counters = BTreeMap::from([(CONFLICTS_COUNTER, result.conflicts)]);
        if let Some(sidecars) = &result.sidecars {
            counters.insert(SIDECARS_DROPPED_COUNTER, sidecars.dropped);
        }
        let peak_rss_bytes = peak_rss_bytes();
        self.emitter.emit(&PartitionFinished { start, result, duration_ms, peak_rss_bytes, counters });
    }
}

impl Drop for PartitionRun {
    fn drop(&mut self) {
        self.end(PartitionResult::new(Outcome::Failed, NO_OUTCOME));
    }
}
