//! What the deployments say, by value: memory, the cap on instances, secrets, the private network.

use std::collections::BTreeMap;

use crate::model::{Call, Module, Value};
use crate::{Deployment, bicep_deployment, terraform_deployment};

fn both() -> [BTreeMap<String, Module>; 2] {
    [bicep_deployment(), terraform_deployment()].map(|Deployment(files)| files)
}

fn of(path: &str) -> Value {
    Value::Reference(path.split('.').map(str::to_owned).collect())
}

fn text(text: &str) -> Value {
    Value::Literal(text.into())
}

/// A number that a module derives, with what is given in place of its parameters and locals.
fn number(module: &Module, value: &Value, given: &[(&str, i64)]) -> i64 {
    let number = |value: &Value| self::number(module, value, given);
    match value {
        Value::Literal(text) => text.parse().unwrap_or_else(|error| panic!("{text}: {error}")),
        Value::Reference(path) => {
            let name = path.join(".");
            let found = given.iter().find(|(given, _)| *given == name);
            found.map_or_else(|| number(&module.locals[&name]), |(_, number)| *number)
        }
        Value::Conditional(parts) => {
            let Value::Operation(operator, sides) = &parts[0] else { panic!("{:?} is no comparison", parts[0]) };
            let (left, right) = (number(&sides[0]), number(&sides[1]));
            let holds = match operator.as_str() {
                "<=" => left <= right,
                "==" => left == right,
                other => panic!("{other} is no comparison of these files"),
            };
            number(&parts[if holds { 1 } else { 2 }])
        }
        Value::Operation(operator, sides) if operator == "*" => sides.iter().map(number).product(),
        Value::Call(name, arguments) if name == "max" => arguments.iter().map(number).max().unwrap(),
        Value::Call(name, arguments) if name == "min" => arguments.iter().map(number).min().unwrap(),
        other => panic!("{other:?} is no number"),
    }
}

#[test]
fn an_instance_has_the_memory_that_a_merge_needs() {
    for files in both() {
        let main = &files["main"];
        for (memory_mb, instance, expected) in [
            (512, 0, 2048),
            (1280, 0, 2048),
            (1281, 0, 4096),
            (3000, 0, 4096),
            // What a person writes wins.
            (3000, 2048, 2048),
            (512, 4096, 4096),
        ] {
            let given = [("memory_mb", memory_mb), ("instance_memory_mb", instance)];
            assert_eq!(number(main, &of("flex_memory_mb"), &given), expected, "memoryMb {memory_mb}, {instance} given");
        }
        assert_eq!(main.defaults["instance_memory_mb"], text("0"), "derived");
        assert_eq!(main.calls["flex"].arguments["instance_memory_mb"], of("flex_memory_mb"));
        assert_eq!(main.outputs["instance_memory_mb"], of("flex_memory_mb"));
        let app = &files["function-app-flex"].resources["app"].body;
        let scale = app.at("properties.functionAppConfig.scaleAndConcurrency").unwrap();
        assert_eq!(scale.at("instanceMemoryMB"), Some(&of("instance_memory_mb")));
    }
}

#[test]
fn a_missing_tick_is_told_after_three_intervals() {
    for files in both() {
        for (interval, expected) in [(5, 60), (15, 60), (30, 90), (900, 2700), (1440, 2880)] {
            let found = number(&files["main"], &of("no_tick_minutes"), &[("interval_minutes", interval)]);
            assert_eq!(found, expected, "every {interval} minutes");
        }
    }
}

#[test]
fn instances_have_a_cap() {
    for files in both() {
        let main = &files["main"];
        assert_eq!(main.defaults["maximum_instance_count"], text("40"));
        for app in ["flex", "premium"] {
            assert_eq!(main.calls[app].arguments["maximum_instance_count"], of("maximum_instance_count"));
        }
        let at = |file: &str, resource: &str, path: &str| files[file].resources[resource].body.at(path).cloned();
        for (file, resource, path) in [
            ("function-app-flex", "app", "properties.functionAppConfig.scaleAndConcurrency.maximumInstanceCount"),
            ("function-app-premium", "app", "properties.siteConfig.functionAppScaleLimit"),
            ("function-app-premium", "plan", "properties.maximumElasticWorkerCount"),
        ] {
            assert_eq!(at(file, resource, path), Some(of("maximum_instance_count")), "{file} {path}");
        }
    }
}

#[test]
fn secrets_are_references_to_the_key_vault() {
    for files in both() {
        let (main, settings) = (&files["main"], &files["settings"]);
        let reference = Value::Template(vec![
            text("@Microsoft.KeyVault(SecretUri="),
            of("vault_uri"),
            text("secrets/"),
            of("each"),
            text("/)"),
        ]);
        let Value::Each(over, each) = &settings.locals["references"] else {
            panic!("{:?}", settings.locals["references"])
        };
        assert_eq!((over.as_ref(), each.as_ref()), (&of("secrets"), &reference));
        let all = Value::Call("union".into(), vec![of("plain"), of("references")]);
        assert_eq!(settings.outputs["settings"], all);

        let called = &main.calls["settings"].arguments;
        assert_eq!(called["secrets"], of("secrets"));
        let uri = Value::Template(vec![text("https://"), of("key_vault_name"), of("vault_suffix"), text("/")]);
        assert_eq!(called["vault_uri"], uri);
        // The identity of the app reads them, and may read each of them.
        for (call, file) in [("flex", "function-app-flex"), ("premium", "function-app-premium")] {
            assert_eq!(main.calls[call].arguments["settings"], of("settings.settings"));
            let app = &files[file].resources["app"].body;
            assert_eq!(app.at("properties.keyVaultReferenceIdentity"), Some(&of("identity_id")));
            assert_eq!(main.calls[call].arguments["identity_id"], of("identity.id"));
        }
        let reader = &main.calls["secret_roles"];
        assert!(reader.repeated);
        assert_eq!(reader.arguments["principal_id"], of("identity.principal_id"));
    }
}

#[test]
fn private_endpoints_come_with_the_private_network_and_only_then() {
    let private = Some(of("private_network"));
    for files in both() {
        let main = &files["main"];
        assert_eq!(main.defaults["private_network"], text("false"));
        let conditional = |call: &&Call| call.condition == private;
        let with_network: Vec<&String> =
            main.calls.iter().filter(|(_, call)| conditional(call)).map(|(name, _)| name).collect();
        assert_eq!(with_network, ["data_endpoints", "host_blob_endpoint", "host_queue_endpoint", "network"]);
        for (name, service, account, zone) in [
            ("host_blob_endpoint", "blob", Some("storage.account_id"), "network.blob_zone_id"),
            ("host_queue_endpoint", "queue", Some("storage.account_id"), "network.queue_zone_id"),
            ("data_endpoints", "blob", None, "network.blob_zone_id"),
        ] {
            let call = &main.calls[name];
            assert_eq!((call.module.as_str(), call.repeated), ("private-endpoint", account.is_none()), "{name}");
            assert_eq!(call.arguments["service"], text(service), "{name}");
            assert_eq!(call.arguments["account_id"], of(account.unwrap_or("each")), "{name}");
            assert_eq!(call.arguments["zone_id"], of(zone), "{name}");
            assert_eq!(call.arguments["subnet_id"], of("network.endpoints_subnet_id"), "{name}");
        }
        let calls = main.calls.values().filter(|call| call.module == "private-endpoint").count();
        assert_eq!(calls, 3, "no other makes one");

        let endpoint = &files["private-endpoint"].resources["endpoint"];
        assert_eq!(endpoint.condition, None, "the call decides");
        let Some(Value::Array(connections)) = endpoint.body.at("properties.privateLinkServiceConnections") else {
            panic!("{:?}", endpoint.body)
        };
        let [connection] = connections.as_slice() else { panic!("{connections:?}") };
        assert_eq!(connection.at("properties.privateLinkServiceId"), Some(&of("account_id")));
        assert_eq!(connection.at("properties.groupIds"), Some(&Value::Array(vec![of("service")])));

        // Without it the account is open to identities, with it to the network alone.
        let closed = |yes, no| Value::Conditional(Box::new([of("private_network"), yes, no]));
        let account = &files["storage"].resources["account"].body;
        assert_eq!(account.at("properties.networkAcls.defaultAction"), Some(&closed(text("Deny"), text("Allow"))));
        assert_eq!(main.calls["storage"].arguments["private_network"], of("private_network"));
        for app in ["flex", "premium"] {
            let subnet = closed(of("network.functions_subnet_id"), text(""));
            assert_eq!(main.calls[app].arguments["subnet_id"], subnet, "{app}");
            let chosen = Value::Operation("==".into(), vec![of("plan"), text(app)]);
            assert_eq!(main.calls[app].condition, Some(chosen));
        }
    }
}
