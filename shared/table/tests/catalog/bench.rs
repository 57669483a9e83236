//! A catalog of each kind with tables in it.

use std::collections::HashMap;
use std::sync::Arc;

use firn_config::{Config, ProcessEnvironment};
use firn_model::BlobId;
use firn_storage::{AzureOptions, AzureStore, ConnectionString, LocalStore};
use firn_table::{Catalog, LoadedTable, TableIdent, TableStore};
use firn_test_support::{Azurite, IcebergRest, Postgres};
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
        let Register::Rest(server) = &self.register else { panic!("no server") };
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.post(format!("{}{path}", server.url())).header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
    }

    async fn run(&self, statement: &str) {
        match &self.register {
            Register::Sqlite(pool) => drop(sqlx::query(statement).execute(pool).await.unwrap()),
            Register::Postgres(database) => drop(Postgres::shared().run(database, statement)),
            Register::Rest(_) => panic!("takes no statements: {statement}"),
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

    /// Makes a view known, and a table of a namespace further in.
    pub async fn create_others(&self) {
        if matches!(self.register, Register::Rest(_)) {
            self.post("/v1/namespaces", json!({"namespace": ["db", "inner"]})).await;
            let schema = json!({"type": "struct", "schema-id": 0, "fields": []});
            return self.post("/v1/namespaces/db%1Finner/tables", json!({"name": "y", "schema": schema})).await;
        }
        self.run("INSERT INTO iceberg_tables VALUES ('lake', 'db', 'v', 'x', NULL, 'VIEW')").await;
        self.run("INSERT INTO iceberg_tables VALUES ('lake', 'db.inner', 'y', 'x', NULL, 'TABLE')").await;
    }
}
