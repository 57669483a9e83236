//! Identities that ask Entra or a developer's tool: a token endpoint behind TLS, where `AZURE_AUTHORITY_HOST` leads, and an `az` by script.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use firn_test_support::Certificate;

use crate::identity::run_child;
use crate::stub::{Answer, Request, Stub};
use crate::tls_front;

const TENANT: &str = "11111111-1111-1111-1111-111111111111";
const CLIENT: &str = "6a7b0000-0000-0000-0000-000000000002";
/// With what has to be escaped in a form.
const SECRET: &str = "hunter2+&=";
const SCOPE: &str = "scope=https%3A%2F%2Fstorage.azure.com%2F.default";

/// The answer of Entra.
fn token(number: usize, seconds: u64) -> Answer {
    let body = format!("{{\"token_type\":\"Bearer\",\"expires_in\":{seconds},\"access_token\":\"token {number}\"}}");
    Answer::Full(200, vec![("content-type", "application/json".into())], body.into_bytes())
}

/// Runs a case of `child` with the endpoint as its authority, and gives back what that was asked.
async fn run(
    case: &str,
    environment: &[(&str, &str)],
    script: impl Fn(usize) -> Answer + Send + Sync + 'static,
) -> Vec<Request> {
    let certificate = Certificate::of_this_machine();
    let endpoint = Stub::start(move |before, _| script(before)).await;
    let port = tls_front::start(endpoint.port, &certificate);
    let (authority, trusted) = (format!("https://127.0.0.1:{port}"), certificate.certificate.display().to_string());
    let own = [
        ("AZURE_AUTHORITY_HOST", authority.as_str()),
        ("SSL_CERT_FILE", trusted.as_str()),
        ("AZURE_TENANT_ID", TENANT),
        ("NO_PROXY", "127.0.0.1"),
    ];
    run_child(&format!("entra::child::{case}"), &[&own, environment].concat()).await;
    endpoint.requests()
}

/// Asserts where a token was asked for, and gives back the fields of the form.
#[track_caller]
fn fields(request: &Request) -> Vec<&str> {
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", &*format!("/{TENANT}/oauth2/v2.0/token")));
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
    std::str::from_utf8(&request.body).unwrap().split('&').collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_secret_gives_one_token_for_many_calls() {
    let requests = run("client_secret", &[("AZURE_CLIENT_SECRET", SECRET)], |before| token(before, 3600)).await;
    assert_eq!(requests.len(), 1);
    let client = format!("client_id={CLIENT}");
    let expected = [client.as_str(), "client_secret=hunter2%2B%26%3D", "grant_type=client_credentials", SCOPE];
    assert_eq!(fields(&requests[0]), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_secret_is_sent_again_ahead_of_the_end_and_not_before_the_wait_is_over() {
    let script = |before| match before {
        0 => Answer::Full(429, vec![("retry-after", "1".into())], vec![]),
        1 => token(1, 200),
        more => token(more, 3600),
    };
    let requests = run("busy_then_short", &[("AZURE_CLIENT_SECRET", SECRET)], script).await;
    assert_eq!(requests.len(), 3, "busy, a token near its end, the next one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_secret_that_is_refused_is_told_with_the_remedy() {
    let body = "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000222: The provided client secret keys are expired.\",\
                \"error_codes\":[7000222]}";
    let script = |_| Answer::Full(401, vec![("content-type", "application/json".into())], body.into());
    let requests = run("refused", &[("AZURE_CLIENT_SECRET", SECRET)], script).await;
    assert_eq!(requests.len(), 1, "asking again is of no use");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_identity_sends_the_token_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "of-the-service-account").unwrap();
    let environment = [("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap())];
    let requests = run("workload", &environment, |before| token(before, 3600)).await;
    assert_eq!(requests.len(), 1);
    let client = format!("client_id={CLIENT}");
    let expected = [
        "client_assertion=of-the-service-account",
        "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer",
        client.as_str(),
        "grant_type=client_credentials",
        SCOPE,
    ];
    assert_eq!(fields(&requests[0]), expected);
}

/// Puts a program before all others and runs a case of `child` with it.
async fn with_program(case: &str, folder: &Path, name: &str, script: &str) {
    let program = folder.join(name);
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    run_child(&format!("entra::child::{case}"), &[("PATH", path.as_str())]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_azure_cli_is_asked_once_for_many_calls() {
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("asked");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\n\
         echo \"{{\\\"accessToken\\\":\\\"token 0\\\",\\\"expires_on\\\":$(($(date +%s) + 3600)),\\\"tokenType\\\":\\\"Bearer\\\"}}\"\n",
        asked.display()
    );
    with_program("developer", folder.path(), "az", &script).await;
    let asked = std::fs::read_to_string(asked).unwrap();
    assert_eq!(asked, "account get-access-token -o json --scope https://storage.azure.com/.default\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_logged_in_is_told_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\necho \"Please run 'az login' to set up an account.\" >&2\nexit 1\n";
    with_program("nobody_logged_in", folder.path(), "az", script).await;
}

/// What runs in a process of its own.
mod child {
    use std::time::Duration;

    use firn_storage::{Identity, IdentityKind, TokenError, TokenSource};

    use super::{CLIENT, SECRET};

    fn source(kind: IdentityKind, client_id: Option<&str>) -> std::sync::Arc<TokenSource> {
        Identity { kind, client_id: client_id.map(str::to_owned) }.open().unwrap()
    }

    async fn one_token(kind: IdentityKind, client_id: Option<&str>) {
        let sources: Vec<_> = (0..8).map(|_| source(kind, client_id)).collect();
        let calls = sources.iter().cycle().take(64).map(|source| source.token());
        let tokens = futures::future::try_join_all(calls).await.unwrap();
        assert!(tokens.iter().all(|token| token.secret() == "token 0"), "{tokens:?}");
    }

    #[tokio::test]
    #[ignore = "a part of a_client_secret_gives_one_token_for_many_calls, with its environment"]
    async fn client_secret() {
        one_token(IdentityKind::ClientSecret, Some(CLIENT)).await;
    }

    #[tokio::test]
    #[ignore = "a part of a_workload_identity_sends_the_token_of_its_file, with its environment"]
    async fn workload() {
        one_token(IdentityKind::WorkloadIdentity, Some(CLIENT)).await;
    }

    #[tokio::test]
    #[ignore = "a part of the_azure_cli_is_asked_once_for_many_calls, with its environment"]
    async fn developer() {
        one_token(IdentityKind::DeveloperTools, None).await;
    }

    #[tokio::test]
    #[ignore = "a part of a_client_secret_is_sent_again_ahead_of_the_end_and_not_before_the_wait_is_over, with its environment"]
    async fn busy_then_short() {
        let source = source(IdentityKind::ClientSecret, Some(CLIENT));
        for _ in 0..3 {
            let Err(TokenError::Later { retry_after, .. }) = source.token().await else { panic!("it is busy") };
            assert!(retry_after <= Duration::from_secs(1), "{retry_after:?}");
        }
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_eq!(source.token().await.unwrap().secret(), "token 1");
        assert_eq!(source.token().await.unwrap().secret(), "token 2");
        assert_eq!(source.token().await.unwrap().secret(), "token 2");
    }

    #[tokio::test]
    #[ignore = "a part of a_client_secret_that_is_refused_is_told_with_the_remedy, with its environment"]
    async fn refused() {
        let error = source(IdentityKind::ClientSecret, Some(CLIENT)).token().await.unwrap_err();
        assert!(matches!(error, TokenError::Refused { .. }), "{error:?}");
        let text = error.to_string();
        for part in [
            "storage.credential: clientSecret (clientId 6a7b0000-",
            "AADSTS7000222: The provided client secret keys are expired.",
            "check AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET; a secret expires",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains(SECRET) && !text.contains("hunter2"), "{text}");
    }

    #[tokio::test]
    #[ignore = "a part of nobody_logged_in_is_told_with_the_remedy, with its environment"]
    async fn nobody_logged_in() {
        let error = source(IdentityKind::DeveloperTools, None).token().await.unwrap_err();
        let text = error.to_string();
        for part in
            ["storage.credential: developerTools", "Please run 'az login'", "log in with az login or azd auth login"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
}
