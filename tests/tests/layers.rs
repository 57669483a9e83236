//! The house has an order: each crate uses only those above it in the list, and heavy libraries stay where they belong
//! (design section 1).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Top to bottom: a crate may use those before it.
const HOUSE: [&str; 17] = [
    "firn-model",
    "firn-telemetry",
    "firn-config",
    "firn-storage",
    "firn-state",
    "firn-plan",
    "firn-merge",
    "firn-codec",
    "firn-columnar",
    "firn-sidecar",
    "firn-table",
    "firn-compact",
    "firn-maintain",
    "firn-pass",
    "firn-handler",
    "firn-local-host",
    "firn",
];

/// Only tests use these.
const TEST_CRATES: [&str; 2] = ["firn-test-support", "firn-tests"];

/// What a crate must not be built with, not even through others.
const KEPT_OUT: [(&str, &[&str]); 12] = [
    ("firn-model", &["arrow", "parquet", "iceberg", "tokio", "reqwest", "sqlx"]),
    ("firn-telemetry", &["arrow", "parquet", "iceberg", "tokio"]),
    ("firn-config", &["arrow", "parquet", "iceberg", "tokio"]),
    ("firn-storage", &["arrow", "parquet", "iceberg", "sqlx"]),
    ("firn-state", &["arrow", "parquet", "iceberg", "sqlx"]),
    ("firn-plan", &["arrow", "parquet", "iceberg", "tokio"]),
    ("firn-merge", &["parquet", "iceberg", "tokio"]),
    ("firn-codec", &["arrow", "parquet", "iceberg", "tokio"]),
    ("firn-columnar", &["iceberg", "sqlx", "tantivy"]),
    ("firn-sidecar", &["iceberg", "sqlx"]),
    // What runs in Azure has nothing of the machine it was made on.
    ("firn-handler", &["firn-local-host", "firn-test-support", "clap"]),
    ("firn-local-host", &["arrow", "parquet", "iceberg", "sqlx"]),
];

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs, it also runs this test");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Names of the crates that the library or binary of `name` is built with.
fn built_with(name: &str) -> BTreeSet<String> {
    let tree = cargo(&["tree", "--package", name, "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    tree.lines().filter_map(|line| line.split(' ').next()).filter(|found| *found != name).map(str::to_owned).collect()
}

/// `arrow` stands for the crate and its family: arrow-array, arrow-schema and so on.
fn is_of(found: &str, family: &str) -> bool {
    found == family || found.strip_prefix(family).is_some_and(|rest| rest.starts_with('-'))
}

#[test]
fn every_crate_has_its_place_and_uses_only_those_above_it() {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let names: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    let expected: BTreeSet<&str> = HOUSE.into_iter().chain(TEST_CRATES).collect();
    assert_eq!(names, expected, "a new crate needs its place in the house");
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let Some(place) = HOUSE.iter().position(|known| *known == name) else { continue };
        for dependency in package["dependencies"].as_array().unwrap() {
            let uses = dependency["name"].as_str().unwrap();
            let for_tests = dependency["kind"] == "dev";
            if !expected.contains(uses) || (for_tests && TEST_CRATES.contains(&uses)) {
                continue;
            }
            assert!(HOUSE[..place].contains(&uses), "{name} may not use {uses}");
        }
    }
}

#[test]
fn telemetry_knows_only_the_model() {
    let house: BTreeSet<String> =
        built_with("firn-telemetry").into_iter().filter(|found| HOUSE.contains(&found.as_str())).collect();
    assert_eq!(house, BTreeSet::from(["firn-model".to_owned()]));
}

#[test]
fn heavy_libraries_stay_where_they_belong() {
    for (name, families) in KEPT_OUT {
        let found = built_with(name);
        assert!(!found.is_empty(), "{name} uses something");
        for family in families {
            let wrong: Vec<&String> = found.iter().filter(|found| is_of(found, family)).collect();
            assert!(wrong.is_empty(), "{name} is built with {wrong:?}");
        }
    }
    // The other way round, so that the test cannot pass by finding nothing.
    assert!(built_with("firn-table").iter().any(|found| is_of(found, "iceberg")));
    assert!(built_with("firn-columnar").iter().any(|found| is_of(found, "parquet")));
    assert!(built_with("firn-merge").iter().any(|found| is_of(found, "arrow")));
}
