//! What a REST catalog's server can do: sign-in and paths of the servers that people have, refusals, lost answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::OffsetDateTime;
use firn_config::{Config, ProcessEnvironment};
use firn_storage::{AccountAddress, AzureAccount, MemoryStore, TokenSource};
use firn_table::{Catalog, LoadedTable, NextStep, SwapError, TableError, TableIdent, TableStore};
use firn_test_support::{Proxy, proxy::Trouble};
use iceberg::spec::*;
use iceberg::{TableCreation, TableRequirement, TableUpdate};
use serde_json::{Value, json};

use crate::double::{Double, Seen};

const LOCATION: &str = "abfss://lake@acct.dfs.core.windows.net/wh/db/t";

/// The answer to a load.
pub fn table() -> Value {
    let field = NestedField::optional(1, "a", Type::Primitive(PrimitiveType::Long));
    let creation = TableCreation::builder()
        .name("t".to_owned())
        .location(LOCATION.to_owned())
        .schema(Schema::builder().with_fields([Arc::new(field)]).build().unwrap())
        .properties(HashMap::new())
        .format_version(FormatVersion::V2)
        .build();
    let metadata = TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata;
    json!({"metadata-location": format!("{LOCATION}/metadata/00000-a.metadata.json"), "metadata": metadata, "config": {}})
}

pub fn error(code: u16, kind: &str) -> Value {
    json!({"error": {"message": format!("said the server with {code}"), "type": kind, "code": code}})
}

pub async fn open(section: &str, account: Option<&AzureAccount>) -> Result<Arc<dyn Catalog>, TableError> {
    let text = format!(
        "storage: {{ account: acct }}\ncatalog: {{ type: rest, {section} }}\n\
         ingestion: {{ datasets: [ {{ name: t, table: db.t }} ] }}\n"
    );
    let config = Config::load(&text, &ProcessEnvironment).unwrap_or_else(|problems| panic!("{problems}"));
    let store = TableStore::new(Arc::new(MemoryStore::new()));
    firn_table::catalog::open(&config.catalog, store, account).await
}

fn ident() -> TableIdent {
    TableIdent::new(["db"], "t")
}

fn updates() -> Vec<TableUpdate> {
    vec![TableUpdate::SetProperties { updates: HashMap::from([("k".to_owned(), "1".to_owned())]) }]
}

fn bearer(seen: &Seen) -> Option<&str> {
    seen.header("authorization")
}

/// Answers `config` with the prefix, and the table at its path, to whoever has the token.
fn server(
    config: &'static str,
    prefix: &'static str,
    table_path: &'static str,
    token: &'static str,
) -> impl Fn(&Seen, &[Seen]) -> (u16, Value) + Send + Sync + 'static {
    move |seen, _| {
        if bearer(seen) != Some(token) && seen.method == "GET" {
            return (401, error(401, "NotAuthorizedException"));
        }
        match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", path) if path == config => (200, json!({"defaults": {}, "overrides": {"prefix": prefix}})),
            ("GET", path) if path == table_path => (200, table()),
            ("POST", path) if path.ends_with("/token") || path.ends_with("/tokens") => {
                (200, json!({"access_token": "tok", "token_type": "bearer", "expires_in": 3600}))
            }
            _ => (404, error(404, "NoSuchTableException")),
        }
    }
}

#[tokio::test]
async fn polaris_signs_in_at_the_catalog_and_prefixes_its_name() {
    let config = "/api/catalog/v1/config?warehouse=my%20lake";
    let path = "/api/catalog/v1/my%20lake/namespaces/db/tables/t";
    let double = Double::start(server(config, "my lake", path, "Bearer tok")).await;
    let section = format!(
        "uri: \"{}/api/catalog\", warehouse: my lake, auth: oauth2, credential: \"id:se:cret&\", scope: \"PRINCIPAL_ROLE:ALL\"",
        double.url()
    );
    let catalog = open(&section, None).await.unwrap();
    assert_eq!(catalog.name(), "my lake");
    let loaded = catalog.load(&ident()).await.unwrap();
    assert_eq!(loaded.metadata_location, format!("{LOCATION}/metadata/00000-a.metadata.json"));
    let signed_in = double.seen().remove(0);
    assert!(signed_in.is("POST", "/api/catalog/v1/oauth/tokens"), "{signed_in:?}");
    assert_eq!(signed_in.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(
        signed_in.body,
        "grant_type=client_credentials&scope=PRINCIPAL_ROLE%3AALL&client_id=id&client_secret=se%3Acret%26"
    );
    assert_eq!(double.count("POST", "/api/catalog/v1/oauth/tokens"), 1, "one token for all");
    assert_eq!(double.seen().last().unwrap().header("x-iceberg-access-delegation"), Some("vended-credentials"));
}

#[tokio::test]
async fn lakekeeper_signs_in_elsewhere_and_prefixes_an_id() {
    let id = "0198a0c2-0000-7000-8000-000000000001";
    let (config, path) = (
        "/catalog/v1/config?warehouse=lake",
        "/catalog/v1/0198a0c2-0000-7000-8000-000000000001/namespaces/db/tables/t",
    );
    let double = Double::start(server(config, id, path, "Bearer tok")).await;
    let url = double.url();
    let section = format!(
        "uri: \"{url}/catalog\", warehouse: lake, auth: oauth2, credential: \"firn:x\", scope: lakekeeper, vendedCredentials: false, \
         oauth2ServerUri: \"{url}/realms/iceberg/protocol/openid-connect/token\""
    );
    open(&section, None).await.unwrap().load(&ident()).await.unwrap();
    assert!(double.seen()[0].is("POST", "/realms/iceberg/protocol/openid-connect/token"));
    assert_eq!(double.seen().last().unwrap().header("x-iceberg-access-delegation"), None);
}

#[tokio::test]
async fn unity_takes_a_token_and_a_prefix_of_several_segments() {
    let (config, path) = (
        "/api/2.1/unity-catalog/iceberg-rest/v1/config?warehouse=lake",
        "/api/2.1/unity-catalog/iceberg-rest/v1/catalogs/lake/namespaces/db/tables/t",
    );
    let double = Double::start(server(config, "catalogs/lake", path, "Bearer dapi")).await;
    let section = format!(
        "uri: \"{}/api/2.1/unity-catalog/iceberg-rest\", warehouse: lake, auth: bearer, token: dapi, headers: {{ X-Team: ice }}",
        double.url()
    );
    open(&section, None).await.unwrap().load(&ident()).await.unwrap();
    assert!(double.seen().iter().all(|seen| seen.header("x-team") == Some("ice")));
}

/// Gives the scope as the token.
#[derive(Debug)]
struct Scopes;

#[async_trait]
impl TokenCredential for Scopes {
    async fn get_token(&self, scopes: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        Ok(AccessToken::new(scopes.join(" "), OffsetDateTime::now_utc() + Duration::from_secs(3600)))
    }
}

fn with_identity() -> AzureAccount {
    let source = TokenSource::new("credential: managedIdentity".into(), "assign one", Arc::new(Scopes));
    let address = AccountAddress { account: Some("acct".into()), ..AccountAddress::default() };
    AzureAccount::with_identity(&address, Arc::new(source)).unwrap()
}

#[tokio::test]
async fn an_entra_token_is_for_the_scope_that_was_written() {
    let double =
        Double::start(server("/v1/config", "p", "/v1/p/namespaces/db/tables/t", "Bearer api://firn/.default")).await;
    let section = format!("uri: \"{}\", auth: entra, scope: \"api://firn/.default\"", double.url());
    open(&section, Some(&with_identity())).await.unwrap().load(&ident()).await.unwrap();
    let error = open(&section, None).await.unwrap_err();
    assert_eq!(error.next_step(), NextStep::Absent);
    assert!(error.to_string().contains("identity"), "{error}");
}

#[tokio::test]
async fn what_is_wrong_with_the_way_in_is_named() {
    let double = Double::start(|seen, _| match seen.path.as_str() {
        "/gone/v1/config" => (404, json!("no such page")),
        "/html/v1/config" => (200, json!("<html>")),
        "/busy/v1/config" => (503, error(503, "ServiceUnavailableException")),
        path if path.ends_with("/tokens") => (401, json!({"error": "invalid_client", "error_description": "unknown"})),
        _ => (403, error(403, "ForbiddenException")),
    })
    .await;
    let url = double.url();
    for (section, step, parts) in [
        (format!("uri: \"{url}/gone\""), NextStep::Absent, ["404", "catalog.uri"]),
        (format!("uri: \"{url}/html\""), NextStep::Absent, ["not a catalog's configuration", "catalog.uri"]),
        (format!("uri: \"{url}/busy\""), NextStep::Retry, ["503", "does not answer"]),
        (format!("uri: \"{url}\""), NextStep::Retry, ["403", "catalog.auth"]),
        (
            format!("uri: \"{url}\", auth: oauth2, credential: \"a:hunter2\""),
            NextStep::Retry,
            ["invalid_client: unknown", "catalog.auth"],
        ),
        ("uri: \"http://127.0.0.1:1\"".to_owned(), NextStep::Retry, ["does not answer", "127.0.0.1:1"]),
    ] {
        let error = open(&section, None).await.unwrap_err();
        assert_eq!(error.next_step(), step, "{error}");
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)) && !text.contains("hunter2"), "{section}: {text}");
    }
}

/// Answers loads, and commits as `commit` says by their number.
async fn committing(config: Value, commit: impl Fn(usize, &Seen) -> (u16, Value) + Send + Sync + 'static) -> Double {
    Double::start(move |seen, before| match (seen.method.as_str(), seen.path.as_str()) {
        ("GET", "/v1/config") => (200, config.clone()),
        ("GET", _) => (200, table()),
        _ if seen.path.ends_with("/tokens") => {
            let number = before.iter().filter(|seen| seen.path.ends_with("/tokens")).count() + 1;
            (200, json!({"access_token": format!("tok-{number}"), "expires_in": 3600}))
        }
        _ => commit(before.iter().filter(|seen| seen.is("POST", TABLE)).count() + 1, seen),
    })
    .await
}

const TABLE: &str = "/v1/namespaces/db/tables/t";

async fn swap(catalog: &dyn Catalog) -> Result<LoadedTable, SwapError> {
    let base = catalog.load(&ident()).await.unwrap();
    let requirements = vec![TableRequirement::RefSnapshotIdMatch { r#ref: "main".into(), snapshot_id: None }];
    catalog.swap(&base, updates(), requirements).await
}

#[tokio::test]
async fn a_commit_says_what_is_required_and_what_changes() {
    let double = committing(json!({}), |_, _| (200, table())).await;
    let catalog = open(&format!("uri: \"{}\"", double.url()), None).await.unwrap();
    swap(catalog.as_ref()).await.unwrap();
    let sent = double.seen().pop().unwrap();
    assert!(sent.is("POST", TABLE));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("idempotency-key"), None);
    let expected = json!({
        "identifier": {"namespace": ["db"], "name": "t"},
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": null}],
        "updates": [{"action": "set-properties", "updates": {"k": "1"}}],
    });
    assert_eq!(sent.json(), expected);
}

#[tokio::test]
async fn each_refusal_of_a_commit_has_its_meaning() {
    let word = |result: Result<LoadedTable, SwapError>| match result {
        Ok(_) => "done",
        Err(SwapError::Conflict { .. }) => "conflict",
        Err(SwapError::NotSent { .. }) => "not sent",
        Err(SwapError::Unknown { .. }) => "unknown",
        Err(SwapError::Denied { .. }) => "denied",
        Err(SwapError::Permanent { .. }) => "permanent",
    };
    for (status, expected, posts) in [
        (200, "done", 1),
        (409, "conflict", 1),
        (400, "permanent", 1),
        (404, "permanent", 1),
        (406, "permanent", 1),
        (422, "permanent", 1),
        // Once more with a new token, and then a person is waited for.
        (401, "denied", 2),
        (403, "denied", 2),
        (419, "denied", 2),
        // Of these the specification does not say that they are refusals.
        (307, "unknown", 1),
        (408, "unknown", 1),
        (425, "unknown", 1),
        (429, "unknown", 1),
        (499, "unknown", 1),
        (500, "unknown", 1),
        (502, "unknown", 1),
        (503, "unknown", 1),
        (504, "unknown", 1),
    ] {
        let double = committing(json!({}), move |_, _| match status {
            200 => (200, table()),
            status => (status, error(status, "SomeException")),
        })
        .await;
        let section = format!("uri: \"{}\", auth: oauth2, credential: \"a:b\"", double.url());
        let catalog = open(&section, None).await.unwrap();
        let result = swap(catalog.as_ref()).await;
        if let Err(error) = &result {
            let said = format!("HTTP {status}: SomeException: said the server with {status}");
            assert!(error.to_string().contains(&said), "{error}");
        }
        assert_eq!((word(result), double.count("POST", TABLE)), (expected, posts), "{status}");
    }
}

#[tokio::test]
async fn a_token_that_ran_out_is_replaced_once() {
    let double = committing(json!({}), |_, seen| match bearer(seen) {
        Some("Bearer tok-2") => (200, table()),
        _ => (419, error(419, "AuthenticationTimeoutException")),
    })
    .await;
    let section = format!("uri: \"{}\", auth: oauth2, credential: \"a:b\"", double.url());
    swap(open(&section, None).await.unwrap().as_ref()).await.unwrap();
    assert_eq!(double.count("POST", "/v1/oauth/tokens"), 2);
    // A token that nobody can replace is not sent twice.
    let section = format!("uri: \"{}\", auth: bearer, token: fixed", double.url());
    let error = swap(open(&section, None).await.unwrap().as_ref()).await.unwrap_err();
    assert!(matches!(error, SwapError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("after a change of a secret restart the handler"), "{error}");
    assert_eq!(double.count("POST", TABLE), 3);
}

/// The double behind a proxy that loses the answer to the first commit.
async fn losing(double: &Double) -> (Proxy, Arc<dyn Catalog>) {
    let proxy = Proxy::start(double.port).unwrap();
    let lost = std::sync::atomic::AtomicBool::new(false);
    proxy.trouble(Some(Box::new(move |_, method, path| {
        let first = method == "POST" && path == TABLE && !lost.swap(true, std::sync::atomic::Ordering::SeqCst);
        first.then_some(Trouble::LostAnswer)
    })));
    let catalog = open(&format!("uri: \"http://127.0.0.1:{}\"", proxy.port()), None).await.unwrap();
    (proxy, catalog)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_leaves_the_state_unknown_and_is_not_sent_again() {
    let double = committing(json!({}), |_, _| (200, table())).await;
    let (_proxy, catalog) = losing(&double).await;
    let error = swap(catalog.as_ref()).await.unwrap_err();
    assert!(matches!(error, SwapError::Unknown { .. }), "{error}");
    assert_eq!(double.count("POST", TABLE), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn under_a_key_a_commit_whose_answer_was_lost_is_sent_again() {
    let double = committing(json!({"idempotency-key-lifetime": "PT30M"}), |_, _| (200, table())).await;
    let (_proxy, catalog) = losing(&double).await;
    swap(catalog.as_ref()).await.unwrap();
    let posts: Vec<Seen> = double.seen().into_iter().filter(|seen| seen.is("POST", TABLE)).collect();
    let keys: Vec<&str> = posts.iter().map(|seen| seen.header("idempotency-key").unwrap()).collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
    assert_eq!(uuid::Uuid::parse_str(keys[0]).unwrap().get_version_num(), 7);
    // Another commit has another key.
    swap(catalog.as_ref()).await.unwrap();
    assert_ne!(double.seen().pop().unwrap().header("idempotency-key"), Some(keys[0]));
}

#[tokio::test]
async fn after_a_lost_answer_only_success_is_believed() {
    for second in [422, 403, 429, 409] {
        let double = committing(json!({"idempotency-key-lifetime": "PT30M"}), move |number, _| match number {
            1 => (502, error(502, "BadGateway")),
            _ => (second, error(second, "SomeException")),
        })
        .await;
        let error = swap(open(&format!("uri: \"{}\"", double.url()), None).await.unwrap().as_ref()).await.unwrap_err();
        assert!(matches!(error, SwapError::Unknown { .. }), "{second}: {error}");
        assert_eq!(double.count("POST", TABLE), 3, "{second}");
    }
}

#[tokio::test]
async fn a_success_that_cannot_be_read_is_unknown() {
    for answer in [json!("<html>"), json!({"metadata": {}}), {
        let mut t = table();
        t["metadata-location"] = Value::Null;
        t
    }] {
        let double = committing(json!({}), move |_, _| (200, answer.clone())).await;
        let error = swap(open(&format!("uri: \"{}\"", double.url()), None).await.unwrap().as_ref()).await.unwrap_err();
        assert!(matches!(error, SwapError::Unknown { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_catalog_that_takes_no_commits_is_not_sent_any() {
    let routes = json!({"endpoints": ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"]});
    let double = committing(routes, |_, _| (200, table())).await;
    let catalog = open(&format!("uri: \"{}\"", double.url()), None).await.unwrap();
    assert!(catalog.read_only().unwrap().contains("read-only"));
    let loaded = catalog.load(&ident()).await.unwrap();
    assert!(loaded.read_only.is_some());
    let error = firn_table::check_writable(&loaded, "main", 0).unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    let error = swap(catalog.as_ref()).await.unwrap_err();
    assert!(matches!(error, SwapError::Permanent { .. }), "{error}");
    assert_eq!(double.count("POST", TABLE), 0);
}

/// The library does not read the references of version 1, so whoever trusts it expires what a tag holds.
#[tokio::test]
async fn a_version_1_table_with_references_is_left_alone() {
    let with = |refs: Value| {
        let mut answer = table();
        let metadata = answer["metadata"].as_object_mut().unwrap();
        metadata.insert("format-version".into(), json!(1));
        metadata.insert("schema".into(), metadata["schemas"][0].clone());
        metadata.insert("partition-spec".into(), json!([]));
        metadata.insert("refs".into(), refs);
        answer
    };
    let tagged = json!({"release": {"snapshot-id": 7, "type": "tag"}});
    let kept = json!({"main": {"snapshot-id": 7, "type": "branch", "min-snapshots-to-keep": 5}});
    let plain = json!({"main": {"snapshot-id": 7, "type": "branch"}});
    for (refs, hidden) in [(tagged, Some("release")), (kept, Some("main")), (plain, None), (json!({}), None)] {
        let answer = with(refs);
        let double = Double::start(move |seen, _| match seen.path.as_str() {
            "/v1/config" => (200, json!({})),
            _ => (200, answer.clone()),
        })
        .await;
        let catalog = open(&format!("uri: \"{}\"", double.url()), None).await.unwrap();
        let loaded = catalog.load(&ident()).await.unwrap();
        let said = loaded.read_only.as_deref().unwrap_or_default();
        assert_eq!(hidden.is_some(), loaded.read_only.is_some(), "{said}");
        assert!(said.contains(&format!("`{}`", hidden.unwrap_or_default())) || hidden.is_none(), "{said}");
    }
}

#[tokio::test]
async fn namespaces_are_listed_level_by_level_and_all_of_them_or_none() {
    let double = Double::start(|seen, _| match seen.path.as_str() {
        "/v1/config" => (200, json!({})),
        "/v1/namespaces" => (200, json!({"namespaces": [["b"]], "next-page-token": "2"})),
        "/v1/namespaces?pageToken=2" => (200, json!({"namespaces": [["a"]], "next-page-token": null})),
        "/v1/namespaces?parent=a" => (200, json!({"namespaces": [["a", "x y"]]})),
        "/v1/namespaces?parent=a%1Fx%20y" => (200, json!({"namespaces": []})),
        // One that looks at no parent.
        "/v1/namespaces?parent=b" => (200, json!({"namespaces": [["a"], ["b"]]})),
        _ => (404, error(404, "NoSuchNamespaceException")),
    })
    .await;
    let open_at = |double: &Double| format!("uri: \"{}\", name: lake", double.url());
    let catalog = open(&open_at(&double), None).await.unwrap();
    let found: Vec<String> = catalog.list_namespaces().await.unwrap().iter().map(|levels| levels.join("/")).collect();
    assert_eq!(found, ["a", "a/x y", "b"]);

    for (status, answer) in [
        (403, error(403, "ForbiddenException")),
        (404, error(404, "NotFoundException")),
        (400, error(400, "BadRequestException")),
        (200, json!({"namespaces": [["a"]], "next-page-token": "2"})),
        (200, json!({"namespaces": "a"})),
    ] {
        let double = Double::start(move |seen, _| match seen.path.as_str() {
            "/v1/config" => (200, json!({})),
            "/v1/namespaces" if status == 400 => (200, json!({"namespaces": [["a"]]})),
            _ => (status, answer.clone()),
        })
        .await;
        let catalog = open(&open_at(&double), None).await.unwrap();
        let failed = catalog.list_namespaces().await.unwrap_err();
        assert_eq!(matches!(failed, TableError::CatalogDenied { .. }), status == 403, "{status}: {failed}");
        assert_eq!(matches!(failed, TableError::CatalogAbsent { .. }), status != 403, "{status}: {failed}");
    }
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let double = Double::start(|seen, _| match seen.path.as_str() {
        "/v1/config" => (200, json!({})),
        "/v1/namespaces/a%1Fb/tables" => {
            (200, json!({"identifiers": [{"namespace": ["a", "b"], "name": "z"}], "next-page-token": "p=2"}))
        }
        "/v1/namespaces/a%1Fb/tables?pageToken=p%3D2" => {
            (200, json!({"identifiers": [{"namespace": ["a", "b"], "name": "y"}], "next-page-token": null}))
        }
        _ => (404, error(404, "NoSuchNamespaceException")),
    })
    .await;
    let catalog = open(&format!("uri: \"{}\", name: lake", double.url()), None).await.unwrap();
    assert_eq!(catalog.list_tables(&["a".into(), "b".into()]).await.unwrap(), ["y", "z"]);
    let error = catalog.load(&TableIdent::new(["a", "b"], "x")).await.unwrap_err();
    assert_eq!(error.to_string(), "table `a.b.x` is not in catalog `lake`; namespace `a.b` has `a.b.y`, `a.b.z`");
}

/// The secret was changed while the handler runs: no message is to blame.
#[tokio::test]
async fn who_is_not_let_in_any_more_waits_for_a_person() {
    let changed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen_by = Arc::clone(&changed);
    let double =
        Double::start(move |seen, _| match (seen.path.as_str(), seen_by.load(std::sync::atomic::Ordering::SeqCst)) {
            ("/v1/config", _) => (200, json!({})),
            ("/v1/oauth/tokens", false) => (200, json!({"access_token": "tok", "expires_in": 0})),
            ("/v1/oauth/tokens", true) => (401, json!({"error": "invalid_client"})),
            (_, true) => (401, error(401, "NotAuthorizedException")),
            (_, false) => (200, table()),
        })
        .await;
    for login in ["auth: bearer, token: fixed", "auth: oauth2, credential: \"a:b\""] {
        changed.store(false, std::sync::atomic::Ordering::SeqCst);
        let catalog = open(&format!("uri: \"{}\", name: lake, {login}", double.url()), None).await.unwrap();
        let base = catalog.load(&ident()).await.unwrap();
        changed.store(true, std::sync::atomic::Ordering::SeqCst);
        let failed = catalog.load(&ident()).await.unwrap_err();
        assert_eq!(failed.next_step(), NextStep::Retry, "{failed}");
        let text = failed.to_string();
        assert!(text.starts_with("catalog `lake` does not let Firn in: ") && text.contains("catalog.auth"), "{text}");
        let failed = catalog.swap(&base, updates(), vec![]).await.unwrap_err();
        assert!(matches!(failed, SwapError::Denied { .. }), "{failed}");
        assert!(failed.to_string().contains("restart the handler"), "{failed}");
        changed.store(false, std::sync::atomic::Ordering::SeqCst);
        catalog.load(&ident()).await.unwrap();
    }
}

/// A proxy's page says nothing of the table.
#[tokio::test]
async fn what_a_proxy_says_of_a_table_is_a_reason_to_ask_later() {
    for (answer, step) in [
        ((200, json!("<html>maintenance</html>")), NextStep::Retry),
        ((499, json!("")), NextStep::Retry),
        ((200, json!({"metadata": {}})), NextStep::Skip),
        ((400, error(400, "BadRequestException")), NextStep::Skip),
    ] {
        let given = answer.clone();
        let double = Double::start(move |seen, _| match seen.path.as_str() {
            "/v1/config" => (200, json!({})),
            _ => given.clone(),
        })
        .await;
        let catalog = open(&format!("uri: \"{}\", name: lake", double.url()), None).await.unwrap();
        let failed = catalog.load(&ident()).await.unwrap_err();
        assert_eq!(failed.next_step(), step, "{answer:?}: {failed}");
    }
}

#[tokio::test]
async fn null_in_what_a_server_says_is_absent() {
    let double = Double::start(|seen, _| match seen.path.as_str() {
        "/v1/config" => (200, json!({"defaults": null, "overrides": {"prefix": null, "uri": null, "clients": 4}})),
        _ => {
            let mut answer = table();
            answer["config"] = json!({"token": null, "io-impl": "x", "retries": 3});
            answer["storage-credentials"] = json!([{"prefix": null, "config": null}]);
            (200, answer)
        }
    })
    .await;
    let catalog = open(&format!("uri: \"{}\"", double.url()), None).await.unwrap();
    catalog.load(&ident()).await.unwrap();
    assert_eq!(double.count("GET", TABLE), 1);
}

#[tokio::test]
async fn pages_that_go_in_a_circle_are_no_list() {
    let double = Double::start(|seen, _| match seen.path.as_str() {
        "/v1/config" => (200, json!({})),
        "/v1/namespaces/db/tables?pageToken=1" => (200, json!({"identifiers": [], "next-page-token": "2"})),
        _ => (200, json!({"identifiers": [], "next-page-token": "1"})),
    })
    .await;
    let catalog = open(&format!("uri: \"{}\", name: lake", double.url()), None).await.unwrap();
    let failed = catalog.list_tables(&["db".into()]).await.unwrap_err();
    assert!(failed.to_string().contains("the same page again"), "{failed}");
    assert_eq!(double.seen().len(), 4);
}
