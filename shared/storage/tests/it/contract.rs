//! What every blob store promises, as plain async functions over one [`Case`].

use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use firn_model::BlobId;
use firn_storage::crc::crc64;
use firn_storage::{BlobStore, BlobUpload, Deleted, ListedBlob, PutCondition, StorageError};
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt};

/// A store and a fresh place in it.
pub(crate) struct Case {
    pub(crate) store: Box<dyn BlobStore>,
    /// A folder without blobs; its key ends with a slash.
    pub(crate) base: BlobId,
    /// The size at which an upload starts another block, where there is such a size.
    pub(crate) block: usize,
    /// Whatever must live as long as the store.
    pub(crate) _keep: Box<dyn std::any::Any>,
}

impl Case {
    fn id(&self, name: &str) -> BlobId {
        self.base.with_key(format!("{}{name}", self.base.key))
    }

    async fn put(&self, name: &str, data: &'static str) -> BlobId {
        let id = self.id(name);
        self.store.put(&id, Bytes::from_static(data.as_bytes()), PutCondition::IfAbsent).await.unwrap();
        id
    }

    async fn list(&self, prefix: &str) -> Vec<ListedBlob> {
        let mut listed: Vec<_> = self.store.list(&self.id(prefix)).try_collect().await.unwrap();
        listed.sort_by(|a, b| a.id.cmp(&b.id));
        listed
    }

    async fn names(&self, prefix: &str) -> Vec<String> {
        let name = |blob: ListedBlob| blob.id.key.strip_prefix(&self.base.key).unwrap().to_owned();
        self.list(prefix).await.into_iter().map(name).collect()
    }
}

/// Runs every function of the contract as a test of its own over cases from `$case`.
macro_rules! contract_tests {
    ($case:expr) => {
        $crate::contract::contract_tests!($case;
            what_is_put_is_read, ranges_are_exact, absent_blobs_are_told, an_existing_blob_is_not_created_again,
            if_match_writes_over_the_version_it_names, of_many_creators_one_wins, no_increment_is_lost,
            uploads_of_every_length_are_whole, an_upload_is_invisible_until_complete, an_upload_does_not_replace,
            of_two_uploads_one_is_whole, a_listing_is_by_prefix, any_name_goes_the_whole_way, a_delete_tells_what_it_found,
            every_write_has_an_etag_of_its_own,
        );
    };
    ($case:expr; $($name:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::contract::$name(&$case.await).await;
            }
        )*
    };
}
pub(crate) use contract_tests;

pub(crate) async fn what_is_put_is_read(case: &Case) {
    let id = case.id("a/b.bin");
    let data = Bytes::from_static(b"0123456789");
    let put = case.store.put(&id, data.clone(), PutCondition::Any).await.unwrap();
    assert_eq!((put.size, put.crc64), (10, Some(crc64(&data))));
    let found = case.store.properties(&id).await.unwrap();
    assert_eq!((found.size, &found.etag, found.last_modified), (10, &put.etag, put.last_modified));
    assert!((Utc::now() - found.last_modified).abs() < TimeDelta::minutes(5), "{}", found.last_modified);
    assert!(found.crc64.is_none_or(|crc| crc == crc64(&data)));
    assert_eq!(case.store.read_all(&id).await.unwrap(), data);
    assert!(case.store.exists(&id).await.unwrap());

    case.store.put(&id, Bytes::from_static(b"other"), PutCondition::Any).await.unwrap();
    assert_eq!(case.store.read_all(&id).await.unwrap(), "other");

    let empty = case.id("empty");
    case.store.put(&empty, Bytes::new(), PutCondition::Any).await.unwrap();
    assert_eq!(case.store.read_all(&empty).await.unwrap(), "");
    assert_eq!(case.store.properties(&empty).await.unwrap().size, 0);
}

pub(crate) async fn ranges_are_exact(case: &Case) {
    let id = case.put("ranged", "0123456789").await;
    for (range, expected) in
        [(0..10, "0123456789"), (0..1, "0"), (9..10, "9"), (3..7, "3456"), (4..4, ""), (10..10, "")]
    {
        assert_eq!(case.store.read(&id, range).await.unwrap(), expected);
    }
    let reversed = std::ops::Range { start: 5, end: 4 };
    for range in [0..11, 5..11, 10..11, 11..12, 1000..2000, reversed] {
        let error = case.store.read(&id, range.clone()).await.unwrap_err();
        assert_eq!(error, StorageError::OutOfRange { blob: Box::new(id.clone()), range, size: 10 });
    }
    let empty = case.put("empty", "").await;
    let error = case.store.read(&empty, 0..4).await.unwrap_err();
    assert_eq!(error, StorageError::OutOfRange { blob: Box::new(empty), range: 0..4, size: 0 });
}

pub(crate) async fn absent_blobs_are_told(case: &Case) {
    let id = case.id("no/such");
    let gone = || StorageError::NotFound { blob: Box::new(id.clone()) };
    assert_eq!(case.store.read(&id, 0..1).await.unwrap_err(), gone());
    assert_eq!(case.store.read_all(&id).await.unwrap_err(), gone());
    assert_eq!(case.store.properties(&id).await.unwrap_err(), gone());
    assert!(!case.store.exists(&id).await.unwrap());
    assert!(!gone().is_retryable());
}

pub(crate) async fn an_existing_blob_is_not_created_again(case: &Case) {
    let id = case.put("once", "first").await;
    let error = case.store.put(&id, Bytes::from_static(b"second"), PutCondition::IfAbsent).await.unwrap_err();
    assert_eq!(error, StorageError::AlreadyExists { blob: Box::new(id.clone()) });
    assert_eq!(case.store.read_all(&id).await.unwrap(), "first");
}

pub(crate) async fn if_match_writes_over_the_version_it_names(case: &Case) {
    let id = case.id("versioned");
    let write = |data: &'static str, condition| case.store.put(&id, Bytes::from_static(data.as_bytes()), condition);
    let is_precondition = |error| matches!(error, StorageError::Precondition { blob, .. } if *blob == id);

    let first = write("1", PutCondition::Any).await.unwrap();
    let second = write("2", PutCondition::IfMatch(first.etag.clone())).await.unwrap();
    assert_ne!(first.etag, second.etag);
    assert!(is_precondition(write("3", PutCondition::IfMatch(first.etag)).await.unwrap_err()));
    assert_eq!(case.store.read_all(&id).await.unwrap(), "2");
    case.store.delete(&id).await.unwrap();
    assert!(is_precondition(write("4", PutCondition::IfMatch(second.etag)).await.unwrap_err()));
    assert!(!case.store.exists(&id).await.unwrap());
}

pub(crate) async fn every_write_has_an_etag_of_its_own(case: &Case) {
    let id = case.id("etags");
    let mut etags = Vec::new();
    for _ in 0..20 {
        etags.push(case.store.put(&id, Bytes::from_static(b"same"), PutCondition::Any).await.unwrap().etag);
    }
    etags.sort();
    etags.dedup();
    assert_eq!(etags.len(), 20);
}

pub(crate) async fn of_many_creators_one_wins(case: &Case) {
    let id = case.id("race");
    let creators = (0..8).map(|n: u8| case.store.put(&id, Bytes::from(vec![n; 1000]), PutCondition::IfAbsent));
    let results = join_all(creators).await;
    let winners: Vec<_> =
        results.iter().enumerate().filter(|(_, result)| result.is_ok()).map(|(n, _)| n as u8).collect();
    let [winner] = winners[..] else { panic!("{results:?}") };
    assert!(
        results
            .iter()
            .flat_map(|result| result.as_ref().err())
            .all(|e| matches!(e, StorageError::AlreadyExists { .. }))
    );
    assert_eq!(case.store.read_all(&id).await.unwrap(), vec![winner; 1000]);
}

pub(crate) async fn no_increment_is_lost(case: &Case) {
    let id = case.put("counter", "00").await;
    let increment = async || {
        loop {
            // The ETag first: what is read afterwards is at least as new.
            let etag = case.store.properties(&id).await.unwrap().etag;
            let text = case.store.read_all(&id).await.unwrap();
            let next: u32 = str::from_utf8(&text).unwrap().parse::<u32>().unwrap() + 1;
            let data = Bytes::from(format!("{next:02}"));
            match case.store.put(&id, data, PutCondition::IfMatch(etag)).await {
                Ok(_) => return,
                Err(StorageError::Precondition { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    join_all((0..6).map(|_| async {
        for _ in 0..5 {
            increment().await;
        }
    }))
    .await;
    assert_eq!(case.store.read_all(&id).await.unwrap(), "30");
}

async fn write_all(upload: &mut Box<dyn BlobUpload>, data: &[u8], piece: usize) {
    for piece in data.chunks(piece) {
        upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
}

pub(crate) async fn uploads_of_every_length_are_whole(case: &Case) {
    let block = case.block;
    for length in [0, 1, block - 1, block, block + 1, 2 * block, 3 * block + 7] {
        for piece in [block / 3, block, 2 * block + 1] {
            let data: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let id = case.id(&format!("upload-{length}-{piece}"));
            let mut upload = case.store.upload(&id).await.unwrap();
            write_all(&mut upload, &data, piece).await;
            let written = upload.complete().await.unwrap();
            assert_eq!((written.size, written.crc64), (length as u64, Some(crc64(&data))), "{length} by {piece}");
            assert!(case.store.read_all(&id).await.unwrap() == data, "{length} by {piece}");
            let found = case.store.properties(&id).await.unwrap();
            assert_eq!((found.size, found.etag), (length as u64, written.etag));
        }
    }
}

pub(crate) async fn an_upload_is_invisible_until_complete(case: &Case) {
    let data = vec![7; 2 * case.block + 5];
    for end in ["abort", "drop", "complete"] {
        let id = case.id(&format!("hidden/{end}"));
        let mut upload = case.store.upload(&id).await.unwrap();
        write_all(&mut upload, &data, case.block).await;
        assert!(!case.store.exists(&id).await.unwrap());
        assert_eq!(case.names("hidden/").await, [""; 0]);
        match end {
            "abort" => upload.abort().await,
            "drop" => drop(upload),
            _ => _ = upload.complete().await.unwrap(),
        }
        assert_eq!(case.store.exists(&id).await.unwrap(), end == "complete");
    }
    assert_eq!(case.names("hidden/").await, ["hidden/complete"]);
}

pub(crate) async fn an_upload_does_not_replace(case: &Case) {
    let id = case.put("taken", "first").await;
    for length in [0, 10, 2 * case.block] {
        let mut upload = case.store.upload(&id).await.unwrap();
        write_all(&mut upload, &vec![1; length], case.block).await;
        let error = upload.complete().await.unwrap_err();
        assert_eq!(error, StorageError::AlreadyExists { blob: Box::new(id.clone()) });
        assert_eq!(case.store.read_all(&id).await.unwrap(), "first");
    }
}

pub(crate) async fn of_two_uploads_one_is_whole(case: &Case) {
    let id = case.id("both");
    let contents = [vec![1; 2 * case.block + 3], vec![2; 3 * case.block]];
    let mut uploads = [case.store.upload(&id).await.unwrap(), case.store.upload(&id).await.unwrap()];
    for start in [0, case.block, 2 * case.block] {
        for (upload, content) in uploads.iter_mut().zip(&contents) {
            let end = content.len().min(start + case.block);
            upload.write(Bytes::copy_from_slice(&content[start..end])).await.unwrap();
        }
    }
    let results = join_all(uploads.map(|upload| upload.complete())).await;
    let winner = match &results[..] {
        [Ok(_), Err(StorageError::AlreadyExists { .. })] => 0,
        [Err(StorageError::AlreadyExists { .. }), Ok(_)] => 1,
        _ => panic!("{results:?}"),
    };
    assert!(case.store.read_all(&id).await.unwrap() == contents[winner]);
}

pub(crate) async fn a_listing_is_by_prefix(case: &Case) {
    for (name, data) in
        [("orders/a", "1"), ("orders/b/c", "22"), ("orders/b/d/e", "333"), ("orders_2/a", "4444"), ("other", "")]
    {
        case.put(name, data).await;
    }
    assert_eq!(case.names("orders/").await, ["orders/a", "orders/b/c", "orders/b/d/e"]);
    assert_eq!(case.names("orders").await, ["orders/a", "orders/b/c", "orders/b/d/e", "orders_2/a"]);
    assert_eq!(case.names("orders/b").await, ["orders/b/c", "orders/b/d/e"]);
    assert_eq!(case.names("orders/b/d/e").await, ["orders/b/d/e"]);
    assert_eq!(case.names("orders/b/d/e/").await, [""; 0]);
    assert_eq!(case.names("nothing/here/").await, [""; 0]);
    assert_eq!(case.names("").await.len(), 5);
    for listed in case.list("").await {
        let found = case.store.properties(&listed.id).await.unwrap();
        assert_eq!((listed.size, listed.etag, listed.last_modified), (found.size, found.etag, found.last_modified));
    }
}

/// Names that stores, URLs and signatures have stumbled over.
pub(crate) const NAMES: &[&str] = &[
    "a b",
    "a%20b",
    "a%2Fb",
    "%",
    "100%",
    "%zz",
    "%25",
    "a#b",
    "##",
    "a?b",
    "?",
    "a+b",
    "a&b=c",
    "day=2026-11-01/x",
    "a;b,c",
    "a:b@c",
    "$x!'()*",
    "[a]{b}|^`",
    "\"<a>\"",
    "ünï/çødé",
    "日本/語",
    "\u{1F600}",
    "\u{F028}",
    "dot.",
    "..a",
    "a..",
    ".hidden",
    "_hidden",
    "~a",
    " lead",
    "trail ",
];

pub(crate) async fn any_name_goes_the_whole_way(case: &Case) {
    for name in NAMES {
        let name = &format!("names/{name}");
        let id = case.put(name, "content").await;
        let found = case.store.properties(&id).await.unwrap_or_else(|error| panic!("{name:?}: {error}"));
        assert_eq!(found.size, 7, "{name:?}");
        assert_eq!(case.store.read(&id, 1..4).await.unwrap(), "ont", "{name:?}");
        assert!(case.names("names/").await.contains(name), "{name:?}");
        assert_eq!(case.names(name).await, [name.as_str()]);
    }
    assert_eq!(case.names("names/").await.len(), NAMES.len());
    for name in NAMES {
        let id = case.id(&format!("names/{name}"));
        assert_eq!(case.store.delete(&id).await.unwrap(), Deleted::Deleted, "{name:?}");
        assert_eq!(case.store.delete(&id).await.unwrap(), Deleted::Absent, "{name:?}");
    }
    assert_eq!(case.store.list(&case.id("names/")).next().await, None);
}

pub(crate) async fn a_delete_tells_what_it_found(case: &Case) {
    let id = case.put("doomed", "x").await;
    assert_eq!(case.store.delete(&id).await.unwrap(), Deleted::Deleted);
    assert_eq!(case.store.delete(&id).await.unwrap(), Deleted::Absent);
    assert_eq!(case.store.delete(&case.id("never/was")).await.unwrap(), Deleted::Absent);
    case.put("doomed", "again").await;
    assert_eq!(case.store.read_all(&id).await.unwrap(), "again");
}
