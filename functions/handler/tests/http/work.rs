//! The program over Azurite: from an invocation to the state that it leaves.

use std::path::Path;

use firn_test_support::Azurite;
use serde_json::{Value, json};
use sqlx::Connection;

use crate::process::Handler;

/// A catalog without tables.
async fn empty_catalog(path: &Path) {
    let url = format!("sqlite://{}?mode=rwc", path.display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    for table in [
        "CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT, metadata_location TEXT, \
         previous_metadata_location TEXT, PRIMARY KEY (catalog_name, table_namespace, table_name))",
        "CREATE TABLE iceberg_namespace_properties (catalog_name TEXT, namespace TEXT, property_key TEXT, property_value TEXT, \
         PRIMARY KEY (catalog_name, namespace, property_key))",
    ] {
        sqlx::query(table).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

async fn app(folder: &Path, azurite: &Azurite, name: &str) -> Handler {
    empty_catalog(&folder.join("catalog.db")).await;
    let configuration = format!(
        "storage: {{ connectionString: \"{}\", stateContainer: state-{name}, queue: queue-{name} }}\n\
         catalog: {{ type: sql, uri: \"sqlite:///{}\", name: lake, warehouse: \"abfss://lake@devstoreaccount1.dfs.core.windows.net/wh\" }}\n\
         ingestion: {{ datasets: [{{ name: spans, table: otel.spans }}] }}\n",
        azurite.connection_string(),
        folder.join("catalog.db").display()
    );
    std::fs::write(folder.join("firn.yaml"), configuration).unwrap();
    std::fs::write(folder.join("host.json"), r#"{"version":"2.0","functionTimeout":"00:30:00"}"#).unwrap();
    Handler::start(folder).await
}

async fn status(handler: &Handler) -> Value {
    let (status, answer) = handler.post("status", json!({ "request": { "Method": "GET" } }), json!({})).await;
    assert_eq!((status, &answer["Outputs"]["response"]["statusCode"]), (200, &json!(200)), "{answer}");
    answer["Outputs"]["response"]["body"].clone()
}

#[tokio::test]
async fn ticks_and_messages_leave_what_status_shows() {
    let folder = tempfile::tempdir().unwrap();
    let mut handler = app(folder.path(), Azurite::shared(), "work").await;
    let before = status(&handler).await;
    assert_eq!((&before["ok"], &before["tick"]), (&json!(true), &Value::Null), "{before}");
    assert_eq!(before["queue"], json!({ "name": "queue-work", "length": 0 }));
    // The host has created no poison queue yet.
    assert_eq!(before["poison"], json!({ "name": "queue-work-poison", "length": 0 }));

    // The dataset's table is not there: it is counted and passed over, and the tick is recorded.
    let (code, answer) = handler.post("plan", json!({ "timer": { "IsPastDue": false } }), json!({})).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!((&answer["ReturnValue"]["due"], &answer["ReturnValue"]["datasetsFailed"]), (&json!(true), &json!(1)));
    let (code, answer) = handler.post("plan", json!({ "timer": { "IsPastDue": false } }), json!({})).await;
    assert_eq!((code, &answer["ReturnValue"]["due"]), (200, &json!(false)));

    // Maintenance: the table that is not there is counted and passed over, and the run is recorded; the next timer comes too early.
    for function in ["expire-snapshots", "clean-orphans"] {
        let timer = json!({ "timer": { "IsPastDue": false } });
        let (code, answer) = handler.post(function, timer.clone(), json!({})).await;
        let value = &answer["ReturnValue"];
        assert_eq!(
            (code, &value["due"], &value["tables"], &value["failed"]),
            (200, &json!(true), &json!(1), &json!(1))
        );
        assert_eq!((&value["next"], &value["deleted"]), (&Value::Null, &json!(0)), "{answer}");
        let (code, answer) = handler.post(function, timer, json!({})).await;
        assert_eq!((code, &answer["ReturnValue"]["due"]), (200, &json!(false)), "{answer}");
    }

    // Junk, as a queue with dataType binary and one without bring it.
    for data in ["anVuaw==", "\"junk\""] {
        let (code, answer) = handler.post("compact", json!({ "message": data }), json!({ "DequeueCount": "1" })).await;
        assert_eq!((code, &answer["ReturnValue"]["outcome"]), (200, &json!("parked")), "{answer}");
        assert_eq!(answer["Logs"].as_array().unwrap().len(), 1);
    }
    let unknown = serde_json::to_string(r#"{"v":1,"dataset":"span"}"#).unwrap();
    let (code, answer) = handler.post("compact", json!({ "message": unknown }), json!({ "DequeueCount": "1" })).await;
    assert_eq!((code, &answer["ReturnValue"]["outcome"]), (200, &json!("parked")), "{answer}");
    let (code, answer) = handler.post("compact-poison", json!({ "message": "\"poison\"" }), json!({})).await;
    assert_eq!((code, &answer["ReturnValue"]["outcome"]), (200, &json!("parked")), "{answer}");

    let after = status(&handler).await;
    assert!(after["tick"]["lastTick"].is_string(), "{after}");
    assert_eq!((&after["parked"]["count"], &after["inflight"]["count"]), (&json!(3), &json!(0)), "{after}");
    let parked = after["parked"]["records"].as_array().unwrap();
    let mut reasons: Vec<&str> = parked.iter().map(|record| record["reason"].as_str().unwrap()).collect();
    reasons.sort();
    assert!(reasons.iter().any(|reason| reason.starts_with("not a Firn message")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("span")), "{reasons:?}");
    assert!(parked.iter().all(|record| record.get("body").is_none() && record["id"].is_string()), "{parked:?}");

    let (stdout, _) = handler.end();
    let events: Vec<Value> = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let parked = events.iter().filter(|event| event["event"] == "parked").count();
    assert!(parked >= 3, "one event each: {stdout}");
}
