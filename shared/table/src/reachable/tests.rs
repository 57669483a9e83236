use std::collections::BTreeMap;

use iceberg::TableUpdate;
use iceberg::spec::{BlobMetadata, DataContentType, StatisticsFile};

use super::*;
use crate::expire::{Removal, expire};
use crate::testing::{Commit, LOCATION, Lake, Shape, Written, data, file, tuple};

/// What each file is referred to by, the last word of its path being its name.
async fn walked(walk: &mut ManifestWalk, table: &LoadedTable) -> BTreeMap<String, Vec<RefersBy>> {
    let mut found: BTreeMap<String, Vec<RefersBy>> = BTreeMap::new();
    let map = |reference: &FileReference<'_>| (reference.path.to_owned(), reference.by);
    let each = |seen: Vec<(String, RefersBy)>| {
        for (path, by) in seen {
            found.entry(path.rsplit('/').next().unwrap_or_default().to_owned()).or_default().push(by);
        }
    };
    walk.run(table, map, each).await.unwrap();
    found
}

#[tokio::test]
async fn everything_that_a_table_names_is_reached() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[])).await;
    let first = table.metadata_location.rsplit('/').next().unwrap().to_owned();
    let [a, b] = ["a", "b"].map(|name| data(0, &format!("t/data/{name}.parquet"), tuple([]), 1, |_| {}));
    let table = lake.append(&table, vec![a.clone(), b.clone()]).await;
    let old = table.metadata.current_snapshot_id().unwrap();
    // A snapshot that removes `a`, keeps `b` and has a delete file.
    let deletes = file(DataContentType::PositionDeletes, 0, "t/data/d.parquet", tuple([]), 1, |_| {});
    let mut commit = Commit::new(&table);
    commit.write_manifest(0, false, vec![Written::Deleted(a.file, 1), Written::Existing(b.file, old, 1)]).await;
    commit.write_manifest(0, true, vec![Written::Added(deletes.file)]).await;
    let table = commit.finish(&lake, "main").await;
    let statistics = StatisticsFile {
        snapshot_id: old,
        statistics_path: format!("{LOCATION}/t/metadata/ndv.puffin"),
        file_size_in_bytes: 1,
        file_footer_size_in_bytes: 1,
        key_metadata: None,
        blob_metadata: Vec::<BlobMetadata>::new(),
    };
    let table = lake.update(&table, vec![TableUpdate::SetStatistics { statistics }]).await;

    let mut walk = ManifestWalk::default();
    let found = walked(&mut walk, &table).await;
    let by = |name: &str| found.get(name).cloned().unwrap_or_default();
    assert_eq!(by("b.parquet"), [RefersBy::Head, RefersBy::OlderSnapshot]);
    assert_eq!(by("a.parquet"), [RefersBy::Removed, RefersBy::OlderSnapshot]);
    assert_eq!(by("d.parquet"), [RefersBy::Head]);
    assert_eq!(by("ndv.puffin"), [RefersBy::Statistics]);
    assert_eq!(by("version-hint.text"), [RefersBy::VersionHint]);
    assert_eq!(by(&first), [RefersBy::MetadataLog]);
    assert_eq!(by(table.metadata_location.rsplit('/').next().unwrap()), [RefersBy::Catalog]);
    let count = |wanted| found.values().flatten().filter(|by| **by == wanted).count();
    assert_eq!((count(RefersBy::Snapshot), count(RefersBy::ManifestList)), (2, 3));
    assert_eq!(walk.counts, WalkCounts { snapshots: 2, manifests: 3, entries: 5 });

    // A later version: only what is new.
    let c = data(0, "t/data/c.parquet", tuple([]), 1, |_| {});
    let later = lake.append(&table, vec![c]).await;
    let found = walked(&mut walk, &later).await;
    assert_eq!(found.get("c.parquet"), Some(&vec![RefersBy::Head]));
    assert!(!found.contains_key("a.parquet") && !found.contains_key("ndv.puffin"), "{found:?}");

    // After the expiry of the first snapshot nothing names its statistics, and its list is gone from the references.
    let removal = Removal { snapshots: vec![old], refs: vec![] };
    let expired = expire(&lake.catalog, &later, &removal).await.unwrap();
    let found = walked(&mut ManifestWalk::default(), &expired).await;
    assert!(!found.contains_key("ndv.puffin"), "{found:?}");
    assert_eq!(found.get("a.parquet"), Some(&vec![RefersBy::Removed]), "a manifest of the head still says so");
}

#[tokio::test]
async fn a_manifest_that_cannot_be_read_ends_the_walk() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[])).await;
    let table = lake.append(&table, vec![data(0, "t/data/a.parquet", tuple([]), 1, |_| {})]).await;
    let head = table.metadata.current_snapshot().unwrap().clone();
    let manifest = table.manifests(&head).await.unwrap().remove(0).manifest_path;
    lake.delete(&manifest).await;
    let error = ManifestWalk::default().run(&table, |_| (), |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("cannot read a manifest"), "{error}");
}

#[tokio::test]
async fn what_a_reference_points_to_never_expires() {
    let lake = Lake::new().await;
    let table = lake.create("t", Shape::partitioned(&[])).await;
    let table = lake.append(&table, vec![data(0, "t/data/a.parquet", tuple([]), 1, |_| {})]).await;
    let head = table.metadata.current_snapshot_id().unwrap();
    let error = expire(&lake.catalog, &table, &Removal { snapshots: vec![head], refs: vec![] }).await.unwrap_err();
    assert_eq!(error.to_string(), format!("snapshot {head} would go although `main` points to it"));
}
