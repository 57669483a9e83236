//! What other writers and lost answers do to an expiry.

use firn_maintain::expiry::ExpiryFailure;
use firn_maintain::{ExpiryOutcome, TableExpiry};
use futures::FutureExt;

use crate::catalog::{Scripted, Swap};
use crate::lake::{Lake, WAREHOUSE};

/// A table with two old snapshots and a young one, the ids of which it gives.
async fn with_old_snapshots() -> (Lake, [i64; 3]) {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    let s1 = lake.append("t", &["a.parquet"]).await;
    let s2 = lake.replace("t", &["a.parquet"], &["b.parquet"]).await;
    lake.hours(30);
    let s3 = lake.append("t", &["c.parquet"]).await;
    (lake, [s1, s2, s3])
}

async fn snapshots(lake: &Lake) -> Vec<i64> {
    let mut ids: Vec<i64> = lake.load("t").await.metadata.snapshots().map(|one| one.snapshot_id()).collect();
    ids.sort();
    ids
}

fn expired(done: &TableExpiry) -> Vec<i64> {
    assert!(matches!(done.outcome, ExpiryOutcome::Done), "{done:?}");
    done.plan.expired().collect()
}

/// A swap that was refused, or did not arrive, is made again on what is there then.
#[tokio::test]
async fn what_did_not_go_through_is_tried_again() {
    for script in [&[Swap::Conflict][..], &[Swap::NotSent], &[Swap::Lost], &[Swap::Conflict, Swap::Lost, Swap::NotSent]]
    {
        let (lake, [s1, s2, s3]) = with_old_snapshots().await;
        let catalog = Scripted::swapping(&lake, script);
        let done = lake.expire_with("t", &catalog, 5).await;
        assert_eq!(expired(&done), [s1, s2], "{script:?}");
        let tries = script.len() as u64 + 1;
        assert_eq!((done.tries, catalog.sent()), (tries, tries), "{script:?}");
        assert_eq!(snapshots(&lake).await, [s3]);
        lake.check_whole("t").await;
    }
}

/// K102: a swap that removed snapshots and whose answer was lost was applied. It is found, not sent again, and no file is touched by anybody.
#[tokio::test]
async fn an_expiry_whose_answer_was_lost_is_found() {
    let (lake, [s1, s2, s3]) = with_old_snapshots().await;
    let data = lake.below(&format!("{WAREHOUSE}/t/data/")).await;
    let metadata = lake.below(&format!("{WAREHOUSE}/t/metadata/")).await;
    let catalog = Scripted::swapping(&lake, &[Swap::Applied]);
    let done = lake.expire_with("t", &catalog, 5).await;
    assert_eq!(expired(&done), [s1, s2], "the plan of the try that was applied");
    assert_eq!((done.tries, catalog.sent()), (1, 1));
    assert_eq!(snapshots(&lake).await, [s3]);
    assert_eq!(lake.below(&format!("{WAREHOUSE}/t/data/")).await, data);
    let after = lake.below(&format!("{WAREHOUSE}/t/metadata/")).await;
    assert!(after.is_superset(&metadata), "manifests and lists of what expired stay for the sweep");
    lake.check_whole("t").await;
}

/// Others were faster each time: nothing is lost, the next run tries again.
#[tokio::test]
async fn conflicts_that_are_used_up_leave_all_as_it_was() {
    let (lake, all) = with_old_snapshots().await;
    let version = lake.load("t").await.metadata_location;
    let catalog = Scripted::swapping(&lake, &[Swap::Conflict, Swap::Lost, Swap::Conflict]);
    let done = lake.expire_with("t", &catalog, 2).await;
    let ExpiryOutcome::Failed(ExpiryFailure::Conflicts { tries, last }) = &done.outcome else { panic!("{done:?}") };
    assert_eq!((*tries, catalog.sent()), (3, 3));
    assert!(last.contains("409"), "{last}");
    assert_eq!(snapshots(&lake).await, all);
    assert_eq!(lake.load("t").await.metadata_location, version);
    assert_eq!(expired(&lake.expire("t").await), all[..2], "the next run");
}

/// What the catalog does not take is not sent again.
#[tokio::test]
async fn a_refusal_is_not_repeated() {
    let (lake, all) = with_old_snapshots().await;
    let catalog = Scripted::swapping(&lake, &[Swap::Refused]);
    let done = lake.expire_with("t", &catalog, 5).await;
    assert!(matches!(&done.outcome, ExpiryOutcome::Failed(ExpiryFailure::Refused(_))), "{done:?}");
    assert_eq!((catalog.sent(), snapshots(&lake).await), (1, all.to_vec()));
}

/// A tag that is set between decision and swap holds its snapshot.
#[tokio::test]
async fn a_tag_that_is_set_meanwhile_holds() {
    let (lake, [s1, s2, s3]) = with_old_snapshots().await;
    let mut catalog = Scripted::new(&lake);
    let tag = || async { lake.tag("t", "audit", s1).await };
    catalog.at_swap = Some((1, Box::new(move || tag().boxed())));
    let done = lake.expire_with("t", &catalog, 5).await;
    assert_eq!((expired(&done), done.tries, done.pinned), (vec![s2], 2, 1));
    assert_eq!(snapshots(&lake).await, [s1, s3]);
    lake.check_whole("t").await;
}

/// K54: two expiries at once come to what one would.
#[tokio::test]
async fn two_expiries_at_once_do_no_harm() {
    let (lake, [s1, s2, s3]) = with_old_snapshots().await;
    let (one, other) = tokio::join!(lake.expire("t"), lake.expire("t"));
    let mut gone = [expired(&one), expired(&other)].concat();
    gone.sort();
    gone.dedup();
    assert_eq!(gone, [s1, s2]);
    assert!(one.tries + other.tries >= 1);
    assert_eq!(snapshots(&lake).await, [s3]);
    lake.check_whole("t").await;
}
