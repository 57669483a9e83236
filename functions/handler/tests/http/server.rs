//! Requests and answers, with functions that do what the test says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use firn_handler::{Answer, Function, Functions, Invocation, bind, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;

/// Answers by the text of the message.
#[derive(Debug)]
struct Scripted {
    seen: Mutex<Vec<(Function, Invocation)>>,
    together: Barrier,
}

#[async_trait]
impl Functions for Scripted {
    async fn run(&self, function: Function, invocation: Invocation) -> Answer {
        let text = String::from_utf8_lossy(&invocation.message).into_owned();
        self.seen.lock().unwrap().push((function, invocation));
        match text.as_str() {
            "panic" => panic!("a defect"),
            "fault" => Answer::fault("the catalog is on fire"),
            "together" => {
                self.together.wait().await;
                Answer::done(json!({ "outcome": "done" }))
            }
            "http" => Answer::http(axum::http::StatusCode::OK, json!({ "ok": true })),
            _ => Answer::done(json!({ "outcome": "done", "rowsIn": 7 })).log("done: 7 rows"),
        }
    }
}

async fn start() -> (u16, Arc<Scripted>) {
    let functions = Arc::new(Scripted { seen: Mutex::default(), together: Barrier::new(2) });
    let listener = bind(0).await.unwrap();
    assert!(listener.local_addr().unwrap().ip().is_loopback());
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(serve(listener, functions.clone()));
    (port, functions)
}

struct Response {
    status: u16,
    content_type: String,
    body: Value,
}

/// One request over a connection of its own, so that the framing is what the test wants.
async fn send(port: u16, head: &str, body: &[u8]) -> Response {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let head = format!("{head}\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let headers: HashMap<String, String> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    assert!(headers.contains_key("content-length"), "{head}");
    Response {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        content_type: headers["content-type"].clone(),
        body: serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}")),
    }
}

async fn post(port: u16, path: &str, body: &Value) -> Response {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nX-Azure-Functions-InvocationId: 6f6e1d0e\r\nContent-Type: application/json; charset=utf-8\r\n\
         Content-Length: {}",
        body.len()
    );
    send(port, &head, body.as_bytes()).await
}

/// As the host sends it for a trigger without `dataType`.
fn message(text: &str) -> Value {
    let literal = serde_json::to_string(text).unwrap();
    json!({ "Data": { "message": literal }, "Metadata": { "DequeueCount": "3", "sys": {} } })
}

/// Every answer has these three, and the type that the host insists on.
fn parts(response: &Response) -> (&Value, &Value, &Value) {
    assert_eq!(response.content_type, "application/json");
    let body = response.body.as_object().unwrap();
    assert_eq!(body.keys().map(String::as_str).collect::<Vec<_>>(), ["Logs", "Outputs", "ReturnValue"]);
    (&body["Outputs"], &body["Logs"], &body["ReturnValue"])
}

#[tokio::test]
async fn what_went_through_is_answered_with_200_counts_and_logs() {
    let (port, functions) = start().await;
    let response = post(port, "/compact", &message("{\"v\":1}")).await;
    assert_eq!(response.status, 200);
    assert_eq!(parts(&response), (&json!({}), &json!(["done: 7 rows"]), &json!({ "outcome": "done", "rowsIn": 7 })));
    let seen = functions.seen.lock().unwrap();
    let (function, invocation) = &seen[0];
    assert_eq!((*function, invocation.id.as_str()), (Function::Compact, "6f6e1d0e"));
    assert_eq!((invocation.message.as_slice(), invocation.dequeue_count), (&b"{\"v\":1}"[..], 3));
}

#[tokio::test]
async fn every_function_has_its_path_and_no_other_does() {
    let (port, functions) = start().await;
    for function in Function::ALL {
        let path = format!("/{}", function.name());
        assert_eq!(post(port, &path, &message("x")).await.status, 200);
        assert_eq!(functions.seen.lock().unwrap().last().unwrap().0, function);
    }
    for path in ["/Compact", "/compact/x", "/api/status", "/no"] {
        let response = post(port, path, &message("x")).await;
        assert_eq!((response.status, parts(&response).2), (404, &Value::Null), "{path}");
    }
    let get = send(port, "GET /compact HTTP/1.1", b"").await;
    assert_eq!((get.status, functions.seen.lock().unwrap().len()), (405, 6));
}

#[tokio::test]
async fn a_body_may_come_in_chunks() {
    let (port, functions) = start().await;
    let body = message("chunked").to_string();
    let (one, two) = body.split_at(20);
    let chunks = format!("{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", one.len(), two.len());
    let head = "POST /compact HTTP/1.1\r\nContent-Type: application/json; charset=utf-8\r\nTransfer-Encoding: chunked";
    assert_eq!(send(port, head, chunks.as_bytes()).await.status, 200);
    let seen = functions.seen.lock().unwrap();
    assert_eq!(seen[0].1.message, b"chunked");
    assert!(!seen[0].1.id.is_empty(), "an id of its own when the host sends none");
}

#[tokio::test]
async fn a_fault_is_500_and_says_why() {
    let (port, _) = start().await;
    let response = post(port, "/compact", &message("fault")).await;
    assert_eq!(response.status, 500);
    let reason = json!({ "outcome": "failed", "reason": "the catalog is on fire" });
    assert_eq!(parts(&response), (&json!({}), &json!(["the catalog is on fire"]), &reason));
}

#[tokio::test]
async fn a_panic_is_500_and_the_process_stays_up() {
    let (port, functions) = start().await;
    for _ in 0..3 {
        let response = post(port, "/compact", &message("panic")).await;
        assert_eq!(response.status, 500);
        assert_eq!(parts(&response).2["outcome"], "failed");
    }
    assert_eq!(post(port, "/compact", &message("x")).await.status, 200);
    assert_eq!(send(port, "GET / HTTP/1.1", b"").await.status, 200);
    assert_eq!(functions.seen.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn invocations_run_side_by_side() {
    let (port, _) = start().await;
    let together = message("together");
    // Each waits until the other has begun.
    let (one, two) = tokio::join!(post(port, "/compact", &together), post(port, "/plan", &together));
    assert_eq!((one.status, two.status), (200, 200));
}

#[tokio::test]
async fn work_goes_on_when_the_host_hangs_up() {
    let (port, functions) = start().await;
    let body = message("together").to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let head = format!("POST /compact HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    while functions.seen.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(stream);
    // Waits for the first: without it, for ever.
    assert_eq!(post(port, "/compact", &message("together")).await.status, 200);
}

#[tokio::test]
async fn what_no_host_sends_is_refused_and_runs_nothing() {
    let (port, functions) = start().await;
    for body in ["", "{", "[1]", "{\"Metadata\":{}}"] {
        let head = format!("POST /compact HTTP/1.1\r\nContent-Length: {}", body.len());
        let response = send(port, &head, body.as_bytes()).await;
        assert_eq!((response.status, parts(&response).1.as_array().unwrap().len()), (400, 1), "{body}");
    }
    let long = "x".repeat((1 << 20) + 1);
    let head = format!("POST /compact HTTP/1.1\r\nContent-Length: {}", long.len());
    assert_eq!(send(port, &head, long.as_bytes()).await.status, 400);
    assert!(functions.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_to_a_request_goes_by_the_output_binding() {
    let (port, _) = start().await;
    let response = post(port, "/status", &message("http")).await;
    assert_eq!(response.status, 200);
    let output = &parts(&response).0["response"];
    assert_eq!((&output["statusCode"], &output["body"]), (&json!(200), &json!({ "ok": true })));
    assert_eq!(output["headers"]["content-type"], "application/json");
}
