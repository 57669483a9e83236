//! One tick of the planner: what the timer starts every few minutes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use firn_compact::HostServices;
use firn_config::{Dataset, hours, minutes};
use firn_model::Rule;
use firn_plan::{pass_rule, tick_rules};
use firn_state::{COMPACT_TICKS, DatasetCursor, PassRecord, Read, TickRecord};
use uuid::Uuid;

use super::fan_out::{DatasetProgress, FanOutPass};
use super::summary::{EnqueueSummary, TickSummary};
use super::{open_passes, queue_error, read_tick, state_error};
use crate::due::{ScheduleDue, schedule_due, tick_is_due, too_late};
use crate::events::PassEvents;
use crate::report::{NoReport, PassError};
use crate::request::ManualRequest;

/// Plans every dataset by the rules that are due and sends a message for each partition that they select. Does nothing before
/// `backlogCheckIntervalMinutes` have passed since the recorded tick. The tick is recorded after its last message was sent, so
/// one that died is done again; planners side by side do no harm.
///
/// # Errors
/// [`PassError::Unavailable`] when state or queue do not answer: nothing is recorded, and the next timer tries again. A dataset that
/// cannot be planned is logged, counted and passed over instead.
pub async fn tick(host: &HostServices, invocation: &str) -> Result<TickSummary, PassError> {
    let now = host.clock.now();
    let address = host.state.root().tick(COMPACT_TICKS);
    let read = read_tick(&host.state, &address).await?;
    let (mut before, version) = match read {
        Some(Read { value, version }) => (value, Some(version)),
        None => (TickRecord::default(), None),
    };
    forget_the_future(&mut before, now);
    let interval = minutes(host.config.compaction.backlog_check_interval_minutes);
    if !tick_is_due(before.last_tick, now, interval) {
        return Ok(TickSummary::not_due(before.last_tick.map(|last| last + interval)));
    }
    let due = DatasetsDue::new(host, &before, now);
    let tick = Tick {
        host,
        now,
        queue_empty: host.queue.length().await.map_err(queue_error)? == 0,
        events: PassEvents::new(&host.emitter, Uuid::new_v4().to_string(), invocation.to_owned(), due.strongest()),
    };
    let Some(done) = tick.run(&due, &before).await else {
        return Err(PassError::Unavailable("the process was told to stop; the next tick goes on".into()));
    };
    let open = match done.all_known {
        true => open_passes::follow(host, &before.open_passes, &done.on_queue, now, invocation).await,
        // What is on the queue of a dataset that was passed over is not known, so no pass is taken for ended.
        false => before.open_passes.iter().chain(done.on_queue.keys()).cloned().collect(),
    };
    let after = TickRecord {
        last_tick: Some(now),
        schedule_done_until: Some(before.schedule_done_until.map_or(now, |until| until.max(now))),
        open_passes: open,
        cursors: done.cursors,
    };
    match host.state.follow(&address, &after, version.as_ref()).await {
        Ok(_) => {}
        Err(error) if error.is_conflict() => tracing::info!("another planner recorded its tick first"),
        Err(error) => return Err(state_error(error)),
    }
    tick.events.sent(&host.config, false, &done.summary);
    Ok(TickSummary {
        due: true,
        rule: due.strongest(),
        scheduled: due.scheduled(),
        next_tick: None,
        enqueued: done.summary,
    })
}

/// How far clocks of planners may be apart.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::minutes(10);

/// A planner whose clock was ahead for a while has done no scheduled passes of days to come: without this the schedule would be silent
/// until then.
fn forget_the_future(record: &mut TickRecord, now: DateTime<Utc>) {
    let cursors = record.cursors.values_mut().map(|cursor| &mut cursor.schedule_done_until);
    for until in cursors.chain([&mut record.schedule_done_until]).flatten() {
        if *until > now + CLOCK_TOLERANCE {
            tracing::warn!(recorded = %until, "the last tick's clock was ahead of this one's; the schedule goes on from now");
            *until = now;
        }
    }
}

/// What the schedule asks for, dataset by dataset: one that could not be planned, or has partitions waiting, makes a scheduled time
/// up at a later tick, when the others are done with it.
struct DatasetsDue(BTreeMap<String, ScheduleDue>);

impl DatasetsDue {
    fn new(host: &HostServices, before: &TickRecord, now: DateTime<Utc>) -> Self {
        let compaction = &host.config.compaction;
        let catch_up = hours(compaction.schedule_catch_up_hours);
        let of = |dataset: &Dataset| {
            let cursor = before.cursors.get(&dataset.name).and_then(|cursor| cursor.schedule_done_until);
            let due = schedule_due(&compaction.schedule, cursor.or(before.schedule_done_until), now, catch_up);
            (dataset.name.clone(), due)
        };
        let due: BTreeMap<String, ScheduleDue> = host.config.datasets.iter().map(of).collect();
        let dropped: BTreeSet<DateTime<Utc>> = due.values().flat_map(|due| due.dropped.iter().copied()).collect();
        for time in &dropped {
            tracing::warn!("scheduled time {time} is not made up: it is more than scheduleCatchUpHours ago");
        }
        if due.values().any(|due| due.more_dropped) {
            tracing::warn!("later scheduled times of more than scheduleCatchUpHours ago are not made up either");
        }
        Self(due)
    }

    fn of(&self, dataset: &Dataset) -> ScheduleDue {
        self.0.get(&dataset.name).cloned().unwrap_or_default()
    }

    fn scheduled(&self) -> Option<DateTime<Utc>> {
        self.0.values().filter_map(|due| due.made_up).max()
    }

    fn strongest(&self) -> Rule {
        pass_rule(self.scheduled().is_some())
    }
}

struct Tick<'a> {
    host: &'a HostServices,
    now: DateTime<Utc>,
    queue_empty: bool,
    events: PassEvents,
}

/// What all datasets came to.
#[derive(Default)]
struct TickDone {
    summary: EnqueueSummary,
    cursors: BTreeMap<String, DatasetCursor>,
    /// Partitions on the queue, by their pass.
    on_queue: BTreeMap<String, u64>,
    /// Whether that is known of every dataset.
    all_known: bool,
}

impl Tick<'_> {
    /// None when the process was told to stop in between.
    async fn run(&self, due: &DatasetsDue, before: &TickRecord) -> Option<TickDone> {
        let summary = EnqueueSummary { pass: self.events.pass.clone(), ..EnqueueSummary::default() };
        let mut done = TickDone { summary, all_known: true, ..TickDone::default() };
        let mut record = PassRecord::new(&self.events.pass, self.events.rule, self.now);
        let request = ManualRequest::default();
        let pass = FanOutPass {
            host: self.host,
            pass: &self.events.pass,
            request: &request,
            now: self.now,
            queue_empty: self.queue_empty,
            tidies: true,
            before: Some(&before.cursors),
        };
        for dataset in &self.host.config.datasets {
            if self.host.compact.stop.is_set() {
                return None;
            }
            let due = due.of(dataset);
            let mut progress = DatasetProgress::default();
            let result = pass.dataset(dataset, tick_rules(due.made_up.is_some()), &mut progress, &mut NoReport).await;
            let old = before.cursors.get(&dataset.name).cloned().unwrap_or_default();
            let until = old.schedule_done_until.or(before.schedule_done_until);
            let cursor = self.cursor(&old, until, &due, &progress, result.as_ref().err());
            done.cursors.insert(dataset.name.clone(), cursor);
            done.add(dataset, &progress, &mut record);
            if let Err(error) = result {
                self.events.dataset_failed(dataset, &error);
                done.summary.count_failed(&error);
                record.failed.insert(dataset.name.clone(), error.to_string());
                done.all_known = false;
            }
        }
        if done.summary.counts.sent > 0 {
            open_passes::record(self.host, record).await;
            done.on_queue.insert(self.events.pass.clone(), done.summary.counts.sent);
        }
        Some(done)
    }

    fn cursor(
        &self,
        old: &DatasetCursor,
        until: Option<DateTime<Utc>>,
        due: &ScheduleDue,
        progress: &DatasetProgress,
        error: Option<&PassError>,
    ) -> DatasetCursor {
        let unfinished = error.is_some() || (due.made_up.is_some() && progress.counts.waiting > 0);
        let done_until = match until {
            // Dropped times are named once.
            Some(_) if unfinished && !due.dropped.is_empty() => {
                too_late(self.now, hours(self.host.config.compaction.schedule_catch_up_hours))
            }
            Some(until) if unfinished => until,
            Some(until) => until.max(self.now),
            None => self.now,
        };
        let waiting = progress.counts.waiting;
        match error {
            None => DatasetCursor {
                snapshot_id: progress.snapshot_id,
                planned_at: Some(self.now),
                schedule_done_until: Some(done_until),
                waiting,
                error: None,
                settled: progress.settled.clone(),
            },
            Some(error) => DatasetCursor {
                schedule_done_until: Some(done_until),
                waiting,
                error: Some(error.to_string()),
                settled: None,
                ..old.clone()
            },
        }
    }
}

impl TickDone {
    fn add(&mut self, dataset: &Dataset, progress: &DatasetProgress, record: &mut PassRecord) {
        self.summary.datasets += 1;
        self.summary.counts.add(progress.counts);
        for (pass, partitions) in &progress.passes {
            *self.on_queue.entry(pass.clone()).or_default() += partitions;
        }
        if progress.counts.sent > 0 {
            record.sent.insert(dataset.name.clone(), progress.counts.sent);
        }
        if progress.counts.waiting > 0 {
            let waiting = progress.counts.waiting;
            tracing::warn!(dataset = dataset.name, waiting, "partitions wait for the next tick: maxPartitionsPerPass");
            record.waiting.insert(dataset.name.clone(), waiting);
        }
    }
}

impl EnqueueSummary {
    /// Counts a dataset that was passed over.
    pub(crate) fn count_failed(&mut self, error: &PassError) {
        match error {
            PassError::Usage(_) => self.datasets_refused += 1,
            PassError::Unavailable(_) => self.datasets_failed += 1,
        }
    }
}
