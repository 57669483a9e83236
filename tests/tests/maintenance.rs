//! Snapshot expiry, orphan cleanup and its undo by the command line, on tables that PyIceberg writes and reads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use firn_test_support::{Azurite, Digest};
use firn_tests::program::{finish, run};
use firn_tests::scene::{MANUAL, TABLE};
use firn_tests::{Run, Scene, firn};
use serde_json::Value;

const DAY: Duration = Duration::from_secs(86_400);

fn call(scene: &Scene, command: &str, flags: &[&str]) -> Run {
    let mut program = firn();
    program.current_dir(scene.path()).env("TMPDIR", scene.path());
    program.args(["--format", "json", command, "--config"]).arg(scene.config()).args(flags);
    run(&mut program)
}

fn add_settings(scene: &Scene, text: &str) {
    let before = std::fs::read_to_string(scene.config()).unwrap();
    std::fs::write(scene.config(), format!("maintenance: {{ {text} }}\n{before}")).unwrap();
}

/// The file of a URL of a local lake.
fn path_of(url: &str) -> PathBuf {
    PathBuf::from(url.strip_prefix("file://").unwrap_or(url))
}

fn files_in(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    found.insert(path);
                }
            }
        }
    }
    found
}

/// Makes every file of a folder older.
fn age(folder: &Path, by: Duration) {
    for path in files_in(folder) {
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - by).unwrap();
    }
}

/// Makes all snapshots but the current one older: rewrites their times in the current metadata file.
fn age_snapshots(scene: &Scene, by: Duration) {
    let metadata = path_of(scene.inspect()["metadata_location"].as_str().unwrap());
    let mut json: Value = serde_json::from_slice(&std::fs::read(&metadata).unwrap()).unwrap();
    let current = json["current-snapshot-id"].clone();
    let by = by.as_millis() as i64;
    for list in ["snapshots", "snapshot-log"] {
        for one in json[list].as_array_mut().unwrap().iter_mut().filter(|one| one["snapshot-id"] != current) {
            one["timestamp-ms"] = (one["timestamp-ms"].as_i64().unwrap() - by).into();
        }
    }
    std::fs::write(&metadata, json.to_string()).unwrap();
}

fn snapshots(scene: &Scene) -> Vec<i64> {
    scene.inspect()["snapshots"].as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect()
}

/// The rows of every retained snapshot, as PyIceberg reads them.
fn digests(scene: &Scene) -> BTreeMap<i64, Digest> {
    snapshots(scene).into_iter().map(|id| (id, scene.digest_at(id))).collect()
}

fn lines_with<'a>(lines: &'a [Value], decision: &str) -> Vec<&'a str> {
    let found = lines.iter().filter(|line| line["decision"] == decision);
    found.filter_map(|line| line["path"].as_str()).collect()
}

/// The whole life of files: merged, expired, swept, restored; every retained snapshot reads the same throughout.
#[test]
fn a_table_is_cleaned_and_every_retained_snapshot_reads_the_same() {
    let scene = Scene::local();
    scene.configure("verify: reread", "seriesColumns: [origin], timeColumn: time_hour");
    add_settings(&scene, "orphanGraceHours: 0");
    let options = "--source weather --limit 400 --appends 8 --partition day:time_hour --arrival late";
    scene.make(&format!("{options} --last 6"));
    scene.compact(&["--dataset", "readings", "--full"]).expect_code(0);
    // Writers go on, so the manifests that call the inputs removed are no longer the head's alone.
    scene.make(&format!("{options} --first 6"));
    let location = path_of(scene.inspect()["location"].as_str().unwrap());
    let (orphan, note) = (location.join("data/lost/upload.parquet"), location.join("data/notes.txt"));
    std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
    std::fs::write(&orphan, "rows that were never committed").unwrap();
    std::fs::write(&note, "not ours").unwrap();
    age(&location, 3 * DAY);
    let young = location.join("data/young.parquet");
    std::fs::write(&young, "being uploaded").unwrap();
    let before = files_in(&location);
    let all = digests(&scene);
    let newest = scene.digest();

    // A dry run lists the one, says when, and writes nothing.
    for run in [call(&scene, "orphans", &["--dry-run"]), call(&scene, "compact", &["--orphan-dry-run"])] {
        let run = run.expect_code(0);
        let lines = run.lines();
        assert_eq!(lines_with(&lines, "delete"), [format!("file://{}", orphan.display())], "{lines:#?}");
        let kept: BTreeSet<&str> = lines_with(&lines, "keep").into_iter().collect();
        assert!(kept.contains(format!("file://{}", young.display()).as_str()), "{kept:?}");
        assert_eq!(lines[0].as_object().unwrap().len(), 6, "dataset, path, decision, reason, ageHours, bytes");
        assert_eq!((&run.summary()["deleted"], &run.summary()["ok"]), (&1.into(), &true.into()));
        assert!(!scene.path().join("warehouse/firn-state").exists(), "nothing is written");
    }

    // The first sweep only looks.
    let first = call(&scene, "orphans", &[]).expect_code(0);
    assert_eq!(first.summary()["deleted"], 0);
    assert_eq!(files_in(&location), before);

    // Expiry changes metadata alone.
    age_snapshots(&scene, 3 * DAY);
    let expired = call(&scene, "expire", &["--dataset", "readings"]).expect_code(0);
    let gone = expired.lines().iter().filter(|line| line["decision"] == "expired").count();
    assert_eq!(gone, all.len() - 1, "{:#?}", expired.lines());
    let retained = snapshots(&scene);
    assert_eq!(retained.len(), 1);
    let metadata_files = |files: &BTreeSet<PathBuf>| files.iter().filter(|path| path.ends_with("metadata")).count();
    assert_eq!(metadata_files(&files_in(&location)), metadata_files(&before));
    assert!(before.is_subset(&files_in(&location)), "no file is deleted");

    // What expiry released is seen by one sweep and goes with the next; the upload goes with the first of them.
    let second = call(&scene, "orphans", &[]).expect_code(0);
    assert_eq!(lines_with(&second.lines(), "deleted"), [format!("file://{}", orphan.display())]);
    // Times of earlier sweeps are whole seconds, rounded up.
    std::thread::sleep(Duration::from_millis(1_100));
    let third = call(&scene, "orphans", &[]).expect_code(0);
    let deleted: Vec<String> = lines_with(&third.lines(), "deleted").into_iter().map(str::to_owned).collect();
    assert!(!deleted.is_empty(), "the inputs of the merge were released: {:#?}", third.lines());
    let live = files_of(&scene, "files", &[]);
    let named = files_of(&scene, "entries", &["--entries"]);
    assert!(deleted.iter().all(|path| !named.contains(path)), "only what no manifest names");
    let left: BTreeSet<String> = files_in(&location)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet") && *path != young)
        .map(|path| format!("file://{}", path.display()))
        .collect();
    assert_eq!(left, named, "exactly what the manifests name is left");
    assert!(live.is_subset(&left));
    assert!(note.exists() && young.exists());
    assert_eq!(scene.digest(), newest);
    assert_eq!(scene.digest_at(retained[0]), all[&retained[0]]);
    scene.lake.check_invariants("iot.readings");

    // The receipt, and the undo.
    let last = call(&scene, "orphans", &["--last"]).expect_code(0).lines();
    let receipt = last[0]["receipt"].as_str().unwrap().to_owned();
    assert_eq!((&last[0]["undo"]["kind"], &last[0]["undo"]["days"]), (&"trash".into(), &14.into()), "{last:#?}");
    assert_eq!(last[0]["deletions"]["deleted"], deleted.len());
    assert_eq!(last.len(), 1 + deleted.len());
    let back = call(&scene, "restore", &[&receipt]).expect_code(0).summary();
    assert_eq!((&back["restored"], &back["failed"]), (&deleted.len().into(), &0.into()));
    assert!(deleted.iter().all(|url| path_of(url).exists()));
    let again = call(&scene, "restore", &[&receipt]).expect_code(0).summary();
    assert_eq!((&again["restored"], &again["left"]), (&0.into(), &deleted.len().into()));
    // What a person brought back is left alone for a while.
    for _ in 0..2 {
        assert_eq!(call(&scene, "orphans", &[]).expect_code(0).summary()["deleted"], 0);
    }
    let unknown = call(&scene, "restore", &["nonsense"]).expect_code(2);
    assert!(unknown.stderr.contains("there is no receipt \"nonsense\""), "{}", unknown.stderr);
    // What the writers appended after the merge is still to be merged.
    scene.compact(&["--dataset", "readings", "--full"]).expect_code(0);
    assert_eq!(scene.digest(), newest);
    scene.check_converged(&MANUAL);
}

/// A writer commits several times a second while the sweep runs: exactly the planted files go. Then all but six snapshots expire, and what
/// that released goes, too; whoever reads a retained snapshot sees the same rows as before.
#[test]
fn beside_a_writer_only_orphans_go_and_every_retained_snapshot_reads_the_same() {
    let scene = Scene::local();
    scene.configure("verify: reread", "seriesColumns: [origin], timeColumn: time_hour");
    add_settings(&scene, "orphanGraceHours: 0");
    let options = "--source weather --limit 600 --appends 26 --partition month:time_hour --arrival late \
                   --property history.expire.min-snapshots-to-keep=6";
    scene.make(&format!("{options} --last 8"));
    scene.compact(&["--dataset", "readings", "--full"]).expect_code(0);
    scene.make(&format!("{options} --first 8 --last 12"));
    let location = path_of(scene.inspect()["location"].as_str().unwrap());
    let planted: BTreeSet<String> = (0..5)
        .map(|number| {
            let file = location.join(format!("data/lost/{number}.parquet"));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "rows that were never committed").unwrap();
            format!("file://{}", file.display())
        })
        .collect();
    age(&location, 3 * DAY);
    assert_eq!(call(&scene, "orphans", &[]).expect_code(0).summary()["deleted"], 0, "the first sweep only looks");
    let before = digests(&scene);

    let rest: Vec<String> = format!("{options} --first 12").split_whitespace().map(str::to_owned).collect();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let mut command = scene.lake.command("make_table.py", TABLE, &rest);
    let mut writer = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut deleted, mut sweeps) = (BTreeSet::new(), 0);
    while writer.try_wait().unwrap().is_none() {
        let swept = call(&scene, "orphans", &[]).expect_code(0);
        deleted.extend(lines_with(&swept.lines(), "deleted").into_iter().map(str::to_owned));
        sweeps += 1;
    }
    let wrote = finish(writer);
    assert_eq!(wrote.code, Some(0), "{wrote:#?}");
    assert!(sweeps > 1, "swept beside the writer");
    assert_eq!(deleted, planted, "nothing that the writer was about to commit");
    let all = digests(&scene);
    assert_eq!(all.len(), before.len() + 14, "every append is there");
    assert!(before.iter().all(|(id, digest)| all[id] == *digest));

    age(&location, 3 * DAY);
    age_snapshots(&scene, 3 * DAY);
    call(&scene, "expire", &[]).expect_code(0);
    let retained = snapshots(&scene);
    assert_eq!(retained.len(), 6);
    let files = files_in(&location).len();
    for _ in 0..3 {
        call(&scene, "orphans", &[]).expect_code(0);
        std::thread::sleep(Duration::from_millis(1_100));
    }
    assert!(files_in(&location).len() < files, "inputs of the merge were released");
    let kept: BTreeMap<i64, Digest> = retained.iter().map(|id| (*id, all[id].clone())).collect();
    assert_eq!(digests(&scene), kept);
    scene.lake.check_invariants(TABLE);
    scene.compact(&["--full"]).expect_code(0);
    scene.check_converged(&["--full"]);
}

/// `kill -9` while files are being deleted: what is referred to is there, what is gone stands in a receipt and in the trash, and sweeps after
/// it end what the killed ones began.
#[test]
fn a_sweep_that_is_killed_is_ended_by_the_next() {
    const PLANTED: usize = 400;
    let scene = Scene::local();
    scene.configure("verify: reread", "");
    add_settings(&scene, "orphanGraceHours: 0");
    scene.make("--source weather --limit 200 --appends 4 --partition day:time_hour");
    let location = path_of(scene.inspect()["location"].as_str().unwrap());
    let lost = location.join("data/lost");
    std::fs::create_dir_all(&lost).unwrap();
    for number in 0..PLANTED {
        std::fs::write(lost.join(format!("{number}.parquet")), number.to_string()).unwrap();
    }
    age(&location, 3 * DAY);
    let (digest, live) = (scene.digest(), files_of(&scene, "files", &[]));
    assert_eq!(call(&scene, "orphans", &[]).expect_code(0).summary()["deleted"], 0, "the first sweep only looks");

    let mut killed_amid = 0;
    for share in [4, 2] {
        let before = files_in(&lost).len();
        let mut sweep = firn();
        sweep.current_dir(scene.path()).env("TMPDIR", scene.path());
        sweep.args(["--format", "json", "orphans", "--config"]).arg(scene.config());
        let mut sweep = sweep.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while sweep.try_wait().unwrap().is_none() && files_in(&lost).len() + before / (2 * share) > before {
            std::thread::yield_now();
        }
        let _ = sweep.kill();
        sweep.wait().unwrap();
        let left = files_in(&lost).len();
        killed_amid += usize::from(left > 0 && left < before);
        assert_eq!(scene.digest(), digest);
        assert!(live.iter().all(|path| path_of(path).exists()));
        let receipts = files_in(&scene.path().join("warehouse/firn-state/receipts"));
        let written: String = receipts.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let planted = (0..PLANTED).map(|number| format!("data/lost/{number}.parquet"));
        let gone = planted.filter(|path| !location.join(path).exists());
        for path in gone {
            assert!(written.contains(&format!("/{path}\"")), "{path} is gone without a receipt");
        }
        let trash = files_in(&scene.path().join("warehouse/firn-state/trash"));
        assert_eq!(
            trash.iter().filter(|path| path.to_string_lossy().ends_with(".parquet")).count(),
            PLANTED - left,
            "all can be brought back"
        );
    }
    assert!(killed_amid > 0, "no kill came between the first and the last deletion");

    let last = call(&scene, "orphans", &[]).expect_code(0);
    assert_eq!(files_in(&lost).len(), 0, "{:#?}", last.summary());
    assert_eq!(scene.digest(), digest);
    let shown = call(&scene, "orphans", &["--last"]).expect_code(0).lines();
    assert_eq!(shown[0]["outcome"], "done", "{shown:#?}");
    scene.lake.check_invariants(TABLE);
    scene.compact(&["--full"]).expect_code(0);
    scene.check_converged(&["--full"]);
}

/// Paths of the current snapshot's manifest entries.
fn files_of(scene: &Scene, key: &str, flags: &[&str]) -> BTreeSet<String> {
    let inspected = scene.lake.inspect("iot.readings", flags);
    inspected[key].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

/// Reasons are told, and only what is wrong is a failure.
#[test]
fn tables_that_are_left_or_stopped_say_why() {
    let scene = Scene::local();
    scene.configure("", "");
    scene.make("--source weather --limit 100 --appends 2 --property gc.enabled=false");
    for command in ["expire", "orphans"] {
        let left = call(&scene, command, &[]).expect_code(0);
        assert_eq!(
            left.lines()[0]["reason"],
            "table property gc.enabled=false: its files may belong to other tables too"
        );
        assert_eq!((&left.summary()["left"], &left.summary()["failed"]), (&1.into(), &0.into()));
    }

    let scene = Scene::local();
    scene.configure("", "");
    scene.make("--source weather --limit 100 --appends 2");
    let lost = path_of(scene.inspect()["files"][0]["path"].as_str().unwrap());
    std::fs::rename(&lost, scene.path().join("elsewhere.parquet")).unwrap();
    let stopped = call(&scene, "orphans", &[]).expect_code(1);
    assert!(stopped.lines()[0]["reason"].as_str().unwrap().contains("is not there although the table refers to it"));
    assert_eq!(stopped.summary()["ok"], false);
    assert!(stopped.stderr.contains("\"event\":\"sweepFinished\",\"outcome\":\"failed\""), "{}", stopped.stderr);
    let missing = call(&scene, "orphans", &["--dataset", "nowhere"]).expect_code(2);
    assert!(missing.stderr.contains("\"nowhere\""));
}

/// On Azurite: listing, state and receipts; nothing there is old enough to go.
#[test]
fn a_table_in_azurite_is_swept() {
    let scene = Scene::azurite(Azurite::shared(), "maintenance");
    scene.configure("", "");
    scene.make("--source weather --limit 100 --appends 3 --partition day:time_hour");
    let before = scene.lake.files("iot.readings");
    let expired = call(&scene, "expire", &[]).expect_code(0);
    assert_eq!(expired.summary()["expired"], 0);
    for _ in 0..2 {
        let swept = call(&scene, "orphans", &[]).expect_code(0);
        let summary = swept.summary();
        assert_eq!((&summary["deleted"], &summary["failed"]), (&0.into(), &0.into()), "{summary:#}");
        assert_eq!(summary["listed"], before.len());
    }
    assert_eq!(scene.lake.files("iot.readings"), before);
    let last = call(&scene, "orphans", &["--last"]).expect_code(0).lines();
    assert_eq!((&last[0]["outcome"], &last[0]["parts"]), (&"done".into(), &0.into()), "{last:#?}");
}
