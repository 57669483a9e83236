//! `firn search`: rows of a dataset by words, phrases, and, or, not.

use std::io::Write;

use firn_pass::{FoundRow, SearchRequest, SearchSummary};
use serde_json::json;

use crate::args::{Format, SearchArgs};
use crate::commands::{Context, complain, load_config, until_interrupted};
use crate::exit::Exit;
use crate::output::stdout::Stdout;
use crate::output::table::plural;

pub(crate) async fn run(args: SearchArgs, context: &Context) -> Exit {
    let config = match load_config(&args.over.config, args.over.dataset.as_deref()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let request = SearchRequest { dataset: args.over.dataset, query: args.query, limit: args.limit, scan: args.scan };
    // As with other answers: nobody reading is no reason to fail.
    let mut tell = |found: FoundRow| {
        let FoundRow { dataset, path, row, values } = found;
        let _ = match context.format {
            Format::Json => {
                writeln!(Stdout, "{}", json!({"dataset": dataset, "path": path, "row": row, "values": values}))
            }
            Format::Text => {
                let values: Vec<String> = values.iter().map(|(column, value)| format!("{column}={value}")).collect();
                writeln!(Stdout, "{}", values.join(" "))
            }
        };
    };
    let result = until_interrupted(firn_pass::search(&config, &request, &mut tell)).await;
    let _ = match (&result, context.format) {
        (Ok(summary), Format::Json) => writeln!(Stdout, "{}", as_json(summary)),
        (Err(error), Format::Json) => {
            writeln!(Stdout, "{}", json!({"summary": true, "ok": false, "error": error.to_string()}))
        }
        (Ok(summary), Format::Text) => writeln!(Stdout, "{}", as_text(summary)),
        (Err(_), Format::Text) => Ok(()),
    };
    match result {
        Ok(_) => Exit::Done,
        Err(error) => {
            complain(&error);
            Exit::of_error(&error)
        }
    }
}

fn as_json(summary: &SearchSummary) -> serde_json::Value {
    let SearchSummary { rows, files, by_index, by_scan, cut } = summary;
    json!({
        "summary": true, "ok": true, "rows": rows, "files": files, "byIndex": by_index, "byScan": by_scan, "cut": cut,
    })
}

fn as_text(summary: &SearchSummary) -> String {
    let SearchSummary { rows, files, by_index, by_scan, cut } = *summary;
    let cut = if cut { "; cut at --limit, more rows match" } else { "" };
    let (rows, files) = (plural(rows, "row"), plural(files, "file"));
    format!("{rows} in {files}: {by_index} by index, {by_scan} by reading all rows{cut}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_cut_says_so() {
        let whole = SearchSummary { rows: 3, files: 2, by_index: 1, by_scan: 1, cut: false };
        assert_eq!(as_text(&whole), "3 rows in 2 files: 1 by index, 1 by reading all rows");
        assert_eq!(
            as_json(&whole),
            json!({"summary": true, "ok": true, "rows": 3, "files": 2, "byIndex": 1, "byScan": 1, "cut": false})
        );
        let cut = SearchSummary { cut: true, ..whole };
        let told = "3 rows in 2 files: 1 by index, 1 by reading all rows; cut at --limit, more rows match";
        assert_eq!((as_text(&cut).as_str(), &as_json(&cut)["cut"]), (told, &json!(true)));
    }
}
