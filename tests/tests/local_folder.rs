//! `firn compact` on tables that PyIceberg wrote into a local folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use firn_test_support::Python;
use firn_tests::program::run;
use firn_tests::scene::TABLE;
use firn_tests::{Scene, firn};
use serde_json::{Value, json};

#[path = "common/sidecars.rs"]
mod sidecars;

const WEATHER: [&str; 10] = [
    "--source",
    "weather",
    "--appends",
    "120",
    "--partition",
    "month:time_hour",
    "--duplicates",
    "0.02",
    "--limit",
    "6000",
];
const READINGS: &str = "seriesColumns: [origin], timeColumn: time_hour, dedup: true";

/// Thresholds under which a partition of 40 tiny files is worth a merge.
const EAGER: &str = "backlogFileThreshold: 10, verify: reread";

fn outcomes(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect()
}

#[test]
fn late_rows_and_duplicates_become_one_sorted_file_a_month() {
    let scene = Scene::local();
    scene.configure(EAGER, READINGS);
    scene.lake.make_table(TABLE, &WEATHER);
    let before = scene.inspect();
    let snapshot_before = before["current_snapshot_id"].as_i64().unwrap();
    let rows_before = scene.digest();
    let deduplicated = scene.lake.digest(TABLE, &["--dedup", "origin,time_hour"]);
    assert!(deduplicated.rows < rows_before.rows, "the input has duplicates");

    let planned = scene.compact(&["--dry-run"]).expect_code(0).lines();
    assert!(planned.iter().all(|line| line["decision"] == "selected" && line["rule"] == "manual"), "{planned:#?}");
    assert_eq!(scene.inspect()["metadata_location"], before["metadata_location"], "a dry run changes nothing");

    let run = scene.compact(&[]).expect_code(0);
    let lines = run.lines();
    assert_eq!(outcomes(&lines), vec!["done"; planned.len()], "{lines:#?}");
    for line in &lines {
        assert_eq!(line["filesAfter"], json!(1), "{line}");
        let (rows_in, rows_out) = (line["rowsIn"].as_u64().unwrap(), line["rowsOut"].as_u64().unwrap());
        assert_eq!(rows_in, rows_out + line["duplicatesDropped"].as_u64().unwrap(), "{line}");
    }
    assert_eq!(scene.digest(), deduplicated);
    assert_eq!(scene.lake.duck_digest(TABLE, &[]), deduplicated);
    assert_eq!(scene.digest_at(snapshot_before), rows_before, "time travel to before the merge");
    scene.check_converged(&[]);
    scene.check_converged(&["--full"]);
}

/// How the table's properties want files and metrics, and what PyIceberg's metadata tables make of what was written.
#[test]
fn the_tables_own_properties_say_how_files_and_metrics_are_written() {
    let scene = Scene::local();
    scene.configure(EAGER, "seriesColumns: [origin], timeColumn: time_hour");
    let properties = [
        "write.parquet.compression-codec=gzip",
        "write.parquet.row-group-size-bytes=20000",
        "write.parquet.dict-size-bytes=64",
        "write.metadata.metrics.default=none",
        "write.metadata.metrics.column.origin=truncate(2)",
        "write.metadata.metrics.column.time_hour=full",
        "write.metadata.metrics.column.hour=counts",
    ];
    let properties: Vec<String> = properties.iter().map(|property| format!(" --property {property}")).collect();
    scene.make(&format!(
        "--source weather --appends 40 --limit 6000 --sort-order origin,time_hour{}",
        properties.concat()
    ));
    let rows = scene.digest();
    scene.compact(&["--full"]).expect_code(0);
    assert_eq!(scene.digest(), rows);

    let view = scene.lake.readers_view(TABLE);
    let files = scene.inspect()["files"].as_array().unwrap().clone();
    let [file] = &files[..] else { panic!("{files:#?}") };
    assert_eq!(view["files"], json!([{"path": file["path"], "rows": 6000, "bytes": file["bytes"]}]));
    // 40 deleted, one added.
    assert_eq!(view["entries"], json!([vec![1], vec![2; 40]].concat()));
    assert_eq!(view["operations"].as_array().unwrap().last(), Some(&json!("replace")));
    assert_eq!(file["sort_order_id"], json!(1), "readers may rely on the table's order");

    let footer = &view["footers"][0];
    let groups: Vec<u64> = footer["rows"].as_array().unwrap().iter().map(|rows| rows.as_u64().unwrap()).collect();
    assert!(groups.len() > 3 && groups.iter().sum::<u64>() == 6000, "{groups:?}");
    // A chunk that does not get smaller is not compressed.
    for (name, column) in footer["columns"].as_object().unwrap() {
        let codecs = column["codecs"].as_array().unwrap();
        assert!(codecs.iter().all(|codec| codec == "GZIP" || codec == "UNCOMPRESSED"), "{name}: {codecs:?}");
    }
    assert_eq!(footer["columns"]["temp"]["codecs"], json!(["GZIP"]));
    // Three names fit 64 bytes, thousands of hours do not.
    assert_eq!(footer["columns"]["origin"]["dictionary"], true);
    assert_eq!(footer["columns"]["time_hour"]["dictionary"], false);

    let fields = |metric: &str| -> Vec<String> { file[metric].as_object().unwrap().keys().cloned().collect() };
    assert_eq!(fields("value_counts"), ["1", "2", "3"], "origin, time_hour, hour");
    assert_eq!(
        (fields("lower_bounds"), fields("upper_bounds")),
        (vec!["1".into(), "2".into()], vec!["1".into(), "2".into()])
    );
    // EWR to LGA: two letters, the upper one rounded up.
    assert_eq!((&file["lower_bounds"]["1"], &file["upper_bounds"]["1"]), (&json!("4557"), &json!("4c48")));
    scene.check_converged(&["--full"]);
}

/// `firn verify` on a compacted table: each check by its name, and whether it is well.
fn verified(scene: &Scene, code: i32) -> Vec<(String, bool)> {
    let mut command = firn();
    command.args(["--format", "json", "verify", "--config"]).arg(scene.config());
    let lines = run(&mut command).expect_code(code).lines();
    let check = |line: &Value| (line["check"].as_str().unwrap().to_owned(), line["ok"].as_bool().unwrap());
    lines.iter().map(check).collect()
}

#[test]
fn verify_sees_what_is_wrong_with_a_table() {
    let scene = Scene::local();
    scene.configure(EAGER, READINGS);
    scene.make("--source weather --appends 40 --partition month:time_hour --limit 1500 --property write.parquet.compression-codec=snappy");
    scene.compact(&["--full"]).expect_code(0);
    let names = ["table", "I2 files exist", "I3 no path twice", "I4 summary totals", "I5 sortedness", "row proof"];
    let expected = |wrong: &[&str]| -> Vec<(String, bool)> {
        names.iter().map(|name| ((*name).to_owned(), !wrong.contains(name))).collect()
    };
    assert_eq!(verified(&scene, 0), expected(&[]));

    let all = scene.lake.files(TABLE);
    let data: Vec<PathBuf> = all
        .keys()
        .filter(|name| name.ends_with(".parquet"))
        .map(|name| scene.path().join("warehouse").join(name))
        .collect();
    // Firn's names begin with the hash of their inputs, PyIceberg's with the number of a task.
    let is_ours = |path: &&PathBuf| !path.file_name().unwrap().to_string_lossy().starts_with("00000-");
    let output = data.iter().find(is_ours).unwrap();
    let input = data.iter().find(|path| !is_ours(path)).unwrap();
    let forge = |how: &[&str]| {
        let file = output.to_str().unwrap();
        Python::tools().run("forge.py", &[&[file], how].concat());
    };
    let whole = std::fs::read(output).unwrap();
    for (how, wrong) in [
        (&["--how", "reversed"][..], &["I5 sortedness"][..]),
        (&["--how", "changed", "--column", "sent"], &["row proof"]),
    ] {
        forge(how);
        assert_eq!(verified(&scene, 1), expected(wrong), "{how:?}");
        std::fs::write(output, &whole).unwrap();
    }
    let mut flipped = whole.clone();
    flipped[whole.len() / 3] ^= 0x10;
    std::fs::write(output, &flipped).unwrap();
    assert_eq!(verified(&scene, 1), expected(&["row proof"]), "damaged");
    std::fs::write(output, &whole).unwrap();

    let longer = [&whole[..], b"more"].concat();
    std::fs::write(output, &longer).unwrap();
    assert!(verified(&scene, 1).contains(&("I2 files exist".to_owned(), false)), "a file that has grown");
    std::fs::write(output, &whole).unwrap();

    // An older snapshot needs it.
    std::fs::remove_file(input).unwrap();
    assert_eq!(verified(&scene, 1), expected(&["I2 files exist"]), "an input is gone");
}

#[test]
fn one_pass_by_the_ordinary_rules_ends_by_itself_and_a_filter_that_matches_nothing_is_named() {
    let scene = Scene::local();
    scene.configure(EAGER, READINGS);
    scene.lake.make_table(TABLE, &WEATHER);
    let deduplicated = scene.lake.digest(TABLE, &["--dedup", "origin,time_hour"]);

    let nothing = scene.compact(&["--date-range", "2001-01-01:2001-01-31"]).expect_code(0);
    assert_eq!((nothing.lines().len(), &nothing.summary()["partitions"]), (0, &json!(0)));
    assert_eq!(
        nothing.summary()["remarks"],
        json!([
            "no partition matches --date-range 2001-01-01:2001-01-31; firn compact --dry-run without it shows those that \
                there are"
        ])
    );
    let mut text = firn();
    let text = run(text.args(["compact", "--dry-run", "--once", "--config"]).arg(scene.config())).expect_code(0).stdout;
    assert!(text.contains("=2013-01 "), "months as dates: {text}");
    assert!(text.contains("\nNote: whether memoryMb and tempDiskMb are enough shows"), "{text}");

    let planned = scene.compact(&["--once", "--dry-run"]).expect_code(0).lines();
    let rules: Vec<&str> = planned.iter().map(|line| line["rule"].as_str().unwrap()).collect();
    assert!(rules.contains(&"schedule"), "{planned:#?}");
    let done = scene.compact(&["--once"]).expect_code(0);
    assert_eq!(done.summary()["failed"], json!(0), "{done:?}");
    assert_eq!(done.summary()["done"], json!(planned.iter().filter(|line| line["decision"] == "selected").count()));
    assert_eq!(scene.digest(), deduplicated);
    scene.check_converged(&["--once"]);
}

#[test]
fn without_dedup_every_row_stays_under_every_schema_change() {
    let scene = Scene::local();
    scene.configure(EAGER, "sortColumns: [origin, time_hour]");
    let changes = ["--evolve", "rename,drop-and-add-again,promote,nested,spec", "--arrival", "scattered"];
    scene.lake.make_table(TABLE, &[&WEATHER[..], &changes].concat());
    let rows_before = scene.digest();

    let run = scene.compact(&["--full"]).expect_code(0);
    assert!(run.summary()["done"].as_u64().unwrap() > 1, "{run:?}");
    assert_eq!(scene.digest(), rows_before);
    assert_eq!(scene.lake.duck_digest(TABLE, &[]), rows_before);
    scene.check_converged(&["--full"]);
}

/// 19 columns with many nulls, a key of two columns, and departures of many flights in one hour.
#[test]
fn departures_become_one_sorted_file_a_month() {
    let scene = Scene::local();
    scene.configure(EAGER, "seriesColumns: [carrier, flight], timeColumn: time_hour, dedup: true");
    let source = ["--source", "flights", "--limit", "40000", "--appends", "40", "--partition", "month:time_hour"];
    scene.lake.make_table(TABLE, &[&source[..], &["--duplicates", "0.02", "--arrival", "scattered"]].concat());
    let deduplicated = scene.lake.digest(TABLE, &["--dedup", "carrier,flight,time_hour"]);
    let lines = scene.compact(&["--full"]).expect_code(0).lines();
    assert!(lines.iter().all(|line| line["outcome"] == "done" && line["filesAfter"] == json!(1)), "{lines:#?}");
    assert_eq!(scene.digest(), deduplicated);
    assert_eq!(scene.lake.duck_digest(TABLE, &[]), deduplicated);
    scene.check_converged(&["--full"]);
}

/// Avro takes neither name as it is: Iceberg's writers escape the one, PyIceberg lets the letters of the other stand.
#[test]
fn partition_fields_may_have_any_name() {
    let scene = Scene::local();
    scene.configure(EAGER, READINGS);
    let odd = "month:time_hour=1st time-month,identity:origin=größe";
    let arguments = WEATHER.map(|argument| if argument == "month:time_hour" { odd } else { argument });
    scene.lake.make_table(TABLE, &arguments);
    let deduplicated = scene.lake.digest(TABLE, &["--dedup", "origin,time_hour"]);
    let run = scene.compact(&["--full"]).expect_code(0);
    assert_eq!(run.summary()["done"], json!(9), "three months of three origins: {run:?}");
    assert_eq!(scene.digest(), deduplicated);
    assert_eq!(scene.lake.duck_digest(TABLE, &[]), deduplicated);
    scene.check_converged(&["--full"]);
}

#[test]
fn text_without_any_order_keeps_commit_order_and_every_row() {
    let scene = Scene::local();
    scene.configure(EAGER, "");
    scene.lake.make_table(TABLE, &["--source", "changelogs", "--appends", "150", "--format-version", "1"]);
    let rows_before = scene.digest();
    let lines = scene.compact(&[]).expect_code(0).lines();
    assert_eq!(outcomes(&lines), ["done"]);
    assert_eq!(scene.digest(), rows_before);
    scene.check_converged(&[]);
}

#[test]
fn the_long_running_compactor_ticks_at_its_start_and_ends_when_it_is_told_to() {
    let scene = Scene::local();
    scene.configure(EAGER, READINGS);
    scene.lake.make_table(TABLE, &WEATHER);
    let deduplicated = scene.lake.digest(TABLE, &["--dedup", "origin,time_hour"]);

    let mut compactor =
        scene.compactor_command().stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("firn starts");
    let mut events: Vec<Value> = Vec::new();
    let mut lines = BufReader::new(compactor.stdout.take().unwrap()).lines();
    while events.last().is_none_or(|event| event["event"] != "passFinished") {
        let line = lines.next().expect("it goes on after the pass").unwrap();
        events.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}")));
    }
    let process = compactor.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    assert_eq!(compactor.wait().unwrap().code(), Some(0));

    let pass = events.pop().unwrap();
    assert_eq!((&pass["rule"], &pass["outcome"], &pass["failed"]), (&json!("backlog"), &json!("done"), &json!(0)));
    assert!(events.len() > 1, "{events:#?}");
    for event in &events {
        assert_eq!((&event["event"], &event["outcome"]), (&json!("partitionFinished"), &json!("done")), "{event}");
    }
    assert_eq!(pass["done"], json!(events.len()));
    assert_eq!(scene.digest(), deduplicated);
    scene.check_converged(&[]);
}

#[test]
fn sidecars_are_built_beside_the_merge_and_read_back() {
    sidecars::built_beside_the_merge_and_read_back(&Scene::local());
}

/// Too little memory for any sidecar: the merge goes on without, and says so.
#[test]
fn sidecars_that_do_not_fit_are_dropped_and_the_rows_are_merged() {
    sidecars::dropped_where_they_do_not_fit(&Scene::local());
}

#[test]
fn sidecars_that_cannot_be_uploaded_are_dropped_and_the_rows_are_merged() {
    sidecars::dropped_where_they_cannot_be_uploaded(&Scene::local());
}

#[test]
fn files_of_writers_not_named_are_noted() {
    sidecars::files_of_writers_not_named_are_noted(&Scene::local());
}

#[test]
fn an_index_that_never_fits_is_dropped_and_then_noted() {
    sidecars::an_index_that_never_fits_is_noted(&Scene::local());
}

#[test]
fn table_statistics_are_made_of_all_files() {
    sidecars::statistics_are_made_of_all_files(&Scene::local());
}

#[test]
fn a_search_leaves_out_what_delete_files_delete() {
    sidecars::deleted_rows_are_not_found(&Scene::local());
}

/// K105: partitions are told apart by their typed tuples, never by text or hash.
#[test]
fn partitions_that_look_alike_keep_their_own_rows() {
    let scene = Scene::local();
    scene.configure("backlogFileThreshold: 2", "");
    let before = scene.lake.alike_partitions(TABLE, 4);
    let rows = scene.digest();
    assert_eq!(before.as_object().unwrap().len(), 40, "five names, eight buckets");
    let lines = scene.compact(&[]).expect_code(0).lines();
    assert!(lines.iter().any(|line| line["outcome"] == "done"), "{lines:#?}");
    assert_eq!(scene.lake.alike_partitions(TABLE, 0), before);
    assert_eq!(scene.digest(), rows);
    // By hand one of those that look alike is named exactly.
    scene.compact(&["--full", "--dataset", "readings", "--partition", "db=a "]).expect_code(0);
    scene.compact(&["--full", "--dataset", "readings", "--partition", "db=\\N"]).expect_code(0);
    scene.compact(&["--full", "--dataset", "readings"]).expect_code(0);
    assert_eq!(scene.lake.alike_partitions(TABLE, 0), before);
    assert_eq!(scene.inspect()["files"].as_array().unwrap().len(), 40);
    scene.check_converged(&["--dataset", "readings", "--full"]);
}

#[test]
fn sidecars_hold_the_rows_that_dedup_left_and_promoted_columns() {
    sidecars::built_of_the_rows_that_dedup_left_and_of_promoted_columns(&Scene::local());
}

#[test]
fn odd_values_are_found_by_index_and_scan_alike() {
    sidecars::odd_values_are_found_alike(&Scene::local());
}
