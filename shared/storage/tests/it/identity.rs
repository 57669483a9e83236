//! Identities over the wire: an identity endpoint as App Service has it, and a storage account that takes its tokens over TLS.
//!
//! `azure_identity` reads the environment of the process, so each case runs in a process of its own: this program again, with one
//! of the tests below `child` and the environment that the case needs.

use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use firn_test_support::{Azurite, Certificate};

use crate::stub::{Answer, Request, Stub, status};

const CLIENT: &str = "6a7b0000-0000-0000-0000-000000000001";

/// The answer of App Service with a token that lives so long. Azurite looks at times, issuer and audience of a token.
fn token(seconds: u64) -> Answer {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let expires = now + seconds;
    let claims = format!(
        "{{\"aud\":\"https://storage.azure.com\",\"iss\":\"https://sts.windows.net/11111111-1111-1111-1111-111111111111/\",\
         \"iat\":{now},\"nbf\":{},\"exp\":{expires}}}",
        now - 60
    );
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let token = format!("{}.{}.{}", encode("{\"alg\":\"RS256\",\"typ\":\"JWT\"}"), encode(&claims), encode("unsigned"));
    let body = format!(
        "{{\"access_token\":\"{token}\",\"expires_on\":\"{expires}\",\"resource\":\"https://storage.azure.com\",\"token_type\":\"Bearer\"}}"
    );
    Answer::Full(200, vec![("content-type", "application/json".into())], body.into_bytes())
}

fn busy(retry_after: &str) -> Answer {
    Answer::Full(429, vec![("retry-after", retry_after.into())], vec![])
}

/// Runs a case of `child` against an identity endpoint, and gives back what that was asked.
async fn run(
    case: &str,
    environment: &[(&str, String)],
    script: impl Fn(usize) -> Answer + Send + Sync + 'static,
) -> Vec<Request> {
    let endpoint = Stub::start(move |before, _| script(before)).await;
    let address = format!("http://127.0.0.1:{}/msi/token", endpoint.port);
    let own = [("IDENTITY_ENDPOINT", address.as_str()), ("IDENTITY_HEADER", "header-of-the-app")];
    let given: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    run_child(&format!("identity::child::{case}"), &[&own, given.as_slice()].concat()).await;
    endpoint.requests()
}

/// Runs one test of this program in a process of its own, with this environment beside the usual one.
pub(crate) async fn run_child(test: &str, environment: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).envs(environment.iter().copied());
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_for_many_calls() {
    let requests = run("many_calls", &[], |_| token(3600)).await;
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].method, "GET");
    let target = &requests[0].target;
    assert!(target.starts_with("/msi/token?api-version=2019-08-01"), "{target}");
    assert!(target.contains("resource=https%3A%2F%2Fstorage.azure.com") && target.contains(CLIENT), "{target}");
    assert_eq!(requests[0].header("x-identity-header"), Some("header-of-the-app"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_near_its_end_is_replaced() {
    let requests = run("near_its_end", &[], |before| token(if before == 0 { 200 } else { 3600 })).await;
    assert_eq!(requests.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_is_refused_is_named_with_the_remedy() {
    let requests = run("refused", &[], |_| status(400)).await;
    assert_eq!(requests.len(), 1, "asking again is of no use");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_takes_the_token_over_tls_after_the_endpoint_was_busy() {
    let certificate = Certificate::of_this_machine();
    let azurite = Azurite::start_with_tls(&certificate);
    let environment = [
        ("SSL_CERT_FILE", certificate.certificate.display().to_string()),
        ("FIRN_TEST_BLOBS", azurite.blob_endpoint()),
        ("FIRN_TEST_QUEUES", azurite.queue_endpoint()),
    ];
    let requests = run("whole_account", &environment, |before| if before == 0 { busy("1") } else { token(3600) }).await;
    assert_eq!(requests.len(), 2, "one refusal and one token for all clients");
}

/// What runs in a process of its own.
mod child {
    use std::time::{Duration, Instant};

    use bytes::Bytes;
    use firn_model::BlobId;
    use firn_storage::{
        AccountAddress, AzureAccount, AzureOptions, AzureQueue, AzureStore, BlobStore, Identity, IdentityKind, Lease,
        PutCondition, Queue, SendOptions, StorageError,
    };
    use futures::TryStreamExt;

    use super::CLIENT;

    fn identity() -> Identity {
        Identity { kind: IdentityKind::ManagedIdentity, client_id: Some(CLIENT.into()) }
    }

    fn variable(name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    #[tokio::test]
    #[ignore = "a part of one_request_for_many_calls, with its environment"]
    async fn many_calls() {
        let sources: Vec<_> = (0..8).map(|_| identity().open().unwrap()).collect();
        let calls = sources.iter().cycle().take(64).map(|source| source.token());
        let tokens = futures::future::try_join_all(calls).await.unwrap();
        assert!(tokens.windows(2).all(|two| two[0].secret() == two[1].secret()));
    }

    #[tokio::test]
    #[ignore = "a part of a_token_near_its_end_is_replaced, with its environment"]
    async fn near_its_end() {
        let source = identity().open().unwrap();
        let first = source.token().await.unwrap();
        let second = source.token().await.unwrap();
        assert_ne!(first.secret(), second.secret());
        assert_eq!(source.token().await.unwrap().secret(), second.secret());
    }

    #[tokio::test]
    #[ignore = "a part of an_identity_that_is_refused_is_named_with_the_remedy, with its environment"]
    async fn refused() {
        let address = AccountAddress { account: Some("acct".into()), ..AccountAddress::default() };
        let account = AzureAccount::with_identity(&address, identity().open().unwrap()).unwrap();
        let store = AzureStore::new(&account, AzureOptions::default()).unwrap();
        let id = BlobId::parse("abfss://lake@acct.dfs.core.windows.net/k").unwrap();
        let error = store.read_all(&id).await.unwrap_err();
        assert!(matches!(error, StorageError::Denied { .. }), "{error:?}");
        let text = error.to_string();
        for part in [
            "storage.credential: managedIdentity (clientId 6a7b0000-",
            "identity has not been assigned",
            "assign the identity to the app and write its client id as storage.clientId",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("header-of-the-app"), "{text}");
    }

    #[tokio::test]
    #[ignore = "a part of an_account_takes_the_token_over_tls_after_the_endpoint_was_busy, with its environment"]
    async fn whole_account() {
        let address = AccountAddress {
            account: None,
            blob_service: variable("FIRN_TEST_BLOBS"),
            queue_service: variable("FIRN_TEST_QUEUES"),
        };
        let account = AzureAccount::with_identity(&address, identity().open().unwrap()).unwrap();
        let store = AzureStore::new(&account, AzureOptions::default()).unwrap();
        let begun = Instant::now();
        let container = BlobId::parse("abfss://lake@devstoreaccount1.dfs.core.windows.net/").unwrap();
        store.create_container(&container).await.unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(900), "the wait was kept: {:?}", begun.elapsed());
        let id = container.with_key("a/b");
        store.put(&id, Bytes::from_static(b"cold"), PutCondition::IfAbsent).await.unwrap();
        // Clients opened later share the token.
        let again = AzureStore::new(&account, AzureOptions::default()).unwrap();
        assert_eq!(again.read_all(&id).await.unwrap(), "cold");
        let listed: Vec<BlobId> = again.list(&container).map_ok(|blob| blob.id).try_collect().await.unwrap();
        assert_eq!(listed, std::slice::from_ref(&id));
        let lease = store.acquire(&id, Duration::from_secs(15)).await.unwrap();
        store.release(&id, &lease).await.unwrap();
        store.delete(&id).await.unwrap();
        let queue = AzureQueue::open(&account, "by-token").unwrap();
        queue.create().await.unwrap();
        queue.send("{}", &SendOptions { hidden_for: Duration::ZERO, time_to_live: None }).await.unwrap();
        let received = queue.receive(1, Duration::from_secs(30)).await.unwrap();
        assert_eq!(received[0].text, "{}");
    }
}
