//! Sidecars from the merge to the search, wherever the lake lies.

use std::collections::{BTreeMap, BTreeSet};

use firn_test_support::Python;
use firn_tests::Scene;
use firn_tests::program::{Run, firn, run};
use firn_tests::scene::TABLE;
use serde_json::{Value, json};

const DATASET: &str = "sortColumns: [package, ts], tantivy: {indexingColumns: [body, package]}, \
                       bloomFilterColumns: [package, line], ndvColumns: [package, sent]";
const TABLE_OPTIONS: &str = "--source changelogs --limit 6000 --appends 30";

/// Queries with what must be true of every row that is found, and of none that is not.
type Holds = fn(&str, &str) -> bool;
const QUERIES: [(&str, Holds); 5] = [
    ("fix", |body, package| has(body, "fix") || has(package, "fix")),
    ("\"new upstream\"", |body, _| words(body).windows(2).any(|pair| pair == ["new", "upstream"])),
    ("body:upstream -body:new", |body, _| has(body, "upstream") && !has(body, "new")),
    ("(closes OR fixes) bug", |body, _| (has(body, "closes") || has(body, "fixes")) && has(body, "bug")),
    ("nosuchwordanywhere", |_, _| false),
];

fn words(text: &str) -> Vec<String> {
    let split = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    split.map(str::to_lowercase).collect()
}

fn has(text: &str, word: &str) -> bool {
    words(text).iter().any(|found| found == word)
}

fn search(scene: &Scene, query: &str, flags: &[&str]) -> Run {
    let mut command = firn();
    command.args(["--format", "json", "search", "--config"]).arg(scene.config());
    run(command.args(["--dataset", "readings"]).args(flags).arg(query)).expect_code(0)
}

/// Rows of the answer by their numbers.
fn numbers(answer: &Run) -> BTreeSet<i64> {
    answer.lines().iter().map(|line| line["values"]["sent"].as_i64().unwrap()).collect()
}

fn inspect(scene: &Scene, sidecar: &str) -> Run {
    let mut command = firn();
    command.args(["--format", "json", "inspect", "--config"]).arg(scene.config());
    run(command.arg(sidecar))
}

fn event(run: &Run) -> Value {
    let lines = run.stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut events: Vec<Value> = lines.filter(|line| line["event"] == "partitionFinished").collect();
    assert_eq!(events.len(), 1, "{}", run.stderr);
    events.remove(0)
}

/// The live data files: size and rows by path.
fn live_files(scene: &Scene) -> BTreeMap<String, (u64, u64)> {
    let files = scene.inspect()["files"].as_array().unwrap().clone();
    let file = |file: &Value| {
        let number = |key: &str| file[key].as_u64().unwrap();
        (file["path"].as_str().unwrap().to_owned(), (number("bytes"), number("rows")))
    };
    files.iter().map(file).collect()
}

/// Merges a table with all three sidecars and reads each of them back.
pub(crate) fn built_beside_the_merge_and_read_back(scene: &Scene) {
    scene.configure("backlogFileThreshold: 10, verify: reread", DATASET);
    scene.make(TABLE_OPTIONS);
    let rows = scene.digest();
    // Before: no index, so every file is read. All rows, for what must be found later.
    let all = search(scene, "NOT nosuchwordanywhere", &[]);
    assert_eq!(all.summary()["byScan"], json!(30), "{}", all.summary());
    assert_eq!(numbers(&all).len() as u64, rows.rows);
    let text = |line: &Value, column: &str| line["values"][column].as_str().unwrap_or_default().to_owned();
    let expected = |holds: Holds| -> BTreeSet<i64> {
        let matching = all.lines().into_iter().filter(|line| holds(&text(line, "body"), &text(line, "package")));
        matching.map(|line| line["values"]["sent"].as_i64().unwrap()).collect()
    };

    let merged = scene.compact(&[]).expect_code(0);
    let sidecars = event(&merged)["sidecars"].clone();
    assert_eq!((&sidecars["written"], &sidecars["dropped"], &sidecars["reasons"]), (&json!(3), &json!(0), &json!([])));
    assert!(sidecars["bytes"].as_u64().unwrap() > 100_000, "{sidecars}");
    assert_eq!(scene.digest(), rows);

    for (query, holds) in QUERIES {
        let (by_index, by_scan) = (search(scene, query, &[]), search(scene, query, &["--scan"]));
        assert_eq!((&by_index.summary()["byIndex"], &by_index.summary()["byScan"]), (&json!(1), &json!(0)), "{query}");
        assert_eq!((&by_scan.summary()["byIndex"], &by_scan.summary()["byScan"]), (&json!(0), &json!(1)), "{query}");
        assert_eq!(by_index.lines(), by_scan.lines(), "{query}");
        assert_eq!(numbers(&by_index), expected(holds), "{query}");
    }
    // A limit cuts the answer, and the answer says so; one that lets all rows through does not.
    let all_fixes = search(scene, "fix", &[]);
    let count = all_fixes.lines().len();
    for flags in [&["--limit"][..], &["--scan", "--limit"]] {
        for (limit, cut) in [(0, true), (3, true), (count - 1, true), (count, false), (count + 1, false)] {
            let limited = search(scene, "fix", &[flags, &[&limit.to_string()]].concat());
            assert_eq!(limited.lines(), all_fixes.lines()[..limit.min(count)], "{limit}");
            let summary = limited.summary();
            assert_eq!((&summary["cut"], &summary["rows"]), (&json!(cut), &json!(limit.min(count))), "{limit}");
        }
    }
    assert_eq!(all_fixes.summary()["cut"], json!(false));

    let files = live_files(scene);
    let [(path, (size, rows_of_file))] = files.iter().collect::<Vec<_>>()[..] else { panic!("{files:?}") };
    let location = scene.inspect()["location"].as_str().unwrap().to_owned();
    let uuid = path.rsplit_once(".parquet").unwrap().0;
    let sidecar = |ending: &str| format!("{location}/_firn/{}.{ending}", &uuid[uuid.len() - 36..]);
    for (ending, kind, columns) in
        [("tantivy", "text", vec!["body", "package"]), ("bloom", "bloom", vec!["package", "line"])]
    {
        let line = inspect(scene, &sidecar(ending)).expect_code(0).lines().remove(0);
        assert_eq!(line["kind"], kind);
        assert_eq!((line["data"]["size"].as_u64(), line["data"]["rows"].as_u64()), (Some(*size), Some(*rows_of_file)));
        let names: Vec<&str> =
            line["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(names, columns);
    }
    let line = inspect(scene, &sidecar("ndv")).expect_code(0).lines().remove(0);
    let packages: BTreeSet<String> = all.lines().iter().map(|line| text(line, "package")).collect();
    assert_eq!(
        line["columns"][0]["distinct"].as_u64().unwrap(),
        packages.len() as u64,
        "few values are counted exactly"
    );
    inspect(scene, &sidecar("none")).expect_code(1);
    if let Some(file) = sidecar("ndv").strip_prefix("file://") {
        sketches_are_read_by_another_library(file, rows.rows, packages.len());
    }

    // A sweep knows whose they are.
    let mut orphans = firn();
    orphans.args(["--format", "json", "orphans", "--dry-run", "--config"]).arg(scene.config());
    let swept = run(&mut orphans).expect_code(0).lines();
    let kept = swept.iter().filter(|line| line["path"].as_str().unwrap().contains("/_firn/"));
    assert!(kept.clone().all(|line| line["reason"] == "sidecar of a kept file"), "{swept:?}");
    assert_eq!(kept.count(), 3);
    scene.check_converged(&[]);
}

/// Merges a table whose sidecars do not fit into the memory of the job.
#[allow(dead_code)]
pub(crate) fn dropped_where_they_do_not_fit(scene: &Scene) {
    scene.configure("backlogFileThreshold: 10, memoryMb: 128", DATASET);
    scene.make(TABLE_OPTIONS);
    let rows = scene.digest();
    let merged = scene.compact(&[]).expect_code(0);
    assert_eq!(merged.lines()[0]["outcome"], "done");
    let line = event(&merged);
    assert_eq!((&line["sidecars"]["written"], &line["sidecars"]["dropped"]), (&json!(0), &json!(3)), "{line}");
    assert_eq!(line["counters"]["firn_sidecars_dropped_total"], json!(3));
    assert!(line["sidecars"]["reasons"][0].as_str().unwrap().contains("memoryMb"), "{line}");
    assert_eq!(scene.digest(), rows);
    // Alone it fits: the next pass builds the index.
    the_next_pass_indexes_the_file(scene);
}

/// A pass over a table of one file that nothing is to be done with but to index it.
pub(crate) fn the_next_pass_indexes_the_file(scene: &Scene) {
    let before = scene.inspect();
    let done = scene.compact(&[]).expect_code(0);
    assert_eq!((&done.lines()[0]["outcome"], &done.lines()[0]["snapshotId"]), (&json!("done"), &Value::Null));
    let line = event(&done);
    assert_eq!((&line["rule"], &line["sidecars"]["written"]), (&json!("backfill"), &json!(1)), "{line}");
    assert_eq!(scene.inspect()["metadata_location"], before["metadata_location"], "the table is as it was");
    let (by_index, by_scan) = (search(scene, "fix", &[]), search(scene, "fix", &["--scan"]));
    assert_eq!((&by_index.summary()["byIndex"], &by_index.summary()["byScan"]), (&json!(1), &json!(0)));
    assert_eq!(by_index.lines(), by_scan.lines());
    scene.check_converged(&[]);
}

/// One append of another writer into several partitions, under one UUID: each file gets an index of its own, once, and is not written again.
#[allow(dead_code)]
pub(crate) fn files_of_another_writer_are_indexed_where_they_lie(scene: &Scene) {
    const SPEC: &str = "timeColumn: time_hour, tantivy: {indexingColumns: [origin]}";
    scene.configure("", &format!("{SPEC}, backfillWriters: parquet-cpp"));
    scene.make("--source weather --limit 6000 --appends 1 --partition month:time_hour");
    let (rows, before, files) = (scene.digest(), scene.inspect(), live_files(scene));
    assert!(files.len() >= 3, "{files:?}");
    let uuids: BTreeSet<&str> = files.keys().map(|path| &path[path.len() - 44..]).collect();
    assert_eq!(uuids.len(), 1, "PyIceberg calls all files of a commit by one UUID: {files:?}");

    let planned = scene.compact(&["--dataset", "readings", "--dry-run"]).expect_code(0).lines();
    assert_eq!(planned.len(), files.len());
    for line in &planned {
        let told = (&line["decision"], &line["rule"], &line["fileCount"]);
        assert_eq!(told, (&json!("selected"), &json!("backfill"), &json!(1)), "{line}");
    }
    let done = scene.compact(&[]).expect_code(0).lines();
    for line in &done {
        assert_eq!((&line["outcome"], &line["filesAfter"]), (&json!("done"), &json!(1)), "{line}");
        assert!(line["reason"].as_str().unwrap().contains("1 text indexes built"), "{line}");
    }
    assert_eq!((done.len(), scene.digest()), (files.len(), rows));
    assert_eq!(scene.inspect()["metadata_location"], before["metadata_location"], "the table is as it was");
    for query in ["jfk", "NOT jfk", "lga OR ewr"] {
        let (by_index, by_scan) = (search(scene, query, &[]), search(scene, query, &["--scan"]));
        assert_eq!(by_index.summary()["byIndex"], json!(files.len()), "{query}: {}", by_index.summary());
        assert_eq!(by_scan.summary()["byScan"], json!(files.len()), "{query}");
        assert_eq!(by_index.lines(), by_scan.lines(), "{query}");
        assert!(!by_index.lines().is_empty(), "{query}");
    }
    scene.check_converged(&[]);
}

/// Files of a writer that `backfillWriters` does not name: a note each, and no second look.
#[allow(dead_code)]
pub(crate) fn files_of_writers_not_named_are_noted(scene: &Scene) {
    scene.configure("", "timeColumn: time_hour, tantivy: {indexingColumns: [origin]}");
    scene.make("--source weather --limit 3000 --appends 1 --partition month:time_hour");
    let files = live_files(scene);
    let done = scene.compact(&[]).expect_code(0).lines();
    assert!(done.iter().all(|line| line["reason"].as_str().unwrap().contains("1 files noted as without")), "{done:#?}");
    let notes: Vec<String> = scene.lake.files(TABLE).into_keys().filter(|name| name.ends_with(".none")).collect();
    assert_eq!(notes.len(), files.len());
    assert_eq!(search(scene, "jfk", &[]).summary()["byScan"], json!(files.len()));
    scene.check_converged(&[]);

    // A note holds until the configuration has another answer, and no longer.
    let note_of = |name: &String| inspect(scene, &note_path(scene, name)).expect_code(0).lines().remove(0);
    let before: Vec<Value> = notes.iter().map(note_of).collect();
    for note in &before {
        assert_eq!(note["decidedOn"]["writers"], json!(["^firn version ", "^tracelake"]), "{note}");
        assert!(note["reason"].as_str().unwrap().contains("backfillWriters does not name"), "{note}");
    }
    // Other columns: looked at again, once, and noted again.
    scene.configure("", "timeColumn: time_hour, tantivy: {indexingColumns: [origin, tailnum_not_there]}");
    scene.check_converged(&[]);
    scene.configure("memoryMb: 600", "timeColumn: time_hour, tantivy: {indexingColumns: [origin]}");
    let done = scene.compact(&[]).expect_code(0).lines();
    assert!(done.iter().all(|line| line["reason"].as_str().unwrap().contains("1 files noted as without")), "{done:#?}");
    let again: Vec<Value> = notes.iter().map(note_of).collect();
    assert!(again.iter().all(|note| note["decidedOn"]["memoryMb"] == 600), "{again:#?}");
    scene.check_converged(&[]);
    // A note as older versions wrote it.
    let old = json!({"createdBy": "Firn version 0.1.0", "data": again[0]["data"], "reason": "it is old"});
    let path = note_path(scene, &notes[0]);
    std::fs::write(path.strip_prefix("file://").unwrap(), old.to_string()).unwrap();
    let done = scene.compact(&[]).expect_code(0).lines();
    let told = done.iter().filter(|line| line["reason"].as_str().unwrap().contains("1 files noted as without"));
    assert_eq!(told.count(), 1, "{done:#?}");
    assert_eq!(note_of(&notes[0]), again[0]);
    scene.check_converged(&[]);
    // The writer is named now.
    scene.configure(
        "memoryMb: 600",
        "timeColumn: time_hour, tantivy: {indexingColumns: [origin]}, backfillWriters: parquet-cpp",
    );
    let done = scene.compact(&[]).expect_code(0).lines();
    assert!(done.iter().all(|line| line["reason"].as_str().unwrap().contains("1 text indexes built")), "{done:#?}");
    let (by_index, by_scan) = (search(scene, "jfk", &[]), search(scene, "jfk", &["--scan"]));
    assert_eq!(by_index.summary()["byIndex"], json!(files.len()));
    assert_eq!(by_index.lines(), by_scan.lines());
    scene.check_converged(&[]);
}

/// The address of a note by its name in the listing of the warehouse.
fn note_path(scene: &Scene, name: &str) -> String {
    let location = scene.inspect()["location"].as_str().unwrap().to_owned();
    format!("{location}/_firn/{}", name.rsplit('/').next().unwrap())
}

/// Merges a table whose index alone does not fit, on temporary disk: the other sidecars and the rows are there, and the index is tried once
/// more, alone, and then no more until the limit is another.
#[allow(dead_code)]
pub(crate) fn an_index_that_never_fits_is_noted(scene: &Scene) {
    // Without a sort order the merge itself needs no temporary disk.
    const UNSORTED: &str =
        "tantivy: {indexingColumns: [body, package]}, bloomFilterColumns: [package], ndvColumns: [package, sent]";
    scene.configure("backlogFileThreshold: 10, tempDiskMb: 0", UNSORTED);
    scene.make(TABLE_OPTIONS);
    let rows = scene.digest();
    let merged = scene.compact(&[]).expect_code(0);
    assert_eq!((&merged.lines()[0]["outcome"], &merged.lines()[0]["filesAfter"]), (&json!("done"), &json!(1)));
    let line = event(&merged);
    let sidecars = &line["sidecars"];
    assert_eq!((&sidecars["written"], &sidecars["dropped"]), (&json!(2), &json!(1)), "{line}");
    assert_eq!(line["counters"]["firn_sidecars_dropped_total"], json!(1));
    let reasons = sidecars["reasons"].as_array().unwrap();
    assert!(reasons.len() == 1 && reasons[0].as_str().unwrap().contains("tempDiskMb"), "{line}");
    assert_eq!(scene.digest(), rows);

    let done = scene.compact(&[]).expect_code(0);
    let line = event(&done);
    assert_eq!((&line["rule"], &line["sidecars"]["noted"]), (&json!("backfill"), &json!(1)), "{line}");
    let notes: Vec<String> = scene.lake.files(TABLE).into_keys().filter(|name| name.ends_with(".none")).collect();
    let [note] = &notes[..] else { panic!("{notes:?}") };
    let note = inspect(scene, &note_path(scene, note)).expect_code(0).lines().remove(0);
    assert!(note["reason"].as_str().unwrap().contains("tempDiskMb"), "{note}");
    assert_eq!(note["decidedOn"]["tempDiskMb"], json!(0));
    assert_eq!(search(scene, "fix", &[]).summary()["byScan"], json!(1));
    scene.check_converged(&[]);

    scene.configure("backlogFileThreshold: 10", UNSORTED);
    the_next_pass_indexes_the_file(scene);
}

/// Merges a table beside which no sidecar can be stored: a file is where their folder would be.
#[allow(dead_code)]
pub(crate) fn dropped_where_they_cannot_be_uploaded(scene: &Scene) {
    scene.configure("backlogFileThreshold: 10", DATASET);
    scene.make(TABLE_OPTIONS);
    let rows = scene.digest();
    let location = scene.inspect()["location"].as_str().unwrap().to_owned();
    let folder = std::path::PathBuf::from(location.strip_prefix("file://").unwrap()).join("_firn");
    std::fs::write(&folder, "in the way").unwrap();
    let merged = scene.compact(&[]).expect_code(0);
    assert_eq!((&merged.lines()[0]["outcome"], &merged.lines()[0]["filesAfter"]), (&json!("done"), &json!(1)));
    let sidecars = event(&merged)["sidecars"].clone();
    assert_eq!((&sidecars["written"], &sidecars["dropped"], &sidecars["bytes"]), (&json!(0), &json!(3), &json!(0)));
    let reasons = sidecars["reasons"].as_array().unwrap();
    assert!(
        reasons.len() == 3 && reasons.iter().all(|reason| reason.as_str().unwrap().contains("_firn")),
        "{sidecars}"
    );
    assert_eq!(scene.digest(), rows);
    // Without an index every row is looked at, and the answer is the same.
    let all = search(scene, "NOT nosuchwordanywhere", &[]);
    assert_eq!((numbers(&all).len() as u64, &all.summary()["byScan"]), (rows.rows, &json!(1)));
    std::fs::remove_file(&folder).unwrap();
    the_next_pass_indexes_the_file(scene);
}

/// Merges a table in a store that refuses indexes.
#[allow(dead_code)]
pub(crate) fn only_the_index_is_refused(scene: &Scene) {
    scene.configure("backlogFileThreshold: 10, verify: reread", DATASET);
    scene.make(TABLE_OPTIONS);
    let rows = scene.digest();
    let merged = scene.compact(&[]).expect_code(0);
    assert_eq!((&merged.lines()[0]["outcome"], &merged.lines()[0]["filesAfter"]), (&json!("done"), &json!(1)));
    let line = event(&merged);
    let sidecars = &line["sidecars"];
    assert_eq!((&sidecars["written"], &sidecars["dropped"]), (&json!(2), &json!(1)), "{line}");
    assert_eq!(line["counters"]["firn_sidecars_dropped_total"], json!(1));
    let reasons = sidecars["reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 1, "{line}");
    assert!(reasons[0].as_str().unwrap().starts_with("full-text index: "), "{line}");
    assert_eq!(scene.digest(), rows);
    assert_eq!(search(scene, "fix", &[]).summary()["byScan"], json!(1));
}

/// Merges a table and gives the bytes of its index.
#[allow(dead_code)]
pub(crate) fn merged_with_an_index(scene: &Scene) -> u64 {
    scene.configure("backlogFileThreshold: 10", "sortColumns: [package, ts], tantivy: {indexingColumns: [body]}");
    scene.make("--source changelogs --limit 40000 --appends 12");
    let sidecars = event(&scene.compact(&[]).expect_code(0))["sidecars"].clone();
    assert_eq!((&sidecars["written"], &sidecars["dropped"]), (&json!(1), &json!(0)), "{sidecars}");
    sidecars["bytes"].as_u64().unwrap()
}

/// Looks for words that no row has together.
#[allow(dead_code)]
pub(crate) fn words_are_looked_for(scene: &Scene) {
    let found = search(scene, "upstream nosuchwordanywhere", &[]);
    assert_eq!((&found.summary()["rows"], &found.summary()["byIndex"]), (&json!(0), &json!(1)));
}

/// Whether row N of `odd_texts.py` is to be found.
type Found = fn(i64) -> bool;

/// Queries over `odd_texts.py`: whether an index can tell, and which rows match.
fn odd_queries() -> Vec<(String, bool, Found)> {
    let (long, fits) = ("y".repeat(300), "z".repeat(255));
    // Row 12 has another text than its place in the list.
    const fn is(number: i64, place: i64) -> bool {
        number != 12 && number % 12 == place
    }
    let query = |text: &str, found: Found| (text.to_owned(), true, found);
    vec![
        query("x", |n| is(n, 2)),
        query("NOT x", |n| !is(n, 2)),
        query("DISK error", |n| is(n, 3)),
        query("\"error disk\"", |n| is(n, 3)),
        query("smile", |n| is(n, 4)),
        query("ärger", |n| is(n, 5)),
        query("before after", |n| is(n, 6)),
        query("\"before after\"", |_| false),
        (long.clone(), false, |n| is(n, 6)),
        (format!("NOT {long}"), false, |n| !is(n, 6)),
        (format!("\"before {long} after\""), false, |n| is(n, 6)),
        (fits, true, |n| is(n, 7)),
        query("mixed CASE", |n| is(n, 8)),
        query("\"Case Word\"", |n| is(n, 8)),
        query("日本語", |n| is(n, 9)),
        query("\"b c d\"", |n| is(n, 11)),
        query("needle10mb", |n| n == 12),
        query("\"ipsum dolor needle10mb\"", |n| n == 12),
        query("host:host3 x", |n| n % 5 == 3 && is(n, 2)),
        query("void:x", |_| false),
        query("NOT void:x", |_| true),
        query("note:late", |n| n > 12 && n % 3 == 0),
        query("NOT note:late", |n| n <= 12 || n % 3 != 0),
    ]
}

/// Odd values, an indexed column without any value and one that the file does not have: an index and a scan find the same rows, and those
/// that are there.
#[allow(dead_code)]
pub(crate) fn odd_values_are_found_alike(scene: &Scene) {
    const COLUMNS: &str = "body, host, void, note";
    let odd = |stage: &str| {
        let output = scene.lake.command("odd_texts.py", TABLE, &["--stage", stage]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let found_alike = |rows: i64| {
        for (query, by_index, holds) in odd_queries() {
            let (indexed, scanned) = (search(scene, &query, &[]), search(scene, &query, &["--scan"]));
            let shown = &query[..query.len().min(40)];
            assert_eq!(numbers(&scanned), (0..rows).filter(|number| holds(*number)).collect(), "{shown}");
            assert!(indexed.lines() == scanned.lines(), "{shown}");
            let told = (&indexed.summary()["byIndex"], &indexed.summary()["byScan"]);
            let expected = if by_index { (&json!(1), &json!(0)) } else { (&json!(0), &json!(1)) };
            assert_eq!(told, expected, "{shown}: a word that is too long is looked for in the file");
        }
    };
    scene.configure(
        "backlogFileThreshold: 10, verify: reread",
        &format!(
            "tantivy: {{indexingColumns: [{COLUMNS}]}}, bloomFilterColumns: [{COLUMNS}], ndvColumns: [{COLUMNS}], \
             backfillWriters: parquet-cpp"
        ),
    );
    // One file without the column `note`, indexed where it lies.
    odd("first");
    let done = scene.compact(&[]).expect_code(0);
    let line = event(&done);
    assert_eq!((&line["rule"], &line["sidecars"]["written"]), (&json!("backfill"), &json!(1)), "{line}");
    found_alike(13);
    // Merged with others that have it.
    odd("rest");
    let rows = scene.digest();
    let line = event(&scene.compact(&[]).expect_code(0));
    assert_eq!((&line["sidecars"]["written"], &line["sidecars"]["dropped"]), (&json!(3), &json!(0)), "{line}");
    assert_eq!((scene.digest(), rows.rows), (rows.clone(), 145));
    found_alike(145);
    scene.check_converged(&[]);
}

/// Rows that delete files delete are found by no index and by no scan; later rows with the same key are.
#[allow(dead_code)]
pub(crate) fn deleted_rows_are_not_found(scene: &Scene) {
    const APPENDS: &str = "--source changelogs --limit 5000 --appends 14";
    scene.configure("backlogFileThreshold: 10", DATASET);
    scene.make(&format!("{APPENDS} --last 11"));
    scene.compact(&[]).expect_code(0);
    // Files without an index.
    scene.make(&format!("{APPENDS} --first 11 --last 13"));
    let everything = |flags: &[&str]| search(scene, "NOT nosuchwordanywhere", flags);
    let before = everything(&[]);
    assert_eq!((&before.summary()["byIndex"], &before.summary()["byScan"]), (&json!(1), &json!(2)));
    let sent = |line: &Value| line["values"]["sent"].as_i64().unwrap();
    let of_package = |lines: &[Value], package: &Value| -> BTreeSet<i64> {
        lines.iter().filter(|line| line["values"]["package"] == *package).map(sent).collect()
    };
    // The package with the most rows: later ones have it, too.
    let lines = before.lines();
    let package = lines.iter().map(|line| &line["values"]["package"]).max_by_key(|name| of_package(&lines, name).len());
    let package = package.unwrap();
    let name = package.as_str().unwrap();
    let deleted: BTreeSet<i64> =
        of_package(&lines, package).into_iter().chain((0..5000).filter(|n| n % 7 == 3)).collect();
    scene.lake.delete_rows(TABLE, &["--positions", "7:3", "--equality", &format!("package={name}")]);

    for flags in [&[][..], &["--scan"]] {
        let after = everything(flags);
        assert_eq!(numbers(&after), numbers(&before).difference(&deleted).copied().collect(), "{flags:?}");
    }
    // Deleted rows do not use up a limit.
    assert_eq!(everything(&["--limit", "20"]).lines().len(), 20);
    for (query, _) in QUERIES {
        let (by_index, by_scan) = (search(scene, query, &[]), search(scene, query, &["--scan"]));
        assert_eq!(by_index.lines(), by_scan.lines(), "{query}");
        assert!(numbers(&by_index).is_disjoint(&deleted), "{query}");
    }

    // Rows that came later are not deleted, whatever their key.
    scene.make(&format!("{APPENDS} --first 13"));
    let after = everything(&[]);
    let new: BTreeSet<i64> = numbers(&after).difference(&numbers(&before)).copied().collect();
    assert!(new.iter().any(|number| number % 7 == 3), "{new:?}");
    assert!(of_package(&after.lines(), package).is_subset(&new));
    assert_eq!(numbers(&after), numbers(&before).difference(&deleted).chain(&new).copied().collect());
    assert_eq!(numbers(&after), numbers(&everything(&["--scan"])));

    // Sketches would count what is deleted.
    let made = make_statistics(scene);
    assert_eq!(made["decision"], "left");
    assert!(made["reason"].as_str().unwrap().contains("2 delete files"), "{made}");
    assert_eq!(scene.lake.statistics(TABLE), json!([]));
}

/// The one line of `firn statistics`.
fn make_statistics(scene: &Scene) -> Value {
    let mut command = firn();
    command.args(["--format", "json", "statistics", "--dataset", "readings", "--config"]).arg(scene.config());
    let made = run(&mut command).expect_code(0);
    assert_eq!(made.lines().len(), 1, "{made:?}");
    made.lines().remove(0)
}

/// What other programs read of the head's statistics agrees with its rows; gives the path.
#[allow(dead_code)]
pub(crate) fn statistics_agree_with_the_rows(scene: &Scene, columns: &[&str]) -> String {
    let head = scene.inspect()["current_snapshot_id"].clone();
    let all = scene.lake.statistics(TABLE);
    let of_head = all.as_array().unwrap().iter().find(|file| file["snapshot"] == head);
    let read = of_head.unwrap_or_else(|| panic!("snapshot {head} has none: {all:#}"));
    let names: Vec<&str> = read["columns"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, columns);
    for column in read["columns"].as_array().unwrap() {
        let number = |key: &str| column[key].as_f64().unwrap();
        assert!(number("lower") <= number("counted") && number("counted") <= number("upper"), "{read:#}");
        // Below the nominal entries of a sketch nothing is estimated.
        assert!(number("counted") >= 4096.0 || number("ndv") == number("counted"), "{read:#}");
    }
    read["path"].as_str().unwrap().to_owned()
}

/// Statistics of a table whose files have sketches of a merge, or none: every row counts, other programs read them, and what was read for
/// them is not read again.
#[allow(dead_code)]
pub(crate) fn statistics_are_made_of_all_files(scene: &Scene) {
    const COLUMNS: [&str; 3] = ["origin", "sent", "temp"];
    const APPENDS: &str = "--source weather --limit 9000 --appends 40 --partition month:time_hour --arrival late";
    let dataset = |columns: &str| format!("timeColumn: time_hour, ndvColumns: [{columns}], tableStatistics: true");
    scene.configure("backlogFileThreshold: 10", &dataset("origin, sent, temp"));
    scene.make(&format!("{APPENDS} --last 30"));
    scene.compact(&["--full", "--dataset", "readings"]).expect_code(0);
    // A partition that had one file is as it was.
    let merged = scene.lake.files(TABLE).keys().filter(|name| name.ends_with(".ndv")).count() as u64;
    // Files of another writer, without sketches.
    scene.make(&format!("{APPENDS} --first 30 --last 36"));
    let (rows, files) = (scene.digest(), live_files(scene).len() as u64);
    assert!(merged >= 3 && files > merged, "{merged} {files}");

    let made = make_statistics(scene);
    let before = scene.inspect();
    assert_eq!((&made["decision"], &made["snapshotId"]), (&json!("registered"), &before["current_snapshot_id"]));
    assert_eq!((made["files"].as_u64(), made["scanned"].as_u64()), (Some(files), Some(files - merged)), "{made}");
    assert_eq!(statistics_agree_with_the_rows(scene, &COLUMNS), made["path"].as_str().unwrap());
    let inspected = inspect(scene, made["path"].as_str().unwrap()).expect_code(0).lines().remove(0);
    assert_eq!((&inspected["kind"], &inspected["snapshotId"]), (&json!("statistics"), &made["snapshotId"]));
    let counts = (inspected["dataFiles"].as_u64(), inspected["dataRows"].as_u64());
    assert_eq!(counts, (Some(files), Some(rows.rows)), "{inspected}");
    let distinct = |line: &Value| -> Vec<Value> {
        line["columns"].as_array().unwrap().iter().map(|of| json!([of["fieldId"], of["distinct"]])).collect()
    };
    assert_eq!(distinct(&inspected), distinct(&made), "{inspected}");
    assert!(made["columns"][1]["distinct"].as_u64().unwrap() > 5000, "more than a sketch counts exactly: {made}");

    // Once.
    let again = make_statistics(scene);
    assert_eq!((&again["decision"], &again["reason"]), (&json!("left"), &json!("the snapshot has its statistics")));
    assert_eq!(scene.inspect()["metadata_location"], before["metadata_location"]);

    // A later snapshot: only what is new is read.
    scene.make(&format!("{APPENDS} --first 36"));
    let new = live_files(scene).len() as u64 - files;
    let made = make_statistics(scene);
    assert_eq!((made["files"].as_u64(), made["scanned"].as_u64()), (Some(files + new), Some(new)), "{made}");
    let first_of_head = made["path"].clone();
    statistics_agree_with_the_rows(scene, &COLUMNS);
    assert_eq!(scene.lake.statistics(TABLE).as_array().unwrap().len(), 2, "each snapshot has its own");

    // Other columns: the statistics are made again, and the sketches that lack one, too.
    scene.configure("backlogFileThreshold: 10", &dataset("origin, dest_not_there, visib"));
    let made = make_statistics(scene);
    assert_eq!((made["files"].as_u64(), made["scanned"].as_u64()), (Some(files + new), Some(files + new)), "{made}");
    statistics_agree_with_the_rows(scene, &["origin", "visib"]);
    assert_eq!(scene.lake.statistics(TABLE).as_array().unwrap().len(), 2);

    // A sweep knows the place: of the three files it tells only the one that is registered no more, and keeps it while it is young.
    let mut orphans = firn();
    orphans.args(["--format", "json", "orphans", "--dry-run", "--config"]).arg(scene.config());
    let swept = run(&mut orphans).expect_code(0).lines();
    let told: Vec<&Value> = swept.iter().filter(|line| line["path"].as_str().unwrap().ends_with(".stats")).collect();
    assert_eq!(told.iter().map(|line| &line["reason"]).collect::<Vec<_>>(), ["too young"], "{told:#?}");
    assert_eq!(told[0]["path"], first_of_head, "{told:#?}");
    assert_ne!(scene.digest(), rows);
    let merged_rows = scene.digest();
    scene.compact(&[]).expect_code(0);
    assert_eq!(scene.digest(), merged_rows);
    make_statistics(scene);
    statistics_agree_with_the_rows(scene, &["origin", "visib"]);
    scene.check_converged(&[]);
}

/// DataSketches for C++, through its Python package: the sketch of a column with the numbers from 0 to `rows` is the very one that the library
/// makes of them.
fn sketches_are_read_by_another_library(file: &str, rows: u64, packages: usize) {
    let read = Python::tools().run("read_sketches.py", &[file, &rows.to_string()]);
    let [of_packages, of_numbers] = [&read["blobs"][0], &read["blobs"][1]];
    for blob in [of_packages, of_numbers] {
        assert_eq!((&blob["type"], &blob["snapshot"]), (&json!("apache-datasketches-theta-v1"), &json!(-1)));
        assert_eq!(blob["ordered"], json!(true));
        assert_eq!(blob["ndv"].as_str().unwrap().parse::<f64>().unwrap(), blob["estimate"].as_f64().unwrap().round());
    }
    assert_eq!(of_packages["estimate"].as_f64().unwrap(), packages as f64);
    assert_eq!(of_numbers["hex"], read["own"]);
    let (lower, upper) = (of_numbers["lower"].as_f64().unwrap(), of_numbers["upper"].as_f64().unwrap());
    assert!(lower <= rows as f64 && rows as f64 <= upper, "{lower} {upper}");
    assert_eq!(read["properties"]["firn.data-rows"], json!(rows.to_string()));
}

/// Filters and sketches of rows that came twice and of a column that was promoted while they came: other programs find in them exactly what
/// is in the data files (I6 of the invariants).
pub(crate) fn built_of_the_rows_that_dedup_left_and_of_promoted_columns(scene: &Scene) {
    let dataset = "seriesColumns: [origin], timeColumn: time_hour, dedup: true, tantivy: {indexingColumns: [origin]}, \
                   bloomFilterColumns: [hour, origin], ndvColumns: [hour, sent]";
    scene.configure("backlogFileThreshold: 5, verify: reread", dataset);
    scene.make("--source weather --limit 3000 --appends 24 --duplicates 0.2 --evolve promote");
    let deduplicated = scene.lake.digest(TABLE, &["--dedup", "origin,time_hour"]);
    let merged = event(&scene.compact(&[]).expect_code(0));
    assert!(merged["duplicatesDropped"].as_u64().unwrap() > 100, "{merged}");
    assert_eq!((&merged["sidecars"]["written"], &merged["sidecars"]["dropped"]), (&json!(3), &json!(0)), "{merged}");
    assert_eq!(scene.digest(), deduplicated);
    let checked = scene.lake.check_invariants_with(TABLE, &["--dedup", "origin,time_hour"]);
    assert_eq!(checked["sidecars"], json!(3), "{checked}");
    let (by_index, by_scan) = (search(scene, "JFK", &[]), search(scene, "JFK", &["--scan"]));
    assert_eq!(numbers(&by_index), numbers(&by_scan));
    let found = by_index.lines().len();
    assert!(found > 500 && found == numbers(&by_index).len(), "{found} lines, none of them twice");
}
