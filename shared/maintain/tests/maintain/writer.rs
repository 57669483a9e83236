//! A writer that commits all the time while a sweep runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_maintain::{SweepOutcome, Verdict};

use crate::lake::{Lake, WAREHOUSE};

/// Exactly the planted orphans go, and every commit stays whole.
#[tokio::test]
async fn a_writer_that_commits_during_the_sweep_loses_nothing() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    let planted: Vec<String> = (0..1_100).map(|number| format!("lost-{number:04}.parquet")).collect();
    for file in &planted {
        lake.put(&format!("{WAREHOUSE}/t/data/{file}"), b"x").await;
    }
    lake.hours(48);
    lake.sweep("t").await;
    lake.hours(2);
    let ended = AtomicBool::new(false);
    let writer = async {
        let mut commits = 0;
        while !ended.load(Ordering::Relaxed) {
            lake.append("t", &[&format!("new-{commits}.parquet")]).await;
            commits += 1;
            tokio::time::sleep(Duration::from_millis(200).min(Duration::from_millis(5 + 20 * commits))).await;
        }
        commits
    };
    let sweep = async {
        let swept = lake.sweep("t").await;
        ended.store(true, Ordering::Relaxed);
        swept
    };
    let ((swept, heard), commits) = tokio::join!(sweep, writer);
    assert!(matches!(swept.outcome, SweepOutcome::Done), "{:?}", swept.outcome);
    assert_eq!(heard.names(Verdict::Deleted), planted);
    assert!(commits > 0);
    lake.check_whole("t").await;
}
