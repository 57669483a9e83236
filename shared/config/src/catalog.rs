//! Section `catalog`: where the tables are registered.

use std::path::PathBuf;

use crate::postgres::{self, Postgres};
use crate::secret::Secret;
use crate::section::{Section, Unknown};
use crate::storage::{Credential, Storage, authority, is_loopback};

/// The catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Catalog {
    /// `type: sql`: the schema that PyIceberg and Iceberg's JDBC catalog share.
    Sql(SqlCatalog),
    /// `type: rest`.
    Rest(RestCatalog),
}

/// A catalog in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlCatalog {
    /// `name`: the value of column `catalog_name`.
    pub name: String,
    /// `uri`.
    pub database: Database,
    /// `warehouse`: URL under which the tables lie.
    pub warehouse: Option<String>,
}

/// Which database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A file. Relative paths start at the working directory.
    Sqlite(PathBuf),
    /// A server, which many share.
    Postgres(Postgres),
}

/// A catalog behind Iceberg's REST interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestCatalog {
    /// `uri`.
    pub uri: String,
    /// `name`, for messages.
    pub name: Option<String>,
    /// `warehouse`: whatever the server calls it.
    pub warehouse: Option<String>,
    /// `auth` (none).
    pub auth: RestAuth,
    /// `token`, for bearer.
    pub token: Option<Secret>,
    /// `credential` as `id:secret`, for oauth2.
    pub credential: Option<Secret>,
    /// `oauth2ServerUri`.
    pub oauth2_server_uri: Option<String>,
    /// `scope`.
    pub scope: Option<String>,
    /// `headers`, added to every request; their values may be secrets.
    pub headers: Vec<(String, Secret)>,
    /// `vendedCredentials` (true): use the storage credentials that the server hands out.
    pub vended_credentials: bool,
}

/// How to log in to a REST catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestAuth {
    /// `none`
    None,
    /// `bearer`
    Bearer,
    /// `oauth2`
    Oauth2,
    /// `entra`: a token of the identity of the `storage` section.
    Entra,
}

const AUTH: [(&str, RestAuth); 4] =
    [("none", RestAuth::None), ("bearer", RestAuth::Bearer), ("oauth2", RestAuth::Oauth2), ("entra", RestAuth::Entra)];

/// What a token for Azure Database for PostgreSQL is asked for, in the public cloud.
const POSTGRES_SCOPE: &str = "https://ossrdbms-aad.database.windows.net/.default";

impl RestCatalog {
    /// What the catalog is called, for messages.
    pub fn called(&self) -> &str {
        self.name.as_deref().or(self.warehouse.as_deref()).unwrap_or(&self.uri)
    }
}

impl Catalog {
    /// What the catalog is called, for messages.
    pub fn name(&self) -> &str {
        match self {
            Catalog::Sql(catalog) => &catalog.name,
            Catalog::Rest(catalog) => catalog.called(),
        }
    }

    /// The warehouse as it was written.
    pub fn warehouse(&self) -> Option<&str> {
        match self {
            Catalog::Sql(catalog) => catalog.warehouse.as_deref(),
            Catalog::Rest(catalog) => catalog.warehouse.as_deref(),
        }
    }

    /// The folder of a `file:` warehouse. The text after the scheme is the path as it stands, never percent-decoded.
    pub fn warehouse_folder(&self) -> Option<PathBuf> {
        self.warehouse().and_then(local_folder)
    }

    /// Whether the catalog is a SQLite file.
    pub fn is_sqlite(&self) -> bool {
        matches!(self, Catalog::Sql(SqlCatalog { database: Database::Sqlite(_), .. }))
    }
}

pub(crate) const KEYS: [&str; 11] = [
    "type",
    "uri",
    "name",
    "warehouse",
    "auth",
    "token",
    "credential",
    "oauth2ServerUri",
    "scope",
    "headers",
    "vendedCredentials",
];

#[derive(Clone, Copy)]
enum Kind {
    Sql,
    Rest,
}

/// Reads the section; None after a problem that leaves nothing to work with.
pub(crate) fn read(section: &Section<'_>, storage: Option<&Storage>) -> Option<Catalog> {
    section.require("type", "write sql or rest");
    let kind = section.word("type", &[("sql", Kind::Sql), ("rest", Kind::Rest)]);
    let catalog = match kind {
        Some(Kind::Sql) => read_sql(section, storage).map(Catalog::Sql),
        Some(Kind::Rest) => read_rest(section, storage).map(Catalog::Rest),
        None => None,
    };
    section.finish(&KEYS, Unknown::Refuse);
    catalog
}

fn read_sql(section: &Section<'_>, storage: Option<&Storage>) -> Option<SqlCatalog> {
    section.require("uri", "write for example sqlite:////data/catalog.db");
    section.require("name", "write the catalog's name as the writers of the tables use it");
    let database = section
        .secret("uri")
        .and_then(|uri| database(uri.expose()).map_err(|problem| section.fault("uri", problem)).ok())
        .map(|database| log_in(section, storage, database));
    let name = section.text("name");
    let warehouse = section.parsed("warehouse", |text| warehouse(text, storage.is_some()));
    if storage.is_none() {
        let remedy = "without a storage section it says where Firn keeps its state, for example file:///data/warehouse";
        section.require("warehouse", remedy);
    }
    Some(SqlCatalog { name: name?, database: database?, warehouse })
}

/// How one logs in to a database: with what its URL has, or with tokens of the identity.
fn log_in(section: &Section<'_>, storage: Option<&Storage>, database: Database) -> Database {
    let auth = section.word("auth", &AUTH).unwrap_or(RestAuth::None);
    match (database, auth) {
        (database, RestAuth::None) => database,
        (Database::Postgres(mut postgres), RestAuth::Entra) => {
            if postgres.password.is_some() {
                section.fault(
                    "uri",
                    "has a password, and with auth: entra the password is a token; remove one of the two",
                );
            }
            if postgres.ssl_mode < postgres::SslMode::VerifyCa {
                let message =
                    "has an sslmode that lets anybody answer, and the password is a token; write sslmode=verify-full";
                section.fault("uri", message);
            }
            require_identity(section, storage);
            postgres.token_scope = Some(section.text("scope").unwrap_or_else(|| POSTGRES_SCOPE.to_owned()));
            Database::Postgres(postgres)
        }
        (Database::Sqlite(path), RestAuth::Entra) => {
            section.fault("auth", "is for a server, and a SQLite file has none; remove it");
            Database::Sqlite(path)
        }
        (database, RestAuth::Bearer | RestAuth::Oauth2) => {
            section.fault("auth", "is for REST catalogs; a database takes a password in uri, or auth: entra");
            database
        }
    }
}

/// Tokens are asked for with the identity of the `storage` section.
fn require_identity(section: &Section<'_>, storage: Option<&Storage>) {
    if storage.is_none_or(|storage| storage.credential == Credential::ConnectionString) {
        let message = "entra asks for tokens with the identity of the storage section, which has none; write storage.credential: \
                       managedIdentity, workloadIdentity, clientSecret or developerTools";
        section.fault("auth", message);
    }
}

fn read_rest(section: &Section<'_>, storage: Option<&Storage>) -> Option<RestCatalog> {
    section.require("uri", "write the address of the REST catalog");
    let auth = section.word("auth", &AUTH).unwrap_or(RestAuth::None);
    match auth {
        RestAuth::Bearer => section.require("token", "auth: bearer needs it"),
        RestAuth::Oauth2 => section.require("credential", "auth: oauth2 needs it"),
        RestAuth::Entra => {
            // A token for storage in the hands of any server would be a key to the data: nobody gets one by default.
            section.require(
                "scope",
                "auth: entra needs it: the application that the catalog checks tokens for, as api://…/.default",
            );
            require_identity(section, storage);
        }
        RestAuth::None => {}
    }
    let http = |text: &str| match text.starts_with("https://") || text.starts_with("http://") {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err("is not an address; write for example https://catalog.example.com".to_owned()),
    };
    let headers = section.secrets("headers");
    let in_clear = |text: &str| text.starts_with("http://") && !is_loopback(text);
    let what = match auth {
        RestAuth::None if headers.is_empty() => None,
        RestAuth::None => Some("the values of headers may be secrets, which are"),
        _ => Some("a token is"),
    };
    let tls = |text: &str| match what {
        Some(what) if in_clear(text) => Err(format!(
            "has no TLS, and {what} only sent over TLS, but for this machine; write https://, or the address of a proxy on 127.0.0.1"
        )),
        _ => http(text),
    };
    let address = |key: &str| {
        let read = section.parsed(key, |text| if has_login(text) { Ok(None) } else { tls(text).map(Some) });
        if read == Some(None) {
            // Not quoted: it holds the password, as every message with the address would.
            let remedy = "holds a login, which would stand in messages and logs; write headers: { Authorization: \"Basic ${NAME}\" } instead";
            section.fault(key, remedy);
        }
        read.flatten()
    };
    let uri = address("uri");
    let rest = RestCatalog {
        uri: uri.clone().unwrap_or_default(),
        name: section.text("name"),
        warehouse: section.text("warehouse"),
        auth,
        token: section.secret("token"),
        credential: section.secret("credential"),
        oauth2_server_uri: address("oauth2ServerUri"),
        scope: section.text("scope"),
        headers,
        vended_credentials: section.flag("vendedCredentials", true),
    };
    uri.map(|_| rest)
}

/// Whether an address holds a name or password: `http://name:password@host`.
fn has_login(uri: &str) -> bool {
    authority(uri).contains('@')
}

/// Reads a database URL as SQLAlchemy does: `sqlite:///x` is relative, `sqlite:////x` absolute. Never quotes more than
/// the scheme: the rest may hold a password.
fn database(uri: &str) -> Result<Database, String> {
    let examples = "write for example sqlite:////data/catalog.db or postgresql://user:${PASSWORD}@host/database";
    let (scheme, rest) = uri.split_once("://").ok_or_else(|| format!("is not the URL of a database; {examples}"))?;
    // SQLAlchemy's `dialect+driver`: the driver says how Python connects, not where to.
    match scheme.split('+').next() {
        Some("sqlite") => {
            let path = rest.strip_prefix('/').filter(|path| !path.is_empty() && *path != "/");
            match path {
                None => Err("names no file; write sqlite:///relative/path or sqlite:////absolute/path".into()),
                Some(path) if path.starts_with(":memory:") => {
                    Err("is a database in memory, which nobody else can see; write the path of a file".into())
                }
                Some(path) if path.contains('?') => {
                    Err("has options after `?`; write only the path of the file".into())
                }
                Some(path) => Ok(Database::Sqlite(PathBuf::from(path))),
            }
        }
        Some("postgresql" | "postgres") => postgres::parse(rest).map(Database::Postgres),
        _ => Err(format!("has the scheme {scheme}, which is not known; {examples}")),
    }
}

fn warehouse(text: &str, has_storage: bool) -> Result<String, String> {
    const AZURE: [&str; 7] = ["abfss://", "abfs://", "wasbs://", "wasb://", "az://", "https://", "http://"];
    if local_folder(text).is_some() {
        return Ok(text.to_owned());
    }
    if text.starts_with("file:") {
        return Err("names no absolute folder; write for example file:///data/warehouse".into());
    }
    let scheme = text.split_once("://").map(|(scheme, _)| format!("{}://", scheme.to_ascii_lowercase()));
    if !scheme.is_some_and(|scheme| AZURE.contains(&scheme.as_str())) {
        return Err("is not a place that Firn reads; write file:///folder or \
                    abfss://container@account.dfs.core.windows.net/folder"
            .into());
    }
    if !has_storage {
        return Err("lies in Azure and there is no storage section; add one with account and credential".into());
    }
    Ok(text.to_owned())
}

/// `file:///x`, `file:/x` and `file://localhost/x` name the folder `/x`.
fn local_folder(text: &str) -> Option<PathBuf> {
    let rest = text.strip_prefix("file:")?;
    let path = match rest.strip_prefix("//") {
        Some(after) => after.strip_prefix("localhost").unwrap_or(after),
        None => rest,
    };
    path.starts_with('/').then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_urls_are_read_as_sqlalchemy_does() {
        let sqlite = |path: &str| Ok(Database::Sqlite(path.into()));
        assert_eq!(database("sqlite:///catalog.db"), sqlite("catalog.db"));
        assert_eq!(database("sqlite:///../a b%20c.db"), sqlite("../a b%20c.db"));
        assert_eq!(database("sqlite:////data/catalog.db"), sqlite("/data/catalog.db"));
        assert_eq!(database("sqlite+pysqlite:////data/catalog.db"), sqlite("/data/catalog.db"));
        let Ok(Database::Postgres(postgres)) = database("postgresql+psycopg2://user:hunter2@host/db") else { panic!() };
        assert_eq!((postgres.user.as_str(), postgres.shown()), ("user", "host:5432/db".into()));
        for wrong in [
            "sqlite://",
            "sqlite:///",
            "sqlite:////",
            "sqlite:///:memory:",
            "sqlite:///a?mode=ro",
            "hunter2",
            "mysql://u:hunter2@h/d",
            "postgresql://",
        ] {
            let problem = database(wrong).unwrap_err();
            assert!(!problem.contains("hunter2"), "{wrong}: {problem}");
        }
    }

    #[test]
    fn folders_are_taken_as_they_stand() {
        for text in ["file:///data/a%20b", "file:/data/a%20b", "file://localhost/data/a%20b"] {
            assert_eq!(local_folder(text), Some("/data/a%20b".into()), "{text}");
        }
        for text in ["file://data/x", "file:data", "/data", "abfss://a@b/c"] {
            assert_eq!(local_folder(text), None, "{text}");
        }
    }

    #[test]
    fn a_warehouse_in_azure_needs_a_storage_section() {
        let azure = "abfss://lake@devstoreaccount1.dfs.core.windows.net/wh";
        assert!(warehouse(azure, true).is_ok());
        assert!(warehouse(azure, false).unwrap_err().contains("storage section"));
        assert!(warehouse("file:///data", false).is_ok());
        for wrong in ["s3://bucket/x", "data", "file://data"] {
            assert!(warehouse(wrong, true).is_err(), "{wrong}");
        }
    }
}
