//! Values that the tests of this crate share.

use chrono::{DateTime, TimeDelta, Utc};
use firn_model::{PartitionJson, Rule};
use uuid::Uuid;

use crate::inflight::{InflightRecord, Selection};
use crate::send::Situation;

pub(crate) fn at(minutes: i64) -> DateTime<Utc> {
    DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::minutes(minutes)
}

pub(crate) fn generation(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub(crate) fn selection(rule: Rule, inputs_hash: &str) -> Selection {
    Selection {
        dataset: "spans".into(),
        partition: PartitionJson::from_iter([("day".into(), "2026-11-01".into())]),
        spec_id: 0,
        rule,
        pass: "p1".into(),
        inputs_hash: inputs_hash.into(),
    }
}

/// Written and sent at minute 0 under generation 1, rule tier, inputs `a`.
pub(crate) fn queued() -> InflightRecord {
    InflightRecord::new(&selection(Rule::Tier, "a"), generation(1), at(0)).sent(at(0))
}

/// An empty queue at `minutes`, with generation 2 at hand.
pub(crate) fn quiet(minutes: i64) -> Situation {
    Situation { leased: false, queue_empty: true, generation: generation(2), now: at(minutes) }
}

pub(crate) fn busy(minutes: i64) -> Situation {
    Situation { queue_empty: false, ..quiet(minutes) }
}
