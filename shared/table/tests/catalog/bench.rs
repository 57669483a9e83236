//! A catalog of each kind with tables in it.

use std::collections::HashMap;
use std::sync::Arc;

use firn_config::{Config, ProcessEnvironment};
use firn_model::BlobId;
use firn_storage::{AzureOptions, AzureStore, ConnectionString, LocalStore};
use firn_table::{Catalog, LoadedTable, TableIdent, TableStore};
use firn_test_support::seaweed::{CREDENTIAL, WAREHOUSE};
use firn_test_support::{Azurite, IcebergRest, Postgres, SeaweedFs};
use iceberg::TableCreation;
use iceberg::spec::*;
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tempfile::TempDir;
use uuid::Uuid;

/// As PyIceberg and newer JDBC catalogs create it.
const CREATE: &str = "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, \
     table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), \
     iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))";

pub struct Bench {
    pub catalog: Arc<dyn Catalog>,
    store: TableStore,
    warehouse: String,
    register: Register,
    _folder: TempDir,
}

/// Who takes a statement that makes a table known.
enum Register {
    Sqlite(sqlx::SqlitePool),
    Postgres(String),
    Rest(IcebergRest),
    /// With the token that it gave.
    Seaweed(SeaweedFs, String),
}

pub fn ident(name: &str) -> TableIdent {
    TableIdent::new(["db"], name)
}

impl Bench {
    pub async fn sqlite() -> Bench {
        let folder = TempDir::new().unwrap();
        let database = folder.path().join("catalog.db");
        let options = SqliteConnectOptions::new().filename(&database).create_if_missing(true);
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
        sqlx::query(CREATE).execute(&pool).await.unwrap();
        let uri = format!("sqlite:///{}", database.display());
        Self::open(folder, &uri, Register::Sqlite(pool)).await
    }

    pub async fn postgres() -> Bench {
        let name = format!("c{}", Uuid::new_v4().simple());
        let server = Postgres::shared();
        let uri = server.database(&name);
        server.run(&name, CREATE);
        Self::open(TempDir::new().unwrap(), &uri, Register::Postgres(name)).await
    }

    /// Iceberg's own handlers, with files in Azurite.
    pub async fn rest() -> Bench {
        let container = format!("c{}", Uuid::new_v4().simple());
        let warehouse = format!("abfss://{container}@devstoreaccount1.dfs.core.windows.net/wh");
        let server = IcebergRest::start(Azurite::shared(), &warehouse);
        let connection = ConnectionString::parse(&Azurite::shared().connection_string()).unwrap();
        let azure = AzureStore::new(&connection, AzureOptions::default()).unwrap();
        azure.create_container(&BlobId::parse(&warehouse).unwrap()).await.unwrap();
        let section = format!("type: rest, uri: \"{}\", name: lake", server.url());
        let store = TableStore::new(Arc::new(azure));
        let bench = Self::over(TempDir::new().unwrap(), &section, warehouse, store, Register::Rest(server)).await;
        bench.post("/v1/namespaces", json!({"namespace": ["db"]})).await;
        bench
    }

    /// Another implementation of the interface, with a sign-in and a prefix; it makes tables itself.
    pub async fn seaweed() -> Bench {
        let server = SeaweedFs::start();
        let url = server.url();
        let section =
            format!("type: rest, uri: \"{url}\", warehouse: {WAREHOUSE}, auth: oauth2, credential: \"{CREDENTIAL}\"");
        let store = TableStore::new(Arc::new(LocalStore::new()));
        let register = Register::Seaweed(server, String::new());
        let mut bench = Self::over(TempDir::new().unwrap(), &section, String::new(), store, register).await;
        let (id, secret) = CREDENTIAL.split_once(':').unwrap();
        let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}&scope=catalog");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.post(format!("{url}/v1/oauth/tokens")).body(form);
        let answer = request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
        let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        if let Register::Seaweed(_, token) = &mut bench.register {
            *token = answer["access_token"].as_str().unwrap().to_owned();
        }
        // Its bucket of tables is made a moment after it answers.
        let begun = std::time::Instant::now();
        while let Err(reason) = bench.try_post("/v1/lake/namespaces", json!({"namespace": ["db"]})).await {
            assert!(begun.elapsed().as_secs() < 60, "{reason}");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        bench
    }

    async fn open(folder: TempDir, uri: &str, register: Register) -> Bench {
        let warehouse = format!("file://{}/wh", folder.path().display());
        let section = format!("type: sql, uri: \"{uri}\", name: lake, warehouse: \"{warehouse}\"");
        let store = TableStore::new(Arc::new(LocalStore::new()));
        Self::over(folder, &section, warehouse, store, register).await
    }

    async fn over(folder: TempDir, section: &str, warehouse: String, store: TableStore, register: Register) -> Bench {
        let text = format!("catalog: {{ {section} }}\ningestion: {{ datasets: [ {{ name: t, table: db.t }} ] }}\n");
        let config = Config::load(&text, &ProcessEnvironment).unwrap();
        let catalog = firn_table::catalog::open(&config.catalog, store.clone(), None).await.unwrap();
        Bench { catalog, store, warehouse, register, _folder: folder }
    }

    async fn post(&self, path: &str, body: Value) {
        self.try_post(path, body).await.unwrap_or_else(|reason| panic!("{reason}"));
    }

    async fn try_post(&self, path: &str, body: Value) -> Result<(), String> {
        let (url, token) = match &self.register {
            Register::Rest(server) => (server.url(), ""),
            Register::Seaweed(server, token) => (server.url(), token.as_str()),
            _ => panic!("no server"),
        };
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.post(format!("{url}{path}")).header("content-type", "application/json").bearer_auth(token);
        let answer = request.body(body.to_string()).send().await.unwrap();
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("{path}: {}", answer.text().await.unwrap())),
        }
    }

    async fn run(&self, statement: &str) {
        match &self.register {
            Register::Sqlite(pool) => drop(sqlx::query(statement).execute(pool).await.unwrap()),
            Register::Postgres(database) => drop(Postgres::shared().run(database, statement)),
            Register::Rest(_) | Register::Seaweed(..) => panic!("takes no statements: {statement}"),
        }
    }

    async fn register(&self, name: &str, first: &str) {
        match &self.register {
            Register::Rest(_) => {
                let body = json!({"name": name, "metadata-location": first});
                self.post("/v1/namespaces/db/register", body).await;
            }
            _ => {
                self.run(&format!(
                    "INSERT INTO iceberg_tables VALUES ('lake', 'db', '{name}', '{first}', NULL, 'TABLE')"
                ))
                .await
            }
        }
    }

    /// Makes the empty table `db.<name>`.
    pub async fn create(&self, name: &str) -> LoadedTable {
        if matches!(self.register, Register::Seaweed(..)) {
            let field = json!({"id": 1, "name": "a", "required": false, "type": "long"});
            let schema = json!({"type": "struct", "schema-id": 0, "fields": [field]});
            self.post("/v1/lake/namespaces/db/tables", json!({"name": name, "schema": schema})).await;
            return self.catalog.load(&ident(name)).await.unwrap();
        }
        let location = format!("{}/db/{name}", self.warehouse);
        let field = NestedField::optional(1, "a", Type::Primitive(PrimitiveType::Long));
        let creation = TableCreation::builder()
            .name(name.to_owned())
            .location(location.clone())
            .schema(Schema::builder().with_fields([Arc::new(field)]).build().unwrap())
            .properties(HashMap::new())
            .format_version(FormatVersion::V2)
            .build();
        let metadata = TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata;
        let first = format!("{location}/metadata/00000-{}.metadata.json", Uuid::new_v4());
        let json = serde_json::to_vec(&metadata).unwrap();
        self.store.file_io().new_output(&first).unwrap().write(json.into()).await.unwrap();
        self.register(name, &first).await;
        self.catalog.load(&ident(name)).await.unwrap()
    }

    /// Names of no table. SeaweedFS calls names that it would not give wrong, not absent.
    pub fn missing(&self) -> &'static [&'static str] {
        if matches!(self.register, Register::Seaweed(..)) { &["v", "c"] } else { &["v", "A", "a%b"] }
    }

    /// Makes a view known, and a table of a namespace further in.
    pub async fn create_others(&self) {
        if matches!(self.register, Register::Seaweed(..)) {
            // It has no views.
            self.post("/v1/lake/namespaces", json!({"namespace": ["db", "inner"]})).await;
            let schema = json!({"type": "struct", "schema-id": 0, "fields": []});
            return self.post("/v1/lake/namespaces/db%1Finner/tables", json!({"name": "y", "schema": schema})).await;
        }
        if matches!(self.register, Register::Rest(_)) {
            self.post("/v1/namespaces", json!({"namespace": ["db", "inner"]})).await;
            let schema = json!({"type": "struct", "schema-id": 0, "fields": []});
            return self.post("/v1/namespaces/db%1Finner/tables", json!({"name": "y", "schema": schema})).await;
        }
        self.run("INSERT INTO iceberg_tables VALUES ('lake', 'db', 'v', 'x', NULL, 'VIEW')").await;
        self.run("INSERT INTO iceberg_tables VALUES ('lake', 'db.inner', 'y', 'x', NULL, 'TABLE')").await;
    }
}
