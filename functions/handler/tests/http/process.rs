//! The program as the host starts and ends it.

use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A running handler. Dropping it ends the process.
pub(crate) struct Handler {
    process: Child,
    port: u16,
    client: reqwest::Client,
}

pub(crate) fn command(app_root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handler"));
    let variables =
        ["FUNCTIONS_CUSTOMHANDLER_PORT", "FUNCTIONS_HTTPWORKER_PORT", "FIRN_CONFIG", "FIRN_LOG", "FIRN_END_WITH_STDIN"];
    for variable in variables {
        command.env_remove(variable);
    }
    command.env("FUNCTIONS_APP_ROOT_PATH", app_root).current_dir(app_root).stdin(Stdio::null());
    command
}

impl Handler {
    /// Starts the program and waits until it answers, as the host does.
    pub(crate) async fn start(app_root: &Path) -> Handler {
        // One TLS provider in the process. An error says that another test has installed one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let process = command(app_root)
            .env("FUNCTIONS_CUSTOMHANDLER_PORT", port.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut handler = Handler { process, port, client };
        while handler.client.get(handler.url("")).send().await.is_err() {
            assert_eq!(handler.process.try_wait().unwrap(), None, "it ended: {}", handler.end().1);
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        handler
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub(crate) async fn post(&self, function: &str, data: Value, metadata: Value) -> (u16, Value) {
        let body = json!({ "Data": data, "Metadata": metadata }).to_string();
        let request =
            self.client.post(self.url(function)).header("X-Azure-Functions-InvocationId", "6f6e1d0e").body(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
    }

    /// Ends it as the host does, and returns its stdout and stderr.
    pub(crate) fn end(&mut self) -> (String, String) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let mut text = (String::new(), String::new());
        if let Some(stdout) = &mut self.process.stdout {
            stdout.read_to_string(&mut text.0).unwrap();
        }
        if let Some(stderr) = &mut self.process.stderr {
            stderr.read_to_string(&mut text.1).unwrap();
        }
        text
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn fails(output: &Output, says: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(says), "{stderr}");
}

#[test]
fn it_never_ends_with_code_0() {
    let folder = tempfile::tempdir().unwrap();
    fails(&command(folder.path()).output().unwrap(), "FUNCTIONS_CUSTOMHANDLER_PORT is not set");
    let wrong = command(folder.path()).env("FUNCTIONS_CUSTOMHANDLER_PORT", "x").output().unwrap();
    fails(&wrong, "FUNCTIONS_CUSTOMHANDLER_PORT \"x\" is not a port");
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = command(folder.path()).env("FUNCTIONS_CUSTOMHANDLER_PORT", &port).output().unwrap();
    fails(&output, &format!("cannot listen on port {port}"));
}

#[tokio::test]
async fn without_a_configuration_it_answers_and_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("host.json"), r#"{"version":"2.0","functionTimeout":"00:30:00"}"#).unwrap();
    let mut handler = Handler::start(folder.path()).await;
    let (status, answer) = handler.post("compact", json!({ "message": "e30=" }), json!({})).await;
    assert_eq!(status, 500);
    let reason = answer["ReturnValue"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("not ready for work:") && reason.contains("firn.yaml"), "{reason}");
    let (status, _) = handler.post("plan", json!({ "timer": {} }), json!({})).await;
    assert_eq!(status, 500);
    // A person gets an answer to read.
    let (status, answer) = handler.post("status", json!({ "request": {} }), json!({})).await;
    assert_eq!((status, &answer["Outputs"]["response"]["statusCode"]), (200, &json!(503)));
    assert_eq!(answer["Outputs"]["response"]["body"]["ok"], false);
    let (_, stderr) = handler.end();
    assert!(stderr.contains("6f6e1d0e") && stderr.contains(&reason), "the host drops the reason of a fault: {stderr}");
}

#[test]
fn it_ends_with_a_host_that_was_killed_and_only_where_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let start = |told: bool| {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let mut command = command(folder.path());
        if told {
            command.env("FIRN_END_WITH_STDIN", "1");
        }
        let command = command.env("FUNCTIONS_CUSTOMHANDLER_PORT", port.to_string()).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let (mut told, mut other) = (start(true), start(false));
    drop((told.stdin.take(), other.stdin.take()));
    assert_eq!(told.wait().unwrap().code(), Some(1));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(other.try_wait().unwrap(), None, "stdin means nothing to a handler of the real host");
    other.kill().unwrap();
    other.wait().unwrap();
}
