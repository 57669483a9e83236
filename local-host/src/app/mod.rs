//! The app as its files describe it: `host.json`, a `function.json` for each function, settings.

mod binding;
mod error;
mod function;
mod host_json;
mod json;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use binding::{AuthLevel, Connection, Output, OutputKind, Trigger};
pub use error::AppError;
pub use function::FunctionSpec;
pub use host_json::{HostJson, MessageEncoding, QueueSettings};
pub(crate) use json::time_span;
pub use settings::Settings;
pub(crate) use settings::expand;

/// An app, read and checked.
#[derive(Debug, Clone)]
pub struct App {
    /// Its folder, absolute.
    pub root: PathBuf,
    /// `host.json`.
    pub host: HostJson,
    /// Functions that are not disabled, by name.
    pub functions: Vec<FunctionSpec>,
    /// App settings.
    pub settings: Settings,
}

impl App {
    /// Reads the app below `root`. `extra` settings win over `environment`, which wins over `local.settings.json`.
    ///
    /// # Errors
    /// [`AppError`] names the file and what to write instead.
    pub fn load(
        root: &Path,
        extra: &BTreeMap<String, String>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<App, AppError> {
        let root = std::path::absolute(root).map_err(|source| AppError::Read { file: root.to_path_buf(), source })?;
        let settings = Settings::load(&root, extra, environment)?;
        let host = HostJson::load(&root, &settings)?;
        let functions = function::load_all(&root, &settings)?;
        let uses_queues = functions.iter().any(FunctionSpec::uses_queues);
        if uses_queues && !host.has_extension_bundle {
            return Err(AppError::wrong(&root.join("host.json"), "extensionBundle", host_json::NO_BUNDLE));
        }
        Ok(App { root, host, functions, settings })
    }

    /// The function of this name; names are compared without case, as the real host does.
    pub fn function(&self, name: &str) -> Option<&FunctionSpec> {
        self.functions.iter().find(|function| function.name.eq_ignore_ascii_case(name))
    }
}
