//! Wrong input: a clear message that quotes the value, the exit code of design section 10, no panic, nothing lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use firn_tests::scene::{MANUAL, TABLE};
use firn_tests::{Backup, Run, Scene, Watcher};
use serde_json::Value;

/// A few tiny files are worth a merge.
const EAGER: &str = "backlogFileThreshold: 10, verify: reread";
const READINGS: &str = "seriesColumns: [origin], timeColumn: time_hour, dedup: true";
const SORTED: &str = "sortColumns: [origin, time_hour]";
const WEATHER: [&str; 6] = ["--source", "weather", "--limit", "3600", "--appends", "24"];

/// A table with the months January, February and a day of May.
fn months() -> Scene {
    let scene = Scene::local();
    scene
        .lake
        .make_table(TABLE, &[&WEATHER[..], &["--partition", "month:time_hour", "--arrival", "scattered"]].concat());
    scene
}

/// Asserts the exit code, that stderr holds every part, and that standard output tells the failure too when there is any.
#[track_caller]
fn refused(run: Run, code: i32, parts: &[&str]) -> Run {
    let run = run.expect_code(code);
    for part in parts {
        assert!(run.stderr.contains(part), "{part:?} is missing: {run:#?}");
    }
    if !run.stdout.is_empty() {
        assert_eq!(run.summary()["ok"], false, "{run:#?}");
    }
    run
}

#[track_caller]
fn replace_in(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from:?} in {text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_configuration_that_is_wrong_by_itself() {
    // Nothing of it is looked at before the configuration is right: no catalog is needed.
    let scene = Scene::local();
    for (compaction, dataset, parts) in [
        ("targetSizeMB: 128", SORTED, &["firn.yaml:2", "targetSizeMB", "targetSizeMb"][..]),
        ("schedule: 'every day'", SORTED, &["firn.yaml:2", "compaction.schedule", "every day"]),
        ("schedule: '61 * * * *'", SORTED, &["firn.yaml:2", "compaction.schedule", "61 * * * *"]),
        ("memoryMb: -5", SORTED, &["firn.yaml:2", "compaction.memoryMb", "-5"]),
        ("", "sortColums: [origin]", &["firn.yaml:5", "sortColums", "sortColumns"]),
        ("", "dedup: perhaps", &["firn.yaml:5", "dedup", "perhaps"]),
    ] {
        scene.configure(compaction, dataset);
        let run = refused(scene.compact(&["--full"]), 2, parts);
        assert!(run.stdout.is_empty(), "{run:#?}");
    }
    fs::write(scene.config(), "catalog: [\n").unwrap();
    refused(scene.compact(&["--full"]), 2, &["firn.yaml"]);
    fs::write(scene.config(), "").unwrap();
    refused(scene.compact(&["--full"]), 2, &["catalog"]);
    fs::write(scene.config(), [0xff, 0xfe, 0x00]).unwrap();
    refused(scene.compact(&["--full"]), 2, &["firn.yaml"]);
    fs::remove_file(scene.config()).unwrap();
    refused(scene.compact(&["--full"]), 2, &["firn.yaml"]);
}

#[test]
fn a_catalog_that_is_not_there_or_is_none() {
    let scene = Scene::local();
    scene.configure("", SORTED);
    let database = scene.path().join("catalog.db");
    let shown = database.to_str().unwrap();
    refused(scene.compact(&["--full"]), 1, &[shown]);
    assert!(!database.exists(), "a catalog is never created");
    fs::write(&database, "this is no database, and long enough to have a header of a hundred bytes".repeat(4)).unwrap();
    refused(scene.compact(&["--full"]), 1, &[shown]);
    fs::write(&database, "").unwrap();
    refused(scene.compact(&["--full"]), 1, &[shown]);
    fs::remove_file(&database).unwrap();
    fs::create_dir(&database).unwrap();
    refused(scene.compact(&["--full"]), 1, &[shown]);
}

#[test]
fn what_is_wrong_only_beside_the_table_leaves_it_alone() {
    let scene = months();
    let mut watcher = Watcher::start(&scene.lake, TABLE);
    let head = watcher.head();
    for (dataset, flags, code, parts) in [
        (SORTED, &["--dataset", "reading"][..], 2, &["\"reading\"", "readings"][..]),
        (SORTED, &["--date-range", "2013-02-01:2013-01-01"], 2, &["2013-02-01:2013-01-01"]),
        (SORTED, &["--date-range", "2013-02-30:2013-03-01"], 2, &["2013-02-30"]),
        (SORTED, &["--date-range", "2013-02-01"], 2, &["2013-02-01"]),
        (SORTED, &["--partition", "month"], 2, &["\"month\"", "COL=VALUE"]),
        (SORTED, &["--partition", "time_hour_mont=2013-01"], 2, &["time_hour_mont", "time_hour_month"]),
        (SORTED, &["--partition", "origin=EWR"], 2, &["origin", "time_hour_month"]),
        (SORTED, &["--partition", "time_hour_month=soon"], 2, &["time_hour_month", "soon"]),
        ("seriesColumns: [orign], timeColumn: time_hour", &["--full"], 2, &["orign", "origin", "time_hour"]),
        ("seriesColumns: [origin], timeColumn: hour_time", &["--full"], 2, &["hour_time", "time_hour"]),
        ("sortColumns: [ORIGIN]", &["--full"], 2, &["ORIGIN", "origin"]),
        ("seriesColumns: [origin], dedup: true", &["--full"], 2, &["timeColumn"]),
    ] {
        scene.configure("", dataset);
        refused(scene.compact(flags), code, parts);
        refused(scene.compact(&[flags, &["--dry-run"]].concat()), code, parts);
    }
    scene.configure("", SORTED);
    replace_in(&scene.config(), TABLE, "iot.readngs");
    refused(scene.compact(&["--full"]), 1, &["iot.readngs", TABLE]);
    replace_in(&scene.config(), "iot.readngs", "nowhere.readings");
    refused(scene.compact(&["--full"]), 1, &["nowhere.readings"]);
    scene.configure("", SORTED);
    replace_in(&scene.config(), "name: lake", "name: lakes");
    refused(scene.compact(&["--full"]), 1, &["`lakes`", "catalogs are `lake`"]);
    assert_eq!(watcher.head(), head);
}

#[test]
fn a_date_range_needs_a_date_partition() {
    let scene = Scene::local();
    scene.lake.make_table(TABLE, &[&WEATHER[..], &["--partition", "identity:origin"]].concat());
    let mut watcher = Watcher::start(&scene.lake, TABLE);
    let head = watcher.head();
    scene.configure("", SORTED);
    refused(scene.compact(&["--date-range", "2013-01-01:2013-01-31"]), 2, &["--date-range", "origin"]);
    assert_eq!(watcher.head(), head);
    // What matches nothing is no error: there was nothing to do.
    let summary = scene.compact(&["--partition", "origin=XYZ"]).expect_code(0).summary();
    assert_eq!((&summary["ok"], &summary["partitions"]), (&true.into(), &0.into()), "{summary}");
    assert_eq!(watcher.head(), head);
}

#[test]
fn one_wrong_dataset_does_not_stop_the_others() {
    let scene = months();
    scene.configure(EAGER, READINGS);
    let mut watcher = Watcher::start(&scene.lake, TABLE);
    let expected = watcher.digest("origin,time_hour");
    let sound = fs::read_to_string(scene.config()).unwrap();
    let others = "    - { name: other, table: iot.other }\n    - { name: branch, table: iot.readings, branch: none }\n";
    fs::write(scene.config(), format!("{sound}{others}")).unwrap();
    let february = ["--partition", "time_hour_month=2013-02"];
    let run = refused(scene.compact(&february), 1, &["iot.other", "`none`"]);
    assert_eq!(run.summary()["done"], 1, "{run:#?}");
    assert_eq!(watcher.digest("origin,time_hour"), expected);
    refused(scene.compact(&["--dataset", "other"]), 1, &["iot.other"]);
    scene.compact(&MANUAL).expect_code(0);
    assert_eq!(watcher.digest(""), expected);

    // Wrong usage weighs most, and the sound dataset is still looked at.
    let wrong = "    - { name: wrong, table: iot.wrong, sortColumns: [temprature] }\n";
    scene.lake.make_table("iot.wrong", &["--source", "weather", "--limit", "30", "--appends", "1"]);
    fs::write(scene.config(), format!("{sound}{others}{wrong}")).unwrap();
    let run = refused(scene.compact(&["--full"]), 2, &["temprature", "iot.other"]);
    assert_eq!(run.summary()["left"], 2, "{run:#?}");
}

/// A data file of the first partition, on disk.
fn victim(scene: &Scene) -> (PathBuf, String) {
    let files = scene.inspect()["files"].as_array().unwrap().clone();
    let first = &files[0]["partition"];
    let same: Vec<&Value> = files.iter().filter(|file| file["partition"] == *first).collect();
    let path = same[same.len() / 2]["path"].as_str().unwrap().to_owned();
    (PathBuf::from(path.strip_prefix("file://").unwrap()), path)
}

/// Damages one file: its partition fails by name, the other is merged; with the file back, the next run ends the work.
fn damaged(damage: impl Fn(&Path), parts: &[&str]) {
    let scene = months();
    scene.configure(EAGER, SORTED);
    let mut watcher = Watcher::start(&scene.lake, TABLE);
    let expected = watcher.digest("");
    let (file, path) = victim(&scene);
    let whole = fs::read(&file).unwrap();
    damage(&file);

    for others_done in [1, 0] {
        let run = refused(scene.compact(&MANUAL), 1, &[&path]);
        let name = path.rsplit('/').next().unwrap();
        let failed: Vec<Value> = run.lines().into_iter().filter(|line| line["outcome"] == "failed").collect();
        assert_eq!(failed.len(), 1, "{run:#?}");
        let reason = failed[0]["reason"].as_str().unwrap();
        for part in [&[name], parts].concat() {
            assert!(reason.contains(part), "{part:?} in {reason:?}");
        }
        assert_eq!(failed[0]["snapshotId"], Value::Null, "{run:#?}");
        let summary = run.summary();
        assert_eq!((&summary["done"], &summary["failed"]), (&others_done.into(), &1.into()), "{run:#?}");
    }
    assert_eq!(scene.leftovers(), Vec::<PathBuf>::new());

    fs::write(&file, &whole).unwrap();
    assert_eq!(watcher.digest(""), expected, "no file was lost");
    watcher.check_invariants("");
    assert_eq!(scene.compact(&MANUAL).expect_code(0).summary()["done"], 1);
    assert_eq!(watcher.digest(""), expected);
    scene.check_converged(&MANUAL);
}

/// Where the pages of a Parquet file end and its footer begins.
fn footer_start(bytes: &[u8]) -> usize {
    let length = bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap();
    bytes.len() - 8 - u32::from_le_bytes(length) as usize
}

fn flip(file: &Path, range: impl Fn(&[u8]) -> std::ops::Range<usize>) {
    let mut bytes = fs::read(file).unwrap();
    let range = range(&bytes);
    bytes[range].iter_mut().for_each(|byte| *byte ^= 0xff);
    fs::write(file, bytes).unwrap();
}

#[test]
fn flipped_bytes_in_the_pages_of_one_file() {
    // Half of them: files of PyIceberg have no checksums, so that a few wrong bits may be values like any other.
    damaged(
        |file| flip(file, |bytes| footer_start(bytes) / 4..footer_start(bytes) * 3 / 4),
        &["is damaged in row group 0"],
    );
}

#[test]
fn flipped_bytes_in_the_footer_of_one_file() {
    damaged(|file| flip(file, |bytes| footer_start(bytes) + 10..footer_start(bytes) + 200), &["is damaged", "footer"]);
}

#[test]
fn a_truncated_file() {
    damaged(
        |file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        },
        &["is damaged", "bytes in storage but"],
    );
}

#[test]
fn an_empty_file() {
    damaged(|file| fs::write(file, b"").unwrap(), &["is damaged: it has 0 bytes"]);
}

#[test]
fn a_deleted_file() {
    damaged(|file| fs::remove_file(file).unwrap(), &["does not exist"]);
}

#[test]
fn metadata_that_is_gone() {
    let scene = months();
    scene.configure("", SORTED);
    let mut watcher = Watcher::start(&scene.lake, TABLE);
    let head = watcher.head();
    let before = Backup::of(&scene.path());
    let inspected = scene.inspect();
    let manifest = |inspected: &Value| {
        let id = inspected["current_snapshot_id"].to_string();
        inspected["manifests"][&id][3]["path"].as_str().unwrap().to_owned()
    };
    for url in [head["metadata_location"].as_str().unwrap().to_owned(), manifest(&inspected)] {
        let path = url.strip_prefix("file://").unwrap();
        fs::remove_file(path).unwrap();
        refused(scene.compact(&["--full"]), 1, &[path]);
        before.restore();
        fs::write(path, b"{ \"format-version\": 2, ").unwrap();
        refused(scene.compact(&["--full"]), 1, &[path]);
        before.restore();
    }
    assert_eq!(watcher.head(), head);
    scene.compact(&["--full"]).expect_code(0);
}

#[test]
fn an_answer_that_cannot_be_told_is_a_failure() {
    let scene = months();
    scene.configure(EAGER, SORTED);
    for flags in [&["--dry-run"][..], &["--dry-run", "--format", "json"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = scene.compact_command(flags).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("error: standard output: No space left on device"), "{stderr}");
    }
}
