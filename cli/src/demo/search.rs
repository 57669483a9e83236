//! The logs searched: by their indexes, and by reading every row. Both must find the lines that were written.

use std::collections::BTreeSet;

use firn_config::Config;
use firn_pass::{FoundRow, SearchRequest, SearchSummary};

use super::DemoError;
use super::report::DemoReport;
use super::rows::DemoTable;

/// What is looked for, as a person types it and as words that follow each other.
const QUERY: &str = "\"took 7\"";
const WORDS: [&str; 2] = ["took", "7"];

/// Place of the text among the columns of the logs.
const LINE: usize = 3;

/// Searches the logs, whose rows are `written`, and notes what must hold.
pub(super) async fn check(config: &Config, written: &[Vec<String>], report: &mut DemoReport) -> Result<(), DemoError> {
    let lines = written.iter().filter_map(|row| row.get(LINE));
    let has = |line: &&String| line.split(' ').collect::<Vec<_>>().windows(2).any(|pair| pair == WORDS);
    let expected: BTreeSet<&str> = lines.filter(has).map(String::as_str).collect();
    for scan in [false, true] {
        let (found, summary) = search(config, scan).await?;
        let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        let (way, expected_way) = match scan {
            false => ("by index", summary.by_index),
            true => ("by reading all rows", summary.by_scan),
        };
        let wrong = (found != expected || summary.files != expected_way)
            .then(|| format!("{} lines were found, {} expected; {summary:?}", found.len(), expected.len()));
        let what = format!("search for {QUERY} finds {} lines in {} files {way}", expected.len(), summary.files);
        report.check(what, wrong);
    }
    Ok(())
}

async fn search(config: &Config, scan: bool) -> Result<(Vec<String>, SearchSummary), DemoError> {
    let dataset = Some(DemoTable::Logs.name().to_owned());
    let request = SearchRequest { dataset, query: QUERY.into(), limit: None, scan };
    let mut lines = Vec::new();
    let mut found = |row: FoundRow| lines.extend(row.values["line"].as_str().map(str::to_owned));
    let summary = firn_pass::search(config, &request, &mut found).await.map_err(DemoError::of("search"))?;
    Ok((lines, summary))
}
