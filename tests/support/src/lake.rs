//! A lake for a test: a catalog, a warehouse, and other parties' clients that write and read its tables.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::python::Python;

/// A catalog and a warehouse, seen through PyIceberg and DuckDB.
#[derive(Debug, Clone)]
pub struct Lake {
    python: Python,
    catalog_uri: String,
    warehouse: String,
    connection_string: Option<String>,
}

/// Row count and order-independent digest of a table's rows. Equal multisets of rows have equal digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Rows.
    pub rows: u64,
    /// Two 64-bit sums over the rows' hashes, as hexadecimal text.
    pub digest: String,
}

impl Lake {
    /// A lake in a local folder: `catalog.db` and `warehouse/` in it.
    pub fn local(folder: &Path) -> Lake {
        let warehouse = format!("file://{}", folder.join("warehouse").display());
        Lake { python: Python::tools(), catalog_uri: sqlite_in(folder), warehouse, connection_string: None }
    }

    /// A lake in Azurite: the catalog in `folder`, the warehouse at `abfss://…` reached by `connection_string`.
    pub fn azurite(folder: &Path, warehouse: &str, connection_string: &str) -> Lake {
        Lake {
            python: Python::tools(),
            catalog_uri: sqlite_in(folder),
            warehouse: warehouse.to_owned(),
            connection_string: Some(connection_string.to_owned()),
        }
    }

    /// The same lake with another catalog: `postgresql://…` with the tables of that database, `http://…` of a REST catalog.
    #[must_use]
    pub fn with_catalog(mut self, uri: &str) -> Lake {
        self.catalog_uri = uri.to_owned();
        self
    }

    /// The name under which the catalog's rows are stored (`catalog.name` in a configuration).
    pub fn catalog_name(&self) -> &'static str {
        "lake"
    }

    /// The catalog's address, as `catalog.uri` in a configuration takes it.
    pub fn catalog_uri(&self) -> String {
        self.catalog_uri.clone()
    }

    /// The warehouse's address, as `catalog.warehouse` in a configuration takes it.
    pub fn warehouse(&self) -> &str {
        &self.warehouse
    }

    /// Creates a table and appends to it; `options` are those of `make_table.py`. Returns what the script says: location,
    /// metadata_location, snapshot_id, snapshots, rows, files, columns.
    ///
    /// # Panics
    /// When the script fails.
    pub fn make_table(&self, table: &str, options: &[&str]) -> Value {
        self.run("make_table.py", table, options)
    }

    /// The rows as PyIceberg reads them; `options` are those of `digest.py` (`--snapshot`, `--dedup`, …).
    ///
    /// # Panics
    /// When the script fails.
    pub fn digest(&self, table: &str, options: &[&str]) -> Digest {
        digest_of(&self.run("digest.py", table, options))
    }

    /// The rows as DuckDB reads them; `options` are those of `duck_digest.py`.
    ///
    /// # Panics
    /// When the script fails.
    pub fn duck_digest(&self, table: &str, options: &[&str]) -> Digest {
        digest_of(&self.run("duck_digest.py", table, options))
    }

    /// What the metadata says; see `inspect_table.py`.
    ///
    /// # Panics
    /// When the script fails.
    pub fn inspect(&self, table: &str, options: &[&str]) -> Value {
        self.run("inspect_table.py", table, options)
    }

    /// What readers see beside the rows, of a lake in a local folder; see `readers_view.py`.
    ///
    /// # Panics
    /// When the script fails.
    pub fn readers_view(&self, table: &str) -> Value {
        self.run("readers_view.py", table, &[])
    }

    /// The statistics of the table as other programs read them; see `read_statistics.py`.
    ///
    /// # Panics
    /// When the script fails, which it does where metadata and file disagree.
    pub fn statistics(&self, table: &str) -> Value {
        self.run("read_statistics.py", table, &[])["statistics"].take()
    }

    /// The rows of a table of `alike_partitions.py` by partition, after so many appends more; 0 only reads.
    ///
    /// # Panics
    /// When the script fails, which it does where a row is in a partition that is not its own.
    pub fn alike_partitions(&self, table: &str, appends: u32) -> Value {
        self.run("alike_partitions.py", table, &["--write", &appends.to_string()])["partitions"].take()
    }

    /// Deletes rows by delete files; `options` are those of `delete_rows.py`.
    ///
    /// # Panics
    /// When the script fails.
    pub fn delete_rows(&self, table: &str, options: &[&str]) {
        self.run("delete_rows.py", table, options);
    }

    /// Asserts the invariants that need no comparison (I2 to I5 and I9 of design section 8).
    ///
    /// # Panics
    /// With every violation.
    pub fn check_invariants(&self, table: &str) {
        self.check_invariants_with(table, &[]);
    }

    /// As [`Lake::check_invariants`], with options of `check_invariants.py`: `--dedup KEY` also checks that files which claim
    /// unique keys have them. Returns what was checked (snapshots, files, claims, paths), for tests that count it.
    ///
    /// # Panics
    /// With every violation.
    pub fn check_invariants_with(&self, table: &str, options: &[&str]) -> Value {
        let mut found = self.run("check_invariants.py", table, options);
        assert_eq!(found["violations"], Value::Array(Vec::new()), "{table}: {found:#}");
        found["checked"].take()
    }

    /// Every file of the warehouse (in Azurite: of the container), whether a table needs it or not.
    ///
    /// # Panics
    /// When the script fails.
    #[allow(clippy::expect_used, reason = "the script prints exactly this")]
    pub fn files(&self, table: &str) -> BTreeMap<String, u64> {
        serde_json::from_value(self.run("list_files.py", table, &[])["files"].take()).expect("names and sizes")
    }

    /// A command of a script on a table, for tests that need the process itself.
    pub fn command(&self, script: &str, table: &str, options: &[&str]) -> std::process::Command {
        let mut command = self.python.command(script);
        command.args(self.table_arguments(table)).args(options);
        command
    }

    fn run(&self, script: &str, table: &str, options: &[&str]) -> Value {
        let mut args = self.table_arguments(table);
        args.extend(options.iter().map(|option| (*option).to_owned()));
        self.python.run(script, &args)
    }

    fn table_arguments(&self, table: &str) -> Vec<String> {
        let mut args = vec![
            "--catalog".to_owned(),
            self.catalog_uri(),
            "--catalog-name".to_owned(),
            self.catalog_name().to_owned(),
            "--warehouse".to_owned(),
            self.warehouse.clone(),
            "--table".to_owned(),
            table.to_owned(),
        ];
        if let Some(text) = &self.connection_string {
            args.extend(["--connection-string".to_owned(), text.clone()]);
        }
        args
    }
}

fn sqlite_in(folder: &Path) -> String {
    format!("sqlite:///{}", folder.join("catalog.db").display())
}

#[allow(clippy::expect_used, reason = "both scripts print exactly these fields")]
fn digest_of(answer: &Value) -> Digest {
    Digest {
        rows: answer["rows"].as_u64().expect("rows"),
        digest: answer["digest"].as_str().expect("digest").to_owned(),
    }
}
