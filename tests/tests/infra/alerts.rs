//! Alerts are queries on the event lines, so each is held against lines that the code writes.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

use firn_model::{Outcome, PartitionKey, Rule};
use firn_telemetry::{
    DatasetFailed, Emitter, MessageDeferred, MessageFailed, Parked, PartitionResult, PartitionRun, PartitionStart,
    PassFinished, PassOverDeadline,
};
use serde_json::Value;

/// The one text of the host that a query asks for: what the queue extension logs when it gives a message up.
const GIVEN_UP: &str = "Moving message to queue '{poisonQueue}'";

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// One line of each event, failed where it can fail, by its name.
fn lines() -> BTreeMap<String, String> {
    let sink = Sink::default();
    let emitter = Emitter::to(sink.clone());
    let key = PartitionKey::unpartitioned(0);
    let start = PartitionStart::new("readings", "iot.readings", &key, "pass", "invocation", Rule::Backlog);
    PartitionRun::start(&emitter, start).finish(PartitionResult::new(Outcome::Failed, "why"));
    emitter.emit(&Parked::default().counted());
    emitter.emit(&MessageDeferred::default());
    emitter.emit(&MessageFailed::default());
    emitter.emit(&DatasetFailed {
        dataset: "readings".into(),
        table: "iot.readings".into(),
        pass: "pass".into(),
        invocation: "invocation".into(),
        reason: "why".into(),
    });
    let late = PassFinished { rule: Rule::Backlog.as_str(), failed: 1, duration_ms: 2, ..PassFinished::default() };
    emitter.emit(&late.counted(1));
    emitter.emit(&PassOverDeadline::default().counted());
    let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
    let name = |line: &str| serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().to_owned();
    text.lines().map(|line| (name(line), line.to_owned())).collect()
}

fn alerts() -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(crate::infra().join("shared/alerts.json")).unwrap();
    let alerts: Vec<Value> = serde_json::from_str(&text).unwrap();
    alerts.into_iter().map(|alert| (alert["name"].as_str().unwrap().to_owned(), alert)).collect()
}

fn query(alert: &Value) -> String {
    let lines: Vec<&str> = alert["query"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    lines.join("\n")
}

/// What stands between `open` and `close`, each time.
fn between<'a>(text: &'a str, open: &str, close: char) -> Vec<&'a str> {
    text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap()).collect()
}

/// The lines that a query's filters on the start of a line let through.
fn matched(query: &str, lines: &BTreeMap<String, String>) -> Vec<String> {
    let starts = between(query, "startswith_cs '", '\'');
    let found = |line: &&String| starts.iter().any(|start| line.starts_with(start));
    lines.values().filter(found).cloned().collect()
}

#[test]
fn each_alert_finds_the_events_it_is_about() {
    let lines = lines();
    let events = |name: &str| -> Vec<String> {
        let query = query(&alerts()[name]);
        let failed = query.contains("tostring(line.outcome) == 'failed'");
        let value = |line: &String| serde_json::from_str::<Value>(line).unwrap();
        let found = matched(&query, &lines).into_iter().filter(|line| !failed || value(line)["outcome"] == "failed");
        found.map(|line| value(&line)["event"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(events("parked"), ["parked"]);
    assert_eq!(events("no-tick"), ["passFinished"]);
    assert_eq!(events("failures"), ["datasetFailed", "messageFailed", "partitionFinished", "passFinished"]);
    assert_eq!(events("over-deadline"), ["passFinished", "passOverDeadline"]);
    assert_eq!(events("poison"), Vec::<String>::new());
    assert!(query(&alerts()["poison"]).contains(GIVEN_UP));
    assert_eq!(alerts().len(), 5);
}

#[test]
fn every_field_that_a_query_reads_is_in_a_line() {
    let lines = lines();
    for (name, alert) in alerts() {
        let query = query(&alert);
        let found: Vec<Value> =
            matched(&query, &lines).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        for field in between(&query, "(line.", ')') {
            let pointer = format!("/{}", field.replace('.', "/"));
            // Where several events are asked for, a field may be one's own.
            let there = found.iter().any(|line| line.pointer(&pointer).is_some());
            assert!(there, "{name}: no line has {field}");
        }
        let everywhere = name == "parked" || name == "over-deadline" || name == "no-tick";
        assert!(!everywhere || !between(&query, "(line.", ')').is_empty(), "{name} reads nothing");
    }
    let counted =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["counters"][firn_telemetry::DEADLINE_COUNTER].clone();
    assert!(query(&alerts()["over-deadline"]).contains(firn_telemetry::DEADLINE_COUNTER));
    assert_eq!([counted(&lines["passFinished"]), counted(&lines["passOverDeadline"])], [1, 1]);
}

#[test]
fn a_tick_is_told_from_a_pass_by_hand() {
    let query = query(&alerts()["no-tick"]);
    let rules = between(&query, "tostring(line.rule) in (", ')')[0];
    let rules: Vec<&str> = rules.split(", ").map(|rule| rule.trim_matches('\'')).collect();
    let ticks: Vec<&str> = [false, true].map(|due| firn_plan::pass_rule(due).as_str()).into();
    assert_eq!(rules, ticks);
    for by_hand in [Rule::Manual, Rule::Full] {
        assert!(!rules.contains(&by_hand.as_str()));
    }
}

#[test]
fn a_rule_looks_back_as_far_as_its_query() {
    // What the service takes; minutes.
    let windows: BTreeMap<&str, u32> =
        [("PT5M", 5), ("PT15M", 15), ("PT30M", 30), ("PT1H", 60), ("P1D", 1440), ("P2D", 2880)].into();
    for (name, alert) in alerts() {
        let minutes = |key: &str| windows[alert[key].as_str().unwrap()];
        assert!(minutes("evaluationFrequency") <= minutes("windowSize"), "{name}");
        assert!(alert["severity"].as_u64().unwrap() <= 4 && alert["description"].is_string(), "{name}");
        assert_eq!(alert["needsTimers"], name == "no-tick");
        // A rule whose query looks for what came before must see more than its own period.
        let looks_back = query(&alert).contains("ago(");
        assert_eq!(looks_back, minutes("evaluationFrequency") < minutes("windowSize"), "{name}");
        for holes in between(&query(&alert), "{", '}') {
            assert!(
                ["poisonQueue", "noTickMinutes"].contains(&holes) || holes.starts_with("\"event\""),
                "{name}: {holes}"
            );
        }
    }
    assert!(query(&alerts()["poison"]).contains("ago(30m)"));
    assert_eq!(alerts()["no-tick"]["windowSize"], "P2D", "as long as the longest noTickMinutes");
    let main = crate::terraform_deployment().0.remove("main").unwrap();
    let mut numbers = Vec::new();
    main.locals["no_tick_minutes"].walk(&mut |value| numbers.extend(value.literal().map(str::to_owned)));
    assert_eq!(numbers, ["3", "60", "2880"], "three intervals, an hour, the longest");
}
