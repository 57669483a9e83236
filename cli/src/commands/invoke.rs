//! `firn invoke`: one function of a running host, now.

use std::io::Write;

use firn_local_host::client::{at, running};
use firn_local_host::{Called, ClientError, HostAddress};
use serde_json::{Value, json};

use crate::args::{Format, InvokeArgs};
use crate::commands::local::folder;
use crate::commands::{Context, complain};
use crate::exit::Exit;
use crate::output::stdout::Stdout;

pub(crate) async fn run(args: InvokeArgs, context: &Context) -> Exit {
    let address = match &args.url {
        Some(url) => Ok(match &args.key {
            Some(key) => HostAddress { url: url.clone(), master_key: key.clone() },
            None => at(&folder(), url),
        }),
        None => running(&folder()),
    };
    let called = match address {
        Ok(address) => address.call(&args.function, args.data.as_deref()).await,
        Err(error) => Err(error),
    };
    let (exit, text, summary) = told(&args.function, &called);
    if let Err(error) = &called {
        complain(error);
    }
    let mut out = Stdout;
    // Nobody reading is no failure.
    let _ = match context.format {
        Format::Text if text.is_empty() => Ok(()),
        Format::Text => writeln!(out, "{text}"),
        Format::Json => writeln!(out, "{summary}"),
    };
    exit
}

/// How the program ends, what a person reads, and the line for programs.
fn told(function: &str, called: &Result<Called, ClientError>) -> (Exit, String, Value) {
    let line = |ok: bool, more: Value| {
        let mut line = json!({"summary": true, "ok": ok, "function": function});
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        line
    };
    match called {
        Err(error) => {
            let usage = matches!(error, ClientError::Unknown { .. } | ClientError::Several(_));
            let exit = if usage { Exit::Usage } else { Exit::Failed };
            (exit, String::new(), line(false, json!({"error": error.to_string()})))
        }
        Ok(Called::Accepted) => (
            Exit::Done,
            format!("{function} was accepted and runs in the background"),
            line(true, json!({"accepted": true})),
        ),
        Ok(Called::Http { status, body }) => {
            let ok = *status < 400;
            let parsed = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body.as_str()));
            let exit = if ok { Exit::Done } else { Exit::Failed };
            let text = if ok { body.clone() } else { format!("{function} answered {status}: {body}") };
            (exit, text, line(ok, json!({"status": status, "body": parsed})))
        }
        Ok(Called::Ran(result)) => {
            let ok = result["ok"] == true;
            let exit = if ok { Exit::Done } else { Exit::Failed };
            (exit, ran(function, result), line(ok, result.clone()))
        }
    }
}

fn ran(function: &str, result: &Value) -> String {
    if result["ok"] != true {
        return format!("{function} failed: {}", result["reason"].as_str().unwrap_or("no reason given"));
    }
    let mut lines: Vec<String> =
        result["logs"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if !result["returnValue"].is_null() {
        lines.push(result["returnValue"].to_string());
    }
    lines.push(format!("{function} succeeded"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_and_lines() {
        let ran = |ok: bool| {
            Ok(Called::Ran(json!({"ok": ok, "reason": "the handler answered 500", "logs": ["a"], "returnValue": 5})))
        };
        let http = |status: u16| Ok(Called::Http { status, body: "{\"ticks\":1}".into() });
        let unknown = ClientError::Unknown { name: "f".into(), url: "u".into(), known: "plan".into() };
        for (called, exit, text, ok) in [
            (ran(true), Exit::Done, "a\n5\nf succeeded", true),
            (ran(false), Exit::Failed, "f failed: the handler answered 500", false),
            (http(200), Exit::Done, "{\"ticks\":1}", true),
            (http(500), Exit::Failed, "f answered 500: {\"ticks\":1}", false),
            (Ok(Called::Accepted), Exit::Done, "f was accepted and runs in the background", true),
            (Err(unknown), Exit::Usage, "", false),
            (Err(ClientError::NoHost("none".into())), Exit::Failed, "", false),
        ] {
            let (found, said, line) = told("f", &called);
            assert_eq!((found, said.as_str()), (exit, text), "{called:?}");
            assert_eq!((&line["summary"], &line["ok"], &line["function"]), (&json!(true), &json!(ok), &json!("f")));
        }
        assert_eq!(told("f", &http(200)).2["body"], json!({"ticks": 1}));
    }
}
