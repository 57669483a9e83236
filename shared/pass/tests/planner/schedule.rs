//! Scheduled times: made up once, in time, dataset by dataset.

use firn_model::Rule;
use firn_storage::Clock;

use crate::lake::*;

const EVENING: &str = "2026-11-01T23:50:00Z";

/// Two files that only the schedule selects.
const TWO: [(&str, u64); 2] = [("a", 20 * MB), ("a", 20 * MB)];

async fn two_files(compaction: &str) -> Lake {
    let lake = Lake::new(EVENING, compaction, &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append("spans", &TWO).await;
    lake
}

#[tokio::test]
async fn the_first_tick_after_a_scheduled_time_asks_by_the_schedule() {
    let lake = two_files("").await;
    assert_eq!(lake.tick_after(0).await.rule, Rule::Backlog, "nothing was missed before the first tick");
    assert!(lake.drain().await.is_empty());
    assert_eq!(lake.tick_after(2 * 60).await.rule, Rule::Backlog);
    // 02:05.
    let scheduled = lake.tick_after(15).await;
    assert_eq!((scheduled.rule, scheduled.scheduled), (Rule::Schedule, Some(time("2026-11-02T02:00:00Z"))));
    assert_eq!(scheduled.enqueued.counts.sent, 1);
    assert_eq!(lake.drain().await[0].rule, Some(Rule::Schedule));
    let next = lake.tick_after(15).await;
    assert_eq!((next.rule, next.scheduled, next.enqueued.counts.left), (Rule::Backlog, None, 1));
    assert_eq!(lake.tick_after(24 * 60).await.rule, Rule::Schedule, "the next day again");
}

#[tokio::test]
async fn a_scheduled_time_is_made_up_within_the_catch_up_only() {
    let lake = two_files("scheduleCatchUpHours: 2").await;
    lake.tick_after(0).await;
    // 04:10, two hours and ten minutes late.
    let late = lake.tick_after(4 * 60 + 20).await;
    assert_eq!((late.rule, late.scheduled, late.enqueued.counts.sent), (Rule::Backlog, None, 0));
    // Three days later at 03:50, with two more missed.
    let made_up = lake.tick_after(3 * 24 * 60 - 20).await;
    assert_eq!((made_up.rule, made_up.scheduled), (Rule::Schedule, Some(time("2026-11-05T02:00:00Z"))));
    assert_eq!(made_up.enqueued.counts.sent, 1);
    assert_eq!(lake.tick_after(15).await.scheduled, None);
}

#[tokio::test]
async fn a_clock_that_was_ahead_for_one_tick_does_not_silence_the_schedule() {
    let mut lake = two_files("").await;
    lake.tick_after(0).await;
    lake.drain().await;
    let ahead = Clock::manual(time("2027-11-01T23:50:00Z"));
    let right = std::mem::replace(&mut lake.host.clock, ahead);
    assert!(lake.tick_after(0).await.due);
    lake.drain().await;
    lake.host.clock = right;
    assert!(lake.tick_after(15).await.due, "ticks go on");
    let scheduled = lake.tick_after(2 * 60).await;
    assert_eq!((scheduled.rule, scheduled.scheduled), (Rule::Schedule, Some(time("2026-11-02T02:00:00Z"))));
}

#[tokio::test]
async fn a_dataset_that_could_not_be_planned_makes_its_scheduled_time_up() {
    let lake = Lake::new(EVENING, "", &["late", "spans"]).await;
    lake.create("spans", &[]).await;
    lake.append("spans", &TWO).await;
    lake.tick_after(0).await;
    let scheduled = lake.tick_after(2 * 60 + 15).await.enqueued;
    assert_eq!((scheduled.datasets_failed, scheduled.counts.sent), (1, 1));
    lake.drain().await;
    lake.create("late", &[]).await;
    lake.append("late", &TWO).await;
    let made_up = lake.tick_after(15).await;
    assert_eq!((made_up.rule, made_up.enqueued.counts.sent), (Rule::Schedule, 1));
    let messages = lake.drain().await;
    assert_eq!((messages[0].dataset.as_str(), messages[0].rule), ("late", Some(Rule::Schedule)));
    assert_eq!(lake.tick_after(15).await.rule, Rule::Backlog, "both are done with it");
}

#[tokio::test]
async fn a_schedule_above_the_cap_goes_on_at_the_next_ticks() {
    let lake = Lake::new(EVENING, "maxPartitionsPerPass: 2", &["spans"]).await;
    lake.create("spans", &[]).await;
    let names = ["a", "b", "c"];
    let files: Vec<(&str, u64)> = names.iter().flat_map(|name| [(*name, 20 * MB); 2]).collect();
    lake.append("spans", &files).await;
    lake.tick_after(0).await;
    let first = lake.tick_after(2 * 60 + 15).await.enqueued.counts;
    assert_eq!((first.sent, first.waiting), (2, 1));
    let second = lake.tick_after(15).await;
    assert_eq!((second.rule, second.enqueued.counts.sent), (Rule::Schedule, 1));
    assert_eq!(partitions(&lake.drain().await), names);
    assert_eq!(lake.tick_after(15).await.rule, Rule::Backlog);
}

#[tokio::test]
async fn the_schedule_raises_the_rule_of_what_a_tick_queued() {
    let lake = Lake::new(EVENING, "backlogFileThreshold: 2", &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append_small("spans", "a", 3).await;
    assert_eq!(lake.tick_after(0).await.enqueued.counts.sent, 1);
    assert_eq!(lake.tick_after(2 * 60 + 15).await.enqueued.counts.raised, 1);
    assert_eq!(lake.record().await.1.rule, Rule::Schedule);
    assert_eq!(lake.drain().await.len(), 1);
}

#[tokio::test]
async fn older_files_get_their_indexes_beside_more_merges_than_a_pass_sends() {
    let cap = "maxPartitionsPerPass: 3";
    let lake = Lake::new(EVENING, cap, &["spans tantivy: {indexingColumns: [p]}"]).await;
    lake.create("spans", &[]).await;
    let merges = ["a", "b", "c", "d"];
    let files: Vec<(&str, u64)> = merges.iter().flat_map(|name| [(*name, 20 * MB); 2]).collect();
    lake.append("spans", &files).await;
    lake.append("spans", &[("old", 100 * MB), ("older", 100 * MB)]).await;
    lake.tick_after(0).await;
    let first = lake.tick_after(2 * 60 + 15).await.enqueued.counts;
    assert_eq!((first.sent, first.waiting), (3, 3), "two merges wait, and one index");
    let messages = lake.drain().await;
    assert_eq!(partitions(&messages), ["a", "b", "old"]);
    let rule_of_old =
        messages.iter().find(|message| partitions(std::slice::from_ref(message)) == ["old"]).unwrap().rule;
    assert_eq!(rule_of_old, Some(Rule::Backfill));
    let second = lake.tick_after(15).await;
    assert_eq!((second.rule, second.enqueued.counts.sent), (Rule::Schedule, 3));
    assert_eq!(partitions(&lake.drain().await), ["c", "d", "older"]);
}

#[tokio::test]
async fn room_that_no_index_needs_is_for_merges() {
    let cap = "maxPartitionsPerPass: 3";
    let lake = Lake::new(EVENING, cap, &["spans tantivy: {indexingColumns: [p]}"]).await;
    lake.create("spans", &[]).await;
    let files: Vec<(&str, u64)> = ["a", "b", "c", "d"].iter().flat_map(|name| [(*name, 20 * MB); 2]).collect();
    lake.append("spans", &files).await;
    lake.tick_after(0).await;
    let counts = lake.tick_after(2 * 60 + 15).await.enqueued.counts;
    assert_eq!((counts.sent, counts.waiting), (3, 1));
    assert_eq!(partitions(&lake.drain().await), ["a", "b", "c"]);
}
