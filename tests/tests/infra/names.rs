//! Names and settings agree with host.json, the function.json files, local.settings.json and the code.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use firn_config::Config;
use serde_json::Value as Json;

use crate::model::Value;
use crate::{Deployment, bicep_deployment, repository, terraform_deployment};

fn json(path: &str) -> Json {
    let text = std::fs::read_to_string(repository().join(path)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Function -> its trigger.
fn triggers() -> BTreeMap<String, Json> {
    let folders = std::fs::read_dir(repository().join("functions")).unwrap().map(|entry| entry.unwrap().path());
    let functions = folders.filter(|folder| folder.join("function.json").is_file());
    let name = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
    let trigger = |name: &str| {
        let bindings = json(&format!("functions/{name}/function.json"))["bindings"].as_array().unwrap().clone();
        bindings.into_iter().find(|binding| binding["type"].as_str().unwrap().ends_with("Trigger")).unwrap()
    };
    functions.map(|folder| name(&folder)).map(|name| (name.clone(), trigger(&name))).collect()
}

/// The settings that both plans share, with those of one plan in `of`, from each deployment.
fn settings() -> [BTreeMap<String, Value>; 2] {
    [bicep_deployment(), terraform_deployment()].map(|Deployment(files)| match &files["settings"].locals["plain"] {
        Value::Object(settings) => settings.clone(),
        other => panic!("{other:?}"),
    })
}

fn premium_settings() -> [BTreeMap<String, Value>; 2] {
    let of = |Deployment(files): Deployment| match &files["function-app-premium"].locals["premium_settings"] {
        Value::Object(settings) => settings.clone(),
        other => panic!("{other:?}"),
    };
    [bicep_deployment(), terraform_deployment()].map(of)
}

#[test]
fn the_triggers_have_their_connection() {
    for settings in settings() {
        for (function, trigger) in triggers() {
            let Some(connection) = trigger["connection"].as_str() else { continue };
            let parts: BTreeSet<&str> = settings
                .keys()
                .filter_map(|key| key.strip_prefix(connection))
                .map(|key| key.trim_start_matches('_'))
                .collect();
            // Without a part of an empty name: a connection string would win over the identity.
            let expected = BTreeSet::from(["blobServiceUri", "queueServiceUri", "credential", "clientId"]);
            assert_eq!(parts, expected, "{function}");
            assert_eq!(settings[&format!("{connection}__credential")].literal(), Some("managedidentity"));
        }
    }
}

#[test]
fn what_runs_here_runs_there() {
    let here = json("local.settings.json")["Values"].clone();
    for (settings, premium) in settings().into_iter().zip(premium_settings()) {
        for (key, value) in here.as_object().unwrap() {
            match key.as_str() {
                "AzureWebJobsStorage" => assert!(!settings.contains_key(key), "by identity there"),
                "FUNCTIONS_WORKER_RUNTIME" => {
                    assert_eq!(premium[key].literal(), value.as_str());
                    // Flex Consumption refuses the setting: its runtime is a property of the app.
                    assert!(!settings.contains_key(key));
                }
                _ => assert_eq!(settings[key].literal(), value.as_str(), "{key}"),
            }
        }
    }
    for Deployment(files) in [bicep_deployment(), terraform_deployment()] {
        let app = &files["function-app-flex"].resources["app"].body;
        let runtime = app.at("properties.functionAppConfig.runtime.name").and_then(Value::literal);
        assert_eq!(runtime, here["FUNCTIONS_WORKER_RUNTIME"].as_str());
    }
}

#[test]
fn what_the_functions_read_is_set() {
    let handler = std::fs::read_to_string(repository().join("functions/handler/src/environment.rs")).unwrap();
    for settings in settings() {
        let own: Vec<&String> = settings.keys().filter(|key| key.starts_with("FIRN_")).collect();
        assert_eq!(own, ["FIRN_CLIENT_ID", "FIRN_CONFIG", "FIRN_TIMER"]);
        assert!(handler.contains("\"FIRN_CONFIG\""), "the handler reads it");
        for (function, trigger) in triggers() {
            for text in trigger.as_object().unwrap().values().filter_map(Json::as_str) {
                for setting in text.split('%').skip(1).step_by(2) {
                    assert!(settings.contains_key(setting), "{function} asks for {setting}");
                }
            }
        }
    }
}

#[test]
fn each_timer_and_nothing_else_waits_for_the_first_dry_run() {
    for settings in settings() {
        for (function, trigger) in triggers() {
            let disabled = settings.get(&format!("AzureWebJobs.{function}.Disabled"));
            assert_eq!(disabled.is_some(), trigger["type"] == "timerTrigger", "{function}");
        }
        let disabled = settings.keys().filter(|key| key.ends_with(".Disabled")).count();
        let timers = triggers().values().filter(|trigger| trigger["type"] == "timerTrigger").count();
        assert_eq!(disabled, timers, "settings for functions that are there");
    }
}

#[test]
fn queues_and_containers_have_their_names() {
    let text = "storage: {account: lake01}\n\
                catalog: {type: rest, uri: 'https://catalog.example.com'}\n\
                ingestion: {datasets: [{name: readings, table: iot.readings}]}";
    let config = Config::load(text, &HashMap::new()).unwrap();
    let storage = config.storage.unwrap();
    let queues: BTreeSet<String> =
        triggers().values().filter_map(|trigger| trigger["queueName"].as_str().map(str::to_owned)).collect();
    let poison = format!("{}-poison", storage.queue);
    assert_eq!(queues, BTreeSet::from([storage.queue.clone(), poison]));
    for Deployment(files) in [bicep_deployment(), terraform_deployment()] {
        let default = |name: &str| match &files["main"].locals[name] {
            Value::Operation(operator, parts) if operator == "??" => parts[1].literal().unwrap().to_owned(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(default("queue"), storage.queue);
        assert_eq!(default("state_container"), storage.state_container);
        assert_eq!(default("interval_minutes"), config.compaction.backlog_check_interval_minutes.to_string());
        assert_eq!(default("memory_mb"), config.compaction.settings.memory_mb.to_string());
        let made = &files["storage"].resources;
        assert_eq!(made["work"].name, Value::Reference(vec!["queue".into()]));
        assert_eq!(made["state"].name, Value::Reference(vec!["state_container".into()]));
        let poison = Value::Template(vec![Value::Reference(vec!["queue".into()]), Value::Literal("-poison".into())]);
        assert_eq!(made["poison"].name, poison);
        assert_eq!(files["main"].calls["alerts"].arguments["poison_queue"], poison);
    }
}

#[test]
fn the_host_is_told_nothing_that_host_json_says_otherwise() {
    const SAMPLING: &str = "AzureFunctionsJobHost__logging__applicationInsights__samplingSettings__isEnabled";
    for settings in settings() {
        let overriding: Vec<&String> =
            settings.keys().filter(|key| key.starts_with("AzureFunctionsJobHost__")).collect();
        assert_eq!(overriding, [SAMPLING]);
        assert_eq!(settings[SAMPLING].literal(), Some("false"), "alerts need every line");
    }
    let host = json("host.json");
    assert!(host.pointer("/logging/logLevel").is_none(), "lines of the handler are of level Information");
    assert_ne!(host.pointer("/logging/applicationInsights/samplingSettings/isEnabled"), Some(&Json::Bool(true)));
}

#[test]
fn nobody_holds_a_key() {
    for Deployment(files) in [bicep_deployment(), terraform_deployment()] {
        let properties = |module: &str, resource: &str, path: &str| {
            files[module].resources[resource].body.at(path).and_then(Value::literal).map(str::to_owned)
        };
        assert_eq!(properties("storage", "account", "properties.allowSharedKeyAccess").as_deref(), Some("false"));
        assert_eq!(properties("storage", "account", "properties.allowBlobPublicAccess").as_deref(), Some("false"));
        assert_eq!(properties("storage", "blobs", "properties.deleteRetentionPolicy.enabled").as_deref(), Some("true"));
        assert_eq!(properties("monitoring", "insights", "properties.DisableLocalAuth").as_deref(), Some("true"));
        for app in ["function-app-flex", "function-app-premium"] {
            assert_eq!(properties(app, "no_publishing_password", "properties.allow").as_deref(), Some("false"));
        }
    }
    for file in crate::files(&crate::infra()) {
        let text = std::fs::read_to_string(&file).unwrap().to_lowercase();
        for word in ["listkeys", "accountkey=", "sharedaccesssignature", "primary_access_key", "storage_access_key"] {
            assert!(!text.contains(word), "{}: {word}", file.display());
        }
    }
}

#[test]
fn roles_are_those_that_are_needed() {
    // As Azure publishes its built-in roles.
    let published: BTreeMap<&str, &str> = [
        ("storageBlobDataOwner", "b7e6dc6d-f1e8-4753-8033-0f276bb0955b"),
        ("storageBlobDataContributor", "ba92f5b4-2d11-453d-a403-e96b0029c9fe"),
        ("storageBlobDataReader", "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"),
        ("storageQueueDataContributor", "974c5e8b-45b9-4653-ba55-5f855dd0fb88"),
        ("storageQueueDataMessageSender", "c6a89b2d-59bc-44d0-9896-0f6e12d7b80a"),
        ("keyVaultSecretsUser", "4633458b-17de-408a-b874-0445c86b69e6"),
        ("monitoringMetricsPublisher", "3913510d-42f4-4e42-8a64-420c390055eb"),
    ]
    .into();
    let roles = json("infra/shared/roles.json");
    let listed: BTreeMap<&str, &str> =
        roles.as_object().unwrap().iter().map(|(name, id)| (name.as_str(), id.as_str().unwrap())).collect();
    assert_eq!(listed, published);
    // Module, assignment, role, and the last words of where.
    let needed = [
        ("data-role", "table_blobs", "storage_blob_data_contributor", "/containers/"),
        ("monitoring", "telemetry", "monitoring_metrics_publisher", "insights"),
        ("operator-roles", "reader", "storage_blob_data_reader", "/containers/"),
        ("operator-roles", "sender", "storage_queue_data_message_sender", "/queues/"),
        ("secret-role", "secret_reader", "key_vault_secrets_user", "/secrets/"),
        ("storage-roles", "host_blobs", "storage_blob_data_owner", "/storageAccounts/"),
        ("storage-roles", "poison_messages", "storage_queue_data_contributor", "-poison"),
        ("storage-roles", "state_blobs", "storage_blob_data_contributor", "/containers/"),
        ("storage-roles", "work_messages", "storage_queue_data_contributor", "/queues/"),
    ];
    for Deployment(files) in [bicep_deployment(), terraform_deployment()] {
        let mut found = Vec::new();
        for (file, module) in &files {
            for (name, resource) in &module.resources {
                if resource.kind.starts_with("Microsoft.Authorization/roleAssignments@") {
                    let role = resource.body.at("properties.roleDefinitionId").unwrap().references();
                    let role = role.iter().find_map(|name| name.strip_prefix("roles.")).unwrap().to_owned();
                    found.push((file.clone(), name.clone(), role, format!("{:?}", resource.parent)));
                }
            }
        }
        found.sort();
        assert_eq!(found.len(), needed.len(), "{found:#?}");
        for (found, needed) in found.iter().zip(needed) {
            assert_eq!((found.0.as_str(), found.1.as_str(), found.2.as_str()), (needed.0, needed.1, needed.2));
            assert!(found.3.contains(needed.3), "{found:?}");
        }
    }
}
