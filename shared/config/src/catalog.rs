//! Section `catalog`: where the tables are registered.

use std::path::PathBuf;

use crate::secret::Secret;
use crate::section::{Section, Unknown};

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
    /// The URL may hold a password.
    Postgres(Secret),
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
    /// `entra`
    Entra,
}

impl Catalog {
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

const KEYS: [&str; 11] = [
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
pub(crate) fn read(section: &Section<'_>, has_storage: bool) -> Option<Catalog> {
    section.require("type", "write sql or rest");
    let kind = section.word("type", &[("sql", Kind::Sql), ("rest", Kind::Rest)]);
    let catalog = match kind {
        Some(Kind::Sql) => read_sql(section, has_storage).map(Catalog::Sql),
        Some(Kind::Rest) => read_rest(section).map(Catalog::Rest),
        None => None,
    };
    section.finish(&KEYS, Unknown::Refuse);
    catalog
}

fn read_sql(section: &Section<'_>, has_storage: bool) -> Option<SqlCatalog> {
    section.require("uri", "write for example sqlite:////data/catalog.db");
    section.require("name", "write the catalog's name as the writers of the tables use it");
    let database = section
        .secret("uri")
        .and_then(|uri| database(uri.expose()).map_err(|problem| section.fault("uri", problem)).ok());
    let name = section.text("name");
    let warehouse = section.parsed("warehouse", |text| warehouse(text, has_storage));
    if !has_storage {
        let remedy = "without a storage section it says where Firn keeps its state, for example file:///data/warehouse";
        section.require("warehouse", remedy);
    }
    Some(SqlCatalog { name: name?, database: database?, warehouse })
}

fn read_rest(section: &Section<'_>) -> Option<RestCatalog> {
    section.require("uri", "write the address of the REST catalog");
    let auth = section
        .word(
            "auth",
            &[
                ("none", RestAuth::None),
                ("bearer", RestAuth::Bearer),
                ("oauth2", RestAuth::Oauth2),
                ("entra", RestAuth::Entra),
            ],
        )
        .unwrap_or(RestAuth::None);
    match auth {
        RestAuth::Bearer => section.require("token", "auth: bearer needs it"),
        RestAuth::Oauth2 => section.require("credential", "auth: oauth2 needs it"),
        RestAuth::None | RestAuth::Entra => {}
    }
    let http = |text: &str| match text.starts_with("https://") || text.starts_with("http://") {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err("is not an address; write for example https://catalog.example.com".to_owned()),
    };
    let uri = section.parsed("uri", http);
    let rest = RestCatalog {
        uri: uri.clone().unwrap_or_default(),
        name: section.text("name"),
        warehouse: section.text("warehouse"),
        auth,
        token: section.secret("token"),
        credential: section.secret("credential"),
        oauth2_server_uri: section.parsed("oauth2ServerUri", http),
        scope: section.text("scope"),
        headers: section.secrets("headers"),
        vended_credentials: section.flag("vendedCredentials", true),
    };
    uri.map(|_| rest)
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
        Some("postgresql" | "postgres") if !rest.is_empty() => Ok(Database::Postgres(Secret::new(uri))),
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
        let postgres = "postgresql+psycopg2://user:hunter2@host/db";
        assert_eq!(database(postgres), Ok(Database::Postgres(Secret::new(postgres))));
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
