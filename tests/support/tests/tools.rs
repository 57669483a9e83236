//! The tools against themselves: what PyIceberg writes, PyIceberg and DuckDB read alike, and the checks can fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use firn_test_support::{Azurite, Lake, Python};
use serde_json::{Value, json};

#[test]
fn the_scripts_pass_their_own_test() {
    let none: [&str; 0] = [];
    assert_eq!(Python::tools().run("self_test.py", &none)["ok"], json!(true));
}

#[test]
fn two_readers_see_one_digest_through_every_schema_change() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::local(folder.path());
    let options = "--source weather --limit 3000 --appends 12 --partition month:time_hour --duplicates 0.1 \
                   --evolve rename,promote,nested,drop-and-add-again,spec";
    let options: Vec<&str> = options.split_whitespace().collect();
    let made = lake.make_table("iot.weather", &options);
    let rows = made["rows"].as_u64().unwrap();
    assert_eq!(rows, 3300);

    let all = lake.digest("iot.weather", &[]);
    assert_eq!(all.rows, rows);
    assert_eq!(lake.duck_digest("iot.weather", &[]), all);
    lake.check_invariants("iot.weather");

    // The last copy of each key: all keys of the source, and fewer rows than were sent. Across the change of spec a key
    // may live in two partitions.
    let kept = lake.digest("iot.weather", &["--dedup", "origin,time_hour"]);
    assert!((3000..3300).contains(&kept.rows), "{kept:?}");

    let inspected = lake.inspect("iot.weather", &["--entries"]);
    let files = inspected["files"].as_array().unwrap();
    assert_eq!(Some(files.len() as u64), made["files"].as_u64());
    assert_eq!(files.iter().map(|file| file["rows"].as_u64().unwrap()).sum::<u64>(), rows);
    let columns: Vec<&str> = made["columns"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(columns.contains(&"temperature") && !columns.contains(&"temp"), "{columns:?}");
}

#[test]
fn a_file_that_is_gone_is_a_violation() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::local(folder.path());
    lake.make_table("t.gone", &["--source", "weather", "--limit", "30", "--appends", "2"]);
    let path = lake_file(&lake, "t.gone");
    std::fs::remove_file(&path).unwrap();
    assert_violated(&lake, "t.gone", &[], &format!("needs file://{path}, which does not exist"));
}

#[test]
fn two_readers_see_one_digest_in_azurite() {
    let azurite = Azurite::start();
    let folder = tempfile::tempdir().unwrap();
    let warehouse = "abfss://lake@devstoreaccount1.dfs.core.windows.net/wh";
    let lake = Lake::azurite(folder.path(), warehouse, &azurite.connection_string());
    lake.make_table("t.a", &["--source", "weather", "--limit", "90", "--appends", "3", "--partition", "day:time_hour"]);
    let digest = lake.digest("t.a", &[]);
    assert_eq!(digest.rows, 90);
    assert_eq!(lake.duck_digest("t.a", &[]), digest);
    lake.check_invariants("t.a");
    let inspected = lake.inspect("t.a", &[]);
    assert_eq!(inspected["location"].as_str(), Some(format!("{warehouse}/t/a").as_str()));
}

#[test]
fn a_false_claim_of_order_or_uniqueness_is_a_violation() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::local(folder.path());
    // 3 airports an hour: in time order, so not in the order of origin.
    let options = ["--source", "weather", "--limit", "30", "--appends", "1", "--arrival", "sorted"];
    lake.make_table("t.claims", &options);
    let fields = |claims: &[&str]| {
        let mut args = vec!["--claim"];
        args.extend(claims);
        Python::tools().run("claim.py", &[&[lake_file(&lake, "t.claims").as_str()], args.as_slice()].concat());
    };
    fields(&["firn.order=2 asc nulls-first", "timelake.unique=true"]);
    assert_eq!(lake.check_invariants_with("t.claims", &["--dedup", "origin,time_hour"])["claims"], json!(2));

    fields(&["firn.order=1 asc nulls-first"]);
    assert_violated(&lake, "t.claims", &[], "claims firn.order=1 asc nulls-first, but row");
    fields(&["timelake.unique=true"]);
    assert_violated(&lake, "t.claims", &["--dedup", "time_hour"], "claims timelake.unique, but 30 rows have 10 keys");
}

fn lake_file(lake: &Lake, table: &str) -> String {
    let inspected = lake.inspect(table, &[]);
    inspected["files"][0]["path"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned()
}

fn assert_violated(lake: &Lake, table: &str, options: &[&str], expected: &str) {
    let checked = std::panic::AssertUnwindSafe(|| lake.check_invariants_with(table, options));
    let failed = std::panic::catch_unwind(checked).unwrap_err();
    let message = failed.downcast_ref::<String>().unwrap();
    assert!(message.contains(expected), "{message}");
}
