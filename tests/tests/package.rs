//! `firn package`: the same bytes each time, and what is in them runs where nothing else is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use firn_test_support::{Azurite, Python};
use firn_tests::program::{Run, beside, run};
use firn_tests::{Hosted, HostedOptions, Scene, firn};
use serde_json::{Value, json};

/// The handler that is packaged: that of this build, for the one for Azure takes minutes. With `FIRN_SHIPPED_HANDLER` it is that one.
fn handler() -> PathBuf {
    std::env::var_os("FIRN_SHIPPED_HANDLER").map_or_else(|| beside("handler"), PathBuf::from)
}

fn package(config: &Path, out: &Path, more: &[&str]) -> Run {
    let mut command = firn();
    command.args(["--format", "json", "package", "--config"]).arg(config).arg("--out").arg(out);
    run(command.arg("--handler").arg(handler()).args(more))
}

fn unpack(archive: &Path, folder: &Path) -> Value {
    Python::tools().run("unpack.py", &[archive.to_str().unwrap(), folder.to_str().unwrap()])
}

fn config(folder: &Path) -> PathBuf {
    let path = folder.join("any-name.yaml");
    std::fs::write(&path, "catalog: {}\n").unwrap();
    path
}

#[test]
fn the_same_input_is_the_same_zip() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let zips = ["one.zip", "two.zip"].map(|name| folder.path().join(name));
    let first = package(&config, &zips[0], &[]).expect_code(0).summary();
    // Times of files are no part of it.
    std::fs::write(&config, "catalog: {}\n").unwrap();
    let second = package(&config, &zips[1], &[]).expect_code(0).summary();
    assert_eq!(first["sha256"], second["sha256"]);
    assert_eq!(std::fs::read(&zips[0]).unwrap(), std::fs::read(&zips[1]).unwrap());
    std::fs::write(&config, "catalog: {a: b}\n").unwrap();
    assert_ne!(package(&config, &zips[1], &[]).expect_code(0).summary()["sha256"], first["sha256"]);

    let content = unpack(&zips[0], &folder.path().join("app"));
    let entry = |name: &str, mode: &str| json!({"name": name, "mode": mode, "time": [1980, 1, 1, 0, 0, 0]});
    let expected: Vec<Value> = [
        ("clean-orphans/function.json", "0o644"),
        ("compact-poison/function.json", "0o644"),
        ("compact/function.json", "0o644"),
        ("expire-snapshots/function.json", "0o644"),
        ("firn.yaml", "0o644"),
        ("handler", "0o755"),
        ("host.json", "0o644"),
        ("plan/function.json", "0o644"),
        ("status/function.json", "0o644"),
    ]
    .map(|(name, mode)| entry(name, mode))
    .into();
    assert_eq!(content, json!({"damaged": null, "entries": expected}));
    assert_eq!(first["files"], 9);
    if std::env::var_os("FIRN_SHIPPED_HANDLER").is_some() {
        let size = std::fs::metadata(&zips[0]).unwrap().len();
        assert!(size <= 20 << 20, "a package of {size} bytes: 20 MB is the most");
        let program = std::fs::read(handler()).unwrap();
        for place in [env!("CARGO_MANIFEST_DIR"), concat!(env!("HOME"), "/."), "registry/src/"] {
            let found = program.windows(place.len()).any(|bytes| bytes == place.as_bytes());
            assert!(!found, "the program has a place of the machine that built it: {place}");
        }
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("app/firn.yaml")).unwrap(), "catalog: {}\n");
    assert!(std::fs::read(folder.path().join("app/handler")).unwrap() == std::fs::read(handler()).unwrap());
}

#[test]
fn a_folder_for_core_tools() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let out = folder.path().join("app");
    let summary = package(&config, &out, &[]).expect_code(0).summary();
    assert_eq!((&summary["files"], &summary["sha256"]), (&json!(10), &Value::Null));
    for name in [
        "host.json",
        "local.settings.json",
        "firn.yaml",
        "handler",
        "plan/function.json",
        "clean-orphans/function.json",
    ] {
        assert!(out.join(name).is_file(), "{name}");
    }
}

#[test]
fn what_would_not_run_in_azure_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let out = folder.path().join("firn.zip");
    let made = package(&config, &out, &[]).expect_code(0).summary();
    let needed = made["glibc"].as_str().unwrap().to_owned();
    let minor: u32 = needed.strip_prefix("2.").unwrap().parse().unwrap();
    let checked = package(&config, &out, &["--check"]);
    if minor > 28 {
        let checked = checked.expect_code(1);
        assert!(checked.stderr.contains(&format!("needs glibc {needed}")), "{}", checked.stderr);
    } else {
        checked.expect_code(0);
    }

    let script = folder.path().join("handler.sh");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    let refused = |config: &Path, handler: &Path, part: &str| {
        let mut command = firn();
        command.args(["package", "--config"]).arg(config).arg("--out").arg(&out).arg("--handler").arg(handler);
        let refused = run(&mut command).expect_code(2);
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    };
    refused(&config, &script, "is no program for Linux on x86-64");
    refused(&folder.path().join("none.yaml"), &beside("handler"), "name the configuration with --config");
    std::fs::write(&config, "storage: {connectionString: 'AccountName=a;AccountKey=aGk='}\n").unwrap();
    refused(&config, &beside("handler"), "a key or signature would go into the package");
}

#[test]
fn the_package_runs_in_an_empty_folder_without_a_toolchain() {
    let azurite = Azurite::start();
    let scene = Scene::azurite(&azurite, "package").with_connection_string("${FIRN_TEST_CONNECTION}");
    scene.configure("backlogFileThreshold: 3", "seriesColumns: [origin], timeColumn: time_hour");
    scene.make("--source weather --limit 500 --appends 6 --partition month:time_hour");
    let expected = scene.digest();
    let zip = scene.path().join("firn.zip");
    package(&scene.config(), &zip, &[]).expect_code(0);
    let root = tempfile::tempdir().unwrap();
    unpack(&zip, root.path());

    let connection = azurite.connection_string();
    // The configuration is found by its name in the package. No PATH: neither the host nor the handler finds a program of this machine.
    let settings = [("FIRN_TEST_CONNECTION", connection.as_str()), ("PATH", "/nowhere"), ("HOME", "/nowhere")];
    let hosted = Hosted::over(
        root,
        &scene,
        &HostedOptions { connection: &connection, settings: &settings, receive_visibility: None },
    );
    let status = hosted.drained(Duration::from_secs(120));
    assert_eq!(status["parked"]["count"], 0, "{status:#}");
    assert!(!hosted.events("partitionFinished").is_empty(), "{}", hosted.tail());
    assert_eq!(hosted.problems(), Vec::<String>::new());
    hosted.stop();
    assert_eq!(scene.digest(), expected);
    scene.lake.check_invariants(firn_tests::scene::TABLE);
}
