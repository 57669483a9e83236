//! What is wrong with an app.

use std::io;
use std::path::{Path, PathBuf};

/// Why an app cannot be run. Nothing here is worth a retry: a file or setting has to change.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A file or folder cannot be read.
    #[error("{}: cannot be read ({source})", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file is no JSON object.
    #[error("{}: {message}", file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// A value is not what the host takes, or asks for something that the local host does not do.
    #[error("{}: {key}: {message}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// Path of the key in the file.
        key: String,
        /// What is wrong and the remedy.
        message: String,
    },
    /// An app setting that a binding names is missing.
    #[error("app setting \"{name}\" is missing ({used_by}): set it in local.settings.json or the environment")]
    Setting {
        /// Its name.
        name: String,
        /// Who names it.
        used_by: String,
    },
}

impl AppError {
    pub(crate) fn wrong(file: &Path, key: &str, message: impl Into<String>) -> Self {
        AppError::Value { file: file.to_path_buf(), key: key.to_owned(), message: message.into() }
    }
}
