//! A worker killed right after each numbered step: what it leaves is taken up by the next delivery.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use firn_columnar::StopFlag;
use firn_compact::worker::DIE_AT_STEP;
use firn_compact::{Delivered, HostServices, MemoryBudget, NoFanOut, Services, WorkOutcome, work};
use firn_config::Config;
use firn_model::{BlobId, Rule};
use firn_state::{InflightRecord, RecordOutcome, StateRoot, StateStore};
use firn_storage::{Clock, LocalStore, MemoryQueue, Queue};
use firn_table::TableStore;
use firn_telemetry::Emitter;
use uuid::Uuid;

use crate::faulty_catalog::{FaultyCatalog, Swap};
use crate::lake::{Lake, by_p};
use crate::scene::{Scene, key};

/// The folder of the scene, for the process that is to die.
const FOLDER: &str = "FIRN_TEST_KILLED_IN";
/// The message that the process gets; without, [`BODY`].
const MESSAGE: &str = "FIRN_TEST_MESSAGE";
const BODY: &str = "{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"},\"rule\":\"full\"}";

async fn services(folder: &Path, lake: &Lake) -> HostServices {
    let store = Arc::new(LocalStore::new());
    let queue = MemoryQueue::new("firn-compact");
    queue.create().await.unwrap();
    let text = format!(
        "catalog: {{ type: sql, uri: \"sqlite:///{}\", name: lake, warehouse: \"file:///wh\" }}\n\
         ingestion: {{ datasets: [ {{ name: readings, table: db.t, compaction: {{ memoryMb: 128 }} }} ] }}\n",
        lake.database.display()
    );
    let root = StateRoot::new(BlobId::local(folder.join("firn-state").display().to_string()));
    HostServices {
        compact: Services {
            catalog: lake.catalog.clone(),
            temp_root: folder.to_path_buf(),
            threads: 1,
            stop: StopFlag::default(),
        },
        state: Arc::new(StateStore::new(store.clone(), store, root)),
        queue: Arc::new(queue),
        poison: Arc::new(MemoryQueue::new("firn-compact-poison")),
        config: Arc::new(Config::load(&text, &BTreeMap::new()).unwrap()),
        emitter: Emitter::to(std::io::sink()),
        clock: Clock::system(),
        turns: None,
        memory: MemoryBudget::new(1024),
        run_limit: None,
        fan_out: Arc::new(NoFanOut),
    }
}

fn delivered(dequeue_count: u64) -> Delivered {
    Delivered { body: BODY.into(), dequeue_count, invocation_id: "run".into(), expires: None }
}

/// Not a test of its own: the process that dies. Without a folder there is nothing to do.
#[tokio::test]
async fn worker_that_dies() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    let lake = Lake::open(&folder.join("catalog.db"), TableStore::new(Arc::new(LocalStore::new()))).await;
    let mut services = services(folder, &lake).await;
    let mut message = delivered(1);
    if let Ok(body) = std::env::var(MESSAGE) {
        // No commit comes through, so that the work ends with a message for later.
        let catalog = FaultyCatalog::new(lake.catalog.clone());
        catalog.swaps(Swap::Conflict);
        services.compact.catalog = catalog;
        message.body = body.into();
    }
    let answer = work(&services, message).await;
    panic!("it should have died: {answer:?}");
}

fn die(folder: &Path, step: u32, message: Option<&str>) {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["kills::worker_that_dies", "--exact"]).env(FOLDER, folder).env(DIE_AT_STEP, step.to_string());
    let died = process.envs(message.map(|text| (MESSAGE, text))).output().unwrap();
    assert_eq!(died.status.code(), None, "ended by a signal at step {step}: {died:?}");
}

#[tokio::test]
async fn a_kill_at_each_step_loses_nothing_and_the_next_delivery_converges() {
    for step in 1..=7 {
        let folder = tempfile::tempdir().unwrap();
        let location = format!("file://{}/wh/db/t", folder.path().display());
        let lake = Lake::create(folder.path(), Arc::new(LocalStore::new()), &location, by_p(), &[]).await;
        lake.append("a", 4, 10, 0).await;
        die(folder.path(), step, None);

        let services = services(folder.path(), &lake).await;
        let records = services.state.list_inflight(None).await.unwrap();
        let left = match records.first() {
            Some(listed) => services.state.read_listed(listed).await.unwrap().map(|read| read.value),
            None => None,
        };
        match &left {
            Some(record) => {
                assert_eq!(record.attempts, 1, "the start is counted at step {step}");
                let at = record.step.clone().unwrap_or_default();
                assert!(at.starts_with(&format!("{step} ")), "{at} at step {step}");
            }
            None => assert_eq!(step, 7, "the outcome of finished work is that there is no record"),
        }
        let (files, ids) = lake.contents().await;
        let committed = step >= 6;
        assert_eq!((files, ids), (if committed { 1 } else { 4 }, (0..40).collect::<Vec<i64>>()), "step {step}");

        let answer = work(&services, delivered(2)).await;
        let expected = if committed { WorkOutcome::Left } else { WorkOutcome::Done };
        assert_eq!((answer.outcome, answer.fault), (expected, false), "step {step}: {answer:?}");
        assert_eq!(lake.contents().await, (1, (0..40).collect()), "step {step}");
        assert_eq!(lake.snapshots().await, 5, "merged once at step {step}");
        assert!(services.state.list_inflight(None).await.unwrap().is_empty(), "step {step}");
        assert!(services.state.list_parked().await.unwrap().is_empty(), "step {step}");
        assert_eq!(services.queue.length().await.unwrap(), 0);
    }
}

/// The work ends with a message for later, and the worker dies before that message is sent (step 7), or before it is noted (step 8).
#[tokio::test]
async fn a_kill_around_the_message_for_later_leaves_a_record_that_the_planner_sends_again() {
    for step in [7, 8] {
        let folder = tempfile::tempdir().unwrap();
        let location = format!("file://{}/wh/db/t", folder.path().display());
        let lake = Lake::create(folder.path(), Arc::new(LocalStore::new()), &location, by_p(), &[]).await;
        lake.append("a", 4, 10, 0).await;
        let services = services(folder.path(), &lake).await;
        let now = services.clock.now();
        let planned = InflightRecord::new(&Scene::selection("a", Rule::Full, ""), Uuid::new_v4(), now).sent(now);
        let fingerprint = key("a").fingerprint(&lake.load().await.uuid());
        let address = services.state.root().inflight("readings", &fingerprint);
        services.state.create(&address, &planned).await.unwrap();
        let text = planned.message().to_json().unwrap();
        die(folder.path(), step, Some(&text));

        let left = services.state.read(&address).await.unwrap().unwrap().value;
        assert_ne!(left.generation, planned.generation, "step {step}: {left:?}");
        assert_eq!((left.outcome, left.retries, left.sent_at), (Some(RecordOutcome::Retry), 1, None), "step {step}");
        assert_eq!(lake.contents().await, (4, (0..40).collect::<Vec<i64>>()), "step {step}");
        let before = lake.snapshots().await;
        // The host delivers the old message again: it no longer counts.
        let redelivered = Delivered { body: text.into(), dequeue_count: 2, ..delivered(2) };
        assert_eq!(work(&services, redelivered).await.outcome, WorkOutcome::Superseded, "step {step}");
        // Written and not noted as sent: the planner sends it, and a message that was sent after all would be the same.
        let message = Delivered { body: left.message().to_json().unwrap().into(), ..delivered(1) };
        assert_eq!(work(&services, message).await.outcome, WorkOutcome::Done, "step {step}");
        assert_eq!(lake.contents().await, (1, (0..40).collect()), "step {step}");
        assert_eq!(lake.snapshots().await, before + 1, "merged once at step {step}");
        assert!(services.state.list_inflight(None).await.unwrap().is_empty(), "step {step}");
        assert!(services.state.list_parked().await.unwrap().is_empty(), "step {step}");
    }
}
