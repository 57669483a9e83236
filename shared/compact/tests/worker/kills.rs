//! A worker killed right after each numbered step: what it leaves is taken up by the next delivery.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use firn_columnar::StopFlag;
use firn_compact::worker::DIE_AT_STEP;
use firn_compact::{Delivered, HostServices, MemoryBudget, NoFanOut, Services, WorkOutcome, work};
use firn_config::Config;
use firn_model::BlobId;
use firn_state::{StateRoot, StateStore};
use firn_storage::{Clock, LocalStore, MemoryQueue, Queue};
use firn_table::TableStore;
use firn_telemetry::Emitter;

use crate::lake::{Lake, by_p};

/// The folder of the scene, for the process that is to die.
const FOLDER: &str = "FIRN_TEST_KILLED_IN";
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
    let answer = work(&services(folder, &lake).await, delivered(1)).await;
    panic!("it should have died: {answer:?}");
}

#[tokio::test]
async fn a_kill_at_each_step_loses_nothing_and_the_next_delivery_converges() {
    for step in 1..=7 {
        let folder = tempfile::tempdir().unwrap();
        let location = format!("file://{}/wh/db/t", folder.path().display());
        let lake = Lake::create(folder.path(), Arc::new(LocalStore::new()), &location, by_p(), &[]).await;
        lake.append("a", 4, 10, 0).await;
        let died = Command::new(std::env::current_exe().unwrap())
            .args(["kills::worker_that_dies", "--exact"])
            .env(FOLDER, folder.path())
            .env(DIE_AT_STEP, step.to_string())
            .output()
            .unwrap();
        assert_eq!(died.status.code(), None, "ended by a signal at step {step}: {died:?}");

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
