//! Spark with Iceberg, as another writer and reader of a table.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use firn_local_host::IcebergRest;
use firn_test_support::azurite::{ACCOUNT, ACCOUNT_KEY};
use firn_test_support::{Azurite, Lake, Python};
use serde_json::Value;
use tempfile::TempDir;

use crate::scene::TABLE;

/// The driver by which Java programs reach PostgreSQL.
const POSTGRES_DRIVER: &str = "/usr/share/java/postgresql.jar";

/// A Spark that runs `tests/py/spark.py`. Dropping it ends the process.
#[derive(Debug)]
pub struct Spark {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl Spark {
    /// Starts it beside a catalog: that of a REST server by its URL, or Iceberg's JDBC catalog in a PostgreSQL database by the URL that
    /// PyIceberg takes. Installed on first use.
    ///
    /// # Panics
    /// When it cannot be installed or started: a test without its tools must fail.
    #[must_use]
    #[allow(clippy::expect_used, clippy::panic, reason = "a test without its tools must fail")]
    pub fn start(azurite: &Azurite, lake: &Lake) -> Spark {
        let iceberg = IcebergRest::class_path().unwrap_or_else(|error| panic!("Spark: {error}"));
        let by_jdbc = lake.catalog_uri().starts_with("postgresql");
        assert!(
            !by_jdbc || Path::new(POSTGRES_DRIVER).is_file(),
            "there is no {POSTGRES_DRIVER}: install the JDBC driver of PostgreSQL (Debian: libpostgresql-jdbc-java)"
        );
        let class_path = if by_jdbc { format!("{iceberg}:{POSTGRES_DRIVER}") } else { iceberg };
        let folder = TempDir::new().expect("a temporary folder");
        let mut command = Python::spark().command("spark.py");
        command.args([
            "--uri",
            &lake.catalog_uri(),
            "--warehouse",
            lake.warehouse(),
            "--azurite",
            &azurite.blob_endpoint(),
            "--table",
            TABLE,
        ]);
        command.args(["--account", ACCOUNT, "--key", ACCOUNT_KEY, "--class-path", &class_path, "--folder"]);
        command.arg(folder.path()).current_dir(folder.path());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Spark starts");
        let orders = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        Spark { process, orders, answers, _folder: folder }
    }

    /// One order and its answer.
    ///
    /// # Panics
    /// When Spark could not do it; what it said is on standard error.
    #[allow(clippy::expect_used, clippy::panic, reason = "a test whose tool fails must fail")]
    pub fn ask(&mut self, order: &Value) -> Value {
        writeln!(self.orders, "{order}").expect("Spark listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("Spark answers");
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("Spark, asked {order}: {error}: {answer:?}"))
    }
}

impl Drop for Spark {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
