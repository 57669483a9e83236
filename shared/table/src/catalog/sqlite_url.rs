//! SQLite URIs as SQLAlchemy reads them, because PyIceberg's configuration is often copied: after `sqlite://` comes an
//! empty host, a slash, and then the path, so three slashes give a relative path and four an absolute one.

use std::path::PathBuf;

use crate::error::TableError;

/// The database file that a catalog URI names, relative paths as they stand (they are relative to the working directory).
///
/// # Errors
/// [`TableError::CatalogUri`] for another database, an in-memory database, or two slashes.
pub(crate) fn database_path(uri: &str) -> Result<PathBuf, TableError> {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return Err(wrong(uri, "has no scheme: write sqlite:////absolute/path.db or sqlite:///relative/path.db"));
    };
    // SQLAlchemy lets the driver follow the database, as in `sqlite+pysqlite`.
    let database = scheme.split('+').next().unwrap_or(scheme);
    if database != "sqlite" {
        // The rest may hold a password.
        return Err(wrong(
            &format!("{scheme}:…"),
            "this version opens SQLite catalogs only (sqlite:////absolute/path.db)",
        ));
    }
    let Some(path) = rest.strip_prefix("///") else {
        return Err(wrong(uri, "needs three slashes before a relative path and four before an absolute one"));
    };
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    if path.is_empty() || path == ":memory:" {
        return Err(wrong(uri, "names no file: an in-memory catalog cannot be shared with writers"));
    }
    Ok(PathBuf::from(path))
}

fn wrong(uri: &str, detail: &str) -> TableError {
    TableError::CatalogUri { uri: uri.to_owned(), detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_slashes_are_relative_and_four_absolute() {
        for (uri, path) in [
            ("sqlite:///x/cat.db", "x/cat.db"),
            ("sqlite:////data/cat.db", "/data/cat.db"),
            ("sqlite+pysqlite:////data/c%20at#1.db?mode=ro", "/data/c%20at#1.db"),
        ] {
            assert_eq!(database_path(uri).unwrap(), PathBuf::from(path), "{uri}");
        }
    }

    #[test]
    fn what_names_no_sqlite_file_is_refused_without_showing_a_password() {
        for uri in ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://data/cat.db", "data/cat.db"] {
            assert!(matches!(database_path(uri), Err(TableError::CatalogUri { .. })), "{uri}");
        }
        let error = database_path("postgresql+psycopg2://me:secret@host/db").unwrap_err().to_string();
        assert!(!error.contains("secret") && error.contains("postgresql+psycopg2"), "{error}");
    }
}
