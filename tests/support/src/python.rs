//! PyIceberg and DuckDB: other parties' writers and readers, in an environment of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use firn_local_host::azurite::install::{ToolError, install_once, run_installer};
use serde_json::Value;

/// Direct requirements with their versions; part of the environments' fingerprints.
const REQUIREMENTS: &str = include_str!("../../py/requirements.txt");
const SPARK_REQUIREMENTS: &str = include_str!("../../py/requirements-spark.txt");

const PYTHON_REMEDY: &str = "install Python 3.10 or later with its venv module (Debian: python3 python3-venv)";

/// A Python with the packages of `tests/py/requirements.txt`, which runs the scripts of `tests/py`.
#[derive(Debug, Clone)]
pub struct Python {
    interpreter: PathBuf,
    scripts: PathBuf,
}

/// Why a script gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The interpreter could not be started.
    #[error("{script}: {source}")]
    Start {
        /// Script.
        script: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The script ended with an error.
    #[error("{script} ended with {status}:\n{stderr}")]
    Failed {
        /// Script and arguments.
        script: String,
        /// Exit status.
        status: ExitStatus,
        /// What it wrote to standard error.
        stderr: String,
    },
    /// The script's standard output is not one JSON document.
    #[error("{script} printed no JSON ({source}):\n{stdout}")]
    NotJson {
        /// Script and arguments.
        script: String,
        /// Cause.
        source: serde_json::Error,
        /// What it printed.
        stdout: String,
    },
}

impl Python {
    /// The tools' Python; installed on first use (about a minute), then ready at once.
    ///
    /// # Panics
    /// When it cannot be installed: a test that needs it cannot go on, and the message says what is missing.
    #[must_use]
    #[allow(clippy::panic, reason = "a test without its tools must fail with the installer's message")]
    pub fn tools() -> Python {
        Python::try_tools().unwrap_or_else(|error| panic!("Python tools: {error}"))
    }

    /// As [`Python::tools`], for callers that report the error themselves.
    ///
    /// # Errors
    /// What the installer said.
    pub fn try_tools() -> Result<Python, ToolError> {
        Python::with("py", "requirements.txt", REQUIREMENTS)
    }

    /// A Python with Spark; installed on first use (300 MB).
    ///
    /// # Panics
    /// As [`Python::tools`].
    #[must_use]
    #[allow(clippy::panic, reason = "a test without its tools must fail with the installer's message")]
    pub fn spark() -> Python {
        let python = Python::with("spark", "requirements-spark.txt", SPARK_REQUIREMENTS);
        python.unwrap_or_else(|error| panic!("Spark: {error}"))
    }

    fn with(name: &str, file: &str, requirements: &str) -> Result<Python, ToolError> {
        let environment = install_once(name, requirements, |environment| {
            run_installer(Command::new("python3").args(["-m", "venv"]).arg(environment), PYTHON_REMEDY)?;
            let requirements = scripts_dir().join(file);
            run_installer(
                Command::new(interpreter(environment))
                    .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
                    .arg(requirements),
                PYTHON_REMEDY,
            )
        })?;
        Ok(Python { interpreter: interpreter(&environment), scripts: scripts_dir() })
    }

    /// A command that runs a script of `tests/py`, for tests that need the process itself (to kill it, or to leave it
    /// running).
    pub fn command(&self, script: &str) -> Command {
        let mut command = Command::new(&self.interpreter);
        // -B: several tests run the same scripts at once, and the source tree stays clean.
        command.args(["-B", "-W", "ignore"]).arg(self.scripts.join(script));
        command
    }

    /// Runs a script of `tests/py` and returns the JSON document it printed.
    ///
    /// # Panics
    /// When the script fails; the message holds its standard error.
    #[allow(clippy::panic, reason = "a test whose tool fails must fail with the tool's message")]
    pub fn run<S: AsRef<str>>(&self, script: &str, args: &[S]) -> Value {
        self.try_run(script, args).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`Python::run`], for callers that expect a failure.
    ///
    /// # Errors
    /// [`ScriptError`] with the script's arguments and what it wrote.
    pub fn try_run<S: AsRef<str>>(&self, script: &str, args: &[S]) -> Result<Value, ScriptError> {
        let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
        let shown = format!("{script} {}", args.join(" "));
        let output = self
            .command(script)
            .args(&args)
            .output()
            .map_err(|source| ScriptError::Start { script: shown.clone(), source })?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            return Err(ScriptError::Failed { script: shown, status: output.status, stderr });
        }
        serde_json::from_slice(&output.stdout).map_err(|source| ScriptError::NotJson {
            script: shown,
            source,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }
}

fn interpreter(environment: &Path) -> PathBuf {
    environment.join("bin").join("python")
}

fn scripts_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_fails_shows_what_it_said() {
        let error = Python::tools().try_run("digest.py", &["--no-such-option"]).unwrap_err();
        let ScriptError::Failed { script, stderr, .. } = &error else { panic!("{error}") };
        assert_eq!(script, "digest.py --no-such-option");
        assert!(stderr.contains("--catalog"), "{stderr}");
    }
}
