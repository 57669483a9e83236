//! One partition, its record, its queue and its workers, as small as they can be: the decisions are the real ones.

use chrono::{DateTime, TimeDelta, Utc};
use firn_model::{MessageKind, PartitionJson, Rule};
use firn_state::{
    DeliveredPartition, InflightRecord, LeftoverDecision, PoisonDecision, Selection, SendDecision, Situation,
    StartDecision, decide_leftover, decide_poison, decide_send, decide_start,
};
use uuid::Uuid;

/// host.json: after so many deliveries the host moves a message to the poison queue.
const MAX_DEQUEUE_COUNT: u64 = 5;
/// How long the host hides what it delivers.
const DELIVERY: TimeDelta = TimeDelta::minutes(10);
pub(crate) const COOLDOWN: TimeDelta = TimeDelta::hours(6);

#[derive(Debug, Clone)]
pub(crate) struct Sent {
    generation: Uuid,
    rule: Rule,
    visible: DateTime<Utc>,
    dequeue_count: u64,
}

/// How a worker's run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Crash,
    Retry,
    /// The new message is lost between record and queue.
    RetryUnsent,
    Continue {
        progressed: bool,
    },
    Nothing,
}

/// How far the planner comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    Whole,
    DiesBeforeSend,
    DiesAfterSend,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: DateTime<Utc>,
    pub(crate) record: Option<InflightRecord>,
    pub(crate) queue: Vec<Sent>,
    /// The record that a worker has under its lease.
    pub(crate) running: Option<InflightRecord>,
    /// Whether a rule selects the partition.
    pub(crate) debt: bool,
    inputs: u64,
    generations: u128,
    /// The strongest rule that was asked for and not yet taken up by a start.
    asked: Option<Rule>,
    pub(crate) starts: u64,
    pub(crate) parked: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            now: DateTime::UNIX_EPOCH + TimeDelta::days(20_000),
            record: None,
            queue: Vec::new(),
            running: None,
            debt: true,
            inputs: 0,
            generations: 0,
            asked: None,
            starts: 0,
            parked: 0,
        }
    }

    fn generation(&mut self) -> Uuid {
        self.generations += 1;
        Uuid::from_u128(self.generations)
    }

    fn selection(&self, rule: Rule) -> Selection {
        Selection {
            dataset: "d".into(),
            partition: PartitionJson::new(),
            spec_id: 0,
            rule,
            pass: "p".into(),
            inputs_hash: self.inputs.to_string(),
        }
    }

    fn situation(&mut self) -> Situation {
        let generation = self.generation();
        Situation { leased: self.running.is_some(), queue_empty: self.queue.is_empty(), generation, now: self.now }
    }

    fn send(&mut self, record: &InflightRecord, hidden: TimeDelta) {
        let visible = self.now + hidden;
        self.queue.push(Sent { generation: record.generation, rule: record.rule, visible, dequeue_count: 0 });
    }

    /// The planner runs.
    pub(crate) fn tick(&mut self, rule: Rule, until: Tick) {
        let situation = self.situation();
        if !self.debt {
            let forget = self
                .record
                .as_ref()
                .is_some_and(|record| matches!(decide_leftover(record, &situation), LeftoverDecision::Forget { .. }));
            if forget {
                self.record = None;
                self.asked = None;
            }
            return;
        }
        let selection = self.selection(rule);
        let record = match decide_send(self.record.as_ref(), &selection, &situation) {
            SendDecision::Skip { .. } => return,
            SendDecision::RaiseRule { from, record } => {
                assert!(record.rule == rule && rule > from);
                self.asked = self.asked.max(Some(rule));
                self.record = Some(record);
                return;
            }
            SendDecision::Send { record, .. } => {
                assert_ne!(Some(record.generation), self.record.as_ref().map(|record| record.generation));
                record
            }
            SendDecision::Resend { record } => record,
        };
        assert!(self.running.is_none(), "the planner writes nothing under a lease");
        assert!(record.rule >= rule, "a stronger rule wins");
        self.asked = self.asked.max(Some(rule));
        self.record = Some(record.clone());
        if until == Tick::DiesBeforeSend {
            return;
        }
        self.send(&record, TimeDelta::zero());
        if until == Tick::Whole {
            self.record = Some(record.sent(self.now));
        }
    }

    /// The host delivers the visible message that `pick` points at.
    pub(crate) fn deliver(&mut self, pick: usize) {
        let visible: Vec<usize> = (0..self.queue.len()).filter(|at| self.queue[*at].visible <= self.now).collect();
        if visible.is_empty() {
            return;
        }
        let at = visible[pick % visible.len()];
        let message = self.queue[at].clone();
        if message.dequeue_count >= MAX_DEQUEUE_COUNT {
            self.queue.remove(at);
            self.poison(&message);
            return;
        }
        self.queue[at].dequeue_count += 1;
        self.queue[at].visible = self.now + DELIVERY;
        if self.running.is_some() {
            self.queue.remove(at);
            return;
        }
        let selection = self.selection(message.rule);
        let delivered = DeliveredPartition {
            kind: MessageKind::Worker { generation: message.generation },
            selection: &selection,
            dequeue_count: message.dequeue_count + 1,
            generation: self.generation(),
            cooldown: COOLDOWN,
            now: self.now,
        };
        match decide_start(self.record.as_ref(), &delivered) {
            StartDecision::Start { record } => {
                assert!(record.attempts <= firn_state::ATTEMPT_LIMIT);
                assert!(Some(record.rule) >= self.asked, "the worker takes the strongest rule: {record:?}");
                self.asked = None;
                self.starts += 1;
                self.record = Some(record.clone());
                self.running = Some(record);
            }
            StartDecision::Superseded { .. } => {
                self.queue.remove(at);
            }
            StartDecision::Park { record, .. } => {
                self.queue.remove(at);
                self.park(record);
            }
        }
    }

    fn poison(&mut self, message: &Sent) {
        let leased = self.running.is_some();
        let generation = Some(message.generation);
        match decide_poison(self.record.as_ref(), generation, leased, COOLDOWN, self.now) {
            PoisonDecision::Park { record, .. } => self.park(*record),
            PoisonDecision::Note { .. } => {}
        }
    }

    fn park(&mut self, record: InflightRecord) {
        assert!(record.attempts >= firn_state::ATTEMPT_LIMIT - 1, "parked too early: {record:?}");
        self.asked = None;
        self.parked += 1;
        self.record = Some(record);
    }

    /// The running worker ends.
    pub(crate) fn end(&mut self, end: End) {
        let Some(record) = self.running.take() else { return };
        let generation = self.generation();
        let mine = record.generation;
        match end {
            End::Crash => return,
            End::Done => {
                self.debt = false;
                self.inputs += 1;
                self.record = None;
            }
            End::Nothing => self.record = Some(record.cooled("nothing to do", COOLDOWN, self.now)),
            End::Retry | End::RetryUnsent => {
                let (next, hidden) = record.retried("busy", generation, self.now);
                self.record = Some(next.clone());
                if end == End::Retry {
                    self.send(&next, TimeDelta::from_std(hidden).unwrap());
                    self.record = Some(next.sent(self.now));
                }
            }
            End::Continue { progressed } => {
                self.inputs += u64::from(progressed);
                let next = record.continued(progressed, generation, self.now);
                self.send(&next, TimeDelta::zero());
                self.record = Some(next.sent(self.now));
            }
        }
        // Answered: the host deletes the message that it delivered.
        if let Some(at) = self.queue.iter().position(|sent| sent.generation == mine) {
            self.queue.remove(at);
        }
    }

    /// A writer appends.
    pub(crate) fn append(&mut self) {
        self.inputs += 1;
        self.debt = true;
    }

    /// The queue delivers a message twice.
    pub(crate) fn duplicate(&mut self, pick: usize) {
        if !self.queue.is_empty() {
            self.queue.push(self.queue[pick % self.queue.len()].clone());
        }
    }

    /// A message vanishes.
    pub(crate) fn lose(&mut self, pick: usize) {
        if !self.queue.is_empty() {
            self.queue.remove(pick % self.queue.len());
        }
    }

    pub(crate) fn pass_time(&mut self, minutes: u16) {
        self.now += TimeDelta::minutes(i64::from(minutes));
    }
}
