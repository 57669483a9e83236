//! Rules tier and cold at ticks: for datasets with a time column, by the time of the table itself.

use firn_model::Rule;
use serde_json::{Value, json};

use crate::lake::*;

const NOON: &str = "2026-11-01T12:00:00Z";

async fn spans(compaction: &str, keys: &str) -> Lake {
    let dataset = format!("spans {keys}");
    let lake = Lake::new(NOON, compaction, &[&dataset]).await;
    lake.create_by_day("spans").await;
    lake
}

/// Days and rules of the messages on the queue, sorted.
async fn sent(lake: &Lake) -> Vec<(Value, Rule)> {
    let mut sent: Vec<(Value, Rule)> = Vec::new();
    for message in lake.drain().await {
        sent.push((message.partition.as_ref().unwrap()["day"].clone(), message.rule.unwrap()));
    }
    sent.sort_by_key(|(day, _)| day.to_string());
    sent
}

#[tokio::test]
async fn eight_files_of_one_size_are_merged_at_a_tick() {
    let lake = spans("", "timeColumn: ts").await;
    for hour in 0..7 {
        lake.append_until("spans", &[(&format!("2026-11-01T{hour:02}:00:00Z"), MB)]).await;
    }
    // Of another size.
    lake.append_until("spans", &[("2026-11-01T08:00:00Z", 4 * MB)]).await;
    let tick = lake.tick_after(0).await;
    assert_eq!((tick.rule, tick.enqueued.counts.sent), (Rule::Backlog, 0));
    lake.append_until("spans", &[("2026-11-01T09:00:00Z", 3 * MB)]).await;
    lake.tick_after(15).await;
    assert_eq!(sent(&lake).await, [(json!("2026-11-01"), Rule::Tier)]);
}

#[tokio::test]
async fn a_dataset_may_ask_for_another_number_or_none() {
    let files = |count: usize| -> Vec<(&str, u64)> { vec![("2026-11-01T01:00:00Z", MB); count] };
    for (keys, count, expected) in [
        ("timeColumn: ts, compaction: {compactMinFiles: 3}", 2, 0),
        ("timeColumn: ts, compaction: {compactMinFiles: 3}", 3, 1),
        ("timeColumn: ts, compaction: {compactMinFiles: off}", 90, 0),
        ("timeColumn: ts, compaction: {compactMinFiles: off, backlogFileThreshold: 80}", 90, 1),
        // Tiers are for datasets with a time column.
        ("bloomFilterColumns: [p]", 90, 0),
    ] {
        let lake = spans("", keys).await;
        lake.append_until("spans", &files(count)).await;
        assert_eq!(lake.tick_after(0).await.enqueued.counts.sent, expected, "{keys}: {count} files");
    }
}

#[tokio::test]
async fn a_day_is_cold_when_newer_data_is_an_hour_past_its_end() {
    let lake = spans("", "timeColumn: ts").await;
    lake.append_until("spans", &[("2026-10-30T05:00:00Z", MB), ("2026-10-30T23:59:59Z", MB)]).await;
    lake.append_until("spans", &[("2026-10-31T00:59:59.999999Z", MB)]).await;
    // The clock says noon two days later; only the table's own time counts.
    assert_eq!(lake.tick_after(0).await.enqueued.counts.sent, 0);
    lake.append_until("spans", &[("2026-10-31T01:00:00Z", MB)]).await;
    lake.tick_after(15).await;
    assert_eq!(sent(&lake).await, [(json!("2026-10-30"), Rule::Cold)]);
}

#[tokio::test]
async fn cold_partitions_are_no_business_of_a_dataset_that_turns_them_off() {
    for (keys, expected) in [
        ("timeColumn: ts", 2),
        ("timeColumn: ts, compaction: {compactColdAfter: 40h}", 1),
        ("timeColumn: ts, compaction: {compactColdAfter: off}", 0),
        ("timeColumn: id", 0),
        ("bloomFilterColumns: [p]", 0),
    ] {
        let lake = spans("", keys).await;
        for day in ["2026-10-29", "2026-10-30", "2026-10-31"] {
            let until = format!("{day}T22:00:00Z");
            lake.append_until("spans", &[(&until, MB), (&until, MB)]).await;
        }
        assert_eq!(lake.tick_after(0).await.enqueued.counts.sent, expected, "{keys}");
    }
}

#[tokio::test]
async fn the_schedule_takes_small_files_of_cold_days_that_would_wait_else() {
    let lake = spans("", "timeColumn: ts, compaction: {compactMinFiles: off}").await;
    // Two late files beside a day that is finished, and two files of today.
    lake.append_until("spans", &[("2026-10-30T22:00:00Z", 90 * MB)]).await;
    lake.append_until("spans", &[("2026-10-30T22:00:00Z", MB), ("2026-10-30T23:00:00Z", MB)]).await;
    lake.append_until("spans", &[("2026-11-01T11:00:00Z", MB), ("2026-11-01T12:00:00Z", MB)]).await;
    let tick = lake.tick_after(0).await.enqueued.counts;
    assert_eq!((tick.sent, tick.left), (0, 2), "late data waits beside a large file");
    let night = lake.tick_after(14 * 60 + 10).await;
    assert_eq!((night.rule, night.enqueued.counts.sent), (Rule::Schedule, 1));
    assert_eq!(sent(&lake).await, [(json!("2026-10-30"), Rule::Schedule)]);
}
