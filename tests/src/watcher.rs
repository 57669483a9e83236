//! A process that looks at a table through PyIceberg, asked again and again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use firn_test_support::{Digest, Lake};
use serde_json::{Value, json};

/// `tests/py/serve.py` on one table.
#[derive(Debug)]
pub struct Watcher {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Watcher {
    /// Starts it; it answers as soon as its interpreter is ready.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(lake: &Lake, table: &str) -> Watcher {
        let mut command = lake.command("serve.py", table, &[]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("serve.py starts");
        let questions = child.stdin.take().expect("its input is a pipe");
        let answers = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        Watcher { child, questions, answers }
    }

    /// Rows of the table now; with `dedup`, a comma list of key columns, only the last row of each key.
    ///
    /// # Panics
    /// When the table cannot be read.
    #[track_caller]
    pub fn digest(&mut self, dedup: &str) -> Digest {
        let found = self.ask(&json!({ "command": "digest", "dedup": dedup }));
        let text = found["digest"].as_str().expect("digest");
        Digest { rows: found["rows"].as_u64().expect("rows"), digest: text.to_owned() }
    }

    /// Asserts I2 to I5 and I9 of design section 8; `dedup` as in [`Watcher::digest`].
    ///
    /// # Panics
    /// With every violation.
    #[track_caller]
    pub fn check_invariants(&mut self, dedup: &str) {
        let found = self.ask(&json!({ "command": "check", "dedup": dedup }));
        assert_eq!(found["violations"], json!([]), "{found:#}");
    }

    /// metadata_location, snapshot_id, live files and the count of snapshots.
    ///
    /// # Panics
    /// When the table cannot be read.
    #[track_caller]
    pub fn head(&mut self) -> Value {
        self.ask(&json!({ "command": "head" }))
    }

    #[track_caller]
    fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.questions, "{question}").expect("serve.py reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("serve.py answers");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        assert!(answer["error"].is_null(), "{question}: {}", answer["error"].as_str().unwrap_or_default());
        answer
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
