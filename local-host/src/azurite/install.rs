//! Installing a tool once, under a lock, with a marker that says it is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// Environment variable that names the folder for tools instead of `<target>/tools`.
pub const TOOLS_DIR_VARIABLE: &str = "FIRN_TOOLS_DIR";

/// The file that an install writes last. A folder without it is half made and is built anew.
const COMPLETE_MARKER: &str = ".complete";

/// Why a tool is not there. Nothing here is worth a retry: the message says what the person at the machine does.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A program that must be on the machine is not.
    #[error("`{program}` cannot be started ({source}): {remedy}")]
    Missing {
        /// Program as it was called.
        program: String,
        /// What to install.
        remedy: &'static str,
        /// Why it did not start.
        source: io::Error,
    },
    /// An installer ran and failed.
    #[error("`{command}` ended with {status}:\n{output}")]
    Failed {
        /// Command line.
        command: String,
        /// Exit status.
        status: std::process::ExitStatus,
        /// What it printed, standard output and error.
        output: String,
    },
    /// The folder for tools cannot be used.
    #[error("tools folder {path}: {source}; set FIRN_TOOLS_DIR to a folder that can be written")]
    Folder {
        /// Folder or file concerned.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// The folder that holds installed tools: `FIRN_TOOLS_DIR`, else `tools` in cargo's target directory.
pub fn tools_dir() -> PathBuf {
    match std::env::var_os(TOOLS_DIR_VARIABLE) {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => target_dir().join("tools"),
    }
}

/// Cargo's target directory: the folder above the running test that cargo tagged as its own (this holds for
/// `CARGO_TARGET_DIR`, `--target-dir` and configured directories alike), else `target` of the workspace.
pub fn target_dir() -> PathBuf {
    let tagged = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.ancestors().skip(1).find(|dir| dir.join("CACHEDIR.TAG").is_file()).map(Path::to_path_buf));
    tagged.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"))
}

/// Installs a tool into `<tools>/<name>-<hash of fingerprint>` unless a whole one is there, and returns that folder.
///
/// `fingerprint` is everything that decides what gets installed (versions, requirements). `install` gets the empty,
/// final folder: environments with absolute paths in them cannot be moved. Processes that ask at the same time wait for
/// the first; what a killed install left behind is removed.
///
/// # Errors
/// [`ToolError::Folder`] when the folder cannot be used, or the error of `install`.
pub fn install_once(
    name: &str,
    fingerprint: &str,
    install: impl FnOnce(&Path) -> Result<(), ToolError>,
) -> Result<PathBuf, ToolError> {
    install_into(&tools_dir(), name, fingerprint, install)
}

fn install_into(
    tools: &Path,
    name: &str,
    fingerprint: &str,
    install: impl FnOnce(&Path) -> Result<(), ToolError>,
) -> Result<PathBuf, ToolError> {
    let folder_error = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ToolError::Folder { path, source }
    };
    fs::create_dir_all(tools).map_err(folder_error(tools))?;
    let tools = tools.canonicalize().map_err(folder_error(tools))?;
    let directory = tools.join(format!("{name}-{}", short_hash(fingerprint)));
    let marker = directory.join(COMPLETE_MARKER);
    // The marker is written under the lock and never removed while it is true, so seeing it needs no lock.
    if marker.is_file() {
        return Ok(directory);
    }
    let _lock = lock(&directory.with_extension("lock"))?;
    if marker.is_file() {
        return Ok(directory);
    }
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(folder_error(&directory))?;
    }
    fs::create_dir(&directory).map_err(folder_error(&directory))?;
    install(&directory)?;
    fs::write(&marker, fingerprint).map_err(folder_error(&marker))?;
    Ok(directory)
}

/// Runs an installer's command and keeps what it printed for the error message.
///
/// # Errors
/// [`ToolError::Missing`] with `remedy` when it cannot be started, [`ToolError::Failed`] when it does not end with 0.
pub fn run_installer(command: &mut Command, remedy: &'static str) -> Result<(), ToolError> {
    let output = command.output().map_err(|source| ToolError::Missing {
        program: command.get_program().to_string_lossy().into_owned(),
        remedy,
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(ToolError::Failed {
        command: format!("{command:?}"),
        status: output.status,
        output: String::from_utf8_lossy(&text).trim_end().to_owned(),
    })
}

/// An exclusive lock that lasts as long as the file is open, also when the process dies.
fn lock(path: &Path) -> Result<File, ToolError> {
    let locked = || {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    };
    locked().map_err(|source| ToolError::Folder { path: path.to_path_buf(), source })
}

fn short_hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_tool_is_installed_once_for_many_who_ask_at_once() {
        let tools = tempfile::tempdir().unwrap();
        let installs = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let directory = install_into(tools.path(), "tool", "v1", |directory| {
                        installs.fetch_add(1, Ordering::SeqCst);
                        fs::write(directory.join("bin"), "whole").unwrap();
                        Ok(())
                    })
                    .unwrap();
                    assert_eq!(fs::read_to_string(directory.join("bin")).unwrap(), "whole");
                });
            }
        });
        assert_eq!(installs.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_half_made_tool_is_built_anew_without_its_leftovers() {
        let tools = tempfile::tempdir().unwrap();
        let failed = install_into(tools.path(), "tool", "v1", |directory| {
            fs::write(directory.join("leftover"), "").unwrap();
            run_installer(Command::new("false").arg("x"), "no remedy")
        });
        let Err(ToolError::Failed { command, .. }) = failed else { panic!("{failed:?}") };
        assert_eq!(command, r#""false" "x""#);
        let directory = install_into(tools.path(), "tool", "v1", |_| Ok(())).unwrap();
        assert!(!directory.join("leftover").exists());
    }

    #[test]
    fn another_fingerprint_is_another_folder() {
        let tools = tempfile::tempdir().unwrap();
        let first = install_into(tools.path(), "tool", "v1", |_| Ok(())).unwrap();
        let second = install_into(tools.path(), "tool", "v2", |_| Ok(())).unwrap();
        assert_ne!(first, second);
    }

    #[test]
    fn a_missing_program_is_named_with_the_remedy() {
        let error = run_installer(&mut Command::new("firn-no-such-program"), "install it").unwrap_err();
        assert!(error.to_string().starts_with("`firn-no-such-program` cannot be started"), "{error}");
        assert!(error.to_string().ends_with("install it"), "{error}");
    }
}
