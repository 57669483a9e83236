//! The configuration file of Firn: model, defaults, validation (design section 3).
//!
//! One YAML file, shared with an ingestor. Sections that are not Firn's are ignored; in Firn's own sections every key,
//! type, size, duration and cron text is checked at start, and so are combinations that cannot be safe. All problems
//! are found in one go, each with file, line, key and remedy.
//!
//! A reader follows [`Config::load`]: `yaml` makes a tree with lines, `section` gives typed access that notes
//! problems, one file per section of the configuration turns it into the model. Values of secrets and values that came
//! from the environment are never printed.

mod catalog;
mod compaction;
mod config;
mod dataset;
mod duration;
mod environment;
mod error;
mod home;
mod maintenance;
mod nearest;
mod postgres;
mod reader;
mod scalar;
mod schedule;
mod secret;
mod section;
mod storage;
mod writers;
mod yaml;

pub use catalog::{Catalog, Database, RestAuth, RestCatalog, SqlCatalog};
pub use compaction::{Compaction, CompactionSettings, DedupOperation, Encodings, Verify};
pub use config::Config;
pub use dataset::{Dataset, TableName};
pub use duration::{hours, minutes, parse_duration};
pub use environment::{Environment, ProcessEnvironment};
pub use error::{ConfigError, ConfigErrors};
pub use maintenance::Maintenance;
pub use nearest::{edit_distance, near, nearest};
pub use postgres::{Postgres, SslMode};
pub use schedule::Schedule;
pub use secret::Secret;
pub use storage::{Credential, Storage};
