//! `firn explain`: why partitions are selected or left, from facts to rule. Nothing is changed.

use std::io::Write;

use firn_pass::{ExplainedPartition, ManualRequest};
use serde_json::{Value, json};

use crate::args::{ExplainArgs, Format};
use crate::commands::{Context, complain, load_config, until_interrupted};
use crate::exit::Exit;
use crate::output::explained::write_text;
use crate::output::stdout::Stdout;

pub(crate) async fn run(args: ExplainArgs, context: &Context) -> Exit {
    let config = match load_config(&args.over.config, args.over.dataset.as_deref()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let request = ManualRequest { dataset: args.over.dataset, partitions: args.partitions, ..ManualRequest::default() };
    let mut out = Stdout;
    // As with other answers: nobody reading is no reason to fail.
    let mut tell = |partition: &ExplainedPartition| {
        let _ = match context.format {
            Format::Json => writeln!(out, "{}", partition.to_json()),
            Format::Text => write_text(&mut out, partition),
        };
    };
    let result = until_interrupted(firn_pass::explain(&config, &request, &mut tell)).await;
    let (partitions, error) = match &result {
        Ok(partitions) => (*partitions, Value::Null),
        Err(error) => {
            complain(error);
            (0, json!(error.to_string()))
        }
    };
    let mut out = Stdout;
    let _ = match context.format {
        Format::Json => {
            let mut line = json!({"summary": true, "ok": result.is_ok(), "partitions": partitions});
            if result.is_err() {
                line["error"] = error;
            } else if partitions == 0 {
                line["remarks"] = json!([request.matched_nothing()]);
            }
            writeln!(out, "{line}")
        }
        Format::Text if result.is_ok() && partitions == 0 => writeln!(out, "Note: {}.", request.matched_nothing()),
        Format::Text => Ok(()),
    };
    let _ = out.flush();
    match &result {
        Ok(_) => Exit::Done,
        Err(error) => Exit::of_error(error),
    }
}
