//! Which partitions a tick sends, and what it leaves.

use firn_model::Rule;
use firn_pass::{SendCounts, tick};
use serde_json::json;

use crate::lake::*;

const NOON: &str = "2026-11-01T12:00:00Z";

#[tokio::test]
async fn a_tick_sends_each_backlog_once_and_works_only_when_the_interval_has_passed() {
    let lake = Lake::new(NOON, "backlogFileThreshold: 5", &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append_small("spans", "a", 6).await;
    lake.append_small("spans", "b", 5).await;

    let first = lake.tick_after(0).await;
    let counts = SendCounts { partitions: 2, left: 1, selected: 1, sent: 1, ..SendCounts::default() };
    assert_eq!((first.due, first.rule, first.enqueued.counts), (true, Rule::Backlog, counts));
    let (_, record) = lake.record().await;
    assert_eq!((record.rule, &record.pass), (Rule::Backlog, &first.enqueued.pass));
    assert_eq!((record.sent_at, record.attempts), (Some(time(NOON)), 0));

    assert!(!lake.tick_after(5).await.due);
    assert!(!lake.tick_after(5).await.due);
    let second = lake.tick_after(5).await;
    let counts = SendCounts { partitions: 2, left: 1, selected: 1, running: 1, ..SendCounts::default() };
    assert_eq!((second.due, second.enqueued.counts), (true, counts), "nothing new is selected");

    let messages = lake.drain().await;
    assert_eq!(partitions(&messages), ["a"]);
    let message = &messages[0];
    assert_eq!((message.dataset.as_str(), message.spec_id), ("spans", Some(0)));
    assert_eq!((message.rule, message.generation), (Some(Rule::Backlog), Some(record.generation)));
    assert_eq!(message.pass.as_ref(), Some(&first.enqueued.pass));

    let passes = lake.events("passFinished");
    assert_eq!(passes.len(), 2, "a tick before its time says nothing");
    assert_eq!(
        (&passes[0]["sent"], &passes[0]["rule"], &passes[0]["outcome"]),
        (&json!(1), &json!("backlog"), &json!("done"))
    );
    assert_eq!(lake.tick_record().await.last_tick, Some(time("2026-11-01T12:15:00Z")));
}

#[tokio::test]
async fn a_hundred_small_files_are_no_backlog_and_a_hundred_and_one_are() {
    let lake = Lake::new(NOON, "", &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append_small("spans", "hundred", 100).await;
    lake.append_small("spans", "more", 101).await;
    // Exactly minFileSizeMb is not small.
    lake.append("spans", &vec![("large", 32 * MB); 120]).await;
    lake.tick_after(0).await;
    assert_eq!(partitions(&lake.drain().await), ["more"]);
}

#[tokio::test]
async fn the_largest_debt_goes_first_and_the_rest_waits_for_the_next_tick() {
    let lake = Lake::new(NOON, "backlogFileThreshold: 2, maxPartitionsPerPass: 2", &["spans"]).await;
    lake.create("spans", &[]).await;
    for (partition, files) in [("a", 3), ("b", 7), ("c", 5), ("d", 4), ("e", 6)] {
        lake.append_small("spans", partition, files).await;
    }
    let first = lake.tick_after(0).await.enqueued;
    assert_eq!((first.counts.sent, first.counts.waiting), (2, 3));
    assert_eq!(partitions(&lake.drain().await), ["b", "e"]);
    assert_eq!(lake.tick_record().await.cursors["spans"].waiting, 3);
    let second = lake.tick_after(15).await.enqueued;
    assert_eq!((second.counts.sent, second.counts.running, second.counts.waiting), (2, 2, 1));
    assert_eq!(partitions(&lake.drain().await), ["c", "d"]);
    let third = lake.tick_after(15).await.enqueued;
    assert_eq!((third.counts.sent, third.counts.running, third.counts.waiting), (1, 4, 0));
    assert_eq!(partitions(&lake.drain().await), ["a"]);
}

#[tokio::test]
async fn a_dataset_that_cannot_be_planned_is_passed_over() {
    let lake = Lake::new(NOON, "backlogFileThreshold: 2", &["gone", "spans"]).await;
    lake.create("spans", &[]).await;
    lake.append_small("spans", "a", 3).await;
    let summary = lake.tick_after(0).await.enqueued;
    assert_eq!((summary.datasets, summary.datasets_failed, summary.counts.sent), (2, 1, 1));
    let failed = lake.events("datasetFailed");
    assert_eq!((failed.len(), &failed[0]["dataset"]), (1, &json!("gone")));
    let passes = lake.events("passFinished");
    assert_eq!((&passes[0]["outcome"], &passes[0]["datasetsFailed"]), (&json!("failed"), &json!(1)));
    assert_eq!(passes[0]["counters"]["firn_pass_failures_total"], json!(1));
    let record = lake.tick_record().await;
    assert!(record.cursors["gone"].error.as_ref().unwrap().contains("gone"));
    assert_eq!(record.cursors["spans"].error, None);
    assert!(!lake.tick_after(1).await.due, "the tick is recorded all the same");
}

#[tokio::test]
async fn a_table_that_asks_to_be_left_alone_is() {
    let lake = Lake::new(NOON, "backlogFileThreshold: 2", &["spans"]).await;
    lake.create("spans", &[("firn.enabled", "false")]).await;
    lake.append_small("spans", "a", 30).await;
    let hidden = lake.hide_manifest_list("spans").await;
    let counts = lake.tick_after(0).await.enqueued;
    assert_eq!((counts.counts, counts.datasets_failed), (SendCounts::default(), 0), "it is not even looked into");
    hidden.put_back();
    assert!(lake.drain().await.is_empty() && lake.records().await.is_empty());
}

#[tokio::test]
async fn two_planners_at_once_send_each_partition_once() {
    let lake = Lake::new(NOON, "backlogFileThreshold: 2", &["spans"]).await;
    lake.create("spans", &[]).await;
    let names: Vec<String> = (0..40).map(|n| format!("p{n:02}")).collect();
    let files: Vec<(&str, u64)> = names.iter().flat_map(|name| [(name.as_str(), 1024); 3]).collect();
    lake.append("spans", &files).await;
    let (one, other) = tokio::join!(tick(&lake.host, "one"), tick(&lake.host, "other"));
    let (one, other) = (one.unwrap().enqueued.counts, other.unwrap().enqueued.counts);
    assert_eq!(one.sent + other.sent, 40);
    assert_eq!(partitions(&lake.drain().await), names);
}

#[tokio::test]
async fn a_pass_over_its_deadline_is_counted_once_and_ends_with_its_last_partition() {
    let lake = Lake::new(NOON, "backlogFileThreshold: 2, runtimeDeadlineHours: 1", &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append_small("spans", "a", 3).await;
    let pass = lake.tick_after(0).await.enqueued.pass;
    lake.tick_after(60).await;
    assert!(lake.events("passOverDeadline").is_empty());
    lake.tick_after(15).await;
    lake.tick_after(15).await;
    let over = lake.events("passOverDeadline");
    assert_eq!((over.len(), &over[0]["pass"], &over[0]["partitions"]), (1, &json!(pass), &json!(1)));
    assert_eq!(over[0]["counters"], json!({"firn_pass_deadline_exceeded_total": 1}));
    // The worker is done with it.
    let (listed, _) = lake.record().await;
    lake.host.state.delete(&listed.address, &listed.version, None).await.unwrap();
    lake.append("spans", &[]).await;
    lake.clock.advance(std::time::Duration::from_secs(900));
    tick(&lake.host, "last").await.unwrap();
    let address = lake.host.state.root().pass(&pass);
    let record = lake.host.state.read(&address).await.unwrap().unwrap().value;
    assert!(record.over_deadline && record.ended_at.is_some(), "{record:?}");
    assert_eq!(record.sent["spans"], 1);
}

#[tokio::test]
async fn a_table_that_has_not_changed_costs_no_manifest() {
    let lake = Lake::new(NOON, "", &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append_small("spans", "a", 100).await;
    lake.append_small("spans", "b", 2).await;
    let left = SendCounts { partitions: 2, left: 2, ..SendCounts::default() };
    assert_eq!(lake.tick_after(0).await.enqueued.counts, left);
    // Without the manifest list nothing could be planned.
    let hidden = lake.hide_manifest_list("spans").await;
    for _ in 0..3 {
        let tick = lake.tick_after(15).await.enqueued;
        assert_eq!((tick.counts, tick.datasets_failed), (left, 0));
    }
    // After a scheduled time other rules ask, and so the files are looked at.
    assert_eq!(lake.tick_after(15 * 60).await.enqueued.datasets_failed, 1);
    hidden.put_back();
    lake.append_small("spans", "b", 99).await;
    let changed = lake.tick_after(15).await.enqueued.counts;
    assert_eq!((changed.partitions, changed.sent), (2, 2), "by the schedule, which is made up");
    assert_eq!(lake.tick_record().await.cursors["spans"].settled, None);
    // What is under way is looked after at every tick.
    let hidden = lake.hide_manifest_list("spans").await;
    assert_eq!(lake.tick_after(15).await.enqueued.datasets_failed, 1);
    hidden.put_back();
}
