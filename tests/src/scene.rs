//! A lake, a configuration for it, and the checks that end every test.

use std::path::PathBuf;
use std::process::Command;

use firn_test_support::{Azurite, Digest, Lake};
use serde_json::Value;
use tempfile::TempDir;

use crate::backup::files_below;
use crate::program::{Run, firn, run};

/// A lake of its own with a configuration that names one dataset of it.
#[derive(Debug)]
pub struct Scene {
    folder: TempDir,
    /// The lake, as other parties see it.
    pub lake: Lake,
    storage: String,
}

/// A configuration with one dataset, `readings`, of table [`TABLE`]. `storage` is a whole line of YAML or empty.
pub fn configuration(lake: &Lake, storage: &str, compaction: &str, dataset: &str) -> String {
    let comma = if dataset.is_empty() { "" } else { ", " };
    let kind = if lake.catalog_uri().starts_with("http") { "rest" } else { "sql" };
    format!(
        "{storage}catalog: {{ type: {kind}, uri: \"{}\", name: {}, warehouse: \"{}\" }}\n\
         compaction: {{ {compaction} }}\n\
         ingestion:\n  datasets:\n    - {{ name: readings, table: {TABLE}{comma}{dataset} }}\n",
        lake.catalog_uri(),
        lake.catalog_name(),
        lake.warehouse()
    )
}

/// The flags of a manual pass over the dataset of a scene, under the rule manual.
pub const MANUAL: [&str; 2] = ["--dataset", "readings"];

/// The table of a scene.
pub const TABLE: &str = "iot.readings";

impl Scene {
    /// A lake in a local folder.
    ///
    /// # Panics
    /// When there is no temporary folder.
    pub fn local() -> Scene {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let lake = Lake::local(folder.path());
        Scene { folder, lake, storage: String::new() }
    }

    /// A lake in Azurite, in a container of its own.
    ///
    /// # Panics
    /// When there is no temporary folder.
    pub fn azurite(azurite: &Azurite, container: &str) -> Scene {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let warehouse = format!("abfss://{container}@devstoreaccount1.dfs.core.windows.net/wh");
        let lake = Lake::azurite(folder.path(), &warehouse, &azurite.connection_string());
        let scene = Scene { folder, lake, storage: String::new() };
        scene.with_connection_string(&azurite.connection_string())
    }

    /// The same scene, with another way to the storage for `firn` alone; other parties keep theirs.
    #[must_use]
    pub fn with_connection_string(mut self, text: &str) -> Scene {
        self.storage = format!("storage: {{ connectionString: \"{text}\" }}\n");
        self
    }

    /// The same scene with another catalog, see [`Lake::with_catalog`].
    #[must_use]
    pub fn with_catalog(mut self, uri: &str) -> Scene {
        self.lake = self.lake.with_catalog(uri);
        self
    }

    /// The scene's folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }

    /// Writes the configuration: `compaction` and `dataset` are YAML flow entries, for example `backlogFileThreshold: 10` and
    /// `seriesColumns: [origin], timeColumn: time_hour`.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn configure(&self, compaction: &str, dataset: &str) {
        let text = configuration(&self.lake, &self.storage, compaction, dataset);
        std::fs::write(self.config(), text).expect("the configuration is written");
    }

    /// Writes the table; `options` are those of `make_table.py`, with blanks between them.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn make(&self, options: &str) {
        self.lake.make_table(TABLE, &options.split_whitespace().collect::<Vec<_>>());
    }

    /// Path of the configuration.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("firn.yaml")
    }

    /// `firn --format json compact --config … <flags>`, not started yet. Without flags it is `--dataset readings`: a run by hand needs one.
    pub fn compact_command(&self, flags: &[&str]) -> Command {
        let flags = if flags.is_empty() { &["--dataset", "readings"] } else { flags };
        let mut command = self.compactor_command();
        command.args(flags);
        command
    }

    /// `firn --format json compact --config …`, not started yet: the long-running compactor.
    pub fn compactor_command(&self) -> Command {
        let mut command = firn();
        command.current_dir(self.folder.path()).env("TMPDIR", self.folder.path());
        command.args(["--format", "json", "compact", "--config"]).arg(self.config());
        command
    }

    /// Runs `firn compact`.
    pub fn compact(&self, flags: &[&str]) -> Run {
        run(&mut self.compact_command(flags))
    }

    /// Rows of the table now.
    pub fn digest(&self) -> Digest {
        self.lake.digest(TABLE, &[])
    }

    /// Rows of the table at a snapshot.
    pub fn digest_at(&self, snapshot: i64) -> Digest {
        self.lake.digest(TABLE, &["--snapshot", &snapshot.to_string()])
    }

    /// What the metadata says.
    pub fn inspect(&self) -> Value {
        self.lake.inspect(TABLE, &[])
    }

    /// Asserts I2 to I5 and I9, and I7: a second run with the same flags selects nothing.
    ///
    /// # Panics
    /// When one does not hold.
    #[track_caller]
    pub fn check_converged(&self, flags: &[&str]) {
        self.lake.check_invariants(TABLE);
        let again = self.compact(&[flags, &["--dry-run"]].concat()).expect_code(0);
        let selected: Vec<Value> = again.lines().into_iter().filter(|line| line["decision"] == "selected").collect();
        assert!(selected.is_empty(), "a second run selects: {selected:#?}");
        let leftovers = self.leftovers();
        assert!(leftovers.is_empty(), "temporary files are left: {leftovers:?}");
    }

    /// Temporary files and folders of Firn that are there: on temporary disk, and hidden ones beside the table's files.
    ///
    /// # Panics
    /// When the folder cannot be listed.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let own = std::fs::read_dir(self.folder.path()).expect("the folder can be listed").filter_map(Result::ok);
        let is_own = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("firn-"));
        let mut found: Vec<PathBuf> = own.map(|entry| entry.path()).filter(is_own).collect();
        found.extend(self.hidden_uploads());
        found
    }

    /// Files that a killed upload into a local folder left. They are removed by later writers of the same folder, once they are an
    /// hour old.
    ///
    /// # Panics
    /// When the folder cannot be listed.
    pub fn hidden_uploads(&self) -> Vec<PathBuf> {
        files_below(self.folder.path(), &|name| name.starts_with(".firn-") && name.ends_with(".tmp"))
    }
}
