//! `firn restore`: brings back what a sweep deleted.

use std::io::Write;

use firn_maintain::restore::{LEFT_ALONE_DAYS, Restored, RestoredFile};
use firn_pass::{PassError, RestoreSummary};
use serde_json::json;

use crate::args::{Format, RestoreArgs};
use crate::commands::{Context, complain, load_config, until_interrupted};
use crate::exit::Exit;
use crate::output::stdout::Stdout;

pub(crate) async fn run(args: RestoreArgs, context: &Context) -> Exit {
    let config = match load_config(&args.config, None) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let format = context.format;
    let mut told = |file: &RestoredFile| say(format, file);
    let result = until_interrupted(firn_pass::restore(&config, &args.receipt, &mut told)).await;
    ended(format, &result);
    if let Err(error) = &result {
        complain(error);
    }
    match result {
        Err(error) => Exit::of_error(&error),
        Ok(summary) if summary.failed > 0 => Exit::Failed,
        Ok(_) => Exit::Done,
    }
}

/// What helps where the store took the call and nothing came of it.
const NOT_BACK: &str = "the store took the call and the file is not there: make one of its versions the current one in the portal, or with az \
     storage blob list --include vd and az storage blob copy start";

/// A reader that has gone away stops no work.
fn line(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(Stdout, "{text}");
}

fn say(format: Format, file: &RestoredFile) {
    let (word, detail) = match &file.restored {
        Restored::Back => ("restored", None),
        Restored::There => ("left", Some("it is there".to_owned())),
        Restored::Gone => ("failed", Some("it is not kept any more".to_owned())),
        Restored::NotBack => ("failed", Some(NOT_BACK.to_owned())),
        Restored::Refused(detail) => ("failed", Some(detail.clone())),
    };
    match format {
        Format::Json => line(format_args!("{}", json!({ "path": file.path, "outcome": word, "reason": detail }))),
        Format::Text => {
            let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            line(format_args!("{word:8} {}{detail}", file.path));
        }
    }
}

fn ended(format: Format, result: &Result<RestoreSummary, PassError>) {
    match (format, result) {
        (Format::Json, Ok(RestoreSummary { restored, left, failed })) => line(format_args!(
            "{}",
            json!({ "summary": true, "ok": *failed == 0, "restored": restored, "left": left, "failed": failed })
        )),
        (Format::Json, Err(error)) => {
            line(format_args!("{}", json!({ "summary": true, "ok": false, "error": error.to_string() })));
        }
        (Format::Text, Ok(RestoreSummary { restored, left, failed })) => line(format_args!(
            "{restored} restored, {left} left as they are, {failed} failed. Sweeps leave restored files alone for {LEFT_ALONE_DAYS} days."
        )),
        (Format::Text, Err(_)) => {}
    }
}
