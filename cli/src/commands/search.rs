//! `firn search`: rows of a dataset by words, phrases, and, or, not.

use std::io::Write;

use firn_pass::{FoundRow, SearchRequest};
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
        (Ok(summary), Format::Json) => {
            let line = json!({
                "summary": true, "ok": true, "rows": summary.rows, "files": summary.files, "byIndex": summary.by_index,
                "byScan": summary.by_scan,
            });
            writeln!(Stdout, "{line}")
        }
        (Err(error), Format::Json) => {
            writeln!(Stdout, "{}", json!({"summary": true, "ok": false, "error": error.to_string()}))
        }
        (Ok(summary), Format::Text) => writeln!(
            Stdout,
            "{} in {}: {} by index, {} by reading all rows",
            plural(summary.rows, "row"),
            plural(summary.files, "file"),
            summary.by_index,
            summary.by_scan
        ),
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
