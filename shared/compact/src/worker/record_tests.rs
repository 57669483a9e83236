use std::time::Duration;

use chrono::{TimeZone, Utc};
use firn_model::{BlobId, Rule};
use firn_state::{Selection, StateRoot};
use firn_storage::{Clock, Lease, MemoryStore};
use uuid::Uuid;

use super::*;
use crate::control::GroupPlace;

struct Scene {
    clock: Clock,
    store: MemoryStore,
    state: Arc<StateStore>,
    address: Address<InflightRecord>,
    process: StopFlag,
}

impl Scene {
    fn new() -> Self {
        let clock = Clock::manual(Utc.with_ymd_and_hms(2026, 11, 30, 6, 0, 0).unwrap());
        let store = MemoryStore::with_clock(clock.clone());
        let root = StateRoot::new(BlobId::parse("abfss://firn-state@acct.dfs.core.windows.net/state").unwrap());
        let state = Arc::new(StateStore::new(Arc::new(store.clone()), Arc::new(store.clone()), root));
        let address = state.root().inflight("readings", "ab12");
        Self { clock, store, state, address, process: StopFlag::default() }
    }

    /// A record under lease, renewed every few milliseconds.
    async fn hold(&self) -> (HeldRecord, LeaseId) {
        let selection = Selection {
            dataset: "readings".into(),
            partition: serde_json::Map::new(),
            spec_id: 0,
            rule: Rule::Backlog,
            pass: "pass-1".into(),
            inputs_hash: "planned".into(),
        };
        let record = InflightRecord::new(&selection, Uuid::from_u128(1), self.clock.now());
        let version = self.state.create(&self.address, &record).await.unwrap();
        let lease = self.take().await;
        let port: Arc<dyn Lease> = Arc::new(self.store.clone());
        let every = Duration::from_millis(5);
        let blob = self.address.blob().clone();
        let keeper = LeaseKeeper::hold_renewing(port, blob, lease.clone(), Duration::from_secs(60), every).unwrap();
        let read = Read { value: record, version };
        let held =
            HeldRecord::new(self.state.clone(), self.address.clone(), lease.clone(), keeper, read, &self.process);
        (held, lease)
    }

    async fn take(&self) -> LeaseId {
        self.store.acquire(self.address.blob(), Duration::from_secs(60)).await.unwrap()
    }

    async fn record(&self) -> InflightRecord {
        self.state.read(&self.address).await.unwrap().unwrap().value
    }

    /// The lease runs out between two renewals, and another worker has it.
    async fn lose(&self, held: &HeldRecord) -> LeaseId {
        let other = loop {
            self.clock.advance(Duration::from_secs(61));
            if let Ok(lease) = self.store.acquire(self.address.blob(), Duration::from_secs(60)).await {
                break lease;
            }
        };
        while !held.steps.is_lost() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        other
    }
}

fn merging() -> Step {
    Step::Merging(GroupPlace { number: 1, files: 8 })
}

#[tokio::test]
async fn each_step_is_in_the_record_before_its_work() {
    let scene = Scene::new();
    let (held, _) = scene.hold().await;
    held.steps.step(Step::Loaded { inputs_hash: "planned".into() }).await.unwrap();
    assert_eq!(scene.record().await.step.as_deref(), Some("2 loaded"));
    assert!(held.steps.at_the_end().await.same_inputs);
    held.steps.step(Step::Loaded { inputs_hash: "grown".into() }).await.unwrap();
    held.steps.step(merging()).await.unwrap();
    let end = held.steps.at_the_end().await;
    assert_eq!((end.record.inputs_hash.as_str(), end.same_inputs), ("grown", false));
    assert_eq!(scene.record().await, end.record);
    assert_eq!(end.record.step.as_deref(), Some("3 merging, group 1 (8 files)"));
    assert_eq!(held.release().await, Release::Free);
    scene.take().await;
}

#[tokio::test]
async fn a_lost_lease_stops_this_run_alone() {
    let scene = Scene::new();
    let (held, _) = scene.hold().await;
    assert!(!held.steps.stop().is_set());
    scene.lose(&held).await;
    assert!(held.steps.stop().is_set());
    assert!(!scene.process.is_set());
    let refused = held.steps.step(merging()).await.unwrap_err();
    assert_eq!(refused, "the lease of the record was lost before step 3 merging, group 1 (8 files)");
    let error = held.steps.write(|record| record.at_step("x")).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(held.steps.delete().await.unwrap_err().is_conflict());
    assert_eq!(scene.record().await.step, None, "untouched");
    assert_eq!(held.release().await, Release::RunsOut);
}

#[tokio::test]
async fn after_a_lost_lease_that_is_free_again_the_version_decides() {
    let scene = Scene::new();
    let (held, _) = scene.hold().await;
    let other = scene.lose(&held).await;
    scene.store.release(scene.address.blob(), &other).await.unwrap();
    held.steps.write(|record| record.at_step("x")).await.unwrap();
    // Another start: theirs is another version.
    let read = scene.state.read(&scene.address).await.unwrap().unwrap();
    let theirs = InflightRecord { started_at: Some(scene.clock.now()), ..read.value };
    scene.state.replace(&scene.address, &theirs, &read.version, None).await.unwrap();
    assert!(held.steps.write(|record| record.at_step("y")).await.unwrap_err().is_conflict());
    assert!(held.steps.delete().await.unwrap_err().is_conflict());
    assert_eq!(scene.record().await, theirs);
}

#[tokio::test]
async fn a_write_of_our_own_whose_answer_was_lost_is_no_conflict() {
    let scene = Scene::new();
    let (held, lease) = scene.hold().await;
    let read = scene.state.read(&scene.address).await.unwrap().unwrap();
    scene.state.replace(&scene.address, &read.value.at_step("2 loaded"), &read.version, Some(&lease)).await.unwrap();
    held.steps.step(merging()).await.unwrap();
    assert_eq!(scene.record().await.step.as_deref(), Some("3 merging, group 1 (8 files)"));
    held.steps.delete().await.unwrap();
    assert_eq!(scene.state.read(&scene.address).await.unwrap().map(|read| read.value), None);
}

#[tokio::test]
async fn the_end_of_the_process_ends_the_run() {
    let scene = Scene::new();
    let (held, _) = scene.hold().await;
    scene.process.stop();
    assert!(held.steps.stop().is_set());
}
