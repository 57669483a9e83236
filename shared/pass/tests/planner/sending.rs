//! Records and messages: what a death in between, a lost message or a parked partition leads to.

use firn_model::Rule;
use firn_pass::{ManualRequest, NoReport, PassError, enqueue, tick};
use firn_state::{LeftoverDecision, ParkedRecord, decide_leftover};

use crate::lake::*;

const NOON: &str = "2026-11-01T12:00:00Z";
const EVERY_FIVE: &str = "backlogFileThreshold: 2, backlogCheckIntervalMinutes: 5";

/// One partition with a backlog.
async fn one_backlog() -> Lake {
    let lake = Lake::new(NOON, EVERY_FIVE, &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append_small("spans", "a", 3).await;
    lake
}

#[tokio::test]
async fn a_planner_that_died_between_record_and_send_is_made_up_after_five_minutes() {
    let lake = one_backlog().await;
    lake.queue.refuse(true);
    let died = lake.tick_after(0).await.enqueued;
    assert_eq!((died.datasets_failed, died.counts.sent), (1, 0));
    let (_, written) = lake.record().await;
    assert_eq!(written.sent_at, None);
    lake.queue.refuse(false);

    // While the queue has other messages the first one may be among them.
    lake.queue_other().await;
    assert_eq!(lake.tick_after(5).await.enqueued.counts.running, 1);
    lake.drain().await;
    let again = lake.tick_after(5).await.enqueued.counts;
    assert_eq!((again.sent, again.resent), (1, 1));
    let messages = lake.drain().await;
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].generation, Some(written.generation), "the message that was never sent");
    let (_, sent) = lake.record().await;
    assert_eq!((sent.generation, sent.sent_at), (written.generation, Some(lake.clock.now())));
}

#[tokio::test]
async fn a_lost_message_is_sent_again_under_a_new_gen_after_an_hour() {
    let lake = one_backlog().await;
    lake.tick_after(0).await;
    assert_eq!(lake.drain().await.len(), 1);
    let (listed, record) = lake.record().await;
    lake.replace(&listed, &firn_state::InflightRecord { attempts: 3, ..record.clone() }).await;
    assert_eq!(lake.tick_after(59).await.enqueued.counts.running, 1);
    let counts = lake.tick_after(5).await.enqueued.counts;
    assert_eq!((counts.sent, counts.resent), (1, 1));
    let (_, again) = lake.record().await;
    assert_ne!(again.generation, record.generation);
    assert_eq!(again.attempts, 3, "attempts survive while the inputs are the same");
    assert_eq!(lake.drain().await[0].generation, Some(again.generation));
}

#[tokio::test]
async fn a_message_that_waits_in_the_queue_is_not_lost() {
    let lake = one_backlog().await;
    lake.tick_after(0).await;
    assert_eq!(lake.tick_after(120).await.enqueued.counts.running, 1);
    let counts = lake.tick_after(23 * 60).await.enqueued.counts;
    assert_eq!((counts.sent, counts.resent), (1, 1), "after a day it is, whatever the queue says");
}

#[tokio::test]
async fn a_stronger_rule_is_raised_in_the_record_of_a_queued_partition() {
    let lake = one_backlog().await;
    lake.tick_after(0).await;
    let (_, before) = lake.record().await;
    let full = ManualRequest { full: true, ..ManualRequest::default() };
    let summary = enqueue(&lake.host, &full, "by hand", &mut NoReport).await.unwrap();
    assert_eq!((summary.counts.raised, summary.counts.sent), (1, 0));
    let (_, raised) = lake.record().await;
    assert_eq!((raised.rule, raised.generation), (Rule::Full, before.generation));
    assert_eq!(lake.tick_after(5).await.enqueued.counts.running, 1);
    assert_eq!(lake.record().await.1.rule, Rule::Full, "a weaker rule lowers nothing");
    assert_eq!(lake.drain().await.len(), 1);
}

#[tokio::test]
async fn parked_and_cooling_partitions_rest_until_their_inputs_change_or_the_time_has_come() {
    let lake = one_backlog().await;
    lake.tick_after(0).await;
    lake.drain().await;
    let (listed, record) = lake.record().await;
    let parked = record.parked("too wide", chrono::TimeDelta::hours(6), lake.clock.now());
    lake.replace(&listed, &parked).await;
    let entry = lake.host.state.root().parked(listed.address.name());
    lake.host.state.write(&entry, &ParkedRecord::of_partition(&parked, b"{}", lake.clock.now())).await.unwrap();

    assert_eq!(lake.tick_after(120).await.enqueued.counts.at_rest, 1);
    assert!(lake.drain().await.is_empty());
    lake.append_small("spans", "a", 1).await;
    assert_eq!(lake.tick_after(5).await.enqueued.counts.sent, 1);
    assert_eq!(lake.drain().await.len(), 1);
    assert_eq!(lake.host.state.read(&entry).await.unwrap(), None, "its parked entry goes");

    let (listed, record) = lake.record().await;
    lake.replace(&listed, &record.cooled("nothing to do", chrono::TimeDelta::hours(6), lake.clock.now())).await;
    assert_eq!(lake.tick_after(5 * 60).await.enqueued.counts.at_rest, 1);
    assert_eq!(lake.tick_after(61).await.enqueued.counts.sent, 1, "its cool-down is over");
}

#[tokio::test]
async fn what_only_a_person_selects_is_not_forgotten_when_its_message_is_lost() {
    let lake = Lake::new(NOON, "backlogCheckIntervalMinutes: 5", &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append("spans", &[("a", 20 * MB), ("a", 20 * MB)]).await;
    let summary = enqueue(&lake.host, &ManualRequest::default(), "by hand", &mut NoReport).await.unwrap();
    assert_eq!(summary.counts.sent, 1);
    lake.drain().await;
    let quiet = lake.tick_after(5).await.enqueued.counts;
    assert_eq!((quiet.left, quiet.forgotten, quiet.sent), (1, 0, 0), "no rule of the tick selects it");
    let counts = lake.tick_after(60).await.enqueued.counts;
    assert_eq!((counts.sent, counts.resent, counts.forgotten), (1, 1, 0));
    assert_eq!(lake.drain().await[0].rule, Some(Rule::Manual));
}

#[tokio::test]
async fn a_record_that_nothing_asks_for_is_forgotten() {
    let lake = one_backlog().await;
    lake.tick_after(0).await;
    let (listed, record) = lake.record().await;
    // The same record for a partition that is merged already.
    let stale = lake.host.state.root().inflight("spans", "0123");
    let mut merged = record.clone();
    merged.partition.insert("p".into(), "merged".into());
    lake.host.state.create(&stale, &merged).await.unwrap();
    lake.drain().await;
    assert_eq!(lake.tick_after(30).await.enqueued.counts.forgotten, 0, "its message may still be on its way");
    assert_eq!(lake.tick_after(60).await.enqueued.counts.forgotten, 1);
    assert_eq!(lake.host.state.read(&stale).await.unwrap(), None);
    assert!(lake.host.state.read(&listed.address).await.unwrap().is_some(), "the one that is asked for stays");
}

#[tokio::test]
async fn a_queue_that_is_away_leaves_the_tick_unrecorded() {
    let lake = one_backlog().await;
    let gone = firn_storage::MemoryQueue::new("not-created");
    let host = firn_compact::HostServices { queue: std::sync::Arc::new(gone), ..lake.host.clone() };
    let error = tick(&host, "invocation").await.unwrap_err();
    assert!(matches!(&error, PassError::Unavailable(text) if text.contains("not-created")), "{error}");
    let address = lake.host.state.root().tick("compact");
    assert_eq!(lake.host.state.read(&address).await.unwrap(), None);
    assert!(lake.tick_after(0).await.due);
}

#[tokio::test]
async fn a_record_under_lease_is_left_to_its_worker() {
    let lake = one_backlog().await;
    lake.tick_after(0).await;
    lake.drain().await;
    lake.clock.advance(std::time::Duration::from_secs(2 * 3600));
    let (listed, record) = lake.record().await;
    let situation = firn_state::Situation {
        leased: false,
        queue_empty: true,
        generation: uuid::Uuid::new_v4(),
        now: lake.clock.now(),
    };
    assert_ne!(decide_leftover(&record, &situation), LeftoverDecision::Keep, "it would count as lost");
    let blob = listed.address.blob();
    let lease = lake.host.state.lease().acquire(blob, std::time::Duration::from_secs(60)).await.unwrap();
    assert_eq!(lake.tick_after(0).await.enqueued.counts.running, 1);
    assert!(lake.drain().await.is_empty());
    lake.host.state.lease().release(blob, &lease).await.unwrap();
    assert_eq!(lake.tick_after(5).await.enqueued.counts.resent, 1);
}
