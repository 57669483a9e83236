//! `firn doctor` over a local folder and over Azurite: what it says when all is well, and of each thing that is not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use firn_model::BlobId;
use firn_storage::{AzureOptions, AzureQueue, AzureStore, ConnectionString, Queue, SendOptions};
use firn_test_support::{Azurite, Certificate};
use firn_tests::program::{Run, run};
use firn_tests::{Scene, firn};
use serde_json::{Value, json};

const ORDERED: &str = "seriesColumns: [origin], timeColumn: time_hour";
const SMALL: &str = "--source weather --limit 200 --appends 2 --partition month:time_hour";

fn command(scene: &Scene) -> Command {
    let mut command = firn();
    for name in ["AzureWebJobsStorage", "AzureWebJobsStorage__accountName", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"] {
        command.env_remove(name);
    }
    command.args(["--format", "json", "doctor", "--config"]).arg(scene.config());
    command
}

fn doctor(scene: &Scene) -> Run {
    run(&mut command(scene))
}

/// Checks in their order with whether they are well.
fn checks(run: &Run) -> Vec<(String, bool)> {
    let line = |line: Value| (line["check"].as_str().unwrap().to_owned(), line["ok"].as_bool().unwrap());
    run.lines().into_iter().map(line).collect()
}

/// The messages of a check.
fn said(run: &Run, check: &str) -> Vec<String> {
    let lines = run.lines().into_iter().filter(|line| line["check"] == check);
    lines.map(|line| line["message"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn assert_failed(run: &Run, failed: &[&str]) {
    let found: Vec<String> = checks(run).into_iter().filter(|(_, ok)| !ok).map(|(check, _)| check).collect();
    assert_eq!(found, failed, "{}", run.stdout);
    assert_eq!(
        run.summary(),
        json!({"summary": true, "ok": false, "checks": checks(run).len(), "failed": failed.len()})
    );
}

/// What a deployment creates.
fn deploy(connection: &str) -> AzureQueue {
    let connection = ConnectionString::parse(connection).unwrap();
    let store = AzureStore::new(&connection, AzureOptions::default()).unwrap();
    let state = BlobId { account: store.account().into(), container: "firn-state".into(), key: String::new() };
    let queues = ["firn-compact", "firn-compact-poison"].map(|name| AzureQueue::open(&connection, name).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        store.create_container(&state).await.unwrap();
        for queue in &queues {
            queue.create().await.unwrap();
        }
    });
    let [_, poison] = queues;
    poison
}

#[test]
fn all_is_well_in_a_local_folder() {
    let scene = Scene::local();
    scene.configure("", ORDERED);
    scene.make(SMALL);
    let run = doctor(&scene).expect_code(0);
    let expected = [
        "configuration",
        "orphan age",
        "storage",
        "catalog",
        "table",
        "sort columns",
        "table properties",
        "other optimizers",
        "data access",
        "locations",
    ];
    assert_eq!(checks(&run), expected.map(|check| (check.to_owned(), true)));
    assert_eq!(run.summary(), json!({"summary": true, "ok": true, "checks": 10, "failed": 0}));
    assert_eq!(said(&run, "orphan age"), ["maintenance.orphanMinAgeHours 24, compaction.runtimeDeadlineHours 6"]);
    assert!(said(&run, "sort columns")[0].starts_with("readings: "), "{}", run.stdout);

    let text = run_text(&scene);
    assert!(text.contains("other optimizers") && text.contains("readings: no trace of another"), "{text}");
}

fn run_text(scene: &Scene) -> String {
    let mut command = firn();
    run(command.args(["doctor", "--config"]).arg(scene.config())).expect_code(0).stdout
}

#[test]
fn all_is_well_in_an_account() {
    let azurite = Azurite::start();
    let scene = Scene::azurite(&azurite, "well");
    scene.configure("", ORDERED);
    scene.make(SMALL);
    deploy(&azurite.connection_string());
    let run = run(command(&scene).env("AzureWebJobsStorage", azurite.connection_string())).expect_code(0);
    let expected = [
        "configuration",
        "orphan age",
        "token",
        "state",
        "clock",
        "queue",
        "queue",
        "trigger",
        "catalog",
        "table",
        "sort columns",
        "table properties",
        "other optimizers",
        "data access",
        "locations",
        "soft delete",
    ];
    assert_eq!(checks(&run), expected.map(|check| (check.to_owned(), true)), "{}", run.stdout);
    assert_eq!(said(&run, "token"), ["not needed: a connection string"]);
    assert_eq!(said(&run, "state"), ["container firn-state: wrote, listed, read and deleted a blob"]);
    assert_eq!(
        said(&run, "queue"),
        ["firn-compact: 0 messages; sending is not tried", "firn-compact-poison: 0 messages; sending is not tried"]
    );
    assert_eq!(said(&run, "trigger"), ["AzureWebJobsStorage and storage are both account devstoreaccount1"]);
    assert_eq!(said(&run, "locations"), ["1 place, apart from the state"]);
}

#[test]
fn what_is_missing_and_what_is_wrong() {
    let azurite = Azurite::start();
    let scene = Scene::azurite(&azurite, "missing");
    scene.configure("", "seriesColumns: [orgin], timeColumn: time_hour");
    scene.make(&format!("{SMALL} --property optimizer.enabled=true"));
    let missing = run(command(&scene).env("AzureWebJobsStorage__accountName", "elsewhere")).expect_code(1);
    assert_failed(&missing, &["trigger", "sort columns", "other optimizers"]);
    assert_eq!(
        said(&missing, "state"),
        [
            "warning: container firn-state is not there yet: the first run of Firn that needs it creates it on the emulator"
        ]
    );
    assert_eq!(
        said(&missing, "queue"),
        [
            "warning: firn-compact is not there yet: the first run of Firn that needs it creates it on the emulator",
            "warning: firn-compact-poison is not there yet: the Functions host creates it before it gives a message up, and infra \
             with the deployment",
        ]
    );
    assert!(
        said(&missing, "trigger")[0].starts_with(
            "Firn sends to account devstoreaccount1, AzureWebJobsStorage__accountName listens to elsewhere"
        ),
        "{}",
        missing.stdout
    );
    assert!(said(&missing, "sort columns")[0].contains("`orgin`"), "{}", missing.stdout);
    assert!(said(&missing, "other optimizers")[0].contains("property optimizer.enabled"), "{}", missing.stdout);

    // A message that the host gave up, and a table that is not there.
    let poison = deploy(&azurite.connection_string());
    let options = SendOptions { hidden_for: Duration::ZERO, time_to_live: None };
    tokio::runtime::Runtime::new().unwrap().block_on(poison.send("junk", &options)).unwrap();
    let text = std::fs::read_to_string(scene.config()).unwrap().replace("iot.readings", "iot.reading");
    std::fs::write(scene.config(), text).unwrap();
    let waiting = doctor(&scene).expect_code(1);
    assert_failed(&waiting, &["queue", "table"]);
    assert!(
        said(&waiting, "queue")[1].starts_with("firn-compact-poison: 1 message that the host gave up"),
        "{}",
        waiting.stdout
    );
    assert!(said(&waiting, "table")[0].contains("reading"), "{}", waiting.stdout);

    // A key that the account does not take.
    let scene = scene.with_connection_string(&format!(
        "AccountName=devstoreaccount1;AccountKey=d3Jvbmc=;BlobEndpoint={};QueueEndpoint={}",
        azurite.blob_endpoint(),
        azurite.queue_endpoint()
    ));
    scene.configure("", ORDERED);
    let denied = doctor(&scene).expect_code(1);
    assert_failed(&denied, &["state", "clock", "queue", "queue", "table"]);
    for check in ["state", "queue"] {
        let said = &said(&denied, check)[0];
        assert!(said.contains("correct the key or signature in storage.connectionString"), "{}", denied.stdout);
        assert!(!said.contains("role"), "no role helps a key: {said}");
    }
    assert!(!denied.stdout.contains("d3Jvbmc="), "{}", denied.stdout);
}

#[test]
fn a_wrong_configuration_is_exit_code_2() {
    let scene = Scene::local();
    std::fs::write(
        scene.config(),
        "catalog: {type: sql, uri: 'sqlite:////c.db', name: n}\nmaintenance: {orphanMinAgeHour: 2}\n",
    )
    .unwrap();
    let run = doctor(&scene).expect_code(2);
    let messages = said(&run, "configuration");
    assert!(messages.iter().any(|message| message.contains(":2: maintenance.orphanMinAgeHour")), "{messages:?}");
    assert!(messages.iter().any(|message| message.contains("ingestion")), "{messages:?}");
    assert_eq!(run.summary()["ok"], false);
}

/// An identity endpoint as App Service has it, until the test process ends.
fn identity_endpoint(status: &'static str, body: String) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}/msi/token", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

fn token() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (audience, issuer) =
        ("https://storage.azure.com", "https://sts.windows.net/11111111-1111-1111-1111-111111111111/");
    let claims = json!({"aud": audience, "iss": issuer, "iat": now, "nbf": now - 60, "exp": now + 3600});
    let encode = |text: String| BASE64_URL_SAFE_NO_PAD.encode(text);
    let token =
        [encode(json!({"alg": "RS256", "typ": "JWT"}).to_string()), encode(claims.to_string()), encode("x".into())]
            .join(".");
    json!({"access_token": token, "expires_on": (now + 3600).to_string(), "resource": audience, "token_type": "Bearer"})
        .to_string()
}

#[test]
fn an_identity_over_tls() {
    let certificate = Certificate::of_this_machine();
    let azurite = Azurite::start_with_tls(&certificate);
    let scene = Scene::local();
    scene.configure("", ORDERED);
    scene.make(SMALL);
    let text = std::fs::read_to_string(scene.config()).unwrap();
    let storage = format!(
        "storage: {{ blobServiceUri: \"{}\", queueServiceUri: \"{}\", credential: managedIdentity }}\n",
        azurite.blob_endpoint(),
        azurite.queue_endpoint()
    );
    std::fs::write(scene.config(), storage + &text).unwrap();
    let with = |endpoint: String| {
        let mut command = command(&scene);
        run(command
            .env("SSL_CERT_FILE", &certificate.certificate)
            .env("IDENTITY_ENDPOINT", endpoint)
            .env("IDENTITY_HEADER", "h"))
    };
    let well = with(identity_endpoint("200 OK", token())).expect_code(0);
    // Nothing was created in the account: the token alone is well, and the account takes it.
    assert_eq!(said(&well, "token"), ["credential: managedIdentity: token received"]);
    for (check, container_or_queue) in [("state", "container firn-state"), ("queue", "firn-compact")] {
        let warning = format!("warning: {container_or_queue} is not there yet: ");
        assert!(said(&well, check)[0].starts_with(&warning), "{}", well.stdout);
    }

    let refused = with(identity_endpoint("400 Bad Request", "{}".into())).expect_code(1);
    assert_failed(&refused, &["token", "state", "clock", "queue", "catalog", "tables", "locations"]);
    let message = &said(&refused, "token")[0];
    assert!(message.starts_with("storage.credential: managedIdentity: no token ("), "{message}");
    assert!(message.contains("assign the identity to the app"), "{message}");
}
