//! A table that everybody commits to: a writer five times a second, and as many workers as there are.
//!
//! `FIRN_CONTENTION_WORKERS=64` asks for more workers, `FIRN_CONTENTION_TURNS=0` takes their turns away; the figures are printed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use firn_compact::{LeaseTurns, MemoryBudget, WorkOutcome, work};
use firn_model::{BlobId, Rule};
use firn_storage::BlobStore;
use futures::TryStreamExt;
use futures::future::join_all;

use crate::faulty_catalog::Swap;
use crate::scene::{LOCATION, Scene, delivered};

/// Between two commits of the writer.
const WRITER: Duration = Duration::from_millis(200);
/// What a catalog takes for a commit.
const CATALOG: Duration = Duration::from_millis(50);
const FILES: usize = 6;
const ROWS: i64 = 5;

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_merge_lands_while_a_writer_commits_all_the_time() {
    let workers = number("FIRN_CONTENTION_WORKERS", 16);
    let mut scene = Scene::new("backlogFileThreshold: 5, memoryMb: 128, commitRetryMax: 5").await;
    if number("FIRN_CONTENTION_TURNS", 1) == 1 {
        scene.services.turns = Some(Arc::new(LeaseTurns::new((*scene.services.state).clone())));
    }
    scene.services.memory = MemoryBudget::new(128 * workers as u64);
    let mut bodies = Vec::new();
    let mut ids: i64 = 0;
    for worker in 0..workers {
        let p = format!("p{worker}");
        scene.lake.append(&p, FILES, ROWS, ids).await;
        ids += FILES as i64 * ROWS;
        bodies.push(scene.queued(&p, Rule::Backlog, "").await.message().to_json().unwrap());
    }
    let before = scene.lake.snapshots().await;
    scene.catalog.on_swap(|_| {
        Box::pin(async {
            tokio::time::sleep(CATALOG).await;
            Swap::Goes
        })
    });

    let (ended, next) = (AtomicBool::new(false), AtomicI64::new(ids));
    let writer = async {
        let mut appends = 0;
        while !ended.load(Ordering::SeqCst) {
            tokio::time::sleep(WRITER).await;
            scene.lake.append_beside("writer", ROWS, next.fetch_add(ROWS, Ordering::SeqCst)).await;
            appends += 1;
        }
        appends
    };
    let begun = Instant::now();
    let merges = async {
        let mut answers = join_all(bodies.into_iter().map(|body| work(&scene.services, delivered(body, 1)))).await;
        // What was sent for later, one by one: the clock that they wait by must not run away under leases that are held.
        for _ in 0..workers {
            scene.advance_minutes(60);
            let Some(message) = scene.next_message().await else { break };
            answers.push(work(&scene.services, delivered(message.text, 1)).await);
        }
        ended.store(true, Ordering::SeqCst);
        answers
    };
    let (answers, appends) = tokio::join!(merges, writer);
    let took = begun.elapsed();

    let sum = |count: &str| -> u64 {
        let all = answers.iter().filter_map(|answer| answer.counts.get(count));
        all.filter_map(serde_json::Value::as_u64).sum()
    };
    let again = answers.len() - workers;
    let (tries, conflicts) = (sum("tries"), sum("conflicts"));
    let metadata = BlobId::parse(&format!("{LOCATION}/metadata/")).unwrap();
    let blobs: Vec<_> = scene.store.list(&metadata).try_collect().await.unwrap();
    // The writer's manifests and lists are called by numbers alone.
    let ours = |name: &str| name.ends_with(".avro") && name.len() > 36;
    let bytes: u64 = blobs.iter().filter(|blob| ours(&blob.id.key[metadata.key.len()..])).map(|blob| blob.size).sum();
    eprintln!(
        "{workers} workers and {appends} appends in {took:.1?}: {tries} tries ({:.2} a commit), {conflicts} conflicts, {again} merged \
         again; {} bytes of manifests and lists a merged partition",
        tries as f64 / workers as f64,
        bytes / workers as u64
    );

    let done = answers.iter().filter(|answer| answer.outcome == WorkOutcome::Done).count();
    assert_eq!((done, again), (workers, 0), "each is merged once: {answers:#?}");
    // Each partition is one file now, beside those of the writer; no row is lost or there twice.
    let (files, found) = scene.lake.contents().await;
    assert_eq!(files, workers + appends);
    let last = ids + appends as i64 * ROWS;
    assert_eq!(found, (0..last).collect::<Vec<_>>());
    assert_eq!(scene.lake.snapshots().await, before + workers + appends, "one snapshot for each merge and append");
    assert_eq!((scene.queue_length().await, scene.parked().await), (0, vec![]));
}
