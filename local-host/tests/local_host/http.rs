//! HTTP functions and the admin endpoint.

use firn_local_host::client::running;
use firn_local_host::{Announcement, Called, ClientError, HostAddress, RunningHost};
use serde_json::{Value, json};

use crate::scene::{Scene, queue_trigger, timer, until};
use crate::script::{Script, good, now, raw};

fn functions() -> Vec<(&'static str, Vec<Value>)> {
    let http = |level: &str, route: Option<&str>| {
        let mut trigger = json!({"type": "httpTrigger", "direction": "in", "name": "req", "authLevel": level, "methods": ["get", "post"]});
        if let Some(route) = route {
            trigger["route"] = route.into();
        }
        vec![trigger, json!({"type": "http", "direction": "out", "name": "res"})]
    };
    vec![
        ("compact", vec![queue_trigger("work")]),
        ("open", http("anonymous", Some("things/{id}"))),
        ("plan", vec![timer("0 */5 * * * *")]),
        ("status", http("function", None)),
    ]
}

async fn request(host: &RunningHost, method: &str, path: &str, key: Option<&str>, body: &str) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}{path}", host.url());
    let mut request = client.request(method.parse().unwrap(), url).body(body.to_owned());
    if let Some(key) = key {
        request = request.header("x-functions-key", key);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn a_function_needs_its_key() {
    let answer = json!({"Outputs": {"res": {"statusCode": 202, "headers": {"x-id": "7"}, "body": {"ok": true}}}});
    let script = Script::answering(good(answer)).await;
    let mut scene = Scene::new(&script, &functions());
    let state = scene.folder.path().join("state");
    scene.options.state_folder = Some(state.clone());
    let host = scene.start().await;
    for (path, key, status) in [
        ("/api/status", None, 401),
        ("/api/status", Some("wrong"), 401),
        ("/api/status?code=wrong", None, 401),
        ("/api/status", Some(host.function_key()), 202),
        ("/api/STATUS", Some(host.master_key()), 202),
        (&format!("/api/status?code={}", host.function_key()), None, 202),
        ("/api/things/9", None, 202),
        ("/status", Some(host.function_key()), 404),
        ("/compact", Some(host.master_key()), 404),
    ] {
        assert_eq!(request(&host, "GET", path, key, "").await.0, status, "{path} {key:?}");
    }
    assert_eq!(request(&host, "DELETE", "/api/status", Some(host.master_key()), "").await.0, 404);
    assert_eq!(script.calls().len(), 4);
    let url = host.function_url("status").unwrap();
    let answer = reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["x-id"].to_str().unwrap()), (202, "7"));
    assert_eq!(answer.text().await.unwrap(), "{\"ok\":true}");
    // The keys stay.
    let key = host.function_key().to_owned();
    host.stop().await;
    assert!(state.join("keys.json").is_file());
    assert_eq!(scene.start().await.function_key(), key);
}

#[tokio::test]
async fn the_handler_gets_the_request_as_an_object() {
    let script = Script::answering(good(json!({"Outputs": {"res": {"body": "fine"}}}))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    assert_eq!(request(&host, "POST", "/api/things/9?x=1", None, "{\"table\":\"t\"}").await, (200, "fine".to_owned()));
    let call = script.calls().pop().unwrap();
    assert_eq!((&call["method"], &call["path"]), (&json!("POST"), &json!("/open")));
    let request = &call["body"]["Data"]["req"];
    assert_eq!(request["Url"], format!("{}/api/things/9?x=1", host.url()));
    assert_eq!(request["Method"], "POST");
    assert_eq!(request["Query"], json!({"x": "1"}));
    assert_eq!(request["Params"], json!({"id": "9"}));
    assert_eq!(request["Identities"], json!([]));
    assert_eq!(request["Body"], "{\"table\":\"t\"}");
    assert_eq!(request["Headers"]["content-length"], json!(["13"]));
    assert_eq!(call["body"]["Metadata"]["sys"]["MethodName"], "open");
}

#[tokio::test]
async fn a_failed_http_function_is_500() {
    let script = Script::answering(raw(404, "{}")).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    let (status, text) = request(&host, "GET", "/api/things/9", None, "").await;
    assert_eq!((status, text.as_str()), (500, "the handler answered 404"));
}

#[tokio::test]
async fn the_admin_endpoint() {
    let script = Script::answering(good(json!({"Logs": ["done"], "ReturnValue": 5}))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    let master = Some(host.master_key());
    for (path, key, body, status) in [
        ("/admin/functions/plan", None, "{}", 401),
        ("/admin/functions/plan", Some(host.function_key()), "{}", 401),
        ("/admin/functions/none", master, "{}", 404),
        ("/admin/functions/plan", master, "", 400),
        ("/admin/functions/compact", master, "{\"input\":5}", 400),
        ("/admin/functions/compact", master, "[]", 400),
    ] {
        assert_eq!(request(&host, "POST", path, key, body).await.0, status, "{path} {body}");
    }
    assert_eq!(script.calls().len(), 0);
    let accepted =
        request(&host, "POST", "/admin/functions/compact", master, "{\"input\":\"{\\\"id\\\":\\\"j\\\"}\"}").await;
    assert_eq!(accepted, (202, String::new()));
    until(|| script.calls().len() == 1).await;
    let body = script.bodies().pop().unwrap();
    // A message that was never in a queue: no receipt, and its own field has become the id.
    assert_eq!(body["Data"]["job"], "\"{\\\"id\\\":\\\"j\\\"}\"");
    let metadata = &body["Metadata"];
    assert_eq!((&metadata["DequeueCount"], metadata.get("PopReceipt"), metadata.get("Id")), (&json!("0"), None, None));
    assert_eq!(metadata["id"], "\"j\"");
    assert_eq!(metadata["ExpirationTime"], "9999-12-31T23:59:59+00:00");
    assert_eq!(metadata["job"], "\"{\\\"id\\\":\\\"j\\\"}\"");
    // Only the local host waits.
    let (status, text) = request(&host, "POST", "/admin/functions/plan?wait=true", master, "{}").await;
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (status, &told["ok"], &told["returnValue"], &told["logs"]),
        (200, &json!(true), &json!(5), &json!(["done"]))
    );
}

#[tokio::test]
async fn what_a_host_says_of_itself() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    assert_eq!(request(&host, "GET", "/", None, "").await.0, 200);
    assert_eq!(request(&host, "GET", "/admin/functions", None, "").await.0, 401);
    let (_, text) = request(&host, "GET", "/admin/functions", Some(host.master_key()), "").await;
    let listed: Value = serde_json::from_str(&text).unwrap();
    let url = host.url();
    let expected = json!([
        {"name": "compact", "trigger": "queue work", "url": null},
        {"name": "open", "trigger": "http GET,POST", "url": format!("{url}/api/things/{{id}}")},
        {"name": "plan", "trigger": "timer 0 */5 * * * *", "url": null},
        {"name": "status", "trigger": "http GET,POST", "url": format!("{url}/api/status")},
    ]);
    assert_eq!(listed, expected);
    let (_, text) = request(&host, "GET", "/admin/host/status", Some(host.master_key()), "").await;
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&status["state"], &status["problems"]), (&json!("Running"), &json!([])));
    assert_eq!(status["id"], host.host_id());
}

#[tokio::test]
async fn another_process_finds_the_host_and_runs_its_functions() {
    let on_call = |call: Value| {
        now(match call["path"].as_str() {
            Some("/status") => good(json!({"Outputs": {"res": {"body": {"depth": 3}}}})),
            Some("/plan") => raw(500, "{}"),
            _ => good(json!({"Logs": ["merged"]})),
        })
    };
    let script = Script::calls_with(on_call).await;
    let scene = Scene::new(&script, &functions());
    let folder = scene.folder.path().join("state");
    assert!(matches!(running(&folder), Err(ClientError::NoHost(_))));
    let host = scene.start().await;
    let announcement = Announcement::write(&folder, &host).unwrap();
    let address = running(&folder).unwrap();
    let status = Called::Http { status: 200, body: "{\"depth\":3}".into() };
    assert_eq!(address.call("status", None).await, Ok(status.clone()));
    assert_eq!(address.call("Status", Some("{}")).await, Ok(status));
    let Ok(Called::Ran(ran)) = address.call("compact", Some("{\"dataset\":\"spans\"}")).await else {
        panic!("no result")
    };
    assert_eq!((&ran["ok"], &ran["logs"]), (&json!(true), &json!(["merged"])));
    assert_eq!(script.bodies().pop().unwrap()["Metadata"]["dataset"], "\"spans\"");
    let Ok(Called::Ran(ran)) = address.call("plan", None).await else { panic!("no result") };
    assert_eq!((&ran["ok"], &ran["reason"]), (&json!(false), &json!("the handler answered 500")));
    let unknown = address.call("merge", None).await.unwrap_err().to_string();
    assert_eq!(unknown, format!("\"merge\" is no function of {}, which has compact, open, plan, status", host.url()));
    let stranger = HostAddress { master_key: "x".into(), ..address.clone() };
    assert_eq!(stranger.call("plan", None).await, Err(ClientError::Key(host.url().into())));
    host.stop().await;
    assert!(matches!(address.call("plan", None).await, Err(ClientError::NoHost(_))));
    drop(announcement);
    assert!(matches!(running(&folder), Err(ClientError::NoHost(_))));
}
