//! A table of very many files is planned in bounded memory. `FIRN_SCALE_FILES=1000000` is what the project asks for before a release;
//! without it the table has a twentieth of that.

use std::collections::HashMap;
use std::process::Command;
use std::time::Instant;

use firn_config::Config;
use firn_pass::{ManualRequest, NoReport, manual};
use firn_telemetry::Emitter;

use crate::lake::*;

const FILES: u64 = 50_000;
const FILES_A_PARTITION: u64 = 100;
/// What the planner may take, whatever the table's size.
const MEMORY: u64 = 300 << 20;
const CONFIG: &str = "FIRN_SCALE_CONFIG";

#[tokio::test]
async fn a_table_of_very_many_files_is_planned_in_bounded_memory() {
    let files: u64 = std::env::var("FIRN_SCALE_FILES").ok().and_then(|files| files.parse().ok()).unwrap_or(FILES);
    let lake = Lake::new("2026-11-01T12:00:00Z", "", &["spans"]).await;
    lake.create("spans", &[]).await;
    let begun = Instant::now();
    lake.append_many("spans", files / FILES_A_PARTITION, FILES_A_PARTITION, MB).await;
    println!("{files} files written to manifests in {:.1} s", begun.elapsed().as_secs_f64());
    // A process of its own: what wrote the manifests does not count.
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "scale::planned_in_this_process", "--nocapture"])
        .env(CONFIG, lake.config_text())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{told}{}", String::from_utf8_lossy(&child.stderr));
    let line = told.lines().find_map(|line| line.split_once("planned: ")).unwrap_or_else(|| panic!("{told}")).1;
    println!("{line}");
    let number = |name: &str| -> u64 {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == name).unwrap();
        words[at + 1].split('.').next().unwrap().parse().unwrap()
    };
    let partitions = files / FILES_A_PARTITION;
    assert_eq!((number("partitions"), number("selected")), (partitions, partitions));
    assert_eq!(number("files"), files);
    assert!(number("peak") < MEMORY >> 20, "{line}");
    // The project's own figure; a twentieth of the table is planned in a moment on any machine.
    assert!(files < 1_000_000 || number("seconds") < 60, "{line}");
}

/// Does nothing but in the process that the test above starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planned_in_this_process() {
    let Ok(text) = std::env::var(CONFIG) else { return };
    let config = Config::load(&text, &HashMap::<String, String>::new()).unwrap();
    let request = ManualRequest { dry_run: true, ..ManualRequest::default() };
    let begun = Instant::now();
    let plan = manual(&config, &request, &Emitter::to(std::io::sink()), &mut NoReport).await.unwrap();
    println!(
        "planned: partitions {} selected {} files {} peak {} MB seconds {:.1}",
        plan.partitions,
        plan.selected,
        plan.files,
        peak_mb(),
        begun.elapsed().as_secs_f64()
    );
}

/// The most memory this process ever held.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}
