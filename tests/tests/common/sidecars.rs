//! Sidecars from the merge to the search, wherever the lake lies.

use std::collections::{BTreeMap, BTreeSet};

use firn_test_support::Python;
use firn_tests::Scene;
use firn_tests::program::{Run, firn, run};
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
    assert_eq!(search(scene, "fix", &["--limit", "3"]).lines().len(), 3);

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
