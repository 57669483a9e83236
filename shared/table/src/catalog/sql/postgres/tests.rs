use std::collections::HashMap;
use std::sync::Mutex;

use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::OffsetDateTime;
use firn_config::{Catalog as Section, Config, ProcessEnvironment};
use firn_storage::BlobStore;
use firn_test_support::{Certificate, Postgres as Server};
use futures::TryStreamExt;
use iceberg::TableUpdate;
use sqlx::postgres::PgConnection;

use super::super::SqlCatalog;
use super::*;
use crate::catalog::Catalog;
use crate::error::{NextStep, SwapError};
use crate::io::TableStore;
use crate::loaded::LoadedTable;
use crate::testing::{CATALOG, LOCATION, Lake, SCHEMA_V1, Shape, ident};

/// A table whose row is in PostgreSQL; its files are in memory.
struct Bench {
    lake: Lake,
    database: &'static str,
    catalog: SqlCatalog,
    base: LoadedTable,
}

fn settings(url: &str) -> firn_config::Postgres {
    let text = format!(
        "catalog: {{ type: sql, uri: \"{url}\", name: lake, warehouse: \"file:///wh\" }}\n\
         ingestion: {{ datasets: [ {{ name: t, table: db.t }} ] }}\n"
    );
    let config = Config::load(&text, &ProcessEnvironment).unwrap();
    let Section::Sql(sql) = config.catalog else { panic!() };
    let firn_config::Database::Postgres(server) = sql.database else { panic!() };
    server
}

async fn with_limits(url: &str, lake: &Lake, limits: ServerLimits) -> SqlCatalog {
    let server = PostgresServer::open_with(&settings(url), CATALOG, None, limits).await.unwrap();
    let store = TableStore::new(Arc::new(lake.store.clone()));
    SqlCatalog { name: CATALOG.into(), database: Arc::new(server), store, swap_tries: 2 }
}

async fn bench(database: &'static str) -> Bench {
    let lake = Lake::new().await;
    let url = Server::shared().database(database);
    Server::shared().run(database, SCHEMA_V1);
    let made = lake.create("t", Shape::partitioned(&[])).await;
    let row = format!("('{CATALOG}', 'db', 't', '{}')", made.metadata_location);
    let columns = "catalog_name, table_namespace, table_name, metadata_location";
    Server::shared().run(database, &format!("INSERT INTO iceberg_tables ({columns}) VALUES {row}"));
    let catalog = with_limits(&url, &lake, ServerLimits { lock: "200ms", statement: "30s" }).await;
    let base = catalog.load(&ident("t")).await.unwrap();
    Bench { lake, database, catalog, base }
}

impl Bench {
    async fn set(&self, value: &str) -> Result<LoadedTable, SwapError> {
        let updates = HashMap::from([("k".to_owned(), value.to_owned())]);
        self.catalog.swap(&self.base, vec![TableUpdate::SetProperties { updates }], vec![]).await
    }

    fn run(&self, statements: &str) -> String {
        Server::shared().run(self.database, statements)
    }

    async fn metadata_files(&self) -> usize {
        let all = firn_model::BlobId::parse(LOCATION).unwrap();
        self.lake.store.list(&all).try_collect::<Vec<_>>().await.unwrap().len()
    }

    /// Another writer with an open transaction that holds the row.
    async fn holder(&self, statement: &str) -> PgConnection {
        let options = connect_options(&settings(&Server::shared().url(self.database)), SERVER_LIMITS);
        let mut holder = options.connect().await.unwrap();
        sqlx::query("BEGIN").execute(&mut holder).await.unwrap();
        sqlx::query(statement).execute(&mut holder).await.unwrap();
        holder
    }
}

#[tokio::test]
async fn a_row_that_is_held_for_too_long_is_a_conflict() {
    let bench = bench("held").await;
    let mut holder = bench.holder("UPDATE iceberg_tables SET previous_metadata_location = 'x'").await;
    let error = bench.set("1").await.unwrap_err();
    assert!(matches!(&error, SwapError::Conflict { detail, .. } if detail.contains("locked")), "{error}");
    assert_eq!(bench.metadata_files().await, 1);
    sqlx::query("ROLLBACK").execute(&mut holder).await.unwrap();
    assert_eq!(bench.set("2").await.unwrap().property("k"), Some("2"));
}

#[tokio::test]
async fn a_serialization_failure_is_a_conflict() {
    let bench = bench("serial").await;
    bench.run("ALTER DATABASE serial SET default_transaction_isolation = 'repeatable read'");
    let url = Server::shared().url("serial");
    // Waits for the lock, and so sees that the row was changed by a transaction that its own does not see.
    let patient = with_limits(&url, &bench.lake, ServerLimits { lock: "30s", statement: "30s" }).await;
    let bench = Bench { catalog: patient, ..bench };
    let mut holder = bench.holder("UPDATE iceberg_tables SET metadata_location = metadata_location || '.moved'").await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'serial' AND wait_event_type = 'Lock'";
    let release = async {
        while bench.run(waiting) == "0" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sqlx::query("COMMIT").execute(&mut holder).await.unwrap();
    };
    let (swapped, ()) = tokio::join!(bench.set("1"), release);
    assert!(matches!(swapped, Err(SwapError::Conflict { .. })), "{swapped:?}");
    assert_eq!(bench.metadata_files().await, 1, "known as not applied, so its file is gone");
}

#[tokio::test]
async fn a_session_that_ends_before_its_answer_leaves_the_state_unknown() {
    let bench = bench("ended").await;
    bench.run(
        "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); \
         PERFORM pg_sleep(5); RETURN NEW; END $$; \
         CREATE TRIGGER leaves AFTER UPDATE ON iceberg_tables FOR EACH ROW EXECUTE FUNCTION leave()",
    );
    let error = bench.set("1").await.unwrap_err();
    assert!(matches!(error, SwapError::Unknown { .. }), "{error}");
    assert_eq!(bench.metadata_files().await, 2, "the file may be needed");
    bench.run("DROP TRIGGER leaves ON iceberg_tables");
    assert_eq!(bench.set("2").await.unwrap().property("k"), Some("2"), "a new session takes the next");
}

#[tokio::test]
async fn what_the_server_forbids_is_permanent() {
    let bench = bench("frozen").await;
    bench.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'frozen by the owner'; END $$; \
         CREATE TRIGGER refuses BEFORE UPDATE ON iceberg_tables FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let error = bench.set("1").await.unwrap_err();
    assert!(matches!(error, SwapError::Permanent { .. }), "{error}");
    assert!(error.to_string().contains("frozen by the owner"), "{error}");
    assert_eq!(bench.metadata_files().await, 1);
}

/// A secret that was changed, a right that was taken away: a person mends it, and the commit goes then.
#[tokio::test]
async fn who_is_not_let_in_waits() {
    let bench = bench("shut").await;
    bench.run("CREATE ROLE writer LOGIN PASSWORD 'firn-test'; GRANT SELECT ON iceberg_tables TO writer");
    let url = Server::shared().url("shut").replace("postgres:", "writer:");
    let catalog = with_limits(&url, &bench.lake, SERVER_LIMITS).await;
    let as_writer = Bench { catalog, ..bench };
    let error = as_writer.set("1").await.unwrap_err();
    assert!(matches!(error, SwapError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("permission denied") && error.to_string().contains("GRANT"), "{error}");
    assert_eq!(as_writer.metadata_files().await, 1, "known as not applied, so its file is gone");
    as_writer.run("GRANT UPDATE ON iceberg_tables TO writer");
    assert_eq!(as_writer.set("2").await.unwrap().property("k"), Some("2"));

    // The next connection logs in with a password that is another one by now.
    as_writer.run(
        "ALTER ROLE writer PASSWORD 'changed'; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer'",
    );
    let steps =
        async || as_writer.catalog.load(&ident("t")).await.map_err(|error| (error.next_step(), error.to_string()));
    let mut loaded = steps().await;
    if loaded.as_ref().is_err_and(|(_, said)| !said.contains("password")) {
        // The end of the old session was only noticed by the question.
        loaded = steps().await;
    }
    let (step, said) = loaded.unwrap_err();
    assert_eq!(step, NextStep::Retry, "{said}");
    assert!(said.contains("does not let Firn in") && said.contains("PGPASSWORD"), "{said}");
    let error = as_writer.set("3").await.unwrap_err();
    assert!(matches!(error, SwapError::Denied { .. }), "{error}");
    as_writer.run("ALTER ROLE writer PASSWORD 'firn-test'");
    assert!(as_writer.catalog.load(&ident("t")).await.is_ok());
}

#[tokio::test]
async fn a_server_without_a_free_connection_is_asked_later() {
    let bench = bench("crowded").await;
    bench.run("CREATE ROLE crowd LOGIN PASSWORD 'firn-test' CONNECTION LIMIT 0; GRANT SELECT, UPDATE ON iceberg_tables TO crowd");
    let url = Server::shared().url("crowded").replace("postgres:", "crowd:");
    let error = PostgresServer::open(&settings(&url), CATALOG, None).await.unwrap_err();
    assert_eq!(error.next_step(), NextStep::Retry, "{error}");
    assert!(error.to_string().contains("too many connections"), "{error}");
}

#[tokio::test]
async fn a_process_keeps_few_connections() {
    let bench = bench("few").await;
    let table = ident("t");
    let loads = futures::future::join_all((0..40).map(|_| bench.catalog.load(&table))).await;
    assert!(loads.iter().all(Result::is_ok));
    let open: u32 = bench
        .run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'firn'  AND datname = 'few'")
        .parse()
        .unwrap();
    assert!((1..=CONNECTIONS).contains(&open), "{open}");
}

#[tokio::test]
async fn a_server_that_is_gone_has_got_nothing() {
    let server = Server::start();
    let lake = Lake::new().await;
    let url = server.database("gone");
    server.run("gone", SCHEMA_V1);
    let catalog = with_limits(&url, &lake, SERVER_LIMITS).await;
    let base = lake.create("t", Shape::partitioned(&[])).await;
    let nowhere = settings(&url);
    drop(server);
    let error = PostgresServer::open(&nowhere, CATALOG, None).await.unwrap_err();
    assert_eq!(error.next_step(), NextStep::Retry);
    assert!(error.to_string().contains(&format!("PostgreSQL at {}", nowhere.shown())), "{error}");
    // Asked at once, not after the 20 seconds that a connection is waited for.
    let swap = catalog.swap(&base, vec![], vec![]);
    let swapped = timeout(Duration::from_millis(500), swap).await;
    assert!(!matches!(swapped, Ok(Ok(_) | Err(SwapError::Unknown { .. }))), "{swapped:?}");
}

#[tokio::test]
async fn what_is_wrong_with_the_way_in_is_named() {
    let server = Server::shared();
    let url = server.database("wrong");
    let open = |url: String, step: NextStep| async move {
        let error = PostgresServer::open(&settings(&url), CATALOG, None).await.unwrap_err();
        assert_eq!(error.next_step(), step, "{error}");
        assert!(!error.to_string().contains("firn-test"), "{error}");
        error.to_string()
    };
    let no_table = open(url.clone(), NextStep::Absent).await;
    assert!(no_table.contains("is not an Iceberg SQL catalog"), "{no_table}");
    let password = open(url.replace(":firn-test@", ":hunter2@"), NextStep::Retry).await;
    assert!(
        password.contains("does not let Firn in")
            && password.contains("user `postgres`")
            && password.contains("PGPASSWORD"),
        "{password}"
    );
    assert!(!password.contains("hunter2"), "{password}");
    let database = open(server.url("nothing"), NextStep::Absent).await;
    assert!(database.contains("\"nothing\" does not exist"), "{database}");
    let tls = open(format!("{url}?sslmode=verify-full"), NextStep::Absent).await;
    assert!(tls.contains("sslrootcert") && tls.contains("verify-full"), "{tls}");

    server.run("wrong", SCHEMA_V1);
    server.run("wrong", "CREATE ROLE reader LOGIN PASSWORD 'firn-test'");
    let rights = open(url.replace("postgres:", "reader:"), NextStep::Retry).await;
    assert!(rights.contains("GRANT SELECT, UPDATE ON iceberg_tables TO \"reader\""), "{rights}");
    server.run("wrong", "INSERT INTO iceberg_tables VALUES ('other', 'db', 't', 'x', NULL, 'TABLE')");
    let name = open(url, NextStep::Absent).await;
    assert!(name.ends_with("its catalogs are `other`: correct catalog.name"), "{name}");
}

/// Gives tokens that are good for a moment only, each another.
#[derive(Debug, Default)]
struct Tokens(Mutex<Vec<String>>);

#[async_trait]
impl TokenCredential for Tokens {
    async fn get_token(&self, scopes: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        assert_eq!(scopes, ["https://ossrdbms-aad.database.windows.net/.default"]);
        let mut given = self.0.lock().unwrap();
        let token = format!("token-{}", given.len() + 1);
        given.push(token.clone());
        Ok(AccessToken::new(token, OffsetDateTime::now_utc()))
    }
}

#[tokio::test]
async fn each_connection_logs_in_with_a_token_of_its_own() {
    let certificate = Certificate::of_this_machine();
    let server = Server::start_with_tls(&certificate);
    server.database("tokens");
    server.run("tokens", SCHEMA_V1);
    server.run("tokens", "CREATE ROLE firn LOGIN PASSWORD 'token-1'; GRANT SELECT, UPDATE ON iceberg_tables TO firn");
    let credential = Arc::new(Tokens::default());
    let identity = TokenSource::new("credential: managedIdentity".into(), "assign one", credential.clone());
    let place = format!("127.0.0.1:{}/tokens", server.port());
    let trusted = certificate.certificate.display().to_string();
    let settings = firn_config::Postgres {
        token_scope: Some("https://ossrdbms-aad.database.windows.net/.default".into()),
        ..settings(&format!("postgresql://firn@{place}?sslmode=verify-full&sslrootcert={trusted}"))
    };
    let opened = PostgresServer::open(&settings, CATALOG, Some(&Arc::new(identity))).await.unwrap();
    let table = ident("t");
    // The first token has done its work and would be refused now.
    server.run("tokens", "ALTER ROLE firn PASSWORD 'token-2'");
    assert_eq!(opened.row(CATALOG, &table).await.unwrap(), None);
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'firn'";
    server.run("tokens", "ALTER ROLE firn PASSWORD 'token-3'");
    assert_eq!(server.run("tokens", ended), "1");
    // Whether the old session's end is noticed before or after the question, the session after it is a new one.
    if opened.row(CATALOG, &table).await.is_err() {
        server.run("tokens", "ALTER ROLE firn PASSWORD 'token-4'");
        assert_eq!(opened.row(CATALOG, &table).await.unwrap(), None);
    }
    assert!(credential.0.lock().unwrap().len() >= 3, "{credential:?}");
    let protected = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'firn'";
    assert_eq!(server.run("tokens", protected), "t");
    let none = PostgresServer::open(&settings, CATALOG, None).await.unwrap_err();
    assert!(none.to_string().contains("identity"), "{none}");
}
