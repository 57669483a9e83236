//! Many manifests, and many commits in a row against a naive model of the table.

use std::collections::BTreeMap;

use firn_storage::BlobStore;
use firn_table::commit::replace;
use futures::StreamExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::doubles::{Faulty, meanwhile};
use crate::files::*;
use crate::lake::*;
use crate::look::*;

async fn data_manifests(lake: &Lake) -> usize {
    let table = lake.load().await;
    manifest_files(&table, table.metadata.current_snapshot().unwrap()).await.len()
}

#[tokio::test]
async fn a_thousand_appends_over_three_partitions_become_five_manifests_at_most() {
    let lake = Lake::in_memory(&[]).await;
    let partitions = ["a", "b", "c"];
    // Ten snapshots of a hundred manifests: what a thousand appends leave, without a thousand snapshots.
    for hundred in 0..10 {
        let numbers = hundred * 100..hundred * 100 + 100;
        let data = numbers.map(|n| file(&format!("{}{n}", partitions[n % 3]), partitions[n % 3], 1)).collect();
        lake.commit("main", Change { data, manifest_for_each_file: true, totals: false, ..Change::default() }).await;
    }
    assert_eq!(data_manifests(&lake).await, 1000);
    for p in partitions {
        let names: Vec<String> = live(&lake.load().await, "main").await;
        let inputs: Vec<&str> = names.iter().filter(|name| name.starts_with(p)).map(String::as_str).collect();
        assert!(inputs.len() >= 333);
        let request = lake.request(&inputs, &format!("h{p}")).await;
        // Others come twice before it gets through, with a manifest of their own each.
        let late = |n| {
            let file = file(&format!("late-{p}{n}"), "z", 1);
            meanwhile(&lake, Change { data: vec![file], totals: false, ..Change::default() })
        };
        let faulty = Faulty::new(&lake.catalog, vec![late(1), late(2)]);
        lake.blobs.take_reads();
        let committed = replace(&faulty, request, at_once()).await.unwrap();
        let mut reads = lake.blobs.take_reads();
        reads.retain(|name, _| name.ends_with(".avro") && !name.starts_with("snap-"));
        assert!(reads.len() >= 2 && reads.values().all(|times| *times == 1), "{reads:?}");
        assert_eq!(committed.conflicts, 2);
        check_counts(&committed.table, "main").await;
    }
    let left = data_manifests(&lake).await;
    assert!(left <= 5, "{left} manifests");
    assert_eq!(live(&lake.load().await, "main").await.len(), 3 + 6);
}

#[tokio::test]
async fn manifests_do_not_grow_with_the_number_of_merged_partitions() {
    let properties = [("commit.manifest.min-count-to-merge", "5")];
    let lake = Lake::in_memory(&properties).await;
    for n in 0..30 {
        let p = format!("p{n:02}");
        lake.append(vec![file(&format!("{p}-1"), &p, 1), file(&format!("{p}-2"), &p, 1)]).await;
        let request = lake.request(&[&format!("{p}-1"), &format!("{p}-2")], &format!("h{p}")).await;
        replace(&lake.catalog, request, at_once()).await.unwrap();
        let left = data_manifests(&lake).await;
        assert!(left <= 8, "{left} manifests after {n} merges");
    }
    let table = lake.load().await;
    assert_eq!(live(&table, "main").await.len(), 30);
    check_counts(&table, "main").await;
}

#[tokio::test]
async fn large_groups_are_cut_into_manifests_of_the_target_size() {
    let properties = [("commit.manifest.target-size-bytes", "4000")];
    let lake = Lake::in_memory(&properties).await;
    lake.append((0..200).map(|n| file(&format!("f{n:03}"), "a", 1)).collect()).await;
    let table = replace(&lake.catalog, lake.request(&["f000", "f199"], "h").await, at_once()).await.unwrap().table;
    let manifests = manifest_files(&table, table.metadata.current_snapshot().unwrap()).await;
    assert!(manifests.len() > 3, "{}", manifests.len());
    check_counts(&table, "main").await;
}

/// What a file must keep through every commit of others: snapshot, data and file sequence number.
type Numbers = (i64, i64, i64);

#[tokio::test]
async fn random_appends_and_merges_keep_every_number() {
    for seed in 0..6 {
        let mut random = StdRng::seed_from_u64(seed);
        let target = random.random_range(600..5000).to_string();
        let fold = random.random_range(2..8).to_string();
        let properties = [
            ("commit.manifest.target-size-bytes", target.as_str()),
            ("commit.manifest.min-count-to-merge", fold.as_str()),
        ];
        let lake = Lake::in_memory(&properties).await;
        let mut model: BTreeMap<String, Numbers> = BTreeMap::new();
        for step in 0..30 {
            let p = ["a", "b", "c"][random.random_range(0..3)];
            let mine: Vec<String> = model.keys().filter(|name| name.starts_with(p)).cloned().collect();
            if mine.len() < 2 || random.random_bool(0.6) {
                let count = random.random_range(1..4);
                let names: Vec<String> = (0..count).map(|n| format!("{p}{step}-{n}")).collect();
                let table = lake.append(names.iter().map(|name| file(name, p, 1)).collect()).await;
                let head = table.metadata.current_snapshot().unwrap();
                let number = head.sequence_number();
                model.extend(names.into_iter().map(|name| (name, (head.snapshot_id(), number, number))));
                continue;
            }
            let count = random.random_range(2..=mine.len());
            let first = random.random_range(0..=mine.len() - count);
            let inputs: Vec<&str> = mine[first..first + count].iter().map(String::as_str).collect();
            let request = lake.request(&inputs, &format!("{p}h{step}")).await;
            let output = name(&request.outputs[0].path);
            let committed = replace(&lake.catalog, request, at_once()).await.unwrap();
            let newest = inputs.iter().map(|input| model[*input].1).max().unwrap();
            let number = committed.table.metadata.current_snapshot().unwrap().sequence_number();
            model.retain(|name, _| !inputs.contains(&name.as_str()));
            model.insert(output, (committed.snapshot_id, newest, number));

            let found = entries(&committed.table, "main").await;
            let live = found.iter().filter(|entry| entry.status != "deleted");
            let live: BTreeMap<String, Numbers> =
                live.map(|e| (e.file.clone(), (e.snapshot, e.sequence, e.file_sequence))).collect();
            assert_eq!(live, model, "seed {seed} step {step}");
            let deleted: Vec<&str> = found
                .iter()
                .filter(|e| e.snapshot == committed.snapshot_id && e.status == "deleted")
                .map(|e| e.file.as_str())
                .collect();
            let mut expected = inputs.clone();
            expected.sort_unstable();
            assert_eq!(deleted, expected, "seed {seed} step {step}");
            check_counts(&committed.table, "main").await;
        }
    }
}

/// Metadata of a table, by name.
async fn metadata_sizes(lake: &Lake) -> BTreeMap<String, u64> {
    let table = lake.load().await;
    let folder = table.blob_id(&format!("{}/metadata/", table.metadata.location())).unwrap();
    let listed: Vec<_> = lake.blobs.list(&folder).map(|blob| blob.unwrap()).collect().await;
    listed.into_iter().map(|blob| (name(&blob.id.key), blob.size)).collect()
}

/// Ten partitions take turns, each merge joins what was merged before with two new files; snapshots are expired as they should be. All
/// 1,000 commits by `FIRN_COMMITS=1000`.
#[tokio::test]
async fn what_a_merge_writes_does_not_grow_with_the_number_of_commits() {
    let commits = std::env::var("FIRN_COMMITS").ok().and_then(|commits| commits.parse().ok()).unwrap_or(60_usize);
    let lake = Lake::in_memory(&[("write.metadata.previous-versions-max", "10")]).await;
    let mut merged: BTreeMap<usize, String> = BTreeMap::new();
    let mut written = Vec::new();
    for commit in 0..commits {
        let (at, p) = (commit % 10, format!("p{}", commit % 10));
        let new = [1, 2].map(|n| format!("{p}-{commit}-{n}"));
        lake.append(new.iter().map(|name| file(name, &p, 1)).collect()).await;
        let inputs: Vec<&str> = merged.get(&at).into_iter().chain(&new).map(String::as_str).collect();
        let request = lake.request(&inputs, &format!("h{commit}")).await;
        let output = name(&request.outputs[0].path);
        let before = metadata_sizes(&lake).await;
        let table = replace(&lake.catalog, request, at_once()).await.unwrap().table;
        let after = metadata_sizes(&lake).await;
        written.push(after.iter().filter(|(name, _)| !before.contains_key(*name)).map(|(_, bytes)| bytes).sum::<u64>());
        merged.insert(at, output);
        let mut snapshots: Vec<_> =
            table.metadata.snapshots().map(|s| (s.sequence_number(), s.snapshot_id())).collect();
        snapshots.sort_unstable();
        let old: Vec<i64> = snapshots.iter().rev().skip(20).map(|(_, id)| *id).collect();
        lake.update(vec![iceberg::TableUpdate::RemoveSnapshots { snapshot_ids: old }]).await;
    }
    let most = |range: std::ops::Range<usize>| *written[range].iter().max().unwrap();
    let (early, late) = (most(commits / 3..commits / 2), most(commits / 2..commits));
    println!(
        "{commits} merges wrote {} bytes of metadata each, the last one {}",
        written.iter().sum::<u64>() / commits as u64,
        written[commits - 1]
    );
    assert!(late as f64 <= early as f64 * 1.1, "{early} bytes before the middle, {late} after: {written:?}");
    assert_eq!(live(&lake.load().await, "main").await.len(), 10);
    check_counts(&lake.load().await, "main").await;
}
