//! What every port to leases promises, as plain async functions over one [`LeaseCase`]; run on memory, folder and Azurite.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use firn_model::BlobId;
use firn_storage::{
    BlobStore, Clock, DeleteCondition, Deleted, Lease, LeaseError, LeaseId, LeaseKeeper, LocalStore, MemoryStore,
    PutCondition, StorageError,
};
use futures::TryStreamExt;

use crate::azurite;

const DURATION: Duration = Duration::from_secs(15);

/// Both ports over the same blobs, and a fresh place.
struct LeaseCase {
    store: Arc<dyn BlobStore>,
    lease: Arc<dyn Lease>,
    /// The same blobs as another process sees them.
    other: Arc<dyn BlobStore>,
    other_lease: Arc<dyn Lease>,
    base: BlobId,
    /// None: real time has to pass.
    clock: Option<Clock>,
    _keep: Box<dyn std::any::Any + Send + Sync>,
}

impl LeaseCase {
    async fn blob(&self, name: &str) -> BlobId {
        let id = self.base.with_key(format!("{}{name}", self.base.key));
        self.store.put(&id, Bytes::from_static(b"1"), PutCondition::IfAbsent).await.unwrap();
        id
    }

    async fn pass(&self, time: Duration) {
        match &self.clock {
            Some(clock) => clock.advance(time),
            None => tokio::time::sleep(time).await,
        }
    }

    async fn write(&self, id: &BlobId, lease: Option<&LeaseId>) -> Result<(), StorageError> {
        let data = Bytes::from_static(b"2");
        self.store.put_leased(id, data, PutCondition::Any, lease).await.map(|_| ())
    }
}

fn leased(id: &BlobId) -> StorageError {
    StorageError::Leased { blob: Box::new(id.clone()) }
}

fn lost(id: &BlobId) -> LeaseError {
    LeaseError::Lost { blob: Box::new(id.clone()) }
}

fn held(id: &BlobId) -> LeaseError {
    LeaseError::Held { blob: Box::new(id.clone()) }
}

async fn a_lease_excludes_others_until_released(case: &LeaseCase) {
    let id = case.blob("excluded").await;
    let lease = case.lease.acquire(&id, DURATION).await.unwrap();
    assert_eq!(case.lease.acquire(&id, DURATION).await, Err(held(&id)));
    assert_eq!(case.other_lease.acquire(&id, DURATION).await, Err(held(&id)));
    case.lease.renew(&id, &lease).await.unwrap();
    case.lease.release(&id, &lease).await.unwrap();
    assert_eq!(case.lease.release(&id, &lease).await, Err(lost(&id)));
    assert_eq!(case.lease.renew(&id, &lease).await, Err(lost(&id)));
    let next = case.other_lease.acquire(&id, DURATION).await.unwrap();
    assert_ne!(next, lease);
    assert_eq!(case.lease.acquire(&id, DURATION).await, Err(held(&id)));
    case.other_lease.release(&id, &next).await.unwrap();
}

async fn a_leased_blob_is_read_by_all_and_written_by_its_holder(case: &LeaseCase) {
    let id = case.blob("written").await;
    let lease = case.lease.acquire(&id, DURATION).await.unwrap();
    let foreign = LeaseId::new("00000000-0000-4000-8000-000000000001");
    assert_eq!(case.write(&id, None).await, Err(leased(&id)));
    assert_eq!(case.write(&id, Some(&foreign)).await, Err(leased(&id)));
    for store in [&case.store, &case.other] {
        let put = store.put(&id, Bytes::from_static(b"3"), PutCondition::Any).await;
        assert_eq!(put.map(|_| ()), Err(leased(&id)));
        assert_eq!(store.delete(&id).await, Err(leased(&id)));
        let create = store.put(&id, Bytes::new(), PutCondition::IfAbsent).await;
        assert_eq!(create.map(|_| ()), Err(StorageError::AlreadyExists { blob: Box::new(id.clone()) }));
        assert_eq!(store.read_all(&id).await.unwrap(), "1");
    }
    case.write(&id, Some(&lease)).await.unwrap();
    assert_eq!(case.other.read_all(&id).await.unwrap(), "2");
    case.lease.renew(&id, &lease).await.unwrap();

    let etag = case.store.properties(&id).await.unwrap().etag;
    let put = |etag: &str| {
        let (data, condition) = (Bytes::from_static(b"4"), PutCondition::IfMatch(etag.into()));
        case.store.put_leased(&id, data, condition, Some(&lease))
    };
    let written = put(&etag).await.unwrap();
    let stale = put(&etag).await.unwrap_err();
    assert!(matches!(stale, StorageError::Precondition { .. }), "{stale:?}");
    let delete = |etag: &str| case.store.delete_leased(&id, DeleteCondition::IfMatch(etag.into()), Some(&lease));
    let stale = delete(&etag).await.unwrap_err();
    assert!(matches!(stale, StorageError::Precondition { .. }), "{stale:?}");
    assert_eq!(delete(&written.etag).await, Ok(Deleted::Deleted));
    assert_eq!(delete(&written.etag).await, Ok(Deleted::Absent));
    assert_eq!(case.lease.renew(&id, &lease).await, Err(lost(&id)));
    assert_eq!(case.lease.release(&id, &lease).await, Err(lost(&id)));
    // A blob made anew is free.
    case.blob("written").await;
    case.write(&id, None).await.unwrap();
}

async fn a_condition_without_a_lease_deletes_what_it_names(case: &LeaseCase) {
    let id = case.blob("named").await;
    let etag = case.store.properties(&id).await.unwrap().etag;
    case.write(&id, None).await.unwrap();
    let delete = |etag: String| case.store.delete_leased(&id, DeleteCondition::IfMatch(etag), None);
    let stale = delete(etag).await.unwrap_err();
    assert!(matches!(stale, StorageError::Precondition { .. }), "{stale:?}");
    let etag = case.store.properties(&id).await.unwrap().etag;
    assert_eq!(delete(etag).await, Ok(Deleted::Deleted));
}

async fn what_is_not_there_cannot_be_leased(case: &LeaseCase) {
    let id = case.base.with_key(format!("{}no/such", case.base.key));
    assert_eq!(case.lease.acquire(&id, DURATION).await, Err(LeaseError::NotFound { blob: Box::new(id.clone()) }));
    let blob = case.blob("there").await;
    for wrong in [Duration::from_secs(14), Duration::from_secs(61)] {
        let error = case.lease.acquire(&blob, wrong).await.unwrap_err();
        assert!(matches!(error, LeaseError::Other { .. }), "{error:?}");
    }
    // A lease that was never there protects nothing.
    let never = LeaseId::new("00000000-0000-4000-8000-000000000002");
    assert_eq!(case.write(&blob, Some(&never)).await, Err(leased(&blob)));
    assert_eq!(case.lease.renew(&blob, &never).await, Err(lost(&blob)));
}

async fn a_lease_lasts_from_its_last_renewal(case: &LeaseCase) {
    let (id, written) = (case.blob("renewed").await, case.blob("rewritten").await);
    let lease = case.lease.acquire(&id, DURATION).await.unwrap();
    let unused = case.lease.acquire(&written, DURATION).await.unwrap();
    case.pass(Duration::from_secs(10)).await;
    case.lease.renew(&id, &lease).await.unwrap();
    case.pass(Duration::from_secs(7)).await;
    // 17 s after it was taken, 7 s after it was renewed.
    assert_eq!(case.other_lease.acquire(&id, DURATION).await, Err(held(&id)));
    // Not renewed, so it ran out; a write by anybody ends it.
    assert_eq!(case.write(&written, Some(&unused)).await, Err(leased(&written)));
    case.write(&written, None).await.unwrap();
    assert_eq!(case.lease.renew(&written, &unused).await, Err(lost(&written)));
    case.pass(Duration::from_secs(9)).await;
    // 16 s after the renewal.
    let next = case.other_lease.acquire(&id, DURATION).await.unwrap();
    assert_eq!(case.lease.renew(&id, &lease).await, Err(lost(&id)));
    assert_eq!(case.write(&id, Some(&lease)).await, Err(leased(&id)));
    assert_eq!(case.lease.release(&id, &lease).await, Err(lost(&id)));
    case.other_lease.renew(&id, &next).await.unwrap();
}

async fn a_keeper_holds_until_it_is_released(case: &LeaseCase) {
    let id = case.blob("kept").await;
    let lease = case.lease.acquire(&id, DURATION).await.unwrap();
    let keep = LeaseKeeper::hold(case.lease.clone(), id.clone(), lease.clone(), DURATION).unwrap();
    assert_eq!(case.other_lease.acquire(&id, DURATION).await, Err(held(&id)));
    case.write(&id, Some(&lease)).await.unwrap();
    assert!(!keep.is_lost());
    keep.release().await.unwrap();
    let next = case.other_lease.acquire(&id, DURATION).await.unwrap();
    case.other_lease.release(&id, &next).await.unwrap();
}

async fn leases_do_not_show_in_listings(case: &LeaseCase) {
    let id = case.blob("listed").await;
    let lease = case.lease.acquire(&id, DURATION).await.unwrap();
    let listed: Vec<_> = case.store.list(&case.base).map_ok(|blob| blob.id).try_collect().await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&id));
    case.lease.release(&id, &lease).await.unwrap();
}

macro_rules! lease_tests {
    ($module:ident, $case:expr) => {
        mod $module {
            lease_tests!($case;
                a_lease_excludes_others_until_released, a_leased_blob_is_read_by_all_and_written_by_its_holder,
                a_condition_without_a_lease_deletes_what_it_names, what_is_not_there_cannot_be_leased,
                a_lease_lasts_from_its_last_renewal, a_keeper_holds_until_it_is_released, leases_do_not_show_in_listings,
            );
        }
    };
    ($case:expr; $($name:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&$case.await).await;
            }
        )*
    };
}

lease_tests!(memory, super::in_memory());
lease_tests!(local, super::in_a_folder());
lease_tests!(azure, super::in_azurite());

async fn in_memory() -> LeaseCase {
    let clock = Clock::manual(DateTime::<Utc>::UNIX_EPOCH);
    let store = MemoryStore::with_clock(clock.clone());
    let base = BlobId::parse("abfss://firn-state@acct.dfs.core.windows.net/inflight/").unwrap();
    let (one, other) = (Arc::new(store.clone()), Arc::new(store));
    LeaseCase {
        store: one.clone(),
        lease: one,
        other: other.clone(),
        other_lease: other,
        base,
        clock: Some(clock),
        _keep: Box::new(()),
    }
}

async fn in_a_folder() -> LeaseCase {
    let clock = Clock::manual(Utc::now());
    let folder = tempfile::tempdir().unwrap();
    let base = BlobId::local(format!("{}/", folder.path().display()));
    let (one, other) =
        (Arc::new(LocalStore::with_clock(clock.clone())), Arc::new(LocalStore::with_clock(clock.clone())));
    LeaseCase {
        store: one.clone(),
        lease: one,
        other: other.clone(),
        other_lease: other,
        base,
        clock: Some(clock),
        _keep: Box::new(folder),
    }
}

async fn in_azurite() -> LeaseCase {
    let one = azurite::store(Default::default());
    let base = azurite::new_container(&one).await.with_key("inflight/");
    let (one, other) = (Arc::new(one), Arc::new(azurite::store(Default::default())));
    LeaseCase {
        store: one.clone(),
        lease: one,
        other: other.clone(),
        other_lease: other,
        base,
        clock: None,
        _keep: Box::new(()),
    }
}

#[tokio::test]
async fn a_dead_process_loses_its_lease_of_a_file() {
    let case = in_a_folder().await;
    let id = case.blob("orphaned").await;
    let dying = LocalStore::new();
    let lease = dying.acquire(&id, DURATION).await.unwrap();
    assert_eq!(case.lease.acquire(&id, DURATION).await, Err(held(&id)));
    assert_eq!(case.write(&id, None).await, Err(leased(&id)));
    // As the system does with the files of a process that ends.
    drop(dying);
    case.write(&id, None).await.unwrap();
    let next = case.lease.acquire(&id, DURATION).await.unwrap();
    assert_ne!(next, lease);
    case.lease.release(&id, &next).await.unwrap();
    let names: Vec<_> = std::fs::read_dir(&case.base.key).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["orphaned"]);
}
