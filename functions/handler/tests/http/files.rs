//! The files that the host reads, pinned: a value here is a promise of design section 4.

use std::path::{Path, PathBuf};

use firn_handler::Function;
use serde_json::{Value, json};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> Value {
    let path = repository().join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The one binding of each function, by its folder.
fn bindings(function: Function) -> Vec<Value> {
    let file = read(&format!("functions/{}/function.json", function.name()));
    assert_eq!(file.as_object().unwrap().len(), 1, "bindings and nothing else: no retry, no script");
    file["bindings"].as_array().unwrap().clone()
}

#[test]
fn host_json_is_as_designed() {
    assert_eq!(
        read("host.json"),
        json!({
            "version": "2.0",
            // The handler ends itself at 80 % of it.
            "functionTimeout": "00:30:00",
            "extensionBundle": { "id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.*, 5.0.0)" },
            "customHandler": {
                // Without ./ in front: tools give the execution bit to the file of exactly this name.
                "description": { "defaultExecutablePath": "handler" },
                // With forwarding, outsiders could reach the paths of functions that are not for them.
                "enableForwardingHttpRequest": false
            },
            "extensions": { "queues": {
                "batchSize": 1,
                "newBatchThreshold": 0,
                "maxDequeueCount": 5,
                "visibilityTimeout": "00:02:00",
                "messageEncoding": "none",
                "maxPollingInterval": "00:00:30"
            } }
            // No retry: it would multiply the deliveries of a message.
        })
    );
}

#[test]
fn planner_and_maintenance_go_by_timers_that_remember() {
    for function in [Function::Plan, Function::ExpireSnapshots, Function::CleanOrphans] {
        assert_eq!(
            bindings(function),
            [json!({
                "type": "timerTrigger", "direction": "in", "name": "timer", "schedule": "%FIRN_TIMER%", "useMonitor": true,
                "runOnStartup": false
            })]
        );
    }
}

#[test]
fn messages_arrive_as_their_bytes() {
    for (function, queue) in [(Function::Compact, "firn-compact"), (Function::CompactPoison, "firn-compact-poison")] {
        assert_eq!(
            bindings(function),
            [json!({
                "type": "queueTrigger", "direction": "in", "name": "message", "queueName": queue,
                "connection": "AzureWebJobsStorage", "dataType": "binary"
            })]
        );
    }
}

#[test]
fn what_answers_to_http_needs_a_key() {
    let bindings = bindings(Function::Status);
    assert_eq!(
        bindings,
        [
            json!({ "type": "httpTrigger", "direction": "in", "name": "request", "methods": ["get"], "authLevel": "function" }),
            json!({ "type": "http", "direction": "out", "name": "response" })
        ]
    );
}

#[test]
fn there_is_a_folder_for_each_function_and_none_besides() {
    let folders = std::fs::read_dir(repository().join("functions")).unwrap();
    let mut found: Vec<String> = folders
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("function.json").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    found.sort();
    let mut expected: Vec<&str> = Function::ALL.iter().map(|function| function.name()).collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn the_settings_for_this_machine_lead_to_the_emulator() {
    let values = &read("local.settings.json")["Values"];
    assert_eq!(
        values,
        &json!({
            "FUNCTIONS_WORKER_RUNTIME": "custom",
            "AzureWebJobsStorage": "UseDevelopmentStorage=true",
            "FIRN_TIMER": "0 */5 * * * *",
            "FIRN_CONFIG": "firn.yaml"
        })
    );
}
