//! The main job, as a new user would do it: PyIceberg writes a table in many small appends, `firn` compacts it, PyIceberg and DuckDB read it
//! back. Everything lies in `target/quickstart`, which is made anew.
#![allow(clippy::print_stdout, reason = "this program talks to a person")]

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use firn_test_support::{Lake, target_dir};
use firn_tests::program::firn_path;
use firn_tests::scene::{TABLE, configuration};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("quickstart: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let folder = folder()?;
    let lake = Lake::local(&folder);
    let config = folder.join("firn.yaml");
    let dataset = "seriesColumns: [origin], timeColumn: time_hour, dedup: true";
    let text = configuration(&lake, "", "backlogFileThreshold: 10, verify: reread", dataset);
    std::fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;

    say(
        "PyIceberg writes a year of hourly weather at three airports, in 120 small appends with late rows and duplicates",
    );
    let options = ["--source", "weather", "--appends", "120", "--partition", "month:time_hour", "--duplicates", "0.02"];
    println!("{}", lake.make_table(TABLE, &options));
    let wanted = lake.digest(TABLE, &["--dedup", "origin,time_hour"]);

    say("firn compact --dry-run: what would be merged, and why");
    firn(&config, &["compact"], &["--dry-run"])?;
    say("firn compact");
    firn(&config, &["compact"], &["--dataset", "readings"])?;
    say("firn verify");
    firn(&config, &["verify"], &[])?;

    say("read back: one row for each origin and hour, the last one written");
    let (pyiceberg, duckdb) = (lake.digest(TABLE, &[]), lake.duck_digest(TABLE, &[]));
    println!("expected  {} rows, digest {}", wanted.rows, wanted.digest);
    println!("PyIceberg {} rows, digest {}", pyiceberg.rows, pyiceberg.digest);
    println!("DuckDB    {} rows, digest {}", duckdb.rows, duckdb.digest);
    if pyiceberg != wanted || duckdb != wanted {
        return Err("the rows differ".to_owned());
    }
    println!("\nAll rows are there. The table and its configuration are in {}", folder.display());
    Ok(())
}

/// A new, empty `target/quickstart`.
fn folder() -> Result<PathBuf, String> {
    let folder = target_dir().join("quickstart");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))
}

fn say(what: &str) {
    println!("\n== {what}");
}

fn firn(config: &std::path::Path, command: &[&str], flags: &[&str]) -> Result<(), String> {
    let events = config.with_file_name("events.jsonl");
    let log = std::fs::OpenOptions::new().create(true).append(true).open(&events);
    let log = log.map_err(|error| format!("{}: {error}", events.display()))?;
    let mut program = Command::new(firn_path());
    match program.args(command).arg("--config").arg(config).args(flags).stderr(log).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("firn {} ended with {status}; see {}", command.join(" "), events.display())),
        Err(error) => Err(format!("firn does not start: {error}")),
    }
}
