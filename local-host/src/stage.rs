//! An app root as the host demands it, from the files of a source tree.
//!
//! In the source tree the functions lie in a folder of their own, beside their code; the host wants `host.json`, the
//! handler and one folder for each function side by side.

use std::io;
use std::path::{Path, PathBuf};

/// The folder of the source tree that holds functions.
const FUNCTIONS: &str = "functions";
const HOST_FILE: &str = "host.json";
const SETTINGS_FILE: &str = "local.settings.json";
const FUNCTION_FILE: &str = "function.json";

/// Why an app cannot be staged. Next: a person corrects what the message names.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// No folder with an app.
    #[error("no {HOST_FILE} with a folder {FUNCTIONS} beside it above {searched}; run this inside the source tree")]
    NoApp {
        /// Where it was looked for.
        searched: String,
    },
    /// No handler.
    #[error("the handler is not at {}; build it: cargo build -p firn-handler", path.display())]
    NoHandler {
        /// Where it should be.
        path: PathBuf,
    },
    /// A file cannot be copied.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// The nearest folder at or above one of `starts` that holds an app.
///
/// # Errors
/// [`StageError::NoApp`].
pub fn find_app(starts: &[PathBuf]) -> Result<PathBuf, StageError> {
    let is_app = |folder: &&Path| folder.join(HOST_FILE).is_file() && folder.join(FUNCTIONS).is_dir();
    let found = starts.iter().flat_map(|start| start.ancestors()).find(is_app);
    found.map(Path::to_path_buf).ok_or_else(|| {
        let searched = starts.iter().map(|start| start.display().to_string()).collect::<Vec<_>>().join(" and ");
        StageError::NoApp { searched }
    })
}

/// Fills the folder `into` from the app in `source`: `host.json`, `local.settings.json` where there is one, each function's
/// file, and the handler under the name `handler_name`.
///
/// # Errors
/// [`StageError`].
pub fn stage(source: &Path, handler: &Path, handler_name: &str, into: &Path) -> Result<(), StageError> {
    if !handler.is_file() {
        return Err(StageError::NoHandler { path: handler.to_path_buf() });
    }
    copy(&source.join(HOST_FILE), &into.join(HOST_FILE))?;
    let settings = source.join(SETTINGS_FILE);
    if settings.is_file() {
        copy(&settings, &into.join(SETTINGS_FILE))?;
    }
    let functions = source.join(FUNCTIONS);
    let failed = |path: &Path, source| StageError::File { path: path.to_path_buf(), source };
    for entry in std::fs::read_dir(&functions).map_err(|error| failed(&functions, error))? {
        let entry = entry.map_err(|error| failed(&functions, error))?;
        let file = entry.path().join(FUNCTION_FILE);
        if !file.is_file() {
            continue;
        }
        let folder = into.join(entry.file_name());
        std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        copy(&file, &folder.join(FUNCTION_FILE))?;
    }
    let target = into.join(handler_name);
    link(handler, &target).map_err(|error| failed(&target, error))
}

fn copy(from: &Path, to: &Path) -> Result<(), StageError> {
    let copied = std::fs::copy(from, to);
    copied.map(|_| ()).map_err(|source| StageError::File { path: from.to_path_buf(), source })
}

/// A link is enough: the handler is large, and the app root does not outlive the run.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(from, to);
    #[cfg(not(unix))]
    return std::fs::copy(from, to).map(|_| ());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn functions_come_to_the_top() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("repo");
        write(&source.join("host.json"), "{}");
        write(&source.join("functions/plan/function.json"), "{\"bindings\":[]}");
        write(&source.join("functions/handler/Cargo.toml"), "");
        let deep = source.join("target/debug");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(find_app(&[folder.path().join("elsewhere"), deep.join("firn")]).unwrap(), source);
        let into = folder.path().join("app");
        std::fs::create_dir(&into).unwrap();
        let handler = folder.path().join("built-handler");
        let error = stage(&source, &handler, "handler", &into).unwrap_err().to_string();
        assert!(error.contains("build it: cargo build"), "{error}");
        write(&handler, "binary");
        stage(&source, &handler, "handler", &into).unwrap();
        let mut names: Vec<String> =
            std::fs::read_dir(&into).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["handler", "host.json", "plan"]);
        assert_eq!(std::fs::read_to_string(into.join("handler")).unwrap(), "binary");
        assert!(into.join("plan/function.json").is_file());
        let error = find_app(&[folder.path().join("elsewhere")]).unwrap_err().to_string();
        assert!(error.starts_with("no host.json with a folder functions"), "{error}");
    }
}
