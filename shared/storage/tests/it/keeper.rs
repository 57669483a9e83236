//! The thread that keeps a lease, over a store that answers by script.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use firn_model::BlobId;
use firn_storage::{Lease, LeaseError, LeaseId, LeaseKeeper};

/// Answers renewals by script, then with `after` for ever.
#[derive(Debug)]
struct Scripted {
    script: Mutex<Vec<Result<(), LeaseError>>>,
    after: Result<(), LeaseError>,
    renewals: tokio::sync::watch::Sender<usize>,
    released: Mutex<usize>,
}

impl Scripted {
    fn new(mut script: Vec<Result<(), LeaseError>>, after: Result<(), LeaseError>) -> Arc<Self> {
        script.reverse();
        Arc::new(Scripted {
            script: Mutex::new(script),
            after,
            renewals: tokio::sync::watch::channel(0).0,
            released: Mutex::new(0),
        })
    }

    async fn renewed(&self, times: usize) {
        self.renewals.subscribe().wait_for(|count| *count >= times).await.unwrap();
    }
}

#[async_trait]
impl Lease for Scripted {
    async fn acquire(&self, _: &BlobId, _: Duration) -> Result<LeaseId, LeaseError> {
        Ok(LeaseId::new("mine"))
    }

    async fn renew(&self, _: &BlobId, lease: &LeaseId) -> Result<(), LeaseError> {
        assert_eq!(lease.as_str(), "mine");
        let answer = self.script.lock().unwrap().pop().unwrap_or_else(|| self.after.clone());
        self.renewals.send_modify(|count| *count += 1);
        answer
    }

    async fn release(&self, _: &BlobId, _: &LeaseId) -> Result<(), LeaseError> {
        *self.released.lock().unwrap() += 1;
        Ok(())
    }
}

fn id() -> BlobId {
    BlobId::local("/state/inflight/x")
}

fn busy() -> LeaseError {
    LeaseError::Transient { blob: Box::new(id()), detail: "busy".into() }
}

fn keep(store: &Arc<Scripted>, lasts: Duration) -> LeaseKeeper {
    let lease: Arc<dyn Lease> = store.clone();
    LeaseKeeper::hold_renewing(lease, id(), LeaseId::new("mine"), lasts, Duration::from_millis(2)).unwrap()
}

async fn until_lost(keeper: &LeaseKeeper) {
    while !keeper.is_lost() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn errors_that_pass_are_survived() {
    let denied = LeaseError::Denied { blob: Box::new(id()), detail: "HTTP 403".into() };
    let store = Scripted::new(vec![Ok(()), Err(busy()), Err(busy()), Err(denied), Ok(()), Err(busy())], Ok(()));
    let keeper = keep(&store, Duration::from_secs(60));
    store.renewed(10).await;
    assert!(!keeper.is_lost());
    keeper.release().await.unwrap();
    assert_eq!(*store.released.lock().unwrap(), 1);
}

#[tokio::test]
async fn a_real_loss_is_flagged_and_ends_the_renewals() {
    let gone = LeaseError::Lost { blob: Box::new(id()) };
    let store = Scripted::new(vec![Ok(()), Err(busy()), Err(gone.clone())], Ok(()));
    let keeper = keep(&store, Duration::from_secs(60));
    let flag = keeper.lost_flag();
    until_lost(&keeper).await;
    assert!(flag.load(std::sync::atomic::Ordering::SeqCst));
    assert_eq!(*store.renewals.borrow(), 3);
    assert_eq!(keeper.release().await, Err(gone));
    assert_eq!(*store.released.lock().unwrap(), 0);
}

#[tokio::test]
async fn a_lease_that_cannot_be_renewed_in_its_time_is_lost() {
    let store = Scripted::new(vec![], Err(busy()));
    let keeper = keep(&store, Duration::from_millis(50));
    until_lost(&keeper).await;
}

#[tokio::test]
async fn a_dropped_keeper_stops_without_giving_the_lease_back() {
    let store = Scripted::new(vec![], Ok(()));
    let keeper = keep(&store, Duration::from_secs(60));
    store.renewed(2).await;
    drop(keeper);
    // The thread holds the store as long as it runs.
    while Arc::strong_count(&store) > 1 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(*store.released.lock().unwrap(), 0);
}

#[test]
fn work_that_blocks_the_runtime_does_not_starve_the_renewals() {
    let store = Scripted::new(vec![], Ok(()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let keeper = keep(&store, Duration::from_secs(60));
        // No await in here: as a merge that forgot to leave the runtime alone.
        while *store.renewals.borrow() < 5 {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(!keeper.is_lost());
    });
}
