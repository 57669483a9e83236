//! The file as a whole.

use std::path::Path;

use crate::catalog::{self, Catalog};
use crate::compaction::{self, Compaction};
use crate::dataset::{self, Dataset};
use crate::environment::{Environment, ProcessEnvironment};
use crate::error::{ConfigError, ConfigErrors};
use crate::maintenance::{self, Maintenance};
use crate::reader::{Lines, Reader};
use crate::section::{Section, Unknown};
use crate::storage::{self, Storage};
use crate::yaml;

/// What messages call a configuration that was not read from a file.
const UNNAMED: &str = "firn.yaml";

/// A configuration that was read and found sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The file as it was named, for messages.
    pub file: String,
    /// `storage`; None: everything lies in the folder of the `file:` warehouse.
    pub storage: Option<Storage>,
    /// `catalog`.
    pub catalog: Catalog,
    /// `compaction`.
    pub compaction: Compaction,
    /// `maintenance`.
    pub maintenance: Maintenance,
    /// `ingestion.datasets`, in the order of the file; at least one.
    pub datasets: Vec<Dataset>,
    /// What is odd but allowed, such as a section that is ignored and looks like one of Firn's.
    pub warnings: Vec<ConfigError>,
    lines: Lines,
}

impl Config {
    /// Reads a file, with `${NAME}` from the environment of this process.
    ///
    /// # Errors
    /// Everything that is wrong with it, a file that cannot be read too.
    pub fn from_file(path: &Path) -> Result<Self, ConfigErrors> {
        let file = path.display().to_string();
        let text = std::fs::read(path)
            .map_err(|error| format!("cannot be read: {error}; check --config"))
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "is not UTF-8 text; save it as UTF-8".to_owned()));
        match text {
            Ok(text) => Self::load_named(&file, &text, &ProcessEnvironment),
            Err(message) => Err(ConfigErrors(vec![ConfigError { file, line: None, key: String::new(), message }])),
        }
    }

    /// Reads a text, with `${NAME}` from `environment`.
    ///
    /// # Errors
    /// Everything that is wrong with it, by line.
    pub fn load(text: &str, environment: &dyn Environment) -> Result<Self, ConfigErrors> {
        Self::load_named(UNNAMED, text, environment)
    }

    /// As [`Self::load`], with the name that messages call the file.
    ///
    /// # Errors
    /// Everything that is wrong with it, by line.
    pub fn load_named(file: &str, text: &str, environment: &dyn Environment) -> Result<Self, ConfigErrors> {
        let reader = Reader::new(file, environment);
        let root = yaml::parse(text).unwrap_or_else(|error| {
            reader.fault_at(error.line, "", error.message);
            None
        });
        if !reader.sound(&[""]) {
            return Err(reader.finish().err().unwrap_or(ConfigErrors(Vec::new())));
        }
        let top = Section::new(&reader, "", root.as_deref());
        let parts = reader.sound(&[""]).then(|| Parts::read(&top, environment)).flatten();
        let (lines, warnings) = reader.finish()?;
        match parts {
            Some(Parts { storage, catalog, compaction, maintenance, datasets }) => {
                Ok(Self { file: file.to_owned(), storage, catalog, compaction, maintenance, datasets, warnings, lines })
            }
            // Not reached: what leaves nothing to work with was noted as a problem.
            None => Err(ConfigErrors(Vec::new())),
        }
    }

    /// The dataset of this name.
    pub fn dataset(&self, name: &str) -> Option<&Dataset> {
        self.datasets.iter().find(|dataset| dataset.name == name)
    }

    /// The dataset that somebody asked for.
    ///
    /// # Errors
    /// A sentence with the datasets that there are.
    pub fn named_dataset(&self, name: &str) -> Result<&Dataset, String> {
        self.dataset(name).ok_or_else(|| {
            let known: Vec<&str> = self.datasets.iter().map(|dataset| dataset.name.as_str()).collect();
            format!("no dataset \"{name}\" in {}; it has {}", self.file, known.join(", "))
        })
    }

    /// A problem that only shows later (a column that the table lacks), with the line of its key. `key` is a dotted
    /// path such as `catalog.uri` or [`Dataset::key`].
    pub fn problem(&self, key: &str, message: impl Into<String>) -> ConfigError {
        ConfigError { file: self.file.clone(), line: self.lines.of(key), key: key.to_owned(), message: message.into() }
    }
}

struct Parts {
    storage: Option<Storage>,
    catalog: Catalog,
    compaction: Compaction,
    maintenance: Maintenance,
    datasets: Vec<Dataset>,
}

impl Parts {
    fn read(top: &Section<'_>, environment: &dyn Environment) -> Option<Self> {
        let storage = top.has("storage").then(|| storage::read(&top.section("storage")));
        for (key, remedy) in [
            ("catalog", "add the section with type, uri, name and warehouse"),
            ("ingestion", "add the section with at least one dataset below datasets"),
        ] {
            top.require(key, remedy);
        }
        let catalog = match top.has("catalog") {
            true => catalog::read(&top.section("catalog"), storage.as_ref()),
            false => None,
        };
        let compaction = compaction::read(&top.section("compaction"));
        let maintenance = maintenance::read(&top.section("maintenance"), compaction.runtime_deadline_hours);
        let datasets = match top.has("ingestion") {
            true => dataset::read_all(&top.section("ingestion"), &compaction.settings),
            false => Vec::new(),
        };
        maintenance::warn(top.reader(), &maintenance, &datasets);
        top.finish(&["storage", "catalog", "compaction", "maintenance", "ingestion"], Unknown::IgnoreSections);
        let catalog = catalog?;
        check_sqlite_in_azure(top, &catalog, storage.as_ref(), environment);
        Some(Self { storage, catalog, compaction, maintenance, datasets })
    }
}

/// A SQLite file in Azure lies on the disk of one instance and is gone with it: other instances and the ingestor do not
/// see what is committed there. A Functions host on a developer's machine is told by its storage: none, or an emulator.
fn check_sqlite_in_azure(
    top: &Section<'_>,
    catalog: &Catalog,
    storage: Option<&Storage>,
    environment: &dyn Environment,
) {
    let in_azure = environment.variable("WEBSITE_INSTANCE_ID").is_some();
    let in_functions = environment.variable("FUNCTIONS_WORKER_RUNTIME").is_some();
    let real_account = storage.is_some_and(|storage| !storage.is_emulator());
    if catalog.is_sqlite() && (in_azure || (in_functions && real_account)) {
        let message = "a SQLite file cannot be shared in Azure: each instance has its own and loses it; use PostgreSQL \
                       or a REST catalog";
        top.section("catalog").fault("uri", message);
    }
}
