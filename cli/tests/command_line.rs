//! The binary as scripts see it: exit codes, what goes to stdout and what to stderr.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::{Command, Output};

fn firn(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_firn")).args(arguments).env_remove("FIRN_CONFIG").output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Exit code 2, nothing on stdout, this on stderr.
fn refused(arguments: &[&str], part: &str) {
    let output = firn(arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(message.contains(part), "{arguments:?}: {message}");
}

fn write(folder: &Path, text: &str) -> String {
    let path = folder.join("firn.yaml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const SOUND: &str = "\
catalog: {type: sql, uri: 'sqlite:////nowhere/catalog.db', name: lake, warehouse: 'file:///nowhere'}
ingestion: {datasets: [{name: readings, table: iot.readings}]}
";

#[test]
fn help_and_version_are_answers() {
    let help = firn(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let text = String::from_utf8(help.stdout).unwrap();
    for command in
        ["compact", "verify", "demo", "local", "invoke", "expire", "orphans", "inspect", "search", "doctor", "package"]
    {
        assert!(text.contains(&format!("\n  {command} ")), "{command}: {text}");
    }
    let version = firn(&["--version"]);
    assert_eq!(String::from_utf8(version.stdout).unwrap(), format!("firn {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_is_exit_code_2() {
    refused(&[], "Usage:");
    refused(&["melt"], "melt");
    refused(&["compact", "--nonsense"], "--nonsense");
    refused(&["compact", "--dry-run"], "--config is missing; write --config firn.yaml or set FIRN_CONFIG");
    refused(
        &["compact", "--config", "f", "--date-range", "2026-11-02:2026-11-01"],
        "\"2026-11-02:2026-11-01\" runs backwards",
    );
    refused(&["compact", "--config", "f", "--partition", "day"], "\"day\" is not a partition");
    refused(
        &["invoke", "plan", "--url", "localhost:7071"],
        "this is no address; write for example http://127.0.0.1:7071",
    );
    refused(&["verify", "--config", "/nowhere/firn.yaml"], "error: /nowhere/firn.yaml: cannot be read");
}

#[test]
fn a_search_needs_a_configuration_and_a_dataset_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), SOUND);
    refused(&["search", "--config", "f", "--dataset", "d", "error"], "f: cannot be read");
    refused(&["search", "--config", &path, "--dataset", "nowhere", "error"], "nowhere");
}

#[test]
fn a_queue_needs_a_storage_section() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), SOUND);
    refused(&["compact", "--config", &path, "--enqueue"], "there is no queue without a storage section");
}

#[test]
fn a_host_that_does_not_run_is_exit_code_1_and_wrong_data_is_2() {
    let folder = tempfile::tempdir().unwrap();
    let invoke = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
        command.arg("invoke").args(arguments).env("FIRN_LOCAL_DIR", folder.path()).output().unwrap()
    };
    let output = invoke(&["plan", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: no local host runs ("), "{}", stderr(&output));
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["summary"], &line["ok"]), (&true.into(), &false.into()));
    assert_eq!(invoke(&["plan", "--url", "http://127.0.0.1:1"]).status.code(), Some(1));
    refused(&["invoke", "plan", "--data", "{"], "\"{\" is not JSON");
}

#[test]
fn a_local_host_needs_a_queue() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), SOUND);
    refused(&["local", "--config", &path], "section storage is missing");
}

#[test]
fn every_problem_of_a_configuration_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &format!("{SOUND}compaction:\n  targetSizeMb: abc\n  schedule: '@daily'\n"));
    let output = firn(&["compact", "--config", &path, "--dry-run", "--format", "json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let message = stderr(&output);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    let number = "compaction.targetSizeMb: \"abc\" is not a whole number of megabytes; write for example 128";
    assert_eq!(lines[0], format!("error: {path}:4: {number}"));
    assert!(lines[1].starts_with(&format!("error: {path}:5: compaction.schedule: \"@daily\"")), "{message}");
}

#[test]
fn a_catalog_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // The port of `discard`, where nothing listens.
    let text = "catalog: {type: rest, uri: 'http://127.0.0.1:9'}\ningestion: {datasets: [{name: a, table: b.c}]}\n";
    let path = write(folder.path(), text);
    let output = Command::new(env!("CARGO_BIN_EXE_firn")).args(["verify", "--config", &path]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("catalog `http://127.0.0.1:9` does not answer"), "{}", stderr(&output));
}

#[test]
fn an_unknown_dataset_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), SOUND);
    for command in ["compact", "verify"] {
        refused(&[command, "--config", &path, "--dataset", "reading"], "--dataset \"reading\" is not in");
    }
}

#[test]
fn the_configuration_may_come_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), SOUND);
    let output = Command::new(env!("CARGO_BIN_EXE_firn"))
        .args(["verify", "--dataset", "none"])
        .env("FIRN_CONFIG", &path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(&format!("is not in {path}, which has readings")));
}

#[test]
fn a_catalog_that_is_not_there_is_exit_code_1_with_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), SOUND);
    for arguments in [["compact", "--dry-run"].as_slice(), &["compact", "--full"], &["verify"]] {
        let all = [arguments, &["--config", &path, "--format", "json"]].concat();
        let output = firn(&all);
        assert_eq!(output.status.code(), Some(1), "{all:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("error"), "{all:?}");
        let answer = String::from_utf8(output.stdout).unwrap();
        let last: serde_json::Value = serde_json::from_str(answer.lines().last().unwrap()).unwrap();
        assert_eq!((&last["summary"], &last["ok"]), (&true.into(), &false.into()), "{answer}");
    }
}
