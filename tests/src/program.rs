//! The `firn` program.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

/// What a run of `firn` left behind.
#[derive(Debug)]
pub struct Run {
    /// Exit code; None when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    fn of(output: Output) -> Run {
        Run {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The JSON objects on standard output, one a line.
    ///
    /// # Panics
    /// When a line is no JSON object.
    pub fn json(&self) -> Vec<Value> {
        let parse = |line: &str| {
            let value: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}: {self:?}"));
            assert!(value.is_object(), "not an object: {line}");
            value
        };
        self.stdout.lines().map(parse).collect()
    }

    /// The last line, which must be the summary.
    ///
    /// # Panics
    /// When there is none.
    pub fn summary(&self) -> Value {
        let last = self.json().pop().unwrap_or_else(|| panic!("no output: {self:?}"));
        assert_eq!(last["summary"], Value::Bool(true), "{self:?}");
        last
    }

    /// All lines but the summary.
    ///
    /// # Panics
    /// As [`Run::summary`].
    pub fn lines(&self) -> Vec<Value> {
        let mut lines = self.json();
        assert_eq!(lines.pop().map(|last| last["summary"].clone()), Some(Value::Bool(true)), "{self:?}");
        lines
    }

    /// Asserts the exit code, with everything that was printed when it is another.
    ///
    /// # Panics
    /// When it is another.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Run {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked at"), "a panic: {}", self.stderr);
        self
    }
}

/// Path of the program `firn`.
///
/// # Panics
/// When it is not there.
pub fn firn_path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| beside("firn"))
}

/// Path of a program of the workspace: the one beside the program that asks, or the one that `cargo test --workspace` builds, because a test
/// of its package needs it. (A cargo started by a test would see variables that make it build half of the dependencies again.)
///
/// # Panics
/// When it is not there.
pub fn beside(name: &str) -> PathBuf {
    let asking = std::env::current_exe().expect("a program knows its own path");
    let folder = asking.parent().expect("a program lies in a folder");
    // A test lies in <target>/<profile>/deps, a program in <target>/<profile>.
    let profile = if folder.ends_with("deps") { folder.parent().expect("deps lies in a profile") } else { folder };
    let program = profile.join(name);
    assert!(program.is_file(), "no {}: run the tests with cargo test --workspace", program.display());
    program
}

/// A command of the program.
pub fn firn() -> Command {
    let mut command = Command::new(firn_path());
    command.env_remove("FIRN_CONFIG").env_remove("RUST_LOG");
    command
}

/// Runs `firn` to its end.
///
/// # Panics
/// When it cannot be started.
pub fn run(command: &mut Command) -> Run {
    Run::of(command.output().expect("firn starts"))
}

/// Waits for a process that was started with its output piped.
///
/// # Panics
/// When it cannot be waited for.
pub fn finish(child: Child) -> Run {
    Run::of(child.wait_with_output().expect("a process of our own can be waited for"))
}
